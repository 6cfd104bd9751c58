//! Runs the contenders in turn and collects their measurements.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::ValueEnum;
use tidemark_results::RunRecord;

use crate::cgroup::{Controller, Group};
use crate::child;
use crate::contender::{Contender, PAGE_CLUSTERS, Rival, inside_group, under_own};
use crate::host::Host;
use crate::kernel_swap::{SwapCounters, drop_caches, vmstat};
use crate::output::say;
use crate::plan::{Plan, ReadAhead};
use crate::record::{BenchRecord, ContenderRecord, LeftOut, PageCluster, SCHEMA, Sample};
use crate::scratch::Scratch;
use crate::workload::array::PAGE_BYTES;
use crate::workload::outcome::WorkloadOutcome;
use crate::workload::{Workload, programs};

/// A benchmark under way.
struct Bench<'a> {
    plan: &'a Plan,
    interrupt: &'a AtomicBool,
    tidemark: PathBuf,
    scratch: Scratch,
    controller: Result<Controller, String>,
    host: Option<Host>,
    groups_made: u32,
}

/// A contender and its runs so far.
struct Entry {
    contender: Contender,
    samples: Vec<Sample>,
    failures: Vec<String>,
    is_given_up: bool,
}

/// Runs what `plan` says. Contenders that can't run are left out and named.
pub fn measure(plan: &Plan, interrupt: &AtomicBool) -> Result<BenchRecord, String> {
    let mut bench = Bench::start(plan, interrupt)?;
    let mut left_out = Vec::new();
    let mut entries = bench.enter_contenders(&mut left_out);
    for round in 0..plan.rounds {
        let count = entries.len();
        for place in 0..count {
            // Each round starts with another contender, so that none is always the first.
            let entry = &mut entries[(place + round as usize) % count];
            if entry.is_given_up {
                continue;
            }
            say!(
                "round {} of {}: {}",
                round + 1,
                plan.rounds,
                entry.contender.name()
            );
            let start = Instant::now();
            match bench.run_once(&entry.contender) {
                Ok(sample) => entry.samples.push(sample),
                Err(message) => {
                    say!("{} failed: {message}", entry.contender.name());
                    entry.failures.push(message);
                    entry.is_given_up = start.elapsed() >= plan.limit;
                }
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err("interrupted; what was changed is put back".into());
            }
        }
    }
    let host = bench.host.as_ref();
    let page_cluster_default = host.and_then(|host| host.page_cluster_default().ok());
    Ok(sum_up(plan, entries, left_out, page_cluster_default))
}

impl<'a> Bench<'a> {
    fn start(plan: &'a Plan, interrupt: &'a AtomicBool) -> Result<Bench<'a>, String> {
        let tidemark =
            std::env::current_exe().map_err(|error| format!("no path to this program: {error}"))?;
        let scratch = Scratch::create(&plan.folder)?;
        match plan.workload {
            Workload::Compile => programs::prepare_compile(&scratch.path)?,
            Workload::Sort => {
                programs::prepare_sort(&scratch.path, plan.size_bytes)?;
            }
            _ => {}
        }
        let controller = Controller::find();
        Ok(Bench {
            plan,
            interrupt,
            tidemark,
            scratch,
            controller,
            host: None,
            groups_made: 0,
        })
    }

    /// Lists the contenders, ours first, and makes ready what they need.
    fn enter_contenders(&mut self, left_out: &mut Vec<LeftOut>) -> Vec<Entry> {
        let mut contenders = self.plan.own.clone();
        let rivals = self.plan.rivals.clone();
        for rival in rivals {
            match self.contenders_of(rival) {
                Ok(more) => contenders.extend(more),
                Err(reason) => {
                    let name = rival.to_possible_value().expect("no rival is skipped");
                    let name = name.get_name().to_owned();
                    say!("{name} left out: {reason}");
                    left_out.push(LeftOut {
                        name,
                        rounds_failed: self.plan.rounds,
                        reason,
                    });
                }
            }
        }
        let entry = |contender| Entry {
            contender,
            samples: Vec::new(),
            failures: Vec::new(),
            is_given_up: false,
        };
        contenders.into_iter().map(entry).collect()
    }

    fn contenders_of(&mut self, rival: Rival) -> Result<Vec<Contender>, String> {
        match rival {
            Rival::Native => Ok(vec![Contender::Native]),
            Rival::Mmap if self.plan.workload.shape().is_none() => {
                Err("it is for workloads over an array".to_owned())
            }
            Rival::Mmap => {
                self.controller.clone()?;
                Ok(vec![Contender::Mmap])
            }
            Rival::KernelSwap => {
                self.controller.clone()?;
                let bytes = self.plan.touched_bytes().max(4 * self.plan.memory_bytes);
                let mut host = Host::take()?;
                let mut page_clusters = vec![host.page_cluster_default()?];
                host.add_swap_file(&self.plan.folder, bytes + bytes / 4 + (64 << 20))?;
                match self.plan.read_ahead {
                    ReadAhead::Host => {}
                    ReadAhead::Best => page_clusters.extend(PAGE_CLUSTERS),
                }
                page_clusters.sort_unstable();
                page_clusters.dedup();
                self.host = Some(host);
                let contender = |page_cluster| Contender::KernelSwap { page_cluster };
                Ok(page_clusters.into_iter().map(contender).collect())
            }
        }
    }

    fn run_once(&mut self, contender: &Contender) -> Result<Sample, String> {
        let group = self.make_group(contender)?;
        let statistics = self.scratch.path.join("statistics.json");
        let mut command: Vec<OsString> = Vec::new();
        if let Some(group) = &group {
            command.extend(inside_group(group.path()));
        }
        if let Contender::Own(_) = contender {
            command.extend(under_own(
                &self.tidemark,
                self.plan.memory_bytes,
                &self.plan.folder,
                &statistics,
                contender.run_options(),
            ));
        }
        command.extend(self.program(contender));
        if let (Contender::KernelSwap { page_cluster }, Some(host)) = (contender, &mut self.host) {
            host.set_page_cluster(*page_cluster)?;
        }
        drop_caches();
        let before = Counters::now();
        let output =
            child::run(&command, self.plan.limit, self.interrupt).map_err(
                |reason| match &group {
                    Some(group) if group.was_out_of_memory() => {
                        format!("the kernel found no memory for it in its control group ({reason})")
                    }
                    _ => reason,
                },
            )?;
        let after = Counters::now();
        let outcome = WorkloadOutcome::from_output(&output).ok_or("it gave no outcome")?;
        let mut sample = Sample {
            elapsed_s: outcome.elapsed_s,
            fill_s: outcome.fill_s,
            checksum: outcome.checksum.clone(),
            memory_peak_bytes: group.as_ref().and_then(Group::memory_peak_bytes),
            ..Sample::default()
        };
        match contender {
            Contender::Own(_) => {
                // Several processes have one more that starts them and waits.
                let least = match self.plan.procs {
                    1 => 1,
                    procs => procs as usize + 1,
                };
                read_statistics(&statistics, least, &mut sample)?;
            }
            Contender::KernelSwap { .. } => {
                let swapped = after
                    .swap
                    .zip(before.swap)
                    .map(|(after, before)| after.since(before));
                let swapped = swapped.ok_or("/proc/vmstat does not count swap")?;
                (sample.page_ins, sample.page_outs) = (swapped.page_ins, swapped.page_outs);
            }
            Contender::Mmap => {
                sample.page_ins = outcome.read_bytes.unwrap_or(0) / PAGE_BYTES;
                sample.page_outs = after.pages_written - before.pages_written;
            }
            Contender::Native => {}
        }
        Ok(sample)
    }

    /// The group the contender runs in: with the limit if the kernel is to hold it, else only to
    /// count its memory, where that is possible.
    fn make_group(&mut self, contender: &Contender) -> Result<Option<Group>, String> {
        let limit_bytes = contender
            .is_limited_by_kernel()
            .then_some(self.plan.memory_bytes);
        let Ok(controller) = &self.controller else {
            return Ok(None);
        };
        self.groups_made += 1;
        let name = format!("tidemark-bench-{}-{}", std::process::id(), self.groups_made);
        if let Some(host) = &mut self.host {
            host.note_group(&controller.path_of(&name))?;
        }
        match controller.create(&name, limit_bytes) {
            Ok(group) => Ok(Some(group)),
            Err(message) if limit_bytes.is_some() => Err(message),
            Err(_) => Ok(None),
        }
    }

    /// The measured program and its arguments.
    fn program(&self, contender: &Contender) -> Vec<OsString> {
        let plan = self.plan;
        let mut command: Vec<OsString> = vec![self.tidemark.clone().into(), "workload".into()];
        command.push(plan.workload.name().into());
        let mut option = |name: &str, value: OsString| command.extend([name.into(), value]);
        option("--bytes", plan.size_bytes.to_string().into());
        option("--procs", plan.procs.to_string().into());
        option("--seed", plan.seed.to_string().into());
        option("--contents", plan.contents.name().into());
        let prepared = plan.prepared.as_ref();
        let scratch = prepared.map_or(&self.scratch.path, |prepared| &prepared.folder);
        option("--scratch", scratch.into());
        if let Some(laps) = plan.laps {
            option("--laps", laps.to_string().into());
        }
        if *contender == Contender::Mmap {
            command.push("--mapped".into());
        }
        if let Some(prepared) = prepared {
            command.push("--".into());
            command.extend(prepared.words.iter().cloned());
        }
        command
    }
}

/// Makes the record. Of the kernel's runs, the one at the host's setting and the best are kept.
fn sum_up(
    plan: &Plan,
    entries: Vec<Entry>,
    mut left_out: Vec<LeftOut>,
    page_cluster_default: Option<u32>,
) -> BenchRecord {
    // With long plans it takes minutes and gigabytes, for no contender to be compared with.
    let has_run = entries.iter().any(|entry| !entry.samples.is_empty());
    let optimal_page_ins = has_run.then(|| plan.optimal_page_ins()).flatten();
    let mut contenders = Vec::new();
    let mut kernel = Vec::new();
    let mut own = 0;
    for entry in entries {
        let name = entry.contender.name();
        if let Some(reason) = entry.failures.first() {
            let rounds_failed = u32::try_from(entry.failures.len()).unwrap_or(u32::MAX);
            left_out.push(LeftOut {
                name: name.clone(),
                rounds_failed,
                reason: reason.clone(),
            });
        }
        if entry.samples.is_empty() {
            continue;
        }
        let mut record = ContenderRecord::of_samples(name, &entry.samples);
        match entry.contender {
            Contender::Own(_) => {
                record.optimal_page_ins = optimal_page_ins;
                own += 1;
            }
            Contender::KernelSwap { page_cluster } => {
                record.page_cluster = Some(page_cluster);
                kernel.push(record);
                continue;
            }
            Contender::Mmap | Contender::Native => {}
        }
        contenders.push(record);
    }
    let page_clusters = kernel.iter().filter_map(PageCluster::of).collect();
    contenders.splice(own..own, choose_kernel(kernel, page_cluster_default));
    let first_s = contenders.first().map_or(1.0, |first| first.elapsed_s);
    for contender in &mut contenders {
        contender.ratio = contender.elapsed_s / first_s;
    }
    BenchRecord {
        schema: SCHEMA,
        tidemark: env!("CARGO_PKG_VERSION"),
        workload: plan.workload.name(),
        memory_bytes: plan.memory_bytes,
        size_bytes: plan.size_bytes,
        procs: plan.procs,
        laps: plan.laps(),
        seed: plan.seed,
        contents: plan.contents,
        rounds: plan.rounds,
        optimal_page_ins,
        contenders,
        page_clusters,
        left_out,
    }
}

/// Of the kernel's runs by read-ahead: the host's own as `kernel-swap`, and the fastest as
/// `kernel-swap-best`. They may be the same runs.
fn choose_kernel(kernel: Vec<ContenderRecord>, default: Option<u32>) -> Vec<ContenderRecord> {
    let at_default = kernel.iter().find(|record| record.page_cluster == default);
    let best = kernel
        .iter()
        .min_by(|left, right| left.elapsed_s.total_cmp(&right.elapsed_s));
    let named = |record: &ContenderRecord, name: &str| ContenderRecord {
        name: name.to_owned(),
        ..record.clone()
    };
    let at_default = at_default.map(|record| named(record, "kernel-swap"));
    let best = best.map(|record| named(record, "kernel-swap-best"));
    at_default.into_iter().chain(best).collect()
}

/// Takes our own counts from the statistics file of `tidemark run`. A round in which fewer than
/// `processes_least` processes were managed is an error.
fn read_statistics(path: &Path, processes_least: usize, sample: &mut Sample) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| told(&error))?;
    let record: RunRecord = serde_json::from_str(&text).map_err(|error| told(&error))?;
    take_counts(&record, processes_least, sample)?;
    // Left over, it would be taken for that of the next run.
    fs::remove_file(path).map_err(|error| told(&error))
}

fn take_counts(
    record: &RunRecord,
    processes_least: usize,
    sample: &mut Sample,
) -> Result<(), String> {
    let managed = record.processes.len();
    if managed < processes_least {
        return Err(format!(
            "{managed} of its {processes_least} processes were managed: is the machine busy?"
        ));
    }
    sample.page_ins = record.total.page_ins;
    sample.page_outs = record.total.page_outs;
    sample.soft_faults = Some(record.total.soft_faults);
    Ok(())
}

/// The kernel's counters that tell what went to and from the disk.
struct Counters {
    swap: Option<SwapCounters>,
    pages_written: u64,
}

impl Counters {
    fn now() -> Counters {
        let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        Counters {
            swap: SwapCounters::now(),
            pages_written: vmstat(&text, "nr_written").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_results::{Ending, ProcessRecord, Statistics};

    #[test]
    fn a_round_whose_processes_were_not_all_managed_does_not_count() {
        let process = ProcessRecord {
            pid: 7,
            parent: None,
            program: "sheep".into(),
            ending: Ending::Status(0),
            locks: None,
            statistics: Statistics::default(),
        };
        let total = Statistics {
            page_ins: 5,
            ..Statistics::default()
        };
        let mut record = RunRecord {
            processes: vec![process; 4],
            ..RunRecord::of(vec![], Ending::Status(0), total)
        };
        let mut sample = Sample::default();
        let refused = take_counts(&record, 5, &mut sample).unwrap_err();
        assert!(refused.starts_with("4 of its 5 processes"), "{refused}");
        record.processes.push(record.processes[0].clone());
        assert_eq!(take_counts(&record, 5, &mut sample), Ok(()));
        assert_eq!(sample.page_ins, 5);
    }

    #[test]
    fn the_kernel_shows_its_default_and_its_best() {
        let run = |page_cluster, elapsed_s| {
            let sample = Sample {
                elapsed_s,
                ..Sample::default()
            };
            let mut record = ContenderRecord::of_samples(String::new(), &[sample]);
            record.page_cluster = Some(page_cluster);
            record
        };
        let kernel = vec![run(0, 9.0), run(3, 5.0), run(6, 2.0)];
        let chosen = choose_kernel(kernel, Some(3));
        let names: Vec<_> = chosen
            .iter()
            .map(|record| (record.name.as_str(), record.page_cluster))
            .collect();
        assert_eq!(
            names,
            [("kernel-swap", Some(3)), ("kernel-swap-best", Some(6))]
        );
        assert!(choose_kernel(Vec::new(), Some(3)).is_empty());
    }
}
