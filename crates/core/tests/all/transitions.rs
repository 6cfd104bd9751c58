//! Every transition of a frame: free, filling, resident, leaving, retired, and back.
//!
//! ```text
//!            fetch               reply            chosen, modified
//!   free ------------> filling ---------> resident ----------------> leaving
//!    ^  \ zero, copy, adopt ---------------^  ^ |                     |   |
//!    |                    `-- failed, gone    | | chosen, clean; gone |   |
//!    `----------------------------------------+-'                     |   |
//!    `---------------------------------- stored, nobody came ---------'   |
//!    |                                        `-- touched, failed, full --'
//!    v
//!  retired: below the limit no more; free again when the limit rises
//! ```

use tidemark_core::event::{Event, Failure};
use tidemark_core::memory::frame::State;
use tidemark_model::world::{FILE, World};

#[test]
fn free_to_resident_by_zeros() {
    let mut world = World::new();
    world.frames(2).expect_frames(State::Free, 2);
    world
        .touch(10)
        .expect_frames(State::Free, 1)
        .expect_frames(State::Resident, 1);
    world.expect_log("zero 0:10");
    world.close();
}

#[test]
fn free_to_filling_to_resident_by_a_fetch() {
    let mut world = World::new();
    world.frames(1).write(10).touch(11).forget_log();
    world
        .disk_holds()
        .touch(10)
        .expect_frames(State::Filling, 1)
        .expect_waiting(1);
    world
        .disk_goes_on()
        .expect_frames(State::Resident, 1)
        .expect_waiting(0);
    world.expect_resident([10]).expect_log("drop 0:11; in 0:10");
    world.close();
}

#[test]
fn free_to_resident_by_a_copy() {
    let mut world = World::new();
    world.frames(2).write(10).fork().forget_log();
    world
        .write(10)
        .expect_frames(State::Resident, 2)
        .expect_log("copy 1:10");
    world.close();
}

#[test]
fn free_to_resident_by_adoption() {
    let mut world = World::new();
    world
        .frames(2)
        .appear(10)
        .adopt(0)
        .expect_frames(State::Resident, 1)
        .expect_log("adopt 0:10");
    world.touch(10);
    world.close();
}

#[test]
fn filling_to_free_when_the_fetch_fails() {
    let mut world = World::new();
    world.frames(1).write(10).touch(11).forget_log();
    world.disk_fails_next_fetch().touch(10);
    world
        .expect_failed([(10, Failure::PagerFailed)])
        .expect_frames(State::Free, 1);
    world.touch(10).expect_resident([10]);
    world.close();
}

#[test]
fn filling_to_free_when_its_page_is_unmapped() {
    let mut world = World::new();
    world
        .frames(1)
        .write(10)
        .touch(11)
        .disk_holds()
        .touch(10)
        .expect_frames(State::Filling, 1);
    world
        .unmap(10, 1)
        .expect_frames(State::Filling, 1)
        .expect_slots_used(1);
    world
        .disk_goes_on()
        .expect_frames(State::Free, 1)
        .expect_slots_used(0)
        .expect_waiting(0);
    world.close();
}

#[test]
fn filling_to_resident_by_zeros_when_the_pager_has_nothing() {
    let mut world = World::new();
    world.frames(2).map_file(4);
    world.stage();
    world.touch(FILE + 3).expect_frames(State::Resident, 1);
    world.close();
}

#[test]
fn resident_to_free_when_the_page_reads_as_zeros() {
    let mut world = World::new();
    world
        .frames(1)
        .touch(10)
        .touch(11)
        .expect_log("zero 0:10; drop 0:10; zero 0:11");
    world.expect_slots_used(0).expect_count(|c| c.zero_pages, 1);
    world.close();
}

#[test]
fn resident_to_free_when_the_store_has_the_page() {
    let mut world = World::new();
    world.frames(1).write(10).touch(11).touch(10).forget_log();
    world
        .touch(11)
        .expect_log("drop 0:10; zero 0:11")
        .expect_count(|c| c.clean_drops, 1);
    world.close();
}

#[test]
fn resident_to_free_when_its_owner_gives_it_up() {
    let mut world = World::new();
    world
        .frames(3)
        .write_all(10..13)
        .unmap(10, 1)
        .expect_frames(State::Free, 1);
    world.discard(11, 1).expect_frames(State::Free, 2);
    world
        .unmap_unseen(12, 1)
        .touch_all([20, 21, 22])
        .expect_resident([20, 21, 22]);
    world.expect_slots_used(0);
    world.close();
}

#[test]
fn resident_to_leaving_to_free() {
    let mut world = World::new();
    world
        .frames(1)
        .write(10)
        .disk_holds()
        .touch(11)
        .expect_frames(State::Leaving, 1);
    world
        .expect_waiting(1)
        .disk_goes_on()
        .expect_frames(State::Resident, 1);
    world
        .expect_log("zero 0:10; out 0:10; zero 0:11")
        .expect_resident([11]);
    world.close();
}

#[test]
fn leaving_to_resident_when_it_is_touched() {
    let mut world = World::new();
    world
        .frames(2)
        .write(10)
        .touch(11)
        .disk_holds()
        .touch(12)
        .expect_frames(State::Leaving, 1);
    world.touch(10).expect_waiting(2).forget_log();
    world
        .disk_goes_on()
        .expect_waiting(0)
        .expect_count(|c| c.reactivations, 1);
    world
        .expect_count(|c| c.page_ins, 0)
        .expect_resident([10, 12]);
    world.expect_log("keep 0:10; drop 0:11; zero 0:12");
    world.close();
}

#[test]
fn a_rescued_page_that_is_not_written_again_leaves_clean() {
    let mut world = World::new();
    world
        .frames(2)
        .write(10)
        .touch(11)
        .disk_holds()
        .touch(12)
        .touch(10)
        .disk_goes_on();
    world
        .forget_log()
        .touch_all([13, 14])
        .expect_count(|c| c.page_outs, 1);
    world.expect_log("drop 0:10; zero 0:13; drop 0:12; zero 0:14");
    world.close();
}

#[test]
fn leaving_to_resident_when_the_store_fails() {
    let mut world = World::new();
    world
        .frames(2)
        .write(10)
        .touch(11)
        .forget_log()
        .disk_fails_next_store()
        .touch(12);
    world
        .expect_resident([10, 12])
        .expect_store_events([Event::StoreFailed]);
    world.expect_log("out 0:10; keep 0:10; drop 0:11; zero 0:12");
    world.touch(10);
    world.close();
}

#[test]
fn leaving_to_resident_when_the_store_is_full() {
    let mut world = World::new();
    world
        .frames(2)
        .swap_slots(1)
        .write_all([10, 11, 12])
        .expect_slots_used(1);
    world.expect_store_events([]).forget_log();
    world.write(13).expect_failed([(13, Failure::StoreFull)]);
    world.expect_store_events([Event::StoreFull]);
    world.unmap(11, 1).write(13).expect_failed([]);
    world.close();
}

#[test]
fn leaving_to_free_when_its_page_is_unmapped() {
    let mut world = World::new();
    world
        .frames(1)
        .write(10)
        .disk_holds()
        .touch(11)
        .unmap(10, 1);
    world.expect_frames(State::Leaving, 1).expect_slots_used(1);
    world
        .disk_goes_on()
        .expect_resident([11])
        .expect_slots_used(0);
    world.close();
}

#[test]
fn leaving_to_resident_when_it_is_pinned() {
    let mut world = World::new();
    world
        .frames(2)
        .write_all([10, 11])
        .pin(10)
        .forget_log()
        .touch(12);
    world.expect_count(|c| c.busy, 1).expect_resident([10, 12]);
    world.expect_log("keep 0:10; out 0:11; zero 0:12");
    world.unpin().retry_pinned(1).touch_all([13, 14]);
    world.expect_resident([13, 14]);
    world.close();
}

#[test]
fn free_to_retired_and_back() {
    let mut world = World::new();
    world
        .frames(4)
        .touch(10)
        .limit(2)
        .expect_frames(State::Retired, 2);
    world
        .expect_frames(State::Free, 1)
        .limit(4)
        .expect_frames(State::Free, 3);
    world.close();
}

#[test]
fn resident_frames_retire_as_their_pages_leave() {
    let mut world = World::new();
    world.frames(4).write_all(10..14).disk_holds().limit(1);
    world
        .expect_frames(State::Retired, 0)
        .expect_frames(State::Leaving, 3);
    world
        .disk_goes_on()
        .expect_frames(State::Retired, 3)
        .expect_frames(State::Resident, 1);
    world
        .limit(4)
        .expect_frames(State::Free, 3)
        .touch_all(10..14)
        .expect_resident(10..14);
    world.close();
}

#[test]
fn filling_to_retired_when_the_limit_falls_meanwhile() {
    let mut world = World::new();
    world
        .frames(2)
        .write_all([10, 11])
        .touch_all([12, 13])
        .disk_holds()
        .touch_all([10, 11]);
    world
        .expect_frames(State::Filling, 2)
        .limit(1)
        .disk_goes_on()
        .tick()
        .run();
    world
        .expect_frames(State::Retired, 1)
        .expect_frames(State::Resident, 1);
    world.close();
}
