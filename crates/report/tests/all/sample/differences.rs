//! Two versions of a build of several processes, the second of which has one that grew.

use tidemark_results::analysis::curve::Point;
use tidemark_results::diff::{
    Amount, DiffRecord, Group, Kind, Portrait, ProcessUse, RegionUse, Subject, Threshold, Unit,
};

use super::{VERSION, facts};

/// The record of a comparison of the two.
pub fn differences() -> DiffRecord {
    let bound = Threshold {
        percent: 5.0,
        is_of_growth: true,
    };
    let (before, after) = (side("before.tide", 1), side("after.tide", 4));
    DiffRecord::new(VERSION, Kind::Trace, before, after, Some(bound))
}

/// The portrait of a side whose compiler has so many times its memory.
fn side(file: &str, scale: u64) -> Portrait {
    let pages = 2_000 + 7_120 * scale;
    let trace = facts();
    let misses = |size: u64| pages + 8_000_000 * scale * pages / (pages + size * size / 100);
    let point = |size: u64, less: u64| Point {
        pages: size,
        misses: misses(size) / less,
        ..Point::default()
    };
    let amount =
        |group, name, at, unit, value: u64| Amount::new(group, name, at, unit, value as f64);
    let region = |label: &str, pages: u64| RegionUse {
        label: label.into(),
        pages,
        references: pages * 100,
        misses: vec![pages * 9],
        ..RegionUse::default()
    };
    let process = |process: u32, program: &str, pages: u64| ProcessUse {
        process,
        pid: Some(700 + process),
        program: program.into(),
        pages,
        references: pages * 100,
        time: pages * 100_000,
        misses: vec![pages * 9],
    };
    Portrait {
        subject: Subject {
            file: file.into(),
            title: trace.title(),
            trace: Some(trace),
        },
        amounts: vec![
            amount(Group::Memory, "touched", None, Unit::Pages, pages),
            amount(
                Group::Misses,
                "lru",
                Some(2_280),
                Unit::Count,
                misses(2_280),
            ),
        ],
        sizes: vec![2_280],
        regions: vec![
            region("anonymous", 7_120 * scale),
            region("/usr/lib/x86_64-linux-gnu/libc.so.6", 2_000),
        ],
        processes: vec![
            process(0, "/usr/bin/make", 900),
            process(1, "/usr/libexec/gcc/x86_64-linux-gnu/12/cc1", 7_120 * scale),
            process(2, "/usr/bin/x86_64-linux-gnu-as", 1_100),
        ],
        curves: [("lru", 1), ("opt", 3)]
            .map(|(policy, less)| {
                let points = (0..16).map(|at| point(1 << at, less));
                (policy.into(), points.collect())
            })
            .into(),
        notes: vec![],
    }
}
