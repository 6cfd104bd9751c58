//! Frames are alike: no decision depends on which of them are free.

use std::ops::Range;

use tidemark_core::policies::entries;
use tidemark_core::random::SplitMix64;
use tidemark_model::world::World;

const PAGES: u64 = 96;
/// Pages that come and go before anything else happens.
const BEFORE: Range<u64> = 900..920;

/// The decisions about a program that writes, reads, and gives up pages some of which are being
/// written. `begin` leaves the frames free in an order of its own.
fn decide(policy: &'static str, begin: fn(&mut World)) -> Vec<String> {
    let mut world = World::new();
    world.frames(48).policy(policy);
    begin(&mut world);
    world.forget_log();
    let mut random = SplitMix64::new(8);
    for _ in 0..6 {
        let first = random.below(PAGES);
        world.disk_holds();
        world.write_all((0..16).map(|page| (first + page) % PAGES));
        world.discard(random.below(PAGES - 32), 32).disk_goes_on();
        world.touch_all((0..16).map(|_| random.below(PAGES)));
    }
    let log = world.stage().take_decisions();
    world.close();
    log
}

#[test]
fn decisions_are_the_same_whichever_frames_are_free() {
    let policies = entries().iter().map(|entry| entry.description);
    for policy in policies.filter(|it| it.sees.is_shown_live()) {
        let together = decide(policy.name, |world| {
            world.write_all(BEFORE).discard(BEFORE.start, 20);
        });
        let one_by_one = decide(policy.name, |world| {
            BEFORE.for_each(|page| {
                world.write(page).discard(page, 1);
            });
        });
        assert!(together.len() > 100, "{}", policy.name);
        assert_eq!(together, one_by_one, "{}", policy.name);
    }
}
