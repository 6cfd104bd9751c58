//! Histograms that each process publishes: of latencies, and of the sizes of requests.
//!
//! Each has its place in the [record](super) of a process by its order here.

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
