//! Private copies of what a pager outside has, where nothing refuses writes.

use tidemark_model::world::{FILE, World};

#[test]
fn a_page_that_nobody_has_modified_is_dropped_and_read_from_the_file_again() {
    let mut world = World::new();
    world.frames(2).map_copy_of_file(4);
    world.touch_all(FILE..FILE + 4).touch(FILE).run();
    world
        .expect_slots_used(0)
        .expect_count(|c| c.page_outs, 0)
        .expect_count(|c| c.page_ins, 5);
    world.close();
}

#[test]
fn a_modified_page_goes_to_the_swap_store_and_not_to_the_file() {
    let mut world = World::new();
    world.frames(2).map_copy_of_file(4).write(FILE + 1);
    world.touch_all([10, 11]).run();
    world.expect_slots_used(1).touch(FILE + 1).touch(FILE + 2);
    world.expect_count(|c| c.page_outs, 1);
    world.close();
}

#[test]
fn what_is_discarded_has_what_the_file_has() {
    let mut world = World::new();
    world.frames(2).map_copy_of_file(4).write(FILE).touch(FILE);
    world.discard(FILE, 1).touch(FILE).run();
    world.expect_slots_used(0);
    world.close();
}

#[test]
fn neither_side_of_a_fork_sees_what_the_other_writes_to_a_copy() {
    let mut world = World::new();
    world.map_copy_of_file(4).write(FILE).fork();
    world.write_all([FILE, FILE + 1]).in_space(1);
    world.touch_all(FILE..FILE + 3).write(FILE + 2);
    world.discard(FILE, 4).touch_all(FILE..FILE + 4).run();
    world.in_space(0).touch_all(FILE..FILE + 4).run();
    world.close();
}

#[test]
fn anonymous_memory_behind_a_copy_of_a_file_is_zeros() {
    let mut world = World::new();
    world.map_copy_of_file(4).map(FILE + 4, 2).touch(FILE + 4);
    world.expect_count(|c| c.zero_fills, 1);
    world.close();
}
