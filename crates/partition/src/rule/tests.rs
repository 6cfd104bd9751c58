use alloc::vec::Vec;

use super::*;
use crate::measures::{Counts, Meter};
use crate::{ANY, Divider, FLOOR_FRAMES, Occasion, asks, is_short, uses_share};

const TOTAL: u64 = 16_384;
/// The intervals after which all has settled that settles.
const LONG: usize = 600;

/// A program that touches the pages of its set at random.
#[derive(Clone, Copy)]
struct Program {
    set: u64,
    /// The pages that it touches in an interval if all are in memory.
    touches: u64,
    /// The processor time that it takes in an interval, in ms.
    processor_ms: u64,
}

/// It is idle, and has this many pages in memory.
const fn idle(set: u64) -> Program {
    Program {
        set,
        touches: 0,
        processor_ms: 0,
    }
}

const fn busy(set: u64, touches: u64) -> Program {
    Program {
        set,
        touches,
        processor_ms: 100,
    }
}

struct Task {
    program: Program,
    meter: Meter,
    counts: Counts,
    holder: Holder,
}

/// Programs in one memory, with engines that follow at once.
struct World {
    divider: Divider,
    tasks: Vec<Task>,
}

impl World {
    /// One in which each program has had frames before, and used them as far as it could.
    fn new(rule: Rule, programs: &[(Program, u64)]) -> World {
        let task = |&(program, given): &(Program, u64)| {
            let resident = given.min(program.set);
            Task {
                program,
                meter: Meter::default(),
                counts: Counts {
                    processor_ns: Some(0),
                    resident,
                    size: program.set,
                    ..Counts::default()
                },
                holder: Holder {
                    given,
                    understood: given,
                    resident,
                    is_served: uses_share(resident, TOTAL / programs.len() as u64),
                    ..Holder::NEW
                },
            }
        };
        World {
            divider: Divider {
                rule,
                frames_min: FLOOR_FRAMES,
            },
            tasks: programs.iter().map(task).collect(),
        }
    }

    /// Has all run for an interval, and divides memory anew. Answers what each has then.
    fn step(&mut self) -> Vec<u64> {
        self.tasks.iter_mut().for_each(Task::run);
        let holders: Vec<Holder> = self.tasks.iter().map(|task| task.holder).collect();
        let division = self.divider.divide(TOTAL, &holders, Occasion::Interval);
        assert!(division.given.iter().sum::<u64>() <= TOTAL, "{holders:?}");
        let floor = FLOOR_FRAMES.min(division.fair);
        for (task, &given) in self.tasks.iter_mut().zip(&division.given) {
            assert!(given >= floor, "{holders:?}: {division:?}");
            task.take(given, division.fair);
        }
        division.given
    }

    fn steps(&mut self, count: usize) -> Vec<Vec<u64>> {
        (0..count).map(|_| self.step()).collect()
    }

    fn page_ins(&self) -> Vec<u64> {
        self.tasks.iter().map(|task| task.counts.page_ins).collect()
    }
}

impl Task {
    fn run(&mut self) {
        let Program {
            set,
            touches,
            processor_ms,
        } = self.program;
        let (counts, holder) = (&mut self.counts, &mut self.holder);
        let fetched = touches * (set - holder.resident) / set;
        let is_full = is_short(holder.given, holder.resident);
        counts.page_ins += fetched;
        counts.pages_moved += 2 * fetched;
        // Where a policy has to choose, it unmaps a part of what there is to see what is in use.
        let tested = if is_full { holder.resident / 4 } else { 0 };
        counts.minor_faults += tested * touches.min(holder.resident) / holder.resident.max(1);
        let processor_ns = processor_ms * 1_000_000 * (touches - fetched) / touches.max(1);
        counts.processor_ns = counts.processor_ns.map(|ns| ns + processor_ns);
        counts.resident = (holder.resident + fetched).min(holder.given).min(set);
        holder.resident = counts.resident;
        holder.measures = self.meter.note(*counts);
        let is_asking = touches > 0 && is_short(holder.given, holder.resident);
        holder.asked = if is_asking { asks(holder.given) } else { 0 };
    }

    fn take(&mut self, given: u64, fair: u64) {
        let holder = &mut self.holder;
        holder.is_served |= uses_share(holder.resident, fair);
        (holder.given, holder.understood) = (given, given);
        holder.resident = holder.resident.min(given);
    }
}

#[test]
fn a_name_finds_its_rule() {
    for rule in Rule::ALL {
        assert_eq!(Rule::find(rule.name()), Some(rule));
    }
    assert_eq!(Rule::find("by chance"), None);
}

#[test]
fn two_equal_tasks_have_the_same_and_keep_it() {
    for rule in Rule::ALL {
        // One has been there for longer, and has most.
        let first = TOTAL - 1000;
        for programs in [
            [(busy(TOTAL, 3000), first), (busy(TOTAL, 3000), 1000)],
            [(busy(TOTAL, 3000), TOTAL / 2); 2],
        ] {
            let mut world = World::new(rule, &programs);
            let settled = world.steps(LONG).split_off(LONG / 2);
            for given in settled {
                let apart = given[0].abs_diff(given[1]);
                assert!(apart <= TOTAL / 8, "{rule:?}: {given:?}");
            }
        }
    }
}

#[test]
fn idle_tasks_are_taken_from_first_and_keep_the_least() {
    for rule in Rule::ALL {
        let third = TOTAL / 3;
        let programs = [
            (idle(third), third),
            (busy(TOTAL, 3000), third),
            (busy(TOTAL, 3000), third),
        ];
        let mut world = World::new(rule, &programs);
        let given = world.steps(60);
        let last = given.last().unwrap();
        assert!(last[0] < 2 * FLOOR_FRAMES, "{rule:?}: {last:?}");
        // From when it is known to be idle on, none that pages loses anything to speak of to the
        // other before it has lost most.
        let taken = given
            .iter()
            .skip(6)
            .take_while(|given| given[0] > third / 2);
        for given in taken {
            let least = given[1].min(given[2]);
            assert!(least + 64 >= third, "{rule:?}: {given:?}");
        }
    }
}

#[test]
fn a_least_that_was_asked_for_is_left_to_who_uses_it() {
    for rule in Rule::ALL {
        let programs = [
            (idle(4000), 4000),
            (busy(4000, 10), 4000),
            (busy(2 * TOTAL, 5000), TOTAL - 8000),
        ];
        let mut world = World::new(rule, &programs);
        world.divider.frames_min = 2000;
        for given in world.steps(LONG) {
            assert!(
                given.iter().all(|&given| given >= 2000),
                "{rule:?}: {given:?}"
            );
        }
    }
}

#[test]
fn an_idle_task_gives_way_beside_one_that_needs_less_than_the_least() {
    for rule in [Rule::Demand, Rule::Pressure] {
        let (large, small) = (TOTAL * 3 / 5, FLOOR_FRAMES);
        let programs = [
            (idle(4), small),
            (idle(large), large),
            (busy(TOTAL, 3000), TOTAL - large - small),
        ];
        let mut world = World::new(rule, &programs);
        world.divider.frames_min = TOTAL * 3 / 10;
        let given = world.steps(LONG).pop().unwrap();
        assert!(given[1] <= TOTAL / 3, "{rule:?}: {given:?}");
        assert!(given[2] >= TOTAL * 3 / 5, "{rule:?}: {given:?}");
    }
}

#[test]
fn nobody_starves_beside_many_that_want_all() {
    for rule in Rule::ALL {
        let programs: Vec<(Program, u64)> = (0..12)
            .map(|place| (busy(2000 * (place + 1), 100 * (place + 1)), TOTAL / 12))
            .collect();
        let mut world = World::new(rule, &programs);
        world.steps(LONG);
        let before = world.page_ins();
        world.steps(50);
        // Each of them goes on: it touches pages that are there.
        for (task, before) in world.tasks.iter().zip(before) {
            let fetched = task.counts.page_ins - before;
            let touches = 50 * task.program.touches;
            assert!(fetched < touches, "{rule:?}: {fetched} of {touches}");
        }
    }
}

#[test]
fn by_demand_a_small_program_keeps_what_it_uses_beside_a_large_one() {
    let programs = [
        (busy(2000, 1000), 2000),
        (busy(3 * TOTAL, 5000), TOTAL - 2000),
    ];
    let misses = |rule| {
        let mut world = World::new(rule, &programs);
        world.steps(LONG);
        let before = world.page_ins()[0];
        world.steps(50);
        world.page_ins()[0] - before
    };
    assert!(
        misses(Rule::Demand) < 50 * 1000 / 100,
        "{}",
        misses(Rule::Demand)
    );
    assert!(misses(Rule::Equal) < 50 * 1000 / 100);
}

#[test]
fn by_demand_who_has_much_and_uses_little_gives_it_up() {
    // It touches a page now and then of all that it has.
    let programs = [
        (busy(12_000, 1), 12_000),
        (busy(12_000, 3000), TOTAL - 12_000),
    ];
    let mut world = World::new(Rule::Demand, &programs);
    let given = world.steps(LONG).pop().unwrap();
    assert!(given[1] > 10_000, "{given:?}");
}

#[test]
fn by_demand_who_had_an_equal_share_gets_it_again_at_once_as_far_as_it_needs_it() {
    let given_to_other = |rule, demand: Option<u64>| {
        let asking = |given: u64, demand| Holder {
            given,
            understood: given,
            resident: given,
            asked: asks(given),
            is_served: true,
            measures: Measures {
                pressure: 500,
                demand,
                is_idle: demand == Some(0),
                ..Measures::default()
            },
            ..Holder::NEW
        };
        let holders = [asking(1000, demand), asking(TOTAL - 1000, Some(TOTAL))];
        let divider = Divider {
            rule,
            ..Divider::default()
        };
        divider.divide(TOTAL, &holders, Occasion::Change).given[1]
    };
    assert_eq!(
        given_to_other(Rule::Demand, Some(3000)),
        TOTAL - 2000,
        "as it asks"
    );
    assert_eq!(
        given_to_other(Rule::Demand, Some(500)),
        TOTAL - 1000,
        "on trial"
    );
    assert_eq!(
        given_to_other(Rule::Demand, Some(0)),
        TOTAL - 2000,
        "woken up"
    );
    assert_eq!(given_to_other(Rule::Equal, None), TOTAL - 2000);
    assert_eq!(given_to_other(Rule::Pressure, Some(3000)), TOTAL - 1000);
}

#[test]
fn in_equal_parts_who_needs_more_has_what_others_do_not_need() {
    let programs = [
        (busy(2000, 500), 2000),
        (busy(TOTAL, 100), 4000),
        (busy(TOTAL, 4000), TOTAL - 6000),
    ];
    let mut world = World::new(Rule::Equal, &programs);
    let given = world.steps(LONG).pop().unwrap();
    assert!(given[0] < 3000, "{given:?}");
    let apart = given[1].abs_diff(given[2]);
    assert!(apart <= given[1] / 6, "{given:?}");
}

#[test]
fn in_proportion_who_is_three_times_as_large_has_three_times_as_much() {
    let programs = [
        (busy(TOTAL, 4000), TOTAL / 2),
        (busy(3 * TOTAL, 1000), TOTAL / 2),
    ];
    let mut world = World::new(Rule::Proportional, &programs);
    let given = world.steps(LONG).pop().unwrap();
    let (small, large) = (given[0], given[1]);
    assert!(
        5 * large > 13 * small && 5 * large < 16 * small,
        "{given:?}"
    );
}

#[test]
fn by_frequency_who_faults_as_much_in_less_time_has_more() {
    let slow = Program {
        processor_ms: 20,
        ..busy(TOTAL, 1000)
    };
    let programs = [(slow, TOTAL / 2), (busy(TOTAL, 1000), TOTAL / 2)];
    let mut world = World::new(Rule::FaultFrequency, &programs);
    let given = world.steps(LONG).pop().unwrap();
    assert!(given[0] > given[1] + TOTAL / 16, "{given:?}");
}

#[test]
fn in_one_pool_who_fetches_more_has_more() {
    let programs = [
        (busy(2 * TOTAL, 4000), TOTAL / 2),
        (busy(2 * TOTAL, 1000), TOTAL / 2),
    ];
    let mut world = World::new(Rule::Global, &programs);
    let given = world.steps(LONG).pop().unwrap();
    assert!(given[0] > 2 * given[1], "{given:?}");
}

#[test]
fn parts_rise_evenly_until_claims_are_met() {
    assert_eq!(raise_evenly(100, &[], &[]), []);
    assert_eq!(raise_evenly(100, &[10, 80, 80], &[1; 3]), [10, 45, 45]);
    assert_eq!(raise_evenly(100, &[10, 20, 30], &[1; 3]), [10, 20, 30]);
    assert_eq!(raise_evenly(100, &[ANY; 2], &[3, 1]), [75, 25]);
    assert_eq!(raise_evenly(100, &[ANY, 60], &[3, 1]), [75, 25]);
    assert_eq!(raise_evenly(100, &[50, ANY], &[3, 1]), [50, 50]);
}

#[test]
fn an_idle_task_gives_at_once_as_much_as_is_asked_for() {
    let holder = |given, is_idle| Holder {
        given,
        understood: given,
        resident: given,
        is_served: true,
        measures: Measures {
            is_idle,
            ..Measures::default()
        },
        ..Holder::NEW
    };
    let asking = Holder {
        asked: 6000,
        ..holder(3000, false)
    };
    let rest = 4000;
    let busy = TOTAL - 3000 - 2 * rest;
    let holders = [
        asking,
        holder(rest, true),
        holder(rest, true),
        holder(busy, false),
    ];
    for rule in Rule::ALL {
        let divider = Divider {
            rule,
            ..Divider::default()
        };
        let division = divider.divide(TOTAL, &holders, Occasion::Change);
        // The idle come down at once; their frames go over once they are free.
        let given = division.given;
        assert!(!division.is_settled, "{rule:?}");
        assert_eq!(given, [3000, rest - 1500, rest - 1500, busy], "{rule:?}");
    }
}
