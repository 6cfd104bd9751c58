//! The marks of each policy that gives programs memory by their use: one test a trait.

use tidemark_core::id::SpaceId;
use tidemark_core::policies::build;
use tidemark_model::cache::{MachineKind, Touch};
use tidemark_model::room::{Room, replay_exactly};

const ONE: SpaceId = SpaceId(0);
const TWO: SpaceId = SpaceId(1);

fn room(name: &'static str, frames: u32, knobs: &[(&'static str, u64)]) -> Room {
    room_on(MachineKind::Bits, name, frames, knobs)
}

fn room_on(
    kind: MachineKind,
    name: &'static str,
    frames: u32,
    knobs: &[(&'static str, u64)],
) -> Room {
    let policy = build(name, frames, frames, 0, knobs).expect("it is known");
    Room::new(policy, frames, kind)
}

mod working_set {
    use super::*;

    const KNOBS: &[(&str, u64)] = &[("window", 100), ("parts", 4)];

    #[test]
    fn a_page_leaves_when_its_own_program_has_not_used_it_for_a_window() {
        let mut room = room("working-set", 8, KNOBS);
        room.touch(ONE, 1);
        room.touch(TWO, 1);
        // The first program's time stands still, and its page stays.
        for ticks in [25, 50, 75, 100] {
            room.clock(TWO, ticks);
            assert_eq!(room.trim(), []);
        }
        room.clock(TWO, 125);
        assert_eq!(room.trim(), [(TWO, 1)]);
        assert_eq!(room.collect_resident(ONE), [1]);
    }

    #[test]
    fn use_is_seen_within_a_part_of_the_window_on_either_machine() {
        for kind in [MachineKind::Bits, MachineKind::SoftFaults] {
            let mut room = room_on(kind, "working-set", 8, KNOBS);
            room.touch(ONE, 1);
            room.touch(ONE, 2);
            for ticks in (0..400).step_by(10) {
                room.clock(ONE, ticks);
                room.touch(ONE, 1);
                room.trim();
                let is_there = room.frame_of(ONE, 2).is_some();
                // Without bits, the first question about a page is always answered yes: at 30.
                let stays = if kind == MachineKind::Bits { 110 } else { 140 };
                assert_eq!(is_there, ticks <= stays, "{kind:?} {ticks}");
            }
            assert_eq!(room.collect_resident(ONE), [1]);
        }
    }

    #[test]
    fn what_is_taken_inside_the_window_is_still_needed() {
        let mut room = room("working-set", 4, KNOBS);
        (0..6).for_each(|page| _ = room.touch(ONE, page));
        assert_eq!(room.collect_resident(ONE).len(), 4);
        assert_eq!(room.policy.demand(ONE), Some(6));
        // Who comes back is no longer missed, and somebody else is.
        let away = (0..6).find(|&page| room.frame_of(ONE, page).is_none());
        room.touch(ONE, away.expect("two are away"));
        assert_eq!(room.policy.demand(ONE), Some(6));
        assert_eq!(room.policy.demand(TWO), Some(0));
    }

    #[test]
    fn a_space_with_a_number_used_before_starts_anew() {
        let mut room = room("working-set", 4, KNOBS);
        room.clock(ONE, 1000);
        room.touch(ONE, 1);
        room.policy.space_ended(ONE);
        room.clock(ONE, 0);
        assert_eq!(room.trim(), []);
        for ticks in [30, 60, 90] {
            room.clock(ONE, ticks);
            room.trim();
        }
        room.clock(ONE, 120);
        assert_eq!(room.trim(), [(ONE, 1)]);
    }
}

mod damped {
    use super::*;

    #[test]
    fn a_fault_replaces_the_oldest_page_if_it_is_old_enough() {
        let knobs = [("window", 100), ("parts", 10), ("damping", 500)];
        let mut room = room("dws", 8, &knobs);
        room.touch(ONE, 1);
        room.clock(ONE, 40);
        room.touch(ONE, 2);
        assert_eq!(room.collect_resident(ONE), [1, 2], "40 is not old enough");
        room.clock(ONE, 60);
        room.touch(ONE, 3);
        assert_eq!(room.collect_resident(ONE), [2, 3], "60 is");
    }

    #[test]
    fn at_a_change_of_phase_it_holds_less_than_the_working_set() {
        // A loop of ten pages, and then a page used often, with nine others in between.
        let second = |at: u64| {
            if at.is_multiple_of(5) {
                10 + at / 5 % 10
            } else {
                10
            }
        };
        let trace = (0..200).map(|at| at % 10).chain((0..200).map(second));
        let trace: Vec<u64> = trace.collect();
        let run = |name, knobs: &[(&'static str, u64)]| {
            let policy = build(name, 20, 20, 0, knobs).unwrap();
            replay_exactly(policy, 20, &trace)
        };
        let plain = run("working-set", &[("window", 100)]);
        let damped = run("dws", &[("window", 100), ("damping", 150)]);
        assert_eq!((plain.faults, damped.faults), (20, 20));
        // The working set keeps the ten old pages for a window of 100.
        assert!(
            plain.page_time > damped.page_time + 500,
            "{plain:?} {damped:?}"
        );
    }
}

mod wsclock {
    use super::*;

    #[test]
    fn the_hand_passes_pages_inside_their_windows() {
        let mut room = room("wsclock", 3, &[("window", 100)]);
        room.touch(ONE, 1);
        room.touch(TWO, 2);
        room.clock(ONE, 50);
        room.clock(TWO, 150);
        room.touch(ONE, 3);
        // Page 1 is first in line, but only page 2 is out of its program's window.
        assert_eq!(room.evict(), Some((TWO, 2)));
        // Now memory is overcommitted: the one used longest ago leaves, and is missed.
        assert_eq!(room.evict(), Some((ONE, 1)));
        assert_eq!(room.policy.demand(ONE), Some(2));
        assert_eq!(room.policy.demand(TWO), Some(0));
    }

    #[test]
    fn a_page_found_used_is_as_new_as_its_program_s_clock() {
        let mut room = room("wsclock", 3, &[("window", 100)]);
        (1..=3).for_each(|page| _ = room.touch(ONE, page));
        room.clock(ONE, 90);
        room.touch(ONE, 1);
        room.clock(ONE, 150);
        assert_eq!(room.evict(), Some((ONE, 2)));
        room.clock(ONE, 240);
        assert_eq!(room.evict(), Some((ONE, 3)));
        // Its use was noticed at 150.
        assert_eq!(room.evict(), Some((ONE, 1)));
        assert_eq!(room.policy.demand(ONE), Some(1));
    }
}

mod pff {
    use super::*;

    #[test]
    fn a_fault_after_a_quiet_time_releases_what_was_not_used_since_the_last() {
        let mut room = room("pff", 8, &[("critical", 50)]);
        for page in [1, 2, 3] {
            room.touch(ONE, page);
        }
        room.clock(ONE, 60);
        room.touch(ONE, 2);
        // Use bits of 1 and 2 were cleared by the fault on 3; that fault was a use of 3.
        room.touch(ONE, 4);
        assert_eq!(room.collect_resident(ONE), [2, 3, 4]);
        room.clock(ONE, 100);
        room.touch(ONE, 5);
        assert_eq!(room.collect_resident(ONE), [2, 3, 4, 5], "too soon");
        room.clock(ONE, 150);
        room.touch(ONE, 6);
        assert_eq!(room.collect_resident(ONE), [5, 6]);
    }

    #[test]
    fn a_fault_of_one_program_takes_nothing_from_another() {
        let mut room = room("pff", 8, &[("critical", 50)]);
        room.touch(ONE, 1);
        room.touch(TWO, 1);
        room.clock(ONE, 100);
        room.touch(ONE, 2);
        room.clock(ONE, 200);
        room.touch(ONE, 3);
        assert_eq!(room.collect_resident(ONE), [2, 3]);
        assert_eq!(room.collect_resident(TWO), [1]);
    }

    #[test]
    fn a_steady_stream_of_new_pages_is_never_released() {
        // A hot page, and every eleventh reference is to a page used but once.
        let trace: Vec<u64> = (0..2200)
            .map(|at| if at % 11 == 10 { at } else { 0 })
            .collect();
        let run = |critical| {
            let policy = build("pff", 256, 256, 0, &[("critical", critical)]).unwrap();
            replay_exactly(policy, 256, &trace)
        };
        let (quick, slow) = (run(11), run(12));
        assert_eq!((quick.faults, slow.faults), (201, 201));
        assert!(quick.page_time < 3 * 2200, "{quick:?}");
        // A set that grows by one in eleven references.
        assert!(slow.page_time > 90 * 2200, "{slow:?}");
    }
}

mod vmin {
    use super::*;

    #[test]
    fn a_page_leaves_at_once_unless_it_is_used_again_in_time() {
        let mut room = room("vmin", 8, &[("window", 10)]);
        for (page, next) in [(0, 5), (1, 11), (2, 10), (3, u64::MAX)] {
            room.touch(ONE, page);
            let frame = room.frame_of(ONE, page).unwrap();
            room.policy.page_foreseen(frame, next);
        }
        room.trim();
        assert_eq!(room.collect_resident(ONE), [0, 2]);
        room.clock(ONE, 5);
        room.touch(ONE, 0);
        let frame = room.frame_of(ONE, 0).unwrap();
        room.policy.page_foreseen(frame, 15);
        // Too small a memory takes the one used again last.
        assert_eq!(room.evict(), Some((ONE, 0)));
        assert_eq!(room.evict(), Some((ONE, 2)));
    }
}

mod vms {
    use super::*;

    /// Sets of two pages, whose limits stay, in a memory of 100.
    const SMALL: &[(&str, u64)] = &[("default", 20), ("span", 1 << 40)];

    #[test]
    fn a_page_taken_from_its_process_is_found_on_the_free_list_by_a_soft_fault() {
        let mut room = room("vms", 100, SMALL);
        for page in [1, 2, 3] {
            assert_eq!(room.touch(ONE, page), Touch::Hard);
        }
        // Page 1 came first. It has left the set, and nothing has left memory.
        assert_eq!(room.collect_resident(ONE), [1, 2, 3]);
        assert_eq!(
            [2, 3, 1].map(|page| room.touch(ONE, page)),
            [Touch::Hit, Touch::Hit, Touch::Soft]
        );
        room.trim();
        assert_eq!(room.policy.frames_spare(), 1);
        assert_eq!(room.touch(ONE, 2), Touch::Soft, "it made room for page 1");
    }

    #[test]
    fn what_leaves_memory_left_its_set_longest_ago_whoever_had_it() {
        let mut room = room("vms", 100, SMALL);
        (0..5).for_each(|page| _ = room.touch(ONE, page));
        (0..5).for_each(|page| _ = room.touch(TWO, page));
        assert_eq!(room.touch(ONE, 1), Touch::Soft);
        let left: Vec<_> = (0..4).map(|_| room.evict().unwrap()).collect();
        assert_eq!(left, [(ONE, 0), (ONE, 2), (TWO, 0), (TWO, 1)]);
    }

    #[test]
    fn modified_pages_are_written_together_when_there_are_many_and_stay() {
        let knobs = [SMALL, &[("modified-high", 40), ("modified-low", 10)]].concat();
        let mut room = room("vms", 100, &knobs);
        // The writer starts at four pages that are known to be modified.
        (0..6).for_each(|page| _ = room.write(ONE, page));
        room.trim();
        let written = room.take_cleaned();
        assert_eq!(written, [(ONE, 0), (ONE, 1), (ONE, 2)], "until one is left");
        assert_eq!(room.collect_resident(ONE), [0, 1, 2, 3, 4, 5]);
        assert_eq!(room.touch(ONE, 0), Touch::Soft);
    }

    #[test]
    fn a_limit_grows_with_the_rate_of_faults_up_to_its_quota_or_extent() {
        let knobs = [
            ("default", 20),
            ("quota", 40),
            ("extent", 100),
            ("grow", 20),
            ("span", 1000),
            ("borrow", 500),
        ];
        let set = |room: &mut Room, spans: u64| {
            for span in 1..=spans {
                room.clock(ONE, span * 1000);
                (0..30).for_each(|page| _ = room.touch(ONE, page));
            }
            // Whoever is in the set is not touched softly.
            room.clock(ONE, (spans + 1) * 1000 - 1);
            let hits = (0..30)
                .rev()
                .take_while(|&page| room.touch(ONE, page) == Touch::Hit);
            hits.count()
        };
        assert_eq!(set(&mut room("vms", 100, &knobs), 1), 2);
        assert_eq!(set(&mut room("vms", 100, &knobs), 2), 4);
        assert_eq!(set(&mut room("vms", 100, &knobs), 9), 10, "the extent");
        let poor = [&knobs[..5], &[("borrow", 950)]].concat();
        assert_eq!(set(&mut room("vms", 100, &poor), 9), 4, "the quota");
    }

    #[test]
    fn sets_are_trimmed_when_little_is_free_the_borrowers_first() {
        let knobs = [
            ("default", 600),
            ("quota", 100),
            ("least", 20),
            ("free-low", 100),
            ("free-goal", 200),
            ("span", 1 << 40),
            ("growth", 0),
        ];
        let mut room = room("vms", 100, &knobs);
        (0..60).for_each(|page| _ = room.touch(ONE, page));
        (0..35).for_each(|page| _ = room.touch(TWO, page));
        assert_eq!(room.policy.frames_spare(), 0);
        room.tick(1);
        // Five were free; fifteen more had to be, and the larger set had them all.
        assert_eq!(room.policy.frames_spare(), 15);
        let evicted: Vec<_> = (0..15).map(|_| room.evict().unwrap()).collect();
        assert!(evicted.iter().all(|name| name.0 == ONE), "{evicted:?}");
    }
}

mod nt {
    use super::*;

    const KNOBS: &[(&str, u64)] = &[("least", 4), ("greatest", 10), ("plenty", 200)];
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_set_grows_past_its_greatest_while_memory_is_plentiful_and_then_feeds_on_itself() {
        let mut room = room("nt", 50, KNOBS);
        (0..40).for_each(|page| _ = room.touch(ONE, page));
        assert_eq!(room.policy.frames_spare(), 0, "ten are free: plenty");
        (40..45).for_each(|page| _ = room.touch(ONE, page));
        // One of its own for each: they wait on the standby list.
        room.trim();
        assert_eq!(room.policy.frames_spare(), 5);
        assert_eq!(room.touch(ONE, 0), Touch::Soft);
    }

    #[test]
    fn the_manager_trims_unused_pages_each_second_the_largest_set_first() {
        let mut room = room("nt", 50, &[("least", 4), ("plenty", 200), ("age", 2)]);
        (0..30).for_each(|page| _ = room.touch(ONE, page));
        (0..15).for_each(|page| _ = room.touch(TWO, page));
        for _ in 0..2 {
            (0..10).for_each(|page| _ = room.touch(ONE, page));
            room.tick(SECOND / 2);
            room.tick(SECOND / 2);
        }
        // Found unused for the second time, by the second or third look: enough to have plenty.
        let spare = room.policy.frames_spare();
        assert!((4..=6).contains(&spare), "{spare}");
        let evicted: Vec<_> = (0..spare).map(|_| room.evict().unwrap()).collect();
        assert!(
            evicted.iter().all(|name| name.0 == ONE && name.1 >= 10),
            "{evicted:?}"
        );
    }

    #[test]
    fn no_set_is_trimmed_below_its_least() {
        let mut room = room("nt", 20, &[("least", 4), ("plenty", 1000), ("age", 1)]);
        (0..10).for_each(|page| _ = room.touch(ONE, page));
        (0..5).for_each(|_| room.tick(SECOND));
        let mut hits = 0;
        for page in 0..10 {
            hits += u32::from(room.touch(ONE, page) == Touch::Hit);
        }
        assert_eq!(hits, 4);
    }
}
