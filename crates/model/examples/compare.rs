//! Compares policies on made-up traces and on traces read from files.
//!
//! `cargo run --release -p tidemark-model --example compare -- [+FILE:FRAMES]... [=TRACE]...
//! POLICY[:KNOB=VALUE]...` prints, for each trace and policy, page-ins as a ratio to the optimum's,
//! and soft faults and unmaps for each miss, on a machine without reference bits. A file has one
//! page number of 32 bits, little end first, a reference.

use std::collections::HashSet;

use tidemark_core::policy::registry::build;
use tidemark_model::cache::{Clusters, MachineKind, replay_clustered};
use tidemark_model::opt;
use tidemark_model::traces::{self, SplitMix64, looping, phases, sheep};

struct Case {
    name: String,
    frames: u32,
    clusters: Clusters,
    pages: Vec<u64>,
}

fn case(name: &str, frames: u32, cluster: u32, pages: Vec<u64>) -> Case {
    let clusters = match cluster {
        1 => Clusters::SINGLE,
        pages => Clusters {
            pages,
            free_low: frames / 100,
            free_high: frames / 80 + pages,
        },
    };
    Case {
        name: name.to_owned(),
        frames,
        clusters,
        pages,
    }
}

/// Zipf's law with exponent 1, over pages in a shuffled order.
fn zipf(seed: u64, pages: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<u64> = (0..pages).collect();
    (1..pages)
        .rev()
        .for_each(|at| order.swap(at as usize, random.below(at + 1) as usize));
    let mut sums = Vec::with_capacity(pages as usize);
    let mut sum = 0_u64;
    for rank in 1..=pages {
        sum += (1 << 40) / rank;
        sums.push(sum);
    }
    let mut draw = || {
        let number = random.draw() % sum;
        order[sums.partition_point(|&s| s <= number)]
    };
    (0..references).map(|_| draw()).collect()
}

fn uniform(seed: u64, pages: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    (0..references).map(|_| random.below(pages)).collect()
}

/// Each reference several times in a row, mixed with the neighbours' as programs do.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = traces::golden()
        .into_iter()
        .map(|t| case(t.name, t.frames, 1, t.pages))
        .collect();
    let mut add =
        |name: &str, frames, cluster, pages| cases.push(case(name, frames, cluster, pages));
    add("loop-1k", 1000, 1, looping(1500, 20));
    add("loop-64k", 65536, 1, looping(98304, 10));
    add("loop-64k-c64", 65536, 64, looping(98304, 10));
    add("loop-4k-c64", 4096, 64, looping(6144, 20));
    add("loop1.1-4k-c64", 4096, 64, looping(4506, 20));
    add("loop3-4k-c64", 4096, 64, looping(12288, 20));
    add("sweep-4k", 4096, 1, sheep(1, 8192, 10));
    add("sweep-64k-c64", 65536, 64, sheep(1, 131072, 4));
    add("sheep4-16k-c64", 16384, 64, sheep(4, 8192, 10));
    add("zipf-4k", 4096, 1, zipf(5, 16384, 1_000_000));
    add("zipf-64k", 65536, 1, zipf(15, 262_144, 2_000_000));
    add("uniform-4k", 4096, 1, uniform(6, 8192, 300_000));
    add("phases-4k", 4096, 1, phases(7, 10, 3500, 200_000));
    add("phases-8k-4k", 4096, 1, phases(8, 6, 5000, 100_000));
    let mut shift = Vec::new();
    for part in 0..5 {
        let set = zipf(9 + part, 8192, 200_000);
        shift.extend(set.into_iter().map(|page| page + part * 4096));
    }
    add("zipf-shift-4k", 4096, 1, shift);
    let hot = zipf(20, 4000, 300_000);
    let mixed = hot
        .iter()
        .enumerate()
        .flat_map(|(at, &page)| [page, 10_000 + at as u64 / 2]);
    add("zipf+scan-4k", 4096, 1, mixed.collect());
    let init: Vec<u64> = (0..6000).collect();
    let work = zipf(21, 3000, 300_000)
        .into_iter()
        .map(|page| page + 20_000);
    add(
        "init-then-work",
        4096,
        1,
        init.into_iter().chain(work).collect(),
    );
    cases
}

fn read(argument: &str) -> Case {
    let (path, frames) = argument.rsplit_once(':').expect("+FILE:FRAMES");
    let bytes = std::fs::read(path).expect("the file can be read");
    let word = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes")).into();
    let name = path.rsplit('/').next().expect("a path has a name");
    case(
        &format!("{name}-{frames}"),
        frames.parse().expect("frames"),
        1,
        bytes.chunks_exact(4).map(word).collect(),
    )
}

fn main() {
    let mut files = Vec::new();
    let mut only = Vec::new();
    let mut policies = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.split_at(1) {
            ("+", file) => files.push(read(file)),
            ("=", name) => only.push(name.to_owned()),
            _ => policies.push(argument),
        }
    }
    let mut all: Vec<Case> = if only.is_empty() && !files.is_empty() {
        vec![]
    } else {
        cases()
    };
    all.retain(|case| only.is_empty() || only.iter().any(|name| case.name.starts_with(name)));
    all.extend(files);
    print!("{:16} {:>8}", "trace", "optimum");
    policies.iter().for_each(|policy| print!(" {policy:>22}"));
    println!();
    for case in all {
        let distinct = case.pages.iter().collect::<HashSet<_>>().len() as u64;
        let best = opt::count_misses(case.frames as usize, &case.pages) - distinct;
        print!("{:16} {best:>8}", case.name);
        for policy in &policies {
            let mut parts = policy.split(':');
            let name = parts.next().expect("a name");
            let knobs: Vec<(&str, u64)> = parts
                .map(|part| part.split_once('=').expect("KNOB=VALUE"))
                .map(|(knob, value)| (knob, value.parse().expect("a number")))
                .collect();
            let policy = build(name, case.frames, case.frames, 1, &knobs).expect("a policy");
            let kind = MachineKind::SoftFaults;
            let m = replay_clustered(policy, case.frames, kind, case.clusters, &case.pages);
            let ratio = (m.page_ins as f64 + distinct as f64) / (best as f64 + distinct as f64);
            let ratio_in = m.page_ins as f64 / best.max(1) as f64;
            let per_in = m.soft as f64 / (m.page_ins + distinct) as f64;
            let shown = if best == 0 { ratio } else { ratio_in };
            print!(
                " {:>22}",
                format!(
                    "{shown:.3} s{per_in:.2} u{:.1}",
                    m.unmaps as f64 / (m.page_ins + distinct) as f64
                )
            );
        }
        println!();
    }
}
