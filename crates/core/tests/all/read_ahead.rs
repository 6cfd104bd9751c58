//! Counts of what becomes of pages read ahead, beside what the program itself knows of its pages.

use tidemark_core::random::SplitMix64;
use tidemark_core::vm::Counters;
use tidemark_model::world::World;

/// The pages that were written, and left memory.
const STORED: std::ops::Range<u64> = 100..340;
/// Pages of which nobody wants to know anything.
const OTHERS: std::ops::Range<u64> = 900..964;

/// Memory of 64 frames, read ahead of as in a live process, and pages that are all on the store.
fn stored(policy: &'static str) -> World {
    let mut world = World::new();
    world.frames(64).policy(policy).config(|config| {
        (config.cluster_pages, config.default_cluster_pages) = (8, 4);
        (config.ahead_pages_max, config.is_ahead_mapped) = (16, true);
    });
    world.write_all(STORED).touch_all(OTHERS).run().forget_log();
    world
}

fn counters(world: &mut World) -> Counters {
    world.stage().vm().counters().clone()
}

/// The pages that were read and that no fault asked for, by the log of decisions: `in 0:16+4` has
/// one page that was asked for, and `ahead 0:20+8` none.
fn read_ahead(log: &[String], asked: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut ahead = vec![];
    for line in log {
        let Some((verb, run)) = line.split_once(' ') else {
            continue;
        };
        if verb != "in" && verb != "ahead" {
            continue;
        }
        let (_, run) = run.split_once(':').expect("a run names its object");
        let (first, pages) = run.split_once('+').unwrap_or((run, "1"));
        let first: u64 = first.parse().expect("a number");
        let pages: u64 = pages.parse().expect("a number");
        ahead.extend((first..first + pages).filter(|&page| !asked(page)));
    }
    ahead
}

/// Touches pages in their order, and returns what the program knows: of the pages read ahead, how
/// many there were, and how many of them it never touches at all.
fn walk(world: &mut World, pages: impl Iterator<Item = u64>, writes: bool) -> (u64, u64) {
    let (mut ahead, mut never) = (0, 0);
    let pages: Vec<u64> = pages.collect();
    for &page in &pages {
        match writes {
            true => world.write(page),
            false => world.touch(page),
        };
        world.run();
        let log = world.stage().take_decisions();
        let read = read_ahead(&log, |read| read == page);
        ahead += read.len() as u64;
        never += read.iter().filter(|read| !pages.contains(read)).count() as u64;
    }
    (ahead, never)
}

#[test]
fn what_is_counted_adds_up_to_what_was_read_ahead() {
    for policy in ["fifo", "tidemark"] {
        for writes in [false, true] {
            let mut world = stored(policy);
            let random = &mut SplitMix64::new(7);
            let at_random = (0..240).map(|_| STORED.start + random.below(240));
            let pages = STORED.chain(STORED.rev()).chain(at_random);
            let (ahead, _) = walk(&mut world, pages, writes);
            let counted = counters(&mut world);
            assert_eq!(counted.read_ahead, ahead, "{policy}");
            assert!(ahead > 240 && counted.read_ahead_used > 0, "{counted:?}");
            let known = counted.read_ahead_used + counted.read_ahead_wasted;
            assert_eq!(counted.read_ahead_unknown(), ahead - known, "{policy}");
            assert!(counted.read_ahead_passed <= counted.read_ahead_unknown());
            world.close();
        }
    }
}

#[test]
fn a_page_that_is_never_touched_is_never_counted_as_used() {
    for policy in ["fifo", "tidemark"] {
        for writes in [false, true] {
            // Every third page: the walk goes past the others.
            let mut world = stored(policy);
            let (ahead, never) = walk(&mut world, STORED.step_by(3), writes);
            let counted = counters(&mut world);
            assert_eq!(counted.read_ahead, ahead);
            assert!(
                never > 0 && counted.read_ahead_used <= ahead - never,
                "{counted:?}"
            );
            world.close();
        }
    }
}

#[test]
fn what_leaves_without_ever_being_mapped_is_counted_as_unused() {
    // Lone pages far from each other: what is beside them comes along, and is not mapped.
    let mut world = stored("fifo");
    let (ahead, never) = walk(&mut world, STORED.step_by(24), false);
    assert_eq!((ahead, never), (30, 30));
    world.touch_all(OTHERS).run();
    let counted = counters(&mut world);
    let found = (counted.read_ahead_used, counted.read_ahead_wasted);
    assert_eq!(found, (0, 30), "{counted:?}");
    assert_eq!(counted.read_ahead_unknown(), 0);
    world.close();
}

#[test]
fn what_its_program_gives_up_untouched_is_unused_too() {
    let mut world = stored("fifo");
    let (ahead, _) = walk(&mut world, STORED.step_by(24), false);
    world.discard(STORED.start, 240).run();
    let counted = counters(&mut world);
    assert_eq!(counted.read_ahead_wasted, ahead, "{counted:?}");
    world.close();
}

#[test]
fn a_write_shows_that_a_page_mapped_ahead_was_used() {
    let mut world = stored("fifo");
    let (ahead, _) = walk(&mut world, STORED, true);
    world.touch_all(OTHERS).run();
    let counted = counters(&mut world);
    assert_eq!(counted.read_ahead_used, ahead, "{counted:?}");
    // Of pages that are only read, no more is known than that the walk went past them.
    let mut world = stored("fifo");
    let (ahead, _) = walk(&mut world, STORED, false);
    world.touch_all(OTHERS).run();
    let counted = counters(&mut world);
    assert_eq!(counted.read_ahead_wasted, 0, "{counted:?}");
    let seen = counted.read_ahead_used;
    assert!(seen > 0 && seen < ahead / 2, "{counted:?}");
    assert!(counted.read_ahead_passed > ahead / 2, "{counted:?}");
    world.close();
}
