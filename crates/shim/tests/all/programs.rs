//! The preload library in programs: this test binary runs itself with the library loaded, in less
//! memory than it needs, and checks what the program says and what the engine counted.

use std::time::{Duration, Instant};

use tidemark_live::control;

use crate::managed::{PAGE, Ran, run};

fn assert_paged(ran: &Ran, memory_mib: u64) {
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    let count = |name: &str| ran.counters[name];
    assert!(
        count("page_outs") > 0 && count("page_ins") > 0,
        "{:?}",
        ran.counters
    );
    assert!(
        count("frames_peak") <= memory_mib * 256,
        "{:?}",
        ran.counters
    );
    assert!(count("managed_regions") > 0);
}

#[test]
fn a_program_larger_than_its_memory_sees_what_it_wrote() {
    let Some(ran) = run("program_scans", 16, &[]) else {
        return;
    };
    assert_paged(&ran, 16);
}

#[test]
fn threads_share_an_engine() {
    let Some(ran) = run("program_threads", 16, &[]) else {
        return;
    };
    assert_paged(&ran, 16);
}

#[test]
fn in_thread_mode_serves_the_same_programs() {
    let mode = [(control::MODE, control::MODE_IN_THREAD)];
    for program in [
        "program_scans",
        "program_threads",
        "program_forks",
        "program_remaps",
    ] {
        let Some(ran) = run(program, 16, &mode) else {
            return;
        };
        assert_paged(&ran, 16);
    }
}

#[test]
fn in_thread_mode_no_signal_wakes_the_engine() {
    let mode = [(control::MODE, control::MODE_IN_THREAD)];
    if let Some(ran) = run("program_signals_itself", 16, &mode) {
        assert!(ran.status.success(), "{}", ran.stderr);
    }
}

#[test]
fn parent_and_child_of_a_fork_each_keep_their_own() {
    let Some(ran) = run("program_forks", 16, &[]) else {
        return;
    };
    assert_paged(&ran, 16);
}

#[test]
fn the_address_space_calls_keep_their_meaning() {
    let Some(ran) = run("program_remaps", 16, &[]) else {
        return;
    };
    assert_paged(&ran, 16);
}

#[test]
fn pages_taken_back_do_not_drive_out_what_is_taken_for_present() {
    let Some(ran) = run("program_locks_and_unlocks", 4, &[]) else {
        return;
    };
    assert_paged(&ran, 4);
    assert!(ran.counters["adopted_pages"] > 0, "{:?}", ran.counters);
}

#[test]
fn memory_that_moves_while_mappings_are_read_is_not_taken_for_new() {
    let Some(ran) = run("program_moves_under_scans", 4, &[]) else {
        return;
    };
    assert_paged(&ran, 4);
}

#[test]
fn memory_that_shrinks_while_it_is_found_keeps_what_it_holds() {
    let Some(ran) = run("program_shrinks_and_grows", 4, &[]) else {
        return;
    };
    assert_paged(&ran, 4);
}

#[test]
fn a_full_store_ends_the_program_with_one_line() {
    let Some(ran) = run("program_scans", 16, &[(control::SWAP_BYTES, "4194304")]) else {
        return;
    };
    assert!(!ran.status.success());
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("tidemark:"))
        .collect();
    assert_eq!(lines.len(), 1, "{}", ran.stderr);
    assert!(
        lines[0].contains("swap store of 4 MiB is full"),
        "{}",
        lines[0]
    );
}

#[test]
fn a_disk_that_takes_no_more_ends_the_program_with_one_line() {
    let Some(ran) = run("program_scans", 16, &[(control::FAULT, "writes-from:3")]) else {
        return;
    };
    assert!(!ran.status.success());
    assert!(
        ran.stderr.contains("writing the swap file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn settings_that_mean_nothing_leave_the_program_unmanaged() {
    let Some(ran) = run("program_small", 16, &[(control::POLICY, "no-such-policy")]) else {
        return;
    };
    assert!(ran.status.success());
    assert!(
        ran.stderr.contains("TIDEMARK_POLICY is `no-such-policy`"),
        "{}",
        ran.stderr
    );
}

/// 48 MiB, written and read three times over.
#[test]
#[ignore = "a program that the tests above run"]
fn program_scans() {
    let mut words = vec![0u64; 6 << 20];
    for (at, word) in words.iter_mut().enumerate() {
        *word = value(at, 0);
    }
    for round in 0..3 {
        for (at, word) in words.iter_mut().enumerate() {
            assert_eq!(*word, value(at, round));
            *word = value(at, round + 1);
        }
    }
}

/// Gets as many signals as in-thread mode has faults, and watches how often other threads sleep.
#[test]
#[ignore = "a program that the tests above run"]
fn program_signals_itself() {
    const SIGNALS: u64 = 100_000;
    extern "C" fn take(_: i32) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, take as *const () as libc::sighandler_t) };
    let before = sleeps_of_others();
    for _ in 0..SIGNALS {
        // SAFETY: it is handled above.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    let sleeps = sleeps_of_others() - before;
    assert!(sleeps < SIGNALS / 20, "{sleeps} sleeps");
}

/// The number of times that the threads beside this one have gone to sleep.
fn sleeps_of_others() -> u64 {
    // SAFETY: takes no arguments.
    let own = unsafe { libc::gettid() }.to_string();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let others = tasks.filter(|task| task.file_name().to_str() != Some(&own));
    let count = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    let statuses =
        others.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    statuses.map(count).sum()
}

/// Four threads with 12 MiB each, touched out of order. They may be confined meanwhile, and never
/// see that.
#[test]
#[ignore = "a program that the tests above run"]
fn program_threads() {
    let threads: Vec<_> = (0..4u64)
        .map(|seed| {
            std::thread::spawn(move || {
                let allowed = processors();
                let pages = 12 << 8;
                let mut bytes = vec![0u8; pages * PAGE];
                let mut at = seed as usize;
                for step in 0..3 * pages {
                    at = (at * 1_103 + 12_345 + step) % pages;
                    let expected = bytes[at * PAGE];
                    bytes[at * PAGE + 9] = expected;
                    bytes[at * PAGE] = expected.wrapping_add(1);
                    assert_eq!(bytes[at * PAGE + 9].wrapping_add(1), bytes[at * PAGE]);
                    // Seldom: nobody is confined for a while after each look.
                    if step % 2048 == 0 {
                        assert_eq!(processors(), allowed);
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// The processors that the calling thread may use, by the C library.
fn processors() -> Vec<u64> {
    let mut set = [0u64; 16];
    // SAFETY: the set is as large as is said.
    let answer = unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) };
    assert_eq!(answer, 0);
    set.to_vec()
}

/// A parent of 24 MiB whose children read it, change it, and fork once more.
#[test]
#[ignore = "a program that the tests above run"]
fn program_forks() {
    let mut words = vec![0u64; 3 << 20];
    for round in 0..3 {
        words
            .iter_mut()
            .enumerate()
            .for_each(|(at, word)| *word = value(at, round));
        let child = fork(|| {
            let is_same = words
                .iter()
                .enumerate()
                .all(|(at, word)| *word == value(at, round));
            words
                .iter_mut()
                .enumerate()
                .for_each(|(at, word)| *word = value(at, 77));
            let grandchild = fork(|| {
                words
                    .iter()
                    .enumerate()
                    .all(|(at, word)| *word == value(at, 77))
            });
            is_same && ends_well(grandchild)
        });
        words[5] = 5;
        assert!(ends_well(child));
        words[5] = value(5, round);
        assert!(
            words
                .iter()
                .enumerate()
                .all(|(at, word)| *word == value(at, round))
        );
    }
}

/// mremap, madvise, mprotect, munmap and MAP_FIXED over 24 MiB of memory.
#[test]
#[ignore = "a program that the tests above run"]
fn program_remaps() {
    const SIZE: usize = 24 << 20;
    let is_number = |start: *mut u8, page: usize, number: usize| {
        // SAFETY: callers stay inside what is mapped.
        unsafe { *start.add(page * PAGE).cast::<usize>() == number }
    };
    for _ in 0..2 {
        // SAFETY: private mappings of this function's own; every access stays inside them.
        unsafe {
            let start = map(std::ptr::null_mut(), SIZE, 0);
            let pages = SIZE / PAGE;
            for page in 0..pages {
                *start.add(page * PAGE).cast::<usize>() = page + 1;
            }
            let start = libc::mremap(start.cast(), SIZE, 2 * SIZE, libc::MREMAP_MAYMOVE);
            assert_ne!(start, libc::MAP_FAILED);
            let start = start.cast::<u8>();
            assert!((0..pages).all(|page| is_number(start, page, page + 1)));
            assert!((pages..2 * pages).all(|page| is_number(start, page, 0)));
            libc::madvise(start.cast(), SIZE / 2, libc::MADV_DONTNEED);
            assert!((0..pages / 2).all(|page| is_number(start, page, 0)));
            libc::mprotect(start.cast(), SIZE, libc::PROT_READ);
            assert!((pages / 2..pages).all(|page| is_number(start, page, page + 1)));
            libc::mprotect(start.cast(), SIZE, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(map(start, SIZE / 4 * 3, libc::MAP_FIXED), start);
            assert!((0..pages / 4 * 3).all(|page| is_number(start, page, 0)));
            assert!((pages / 4 * 3..pages).all(|page| is_number(start, page, page + 1)));
            assert_eq!(libc::munmap(start.cast(), 2 * SIZE), 0);
        }
    }
}

/// Makes every fourth page of a mapping read-only, so that the engine gives them up where they
/// stand, and then writable again. Taking them back takes frames of the pages between, which have
/// been read in and not written since, and leave at once.
#[test]
#[ignore = "a program that the tests above run"]
fn program_locks_and_unlocks() {
    const PAGES: usize = 1536;
    let start = map(std::ptr::null_mut(), PAGES * PAGE, 0);
    let tag = |page: usize| value(page, 3);
    let word = |page: usize| start.wrapping_add(page * PAGE).cast::<u64>();
    // SAFETY: inside the mapping, here and below.
    (0..PAGES).for_each(|page| unsafe { word(page).write_volatile(tag(page)) });
    let check = |first: usize, step: usize| {
        for page in (first..PAGES).step_by(step) {
            // SAFETY: as above.
            let found = unsafe { word(page).read_volatile() };
            assert_eq!(found, tag(page), "page {page}");
        }
    };
    let protect = |page: usize, pages: usize, rights: i32| {
        // SAFETY: inside the mapping; nobody writes to what is read-only.
        let answer = unsafe { libc::mprotect(word(page).cast(), pages * PAGE, rights) };
        assert_eq!(answer, 0);
    };
    for _ in 0..3 {
        (0..PAGES)
            .step_by(4)
            .for_each(|page| protect(page, 1, libc::PROT_READ));
        (0..4).for_each(|_| check(0, 1));
        protect(0, PAGES, libc::PROT_READ | libc::PROT_WRITE);
        let end = Instant::now() + Duration::from_millis(2300);
        while Instant::now() < end {
            (1..4).for_each(|first| check(first, 4));
        }
    }
    check(0, 1);
}

/// Moves memory about without a pause, while another thread has the engine read the list of
/// mappings all the time.
#[test]
#[ignore = "a program that the tests above run"]
fn program_moves_under_scans() {
    const PAGES: usize = 2;
    const BLOCKS: usize = 1024;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let tag = |block: usize, page: usize| value(block * PAGES + page, 9);
    let word = |start: *mut u64, page: usize| start.wrapping_add(page * PAGE / 8);
    let move_blocks = |end: Instant, thread: usize| {
        let new = |_| map(std::ptr::null_mut(), PAGES * PAGE, 0).cast::<u64>();
        let mut blocks: Vec<*mut u64> = (0..BLOCKS).map(new).collect();
        for (block, &start) in blocks.iter().enumerate() {
            // SAFETY: inside the mapping, here and below.
            (0..PAGES).for_each(|page| unsafe { *word(start, page) = tag(block + thread, page) });
        }
        while Instant::now() < end {
            for step in 0..3 * BLOCKS {
                let start = &mut blocks[step % BLOCKS];
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let (bytes, to) = (PAGES * PAGE, map_unseen(PAGES * PAGE));
                // SAFETY: both are mappings of this function's own; the block goes on at `to`.
                let moved = unsafe { libc::mremap(start.cast(), bytes, bytes, flags, to) };
                assert_eq!(moved, to.cast());
                *start = to.cast();
            }
            for (block, &start) in blocks.iter().enumerate() {
                for page in 0..PAGES {
                    // SAFETY: as above.
                    let found = unsafe { *word(start, page) };
                    assert_eq!(
                        found,
                        tag(block + thread, page),
                        "page {page} of block {block}"
                    );
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(relaxed) {
                let start = map_unseen(16 * PAGE);
                std::thread::sleep(Duration::from_micros(300));
                // SAFETY: mapped just now.
                unsafe { libc::munmap(start.cast(), 16 * PAGE) };
            }
        });
        let end = Instant::now() + Duration::from_secs(4);
        let movers = [0, 2000].map(|thread| scope.spawn(move || move_blocks(end, thread)));
        let ended = movers.map(|mover| mover.join());
        is_over.store(true, relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
}

/// Makes mappings that the engine finds by itself, whose ends go and come back meanwhile, as the
/// end of a heap does.
#[test]
#[ignore = "a program that the tests above run"]
fn program_shrinks_and_grows() {
    const PAGES: usize = 64;
    const BLOCKS: usize = 200;
    let tag = |block: usize, page: usize| value(block * PAGES + page, 5);
    let pause = |number: usize| {
        let micros = number.wrapping_mul(0x9e37_79b9) >> 7 & 127;
        std::thread::sleep(Duration::from_micros(micros as u64));
    };
    let end = Instant::now() + Duration::from_secs(4);
    let mut round = 0;
    while Instant::now() < end {
        let mut blocks = Vec::new();
        for block in 0..BLOCKS {
            let start = map_unseen(PAGES * PAGE);
            pause(round + 2 * block);
            let kept = 1 + (block * 7) % (PAGES - 1);
            let (rest, bytes) = (start.wrapping_add(kept * PAGE), (PAGES - kept) * PAGE);
            // SAFETY: the end of the mapping just made, which is made anew.
            unsafe { libc::munmap(rest.cast(), bytes) };
            pause(round + 2 * block + 1);
            assert_eq!(map_unseen_at(rest, bytes), rest);
            for page in 0..PAGES {
                // SAFETY: inside the two mappings, here and below.
                unsafe { *start.wrapping_add(page * PAGE).cast() = tag(block, page) };
            }
            blocks.push(start);
        }
        for (block, &start) in blocks.iter().enumerate() {
            for page in 0..PAGES {
                // SAFETY: as above.
                let found: u64 = unsafe { *start.wrapping_add(page * PAGE).cast() };
                assert_eq!(found, tag(block, page), "page {page} of block {block}");
            }
            // SAFETY: mapped above, by two calls.
            unsafe { libc::munmap(start.cast(), PAGES * PAGE) };
        }
        round += 1;
    }
}

/// Nothing much.
#[test]
#[ignore = "a program that the tests above run"]
fn program_small() {
    assert_eq!(vec![1u8; 10].len(), 10);
}

fn value(at: usize, round: u64) -> u64 {
    (at as u64 ^ round << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn map(at: *mut u8, bytes: usize, flags: i32) -> *mut u8 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, or one over memory of the caller's own.
    let start = unsafe { libc::mmap(at.cast(), bytes, rights, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast()
}

/// A mapping that the library's `mmap` hears nothing of.
fn map_unseen(bytes: usize) -> *mut u8 {
    map_unseen_at(std::ptr::null_mut(), bytes)
}

/// The same at a place where nothing is, if one is given.
fn map_unseen_at(at: *mut u8, bytes: usize) -> *mut u8 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let place = if at.is_null() {
        0
    } else {
        libc::MAP_FIXED_NOREPLACE
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | place;
    // SAFETY: a new mapping.
    let start = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, rights, flags, -1, 0) };
    assert_ne!(start, -1);
    start as *mut u8
}

/// Runs `body` in a forked child, which exits well if it answers true.
fn fork(body: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child uses memory and forks, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let is_well = body();
        // SAFETY: ends the child without running the test harness's ends.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    child
}

fn ends_well(child: i32) -> bool {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    let answer = unsafe { libc::waitpid(child, &raw mut status, 0) };
    answer == child && status == 0
}
