//! The number of million references a second the simulation of one policy takes, on one thread.
//!
//!     cargo run --release --example replay_speed -p tidemark-lab [-- REFERENCES [POLICY…]]
//!     … -- --words FILE FRAMES [POLICY…]
//!     … -- --misses FILE FRAMES [POLICY[:KNOB=VALUE,…]…]
//!
//! The trace lies in memory, and hits count. `program` draws depths in an LRU stack of 1,400 pages
//! as python3 was seen to use them, in a tenth of as many frames; `zipf` draws from a million
//! pages, in 100,000 frames. With `--words`, a file of page numbers (little-endian, 4 bytes each)
//! is measured instead. Prints `policy misses rate`; with `--misses`, `policy misses`. Times are
//! processor time of the thread, best of three rounds through the policies: what else runs shares
//! caches, not the clock, and it comes in bursts. Of a policy that would take minutes the beginning
//! of the trace is measured, and it says so.

mod measure;
mod strings;

use tidemark_core::policies;
use tidemark_lab::analysis::References;
use tidemark_lab::analysis::simulate::{Job, collect_page_ids, simulate};
use tidemark_model::traces;

use measure::{fail, time};
use strings::{program, read_words};

/// No run should take much longer than this, in seconds of processor time.
const SECONDS_MAX: f64 = 20.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => measure_all(20_000_000, &[]),
        ["--words", file, frames, ref policies @ ..] => {
            let words = References::from_pages(read_words(file));
            measure("file", &words, read_number(frames), policies);
        }
        ["--misses", file, frames, ref policies @ ..] => {
            let words = References::from_pages(read_words(file));
            print_misses(&words, read_number(frames), policies);
        }
        [count, ref policies @ ..] if !count.starts_with("--") => {
            measure_all(read_number(count) as usize, policies);
        }
        _ => {
            fail("what is asked is not clear; give a number of references, or --words FILE FRAMES")
        }
    }
}

fn read_number(text: &str) -> u32 {
    let wrong = || fail(&format!("`{text}` is no number; give one, like 1000"));
    text.parse().unwrap_or_else(|_| wrong())
}

fn measure_all(references: usize, policies: &[&str]) {
    println!(
        "million references a second, one thread, best of {}",
        measure::RUNS
    );
    let string = References::from_pages(program(references));
    let frames = string.page_count.div_ceil(10).max(1);
    measure("program", &string, frames, policies);
    let string = References::from_pages(traces::zipf(7, 1_000_000, references as u64));
    measure("zipf", &string, 100_000.min(string.page_count), policies);
}

/// Prints the misses of `policies`, each a name and maybe knobs.
fn print_misses(string: &References, frames: u32, policies: &[&str]) {
    let ids = collect_page_ids(&string.names);
    for asked in policies {
        let (name, knobs) = asked.split_once(':').unwrap_or((asked, ""));
        let knobs = knobs.split(',').filter(|knob| !knob.is_empty());
        let job = Job {
            knobs: knobs.map(read_knob).collect(),
            ..Job::new(name, frames)
        };
        let Ok(cost) = simulate(&job, &string.pages, &ids) else {
            fail(&format!(
                "`{asked}` names no policy, or a knob it does not have"
            ));
        };
        println!("{asked} {}", cost.misses);
    }
}

fn read_knob(text: &str) -> (&str, u64) {
    let known = text.split_once('=');
    let known = known.and_then(|(name, value)| Some((name, value.parse().ok()?)));
    known.unwrap_or_else(|| fail(&format!("`{text}` sets no knob; write it like ghosts=1000")))
}

/// The measures of a policy.
struct Row<'a> {
    policy: &'static str,
    pages: &'a [u32],
    misses: u64,
    /// The least that a run over `pages` took.
    seconds: f64,
}

/// Measures `policies`, or all there are.
fn measure(name: &str, string: &References, frames: u32, policies: &[&str]) {
    let (pages, page_count) = (&string.pages[..], string.page_count);
    println!(
        "\n{name}: {} references, {page_count} pages, {frames} frames",
        pages.len()
    );
    let ids = collect_page_ids(&string.names);
    let all = policies::entries()
        .iter()
        .map(|entry| entry.description.name);
    let asked = all.filter(|name| policies.is_empty() || policies.contains(name));
    let run = |policy: &str, pages: &[u32]| {
        let cost = simulate(&Job::new(policy, frames), pages, &ids);
        cost.expect("it is registered").misses
    };
    let mut rows: Vec<Row> = asked
        .map(|policy| Row {
            policy,
            pages: find_beginning(pages, |pages| run(policy, pages)),
            misses: 0,
            seconds: f64::INFINITY,
        })
        .collect();
    for _ in 0..measure::RUNS {
        for row in &mut rows {
            let seconds = time(|| row.misses = run(row.policy, row.pages));
            row.seconds = row.seconds.min(seconds);
        }
    }
    for row in rows {
        let rate = row.pages.len() as f64 / row.seconds / 1e6;
        let note = match row.pages.len() {
            all if all == pages.len() => String::new(),
            first => format!("  (of the first {first})"),
        };
        println!("{:<18} {:>10} {rate:8.2}{note}", row.policy, row.misses);
    }
}

/// As much of the beginning of `pages` as can be run in `SECONDS_MAX` or so; all, if that is safe.
fn find_beginning(pages: &[u32], run: impl Fn(&[u32]) -> u64) -> &[u32] {
    let mut count = (pages.len() >> 10).max(1);
    while count < pages.len() {
        let next = pages.len().min(2 * count);
        // What is quadratic takes four times as long for twice as many.
        let longer = (next as f64 / count as f64).powi(2);
        if longer * time(|| run(&pages[..count])) > SECONDS_MAX {
            break;
        }
        count = next;
    }
    &pages[..count]
}
