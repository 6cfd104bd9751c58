//! Regions that are written to files, on the real kernel: contents, parts, errors, ends, crashes.

use crate::child;
use crate::engine::start;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Engine, Error, FileRegionMut};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
const FOLDER: &str = "/var/tmp";

/// A file that is removed at the end of its test.
struct Made(PathBuf);

impl Made {
    /// A place for a file.
    fn nothing() -> Made {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        Made(Path::new(FOLDER).join(format!("tidemark-written-{process}-{number}")))
    }

    /// A file of `bytes` bytes at random, and those.
    fn new(bytes: usize) -> (Made, Vec<u8>) {
        let made = Made::nothing();
        let mut random = SplitMix64::new(bytes as u64);
        let words = (0..bytes.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
        let contents: Vec<u8> = words.take(bytes).collect();
        File::create_new(&made.0)
            .unwrap()
            .write_all(&contents)
            .unwrap();
        (made, contents)
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.0).unwrap()
    }

    fn cut(&self, bytes: u64) {
        let file = File::options().write(true).open(&self.0).unwrap();
        file.set_len(bytes).unwrap();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// An engine of 1 MiB whose transfers fail as `plan` says, unless the kernel does not permit one.
fn engine(policy: &str, plan: &str) -> Option<Engine> {
    let settings = Engine::builder().memory(MIB).policy(policy).faults(plan);
    let settings = settings.swap_folder(Path::new(FOLDER)).swap_size(MIB);
    start(settings)
}

fn flush(region: &FileRegionMut) -> Result<(), Error> {
    region.flush(0..region.len())
}

const POLICIES: [&str; 7] = [
    "tidemark", "mach86", "fifo", "clock", "mglru", "osf-mk", "gnumach",
];

#[test]
fn what_is_written_is_in_the_file_under_every_kind_of_policy() {
    for policy in POLICIES {
        let (made, mut plain) = Made::new(4 * MIB as usize + 1234);
        let Some(engine) = engine(policy, "") else {
            return;
        };
        let mut region = engine.write_file(&made.0, 0, None).unwrap();
        let mut random = SplitMix64::new(12);
        for turn in 0..3000 {
            let start = random.below(plain.len() as u64) as usize;
            let range = start..(start + random.below(20_000) as usize).min(plain.len());
            if random.below(3) == 0 {
                let value = random.below(256) as u8;
                region.as_mut_slice()[range.clone()].fill(value);
                plain[range].fill(value);
            } else {
                assert!(
                    region[range.clone()] == plain[range.clone()],
                    "{policy}: {range:?}"
                );
            }
            if turn % 1000 == 999 {
                flush(&region).unwrap();
                assert!(made.read() == plain, "{policy}: flush {turn}");
            }
        }
        let counted = engine.statistics().unwrap();
        assert!(
            counted.file_page_outs > 1000 && counted.page_outs == counted.file_page_outs,
            "{policy}: {counted:?}"
        );
        assert!(counted.resident_bytes <= MIB, "{policy}: {counted:?}");
        region.as_mut_slice().fill(7);
        drop(region);
        assert!(made.read().iter().all(|byte| *byte == 7), "{policy}: drop");
        assert_eq!(made.read().len(), plain.len());
        assert_eq!(engine.statistics().unwrap().region_bytes, 0);
    }
}

#[test]
fn a_flush_writes_what_is_modified_and_no_more() {
    let (made, _) = Made::new(512 << 10);
    let Some(engine) = engine("tidemark", "") else {
        return;
    };
    let mut region = engine.write_file(&made.0, 0, None).unwrap();
    let outs = || engine.statistics().unwrap().file_page_outs;
    assert!(region.iter().map(|byte| u64::from(*byte)).sum::<u64>() > 0);
    flush(&region).unwrap();
    assert_eq!(outs(), 0);
    for page in [3, 4, 5, 90] {
        region.as_mut_slice()[page * PAGE] ^= 1;
    }
    region.flush(4 * PAGE..6 * PAGE).unwrap();
    assert_eq!(outs(), 2);
    flush(&region).unwrap();
    assert_eq!(outs(), 4);
    let faults = engine.statistics().unwrap().faults;
    let sum: u64 = region.iter().step_by(PAGE).map(|&b| u64::from(b)).sum();
    // Pages that were not modified are where they were.
    assert!(engine.statistics().unwrap().faults <= faults + 4, "{sum}");
    drop(region);
    assert_eq!(outs(), 4);
}

#[test]
fn a_part_of_a_file_is_written_and_what_is_around_it_stays() {
    for (offset, bytes) in [(0, 1), (1, 4096), (4095, 2), (128, 299_000), (299_990, 10)] {
        let (made, mut plain) = Made::new(300_000);
        let Some(engine) = engine("tidemark", "") else {
            return;
        };
        let region = engine.write_file(&made.0, offset as u64, Some(bytes as u64));
        let mut region = region.unwrap();
        assert!(region[..] == plain[offset..offset + bytes]);
        region.as_mut_slice().fill(9);
        plain[offset..offset + bytes].fill(9);
        flush(&region).unwrap();
        assert!(made.read() == plain, "{offset} {bytes}");
        // What another appends is not cut off.
        let mut other = File::options().append(true).open(&made.0).unwrap();
        other.write_all(b"more").unwrap();
        plain.extend(b"more");
        region.as_mut_slice()[0] = 8;
        plain[offset] = 8;
        drop(region);
        assert!(made.read() == plain, "{offset} {bytes}");
    }
}

#[test]
fn a_file_is_made_and_made_longer() {
    let made = Made::nothing();
    let Some(engine) = engine("tidemark", "") else {
        return;
    };
    let mut region = engine.create_file(&made.0, 0, 3 * MIB + 5).unwrap();
    assert!(region.iter().all(|byte| *byte == 0));
    region.as_mut_slice()[3 * MIB as usize + 4] = 1;
    drop(region);
    let read = made.read();
    assert!(read.len() == 3 * MIB as usize + 5 && read[3 * MIB as usize + 4] == 1);
    let mut region = engine.write_file(&made.0, 2 * MIB, Some(2 * MIB)).unwrap();
    assert_eq!(region[MIB as usize + 4], 1);
    region.as_mut_slice()[2 * MIB as usize - 1] = 3;
    drop(region);
    let read = made.read();
    assert!(read.len() == 4 * MIB as usize && read[4 * MIB as usize - 1] == 3);
    assert_eq!(read[3 * MIB as usize + 4], 1);
    // One that exists is emptied.
    drop(engine.create_file(&made.0, 4, 6).unwrap());
    assert_eq!(made.read(), [0; 10]);
}

#[test]
fn threads_write_while_others_flush() {
    let (made, _) = Made::new(2 * MIB as usize);
    let Some(engine) = engine("tidemark", "") else {
        return;
    };
    let mut region = engine.write_file(&made.0, 0, None).unwrap();
    region.as_mut_slice().fill(0);
    for turn in 1..5_u8 {
        std::thread::scope(|scope| {
            let mut other = engine.zeros(512 << 10).unwrap();
            scope.spawn(move || {
                other.fill(turn);
                assert!(other.iter().all(|byte| *byte == turn));
            });
            region.as_mut_slice().fill(turn);
            let region = &region;
            scope.spawn(move || flush(region).unwrap());
            scope.spawn(move || region.flush(0..PAGE).unwrap());
            assert!(region.iter().all(|byte| *byte == turn));
        });
        assert!(made.read().iter().all(|byte| *byte == turn));
    }
}

#[test]
fn a_file_is_written_to_by_one_region_at_a_time() {
    let (made, _) = Made::new(10_000);
    let (Some(first), Some(second)) = (engine("tidemark", ""), engine("tidemark", "")) else {
        return;
    };
    let region = first.write_file(&made.0, 0, None).unwrap();
    for engine in [&first, &second] {
        let refused = engine.write_file(&made.0, 0, None).unwrap_err();
        assert!(matches!(refused, Error::FileInUse { .. }), "{refused}");
        assert!(
            refused
                .to_string()
                .contains("is being written to by another")
        );
        assert!(engine.create_file(&made.0, 0, 5).is_err());
    }
    assert_eq!(made.read().len(), 10_000);
    assert!(first.read_file(&made.0, 0, None).is_ok());
    drop(region);
    assert!(second.write_file(&made.0, 0, None).is_ok());
}

#[test]
fn a_write_that_fails_is_told_by_flush_and_nothing_is_lost() {
    let (made, mut plain) = Made::new(256 << 10);
    let Some(engine) = engine("tidemark", "write:1") else {
        return;
    };
    let mut region = engine.write_file(&made.0, 0, None).unwrap();
    region.as_mut_slice()[..2 * PAGE].fill(1);
    region.as_mut_slice()[30 * PAGE] = 1;
    let refused = flush(&region).unwrap_err();
    let Error::FileWrite { path, offset, .. } = &refused else {
        panic!("{refused}");
    };
    // The one that fails is the first that finishes, which is either of the two.
    let at = offset.unwrap();
    assert!(
        path == &made.0 && [0, 30 * PAGE as u64].contains(&at),
        "{at}"
    );
    let told = format!("`{}` can't be written at byte {at}: ", made.0.display());
    assert!(refused.to_string().contains(&told), "{refused}");
    assert!(region[..2 * PAGE].iter().all(|byte| *byte == 1));
    flush(&region).unwrap();
    plain[..2 * PAGE].fill(1);
    plain[30 * PAGE] = 1;
    assert!(made.read() == plain);
}

#[test]
fn a_write_that_fails_as_a_page_leaves_loses_nothing() {
    let (made, mut plain) = Made::new(4 * MIB as usize);
    let Some(engine) = engine("tidemark", "write:1,write:3,write:4") else {
        return;
    };
    let mut region = engine.write_file(&made.0, 0, None).unwrap();
    for page in 0..4 * MIB as usize / PAGE {
        region.as_mut_slice()[page * PAGE + 5] = 3;
        plain[page * PAGE + 5] = 3;
    }
    assert!(region[..] == plain);
    flush(&region).unwrap();
    assert!(made.read() == plain);
}

#[test]
fn a_file_that_is_cut_is_not_made_longer_again_and_flush_says_so() {
    let (made, plain) = Made::new(512 << 10);
    let Some(engine) = engine("tidemark", "") else {
        return;
    };
    let mut region = engine.write_file(&made.0, 0, None).unwrap();
    region.as_mut_slice()[50 * PAGE..].fill(1);
    region.as_mut_slice()[3 * PAGE] = 1;
    made.cut(10 * PAGE as u64 + 7);
    let refused = flush(&region).unwrap_err();
    let cut = Error::FileCut {
        path: made.0.clone(),
        bytes: 10 * PAGE as u64 + 7,
        needs: 512 << 10,
    };
    assert_eq!(refused, cut);
    assert!(
        refused
            .to_string()
            .contains("was cut to 40967 bytes of 524288")
    );
    drop(region);
    let read = made.read();
    assert_eq!(read.len(), 10 * PAGE + 7);
    assert!(read[3 * PAGE] == 1 && read[3 * PAGE + 1..] == plain[3 * PAGE + 1..read.len()]);
}

#[test]
fn bad_arguments_name_themselves() {
    let (made, _) = Made::new(10_000);
    let Some(engine) = engine("tidemark", "") else {
        return;
    };
    let path = made.0.display();
    let refused = |path: &Path, offset, bytes| {
        let refused = engine.write_file(path, offset, bytes).unwrap_err();
        refused.to_string()
    };
    let missing = refused(Path::new("/nowhere/at/all"), 0, None);
    assert!(missing.contains("`/nowhere/at/all` can't be opened: No such file"));
    assert!(refused(Path::new(FOLDER), 0, None).contains("`/var/tmp` can't be opened: Is a dir"));
    let behind = refused(&made.0, 10_000, None);
    assert!(behind.contains(&format!("`{path}` has 10000 bytes; needs 10001")));
    assert!(refused(&made.0, 20_000, None).contains("has 10000 bytes; needs 20001"));
    assert!(refused(&made.0, 0, Some(0)).contains("`bytes` is 0"));
    assert!(refused(&made.0, u64::MAX, Some(5)).contains("needs one before 16 TiB"));
    assert!(engine.create_file(&made.0, 0, 0).is_err());
    assert_eq!(made.read().len(), 10_000);
    let region = engine.write_file(&made.0, 0, None).unwrap();
    let refused = region.flush(5..10_001).unwrap_err().to_string();
    assert!(refused.contains("`5..10001` is not within a region of 10000 bytes"));
    drop(region);
    assert_eq!(engine.statistics().unwrap().region_bytes, 0);
}

/// The program of the tests below: writes one generation after the other to a file, and ends in the
/// midst of a write, or by `exit` with its region in use.
#[test]
#[ignore = "a program of other tests"]
fn writes_generations() {
    let path = PathBuf::from(std::env::var("TIDEMARK_TEST_FILE").unwrap());
    let plan = std::env::var("TIDEMARK_TEST_FAULTS").unwrap();
    let engine = engine("tidemark", &plan).unwrap();
    let mut region = engine.write_file(&path, 0, None).unwrap();
    let pages = region.len() / PAGE;
    let mut random = SplitMix64::new(7);
    for generation in 1..=9_u64 {
        for page in 0..pages {
            // Some pages are left out, so that clusters are of all lengths.
            if random.below(4) > 0 {
                let words = &mut region.as_mut_slice_of::<u64>()[page * 512..(page + 1) * 512];
                words.fill((page as u64) << 8 | generation);
            }
        }
        flush(&region).unwrap();
        println!("flushed {generation}");
    }
    std::mem::forget((engine, region));
    std::process::exit(0);
}

/// Runs the program over a file of so many pages. Answers the last generation that it has flushed.
fn write_generations(made: &Made, plan: &str) -> u64 {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "written::writes_generations",
        "--nocapture",
    ]);
    program.env("TIDEMARK_TEST_FILE", &made.0);
    let output = child::run(program.env("TIDEMARK_TEST_FAULTS", plan));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.success(), plan.is_empty(), "{text}");
    let flushed = text.rfind("flushed ").map(|at| &text[at + 8..at + 9]);
    flushed.map_or(0, |digit| digit.parse().unwrap())
}

#[test]
fn a_crash_leaves_each_block_of_a_page_old_or_new() {
    if engine("tidemark", "").is_none() {
        return;
    }
    const PAGES: usize = 700;
    let mut cuts = 0;
    for cut in [1, 2, 5, 14, 30, 60, 111, 200, 350] {
        let made = Made::nothing();
        fs::write(&made.0, vec![0; PAGES * PAGE]).unwrap();
        let flushed = write_generations(&made, &format!("cut:{cut}"));
        let contents = made.read();
        assert_eq!(contents.len(), PAGES * PAGE);
        let mut mixed = 0;
        for (page, bytes) in contents.chunks(PAGE).enumerate() {
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
            for block in bytes.chunks(512) {
                let first = word(block);
                assert!(block.chunks(8).all(|each| word(each) == first));
                assert!(
                    first == 0 || first >> 8 == page as u64,
                    "page {page}: {first}"
                );
                assert!(first & 0xff <= flushed + 1, "page {page}: {first}");
            }
            mixed += u32::from(word(bytes) != word(&bytes[PAGE - 8..]));
        }
        assert!(mixed <= 1, "{mixed} pages are mixed by cut {cut}");
        cuts += mixed;
    }
    // The write that is cut ends in the midst of a page.
    assert!(cuts > 3, "{cuts}");
}

#[test]
fn what_is_flushed_is_there_after_a_crash() {
    if engine("tidemark", "").is_none() {
        return;
    }
    let made = Made::nothing();
    fs::write(&made.0, vec![0; 100 * PAGE]).unwrap();
    // The same choices as the program's.
    let mut random = SplitMix64::new(7);
    let mut last = vec![vec![0_u64; 100]; 10];
    for generation in 1..10 {
        let mut now = last[generation - 1].clone();
        for (page, word) in now.iter_mut().enumerate() {
            if random.below(4) > 0 {
                *word = (page as u64) << 8 | generation as u64;
            }
        }
        last[generation] = now;
    }
    let flushed = write_generations(&made, "cut:50") as usize;
    assert!(flushed > 0 && flushed < 9, "{flushed}");
    for (page, bytes) in made.read().chunks(PAGE).enumerate() {
        let word = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let (old, new) = (last[flushed][page], last[flushed + 1][page]);
        assert!(word == old || word == new, "page {page}: {word}");
    }
}

#[test]
fn what_is_modified_is_written_when_the_program_exits() {
    if engine("tidemark", "").is_none() {
        return;
    }
    let (made, _) = Made::new(10 * PAGE);
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "written::exits_in_the_midst",
        "--nocapture",
    ]);
    let output = child::run(program.env("TIDEMARK_TEST_FILE", &made.0));
    assert!(output.status.success(), "{output:?}");
    assert!(made.read().iter().all(|byte| *byte == 5));
}

#[test]
#[ignore = "a program of another test"]
fn exits_in_the_midst() {
    let path = PathBuf::from(std::env::var("TIDEMARK_TEST_FILE").unwrap());
    let engine = engine("tidemark", "").unwrap();
    let mut region = engine.write_file(&path, 0, None).unwrap();
    region.as_mut_slice().fill(5);
    std::mem::forget((engine, region));
    std::process::exit(0);
}
