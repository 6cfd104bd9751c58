//! Memory that a program lends to the kernel: this test binary runs itself with the library loaded,
//! in less memory than it lends, and checks that it ends as natively.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use tidemark_live::control;

use crate::managed::{FOLDER, LIMIT, PAGE, REFUSED, run};

const MIB: usize = 1 << 20;

#[test]
fn found_f2_registered_buffers_larger_than_memory_are_stated_and_let_be() {
    let Some(ran) = run("program_registers", 16, &[]) else {
        return;
    };
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    let count = |name: &str| ran.counters[name];
    let all = (20 * MIB / PAGE) as u64;
    assert!(count("frames_peak") <= 16 * 256, "{:?}", ran.counters);
    assert!(count("pinned_pages_peak") >= all, "{:?}", ran.counters);
    // More than does not fit, and no more than that and the eighth that others need.
    let over = count("over_budget_pages_peak");
    let fitting = all - 16 * 256;
    assert!(
        (fitting..=fitting + 2 * 256 + 256).contains(&over),
        "{over}"
    );
    let [line] = ran.lines()[..] else {
        panic!("{}", ran.stderr)
    };
    assert!(
        line.contains("can't be moved") && line.contains("over the budget"),
        "{line}"
    );
    // They have come back when they were registered no more.
    assert!(count("over_budget_pages") < over / 2, "{:?}", ran.counters);
}

#[test]
fn found_f2_a_signal_ends_a_program_that_pins_all_its_memory() {
    let Some(ran) = run("program_registers_until_it_is_killed", 16, &[]) else {
        return;
    };
    assert_eq!(ran.status.signal(), Some(libc::SIGTERM), "{}", ran.stderr);
}

#[test]
fn found_f2_a_program_in_step_ends_that_pins_all_its_memory() {
    let settings = [(control::IN_STEP, "1")];
    let Some(ran) = run("program_registers_for_good", 16, &settings) else {
        return;
    };
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    let over = (4 * MIB / PAGE) as u64;
    assert!(
        ran.counters["over_budget_pages_peak"] >= over,
        "{:?}",
        ran.counters
    );
    let [line] = ran.lines()[..] else {
        panic!("{}", ran.stderr)
    };
    assert!(line.contains("can't be moved"), "{line}");
}

#[test]
fn found_f2_transfers_under_way_of_more_than_memory_end() {
    let Some(ran) = run("program_transfers", 8, &[]) else {
        return;
    };
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    assert!(ran.counters["frames_peak"] <= 8 * 256, "{:?}", ran.counters);
}

#[test]
fn found_f2_locking_more_than_memory_ends_as_natively() {
    let Some(ran) = run("program_locks", 16, &[]) else {
        return;
    };
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    assert!(ran.counters["frames_peak"] <= 16 * 256);
}

#[test]
fn found_f2_what_lies_in_a_pipe_stays_what_was_put_there() {
    let Some(ran) = run("program_lends_to_pipes", 16, &[]) else {
        return;
    };
    assert!(ran.status.success(), "{:?}: {}", ran.status, ran.stderr);
    assert!(ran.counters["page_outs"] > 0, "{:?}", ran.counters);
}

/// Maps so many MiB.
fn map(mib: usize) -> &'static mut [u64] {
    let (rights, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, of which nobody else knows, and which stays.
    unsafe {
        let start = libc::mmap(null_mut(), mib * MIB, rights, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(start.cast(), mib * MIB / 8)
    }
}

fn fill(words: &mut [u64], round: u64) {
    for (at, word) in words.iter_mut().enumerate() {
        *word = at as u64 * 7 + round;
    }
}

fn check(words: &[u64], round: u64) {
    let is_right = |(at, word): (usize, &u64)| *word == at as u64 * 7 + round;
    assert!(words.iter().enumerate().all(is_right));
}

/// Tells whether the kernel did what a system call asked for; else says so and ends.
fn permitted(what: &str, answer: libc::c_long) -> libc::c_long {
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        eprintln!("{REFUSED} {what}: {error}");
        std::process::exit(0);
    }
    answer
}

/// An io_uring, to register buffers with.
fn ring() -> libc::c_long {
    // The parameters of `io_uring_setup`: 120 bytes, of which zeros ask for nothing.
    let mut parameters = [0u64; 15];
    // SAFETY: the kernel fills in the parameters.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    permitted("io_uring_setup", ring)
}

fn register(ring: libc::c_long, words: &mut [u64]) {
    const REGISTER_BUFFERS: u32 = 0;
    let buffer = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: size_of_val(words),
    };
    let call = libc::SYS_io_uring_register;
    // SAFETY: the buffer is mapped for good.
    let answer = unsafe { libc::syscall(call, ring, REGISTER_BUFFERS, &raw const buffer, 1) };
    permitted("io_uring_register", answer);
}

fn unregister(ring: libc::c_long) {
    const UNREGISTER_BUFFERS: u32 = 1;
    let call = libc::SYS_io_uring_register;
    // SAFETY: takes no memory.
    let answer = unsafe { libc::syscall(call, ring, UNREGISTER_BUFFERS, 0, 0) };
    assert_eq!(answer, 0);
}

fn resident_pages() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Registers 20 MiB, uses as much beside, and lets them go.
#[test]
#[ignore = "a program that the tests above run"]
fn program_registers() {
    let (ring, lent, other) = (ring(), map(20), map(20));
    fill(lent, 1);
    register(ring, lent);
    for round in 0..2 {
        fill(other, round);
        check(other, round);
        check(lent, 1);
    }
    let pinned = resident_pages();
    unregister(ring);
    let end = Instant::now() + LIMIT / 2;
    while resident_pages() + 3 * 256 > pinned {
        assert!(Instant::now() < end, "{} pages", resident_pages());
        fill(other, 3);
        std::thread::sleep(Duration::from_millis(10));
    }
    check(lent, 1);
}

/// Registers 20 MiB, and uses as much beside.
#[test]
#[ignore = "a program that the tests above run"]
fn program_registers_for_good() {
    let (ring, lent, other) = (ring(), map(20), map(20));
    fill(lent, 1);
    register(ring, lent);
    fill(other, 2);
    check(other, 2);
    check(lent, 1);
}

/// Registers and lets go, again and again, until it gets a signal.
#[test]
#[ignore = "a program that the tests above run"]
fn program_registers_until_it_is_killed() {
    let (ring, lent) = (ring(), map(24));
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(700));
        // SAFETY: a signal to this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
    for round in 0.. {
        fill(lent, round);
        register(ring, lent);
        check(lent, round);
        unregister(ring);
    }
}

/// Writes 12 MiB past the page cache, all at a time, and reads them back.
#[test]
#[ignore = "a program that the tests above run"]
fn program_transfers() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    const PARTS: usize = 12;
    let path = Path::new(&std::env::var_os(FOLDER).unwrap()).join("direct");
    let mut options = std::fs::File::options();
    options.read(true).write(true).create_new(true);
    let file = match options.custom_flags(libc::O_DIRECT).open(path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{REFUSED} O_DIRECT: {error}");
            return;
        }
    };
    let words = map(PARTS);
    let mut context = 0u64;
    // SAFETY: the kernel fills in the context.
    permitted("io_setup", unsafe {
        libc::syscall(libc::SYS_io_setup, 64, &raw mut context)
    });
    for round in 0..3 {
        fill(words, round);
        for opcode in [1u64, 0] {
            // `struct iocb`: eight words, as little-endian machines lay it out.
            let mut calls: Vec<[u64; 8]> = (0..PARTS)
                .map(|part| {
                    let start = words.as_mut_ptr() as u64 + (part * MIB) as u64;
                    let file = file.as_raw_fd() as u64;
                    let (bytes, offset) = (MIB as u64, (part * MIB) as u64);
                    [
                        part as u64,
                        0,
                        opcode | file << 32,
                        start,
                        bytes,
                        offset,
                        0,
                        0,
                    ]
                })
                .collect();
            let mut list: Vec<_> = calls.iter_mut().map(|call| call.as_mut_ptr()).collect();
            let mut sent = 0;
            while sent < PARTS {
                let (rest, left) = (list[sent..].as_mut_ptr(), PARTS - sent);
                // SAFETY: the memory that is named is there until all has ended.
                let answer = unsafe { libc::syscall(libc::SYS_io_submit, context, left, rest) };
                sent += permitted("io_submit", answer) as usize;
            }
            // `struct io_event`: the third word is the result.
            let mut events = [[0u64; 4]; PARTS];
            let (call, none) = (libc::SYS_io_getevents, null_mut::<libc::timespec>());
            // SAFETY: there is room for all.
            let ended =
                unsafe { libc::syscall(call, context, PARTS, PARTS, &raw mut events, none) };
            assert_eq!(ended, PARTS as i64);
            assert!(events.iter().all(|event| event[2] == MIB as u64));
            check(words, round);
            if opcode == 1 {
                words.fill(0);
            }
        }
    }
}

/// Locks 20 MiB, and uses as much beside.
#[test]
#[ignore = "a program that the tests above run"]
fn program_locks() {
    let (locked, other) = (map(20), map(20));
    fill(locked, 1);
    // SAFETY: the mapping stays.
    let answer = unsafe { libc::mlock(locked.as_ptr().cast(), size_of_val(locked)) };
    permitted("mlock", answer.into());
    for round in 0..3 {
        fill(other, round);
        check(other, round);
        check(locked, 1);
    }
}

/// Puts 24 MiB into pipes without a copy, uses other memory, and reads them.
#[test]
#[ignore = "a program that the tests above run"]
fn program_lends_to_pipes() {
    const PIPES: usize = 24;
    let words = map(PIPES);
    fill(words, 5);
    let mut pipes = Vec::new();
    for part in words.chunks_mut(MIB / 8) {
        let mut ends = [0; 2];
        // SAFETY: room for two numbers; a file of this process.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let size = libc::fcntl(ends[1], libc::F_SETPIPE_SZ, MIB);
            permitted("pipes of 1 MiB", size.into());
        }
        let (mut start, mut left) = (part.as_mut_ptr().cast::<u8>(), MIB);
        while left > 0 {
            let one = libc::iovec {
                iov_base: start.cast(),
                iov_len: left,
            };
            // SAFETY: the memory stays mapped.
            let put = unsafe { libc::vmsplice(ends[1], &raw const one, 1, libc::SPLICE_F_GIFT) };
            assert!(put > 0);
            left -= put as usize;
            start = start.wrapping_add(put as usize);
        }
        pipes.push(ends);
    }
    let full = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: PAGE,
    };
    let flags = libc::SPLICE_F_NONBLOCK;
    // SAFETY: the memory stays mapped.
    let refused = unsafe { libc::vmsplice(pipes[0][1], &raw const full, 1, flags) };
    let error = std::io::Error::last_os_error();
    assert_eq!((refused, error.raw_os_error()), (-1, Some(libc::EAGAIN)));
    let other = map(20);
    (0..3).for_each(|round| fill(other, round));
    let mut read = vec![0u64; words.len()];
    for (ends, part) in pipes.iter().zip(read.chunks_mut(MIB / 8)) {
        let (mut start, mut left) = (part.as_mut_ptr().cast::<u8>(), MIB);
        while left > 0 {
            // SAFETY: there is room for so many bytes.
            let got = unsafe { libc::read(ends[0], start.cast(), left) };
            assert!(got > 0);
            left -= got as usize;
            start = start.wrapping_add(got as usize);
        }
    }
    check(&read, 5);
}
