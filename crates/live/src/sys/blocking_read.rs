//! A read that waits for the program's messages alone, and that signals end.
//!
//! An engine that polls its files, and then reads the one that is ready, makes two calls for each
//! message. The kernel looks at each of the files before the sleep and after it. A read that waits
//! takes 2.4 microseconds less. All else that has to end the wait comes as a signal:
//!
//! | what | signal |
//! |---|---|
//! | the doorbell | its own |
//! | a word of the supervisor | `SIGIO`, from its socket |
//! | the time | `SIGALRM` |
//!
//! The handler of all three makes the file one that does not wait. A read that has begun is ended
//! by the signal, and one that has not begun finds a file that does not wait. So no signal is lost
//! between a look at what is due and the read.
//!
//! # Invariants
//! 1. The file waits, and the signals are admitted, only while [`WAITING`] has the file's number.
//!    The kernel calls a userfaultfd that waits broken where it is polled: [`end`] comes before
//!    each poll, and before each read that must not wait.
//! 2. Only the engine's own process has these handlers, and only its thread uses this.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use rustix::fs::OFlags;

use super::Errno;
use super::signal::{self, Alarm, SignalSet};
use super::uffd::{Messages, Uffd};

/// The number of the file that waits now; -1: none does.
static WAITING: AtomicI32 = AtomicI32::new(-1);
/// A signal has come since the last wait was ended for one.
static IS_CALLED: AtomicBool = AtomicBool::new(false);

/// The way a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// There are messages.
    Messages,
    /// A signal came, for whatever reason.
    Called,
}

/// The waits of an engine.
#[derive(Debug, Default)]
pub struct BlockingRead {
    state: State,
    /// The time of the next alarm, in nanoseconds of the caller's clock.
    alarm_ns: u64,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing is prepared.
    #[default]
    New,
    Prepared(Alarm),
    /// The kernel has refused something.
    Refused,
}

impl BlockingRead {
    /// Waits for messages of the `program`, until `due_ns` at most, where it is `now_ns`. `control`
    /// is the supervisor's socket.
    ///
    /// Answers `None` if the caller has to poll: where the kernel refuses something, and the first
    /// time, since there is no signal for what `control` has received by then.
    ///
    /// - Needs: the calling thread blocks all signals but those of crashes.
    pub fn wait(
        &mut self,
        (program, control): (&Uffd, Option<BorrowedFd<'_>>),
        into: &mut Messages,
        times: (u64, u64),
    ) -> Option<Waited> {
        let answer = match &self.state {
            State::New => prepare(control).map(|alarm| {
                self.state = State::Prepared(alarm);
                None
            }),
            State::Prepared(alarm) => {
                self.alarm_ns = match set_in_time(alarm, self.alarm_ns, times) {
                    Ok(ns) => ns,
                    Err(_) => return self.refuse(),
                };
                read(program, into).map(Some)
            }
            State::Refused => return None,
        };
        answer.unwrap_or_else(|_| self.refuse())
    }

    fn refuse(&mut self) -> Option<Waited> {
        end();
        self.state = State::Refused;
        None
    }
}

fn prepare(control: Option<BorrowedFd<'_>>) -> Result<Alarm, Errno> {
    end();
    IS_CALLED.store(false, Relaxed);
    signal::set_handler(reasons(), stop_waiting)?;
    control.map_or(Ok(()), signal::send_word_of)?;
    Alarm::of_this_thread()
}

/// Sees to it that there is an alarm by `due_ns`, where the last was set for `alarm_ns`. Answers
/// the time of the next.
fn set_in_time(alarm: &Alarm, alarm_ns: u64, (now_ns, due_ns): (u64, u64)) -> Result<u64, Errno> {
    // One that comes too early does no harm.
    if (now_ns..=due_ns).contains(&alarm_ns) {
        return Ok(alarm_ns);
    }
    alarm.set(due_ns.saturating_sub(now_ns))?;
    Ok(due_ns)
}

fn read(program: &Uffd, into: &mut Messages) -> Result<Waited, Errno> {
    let file = program.as_fd();
    if WAITING.load(Relaxed) != file.as_raw_fd() {
        end();
        WAITING.store(file.as_raw_fd(), Relaxed);
        rustix::fs::fcntl_setfl(file, OFlags::empty())?;
        signal::admit(reasons_set())?;
    }
    program.read_waiting(into)?;
    if !into.is_empty() {
        return Ok(Waited::Messages);
    }
    end();
    IS_CALLED.store(false, Relaxed);
    Ok(Waited::Called)
}

/// Returns true if a signal has come since a wait was last ended for one, and forgets that.
pub fn is_called() -> bool {
    let is_called = IS_CALLED.load(Relaxed);
    if is_called {
        end();
        IS_CALLED.store(false, Relaxed);
    }
    is_called
}

/// Has the file not wait any more, if one does.
pub fn end() {
    let number = WAITING.load(Relaxed);
    if number >= 0 {
        // That a set of signals is blocked can't fail.
        let _ = signal::block(reasons_set());
        WAITING.store(-1, Relaxed);
        have_not_wait(number);
    }
}

/// As [`end`], if it is this file that waits.
pub fn end_of(file: BorrowedFd<'_>) {
    if WAITING.load(Relaxed) == file.as_raw_fd() {
        end();
    }
}

fn reasons() -> [i32; 3] {
    [libc::SIGIO, libc::SIGALRM, signal::DOORBELL]
}

fn reasons_set() -> SignalSet {
    let mut set = SignalSet::NONE;
    reasons().into_iter().for_each(|number| set.insert(number));
    set
}

/// Makes a file one that does not wait, by its number.
fn have_not_wait(number: i32) {
    // SAFETY: takes no pointers. The engine has the file for as long as it exists.
    unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_SETFL, libc::O_NONBLOCK) };
}

/// The handler. It interrupts the engine anywhere, and leaves its error number as it was.
extern "C" fn stop_waiting(_: i32) {
    let error = super::error_number();
    IS_CALLED.store(true, Relaxed);
    let number = WAITING.load(Relaxed);
    if number >= 0 {
        have_not_wait(number);
    }
    super::set_error_number(error);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::memory::Mapping;
    use super::super::testing::{Turn, is_so_in_child, skip};
    use super::super::uffd::{Features, Message, Mode};
    use super::super::{PAGE, socket, thread};
    use super::*;

    const PAGES: usize = 4;
    const FAR_NS: u64 = 10_000_000_000;
    const SOON_NS: u64 = 20_000_000;

    /// An engine's thread that has waited once, as the first thread of a child: signals of others
    /// would go astray else.
    struct Engine {
        uffd: Uffd,
        memory: Mapping,
        reading: BlockingRead,
        messages: Messages,
        begun: Instant,
    }

    impl Engine {
        fn new(control: Option<BorrowedFd<'_>>) -> Engine {
            signal::block(SignalSet::ALL).unwrap();
            let uffd = Uffd::open(Features::NONE).unwrap();
            let memory = Mapping::anonymous(PAGES * PAGE).unwrap();
            uffd.register(memory.start(), memory.bytes(), Mode::Missing)
                .unwrap();
            let mut engine = Engine {
                uffd,
                memory,
                reading: BlockingRead::default(),
                messages: Messages::new(),
                begun: Instant::now(),
            };
            let control = (&engine.uffd, control);
            let first = engine
                .reading
                .wait(control, &mut engine.messages, (0, FAR_NS));
            assert_eq!(first, None, "it prepares");
            engine
        }

        fn wait(&mut self, limit_ns: u64) -> Option<Waited> {
            let now_ns = self.begun.elapsed().as_nanos() as u64;
            let times = (now_ns, now_ns + limit_ns);
            self.reading
                .wait((&self.uffd, None), &mut self.messages, times)
        }

        /// Has a thread touch the first `pages`, which answers whether they are zeros.
        fn touch(&self, pages: usize) -> std::thread::JoinHandle<bool> {
            let start = self.memory.start();
            std::thread::spawn(move || {
                let byte = |page: usize| (start + page * PAGE) as *const u8;
                // SAFETY: the memory is there until this thread has ended.
                (0..pages).all(|page| unsafe { byte(page).read_volatile() } == 0)
            })
        }

        /// Serves the fault that was waited for.
        fn serve(&self) {
            assert_eq!(self.messages.len(), 1);
            for message in self.messages.iter() {
                let Message::Fault { at, .. } = message else {
                    panic!("{message:?}");
                };
                self.uffd.zeropage(at & !(PAGE - 1), PAGE);
            }
        }

        /// Returns true if a wait ends as by a signal, long before it is due, and the file does not
        /// wait any more.
        fn is_called(&mut self) -> bool {
            let start = Instant::now();
            let waited = self.wait(FAR_NS);
            self.uffd.read(&mut self.messages).unwrap();
            waited == Some(Waited::Called) && start.elapsed().as_nanos() < FAR_NS.into()
        }
    }

    fn in_child(body: impl FnOnce() -> bool) {
        if Uffd::offered().is_err() {
            return skip("a userfaultfd");
        }
        let _turn = Turn::alone();
        assert!(is_so_in_child(body));
    }

    #[test]
    fn messages_end_a_wait_and_the_next_goes_on() {
        in_child(|| {
            let mut engine = Engine::new(None);
            let toucher = engine.touch(PAGES);
            for _ in 0..PAGES {
                assert_eq!(engine.wait(FAR_NS), Some(Waited::Messages));
                engine.serve();
            }
            toucher.join().unwrap()
        });
    }

    #[test]
    fn the_doorbell_ends_a_wait_that_has_begun_and_one_that_has_not() {
        in_child(|| {
            let mut engine = Engine::new(None);
            let own = thread::current();
            signal::ring(own).unwrap();
            assert!(engine.is_called());
            // The second finds signals that are admitted.
            let ringer = std::thread::spawn(move || {
                for _ in 0..2 {
                    std::thread::sleep(Duration::from_nanos(SOON_NS));
                    signal::ring(own).unwrap();
                }
            });
            assert!(engine.is_called());
            assert_eq!(engine.wait(FAR_NS), Some(Waited::Called));
            ringer.join().is_ok()
        });
    }

    #[test]
    fn a_ring_between_two_waits_is_not_lost() {
        in_child(|| {
            let mut engine = Engine::new(None);
            let toucher = engine.touch(1);
            assert_eq!(engine.wait(FAR_NS), Some(Waited::Messages));
            signal::ring(thread::current()).unwrap();
            engine.serve();
            assert!(is_called() && !is_called());
            assert!(toucher.join().unwrap());
            let toucher = engine.touch(2);
            assert_eq!(engine.wait(FAR_NS), Some(Waited::Messages));
            signal::ring(thread::current()).unwrap();
            engine.serve();
            assert!(engine.is_called());
            toucher.join().unwrap()
        });
    }

    #[test]
    fn a_word_at_the_socket_ends_a_wait() {
        in_child(|| {
            let (own, other) = socket::pair().unwrap();
            let mut engine = Engine::new(Some(own.as_fd()));
            let sender = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_nanos(SOON_NS));
                socket::send(&other, b"word", &[]).unwrap();
                std::thread::sleep(Duration::from_nanos(SOON_NS));
            });
            assert!(engine.is_called());
            assert!(engine.is_called(), "the other end was closed");
            sender.join().is_ok()
        });
    }

    #[test]
    fn an_alarm_ends_a_wait_in_time() {
        in_child(|| {
            let mut engine = Engine::new(None);
            let start = Instant::now();
            assert_eq!(engine.wait(SOON_NS), Some(Waited::Called));
            let waited = start.elapsed().as_nanos() as u64;
            (SOON_NS..FAR_NS).contains(&waited)
        });
    }
}
