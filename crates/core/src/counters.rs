//! Counters: what has happened in a memory, in numbers.
//!
//! A counter is one line here, with its meaning.

macro_rules! counters {
    ($($(#[$meaning:meta])* $name:ident,)*) => {
        /// Counts of everything that has happened so far. Pages unless said otherwise.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$meaning])* pub $name: u64,)*
        }

        impl Counters {
            /// Adds what another memory has counted. Peaks add up to what both had at most.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Faults handed in (not counting their retries).
    faults,
    /// First touches of anonymous memory: faults answered with zeros.
    zero_fills,
    /// Pages zeroed ahead of their first touch.
    zero_aheads,
    /// Touches of pages that were resident and unmapped.
    soft_faults,
    /// Private copies made by a write to a shared page.
    cow_faults,
    /// Pages read from their pagers, read-ahead included.
    page_ins,
    /// Requests those reads took.
    page_in_requests,
    /// Pages written to their pagers.
    page_outs,
    /// Requests those writes took.
    page_out_requests,
    /// Pages read ahead that were then seen used.
    ahead_used,
    /// Pages read ahead that left again unused.
    ahead_wasted,
    /// Pages that left without a write because the store had them already.
    clean_drops,
    /// Pages that left without a write because they read as zeros.
    zero_drops,
    /// Pages that were touched while they were on their way out, and stayed.
    rescues,
    /// Pages found present and taken over.
    adoptions,
    /// Pages that could not leave because someone else held them.
    busy,
    /// Of those, the ones that filled memory and were left to their programs.
    disowned,
    /// Times the policy named a frame that may not leave, or none when one had to.
    refusals,
    /// Questions the policy asked.
    questions,
    /// Of the pages written, those of external objects that went to the swap store because their
    /// own pagers could get no frame.
    double_paged,
    /// Faults that had to wait for a free frame.
    stalls,
    /// Fetches and stores that failed, in requests.
    failures,
    /// Frames in use, at most.
    frames_peak,
}

impl Counters {
    /// The number of pages that have come to a frame.
    pub fn arrivals(&self) -> u64 {
        let filled = self.zero_fills + self.zero_aheads + self.cow_faults;
        filled + self.page_ins + self.adoptions
    }
}
