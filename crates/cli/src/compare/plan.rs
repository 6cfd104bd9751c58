//! The order for a comparison, from the arguments; checked before anything is started.

use std::ffi::OsString;

use tidemark_comparison::{NamedFiles, Order};
use tidemark_core::id::PAGE_BYTES;
use tidemark_hostbench::calibrate;
use tidemark_lab::amounts::parse_memories;
use tidemark_lab::names::{find_live_policy, parse_disk};
use tidemark_lab::study::NamedDisk;
use tidemark_lab::systems::plain::TIDEMARK;
use tidemark_lab::world::DiskModel;
use tidemark_lab::world::disk::table::Table;
use tidemark_results::quantity;
use tidemark_results::text::bytes;
use tidemark_supervisor::management::MEMORY_BYTES_MIN;
use tidemark_supervisor::{load_controls, program};

use super::Arguments;
use crate::exit::{Refusal, refuse};
use crate::run::Store;
use crate::run::plan::parse_files;

/// The disk that is measured where live runs swap.
pub const MEASURED: &str = "measured";

/// The most live runs of one case.
const RUNS_MAX: u32 = 100;

/// The order that `arguments` make, if they can.
pub fn order<'a>(
    arguments: &Arguments,
    whole_sizes: &'a dyn Fn(u64) -> Result<Vec<u32>, Refusal>,
) -> Result<Order<'a>, Refusal> {
    if !(1..=RUNS_MAX).contains(&arguments.runs) {
        refuse!("`--runs {}`: takes 1 to {RUNS_MAX}", arguments.runs);
    }
    let store = Store::or_usual(arguments.store, arguments.in_step);
    if arguments.in_step && store.is_compressed() {
        refuse!(
            "`--store {}`: in step decisions must not hang on how well pages compress; compare \
             with `--store file`, or without `--in-step`",
            store.name()
        );
    }
    if let Some(name) = &arguments.load_control {
        if let Err(why) = load_controls::find(name) {
            refuse!("`--load-control`: {why}");
        }
        if arguments.in_step && name != load_controls::NONE {
            refuse!("`--load-control {name}`: in step no process waits; leave it out");
        }
    }
    let mut policies = vec![];
    for name in &arguments.policy {
        let found = find_live_policy(name.trim())
            .map_err(|refusal| Refusal::new(format!("`--policy`: {refusal}")))?;
        policies.push(found.name);
    }
    if policies.is_empty() {
        policies.push(TIDEMARK.policy);
    }
    let divider = arguments.division.divider(PAGE_BYTES)?;
    let swap_size = arguments.swap_size.as_deref();
    let swap_size_bytes = swap_size
        .map(|text| quantity::parse("--swap-size", text))
        .transpose()?;
    sizes(&arguments.memory, None)?;
    let named = |pattern: OsString| parse_files(&pattern).map(|glob| NamedFiles { pattern, glob });
    let files = arguments.files.clone().map(named).transpose()?;
    Ok(Order {
        path: program::find(&arguments.program[0])?,
        program: arguments.program.clone(),
        sizes: whole_sizes,
        policies,
        store,
        files,
        trace: arguments.trace.clone(),
        is_exact: arguments.exact,
        is_in_step: arguments.in_step,
        runs: arguments.runs,
        disk: find_disk(arguments)?,
        load_control: arguments.load_control.clone(),
        divider,
        swap: arguments.swap.clone(),
        swap_size_bytes,
    })
}

/// The sizes in pages that `memory` names, where the program's managed memory is `whole_bytes`;
/// `None`: it is not known yet.
pub fn sizes(memory: &str, whole_bytes: Option<u64>) -> Result<Vec<u32>, Refusal> {
    const LEAST: &str = "the least that a program runs in is 4M";
    const _: () = assert!(MEMORY_BYTES_MIN == 4 << 20);
    let check = |part: &str, pages: u32| {
        if u64::from(pages) >= MEMORY_BYTES_MIN / PAGE_BYTES {
            return Ok(());
        }
        match whole_bytes {
            Some(whole) if whole < MEMORY_BYTES_MIN => refuse!(
                "`--memory {part}`: the program uses {} of managed memory in all, and {LEAST}",
                bytes(whole)
            ),
            Some(whole) if part.ends_with('%') => refuse!(
                "`--memory {part}`: too small: the program uses {} of managed memory, and \
                 {LEAST}, {} %; `--trace FILE` keeps a recording for another try",
                bytes(whole),
                (MEMORY_BYTES_MIN * 100).div_ceil(whole)
            ),
            Some(_) | None => refuse!("`--memory {part}`: too small; {LEAST}"),
        }
    };
    // Shares of a whole that is not known are taken for large enough.
    let whole_bytes = whole_bytes.unwrap_or(1 << 40);
    parse_memories("--memory", memory, PAGE_BYTES, whole_bytes, check)
}

/// The disk that is asked for.
fn find_disk(arguments: &Arguments) -> Result<NamedDisk, Refusal> {
    if arguments.disk != MEASURED {
        return parse_disk("--disk", &arguments.disk);
    }
    let name = MEASURED.into();
    if arguments.in_step {
        // In step no process waits for a disk.
        let model = DiskModel::INSTANT;
        return Ok(NamedDisk { name, model });
    }
    let measured = calibrate::measure_swap(arguments.swap.as_deref());
    let table = match &measured {
        Ok(latencies) => Table::from_latencies(latencies),
        Err(error) => refuse!("`--disk {MEASURED}`: {error}; name another, like `--disk ssd`"),
    };
    let model = DiskModel::Table(table.expect("reads and writes are measured"));
    Ok(NamedDisk { name, model })
}
