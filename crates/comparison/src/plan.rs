//! The order for a comparison, checked before anything is started.

use std::ffi::OsString;
use std::path::PathBuf;

use tidemark_core::id::PAGE_BYTES;
use tidemark_hostbench::calibrate;
use tidemark_lab::amounts::parse_memories;
use tidemark_lab::names::{Divider, find_live_policy, parse_disk, parse_division};
use tidemark_lab::study::{NamedDisk, Replay};
use tidemark_lab::world::DiskModel;
use tidemark_lab::world::disk::table::Table;
use tidemark_live::control::Store;
use tidemark_live::engine::MAPPED_BYTES_LEAST;
use tidemark_results::text::bytes;
use tidemark_results::{Refusal, quantity, refuse};
use tidemark_supervisor::management::MEMORY_BYTES_MIN;
use tidemark_supervisor::{host, load_controls, program};
use tidemark_trace::private::{Extent, LARGE_BYTES_LEAST};

use crate::Order;

/// The disk that is measured where live runs swap.
pub const MEASURED: &str = "measured";

/// The most live runs of one case.
const RUNS_MAX: u32 = 100;
// The lab and the live engine leave the same mappings alone in step.
const _: () = assert!(MAPPED_BYTES_LEAST as u64 == LARGE_BYTES_LEAST);

/// The order for a comparison.
pub struct Plan<'a> {
    /// As it was said.
    pub order: &'a Order,
    /// The path at which the program was found.
    path: PathBuf,
    /// The policies.
    pub policies: Vec<&'static str>,
    /// The disk that the prediction assumes.
    pub disk: NamedDisk,
    /// True if the program waits at each fault until all is over, live and in the lab.
    pub is_in_step: bool,
    /// The number of times each live run is made.
    pub runs: u32,
    /// The way in which memory is divided.
    pub divider: Divider,
}

impl<'a> Plan<'a> {
    /// The plan, if it can be one.
    pub fn new(order: &'a Order) -> Result<Plan<'a>, Refusal> {
        if !(1..=RUNS_MAX).contains(&order.runs) {
            refuse!("`--runs {}`: takes 1 to {RUNS_MAX}", order.runs);
        }
        if order.is_in_step && order.store.is_compressed() {
            refuse!(
                "`--store {}`: in step decisions must not hang on how well pages compress; compare \
                 with `--store file`, or without `--in-step`",
                order.store.name()
            );
        }
        if let Some(name) = &order.load_control {
            if let Err(why) = load_controls::find(name) {
                refuse!("`--load-control`: {why}");
            }
            if order.is_in_step && name != load_controls::NONE {
                refuse!("`--load-control {name}`: in step no process waits; leave it out");
            }
        }
        let mut policies = vec![];
        for name in order.policies.iter().map(|name| name.trim()) {
            let found = find_live_policy(name)
                .map_err(|refusal| Refusal::new(format!("`--policy`: {refusal}")))?;
            policies.push(found.name);
        }
        let path = program::find(&order.program[0])?;
        let plan = Plan {
            order,
            path,
            policies,
            disk: find_disk(order)?,
            is_in_step: order.is_in_step,
            runs: order.runs,
            divider: parse_division(
                ("--division", &order.division),
                ("--per-task-min", &order.per_task_min),
                PAGE_BYTES,
            )?,
        };
        // A recording takes minutes: what can be told before it is.
        plan.parse_sizes(None)?;
        if let Some(text) = &order.swap_size {
            quantity::parse("--swap-size", text)?;
        }
        let shim = host::find_shim()?;
        if order.is_in_step {
            host::find_pool(&shim)?;
        }
        if let Some(obstacle) = program::find_obstacle(&plan.path) {
            refuse!("`{}` {}", plan.path.display(), obstacle.reason());
        }
        if let Some(lack) = host::find_lack(false) {
            refuse!("{lack}");
        }
        Ok(plan)
    }

    /// The program and its arguments, as each step is given them. Valgrind calls a program by the
    /// path that it was found at; in step it has that name live, too.
    pub fn command(&self) -> Vec<OsString> {
        let mut words = self.order.program.clone();
        if self.is_in_step {
            words[0] = self.path.clone().into();
        }
        words
    }

    /// The memory that is managed.
    pub fn extent(&self) -> Extent {
        match self.is_in_step {
            true => Extent::Large,
            false => Extent::All,
        }
    }

    /// The sizes of memory, each once, rising.
    pub fn memory_pages(&self, replay: &Replay) -> Result<Vec<u32>, Refusal> {
        self.parse_sizes(Some(replay.footprint_pages(1) * replay.page_bytes()))
    }

    /// The program and its arguments.
    pub fn words(&self) -> Vec<String> {
        let words = self.order.program.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// Remarks that a reader of the numbers may need.
    pub fn notes(&self) -> Vec<String> {
        let told: &[&str] = match self.is_in_step {
            true => &[
                "in step: time is counted in faults, mapped pages count as modified, and only \
                 mappings of 4 MiB or more are managed (the allocator's pool is one); elapsed \
                 times mean nothing",
                "pages are named by object and index: object 0 is the pool, the others are the \
                 program's own mappings, in order",
            ],
            false => &[
                "the simulation pages out every page that was written; a live run skips pages \
                 whose contents did not change or are zeros",
            ],
        };
        let files: &[&str] = match self.order.files {
            Some(_) => &["mappings of the named files are managed, too, each an object of its own"],
            None => &[],
        };
        let sizes: &[&str] = match self.order.store {
            Store::Compressed | Store::CompressedAndFile => &[
                "compressed sizes are drawn from those of a live run in half of the memory; each \
                 page keeps about its size",
            ],
            Store::File => &[],
        };
        told.iter()
            .chain(files)
            .chain(sizes)
            .map(|note| (*note).to_owned())
            .collect()
    }

    /// The sizes, where the program's managed memory is `whole_bytes`; `None`: it is not known yet.
    fn parse_sizes(&self, whole_bytes: Option<u64>) -> Result<Vec<u32>, Refusal> {
        const PAGE_BYTES: u64 = tidemark_core::id::PAGE_BYTES;
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
        let memory = &self.order.memory;
        // Shares of a whole that is not known are taken for large enough.
        let whole_bytes = whole_bytes.unwrap_or(1 << 40);
        parse_memories("--memory", memory, PAGE_BYTES, whole_bytes, check)
    }
}

/// The disk that is asked for.
fn find_disk(order: &Order) -> Result<NamedDisk, Refusal> {
    if order.disk != MEASURED {
        return parse_disk("--disk", &order.disk);
    }
    let name = MEASURED.into();
    if order.is_in_step {
        // In step no process waits for a disk.
        let model = DiskModel::INSTANT;
        return Ok(NamedDisk { name, model });
    }
    let measured = calibrate::measure_swap(order.swap.as_deref());
    let table = match &measured {
        Ok(latencies) => Table::from_latencies(latencies),
        Err(error) => refuse!("`--disk {MEASURED}`: {error}; name another, like `--disk ssd`"),
    };
    let model = DiskModel::Table(table.expect("reads and writes are measured"));
    Ok(NamedDisk { name, model })
}
