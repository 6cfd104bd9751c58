//! The tables of a suite of programs: how long each took, and how much faster ours is.

use serde::Serialize;
use tidemark_results::dated::Machine;
use tidemark_results::text::{bytes, folded};

use super::Measured;
use super::record::{EntrantRecord, ProgramRecord, ShareRecord, Skipped, SuiteSettings};
use crate::dated;

/// Stands for the fastest read-ahead of the kernel's swap, run by run, if several take part.
const KERNEL_BEST: &str = "kernel-swap-best";

/// The factor by which ours is faster than another: the geometric mean over programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Ours.
    pub own: String,
    /// The other.
    pub against: String,
    /// The share of memory; none stands for all of them together.
    pub share_percent: Option<u32>,
    /// The other's time over ours. More than 1 is faster.
    pub ratio: f64,
    /// The number of pairs of runs.
    pub count: usize,
    /// The least of the ratios.
    pub least: f64,
}

/// A dated run of a suite.
#[derive(Serialize)]
pub struct ProgramsRecord<'m> {
    /// The name and the version of the form.
    pub schema: &'static str,
    /// The moment at which it began.
    pub date: String,
    /// The commit of the working folder.
    pub commit: Option<String>,
    /// The machine it ran on.
    pub machine: Machine,
    /// The settings that all runs had in common.
    pub settings: &'m SuiteSettings,
    /// The factors by which ours is faster.
    pub means: Vec<Mean>,
    /// The programs that ran.
    pub programs: &'m [ProgramRecord],
    /// The programs and contenders that did not.
    pub skipped: &'m [Skipped],
    /// True if it was ended before its end.
    pub is_interrupted: bool,
}

impl Measured {
    /// The dated record.
    pub fn record(&self, date: String) -> ProgramsRecord<'_> {
        ProgramsRecord {
            schema: "tidemark.programs.v1",
            date,
            commit: dated::commit(),
            machine: dated::machine(),
            settings: &self.settings,
            means: means(&self.programs),
            programs: &self.programs,
            skipped: &self.skipped,
            is_interrupted: self.is_interrupted,
        }
    }

    /// The failures of runs under Tidemark, not of its rivals.
    pub fn own_failures(&self) -> Vec<&String> {
        let shares = self.programs.iter().flat_map(|one| &one.shares);
        let own = shares
            .flat_map(|share| &share.contenders)
            .filter(|contender| is_own(&contender.name));
        own.flat_map(|contender| &contender.failures).collect()
    }
}

/// Tells if a contender is `tidemark run`.
pub fn is_own(name: &str) -> bool {
    name.starts_with("tidemark")
}

/// The means of all pairs of ours and others, in each share and in all.
pub fn means(programs: &[ProgramRecord]) -> Vec<Mean> {
    let shares = || programs.iter().flat_map(|program| &program.shares);
    let mut percents: Vec<Option<u32>> = Vec::new();
    for share in shares() {
        if !percents.contains(&Some(share.share_percent)) {
            percents.push(Some(share.share_percent));
        }
    }
    if percents.len() > 1 {
        percents.push(None);
    }
    let mut means = Vec::new();
    for (own, against) in pairs(programs) {
        for &share_percent in &percents {
            let is_meant = |share: &&ShareRecord| {
                share_percent.is_none_or(|percent| percent == share.share_percent)
            };
            let ratios = shares().filter(is_meant);
            let ratios = ratios.filter_map(|share| ratio(share, &own, &against));
            means.extend(mean_of(
                &own,
                &against,
                share_percent,
                &ratios.collect::<Vec<_>>(),
            ));
        }
    }
    means
}

/// Draws everything, in tables at most `width` columns wide if there is one.
pub fn text(measured: &Measured, width: Option<usize>) -> String {
    let mut text = format!("{}\n", times(&measured.programs, width));
    let means = means(&measured.programs);
    if !means.is_empty() {
        text.push_str(&format!("\n{}\n", mean_table(&means, width)));
    }
    for program in &measured.programs {
        text.push_str(&failures(program));
    }
    for Skipped { name, reason } in &measured.skipped {
        text.push_str(&format!("{name} left out: {reason}\n"));
    }
    text
}

/// A line for each program and share: seconds, and ratios to the first of ours.
fn times(programs: &[ProgramRecord], width: Option<usize>) -> String {
    let names = contenders(programs);
    let pairs = pairs(programs);
    let first = pairs.first().map(|(own, _)| own.clone());
    let pairs: Vec<_> = pairs
        .into_iter()
        .filter(|(own, _)| Some(own) == first.as_ref())
        .collect();
    let mut columns = vec![
        "program".to_owned(),
        "share".to_owned(),
        "memory".to_owned(),
    ];
    columns.push("native s".to_owned());
    columns.extend(names.iter().map(|name| format!("{name} s")));
    columns.extend(
        pairs
            .iter()
            .map(|(_, against)| format!("{against}/tidemark")),
    );
    let mut rows = Vec::new();
    for program in programs {
        for share in &program.shares {
            let mut row = vec![
                program.name.clone(),
                format!("{} %", share.share_percent),
                bytes(share.memory_bytes >> 20 << 20),
                format!("{:.2}", program.native.elapsed_s),
            ];
            let each = names.iter().map(|name| find(share, name));
            row.extend(each.map(|one| one.map_or("-".to_owned(), seconds)));
            let each = pairs
                .iter()
                .map(|(own, against)| ratio(share, own, against));
            row.extend(each.map(|ratio| ratio.map_or("-".to_owned(), |one| format!("{one:.2}"))));
            rows.push(row);
        }
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    folded(&columns, &rows, 1, 2, width)
}

fn mean_table(means: &[Mean], width: Option<usize>) -> String {
    let columns = ["geometric mean", "share", "ratio", "least", "runs"];
    let row = |mean: &Mean| {
        let share = mean.share_percent;
        vec![
            format!("{}/{}", mean.against, mean.own),
            share.map_or("all".to_owned(), |percent| format!("{percent} %")),
            format!("{:.2}", mean.ratio),
            format!("{:.2}", mean.least),
            mean.count.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = means.iter().map(row).collect();
    folded(&columns, &rows, 1, 2, width)
}

/// The failures and remarks of single runs, a line each.
fn failures(program: &ProgramRecord) -> String {
    let mut text = String::new();
    for share in &program.shares {
        for contender in &share.contenders {
            let before = contender.counts.out_of_memory_before;
            let told = [
                contender.failures.first().cloned(),
                (before > 0).then(|| format!("ended {before} times before for want of memory")),
                contender.counts.is_over_memory.then(|| {
                    "its device or pool took more than could be taken off its memory".to_owned()
                }),
            ];
            for told in told.into_iter().flatten() {
                let (name, percent) = (&program.name, share.share_percent);
                text.push_str(&format!("{name} {percent} %: {}: {told}\n", contender.name));
            }
        }
    }
    text
}

/// The time of a contender; one that was ended took longer.
fn seconds(contender: &EntrantRecord) -> String {
    let over = if contender.is_over_limit { "> " } else { "" };
    match contender.elapsed_s {
        Some(elapsed_s) => format!("{over}{elapsed_s:.2}"),
        None if contender.failures.is_empty() => "-".to_owned(),
        None => "failed".to_owned(),
    }
}

/// The contenders' names, in their order.
fn contenders(programs: &[ProgramRecord]) -> Vec<String> {
    let first = programs.iter().flat_map(|program| &program.shares).next();
    let contenders = first.map_or(&[][..], |share| &share.contenders);
    contenders.iter().map(|one| one.name.clone()).collect()
}

/// Each of ours with each of the others.
fn pairs(programs: &[ProgramRecord]) -> Vec<(String, String)> {
    let names = contenders(programs);
    let (own, mut others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| is_own(name));
    if others.iter().filter(|name| is_kernel_swap(name)).count() > 1 {
        others.push(KERNEL_BEST.to_owned());
    }
    let with_others = |one: &String| {
        let others = others.iter().cloned();
        let one = one.clone();
        others
            .map(move |other| (one.clone(), other))
            .collect::<Vec<_>>()
    };
    own.iter().flat_map(with_others).collect()
}

fn find<'s>(share: &'s ShareRecord, name: &str) -> Option<&'s EntrantRecord> {
    share.contenders.iter().find(|one| one.name == name)
}

/// The other's time over ours, if both came to their ends or to the limit.
fn ratio(share: &ShareRecord, own: &str, against: &str) -> Option<f64> {
    let own = find(share, own)?.elapsed_s?;
    if against != KERNEL_BEST {
        return Some(find(share, against)?.elapsed_s? / own);
    }
    let kernel = share.contenders.iter();
    let kernel = kernel.filter(|contender| is_kernel_swap(&contender.name));
    let best = kernel.filter_map(|contender| contender.elapsed_s);
    Some(best.min_by(f64::total_cmp)? / own)
}

fn is_kernel_swap(name: &str) -> bool {
    name.starts_with("kernel-swap")
}

fn mean_of(own: &str, against: &str, share_percent: Option<u32>, ratios: &[f64]) -> Option<Mean> {
    if ratios.is_empty() {
        return None;
    }
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Some(Mean {
        own: own.to_owned(),
        against: against.to_owned(),
        share_percent,
        ratio: (logarithms / ratios.len() as f64).exp(),
        count: ratios.len(),
        least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Cache;
    use crate::programs::record::NativeRecord;

    fn contender(name: &str, elapsed_s: Option<f64>) -> EntrantRecord {
        EntrantRecord {
            name: name.to_owned(),
            elapsed_s,
            ..EntrantRecord::default()
        }
    }

    fn program(name: &str, times: &[(u32, [Option<f64>; 3])]) -> ProgramRecord {
        let share =
            |&(share_percent, [own, kernel, zswap]): &(u32, [Option<f64>; 3])| ShareRecord {
                share_percent,
                memory_bytes: 5 << 20,
                group_bytes: 6 << 20,
                limit_s: 9.0,
                contenders: vec![
                    contender("tidemark", own),
                    contender("kernel-swap", kernel),
                    contender("zswap", zswap),
                ],
            };
        ProgramRecord {
            name: name.to_owned(),
            command: vec![name.to_owned()],
            native: NativeRecord {
                elapsed_s: 1.0,
                ..NativeRecord::default()
            },
            shares: times.iter().map(share).collect(),
        }
    }

    fn suite() -> Vec<ProgramRecord> {
        let one = [
            (50, [Some(2.0), Some(4.0), Some(1.0)]),
            (25, [Some(4.0), Some(4.0), None]),
        ];
        let other = [
            (50, [Some(1.0), Some(8.0), Some(4.0)]),
            (25, [None, Some(3.0), Some(3.0)]),
        ];
        vec![program("sort", &one), program("node", &other)]
    }

    #[test]
    fn means_are_geometric_and_leave_out_what_failed() {
        let found = means(&suite());
        let told: Vec<(&str, Option<u32>, usize)> = found
            .iter()
            .map(|mean| (mean.against.as_str(), mean.share_percent, mean.count))
            .collect();
        assert_eq!(
            told,
            [
                ("kernel-swap", Some(50), 2),
                ("kernel-swap", Some(25), 1),
                ("kernel-swap", None, 3),
                ("zswap", Some(50), 2),
                ("zswap", None, 2),
            ]
        );
        // 2 and 8; 1; 2, 8 and 1; 0.5 and 4.
        for (mean, expected) in found.iter().zip([4.0, 1.0, 16f64.cbrt(), 2f64.sqrt()]) {
            assert!((mean.ratio - expected).abs() < 1e-9, "{mean:?}");
        }
        assert_eq!((found[0].least, found[3].least), (2.0, 0.5));
    }

    #[test]
    fn the_table_shows_seconds_ratios_and_what_failed() {
        let mut programs = suite();
        programs[0].shares[1].contenders[1].is_over_limit = true;
        programs[1].shares[1].contenders[0].failures = vec!["it ended".to_owned()];
        let measured = Measured {
            settings: SuiteSettings {
                cache: Cache::Cold,
                page_cluster: Some(3),
                swappiness: None,
                huge_pages: None,
                zswap_compressor: None,
                zswap_max_pool_percent: 50,
            },
            programs,
            skipped: vec![Skipped {
                name: "zram".to_owned(),
                reason: "there is none".to_owned(),
            }],
            is_interrupted: false,
        };
        let told = text(&measured, None);
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let row = |number: usize| words(told.lines().nth(number).unwrap_or_default());
        assert_eq!(
            row(2),
            words("sort 50 % 5 MiB 1.00 2.00 4.00 1.00 2.00 0.50"),
            "{told}"
        );
        assert_eq!(row(3), words("sort 25 % 5 MiB 1.00 4.00 > 4.00 - 1.00 -"));
        assert_eq!(row(5), words("node 25 % 5 MiB 1.00 failed 3.00 3.00 - -"));
        assert!(told.contains("node 25 %: tidemark: it ended\n"), "{told}");
        assert!(told.contains("zram left out: there is none\n"), "{told}");
    }

    #[test]
    fn of_several_read_aheads_the_best_of_each_run_is_compared_too() {
        let mut programs = suite();
        for share in programs.iter_mut().flat_map(|one| &mut one.shares) {
            share.contenders.truncate(2);
            share.contenders.push(contender("kernel-swap:0", Some(5.0)));
        }
        let means = means(&programs);
        let best = means
            .iter()
            .find(|mean| mean.against == KERNEL_BEST && mean.share_percent == Some(50));
        // 4 and 5 of 2, 8 and 5 of 1.
        let best = best.expect("there are two read-aheads");
        assert!((best.ratio - 10f64.sqrt()).abs() < 1e-9, "{best:?}");
    }

    #[test]
    fn without_programs_there_is_nothing_to_compare() {
        assert!(means(&[]).is_empty());
        assert!(times(&[], None).contains("program"));
    }
}
