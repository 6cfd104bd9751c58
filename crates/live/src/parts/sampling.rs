//! Sampling: which pages a program touches in each window, for `tidemark record --live`.
//!
//! At the end of a window every page that was touched in it is moved to the pool, in runs. The next
//! touch of each is a soft fault, and makes one entry in the log: so does a first touch, and a
//! page found present. A page that stays in the pool costs nothing, however many there are.
//! First touches are found many at a time where that is possible: see
//! [`neighbours`].
//!
//! A window goes on while sampling costs more than a tenth of its time: see [`pace`]. By regions,
//! windows have one length, and as many pages are watched as that tenth pays for: see [`regions`].
//!
//! Time is that of the program's processor: what the process has used, less what this engine has.
//! A program that sleeps has no windows.

mod neighbours;
mod pace;
mod regions;

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::time::ClockId;
use tidemark_core::id::{FrameId, VirtPage};
use tidemark_core::seams::machine::{Machine, Rights};
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;
use tidemark_log::kind;

pub use self::neighbours::{Neighbours, Runs};
pub use self::pace::{Kept, Windows};
use self::pace::{Look, Pace};
use self::regions::Regions;
use super::trouble::{Trouble, call, no_supervisor, pid};
use super::units::{address_of, page_of, time_ns};
use crate::machine::LiveMachine;
use crate::reference_log::{LogWriter, monotonic_ns};
use crate::sys::{memory, program, thread};

/// Pages moved out in one turn at most, so that faults never wait long.
const PAGES_A_TURN: usize = 2048;
/// The most pages that are watched in a window by regions.
const WATCHED_MAX: u64 = PAGES_A_TURN as u64;
/// The fewest pages that are watched in a window by regions.
const WATCHED_MIN: u64 = 64;
/// The interval at which new entries are published, however long a window lasts: a recording that
/// is killed has it.
const PUBLISHED_EVERY_NS: u64 = 250_000_000;
/// The engine sleeps no shorter than this while it waits for the end of a window.
const PAUSE_NS_LEAST: u64 = 200_000;
/// A window of regions may end later by this part of it.
const LATE_SHARE: u64 = 16;
/// Kinds of access in the log: as in traces.
pub const LOAD: u8 = 2;
pub const STORE: u8 = 4;
/// The rights of managed memory: it may be read and written.
const RIGHTS: u32 = 3;

/// The state of the window at hand.
pub struct Sampling {
    log: LogWriter,
    windows: Windows,
    pace: Pace,
    /// Touches since the engine's own time was last asked for, those among them of pages that were
    /// moved out.
    touches: u64,
    back: u64,
    /// The time of moving pages out since then, and the engine's own time then.
    moving_ns: u64,
    own_ns: u64,
    /// The latest time told: clocks of several threads are not read at one moment.
    time: u64,
    /// True if the time was asked for in this turn already: asking takes two system calls.
    is_told: bool,
    /// The frames of pages touched in this window. Some may hold another page by now.
    touched: Vec<FrameId>,
    /// The frames of pages of the last window that have not been moved out yet.
    leaving: Vec<FrameId>,
    /// The regions, if not all pages are sampled but some of each.
    regions: Option<Regions>,
    /// The pages that are watched in this window, by regions.
    watched: Vec<(FrameId, VirtPage)>,
    /// True if something has been logged since it was last published.
    has_news: bool,
    /// The time at which entries were last published.
    published_ns: u64,
    /// The program's threads beside the first, each with its number in the log.
    threads: Vec<(u32, u32)>,
    threads_seen: u32,
    /// The number of processors that may run the program at the same time.
    processors: u64,
    neighbours: Neighbours,
}

impl Sampling {
    /// Begins to log to `file`, which came by way of `control`.
    pub fn begin(
        file: OwnedFd,
        control: BorrowedFd<'_>,
        windows: Windows,
        name: &str,
    ) -> Result<Sampling, Trouble> {
        let reader = control.try_clone_to_owned().map_err(no_supervisor)?;
        let (pid, parent) = (pid(), program::parent());
        let log = LogWriter::begin(file, reader, pid, parent).map_err(no_supervisor)?;
        let allowed = thread::allowed().map_err(call("asking for processors"))?;
        let mut sampling = Sampling {
            log,
            windows,
            pace: Pace::new(windows),
            touches: 0,
            back: 0,
            moving_ns: 0,
            own_ns: own_time_ns(),
            time: 0,
            is_told: false,
            touched: Vec::new(),
            leaving: Vec::new(),
            regions: (windows.kept == Kept::Regions).then(Regions::new),
            watched: Vec::new(),
            has_news: false,
            published_ns: 0,
            threads: Vec::new(),
            threads_seen: 1,
            processors: u64::from(allowed.count()).max(1),
            neighbours: Neighbours::new(),
        };
        sampling.hello(pid, name);
        Ok(sampling)
    }

    /// Goes on in a forked child, with a log of its own.
    pub fn resume_in_child(
        self,
        file: OwnedFd,
        control: BorrowedFd<'_>,
        name: &str,
    ) -> Result<Sampling, Trouble> {
        let Sampling {
            log,
            windows,
            pace,
            mut touched,
            leaving,
            regions,
            watched,
            neighbours,
            ..
        } = self;
        log.abandon();
        // Pages that the parent has still to move out are in the child as well.
        touched.extend(leaving);
        let fresh = Sampling::begin(file, control, windows, name)?;
        let mut child = Sampling {
            touched,
            regions,
            watched,
            neighbours,
            pace: pace.of_child(),
            ..fresh
        };
        child.tell_length(pace.told_beside_first());
        Ok(child)
    }

    /// Ends sampling in a forked child that has no log.
    pub fn abandon(self) {
        self.log.abandon();
    }

    /// The program's time in this turn.
    pub fn now(&mut self) -> u64 {
        if self.is_told {
            return self.time;
        }
        self.is_told = true;
        let (program_ns, own_ns) = (program::processor_ns(), own_time_ns());
        self.time = self.time.max(program_ns);
        self.book(own_ns);
        self.time
    }

    /// Books what this engine has used of its processor since it was last asked for: to the pages
    /// that came back, their part of all that were touched.
    fn book(&mut self, own_ns: u64) {
        let spent_ns = own_ns.saturating_sub(self.own_ns + self.moving_ns);
        if let Some(part_ns) = (spent_ns * self.back).checked_div(self.touches)
            && self.back > 0
        {
            self.pace.note_back(self.back, part_ns);
        }
        (self.own_ns, self.moving_ns) = (own_ns, 0);
        (self.touches, self.back) = (0, 0);
    }

    fn hello(&mut self, pid: u32, name: &str) {
        let program = std::fs::read_link("/proc/self/exe")
            .ok()
            .and_then(|path| path.into_os_string().into_string().ok());
        let program = program.unwrap_or_else(|| name.into());
        let words = [u64::from(pid), 0, 0, 0];
        self.event(kind::HELLO, 0, &words, Some(&program));
    }

    fn event(&mut self, entry: u8, argument: u32, words: &[u64], text: Option<&str>) {
        let time = self.now();
        self.log.event(entry, argument, words, text, time);
        self.has_news = true;
    }

    /// Ends the window, unless it goes on because sampling costs too much.
    fn end_window(&mut self) {
        let time = self.now();
        match self.pace.look(time, self.touched.len() as u64) {
            Look::Longer(told) => self.tell_length(told),
            Look::Over(told) => {
                self.tell_length(told);
                if self.has_news || !self.touched.is_empty() {
                    self.event(kind::WINDOW, 0, &[], None);
                    self.publish();
                }
                self.leaving.append(&mut self.touched);
            }
        }
    }

    /// Says how long windows are from now on, that at hand included.
    fn tell_length(&mut self, told: Option<u64>) {
        if let Some(ns) = told {
            self.event(kind::WINDOW_LENGTH, 0, &[ns], None);
        }
    }

    fn publish(&mut self) {
        self.published_ns = monotonic_ns();
        self.log.publish(self.published_ns);
        self.has_news = false;
    }
}

// The window at hand, and what it holds.
impl Sampling {
    /// Returns true if the log has no reader any more.
    pub fn is_over(&self) -> bool {
        self.log.is_over()
    }

    /// Returns true if the window is to be looked at.
    pub fn is_due(&mut self) -> bool {
        let time = self.now();
        self.pace.is_due(time)
    }

    /// The pages that have blank neighbours.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// The pages that have blank neighbours, to change them.
    pub fn neighbours_mut(&mut self) -> &mut Neighbours {
        &mut self.neighbours
    }

    /// Ends the window that is due, with what `vm` and `machine` know of the pages in it.
    pub fn end_due_window(
        &mut self,
        at_frame: impl Fn(VirtPage) -> Option<FrameId>,
        machine: &LiveMachine,
    ) {
        match self.regions {
            Some(_) => self.end_window_of_regions(at_frame, machine),
            None => self.end_window(),
        }
    }

    /// Ends a window in which some pages of each region were watched, and chooses those of the
    /// next.
    fn end_window_of_regions(
        &mut self,
        at_frame: impl Fn(VirtPage) -> Option<FrameId>,
        machine: &LiveMachine,
    ) {
        let Some(regions) = &mut self.regions else {
            return;
        };
        if !self.leaving.is_empty() {
            // They could not be moved out yet, and nothing is known of them.
            return;
        }
        // Those that had to stay tell nothing.
        let stayed = std::mem::take(&mut self.touched);
        for (frame, at) in std::mem::take(&mut self.watched) {
            let is_there = at_frame(at) == Some(frame);
            if is_there && !stayed.contains(&frame) {
                regions.note(address_of(at), machine.is_mapped(frame));
            }
        }
        for touched in regions.collect_touched() {
            let time = self.time;
            let (start, bytes) = (touched.start, touched.bytes);
            self.log
                .touch_share(start, bytes, touched.share as u32, time);
            self.has_news = true;
        }
        self.end_window();
        let affordable = self.pace.affordable_pages();
        let Some(regions) = &mut self.regions else {
            return;
        };
        let chosen = regions.begin_window(affordable.clamp(WATCHED_MIN, WATCHED_MAX));
        for at in chosen.into_iter().map(page_of) {
            if let Some(frame) = at_frame(at) {
                self.watched.push((frame, at));
                self.leaving.push(frame);
            }
        }
    }

    /// Ends a turn: publishes what has been logged, if it is time.
    pub fn end_turn(&mut self) {
        if self.has_news && monotonic_ns() > self.published_ns + PUBLISHED_EVERY_NS {
            self.publish();
        }
        self.is_told = false;
    }

    /// Moves some of the pages out that were touched in the last window.
    pub fn move_touched_out(&mut self, now: Time, vm: &mut Vm, machine: &mut LiveMachine) {
        let rest = self.leaving.len().saturating_sub(PAGES_A_TURN);
        let due = self.leaving.split_off(rest);
        if due.is_empty() {
            return;
        }
        let began_ns = own_time_ns();
        for &frame in &due {
            if machine.is_mapped(frame) {
                machine.restrict(frame, Rights::None);
            }
        }
        vm.handle_tick(now, machine);
        // Pinned, or not to be moved just now: tried again at the end of the next window.
        let touched_before = self.touched.len();
        let count = due.len();
        let stayed = due.into_iter().filter(|frame| machine.is_mapped(*frame));
        self.touched.extend(stayed);
        let moved = (count + touched_before - self.touched.len()) as u64;
        let moving_ns = own_time_ns().saturating_sub(began_ns);
        self.moving_ns += moving_ns;
        self.pace.note_moved(moved, moving_ns);
    }

    /// The time for which there is nothing to sample from `now` on, unless something happens.
    pub fn pause_ns(&self, now: Time) -> u64 {
        if !self.leaving.is_empty() {
            return 0;
        }
        let look_ns = self.neighbours.due().since_ns(now);
        let is_watching = self.regions.as_ref().is_some_and(|it| !it.is_empty());
        if self.touched.is_empty() && !self.has_news && !is_watching {
            return look_ns;
        }
        let left = self.pace.left_ns(self.time);
        let threads = self.threads.len() as u64 + 1;
        // Regions are watched also while the program sleeps, and its time stands still.
        let least_ns = match is_watching {
            true => self.windows.first_ns / LATE_SHARE,
            false => 0,
        };
        let left = (left / threads.min(self.processors)).max(least_ns.max(PAUSE_NS_LEAST));
        left.min(look_ns)
    }

    /// Remembers that the page at `at`, in `frame`, stands there now, and is to leave when the
    /// window is over.
    pub fn note_standing(&mut self, at: VirtPage, frame: Option<FrameId>) {
        match &mut self.regions {
            Some(regions) => regions.add(address_of(at)),
            None => self.touched.extend(frame),
        }
    }

    /// Counts that a page was touched again which had been moved out.
    pub fn count_retouch(&mut self) {
        self.back += 1;
    }
}

// The log.
impl Sampling {
    /// Logs a touch of the page at `at`: how, as a trace says it, or nothing where that is not
    /// known. Call it before the thread that touches may go on: that may end the process.
    pub fn log_touch(&mut self, at: VirtPage, kinds: u8) {
        let time = self.now();
        self.log.touch(address_of(at), kinds, time);
        self.touches += 1;
        self.has_news = true;
    }

    /// Logs that a range has come under management, which has a name in traces.
    pub fn note_mapped(&mut self, start: usize, end: usize, name: &str) {
        let words = [start as u64, (end - start) as u64, 0];
        self.event(kind::MAP, RIGHTS, &words, Some(name));
    }

    /// Logs that a range is gone.
    pub fn note_unmapped(&mut self, start: usize, end: usize) {
        let words = [start as u64, (end - start) as u64];
        self.event(kind::UNMAP, 0, &words, None);
    }

    /// Logs that a range has moved.
    pub fn note_moved(&mut self, from: usize, to: usize, bytes: usize) {
        if let Some(regions) = &mut self.regions {
            regions.move_to(from, to, bytes);
        }
        let words = [from as u64, bytes as u64, to as u64, bytes as u64];
        self.event(kind::REMAP, 0, &words, None);
    }

    /// Forgets what stood in a range, blank pages among it: it is gone.
    pub fn forget(&mut self, start: usize, end: usize) {
        self.neighbours.remove(start, end);
        if let Some(regions) = &mut self.regions {
            regions.forget(start, end);
        }
    }

    /// Logs which threads have come and gone: these are `there`, in order, of process `process`.
    pub fn note_threads(&mut self, there: &[u32], process: u32) {
        let (kept, gone) = std::mem::take(&mut self.threads)
            .into_iter()
            .partition(|(id, _)| there.binary_search(id).is_ok());
        self.threads = kept;
        let gone: Vec<(u32, u32)> = gone;
        for (_, number) in gone {
            self.event(kind::THREAD_EXIT, number, &[], None);
        }
        there.iter().for_each(|id| self.note_thread(*id, process));
    }

    /// Logs that a thread has begun, if it is new and the program's, which is `process`. One that
    /// has just begun can't be told from the kernel's before it faults.
    pub fn note_thread(&mut self, id: u32, process: u32) {
        let is_known = self.threads.iter().any(|&(known, _)| known == id);
        if id == process || is_known || !is_of_program(id) {
            return;
        }
        self.threads_seen += 1;
        let number = self.threads_seen;
        self.threads.push((id, number));
        self.event(kind::THREAD_START, number, &[], None);
    }

    /// Publishes what has been logged since the last time.
    pub fn publish_news(&mut self) {
        if self.has_news {
            self.publish();
        }
    }
}

/// The processor time that this engine has used.
fn own_time_ns() -> u64 {
    time_ns(ClockId::ThreadCPUTime)
}

/// Returns true if a thread is the program's: the engine's own are known by their control blocks,
/// the kernel's have none.
fn is_of_program(id: u32) -> bool {
    let block = thread::robust_list_head(id);
    block.is_some_and(|block| !memory::overlaps_own(block, block + 1))
}
