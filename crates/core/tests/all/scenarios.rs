//! Scenarios: prose over a scripted world. What is read is compared with the law at every step, so
//! the expectations here are about what the core does, not about contents.

use tidemark_core::event::{Event, Failure};
use tidemark_core::memory::address_space::Advice;
use tidemark_core::memory::frame::State;
use tidemark_core::seams::machine::Rights;
use tidemark_model::machine::Kind;
use tidemark_model::physical::Stamp;
use tidemark_model::stage::Act;
use tidemark_model::world::{FILE, World};

mod forks {
    use super::*;

    #[test]
    fn the_parent_writes_and_the_child_reads_what_was() {
        let mut world = World::new();
        world
            .write(10)
            .fork()
            .forget_log()
            .write(10)
            .expect_log("copy 1:10");
        world
            .in_space(1)
            .touch(10)
            .expect_count(|c| c.cow_faults, 1);
        world.close();
    }

    #[test]
    fn the_child_writes_and_the_parent_reads_what_was() {
        let mut world = World::new();
        world
            .write(10)
            .fork()
            .in_space(1)
            .forget_log()
            .write(10)
            .expect_log("copy 1:10");
        world
            .in_space(0)
            .touch(10)
            .expect_count(|c| c.cow_faults, 1);
        world.close();
    }

    #[test]
    fn a_page_on_the_store_is_read_in_before_it_is_copied() {
        let mut world = World::new();
        world
            .frames(2)
            .write(10)
            .touch_all([11, 12])
            .fork()
            .forget_log()
            .write(10);
        world.expect_log("drop 0:11; in 0:10; drop 0:12; copy 1:10");
        world.in_space(1).touch(10);
        world.close();
    }

    #[test]
    fn the_last_one_left_writes_without_a_copy() {
        let mut world = World::new();
        world
            .write(10)
            .fork()
            .in_space(1)
            .exit()
            .in_space(0)
            .write(10);
        world.expect_count(|c| c.cow_faults, 0);
        world.close();
    }

    #[test]
    fn a_shadow_is_merged_with_what_it_shadows_when_the_other_side_ends() {
        let mut world = World::new();
        world
            .write_all([10, 11])
            .fork()
            .write(10)
            .expect_frames(State::Resident, 3);
        // The child's exit leaves the parent's page 10, and page 11 from below.
        world
            .in_space(1)
            .exit()
            .in_space(0)
            .expect_frames(State::Resident, 2);
        world
            .expect_resident([10, 11])
            .write_all([10, 11])
            .expect_count(|c| c.cow_faults, 1);
        world.close();
    }

    #[test]
    fn generations_of_forks_keep_their_contents_apart() {
        let mut world = World::new();
        world.frames(3).write_all([10, 11, 12]);
        for generation in 0..5 {
            world
                .in_space(generation)
                .fork()
                .write(10)
                .in_space(generation + 1)
                .write(11);
        }
        for generation in 0..5 {
            world.in_space(generation).touch_all([10, 11, 12]).exit();
        }
        world
            .in_space(5)
            .touch_all([10, 11, 12])
            .write_all([10, 11, 12]);
        world.close();
    }

    #[test]
    fn what_one_side_discards_the_other_keeps() {
        let mut world = World::new();
        world.write_all([10, 11]).fork().discard(10, 1).touch(10);
        world
            .in_space(1)
            .touch(10)
            .discard(11, 1)
            .touch(11)
            .in_space(0)
            .touch(11);
        world.close();
    }

    #[test]
    fn pages_that_show_through_from_below_move_with_their_region() {
        let mut world = World::new();
        world
            .write_all([10, 11])
            .fork()
            .write(10)
            .touch(11)
            .remap(10, 2000, 2);
        world
            .touch_all([2000, 2001])
            .expect_refused(10, Act::Read)
            .in_space(1);
        world.touch_all([10, 11]);
        world.close();
    }

    #[test]
    fn a_fork_in_two_frames_with_everybody_waiting_comes_to_an_end() {
        let mut world = World::new();
        world.frames(2).write_all(10..14).fork().disk_holds();
        for page in 10..14 {
            world.in_space(0).write(page).in_space(1).write(page);
        }
        world.run().expect_waiting(0).expect_failed([]);
        world.close();
    }
}

mod mappings {
    use super::*;

    #[test]
    fn memory_mapped_again_reads_as_zeros() {
        let mut world = World::new();
        world
            .write_all([10, 11])
            .unmap(10, 1)
            .expect_refused(10, Act::Read)
            .map(10, 1)
            .touch(10);
        world.close();
    }

    #[test]
    fn rights_taken_away_are_gone_at_once_and_come_back() {
        let mut world = World::new();
        world.write(10).protect(10, 1, Rights::Read).touch(10);
        world
            .expect_refused(10, Act::Write(Stamp(1)))
            .protect(10, 1, Rights::None);
        world
            .expect_refused(10, Act::Read)
            .protect(10, 1, Rights::Write)
            .write(10);
        world.close();
    }

    #[test]
    fn a_pinned_page_cannot_keep_rights_that_its_owner_gives_up() {
        let mut world = World::new();
        world
            .write(10)
            .pin(10)
            .protect(10, 1, Rights::None)
            .expect_refused(10, Act::Read);
        world.protect(10, 1, Rights::Write).touch(10);
        world.close();
    }

    #[test]
    fn a_page_adopted_where_nothing_may_be_touched_is_not_mapped() {
        let mut world = World::new();
        world
            .appear(10)
            .protect(10, 1, Rights::None)
            .adopt(0)
            .expect_refused(10, Act::Read);
        world.protect(10, 1, Rights::Read).touch(10);
        world.close();
    }

    #[test]
    fn a_moved_page_is_found_on_the_store() {
        let mut world = World::new();
        world
            .frames(1)
            .write(10)
            .touch(11)
            .remap(10, 2000, 1)
            .touch(2000);
        world.expect_count(|c| c.page_ins, 1);
        world.close();
    }

    #[test]
    fn a_page_moved_while_it_leaves_is_rescued_where_it_is_now() {
        let mut world = World::new();
        world
            .frames(2)
            .write(10)
            .touch(11)
            .disk_holds()
            .touch(12)
            .remap(10, 2000, 1)
            .touch(2000);
        world
            .disk_goes_on()
            .expect_count(|c| c.reactivations, 1)
            .expect_resident([12, 2000]);
        world.close();
    }

    #[test]
    fn a_page_moved_while_it_is_read_comes_where_it_is_now() {
        let mut world = World::new();
        world.frames(1).write(10).touch(11).disk_holds().touch(10);
        world.stage().take_failures();
        world
            .remap(10, 2000, 1)
            .disk_goes_on()
            .expect_waiting(0)
            .touch(2000);
        world.expect_count(|c| c.page_ins, 1);
        world.close();
    }

    #[test]
    fn contents_discarded_while_they_leave_are_gone() {
        let mut world = World::new();
        world
            .frames(1)
            .write(10)
            .disk_holds()
            .touch(11)
            .discard(10, 1)
            .disk_goes_on();
        world
            .touch(10)
            .expect_slots_used(0)
            .expect_count(|c| c.page_ins, 0);
        world.close();
    }

    #[test]
    fn what_is_written_after_a_rescue_is_what_comes_back() {
        let mut world = World::new();
        world
            .frames(2)
            .write(10)
            .touch(11)
            .disk_holds()
            .touch(12)
            .write(10)
            .disk_goes_on();
        world
            .touch_all([13, 14, 10])
            .expect_count(|c| c.page_outs, 2);
        world.close();
    }

    #[test]
    fn a_page_that_stands_already_wins_over_zeros_put_there_ahead() {
        let mut world = World::new();
        world
            .frames(8)
            .config(|config| config.zero_ahead_pages_max = 4)
            .appear(12);
        world
            .touch_all([10, 11])
            .expect_resident([10, 11, 12])
            .touch(12)
            .adopt(0);
        world.close();
    }

    #[test]
    fn adoption_waits_until_there_is_a_frame() {
        let mut world = World::new();
        world
            .frames(2)
            .appear(10)
            .appear(11)
            .appear(12)
            .disk_holds()
            .adopt(1);
        world
            .disk_goes_on()
            .adopt(0)
            .expect_count(|c| c.adopted_pages, 3)
            .touch_all([10, 11, 12]);
        world.close();
    }
}

mod clusters {
    use super::*;

    /// Eight pages on the store in consecutive slots, nothing of them in memory.
    fn stored() -> World {
        let mut world = World::new();
        world.frames(8).config(|config| {
            (config.cluster_pages, config.default_cluster_pages) = (8, 1);
            (config.free_low, config.free_high) = (0, 8);
        });
        world
            .write_all(16..24)
            .touch(100)
            .run()
            .touch_all(101..109)
            .forget_log();
        world
    }

    #[test]
    fn pages_that_leave_together_are_written_in_one_request() {
        let mut world = stored();
        world
            .expect_count(|c| c.page_outs, 8)
            .expect_count(|c| c.page_out_requests, 1);
        world.close();
    }

    #[test]
    fn a_reader_who_goes_on_is_read_ahead_for() {
        let mut world = stored();
        world
            .touch_all([16, 17, 18])
            .expect_log("in 0:16; in 0:17+2; soft 0:18");
        world.touch_all(19..24);
        world
            .expect_count(|c| c.page_in_requests, 4)
            .expect_count(|c| c.page_ins, 8);
        world.close();
    }

    #[test]
    fn a_reader_who_goes_down_is_read_behind_for() {
        let mut world = stored();
        world.touch_all((16..24).rev());
        world
            .expect_count(|c| c.page_in_requests, 4)
            .expect_count(|c| c.page_ins, 8);
        world.close();
    }

    #[test]
    fn random_advice_reads_one_page_at_a_time() {
        let mut world = stored();
        world.advise(16, 8, Advice::Random).touch_all(16..24);
        world.expect_count(|c| c.page_in_requests, 8);
        world.close();
    }

    #[test]
    fn sequential_advice_opens_the_window_at_once() {
        let mut world = stored();
        world.advise(16, 8, Advice::Sequential).touch(16);
        world
            .expect_count(|c| c.page_ins, 8)
            .expect_count(|c| c.page_in_requests, 1);
        world.close();
    }

    #[test]
    fn pages_are_zeroed_ahead_of_one_who_walks_up() {
        let mut world = World::new();
        world
            .frames(16)
            .config(|config| config.zero_ahead_pages_max = 4);
        world
            .touch_all(10..20)
            .expect_log("zero 0:10; zero 0:11+2; zero 0:13+4; zero 0:17+4");
        world.close();
    }

    #[test]
    fn pages_mapped_ahead_cost_no_fault_but_one_in_each_window() {
        let mut world = World::new();
        world.frames(64).config(|config| {
            (config.cluster_pages, config.default_cluster_pages) = (4, 1);
            (config.ahead_pages_max, config.is_ahead_mapped) = (8, true);
        });
        world.write_all(100..164).touch_all(300..364).forget_log();
        for page in 100..132 {
            world.touch(page).run();
        }
        let log = world.stage().take_decisions();
        let count = |verb: &str| log.iter().filter(|line| line.starts_with(verb)).count();
        // It is waited for until its window is as large as a cluster, and from then on never.
        assert_eq!((count("in "), count("soft ")), (5, 5), "{log:?}");
        world.close();
    }
}

mod forks_and_clusters {
    use super::*;

    #[test]
    fn pages_read_ahead_across_a_fork_are_mapped_for_reading_only() {
        let mut world = World::new();
        world.frames(64).config(|config| {
            (config.cluster_pages, config.default_cluster_pages) = (4, 1);
            (config.ahead_pages_max, config.is_ahead_mapped) = (8, true);
        });
        world
            .write_all(100..164)
            .touch_all(300..364)
            .touch_all(100..110);
        world
            .disk_holds()
            .touch(111)
            .fork()
            .disk_goes_on()
            .write_all(112..116);
        world.in_space(1).touch_all(112..116);
        world.close();
    }
}

mod stores {
    use super::*;

    #[test]
    fn a_store_that_fails_for_good_fails_the_faults_and_not_the_contents() {
        let mut world = World::new();
        world
            .frames(2)
            .write_all([10, 11])
            .disk_fails_stores(8)
            .disk_holds()
            .touch(12)
            .run();
        let failures = world.stage().take_failures();
        assert!(
            failures
                .iter()
                .all(|failed| failed.2 == Failure::StoreFailed),
            "{failures:?}"
        );
        world.touch_all([10, 11]);
        world.close();
    }

    #[test]
    fn the_store_says_that_it_is_full_once() {
        let mut world = World::new();
        world.frames(2).swap_slots(2).write_all([10, 11, 12, 13]);
        world
            .write(14)
            .write(15)
            .expect_store_events([Event::StoreFull]);
        world.expect_failed([(14, Failure::StoreFull), (15, Failure::StoreFull)]);
        world.close();
    }

    #[test]
    fn nobody_is_disturbed_for_a_full_store_unless_a_frame_is_needed() {
        let mut world = World::new();
        world
            .frames(8)
            .swap_slots(2)
            .config(|config| (config.free_low, config.free_high) = (2, 4));
        world.write_all(10..20);
        world.touch_all(14..18).forget_log();
        for _ in 0..3 {
            world.tick().touch_all(14..18).expect_log("");
        }
        // Nor for a page that stands there and has no frame yet.
        world.appear(40);
        for _ in 0..3 {
            world.adopt(1).touch_all(14..18).expect_log("");
        }
        world.discard(14, 3).write_all(30..33).expect_failed([]);
        world.close();
    }

    #[test]
    fn a_full_store_gives_up_copies_of_pages_in_memory() {
        let mut world = World::new();
        // Page 10 is in memory and on the store: its slot can be had for page 11.
        world
            .frames(2)
            .swap_slots(1)
            .write(10)
            .touch_all([11, 12])
            .touch(10)
            .write(11);
        world.touch(12).touch(13).touch(11).expect_failed([]);
        world.close();
    }

    #[test]
    fn a_read_that_fails_can_be_repeated() {
        let mut world = World::new();
        world
            .frames(1)
            .write(10)
            .touch(11)
            .disk_fails_next_fetch()
            .touch(10);
        world
            .expect_failed([(10, Failure::PagerFailed)])
            .touch(10)
            .expect_resident([10]);
        world.close();
    }

    #[test]
    fn everybody_who_waits_for_a_page_fails_when_it_does() {
        let mut world = World::new();
        world
            .frames(1)
            .write(10)
            .touch(11)
            .disk_fails_next_fetch()
            .disk_holds();
        world.touch_all([10, 10]).run();
        let failed = (10, Failure::PagerFailed);
        world.expect_failed([failed, failed]);
        world.close();
    }
}

mod files {
    use super::*;

    #[test]
    fn a_file_is_read_and_written_by_its_own_pager() {
        let mut world = World::new();
        world
            .frames(2)
            .map_file(4)
            .touch(FILE)
            .write(FILE + 1)
            .touch_all([10, 11]);
        world
            .expect_slots_used(0)
            .touch(FILE + 1)
            .expect_count(|c| c.page_outs, 1);
        world.close();
    }

    #[test]
    fn both_sides_of_a_fork_see_what_either_writes_to_a_file() {
        let mut world = World::new();
        world
            .map_file(4)
            .fork()
            .write(FILE)
            .in_space(1)
            .touch(FILE)
            .write(FILE)
            .in_space(0);
        world.touch(FILE).expect_count(|c| c.cow_faults, 0);
        world.close();
    }

    #[test]
    fn a_file_that_cannot_be_written_keeps_its_page_in_memory() {
        let mut world = World::new();
        world
            .frames(2)
            .map_file(4)
            .write(FILE)
            .touch(10)
            .file_fails_next_store()
            .touch(11);
        world.touch(FILE).expect_store_events([Event::StoreFailed]);
        world.close();
    }

    #[test]
    fn a_file_that_cannot_be_read_fails_its_reader() {
        let mut world = World::new();
        world.map_file(4).file_fails_next_fetch().touch(FILE);
        world
            .expect_failed([(FILE, Failure::PagerFailed)])
            .touch(FILE);
        world.close();
    }
}

mod machines {
    use super::*;

    #[test]
    fn a_page_written_back_to_what_the_store_has_is_clean_without_bits() {
        for (kind, page_outs) in [(Kind::SoftFaults, 1), (Kind::Bits, 2)] {
            let mut world = World::new();
            world.frames(1).machine(kind).write(10).touch(11).run();
            let space = world
                .stage()
                .memory()
                .spaces()
                .next()
                .expect("there is one");
            let at = tidemark_core::id::VirtPage(10);
            let same = world
                .stage()
                .memory()
                .contents(space, at)
                .expect("it is mapped");
            world.touch(10);
            world.stage().touch(space, at, Act::Write(same));
            world.touch(11).expect_count(|c| c.page_outs, page_outs);
            world.close();
        }
    }

    #[test]
    fn a_page_in_use_is_found_by_soft_faults() {
        let mut world = World::new();
        world
            .frames(3)
            .policy("clock")
            .machine(Kind::SoftFaults)
            .touch_all([10, 11, 12]);
        world
            .touch(13)
            .forget_log()
            .touch(11)
            .expect_log("soft 0:11")
            .touch(14);
        world.expect_resident([11, 13, 14]);
        world.close();
    }
}

mod limits {
    use super::*;

    #[test]
    fn memory_shrinks_as_fast_as_pages_can_be_written() {
        let mut world = World::new();
        world
            .frames(8)
            .write_all(10..18)
            .limit(2)
            .run()
            .expect_frames(State::Retired, 6);
        world.touch_all(10..18).expect_frames(State::Retired, 6);
        world.limit(8).touch_all(10..18).expect_resident(10..18);
        world.close();
    }

    #[test]
    fn memory_may_shrink_to_a_few_frames_at_once_under_any_policy() {
        use rayon::prelude::*;
        use tidemark_core::policies;
        use tidemark_model::machine::Kind;
        let policies = policies::entries()
            .par_iter()
            .map(|entry| entry.description);
        let shown = policies.filter(|policy| policy.sees.is_shown_live());
        shown.for_each(|policy| {
            for kind in [Kind::Bits, Kind::SoftFaults] {
                let mut world = World::new();
                world.policy(policy.name).machine(kind).frames(120);
                // Most pages are used again and again, so that they are trusted.
                for lap in 0..3 {
                    world.write_all(10..110);
                    world.touch_all(120 + lap * 30..150 + lap * 30);
                }
                world.limit(4).run().touch_all(10..40);
                world.limit(120).run().touch_all(10..40);
                world.close();
            }
        });
    }

    #[test]
    fn nothing_is_lost_when_the_limit_moves_while_pages_are_in_transit() {
        let mut world = World::new();
        world
            .frames(6)
            .write_all(10..16)
            .disk_holds()
            .limit(2)
            .touch_all([20, 21])
            .limit(6);
        world
            .write_all([12, 22])
            .limit(3)
            .disk_goes_on()
            .run()
            .touch_all(10..16);
        world.close();
    }
}

mod loads {
    use super::*;
    use tidemark_core::id::SpaceId;
    use tidemark_core::load::{Description, LoadControl, LoadView, Verdict, unlimited};

    /// Suspends whoever has taken more than four faults, and resumes it at the next tick.
    struct Strict;

    impl LoadControl for Strict {
        fn describe(&self) -> &'static Description {
            &unlimited::DESCRIPTION
        }

        fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
            let suspended = view.spaces.iter().find(|load| load.is_suspended);
            let greedy = view.spaces.iter().find(|load| load.faults > 4);
            verdicts.extend(match (suspended, greedy) {
                (Some(load), _) => Some(Verdict::Resume(load.space)),
                (None, Some(load)) => Some(Verdict::Suspend(load.space)),
                (None, None) => None,
            });
        }
    }

    #[test]
    fn verdicts_of_load_control_reach_whoever_runs_the_programs() {
        let mut world = World::new();
        world.stage().set_load_control(Box::new(Strict));
        world.touch_all(10..14).tick();
        assert_eq!(world.stage().take_load_events(), []);
        world.touch(14).tick().tick();
        let space = SpaceId(0);
        let expected = [Event::Suspend { space }, Event::Resume { space }];
        assert_eq!(world.stage().take_load_events(), expected);
        world.close();
    }
}
