//! The memory that system calls read and write: what must be there before the kernel carries one
//! out that can't wait for it.
//!
//! The table ([`collect`]) knows the calls that take buffers of a length, lists, or memory
//! behind memory. Of any other call each argument that may be managed memory counts as a page and
//! the next one: names of files have at most a page, and records of a fixed size far less.
//!
//! What is too large at once is cut where the call may come back with less than it was asked for,
//! as `read` and `write` may.

use crate::ranges::Ranges;
use crate::sys::PAGE;
use crate::sys::calls::{Call, RANGE, arguments_of};

/// The most strings of a list of words, as of `execve`.
const WORDS_MAX: usize = 1 << 20;
/// The most bytes that a string has, as of `execve`.
const WORD_BYTES_MAX: usize = 128 << 10;
/// The most entries of a vector (`UIO_MAXIOV`).
const VECTOR_MAX: usize = 1024;
/// The most bytes of a socket's address.
const ADDRESS_BYTES: usize = 128;

/// The memory of the program that makes a call.
pub trait Memory {
    /// Reads bytes. The error is an address that can't be read now.
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), usize>;
}

/// The memory that a call needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// The ranges, of whole pages, inside the addresses of managed memory.
    pub ranges: Ranges,
    /// True if it needs more than it may, and can't come back with less.
    pub is_too_large: bool,
    /// An address that could not be read, at which more may be behind.
    pub unread: Option<usize>,
}

/// Finds the memory that `call` needs, of at most `bytes_max`.
pub fn collect(call: &Call, memory: &dyn Memory, bytes_max: usize) -> Needs {
    let mut collector = Collector {
        call,
        memory,
        bytes_max,
        is_divisible: false,
        needs: Needs::default(),
    };
    let whole = buffers(&mut collector);
    let mut needs = collector.needs;
    needs.unread = whole.err();
    needs
}

struct Collector<'a> {
    call: &'a Call,
    memory: &'a dyn Memory,
    bytes_max: usize,
    is_divisible: bool,
    needs: Needs,
}

type Whole = Result<(), usize>;

/// The table.
fn buffers(it: &mut Collector<'_>) -> Whole {
    match libc::c_long::from(it.call.number) {
        libc::SYS_read | libc::SYS_write => it.divisible().buffer(1, 2),
        libc::SYS_pread64 | libc::SYS_pwrite64 => {
            it.divisible().buffer(1, 2);
            // The file may be `/proc/self/mem`, in which a place is an address.
            it.buffer(3, 2);
        }
        libc::SYS_getdents64 => it.divisible().buffer(1, 2),
        libc::SYS_getrandom => it.divisible().buffer(0, 1),
        libc::SYS_sendto => {
            it.fixed(4, ADDRESS_BYTES);
            it.divisible().buffer(1, 2);
        }
        libc::SYS_recvfrom => {
            it.fixed(4, ADDRESS_BYTES);
            it.fixed(5, 4);
            it.divisible().buffer(1, 2);
        }
        libc::SYS_readv | libc::SYS_writev | libc::SYS_preadv | libc::SYS_pwritev => {
            return it.divisible().vector_of(1, 2);
        }
        libc::SYS_preadv2 | libc::SYS_pwritev2 | libc::SYS_vmsplice => {
            return it.divisible().vector_of(1, 2);
        }
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            it.divisible().vector_of(1, 2)?;
            return it.vector_of(3, 4);
        }
        libc::SYS_sendmsg | libc::SYS_recvmsg => {
            let message = it.at(1);
            return it.divisible().message(message);
        }
        libc::SYS_sendmmsg | libc::SYS_recvmmsg => return messages(it),
        libc::SYS_execve => {
            it.default_of(0);
            it.words(it.at(1))?;
            return it.words(it.at(2));
        }
        libc::SYS_execveat => {
            it.default_of(1);
            it.words(it.at(2))?;
            return it.words(it.at(3));
        }
        libc::SYS_ioctl => it.add(it.at(2), ioctl_bytes(it.at(1))),
        libc::SYS_seccomp => return it.filter(it.at(2)),
        libc::SYS_prctl if it.at(0) == libc::PR_SET_SECCOMP as usize => {
            return it.filter(it.at(2));
        }
        libc::SYS_setsockopt => return set_option(it),
        libc::SYS_getsockopt => {
            it.fixed(4, 4);
            let bytes = it.word32(it.at(4))?;
            it.add(it.at(3), bytes);
        }
        _ => return waits(it),
    }
    Ok(())
}

/// The calls that wait for something.
fn waits(it: &mut Collector<'_>) -> Whole {
    match libc::c_long::from(it.call.number) {
        libc::SYS_ppoll => {
            it.array(0, 1, 8);
            it.fixed(2, 16);
            it.fixed(3, 8);
        }
        libc::SYS_pselect6 => return selects(it),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            it.array(1, 2, 12);
            it.fixed(3, 16);
            it.fixed(4, 8);
        }
        libc::SYS_futex => {
            it.fixed(0, 4);
            // Others take a number in place of the time, or leave the register as it was.
            match it.at(1) as i32 & libc::FUTEX_CMD_MASK {
                libc::FUTEX_WAKE => {}
                libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => it.fixed(3, 16),
                _ => {
                    it.fixed(3, 16);
                    it.fixed(4, 4);
                }
            }
        }
        libc::SYS_futex_waitv => return waiters(it),
        _ => return others(it),
    }
    Ok(())
}

/// The calls that have one buffer and some small things.
fn others(it: &mut Collector<'_>) -> Whole {
    match libc::c_long::from(it.call.number) {
        libc::SYS_readlinkat => it.rest_and_buffer(&[1], 2, 3),
        libc::SYS_getcwd => it.buffer(0, 1),
        libc::SYS_setxattr | libc::SYS_lsetxattr => it.rest_and_buffer(&[0, 1], 2, 3),
        libc::SYS_getxattr | libc::SYS_lgetxattr => it.rest_and_buffer(&[0, 1], 2, 3),
        libc::SYS_fsetxattr | libc::SYS_fgetxattr => it.rest_and_buffer(&[1], 2, 3),
        libc::SYS_listxattr | libc::SYS_llistxattr => it.rest_and_buffer(&[0], 1, 2),
        libc::SYS_flistxattr | libc::SYS_bpf => it.buffer(1, 2),
        libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => {
            it.rest_and_buffer(&[3, 4], 1, 2);
        }
        libc::SYS_msgsnd | libc::SYS_msgrcv => {
            it.add(it.at(1), it.at(2).saturating_add(8));
        }
        libc::SYS_add_key => it.rest_and_buffer(&[0, 1], 2, 3),
        libc::SYS_init_module => it.rest_and_buffer(&[2], 0, 1),
        libc::SYS_getgroups | libc::SYS_setgroups => {
            let count = it.at(0).min(1 << 16);
            it.add(it.at(1), count * 4);
        }
        libc::SYS_semop | libc::SYS_semtimedop => {
            it.array(1, 2, 6);
            it.fixed(3, 16);
        }
        // The memory that is asked about is not touched.
        libc::SYS_mincore => it.add(it.at(2), it.at(1).div_ceil(PAGE)),
        libc::SYS_move_pages => {
            it.array(2, 1, 8);
            it.array(3, 1, 4);
            it.array(4, 1, 4);
        }
        libc::SYS_shmat | libc::SYS_shmdt | libc::SYS_mremap => {}
        _ => return older(it),
    }
    Ok(())
}

/// The calls that newer machines do without.
#[cfg(target_arch = "x86_64")]
fn older(it: &mut Collector<'_>) -> Whole {
    match libc::c_long::from(it.call.number) {
        libc::SYS_getdents => it.divisible().buffer(1, 2),
        libc::SYS_readlink => it.rest_and_buffer(&[0], 1, 2),
        libc::SYS_poll => it.array(0, 1, 8),
        libc::SYS_epoll_wait => it.array(1, 2, 12),
        libc::SYS_select => sets(it),
        _ => it.all(),
    }
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn older(it: &mut Collector<'_>) -> Whole {
    it.all();
    Ok(())
}

/// The sets of files of `select`, and its time.
fn sets(it: &mut Collector<'_>) {
    let bytes = it.at(0).min(1 << 20).div_ceil(64) * 8;
    for set in 1..4 {
        it.fixed(set, bytes);
    }
    it.fixed(4, 16);
}

fn selects(it: &mut Collector<'_>) -> Whole {
    sets(it);
    let signals = it.at(5);
    if signals != 0 {
        it.add(signals, 16);
        let mask = it.word(signals)?;
        it.add(mask, 8);
    }
    Ok(())
}

fn messages(it: &mut Collector<'_>) -> Whole {
    /// `struct mmsghdr`.
    const BYTES: usize = 64;
    let (first, count) = (it.at(1), it.at(2).min(VECTOR_MAX));
    it.add(first, count * BYTES);
    it.fixed(4, 16);
    for index in 0..count {
        it.divisible().message(first + index * BYTES)?;
    }
    Ok(())
}

fn waiters(it: &mut Collector<'_>) -> Whole {
    /// `struct futex_waitv`, whose second word is an address.
    const BYTES: usize = 24;
    let (first, count) = (it.at(0), it.at(1).min(128));
    it.add(first, count * BYTES);
    it.fixed(3, 16);
    for index in 0..count {
        let word = it.word(first + index * BYTES + 8)?;
        it.add(word, 8);
    }
    Ok(())
}

fn set_option(it: &mut Collector<'_>) -> Whole {
    let (level, name) = (it.at(1) as i32, it.at(2) as i32);
    it.buffer(3, 4);
    let filters = [libc::SO_ATTACH_FILTER, libc::SO_ATTACH_REUSEPORT_CBPF];
    match level == libc::SOL_SOCKET && filters.contains(&name) {
        true => it.filter(it.at(3)),
        false => Ok(()),
    }
}

/// The size of the record of an `ioctl`, from its number. Those of an older kind have none there.
fn ioctl_bytes(request: usize) -> usize {
    match request >> 16 & 0x3fff {
        0 => PAGE,
        bytes => bytes,
    }
}

impl Collector<'_> {
    /// The argument of this number, as an address or a count.
    fn at(&self, argument: usize) -> usize {
        self.call.arguments[argument] as usize
    }

    /// Says that the call may come back with less than it was asked for.
    fn divisible(&mut self) -> &mut Self {
        self.is_divisible = true;
        self
    }

    fn buffer(&mut self, start: usize, bytes: usize) {
        self.add(self.at(start), self.at(bytes));
    }

    /// Small things at `small`, and a buffer.
    fn rest_and_buffer(&mut self, small: &[usize], start: usize, bytes: usize) {
        small.iter().for_each(|&argument| self.default_of(argument));
        self.buffer(start, bytes);
    }

    fn array(&mut self, start: usize, count: usize, each: usize) {
        let bytes = self.at(count).min(1 << 32).saturating_mul(each);
        self.add(self.at(start), bytes);
    }

    fn fixed(&mut self, start: usize, bytes: usize) {
        self.add(self.at(start), bytes);
    }

    /// An argument of which nothing is known: its page, and the next one.
    fn default_of(&mut self, argument: usize) {
        let start = self.at(argument);
        self.add(start, PAGE + 1);
    }

    /// Every argument that it has, of a call of which no more is known.
    fn all(&mut self) {
        (0..arguments_of(self.call.number)).for_each(|argument| self.default_of(argument));
    }

    /// Adds a range, as far as it is of managed addresses.
    fn add(&mut self, start: usize, bytes: usize) {
        let end = start.saturating_add(bytes).min(RANGE.end);
        if bytes == 0 || !RANGE.contains(&start) {
            return;
        }
        let (first, beyond) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
        for (from, to) in self.needs.ranges.collect_gaps(first, beyond) {
            let left = self.bytes_max - self.needs.ranges.bytes();
            let most = to.min(from + (left & !(PAGE - 1)));
            if most < to && !self.is_divisible {
                self.needs.is_too_large = true;
                return;
            }
            if most > from {
                self.needs.ranges.insert(from, most);
            }
        }
    }

    fn word(&self, at: usize) -> Result<usize, usize> {
        let mut bytes = [0; 8];
        self.memory.read(at, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes) as usize)
    }

    fn word32(&self, at: usize) -> Result<usize, usize> {
        let mut bytes = [0; 4];
        self.memory.read(at, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes) as usize)
    }

    /// The vector of buffers that two arguments name.
    fn vector_of(&mut self, start: usize, count: usize) -> Whole {
        self.vector(self.at(start), self.at(count))
    }

    /// A vector of buffers, as of `readv`.
    fn vector(&mut self, start: usize, count: usize) -> Whole {
        let count = count.min(VECTOR_MAX);
        self.add(start, count * 16);
        for index in 0..count {
            let entry = start + index * 16;
            let (base, bytes) = (self.word(entry)?, self.word(entry + 8)?);
            self.add(base, bytes);
        }
        Ok(())
    }

    /// A message, as of `sendmsg`: the name, the vector and the control data are behind it.
    fn message(&mut self, at: usize) -> Whole {
        self.add(at, 56);
        let field = |it: &Self, index: usize| it.word(at + 8 * index);
        let (name, name_bytes) = (field(self, 0)?, self.word32(at + 8)?);
        self.add(name, name_bytes.min(ADDRESS_BYTES));
        let (control, control_bytes) = (field(self, 4)?, field(self, 5)?);
        self.add(control, control_bytes);
        let (vector, count) = (field(self, 2)?, field(self, 3)?);
        self.vector(vector, count)
    }

    /// A filter of system calls, or of packets (`struct sock_fprog`).
    fn filter(&mut self, at: usize) -> Whole {
        if at == 0 {
            return Ok(());
        }
        self.add(at, 16);
        let count = self.word(at)? & 0xffff;
        let first = self.word(at + 8)?;
        self.add(first, count * 8);
        Ok(())
    }

    /// A list of strings that a null pointer ends.
    fn words(&mut self, list: usize) -> Whole {
        for index in 0..WORDS_MAX {
            let entry = list.wrapping_add(index * 8);
            if list == 0 {
                return Ok(());
            }
            if index == 0 || entry & (PAGE - 1) == 0 {
                self.add(entry, 8);
            }
            match self.word(entry)? {
                0 => return Ok(()),
                word => self.text(word)?,
            }
        }
        Ok(())
    }

    /// A string, as far as the zero byte that ends it.
    fn text(&mut self, start: usize) -> Whole {
        let is_ours = RANGE.contains(&start);
        let mut at = start;
        while is_ours && at < start + WORD_BYTES_MAX && !self.needs.is_too_large {
            let mut bytes = [0; 256];
            let most = (PAGE - at % PAGE).min(bytes.len());
            let bytes = &mut bytes[..most];
            self.memory.read(at, bytes)?;
            if at == start || at.is_multiple_of(PAGE) {
                self.add(at, 1);
            }
            if bytes.contains(&0) {
                return Ok(());
            }
            at += most;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
