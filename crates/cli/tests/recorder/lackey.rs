//! In exact mode the records of the program's own references are those that lackey's full trace
//! gives: the same pages, in the same order, with the same kinds of access, at the same
//! instruction counts. In quantum mode they are the pages of each quantum, with all their kinds.
//!
//! Both run with one environment, byte for byte as long, since its length moves the stack, and
//! without randomised addresses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use tidemark_trace::{Granularity, Kinds};

use crate::recording::{Process, Record, Recording};
use crate::support::{Folder, TIDEMARK};
use crate::tool::{compile, finish, recorder};

const PAGE_SHIFT: u32 = 12;

#[test]
fn true_equals_lackey() {
    compare("lackey-true", |_| vec!["/bin/true".into()]);
}

#[test]
fn gzip_equals_lackey() {
    compare("lackey-gzip", |folder| {
        let text: String = (0..2500u32)
            .map(|n| format!("line {}\n", n * n % 977))
            .collect();
        let input = folder.program("input", text.as_bytes());
        vec!["/bin/gzip".into(), "-1".into(), "-c".into(), input]
    });
}

#[test]
fn awk_equals_lackey() {
    compare("lackey-awk", |_| {
        let program = "BEGIN { for (i = 0; i < 500; i++) a[i % 97] = a[i % 97] i; print a[5] }";
        vec!["/usr/bin/awk".into(), program.into()]
    });
}

/// Order and time within a quantum are not looked at.
#[test]
fn quanta_equal_lackey() {
    const QUANTUM: u64 = 1000;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("lackey-quanta");
    let program = "BEGIN { for (i = 0; i < 500; i++) a[i % 97] = a[i % 97] i; print a[5] }";
    let command = ["/usr/bin/awk".into(), program.into()];
    let library = library(&folder, recorder);
    let mut expected = BTreeMap::new();
    let mut refer = |page, kinds: Kinds, time| {
        let all: &mut Kinds = expected.entry((time / QUANTUM, page)).or_default();
        *all = all.with(kinds);
    };
    trace_with_lackey(&folder, &library, &command, &mut refer);
    let recording = record(&folder, &library, &["--quantum=1000"], &command);
    assert_eq!(recording.header.granularity, Granularity::Quantum(QUANTUM));
    let records = recording.only().records.iter();
    let own = records.filter(|record| !record.kinds.has(Kinds::KERNEL));
    let found: Vec<_> = own
        .map(|record| ((record.time / QUANTUM, record.page), record.kinds))
        .collect();
    let count = found.len();
    let found: BTreeMap<_, _> = found.into_iter().collect();
    assert_eq!(found.len(), count, "a page twice in a quantum");
    for (place, kinds) in &expected {
        assert_eq!(found.get(place), Some(kinds), "quantum and page {place:?}");
    }
    assert_eq!(found.len(), expected.len());
    assert!(found.len() > 5000);
}

/// Accesses that cross pages, happen under a condition, or are of odd sizes.
#[test]
fn awkward_accesses_equal_lackey() {
    const SOURCE: &str = r#"
        #include <string.h>
        #include <stdint.h>
        #include <stdatomic.h>
        static char area[64 * 4096] __attribute__((aligned(4096)));
        __attribute__((noinline)) static void crossing(char *at) {
            *(volatile uint64_t *)(at - 3) += 7;
            *(volatile uint32_t *)(at - 1) = 9;
            __atomic_fetch_add((uint64_t *)(at + 64), 1, __ATOMIC_SEQ_CST);
            uint64_t expected = 5;
            __atomic_compare_exchange_n((uint64_t *)(at + 72), &expected, 6, 0, 5, 5);
        }
        int main(void) {
            for (int i = 1; i < 60; i++)
                crossing(area + i * 4096);
            memset(area + 100, 1, 30 * 4096);
            memcpy(area + 40 * 4096 + 13, area + 5, 9 * 4096);
            char *to = area + 4090;
            long left = 20000;
            __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(3) : "memory");
            double sum = 0;
            for (int i = 0; i < 4096; i++)
                sum += ((volatile double *)area)[i * 7];
            return sum == 1.5;
        }
    "#;
    compare("lackey-awkward", |folder| {
        vec![compile(folder, "awkward", SOURCE, &["-fno-builtin"])]
    });
}

fn compare(name: &str, command: impl Fn(&Folder) -> Vec<String>) {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new(name);
    let command = command(&folder);
    let library = library(&folder, recorder);
    let mut reference = Run::default();
    let mut refer = |page, kinds, time| {
        reference.time = time;
        reference.refer(page, kinds);
    };
    trace_with_lackey(&folder, &library, &command, &mut refer);
    let reference = reference.records;
    let recording = record(&folder, &library, &["--exact"], &command);
    assert_eq!(recording.header.granularity, Granularity::Exact);
    let records = own_records(recording.only());
    let different = records
        .iter()
        .zip(&reference)
        .position(|(record, expected)| record != expected);
    if let Some(index) = different {
        let around = index.saturating_sub(4)..(index + 4).min(records.len()).min(reference.len());
        panic!(
            "record {index} of {}: {:#x?}, lackey has {:#x?}",
            reference.len(),
            &records[around.clone()],
            &reference[around]
        );
    }
    assert_eq!(records.len(), reference.len());
    assert!(records.len() > 5000);
}

/// Valgrind's library folder with both tools, at a path that both runs see.
fn library(folder: &Folder, recorder: &Path) -> String {
    use std::os::unix::fs::symlink;
    let library = folder.path("library");
    std::fs::create_dir(&library).unwrap();
    for entry in std::fs::read_dir(recorder).unwrap() {
        let entry = entry.unwrap();
        let target = entry.path().canonicalize().unwrap();
        symlink(target, Path::new(&library).join(entry.file_name())).unwrap();
    }
    let lackey = "lackey-amd64-linux";
    let places = ["/usr/libexec/valgrind", "/usr/lib/valgrind"];
    let place = places
        .iter()
        .find(|place| Path::new(place).join(lackey).exists())
        .unwrap();
    symlink(
        Path::new(place).join(lackey),
        Path::new(&library).join(lackey),
    )
    .unwrap();
    library
}

/// Tells `refer` page, kinds and time of each reference, in order.
fn trace_with_lackey(
    folder: &Folder,
    library: &str,
    command: &[String],
    refer: &mut impl FnMut(u64, Kinds, u64),
) {
    let log = folder.path("lackey.log");
    let output = finish(
        Command::new("setarch")
            .args(["-R", "valgrind", "--tool=lackey", "--trace-mem=yes"])
            .args(["--command-line-only=yes", "--vgdb=no"])
            .arg(format!("--log-file={log}"))
            .args(command)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TIDEMARK_RECORDER", library)
            .env("TIDEMARK_RECORDING", "/dev/shm/tidemark-record-00000000")
            .env("VALGRIND_LIB", library),
    );
    assert!(output.status.success(), "{output:?}");
    let mut time = 0;
    for line in BufReader::new(File::open(log).unwrap()).lines() {
        let line = line.unwrap();
        let (kinds, rest) = match line.split_at_checked(3) {
            Some(("I  ", rest)) => (Kinds::FETCH, rest),
            Some((" L ", rest)) => (Kinds::LOAD, rest),
            Some((" S ", rest)) => (Kinds::STORE, rest),
            Some((" M ", rest)) => (Kinds::LOAD.with(Kinds::STORE), rest),
            Some(_) | None => continue,
        };
        let (address, bytes) = rest.split_once(',').unwrap();
        let address = u64::from_str_radix(address, 16).unwrap();
        let bytes: u64 = bytes.parse().unwrap();
        time += u64::from(kinds == Kinds::FETCH);
        for page in address >> PAGE_SHIFT..=(address + bytes - 1) >> PAGE_SHIFT {
            refer(page, kinds, time);
        }
    }
}

fn record(folder: &Folder, library: &str, mode: &[&str], command: &[String]) -> Recording {
    let trace = folder.path("trace.tide");
    let output = finish(
        Command::new("setarch")
            .args(["-R", TIDEMARK, "record"])
            .args(mode)
            .args(["-o", &trace, "--"])
            .args(command)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TIDEMARK_RECORDER", library),
    );
    assert!(output.status.success(), "{output:?}");
    Recording::read(&trace)
}

/// The records without those of the kernel, which lackey doesn't see; what they had parted is one.
fn own_records(process: &Process) -> Vec<Record> {
    let mut run = Run::default();
    let own = process
        .records
        .iter()
        .filter(|record| !record.kinds.has(Kinds::KERNEL));
    for record in own {
        run.time = record.time;
        run.refer(record.page, record.kinds);
    }
    run.records
}

/// References on their way to becoming records.
#[derive(Default)]
struct Run {
    time: u64,
    records: Vec<Record>,
}

impl Run {
    fn refer(&mut self, page: u64, kinds: Kinds) {
        let time = self.time;
        match self.records.last_mut() {
            Some(last) if last.page == page => last.kinds = last.kinds.with(kinds),
            Some(_) | None => self.records.push(Record { page, kinds, time }),
        }
    }
}
