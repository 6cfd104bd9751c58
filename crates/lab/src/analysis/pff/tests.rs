use proptest::prelude::*;

use super::super::slow::{self, strings};
use super::*;

#[test]
fn a_steady_stream_is_never_released() {
    let pages: Vec<u32> = (0..1000).collect();
    let totals = run_pff(ReferenceString::new(&pages, 1000), &[2]);
    assert_eq!(totals[0].pages_max, 1000);
}

proptest! {
    #[test]
    fn the_run_is_the_definition(owned in strings(), critical in 0u64..50) {
        let totals = watch_pff(owned.string(), critical, Totals::default());
        prop_assert_eq!(totals, slow::pff(&owned, critical));
    }

    #[test]
    fn several_runs_are_the_single_ones(
        owned in strings(),
        criticals in prop::collection::vec(0u64..50, 0..5),
    ) {
        let together = run_pff(owned.string(), &criticals);
        let alone = criticals.iter().map(|&c| watch_pff(owned.string(), c, Totals::default()));
        prop_assert_eq!(together, alone.collect::<Vec<_>>());
    }
}

#[test]
fn found_m4_pages_that_depart_are_not_resident() {
    // Three pages, of which two depart before the reference at place 4; then another comes.
    let pages = [0, 1, 2, 0, 0, 3, 0];
    let departures = [Departure {
        before: 4,
        pages: vec![1, 2],
    }];
    let string = ReferenceString::new(&pages, 4).departing(&departures);
    let totals = watch_pff(string, 1000, Totals::default());
    // 1, 2, 3, 3, 1, 2, 2: nothing else leaves.
    assert_eq!((totals.page_time, totals.pages_max), (14, 3));
    // They stay for the tick of their last use.
    let times = [0, 1, 5, 5, 5, 6, 7];
    let totals = watch_pff(string.at(&times), 1000, Totals::default());
    assert_eq!(
        (totals.page_time, totals.pages_max),
        (1 + 4 * 2 + 3 + 2 + 2, 3)
    );
}
