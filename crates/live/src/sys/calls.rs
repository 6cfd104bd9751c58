//! A filter of system calls whose listener hears of calls before the kernel carries them out.
//!
//! Where a userfaultfd serves faults in user mode alone, a system call that is handed a page that
//! is not there fails. The filter holds such calls up: those with an argument in the [`RANGE`] in
//! which all managed memory lies, and those whose arguments may lead there by way of other memory.
//! Who listens sees to the pages, and has the call go on. All other calls pass at the cost of the
//! filter alone.
//!
//! A filter is of a thread, and of all that it starts; it can't be taken off. A thread may have one
//! listener.
//!
//! Source: Linux 6.6, `seccomp_unotify(2)`, `include/uapi/linux/seccomp.h`.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::{Errno, last_error};

/// The addresses of managed memory, where its system calls must be held up. The kernel places
/// nothing there by itself: programs, their heaps, and mappings from the top down lie elsewhere.
#[cfg(not(target_arch = "aarch64"))]
pub const RANGE: Range<usize> = 0x6000_0000_0000..0x7000_0000_0000;
/// The addresses of managed memory, where its system calls must be held up.
#[cfg(target_arch = "aarch64")]
pub const RANGE: Range<usize> = 0xc000_0000_0000..0xd000_0000_0000;

/// The sixth argument of a fork for which the engine is at rest, and of the library's own waits for
/// its engine. The kernel ignores it.
pub const PREPARED: u64 = 0x7469_6465_666f_726b;

/// The upper half of the first argument of some calls of an engine (reads of its program's memory,
/// and its rings), of which the kernel takes the lower half alone.
pub const OWN: u32 = 0x7469_6465;

/// The upper half of an address in the range, under the mask.
const RANGE_TOP: u32 = (RANGE.start >> 32) as u32;
const RANGE_MASK: u32 = !(((RANGE.end - RANGE.start - 1) >> 32) as u32);

/// Calls whose arguments may lead to managed memory by way of other memory, or that need the
/// listener for what they do.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_process_vm_writev,
    libc::SYS_vmsplice,
    libc::SYS_sigaltstack,
    libc::SYS_seccomp,
    libc::SYS_pselect6,
    libc::SYS_futex_waitv,
];

/// Calls that name memory and don't touch it, those of an engine among them.
const NEVER: &[libc::c_long] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_pkey_mprotect,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mbind,
    libc::SYS_brk,
];

/// Calls that would have the kernel use memory after they have returned, or that hide in memory
/// what they do. Programs know kernels without them.
const REFUSED: &[libc::c_long] = &[libc::SYS_io_setup, libc::SYS_clone3];

/// The number of arguments of calls that are made often, or while an engine is at rest. Registers
/// of further arguments hold values of earlier work, often an address: a call that was held up for
/// one would wait without need, and for ever if the engine waits for its thread.
const ARGUMENTS: [(u8, &[libc::c_long]); 4] = [
    (
        0,
        &[
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_fdatasync,
            libc::SYS_fsync,
            libc::SYS_getpid,
            libc::SYS_getppid,
            libc::SYS_gettid,
            libc::SYS_kill,
            libc::SYS_lseek,
            libc::SYS_sched_yield,
            libc::SYS_tgkill,
        ],
    ),
    (
        2,
        &[
            libc::SYS_clock_gettime,
            libc::SYS_fstat,
            libc::SYS_nanosleep,
            libc::SYS_pipe2,
        ],
    ),
    (
        3,
        &[
            libc::SYS_connect,
            libc::SYS_fcntl,
            libc::SYS_getdents64,
            libc::SYS_ioctl,
            libc::SYS_read,
            libc::SYS_write,
        ],
    ),
    (
        4,
        &[
            libc::SYS_accept4,
            libc::SYS_clock_nanosleep,
            libc::SYS_epoll_ctl,
            libc::SYS_newfstatat,
            libc::SYS_openat,
            libc::SYS_pread64,
            libc::SYS_prlimit64,
            libc::SYS_pwrite64,
            libc::SYS_readlinkat,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_wait4,
        ],
    ),
];

/// The number of arguments of a call, as far as it is known; else as many as any has.
pub fn arguments_of(number: u32) -> usize {
    let has = |calls: &[libc::c_long]| calls.contains(&libc::c_long::from(number));
    let known = ARGUMENTS.iter().find(|(_, calls)| has(calls));
    known.map_or(ARGUMENTS_MAX, |(count, _)| usize::from(*count))
}

/// The most arguments that a call has.
const ARGUMENTS_MAX: usize = 6;

/// A call that is held up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The number by which it is answered.
    pub id: u64,
    /// The thread that makes it.
    pub thread: u32,
    /// Its number.
    pub number: u32,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// The length of a [`Call`] as bytes.
pub const CALL_BYTES: usize = 64;

impl Call {
    /// Writes it down.
    pub fn to_bytes(self) -> [u8; CALL_BYTES] {
        let mut bytes = [0; CALL_BYTES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.thread.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.to_le_bytes());
        for (into, argument) in bytes[16..].chunks_exact_mut(8).zip(self.arguments) {
            into.copy_from_slice(&argument.to_le_bytes());
        }
        bytes
    }

    /// Reads one that was written down.
    pub fn from_bytes(bytes: &[u8; CALL_BYTES]) -> Call {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let second = word(8);
        Call {
            id: word(0),
            thread: second as u32,
            number: (second >> 32) as u32,
            arguments: [16, 24, 32, 40, 48, 56].map(word),
        }
    }
}

/// Returns true if an address may be managed memory.
pub fn is_in_range(address: usize) -> bool {
    RANGE.contains(&address)
}

/// The kernel's record of a call that is held up (`struct seccomp_notif`).
#[repr(C)]
#[derive(Default)]
struct RawCall {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// The answer to one (`struct seccomp_notif_resp`).
#[repr(C)]
struct RawAnswer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: libc::Ioctl = code(3, 0, size_of::<RawCall>()) as _;
const ANSWER: libc::Ioctl = code(3, 1, size_of::<RawAnswer>()) as _;
const SET_FLAGS: libc::Ioctl = code(1, 4, 8) as _;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: usize = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const CONTINUE: u32 = 1;
/// `SECCOMP_FILTER_FLAG_NEW_LISTENER` and `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`: a call that the
/// listener has taken waits for its answer whatever signals come, but for one that ends it.
const LISTENING: usize = 1 << 3 | 1 << 5;

/// `_IOC` of a seccomp listener.
const fn code(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'!' as u32) << 8 | number
}

/// Puts the filter on the calling thread, which gains no privileges from then on, nor does what it
/// starts. Answers the listener.
///
/// # Errors
/// `BUSY`: the thread has a listener already. `INVAL`: the kernel is too old.
pub fn listen_here() -> Result<OwnedFd, Errno> {
    let filter = filter();
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: takes numbers alone.
    let answer = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if answer != 0 {
        return Err(last_error());
    }
    // SAFETY: the program is live, and copied by the kernel.
    let number = unsafe {
        let program = &raw const program;
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            LISTENING,
            program,
        )
    };
    if number < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has made it for this call.
    let listener = unsafe { OwnedFd::from_raw_fd(number as i32) };
    // SAFETY: takes a number. An older kernel does without.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
    Ok(listener)
}

/// Waits for the next call. `NOENT`: the one that there was is over.
pub fn receive(listener: impl AsFd) -> Result<Call, Errno> {
    let mut raw = RawCall::default();
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel fills in a live record of zeros.
    let answer = unsafe { libc::ioctl(number, RECEIVE, &raw mut raw) };
    if answer != 0 {
        return Err(last_error());
    }
    Ok(Call {
        id: raw.id,
        thread: raw.pid,
        number: raw.number as u32,
        arguments: raw.arguments,
    })
}

/// Has a call go on. One that is over needs no answer.
pub fn go_on(listener: impl AsFd, id: u64) {
    answer(
        listener,
        RawAnswer {
            id,
            value: 0,
            error: 0,
            flags: CONTINUE,
        },
    );
}

/// Has a call fail.
pub fn fail(listener: impl AsFd, id: u64, error: Errno) {
    answer(
        listener,
        RawAnswer {
            id,
            value: 0,
            error: -error.raw_os_error(),
            flags: 0,
        },
    );
}

fn answer(listener: impl AsFd, answer: RawAnswer) {
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel reads a live record.
    unsafe { libc::ioctl(number, ANSWER, &raw const answer) };
}

/// Returns whether two processes share their memory. `None`: it can't be told.
pub fn share_memory(one: u32, other: u32) -> Option<bool> {
    /// `KCMP_VM` of the kernel's `include/uapi/linux/kcmp.h`.
    const MEMORY: i32 = 1;
    // SAFETY: takes no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, one, other, MEMORY, 0usize, 0usize) };
    (answer >= 0).then_some(answer == 0)
}

/// The place to which a jump of the filter goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// The next instruction.
    Next,
    /// The place where this number of arguments, the first ones, is compared.
    First(u8),
    Pass,
    HoldUp,
    Refuse,
    /// This number of instructions further.
    Skip(u8),
}

/// The place where all arguments are compared.
const ALL: To = To::First(ARGUMENTS_MAX as u8);

/// An instruction whose jumps have no distance yet.
#[derive(Clone, Copy)]
struct Step {
    code: u32,
    value: u32,
    yes: To,
    no: To,
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const MASK: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`.
#[cfg(not(target_arch = "aarch64"))]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Numbers of system calls from here on are those of the x32 interface (`__X32_SYSCALL_BIT`).
const OTHER_CALLS: u32 = 0x4000_0000;

fn step(code: u32, value: u32) -> Step {
    jump(code, value, To::Next, To::Next)
}

fn jump(code: u32, value: u32, yes: To, no: To) -> Step {
    Step {
        code,
        value,
        yes,
        no,
    }
}

fn low_of(argument: u32) -> Step {
    step(LOAD, ARGUMENTS_AT + 8 * argument)
}

fn high_of(argument: u32) -> Step {
    step(LOAD, ARGUMENTS_AT + 8 * argument + 4)
}

/// The filter.
fn filter() -> Vec<libc::sock_filter> {
    let mut steps = vec![
        step(LOAD, ARCHITECTURE_AT),
        // Another kind of program has no engine.
        jump(EQUAL, ARCHITECTURE, To::Next, To::Pass),
        step(LOAD, NUMBER_AT),
        jump(AT_LEAST, OTHER_CALLS, To::Pass, To::Next),
    ];
    let mut list = |calls: &[libc::c_long], to| {
        steps.extend(
            calls
                .iter()
                .map(|call| jump(EQUAL, *call as u32, to, To::Next)),
        );
    };
    list(NEVER, To::Pass);
    list(ALWAYS, To::HoldUp);
    list(REFUSED, To::Refuse);
    for (count, calls) in ARGUMENTS {
        list(calls, To::First(count));
    }
    special(&mut steps);
    // Where arguments are compared: the last one first, so that the comparison of fewer begins
    // further on.
    let arguments = steps.len();
    for argument in (0..ARGUMENTS_MAX as u32).rev() {
        steps.push(high_of(argument));
        steps.push(step(MASK, RANGE_MASK));
        steps.push(jump(EQUAL, RANGE_TOP, To::HoldUp, To::Next));
    }
    let ends = steps.len();
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    steps.push(step(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    steps.push(step(RETURN, refused));
    let place = |from: usize, to: To| {
        let target = match to {
            To::Next => return 0,
            To::Skip(distance) => return distance,
            To::First(count) => ends - (ends - arguments) / ARGUMENTS_MAX * usize::from(count),
            To::Pass => ends,
            To::HoldUp => ends + 1,
            To::Refuse => ends + 2,
        };
        u8::try_from(target - from - 1).expect("the filter is short")
    };
    let made = steps
        .iter()
        .enumerate()
        .map(|(at, step)| libc::sock_filter {
            code: step.code as u16,
            jt: place(at, step.yes),
            jf: place(at, step.no),
            k: step.value,
        });
    made.collect()
}

/// The calls for which some arguments decide.
fn special(steps: &mut Vec<Step>) {
    let call =
        |number: libc::c_long, rest: u8| jump(EQUAL, number as u32, To::Next, To::Skip(rest));
    let own_wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u32;
    let operation = libc::FUTEX_CMD_MASK as u32;
    steps.extend([
        call(libc::SYS_futex, 10),
        // A wait for the engine, which may be at rest.
        low_of(5),
        jump(EQUAL, PREPARED as u32, To::Next, To::Skip(2)),
        high_of(5),
        jump(EQUAL, (PREPARED >> 32) as u32, To::Pass, To::Next),
        low_of(1),
        // A wake in memory of the process alone takes an address for a number.
        jump(EQUAL, own_wake, To::Pass, To::Next),
        step(MASK, operation),
        jump(EQUAL, libc::FUTEX_WAKE as u32, To::First(1), To::Next),
        jump(EQUAL, libc::FUTEX_WAIT as u32, To::First(4), To::Next),
        jump(EQUAL, libc::FUTEX_WAIT_BITSET as u32, To::First(4), ALL),
        // A move that lets the kernel choose the place leaves the range.
        call(libc::SYS_mremap, 6),
        low_of(3),
        jump(ANY_BIT, libc::MREMAP_MAYMOVE as u32, To::Next, To::Pass),
        jump(ANY_BIT, libc::MREMAP_FIXED as u32, To::Next, ALL),
        high_of(4),
        step(MASK, RANGE_MASK),
        jump(EQUAL, RANGE_TOP, To::Pass, ALL),
        call(libc::SYS_prctl, 2),
        low_of(0),
        jump(EQUAL, libc::PR_SET_SECCOMP as u32, To::HoldUp, ALL),
        call(libc::SYS_process_vm_readv, 2),
        high_of(0),
        jump(EQUAL, OWN, To::Pass, To::HoldUp),
        // As what is refused: see above.
        call(libc::SYS_io_uring_setup, 2),
        high_of(0),
        jump(EQUAL, OWN, To::Pass, To::Refuse),
        // A copy of the memory is right where the engine rests.
        call(libc::SYS_clone, 6),
        low_of(0),
        jump(ANY_BIT, libc::CLONE_VM as u32, ALL, To::Next),
        low_of(5),
        jump(EQUAL, PREPARED as u32, To::Next, To::HoldUp),
        high_of(5),
        jump(EQUAL, (PREPARED >> 32) as u32, To::Pass, To::HoldUp),
    ]);
    #[cfg(target_arch = "x86_64")]
    steps.extend([
        call(libc::SYS_fork, 4),
        low_of(5),
        jump(EQUAL, PREPARED as u32, To::Next, To::HoldUp),
        high_of(5),
        jump(EQUAL, (PREPARED >> 32) as u32, To::Pass, To::HoldUp),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's judgment of a call, by an interpreter of the filter.
    fn judge(architecture: u32, number: libc::c_long, arguments: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&(number as u32).to_le_bytes());
        data[4..8].copy_from_slice(&architecture.to_le_bytes());
        for (into, argument) in data[16..].chunks_exact_mut(8).zip(arguments) {
            into.copy_from_slice(&argument.to_le_bytes());
        }
        let filter = filter();
        let (mut at, mut word) = (0, 0u32);
        loop {
            let step = filter[at];
            at += 1;
            let mut go = |is_so: bool| at += usize::from(if is_so { step.jt } else { step.jf });
            match u32::from(step.code) {
                LOAD => {
                    let from = step.k as usize;
                    word = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                EQUAL => go(word == step.k),
                AT_LEAST => go(word >= step.k),
                ANY_BIT => go(word & step.k != 0),
                MASK => word &= step.k,
                RETURN => return step.k,
                other => panic!("instruction {other}"),
            }
        }
    }

    fn of(number: libc::c_long, arguments: [u64; 6]) -> u32 {
        judge(ARCHITECTURE, number, arguments)
    }

    const PASS: u32 = libc::SECCOMP_RET_ALLOW;
    const HELD: u32 = libc::SECCOMP_RET_USER_NOTIF;
    const OUT: u64 = 0x7fff_1234_5000;
    const IN: u64 = RANGE.start as u64 + 0x5000;

    #[test]
    fn a_call_is_held_up_if_any_argument_lies_in_the_range() {
        for place in 0..6 {
            let mut arguments = [OUT; 6];
            assert_eq!(of(libc::SYS_recvfrom, arguments), PASS);
            arguments[place] = IN;
            assert_eq!(of(libc::SYS_recvfrom, arguments), HELD, "argument {place}");
            // What it does not have is no argument.
            let is_one = place < 3;
            assert_eq!(
                of(libc::SYS_read, arguments) == HELD,
                is_one,
                "argument {place}"
            );
            assert_eq!(of(libc::SYS_tgkill, arguments), PASS);
        }
        for (address, judged) in [
            (RANGE.start as u64 - 1, PASS),
            (RANGE.start as u64, HELD),
            (RANGE.end as u64 - 1, HELD),
            (RANGE.end as u64, PASS),
        ] {
            assert_eq!(of(libc::SYS_read, [0, address, 8, 0, 0, 0]), judged);
        }
        assert_eq!(judge(0x4000_0003, 3, [IN; 6]), PASS, "another machine's");
    }

    #[test]
    fn calls_with_memory_behind_memory_are_held_up_and_those_about_mappings_pass() {
        for call in ALWAYS {
            assert_eq!(of(*call, [OUT; 6]), HELD, "call {call}");
        }
        for call in NEVER {
            assert_eq!(of(*call, [IN; 6]), PASS, "call {call}");
        }
        for call in REFUSED {
            let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
            assert_eq!(of(*call, [OUT; 6]), refused, "call {call}");
        }
    }

    #[test]
    fn a_fork_passes_if_the_engine_rests_for_it() {
        let flags = libc::SIGCHLD as u64;
        let fork = |sixth| of(libc::SYS_clone, [flags, 0, 0, OUT, 0, sixth]);
        assert_eq!(fork(PREPARED), PASS);
        for other in [0, PREPARED & 0xffff_ffff, PREPARED & !0xffff_ffff] {
            assert_eq!(fork(other), HELD);
        }
        let shares = flags | libc::CLONE_VM as u64;
        assert_eq!(of(libc::SYS_clone, [shares, OUT, 0, 0, 0, 0]), PASS);
        assert_eq!(of(libc::SYS_clone, [shares, IN, 0, 0, 0, 0]), HELD);
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(of(libc::SYS_fork, [0, 0, 0, 0, 0, PREPARED]), PASS);
            assert_eq!(of(libc::SYS_fork, [0; 6]), HELD);
        }
    }

    #[test]
    fn a_move_is_held_up_if_it_may_leave_the_range() {
        let (may, fixed) = (libc::MREMAP_MAYMOVE as u64, libc::MREMAP_FIXED as u64);
        let to = |flags, place| of(libc::SYS_mremap, [IN, 1, 2, flags, place, 0]);
        assert_eq!(to(0, 0), PASS);
        assert_eq!(to(may, 0), HELD);
        assert_eq!(to(may | fixed, IN), PASS);
        assert_eq!(to(may | fixed, OUT), HELD);
        assert_eq!(of(libc::SYS_mremap, [OUT, 1, 2, may, 0, 0]), PASS);
    }

    #[test]
    fn an_engine_reads_its_memory_and_has_rings() {
        let own = u64::from(OWN) << 32 | 77;
        let read = |process| of(libc::SYS_process_vm_readv, [process, OUT, 1, OUT, 1, 0]);
        assert_eq!((read(own), read(77)), (PASS, HELD));
        let ring = |entries| of(libc::SYS_io_uring_setup, [entries, OUT, 0, 0, 0, 0]);
        let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        assert_eq!((ring(own), ring(64)), (PASS, refused));
    }

    #[test]
    fn a_wake_passes_and_a_wait_is_held_up() {
        let futex = |operation: i32| of(libc::SYS_futex, [IN, operation as u64, 1, 0, 0, 0]);
        assert_eq!(futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG), PASS);
        assert_eq!(futex(libc::FUTEX_WAKE), HELD);
        assert_eq!(futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), HELD);
    }

    #[test]
    fn a_wait_for_the_engine_passes_whatever_it_leaves_in_its_arguments() {
        let futex = |word, operation: i32, time, second, third| {
            let operation = operation as u64;
            of(libc::SYS_futex, [word, operation, 1, time, second, third])
        };
        assert_eq!(futex(OUT, libc::FUTEX_WAIT, IN, IN, PREPARED), PASS);
        assert_eq!(futex(OUT, libc::FUTEX_WAIT, IN, 0, 0), HELD);
        assert_eq!(futex(OUT, libc::FUTEX_WAIT, OUT, IN, IN), PASS);
        assert_eq!(futex(OUT, libc::FUTEX_WAKE, IN, IN, IN), PASS);
        assert_eq!(futex(OUT, libc::FUTEX_REQUEUE, 1, IN, 0), HELD);
        assert_eq!(futex(IN, libc::FUTEX_WAIT_BITSET, 0, 0, 0), HELD);
    }

    #[test]
    fn a_call_that_was_written_down_is_the_same() {
        let call = Call {
            id: 0x1234_5678_9abc_def0,
            thread: 77,
            number: 123,
            arguments: [1, 2, 3, u64::MAX, 5, IN],
        };
        assert_eq!(Call::from_bytes(&call.to_bytes()), call);
    }
}
