//! Counters: the numbers that a process publishes, and of which there are histograms.
//!
//! Each has its place in the [record](super) of a process by its order here.

/// The counters of each process. All are totals since its engine started, but for the
/// `Frames...` and `Unmanaged...` ones, which are levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Counter {
    /// Pages read from the store.
    PageIns,
    /// Pages written to the store.
    PageOuts,
    /// Requests that read them.
    PageInRequests,
    /// Requests that wrote them.
    PageOutRequests,
    /// Faults on pages that were in memory all the time.
    SoftFaults,
    /// Faults served with a page of zeros.
    ZeroFills,
    /// Faults that copied a shared page.
    CowFaults,
    /// Faults that waited for the store.
    PageInFaults,
    /// Faults that needed nothing: someone else had served the page already.
    SpuriousFaults,
    /// The most frames this process may use now, as its engine has understood it.
    FramesBudget,
    /// Frames in use now.
    FramesResident,
    /// The most frames ever in use.
    FramesPeak,
    /// Pages that left without being written, because the store held the same bytes.
    CleanDrops,
    /// Pages of zeros that left without being written.
    ZeroPages,
    /// Resident bytes, anonymous or shared, that are neither in frames nor the engine's own:
    /// stacks, shared memory, what a program wrote to of its files' private mappings.
    UnmanagedBytes,
    /// Bytes of address space under management.
    ManagedBytes,
    /// The number of ranges of addresses under management.
    ManagedRegions,
    /// Pages read ahead that were used.
    AheadUsed,
    /// Pages read ahead that left unused.
    AheadWasted,
    /// Bytes read from the store.
    BytesRead,
    /// Bytes written to the store.
    BytesWritten,
    /// Frames named by the policy that could not leave.
    Refusals,
    /// Pages that could not be moved for now: pinned, or shared after a fork.
    Unmovable,
    /// Pages taken over that the program had filled before they were managed.
    Adopted,
    /// Time that program threads waited for faults, in nanoseconds, summed over threads.
    StallNs,
    /// Time the engine worked, in nanoseconds.
    EngineNs,
    /// Events of the userfaultfd other than faults.
    MapEvents,
    /// Times the engine changed its processor to follow the program.
    EngineMoves,
    /// Requests to the store that failed.
    StoreErrors,
    /// Pages on their way to the store. If a process dies with some, its slots may still be written
    /// to after its end.
    StoresUnderWay,
    /// Pages that can't be moved now, because the program has given them to the kernel, ...
    Pinned,
    /// ... and the most at a time.
    PinnedPeak,
    /// Of those, pages beyond the budget now, ...
    Disowned,
    /// ... and the most at a time.
    DisownedPeak,
    /// The most that [`UnmanagedBytes`](Counter::UnmanagedBytes) ever was.
    UnmanagedBytesMost,
    /// The most memory that the engine itself had, in bytes.
    EngineBytes,
    /// As many frames as are not used because the process has other memory: the engine's own, and
    /// what is not managed.
    FramesBeside,
}

impl Counter {
    /// All counters, in the order of the record.
    pub const ALL: [Counter; 37] = [
        Counter::PageIns,
        Counter::PageOuts,
        Counter::PageInRequests,
        Counter::PageOutRequests,
        Counter::SoftFaults,
        Counter::ZeroFills,
        Counter::CowFaults,
        Counter::PageInFaults,
        Counter::SpuriousFaults,
        Counter::FramesBudget,
        Counter::FramesResident,
        Counter::FramesPeak,
        Counter::CleanDrops,
        Counter::ZeroPages,
        Counter::UnmanagedBytes,
        Counter::ManagedBytes,
        Counter::ManagedRegions,
        Counter::AheadUsed,
        Counter::AheadWasted,
        Counter::BytesRead,
        Counter::BytesWritten,
        Counter::Refusals,
        Counter::Unmovable,
        Counter::Adopted,
        Counter::StallNs,
        Counter::EngineNs,
        Counter::MapEvents,
        Counter::EngineMoves,
        Counter::StoreErrors,
        Counter::StoresUnderWay,
        Counter::Pinned,
        Counter::PinnedPeak,
        Counter::Disowned,
        Counter::DisownedPeak,
        Counter::UnmanagedBytesMost,
        Counter::EngineBytes,
        Counter::FramesBeside,
    ];

    /// The counter's name in statistics files.
    pub fn name(self) -> &'static str {
        match self {
            Counter::PageIns => "page_ins",
            Counter::PageOuts => "page_outs",
            Counter::PageInRequests => "page_in_requests",
            Counter::PageOutRequests => "page_out_requests",
            Counter::SoftFaults => "soft_faults",
            Counter::ZeroFills => "zero_fills",
            Counter::CowFaults => "cow_faults",
            Counter::PageInFaults => "page_in_faults",
            Counter::SpuriousFaults => "spurious_faults",
            Counter::FramesBudget => "frames_budget",
            Counter::FramesResident => "frames_resident",
            Counter::FramesPeak => "frames_peak",
            Counter::CleanDrops => "clean_drops",
            Counter::ZeroPages => "zero_pages",
            Counter::UnmanagedBytes => "unmanaged_bytes",
            Counter::ManagedBytes => "managed_bytes",
            Counter::ManagedRegions => "managed_regions",
            Counter::AheadUsed => "ahead_used",
            Counter::AheadWasted => "ahead_wasted",
            Counter::BytesRead => "bytes_read",
            Counter::BytesWritten => "bytes_written",
            Counter::Refusals => "refusals",
            Counter::Unmovable => "unmovable",
            Counter::Adopted => "adopted",
            Counter::StallNs => "stall_ns",
            Counter::EngineNs => "engine_ns",
            Counter::MapEvents => "map_events",
            Counter::EngineMoves => "engine_moves",
            Counter::StoreErrors => "store_errors",
            Counter::StoresUnderWay => "stores_under_way",
            Counter::Pinned => "pinned",
            Counter::PinnedPeak => "pinned_peak",
            Counter::Disowned => "disowned",
            Counter::DisownedPeak => "disowned_peak",
            Counter::UnmanagedBytesMost => "unmanaged_bytes_most",
            Counter::EngineBytes => "engine_bytes",
            Counter::FramesBeside => "frames_beside",
        }
    }
}

/// The faults whose latency is recorded apart, from the fault's message to its resolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Latency {
    /// Faults on pages that were in memory.
    Soft,
    /// Faults served with zeros.
    ZeroFill,
    /// Faults that waited for the store.
    PageIn,
}

impl Latency {
    /// All kinds, in the order of the record.
    pub const ALL: [Latency; 3] = [Latency::Soft, Latency::ZeroFill, Latency::PageIn];
}

/// The requests whose sizes are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Cluster {
    /// Requests that read pages.
    In,
    /// Requests that write them.
    Out,
}
