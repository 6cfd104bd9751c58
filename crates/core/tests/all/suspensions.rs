//! Spaces that are taken out of memory as a whole, and what they had comes back.

use tidemark_core::id::SpaceId;
use tidemark_model::world::World;

/// Pages of a space that were used in no order.
const SCATTERED: [u64; 8] = [17, 12, 30, 10, 11, 25, 14, 21];

fn scattered(frames: u32) -> World {
    let mut world = World::new();
    world.frames(frames).config(|config| {
        config.cluster_pages = 4;
        config.is_ahead_mapped = true;
    });
    world.write_all(SCATTERED).forget_log();
    world
}

#[test]
fn what_a_suspended_space_had_leaves_whole_and_comes_back_as_it_lies_with_the_store() {
    let mut world = scattered(8);
    let had = world.stage().suspend(SpaceId(0));
    assert_eq!(had.len(), SCATTERED.len());
    world.run().run().expect_resident([]).forget_log();
    assert_eq!(world.stage().resume(SpaceId(0), &had), 0);
    let requests = world.stage().vm().counters().page_in_requests;
    assert_eq!(requests, 2, "four pages each, though none are neighbours");
    world
        .run()
        .expect_resident([10, 11, 12, 14, 17, 21, 25, 30]);
    world.forget_log().touch_all(SCATTERED).expect_log("");
    world.close();
}

#[test]
fn nothing_leaves_for_what_comes_back_after_a_suspension() {
    let mut world = scattered(8);
    let had = world.stage().suspend(SpaceId(0));
    world.run().run().limit(5);
    // Two are there by themselves, and one is no more.
    world.stage().resume(SpaceId(0), &[]);
    world.touch(17).touch(40).run().unmap(30, 1);
    assert_eq!(world.stage().resume(SpaceId(0), &had), 3);
    world.run().expect_count(|it| it.page_outs, 8);
    assert_eq!(world.stage().vm().frames().in_use(), 5);
    world.close();
}
