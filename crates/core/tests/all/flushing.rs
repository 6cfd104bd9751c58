//! Flushing: what is modified of a file's pages is written, and stays in memory.

use tidemark_core::memory::frame::State;
use tidemark_core::policies;
use tidemark_model::machine::Kind;
use tidemark_model::world::{FILE, World};

#[test]
fn what_is_modified_is_written_in_clusters_and_stays() {
    for kind in [Kind::Bits, Kind::SoftFaults] {
        let mut world = World::new();
        world.frames(40).machine(kind);
        world.config(|config| config.cluster_pages = 8).map_file(16);
        world
            .touch_all(FILE..FILE + 16)
            .write_all(FILE + 4..FILE + 8);
        world.forget_log();
        assert_eq!(world.flush(FILE, 16), 0);
        world
            .expect_log("out 1:4+4")
            .expect_flushed(FILE..FILE + 16);
        world.expect_resident(FILE..FILE + 16);
        world.flush(FILE, 16);
        world.expect_count(|c| c.page_outs, 4).close();
    }
}

#[test]
fn every_policy_keeps_what_is_flushed() {
    for entry in policies::entries() {
        let name = entry.description.name;
        if !entry.description.sees.is_shown_live() {
            continue;
        }
        let mut world = World::new();
        world.frames(6).policy(name).machine(Kind::SoftFaults);
        world.config(|config| config.laundry_max = 2).map_file(12);
        for round in 0..4 {
            for page in (round..12).step_by(1 + round as usize) {
                world.write(FILE + page).touch(FILE + (page * 5) % 12);
            }
            world.flush(FILE, 12);
            world.run().expect_flushed(FILE..FILE + 12).tick();
        }
        world.expect_slots_used(0).close();
    }
}

#[test]
fn a_page_that_is_held_is_told_of_and_written_when_it_is_let_go() {
    let mut world = World::new();
    world.frames(8).machine(Kind::SoftFaults).map_file(4);
    world.write_all([FILE, FILE + 1]).pin(FILE);
    assert_eq!(world.flush(FILE, 4), 1);
    world
        .expect_flushed([FILE + 1])
        .expect_count(|c| c.page_outs, 1);
    world.unpin();
    assert_eq!(world.flush(FILE, 4), 0);
    world.expect_flushed([FILE, FILE + 1]).close();
}

#[test]
fn a_page_that_could_not_be_written_is_written_by_the_next_flush() {
    let mut world = World::new();
    world.frames(8).map_file(4).write(FILE);
    world.file_fails_next_store().flush(FILE, 4);
    world.expect_resident([FILE]).flush(FILE, 4);
    world
        .expect_flushed([FILE])
        .expect_count(|c| c.store_errors, 1);
    world.close();
}

#[test]
fn what_is_touched_while_it_is_written_waits_and_is_modified_again() {
    let mut world = World::new();
    world.frames(8).machine(Kind::SoftFaults).map_file(4);
    world.write(FILE).disk_holds().flush(FILE, 4);
    world.expect_frames(State::Leaving, 1).write(FILE);
    world.expect_waiting(1).disk_goes_on().expect_waiting(0);
    world.flush(FILE, 4);
    world
        .expect_flushed([FILE])
        .expect_count(|c| c.page_outs, 2);
    world.close();
}

#[test]
fn a_range_of_nothing_and_pages_of_the_swap_store_are_left_alone() {
    let mut world = World::new();
    world.frames(8).map_file(4).write_all([10, 11]);
    world.write_all([FILE, FILE + 3]).flush(FILE + 1, 2);
    world
        .flush(0, 100)
        .eq(&0)
        .then_some(())
        .expect("none is held");
    world
        .expect_count(|c| c.page_outs, 0)
        .expect_resident([10, 11, FILE, FILE + 3]);
    world.close();
}
