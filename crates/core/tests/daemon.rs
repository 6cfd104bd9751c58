//! Scenarios of the page daemon: what it does in a pass, and what it waits for.

use tidemark_core::daemon::Pacing;
use tidemark_core::frame::State;
use tidemark_model::world::World;

fn paced() -> World {
    let mut world = World::new();
    world.frames(20).config(|config| {
        (config.free_low, config.free_high, config.reserve) = (4, 8, 2);
        config.pacing = Some(Pacing {
            pass_pages: 2,
            wait_laundry: 1,
            resume_laundry: 0,
            wait_ns: 50_000_000,
            wait_page_ns: 0,
            is_pausing: true,
        });
    });
    world
}

#[test]
fn nothing_leaves_while_enough_is_free_and_then_a_pass_at_a_time() {
    let mut world = paced();
    world.write_all(0..15).expect_count(|c| c.page_outs, 0);
    world.disk_holds();
    // Four are free: the daemon wakes, writes two, and waits for them.
    world.write(15).expect_frames(State::Leaving, 2);
    world.write(16).expect_frames(State::Leaving, 2);
    world.expect_frames(State::Free, 3);
}

#[test]
fn the_daemon_goes_on_when_its_writes_are_done_until_enough_is_free() {
    let mut world = paced();
    world.write_all(0..17).run();
    world.expect_frames(State::Free, 8);
    world.expect_count(|c| c.page_outs, 5);
}

#[test]
fn a_slow_store_holds_the_daemon_up_for_no_longer_than_it_waits() {
    let mut world = paced();
    world.write_all(0..16).disk_holds();
    world.write(16).expect_frames(State::Leaving, 2);
    world.tick().expect_frames(State::Leaving, 4);
}

#[test]
fn who_comes_when_memory_is_nearly_gone_waits_until_the_daemon_is_done() {
    let mut world = paced();
    world.write_all(0..16).disk_holds().write_all([16, 17]);
    world.write(18).expect_waiting(1);
    world.expect_frames(State::Free, 2);
    world.disk_goes_on().run();
    world.expect_waiting(0).expect_frames(State::Resident, 13);
}
