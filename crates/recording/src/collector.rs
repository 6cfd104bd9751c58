//! The collector: reads the logs of all processes of a recording in one order.
//!
//! Each publication of a log bears the time at which its process made it. In each round the
//! collector fixes a moment, and plays what was published before it in the order of these times:
//! what one process did before another could know of it stands before what the other did then.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use tidemark_log::{Collected, Log, Publication};
use tidemark_trace::summary::End;
use tidemark_trace::{Event, LifeEvent};

use crate::process::{Process, Settings};
use crate::sheet::Sink;
use crate::spool::{Message, Spool};
use crate::valgrind::Account;

/// The time for which a round may be put off while no process rings.
const ROUND: Duration = Duration::from_millis(20);
/// The time for which a round may be put off while there is work for it.
const ROUND_BEHIND: Duration = Duration::from_millis(1);
/// The time that a process that is gone is kept in mind in case it becomes known how it
/// ended.
const END_WAIT: Duration = Duration::from_millis(500);
/// The interval at which the contents so far go to the file, however little: a killed recording
/// keeps it.
const FLUSH: Duration = Duration::from_millis(500);

/// Asks how the process behind a pidfd ended: `None` as long as that is not known.
pub type AskEnd = fn(&OwnedFd) -> Option<End>;

/// Reads logs, and makes blocks of what they say.
#[derive(Debug)]
pub struct Collector {
    spool: Spool,
    settings: Settings,
    sink: Sink,
    ask_end: AskEnd,
    processes: Vec<Process>,
    /// The logs that may still have something to say.
    sources: Vec<Source>,
    notes: Vec<Note>,
    /// The end of the first process, once that is known.
    first_end: Option<(u32, End)>,
    /// The process played last: its block is open.
    current: Option<usize>,
    /// The last round has left something to the next one.
    is_behind: bool,
    flushed: Instant,
    /// See [`Collector::complaints`].
    complaints: Vec<String>,
}

/// A log, and the process it is of.
#[derive(Debug)]
struct Source {
    log: Log,
    pid: u32,
    process: usize,
    /// Readable once the process is no more; absent if it was gone when its log was found.
    life: Option<OwnedFd>,
    is_closed: bool,
    /// True if the process was gone when this round began.
    was_gone: bool,
    /// The time since which the process is known to be gone.
    gone_since: Option<Instant>,
}

/// An event that no log has.
#[derive(Debug)]
struct Note {
    pid: u32,
    stamp_ns: u64,
    event: Event,
}

/// The way a process came to be, as far as its log does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// The log tells.
    Told,
    /// The process was forked by this process, and is a copy of it.
    Forked(u32),
    /// This process, if it is in the trace, made it without a fork that could be followed, and it
    /// has executed a program.
    Spawned(u32),
}

/// The entries to be played, in the order of time.
enum Turn {
    Publication(usize, Publication),
    Note(Note),
}

/// The progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Processes seen.
    pub processes: usize,
    /// Pages referred to; one that two processes refer to counts twice.
    pub pages: u64,
    /// Instructions executed, or nanoseconds used, by all of them.
    pub time: u64,
    /// Records made.
    pub records: u64,
}

impl Collector {
    /// A collector of what comes to `spool`.
    pub fn new(spool: Spool, settings: Settings, sink: Sink, ask_end: AskEnd) -> Collector {
        Collector {
            spool,
            settings,
            sink,
            ask_end,
            processes: Vec::new(),
            sources: Vec::new(),
            notes: Vec::new(),
            first_end: None,
            current: None,
            is_behind: false,
            flushed: Instant::now(),
            complaints: Vec::new(),
        }
    }

    /// Waits until there may be something to read, or one of `others` has something for its owner.
    pub fn wait(&self, others: &[BorrowedFd<'_>]) {
        let mut descriptors = vec![PollFd::new(&self.spool, PollFlags::IN)];
        descriptors.extend(
            others
                .iter()
                .map(|&other| PollFd::from_borrowed_fd(other, PollFlags::IN)),
        );
        let lives = self
            .sources
            .iter()
            .filter_map(|source| source.life.as_ref());
        descriptors.extend(lives.map(|life| PollFd::new(life, PollFlags::IN)));
        let round = if self.is_behind { ROUND_BEHIND } else { ROUND };
        let limit = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: round.as_nanos() as i64,
        };
        // An interrupted wait is one that ended early.
        let _ = poll(&mut descriptors, Some(&limit));
    }

    /// Plays all that was published before this moment.
    pub fn play_round(&mut self) {
        self.note_gone();
        self.play_until(now_ns());
    }

    /// Notes who is gone by now, and has published all it ever will.
    fn note_gone(&mut self) {
        for source in &mut self.sources {
            source.was_gone = source.is_gone();
        }
    }

    /// Plays all that bears a stamp of `moment_ns` or before.
    ///
    /// What is published while this looks around is left for the next round: a mark that was made
    /// before that may have come too late to be seen in this one.
    fn play_until(&mut self, moment_ns: u64) {
        self.take_messages();
        let mut turns = self.take_notes(moment_ns);
        let mut found = Vec::new();
        self.is_behind = false;
        for (index, source) in self.sources.iter_mut().enumerate() {
            found.clear();
            let collected = source.log.collect_publications(moment_ns, &mut found);
            let collected = collected.unwrap_or(Collected::Last);
            source.is_closed |= collected == Collected::Last;
            self.is_behind |= collected == Collected::Some;
            turns.extend(found.iter().map(|&found| Turn::Publication(index, found)));
        }
        // Stable: of what bears one time, notes are first, and each log keeps its order.
        turns.sort_by_key(Turn::stamp_ns);
        for turn in turns {
            self.play_turn(turn);
        }
        self.bury();
        if self.flushed.elapsed() >= FLUSH {
            self.finish_block();
            self.flushed = Instant::now();
        }
    }

    /// Ends the recording: what still runs goes on without it. Says how many processes do. `end`
    /// says how the first process ended.
    pub fn finish(&mut self, end: (u32, End)) -> usize {
        self.first_end = Some(end);
        // All that there is, whatever its stamp; twice, for those whose end was seen in the first
        // of the two.
        for _ in 0..2 {
            self.note_gone();
            self.play_until(u64::MAX);
        }
        self.dismiss();
        let left = self
            .sources
            .iter()
            .filter(|source| !source.is_gone())
            .count();
        for index in 0..self.sources.len() {
            if self.settings.is_live {
                self.play_rest(index, false);
            }
            self.processes[self.sources[index].process].leave();
        }
        self.finish_block();
        left
    }

    /// Tells all processes to go on without being recorded.
    pub fn dismiss(&self) {
        self.sources.iter().for_each(|source| source.log.dismiss());
    }

    /// The reasons that kept processes from going on that would have without being recorded.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// The progress.
    pub fn totals(&self) -> Totals {
        Totals {
            processes: self.processes.len(),
            pages: self.processes.iter().map(Process::pages).sum(),
            time: self.processes.iter().map(Process::time).sum(),
            records: self.processes.iter().map(Process::records).sum(),
        }
    }

    fn take_messages(&mut self) {
        for message in self.spool.take_messages() {
            match message {
                Message::Log { pid, name } => self.open(pid, &name),
                Message::Mark {
                    pid,
                    stamp_ns,
                    name,
                } => self.notes.push(Note {
                    pid,
                    stamp_ns,
                    event: Event::Mark { name },
                }),
            }
        }
    }

    fn open(&mut self, pid: u32, name: &str) {
        let path = self.spool.path.join(name);
        let Ok(log) = Log::open(&path) else {
            return;
        };
        // The file lives on in those who have it open.
        let _ = std::fs::remove_file(&path);
        self.add(pid, log, Birth::Told);
    }

    /// Takes in the log of process `pid`.
    pub fn add(&mut self, pid: u32, mut log: Log, birth: Birth) {
        let before = self.sources.iter().position(|source| source.pid == pid);
        let process = match before {
            // It has executed another program, and its log before ended with that.
            Some(index) => {
                self.play_rest(index, false);
                let process = self.sources.remove(index).process;
                self.processes[process].begin_log();
                process
            }
            None => {
                if birth != Birth::Told {
                    log.parent = self.note_birth(pid, birth);
                }
                let mut process = Process::new(log.parent, self.settings, self.sink.clone());
                if birth != Birth::Told {
                    process.set_number(pid);
                }
                if log.parent != 0 && matches!(birth, Birth::Spawned(_)) {
                    process.begin_as_copy(pid);
                }
                self.processes.push(process);
                self.processes.len() - 1
            }
        };
        let life =
            Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.sources.push(Source {
            log,
            pid,
            process,
            life,
            is_closed: false,
            was_gone: false,
            gone_since: None,
        });
    }

    /// Adds the event of its child to the parent. The parent's number, or 0 if it is not in the
    /// trace.
    fn note_birth(&mut self, pid: u32, birth: Birth) -> u32 {
        let (Birth::Forked(parent) | Birth::Spawned(parent)) = birth else {
            return 0;
        };
        if !self.sources.iter().any(|source| source.pid == parent) {
            return 0;
        }
        self.notes.push(Note {
            pid: parent,
            stamp_ns: now_ns(),
            event: Event::Life(LifeEvent::Fork { child: pid }),
        });
        parent
    }

    fn take_notes(&mut self, moment_ns: u64) -> Vec<Turn> {
        let due = self.notes.extract_if(.., |note| note.stamp_ns <= moment_ns);
        due.map(Turn::Note).collect()
    }

    fn play_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Publication(index, publication) => {
                self.switch_to(self.sources[index].process);
                self.play_to(index, publication.position, false);
                // A log that can't be written to any more is that of a process that ends.
                let _ = self.sources[index].log.acknowledge(1);
            }
            Turn::Note(note) => {
                let source = self.sources.iter().find(|source| source.pid == note.pid);
                let process = source.or(self.sources.first()).map(|source| source.process);
                if let Some(process) = process {
                    self.switch_to(process);
                    self.processes[process].note(note.event);
                }
            }
        }
    }

    /// Plays a log up to `position`.
    fn play_to(&mut self, index: usize, position: u64, is_torn: bool) {
        let source = &mut self.sources[index];
        let process = &mut self.processes[source.process];
        while let Ok(Some(words)) = source.log.read_chunk(position) {
            process.play(words, is_torn);
        }
    }

    /// Plays what a log has beyond what was published.
    fn play_rest(&mut self, index: usize, is_torn: bool) {
        self.switch_to(self.sources[index].process);
        if let Ok(end) = self.sources[index].log.find_end() {
            self.play_to(index, end, is_torn);
        }
    }

    /// Takes leave of the processes that are no more.
    fn bury(&mut self) {
        for index in (0..self.sources.len()).rev() {
            let source = &self.sources[index];
            let has_ended = source.was_gone || (source.is_closed && source.is_gone());
            if !has_ended {
                continue;
            }
            if self.settings.is_live {
                self.bury_live(index);
                continue;
            }
            let is_torn = !source.is_closed;
            self.play_rest(index, is_torn);
            let source = self.sources.remove(index);
            let account = Account::read(&self.spool.path, source.pid);
            self.processes[source.process].end(|| account.signal());
            self.complaints.extend(account.unknown_instruction());
        }
    }

    /// Takes leave of a process whose log does not tell how it ended: the kernel does, once its
    /// parent has been told.
    fn bury_live(&mut self, index: usize) {
        let source = &mut self.sources[index];
        let since = *source.gone_since.get_or_insert_with(Instant::now);
        let is_last = self.first_end.is_some();
        let known = self.first_end.filter(|&(pid, _)| pid == source.pid);
        let end = known.map(|(_, end)| end);
        let end = end.or_else(|| source.life.as_ref().and_then(self.ask_end));
        if end.is_none() && !is_last && source.life.is_some() && since.elapsed() < END_WAIT {
            return;
        }
        self.play_rest(index, false);
        let source = self.sources.remove(index);
        self.processes[source.process].end_as(end);
    }

    /// Makes `process` the one whose block is open.
    fn switch_to(&mut self, process: usize) {
        if self.current != Some(process) {
            self.finish_block();
            self.current = Some(process);
        }
    }

    fn finish_block(&mut self) {
        if let Some(current) = self.current {
            if self.settings.is_live {
                self.processes[current].drain_window();
            }
            self.processes[current].finish_block();
        }
    }
}

impl Source {
    fn is_gone(&self) -> bool {
        let now = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.life.as_ref().is_none_or(|life| {
            let mut descriptors = [PollFd::new(life, PollFlags::IN)];
            matches!(poll(&mut descriptors, Some(&now)), Ok(1..))
        })
    }
}

impl Turn {
    fn stamp_ns(&self) -> u64 {
        match self {
            Turn::Publication(_, publication) => publication.stamp_ns,
            Turn::Note(note) => note.stamp_ns,
        }
    }
}

/// Nanoseconds on the monotonic clock, which the recorder stamps with too.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
