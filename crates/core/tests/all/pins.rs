//! Pages that the machine can't unmap: for a while, or for good.

use tidemark_core::memory::frame::State;
use tidemark_model::world::World;

/// So many times in a row make a pin lasting, the first included.
const TRIES_LASTING: u32 = 4;

fn pinned(world: &mut World) -> u32 {
    world.stage().vm().pinned()
}

#[test]
fn found_f2_pages_pinned_for_good_leave_room_for_others() {
    let mut world = World::new();
    world.frames(8).write_all(10..18);
    (10..18).for_each(|page| {
        world.pin(page);
    });
    // Nothing can leave, and what can't is tried some times before it is left to its program.
    world
        .forget_log()
        .touch(20)
        .expect_count(|c| c.disowned, 2)
        .expect_count(|c| c.busy, 8);
    assert_eq!(pinned(&mut world), 6);
    // Two frames are left for all other pages, and nobody asks about the pinned ones for them.
    world
        .write_all(30..40)
        .touch_all(30..40)
        .expect_count(|c| c.busy, 8)
        .expect_count(|c| c.disowned, 2);
    world.touch_all(10..18);
    world.close();
}

#[test]
fn found_f2_pages_that_were_disowned_come_back_when_they_can_be_moved() {
    let mut world = World::new();
    world.frames(8).write_all(10..18);
    (10..18).for_each(|page| {
        world.pin(page);
    });
    world.touch(20).expect_count(|c| c.disowned, 2);
    // They can't be moved yet, and there is no room for more that can't.
    world.adopt(2).expect_count(|c| c.disowned, 4);
    world.unpin().adopt(0).expect_count(|c| c.disowned, 4);
    world.retry_pinned(1).touch_all(10..18).touch_all(30..40);
    assert_eq!(pinned(&mut world), 0);
    world.close();
}

#[test]
fn found_f2_a_pinned_page_is_tried_again_after_pauses_that_grow() {
    let mut world = World::new();
    world.frames(4).write_all(10..14).pin(10).touch(14);
    let due = |world: &mut World| world.stage().vm().poll_deadline().unwrap().0;
    let mut last = due(&mut world);
    let mut pauses = Vec::new();
    for tries in 2..20 {
        world.retry_pinned(1);
        pauses.push(due(&mut world) - last);
        last = due(&mut world);
        assert_eq!(pinned(&mut world), u32::from(tries >= TRIES_LASTING));
    }
    let first: Vec<u64> = (1..5).map(|doublings| 1_000_000 << doublings).collect();
    assert_eq!(pauses[..4], first);
    assert!(pauses.is_sorted() && pauses[16] == pauses[17]);
    // The policy has been asked about it once, and can name it when it may leave.
    world.expect_count(|c| c.busy, 1).unpin().retry_pinned(1);
    assert_eq!(world.stage().vm().poll_deadline(), None);
    world.touch_all(20..24).expect_resident(20..24);
    world.close();
}

#[test]
fn found_f2_a_memory_that_shrinks_below_what_is_pinned_disowns_the_rest() {
    let mut world = World::new();
    world.frames(16).write_all(10..26);
    (10..22).for_each(|page| {
        world.pin(page);
    });
    world.limit(15).write_all(30..60).retry_pinned(60);
    assert_eq!(pinned(&mut world), 12);
    world.limit(8).expect_count(|c| c.disowned, 6);
    assert_eq!(pinned(&mut world), 6);
    world.disk_goes_on().expect_frames(State::Retired, 8);
    world.touch_all(10..40);
    world.close();
}

#[test]
fn found_f2_a_page_that_its_owner_gives_up_is_pinned_no_more() {
    let mut world = World::new();
    world.frames(4).write_all(10..14).pin(10).touch(14);
    world.retry_pinned(TRIES_LASTING - 1);
    assert_eq!(pinned(&mut world), 1);
    world.discard(10, 1);
    assert_eq!(pinned(&mut world), 0);
    assert_eq!(world.stage().vm().poll_deadline(), None);
    world.touch(10).close();
}

#[test]
fn found_f2_a_page_shared_since_a_fork_is_not_disowned() {
    let mut world = World::new();
    world.frames(4).write(10).fork().touch(10).pin(10);
    world.in_space(1).touch_all([10, 11, 12]);
    world.in_space(0).pin(10).limit(3);
    world.touch_all(20..30).retry_pinned(TRIES_LASTING + 1);
    world.expect_count(|c| c.disowned, 0);
    world.in_space(1).touch(10).write(10);
    world.close();
}

#[test]
fn found_f2_while_nothing_can_be_unmapped_nothing_more_is_tried() {
    let mut world = World::new();
    world.frames(8).write_all(10..18).disk_holds();
    world.machine_halts().touch(20).expect_waiting(1);
    world.expect_count(|c| c.busy, 1).expect_resident(10..18);
    assert_eq!(world.stage().vm().poll_deadline(), None);
    world.machine_goes_on().tick().disk_goes_on();
    world.expect_waiting(0).touch(20).close();
}
