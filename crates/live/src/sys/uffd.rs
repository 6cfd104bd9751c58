//! The userfaultfd: opening it, its ioctls with exact outcomes, and its messages.
//!
//! Every resolving ioctl has an out field that holds a count of bytes or a negative error number,
//! and can stop part of the way. [`Progress`] gives both without loss. On `EAGAIN` because the
//! address space is changing, kernels before 6.15 leave the field alone, so it starts at zero.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use linux_raw_sys::general as raw;
use rustix::fs::{Mode as FileMode, OFlags};
use rustix::ioctl::{Opcode, Updater, opcode};
use rustix::mm::UserfaultfdFlags;

use super::blocking_read;
use super::socket::wait_readable;
use super::{Errno, PAGE};

const GROUP: u8 = raw::UFFDIO as u8;
const API: Opcode = opcode::read_write::<raw::uffdio_api>(GROUP, raw::_UFFDIO_API as u8);
const REGISTER: Opcode =
    opcode::read_write::<raw::uffdio_register>(GROUP, raw::_UFFDIO_REGISTER as u8);
// The kernel's headers define these two with `_IOR`, although they read their argument.
const UNREGISTER: Opcode = opcode::read::<raw::uffdio_range>(GROUP, raw::_UFFDIO_UNREGISTER as u8);
const WAKE: Opcode = opcode::read::<raw::uffdio_range>(GROUP, raw::_UFFDIO_WAKE as u8);
const COPY: Opcode = opcode::read_write::<raw::uffdio_copy>(GROUP, raw::_UFFDIO_COPY as u8);
const ZEROPAGE: Opcode =
    opcode::read_write::<raw::uffdio_zeropage>(GROUP, raw::_UFFDIO_ZEROPAGE as u8);
const MOVE: Opcode = opcode::read_write::<raw::uffdio_move>(GROUP, raw::_UFFDIO_MOVE as u8);
/// `UFFDIO_WRITEPROTECT_MODE_WP`.
const PROTECT_WRITES: u64 = 1;
/// `UFFDIO_MOVE_MODE_DONTWAKE` (Linux `include/uapi/linux/userfaultfd.h`).
const MOVE_QUIETLY: u64 = 1;
const CONTINUE: Opcode =
    opcode::read_write::<raw::uffdio_continue>(GROUP, raw::_UFFDIO_CONTINUE as u8);
const PROTECT: Opcode =
    opcode::read_write::<raw::uffdio_writeprotect>(GROUP, raw::_UFFDIO_WRITEPROTECT as u8);
const POISON: Opcode = opcode::read_write::<raw::uffdio_poison>(GROUP, raw::_UFFDIO_POISON as u8);
// `_IO(0xAA, 0x00)` on /dev/userfaultfd.
const NEW: Opcode = opcode::none(GROUP, 0);
/// The most messages that one read takes.
pub const MESSAGES_MAX: usize = 64;

/// The operations that a userfaultfd can be asked for, beyond serving missing pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features(pub u64);

impl Features {
    /// Nothing more.
    pub const NONE: Features = Features(0);
    /// `UFFDIO_MOVE` (Linux 6.8).
    pub const MOVE: Features = Features(raw::UFFD_FEATURE_MOVE as u64);
    /// Faults name the thread.
    pub const THREAD_ID: Features = Features(raw::UFFD_FEATURE_THREAD_ID as u64);
    /// Messages report mremap, madvise that removes, and munmap.
    pub const CHANGES: Features = Features(
        raw::UFFD_FEATURE_EVENT_REMAP as u64
            | raw::UFFD_FEATURE_EVENT_REMOVE as u64
            | raw::UFFD_FEATURE_EVENT_UNMAP as u64,
    );
    /// Messages report forks of any kind. Needs the right to trace processes.
    pub const FORKS: Features = Features(raw::UFFD_FEATURE_EVENT_FORK as u64);
    /// Faults arrive as `SIGBUS` in the thread that caused them.
    pub const SIGBUS: Features = Features(raw::UFFD_FEATURE_SIGBUS as u64);

    /// Both.
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// The features of `self` that are not in `other`.
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }
}

/// The reason why there is no userfaultfd. The caller makes the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Neither the system call nor `/dev/userfaultfd` is permitted: the errors of both.
    NotPermitted {
        /// The error of the system call.
        call: Errno,
        /// The error of opening the device.
        device: Errno,
    },
    /// The kernel has none, or a sandbox hides it.
    NotSupported {
        /// The error of the system call.
        call: Errno,
    },
    /// The kernel lacks features: these. Without `MOVE` it is older than 6.8.
    Lacks {
        /// The features that were asked for and are not there.
        missing: Features,
    },
    /// The handshake failed.
    Refused {
        /// The error.
        error: Errno,
    },
}

/// The faults that a userfaultfd serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Faults {
    /// All, those of system calls on the memory of a program as well. Root may, and who may open
    /// `/dev/userfaultfd`, and everyone where `vm.unprivileged_userfaultfd` is 1.
    All,
    /// The faults that the program takes in user mode. A system call that is handed a page that is
    /// not there fails with `EFAULT`. Everyone may, unless a filter of system calls forbids it.
    ///
    /// Source: Linux 5.11, `UFFD_USER_MODE_ONLY`, userfaultfd(2).
    UserMode,
}

/// The mode in which a range is registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A touch of a missing page is a fault for us.
    Missing,
    /// So is a write to a page that is [protected](Uffd::protect).
    MissingAndWrites,
    /// No touch is a fault for us (protection faults only, and none is ever set up): registered
    /// only so that pages can be moved in.
    MoveTarget,
}

/// The reason for which an ioctl stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// `EAGAIN` without progress: the address space is changing, or a page is being worked on.
    Changing,
    /// `EEXIST`: a page stands at the destination.
    Present,
    /// `ENOENT`: no page at the source, or nothing registered at the destination.
    Absent,
    /// `EBUSY`: the page is pinned, or shared since a fork.
    Busy,
    /// `EINVAL`: the two mappings do not suit each other, or the range is not ours.
    Unsuitable,
    /// `ENOMEM`: the host is out of memory.
    NoMemory,
    /// `ESRCH`: the process is ending.
    Ending,
    /// Anything else.
    Other(Errno),
}

impl Stop {
    fn from_errno(error: Errno) -> Stop {
        match error {
            Errno::AGAIN => Stop::Changing,
            Errno::EXIST => Stop::Present,
            Errno::NOENT => Stop::Absent,
            Errno::BUSY => Stop::Busy,
            Errno::INVAL => Stop::Unsuitable,
            Errno::NOMEM => Stop::NoMemory,
            Errno::SRCH => Stop::Ending,
            other => Stop::Other(other),
        }
    }
}

/// The progress of an ioctl.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All bytes were handled.
    All,
    /// This many bytes were handled, more than none; a retry of the rest shows why it stopped.
    Part(usize),
    /// No byte was handled, for this reason.
    Nothing(Stop),
}

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A thread touched a missing page and waits.
    Fault {
        /// The address (page-aligned).
        at: usize,
        /// True if it was a write.
        is_write: bool,
        /// The thread, if asked for; else zero.
        thread: u32,
    },
    /// `mremap` has moved a range.
    Remap {
        /// The old address.
        from: usize,
        /// The new address.
        to: usize,
        /// Its size where it was.
        bytes: usize,
    },
    /// `madvise` is about to remove the pages of a range.
    Remove {
        /// First address.
        start: usize,
        /// Just past the last address.
        end: usize,
    },
    /// `munmap`, or a mapping put in its place, has removed a range.
    Unmap {
        /// First address.
        start: usize,
        /// Just past the last address.
        end: usize,
    },
    /// A fork has made a process whose memory is registered like this one's, with a userfaultfd
    /// of its own: see [`Uffd::take_child`].
    Fork {
        /// The number of that userfaultfd, in the reader's file table.
        child: i32,
    },
    /// A kind this crate asks for nowhere.
    Unknown(u8),
}

/// Room for the messages of one read.
pub struct Messages {
    raw: [raw::uffd_msg; MESSAGES_MAX],
    len: usize,
}

impl Default for Messages {
    fn default() -> Self {
        Messages::new()
    }
}

impl Messages {
    /// Makes room.
    pub fn new() -> Messages {
        // SAFETY: the message is a C struct of integers, for which zeros are a value.
        let blank: raw::uffd_msg = unsafe { std::mem::zeroed() };
        Messages {
            raw: [blank; MESSAGES_MAX],
            len: 0,
        }
    }

    /// The messages that the last read brought, in the kernel's order: faults before changes.
    pub fn iter(&self) -> impl Iterator<Item = Message> {
        self.raw[..self.len].iter().map(decode)
    }

    /// The number of messages that the last read brought.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the last read brought none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A userfaultfd: non-blocking, closed on exec.
#[derive(Debug)]
pub struct Uffd {
    fd: OwnedFd,
    features: Features,
    /// True if a thread that waits for a page is left waiting when the page comes.
    is_quiet: bool,
}

impl Uffd {
    /// Opens one for all faults with exactly `features`.
    pub fn open(features: Features) -> Result<Uffd, OpenError> {
        Uffd::open_for(Faults::All, features)
    }

    /// Opens one for these faults with exactly `features`.
    pub fn open_for(faults: Faults, features: Features) -> Result<Uffd, OpenError> {
        let lacking = features.without(Uffd::offered_for(faults)?);
        if lacking != Features::NONE {
            return Err(OpenError::Lacks { missing: lacking });
        }
        let uffd = Uffd::of(open_fd(faults)?, features);
        uffd.shake_hands(features)
            .map_err(|error| OpenError::Refused { error })?;
        Ok(uffd)
    }

    /// Takes charge of the userfaultfd that a [`Message::Fork`] has brought.
    pub fn take_child(number: i32) -> Uffd {
        use std::os::fd::FromRawFd;
        // SAFETY: the kernel has made this descriptor for the reader of the message, once.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        Uffd::of(fd, Features::FORKS)
    }

    /// The userfaultfd of a forked child, which has the features of its parent's.
    pub fn for_child(fd: OwnedFd, parents: &Uffd) -> Uffd {
        Uffd::of(fd, parents.features)
    }

    /// Its number in this process's table.
    pub fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Returns true if messages report forks.
    pub fn tells_of_forks(&self) -> bool {
        self.features.0 & Features::FORKS.0 != 0
    }

    /// Leaves who waits for a page waiting when it has come, until [`wake`](Self::wake).
    pub fn be_quiet(&mut self) {
        self.is_quiet = true;
    }

    fn of(fd: OwnedFd, features: Features) -> Uffd {
        Uffd {
            fd,
            features,
            is_quiet: false,
        }
    }

    /// The features that the kernel offers, where all faults may be served.
    pub fn offered() -> Result<Features, OpenError> {
        Uffd::offered_for(Faults::All)
    }

    /// The features that the kernel offers, where these faults may be served.
    pub fn offered_for(faults: Faults) -> Result<Features, OpenError> {
        // A handshake can be had once per descriptor, so that asking takes one of its own.
        let asking = Uffd::of(open_fd(faults)?, Features::NONE);
        asking
            .shake_hands(Features::NONE)
            .map_err(|error| OpenError::Refused { error })
    }

    /// Registers `bytes` from `start`, both page-aligned.
    pub fn register(&self, start: usize, bytes: usize, mode: Mode) -> Result<(), Errno> {
        let mode = match mode {
            Mode::Missing => raw::UFFDIO_REGISTER_MODE_MISSING,
            Mode::MissingAndWrites => {
                raw::UFFDIO_REGISTER_MODE_MISSING | raw::UFFDIO_REGISTER_MODE_WP
            }
            Mode::MoveTarget => raw::UFFDIO_REGISTER_MODE_WP,
        };
        let range = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        let mut argument = raw::uffdio_register {
            range,
            mode: u64::from(mode),
            ioctls: 0,
        };
        // SAFETY: opcode and argument type belong together; registering moves no memory.
        unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<REGISTER, _>::new(&mut argument)) }
    }

    /// Ends the registration of a range, waking the threads that wait there.
    pub fn unregister(&self, start: usize, bytes: usize) -> Result<(), Errno> {
        let mut argument = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        // SAFETY: opcode and argument type belong together; unregistering moves no memory.
        unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<UNREGISTER, _>::new(&mut argument)) }
    }

    /// Wakes the threads that wait for a page of the range.
    pub fn wake(&self, start: usize, bytes: usize) -> Result<(), Errno> {
        let mut argument = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        // SAFETY: opcode and argument type belong together; waking moves no memory.
        unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<WAKE, _>::new(&mut argument)) }
    }

    /// Returns true if a range lies in one private anonymous mapping that is registered, and no
    /// change of the address space is under way.
    ///
    /// The kernel is asked to continue faults of a kind that only shared memory has: it looks at
    /// the mapping first and refuses then (`mfill_atomic` in `mm/userfaultfd.c`).
    pub fn has_registered(&self, start: usize, bytes: usize) -> bool {
        let range = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        let mut argument = raw::uffdio_continue {
            range,
            mode: 0,
            mapped: 0,
        };
        // SAFETY: opcode and argument type belong together; in private anonymous memory the call
        // changes nothing, and no other memory is registered here.
        let answer =
            unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<CONTINUE, _>::new(&mut argument)) };
        answer == Err(Errno::INVAL)
    }

    /// Returns true if a fault or a change waits to be read.
    pub fn has_messages(&self) -> bool {
        blocking_read::end_of(self.as_fd());
        wait_readable(&[self.as_fd()], Some(0)).is_ok_and(|ready| ready != 0)
    }

    /// Returns true if the program is in the midst of a change of its address space, or waits until
    /// its message about one is read. `present` is a registered page that is present: the kernel
    /// says that of it only if there is no change, so that nothing is copied there from `source`.
    pub fn is_changing(&self, present: usize, source: usize) -> bool {
        let asked = self.copy(present, source, PAGE);
        matches!(asked, Progress::Nothing(Stop::Changing))
    }

    /// Returns true if the process has ended, or executes another program by now. `present` is a
    /// registered page that is present there: nothing is copied to it from `source`.
    pub fn has_ended(&self, present: usize, source: usize) -> bool {
        let asked = self.copy(present, source, PAGE);
        matches!(asked, Progress::Nothing(Stop::Ending))
    }

    /// Copies pages into missing ones of a registered range and wakes the threads that wait there.
    pub fn copy(&self, to: usize, from: usize, bytes: usize) -> Progress {
        let mut argument = raw::uffdio_copy {
            dst: to as u64,
            src: from as u64,
            len: bytes as u64,
            mode: match self.is_quiet {
                true => u64::from(raw::UFFDIO_COPY_MODE_DONTWAKE),
                false => 0,
            },
            copy: 0,
        };
        // SAFETY: opcode and argument type belong together; the kernel writes only to missing
        // pages of registered ranges, which no Rust reference names (see the module above).
        let answer =
            unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<COPY, _>::new(&mut argument)) };
        progress(answer, argument.copy, bytes)
    }

    /// Protects the present pages of a range that is registered for it from writes, or ends their
    /// protection; threads that wait for it go on then.
    pub fn protect(&self, start: usize, bytes: usize, is_wanted: bool) -> Result<(), Errno> {
        let range = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        let mut argument = raw::uffdio_writeprotect {
            range,
            mode: match is_wanted {
                true => PROTECT_WRITES,
                false => 0,
            },
        };
        // SAFETY: opcode and argument type belong together; contents do not change.
        unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<PROTECT, _>::new(&mut argument)) }
    }

    /// Makes missing pages of a registered range end a thread that touches them, with a signal.
    pub fn poison(&self, start: usize, bytes: usize) -> Progress {
        let range = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        let mut argument = raw::uffdio_poison {
            range,
            mode: 0,
            updated: 0,
        };
        // SAFETY: as for `copy`.
        let answer =
            unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<POISON, _>::new(&mut argument)) };
        progress(answer, argument.updated, bytes)
    }

    /// Maps the host's shared page of zeros at missing pages of a registered range.
    pub fn zeropage(&self, start: usize, bytes: usize) -> Progress {
        let range = raw::uffdio_range {
            start: start as u64,
            len: bytes as u64,
        };
        let mut argument = raw::uffdio_zeropage {
            range,
            mode: 0,
            zeropage: 0,
        };
        // SAFETY: as for `copy`.
        let answer =
            unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<ZEROPAGE, _>::new(&mut argument)) };
        progress(answer, argument.zeropage, bytes)
    }

    /// Moves pages from `from` to missing ones at `to`, a registered range, and wakes the threads
    /// that wait there.
    pub fn move_pages(&self, to: usize, from: usize, bytes: usize) -> Progress {
        move_range(self.fd.as_fd(), to, from, bytes, self.is_quiet)
    }

    /// Reads the messages that are there; none is not an error.
    pub fn read(&self, into: &mut Messages) -> Result<(), Errno> {
        blocking_read::end_of(self.as_fd());
        self.read_waiting(into)
    }

    /// As [`read`](Self::read), but waits for a message if the file is one that waits: see
    /// [`blocking_read`].
    pub(super) fn read_waiting(&self, into: &mut Messages) -> Result<(), Errno> {
        let room = std::mem::size_of_val(&into.raw);
        into.len = 0;
        // SAFETY: the bytes are those of `into.raw`, whose element type takes any bit pattern.
        let buffer =
            unsafe { std::slice::from_raw_parts_mut(into.raw.as_mut_ptr().cast::<u8>(), room) };
        match rustix::io::read(&self.fd, buffer) {
            Ok(bytes) => into.len = bytes / size_of::<raw::uffd_msg>(),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn shake_hands(&self, features: Features) -> Result<Features, Errno> {
        let mut argument = raw::uffdio_api {
            api: u64::from(raw::UFFD_API),
            features: features.0,
            ioctls: 0,
        };
        // SAFETY: opcode and argument type belong together.
        unsafe { rustix::ioctl::ioctl(&self.fd, Updater::<API, _>::new(&mut argument))? };
        Ok(Features(argument.features))
    }
}

impl AsFd for Uffd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Moves one page as [`Uffd::move_pages`] does, for a signal handler that knows the descriptor
/// alone. It makes one system call.
pub(crate) fn move_page(fd: BorrowedFd<'_>, to: usize, from: usize) -> Progress {
    move_range(fd, to, from, super::PAGE, false)
}

fn move_range(
    fd: BorrowedFd<'_>,
    to: usize,
    from: usize,
    bytes: usize,
    is_quiet: bool,
) -> Progress {
    let mut argument = raw::uffdio_move {
        dst: to as u64,
        src: from as u64,
        len: bytes as u64,
        mode: match is_quiet {
            true => MOVE_QUIETLY,
            false => 0,
        },
        move_: 0,
    };
    // SAFETY: as for `copy`; source pages are the program's or the pool's, which hold no
    // Rust object and are named by no reference.
    let answer = unsafe { rustix::ioctl::ioctl(fd, Updater::<MOVE, _>::new(&mut argument)) };
    progress(answer, argument.move_, bytes)
}

fn open_fd(faults: Faults) -> Result<OwnedFd, OpenError> {
    let mut flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
    if faults == Faults::UserMode {
        flags |= UserfaultfdFlags::from_bits_retain(raw::UFFD_USER_MODE_ONLY);
    }
    // SAFETY: what the descriptor may do is bounded by the methods of `Uffd`.
    let call = match unsafe { rustix::mm::userfaultfd(flags) } {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    if call == Errno::NOSYS {
        return Err(OpenError::NotSupported { call });
    }
    open_device(flags).map_err(|device| OpenError::NotPermitted { call, device })
}

/// Gets a userfaultfd from the device, whose file mode says who may.
fn open_device(wanted: UserfaultfdFlags) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/userfaultfd", flags, FileMode::empty())?;
    // SAFETY: the request takes flags by value and answers with a new descriptor.
    let fd = unsafe { rustix::ioctl::ioctl(&device, NewFd(wanted.bits()))? };
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `USERFAULTFD_IOC_NEW`: flags in, descriptor out.
struct NewFd(u32);

// SAFETY: the opcode takes its argument by value and answers with a descriptor.
unsafe impl rustix::ioctl::Ioctl for NewFd {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        NEW
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        self.0 as usize as *mut std::ffi::c_void
    }

    unsafe fn output_from_ptr(
        out: rustix::ioctl::IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<i32> {
        Ok(out)
    }
}

fn progress(answer: Result<(), Errno>, field: i64, bytes: usize) -> Progress {
    match answer {
        Ok(()) => Progress::All,
        Err(_) if field > 0 && (field as usize) < bytes => Progress::Part(field as usize),
        Err(error) => Progress::Nothing(Stop::from_errno(error)),
    }
}

fn decode(message: &raw::uffd_msg) -> Message {
    // The struct is packed: every field is copied out, none is borrowed.
    let argument = message.arg;
    match u32::from(message.event) {
        raw::UFFD_EVENT_PAGEFAULT => {
            // SAFETY: the event says which member is filled in; all are integers.
            let fault = unsafe { argument.pagefault };
            // SAFETY: zero unless the feature is on, and an integer in both cases.
            let thread = unsafe { fault.feat.ptid };
            Message::Fault {
                at: fault.address as usize,
                is_write: fault.flags & u64::from(raw::UFFD_PAGEFAULT_FLAG_WRITE) != 0,
                thread,
            }
        }
        raw::UFFD_EVENT_FORK => {
            // SAFETY: as above.
            let fork = unsafe { argument.fork };
            Message::Fork {
                child: fork.ufd as i32,
            }
        }
        raw::UFFD_EVENT_REMAP => {
            // SAFETY: as above.
            let remap = unsafe { argument.remap };
            let (from, to) = (remap.from as usize, remap.to as usize);
            Message::Remap {
                from,
                to,
                bytes: remap.len as usize,
            }
        }
        raw::UFFD_EVENT_REMOVE => {
            // SAFETY: as above.
            let range = unsafe { argument.remove };
            Message::Remove {
                start: range.start as usize,
                end: range.end as usize,
            }
        }
        raw::UFFD_EVENT_UNMAP => {
            // SAFETY: as above.
            let range = unsafe { argument.remove };
            Message::Unmap {
                start: range.start as usize,
                end: range.end as usize,
            }
        }
        _ => Message::Unknown(message.event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_fields_are_read_with_their_sign() {
        let all = progress(Ok(()), 8192, 8192);
        assert_eq!(all, Progress::All);
        assert_eq!(
            progress(Err(Errno::AGAIN), 4096, 8192),
            Progress::Part(4096)
        );
        let changing = Progress::Nothing(Stop::Changing);
        assert_eq!(
            progress(Err(Errno::AGAIN), -11, 8192),
            changing,
            "a negative field is no count"
        );
        assert_eq!(
            progress(Err(Errno::AGAIN), 0, 8192),
            changing,
            "an old kernel leaves it alone"
        );
        let present = Progress::Nothing(Stop::Present);
        assert_eq!(progress(Err(Errno::EXIST), -17, 4096), present);
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        let Ok(offered) = Uffd::offered() else {
            return super::super::testing::skip("a userfaultfd");
        };
        let unheard_of = Features(1 << 62);
        let error = Uffd::open(unheard_of.and(Features::THREAD_ID)).unwrap_err();
        assert_eq!(
            error,
            OpenError::Lacks {
                missing: unheard_of
            }
        );
        assert_eq!(Features::THREAD_ID.without(offered), Features::NONE);
    }
}
