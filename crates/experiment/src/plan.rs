//! From what an experiment's file says to runs that can be made: names are looked up, and claims
//! find their measurements. Nothing is run here, and no trace is read.

use tidemark_lab::names::{check_load, find_policy, find_system, parse_disk, parse_scheduler};
use tidemark_lab::study::METRICS;
use tidemark_lab::study::NamedDisk;
use tidemark_lab::study::claims::{self, By, Rule};
use tidemark_lab::study::lifetimes::CURVE_METRICS;
use tidemark_lab::study::locks::LOCK_METRICS;
use tidemark_lab::systems::machines::{self, on};
use tidemark_lab::world::{Clusters, Costs, PolicyChoice, Scheduler, System};
use tidemark_results::experiment::{Form, PictureOrder};
use tidemark_results::{Refusal, refuse};

use crate::file::{Across, Claim, File, Kind, Mode, Program, Run, Strength};
use crate::{live, locks};

/// An experiment that can be made, once there are traces.
pub struct Plan {
    /// The experiment's file.
    pub file: File,
    /// The runs, in the order of their measurements.
    pub trials: Vec<Draft>,
    /// The comparisons with what was published.
    pub claims: Vec<claims::Claim>,
    /// The pictures.
    pub pictures: Vec<PictureOrder>,
}

/// One run, before its programs and its memory are known.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The name of the run.
    pub run: String,
    /// Its size of memory, as it is written.
    pub memory: String,
    /// The number of copies, as a multiple.
    pub times: u32,
    /// The number of times it is made.
    pub repeats: u32,
    /// The settings under which it runs; of curves there is none.
    pub terms: Option<Terms>,
}

/// The settings of one run, and its programs.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The system, on its machine.
    pub system: System,
    /// A policy in place of the system's.
    pub policy: Option<PolicyChoice>,
    /// A load control in place of the system's.
    pub load: Option<String>,
    /// The load control's knobs.
    pub load_knobs: Vec<(String, u64)>,
    /// Sizes of requests.
    pub clusters: Clusters,
    /// The disk for swap.
    pub swap_disk: NamedDisk,
    /// Another disk for files.
    pub file_disk: Option<NamedDisk>,
    /// The number of processors.
    pub processors: u32,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The programs that run.
    pub programs: Vec<Program>,
}

impl Plan {
    /// The plan of an experiment, if all it names is there.
    pub fn new(name: &str, file: File, mode: Mode) -> Result<Plan, Refusal> {
        let sight = Sight { file: &file, mode };
        let plan = sight.trials().and_then(|trials| {
            let claims = file.claim.iter();
            let claims = claims.map(|claim| sight.claim(claim, &trials));
            let claims = claims.collect::<Result<_, _>>()?;
            let pictures = sight.pictures(&trials)?;
            Ok((trials, claims, pictures))
        });
        let (trials, claims, pictures) =
            plan.map_err(|refusal| Refusal::new(format!("experiment `{name}`: {refusal}")))?;
        Ok(Plan {
            trials,
            claims,
            pictures,
            file,
        })
    }

    /// Returns true if it runs on this machine, and not in the lab.
    pub fn is_live(&self) -> bool {
        self.file.kind == Kind::Live
    }
}

struct Sight<'a> {
    file: &'a File,
    mode: Mode,
}

impl Sight<'_> {
    fn trials(&self) -> Result<Vec<Draft>, Refusal> {
        let plain = self.file.systems.iter().map(|system| Run {
            system: system.clone(),
            ..Run::default()
        });
        let runs: Vec<Run> = plain.chain(self.file.run.iter().cloned()).collect();
        let mut trials: Vec<Draft> = vec![];
        for run in &runs {
            let name = run.name.as_ref().unwrap_or(&run.system);
            if trials.iter().any(|draft| draft.run == *name) {
                refuse!("two runs are called `{name}`; give one another `name`");
            }
            let terms = match self.file.kind {
                Kind::Replay => Some(self.terms(run)?),
                Kind::Curves => {
                    run.system
                        .parse::<tidemark_lab::study::Named>()
                        .map_err(|_| Refusal::new(format!("`{}`: no such policy", run.system)))?;
                    None
                }
                Kind::Locks => {
                    self.machine_costs()?;
                    locks::check(self.file, run)?;
                    None
                }
                Kind::Live => {
                    live::check(self.file, run)?;
                    None
                }
            };
            for times in self.times(run) {
                for memory in self.memory(run)? {
                    trials.push(Draft {
                        run: name.clone(),
                        memory,
                        times,
                        repeats: self.repeats(run)?,
                        terms: terms.clone(),
                    });
                }
            }
        }
        match trials.is_empty() {
            true => refuse!("nothing is run; give `systems` or a `[[run]]`"),
            false => Ok(trials),
        }
    }

    fn memory(&self, run: &Run) -> Result<Vec<String>, Refusal> {
        let full = match self.mode {
            Mode::Full => self.file.full.memory.as_ref(),
            Mode::Quick => None,
        };
        let memory = run.memory.as_ref().or(full).unwrap_or(&self.file.memory);
        if self.file.kind == Kind::Locks {
            // All files and all of the programs are in memory.
            return Ok(vec!["ample".to_owned()]);
        }
        if memory.is_empty() {
            refuse!("no size of `memory` is given");
        }
        let mut memory = memory.clone();
        // To find the knee of a simulated policy takes a simulation for each of many sizes.
        if self.file.kind == Kind::Curves && run.memory.is_none() {
            memory.extend(["knee", "best"].map(String::from));
        }
        Ok(memory)
    }

    fn times(&self, run: &Run) -> Vec<u32> {
        let full = match self.mode {
            Mode::Full => self.file.full.times.as_ref(),
            Mode::Quick => None,
        };
        let times = run.times.as_ref().or(full).unwrap_or(&self.file.times);
        match times.is_empty() {
            true => vec![1],
            false => times.clone(),
        }
    }

    fn repeats(&self, run: &Run) -> Result<u32, Refusal> {
        let full = match self.mode {
            Mode::Full => self.file.full.repeats,
            Mode::Quick => None,
        };
        let usual = full.unwrap_or(self.file.machine.repeats);
        match run.repeats.unwrap_or(usual) {
            repeats @ 1..=1000 => Ok(repeats),
            other => refuse!("`repeats` is {other}; takes 1 to 1000"),
        }
    }

    fn terms(&self, run: &Run) -> Result<Terms, Refusal> {
        let machine = &self.file.machine;
        let mut system = find_system(&run.system)?.clone();
        system.costs = self.costs(&system, run)?;
        if let Some(policy) = &run.policy {
            find_policy(policy)?;
        }
        if let Some(load) = &run.load {
            check_load("load", load)?;
        }
        let disk = run.disk.as_ref().unwrap_or(&machine.disk);
        let file_disk = run.file_disk.as_ref().or(machine.file_disk.as_ref());
        let mut programs = run
            .program
            .clone()
            .unwrap_or_else(|| self.file.usual_programs());
        for program in &mut programs {
            program.advice = run.advice.clone().or(program.advice.take());
            self.check_program(program)?;
        }
        let knobs = |knobs: &std::collections::BTreeMap<String, u64>| {
            knobs
                .iter()
                .map(|(name, value)| (name.clone(), *value))
                .collect()
        };
        if run.policy.is_none() && !run.knobs.is_empty() {
            refuse!(
                "`{}`: `knobs` are a policy's; name it in `policy`",
                run.system
            );
        }
        Ok(Terms {
            policy: run.policy.clone().map(|name| PolicyChoice {
                name,
                knobs: knobs(&run.knobs),
            }),
            load: run.load.clone(),
            load_knobs: knobs(&run.load_knobs),
            clusters: Clusters {
                most: run.clusters.most,
                around: run.clusters.around,
                ahead: run.clusters.ahead,
            },
            swap_disk: parse_disk("disk", disk)?,
            file_disk: file_disk
                .map(|disk| parse_disk("file_disk", disk))
                .transpose()?,
            processors: run.cpus.unwrap_or(machine.cpus),
            scheduler: parse_scheduler("scheduler", &machine.scheduler)?,
            programs,
            system,
        })
    }

    fn costs(&self, system: &System, run: &Run) -> Result<Costs, Refusal> {
        let mut costs = match self.file.machine.year.as_str() {
            "present" => system.costs,
            _ => on(self.machine_costs()?, system.costs),
        };
        for (name, &ns) in &run.costs {
            let place = match name.as_str() {
                "fault" => &mut costs.fault_ns,
                "zero" => &mut costs.zero_ns,
                "copy" => &mut costs.copy_ns,
                "page_table" => &mut costs.page_table_ns,
                "reverse_map" => &mut costs.reverse_map_ns,
                "question" => &mut costs.question_ns,
                "message" => &mut costs.message_ns,
                "switch" => &mut costs.switch_ns,
                "fork" => &mut costs.fork_ns,
                other => refuse!(
                    "`costs.{other}`: no such cost; there are fault, zero, copy, page_table, \
                     reverse_map, question, message, switch, fork"
                ),
            };
            *place = ns;
        }
        Ok(costs)
    }

    fn machine_costs(&self) -> Result<Costs, Refusal> {
        let year = &self.file.machine.year;
        match machines::of_year(year) {
            Some(costs) => Ok(costs),
            None => refuse!("`year` is {year}; there are present, 2002, 1995"),
        }
    }

    fn check_program(&self, program: &Program) -> Result<(), Refusal> {
        let trace = &program.trace;
        if !self.file.trace.iter().any(|known| known.name == *trace) {
            refuse!("`{trace}`: no `[[trace]]` is called so");
        }
        let advice = program.advice.as_deref();
        if advice.is_some_and(|advice| parse_advice(advice).is_none()) {
            let advice = advice.unwrap_or_default();
            refuse!("`advice` is {advice}; there are normal, sequential, reverse, random");
        }
        let times = [program.start, program.every];
        if times.iter().any(|time| !(0.0..1e9).contains(time)) {
            refuse!("`{trace}`: `start` and `every` are seconds, from 0 on");
        }
        if !(1..=1024).contains(&program.copies) {
            refuse!("`{trace}`: `copies` is {}; takes 1 to 1024", program.copies);
        }
        Ok(())
    }

    fn claim(&self, claim: &Claim, trials: &[Draft]) -> Result<claims::Claim, Refusal> {
        let rule = self.rule(claim, trials);
        let rule = rule.map_err(|told| Refusal::new(format!("claim `{}`: {told}", claim.text)))?;
        for metric in [Some(&claim.metric), claim.over_metric.as_ref()] {
            self.check_metric(metric.unwrap_or(&claim.metric))?;
        }
        let reason = &claim.reason;
        let strength = match claim.strength {
            Strength::Strong => "strong",
            Strength::Weak => "weak",
            Strength::Qualitative => "qualitative",
            Strength::Own => "own",
        };
        Ok(claims::Claim {
            text: claim.text.clone(),
            strength: strength.into(),
            metric: claim.metric.clone(),
            over_metric: claim.over_metric.clone(),
            rule,
            reasons: [
                reason.reproduced.clone(),
                reason.partly.clone(),
                reason.not.clone(),
            ],
        })
    }

    fn rule(&self, claim: &Claim, trials: &[Draft]) -> Result<Rule, Refusal> {
        let place = |name: &str| find_trial(name, claim, trials);
        let needed = |key: &str, name: &Option<String>| match name {
            Some(name) => place(name),
            None => refuse!("needs `{key}`: the name of a run"),
        };
        let of = || needed("of", &claim.of);
        let over = || needed("over", &claim.over);
        let maybe_over = || claim.over.as_ref().map(|name| place(name)).transpose();
        let published = || match claim.published {
            Some(number) => Ok(number),
            None => refuse!("needs `published`: a number"),
        };
        Ok(match claim.kind {
            Form::Ratio => Rule::Ratio {
                of: of()?,
                over: over()?,
                published: published()?,
            },
            Form::Order => match &claim.order {
                Some(names) if names.len() > 1 => {
                    let places = names.iter().map(|name| place(name));
                    Rule::Order(places.collect::<Result<_, _>>()?)
                }
                _ => refuse!("needs `order`: the names of two runs or more"),
            },
            Form::Equal => Rule::Equal {
                of: of()?,
                over: over()?,
                within: claim.within.unwrap_or(1.02),
            },
            Form::Value => Rule::Value {
                of: of()?,
                published: published()?,
                within: claim.within.unwrap_or(1.25),
            },
            Form::Slope => {
                let (places, by) = find_slope(claim, trials)?;
                let published = published()?;
                Rule::Slope {
                    places,
                    by,
                    published,
                }
            }
            Form::AtMost => Rule::AtMost {
                of: of()?,
                over: maybe_over()?,
                published: published()?,
            },
            Form::AtLeast => Rule::AtLeast {
                of: of()?,
                over: maybe_over()?,
                published: published()?,
            },
            Form::Unfinished => Rule::Unfinished {
                of: of()?,
                over: maybe_over()?,
            },
        })
    }

    fn pictures(&self, trials: &[Draft]) -> Result<Vec<PictureOrder>, Refusal> {
        let pictures = self.file.picture.iter().map(|picture| {
            self.check_metric(&picture.metric)?;
            for run in &picture.runs {
                if !trials.iter().any(|draft| draft.run == *run) {
                    refuse!("picture `{}`: no run is called `{run}`", picture.title);
                }
            }
            let across = match picture.across {
                Across::Runs => "runs",
                Across::Memory => "memory",
                Across::Times => "times",
            };
            Ok(PictureOrder {
                title: picture.title.clone(),
                metric: picture.metric.clone(),
                across: across.into(),
                runs: picture.runs.clone(),
            })
        });
        pictures.collect()
    }

    fn check_metric(&self, metric: &str) -> Result<(), Refusal> {
        let known = match self.file.kind {
            Kind::Replay => METRICS,
            Kind::Curves => CURVE_METRICS,
            Kind::Locks => LOCK_METRICS,
            Kind::Live => live::METRICS,
        };
        let plain = metric.split('.').next().unwrap_or(metric);
        if known.iter().any(|(name, _)| *name == plain) {
            return Ok(());
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        refuse!("`{metric}`: no such metric; there are {}", names.join(", "))
    }
}

/// The advice of a program on its use of memory.
pub fn parse_advice(name: &str) -> Option<tidemark_core::memory::address_space::Advice> {
    use tidemark_core::memory::address_space::Advice;
    match name {
        "normal" => Some(Advice::Normal),
        "sequential" => Some(Advice::Sequential),
        "reverse" => Some(Advice::Reverse),
        "random" => Some(Advice::Random),
        _ => None,
    }
}

/// The measurement a claim names: `run`, `run in 60%`, `run in 60% times 4`.
fn find_trial(name: &str, claim: &Claim, trials: &[Draft]) -> Result<usize, Refusal> {
    let (run, memory, times) = split_name(name, trials);
    let memory = memory.or(claim.memory.as_deref());
    let times = times.or(claim.times);
    let fits = |draft: &Draft| {
        draft.run == run
            && memory.is_none_or(|memory| draft.memory == memory)
            && times.is_none_or(|times| draft.times == times)
    };
    let found = trials.iter().enumerate().filter(|(_, draft)| fits(draft));
    let found: Vec<usize> = found.map(|(place, _)| place).collect();
    match found[..] {
        [place] => Ok(place),
        [] => refuse!("no run is called `{name}`{}", told(memory, times)),
        _ => refuse!("`{name}` is several; say which with `memory` or `times`"),
    }
}

fn told(memory: Option<&str>, times: Option<u32>) -> String {
    let memory = memory.map_or(String::new(), |memory| format!(" in {memory}"));
    let times = times.map_or(String::new(), |times| format!(" times {times}"));
    memory + &times
}

fn split_name<'a>(name: &'a str, trials: &[Draft]) -> (&'a str, Option<&'a str>, Option<u32>) {
    if trials.iter().any(|draft| draft.run == name) {
        return (name, None, None);
    }
    let (rest, times) = match name.rsplit_once(" times ") {
        Some((rest, times)) => (rest, times.parse().ok()),
        None => (name, None),
    };
    match rest.rsplit_once(" in ") {
        Some((run, memory)) => (run, Some(memory), times),
        None => (rest, None, times),
    }
}

/// The measurements of a run that a slope goes through: over its sizes of memory, or its times.
fn find_slope(claim: &Claim, trials: &[Draft]) -> Result<(Vec<usize>, By), Refusal> {
    let Some(run) = &claim.of else {
        refuse!("needs `of`: the name of a run");
    };
    let own = trials.iter().enumerate();
    let own: Vec<(usize, &Draft)> = own.filter(|(_, draft)| draft.run == *run).collect();
    let Some((_, first)) = own.first() else {
        refuse!("no run is called `{run}`");
    };
    let by = match own.iter().any(|(_, draft)| draft.memory != first.memory) {
        true => By::Memory,
        false => By::Times,
    };
    let fits = |draft: &Draft| by == By::Times || claim.times.is_none_or(|t| draft.times == t);
    let places = own.iter().filter(|(_, draft)| fits(draft));
    let places: Vec<usize> = places.map(|(place, _)| *place).collect();
    match places.len() {
        0..3 => refuse!("a slope goes through three measurements or more of `{run}`"),
        _ => Ok((places, by)),
    }
}

#[cfg(test)]
mod tests;
