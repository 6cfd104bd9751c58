//! The cost of a policy from a file beside the same policy built in: the clock, 16,384 pages in
//! 4,096 frames, one thread.
//!
//!     cargo run --release --example module_speed -p tidemark-lab [-- REFERENCES [FILE…]]
//!
//! `zipf` has mostly hits, `uniform` mostly misses. Prints, for the policy built in and for each
//! file, misses, nanoseconds a reference, and nanoseconds more a miss than the one built in. Times
//! are processor time, best of three.

mod measure;

use tidemark_lab::analysis::References;
use tidemark_lab::analysis::simulate::{Job, collect_page_ids, simulate};
use tidemark_model::traces;

use measure::{fail, rate};

const PAGES: u64 = 16_384;
const FRAMES: u32 = 4_096;
const CLOCK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/policies/clock.wat"
);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (count, files) = match arguments.split_first() {
        Some((count, files)) => (read_number(count), files.to_vec()),
        None => (5_000_000, vec![]),
    };
    measure_all(count, &files);
}

fn read_number(text: &str) -> u64 {
    let wrong = || fail(&format!("`{text}` is no number; give one, like 1000000"));
    text.parse().unwrap_or_else(|_| wrong())
}

fn measure_all(count: u64, files: &[String]) {
    let files = files.iter().map(String::as_str);
    let policies: Vec<&str> = ["clock", CLOCK].into_iter().chain(files).collect();
    for policy in policies
        .iter()
        .filter(|policy| tidemark_plugin::is_file(policy))
    {
        if let Err(error) = tidemark_plugin::load(policy) {
            fail(&error.to_string());
        }
    }
    for (name, pages) in [
        ("zipf", traces::zipf(7, PAGES, count)),
        ("uniform", traces::uniform(7, PAGES, count)),
    ] {
        println!("{name}: {count} references, {PAGES} pages, {FRAMES} frames");
        measure(&References::from_pages(pages), &policies);
    }
}

fn measure(string: &References, policies: &[&str]) {
    let ids = collect_page_ids(&string.names);
    let mut built_in = None;
    for policy in policies {
        let mut misses = 0;
        let millions = rate(string.pages.len(), || {
            let Ok(cost) = simulate(&Job::new(policy, FRAMES), &string.pages, &ids) else {
                fail("there is no such policy; name one, or a file")
            };
            misses = cost.misses;
        });
        let each = 1000.0 / millions;
        let (base, same) = *built_in.get_or_insert((each, misses));
        assert_eq!(misses, same, "`{policy}` chooses otherwise than the clock");
        let more = (each - base) * string.pages.len() as f64 / misses as f64;
        let name = policy.rsplit('/').next().unwrap_or(policy);
        println!("  {name:<14} {misses:>9} misses {each:8.1} ns {more:8.1} ns more a miss");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs_small() {
        super::measure_all(40_000, &[]);
    }
}
