//! The collector: reads the logs of all processes of a recording in one order.
//!
//! Each publication of a log bears the time at which its process made it. In each round the
//! collector fixes a moment, and plays what was published before it in the order of these times:
//! what one process did before another could know of it stands before what the other did then.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::log::{Log, Publication};
use super::process::{Process, Settings};
use super::sheet::Sink;
use super::spool::{Message, Spool};

/// How long a round may be put off while nobody rings.
const ROUND: Duration = Duration::from_millis(20);
/// How often what there is goes to the file, however little: a killed recording keeps it.
const FLUSH: Duration = Duration::from_millis(500);

/// Reads logs, and makes blocks of what they say.
#[derive(Debug)]
pub struct Collector {
    spool: Spool,
    settings: Settings,
    sink: Sink,
    processes: Vec<Process>,
    /// The logs that may still have something to say.
    sources: Vec<Source>,
    marks: Vec<Mark>,
    /// The process played last: its block is open.
    current: Option<usize>,
    flushed: Instant,
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
}

#[derive(Debug)]
struct Mark {
    pid: u32,
    stamp_ns: u64,
    name: String,
}

/// What is to be played, in the order of time.
enum Turn {
    Publication(usize, Publication),
    Mark(Mark),
}

/// How far a recording has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Processes seen.
    pub processes: usize,
    /// Pages referred to; one that two processes refer to counts twice.
    pub pages: u64,
    /// Instructions executed, by all of them.
    pub instructions: u64,
    /// Records made.
    pub records: u64,
}

impl Collector {
    /// A collector of what comes to `spool`.
    pub fn new(spool: Spool, settings: Settings, sink: Sink) -> Collector {
        Collector {
            spool,
            settings,
            sink,
            processes: Vec::new(),
            sources: Vec::new(),
            marks: Vec::new(),
            current: None,
            flushed: Instant::now(),
        }
    }

    /// Waits until there may be something to read, or `other` has something for its owner.
    pub fn wait(&self, other: std::os::fd::BorrowedFd<'_>) {
        let mut descriptors = vec![
            PollFd::new(&self.spool, PollFlags::IN),
            PollFd::from_borrowed_fd(other, PollFlags::IN),
        ];
        let lives = self
            .sources
            .iter()
            .filter_map(|source| source.life.as_ref());
        descriptors.extend(lives.map(|life| PollFd::new(life, PollFlags::IN)));
        let limit = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: ROUND.as_nanos() as i64,
        };
        // An interrupted wait is one that ended early.
        let _ = poll(&mut descriptors, Some(&limit));
    }

    /// Plays all that was published before this moment.
    pub fn play_round(&mut self) {
        // Whoever is gone by now has published all it ever will.
        let gone: Vec<bool> = self.sources.iter().map(Source::is_gone).collect();
        let moment_ns = now_ns();
        self.take_messages();
        let mut turns = self.take_marks(moment_ns);
        let mut found = Vec::new();
        for (index, source) in self.sources.iter_mut().enumerate() {
            found.clear();
            source.is_closed |= source.log.collect_publications(&mut found).unwrap_or(true);
            turns.extend(found.iter().map(|&found| Turn::Publication(index, found)));
        }
        // Stable: of what bears one time, marks are first, and each log keeps its order.
        turns.sort_by_key(Turn::stamp_ns);
        for turn in turns {
            self.play_turn(turn);
        }
        self.bury(&gone);
        if self.flushed.elapsed() >= FLUSH {
            self.finish_block();
            self.flushed = Instant::now();
        }
    }

    /// Ends the recording: what still runs goes on without it. Says how many processes do.
    pub fn finish(&mut self) -> usize {
        self.play_round();
        // One more, for those whose end was seen in it.
        self.play_round();
        self.dismiss();
        for source in &self.sources {
            self.processes[source.process].leave();
        }
        self.finish_block();
        self.sources.len()
    }

    /// Tells all processes to go on without being recorded.
    pub fn dismiss(&self) {
        self.sources.iter().for_each(|source| source.log.dismiss());
    }

    /// How far it has come.
    pub fn totals(&self) -> Totals {
        Totals {
            processes: self.processes.len(),
            pages: self.processes.iter().map(Process::pages).sum(),
            instructions: self.processes.iter().map(Process::instructions).sum(),
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
                } => self.marks.push(Mark {
                    pid,
                    stamp_ns,
                    name,
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
                let process = Process::new(log.parent, self.settings, self.sink.clone());
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
        });
    }

    fn take_marks(&mut self, moment_ns: u64) -> Vec<Turn> {
        let due = self.marks.extract_if(.., |mark| mark.stamp_ns <= moment_ns);
        due.map(Turn::Mark).collect()
    }

    fn play_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Publication(index, publication) => {
                self.switch_to(self.sources[index].process);
                self.play_to(index, publication.position, false);
                // A log that can't be written to any more is that of a process that ends.
                let _ = self.sources[index].log.acknowledge(1);
            }
            Turn::Mark(mark) => {
                let source = self.sources.iter().find(|source| source.pid == mark.pid);
                let process = source.or(self.sources.first()).map(|source| source.process);
                if let Some(process) = process {
                    self.switch_to(process);
                    self.processes[process].mark(mark.name);
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
    fn bury(&mut self, gone: &[bool]) {
        for index in (0..self.sources.len()).rev() {
            let source = &self.sources[index];
            let is_gone = gone.get(index).copied().unwrap_or(false);
            let has_ended = is_gone || (source.is_closed && source.is_gone());
            if !has_ended {
                continue;
            }
            let is_torn = !source.is_closed;
            self.play_rest(index, is_torn);
            let source = self.sources.remove(index);
            let spool = &self.spool.path;
            self.processes[source.process].end(|| find_signal(spool, source.pid));
        }
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
            Turn::Mark(mark) => mark.stamp_ns,
        }
    }
}

/// Nanoseconds on the monotonic clock, which the recorder stamps with too.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The signal that ended a process, from what Valgrind says of it in its own log.
fn find_signal(spool: &std::path::Path, pid: u32) -> Option<u32> {
    let text = std::fs::read(spool.join(format!("valgrind.{pid}"))).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once("default action of signal ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
