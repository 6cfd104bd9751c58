//! Scenarios with clusters in place: a cluster of an object has a block of the store.

use tidemark_core::event::Event;
use tidemark_core::kernels::Placement;
use tidemark_core::memory::address_space::Advice;
use tidemark_model::world::{FILE, World};

/// Clusters of four pages, and one page read ahead.
fn world(frames: u32) -> World {
    let mut world = World::new();
    world.frames(frames).config(|config| {
        config.kernel.placement = Placement::InPlace;
        config.cluster_pages = 4;
        config.default_cluster_pages = 2;
    });
    world
}

mod page_outs {
    use super::*;

    #[test]
    fn modified_neighbours_are_written_with_a_page_that_leaves_and_stay() {
        let mut world = world(4);
        world.write_all(0..4).forget_log().write(8);
        world.expect_log("out 0:0+4; keep 0:1; keep 0:2; keep 0:3; zero 0:8");
        world.expect_resident([1, 2, 3, 8]);
        world.expect_count(|c| c.page_out_requests, 1);
        // They are clean now.
        world.forget_log().write_all(9..12);
        world.expect_log("drop 0:1; zero 0:9; drop 0:2; zero 0:10; drop 0:3; zero 0:11");
        world.expect_slots([(0, 0), (1, 1), (2, 2), (3, 3)]);
        world.close();
    }

    #[test]
    fn neighbours_are_taken_up_to_the_first_that_is_not_modified() {
        let mut world = world(4);
        world
            .write(1)
            .touch(2)
            .write(3)
            .write(0)
            .forget_log()
            .touch(8);
        // What only reads as zeros is in nobody's way, and ends the run.
        world.expect_log("out 0:0+2; keep 0:0; zero 0:8");
        world.expect_resident([0, 2, 3, 8]);
        world.close();
    }

    #[test]
    fn a_page_that_is_written_again_goes_where_it_was() {
        let mut world = world(2);
        world.write_all([4, 5, 12, 13, 4, 8, 9]);
        world.expect_slots([(4, 0), (5, 1), (12, 4), (13, 5)]);
        world.write(12).write_all([0, 1]);
        world.expect_slots([(4, 0), (5, 1), (12, 4), (13, 5)]);
        world.close();
    }

    #[test]
    fn a_page_joins_its_cluster_whenever_it_leaves() {
        let mut world = world(1);
        world.write_all([7, 20, 5, 22, 4, 8]);
        world.expect_slots([(4, 0), (5, 1), (7, 3), (20, 4), (22, 6)]);
        world.expect_count(|c| c.page_out_requests, 5);
        world.close();
    }

    #[test]
    fn a_page_joins_a_neighbour_that_is_still_being_written() {
        let mut world = world(4);
        world.config(|config| (config.free_low, config.free_high) = (1, 1));
        world.write_all([1, 9, 3]).disk_holds().write(20);
        world.write(21).disk_goes_on().run();
        world.write_all(32..40);
        world.expect_slots([(1, 1), (3, 3), (9, 5)]);
        world.close();
    }

    #[test]
    fn a_neighbour_that_is_being_written_can_be_read_and_not_written() {
        let mut world = world(4);
        world
            .write_all(0..4)
            .disk_holds()
            .write(8)
            .expect_waiting(1);
        world.touch(1).expect_waiting(1);
        world.write(2).expect_waiting(2);
        world.disk_goes_on().run();
        world.expect_waiting(0).expect_resident([1, 2, 3, 8]);
        world.close();
    }

    #[test]
    fn a_neighbour_given_up_while_it_is_written_is_gone_from_its_place_too() {
        let mut world = world(4);
        world.write_all(0..4).disk_holds().write(8).touch(1);
        world.discard(1, 2).disk_goes_on().run();
        world.expect_slots_used(2).touch(1);
        world.close();
    }

    #[test]
    fn a_write_that_fails_leaves_pages_in_memory_and_their_places_free() {
        let mut world = world(4);
        world.write_all(0..4).disk_fails_next_store().write(8);
        world.expect_store_events([Event::StoreFailed]);
        world.write_all(9..13);
        world.expect_slots([(0, 0), (1, 1), (2, 2), (3, 3)]);
        world.close();
    }
}

mod blocks {
    use super::*;

    #[test]
    fn a_block_is_free_when_no_page_is_in_it() {
        let mut world = world(1);
        world.write_all([0, 1, 4, 8]);
        world.expect_slots([(0, 0), (1, 1), (4, 4)]);
        world.discard(0, 1).write_all([12, 16]);
        world.expect_slots([(1, 1), (4, 4), (8, 8), (12, 12)]);
        world.discard(1, 1).write(20);
        world.expect_slots([(16, 0)]);
        world.close();
    }

    #[test]
    fn without_a_free_block_any_slot_will_do_and_nothing_is_lost() {
        let mut world = world(1);
        world.swap_slots(8).write_all([0, 4, 8, 12, 16]);
        // The blocks of the first two, and what is free in them.
        world.expect_slots([(0, 0), (4, 4)]).expect_slots_used(4);
        world.write_all([1, 2, 3, 20]).expect_slots_used(8);
        world.expect_store_events([]);
        world.touch_all([0, 1, 2, 3, 4, 8, 12, 16]);
        world.close();
    }

    #[test]
    fn a_store_without_a_slot_is_full() {
        let mut world = world(2);
        world.swap_slots(2).write_all([0, 4, 8, 12]);
        world.write(16).expect_store_events([Event::StoreFull]);
        world.touch_all([0, 4]);
    }

    #[test]
    fn each_side_of_a_fork_has_blocks_of_its_own() {
        let mut world = world(4);
        world.write_all(0..4).fork().write_all([0, 8, 9, 10, 11]);
        world.in_space(1).write_all([0, 12, 13, 14, 15, 16]);
        // What nobody wrote since is shared.
        let shared = [(1, 1), (2, 2), (3, 3)];
        world.expect_slots([(0, 12)]).expect_slots(shared);
        world
            .in_space(0)
            .expect_slots([(0, 4)])
            .expect_slots(shared);
        world.in_space(1).touch_all(0..4);
        world.in_space(0).touch_all(0..4);
        world.close();
    }

    #[test]
    fn what_a_child_leaves_behind_is_merged_with_the_blocks_it_has() {
        let mut world = world(4);
        world
            .write_all(0..8)
            .fork()
            .write_all([1, 3, 9, 10, 11, 12]);
        world.in_space(1).exit().in_space(0);
        world
            .write_all([0, 1, 2, 3])
            .write_all(16..24)
            .touch_all(0..16);
        world.close();
    }
}

mod page_ins {
    use super::*;

    /// Eight pages on the store in two blocks, and free memory.
    fn stored(advice: Advice) -> World {
        let mut world = world(8);
        world.write_all(0..8).write_all(16..32).discard(16, 16);
        world.advise(0, 8, advice).forget_log();
        world
    }

    #[test]
    fn without_advice_the_next_page_of_the_cluster_comes_along() {
        let mut world = stored(Advice::Normal);
        world.touch(1).expect_log("in 0:1+2");
        world.forget_log().touch(3).expect_log("in 0:3");
        world.close();
    }

    #[test]
    fn advice_tells_which_part_of_the_cluster_comes() {
        for (advice, expected) in [
            (Advice::Sequential, "in 0:5+3"),
            (Advice::Reverse, "in 0:4+2"),
            (Advice::Random, "in 0:5"),
        ] {
            let mut world = stored(advice);
            world.touch(5).expect_log(expected);
            world.close();
        }
    }

    #[test]
    fn what_is_not_on_the_store_or_not_beside_ends_what_comes_along() {
        let mut world = world(1);
        world
            .write_all([4, 5, 7, 16])
            .advise(4, 4, Advice::Sequential);
        world.forget_log().touch(4).expect_log("out 0:16; in 0:4");
        world.close();
    }

    #[test]
    fn pages_of_files_come_by_clusters_too() {
        let mut world = world(8);
        world.map_file(16).touch(FILE + 1);
        world.expect_resident([FILE + 1, FILE + 2]);
        world
            .touch(FILE + 3)
            .expect_resident([FILE + 1, FILE + 2, FILE + 3]);
        world.close();
    }
}
