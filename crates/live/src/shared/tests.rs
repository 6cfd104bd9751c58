use tidemark_partition as share;

use super::owned::PART_WORDS;
use super::*;

fn open_again(shared: &Shared) -> Shared {
    Shared::open(shared.as_fd().try_clone_to_owned().unwrap()).unwrap()
}

#[test]
fn the_record_has_room_for_all_counters_and_histograms() {
    const { assert!(CLUSTERS_AT + 2 * CLUSTER_BUCKETS <= PROCESS_BYTES / 8) };
}

#[test]
fn what_one_process_writes_the_other_reads() {
    let ours = Shared::create(1000, 64).unwrap();
    let theirs = open_again(&ours);
    let index = ours.claim().unwrap();
    theirs
        .process(index)
        .start(17, 1, "a-program-with-a-long-name", 5);
    theirs
        .process(index)
        .counter(Counter::PageIns)
        .store(9, Relaxed);
    theirs.process(index).set_resident(12);
    let process = ours.process(index);
    assert_eq!(
        (process.pid(), process.parent(), process.start_ns()),
        (17, 1, 5)
    );
    assert_eq!(process.name(), "a-program-with-a");
    assert_eq!(process.counter(Counter::PageIns).load(Relaxed), 9);
    assert_eq!((ours.frames_resident(), ours.frames_peak()), (12, 12));
    assert_eq!((theirs.swap_slots(), theirs.frames_total()), (1000, 64));
}

/// Memory given to others is memory that the supervisor finds free: an engine that has just taken
/// over more, and has had no turn to say what it uses, must not be overlooked.
#[test]
fn an_engine_never_uses_more_than_it_is_known_to_hold() {
    const ROUNDS: u32 = 20_000;
    let ours = Shared::create(1, 64).unwrap();
    let theirs = open_again(&ours);
    let index = ours.claim().unwrap();
    ours.process(index).set_budget(1);
    let (used, is_over) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let process = theirs.process(index);
            while is_over.load(Relaxed) == 0 {
                let budget = process.follow_budget((1, 64));
                // From here to the end of the turn it may take this many.
                used.store(u64::from(budget), SeqCst);
                std::hint::spin_loop();
                process.set_resident(u64::from(budget));
                process.set_understood(budget);
            }
        });
        let process = ours.process(index);
        let mut excess = 0;
        for round in 0..ROUNDS {
            assert!(process.change_budget(1, 64));
            (0..round % 64).for_each(|_| std::hint::spin_loop());
            assert!(process.change_budget(64, 1));
            let held = 1.max(process.understood());
            let held = held.max(process.counter(Counter::FramesResident).load(Relaxed));
            // What it may use of what it was lowered from it must have said by now.
            (0..64).for_each(|_| std::hint::spin_loop());
            excess += u64::from(held == 1 && used.load(SeqCst) > 1);
            while process.understood() > 1 {
                std::thread::yield_now();
            }
        }
        is_over.store(1, Relaxed);
        assert_eq!(excess, 0, "of {ROUNDS} times");
    });
}

/// Frames in use are known once the engine has said so: to follow a lower budget, and then one that
/// is a little higher, in the same turn, says nothing of what came to it before.
#[test]
fn what_is_in_use_counts_until_less_is_said_though_budgets_go_down_and_up() {
    let shared = Shared::create(1, 2048).unwrap();
    let process = shared.process(shared.claim().unwrap());
    let held = || {
        let resident = process.counter(Counter::FramesResident).load(Relaxed);
        process
            .understood()
            .max(resident)
            .max(process.budget().into())
    };
    process.set_budget(1024);
    process.follow_budget((1, 2048));
    let in_use = 700;
    assert!(process.change_budget(1024, 256));
    process.follow_budget((1, 2048));
    shared.release_unassigned(64);
    assert_eq!(process.take_unassigned(1, 64), 64);
    let budget = process.follow_budget((1, 2048));
    assert_eq!(budget, 320);
    assert!(held() >= in_use, "{} of {in_use}", held());
    process.set_resident(in_use);
    process.set_understood(budget);
    assert_eq!(held(), in_use);
}

#[test]
fn a_child_owns_what_its_parent_owns_and_release_gives_back_once() {
    let shared = Shared::create(130, 64).unwrap();
    let parent = shared.claim().unwrap();
    for slot in [0, 64, 129] {
        assert!(shared.take_slot(&shared.slot_refs()[slot]));
        shared.owned(parent).insert(slot as u32);
    }
    let child = shared.claim_child(parent).unwrap();
    assert_ne!(parent, child);
    assert_eq!(shared.slot_refs()[129].load(Relaxed), 2);
    shared.release(parent);
    assert_eq!(
        (shared.slot_refs()[64].load(Relaxed), shared.slots_used()),
        (1, 3)
    );
    shared.release(child);
    assert_eq!(
        (shared.slot_refs()[0].load(Relaxed), shared.slots_used()),
        (0, 0)
    );
    assert_eq!(shared.processes().count(), 0);
}

#[test]
fn found_f3_the_slots_of_a_process_are_found_in_the_parts_it_has_used() {
    let slots = 64 * PART_WORDS as u32 * 70;
    let shared = Shared::create(slots, 64).unwrap();
    let parent = shared.claim().unwrap();
    let last = slots - 1;
    for slot in [5, last] {
        assert!(shared.take_slot(&shared.slot_refs()[slot as usize]));
        shared.owned(parent).insert(slot);
    }
    let child = shared.claim_child(parent).unwrap();
    assert_eq!(shared.owned(child).words_used().count(), 2 * PART_WORDS);
    assert!(shared.owned(child).remove(last) && !shared.owned(child).remove(last));
    assert_eq!(shared.owned(child).words_used().count(), 2 * PART_WORDS);
    shared.release(parent);
    assert_eq!(shared.owned(parent).words_used().count(), 0);
    assert_eq!(shared.slot_refs()[5].load(Relaxed), 1);
}

#[test]
fn found_f9_what_nobody_has_is_taken_by_one_engine_only() {
    let ours = Shared::create(1, 1000).unwrap();
    let theirs = open_again(&ours);
    let index = ours.claim().unwrap();
    ours.process(index).set_budget(10);
    let process = theirs.process(index);
    assert_eq!(process.take_unassigned(1, 50), 0, "nothing was released");
    ours.release_unassigned(60);
    assert_eq!(process.take_unassigned(61, 100), 0);
    assert_eq!(process.take_unassigned(1, 50), 50);
    assert_eq!((process.take_unassigned(1, 50), process.budget()), (10, 70));
    assert_eq!(theirs.unassigned(), 0);
}

/// Memory divided is memory that no process has: an engine that takes some meanwhile must not be
/// given it twice.
#[test]
fn found_f9_what_is_taken_while_it_is_divided_is_never_had_twice() {
    const TOTAL: u64 = 64;
    let ours = Shared::create(1, TOTAL).unwrap();
    let theirs = open_again(&ours);
    let index = ours.claim().unwrap();
    const ROUNDS: u64 = 2000;
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let process = theirs.process(index);
            for round in 1..=ROUNDS {
                while begun.load(Acquire) < round {
                    std::thread::yield_now();
                }
                (0..8).for_each(|_| _ = process.take_unassigned(1, 7));
                ended.store(round, Release);
            }
        });
        let process = ours.process(index);
        for round in 1..=ROUNDS {
            process.set_budget(1);
            ours.release_unassigned(TOTAL / 2);
            begun.store(round, Release);
            (0..round % 64).for_each(|_| std::hint::spin_loop());
            ours.hold_unassigned();
            let budget = process.budget();
            ours.release_unassigned(TOTAL - u64::from(budget));
            while ended.load(Acquire) < round {
                std::thread::yield_now();
            }
            assert!(u64::from(process.budget()) + ours.unassigned() <= TOTAL);
        }
    });
}

#[test]
fn what_nobody_has_is_not_taken_while_it_is_divided() {
    let ours = Shared::create(1, 1000).unwrap();
    let process = ours.process(ours.claim().unwrap());
    ours.release_unassigned(60);
    ours.hold_unassigned();
    assert_eq!((ours.unassigned(), ours.is_dividing()), (0, true));
    assert_eq!((process.take_unassigned(1, 50), process.budget()), (0, 0));
    ours.release_unassigned(60);
    assert_eq!((ours.unassigned(), ours.is_dividing()), (60, false));
    assert_eq!(process.take_unassigned(1, 50), 50);
}

#[test]
fn a_child_is_born_with_no_more_than_it_may_use() {
    let shared = Shared::create(1, 4096).unwrap();
    let parent = shared.process(shared.claim().unwrap());
    let fork = |budget, used, is_late| {
        parent.set_budget(budget);
        let index = shared.claim().unwrap();
        let child = shared.process(index);
        let part = parent.endow(&child, used, is_late);
        let has = (u64::from(child.budget()), child.understood());
        let resident = child.counter(Counter::FramesResident).load(Relaxed);
        assert_eq!(has, (part.unwrap_or(0).into(), part.unwrap_or(0).into()));
        shared.release(index);
        (part, resident, parent.budget())
    };
    assert_eq!(fork(1000, 500, false), (Some(500), 500, 500));
    assert_eq!(fork(1000, 501, false), (None, 0, 1000));
    assert_eq!(fork(1000, 600, true), (Some(500), 500, 500));
    // What is not used suffices.
    let needed = share::needs_at_fork(300) as u32;
    let left = share::left_at_fork(2048, 300).unwrap() as u32;
    assert_eq!(fork(2048, 300, false), (Some(needed), 300, left));
    parent.set_budget(1000);
    assert!(!parent.can_endow(300));
    // Unassigned frames suffice.
    shared.release_unassigned(needed.into());
    assert!(parent.can_endow(300));
    assert_eq!(fork(1000, 300, false), (Some(needed), 300, 1000));
    assert_eq!(shared.unassigned(), 0);
    shared.release_unassigned(4096);
    shared.hold_unassigned();
    assert_eq!(fork(1000, 600, false), (None, 0, 1000));
}

/// A supervisor that looks at budgets while a process forks may count frames twice, and must never
/// take them for unassigned.
#[test]
fn frames_are_never_had_twice_by_a_fork_amid_a_division() {
    const TOTAL: u32 = 4096;
    const ROUNDS: u64 = 2000;
    let ours = Shared::create(1, TOTAL.into()).unwrap();
    let theirs = open_again(&ours);
    let index = ours.claim().unwrap();
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                while begun.load(Acquire) < round {
                    std::thread::yield_now();
                }
                let child = theirs.claim().unwrap();
                let used = (round % 1000) as u32;
                let child = theirs.process(child);
                theirs.process(index).endow(&child, used, false);
                ended.store(round, Release);
            }
        });
        let parent = ours.process(index);
        for round in 1..=ROUNDS {
            parent.set_budget(TOTAL / 2);
            ours.release_unassigned((TOTAL / 2).into());
            begun.store(round, Release);
            (0..round % 64).for_each(|_| std::hint::spin_loop());
            ours.hold_unassigned();
            let before = parent.budget();
            let children = || ours.processes().filter(|(other, _)| *other != index);
            let held: u32 = children().map(|(_, child)| child.budget()).sum();
            // One that gives up pages at once: what it uses is not looked at here.
            let is_lower = round % 2 == 0 && parent.change_budget(before, before / 2);
            let kept = if is_lower { before / 2 } else { before };
            ours.release_unassigned(TOTAL.saturating_sub(kept + held).into());
            while ended.load(Acquire) < round {
                std::thread::yield_now();
            }
            let held: u32 = children().map(|(_, child)| child.budget()).sum();
            let all = u64::from(parent.budget() + held) + ours.unassigned();
            assert!(all <= TOTAL.into(), "{all} of {TOTAL} in round {round}");
            let gone: Vec<ProcessIndex> = children().map(|(child, _)| child).collect();
            gone.into_iter().for_each(|child| ours.release(child));
        }
    });
}

#[test]
fn buckets_hold_what_they_say() {
    for ns in (64..5000).chain([1 << 30, (1 << 30) + (1 << 29), 1 << 37]) {
        let bucket = bucket_of(ns);
        assert!(
            bucket_floor_ns(bucket) <= ns && ns < bucket_floor_ns(bucket + 1),
            "{ns}"
        );
    }
    assert_eq!(
        (bucket_of(0), bucket_of(u64::MAX)),
        (0, LATENCY_BUCKETS - 1)
    );
    let mut counts = [0; LATENCY_BUCKETS];
    counts[bucket_of(1000)] = 99;
    counts[bucket_of(100_000)] = 1;
    assert!((900..1200).contains(&percentile_ns(&counts, 500)));
    assert!(percentile_ns(&counts, 1000) > 90_000);
    assert_eq!(percentile_ns(&[0; 4], 500), 0);
}

#[test]
fn foreign_memory_is_refused() {
    let other = Area::create("other", 8192).unwrap();
    let file = other.fd().unwrap().try_clone_to_owned().unwrap();
    assert!(Shared::open(file).is_err());
}
