//! Pages, addresses, and the time, for all parts and sequences.

use rustix::time::ClockId;
use tidemark_core::id::{PAGE_BYTES, VirtPage};
use tidemark_core::time::Time;

use crate::sys::PAGE;

/// The page that an address is in.
pub fn page_of(address: usize) -> VirtPage {
    VirtPage((address / PAGE) as u64)
}

/// The address at which a page begins.
pub fn address_of(at: VirtPage) -> usize {
    at.0 as usize * PAGE
}

/// The number of pages of a range.
pub fn pages_in(start: usize, end: usize) -> u64 {
    ((end - start) / PAGE) as u64
}

/// The time now.
pub fn now() -> Time {
    Time(time_ns(ClockId::Monotonic))
}

/// The time of a clock, in nanoseconds.
pub fn time_ns(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A number of pages, in the unit that suits it.
pub fn size(pages: u64) -> String {
    let kib = pages * PAGE_BYTES / 1024;
    match (kib < 1024, kib % 1024) {
        (true, _) => format!("{kib} KiB"),
        (false, 0) => format!("{} MiB", kib / 1024),
        (false, _) => format!("{:.1} MiB", kib as f64 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_suits_them() {
        assert_eq!(
            [size(1), size(256), size(384), size(2560)],
            ["4 KiB", "1 MiB", "1.5 MiB", "10 MiB"]
        );
    }
}
