//! Strangers: programs in the tree that are not managed, because the linker loads nothing into them
//! (static programs, those of another word size or C library, those that gain privileges), or
//! because they were started without our variables.
//!
//! They never say hello. So the list of all processes is read now and then, and a process that
//! descends from one of the run, and is not managed, is one. What comes and goes between two looks
//! is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, clock_gettime};
use tidemark_live::control;
use tidemark_live::sys::status;

use crate::program::{self, Obstacle};

/// The interval at which strangers are looked at, and looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The least pause between two searches, as a multiple of the duration of the last.
const SEARCH_COSTS: u32 = 50;
/// The time after which a process that has lost its engine is looked at: it may be another program
/// now.
const SOON: Duration = Duration::from_millis(5);
/// The time that a program that can be managed may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(2);
/// The time that it may take where it has our variables: on a busy machine a hello is late.
const START_LIMIT: Duration = Duration::from_secs(40);
/// The longest line of a process: 52 numbers, and a name of 64 bytes at most.
const LINE_BYTES: usize = 2048;
/// The number of processes at a time that are waited for to execute a program.
const LEAVING_MAX: usize = 256;
/// The line with the name of an engine: its memory is its program's.
const ENGINE: &[u8] = b"tidemark-engine\n";
/// The number of names that are reported.
const NAMES_MAX: usize = 5;

/// The strangers of a run.
#[derive(Debug)]
pub struct Strangers {
    known: BTreeMap<Life, Stranger>,
    /// The strangers that are known to be unmanaged.
    counted: Vec<Counted>,
    resident_bytes: u64,
    /// The process that was started; `None` if strangers are not asked for.
    main: Option<u32>,
    next_look: Instant,
    next_search: Instant,
    /// The numbers of processes that have lost their engines since the last look.
    suspects: Vec<u32>,
    /// Processes that are about to execute another program; what they hold open ends then.
    leaving: Vec<(OwnedFd, u32)>,
}

/// A process, told from another that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Life {
    pid: u32,
    /// The time at which it began, as the kernel counts.
    start: u64,
}

#[derive(Debug)]
struct Stranger {
    program: PathBuf,
    /// The time from which on the process is known to run that program.
    since: Instant,
    is_counted: bool,
}

#[derive(Debug)]
struct Counted {
    life: Life,
    name: String,
    /// True if the process had time to say hello, and did not.
    is_late: bool,
}

/// A line of the list of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    life: Life,
    parent: u32,
    is_dead: bool,
}

impl Strangers {
    /// None yet, and none is looked for before the run [begins](Self::begin).
    pub fn new() -> Strangers {
        Strangers {
            known: BTreeMap::new(),
            counted: vec![],
            resident_bytes: 0,
            main: None,
            next_look: Instant::now(),
            next_search: Instant::now(),
            suspects: vec![],
            leaving: vec![],
        }
    }

    /// Learns which process was started.
    pub fn begin(&mut self, main: u32) {
        self.main = Some(main);
        self.next_look = Instant::now() + LOOK_INTERVAL;
        // A run that is over before leaves nothing worth the search.
        self.next_search = self.next_look;
    }

    /// The process that was started.
    pub fn main(&self) -> Option<u32> {
        self.main
    }

    /// Returns true if a process is there that could be managed and has not said hello: when it was
    /// last looked for.
    pub fn has_silent(&self) -> bool {
        let is_silent = |life: &Life, stranger: &Stranger| {
            let mut late = self.counted.iter().filter(|counted| counted.is_late);
            !stranger.is_counted || late.any(|counted| counted.life == *life)
        };
        let mut known = self.known.iter();
        known.any(|(life, stranger)| is_silent(life, stranger))
    }

    /// The time of the next look, if there is one.
    pub fn next_look(&self) -> Option<Instant> {
        self.main.map(|_| self.next_look)
    }

    /// Has process `pid` looked at soon, which has lost its engine. Most such have ended.
    pub fn suspect(&mut self, pid: u32) {
        self.next_look = self.next_look.min(Instant::now() + SOON);
        self.suspects.push(pid);
    }

    /// Learns that process `pid` is about to execute a program: it has when `connection` ends.
    pub fn await_exec(&mut self, connection: OwnedFd, pid: u32) {
        if self.leaving.len() < LEAVING_MAX {
            self.leaving.push((connection, pid));
        } else {
            self.suspect(pid);
        }
    }

    /// Has process `pid` looked at now, which has just executed another program.
    pub fn note_exec(&mut self, pid: u32) {
        self.next_look = Instant::now();
        self.suspects.push(pid);
    }

    /// The connections that end when their processes execute a program.
    pub fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let connections = self.leaving.iter().map(|(connection, _)| connection);
        connections.map(|connection| PollFd::new(connection, PollFlags::IN))
    }

    /// Learns which of [`sources`](Self::sources) have ended.
    pub fn hear(&mut self, ready: &[bool]) {
        for place in (0..self.leaving.len()).rev() {
            if ready.get(place) == Some(&true) {
                let (_, pid) = self.leaving.swap_remove(place);
                self.note_exec(pid);
            }
        }
    }

    /// Looks for descendants of the process that was started, and of the `managed`, that are not
    /// managed.
    pub fn look(&mut self, managed: &BTreeSet<u32>) {
        let now = Instant::now();
        self.next_look = now + LOOK_INTERVAL;
        let mut lives = match now >= self.next_search {
            true => self.search(managed),
            false => self.collect_living(),
        };
        for pid in std::mem::take(&mut self.suspects) {
            let entry = Entry::read(pid).filter(|entry| !entry.is_dead);
            let life = entry.map(|entry| entry.life);
            lives.extend(life.filter(|life| !managed.contains(&pid) && !lives.contains(life)));
        }
        self.known.retain(|life, _| lives.contains(life));
        // Where there is much to do, a hello may come very late.
        let has_come = |counted: &Counted| counted.is_late && managed.contains(&counted.life.pid);
        self.counted.retain(|counted| !has_come(counted));
        self.resident_bytes = 0;
        for life in lives {
            self.judge(life);
        }
    }

    /// Counts a process that was turned away.
    pub fn count(&mut self, pid: u32) {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        if let (Some(entry), Ok(program)) = (Entry::read(pid), program) {
            self.add(entry.life, &program, false);
            let stranger = Stranger {
                program,
                since: Instant::now(),
                is_counted: true,
            };
            self.known.insert(entry.life, stranger);
        }
    }

    /// The memory that files don't back, as of the last look, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// One line about all of them, if there were any.
    pub fn note(&self) -> Option<String> {
        let programs = match self.counted.len() {
            0 => return None,
            1 => "1 program".into(),
            count => format!("{count} programs"),
        };
        let mut names: Vec<&str> = vec![];
        for counted in &self.counted {
            if !names.contains(&counted.name.as_str()) {
                names.push(&counted.name);
            }
        }
        if names.len() > NAMES_MAX {
            names.truncate(NAMES_MAX);
            names.push("…");
        }
        Some(format!("{programs} ran unmanaged: {}", names.join(", ")))
    }

    /// Searches the list of all processes for strangers.
    fn search(&mut self, managed: &BTreeSet<u32>) -> Vec<Life> {
        let began = used_ns();
        let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
        let entries: Vec<Entry> = numbers.filter_map(Entry::read).collect();
        let roots = managed.iter().copied().chain(self.main);
        let family = self.find_family(&entries, roots.collect());
        let is_stranger = |entry: &&Entry| {
            let pid = entry.life.pid;
            family.contains(&pid) && !managed.contains(&pid) && !entry.is_dead
        };
        let strangers = entries.iter().filter(is_stranger);
        let lives = strangers.map(|entry| entry.life).collect();
        let cost = Duration::from_nanos(used_ns() - began);
        self.next_search = Instant::now() + cost * SEARCH_COSTS;
        lives
    }

    /// Known strangers that are still there.
    fn collect_living(&self) -> Vec<Life> {
        let is_there = |life: &&Life| {
            let entry = Entry::read(life.pid);
            entry.is_some_and(|entry| entry.life == **life && !entry.is_dead)
        };
        self.known.keys().filter(is_there).copied().collect()
    }

    /// Finds the processes that descend from `roots`, or from a stranger that has lost its parent
    /// since.
    fn find_family(&self, entries: &[Entry], roots: BTreeSet<u32>) -> BTreeSet<u32> {
        let mut family = roots;
        let known = entries.iter().map(|entry| entry.life);
        let known = known.filter(|life| self.known.contains_key(life));
        family.extend(known.map(|life| life.pid));
        // A child may have a lower number than its parent, once numbers have gone round.
        loop {
            let before = family.len();
            for entry in entries {
                if family.contains(&entry.parent) {
                    family.insert(entry.life.pid);
                }
            }
            if family.len() == before {
                return family;
            }
        }
    }

    /// Finds out whether a stranger runs something that is not managed, and how much memory it has.
    fn judge(&mut self, life: Life) {
        let folder = PathBuf::from(format!("/proc/{}", life.pid));
        let Ok(program) = std::fs::read_link(folder.join("exe")) else {
            return;
        };
        if std::fs::read(folder.join("comm")).is_ok_and(|name| name == ENGINE) {
            return;
        }
        let known = self.known.remove(&life);
        let known = known.filter(|known| known.program == program);
        let mut stranger = known.unwrap_or_else(|| Stranger {
            program,
            since: Instant::now(),
            is_counted: false,
        });
        if !stranger.is_counted {
            let is_late = !is_of_another_user(&folder) && !is_unmanageable(&folder.join("exe"));
            let limit = || match is_told_of_run(&folder) {
                true => START_LIMIT,
                false => HELLO_LIMIT,
            };
            stranger.is_counted = !is_late || stranger.since.elapsed() > limit();
            if stranger.is_counted {
                self.add(life, &stranger.program, is_late);
            }
        }
        let is_counted = stranger.is_counted;
        self.known.insert(life, stranger);
        if !is_counted {
            return;
        }
        let status = std::fs::read(folder.join("status")).unwrap_or_default();
        self.resident_bytes += status::resident_bytes(&status).unwrap_or(0);
    }

    fn add(&mut self, life: Life, program: &Path, is_late: bool) {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(" (deleted)").into();
        self.counted.push(Counted {
            life,
            name,
            is_late,
        });
    }
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    Entry::read(pid).map(|entry| entry.parent)
}

/// Returns true if a process was started with the variables that have it load the engine.
fn is_told_of_run(folder: &Path) -> bool {
    let variables = std::fs::read(folder.join("environ")).unwrap_or_default();
    has_variables(&variables)
}

/// Returns true if among variables, which end in zero bytes, are the supervisor's socket and a
/// library to be loaded.
fn has_variables(variables: &[u8]) -> bool {
    let has = |name: &str| {
        let mut all = variables.split(|&byte| byte == 0);
        all.any(|variable| variable.starts_with(name.as_bytes()))
    };
    has(&format!("{}=", control::CONTROL)) && has("LD_PRELOAD=")
}

/// Returns true if a process belongs to another user, and so can't reach the supervisor.
fn is_of_another_user(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(folder).is_ok_and(|found| found.uid() != own)
}

/// Returns true if nothing can be loaded into a program of this kind, whatever its variables are.
fn is_unmanageable(program: &Path) -> bool {
    match program::find_obstacle(program) {
        Some(Obstacle::Static | Obstacle::Foreign | Obstacle::OtherLinker(_)) => true,
        // Whether it gains privileges depends on who runs it.
        Some(Obstacle::Privileged(_) | Obstacle::UnknownFormat | Obstacle::Unreadable) => false,
        None => false,
    }
}

/// The time that this thread has used a processor.
fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

impl Entry {
    fn read(pid: u32) -> Option<Entry> {
        // One call that reads, as there may be thousands of processes.
        let mut line = [0; LINE_BYTES];
        let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        let count = file.read(&mut line).ok()?;
        Entry::parse(&line[..count])
    }

    /// Reads the line of a process (`proc_pid_stat(5)`).
    fn parse(line: &[u8]) -> Option<Entry> {
        let line = String::from_utf8_lossy(line);
        let (pid, _) = line.split_once(" (")?;
        // A program's name may have anything in it; nothing after it has a parenthesis.
        let (_, rest) = line.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Entry {
            life: Life {
                pid: pid.parse().ok()?,
                start: fields.get(19)?.parse().ok()?,
            },
            parent: fields.get(1)?.parse().ok()?,
            is_dead: ["Z", "X"].contains(fields.first()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u32, parent: u32) -> Entry {
        Entry {
            life: Life { pid, start: 7 },
            parent,
            is_dead: false,
        }
    }

    #[test]
    fn a_line_is_read_whatever_the_program_calls_itself() {
        let line = b"12 (a) R (b) S 5 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9 9\n";
        let entry = Entry::parse(line).unwrap();
        assert_eq!((entry.life.pid, entry.life.start), (12, 4711));
        assert_eq!((entry.parent, entry.is_dead), (5, false));
        assert_eq!(Entry::parse(b"12 (sh"), None);
    }

    #[test]
    fn found_c_a_program_that_is_to_load_the_engine_has_longer_to_say_hello() {
        assert!(has_variables(
            b"A=1\0TIDEMARK_CONTROL=/tmp/x\0LD_PRELOAD=/x.so\0"
        ));
        assert!(!has_variables(
            b"A=1\0NOT_TIDEMARK_CONTROL=/tmp/x\0LD_PRELOAD=/x.so\0"
        ));
        assert!(!has_variables(b"TIDEMARK_CONTROL=/tmp/x\0"));
        assert!(!has_variables(b""));
        assert!(START_LIMIT > HELLO_LIMIT);
    }

    #[test]
    fn descendants_are_family_in_any_order_and_orphans_stay_it() {
        let mut strangers = Strangers::new();
        let orphan = Stranger {
            program: "/bin/orphan".into(),
            since: Instant::now(),
            is_counted: false,
        };
        strangers.known.insert(Life { pid: 70, start: 7 }, orphan);
        let entries = [
            entry(3, 40),
            entry(40, 30),
            entry(30, 1),
            entry(50, 1),
            entry(70, 1),
            entry(71, 70),
        ];
        let family = strangers.find_family(&entries, [30].into());
        assert_eq!(family, [3, 30, 40, 70, 71].into());
    }

    #[test]
    fn names_are_told_once_and_not_without_end() {
        let mut strangers = Strangers::new();
        assert_eq!(strangers.note(), None);
        let mut count = |name: &str| {
            strangers.counted.push(Counted {
                life: Life { pid: 1, start: 1 },
                name: name.into(),
                is_late: false,
            });
            strangers.note().unwrap()
        };
        assert_eq!(count("go"), "1 program ran unmanaged: go");
        assert_eq!(count("go"), "2 programs ran unmanaged: go");
        let told: Vec<String> = ["a", "b", "c", "d", "e"].map(&mut count).into();
        assert_eq!(told[3], "6 programs ran unmanaged: go, a, b, c, d");
        assert_eq!(told[4], "7 programs ran unmanaged: go, a, b, c, d, …");
    }
}
