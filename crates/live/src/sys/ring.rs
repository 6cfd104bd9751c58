//! Asynchronous reads and writes of slots of the pool: io_uring, set up by hand.
//!
//! The usual crates map the rings through libc, whose `mmap` may be our own preload library's. The
//! kernel chooses the place of its rings, so it is lent memory for them instead
//! (`IORING_SETUP_NO_MMAP`).
//!
//! # Invariants
//! 1. Entries between the kernel's head and our tail belong to the kernel; we write beyond.
//! 2. The buffer lists of entries are read by the kernel while they are submitted, not later
//!    (`IORING_FEAT_SUBMIT_STABLE`), so that one list an entry is enough.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use linux_raw_sys::general::iovec;
use rustix::event::PollFlags;
use rustix::io_uring as raw;

use tidemark_core::id::FrameId;
use tidemark_core::seams::pager::Direction;

use super::calls::OWN;
use super::memory::Mapping;
use super::pool::{Pool, TRANSFER_MAX};
use super::{Errno, PAGE, timespec};

/// The result of a transfer of consecutive slots of the file, to or from any slots of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The tag that was given when it was started.
    pub tag: u64,
    /// The number of bytes moved, or the error.
    pub result: Result<usize, Errno>,
}

/// More than the heads of both rings take, the numbers that the kernel and we share about them.
const HEADS_BYTES_MAX: usize = 1024;

const BLANK: iovec = iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// The memory of one transfer, in the order of the file.
#[derive(Clone, Copy)]
pub struct Buffers {
    list: [iovec; TRANSFER_MAX],
    count: u32,
}

// SAFETY: a list of addresses, which the carrier of the transfer uses.
unsafe impl Send for Buffers {}

impl Buffers {
    /// The slots of `frames`, those that follow each other as one buffer.
    pub fn of_frames(pool: &Pool, frames: &[FrameId]) -> Buffers {
        assert!(!frames.is_empty() && frames.len() <= TRANSFER_MAX);
        let mut list = [BLANK; TRANSFER_MAX];
        let mut count = 0;
        let mut before: Option<FrameId> = None;
        for frame in frames {
            if before.is_some_and(|before| before.0 + 1 == frame.0) {
                list[count - 1].iov_len += PAGE as u64;
            } else {
                list[count] = iovec {
                    iov_base: pool.address(*frame) as *mut _,
                    iov_len: PAGE as _,
                };
                count += 1;
            }
            before = Some(*frame);
        }
        let count = count as u32;
        Buffers { list, count }
    }

    /// The size of all buffers together.
    pub fn bytes(&self) -> usize {
        let sizes = self.as_slice().iter().map(|buffer| buffer.iov_len);
        sizes.sum::<u64>() as usize
    }

    /// The first `bytes` of them.
    pub fn shortened(mut self, bytes: usize) -> Buffers {
        let (mut left, mut count) = (bytes, 0);
        while left > 0 {
            let buffer = &mut self.list[count];
            buffer.iov_len = buffer.iov_len.min(left as _);
            left -= buffer.iov_len as usize;
            count += 1;
        }
        assert!(count as u32 <= self.count);
        self.count = count as u32;
        self
    }

    /// A part of a mapping: `bytes` from `offset` on.
    pub fn of_mapping(mapping: &Mapping, offset: usize, bytes: usize) -> Buffers {
        assert!(bytes > 0 && offset + bytes <= mapping.bytes());
        let mut list = [BLANK; TRANSFER_MAX];
        list[0] = iovec {
            iov_base: (mapping.start() + offset) as *mut _,
            iov_len: bytes as _,
        };
        Buffers { list, count: 1 }
    }

    /// The first buffer of the list, to hand to the kernel.
    pub(super) fn list_mut(&mut self) -> *mut iovec {
        self.list.as_mut_ptr()
    }

    /// The buffers as the kernel reads them.
    pub(super) fn as_slice(&self) -> &[iovec] {
        &self.list[..self.count as usize]
    }
}

/// A pair of rings shared with the kernel.
pub struct Ring {
    fd: OwnedFd,
    /// Both rings.
    rings: Mapping,
    entries: Mapping,
    buffers: Vec<Buffers>,
    submissions: raw::io_sqring_offsets,
    completions: raw::io_cqring_offsets,
    entries_max: u32,
    /// True if a wait can have a limit.
    has_limits: bool,
}

// SAFETY: the rings are plain shared memory; `Ring` is used by one thread at a time.
unsafe impl Send for Ring {}

/// A number of entries, of which the kernel takes the lower half alone: a filter of ours lets rings
/// of an engine pass.
fn marked(entries: u32) -> usize {
    entries as usize | (OWN as usize) << 32
}

/// Makes rings.
///
/// # Safety
/// As for the system call.
unsafe fn set_up(entries: u32, params: &mut raw::io_uring_params) -> Result<OwnedFd, Errno> {
    let params = std::ptr::from_mut(params);
    // SAFETY: by the caller's word. The error number is the calling thread's.
    let (answer, error) = unsafe {
        let answer = libc::syscall(libc::SYS_io_uring_setup, marked(entries), params);
        (answer, *libc::__errno_location())
    };
    match answer {
        ..0 => Err(Errno::from_raw_os_error(error)),
        // SAFETY: the kernel has just made this descriptor for us alone.
        number => Ok(unsafe { OwnedFd::from_raw_fd(number as i32) }),
    }
}

impl Ring {
    /// Returns true if io_uring is permitted. Costs next to nothing.
    pub fn is_permitted() -> bool {
        // SAFETY: the kernel looks whether it may first, and then finds no parameters; the error
        // number is the calling thread's.
        let (answer, error) = unsafe {
            let answer = libc::syscall(libc::SYS_io_uring_setup, marked(1), 0usize);
            (answer, *libc::__errno_location())
        };
        answer < 0 && error == libc::EFAULT
    }

    /// Makes a ring for every thread of the process, one at a time.
    pub fn new_shared(entries_max: u32) -> Result<Ring, Errno> {
        Ring::with_flags(entries_max, raw::IoringSetupFlags::empty())
    }

    /// Makes rings of `entries_max` transfers, a power of two, for the calling thread. Fails where
    /// io_uring is forbidden.
    pub fn new(entries_max: u32) -> Result<Ring, Errno> {
        // Not `DEFER_TASKRUN`: polling such a ring does not wake when something has finished.
        match Ring::with_flags(entries_max, raw::IoringSetupFlags::SINGLE_ISSUER) {
            Err(Errno::INVAL) => Ring::with_flags(entries_max, raw::IoringSetupFlags::empty()),
            answer => answer,
        }
    }

    fn with_flags(entries_max: u32, flags: raw::IoringSetupFlags) -> Result<Ring, Errno> {
        let entries_max = entries_max.next_power_of_two();
        // The kernel makes room for twice as many completions.
        let counts = (entries_max as usize, 2 * entries_max as usize);
        let ring_bytes = HEADS_BYTES_MAX
            + counts.0 * size_of::<u32>()
            + counts.1 * size_of::<raw::io_uring_cqe>();
        let rings = Mapping::anonymous(ring_bytes)?;
        let entries = Mapping::anonymous(counts.0 * size_of::<raw::io_uring_sqe>())?;
        let place = |mapping: &Mapping| raw::io_uring_ptr::new(mapping.as_ptr().cast());
        let mut params = raw::io_uring_params::default();
        params.flags = flags | raw::IoringSetupFlags::NO_MMAP;
        params.sq_off.user_addr = place(&entries);
        params.cq_off.user_addr = place(&rings);
        // SAFETY: the flags name no other descriptor; the rings lie in the memory given, which is
        // as large as the kernel makes them and outlives the descriptor.
        let fd = unsafe { set_up(entries_max, &mut params)? };
        assert_eq!(
            (params.sq_entries as usize, params.cq_entries as usize),
            counts
        );
        if !params
            .features
            .contains(raw::IoringFeatureFlags::SUBMIT_STABLE)
        {
            return Err(Errno::NOSYS);
        }
        let blank = Buffers {
            list: [BLANK; TRANSFER_MAX],
            count: 0,
        };
        Ok(Ring {
            fd,
            rings,
            entries,
            buffers: vec![blank; params.sq_entries as usize],
            submissions: params.sq_off,
            completions: params.cq_off,
            entries_max: params.sq_entries,
            has_limits: params.features.contains(raw::IoringFeatureFlags::EXT_ARG),
        })
    }

    /// Writes down a transfer between memory and the file from `offset` on. `false` if the ring
    /// is full; nothing is started before [`submit`](Self::submit).
    pub fn push(
        &mut self,
        direction: Direction,
        file: BorrowedFd<'_>,
        offset: u64,
        buffers: &Buffers,
        tag: u64,
    ) -> bool {
        let Some(index) = self.vacancy() else {
            return false;
        };
        let kept = &mut self.buffers[index as usize];
        *kept = *buffers;
        let count = kept.count;
        let list = raw::io_uring_ptr::new(kept.list_mut().cast());
        let entry = raw::io_uring_sqe {
            opcode: match direction {
                Direction::Fetch => raw::IoringOp::Readv,
                Direction::Store => raw::IoringOp::Writev,
            },
            fd: file.as_raw_fd(),
            off_or_addr2: raw::off_or_addr2_union { off: offset },
            addr_or_splice_off_in: raw::addr_or_splice_off_in_union { addr: list },
            len: raw::len_union { len: count },
            user_data: raw::io_uring_user_data::from_u64(tag),
            ..raw::io_uring_sqe::default()
        };
        self.add_entry(index, entry);
        true
    }

    /// Writes down that there is to be a completion when a file can be read, or at once if it can
    /// now. There is one: who would hear more asks again. `false` if the ring is full.
    pub fn push_poll(&mut self, file: RawFd, tag: u64) -> bool {
        let Some(index) = self.vacancy() else {
            return false;
        };
        let events = PollFlags::IN.bits() as u32;
        let entry = raw::io_uring_sqe {
            opcode: raw::IoringOp::PollAdd,
            fd: file,
            op_flags: raw::op_flags_union {
                poll32_events: events,
            },
            user_data: raw::io_uring_user_data::from_u64(tag),
            ..raw::io_uring_sqe::default()
        };
        self.add_entry(index, entry);
        true
    }

    /// Starts what was written down. False if the kernel does not take all of it for now.
    pub fn submit(&mut self) -> Result<bool, Errno> {
        loop {
            let count = self.count_written();
            if count == 0 {
                return Ok(true);
            }
            match self.enter(count) {
                Ok(_) | Err(Errno::INTR) => {}
                // The kernel wants completions to be taken first; what is left goes next time.
                Err(Errno::AGAIN | Errno::BUSY) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands over the next finished transfer.
    pub fn take_completion(&mut self) -> Option<Completion> {
        let head = self.number(self.completions.head).load(Ordering::Relaxed);
        let tail = self.number(self.completions.tail).load(Ordering::Acquire);
        if head == tail {
            return None;
        }
        let mask = self
            .number(self.completions.ring_mask)
            .load(Ordering::Relaxed);
        let at = self.completions.cqes as usize
            + (head & mask) as usize * size_of::<raw::io_uring_cqe>();
        // SAFETY: the kernel has finished writing the completions before `tail`; the fixed part
        // of one lies inside the mapping, at a place aligned for it.
        let (tag, result) = unsafe {
            let completion = self.rings.as_ptr().add(at).cast::<raw::io_uring_cqe>();
            ((*completion).user_data.u64_(), (*completion).res)
        };
        self.number(self.completions.head)
            .store(head.wrapping_add(1), Ordering::Release);
        let result = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        Some(Completion { tag, result })
    }

    /// Lets any thread see whether something has finished, without taking it.
    pub fn watch(&self) -> Watch {
        let place = |offset: u32| self.rings.start() + offset as usize;
        Watch {
            head: place(self.completions.head),
            tail: place(self.completions.tail),
        }
    }

    /// A way to submit the entries and wait for a completion, away from the ring. `None`
    /// where the kernel knows no such wait.
    pub fn waiting(&self) -> Option<Wait> {
        self.has_limits.then(|| Wait {
            ring: self.fd.as_raw_fd(),
            submit: self.count_written(),
        })
    }

    /// The number of entries written down and not submitted.
    fn count_written(&self) -> u32 {
        let head = self.number(self.submissions.head).load(Ordering::Acquire);
        let tail = self.number(self.submissions.tail).load(Ordering::Relaxed);
        tail.wrapping_sub(head)
    }

    /// The place of the next entry, if the ring is not full.
    fn vacancy(&self) -> Option<u32> {
        let tail = self.number(self.submissions.tail).load(Ordering::Relaxed);
        (self.count_written() < self.entries_max).then_some(tail & (self.entries_max - 1))
    }

    fn enter(&self, submit: u32) -> Result<u32, Errno> {
        // SAFETY: the entries name slots of the pool, which outlives the ring's users, and lists
        // of buffers that stay in place until they are submitted.
        unsafe { raw::io_uring_enter(&self.fd, submit, 0, raw::IoringEnterFlags::empty()) }
    }

    fn number(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset, aligned and inside the mapping; both sides access
        // the number atomically.
        unsafe { AtomicU32::from_ptr(self.rings.as_ptr().add(offset as usize).cast()) }
    }

    /// Puts an entry in its place at the tail, which is the kernel's from then on.
    fn add_entry(&mut self, index: u32, entry: raw::io_uring_sqe) {
        // SAFETY: both places lie inside their mappings, since `index < entries_max`; the kernel
        // reads neither before the tail passes them.
        unsafe {
            self.entries
                .as_ptr()
                .cast::<raw::io_uring_sqe>()
                .add(index as usize)
                .write(entry);
            let array = self
                .rings
                .as_ptr()
                .add(self.submissions.array as usize)
                .cast::<u32>();
            array.add(index as usize).write(index);
        }
        let tail = self.number(self.submissions.tail);
        tail.store(
            tail.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Release,
        );
    }
}

/// A wait for a ring's next completion. See [`Ring::waiting`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    ring: RawFd,
    submit: u32,
}

impl Wait {
    /// Submits, and waits until there is a completion that was not taken, or for so long. A wait
    /// that fails for any reason is a short one: what was not submitted still waits for that.
    ///
    /// To be called by the ring's own thread, while it has not used the ring since.
    pub fn wait(self, limit_ns: u64) {
        let limit = timespec(limit_ns);
        let argument = raw::io_uring_getevents_arg {
            ts: raw::io_uring_ptr::new(std::ptr::from_ref(&limit).cast_mut().cast()),
            ..raw::io_uring_getevents_arg::default()
        };
        let flags = raw::IoringEnterFlags::GETEVENTS | raw::IoringEnterFlags::EXT_ARG;
        // SAFETY: what is submitted was pushed by the ring's owner and stays in place; the limit
        // outlives the call. If the number names another file by now, the kernel refuses.
        let _ = unsafe {
            let ring = BorrowedFd::borrow_raw(self.ring);
            raw::io_uring_enter_arg(ring, self.submit, 1, flags, Some(&argument))
        };
    }
}

/// A look at a ring from outside.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    head: usize,
    tail: usize,
}

impl Watch {
    /// Returns true if a completion has not been taken yet.
    ///
    /// # Safety
    /// The ring that this was made from still exists.
    pub unsafe fn has_finished(self) -> bool {
        // SAFETY: both numbers lie aligned inside the mapping of the ring, which the caller says
        // is there; all sides access them atomically.
        unsafe {
            let head = AtomicU32::from_ptr(self.head as *mut u32).load(Ordering::Relaxed);
            let tail = AtomicU32::from_ptr(self.tail as *mut u32).load(Ordering::Acquire);
            head != tail
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
