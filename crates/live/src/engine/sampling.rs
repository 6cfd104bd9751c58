//! Sampling: which pages a program touches in each window, for `tidemark record --live`.
//!
//! At the end of a window every page that was touched in it is moved to the pool, in runs. The next
//! touch of each is a soft fault, and makes one entry in the log: so does a first touch, and a
//! page found present. A page that stays in the pool costs nothing, however many there are.
//! First touches are found many at a time where that is possible: see
//! [`neighbours`](super::neighbours).
//!
//! A window goes on while sampling costs more than a tenth of its time: see [`pace`]. By regions,
//! windows have one length, and as many pages are watched as that tenth pays for: see [`regions`].
//!
//! Time is that of the program's processor: what the process has used, less what this engine has.
//! A program that sleeps has no windows.

mod pace;
mod regions;

use std::os::fd::OwnedFd;

use rustix::time::ClockId;
use tidemark_core::id::{FrameId, VirtPage};
use tidemark_core::machine::{Machine, Rights};
use tidemark_log::kind;

pub use self::pace::{Kept, Windows};
use self::pace::{Look, Pace};
use self::regions::Regions;
use super::Engine;
use super::neighbours::Neighbours;
use crate::parts::trouble::Trouble;
use crate::parts::units;
use crate::parts::units::{address_of, page_of, time_ns};
use crate::reference_log::{LogWriter, monotonic_ns};
use crate::sys::maps::Kind;
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
const LOAD: u8 = 2;
pub(super) const STORE: u8 = 4;
/// The rights of managed memory: it may be read and written.
const RIGHTS: u32 = 3;

/// The state of the window at hand.
pub(super) struct Sampling {
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
    /// True if that was in this turn: to ask takes two system calls.
    is_told: bool,
    /// The frames of pages touched in this window. Some may hold another page by now.
    touched: Vec<FrameId>,
    /// Those of the last window that have not been moved out yet.
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
    pub(super) neighbours: Neighbours,
}

impl Sampling {
    /// Begins to log to `file`, which came by way of `control`.
    pub(super) fn begin(
        file: OwnedFd,
        control: &OwnedFd,
        windows: Windows,
        name: &str,
    ) -> Result<Sampling, Trouble> {
        let call = |what| move |error| Trouble::Call { what, error };
        let reader = control.try_clone().map_err(super::start::no_supervisor)?;
        let (pid, parent) = (crate::parts::trouble::pid(), super::start::parent_pid());
        let log =
            LogWriter::begin(file, reader, pid, parent).map_err(super::start::no_supervisor)?;
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
    pub(super) fn resume_in_child(
        self,
        file: OwnedFd,
        control: &OwnedFd,
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
    pub(super) fn abandon(self) {
        self.log.abandon();
    }

    /// The program's time in this turn.
    pub(super) fn now(&mut self) -> u64 {
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

impl Engine {
    /// Moves out what was touched in the window at hand, if that is over.
    pub(super) fn sample(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        if sampling.log.is_over() {
            self.sampling = None;
            return;
        }
        let time = sampling.now();
        let is_due = sampling.pace.is_due(time);
        // What was written in a window has its record in it.
        let is_known = match is_due {
            true => self.find_written(),
            false => true,
        };
        self.look_at_neighbours();
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        if is_due && is_known {
            match sampling.regions {
                Some(_) => self.end_window_of_regions(),
                None => sampling.end_window(),
            }
        }
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        if sampling.has_news && monotonic_ns() > sampling.published_ns + PUBLISHED_EVERY_NS {
            sampling.publish();
        }
        sampling.is_told = false;
        self.move_touched_out();
    }

    /// Ends a window in which some pages of each region were watched, and chooses those of the
    /// next.
    fn end_window_of_regions(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let Some(regions) = &mut sampling.regions else {
            return;
        };
        if !sampling.leaving.is_empty() {
            // They could not be moved out yet, and nothing is known of them.
            return;
        }
        // Those that had to stay tell nothing.
        let stayed = std::mem::take(&mut sampling.touched);
        for (frame, at) in std::mem::take(&mut sampling.watched) {
            let is_there = self.vm.frame_at(self.space, at) == Some(frame);
            if is_there && !stayed.contains(&frame) {
                regions.note(address_of(at), self.machine.is_mapped(frame));
            }
        }
        for touched in regions.collect_touched() {
            let time = sampling.time;
            let (start, bytes) = (touched.start, touched.bytes);
            sampling
                .log
                .touch_share(start, bytes, touched.share as u32, time);
            sampling.has_news = true;
        }
        sampling.end_window();
        let affordable = sampling.pace.affordable_pages();
        let Some(regions) = &mut sampling.regions else {
            return;
        };
        let chosen = regions.begin_window(affordable.clamp(WATCHED_MIN, WATCHED_MAX));
        for at in chosen.into_iter().map(page_of) {
            if let Some(frame) = self.vm.frame_at(self.space, at) {
                sampling.watched.push((frame, at));
                sampling.leaving.push(frame);
            }
        }
    }

    fn move_touched_out(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        if !self.changes.is_settled() {
            // What stands where is not known.
            return;
        }
        let rest = sampling.leaving.len().saturating_sub(PAGES_A_TURN);
        let due = sampling.leaving.split_off(rest);
        if due.is_empty() {
            return;
        }
        let began_ns = own_time_ns();
        for &frame in &due {
            if self.machine.is_mapped(frame) {
                self.machine.restrict(frame, Rights::None);
            }
        }
        self.vm.handle_tick(self.now, &mut self.machine);
        // Pinned, or not to be moved just now: tried again at the end of the next window.
        let touched_before = sampling.touched.len();
        let count = due.len();
        let stayed = due
            .into_iter()
            .filter(|frame| self.machine.is_mapped(*frame));
        sampling.touched.extend(stayed);
        let moved = (count + touched_before - sampling.touched.len()) as u64;
        let moving_ns = own_time_ns().saturating_sub(began_ns);
        sampling.moving_ns += moving_ns;
        sampling.pace.note_moved(moved, moving_ns);
    }

    /// The time for which there is nothing to sample, unless something happens.
    pub(super) fn sampling_pause_ns(&mut self) -> u64 {
        let Some(sampling) = &mut self.sampling else {
            return u64::MAX;
        };
        if !sampling.leaving.is_empty() {
            return 0;
        }
        let look_ns = sampling.neighbours.due().since_ns(units::now());
        let is_watching = sampling.regions.as_ref().is_some_and(|it| !it.is_empty());
        if sampling.touched.is_empty() && !sampling.has_news && !is_watching {
            return look_ns;
        }
        let left = sampling.pace.left_ns(sampling.time);
        let threads = sampling.threads.len() as u64 + 1;
        // Regions are watched also while the program sleeps, and its time stands still.
        let least_ns = match is_watching {
            true => sampling.windows.first_ns / LATE_SHARE,
            false => 0,
        };
        let left = (left / threads.min(sampling.processors)).max(least_ns.max(PAUSE_NS_LEAST));
        left.min(look_ns)
    }

    /// Logs a touch of the page at `at`. Call it before the thread that touches may go on: that may
    /// end the process.
    pub(super) fn note_touch(&mut self, at: VirtPage, is_write: bool) {
        if self.sampling.is_some() && self.managed.contains(address_of(at)) {
            self.log_touch(at, if is_write { STORE } else { LOAD });
        }
    }

    /// Remembers that the page at `at` stands there now, and is to leave when the window is over.
    pub(super) fn note_standing(&mut self, at: VirtPage) {
        if let Some(sampling) = &mut self.sampling {
            match &mut sampling.regions {
                Some(regions) => regions.add(address_of(at)),
                None => {
                    let frame = self.vm.frame_at(self.space, at);
                    sampling.touched.extend(frame);
                }
            }
        }
    }

    /// Logs that the page at `at` was found there: how it was touched is not known.
    pub(super) fn note_found(&mut self, at: VirtPage) {
        self.log_touch(at, 0);
        self.note_standing(at);
    }

    /// Forgets what stood in a range: it is gone.
    pub(super) fn forget_known(&mut self, start: usize, end: usize) {
        if let Some(sampling) = &mut self.sampling
            && let Some(regions) = &mut sampling.regions
        {
            regions.forget(start, end);
        }
    }

    /// Counts that a page was touched again which had been moved out.
    pub(super) fn count_retouch(&mut self) {
        if let Some(sampling) = &mut self.sampling {
            sampling.back += 1;
        }
    }

    pub(super) fn log_touch(&mut self, at: VirtPage, kinds: u8) {
        if let Some(sampling) = &mut self.sampling {
            let time = sampling.now();
            sampling.log.touch(address_of(at), kinds, time);
            sampling.touches += 1;
            sampling.has_news = true;
        }
    }

    /// Logs that a range has come under management.
    pub(super) fn note_mapped(&mut self, start: usize, end: usize) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let area = self.scanner.maps().find_area(start).ok().flatten();
        let name = match area.map(|area| area.kind) {
            Some(Kind::Heap) => "[heap]",
            _ => "",
        };
        let words = [start as u64, (end - start) as u64, 0];
        sampling.event(kind::MAP, RIGHTS, &words, Some(name));
    }

    /// Logs that a range is gone.
    pub(super) fn note_unmapped(&mut self, start: usize, end: usize) {
        if let Some(sampling) = &mut self.sampling {
            let words = [start as u64, (end - start) as u64];
            sampling.event(kind::UNMAP, 0, &words, None);
        }
    }

    /// Logs that a range has moved.
    pub(super) fn note_moved(&mut self, from: usize, to: usize, bytes: usize) {
        if let Some(sampling) = &mut self.sampling {
            if let Some(regions) = &mut sampling.regions {
                regions.move_to(from, to, bytes);
            }
            let words = [from as u64, bytes as u64, to as u64, bytes as u64];
            sampling.event(kind::REMAP, 0, &words, None);
        }
    }

    /// Logs which threads have come and gone, after a scan.
    pub(super) fn note_threads(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let there = self.scanner.threads_seen();
        let (kept, gone) = std::mem::take(&mut sampling.threads)
            .into_iter()
            .partition(|(id, _)| there.binary_search(id).is_ok());
        sampling.threads = kept;
        let gone: Vec<(u32, u32)> = gone;
        for (_, number) in gone {
            sampling.event(kind::THREAD_EXIT, number, &[], None);
        }
        let there: Vec<u32> = there.to_vec();
        there.into_iter().for_each(|id| self.note_thread(id));
    }

    /// Logs that a thread has begun, if it is new and the program's. One that has just begun can't
    /// be told from the kernel's before it faults.
    pub(super) fn note_thread(&mut self, id: u32) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let is_known = sampling.threads.iter().any(|&(known, _)| known == id);
        if id == self.own_process || is_known || !is_of_program(id) {
            return;
        }
        sampling.threads_seen += 1;
        let number = sampling.threads_seen;
        sampling.threads.push((id, number));
        sampling.event(kind::THREAD_START, number, &[], None);
    }

    /// Publishes what there is: something else is about to happen that comes after it.
    pub(super) fn publish_samples(&mut self) {
        if let Some(sampling) = &mut self.sampling
            && sampling.has_news
        {
            sampling.publish();
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
