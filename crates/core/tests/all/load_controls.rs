//! Load controls: what each decides, and what the core does about it.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_core::id::SpaceId;
use tidemark_core::load::registry::{entries, find};
use tidemark_core::load::{LoadControl, LoadView, SpaceLoad, Turn, Verdict};
use tidemark_core::memory::frame::State;
use tidemark_core::random::SplitMix64;
use tidemark_core::time::Time;
use tidemark_model::world::World;

const SECOND: u64 = 1_000_000_000;

/// A memory of 1000 frames that never was: what load control sees of it is set by hand.
struct Sight {
    load: Box<dyn LoadControl>,
    seconds: u64,
    now_ns: u64,
    /// The time between two ticks.
    step_ns: u64,
    frames_free: u32,
    requests: u64,
    spaces: Vec<SpaceLoad>,
    /// The hundredths of its time that each waits for pages. In the rest it runs or rests.
    waits: BTreeMap<SpaceId, u64>,
    /// The hundredths of its time that each waits for something else.
    rests: u64,
    /// The pages that each has to fetch in a second.
    fetches: u64,
    /// The hundredths of a processor that the paging of each takes.
    pages: u64,
    processors: u32,
    verdicts: Vec<(u64, Verdict)>,
}

impl Sight {
    /// Spaces with so many resident pages each.
    fn new(name: &str, knobs: &[(&'static str, u64)], resident: &[u32]) -> Sight {
        let space = |(number, &resident): (usize, &u32)| SpaceLoad {
            space: SpaceId(number as u32),
            faults: 0,
            page_ins: 0,
            waited_ns: 0,
            paged_ns: 0,
            resident,
            demand: None,
            turn: Turn::default(),
            is_suspended: false,
        };
        Sight {
            load: find(name).expect("it is known").build(knobs).unwrap(),
            seconds: 0,
            now_ns: 0,
            step_ns: SECOND,
            frames_free: 0,
            requests: 0,
            spaces: resident.iter().enumerate().map(space).collect(),
            waits: BTreeMap::new(),
            rests: 0,
            fetches: 0,
            pages: 0,
            processors: 1,
            verdicts: Vec::new(),
        }
    }

    /// Lets so many ticks pass, of a second each, with so many page-out requests in each.
    fn run(&mut self, ticks: u64, requests: u64) -> &mut Sight {
        for _ in 0..ticks {
            self.now_ns += self.step_ns;
            self.seconds = self.now_ns / SECOND;
            self.requests += requests;
            for space in self.spaces.iter_mut().filter(|it| !it.is_suspended) {
                let percent = self.waits.get(&space.space).copied().unwrap_or(0);
                space.waited_ns += percent * self.step_ns / 100;
                space.turn.ran_ns +=
                    (100 - percent).saturating_sub(self.rests) * self.step_ns / 100;
                space.page_ins += self.fetches;
                space.paged_ns += self.pages * self.step_ns / 100;
            }
            let mut verdicts = Vec::new();
            let view = LoadView {
                now: Time(self.now_ns),
                processors: self.processors,
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
                let (named, is_suspended) = match verdict {
                    Verdict::Suspend(space) | Verdict::SwapOut(space) => (Some(space), true),
                    Verdict::Resume(space) => (Some(space), false),
                    _ => (None, false),
                };
                let found = self.spaces.iter_mut().find(|it| Some(it.space) == named);
                found
                    .into_iter()
                    .for_each(|it| it.is_suspended = is_suspended);
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

mod working_set {
    use super::*;

    /// Spaces that need so much, and wait for pages for so many hundredths of their time.
    fn set(sight: &mut Sight, needs: &[(u32, u64)]) {
        for (space, &(demand, percent)) in sight.spaces.iter_mut().zip(needs) {
            space.demand = Some(demand);
            sight.waits.insert(space.space, percent);
        }
    }

    fn sight(needs: &[(u32, u64)]) -> Sight {
        let mut sight = Sight::new("working-set", &[], &vec![0; needs.len()]);
        set(&mut sight, needs);
        sight
    }

    fn out(space: u32) -> Verdict {
        Verdict::SwapOut(SpaceId(space))
    }

    fn back(space: u32) -> Verdict {
        Verdict::Resume(SpaceId(space))
    }

    #[test]
    fn those_that_came_last_wait_until_the_others_fit() {
        let mut sight = sight(&[(600, 90), (500, 90), (300, 90), (300, 90)]);
        sight.run(2, 0);
        // The third fits where the second does not. They come back in the order they came in.
        assert_eq!(sight.take_verdicts(), [out(3), out(1)]);
        set(&mut sight, &[(500, 0), (500, 0), (300, 0), (300, 0)]);
        sight.spaces[2].turn.is_active = false;
        sight.spaces.remove(0);
        sight.load.space_ended(SpaceId(0));
        assert_eq!(sight.run(1, 0).take_verdicts(), [back(1), back(3)]);
    }

    #[test]
    fn whoever_does_not_wait_for_pages_runs_whatever_it_needs() {
        let mut sight = sight(&[(900, 0), (900, 5), (900, 40)]);
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
        // Now there are two that do, and the one that does not is left alone.
        set(&mut sight, &[(400, 90), (900, 0), (400, 90)]);
        assert_eq!(sight.run(1, 0).take_verdicts(), [out(2)]);
    }

    #[test]
    fn while_the_idle_have_memory_to_give_nobody_stops_whose_needs_fit() {
        let mut sight = Sight::new("working-set", &[], &[300, 300, 200]);
        set(&mut sight, &[(400, 90), (400, 90), (0, 0)]);
        sight.spaces[2].turn.is_active = false;
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
        sight.spaces[2].resident = 100;
        assert_eq!(sight.run(1, 0).take_verdicts(), [out(1)]);
    }

    #[test]
    fn the_time_that_programs_wait_for_a_processor_is_no_part_of_theirs() {
        // Twenty on two processors: each has a tenth of one, and half of that goes to its paging.
        let mut sight = sight(&[(100, 10); 20]);
        sight.rests = 85;
        sight.run(2, 0);
        assert_eq!(
            sight.take_verdicts(),
            (10..20).rev().map(out).collect::<Vec<_>>()
        );
        // They run as long as they wait for pages.
        let mut sight = self::sight(&[(100, 10); 20]);
        sight.rests = 80;
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
    }

    #[test]
    fn busy_processors_that_page_have_some_stop_if_the_others_keep_them_busy() {
        let after_two = |need, processors, pages| {
            let mut sight = sight(&[(need, 12); 6]);
            (sight.processors, sight.pages, sight.rests) = (processors, pages, 68);
            sight.run(2, 0).take_verdicts()
        };
        // Each runs for 20 hundredths of the time, and its paging takes 10.
        assert_eq!(after_two(300, 2, 10), [out(5), out(4), out(3)]);
        // Those that fit would not use both processors.
        assert_eq!(after_two(600, 2, 10), []);
        // The processors have time left, or spend little of it on paging.
        assert_eq!(after_two(300, 3, 10), []);
        assert_eq!(after_two(300, 1, 4), []);
    }

    #[test]
    fn programs_that_sleep_and_fetch_a_few_pages_in_between_are_not_stopped() {
        let mut sight = sight(&[(900, 30), (900, 30), (900, 30)]);
        sight.rests = 69;
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
        set(&mut sight, &[(900, 30), (900, 30), (900, 40)]);
        sight.rests = 59;
        assert_eq!(sight.run(1, 0).take_verdicts(), [out(2), out(1)]);
    }

    #[test]
    fn the_idle_and_the_small_are_not_stopped_and_one_alone_runs_on() {
        let mut sight = sight(&[(2000, 100), (10, 100), (700, 0)]);
        sight.spaces[2].turn.is_active = false;
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
        // Small ones before it, as a shell and a build's own program are.
        set(&mut sight, &[(10, 100), (10, 100), (2000, 100)]);
        sight.spaces[2].turn.is_active = true;
        assert_eq!(sight.run(20, 0).take_verdicts(), []);
    }

    #[test]
    fn one_that_has_had_its_slice_makes_room_for_the_next() {
        let knobs = [("slice-ms", 3000), ("slice-us-page", 1000)];
        let mut sight = Sight::new("working-set", &knobs, &[0, 0, 0]);
        set(&mut sight, &[(900, 90), (900, 90), (900, 90)]);
        sight.run(2, 0);
        set(&mut sight, &[(900, 0), (900, 0), (900, 0)]);
        assert_eq!(sight.take_verdicts(), [out(2), out(1)]);
        sight.run(14, 0);
        // What the first has waited for in its second second is not counted.
        let at = |at, verdict| (at, verdict);
        assert_eq!(
            sight.verdicts,
            [
                at(6, out(0)),
                at(6, back(1)),
                at(10, out(1)),
                at(10, back(2)),
                at(14, out(2)),
                at(14, back(0)),
            ]
        );
    }

    #[test]
    fn one_stopped_before_it_has_shown_what_it_needs_is_taken_to_need_as_much_as_others() {
        let mut sight = sight(&[(450, 0), (450, 0)]);
        sight.run(3, 0);
        let space = SpaceId(2);
        let waited_ns = 0;
        sight.spaces.push(SpaceLoad {
            space,
            waited_ns,
            ..sight.spaces[0]
        });
        sight.step_ns = SECOND / 4;
        sight.run(1, 0);
        set(&mut sight, &[(450, 90), (450, 90), (150, 90)]);
        sight.run(1, 0);
        assert_eq!(sight.take_verdicts(), [out(2)]);
        set(&mut sight, &[(450, 0), (450, 0), (20, 0)]);
        // So much that it has room is made for it, when the first has had its slice.
        assert_eq!(sight.run(4, 0).take_verdicts(), []);
        sight.run(1, 0);
        assert_eq!(sight.take_verdicts(), [out(0), back(2)]);
    }

    /// Comes to be among those of `sight`.
    fn come(sight: &mut Sight, space: u32, demand: u32) {
        let waited_ns = 0;
        sight.spaces.push(SpaceLoad {
            space: SpaceId(space),
            demand: Some(demand),
            waited_ns,
            ..sight.spaces[0]
        });
    }

    #[test]
    fn who_first_needs_more_than_little_while_others_wait_waits_behind_them() {
        let mut sight = sight(&[(600, 90), (600, 90)]);
        sight.run(2, 0);
        assert_eq!(sight.take_verdicts(), [out(1)]);
        set(&mut sight, &[(600, 0), (600, 0)]);
        sight.step_ns = SECOND / 10;
        come(&mut sight, 2, 14);
        come(&mut sight, 3, 14);
        assert_eq!(sight.run(1, 0).take_verdicts(), []);
        sight.spaces[2].demand = Some(100);
        assert_eq!(sight.run(1, 0).take_verdicts(), [out(2)]);
    }

    #[test]
    fn a_new_task_is_assumed_to_need_the_mean_of_ended_ones() {
        let mut sight = Sight::new("working-set", &[("slice-ms", 100_000)], &[0, 0]);
        set(&mut sight, &[(900, 90), (900, 90)]);
        sight.run(2, 0);
        assert_eq!(sight.take_verdicts(), [out(1)]);
        set(&mut sight, &[(101, 0), (900, 0)]);
        sight.run(2, 0);
        sight.step_ns = SECOND / 10;
        come(&mut sight, 2, 20);
        assert_eq!(sight.run(1, 0).take_verdicts(), [out(2)]);
        sight.spaces.remove(1);
        sight.load.space_ended(SpaceId(1));
        assert_eq!(sight.run(9, 0).take_verdicts(), []);
        sight.spaces[0].demand = Some(100);
        assert_eq!(sight.run(1, 0).take_verdicts(), [back(2)]);
    }

    #[test]
    fn what_is_not_measured_is_taken_to_be_what_a_space_has_and_had_to_fetch() {
        let mut sight = Sight::new("working-set", &[], &[450, 450]);
        let all = [SpaceId(0), SpaceId(1)];
        sight.waits.extend(all.map(|space| (space, 90)));
        // A page in a second more than fits.
        sight.fetches = 51;
        sight.run(2, 0);
        assert_eq!(sight.take_verdicts(), [out(1)]);
    }

    /// Random programs that need more than there is: each waits for pages while those that run do
    /// not fit together.
    #[test]
    fn nobody_waits_for_longer_than_the_slices_of_those_before_it() {
        for seed in 0..10_000 {
            let mut random = SplitMix64::new(seed);
            let mut draw = |bound: u64| random.draw() % bound;
            let count = 2 + draw(7) as usize;
            let mut needs: Vec<u32> = (0..count).map(|_| 20 + draw(1200) as u32).collect();
            let mut sight = Sight::new("working-set", &[], &vec![0; count]);
            (sight.processors, sight.pages) = (1 + draw(3) as u32, draw(60));
            let mut out_since = vec![None; count];
            let mut longest = 0;
            for _ in 0..200 {
                if draw(10) == 0 {
                    needs[draw(count as u64) as usize] = 20 + draw(1200) as u32;
                }
                let runs = sight.spaces.iter().filter(|space| !space.is_suspended);
                let needed: u32 = runs.map(|space| needs[space.space.0 as usize]).sum();
                let percent = if needed > 1000 { 80 } else { 0 };
                let now: Vec<(u32, u64)> = needs.iter().map(|&need| (need, percent)).collect();
                set(&mut sight, &now);
                sight.run(1, 0);
                for verdict in sight.take_verdicts() {
                    match verdict {
                        Verdict::SwapOut(SpaceId(it)) => {
                            out_since[it as usize] = Some(sight.seconds)
                        }
                        Verdict::Resume(SpaceId(it)) => out_since[it as usize] = None,
                        _ => panic!("{verdict:?}"),
                    }
                }
                let now = sight.seconds;
                let waits = out_since.iter().flatten().map(|since| now - since);
                longest = waits.max().unwrap_or(0).max(longest);
                assert!(
                    out_since.iter().any(Option::is_none),
                    "seed {seed}: nobody runs"
                );
            }
            // A slice is 1.3 seconds of processor time at most, which may take four times as long:
            // six of these ticks. Each that waits may have to wait for one, and for a tick.
            assert!(
                longest <= 6 * count as u64 + 1,
                "seed {seed}: {longest} seconds"
            );
        }
    }
}

mod vms_swapper {
    use super::*;

    #[test]
    fn the_idle_go_first_and_then_who_has_run_longest_but_never_the_last() {
        let mut sight = Sight::new("vms-swapper", &[("free-low", 50)], &[300, 300, 200]);
        sight.spaces[1].turn.is_active = false;
        // Trimming has until the second tick to free enough.
        sight.frames_free = 49;
        assert_eq!(sight.run(1, 0).take_verdicts(), []);
        sight.run(1, 0);
        assert_eq!(sight.take_verdicts(), [Verdict::SwapOut(SpaceId(1))]);
        sight.spaces[1].resident = 0;
        sight.run(20, 0);
        assert_eq!(sight.take_verdicts(), [Verdict::SwapOut(SpaceId(0))]);
        sight.frames_free = 50;
        assert_eq!(sight.run(5, 0).take_verdicts(), []);
    }

    #[test]
    fn who_waits_comes_back_when_its_pages_fit_and_the_goal_besides() {
        let knobs = [("free-low", 50), ("free-goal", 100)];
        let mut sight = Sight::new("vms-swapper", &knobs, &[300, 200]);
        sight.run(2, 0);
        assert_eq!(sight.take_verdicts(), [Verdict::SwapOut(SpaceId(0))]);
        sight.frames_free = 399;
        assert_eq!(sight.run(10, 0).take_verdicts(), []);
        sight.frames_free = 400;
        assert_eq!(
            sight.run(1, 0).take_verdicts(),
            [Verdict::Resume(SpaceId(0))]
        );
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
