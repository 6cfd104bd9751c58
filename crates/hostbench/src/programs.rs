//! Real programs in a share of the memory they take by themselves, under contenders in turn.
//!
//! A [`Plan`] says what is run; a [`mod@file`] holds a suite of which one is made. [`measure`] runs
//! each program natively first, which tells how much private memory it takes, then each [`Entrant`]
//! in each share of that. [`turn`](self) makes one run, `footprint` measures the native one;
//! [`record`] is what comes out, of which [`ratios`] makes tables.

mod entrant;
pub mod file;
mod footprint;
pub mod ratios;
pub mod record;
mod turn;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

pub use self::entrant::Entrant;
use self::record::{NativeRecord, ProgramRecord, ShareRecord, Skipped, SuiteSettings};
use self::turn::{Memory, Outcome, Turns};
use crate::child::{self, Stop};
use crate::output::say;
use crate::plan::AT_LEAST_1;

/// The limit of a run over the native one: a factor, and what is added.
const LIMIT_FACTOR: u32 = 20;
const LIMIT_MORE: Duration = Duration::from_secs(60);
/// The memory of a control group beside the program's own: page tables and what else the kernel
/// charges.
const GROUP_MORE_BYTES: u64 = 8 << 20;
/// The longest time that making a program's input may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);
/// The least memory of a run, however small the share of the program's peak.
const MEMORY_MIN_BYTES: u64 = 1 << 20;

/// One program of a suite.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name in tables.
    pub name: String,
    /// The commands it cannot do without, or files, told by a slash.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The script that makes its input, for a shell; `$SUITE` is the folder of the suite's file.
    pub prepare: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A program that talks to it, and is neither limited nor measured; it makes it end.
    pub client: Option<Vec<String>>,
    /// The files it writes, compared beside its standard output, or its client's.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// The variables set in its environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// Tells if files are in memory when a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// Files are on disk alone.
    Cold,
    /// Files are in memory as far as the run before left them there.
    Warm,
}

/// A suite to run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The programs.
    pub programs: Vec<Program>,
    /// The memory, in percent of the native peak.
    pub shares: Vec<u32>,
    /// The contenders beside the native run.
    pub entrants: Vec<Entrant>,
    /// The number of runs of each.
    pub rounds: u32,
    /// The state of the page cache.
    pub cache: Cache,
    /// The longest time that a run may take in any case.
    pub limit: Duration,
    /// The folder of swap files and the programs' files.
    pub folder: PathBuf,
    /// The folder of the suite's file.
    pub suite: PathBuf,
}

/// The results of a suite.
#[derive(Debug)]
pub struct Measured {
    /// The settings that all runs had in common.
    pub settings: SuiteSettings,
    /// The programs that ran.
    pub programs: Vec<ProgramRecord>,
    /// The programs and contenders that did not.
    pub skipped: Vec<Skipped>,
    /// Tells if it was ended before its end.
    pub is_interrupted: bool,
}

impl Plan {
    /// Checks what belongs together.
    ///
    /// # Errors
    /// The line that says what does not.
    pub fn check(&self) -> Result<(), String> {
        if let Some(share) = self.shares.iter().find(|&&share| share == 0 || share > 100) {
            return Err(format!("share {share}: must be from 1 to 100 percent"));
        }
        if self.rounds == 0 {
            return Err(format!("`rounds` {AT_LEAST_1}"));
        }
        for Program { name, command, .. } in &self.programs {
            if command.is_empty() || name.is_empty() || name.contains('/') {
                return Err(format!(
                    "program `{name}`: needs a plain name and a command"
                ));
            }
        }
        let mut names: Vec<String> = self.entrants.iter().map(Entrant::name).collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("contender `{}` is there twice", pair[0])),
            None => Ok(()),
        }
    }
}

/// Runs what `plan` says. Programs and contenders that can't run are left out and named.
///
/// # Errors
/// The line that says why nothing can be run.
pub fn measure(plan: &Plan, interrupt: &AtomicBool) -> Result<Measured, String> {
    let mut turns = Turns::start(plan, interrupt)?;
    let mut skipped = turns.leave_out_impossible();
    let mut programs = Vec::new();
    for program in &plan.programs {
        match measure_program(plan, program, &mut turns) {
            Ok(record) => programs.push(record),
            Err(Stop::Interrupted) => {}
            Err(stop) => {
                say!("{} left out: {stop}", program.name);
                skipped.push(Skipped {
                    name: program.name.clone(),
                    reason: stop.to_string(),
                });
            }
        }
        turns.leave();
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(Measured {
        settings: turns.settings(),
        programs,
        skipped,
        is_interrupted: interrupt.load(Ordering::Relaxed),
    })
}

/// Runs one program: natively, then every contender in every share, round by round. What an
/// interruption leaves is kept once there is a native run.
fn measure_program(
    plan: &Plan,
    program: &Program,
    turns: &mut Turns<'_>,
) -> Result<ProgramRecord, Stop> {
    turns.enter(program)?;
    if let Some(missing) = program.needs.iter().find(|need| !is_there(need)) {
        return Err(Stop::Failed(format!(
            "`{missing}` is missing; run: scripts/deps programs"
        )));
    }
    say!("{}: preparing", program.name);
    prepare(plan, program, turns)?;
    let mut native = NativeRecord::default();
    let mut shares: Vec<ShareRecord> = Vec::new();
    for round in 0..plan.rounds {
        let (elapsed, footprint, checksum) = turns.run_native(program, plan.limit)?;
        native.add(elapsed, footprint, checksum);
        if round == 0 {
            let limit = (elapsed * LIMIT_FACTOR + LIMIT_MORE).min(plan.limit);
            let contenders = (plan.cache, &turns.entrants[..]);
            let share = |&percent| ShareRecord::new(percent, &native, limit, contenders);
            shares = plan.shares.iter().map(share).collect();
        }
        let mut shares = shares.iter_mut();
        if !shares.all(|share| measure_share(program, &native, share, round, turns)) {
            break;
        }
    }
    Ok(ProgramRecord {
        name: program.name.clone(),
        command: program.command.clone(),
        native,
        shares,
    })
}

/// Runs every contender once in one share. Returns false if that was interrupted.
fn measure_share(
    program: &Program,
    native: &NativeRecord,
    share: &mut ShareRecord,
    round: u32,
    turns: &mut Turns<'_>,
) -> bool {
    let memory = share.memory(native);
    let count = share.contenders.len();
    for place in 0..count {
        // Each round starts with another contender, so that none is always the first.
        let number = (place + round as usize) % count;
        let contender = &mut share.contenders[number];
        if contender.is_given_up() {
            continue;
        }
        let entrant = turns.entrants[number].clone();
        let outcome = turns.run(program, &entrant, memory);
        if outcome == Outcome::Stopped(Stop::Interrupted) {
            return false;
        }
        contender.add(outcome, &native.checksum);
        say!("{} {} %: {contender}", program.name, share.share_percent);
    }
    true
}

/// Makes the program's input in the folder it runs in.
fn prepare(plan: &Plan, program: &Program, turns: &Turns<'_>) -> Result<(), Stop> {
    let Some(script) = &program.prepare else {
        return Ok(());
    };
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-euc", script])
        .current_dir(turns.folder())
        .env("SUITE", &plan.suite)
        .envs(&program.environment)
        .stdout(std::process::Stdio::null());
    let mut child = child::start(&mut command).map_err(Stop::Failed)?;
    child::watch(&mut child, PREPARE_LIMIT, turns.interrupt, &mut |_| Ok(())).map_err(|stop| {
        match stop {
            Stop::Failed(reason) => Stop::Failed(format!("its input can't be made: {reason}")),
            Stop::TooLong(_) | Stop::Interrupted => stop,
        }
    })
}

impl ShareRecord {
    fn memory(&self, native: &NativeRecord) -> Memory {
        Memory {
            bytes: self.memory_bytes,
            group_bytes: self.group_bytes,
            peak_bytes: native.anonymous_peak_bytes,
            limit: Duration::from_secs_f64(self.limit_s),
        }
    }
}

/// Finds a command on the path, or a file.
fn is_there(need: &str) -> bool {
    if need.contains('/') {
        return Path::new(need).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(need).is_file())
}

#[cfg(test)]
mod tests;
