//! The number of pages to give up, asked of a controller.
//!
//! FreeBSD's page daemon does not work until enough is free. Ten times a second it asks a
//! controller how much to give up, which weighs how many frames are missing now, how many were
//! missing for how long, and whether that grows (Robertson 2017; `subr_pidctrl.c`). Asked again
//! within an interval, it returns the pages to give up beyond its earlier answers, as if all
//! missing frames had been missing from the interval's start.
//!
//! # Invariants
//! 1. The integral is between 0 and its bound.
//! 2. The sum of answers within an interval never falls.

use crate::kernels::Gains;

/// The state that a controller keeps. Counts are in pages.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Controller {
    error: i64,
    error_before: i64,
    integral: i64,
    /// The last value told in this interval.
    told: i64,
}

impl Controller {
    /// The number of pages to give up while `free` frames are free where `target` should be.
    /// An interval begins with this question if `is_new` says so.
    pub(crate) fn ask(&mut self, gains: &Gains, target: u32, free: u32, is_new: bool) -> u32 {
        let mut error = i64::from(target) - i64::from(free);
        if is_new {
            (self.error_before, self.told) = (self.error, 0);
        } else {
            error = (error + self.error).max(0);
        }
        self.error = error;
        let bound = gains.bound * gains.integral * i64::from(target);
        self.integral = (self.integral + error).clamp(0, bound);
        let output = error / gains.error
            + self.integral / gains.integral
            + (error - self.error_before) / gains.derivative;
        let more = (output - self.told).max(0);
        self.told += more;
        u32::try_from(more).unwrap_or(u32::MAX)
    }

    /// Returns true if nothing is missing, and nothing that was is still remembered.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.error <= 0 && self.integral == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::GAINS;

    #[test]
    fn what_is_missing_is_asked_for_by_parts_and_more_the_longer_it_is() {
        let mut controller = Controller::default();
        // 120 / 3 + 120 / 4 + 120 / 8.
        assert_eq!(controller.ask(&GAINS, 200, 80, true), 85);
        // 120 / 3 + 240 / 4: it has not grown.
        assert_eq!(controller.ask(&GAINS, 200, 80, true), 100);
    }

    #[test]
    fn a_second_question_in_an_interval_is_for_what_is_missing_beyond_the_first() {
        let mut controller = Controller::default();
        assert_eq!(controller.ask(&GAINS, 200, 80, true), 85);
        // 85 came; then they were gone again: in all 240 were missing, 80 + 90 + 30 in parts.
        assert_eq!(controller.ask(&GAINS, 200, 80, false), 80 + 90 + 30 - 85);
        // Nothing is missing any more: no page beyond those.
        assert_eq!(controller.ask(&GAINS, 200, 600, false), 0);
    }

    #[test]
    fn the_sum_is_bounded_and_is_gone_when_enough_has_been_free_for_long() {
        let mut controller = Controller::default();
        for _ in 0..1000 {
            controller.ask(&GAINS, 200, 0, true);
        }
        assert_eq!(controller.integral, 16 * 200);
        assert!(!controller.is_at_rest());
        for _ in 0..16 {
            controller.ask(&GAINS, 200, 400, true);
        }
        assert!(controller.is_at_rest());
        assert_eq!(controller.ask(&GAINS, 200, 400, true), 0);
    }
}
