//! Scores policies on a folder of traces: page-ins over the optimum's in little memory.
//!
//!     cargo run --release --example policy_scores -p tidemark-lab -- \
//!         [--world] [--each] [POLICY[:KNOB=VALUE]… | @SYSTEM…] TRACE|FOLDER…
//!
//! Each trace is replayed in 25, 50 and 75 % of the pages it touches, by each policy (all of them
//! if none is named): one page at a time, without read-ahead, so that what is measured is the
//! choice of what leaves; and on a machine without reference bits, as live, unless the policy
//! asks for more. Page-ins are those of pages that had left, and the first of each page of a file.
//! `bench/record-traces` records traces to score on.
//!
//! The table has, for each policy, the geometric mean over traces and sizes of its page-ins over
//! the optimum's, the same for each size, the worst, and how many soft faults there were for each
//! page that came and for each thousand references. `--each` adds the ratios of every trace.
//! Where the optimum has no page-ins a size is left out.
//!
//! With `--world` the traces run on the whole system `tidemark`, with its read-ahead and its
//! frames kept free, and with the named policies in it; `@SYSTEM` is another system as it is.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tidemark_core::policies;
use tidemark_core::seams::policy::Sees;
use tidemark_lab::analysis::simulate::{Job, MachineKind, simulate_all};
use tidemark_lab::analysis::{Choice, References, optimum};
use tidemark_lab::study::{NamedDisk, Replay, ReplayOrder};
use tidemark_lab::systems;
use tidemark_lab::world::{DiskModel, PolicyChoice, Scheduler, System, Watch};
use tidemark_trace::Reader;

const PERCENTS: [u32; 3] = [25, 50, 75];
/// The system that policies run on in the world, and the one that tells what no memory avoids.
const SYSTEM: &str = "tidemark";
const PLAIN: &str = "fifo";

fn main() -> ExitCode {
    match Plan::new(std::env::args().skip(1)).and_then(|plan| plan.run()) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// The settings from the command line.
struct Plan {
    is_world: bool,
    shows_each: bool,
    contenders: Vec<Contender>,
    traces: Vec<PathBuf>,
}

/// A policy with knobs, or a whole system.
struct Contender {
    /// As it was named.
    shown: String,
    name: String,
    knobs: Vec<(String, u64)>,
    is_system: bool,
}

/// The result of one contender on one trace in one size of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    page_ins: u64,
    optimal: u64,
    soft_faults: u64,
    /// Pages that came, the first time included.
    arrivals: u64,
    references: u64,
}

impl Plan {
    fn new(arguments: impl Iterator<Item = String>) -> Result<Plan, String> {
        let mut plan = Plan {
            is_world: false,
            shows_each: false,
            contenders: vec![],
            traces: vec![],
        };
        for argument in arguments {
            match argument.as_str() {
                "--world" => plan.is_world = true,
                "--each" => plan.shows_each = true,
                _ if Path::new(&argument).exists() => {
                    plan.traces.extend(collect_traces(&argument)?)
                }
                _ => plan.contenders.push(Contender::new(&argument)?),
            }
        }
        if plan.traces.is_empty() {
            return Err("no trace is named; `bench/record-traces` records some".into());
        }
        if plan.contenders.is_empty() {
            let is_world = plan.is_world;
            let names = policies::entries().iter().map(|entry| entry.description);
            let names = names.filter(|it| !is_world || it.sees.is_shown_live());
            let all: Result<_, _> = names.map(|it| Contender::new(it.name)).collect();
            plan.contenders = all?;
        }
        match plan.contenders.iter().find(|one| one.is_system) {
            Some(one) if !plan.is_world => Err(format!("`{}`: needs `--world`", one.shown)),
            _ => Ok(plan),
        }
    }

    fn run(&self) -> Result<String, String> {
        let mut scores: Vec<Vec<Vec<Score>>> = vec![];
        for path in &self.traces {
            eprintln!("{}", path.display());
            scores.push(self.score_trace(path)?);
        }
        let mut table = self.summary(&scores);
        if self.shows_each {
            table += &self.each(&scores);
        }
        Ok(table)
    }

    /// For each contender, the score at each size.
    fn score_trace(&self, path: &Path) -> Result<Vec<Vec<Score>>, String> {
        let told = |error: &dyn std::fmt::Debug| format!("{}: {error:?}", path.display());
        let replay = Replay::read(&[path.to_owned()], false, &mut |_, _| {});
        let replay = replay.map_err(|(_, error)| told(&error))?;
        match self.is_world {
            true => self.score_in_world(&replay),
            false => {
                let mut reader = Reader::open(path).map_err(|error| told(&error))?;
                let read = References::read(&mut reader, Choice::All);
                self.score_alone(&replay, &read.map_err(|error| told(&error))?)
            }
        }
    }

    fn score_alone(
        &self,
        replay: &Replay,
        references: &References,
    ) -> Result<Vec<Vec<Score>>, String> {
        let pages = u64::from(references.page_count);
        let sizes = sizes_of(pages);
        // In a memory for all pages what is left is what no memory avoids.
        let ample = run_world(replay, &find_system(PLAIN)?, None, &[ample_pages(pages)])?;
        let first = ample[0].optimal;
        let depths = optimum::count_depths(&references.pages, references.page_count);
        let jobs = self.contenders.iter().flat_map(|one| {
            sizes.iter().map(|&frames| Job {
                policy: &one.name,
                knobs: one
                    .knobs
                    .iter()
                    .map(|(name, n)| (name.as_str(), *n))
                    .collect(),
                seed: 1,
                frames,
                eyes: MachineKind::SoftFaults,
            })
        });
        let jobs: Vec<Job<'_>> = jobs.collect();
        let costs = simulate_all(references, &jobs);
        let costs = costs.map_err(|error| format!("a policy can't be made: {error:?}"))?;
        let scores = jobs.iter().zip(&costs).map(|(job, cost)| Score {
            page_ins: cost.misses - pages + first,
            optimal: depths.misses_at(job.frames) - pages + first,
            soft_faults: cost.soft_faults,
            arrivals: cost.misses,
            references: references.len() as u64,
        });
        let scores: Vec<Score> = scores.collect();
        Ok(scores.chunks(sizes.len()).map(<[Score]>::to_vec).collect())
    }

    fn score_in_world(&self, replay: &Replay) -> Result<Vec<Vec<Score>>, String> {
        let sizes = sizes_of(replay.footprint_pages(1));
        let each = self.contenders.iter().map(|one| {
            let policy = (!one.is_system).then(|| PolicyChoice {
                name: one.name.clone(),
                knobs: one.knobs.clone(),
            });
            let system = if one.is_system { &one.name } else { SYSTEM };
            run_world(replay, &find_system(system)?, policy, &sizes)
        });
        each.collect()
    }

    fn summary(&self, scores: &[Vec<Vec<Score>>]) -> String {
        let mut table = String::from("| policy | sees | mean |");
        PERCENTS
            .iter()
            .for_each(|it| table += &format!(" {it} % |"));
        table += " worst | soft faults a page | a 1000 references |\n|---|---|---|";
        table += &"---|".repeat(PERCENTS.len() + 3);
        table.push('\n');
        let mut rows: Vec<(f64, String)> = vec![];
        for (at, one) in self.contenders.iter().enumerate() {
            let all: Vec<Score> = scores.iter().flat_map(|trace| trace[at].clone()).collect();
            let mean = geometric_mean(&all);
            let mut row = format!("| {} | {} | {mean:.4} |", one.shown, one.sees());
            for size in 0..PERCENTS.len() {
                let there: Vec<Score> = scores.iter().map(|trace| trace[at][size]).collect();
                let _ = write!(row, " {:.3} |", geometric_mean(&there));
            }
            let sum = |part: fn(&Score) -> u64| all.iter().map(part).sum::<u64>() as f64;
            let worst = all.iter().filter_map(Score::ratio).fold(0.0, f64::max);
            let soft = sum(|it| it.soft_faults);
            let (pages, references) = (sum(|it| it.arrivals), sum(|it| it.references));
            let (each, per) = (soft / pages, soft * 1000.0 / references);
            let _ = writeln!(row, " {worst:.2} | {each:.2} | {per:.3} |");
            rows.push((mean, row));
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.iter().for_each(|(_, row)| table += row);
        table
    }

    fn each(&self, scores: &[Vec<Vec<Score>>]) -> String {
        let mut table = String::from("\n| trace | optimum |");
        self.contenders
            .iter()
            .for_each(|it| table += &format!(" {} |", it.shown));
        table += "\n|---|---|";
        table += &"---|".repeat(self.contenders.len());
        table.push('\n');
        for (path, trace) in self.traces.iter().zip(scores) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            for (size, percent) in PERCENTS.iter().enumerate() {
                let _ = write!(
                    table,
                    "| {name}, {percent} % | {} |",
                    trace[0][size].optimal
                );
                for scores in trace {
                    let score = scores[size];
                    let soft = score.soft_faults as f64 / score.arrivals as f64;
                    let _ = match score.ratio() {
                        Some(ratio) => write!(table, " {ratio:.3} / {soft:.2} |"),
                        None => write!(table, " {} of 0 / {soft:.2} |", score.page_ins),
                    };
                }
                table.push('\n');
            }
        }
        table
    }
}

impl Contender {
    fn new(shown: &str) -> Result<Contender, String> {
        let mut words = shown.split(':');
        let name = words.next().unwrap_or_default();
        let knob = |word: &str| {
            let (knob, value) = word.split_once('=')?;
            Some((knob.to_owned(), value.parse().ok()?))
        };
        let knobs: Option<Vec<(String, u64)>> = words.map(knob).collect();
        let system = name.strip_prefix('@');
        let is_known = match system {
            Some(system) => systems::find(system).is_some(),
            None => policies::find(name).is_some(),
        };
        match knobs {
            Some(knobs) if is_known => Ok(Contender {
                shown: shown.to_owned(),
                name: system.unwrap_or(name).to_owned(),
                knobs,
                is_system: system.is_some(),
            }),
            _ => Err(format!(
                "`{shown}`: no such file, POLICY[:KNOB=VALUE] or @SYSTEM; see `tidemark policies`"
            )),
        }
    }

    fn sees(&self) -> &'static str {
        let Some(entry) = policies::find(&self.name).filter(|_| !self.is_system) else {
            return "";
        };
        match entry.description.sees {
            Sees::Faults => "faults",
            Sees::Bits => "bits",
            Sees::References => "references",
            Sees::Future => "the future",
        }
    }
}

impl Score {
    fn ratio(&self) -> Option<f64> {
        let is_any = self.optimal > 0 && self.page_ins > 0;
        is_any.then(|| self.page_ins as f64 / self.optimal as f64)
    }
}

fn geometric_mean(scores: &[Score]) -> f64 {
    let logarithms: Vec<f64> = scores
        .iter()
        .filter_map(Score::ratio)
        .map(f64::ln)
        .collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

/// The traces of a folder, or the one that is named.
fn collect_traces(argument: &str) -> Result<Vec<PathBuf>, String> {
    let path = PathBuf::from(argument);
    if !path.is_dir() {
        return Ok(vec![path]);
    }
    let entries = std::fs::read_dir(&path).map_err(|error| format!("{argument}: {error}"))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|end| end == "tide");
    let mut traces: Vec<PathBuf> = paths.filter(is_trace).collect();
    traces.sort();
    Ok(traces)
}

fn sizes_of(pages: u64) -> Vec<u32> {
    let part = |percent: &u32| (pages * u64::from(*percent)).div_ceil(100) as u32;
    PERCENTS.iter().map(part).collect()
}

fn ample_pages(pages: u64) -> u32 {
    u32::try_from(pages).expect("a trace's pages are numbered") + 1024
}

fn find_system(name: &str) -> Result<System, String> {
    let found = systems::find(name).cloned();
    found.ok_or_else(|| format!("`{name}`: no such system"))
}

/// One system in each size, on a disk that takes no time.
fn run_world(
    replay: &Replay,
    system: &System,
    policy: Option<PolicyChoice>,
    sizes: &[u32],
) -> Result<Vec<Score>, String> {
    let order = ReplayOrder {
        systems: vec![system.clone()],
        memory_pages: sizes.to_vec(),
        wired_pages: 0,
        copies: 1,
        processors: 1,
        scheduler: Scheduler::RoundRobin {
            quantum_ns: 10_000_000,
        },
        swap_disk: NamedDisk {
            name: "instant".into(),
            model: DiskModel::INSTANT,
        },
        file_disk: None,
        compression: None,
        seed: 1,
        policy,
        load: None,
        divider: Default::default(),
        watch: Watch::default(),
    };
    let replayed = replay.run(&order, &|_, _| {});
    let record = replayed.map_err(|error| format!("{error:?}"))?.record;
    let references: u64 = record.traces.iter().map(|trace| trace.records).sum();
    let score = |run: &tidemark_results::replay::Run| Score {
        page_ins: run.page_ins,
        optimal: run.optimal_page_ins,
        soft_faults: run.soft_faults,
        arrivals: run.page_ins + run.zero_fills + run.cow_faults,
        references,
    };
    Ok(record.runs.iter().map(score).collect())
}
