//! Trimming: pages that leave, or are written, though nobody needs their frames.

use tidemark_core::id::SpaceId;
use tidemark_core::memory::frame::State;
use tidemark_model::machine::Kind;
use tidemark_model::world::World;

#[test]
fn what_its_program_no_longer_uses_leaves_a_memory_that_has_room() {
    for kind in [Kind::Bits, Kind::SoftFaults] {
        let mut world = World::new();
        world.frames(8).machine(kind).policy("working-set");
        world.write_all([10, 11]).touch(12).tick().forget_log();
        // They were seen used a second ago, which is more than a window.
        world.touch(10).forget_log().tick().run();
        world
            .expect_log("drop 0:12; out 0:11")
            .expect_resident([10]);
        world.expect_count(|c| c.refusals, 0).touch(11);
        world.close();
    }
}

#[test]
fn the_time_of_a_program_that_stands_still_takes_no_pages() {
    let mut world = World::new();
    world.frames(8).policy("working-set");
    world.stage().clock(SpaceId(0), 5);
    world.write_all([10, 11]).tick().tick().tick();
    world.expect_resident([10, 11]);
    world.stage().clock(SpaceId(0), 1_000_000);
    world.tick();
    world.stage().clock(SpaceId(0), 2_000_000);
    world.tick().run().expect_resident([]);
    world.close();
}

#[test]
fn a_page_that_is_touched_while_it_is_trimmed_stays() {
    let mut world = World::new();
    world.frames(8).policy("working-set");
    world
        .write(10)
        .tick()
        .disk_holds()
        .tick()
        .expect_frames(State::Leaving, 1);
    world
        .touch(10)
        .expect_waiting(1)
        .disk_goes_on()
        .expect_waiting(0);
    world
        .expect_count(|c| c.reactivations, 1)
        .expect_resident([10]);
    world.close();
}

#[test]
fn a_full_store_stops_the_trimming_until_it_has_room_again() {
    let mut world = World::new();
    world.frames(8).policy("working-set").swap_slots(2);
    world.write_all(10..16).tick().tick().run();
    // Two found a place.
    world.expect_resident(12..16).expect_slots_used(2);
    world.tick().tick().expect_resident(12..16);
    world.close();
}

/// Sets of three pages in a memory of a hundred; the writer starts at six.
fn vms() -> World {
    let mut world = World::new();
    world.frames(100).policy("vms");
    world.config(|config| config.cluster_pages = 8);
    world
}

#[test]
fn modified_pages_out_of_their_sets_are_written_in_clusters_and_stay() {
    for kind in [Kind::Bits, Kind::SoftFaults] {
        let mut world = vms();
        world.machine(kind).write_all(10..20).run();
        world
            .expect_count(|c| c.page_outs, 5)
            .expect_count(|c| c.page_out_requests, 1);
        world.expect_resident(10..20).forget_log();
        // A soft fault each: nothing is fetched.
        world.touch_all(10..15).expect_count(|c| c.page_ins, 0);
        world.expect_log("soft 0:10; soft 0:11; soft 0:12; soft 0:13; soft 0:14");
        world.close();
    }
}

#[test]
fn a_page_touched_while_it_is_cleaned_goes_back_to_its_set() {
    let mut world = vms();
    world
        .disk_holds()
        .write_all(10..20)
        .expect_frames(State::Leaving, 5);
    world
        .write(10)
        .expect_waiting(1)
        .disk_goes_on()
        .expect_waiting(0);
    world
        .expect_count(|c| c.reactivations, 1)
        .expect_resident(10..20);
    // What was written to it after its write is not lost.
    world.run().touch_all(10..20);
    world.close();
}

#[test]
fn a_page_whose_cleaning_fails_stays_and_is_written_again() {
    let mut world = vms();
    world.stage();
    world
        .disk_fails_next_store()
        .write_all(10..20)
        .run()
        .expect_resident(10..20);
    world.expect_count(|c| c.store_errors, 1);
    world.write_all(10..20).run();
    let written = world.stage().vm().counters().page_outs;
    assert!(written >= 10, "{written}");
    world.close();
}

#[test]
fn a_clean_page_that_was_to_be_cleaned_needs_no_write() {
    let mut world = vms();
    world.map_file(20);
    world.touch_all((0..20).map(|page| tidemark_model::world::FILE + page));
    world.run().expect_count(|c| c.page_outs, 0);
    world.expect_frames(State::Resident, 20);
    world.close();
}

#[test]
fn pages_given_up_while_they_are_cleaned_leave_nothing_behind() {
    let mut world = vms();
    world
        .disk_holds()
        .write_all(10..20)
        .expect_frames(State::Leaving, 5);
    world.unmap(10, 5).disk_goes_on().expect_slots_used(0);
    world.expect_resident(15..20);
    world.close();
}

#[test]
fn a_process_is_not_kept_from_running_by_what_another_one_does_with_pff() {
    let mut world = World::new();
    world.frames(16).policy("pff").fork();
    world.in_space(1).write_all([20, 21, 22]);
    world.in_space(0).write_all([10, 11, 12]).tick();
    // A fault long after the last: what was not used since leaves.
    world.write(13).run().tick().write(14).run();
    world.expect_resident([13, 14]);
    world.in_space(1).expect_resident([20, 21, 22]);
    world.close();
}
