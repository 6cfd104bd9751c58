//! The cost of the primitives on this host: each measurement gives its samples in nanoseconds.
//!
//! Pages are served by moving them out of a pool, as the engine does for soft faults.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::memory::Mapping;
use super::pool::Pool;
use super::uffd::{Features, Message, Messages, Mode, OpenError, Progress, Stop, Uffd};
use super::{Errno, PAGE, socket, thread};

use tidemark_core::id::FrameId;

/// The processor of the thread that serves faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On the processor of the thread that faults.
    SameProcessor,
    /// On another one.
    OtherProcessor,
}

/// The way pages are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Read.
    Read,
    /// Written: before the kernel reports that the page is missing, it makes one of zeros,
    /// which it then gives back.
    Write,
}

/// The reason for which a measurement could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The userfaultfd can't be had.
    Open(OpenError),
    /// A system call failed.
    Call(Errno),
    /// A page could not be moved.
    Move(Stop),
    /// The measurement needs two processors, and there is one.
    OneProcessor,
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::Open(error)
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::Call(error)
    }
}

/// The time for which children that have ended, and theirs that they waited for, ran in user mode
/// and in all, in nanoseconds. How the one divides the other may have been sampled, once in some
/// milliseconds.
pub fn children_ns() -> (u64, u64) {
    // SAFETY: a `rusage` of zeros is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `rusage` that no other code has.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    assert_eq!(
        result, 0,
        "children's use of processors can always be asked for"
    );
    let [user, system] = [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000);
    (user, user + system)
}

/// First touches of `pages` pages, served by the host alone.
pub fn host_zero_fills(pages: usize) -> Result<Vec<u64>, Failure> {
    let area = Mapping::anonymous(pages * PAGE)?;
    Ok(touch_each(&area, Touch::Write))
}

/// Touches of `pages` pages that a thread moves into place.
pub fn thread_faults(
    pages: usize,
    placement: Placement,
    touch: Touch,
) -> Result<Vec<u64>, Failure> {
    let setting = Setting::new(pages, Features::MOVE)?;
    let here = thread::current_cpu();
    let allowed = thread::allowed()?;
    let there = match placement {
        Placement::SameProcessor => here,
        Placement::OtherProcessor => (0..1024)
            .find(|&cpu| cpu != here && allowed.is_set(cpu as usize))
            .ok_or(Failure::OneProcessor)?,
    };
    thread::stay_on(here)?;
    let is_over = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    let samples = std::thread::scope(|scope| {
        let (setting, is_over) = (&setting, &is_over);
        scope.spawn(move || {
            let _ = thread::stay_on(there);
            let _ = ready.send(());
            setting.serve(is_over);
        });
        let _ = is_ready.recv();
        let samples = touch_each(&setting.area, touch);
        is_over.store(true, Ordering::Release);
        samples
    });
    thread::stay_anywhere(&allowed)?;
    Ok(samples)
}

/// Touches of `pages` pages that the touching thread moves into place itself, in its handler of
/// `SIGBUS`. Not for use in several threads at a time.
pub fn in_thread_faults(pages: usize, touch: Touch) -> Result<Vec<u64>, Failure> {
    let setting = Setting::new(pages, Features::MOVE.and(Features::SIGBUS))?;
    SERVED.offset.store(
        setting.pool.start().wrapping_sub(setting.area.start()),
        Ordering::Relaxed,
    );
    SERVED.uffd.store(raw_fd(&setting.uffd), Ordering::Release);
    let before = set_handler(handler())?;
    let samples = touch_each(&setting.area, touch);
    set_handler(before)?;
    SERVED.uffd.store(-1, Ordering::Release);
    Ok(samples)
}

/// Moves of `rounds` runs of `run_pages` pages out of the pool and back into it. A sample is the
/// time per page, of both directions in turn.
pub fn moves(run_pages: usize, rounds: usize) -> Result<Vec<u64>, Failure> {
    let setting = Setting::new(run_pages, Features::MOVE)?;
    // Pages are moved both ways: the pool is a target as well.
    setting
        .uffd
        .register(setting.pool.start(), setting.pool.bytes(), Mode::MoveTarget)?;
    let (area, pool, bytes) = (setting.area.start(), setting.pool.start(), run_pages * PAGE);
    let mut samples = Vec::with_capacity(rounds * 2);
    for (to, from) in [(area, pool), (pool, area)]
        .into_iter()
        .cycle()
        .take(rounds * 2)
    {
        let start = Instant::now();
        setting.move_all(to, from, bytes)?;
        samples.push(start.elapsed().as_nanos() as u64 / run_pages as u64);
    }
    Ok(samples)
}

/// A registered area without pages, and a pool with a page for each of its places.
struct Setting {
    uffd: Uffd,
    area: Mapping,
    pool: Pool,
}

impl Setting {
    fn new(pages: usize, features: Features) -> Result<Setting, Failure> {
        let uffd = Uffd::open(features)?;
        let mut area = Mapping::anonymous(pages * PAGE)?;
        let mut pool = Pool::new(pages as u32)?;
        // A page that is shared since a fork of another thread can't be moved, and the thread that
        // waits for it would wait for ever.
        area.hide_from_children()?;
        pool.hide_from_children()?;
        for frame in 0..pages as u32 {
            pool.clear(FrameId(frame));
        }
        uffd.register(area.start(), area.bytes(), Mode::Missing)?;
        Ok(Setting { uffd, area, pool })
    }

    /// Serves faults until `is_over`.
    fn serve(&self, is_over: &AtomicBool) {
        let mut messages = Messages::new();
        while !is_over.load(Ordering::Acquire) {
            let _ = socket::wait_readable(&[self.uffd.as_fd()], Some(10_000_000));
            if self.uffd.read(&mut messages).is_err() {
                continue;
            }
            for message in messages.iter() {
                if let Message::Fault { at, .. } = message {
                    let from = self.pool.start() + (at & !(PAGE - 1)) - self.area.start();
                    // A fault that is not served ends with the area's registration.
                    let _ = self.move_all(at & !(PAGE - 1), from, PAGE);
                }
            }
        }
    }

    fn move_all(&self, mut to: usize, mut from: usize, mut bytes: usize) -> Result<(), Failure> {
        loop {
            match self.uffd.move_pages(to, from, bytes) {
                Progress::All => return Ok(()),
                Progress::Part(moved) => {
                    to += moved;
                    from += moved;
                    bytes -= moved;
                }
                Progress::Nothing(Stop::Changing) => {}
                Progress::Nothing(stop) => return Err(Failure::Move(stop)),
            }
        }
    }
}

/// The state from which the signal handler serves faults.
struct Served {
    uffd: AtomicI32,
    /// From a page's address to that of its frame in the pool.
    offset: AtomicUsize,
}

static SERVED: Served = Served {
    uffd: AtomicI32::new(-1),
    offset: AtomicUsize::new(0),
};

/// Touches each page of `area` and takes the time of each.
fn touch_each(area: &Mapping, touch: Touch) -> Vec<u64> {
    let mut samples = Vec::with_capacity(area.bytes() / PAGE);
    for page in 0..area.bytes() / PAGE {
        let start = Instant::now();
        // SAFETY: the page lies within the mapping, which holds no Rust object.
        unsafe {
            let place = area.as_ptr().add(page * PAGE);
            match touch {
                Touch::Read => _ = place.read_volatile(),
                Touch::Write => place.write_volatile(1),
            }
        };
        samples.push(start.elapsed().as_nanos() as u64);
    }
    samples
}

fn raw_fd(uffd: &Uffd) -> i32 {
    use std::os::fd::AsRawFd;
    uffd.as_fd().as_raw_fd()
}

fn handler() -> libc::sigaction {
    // SAFETY: a plain C struct for which zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    action
}

/// Sets the action for `SIGBUS` and answers the one before.
fn set_handler(action: libc::sigaction) -> Result<libc::sigaction, Errno> {
    // SAFETY: a plain C struct for which zeros are a value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both point to live structs; the handler is async-signal-safe (see there).
    let answer = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) };
    if answer == 0 {
        Ok(before)
    } else {
        Err(Errno::INVAL)
    }
}

/// Moves the missing page into place. It makes one system call and touches nothing else, which is
/// safe at any point of the program.
extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    use std::os::fd::BorrowedFd;
    // SAFETY: the kernel hands the handler a live siginfo, whose address is set for SIGBUS.
    let at = unsafe { (*info).si_addr() } as usize & !(PAGE - 1);
    let fd = SERVED.uffd.load(Ordering::Acquire);
    let from = at.wrapping_add(SERVED.offset.load(Ordering::Relaxed));
    // SAFETY: the descriptor stays open while it is in `SERVED`.
    let uffd = unsafe { BorrowedFd::borrow_raw(fd.max(0)) };
    if fd < 0 || super::uffd::move_page(uffd, at, from) != Progress::All {
        // Not ours, or not to be served: the touch must not be tried again for ever.
        super::signal::end_process();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if this process may use the userfaultfd; says so if not.
    fn may_run() -> bool {
        let may = Uffd::offered().is_ok();
        tidemark_testing::require(may, "userfaultfd is not permitted")
    }

    #[test]
    fn every_measurement_gives_a_sample_a_page() {
        assert_eq!(host_zero_fills(50).unwrap().len(), 50);
        if !may_run() {
            return;
        }
        assert_eq!(
            thread_faults(50, Placement::SameProcessor, Touch::Write)
                .unwrap()
                .len(),
            50
        );
        assert_eq!(in_thread_faults(50, Touch::Read).unwrap().len(), 50);
        assert_eq!(moves(16, 5).unwrap().len(), 10);
        match thread_faults(50, Placement::OtherProcessor, Touch::Write) {
            Ok(samples) => assert_eq!(samples.len(), 50),
            Err(failure) => assert_eq!(failure, Failure::OneProcessor),
        }
    }
}
