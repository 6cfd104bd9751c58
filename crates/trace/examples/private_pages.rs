//! The heap and other private memory of one program, as several traces tell of it, side by side:
//! pages, and mean working sets. It sets recordings with Valgrind beside live ones, which count
//! time in different units and see different memory:
//! `docs/decisions/0033-live-recording-by-soft-faults.md`.
//!
//!     cargo run --release --package tidemark-trace --example private_pages -- TRACE...
//!
//! Of each trace it takes the process with most records. Windows are shares of its time.

use std::collections::{HashMap, HashSet};

use tidemark_trace::regions::{ANONYMOUS, HEAP, Regions};
use tidemark_trace::{Block, Event, LifeEvent, Reader};

/// Windows, in thousandths of a process's time.
const WINDOWS: [u64; 5] = [50, 100, 200, 400, 800];

/// A process, as far as its private memory goes.
#[derive(Default)]
struct Process {
    regions: Regions,
    records: u64,
    pages: HashSet<u64>,
    /// The last use of each page.
    last: HashMap<u64, u64>,
    /// The number of uses of pages that began so long after the one before.
    gaps: Vec<u64>,
    time: u64,
}

impl Process {
    fn take(&mut self, block: &Block) {
        let mut events = block.events.iter().peekable();
        let mut time = block.time_start;
        for at in 0..=block.len() {
            while let Some(placed) = events.next_if(|placed| placed.after as usize <= at) {
                if let Event::Life(LifeEvent::Exec { .. }) = placed.event {
                    *self = Process::default();
                }
                self.regions.apply(&placed.event);
            }
            let Some(&page) = block.pages.get(at) else {
                break;
            };
            time += u64::from(block.gaps[at]);
            let name = self.regions.find(page).map(|region| &*region.name);
            // The recorder tells of no mapping for the heap before it grows.
            if matches!(name, None | Some(HEAP | ANONYMOUS)) {
                self.records += 1;
                self.pages.insert(page);
                self.gaps
                    .extend(self.last.insert(page, time).map(|before| time - before));
            }
        }
        self.time = block.time_end();
    }

    /// The mean number of pages used in the window before each moment.
    fn working_set(&self, window: u64) -> f64 {
        let inside: u64 = self.gaps.iter().map(|gap| window.min(*gap)).sum();
        let ends = self.last.values().map(|last| window.min(self.time - last));
        (inside + ends.sum::<u64>()) as f64 / self.time.max(1) as f64
    }
}

fn main() {
    println!(
        "trace: records, pages, mean working set at windows of 5, 10, 20, 40, 80 % of its time"
    );
    for path in std::env::args().skip(1) {
        let mut processes: Vec<Process> = Vec::new();
        let mut reader = Reader::open(&path).expect("a trace");
        let mut block = Block::default();
        while reader.next_block(&mut block).expect("a good trace") {
            let number = block.process as usize;
            if number >= processes.len() {
                processes.resize_with(number + 1, Process::default);
            }
            processes[number].take(&block);
        }
        let largest = processes.into_iter().max_by_key(|process| process.records);
        let process = largest.expect("a process");
        let sizes = WINDOWS.map(|share| process.working_set(process.time * share / 1000));
        let (records, pages) = (process.records, process.pages.len());
        println!("{path}: {records}, {pages}, {sizes:.0?}");
    }
}
