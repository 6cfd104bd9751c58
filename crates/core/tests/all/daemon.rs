//! Scenarios of the page daemon: what it does in a pass, and what it waits for.

use tidemark_core::kernels::{GAINS, Pacing, Passes};
use tidemark_core::memory::frame::State;
use tidemark_model::world::{FILE, World};

fn paced() -> World {
    let mut world = World::new();
    world.frames(20).config(|config| {
        (config.free_low, config.free_high, config.reserve) = (4, 8, 2);
        config.kernel.pacing = Some(Pacing::Passes(Passes {
            pass_pages: 2,
            wait_laundry: 1,
            resume_laundry: 0,
            wait_ns: 50_000_000,
            wait_page_ns: 0,
            is_pausing: true,
            is_double_paging: true,
        }));
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

#[test]
fn nobody_waits_for_a_daemon_that_a_full_store_has_stopped() {
    let mut world = paced();
    world.swap_slots(1);
    // Two are free, which is the reserve: all others wait, until the store is full.
    world.write_all(0..18).disk_holds();
    world.write(18).disk_goes_on().run();
    world.discard(0, 10).stage().take_failures();
    world.write(19).expect_waiting(0);
    assert_eq!(world.stage().take_failures(), []);
}

#[test]
fn a_daemon_that_a_full_store_has_stopped_has_no_deadline() {
    let mut world = paced();
    world.swap_slots(1);
    world.write_all(0..19).run();
    world.stage().take_failures();
    let vm = world.stage().vm();
    assert!(vm.frames().count(State::Free) < 8 && vm.poll_deadline().is_none());
}

/// Written pages of a file fill memory, two have left for it, and nobody gets the last two frames.
fn paused_over_a_file() -> World {
    let mut world = paced();
    world
        .map_file(24)
        .write_all(FILE..FILE + 16)
        .disk_holds()
        .write_all(FILE + 16..FILE + 19);
    world.expect_count(|c| c.page_outs, 2);
    world.expect_count(|c| c.double_paged, 0).expect_waiting(3);
    world
}

#[test]
fn while_all_wait_pages_of_files_go_to_the_swap_store_and_from_there_to_their_files() {
    let mut world = paused_over_a_file();
    world.tick().expect_count(|c| c.double_paged, 2);
    world.expect_count(|c| c.page_outs, 4);
    world.disk_goes_on().run();
    // Nothing is on the store when their pagers have had their turn, and what they read counts.
    world.expect_waiting(0).expect_slots_used(0);
    let counters = world.stage().vm().counters().clone();
    assert_eq!(counters.page_ins, 19 + counters.double_paged);
}

#[test]
fn a_page_wanted_back_on_its_way_to_the_swap_store_is_its_files_to_write_again() {
    let mut world = paused_over_a_file();
    world.tick().touch(FILE + 2).disk_goes_on().run();
    world
        .expect_count(|c| c.reactivations, 1)
        .expect_slots_used(0);
    world.expect_waiting(0).touch_all(FILE..FILE + 19);
}

#[test]
fn a_page_of_a_file_is_read_from_where_it_is_before_its_pager_has_it() {
    let mut world = paused_over_a_file();
    world.tick().tick();
    // The pager can't read the first, whose copy stays where it is.
    world.disk_fails_next_fetch().disk_goes_on().run();
    world.expect_slots_used(1).touch_all(FILE..FILE + 19).run();
    world.expect_slots_used(0);
}

#[test]
fn pages_of_files_for_which_the_swap_store_has_no_slot_go_to_their_files() {
    let mut world = paced();
    world.swap_slots(1).map_file(24).write_all(FILE..FILE + 16);
    world.disk_holds().write_all(FILE + 16..FILE + 19).tick();
    world.expect_count(|c| c.double_paged, 1);
    world.expect_count(|c| c.page_outs, 4);
    world.disk_goes_on().run();
    world.expect_waiting(0).expect_slots_used(0);
}

fn controlled() -> World {
    let mut world = World::new();
    world.frames(200).config(|config| {
        (config.free_low, config.free_high, config.reserve) = (36, 40, 2);
        config.laundry_max = 64;
        config.kernel.pacing = Some(Pacing::Controlled(GAINS));
    });
    world
}

#[test]
fn a_controlled_daemon_gives_up_parts_of_what_is_missing_and_more_the_longer_it_is() {
    let mut world = controlled();
    world.write_all(0..160).disk_holds();
    world.write_all(160..163).expect_frames(State::Leaving, 0);
    // Four are missing, and it is urgent: 4 / 3 + 4 / 4 + 4 / 8.
    world.write(163).expect_frames(State::Leaving, 2);
    // As many are still missing an interval later: 4 / 3 + 8 / 4.
    world.tick().expect_frames(State::Leaving, 5);
}

#[test]
fn a_controlled_daemon_takes_no_more_at_once_than_is_kept_inactive() {
    let mut world = controlled();
    // What is to be free is half of memory, and none of it is.
    world.frames(90).config(|config| {
        (config.free_low, config.free_high) = (44, 45);
    });
    world.disk_holds().write_all(0..88);
    // The controller's answers are 56 pages and more; a third of memory is inactive at most.
    world.expect_frames(State::Leaving, 2);
    world.tick().expect_frames(State::Leaving, 32);
    world.tick().expect_frames(State::Leaving, 62);
}

#[test]
fn a_controlled_daemon_rests_when_enough_has_been_free_for_long() {
    let mut world = controlled();
    world.write_all(0..164).run();
    (0..20).for_each(|_| {
        world.tick().run();
    });
    assert!(world.stage().vm().frames().count(State::Free) >= 40);
    assert_eq!(world.stage().vm().poll_deadline(), None);
}
