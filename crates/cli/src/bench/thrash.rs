//! `tidemark bench thrash`: the thrashing curve, page accesses per second of more and more tasks in
//! the same memory.

use std::path::PathBuf;

use tidemark_hostbench::contender::{Contender, Own, Rival};
use tidemark_hostbench::measure;
use tidemark_hostbench::plan::{Plan, ReadAhead};
use tidemark_hostbench::record::BenchRecord;
use tidemark_hostbench::workload::Workload;
use tidemark_hostbench::workload::array::PAGE_BYTES;
use tidemark_report::thrashing::{drawing, picture};
use tidemark_results::thrashing::{SCHEMA, ThrashPoint, Thrashing};
use tidemark_supervisor::interrupt::Interrupt;
use tidemark_supervisor::load_controls;

use super::unfit::unfit;
use super::{Arguments, json, plan_of};
use crate::exit::{Exit, Refusal, refuse};
use crate::output::say;
use crate::views::screen;
use crate::{files, output};

/// The memory, the working set of a task, and its accesses as a multiple of the pages of that.
const MEMORY: &str = "128M";
const SIZE: &str = "32M";
const LAPS: u32 = 12;
/// The working sets of all tasks, as multiples of memory.
const LOADS: [f64; 7] = [0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0];

/// Measures all points, and draws them.
pub fn run(arguments: &Arguments, folder: PathBuf, interrupt: &Interrupt) -> Result<Exit, Refusal> {
    let plans = plans(arguments, folder)?;
    let mut record = Thrashing {
        schema: SCHEMA,
        tidemark: env!("CARGO_PKG_VERSION"),
        memory_bytes: plans[0].memory_bytes,
        size_bytes: plans[0].size_bytes,
        laps: plans[0].laps(),
        points: vec![],
        left_out: vec![],
    };
    let mut is_fine = true;
    for plan in &plans {
        let tasks = match plan.procs {
            1 => "1 task".to_owned(),
            tasks => format!("{tasks} tasks"),
        };
        say!("{tasks}: {} times the memory", load(plan));
        let bench = measure(plan, interrupt.flag())?;
        is_fine &= bench.find_mismatch().is_none();
        take_in(&mut record, plan, &bench);
    }
    if record.points.is_empty() {
        refuse!(
            "no contender came to an end; the first: {}",
            record.left_out[0]
        );
    }
    if let Some(path) = &arguments.png {
        match picture(&record).to_png() {
            Ok(png) => files::write(path, &png)?,
            Err(error) => refuse!("`{}`: can't be drawn: {error}", path.display()),
        }
    }
    output::print(&match arguments.json {
        true => json(&record),
        false => drawing(&record, screen(None)),
    });
    let has_failed = |line: &String| line.starts_with("tidemark");
    match is_fine && !record.left_out.iter().any(has_failed) {
        true => Ok(Exit::Fine),
        false => Ok(Exit::Found),
    }
}

/// A plan for each number of tasks, the least first.
fn plans(arguments: &Arguments, folder: PathBuf) -> Result<Vec<Plan>, Refusal> {
    let mut arguments = arguments.clone();
    arguments.memory.get_or_insert_with(|| MEMORY.into());
    arguments.size.get_or_insert_with(|| SIZE.into());
    arguments.laps.get_or_insert(LAPS);
    arguments.rounds.get_or_insert(1);
    if !arguments.rivals_only {
        let named = &mut arguments.load_control;
        if named.is_empty() {
            named.extend(load_controls::names().into_iter().map(str::to_owned));
        }
        if !named.iter().any(|name| name == load_controls::NONE) {
            named.insert(0, load_controls::NONE.into());
        }
    }
    if arguments.against.is_empty() {
        arguments.against = vec![Rival::KernelSwap];
    }
    let mut loads = match arguments.loads.is_empty() {
        true => LOADS.to_vec(),
        false => arguments.loads.clone(),
    };
    if let Some(load) = loads.iter().find(|load| !(0.01..=1000.0).contains(*load)) {
        refuse!("`--loads {load}`: give multiples of the memory, from 0.01 to 1000");
    }
    loads.sort_by(f64::total_cmp);
    let mut usual = plan_of(&arguments, Workload::Random, folder)?;
    // The default load control is one of those that are named.
    usual.own.retain(|own| match own {
        Contender::Own(own) => {
            *own != Own {
                policy: own.policy.clone(),
                ..Own::default()
            }
        }
        _ => true,
    });
    let mut plans: Vec<Plan> = vec![];
    for load in loads {
        let tasks = load * usual.memory_bytes as f64 / usual.size_bytes.max(1) as f64;
        let procs = tasks.round().max(1.0) as u32;
        if plans.last().is_some_and(|plan| plan.procs == procs) {
            continue;
        }
        let read_ahead = ReadAhead::Host;
        let plan = Plan {
            procs,
            read_ahead,
            ..usual.clone()
        };
        plan.check()
            .map_err(|told| Refusal::new(format!("`--loads {load}`: {}", unfit(told))))?;
        plans.push(plan);
    }
    Ok(plans)
}

fn load(plan: &Plan) -> f64 {
    plan.touched_bytes() as f64 / plan.memory_bytes as f64
}

fn take_in(record: &mut Thrashing, plan: &Plan, bench: &BenchRecord) {
    let pages = plan.touched_bytes() / PAGE_BYTES;
    let accesses = pages * (1 + u64::from(plan.laps()));
    // With one read-ahead the kernel's best is the only one.
    let made = bench.contenders.iter();
    let made = made.filter(|made| made.name != "kernel-swap-best");
    record.points.extend(made.map(|made| ThrashPoint {
        contender: made.name.clone(),
        tasks: plan.procs,
        load: load(plan),
        elapsed_s: made.elapsed_s,
        accesses_per_s: accesses as f64 / made.elapsed_s.max(1e-9),
        page_ins: made.page_ins,
    }));
    record
        .left_out
        .extend(bench.left_out.iter().map(|left_out| {
            let (name, reason) = (&left_out.name, &left_out.reason);
            format!("{name} with {} tasks: {reason}", plan.procs)
        }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn planned(words: &[&str]) -> Result<Vec<Plan>, Refusal> {
        let words = ["bench", "thrash"].into_iter().chain(words.iter().copied());
        plans(&Line::parse_from(words).arguments, "/var/tmp".into())
    }

    #[test]
    fn working_sets_fill_the_memory_so_many_times() {
        let procs = |words: &[&str]| -> Vec<u32> {
            let plans = planned(words).unwrap();
            plans.iter().map(|plan| plan.procs).collect()
        };
        assert_eq!(procs(&[]), [2, 3, 4, 6, 8, 16, 32]);
        assert_eq!(
            procs(&["--loads", "2,0.5,0.6", "--size", "8M"]),
            [8, 10, 32]
        );
        // One task stands for all that are less than one.
        assert_eq!(procs(&["--loads", "0.01,0.1,8", "--size", "128M"]), [1, 8]);
        for wrong in ["0", "-1", "nan", "1000"] {
            let loads = format!("--loads={wrong}");
            assert!(planned(&[&loads]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_load_control_takes_part_beside_none() {
        let plans = planned(&[]).unwrap();
        let names: Vec<String> = plans[0].own.iter().map(|own| own.name()).collect();
        let all: Vec<String> = [
            "none",
            "medium-term",
            "vms-swapper",
            "task-swapper",
            "working-set",
        ]
        .map(|name| format!("tidemark+{name}"))
        .into();
        assert_eq!(names, all);
        let plans = planned(&["--load-control", "task-swapper"]).unwrap();
        let names: Vec<String> = plans[0].own.iter().map(|own| own.name()).collect();
        assert_eq!(names, ["tidemark+none", "tidemark+task-swapper"]);
        let words = [
            "--load-control",
            "none",
            "--division",
            "equal",
            "--policy",
            "fifo",
        ];
        let plans = planned(&words).unwrap();
        let names: Vec<String> = plans[0].own.iter().map(|own| own.name()).collect();
        assert_eq!(names, ["tidemark:fifo+none", "tidemark:fifo/equal"]);
    }
}
