use proptest::prelude::*;

use super::super::slow::{self, strings};
use super::super::working_set::working_set_point;
use super::*;

proptest! {
    #[test]
    fn the_walk_is_the_definition(owned in strings(), window in 0u64..50) {
        prop_assert_eq!(run_vmin(owned.string(), window), slow::vmin(&owned, window));
    }

    #[test]
    fn the_curve_is_the_walk(owned in strings(), window in 0u64..50) {
        let totals = run_vmin(owned.string(), window);
        let point = vmin_point(&Intervals::measure(owned.string()), window);
        prop_assert_eq!((point.faults, point.page_time), (totals.faults(), totals.page_time));
    }

    #[test]
    fn it_faults_as_the_working_set_in_never_more_memory(owned in strings(), window in 1u64..50) {
        let intervals = Intervals::measure(owned.string());
        let (least, set) = (vmin_point(&intervals, window), working_set_point(&intervals, window));
        prop_assert_eq!(least.faults, set.faults);
        prop_assert!(least.page_time <= set.page_time);
        prop_assert!(run_vmin(owned.string(), window).pages_max
            <= super::super::working_set::run_working_set(owned.string(), window).pages_max);
    }
}
