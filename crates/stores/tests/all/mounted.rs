//! Pagers as files of the kernel's: contents, failures that pass and that last, and the end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tidemark_core::random::SplitMix64;
use tidemark_regions::{Pager, PagerError};
use tidemark_stores::mounted::{Mounted, Settings, mount};
use tidemark_testing::skip;

use crate::redis::{MIB, PAGE};

/// The longest wait for a pager to be dropped.
const LIMIT: Duration = Duration::from_secs(30);

/// Bytes in memory, of which the next calls fail.
struct Memory {
    bytes: Mutex<Vec<u8>>,
    failures: Arc<Failures>,
}

#[derive(Default)]
struct Failures {
    /// The number of calls that are still to fail for now, and for good.
    passing: AtomicU32,
    lasting: AtomicU32,
    calls: AtomicU32,
    lines: Mutex<Vec<String>>,
}

impl Failures {
    fn next(&self) -> Result<(), PagerError> {
        self.calls.fetch_add(1, Relaxed);
        let take = |count: &AtomicU32| {
            let less = |left: u32| left.checked_sub(1);
            count.fetch_update(Relaxed, Relaxed, less).is_ok()
        };
        if take(&self.lasting) {
            return Err(PagerError::lasting("it is lost"));
        }
        match take(&self.passing) {
            true => Err(PagerError::temporary("it is away")),
            false => Ok(()),
        }
    }
}

impl Pager for Memory {
    fn bytes(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        self.failures.next()?;
        let from = offset as usize..offset as usize + into.len();
        into.copy_from_slice(&self.bytes.lock().unwrap()[from]);
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        self.failures.next()?;
        let into = offset as usize..offset as usize + from.len();
        self.bytes.lock().unwrap()[into].copy_from_slice(from);
        Ok(())
    }

    fn name(&self) -> String {
        "memory://a".into()
    }
}

/// A megabyte as a file that is a page longer, unless this process may not mount one.
fn memory(patience: Duration) -> Option<(Mounted, Arc<Failures>)> {
    let failures = Arc::new(Failures::default());
    let pager = Memory {
        bytes: Mutex::new(vec![0; MIB as usize]),
        failures: Arc::clone(&failures),
    };
    let lines = Arc::clone(&failures);
    let settings = Settings {
        bytes: MIB + PAGE as u64,
        patience,
        is_for_all: true,
        tell: Box::new(move |line| lines.lines.lock().unwrap().push(line.into())),
    };
    match mount(Arc::new(pager), settings) {
        Ok(mounted) => Some((mounted, failures)),
        Err(error) => {
            skip(&format!("FUSE can't be mounted: {error}"));
            None
        }
    }
}

fn error_of<T>(answer: io::Result<T>) -> Option<Errno> {
    Errno::from_io_error(&answer.err()?)
}

#[test]
fn a_file_has_what_its_pager_has() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let file = File::from(mounted.file);
    assert_eq!(file.metadata().unwrap().len(), MIB + PAGE as u64);
    let mut random = SplitMix64::new(7);
    let mut known = vec![0; MIB as usize];
    for turn in 0..500 {
        let offset = random.below(MIB) as usize;
        let bytes = (random.below(70 * PAGE as u64) as usize).min(known.len() - offset);
        let end = offset + bytes;
        if random.below(2) == 0 {
            known[offset..end].fill(turn as u8);
            file.write_all_at(&known[offset..end], offset as u64)
                .unwrap();
        } else {
            let mut read = vec![0xff; bytes];
            file.read_exact_at(&mut read, offset as u64).unwrap();
            assert!(read == known[offset..end], "{turn}: {offset}..{end}");
        }
        // A few calls fail, and are made again.
        failures.passing.store(random.below(3) as u32, Relaxed);
    }
    assert_eq!(*failures.lines.lock().unwrap(), [""; 0]);
}

#[test]
fn transfers_of_many_pages_are_one_call() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let file = File::from(mounted.file);
    let pages = vec![7; 64 * PAGE];
    file.write_all_at(&pages, 0).unwrap();
    let mut read = vec![0; 64 * PAGE];
    file.read_exact_at(&mut read, 0).unwrap();
    assert!(read == pages);
    // A buffer that begins within a page is one page longer than a call may be.
    assert!(failures.calls.load(Relaxed) <= 4);
}

#[test]
fn what_lasts_is_an_error_and_is_told_once() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let file = File::from(mounted.file);
    let mut page = [0xaa; PAGE];
    failures.lasting.store(2, Relaxed);
    assert_eq!(error_of(file.read_at(&mut page, 0)), Some(Errno::IO));
    assert_eq!(error_of(file.write_at(&page, 0)), Some(Errno::IO));
    assert_eq!(page, [0xaa; PAGE], "nothing has come");
    file.read_exact_at(&mut page, 0).unwrap();
    assert_eq!(page, [0; PAGE], "nothing was written");
    failures.lasting.store(1, Relaxed);
    assert_eq!(error_of(file.read_at(&mut page, 0)), Some(Errno::IO));
    let lines = failures.lines.lock().unwrap();
    assert_eq!(*lines, ["`memory://a`: it is lost"; 2], "once each time");
}

#[test]
fn what_does_not_pass_is_an_error_when_patience_is_over() {
    let Some((mounted, failures)) = memory(Duration::from_millis(50)) else {
        return;
    };
    let file = File::from(mounted.file);
    failures.passing.store(u32::MAX, Relaxed);
    let mut page = [0xaa; PAGE];
    assert_eq!(error_of(file.read_at(&mut page, 0)), Some(Errno::IO));
    assert!(failures.calls.load(Relaxed) > 2, "it was tried again");
    let lines = failures.lines.lock().unwrap();
    assert_eq!(*lines, ["`memory://a`: it is away; tried again for 50ms"]);
}

#[test]
fn what_is_beyond_the_pager_is_refused() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let file = File::from(mounted.file);
    let mut page = [0xaa; PAGE];
    for offset in [MIB, MIB - 1] {
        assert_eq!(
            error_of(file.read_at(&mut page, offset)),
            Some(Errno::INVAL)
        );
        assert_eq!(error_of(file.write_at(&page, offset)), Some(Errno::INVAL));
    }
    assert_eq!(failures.calls.load(Relaxed), 0);
    assert_eq!(page, [0xaa; PAGE]);
}

#[test]
fn the_pager_ends_with_the_last_descriptor() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let other = mounted.file.try_clone().unwrap();
    drop(mounted.file);
    let file = File::from(other);
    file.write_all_at(&[1; PAGE], 0).unwrap();
    // Its room is given back before it is closed, as a swap file's is.
    file.set_len(0).unwrap();
    assert!(!mounted.serving.is_finished());
    drop(file);
    let end = Instant::now() + LIMIT;
    // The pager has one of the two, as long as it is there; what tells lines has another.
    while Arc::strong_count(&failures) > 1 {
        assert!(Instant::now() < end, "it goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    mounted.serving.join().unwrap();
}

#[test]
fn many_calls_at_once_are_each_their_own() {
    let Some((mounted, failures)) = memory(LIMIT) else {
        return;
    };
    let file = File::from(mounted.file);
    std::thread::scope(|scope| {
        for range in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let first = range * MIB / 8;
                for turn in 0..50 {
                    let written = [range as u8 ^ turn; 3 * PAGE];
                    let offset = first + u64::from(turn % 10) * 3 * PAGE as u64;
                    file.write_all_at(&written, offset).unwrap();
                    let mut read = [0; 3 * PAGE];
                    file.read_exact_at(&mut read, offset).unwrap();
                    assert!(read == written, "{range} {turn}");
                }
            });
        }
    });
    assert_eq!(failures.calls.load(Relaxed), 8 * 50 * 2);
}
