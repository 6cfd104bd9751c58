//! The number of million references a second the fixed-space curves take, on one thread.
//!
//!     cargo run --release --example curve_speed -p tidemark-lab [-- REFERENCES]
//!     … -- --words FILE [--at N,N,…]
//!
//! The trace lies in memory. `program` draws depths in an LRU stack of 1,400 pages as python3 was
//! seen to use them, change of page by change of page; `zipf` draws from a million pages.
//! With `--words`, a file of page numbers (little-endian, 4 bytes each) is measured instead; with
//! `--at`, its misses at those sizes are printed as `policy pages misses`. Times are processor time
//! of the thread, best of three: what else runs on the machine shares caches, not the clock.

mod measure;
mod strings;

use tidemark_lab::analysis::shards::{Sampling, Share, estimate};
use tidemark_lab::analysis::simulate::{Job, simulate};
use tidemark_lab::analysis::{References, optimum, queues, stack};
use tidemark_model::traces;

use measure::{RUNS, fail, rate};
use strings::{program, read_words};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Shared work would escape the thread's clock.
    let alone = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread();
    alone.build_global().expect("no pool was made before");
    match arguments[..] {
        ["--words", file] => measure("file", &References::from_pages(read_words(file))),
        ["--words", file, "--at", sizes] => {
            print_misses(&References::from_pages(read_words(file)), sizes)
        }
        [] => measure_all(20_000_000),
        [count] => match count.parse() {
            Ok(count) => measure_all(count),
            Err(_) => fail(&format!(
                "`{count}` is no number of references; give one, like 1000"
            )),
        },
        _ => fail("what is asked is not clear; give a number of references, or --words FILE"),
    }
}

fn print_misses(references: &References, sizes: &str) {
    let (pages, page_count) = (&references.pages, references.page_count);
    let sizes: Result<Vec<u32>, _> = sizes.split(',').map(str::parse).collect();
    let Ok(sizes) = sizes else {
        fail("`--at` has something that is no number; give sizes in pages, like 100,200");
    };
    let lru = stack::count_depths(pages, page_count);
    let optimum = optimum::count_depths(pages, page_count);
    let fifo = queues::count_fifo_misses(pages, page_count, &sizes);
    let clock = queues::count_clock_misses(pages, page_count, &sizes);
    for (at, &size) in sizes.iter().enumerate() {
        println!("lru {size} {}", lru.misses_at(size));
        println!("opt {size} {}", optimum.misses_at(size));
        println!("fifo {size} {}", fifo[at]);
        println!("clock {size} {}", clock[at]);
    }
}

fn measure_all(references: usize) {
    println!("million references a second, one thread, best of {RUNS}");
    let program = program(references);
    measure("program", &References::from_pages(program));
    let zipf = traces::zipf(7, 1_000_000, references as u64);
    measure("zipf", &References::from_pages(zipf));
}

fn measure(name: &str, references: &References) {
    let (pages, page_count) = (&references.pages[..], references.page_count);
    let count = pages.len();
    println!("\n{name}: {count} references, {page_count} pages");
    let row = |what: &str, rate: f64| println!("{what:<34} {rate:8.1}");
    row(
        "lru, every size",
        rate(count, || stack::count_depths(pages, page_count)),
    );
    row(
        "opt, every size",
        rate(count, || optimum::count_depths(pages, page_count)),
    );
    let next_uses = optimum::collect_next_uses(pages, page_count);
    let size = page_count.div_ceil(10).max(1);
    row(
        "opt, one size",
        rate(count, || optimum::count_misses(&next_uses, size)),
    );
    let one = [size];
    row(
        "fifo, one size",
        rate(count, || queues::count_fifo_misses(pages, page_count, &one)),
    );
    row(
        "clock, one size",
        rate(count, || {
            queues::count_clock_misses(pages, page_count, &one)
        }),
    );
    let many: Vec<u32> = (1..=64)
        .map(|part| (page_count / 64).max(1) * part)
        .collect();
    row(
        "fifo, 64 sizes",
        rate(count, || {
            queues::count_fifo_misses(pages, page_count, &many)
        }),
    );
    row(
        "clock, 64 sizes",
        rate(count, || {
            queues::count_clock_misses(pages, page_count, &many)
        }),
    );
    let ids = tidemark_lab::analysis::simulate::collect_page_ids(&references.names);
    for name in ["fifo", "clock", "mach86", "tidemark"] {
        let run = || simulate(&Job::new(name, size), pages, &ids).expect("it is registered");
        row(&format!("{name} of the core, one size"), rate(count, run));
    }
    let sampling = Sampling {
        share: Share::Rate(0.01),
        samples: 1,
        seed: 1,
    };
    row(
        "lru, one sample of 1 %",
        rate(count, || estimate(pages, &sampling, &[1000])),
    );
}
