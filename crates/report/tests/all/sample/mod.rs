//! A made-up program, as records: it loads, sorts and writes, in three localities.

#![allow(dead_code)]

pub mod differences;

use tidemark_results::analysis::curve::{
    self, Curve, CurveRecord, Knee, Need, Point, RunNeed, RunNeeds, Space,
};
use tidemark_results::analysis::footprint::{Footprint, Interval, MappedRegion};
use tidemark_results::analysis::map::{self, MapRecord, Region, Row};
use tidemark_results::analysis::phases::{self, Level, Phase, PhasesRecord};
use tidemark_results::analysis::report::{self, ReportRecord, SpaceTime, SpaceTimes};
use tidemark_results::analysis::wss::{self, SizeBucket, WindowSizes, WssRecord};
use tidemark_results::analysis::{Accuracy, Mark, TimeUnit, TraceFacts, UnitSource};
use tidemark_results::dated::Machine;
use tidemark_results::experiment::{
    self, Bound, Ending, ExperimentRecord, ExperimentsRecord, Finding, Form, LeftOut, Measurement,
    PictureOrder, ProgramFacts, Value, Verdict,
};
use tidemark_results::replay::{
    self, DiskRun, ProgramRun, ReplayMachine, ReplayRecord, ReplayTrace, Run, TimeLine,
};

const TIME: u64 = 4_200_000_000;
const VERSION: &str = "0.1.0";

/// The facts about the trace.
pub fn facts() -> TraceFacts {
    TraceFacts {
        source: "tidemark 0.1.0".into(),
        command: vec!["sort".into(), "--buffer-size=64M".into(), "big.txt".into()],
        page_bytes: 4096,
        granularity: "quantum 1000".into(),
        time_unit: TimeUnit::Instructions,
        records: 38_250_112,
        pages: 9_120,
        processes: 1,
        time: TIME,
        is_cut: false,
        is_pages_estimate: false,
        windows: None,
        pages_at_once: None,
        chosen: None,
    }
}

/// Four curves with the shapes that programs have.
pub fn curves() -> CurveRecord {
    let shape = |pages: f64, scale: f64| {
        let x = pages / (2600.0 * scale);
        9_120.0 + 8e6 * (-x * 3.2).exp() + 9e5 / (1.0 + (x * 1.4).powi(6))
    };
    let sizes: Vec<u64> = (0..200)
        .map(|at| (1.0475f64.powi(at)).round() as u64)
        .collect();
    let fixed = |policy: &str, scale: f64| Curve {
        policy: policy.into(),
        space: Space::Fixed,
        accuracy: Accuracy::Exact,
        knee: Some(Knee {
            pages: 3900.0 * scale,
            lifetime: TIME as f64 / shape(3900.0 * scale, scale),
            window: None,
        }),
        points: sizes
            .iter()
            .filter(|pages| **pages <= 9120)
            .map(|pages| Point {
                pages: *pages,
                misses: shape(*pages as f64, scale) as u64,
                ..Point::default()
            })
            .collect(),
    };
    let variable = |policy: &str, scale: f64| {
        let mut curve = fixed(policy, scale);
        curve.space = Space::Variable;
        for point in &mut curve.points {
            point.mean_pages = Some(point.pages as f64 * 0.93);
            point.window = Some(point.pages * point.pages * 20);
        }
        curve
    };
    let need = |slowdown_percent_max: f64, pages: u64, page_ins| Need {
        policy: "lru".into(),
        slowdown_percent_max,
        slowdown_percent: slowdown_percent_max * 0.98,
        pages,
        bytes: pages * 4096,
        pages_peak: pages,
        window: None,
        page_ins,
        is_at_most: false,
        page_in_ns: 80_000.0,
        time_unit_ns: 0.5,
        time_unit_source: UnitSource::Assumed,
    };
    CurveRecord {
        schema: curve::SCHEMA.into(),
        tidemark: VERSION.into(),
        trace: facts(),
        curves: vec![
            fixed("lru", 1.0),
            variable("ws", 0.88),
            variable("vmin", 0.7),
            fixed("opt", 0.6),
        ],
        run: Some(run_needs()),
        verdict: None,
        needs: vec![
            need(1.0, 6_912, 260),
            need(10.0, 5_440, 2_611),
            need(100.0, 4_224, 26_007),
        ],
        notes: vec![],
    }
}

/// Two bounds that are kept under `tidemark run`, and one that is not.
fn run_needs() -> RunNeeds {
    RunNeeds {
        policy: "mach86".into(),
        store: "compressed+file".into(),
        compression: "ratio 3".into(),
        disk: "measured".into(),
        fault_ns: 12_400,
        time_unit_ns: 0.12,
        time_unit_source: UnitSource::Measured,
        native_ns: 1_630_000_000,
        start_ns: 20_000_000,
        footprint_pages: 8_400,
        slowdown_percent_least: Some(2.31),
        slowdowns_percent_unmet: vec![1.0],
        slowdowns_percent_short: vec![0.1],
        needs: vec![
            RunNeed {
                slowdown_percent_max: 10.0,
                slowdown_percent: 9.4,
                pages: 7_100,
                bytes: 7_100 * 4096,
                pages_low: 6_700,
                pages_high: Some(7_650),
                page_ins: 1_080,
                is_at_most: false,
            },
            RunNeed {
                slowdown_percent_max: 100.0,
                slowdown_percent: 98.0,
                pages: 5_600,
                bytes: 5_600 * 4096,
                pages_low: 5_200,
                pages_high: Some(6_000),
                page_ins: 14_400,
                is_at_most: false,
            },
        ],
    }
}

fn size_at(part: f64, window: f64) -> f64 {
    let base = match part {
        p if p < 0.18 => 1_800.0,
        p if p < 0.72 => 5_200.0 + 600.0 * (p * 60.0).sin(),
        _ => 2_900.0,
    };
    // Two localities are held at once for one window after each transition.
    let peak = [0.18, 0.72]
        .iter()
        .any(|at| part > *at && part < at + 0.01 + window * 0.02);
    (base + if peak { 2_400.0 } else { 0.0 }) * (0.25 + 0.75 * window)
}

/// Three windows.
pub fn sizes() -> WssRecord {
    let line = |window: u64, share: f64| WindowSizes {
        window,
        known_share: 1.0,
        mean: 3_900.0 * share,
        deviation: 1_500.0 * share,
        peak: (8_100.0 * (0.25 + 0.75 * share)) as u64,
        buckets: (0..600)
            .map(|at| {
                let mean = size_at(f64::from(at) / 600.0, share);
                SizeBucket {
                    from: TIME / 600 * at as u64,
                    min: (mean * 0.97) as u64,
                    mean,
                    max: (mean * 1.03) as u64,
                }
            })
            .collect(),
    };
    WssRecord {
        schema: wss::SCHEMA.into(),
        tidemark: VERSION.into(),
        trace: facts(),
        windows: vec![
            line(1_000_000, 0.2),
            line(10_000_000, 0.5),
            line(100_000_000, 1.0),
        ],
        marks: marks(),
        footprint: Some(footprint()),
    }
}

/// Memory that grows to what is touched in the end, and half as much again allocated.
pub fn footprint() -> Footprint {
    let interval = TIME / 10;
    Footprint {
        interval,
        intervals: (0..10)
            .map(|at| Interval {
                from: at * interval,
                touched: 100 + at,
                new: 100 - at * 10,
                allocated: Some(825),
                mapped: Some(1200),
            })
            .collect(),
        regions: vec![MappedRegion {
            label: "[heap]".into(),
            mapped: 825,
            touched: 550,
        }],
    }
}

/// Moments.
pub fn marks() -> Vec<Mark> {
    let mark = |part: f64, name: &str| Mark {
        time: (TIME as f64 * part) as u64,
        process: 0,
        name: name.into(),
    };
    vec![mark(0.18, "sort"), mark(0.72, "merge")]
}

/// Phases of three sizes, inside one another.
pub fn phases() -> PhasesRecord {
    let phase = |from: f64, until: f64, pages| Phase {
        from: (TIME as f64 * from) as u64,
        until: (TIME as f64 * until) as u64,
        pages,
        pages_new: pages / 2,
    };
    let level = |pages_from: u64, phases: Vec<Phase>| Level {
        pages_from,
        pages_to: pages_from * 2 - 1,
        share: phases
            .iter()
            .map(|phase| phase.until - phase.from)
            .sum::<u64>() as f64
            / TIME as f64,
        pages_mean: pages_from as f64 * 1.4,
        phases,
    };
    let small = (0..40).map(|at| f64::from(at) / 40.0);
    PhasesRecord {
        schema: phases::SCHEMA.into(),
        tidemark: VERSION.into(),
        trace: facts(),
        phase_time_min: 20_000_000,
        levels: vec![
            level(64, small.map(|at| phase(at, at + 0.011, 90)).collect()),
            level(
                1024,
                vec![phase(0.0, 0.178, 1_800), phase(0.73, 0.86, 1_900)],
            ),
            level(
                2048,
                vec![
                    phase(0.0, 0.178, 2_100),
                    phase(0.186, 0.715, 3_200),
                    phase(0.726, 1.0, 2_900),
                ],
            ),
        ],
        marks: marks(),
    }
}

fn region(label: &str, start: u64, rows: Vec<Row>, stores: u64, fetches: u64) -> Region {
    let last = rows.last().unwrap();
    let records = rows.iter().flat_map(|row| &row.cells).sum();
    Region {
        process: 0,
        program: "sort".into(),
        label: label.into(),
        start,
        pages: last.start + last.pages - start,
        touched: rows.iter().map(|row| row.pages).sum(),
        records,
        stores: records * stores / 100,
        fetches: records * fetches / 100,
        rows,
    }
}

/// Columns of the map.
const COLUMNS: usize = 1400;

fn rows(start: u64, count: u64, heat: &dyn Fn(u64, usize) -> u64) -> Vec<Row> {
    let row = |row| Row {
        start: start + row * 8,
        pages: 8,
        from: 0,
        cells: (0..COLUMNS).map(|column| heat(row, column)).collect(),
    };
    (0..count).map(row).collect()
}

fn noise(row: u64, column: usize) -> u64 {
    (row * 7919 + column as u64 * 104_729).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61
}

/// Filled, sorted in runs that double, and merged.
fn heap(row: u64, column: usize) -> u64 {
    let (part, place) = (column as f64 / 1400.0, row as f64 / 900.0);
    let filling = (part < 0.18 && (place - part / 0.18).abs() < 0.01) as u64 * 4_000;
    let step = ((part - 0.18) / 0.54 * 10.0).floor();
    let width = 2f64.powf(step - 9.0);
    let is_sorting = (0.18..0.72).contains(&part)
        && ((place / width).fract() - (((part - 0.18) / 0.054).fract())).abs() < 0.12;
    let merge = (part >= 0.72 && (place - (part - 0.72) / 0.28).abs() < 0.015) as u64 * 2_000;
    filling
        + merge
        + if is_sorting {
            300 + 40 * noise(row, column)
        } else {
            0
        }
}

fn code(row: u64, column: usize) -> u64 {
    let busy = match column {
        0..252 => row < 3,
        252..1008 => (4..9).contains(&row),
        _ => row >= 9,
    };
    u64::from(busy) * (50_000 + 1_000 * noise(row, column))
        + u64::from(column.is_multiple_of(97)) * 40
}

fn stack(row: u64, column: usize) -> u64 {
    u64::from(row == 3 || column % 50 < 8) * 9_000
}

fn libc(row: u64, column: usize) -> u64 {
    u64::from((row + column as u64 / 90).is_multiple_of(5)) * 700
}

/// A heap that is filled, swept and written out; libraries, and a stack.
pub fn map() -> MapRecord {
    let library = |name: &str, start, count| {
        let label = format!("/usr/lib/x86_64-linux-gnu/{name}");
        region(&label, start, rows(start, count, &libc), 2, 70)
    };
    MapRecord {
        schema: map::SCHEMA.into(),
        tidemark: VERSION.into(),
        trace: facts(),
        columns: COLUMNS,
        column_time: TIME / COLUMNS as u64,
        regions: vec![
            region("/usr/bin/sort", 0x10000, rows(0x10000, 12, &code), 1, 80),
            region("[heap]", 0x11000, rows(0x11000, 900, &heap), 45, 0),
            library("libcrypto.so.3", 0x7_f000_0000, 3),
            library("libc.so.6", 0x7_f100_0000, 30),
            region(
                "anonymous",
                0x7_f200_0000,
                rows(0x7_f200_0000, 2, &stack),
                50,
                0,
            ),
            region(
                "[stack]",
                0x7_ff00_0000,
                rows(0x7_ff00_0000, 4, &stack),
                60,
                0,
            ),
        ],
        marks: marks(),
    }
}

/// The same regions in each of so many processes, which are compilers.
pub fn processes(count: u32) -> MapRecord {
    let mut record = map();
    record.trace.processes = count.into();
    let regions = std::mem::take(&mut record.regions);
    record.regions = (0..count)
        .flat_map(|process| {
            regions.iter().cloned().map(move |mut region| {
                region.process = process;
                region.program = format!("/usr/bin/cc{process}");
                region
            })
        })
        .collect();
    record
}

/// All of it.
pub fn report() -> ReportRecord {
    let row = |policy: &str, pages: f64, window, misses, running: f64| SpaceTime {
        policy: policy.into(),
        pages,
        window,
        misses,
        running,
        waiting: running * 0.31,
        managing: running * 0.02,
        elapsed_ns: 3.1e9,
    };
    ReportRecord {
        schema: report::SCHEMA.into(),
        tidemark: VERSION.into(),
        trace: facts(),
        curve: curves(),
        wss: sizes(),
        map: map(),
        phases: phases(),
        space_time: SpaceTimes {
            time_unit_ns: 0.5,
            page_in_ns: 80_000.0,
            first_touch_ns: 500.0,
            choice_ns: 200.0,
            look_ns: 20.0,
            look_every: 10_000_000,
            rows: vec![
                row("lru", 4_100.0, None, 21_100, 8.6e12),
                row("ws", 3_600.0, Some(9_000_000), 19_200, 7.5e12),
                row("vmin", 2_850.0, Some(9_000_000), 19_200, 5.9e12),
            ],
        },
    }
}

/// Two programs on two systems in two sizes of memory, with time lines.
pub fn replays() -> ReplayRecord {
    let program = |name: &str, end_s| ProgramRun {
        name: name.into(),
        end_s,
        user_s: 0.5,
        faults: 1200,
        ..ProgramRun::default()
    };
    let run = |system: &str, memory_bytes: u64, slower: f64| Run {
        system: system.into(),
        policy: system.into(),
        load: "none".into(),
        memory_bytes,
        elapsed_s: slower,
        page_ins: (slower * 1000.0) as u64,
        swap_ins: (slower * 900.0) as u64,
        file_ins: (slower * 100.0) as u64,
        zero_fills: 700,
        soft_faults: 300,
        optimal_page_ins: 400,
        over_optimal: Some(slower * 2.5),
        fairness: 0.97,
        programs: vec![program("sort", slower), program("sqlite3", slower * 0.8)],
        disks: vec![DiskRun {
            name: "swap and files".into(),
            ..DiskRun::default()
        }],
        time_line: Some(TimeLine {
            time_s: (0..100).map(|at| f64::from(at) * slower / 100.0).collect(),
            free: (0..100).map(|at| 100 - at).collect(),
            laundry: vec![3; 100],
            files: vec![40; 100],
            ready: vec![1; 100],
            resident: vec![(0..100).collect(), (0..100).rev().collect()],
            queues: vec![(0..100).map(|at| at % 7).collect()],
        }),
        ..Run::default()
    };
    ReplayRecord {
        schema: replay::SCHEMA.into(),
        tidemark: VERSION.into(),
        traces: ["sort", "sqlite3"].map(replay_trace).into(),
        copies: 1,
        page_bytes: 4096,
        footprint_pages: 1600,
        machine: ReplayMachine {
            processors: 1,
            scheduler: "round-robin".into(),
            quantum_ms: 10,
            swap_disk: "ssd".into(),
            compressed: None,
            file_disk: None,
            wired_bytes: 0,
            seed: 1,
        },
        basis: tidemark_results::basis::of_replay(),
        runs: vec![
            run("mach3", 1 << 20, 3.0),
            run("mach3", 2 << 20, 2.0),
            run("tidemark", 1 << 20, 1.5),
            run("tidemark", 2 << 20, 1.1),
        ],
        optimum: "the fewest page-ins".into(),
        notes: vec![],
    }
}

fn replay_trace(name: &str) -> ReplayTrace {
    ReplayTrace {
        name: name.into(),
        command: vec![],
        records: 1_000_000,
        pages: 800,
        processes: 1,
        has_mappings: true,
    }
}

/// Two systems in two sizes of memory, and a claim of every verdict.
pub fn experiments() -> ExperimentsRecord {
    ExperimentsRecord {
        schema: experiment::SCHEMA.into(),
        tidemark: VERSION.into(),
        date: "2026-11-21T07:30Z".into(),
        commit: Some("0123456789ab".into()),
        machine: Machine {
            kernel: "6.12.0 x86_64".into(),
            processor: Some("a processor".into()),
            processors: 2,
            memory_bytes: 1 << 34,
        },
        mode: "quick".into(),
        experiments: vec![experiment()],
        left_out: vec![LeftOut {
            name: "image".into(),
            reason: "`convert` is not installed; as root: `apt-get install imagemagick`".into(),
        }],
    }
}

fn experiment() -> ExperimentRecord {
    ExperimentRecord {
        name: "three-compilers".into(),
        title: "Three compilers in too little memory".into(),
        source: "A 2025".into(),
        claimed: "Page-ins fall to a twelfth <b>or so</b>.".into(),
        differs: vec!["an eighth of the memory".into()],
        programs: vec![ProgramFacts {
            name: "compile".into(),
            command: vec!["g++".into(), "-O2".into()],
            records: 1_000_000,
            pages: 40_000,
            processes: 3,
            ..ProgramFacts::default()
        }],
        machine: "1 processor, round-robin, swap on hdd".into(),
        peak_bytes: 300 << 20,
        measurements: vec![
            measurement("old", 64 << 20, 20_000.0, Ending::GivenUp),
            measurement("old", 128 << 20, 700.0, Ending::Complete),
            measurement("new", 64 << 20, 900.0, Ending::Complete),
            measurement("new", 128 << 20, 190.0, Ending::Complete),
        ],
        findings: findings(),
        pictures: vec![picture("elapsed_s", "memory"), picture("page_ins", "runs")],
        notes: vec![],
        took_s: 12.5,
    }
}

fn findings() -> Vec<Finding> {
    vec![
        // Published claims come first wherever they are shown.
        Finding {
            strength: "own".into(),
            ..finding("ours is quicker", Form::Order, None, None, Verdict::Not)
        },
        finding(
            "page-ins",
            Form::Ratio,
            Some(12.37),
            Some(9.1),
            Verdict::Reproduced,
        ),
        Finding {
            bound: Bound::AtLeast,
            reason: Some("the disk of this machine is quicker".into()),
            ..finding(
                "elapsed",
                Form::Ratio,
                Some(3.6),
                Some(22.0),
                Verdict::Partly,
            )
        },
        finding("page-outs", Form::Ratio, Some(7.0), Some(0.9), Verdict::Not),
        finding("the slope", Form::Slope, Some(-4.0), None, Verdict::Unknown),
        finding(
            "who is quicker",
            Form::Order,
            None,
            None,
            Verdict::Reproduced,
        ),
    ]
}

fn measurement(run: &str, memory_bytes: u64, elapsed_s: f64, ending: Ending) -> Measurement {
    Measurement {
        run: run.into(),
        memory: format!("{} %", memory_bytes >> 20),
        memory_bytes,
        times: 1,
        ending,
        metrics: [("elapsed_s", elapsed_s), ("page_ins", elapsed_s * 800.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
    }
}

fn finding(
    claim: &str,
    form: Form,
    published: Option<f64>,
    ours: Option<f64>,
    verdict: Verdict,
) -> Finding {
    let value = |run: &str| Value {
        of: run.into(),
        value: Some(run.len() as f64 * 1000.0),
        ending: Ending::Complete,
    };
    Finding {
        claim: claim.into(),
        strength: "strong".into(),
        form,
        metric: "page_ins".into(),
        published,
        ours,
        values: ["old", "new"].map(value).into(),
        verdict,
        ..Finding::default()
    }
}

fn picture(metric: &str, across: &str) -> PictureOrder {
    PictureOrder {
        title: format!("{metric} by {across}"),
        metric: metric.into(),
        across: across.into(),
        runs: vec![],
    }
}

/// As many references as no compression can guess.
fn random(row: u64, column: usize) -> u64 {
    let mixed = (row * 1_000_003 + column as u64 * 7_919).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    1 << (mixed >> 59)
}

/// A report with as much of everything as long traces of large programs have.
pub fn largest() -> ReportRecord {
    let mut record = report();
    record.map.regions = (0..400)
        .map(|at| {
            let rows = rows(at << 20, 12, &|row, column| random(at * 12 + row, column));
            region(&format!("/usr/lib/library-{at}.so"), at << 20, rows, 10, 60)
        })
        .collect();
    let mark = |at: u64| Mark {
        time: TIME / 20_000 * at,
        process: 0,
        name: format!("request {at}"),
    };
    record.map.marks = (0..20_000).map(mark).collect();
    for line in &mut record.wss.windows {
        line.buckets = (0..1000)
            .map(|at| SizeBucket {
                from: TIME / 1000 * at,
                min: noise(at, 1) * 500,
                mean: (noise(at, 1) * 500 + 700) as f64,
                max: noise(at, 1) * 500 + 1000,
            })
            .collect();
    }
    let level = record.phases.levels[0].clone();
    let step = TIME / 1000;
    record.phases.levels = (3..13)
        .map(|size| Level {
            pages_from: 1 << size,
            pages_to: (2 << size) - 1,
            phases: (0..1000)
                .map(|at| Phase {
                    from: step * at,
                    until: step * at + step * (noise(at, size) + 1) / 8,
                    pages: (1 << size) + noise(at, size),
                    pages_new: noise(at, size),
                })
                .collect(),
            ..level.clone()
        })
        .collect();
    record
}
