//! Regions over files on the real kernel: contents, limits, files that are cut, and errors.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Engine, Error};

use crate::child;
use tidemark_testing::in_lockstep;

use crate::engine::{range, start};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
/// The folder of the tests' files: of a file system that reads past the page cache, if there is
/// one.
const FOLDER: &str = "/var/tmp";

/// A file that is removed at the end of its test.
struct Made {
    path: PathBuf,
    contents: Vec<u8>,
}

impl Made {
    /// A file of `bytes` bytes at random.
    fn new(bytes: usize) -> Made {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = Path::new(FOLDER).join(format!("tidemark-files-{process}-{number}"));
        let mut random = SplitMix64::new(bytes as u64);
        let words = (0..bytes.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
        let contents: Vec<u8> = words.take(bytes).collect();
        let mut file = File::create_new(&path).unwrap();
        file.write_all(&contents).unwrap();
        Made { path, contents }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// An engine of 1 MiB, unless the kernel does not permit one.
fn engine(policy: &str) -> Option<Engine> {
    let settings = Engine::builder().memory(MIB).policy(policy);
    let settings = settings.swap_folder(Path::new(FOLDER)).swap_size(16 * MIB);
    start(settings)
}

/// Reads of many pages come in one piece here, and are copied to their pages.
#[test]
fn a_file_that_is_read_in_order_is_what_it_is_to_its_last_byte() {
    let file = Made::new(48 * MIB as usize + 123);
    let Some(engine) = start(Engine::builder().memory(32 * MIB)) else {
        return;
    };
    let region = engine.read_file(&file.path, 0, None).unwrap();
    for _ in 0..2 {
        let pages = region.chunks(PAGE).zip(file.contents.chunks(PAGE));
        for (number, (page, expected)) in pages.enumerate() {
            assert!(page[..expected.len()] == *expected, "page {number}");
        }
    }
    let counted = engine.statistics().unwrap();
    assert!(counted.page_ins > 12_000 && counted.faults * 4 < counted.page_ins);
}

const POLICIES: [&str; 7] = [
    "tidemark", "mach86", "fifo", "clock", "mglru", "osf-mk", "gnumach",
];

#[test]
fn a_file_is_read_as_it_is_and_never_written_under_every_kind_of_policy() {
    let made = Made::new(4 * MIB as usize + 1234);
    for policy in POLICIES {
        let Some(engine) = engine(policy) else { return };
        let region = engine.read_file(&made.path, 0, None).unwrap();
        assert_eq!(region.len(), made.contents.len());
        let mut random = SplitMix64::new(11);
        for _ in 0..2000 {
            let range = range(&mut random, region.len());
            assert!(
                region[range.clone()] == made.contents[range.clone()],
                "{policy}: {range:?}"
            );
        }
        assert!(**region == made.contents, "{policy}");
        let counted = engine.statistics().unwrap();
        assert!(
            counted.page_outs == 0 && counted.file_page_ins > 2000,
            "{policy}: {counted:?}"
        );
        assert_eq!(counted.file_page_ins, counted.page_ins, "{policy}");
        assert!(counted.resident_bytes <= MIB, "{policy}: {counted:?}");
    }
}

#[test]
fn a_copy_of_a_file_is_modified_and_the_file_is_not() {
    let made = Made::new(4 * MIB as usize + 1234);
    for policy in POLICIES {
        let Some(engine) = engine(policy) else { return };
        let mut region = engine.copy_file(&made.path, 0, None).unwrap();
        let mut plain = made.contents.clone();
        let mut random = SplitMix64::new(12);
        let below = |most| random.below(most);
        in_lockstep(&mut region, &mut plain, 3000, below, |_| ());
        let counted = engine.statistics().unwrap();
        assert!(
            counted.page_outs > 100 && counted.file_page_ins > 100,
            "{policy}: {counted:?}"
        );
        assert!(counted.resident_bytes <= MIB, "{policy}: {counted:?}");
        region.clear().unwrap();
        assert!(*region == made.contents, "{policy}");
    }
    assert!(fs::read(&made.path).unwrap() == made.contents);
}

#[test]
fn a_part_of_a_file_begins_and_ends_anywhere() {
    let made = Made::new(300_000);
    let Some(engine) = engine("tidemark") else {
        return;
    };
    for (offset, bytes) in [(0, 1), (1, 4096), (4095, 2), (128, 299_872), (299_999, 1)] {
        let end = offset + bytes;
        let region = engine
            .read_file(&made.path, offset as u64, Some(bytes as u64))
            .unwrap();
        assert!(**region == made.contents[offset..end], "{offset}..{end}");
        let rest = engine.copy_file(&made.path, offset as u64, None).unwrap();
        assert!(*rest == made.contents[offset..], "{offset}..");
    }
    let numbers = engine.read_file(&made.path, 8, Some(80_000)).unwrap();
    let numbers = numbers.as_slice_of::<u64>();
    assert_eq!(numbers[0].to_le_bytes(), made.contents[8..16]);
}

#[test]
fn a_walk_is_read_ahead_of_in_clusters() {
    let made = Made::new(8 * MIB as usize);
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let region = engine.read_file(&made.path, 0, None).unwrap();
    assert!(**region == made.contents);
    let counted = engine.statistics().unwrap();
    assert!(
        counted.file_page_ins < 2100 && counted.faults < 500,
        "{counted:?}"
    );
}

#[test]
fn what_is_asked_for_ahead_is_read_without_a_fault() {
    let made = Made::new(4 * MIB as usize);
    let Some(engine) = engine("mach86") else {
        return;
    };
    let region = engine.read_file(&made.path, 100, None).unwrap();
    region.prefetch(0..64 * PAGE).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while engine.statistics().unwrap().file_page_ins < 65 {
        assert!(Instant::now() < end, "{:?}", engine.statistics());
        std::thread::yield_now();
    }
    assert!(region[..64 * PAGE] == made.contents[100..100 + 64 * PAGE]);
    assert_eq!(engine.statistics().unwrap().file_page_ins, 65);
}

#[test]
fn threads_read_a_file_while_others_write_to_memory() {
    let made = Made::new(4 * MIB as usize);
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let region = engine.read_file(&made.path, 0, None).unwrap();
    let mut other = engine.zeros(4 * MIB).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (region, made) = (&region, &made);
            scope.spawn(move || {
                let mut random = SplitMix64::new(seed);
                for _ in 0..1000 {
                    let range = range(&mut random, region.len());
                    assert!(region[range.clone()] == made.contents[range]);
                }
            });
        }
        for turn in 1..4 {
            other.fill(turn);
            assert!(other.iter().all(|byte| *byte == turn));
        }
    });
}

#[test]
fn a_file_needs_no_swap_and_a_copy_needs_it_for_all() {
    let made = Made::new(1);
    let file = File::options().write(true).open(&made.path).unwrap();
    file.set_len(64 * MIB).unwrap();
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let region = engine.read_file(&made.path, 0, None).unwrap();
    assert!(region.iter().skip(1).all(|byte| *byte == 0));
    let refused = engine.copy_file(&made.path, 0, None).unwrap_err();
    let Error::TooLarge { bytes, left } = refused else {
        panic!("{refused}");
    };
    assert!(bytes == 64 * MIB && left < 17 * MIB);
    // What is full of modified pages leaves room for a file to be read.
    let mut full = engine.zeros(left).unwrap();
    full.fill(1);
    assert!(region.iter().skip(1).all(|byte| *byte == 0));
    assert!(full.iter().all(|byte| *byte == 1));
}

/// The program of the tests below: reads a file that is cut meanwhile, or whose reads fail.
#[test]
#[ignore = "a program of other tests"]
fn reads_a_file_to_its_end() {
    let path = PathBuf::from(std::env::var("TIDEMARK_TEST_FILE").unwrap());
    let plan = std::env::var("TIDEMARK_TEST_FAULTS").unwrap_or_default();
    let settings = Engine::builder()
        .memory(MIB)
        .swap_size(16 * MIB)
        .faults(&plan);
    let engine = settings.swap_folder(Path::new(FOLDER)).start().unwrap();
    let region = engine.read_file(&path, 0, None).unwrap();
    let is_cut = plan.is_empty();
    let read = |page: usize| {
        std::hint::black_box(region[page * PAGE]);
    };
    let pages = region.len() / PAGE;
    (0..pages).for_each(read);
    if is_cut {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(100 * PAGE as u64 + 7).unwrap();
        (0..100).for_each(read);
        println!("read what is left");
    }
    (0..pages).for_each(read);
}

fn read_to_the_end(made: &Made, plan: &str) -> (Option<i32>, String) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "files::reads_a_file_to_its_end",
        "--nocapture",
    ]);
    program
        .env("TIDEMARK_TEST_FILE", &made.path)
        .env("TIDEMARK_TEST_FAULTS", plan);
    let output = child::run(&mut program);
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.signal(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_file_that_is_cut_is_named_and_ends_the_program_where_it_is_not_any_more() {
    if engine("tidemark").is_none() {
        return;
    }
    let made = Made::new(4 * MIB as usize);
    let (signal, text) = read_to_the_end(&made, "");
    assert_eq!(signal, Some(7), "{text}");
    let path = made.path.display();
    let told = format!(
        "`{path}` was cut to {} bytes; {} are mapped",
        100 * PAGE + 7,
        4 * MIB
    );
    assert!(
        text.contains(&told) && text.contains("read what is left"),
        "{text}"
    );
    assert_eq!(text.matches("can't be had").count(), 1, "{text}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_ends_the_program() {
    if engine("tidemark").is_none() {
        return;
    }
    let made = Made::new(4 * MIB as usize);
    let (signal, text) = read_to_the_end(&made, "read:1");
    assert_eq!(signal, Some(7), "{text}");
    let path = made.path.display();
    assert!(
        text.contains(&format!("`{path}`: reading the file at byte 0: ")),
        "{text}"
    );
}

#[test]
fn what_the_kernel_refuses_for_now_is_read_later() {
    if engine("tidemark").is_none() {
        return;
    }
    let made = Made::new(4 * MIB as usize);
    let (signal, text) = read_to_the_end(&made, "again:3");
    assert_eq!(signal, None, "{text}");
}

#[test]
fn a_file_without_direct_reading_is_read_by_way_of_the_page_cache() {
    // The kernel makes what is read here as it is asked for.
    let path = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let Ok(text) = fs::read(path) else { return };
    let region = engine.read_file(path, 0, Some(text.len() as u64)).unwrap();
    assert!(**region == text);
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let made = Made::new(1);
    fs::remove_file(&made.path).unwrap();
    let done = Command::new("mkfifo").arg(&made.path).status().unwrap();
    assert!(done.success());
    let refused = engine.read_file(&made.path, 0, None).unwrap_err();
    assert!(matches!(refused, Error::FileKind { .. }), "{refused}");
}

#[test]
fn bad_arguments_name_themselves() {
    let made = Made::new(10_000);
    let Some(engine) = engine("tidemark") else {
        return;
    };
    let refused = |path: &Path, offset, bytes| {
        let read = engine
            .read_file(path, offset, bytes)
            .unwrap_err()
            .to_string();
        let copied = engine
            .copy_file(path, offset, bytes)
            .unwrap_err()
            .to_string();
        assert_eq!(read, copied);
        read
    };
    let path = made.path.display();
    let missing = refused(Path::new("/nowhere/at/all"), 0, None);
    assert!(
        missing.contains("`/nowhere/at/all` can't be opened: No such file"),
        "{missing}"
    );
    let folder = refused(Path::new(FOLDER), 0, None);
    assert!(
        folder.contains("`/var/tmp` is not a regular file"),
        "{folder}"
    );
    let short = refused(&made.path, 1, Some(10_000));
    assert!(
        short.contains(&format!("`{path}` has 10000 bytes; needs 10001")),
        "{short}"
    );
    let behind = refused(&made.path, 10_000, None);
    assert!(behind.contains("has 10000 bytes; needs 10001"), "{behind}");
    assert!(refused(&made.path, u64::MAX, Some(5)).contains("has 10000 bytes"));
    assert!(refused(&made.path, 0, Some(0)).contains("`bytes` is 0"));
    assert_eq!(engine.statistics().unwrap().region_bytes, 0);
}
