//! The program of `tidemark bench page-in`: it takes faults of each kind, and reports their cost.
//!
//! It runs under an engine, asks the run that it is part of to give it more or less memory, and
//! watches the engine meanwhile. Every page that it reads is checked.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tidemark_live::sys::observed::Sleeper;
use tidemark_results::control::{Counter, Counts, Reply, Request, RunState};
use tidemark_supervisor::remote::Remote;

use super::Order;
use super::array::PAGE_BYTES;
use crate::page_in::lap::{Busy, Heap, Lap, Order as Sequence, Touch};
use crate::page_in::observer::{Cost, Counted, Observer};

/// The time that the engine has to have published its counts.
const SETTLE: Duration = Duration::from_millis(40);
/// The memory that is taken away so that a policy looks which pages are used.
const LOOK_BYTES: u64 = 1 << 20;

/// The faults that a run of this program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Faults {
    /// First touches, the way out to compressed memory, and page-ins from there.
    Memory,
    /// Page-ins from disk, of pages that nothing writes to.
    Disk,
    /// Soft faults: every page is taken away for a look.
    Soft,
}

/// The company of the thread that faults.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// None.
    Alone,
    /// A second thread, which computes all the time.
    Busy,
    /// A forked child, which sleeps.
    Fork,
}

/// The options of this program.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Of `faults`: the faults to take.
    #[arg(long = "faults")]
    pub kinds: Option<Faults>,
    /// Of `faults`: the company of the thread that faults.
    #[arg(long)]
    pub beside: Option<Beside>,
    /// Of `faults`: the memory while it pages.
    #[arg(long, default_value_t = 0)]
    pub low_bytes: u64,
    /// Of `faults`: the control socket of the run.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// Of `faults`: the longest time that a stretch of work may take.
    #[arg(long, default_value_t = 60)]
    pub limit_s: u64,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A page-in from compressed memory; another page leaves for each.
    PageIn,
    /// A page-in from disk.
    PageInFromDisk,
    /// A fault on a page that is in memory.
    SoftFault,
    /// A first touch.
    FirstTouch,
    /// The way out of a page to compressed memory, by itself.
    WayOut,
    /// A page that is taken away for a look whether it is used.
    Look,
}

/// A number of faults of a kind, and their cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The kind of the faults.
    pub work: Work,
    /// The number of faults.
    pub faults: u64,
    /// Faults of other kinds that came with them.
    pub others: u64,
    /// The pages that came in, or went out.
    pub pages: u64,
    /// The cost of the faults, without the loop's own.
    pub cost: Cost,
    /// The number of faults of the same kind that were taken for the counts.
    pub counted_faults: u64,
    /// The counts.
    pub counted: Counted,
}

/// All that one run of this program tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Its phases.
    pub phases: Vec<Phase>,
}

/// Takes the faults that are asked for.
///
/// # Errors
/// The line that says what failed: a page that came back with other contents is a failure.
pub fn measure(order: &Order) -> Result<Told, String> {
    let options = &order.faults;
    let socket = options.socket.as_deref();
    let mut run = Run::start(
        order,
        socket.ok_or("`faults` needs the run's control socket")?,
    )?;
    let busy = (run.beside == Beside::Busy).then(|| Busy::start(|| {}));
    run.observer = Observer::of_own_engine()?.beside(busy.as_ref().map(Busy::number));
    match options.kinds.ok_or("`faults` needs the kind of faults")? {
        Faults::Memory => run.memory(),
        Faults::Disk => run.disk(),
        Faults::Soft => run.soft(),
    }?;
    Ok(Told { phases: run.phases })
}

impl Told {
    /// Reads what was printed.
    pub fn from_output(output: &str) -> Option<Told> {
        let line = output.lines().next_back()?;
        serde_json::from_str(line).ok()
    }

    /// One line of JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("every key is a string")
    }
}

struct Run {
    /// The control socket of the run. A connection that is silent for long is closed, so that each
    /// request has one of its own.
    socket: PathBuf,
    observer: Observer,
    beside: Beside,
    pages: u32,
    touches: u32,
    seed: u64,
    low_bytes: u64,
    limit: Duration,
    phases: Vec<Phase>,
}

impl Run {
    fn start(order: &Order, socket: &Path) -> Result<Run, String> {
        let pages = u32::try_from(order.bytes / PAGE_BYTES).map_err(|_| "too many bytes")?;
        Ok(Run {
            socket: socket.to_owned(),
            observer: Observer::of_own_engine()?,
            beside: order.faults.beside.unwrap_or(Beside::Alone),
            pages,
            touches: pages.saturating_mul(order.laps.unwrap_or(1)),
            seed: order.seed,
            low_bytes: order.faults.low_bytes,
            limit: Duration::from_secs(order.faults.limit_s),
            phases: vec![],
        })
    }

    fn memory(&mut self) -> Result<(), String> {
        // A child comes later, once pages have left.
        let has_child = self.beside == Beside::Fork;
        if !has_child {
            self.first_touches()?;
        }
        let (mut memory, own) = self.fill(Touch::ReadAndWrite)?;
        match has_child {
            true => self.shrink(self.low_bytes)?,
            false => self.way_out()?,
        }
        self.page_ins(Work::PageIn, Touch::ReadAndWrite, &mut memory, own)
    }

    fn disk(&mut self) -> Result<(), String> {
        let (mut memory, own) = self.fill(Touch::Read)?;
        self.shrink(self.low_bytes)?;
        self.page_ins(Work::PageInFromDisk, Touch::Read, &mut memory, own)
    }

    /// First touches of new pages, twice: for the time, and for the counts.
    fn first_touches(&mut self) -> Result<(), String> {
        let lap = Lap {
            pages: self.pages / 2,
            touches: self.pages / 2,
            order: Sequence::Upwards,
            touch: Touch::First,
            limit: self.limit,
        };
        let mut memory = Heap::new(lap.pages);
        let before = self.counts()?;
        let cost = self.observer.time(|| lap.follow(&mut memory))?;
        let own = self.observer.time(|| lap.again().follow(&mut memory))?;
        let done = Done::between(&before, &self.counts()?);
        // Faults on fresh memory bring many pages at a time: what counts is a page.
        let faults = u64::from(lap.touches);
        drop(memory);
        let mut memory = Heap::new(lap.pages);
        let counted = self.observer.count(|| lap.follow(&mut memory))?;
        self.phases.push(Phase {
            work: Work::FirstTouch,
            faults,
            others: done.page_ins + done.soft,
            pages: faults,
            cost: cost.without(&own, 1.0),
            counted_faults: faults,
            counted,
        });
        Ok(())
    }

    /// Pages with contents, and what a lap over them takes by itself.
    fn fill(&mut self, touch: Touch) -> Result<(Heap, Cost), String> {
        let mut memory = Heap::new(self.pages);
        memory.fill(self.pages);
        let lap = self.lap(0, touch);
        lap.follow(&mut memory)?;
        let own = self.observer.time(|| lap.follow(&mut memory))?;
        Ok((memory, own))
    }

    /// The way out of as many pages as do not fit, while the program waits.
    fn way_out(&mut self) -> Result<(), String> {
        let before = self.counts()?;
        let observer = Observer::of_own_engine()?;
        let cost = observer.time(|| self.shrink(self.low_bytes))?;
        let done = Done::between(&before, &self.counts()?);
        // The program asks and waits: none of its time is for pages.
        let cost = Cost {
            program_user_ns: 0,
            program_system_ns: 0,
            ..cost
        };
        self.phases.push(Phase {
            work: Work::WayOut,
            faults: done.page_outs,
            others: 0,
            pages: done.page_outs,
            cost,
            counted_faults: 0,
            counted: Counted::default(),
        });
        Ok(())
    }

    fn page_ins(
        &mut self,
        work: Work,
        touch: Touch,
        memory: &mut Heap,
        own: Cost,
    ) -> Result<(), String> {
        let sleeper = match self.beside {
            Beside::Fork => Some(Sleeper::fork().map_err(|error| format!("fork: {error}"))?),
            Beside::Alone | Beside::Busy => None,
        };
        // Until as many pages come in as go out.
        self.lap(1, touch).follow(memory)?;
        let before = self.counts()?;
        let lap = self.lap(2, touch);
        let cost = self.observer.time(|| lap.follow(memory))?;
        let between = self.counts()?;
        let lap = self.lap(3, touch);
        let counted = self.observer.count(|| lap.follow(memory))?;
        let (timed, counting) = (
            Done::between(&before, &between),
            Done::between(&between, &self.counts()?),
        );
        if timed.page_in_faults == 0 {
            return Err("no page came in: the memory is too large for the size".to_owned());
        }
        self.whole_lap(Touch::ReadAll).follow(memory)?;
        drop(sleeper);
        self.phases.push(Phase {
            work,
            faults: timed.page_in_faults,
            others: timed.soft + timed.zero_fills,
            pages: timed.page_ins,
            cost: cost.without(&own, 1.0),
            counted_faults: counting.page_in_faults,
            counted,
        });
        Ok(())
    }

    /// Every page is taken away for a look, and touched again.
    fn soft(&mut self) -> Result<(), String> {
        let (mut memory, _) = self.fill(Touch::ReadAndWrite)?;
        let lap = self.whole_lap(Touch::ReadAndWrite);
        lap.follow(&mut memory)?;
        let own = self.observer.time(|| lap.follow(&mut memory))?;
        let look = self.look()?;
        let before = self.counts()?;
        let cost = self.observer.time(|| lap.follow(&mut memory))?;
        let between = self.counts()?;
        self.look()?;
        let again = self.counts()?;
        let all = self.whole_lap(Touch::ReadAll);
        let counted = self.observer.count(|| all.follow(&mut memory))?;
        let counting = Done::between(&again, &self.counts()?);
        let timed = Done::between(&before, &between);
        if timed.soft == 0 {
            return Err("no page was taken away for a look".to_owned());
        }
        self.phases.push(Phase {
            work: Work::SoftFault,
            faults: timed.soft,
            others: timed.page_in_faults + timed.zero_fills,
            pages: timed.soft,
            cost: cost.without(&own, 1.0),
            counted_faults: counting.soft,
            counted,
        });
        self.phases.push(Phase {
            work: Work::Look,
            faults: timed.soft,
            others: 0,
            pages: timed.soft,
            cost: look,
            counted_faults: 0,
            counted: Counted::default(),
        });
        Ok(())
    }

    /// Has the policy look at all pages, and gives the memory back that made it.
    fn look(&mut self) -> Result<Cost, String> {
        let state = self.state()?;
        let resident = state.memory.resident_bytes;
        let observer = Observer::of_own_engine()?;
        let cost = observer.time(|| self.shrink(resident.saturating_sub(LOOK_BYTES)))?;
        self.budget(state.memory.budget_bytes_max)?;
        std::thread::sleep(SETTLE);
        Ok(Cost {
            program_user_ns: 0,
            program_system_ns: 0,
            ..cost
        })
    }

    /// Changes the memory to `bytes` and waits until no more is in use.
    fn shrink(&mut self, bytes: u64) -> Result<(), String> {
        self.budget(bytes)?;
        let begin = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(2));
            if self.state()?.memory.resident_bytes <= bytes {
                return Ok(());
            }
            if begin.elapsed() > self.limit {
                let limit = self.limit.as_secs();
                return Err(format!("pages did not leave within {limit} s"));
            }
        }
    }

    fn budget(&mut self, bytes: u64) -> Result<(), String> {
        self.ask(&Request::Budget { bytes }).map(drop)
    }

    fn state(&mut self) -> Result<RunState, String> {
        match self.ask(&Request::Stats)? {
            Reply::Stats(state) => Ok(*state),
            _ => Err("the run replied with something else".to_owned()),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        let remote = Remote::find(Some(&self.socket), None);
        let reply = remote.and_then(|mut remote| remote.ask(request));
        reply.map_err(|error| error.to_string())
    }

    /// The counts of this process.
    fn counts(&mut self) -> Result<Counts, String> {
        std::thread::sleep(SETTLE);
        let own = std::process::id();
        let state = self.state()?;
        let task = state.tasks.iter().find(|task| task.pid == own);
        let counts = task.map(|task| task.counts);
        counts.ok_or_else(|| "the run does not know this process".to_owned())
    }

    fn lap(&self, number: u64, touch: Touch) -> Lap {
        Lap {
            pages: self.pages,
            touches: self.touches,
            order: Sequence::Random(self.seed ^ (number << 32)),
            touch,
            limit: self.limit,
        }
    }

    fn whole_lap(&self, touch: Touch) -> Lap {
        Lap {
            touches: self.pages,
            order: Sequence::EachOnce,
            ..self.lap(0, touch)
        }
    }
}

/// The faults between two moments.
struct Done {
    page_in_faults: u64,
    page_ins: u64,
    page_outs: u64,
    soft: u64,
    zero_fills: u64,
}

impl Done {
    fn between(before: &Counts, after: &Counts) -> Done {
        let count = |counter| after.get(counter).saturating_sub(before.get(counter));
        Done {
            page_in_faults: count(Counter::PageInFaults),
            page_ins: count(Counter::PageIns),
            page_outs: count(Counter::PageOuts),
            soft: count(Counter::SoftFaults),
            zero_fills: count(Counter::ZeroFills),
        }
    }
}
