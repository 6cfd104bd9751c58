//! `bench page-in`: what each kind of fault costs, beside a bare loop that does the same.
//!
//! A program of ours ([`workload::faults`](crate::workload::faults)) runs under the real engine
//! and takes faults of one kind after another. The [`bare`] loop takes the same faults in this
//! process, served by the least that serves them. Both go through the same [`lap`]s and are watched
//! by the same [`observer`].

mod bare;
pub mod lap;
pub mod observer;
pub mod record;
pub mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_live::sys::bare::coder_ns;
use tidemark_supervisor::host;

use self::record::{LeftOut, PageInRecord, Row, SCHEMA};
use crate::child;
use crate::contender::under_own;
use crate::output::say;
use crate::plan::{AT_LEAST_1, Unfit};
use crate::scratch::Scratch;
use crate::workload::array::PAGE_BYTES;
use crate::workload::faults::{Beside, Phase, Told, Work};
use crate::workload::heap;

/// The least array that is worth measuring.
pub const SIZE_BYTES_MIN: u64 = 12 << 20;
/// The least memory of a run, and a little.
const MEMORY_BYTES_MIN: u64 = 5 << 20;
/// The most: the bare loop has all of it in this process.
pub const SIZE_BYTES_MAX: u64 = 16 << 30;
/// The memory beside the array that a run has before its memory is made less.
const BESIDE_BYTES: u64 = 32 << 20;
/// Of a hundred pages of the bare loop, those that are in memory as they are.
const PLAIN_PERCENT: usize = 25;
/// The number of pages by which the coder is measured.
const CODER_PAGES: usize = 2048;

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub struct PageInPlan {
    /// The size of the array.
    pub size_bytes: u64,
    /// The memory while the program pages.
    pub memory_bytes: u64,
    /// The touches of a lap, as a multiple of the pages.
    pub laps: u32,
    /// The seed of random numbers.
    pub seed: u64,
    /// The number of times that all is measured.
    pub rounds: u32,
    /// The longest time that a stretch of work may take.
    pub limit: Duration,
    /// The folder of swap files and scratch files.
    pub folder: PathBuf,
}

/// A run under the engine: its faults, its company, and the options of `tidemark run`.
struct Series {
    faults: &'static str,
    beside: Beside,
    options: &'static [&'static str],
}

const MEMORY: &[&str] = &["--store", "compressed"];
const DISK: &[&str] = &["--store", "file"];
/// This policy looks at every page before the first one leaves.
const SOFT: &[&str] = &["--store", "compressed", "--policy", "clock"];

const SERIES: [Series; 8] = [
    Series::new("memory", Beside::Alone, MEMORY),
    Series::new("memory", Beside::Busy, MEMORY),
    Series::new("memory", Beside::Fork, MEMORY),
    Series::new("disk", Beside::Alone, DISK),
    Series::new("disk", Beside::Busy, DISK),
    Series::new("disk", Beside::Fork, DISK),
    Series::new("soft", Beside::Alone, SOFT),
    Series::new("soft", Beside::Busy, SOFT),
];

impl Series {
    const fn new(faults: &'static str, beside: Beside, options: &'static [&'static str]) -> Series {
        Series {
            faults,
            beside,
            options,
        }
    }

    fn name(&self) -> String {
        format!("{}, {}", self.faults, record::beside_name(self.beside))
    }
}

impl PageInPlan {
    /// Checks what belongs together.
    ///
    /// # Errors
    /// The first setting that does not fit.
    pub fn check(&self) -> Result<(), Unfit> {
        let (size, memory) = (self.size_bytes, self.memory_bytes);
        // Compressed pages take a third, and the engine and the program a little.
        let (least, most) = ((size / 5 * 2).max(MEMORY_BYTES_MIN), size / 5 * 4);
        let (setting, told) = if !(SIZE_BYTES_MIN..=SIZE_BYTES_MAX).contains(&size) {
            let told = format!("is {size} bytes; it must be from 12M to 16G");
            ("size", told)
        } else if !(least..=most).contains(&memory) {
            let told =
                format!("is {memory} bytes; with this size it must be from {least} to {most}");
            ("memory", told)
        } else if self.rounds == 0 {
            ("rounds", AT_LEAST_1.into())
        } else if self.laps == 0 {
            ("laps", AT_LEAST_1.into())
        } else if u64::from(self.laps) * size / PAGE_BYTES > u64::from(u32::MAX) {
            let told = format!("is {}; that is too many touches for this size", self.laps);
            ("laps", told)
        } else {
            return Ok(());
        };
        Err(Unfit { setting, told })
    }

    fn pages(&self) -> u32 {
        u32::try_from(self.size_bytes / PAGE_BYTES).expect("sizes are checked")
    }
}

/// One kind of work, the company, and true if the engine served and not the bare loop.
type Key = (Work, Beside, bool);

/// Measures all of it.
///
/// # Errors
/// The line that says why nothing could be measured: a page with other contents, an interrupt.
pub fn measure(plan: &PageInPlan, interrupt: &AtomicBool) -> Result<PageInRecord, String> {
    let scratch = Scratch::create(&plan.folder)?;
    let mut made: Vec<(Key, Phase)> = vec![];
    let mut left_out: Vec<LeftOut> = vec![];
    let mut packed_percent = None;
    for round in 1..=plan.rounds {
        say!("round {round} of {}", plan.rounds);
        for series in &SERIES {
            match run_under_engine(plan, series, &scratch.path, interrupt) {
                Ok(told) => {
                    let phases = told.phases.into_iter();
                    made.extend(phases.map(|phase| ((phase.work, series.beside, true), phase)));
                }
                Err(reason) => leave_out(
                    &mut left_out,
                    format!("tidemark: {}", series.name()),
                    reason,
                ),
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
        }
        for beside in [Beside::Alone, Beside::Busy] {
            match bare::measure(plan, beside, &scratch.path) {
                Ok(bare) => {
                    packed_percent = Some(bare.packed_percent);
                    let phases = bare.phases.into_iter();
                    made.extend(phases.map(|phase| ((phase.work, beside, false), phase)));
                }
                Err(reason) => {
                    let name = format!("bare loop: {}", record::beside_name(beside));
                    leave_out(&mut left_out, name, reason);
                }
            }
        }
    }
    let record = sum_up(plan, made, left_out)?;
    Ok(PageInRecord {
        packed_percent,
        ..record
    })
}

fn leave_out(left_out: &mut Vec<LeftOut>, name: String, reason: String) {
    say!("{name}: {reason}");
    match left_out.iter_mut().find(|known| known.name == name) {
        Some(known) => known.rounds_failed += 1,
        None => left_out.push(LeftOut {
            name,
            rounds_failed: 1,
            reason,
        }),
    }
}

fn run_under_engine(
    plan: &PageInPlan,
    series: &Series,
    scratch: &Path,
    interrupt: &AtomicBool,
) -> Result<Told, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("no path to this program: {error}"))?;
    let socket = scratch.join("control");
    let mut options: Vec<OsString> = series.options.iter().map(OsString::from).collect();
    options.extend(["--control".into(), socket.clone().into()]);
    // A child has a copy of all that the program has.
    let copies = match series.beside {
        Beside::Fork => 2,
        Beside::Alone | Beside::Busy => 1,
    };
    let ample_bytes = plan.size_bytes * 2 * copies + BESIDE_BYTES;
    let low_bytes = plan.memory_bytes * copies;
    let statistics = scratch.join("statistics");
    let mut words = under_own(&own, ample_bytes, &plan.folder, &statistics, options);
    words.extend([own.clone().into(), "workload".into(), "faults".into()]);
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    option("--bytes", plan.size_bytes.to_string().into());
    option("--laps", plan.laps.to_string().into());
    option("--seed", plan.seed.to_string().into());
    option("--faults", series.faults.into());
    option("--beside", record::beside_word(series.beside).into());
    option("--low-bytes", low_bytes.to_string().into());
    option("--socket", socket.into());
    option("--limit-s", plan.limit.as_secs().to_string().into());
    let output = child::run(&words, plan.limit, interrupt)?;
    Told::from_output(&output).ok_or_else(|| "it told nothing".to_owned())
}

/// Makes the record: of each kind of work the round of the median.
fn sum_up(
    plan: &PageInPlan,
    made: Vec<(Key, Phase)>,
    left_out: Vec<LeftOut>,
) -> Result<PageInRecord, String> {
    if made.is_empty() {
        let reason = left_out.first().map_or("", |first| &first.reason);
        return Err(format!("nothing could be measured; the first: {reason}"));
    }
    let mut keys: Vec<Key> = made.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable_by_key(|(work, beside, is_own)| (*work, *beside, !is_own));
    keys.dedup();
    let mut rows: Vec<Row> = vec![];
    for key in keys {
        let of_key = made.iter().filter(|(made, _)| *made == key);
        let mut of_key: Vec<Row> = of_key.map(|(_, phase)| Row::new(key, phase)).collect();
        of_key.sort_by(|left, right| left.processor_us.total_cmp(&right.processor_us));
        rows.push(of_key.swap_remove((of_key.len() - 1) / 2));
    }
    let bare: Vec<Row> = rows.iter().filter(|row| !row.is_own()).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.is_own()) {
        let other = bare.iter().find(|bare| bare.is_like(row));
        let other = other.filter(|other| other.processor_us > 0.0);
        row.ratio = other.map(|other| row.processor_us / other.processor_us);
    }
    let (pack_ns, unpack_ns) = coder_ns(CODER_PAGES, &mut heap::fill);
    let mut not_counted: Vec<String> = vec![];
    for (_, phase) in &made {
        let refused = [
            &phase.counted.calls_refused,
            &phase.counted.instructions_refused,
        ];
        for reason in refused.into_iter().flatten() {
            if !not_counted.contains(reason) {
                not_counted.push(reason.clone());
            }
        }
    }
    Ok(PageInRecord {
        schema: SCHEMA,
        tidemark: env!("CARGO_PKG_VERSION"),
        size_bytes: plan.size_bytes,
        memory_bytes: plan.memory_bytes,
        laps: plan.laps,
        rounds: plan.rounds,
        processors: host::processors(),
        packed_percent: None,
        pack_us: pack_ns as f64 / 1e3,
        unpack_us: unpack_ns as f64 / 1e3,
        rows,
        not_counted,
        left_out,
    })
}
