//! Watermarks that fit: what kernels compute for memories of their day can be more than a small
//! memory has.

use tidemark_core::vm::Config;

/// The free frames at which the daemon wakes and stops, and those that no program gets. All in
/// pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) reserve: u32,
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Marks {
    /// Plain demand paging with these marks. They are lowered together, in proportion, where more
    /// than half of memory would have to be free.
    pub(super) fn config(self, frames: u32) -> Config {
        let most = u64::from((frames / 2).max(3));
        let fit = |mark: u32| match u64::from(self.high) > most {
            true => (u64::from(mark) * most / u64::from(self.high)) as u32,
            false => mark,
        };
        let high = fit(self.high).max(3);
        let low = fit(self.low).clamp(1, high - 1);
        let reserve = fit(self.reserve).min(low - 1);
        Config {
            free_low: low,
            free_high: high,
            reserve,
            ..Config::demand(frames)
        }
    }
}
