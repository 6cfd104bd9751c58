//! The place of the mappings of files that the engine manages.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The most files that are known apart. Where there are more, any may be one.
const WRITTEN_MAX: usize = 64;

/// The mappings of files that the engine may manage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Wanted {
    /// No file's.
    Nothing,
    /// Those that are copies of files.
    Copies,
    /// All.
    All,
}

/// The managed files of a process.
pub(crate) struct Files {
    /// The mappings to manage, as a number of [`Wanted`].
    wanted: AtomicU8,
    /// True if files are managed, too, whose mappings are written to and whose pages are written
    /// back.
    are_written: AtomicBool,
    /// The lowest address of all mappings that were ever managed.
    lowest: AtomicUsize,
    /// The first address behind them.
    end: AtomicUsize,
    /// The number of files that have been mapped to be written back.
    count: AtomicU32,
    /// The devices of those files, and the files' inode numbers.
    written: [[AtomicU64; 2]; WRITTEN_MAX],
}

impl Files {
    /// The state of a process without managed files, in which none are wanted.
    pub(crate) const fn new() -> Files {
        Files {
            wanted: AtomicU8::new(Wanted::Nothing as u8),
            are_written: AtomicBool::new(false),
            lowest: AtomicUsize::new(usize::MAX),
            end: AtomicUsize::new(0),
            count: AtomicU32::new(0),
            written: [const { [const { AtomicU64::new(0) }; 2] }; WRITTEN_MAX],
        }
    }

    /// Has these mappings of files managed from now on; if they `are_written`, also shared ones
    /// that are written back.
    pub(crate) fn want(&self, wanted: Wanted, are_written: bool) {
        self.are_written.store(are_written, Ordering::Relaxed);
        self.wanted.store(wanted as u8, Ordering::Relaxed);
    }

    /// The mappings to manage.
    pub(crate) fn wanted(&self) -> Wanted {
        match self.wanted.load(Ordering::Relaxed) {
            0 => Wanted::Nothing,
            1 => Wanted::Copies,
            _ => Wanted::All,
        }
    }

    /// Returns true if there are files to write back.
    pub(crate) fn are_written(&self) -> bool {
        self.are_written.load(Ordering::Relaxed)
    }

    /// Takes in that a mapping may be managed.
    pub(crate) fn note(&self, start: usize, bytes: usize) {
        self.lowest.fetch_min(start, Ordering::Relaxed);
        self.end
            .fetch_max(start.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Returns true if there may be a managed file in a range.
    pub(crate) fn may_hold(&self, start: usize, bytes: usize) -> bool {
        let end = start.saturating_add(bytes);
        start < self.end.load(Ordering::Relaxed) && self.lowest.load(Ordering::Relaxed) < end
    }

    /// Takes in that a file may be written back, before it is.
    pub(crate) fn note_written(&self, device: u64, number: u64) {
        if self.may_be_written(device, number) {
            return;
        }
        let place = self.count.fetch_add(1, Ordering::AcqRel) as usize;
        if let Some([first, second]) = self.written.get(place) {
            first.store(device, Ordering::Relaxed);
            second.store(number, Ordering::Release);
        }
    }

    /// Returns true if any file may be.
    pub(crate) fn has_written(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Returns true if a file may be written back.
    pub(crate) fn may_be_written(&self, device: u64, number: u64) -> bool {
        let count = self.count.load(Ordering::Acquire) as usize;
        let is_it = |[first, second]: &[AtomicU64; 2]| {
            second.load(Ordering::Acquire) == number && first.load(Ordering::Relaxed) == device
        };
        count > WRITTEN_MAX || self.written[..count].iter().any(is_it)
    }
}
