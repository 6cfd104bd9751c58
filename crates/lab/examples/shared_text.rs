//! The course of three programs that share a hot text and grow their heaps, under GNU Mach's three
//! pagers: a model of compilers at work on a machine that is a little too small.
//!
//!     cargo run --release --example shared_text -p tidemark-lab [-- PARTS [DISK]]
//!
//! Half of all references go to the text, the more often the lower the page; half to the heap,
//! mostly to its newest third. PARTS is 1 for 16,000 pages of memory and 18 million references, 8
//! for an eighth of everything. DISK is a name from `tidemark replay`; `instant` has no time pass
//! between the daemon's passes, so that what it finds used is not what programs use meanwhile.

use std::process::ExitCode;
use std::sync::Arc;

use tidemark_lab::systems;
use tidemark_lab::world::disk::presets;
use tidemark_lab::world::{DiskModel, Disks, Outcome, Program, Scenario, Script, Writing, run};
use tidemark_model::traces::SplitMix64;
use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, MappingEvent, Placed, Rights, TimeUnit,
};

const PROGRAMS: u64 = 3;
const TEXT_START: u64 = 1 << 10;
const HEAP_START: u64 = 1 << 20;
const SYSTEMS: [&str; 3] = ["gnumach", "gnumach-activity", "gnumach-balanced"];

/// The sizes of everything, in pages and references.
#[derive(Clone, Copy)]
struct Sizes {
    memory: u32,
    text: u64,
    heap: u64,
    /// The part of the heap's end to which most references to it go.
    recent: u64,
    references: u64,
}

impl Sizes {
    fn new(text: u64, parts: u64) -> Sizes {
        Sizes {
            // Below 2000 pages GNU Mach's marks are shares of memory, as they are at 16,000.
            memory: (16_000 / parts) as u32 - u32::from(parts == 8),
            text: text / parts,
            heap: 6_000 / parts,
            recent: 2_000 / parts,
            references: 18_000_000 / PROGRAMS / parts,
        }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let parts = match words.next().map(|parts| parts.parse()) {
        None => 1,
        Some(Ok(parts @ 1..=16)) => parts,
        Some(_) => {
            eprintln!("PARTS is a number from 1 to 16");
            return ExitCode::from(2);
        }
    };
    let disk = words.next().unwrap_or_else(|| "hdd".to_owned());
    let Some(disk) = presets::find(&disk) else {
        eprintln!("no disk is called `{disk}`");
        return ExitCode::from(2);
    };
    println!("text  system             page-ins  of files  page-outs  elapsed s  soft faults");
    for text in [400, 800, 1600] {
        let sizes = Sizes::new(text, parts);
        for name in SYSTEMS {
            let outcome = compile(name, sizes, &disk.model);
            let counters = &outcome.counters;
            println!(
                "{:4}  {name:17} {:9} {:9} {:10} {:10.1} {:12}",
                sizes.text,
                counters.page_ins,
                outcome.file_ins,
                counters.page_outs,
                outcome.elapsed_ns as f64 / 1e9,
                counters.soft_faults
            );
        }
    }
    ExitCode::SUCCESS
}

fn compile(system: &str, sizes: Sizes, disk: &DiskModel) -> Outcome {
    let system = systems::find(system).expect("the system is known");
    let programs = (0..PROGRAMS).map(|number| {
        let script = Arc::new(write_script(number, sizes));
        Program::new(format!("compiler {number}"), script)
    });
    let scenario = Scenario {
        disks: Disks {
            swap: disk.clone(),
            files: None,
        },
        ..Scenario::new(sizes.memory, programs.collect())
    };
    run(system, &scenario).expect("the scenario can be run")
}

fn map(start: u64, pages: u64, rights: Rights, file: &str) -> Placed {
    Placed {
        after: 0,
        time: 0,
        event: Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared: false,
            memory: file.into(),
            offset: 0,
        }),
    }
}

/// One program: a reference each microsecond.
fn write_script(seed: u64, sizes: Sizes) -> Script {
    let mut writing = Writing::new(&Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::Nanoseconds,
        source: "shared text".into(),
        command: Vec::new(),
        speed: None,
    });
    let text = Rights(Rights::READ.0 | Rights::EXECUTE.0);
    let heap = Rights(Rights::READ.0 | Rights::WRITE.0);
    let mut block = Block::default();
    block
        .events
        .push(map(TEXT_START, sizes.text, text, "/bin/compiler"));
    block.events.push(map(HEAP_START, sizes.heap, heap, ""));
    let mut random = SplitMix64::new(seed);
    for number in 0..sizes.references {
        if block.len() == Block::RECORDS_MAX {
            writing.take(&block);
            block.begin_next();
        }
        let drawn = random.draw();
        if drawn.is_multiple_of(2) {
            let page = random.skewed_below(sizes.text);
            block.push(TEXT_START + page, Kinds::FETCH, 1000);
            continue;
        }
        let grown = 1 + (sizes.heap - 1) * number / sizes.references;
        let low = match drawn / 2 % 200 {
            0 => 0,
            _ => grown.saturating_sub(sizes.recent),
        };
        let page = low + random.below(grown - low);
        block.push(HEAP_START + page, Kinds::STORE, 1000);
    }
    writing.take(&block);
    writing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_reads_ten_times_what_balanced_reads_and_time_is_what_helps_activity() {
        let page_ins = |name: &str, disk: &str| {
            let disk = presets::find(disk).expect("the disk is known");
            let sizes = Sizes::new(800, 8);
            compile(name, sizes, &disk.model).counters.page_ins
        };
        let [released, activity, balanced] = SYSTEMS.map(|name| page_ins(name, "hdd"));
        assert!(released > 10 * balanced, "{released} {balanced}");
        // While the daemon waits for a disk, text is used, and the next pass finds it in use.
        assert!(activity < 2 * balanced, "{activity} {balanced}");
        let activity_at_once = page_ins("gnumach-activity", "instant");
        assert!(activity_at_once > 4 * activity, "{activity_at_once}");
    }
}
