//! Scenarios of Linux's swap read-ahead: what is read with a page that is wanted.

use tidemark_core::kernels::SwapAhead;
use tidemark_model::world::World;

/// Pages 16 to 19 and 24 to 27, which left in turns, so that slots 0 to 7 hold 16, 24, 17, 25 and
/// so on. Nothing of them is in memory, which has 16 frames.
fn stored(swap_ahead: SwapAhead) -> World {
    let mut world = World::new();
    world.frames(16).policy("fifo").config(|config| {
        config.cluster_pages = 8;
        config.kernel.swap_ahead = swap_ahead;
    });
    world
        .write_all((0..4).flat_map(|number| [16 + number, 24 + number]))
        .touch_all(100..116)
        .run()
        .expect_slots([(16, 0), (24, 1), (17, 2), (25, 3), (19, 6), (27, 7)])
        .discard(100, 16)
        .forget_log();
    world
}

#[test]
fn a_block_of_slots_is_read_whatever_addresses_it_holds() {
    let mut world = stored(SwapAhead::Block(4));
    world.touch(17).run().expect_resident([16, 17, 24, 25]);
    // All in one request, for they are beside each other there.
    world.expect_count(|c| c.page_in_requests, 1);
    world.expect_log("ahead 0:16; ahead 0:24; in 0:17; ahead 0:25");
    world.touch(24).expect_count(|c| c.read_ahead_used, 1);
    world.close();
}

#[test]
fn a_block_ends_at_its_first_free_slot() {
    let mut world = stored(SwapAhead::Block(8));
    // The slot of page 17 is free: what lies behind it is not read, but for what is wanted.
    world.discard(17, 1).forget_log();
    world.touch(26).run().expect_resident([16, 24, 26]);
    world.close();
}

#[test]
fn a_block_grows_and_shrinks_with_what_was_of_use() {
    let mut world = stored(SwapAhead::Slots(8));
    // The first is wide, for nothing is known yet.
    world.touch(17).run();
    world.expect_resident([16, 17, 18, 19, 24, 25, 26, 27]);
    world.close();
}

#[test]
fn nothing_is_read_along_where_nothing_was_of_use() {
    let mut world = stored(SwapAhead::Slots(2));
    world.touch(16).run().expect_resident([16, 24]);
    world.touch(19).run().expect_resident([16, 19, 24]);
    world.close();
}

#[test]
fn a_window_by_address_lies_around_the_page() {
    let mut world = stored(SwapAhead::Addresses(4));
    world.touch(17).run().expect_resident([16, 17, 18, 19]);
    world
        .touch_all(18..20)
        .expect_count(|c| c.read_ahead_used, 2);
    world.touch(25).run();
    world.expect_resident([16, 17, 18, 19, 24, 25, 26, 27]);
    world.close();
}

#[test]
fn a_window_by_address_goes_the_way_of_the_program() {
    let mut world = World::new();
    world.frames(16).policy("fifo").config(|config| {
        config.cluster_pages = 8;
        config.kernel.swap_ahead = SwapAhead::Addresses(4);
    });
    world.write_all(16..26).touch_all(100..116).run();
    world.discard(100, 16).forget_log();
    // What is beside each other on the store comes in one request.
    world.touch(17).run().expect_log("in 0:16+4");
    world.touch_all(18..20).touch(20).run();
    world.expect_resident(16..24);
    world.touch_all([21, 25]).run();
    world.expect_resident(16..26);
    world.close();
}

#[test]
fn what_is_read_along_may_be_given_up_on_its_way() {
    let mut world = stored(SwapAhead::Addresses(4));
    world.disk_holds().touch(17).exit();
    world.disk_goes_on().run();
    world.expect_slots_used(0).close();
}
