//! Time as the core sees it: a number that comes in with each event and never runs by itself.

/// The time by which each fault advances the clock where time is counted in faults: *in step*. A
/// live process and the lab then come to the same times, and so to the same decisions.
pub const STEP_NS: u64 = 10_000;
/// The interval at which the memory gets the time where it is counted in faults.
pub const STEP_TICK_NS: u64 = 1000 * STEP_NS;

/// A point in time, in nanoseconds since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// The time that many nanoseconds later.
    pub fn after_ns(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this, or zero if `earlier` is later.
    pub fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
