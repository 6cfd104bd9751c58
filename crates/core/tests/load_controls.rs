//! Load controls: what each decides, and what the core does about it.

use std::collections::BTreeSet;

use tidemark_core::frame::State;
use tidemark_core::id::SpaceId;
use tidemark_core::load::registry::{entries, find, near};
use tidemark_core::load::{LoadControl, LoadView, SpaceLoad, Turn, Verdict};
use tidemark_core::time::Time;
use tidemark_model::world::World;

const SECOND: u64 = 1_000_000_000;

/// A memory of 1000 frames that never was: what load control sees of it is set by hand.
struct Sight {
    load: Box<dyn LoadControl>,
    seconds: u64,
    frames_free: u32,
    requests: u64,
    spaces: Vec<SpaceLoad>,
    verdicts: Vec<(u64, Verdict)>,
}

impl Sight {
    /// Spaces with so many resident pages each.
    fn new(name: &str, knobs: &[(&'static str, u64)], resident: &[u32]) -> Sight {
        let space = |(number, &resident): (usize, &u32)| SpaceLoad {
            space: SpaceId(number as u32),
            faults: 0,
            page_ins: 0,
            resident,
            demand: None,
            turn: Turn::default(),
            is_suspended: false,
        };
        Sight {
            load: find(name).expect("it is known").build(knobs).unwrap(),
            seconds: 0,
            frames_free: 0,
            requests: 0,
            spaces: resident.iter().enumerate().map(space).collect(),
            verdicts: Vec::new(),
        }
    }

    /// Lets seconds pass with so many page-out requests in each.
    fn run(&mut self, seconds: u64, requests: u64) -> &mut Sight {
        for _ in 0..seconds {
            self.seconds += 1;
            self.requests += requests;
            let mut verdicts = Vec::new();
            let view = LoadView {
                now: Time(self.seconds * SECOND),
                frames: 1000,
                frames_free: self.frames_free,
                frames_spare: 0,
                frames_low: 50,
                frames_target: 100,
                page_outs: self.requests,
                page_out_requests: self.requests,
                spaces: &self.spaces,
            };
            self.load.tick(&view, &mut verdicts);
            for verdict in verdicts {
                if let Verdict::Suspend(space) | Verdict::SwapOut(space) = verdict {
                    self.spaces[space.0 as usize].is_suspended = true;
                }
                if let Verdict::Resume(space) = verdict {
                    self.spaces[space.0 as usize].is_suspended = false;
                }
                self.verdicts.push((self.seconds, verdict));
            }
        }
        self
    }

    fn take_verdicts(&mut self) -> Vec<Verdict> {
        let verdicts = std::mem::take(&mut self.verdicts).into_iter();
        verdicts.map(|(_, verdict)| verdict).collect()
    }
}

#[test]
fn descriptions_are_complete_and_every_end_of_a_knob_works() {
    let mut seen = BTreeSet::new();
    for entry in entries() {
        let description = entry.description;
        assert!(seen.insert(description.name), "{}", description.name);
        assert!(!description.summary.is_empty() && !description.summary.ends_with('.'));
        assert!(!description.lineage.is_empty());
        let built = entry.build(&[]).expect("defaults are in range");
        assert!(std::ptr::eq(built.describe(), description));
        for knob in description.knobs {
            assert!((knob.min..=knob.max).contains(&knob.default), "{knob:?}");
            assert!(entry.build(&[(knob.name, knob.min)]).is_ok());
            assert!(entry.build(&[(knob.name, knob.max)]).is_ok());
            assert!(entry.build(&[(knob.name, knob.max + 1)]).is_err());
        }
    }
    assert!(find("none").unwrap().build(&[("speed", 1)]).is_err());
    assert_eq!(near("task-swaper"), ["task-swapper"]);
}

mod task_swapper {
    use super::*;

    const LARGEST: SpaceId = SpaceId(2);

    #[test]
    fn the_largest_is_stopped_when_much_is_written_and_little_free() {
        let mut sight = Sight::new("task-swapper", &[], &[100, 200, 400, 300, 250]);
        // It takes seconds for the averages to rise, and six before anybody may be stopped.
        sight.run(6, 20);
        assert_eq!(sight.take_verdicts(), []);
        sight.run(2, 20);
        assert_eq!(sight.take_verdicts()[0], Verdict::Suspend(LARGEST));
    }

    #[test]
    fn nobody_is_stopped_while_frames_are_free_or_few_are_active() {
        let mut sight = Sight::new("task-swapper", &[], &[100, 200, 400, 300, 250]);
        sight.frames_free = 200;
        assert_eq!(sight.run(60, 20).take_verdicts(), []);
        let mut sight = Sight::new("task-swapper", &[], &[300, 300, 300]);
        assert_eq!(sight.run(60, 20).take_verdicts(), []);
        let mut sight = Sight::new("task-swapper", &[], &[300, 300, 300, 300]);
        sight.spaces[3].turn.is_active = false;
        assert_eq!(sight.run(60, 20).take_verdicts(), []);
    }

    #[test]
    fn what_is_much_is_learnt_from_the_greatest_rate_ever_seen() {
        let resident = [100, 200, 400, 300, 250];
        let mut sight = Sight::new("task-swapper", &[], &resident);
        let stopped = sight.run(20, 20).take_verdicts();
        assert!(!stopped.is_empty());
        // After a burst of 1000 a second, 20 is less than a tenth of the greatest.
        let mut sight = Sight::new("task-swapper", &[], &resident);
        sight.frames_free = 200;
        sight.run(5, 1000).run(60, 20);
        sight.frames_free = 0;
        assert_eq!(sight.run(20, 20).take_verdicts(), []);
    }

    #[test]
    fn whoever_is_out_comes_back_first_in_first_out_when_little_is_written() {
        let mut sight = Sight::new("task-swapper", &[("active-min", 1)], &[300, 200, 100]);
        sight.run(12, 20);
        let stopped: Vec<Verdict> = sight.take_verdicts();
        let order = [0, 1, 2].map(|number| Verdict::Suspend(SpaceId(number)));
        assert_eq!(stopped, order);
        sight.run(30, 0);
        let resumed = [0, 1, 2].map(|number| Verdict::Resume(SpaceId(number)));
        assert_eq!(sight.take_verdicts(), resumed);
    }

    #[test]
    fn nobody_starves_while_the_rate_is_between_the_two_thresholds() {
        let resident = [300, 250, 200, 150, 100, 50];
        let mut sight = Sight::new("task-swapper", &[], &resident);
        // A burst stops some; then the rate stays at a fifth of the greatest. What is not stopped
        // needs 320 frames more than there are.
        sight.run(8, 100);
        for _ in 0..600 {
            let stopped = sight.spaces.iter().filter(|load| load.is_suspended);
            let gone: u32 = stopped.map(|load| load.resident).sum();
            sight.frames_free = gone.saturating_sub(320);
            sight.run(1, 20);
        }
        let mut out_since = [None; 6];
        let (mut longest, mut times_out) = (0, [0; 6]);
        for &(second, verdict) in &sight.verdicts {
            match verdict {
                Verdict::Suspend(SpaceId(space)) => {
                    out_since[space as usize] = Some(second);
                    times_out[space as usize] += 1;
                }
                Verdict::Resume(SpaceId(space)) => {
                    let since = out_since[space as usize].take();
                    longest = longest.max(second - since.expect("it was out"));
                }
                _ => panic!("{verdict:?}"),
            }
        }
        let waits = out_since
            .iter()
            .flatten()
            .map(|&since| sight.seconds - since);
        let longest = waits.fold(longest, u64::max);
        assert!(longest <= 60, "{longest} seconds: {:?}", sight.verdicts);
        assert!(times_out[0] > 5 && times_out[1] > 5, "{times_out:?}");
    }
}

mod medium_term {
    use super::*;

    fn demand(sight: &mut Sight, demands: &[u32]) {
        for (space, &demand) in sight.spaces.iter_mut().zip(demands) {
            space.demand = Some(demand);
        }
    }

    #[test]
    fn the_last_to_come_is_swapped_out_until_the_working_sets_fit() {
        let mut sight = Sight::new("medium-term", &[], &[300, 300, 300]);
        demand(&mut sight, &[300, 300, 300]);
        assert_eq!(sight.run(10, 0).take_verdicts(), []);
        demand(&mut sight, &[700, 600, 500]);
        sight.run(10, 0);
        let expected = [2, 1].map(|number| Verdict::SwapOut(SpaceId(number)));
        assert_eq!(sight.take_verdicts(), expected);
        // Space 2 has waited longest; it needed 500, and fits only when the first has shrunk.
        demand(&mut sight, &[550, 0, 0]);
        assert_eq!(sight.run(10, 0).take_verdicts(), []);
        demand(&mut sight, &[450, 0, 0]);
        assert_eq!(
            sight.run(10, 0).take_verdicts(),
            [Verdict::Resume(SpaceId(2))]
        );
    }

    #[test]
    fn one_that_has_waited_for_long_takes_the_place_of_the_first() {
        let knobs = [("settle-ms", 1000), ("patience-ms", 30_000)];
        let mut sight = Sight::new("medium-term", &knobs, &[0, 0]);
        demand(&mut sight, &[700, 700]);
        sight.run(100, 0);
        let at = |at, verdict| (at, verdict);
        let (one, two) = (SpaceId(0), SpaceId(1));
        assert_eq!(
            sight.verdicts[..5],
            [
                at(1, Verdict::SwapOut(two)),
                at(31, Verdict::Resume(two)),
                at(31, Verdict::SwapOut(one)),
                at(61, Verdict::Resume(one)),
                at(61, Verdict::SwapOut(two)),
            ]
        );
    }

    #[test]
    fn one_alone_runs_whatever_it_needs_and_one_that_waits_runs_when_nobody_does() {
        let mut sight = Sight::new("medium-term", &[], &[0, 0]);
        demand(&mut sight, &[2000, 700]);
        sight.run(3, 0);
        assert_eq!(sight.take_verdicts(), [Verdict::SwapOut(SpaceId(1))]);
        sight.spaces[0].turn.is_active = false;
        assert_eq!(
            sight.run(1, 0).take_verdicts(),
            [Verdict::Resume(SpaceId(1))]
        );
    }

    #[test]
    fn sets_that_no_longer_fit_are_told_by_what_is_taken_from_them() {
        let mut world = World::new();
        world.frames(8).policy("working-set");
        world.load("medium-term", &[("settle-ms", 0)]);
        world.fork().tick();
        for page in 0..6 {
            world.in_space(0).write(page).in_space(1).write(page);
        }
        world
            .expect_verdicts([])
            .tick()
            .expect_verdicts([(1, false)]);
        // It goes whole, though nobody needs a frame.
        world.run().tick().run();
        world.in_space(1).expect_resident([]);
        world.in_space(0).touch_all(0..6);
        world.close();
    }
}

mod clock_pressure {
    use super::*;

    /// Four pages of space 0 and two of space 1, all of them used since the clock's hand passed.
    fn squeezed(who: u64, lower: u64) -> World {
        let mut world = World::new();
        world.frames(6).policy("clock");
        world.load("clock-pressure", &[("who", who), ("lower", lower)]);
        world.fork();
        world.in_space(1).turn(7, true).write_all([10, 11]);
        world.in_space(0).turn(3, true).write_all(0..4);
        world.touch_all(0..4).in_space(1).touch_all([10, 11]);
        world
    }

    fn resident(world: &mut World) -> (Vec<u64>, Vec<u64>) {
        let pages = |world: &mut World, space, pages: std::ops::Range<u64>| {
            let vm = world.stage().vm();
            let at = |page| vm.frame_at(SpaceId(space), tidemark_core::id::VirtPage(page));
            pages.filter(|&page| at(page).is_some()).collect()
        };
        (pages(world, 0, 0..10), pages(world, 1, 10..12))
    }

    #[test]
    fn raised_pressure_makes_the_clock_take_pages_that_were_used() {
        // Untouched, the hand takes the oldest page: space 1's.
        let mut world = squeezed(0, 0);
        world.in_space(0).write(5).run();
        assert_eq!(resident(&mut world), (vec![0, 1, 2, 3, 5], vec![11]));
        world.close();
        let mut world = squeezed(0, 0);
        world.tick().in_space(0).write(5).run();
        assert_eq!(resident(&mut world), (vec![1, 2, 3, 5], vec![10, 11]));
        world.close();
    }

    #[test]
    fn the_next_to_run_and_the_last_to_run_are_told_apart() {
        // Who runs next is space 0; its bits are cleared, and its page goes.
        let mut world = squeezed(1, 0);
        world.tick().in_space(0).write(5).run();
        assert_eq!(resident(&mut world), (vec![1, 2, 3, 5], vec![10, 11]));
        world.close();
        let mut world = squeezed(2, 0);
        world.tick().in_space(0).write(5).run();
        assert_eq!(resident(&mut world), (vec![0, 1, 2, 3, 5], vec![11]));
        world.close();
    }

    #[test]
    fn lowered_pressure_lets_pages_stay_that_nobody_used() {
        let mut world = World::new();
        world.frames(4).policy("clock");
        world.load("clock-pressure", &[("who", 0), ("lower", 1)]);
        world.write_all(0..4).touch_all(0..4);
        // One round of the hand clears the bits, and takes page 0; then 1 is next.
        world.write(4).run().expect_resident([1, 2, 3, 4]);
        world.touch_all([2, 3, 4]).tick().write(5).run();
        world.expect_resident([2, 3, 4, 5]);
        world.close();
        let mut world = World::new();
        world.frames(4).policy("clock");
        world.load("clock-pressure", &[("who", 2), ("lower", 1)]);
        world.fork();
        world.in_space(1).turn(9, true).write_all([10, 11]);
        world.in_space(0).turn(1, true).write_all([0, 1]);
        // The hand clears every bit, and takes page 10; without the pressure 11 would follow.
        world.write(2).run();
        world.tick().write(3).run();
        assert_eq!(resident(&mut world), (vec![1, 2, 3], vec![11]));
        world.close();
    }
}

mod verdicts {
    use super::*;
    use tidemark_core::load::{Description, unlimited};

    /// Pronounces what it is given, one list a tick.
    struct Scripted(Vec<Vec<Verdict>>);

    impl LoadControl for Scripted {
        fn describe(&self) -> &'static Description {
            &unlimited::DESCRIPTION
        }

        fn tick(&mut self, _view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
            if !self.0.is_empty() {
                verdicts.extend(self.0.remove(0));
            }
        }
    }

    /// Two spaces, of which the second has the older pages.
    fn world(policy: &'static str, script: Vec<Vec<Verdict>>) -> World {
        let mut world = World::new();
        world.frames(6).policy(policy).fork();
        world.stage().set_load_control(Box::new(Scripted(script)));
        world
            .in_space(1)
            .write_all([10, 11, 12])
            .in_space(0)
            .write_all([0, 1, 2]);
        world
    }

    #[test]
    fn pages_of_a_suspended_space_go_first_and_only_when_frames_are_needed() {
        let mut world = world("fifo", vec![vec![Verdict::Suspend(SpaceId(0))]]);
        world.tick().run().expect_frames(State::Resident, 6);
        world.expect_verdicts([(0, false)]);
        world.in_space(1).write_all([13, 14]).run();
        world.expect_resident([10, 11, 12, 13, 14]);
        world.in_space(0).expect_resident([2]);
        world.close();
    }

    #[test]
    fn pages_of_a_space_swapped_out_leave_at_once_and_come_back_by_faults() {
        let verdicts = vec![
            vec![Verdict::SwapOut(SpaceId(0))],
            vec![Verdict::Resume(SpaceId(0))],
        ];
        let mut world = world("fifo", verdicts);
        world.tick().run().in_space(0).expect_resident([]);
        world.in_space(1).expect_resident([10, 11, 12]);
        world.tick().expect_verdicts([(0, false), (0, true)]);
        world
            .in_space(0)
            .touch_all([0, 1, 2])
            .expect_resident([0, 1, 2]);
        world.expect_count(|c| c.page_ins, 3);
        world.close();
    }

    #[test]
    fn pages_of_a_protected_space_stay_while_another_can_go() {
        for policy in ["fifo", "clock", "mach86", "wsclock", "vms"] {
            let mut world = world(policy, vec![vec![Verdict::Protect(SpaceId(1))]]);
            world.tick().in_space(0).write_all([3, 4, 5, 6]).run();
            world.in_space(1).expect_resident([10, 11, 12]);
            world.expect_count(|c| c.refusals, 0);
            // When nobody else has a page, the protected space pays for itself.
            world.in_space(1).write_all([13, 14, 15, 16]).run();
            world.expect_frames(State::Resident, 6);
            world.expect_count(|c| c.refusals, 0);
            world.close();
        }
    }

    #[test]
    fn protection_ends_with_its_space_and_when_it_is_said() {
        let verdicts = vec![vec![Verdict::Protect(SpaceId(1))], vec![Verdict::Unprotect]];
        let mut world = world("fifo", verdicts);
        world.tick();
        assert_eq!(world.stage().vm().protected_space(), Some(SpaceId(1)));
        world.tick().in_space(0).write(3).run();
        world.in_space(1).expect_resident([11, 12]);
        world.close();
        let script = vec![vec![Verdict::Protect(SpaceId(1))]];
        let mut world = self::world("fifo", script);
        world.tick().in_space(1).exit();
        assert_eq!(world.stage().vm().protected_space(), None);
        world.in_space(0);
        world.close();
    }
}

mod swap_token {
    use super::*;

    #[test]
    fn the_holder_of_the_token_keeps_its_pages_while_others_page() {
        for name in ["swap-token", "swap-token-preempting"] {
            let mut world = World::new();
            world.frames(6).policy("clock").load(name, &[]).fork();
            world.in_space(1).write_all(10..17);
            // The first that has a page fetched gets the token.
            world.touch_all([10, 11, 12]).run();
            let space = SpaceId(1);
            assert_eq!(world.stage().vm().protected_space(), Some(space), "{name}");
            let resident = world.stage().vm().frames().resident_of(space);
            assert!(resident >= 3);
            world.in_space(0).write_all(0..9).run();
            // The first page of the other could take nobody else's place.
            let left = world.stage().vm().frames().resident_of(space);
            assert_eq!(left, resident - 1, "{name}");
            world.expect_count(|c| c.refusals, 0);
            world.close();
        }
    }
}
