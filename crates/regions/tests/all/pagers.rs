//! Regions over pagers, and swap stores on them: contents, writes, delays, failures and panics.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Builder, Engine, Error, Pager, PagerError};
use tidemark_testing::in_lockstep;

use crate::child;
use crate::engine::{range, start};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
const FOLDER: &str = "/var/tmp";
/// The longest time for which a call waits for others.
const LIMIT: Duration = Duration::from_secs(20);

/// Bytes in memory, as a pager that fails and is slow on purpose.
#[derive(Default)]
pub struct Plain {
    bytes: Mutex<Vec<u8>>,
    /// One call in so many fails for now; none, if zero.
    fails_each: u64,
    /// The longest pause of a call, in microseconds.
    pause_us_most: u64,
    calls: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Plain {
    pub fn new(bytes: usize) -> Plain {
        let mut random = SplitMix64::new(bytes as u64);
        let words = (0..bytes.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
        Plain {
            bytes: Mutex::new(words.take(bytes).collect()),
            ..Plain::default()
        }
    }

    /// Contents of the usual size, whose calls take their time, one in eleven in vain.
    fn slow() -> Plain {
        Plain {
            fails_each: 11,
            pause_us_most: 100,
            ..Plain::new(BYTES)
        }
    }

    fn contents(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    fn trouble(&self) -> Result<(), PagerError> {
        let call = self.calls.fetch_add(1, Relaxed);
        if self.pause_us_most > 0 {
            let pause = SplitMix64::new(call).below(self.pause_us_most);
            std::thread::sleep(Duration::from_micros(pause));
        }
        match self.fails_each > 0 && call.is_multiple_of(self.fails_each) {
            true => Err(PagerError::temporary("it is tired")),
            false => Ok(()),
        }
    }
}

impl Pager for Plain {
    fn bytes(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        self.trouble()?;
        self.reads.fetch_add(1, Relaxed);
        let start = offset as usize;
        into.copy_from_slice(&self.bytes.lock().unwrap()[start..start + into.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        self.trouble()?;
        self.writes.fetch_add(1, Relaxed);
        let start = offset as usize;
        self.bytes.lock().unwrap()[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }
}

fn settings(policy: &str) -> Builder {
    let settings = Engine::builder().memory(MIB).policy(policy);
    settings.swap_folder(Path::new(FOLDER)).swap_size(16 * MIB)
}

/// Reads and writes at random, in lockstep with an array.
fn write_in_lockstep(region: &mut [u8], plain: &mut [u8], turns: u64) {
    let mut random = SplitMix64::new(17);
    in_lockstep(region, plain, turns, |most| random.below(most), |_| ());
}

const POLICIES: [&str; 4] = ["tidemark", "mach86", "clock", "osf-mk"];
const BYTES: usize = 4 * MIB as usize + 1234;

#[test]
fn a_pager_is_read_as_it_is_with_delays_and_failures_that_pass() {
    for policy in POLICIES {
        let Some(engine) = start(settings(policy)) else {
            return;
        };
        let pager = Arc::new(Plain {
            fails_each: 7,
            pause_us_most: 500,
            ..Plain::new(BYTES)
        });
        let region = engine.read_pager(Arc::clone(&pager)).unwrap();
        assert_eq!(region.len(), BYTES);
        let plain = pager.contents();
        let mut random = SplitMix64::new(3);
        for _ in 0..200 {
            let range = range(&mut random, BYTES);
            assert!(
                region[range.clone()] == plain[range.clone()],
                "{policy}: {range:?}"
            );
        }
        assert!(**region == plain, "{policy}");
        let counted = engine.statistics().unwrap();
        assert!(
            counted.page_outs == 0 && counted.file_page_ins > 1000,
            "{counted:?}"
        );
        assert!(counted.resident_bytes <= MIB, "{policy}: {counted:?}");
        assert_eq!(pager.writes.load(Relaxed), 0);
    }
}

#[test]
fn what_is_modified_goes_to_the_swap_file_and_the_pager_is_not_told() {
    for policy in POLICIES {
        let Some(engine) = start(settings(policy)) else {
            return;
        };
        let pager = Arc::new(Plain::slow());
        let mut region = engine.from_pager(Arc::clone(&pager)).unwrap();
        let mut plain = pager.contents();
        write_in_lockstep(&mut region, &mut plain, 600);
        assert_eq!(pager.writes.load(Relaxed), 0);
        let counted = engine.statistics().unwrap();
        assert!(
            counted.page_outs > 100 && counted.file_page_outs == 0,
            "{counted:?}"
        );
        region.clear().unwrap();
        assert!(*region == pager.contents());
    }
}

#[test]
fn what_is_modified_is_written_by_the_pager_and_a_flush_waits_for_it() {
    for policy in POLICIES {
        let Some(engine) = start(settings(policy)) else {
            return;
        };
        let pager = Arc::new(Plain::slow());
        let mut region = engine.write_pager(Arc::clone(&pager)).unwrap();
        let mut plain = pager.contents();
        write_in_lockstep(region.as_mut_slice(), &mut plain, 300);
        region.flush(0..BYTES).unwrap();
        assert!(pager.contents() == plain, "{policy}");
        write_in_lockstep(region.as_mut_slice(), &mut plain, 300);
        drop(region);
        assert!(pager.contents() == plain, "{policy}");
    }
}

#[test]
fn pages_that_leave_go_to_the_store_in_place_of_a_swap_file() {
    for policy in POLICIES {
        let pager = Arc::new(Plain {
            fails_each: 11,
            pause_us_most: 100,
            ..Plain::new(16 * MIB as usize)
        });
        let Some(engine) = start(settings(policy).store(Arc::clone(&pager))) else {
            return;
        };
        let mut region = engine.zeros(BYTES as u64).unwrap();
        let mut plain = vec![0; BYTES];
        write_in_lockstep(&mut region, &mut plain, 600);
        assert!(pager.writes.load(Relaxed) > 10 && pager.reads.load(Relaxed) > 10);
        let counted = engine.statistics().unwrap();
        assert!(counted.resident_bytes <= MIB, "{policy}: {counted:?}");
    }
}

/// A pager each of whose calls waits until another is under way.
#[derive(Default)]
struct Together {
    under_way: Mutex<(u32, u32)>,
    changed: Condvar,
}

impl Pager for Together {
    fn bytes(&self) -> u64 {
        4 * MIB
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let mut calls = self.under_way.lock().unwrap();
        calls.0 += 1;
        calls.1 = calls.1.max(calls.0);
        self.changed.notify_all();
        let wait = self
            .changed
            .wait_timeout_while(calls, LIMIT, |calls| calls.1 < 2);
        let (mut calls, waited) = wait.unwrap();
        calls.0 -= 1;
        if waited.timed_out() {
            return Err(PagerError::lasting("it was alone"));
        }
        into.fill((offset / PAGE as u64) as u8);
        Ok(())
    }
}

#[test]
fn several_calls_are_under_way_at_once() {
    let Some(engine) = start(settings("mach86")) else {
        return;
    };
    let region = engine.read_pager(Together::default()).unwrap();
    region.prefetch(0..128 * PAGE).unwrap();
    std::thread::scope(|scope| {
        for page in [0, 1000] {
            let region = &region;
            scope.spawn(move || assert_eq!(region[page * PAGE], page as u8));
        }
    });
}

/// A pager of which some pages can't be had.
struct Broken {
    /// By page: the way in which it fails.
    pages: BTreeMap<u64, &'static str>,
    refused: AtomicU32,
}

impl Broken {
    fn new(page: u64, way: &'static str) -> Broken {
        Broken {
            pages: BTreeMap::from([(page, way)]),
            refused: AtomicU32::new(0),
        }
    }
}

impl Pager for Broken {
    fn bytes(&self) -> u64 {
        4 * MIB
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let first = offset / PAGE as u64;
        let pages = first..first + (into.len() / PAGE) as u64;
        into.fill(7);
        match self.pages.range(pages).next() {
            Some((_, &"panics")) => panic!("on purpose"),
            Some((_, &"lasts")) => Err(PagerError::lasting("the tape is torn")),
            Some(_) => {
                self.refused.fetch_add(1, Relaxed);
                Err(PagerError::temporary("the line is busy"))
            }
            None => Ok(()),
        }
    }

    fn name(&self) -> String {
        "tape:7".into()
    }
}

/// The program of the tests below: reads a pager that fails.
#[test]
#[ignore = "a program of other tests"]
fn reads_a_pager_to_its_end() {
    let way = std::env::var("TIDEMARK_TEST_WAY").unwrap();
    let way: &'static str = Box::leak(way.into_boxed_str());
    let settings = settings("tidemark").patience(Duration::from_millis(30));
    let engine = settings.start().unwrap();
    let pager = Arc::new(Broken::new(700, way));
    let region = engine.read_pager(Arc::clone(&pager)).unwrap();
    for page in 0..600 {
        assert_eq!(region[page * PAGE], 7);
    }
    println!("read what there is");
    println!("{}", region[700 * PAGE]);
}

#[test]
fn a_page_that_cannot_be_had_ends_the_program_with_the_pagers_own_words() {
    if start(settings("tidemark")).is_none() {
        return;
    }
    for (way, words) in [
        ("lasts", "the tape is torn"),
        ("panics", "it panicked"),
        ("busy", "the line is busy; tried again for 30ms"),
    ] {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args([
            "--ignored",
            "--exact",
            "pagers::reads_a_pager_to_its_end",
            "--nocapture",
        ]);
        let output = child::run(program.env("TIDEMARK_TEST_WAY", way));
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.signal(), Some(7), "{way}: {text}");
        assert!(text.contains("read what there is"), "{way}: {text}");
        let line = text.lines().filter(|line| line.contains("can't be had"));
        let lines: Vec<_> = line.collect();
        assert_eq!(lines.len(), 1, "{way}: {text}");
        let (place, said) = lines[0].split_once("`tape:7`: reading at byte ").unwrap();
        assert!(
            place.contains("the page at 0x") && said.ends_with(words),
            "{text}"
        );
    }
}

/// A pager that can't write.
struct Constant;

impl Pager for Constant {
    fn bytes(&self) -> u64 {
        10 * PAGE as u64
    }

    fn read(&self, _offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        into.fill(3);
        Ok(())
    }
}

#[test]
fn a_write_that_fails_is_an_error_of_flush_and_the_page_stays() {
    let Some(engine) = start(settings("tidemark")) else {
        return;
    };
    let mut region = engine.write_pager(Constant).unwrap();
    region.as_mut_slice()[5 * PAGE] = 9;
    let refused = region.flush(0..10 * PAGE).unwrap_err();
    let Error::PagerWrite { name, offset, text } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(
        (name.as_str(), text.as_str()),
        ("the pager", "it can't be written to")
    );
    assert!(*offset <= 5 * PAGE as u64 && region[5 * PAGE] == 9);
    region.flush(6 * PAGE..10 * PAGE).unwrap();
}

/// A store that gives back what it likes.
#[derive(Default)]
struct Liar(Mutex<BTreeMap<u64, Vec<u8>>>);

impl Pager for Liar {
    fn bytes(&self) -> u64 {
        8 * MIB
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let written = self.0.lock().unwrap();
        for (at, page) in (offset..).step_by(PAGE).zip(into.chunks_mut(PAGE)) {
            page.copy_from_slice(&written[&at]);
        }
        into[17] ^= 4;
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        let mut written = self.0.lock().unwrap();
        for (at, page) in (offset..).step_by(PAGE).zip(from.chunks(PAGE)) {
            written.insert(at, page.into());
        }
        Ok(())
    }

    fn name(&self) -> String {
        "liar".into()
    }
}

/// The program of the test below: swaps to a store that changes a bit.
#[test]
#[ignore = "a program of other tests"]
fn swaps_to_a_store_that_lies() {
    let engine = settings("tidemark").store(Liar::default()).start().unwrap();
    let mut region = engine.zeros(4 * MIB).unwrap();
    let numbers = region.as_mut_slice_of::<u64>();
    (0..)
        .zip(numbers.iter_mut())
        .for_each(|(number, place)| *place = number);
    for (number, place) in (0..).zip(numbers.iter()) {
        assert_eq!(number, *place, "a wrong byte");
    }
}

#[test]
fn what_comes_back_otherwise_than_it_left_is_an_error_and_never_read() {
    if start(settings("tidemark")).is_none() {
        return;
    }
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "pagers::swaps_to_a_store_that_lies",
        "--nocapture",
    ]);
    let output = child::run(&mut program);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert_eq!(output.status.signal(), Some(7), "{text}");
    assert!(
        text.contains("the swap store `liar`") && !text.contains("a wrong byte"),
        "{text}"
    );
    assert!(
        text.contains("what came back is not what was stored"),
        "{text}"
    );
}

#[test]
fn a_pager_without_bytes_or_with_too_many_is_refused() {
    struct Sized(u64);
    impl Pager for Sized {
        fn bytes(&self) -> u64 {
            self.0
        }
        fn read(&self, _offset: u64, _into: &mut [u8]) -> Result<(), PagerError> {
            Ok(())
        }
    }
    let Some(engine) = start(settings("tidemark")) else {
        return;
    };
    assert_eq!(engine.read_pager(Sized(0)).unwrap_err(), Error::Empty);
    let refused = engine.read_pager(Sized(u64::MAX)).unwrap_err().to_string();
    assert!(
        refused.contains("`the pager` has 18446744073709551615 bytes"),
        "{refused}"
    );
    let refused = engine.from_pager(Sized(100 * MIB)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let refused = settings("tidemark").store(Sized(5)).start().unwrap_err();
    assert!(matches!(refused, Error::Size { .. }), "{refused}");
}
