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
