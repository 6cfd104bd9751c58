//! The part of a summary that says where a run's time went and what would shorten it.

use tidemark_results::record::{PAGE_BYTES, RunRecord, Statistics};
use tidemark_results::text::{bytes, count};

/// Below this part of its time in waits, a run's text says that memory is hardly short.
const HARDLY: f64 = 0.05;

/// The policy that is proposed for loops larger than memory.
const LOOP_POLICY: &str = "tidemark";
const LOOP: &str = "pages are walked through again and again, and it keeps a part of them";
/// The policies that keep a part of a loop.
const LOOP_KEEPERS: [&str; 6] = ["tidemark", "mru", "lirs", "eelru", "clock-pro", "random"];
/// From this many pages for each request on, pages are read in walks.
const WALK_PAGES: f64 = 4.0;
/// From this many page-ins for each page on, pages are read again and again.
const ROUNDS_MIN: u64 = 3;
/// The part of the budget beyond which memory that is not managed is worth a word.
const UNMANAGED_PART: u64 = 8;

/// A kind of fault that a program waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    PageIn,
    Soft,
    ZeroFill,
}

/// The lines on the time of a run, each with its name; none if it waited for no fault.
pub fn lines(record: &RunRecord) -> Vec<(&'static str, String)> {
    let total = &record.total;
    let mut waits = [
        (Kind::PageIn, total.latency.page_in.histogram_ns.sum()),
        (Kind::Soft, total.latency.soft.histogram_ns.sum()),
        (Kind::ZeroFill, total.latency.zero_fill.histogram_ns.sum()),
    ];
    waits.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (longest, longest_ns) = waits[0];
    if longest_ns <= 0.0 {
        return vec![];
    }
    let each: Vec<String> = waits
        .iter()
        .filter(|(_, ns)| *ns >= 1e7)
        .map(|(kind, ns)| format!("{} {:.1} s", kind.name(), ns / 1e9))
        .collect();
    let waited = total.stall_ns.seconds();
    // Threads and processes wait beside each other: of several, the sum is no part of the run.
    let mut told = match record.processes.len() {
        0 | 1 => format!("{waited:.1} of {:.1} s waiting", total.elapsed_s),
        several => format!("{waited:.1} s waiting, in {several} processes"),
    };
    if !each.is_empty() {
        told.push_str(&format!(": {}", each.join(", ")));
    }
    let is_hardly_short = waited < HARDLY * total.elapsed_s;
    let help = match longest {
        _ if record.ended_for_room > 0 => help_with_room(record),
        _ if is_hardly_short => help_where_memory_suffices(record),
        Kind::PageIn => help_with_page_ins(record),
        Kind::Soft => help_with_soft_faults(record),
        Kind::ZeroFill => "nothing: pages are touched for the first time".to_owned(),
    };
    vec![("time", told), ("would help", help)]
}

/// The help for a run in which nothing more could leave memory.
fn help_with_room(record: &RunRecord) -> String {
    let (memory, swap) = (bytes(record.memory_bytes), bytes(record.swap_bytes));
    match record.store.as_deref() {
        Some("compressed") => format!(
            "`--store compressed+file`, which has a swap file for what {memory} do not hold; or a \
             larger `--memory`"
        ),
        _ => format!(
            "a larger `--swap-size`: {swap} were full; or a larger `--memory` than {memory}"
        ),
    }
}

fn help_where_memory_suffices(record: &RunRecord) -> String {
    let unmanaged = record.total.unmanaged_bytes_peak;
    match unmanaged > record.memory_bytes / UNMANAGED_PART {
        true => format!(
            "nothing: of what is managed memory is hardly short; but {} are not managed, which \
             `--memory` does not limit",
            bytes(unmanaged)
        ),
        false => "nothing: memory is hardly short".to_owned(),
    }
}

fn help_with_page_ins(record: &RunRecord) -> String {
    let total = &record.total;
    let more = "more memory (`tidemark record`, then `curve`, tells how much)";
    let tried = total.compressed_pages + total.incompressible_pages;
    let is_on_server = record.store.as_ref().is_some_and(|it| it.contains("://"));
    let (faster, packed) = match is_on_server {
        true => ("a nearer or faster server", "compressed+redis://…"),
        false => ("a faster disk for `--swap`", "compressed+file"),
    };
    // What comes from mapped files is compressed by no store.
    if total.file_ins > total.page_ins / 2 {
        let (from_files, all) = (count(total.file_ins), count(total.page_ins));
        return format!(
            "{more}; a faster disk for what is mapped: {from_files} of {all} pages came from there"
        );
    }
    let from_memory = format!(
        "{} of {} pages came from compressed memory",
        count(total.decompressed_pages.min(total.page_ins)),
        count(total.page_ins),
    );
    let help = if tried == 0 {
        format!("{more}; `--store {packed}`, if pages compress")
    } else if is_mostly_from_memory(total) && record.mode == "thread" {
        format!("{more}; `--in-thread`, if it suits the program: {from_memory}")
    } else if is_mostly_from_memory(total) {
        format!("{more}: {from_memory}")
    } else if total.incompressible_pages > total.compressed_pages {
        format!("{more}; {faster}: most pages do not compress")
    } else {
        format!("{more}; {faster}: {from_memory}")
    };
    match keeps_no_loop(record) {
        // A page-in from memory costs hardly more than the soft faults that are the price.
        true if is_mostly_from_memory(total) => {
            format!(
                "{help}; `--policy {LOOP_POLICY}`, if page-ins cost more than soft faults: {LOOP}"
            )
        }
        true => format!("`--policy {LOOP_POLICY}`: {LOOP}; {help}"),
        false => help,
    }
}

/// Returns true if the program has gone through more than memory holds again and again, in order,
/// and the policy is none that keeps a part of it meanwhile.
fn keeps_no_loop(record: &RunRecord) -> bool {
    let total = &record.total;
    let managed = total.managed_bytes / PAGE_BYTES;
    let is_walked = total.page_in_cluster_mean() >= WALK_PAGES;
    let is_repeated = managed > 0 && total.page_ins >= ROUNDS_MIN * managed;
    is_walked && is_repeated && !LOOP_KEEPERS.contains(&record.policy.as_str())
}

fn help_with_soft_faults(record: &RunRecord) -> String {
    let mut help = "more memory".to_owned();
    match record.policy.as_str() {
        "fifo" | "2q-faults" => {}
        _ => help.push_str("; `--policy 2q-faults`, which never asks whether a page is used"),
    }
    if record.mode == "thread" {
        help.push_str("; `--in-thread`, if it suits the program");
    }
    help
}

fn is_mostly_from_memory(total: &Statistics) -> bool {
    total.decompressed_pages > total.page_ins / 2
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::PageIn => "page-ins",
            Kind::Soft => "soft faults",
            Kind::ZeroFill => "zero fills",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_results::histogram::{Bucket, Histogram};
    use tidemark_results::record::{Ending, Latency, Nanoseconds};

    /// A record of faults, a number of 100 µs for each kind.
    fn record(page_in: u64, soft: u64, zero_fill: u64) -> RunRecord {
        let latency = |faults| {
            Latency::new(Histogram::new([Bucket {
                from: 90_000,
                below: 110_000,
                count: faults,
            }]))
        };
        let mut total = Statistics {
            elapsed_s: 10.0,
            page_ins: page_in,
            ..Statistics::default()
        };
        total.stall_ns = Nanoseconds((page_in + soft + zero_fill) * 100_000);
        total.latency.page_in = latency(page_in);
        total.latency.soft = latency(soft);
        total.latency.zero_fill = latency(zero_fill);
        RunRecord {
            policy: "mach3".into(),
            mode: "thread".into(),
            memory_bytes: 256 << 20,
            swap_bytes: 4 << 30,
            ..RunRecord::of(vec![], Ending::Status(0), total)
        }
    }

    fn help(record: &RunRecord) -> String {
        lines(record)[1].1.clone()
    }

    #[test]
    fn the_kinds_of_faults_stand_in_the_order_of_what_they_took() {
        let told = lines(&record(10_000, 50_000, 200));
        assert_eq!(
            told[0],
            (
                "time",
                "6.0 of 10.0 s waiting: soft faults 5.0 s, page-ins 1.0 s, zero fills 0.0 s".into()
            )
        );
        assert!(lines(&record(0, 0, 0)).is_empty());
    }

    #[test]
    fn help_is_for_what_took_longest() {
        assert!(help(&record(100, 0, 0)).contains("hardly short"));
        assert!(help(&record(50_000, 0, 0)).contains("--store compressed+file"));
        assert!(help(&record(10_000, 50_000, 0)).contains("--policy 2q-faults"));
        let mut remote = record(50_000, 0, 0);
        remote.store = Some("redis://127.0.0.1/0/a".into());
        assert!(help(&remote).contains("--store compressed+redis://"));
        remote.total.incompressible_pages = 50_000;
        assert!(help(&remote).contains("faster server"));
        remote.total.file_ins = 50_000;
        assert!(help(&remote).contains("a faster disk for what is mapped"));
        assert!(help(&record(0, 0, 50_000)).contains("first time"));
    }

    #[test]
    fn found_b8_help_is_for_what_was_seen() {
        // A program that was ended for want of room hardly waited, and needs more all the same.
        let mut record = record(100, 0, 0);
        record.ended_for_room = 1;
        record.store = Some("compressed".into());
        assert!(help(&record).contains("`--store compressed+file`"));
        record.store = Some("file".into());
        let told = help(&record);
        assert!(
            told.contains("`--swap-size`") && told.contains("4 GiB"),
            "{told}"
        );
        record.ended_for_room = 0;
        assert!(!help(&record).contains("not managed"));
        record.total.unmanaged_bytes_peak = 140 << 20;
        assert!(help(&record).contains("140 MiB are not managed"));
    }

    #[test]
    fn found_b8_a_walk_that_comes_again_is_told_of_a_policy() {
        let mut record = record(50_000, 0, 0);
        record.policy = "2q-faults".into();
        record.total.managed_bytes = 16_384 * PAGE_BYTES;
        record.total.page_in_requests = 5_000;
        assert!(
            help(&record).starts_with("`--policy tidemark`"),
            "{}",
            help(&record)
        );
        record.total.compressed_pages = 60_000;
        record.total.decompressed_pages = 50_000;
        let told = help(&record);
        assert!(
            told.starts_with("more memory") && told.contains("`--policy tidemark`"),
            "{told}"
        );
        record.policy = "tidemark".into();
        assert!(!help(&record).contains("--policy"));
        // Pages read one by one are no walk, and once or twice is not again and again.
        record.policy = "2q-faults".into();
        record.total.page_in_requests = 40_000;
        assert!(!help(&record).contains("--policy"));
        record.total.page_in_requests = 5_000;
        record.total.managed_bytes = 40_000 * PAGE_BYTES;
        assert!(!help(&record).contains("--policy"));
    }

    #[test]
    fn help_with_page_ins_depends_on_where_pages_came_from() {
        let mut record = record(50_000, 0, 0);
        record.total.compressed_pages = 60_000;
        record.total.decompressed_pages = 40_000;
        assert!(help(&record).contains("`--in-thread`"), "{}", help(&record));
        record.mode = "in-thread".into();
        assert!(!help(&record).contains("--in-thread"), "{}", help(&record));
        record.total.decompressed_pages = 10_000;
        assert!(
            help(&record).contains("10,000 of 50,000"),
            "{}",
            help(&record)
        );
        record.total.incompressible_pages = 70_000;
        assert!(
            help(&record).contains("do not compress"),
            "{}",
            help(&record)
        );
    }
}
