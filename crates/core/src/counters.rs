//! Counters: what happens in a run, in numbers.
//!
//! A counter is one line of the [table](crate::counters!): who counts it, its name, its unit, its
//! kind, its name in each record, and its meaning. Everything else follows from the line: the
//! fields of [`Counters`], which the core counts; the page that the processes of a live run share;
//! the records `tidemark.run` and `tidemark.replay`, as JSON, as text and as CSV; and the table of
//! `docs/formats/run-v1.md`. A new counter is a line here, and the place where it is counted.
//!
//! A record may know a counter by another name than the code does: records keep the names they
//! were published with.

/// Calls a macro with the lines of the table of counters: with `all`, with those that the `core`
/// counts, or with those that stand in the record of a `run` or of a `replay`.
///
/// A line has, behind its meaning:
/// - who counts it: the `core`; the `engine` of a live run; the simulated `world`;
/// - its name in the code, as a field and as a variant of [`Counter`];
/// - its unit, which is a variant of [`Unit`];
/// - its kind, which is a variant of [`Kind`];
/// - what it rests on, which is a variant of [`Basis`];
/// - its name in the record of a run, and in that of a replay. `_` is for one that is not there.
///
/// The order is that of the fields of the records.
#[macro_export]
macro_rules! counters {
    ($which:ident $apply:ident) => {
        $crate::select_counters! { $which $apply []
    { /// Faults handed in (not counting their retries).
      core faults Faults Faults Sum Counted _ _ }
    { /// Pages zeroed ahead of their first touch.
      core zero_aheads ZeroAheads Pages Sum Counted _ _ }
    { /// Pages read from the store, read-ahead included.
      core page_ins PageIns Pages Sum Counted "page_ins" "page_ins" }
    { /// Pages written to the store.
      core page_outs PageOuts Pages Sum Counted "page_outs" "page_outs" }
    { /// Requests that read those pages.
      core page_in_requests PageInRequests Requests Sum Counted
      "page_in_requests" "page_in_requests" }
    { /// Requests that wrote those pages.
      core page_out_requests PageOutRequests Requests Sum Counted
      "page_out_requests" "page_out_requests" }
    { /// Of the pages read, those from the swap store.
      world swap_ins SwapIns Pages Sum Counted _ "swap_ins" }
    { /// Of the pages written, those to the swap store.
      world swap_outs SwapOuts Pages Sum Counted _ "swap_outs" }
    { /// Of the pages read, those of files.
      engine file_ins FileIns Pages Sum Counted "file_ins" "file_ins" }
    { /// Of the pages written, those of files.
      engine file_outs FileOuts Pages Sum Counted "file_outs" "file_outs" }
    { /// Faults on pages that were in memory, unmapped.
      core soft_faults SoftFaults Faults Sum Counted "soft_faults" "soft_faults" }
    { /// First touches of anonymous memory, answered with zeros. Pages zeroed along with them are
      /// not counted.
      core zero_fills ZeroFills Faults Sum Counted "zero_fills" "zero_fills" }
    { /// Private copies made by a write to a shared page.
      core cow_faults CowFaults Faults Sum Counted "cow_faults" "copies" }
    { /// Pages that were touched while they were on their way out, and stayed.
      core reactivations Reactivations Pages Sum Counted _ "reactivations" }
    { /// Faults that had to wait for the store: for their page, or for another page to leave first.
      engine page_in_faults PageInFaults Faults Sum Counted "page_in_faults" _ }
    { /// Faults that needed nothing: the page was there when the fault was looked at.
      engine spurious_faults SpuriousFaults Faults Sum Counted "spurious_faults" _ }
    { /// Pages read ahead: they came, and no fault had asked for them. They are those of the three
      /// counts that follow.
      core read_ahead ReadAhead Pages Sum Counted "read_ahead" "read_ahead" }
    { /// Pages read ahead that were then used: a fault has touched them, or they were written to.
      core read_ahead_used ReadAheadUsed Pages Sum Counted "read_ahead_used" "read_ahead_used" }
    { /// Pages read ahead that left again unused: they were never mapped, so nothing can have
      /// touched them.
      core read_ahead_wasted ReadAheadWasted Pages Sum Counted
      "read_ahead_wasted" "read_ahead_wasted" }
    { /// Pages read ahead of which neither is known. They were mapped before their use, which then
      /// can't be seen; or they are still in memory.
      engine read_ahead_unknown ReadAheadUnknown Pages Level Counted
      "read_ahead_unknown" "read_ahead_unknown" }
    { /// Of those, the ones that a walk had gone past when they left: it has probably used them.
      core read_ahead_passed ReadAheadPassed Pages Sum Inferred
      "read_ahead_passed" "read_ahead_passed" }
    { /// Pages that left without a write because the store had them already.
      core clean_drops CleanDrops Pages Sum Counted "clean_drops" "clean_drops" }
    { /// Pages that left without a write because they held only zeros.
      core zero_pages ZeroPages Pages Sum Counted "zero_pages" _ }
    { /// Pages that were in memory before they were managed, and were taken over.
      core adopted_pages AdoptedPages Pages Sum Counted "adopted_pages" _ }
    { /// Frames in use, at most, with the memory that compressed pages have.
      core frames_peak FramesPeak Frames MeasuredPeak Counted "frames_peak" "frames_peak" }
    { /// Choices of the policy that were turned down: it named a frame that may not leave, or none
      /// when one had to.
      core refusals Refusals Times Sum Counted "refusals" "refusals" }
    { /// Of the pages written to swap, those of files whose own pagers could get no frame.
      core double_paged DoublePaged Pages Sum Counted _ "double_paged" }
    { /// Faults that had to wait for a free frame.
      core stalls Stalls Faults Sum Counted _ "stalls" }
    { /// Frames the policy asked about.
      core questions Questions Frames Sum Counted _ "questions" }
    { /// Messages to pagers.
      world messages Messages Messages Sum Counted _ "messages" }
    { /// Changes of a processor from one process to another.
      world switches Switches Times Sum Counted _ "switches" }
    { /// The most memory that chains of the reverse map took.
      world reverse_map_bytes_max ReverseMapBytesMax Bytes Peak Counted _ "reverse_map_bytes_max" }
    { /// Uses of pages that the trace does not say are mapped; they were let pass.
      world irregular Irregular Times Sum Counted _ "irregular" }
    { /// Pages that could not leave because their frames were in use by others.
      core busy Busy Pages Sum Counted _ _ }
    { /// Of those, the ones that filled memory and were left to their programs.
      core disowned Disowned Pages Sum Counted _ _ }
    { /// Pages that could not be moved for now: pinned, locked, or shared after a fork.
      engine setbacks Setbacks Pages Sum Counted "setbacks" _ }
    { /// Pages that can't be moved because the program has given them to the kernel (registered
      /// buffers, input and output under way), at the end.
      engine pinned_pages PinnedPages Pages Level Counted "pinned_pages" _ }
    { /// The most of those at a time.
      engine pinned_pages_peak PinnedPagesPeak Pages Peak Counted "pinned_pages_peak" _ }
    { /// Of the pinned pages, those beyond the budget now.
      engine over_budget_pages OverBudgetPages Pages Level Counted _ _ }
    { /// The most pinned pages beyond the budget at a time.
      engine over_budget_pages_peak OverBudgetPagesPeak Pages Peak Counted
      "over_budget_pages_peak" _ }
    { /// Frames that may be used, at the end.
      engine frames_budget FramesBudget Frames MeasuredLevel Counted "frames_budget" _ }
    { /// Frames in use now.
      engine frames_resident FramesResident Frames MeasuredLevel Counted _ _ }
    { /// As many frames as are not used because the process has other memory: the engine's own,
      /// and what is not managed.
      engine frames_beside FramesBeside Frames MeasuredLevel Sampled "frames_beside" _ }
    { /// Resident memory, anonymous or shared, that is neither in frames nor the engine's own:
      /// stacks, shared memory, what a program wrote to of its files' private mappings.
      engine unmanaged_bytes_now UnmanagedBytesNow Bytes MeasuredLevel Sampled _ _ }
    { /// The most memory that was resident at a time and not managed, beside the engine's own.
      engine unmanaged_bytes_peak UnmanagedBytesPeak Bytes MeasuredPeak Sampled
      "unmanaged_bytes" _ }
    { /// Address space under management.
      engine managed_bytes ManagedBytes Bytes MeasuredLevel Sampled "managed_bytes" _ }
    { /// Ranges of addresses under management.
      engine managed_regions ManagedRegions Ranges MeasuredLevel Counted _ _ }
    { /// Mappings of files that were managed.
      engine file_mappings FileMappings Times Sum Counted "file_mappings" _ }
    { /// Mappings of files that were to be managed and could not be kept right: they are as the
      /// program made them.
      engine file_mappings_passed FileMappingsPassed Times Sum Counted
      "file_mappings_passed" _ }
    { /// The size of those.
      engine file_bytes_passed FileBytesPassed Bytes Sum Counted "file_bytes_passed" _ }
    { /// Mappings of files that are managed now and written back.
      engine file_mappings_written FileMappingsWritten Times MeasuredLevel Counted _ _ }
    { /// The most memory that the engine itself had: its tables, stacks and buffers.
      engine engine_bytes EngineBytes Bytes MeasuredPeak Sampled "engine_bytes" _ }
    { /// Pages that were compressed as they left, and kept in memory.
      engine compressed_pages CompressedPages Pages Sum Counted
      "compressed_pages" "compressed_pages" }
    { /// The bytes they were compressed to.
      engine compressed_bytes CompressedBytes Bytes Sum Counted
      "compressed_bytes" "compressed_bytes" }
    { /// Pages that hardly compress, and went to the swap file as they are.
      engine incompressible_pages IncompressiblePages Pages Sum Counted
      "incompressible_pages" "incompressible_pages" }
    { /// Of the pages read from the store, those that were compressed, in memory or on disk.
      engine decompressed_pages DecompressedPages Pages Sum Counted
      "decompressed_pages" "decompressed_pages" }
    { /// The most memory that compressed pages had. It counts as frames in use.
      engine compressed_memory_peak CompressedMemoryPeak Pages Peak Counted
      "compressed_memory_peak" "compressed_memory_peak" }
    { /// Bytes read from the store.
      engine bytes_read BytesRead Bytes Sum Counted "bytes_read" "bytes_read" }
    { /// Bytes written to the store.
      engine bytes_written BytesWritten Bytes Sum Counted "bytes_written" "bytes_written" }
    { /// Time that threads waited for their faults, added up over threads.
      engine stall_ns StallNs Nanoseconds Sum Counted "stall_s" _ }
    { /// Of that, the time of faults for pages that the store had, or was to have.
      engine fetch_stall_ns FetchStallNs Nanoseconds Sum Counted _ _ }
    { /// Processor time of the program's own threads: the process's without its engine's.
      engine program_ns ProgramNs Nanoseconds Sum Counted _ _ }
    { /// Processor time of the engine's own thread, told when it has worked.
      engine engine_processor_ns EngineProcessorNs Nanoseconds Sum Counted _ _ }
    { /// Time that the engine worked.
      engine engine_ns EngineNs Nanoseconds Sum Counted "engine_s" _ }
    { /// Requests to the store that failed.
      core store_errors StoreErrors Requests Sum Counted "store_errors" _ }
    { /// Pages on their way to the store. If a process dies with some, its slots may still be
      /// written to after its end.
      engine stores_under_way StoresUnderWay Pages Level Counted _ _ }
    { /// Events of the userfaultfd other than faults.
      engine map_events MapEvents Times Sum Counted _ _ }
    { /// Times the engine changed its processor to follow the program.
      engine engine_moves EngineMoves Times Sum Counted _ _ }
        }
    };
}

/// Picks lines of the [table](counters!) and calls a macro with them. The expansion goes one level
/// deeper with each line: with more than a hundred, crates that use it raise `recursion_limit`.
#[doc(hidden)]
#[macro_export]
macro_rules! select_counters {
    (all $apply:ident [] $($line:tt)*) => { $apply! { $($line)* } };
    ($which:ident $apply:ident [$($kept:tt)*]) => { $apply! { $($kept)* } };
    (core $apply:ident [$($kept:tt)*]
     { $(#[doc = $meaning:literal])+ core $($rest:tt)* } $($more:tt)*) => {
        $crate::select_counters! { core $apply
            [$($kept)* { $(#[doc = $meaning])+ core $($rest)* }] $($more)* }
    };
    (run $apply:ident [$($kept:tt)*]
     { $(#[doc = $meaning:literal])+ $by:ident $name:ident $variant:ident $unit:ident $kind:ident
       $basis:ident $run:literal $replay:tt } $($more:tt)*) => {
        $crate::select_counters! { run $apply
            [$($kept)* { $(#[doc = $meaning])+ $name $variant $unit $kind $basis $run }]
            $($more)* }
    };
    (replay $apply:ident [$($kept:tt)*]
     { $(#[doc = $meaning:literal])+ $by:ident $name:ident $variant:ident $unit:ident $kind:ident
       $basis:ident $run:tt $replay:literal } $($more:tt)*) => {
        $crate::select_counters! { replay $apply
            [$($kept)* { $(#[doc = $meaning])+ $name $variant $unit $kind $basis $replay }]
            $($more)* }
    };
    ($which:ident $apply:ident [$($kept:tt)*] $line:tt $($more:tt)*) => {
        $crate::select_counters! { $which $apply [$($kept)*] $($more)* }
    };
}

/// The things that a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Pages.
    Pages,
    /// Slots of memory, of a page each.
    Frames,
    /// Faults.
    Faults,
    /// Requests to a store.
    Requests,
    /// Messages.
    Messages,
    /// Ranges of addresses.
    Ranges,
    /// The times that something happened.
    Times,
    /// Bytes.
    Bytes,
    /// Nanoseconds. In records they are seconds.
    Nanoseconds,
}

/// The movement of a counter, and its total over all processes of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A count that only rises. The total over processes is the sum.
    Sum,
    /// An amount that rises and falls. The total over processes is the sum.
    Level,
    /// The most that a level was. The total is the sum, which is at least the most at one time.
    Peak,
    /// A level whose total is measured: processes come and go, and a sum over all that ever were
    /// would mean nothing.
    MeasuredLevel,
    /// A peak whose total is measured.
    MeasuredPeak,
}

/// The knowledge that a number rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Each was seen and counted.
    Counted,
    /// The number follows from what was seen, if programs do as they mostly do.
    Inferred,
    /// A level that was looked at several times a second: what it was between is not known.
    Sampled,
}

impl Basis {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Counted => "counted",
            Basis::Inferred => "inferred",
            Basis::Sampled => "sampled",
        }
    }
}

/// The part that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The core.
    Core,
    /// The engine of a live run.
    Engine,
    /// The simulated world.
    World,
}

macro_rules! scope {
    (core) => {
        Scope::Core
    };
    (engine) => {
        Scope::Engine
    };
    (world) => {
        Scope::World
    };
}

macro_rules! record_name {
    (_) => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! define_counter {
    ($({ $(#[doc = $meaning:literal])+ $by:ident $name:ident $variant:ident $unit:ident $kind:ident
         $basis:ident $run:tt $replay:tt })*) => {
        /// A line of the [table](crate::counters!).
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl Counter {
            /// All counters, in the order of the table.
            pub const ALL: [Counter; [$(Counter::$variant),*].len()] = [$(Counter::$variant),*];

            /// The name in the code.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Counter::$variant => stringify!($name),)*
                }
            }

            /// The part that counts it.
            pub const fn scope(self) -> Scope {
                match self {
                    $(Counter::$variant => scope!($by),)*
                }
            }

            /// The unit of the counter.
            pub const fn unit(self) -> Unit {
                match self {
                    $(Counter::$variant => Unit::$unit,)*
                }
            }

            /// The movement, and the total.
            pub const fn kind(self) -> Kind {
                match self {
                    $(Counter::$variant => Kind::$kind,)*
                }
            }

            /// The knowledge that the number rests on.
            pub const fn basis(self) -> Basis {
                match self {
                    $(Counter::$variant => Basis::$basis,)*
                }
            }

            /// The meaning, in sentences.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Counter::$variant => concat!($($meaning),+).trim_ascii_start(),)*
                }
            }

            /// The name in the record of a run, if it stands there.
            pub const fn run_name(self) -> Option<&'static str> {
                match self {
                    $(Counter::$variant => record_name!($run),)*
                }
            }

            /// The name in the record of a replay, if it is part of it.
            pub const fn replay_name(self) -> Option<&'static str> {
                match self {
                    $(Counter::$variant => record_name!($replay),)*
                }
            }
        }
    };
}

macro_rules! define_core_counters {
    ($({ $(#[doc = $meaning:literal])+ core $name:ident $variant:ident $($rest:tt)* })*) => {
        /// Counts of the core so far.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $meaning])+ pub $name: u64,)*
        }

        impl Counters {
            /// Adds what another memory has counted. Peaks add up to what both had at most.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
            }

            /// The counts since `past`. Of peaks, the amounts by which they rose.
            pub fn since(&self, past: &Counters) -> Counters {
                Counters { $($name: self.$name - past.$name,)* }
            }

            /// The count of one counter; `None` of one that the core does not count.
            pub fn get(&self, counter: Counter) -> Option<u64> {
                match counter {
                    $(Counter::$variant => Some(self.$name),)*
                    Counter::ReadAheadUnknown => Some(self.read_ahead_unknown()),
                    _ => None,
                }
            }
        }
    };
}

counters! { all define_counter }
counters! { core define_core_counters }

impl Counters {
    /// The number of pages read ahead of which it is not known whether they were used.
    pub fn read_ahead_unknown(&self) -> u64 {
        self.read_ahead - self.read_ahead_used - self.read_ahead_wasted
    }

    /// The number of pages that have come to a frame.
    pub fn arrivals(&self) -> u64 {
        let filled = self.zero_fills + self.zero_aheads + self.cow_faults;
        filled + self.page_ins + self.adopted_pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    /// `PageIns` for `page_ins`.
    fn as_variant(name: &str) -> String {
        let words = name.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_ascii_uppercase())
        });
        words.collect()
    }

    #[test]
    fn a_counter_has_one_name_in_each_place() {
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
            assert_eq!(format!("{counter:?}"), as_variant(counter.name()));
            let meaning = counter.meaning();
            assert!(
                meaning.ends_with('.') && !meaning.contains("  "),
                "{meaning}"
            );
        }
        let in_records: [fn(Counter) -> Option<&'static str>; 2] =
            [Counter::run_name, Counter::replay_name];
        for in_record in in_records {
            let name = |counter: Counter| in_record(counter).unwrap_or(counter.name());
            for counter in Counter::ALL {
                let same = Counter::ALL
                    .into_iter()
                    .filter(|&other| name(other) == name(counter));
                assert_eq!(same.count(), 1, "{counter:?}");
            }
        }
    }

    #[test]
    fn what_the_core_counts_is_told_by_counter() {
        let counted = Counters {
            page_ins: 7,
            frames_peak: 9,
            ..Counters::default()
        };
        let past = Counters {
            page_ins: 3,
            ..Counters::default()
        };
        let mut sum = counted.since(&past);
        sum.add(&past);
        assert_eq!(sum, counted);
        assert_eq!(counted.get(Counter::PageIns), Some(7));
        for counter in Counter::ALL {
            // What is left of the others is no count of its own.
            let is_rest = counter == Counter::ReadAheadUnknown;
            let is_core = counter.scope() == Scope::Core || is_rest;
            assert_eq!(counted.get(counter).is_some(), is_core, "{counter:?}");
        }
    }
}
