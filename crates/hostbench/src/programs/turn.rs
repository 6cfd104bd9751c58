//! One run of one program under one contender, and what it takes from the host.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::footprint::Footprint;
use super::record::{Counts, Skipped, SuiteSettings};
use super::{Cache, Entrant, Plan, Program};
use crate::cgroup::{Controller, Group};
use crate::child::{self, Stop};
use crate::contender::{inside_group, under_own};
use crate::host::{Host, PAGE_CLUSTER, read_setting};
use crate::kernel_swap::{drop_caches, vmstat};
use crate::output::say;
use crate::scratch::Scratch;
use crate::workload::programs::checksum_of_all;
use crate::zram;

const ZSWAP: &str = "/sys/module/zswap/parameters";
/// The size of zswap's pool in percent of the machine's memory. It is charged to the group, whose
/// limit is what bounds it; the kernel's own default may be less than a program needs.
const ZSWAP_POOL_PERCENT: u32 = 50;
/// The number of times that a program runs again which the kernel has ended for want of memory.
const RUNS_MORE: u32 = 2;
/// The room on swap beside twice what the program takes.
const SWAP_MORE_BYTES: u64 = 256 << 20;
/// The part of its memory that a group keeps, however much a zram device takes.
const GROUP_PART_LEAST: u64 = 8;
/// The file that takes standard output, in the program's folder.
const OUTPUT: &str = ".output";
/// The longest time that a client may take to end after its server.
const CLIENT_LIMIT: Duration = Duration::from_secs(5);

/// All that runs have in common.
pub struct Turns<'a> {
    plan: &'a Plan,
    /// Raised when the command is to end.
    pub interrupt: &'a AtomicBool,
    /// The contenders that can run here.
    pub entrants: Vec<Entrant>,
    tidemark: PathBuf,
    scratch: Scratch,
    folder: PathBuf,
    controller: Result<Controller, String>,
    host: Result<Host, String>,
    groups_made: u32,
    /// Tells if the last run was ended by the kernel, which found no memory in its group.
    was_out_of_memory: bool,
}

/// The memory and time of one run.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The memory that `tidemark run` gets.
    pub bytes: u64,
    /// The memory that a control group gets.
    pub group_bytes: u64,
    /// The memory that the program takes by itself, by which swap is sized.
    pub peak_bytes: u64,
    /// The longest time that it may take.
    pub limit: Duration,
}

/// The behaviour of zswap when its group has no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pool {
    /// The host's setting.
    AsItIs,
    /// The pool writes its oldest pages back to swap.
    Shrinks,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The program came to its end.
    Ran(Sample),
    /// The program was stopped before its end.
    Stopped(Stop),
}

/// One run that came to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub elapsed: Duration,
    pub checksum: String,
    pub counts: Counts,
}

/// A program that talks to the measured one; ended when dropped.
struct Client {
    child: Child,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            child::end(&mut self.child);
        }
    }
}

impl<'a> Turns<'a> {
    /// Takes what runs need from the host, as far as it can be had.
    pub fn start(plan: &'a Plan, interrupt: &'a AtomicBool) -> Result<Turns<'a>, String> {
        let tidemark = std::env::current_exe();
        let tidemark = tidemark.map_err(|error| format!("no path to this program: {error}"))?;
        let scratch = Scratch::create(&plan.folder)?;
        Ok(Turns {
            plan,
            interrupt,
            entrants: Vec::new(),
            tidemark,
            folder: scratch.path.clone(),
            scratch,
            controller: Controller::find(),
            host: match plan.entrants.iter().all(Entrant::is_own) {
                true => Err("no contender changes the host".to_owned()),
                false => Host::take(),
            },
            groups_made: 0,
            was_out_of_memory: false,
        })
    }

    /// Keeps the contenders that this host has, and names the others.
    pub fn leave_out_impossible(&mut self) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        for entrant in &self.plan.entrants {
            match self.check(entrant) {
                Ok(()) => self.entrants.push(entrant.clone()),
                Err(reason) => {
                    let name = entrant.name();
                    say!("{name} left out: {reason}");
                    skipped.push(Skipped { name, reason });
                }
            }
        }
        skipped
    }

    fn check(&self, entrant: &Entrant) -> Result<(), String> {
        let needed = match entrant {
            Entrant::Own {
                command: Some(command),
                ..
            } => return there(command),
            Entrant::Own { command: None, .. } => return Ok(()),
            Entrant::KernelSwap { .. } => None,
            Entrant::Zswap => Some(Path::new(ZSWAP).join("enabled")),
            Entrant::Zram => Some(PathBuf::from("/sys/class/zram-control/hot_add")),
        };
        self.controller.as_ref().map_err(Clone::clone)?;
        self.host.as_ref().map_err(Clone::clone)?;
        match needed {
            Some(path) => there(&path).map_err(|told| format!("the kernel has none: {told}")),
            None => Ok(()),
        }
    }

    /// The settings all runs have in common.
    pub fn settings(&self) -> SuiteSettings {
        let setting = |path: &str| read_setting(Path::new(path)).ok();
        SuiteSettings {
            cache: self.plan.cache,
            // Between runs the settings are the host's own.
            page_cluster: setting(PAGE_CLUSTER).and_then(|text| text.parse().ok()),
            swappiness: setting("/proc/sys/vm/swappiness"),
            huge_pages: setting("/sys/kernel/mm/transparent_hugepage/enabled"),
            zswap_compressor: setting(&format!("{ZSWAP}/compressor")),
            zswap_max_pool_percent: ZSWAP_POOL_PERCENT,
        }
    }

    /// Makes the folder that `program` runs in.
    pub fn enter(&mut self, program: &Program) -> Result<(), Stop> {
        self.folder = self.scratch.path.join(&program.name);
        fs::create_dir(&self.folder)
            .map_err(|error| Stop::Failed(format!("{}: {error}", self.folder.display())))
    }

    /// Removes the program's folder. What can't be removed goes with the rest.
    pub fn leave(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// The folder that the program runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs the program by itself: how long it takes, its memory, and a hash of its outputs.
    pub fn run_native(
        &mut self,
        program: &Program,
        limit: Duration,
    ) -> Result<(Duration, Footprint, String), Stop> {
        let mut footprint = Footprint::default();
        let words = program.command.iter().map(OsString::from).collect();
        let (elapsed, checksum) = self.run_words(program, words, limit, &mut |process| {
            footprint.raise_to(Footprint::of_tree(process));
        })?;
        say!(
            "{}: native: {:.2} s, {} MiB private, {} MiB of files",
            program.name,
            elapsed.as_secs_f64(),
            footprint.anonymous_bytes >> 20,
            footprint.file_bytes >> 20
        );
        Ok((elapsed, footprint, checksum))
    }

    /// Runs the program under a contender, and puts the host back.
    ///
    /// The kernel sometimes ends a program for want of memory, though there is room on swap: on
    /// busy disks, and always where zswap keeps pages that compress badly. The program runs again
    /// then, with zswap's pool written back to swap.
    pub fn run(&mut self, program: &Program, entrant: &Entrant, memory: Memory) -> Outcome {
        let mut outcome = self.run_once(program, entrant, memory, Pool::AsItIs);
        for again in 1..=RUNS_MORE {
            if entrant.is_own() || !self.was_out_of_memory {
                break;
            }
            let name = entrant.name();
            say!("{}: {name}: ended for want of memory; again", program.name);
            outcome = self.run_once(program, entrant, memory, Pool::Shrinks);
            if let Outcome::Ran(sample) = &mut outcome {
                sample.counts.out_of_memory_before = again;
            }
        }
        outcome
    }

    fn run_once(
        &mut self,
        program: &Program,
        entrant: &Entrant,
        memory: Memory,
        pool: Pool,
    ) -> Outcome {
        self.was_out_of_memory = false;
        let outcome = self.run_changed(program, entrant, memory, pool);
        if let Ok(host) = &mut self.host
            && let Err(message) = host.put_back()
        {
            say!("tidemark bench: left behind: {message}");
        }
        match outcome {
            Ok(sample) => Outcome::Ran(sample),
            Err(stop) => Outcome::Stopped(stop),
        }
    }

    fn run_changed(
        &mut self,
        program: &Program,
        entrant: &Entrant,
        memory: Memory,
        pool: Pool,
    ) -> Result<Sample, Stop> {
        let mut counts = Counts::default();
        let device = self
            .make_ready(entrant, memory, pool, &mut counts)
            .map_err(Stop::Failed)?;
        let group_bytes = (!entrant.is_own()).then_some(memory.group_bytes);
        let group = self.make_group(group_bytes).map_err(Stop::Failed)?;
        let statistics = self.scratch.path.join("statistics.json");
        // A run that failed may have left its own.
        let _ = fs::remove_file(&statistics);
        let mut words = Vec::new();
        if let Some(group) = &group {
            words.extend(inside_group(group.path()));
        }
        if let Entrant::Own { command, options } = entrant {
            let command = command.as_ref().unwrap_or(&self.tidemark);
            let folder = &self.plan.folder;
            let options = options.iter().map(OsString::from).collect();
            words.extend(under_own(
                command,
                memory.bytes,
                folder,
                &statistics,
                options,
            ));
        }
        words.extend(program.command.iter().map(OsString::from));
        let before = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let pool_before = zswap_bytes();
        let mut look = |_process| {
            if let Some(group) = &group
                && let Some(held) = uncharged_bytes(entrant, device, group, pool_before)
            {
                take_off(held, group, memory.group_bytes, &mut counts);
            }
        };
        let ran = self.run_words(program, words, memory.limit, &mut look);
        let after = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        self.was_out_of_memory = group.as_ref().is_some_and(Group::was_out_of_memory);
        let (elapsed, checksum) = ran.map_err(|stop| match stop {
            Stop::Failed(reason) if self.was_out_of_memory => {
                let cause = "the kernel found no memory for it in its control group";
                Stop::Failed(format!("{cause} ({reason})"))
            }
            stop => stop,
        })?;
        counts.memory_peak_bytes = group.as_ref().and_then(Group::memory_peak_bytes);
        if entrant.is_own() {
            take_statistics(&statistics, &mut counts).map_err(Stop::Failed)?;
        } else {
            let since = |name| Some(vmstat(&after, name)?.saturating_sub(vmstat(&before, name)?));
            counts.page_ins = since("pswpin");
            counts.page_outs = since("pswpout");
            if *entrant == Entrant::Zswap {
                counts.pool_page_ins = since("zswpin");
            }
        }
        Ok(Sample {
            elapsed,
            checksum,
            counts,
        })
    }

    /// Gives the contender the swap and the settings it is to run with, and returns the number of
    /// its zram device if it has one.
    fn make_ready(
        &mut self,
        entrant: &Entrant,
        memory: Memory,
        pool: Pool,
        counts: &mut Counts,
    ) -> Result<Option<u32>, String> {
        if entrant.is_own() {
            return Ok(None);
        }
        let host = self.host.as_mut().map_err(|reason| reason.clone())?;
        let zswap = Path::new(ZSWAP);
        let bytes = 2 * memory.peak_bytes + SWAP_MORE_BYTES;
        let has_pool = *entrant == Entrant::Zswap;
        if has_pool {
            let percent = ZSWAP_POOL_PERCENT.to_string();
            host.set(&zswap.join("max_pool_percent"), &percent)?;
            counts.compressor = read_setting(&zswap.join("compressor")).ok();
            let shrinker = zswap.join("shrinker_enabled");
            if pool == Pool::Shrinks && shrinker.exists() {
                host.set(&shrinker, "Y")?;
                counts.is_pool_written_back = true;
            }
        }
        if zswap.exists() {
            host.set(&zswap.join("enabled"), if has_pool { "Y" } else { "N" })?;
        }
        counts.page_cluster = host.page_cluster_default().ok();
        if let Entrant::KernelSwap {
            page_cluster: Some(page_cluster),
        } = *entrant
        {
            host.set_page_cluster(page_cluster)?;
            counts.page_cluster = Some(page_cluster);
        }
        if *entrant != Entrant::Zram {
            host.add_swap_file(&self.plan.folder, bytes)?;
            return Ok(None);
        }
        let device = host.add_zram(bytes)?;
        counts.compressor = zram::compressor(device);
        Ok(Some(device))
    }

    /// The group a contender runs in: with the limit if the kernel is to hold it, else only to
    /// count its memory, where that is possible.
    fn make_group(&mut self, limit_bytes: Option<u64>) -> Result<Option<Group>, String> {
        let Ok(controller) = &self.controller else {
            return Ok(None);
        };
        self.groups_made += 1;
        let name = format!("tidemark-bench-{}-{}", std::process::id(), self.groups_made);
        if let Ok(host) = &mut self.host {
            host.note_group(&controller.path_of(&name))?;
        }
        match controller.create(&name, limit_bytes) {
            Ok(group) => Ok(Some(group)),
            Err(message) if limit_bytes.is_some() => Err(message),
            Err(_) => Ok(None),
        }
    }

    /// Runs `words`, and the program's client beside them. Returns how long that took, and a hash
    /// of what was written.
    fn run_words(
        &self,
        program: &Program,
        words: Vec<OsString>,
        limit: Duration,
        look: &mut dyn FnMut(u32),
    ) -> Result<(Duration, String), Stop> {
        let output = self.folder.join(OUTPUT);
        let failed = |error| Stop::Failed(format!("{}: {error}", output.display()));
        let mut files = vec![output.clone()];
        files.extend(program.outputs.iter().map(|name| self.folder.join(name)));
        for file in &files {
            // What is left of the run before is not to be taken for this one's.
            let _ = fs::remove_file(file);
        }
        let stdout = File::create(&output).map_err(failed)?;
        let mut command = self.command(program, &words);
        match program.client {
            Some(_) => command.stdout(Stdio::null()),
            None => command.stdout(stdout.try_clone().map_err(failed)?),
        };
        if self.plan.cache == Cache::Cold {
            drop_caches();
        }
        let start = Instant::now();
        let mut child = child::start(&mut command).map_err(Stop::Failed)?;
        let mut client = match self.start_client(program, stdout) {
            Ok(client) => client,
            Err(reason) => {
                child::end(&mut child);
                return Err(Stop::Failed(reason));
            }
        };
        let mut has_client_failed = false;
        let ended = child::watch(&mut child, limit, self.interrupt, &mut |process| {
            look(process);
            let status = client.as_mut().map(|client| client.child.try_wait());
            match status {
                Some(Ok(Some(status))) if !status.success() => {
                    has_client_failed = true;
                    Err(format!("its client ended with {status}"))
                }
                _ => Ok(()),
            }
        });
        let elapsed = start.elapsed();
        if ended.is_ok() || has_client_failed {
            finish(client, self.interrupt)?;
        }
        ended?;
        let checksum = checksum_of_all(&files).map_err(Stop::Failed)?;
        Ok((elapsed, checksum))
    }

    fn start_client(&self, program: &Program, stdout: File) -> Result<Option<Client>, String> {
        let Some(client) = &program.client else {
            return Ok(None);
        };
        let words: Vec<OsString> = client.iter().map(OsString::from).collect();
        let mut command = self.command(program, &words);
        let child = child::start(command.stdout(stdout))?;
        Ok(Some(Client { child }))
    }

    fn command(&self, program: &Program, words: &[OsString]) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.folder)
            .envs(&program.environment);
        command
    }
}

/// Waits until a client has ended, which is soon after its server.
fn finish(client: Option<Client>, interrupt: &AtomicBool) -> Result<(), Stop> {
    let Some(mut client) = client else {
        return Ok(());
    };
    let ended = child::watch(&mut client.child, CLIENT_LIMIT, interrupt, &mut |_| Ok(()));
    ended.map_err(|stop| match stop {
        Stop::Interrupted => stop,
        Stop::Failed(_) | Stop::TooLong(_) => Stop::Failed(format!("its client: {stop}")),
    })
}

/// The memory that zswap's pool takes, of all programs.
fn zswap_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Zswap:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The memory that the kernel takes for the group, and charges to none: that of its device, or of
/// zswap's pool beyond what that held before.
fn uncharged_bytes(
    entrant: &Entrant,
    device: Option<u32>,
    group: &Group,
    pool_before: Option<u64>,
) -> Option<u64> {
    match device {
        Some(device) => zram::memory_bytes(device),
        None if *entrant == Entrant::Zswap && !group.pays_for_zswap() => {
            Some(zswap_bytes()?.saturating_sub(pool_before?))
        }
        None => None,
    }
}

/// Takes what a device or a pool holds off the group's limit: the kernel charges it to no group.
fn take_off(held: u64, group: &Group, group_bytes: u64, counts: &mut Counts) {
    counts.device_peak_bytes = Some(counts.device_peak_bytes.unwrap_or(0).max(held));
    let least = group_bytes / GROUP_PART_LEAST;
    counts.is_over_memory |= group_bytes.saturating_sub(held) < least;
    // A group that can't give up enough at once does so at the next look.
    let _ = group.set_limit(group_bytes.saturating_sub(held).max(least));
}

/// Takes our own counts from the statistics file of `tidemark run`. They are read without their
/// layout, since another build may have written them.
fn take_statistics(path: &Path, counts: &mut Counts) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| told(&error))?;
    let mut record: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| told(&error))?;
    if record["processes"].as_array().is_none_or(Vec::is_empty) {
        return Err("it ran unmanaged".to_owned());
    }
    let total = record["total"].take();
    counts.page_ins = total["page_ins"].as_u64();
    counts.page_outs = total["page_outs"].as_u64();
    counts.statistics = Some(total);
    Ok(())
}

fn there(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Ok(()),
        false => Err(format!("{} is not there", path.display())),
    }
}
