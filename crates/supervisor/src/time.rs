//! Time, as engines and system calls take it.

use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, which engines use too.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A duration as system calls take it.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
