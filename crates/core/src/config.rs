//! Configuration: how large a memory is, and how it is run.

use crate::kernels::Kernel;

/// The size of the memory, and the way it is run. All counts are in pages.
#[derive(Clone, Debug)]
pub struct Config {
    /// The size of the frame table: the most memory there can ever be.
    pub frames_max: u32,
    /// The number of those frames that may be used now. See
    /// [`Vm::handle_limit`](crate::vm::Vm::handle_limit).
    pub frames_limit: u32,
    /// Reclaim starts when fewer frames are free or on their way.
    pub free_low: u32,
    /// Reclaim stops when this many are free or on their way. If both are zero, one page leaves for
    /// each that comes, and not before it must.
    pub free_high: u32,
    /// Frames that faults may not take.
    pub reserve: u32,
    /// The most pages in one request.
    pub cluster_pages: u32,
    /// The most pages on their way to the store at one time.
    pub laundry_max: u32,
    /// The distance, in pages, that reads run in front of a sequential reader; 0 turns read-ahead
    /// off.
    pub ahead_pages_max: u32,
    /// The share of memory, as a divisor, for what is read in front of all sequential readers
    /// together.
    pub ahead_part: u32,
    /// The number of pages zeroed ahead of a sequential first touch, at most; 0 turns it off.
    pub zero_ahead_pages_max: u32,
    /// The number of pages read around a fault that belongs to no stream; 1: itself alone.
    pub default_cluster_pages: u32,
    /// True if pages read for a detected stream are mapped at once, but for one in each window
    /// whose soft fault tells that the reader has come that far. If not, all are left unmapped.
    pub is_ahead_mapped: bool,
    /// True if what is kept free and on its way to the store follows the limit when that changes.
    pub is_scaled: bool,
    /// True if decisions are kept for [`Vm::poll_decision`](crate::vm::Vm::poll_decision).
    pub is_logging: bool,
    /// The mechanisms of a simulated kernel; a live process has none.
    pub kernel: Kernel,
}

impl Config {
    /// Plain demand paging in `frames` frames: one page at a time, no read-ahead, nothing free.
    pub fn demand(frames: u32) -> Config {
        Config {
            frames_max: frames,
            frames_limit: frames,
            free_low: 0,
            free_high: 0,
            reserve: 0,
            cluster_pages: 1,
            laundry_max: u32::MAX,
            ahead_pages_max: 0,
            ahead_part: 8,
            zero_ahead_pages_max: 0,
            default_cluster_pages: 1,
            is_ahead_mapped: false,
            is_scaled: false,
            is_logging: false,
            kernel: Kernel::NONE,
        }
    }

    /// The configuration of a live process: clusters of 256 KiB, read-ahead of up to 1 MiB, and
    /// about one frame in two hundred kept free, so that reading need not wait for writing.
    pub fn clustered(frames_max: u32, frames_limit: u32) -> Config {
        let config = Config {
            cluster_pages: 64,
            // A reader waits for nothing while two clusters are in front of it, and a fast disk
            // wants more requests at a time than one.
            ahead_pages_max: 256,
            // What is read ahead must not push out what was read ahead before: it passes through
            // the few pages that a policy has for newcomers.
            ahead_part: 32,
            zero_ahead_pages_max: 64,
            is_ahead_mapped: true,
            is_scaled: true,
            ..Config::demand(frames_max)
        };
        config.limited(frames_limit)
    }

    /// This configuration with `frames_limit` frames in use now, and the marks that follow from
    /// that.
    pub fn limited(self, frames_limit: u32) -> Config {
        if !self.is_scaled {
            return Config {
                frames_limit,
                ..self
            };
        }
        let free_low = (frames_limit / 256).clamp(8, 512);
        Config {
            frames_limit,
            free_low,
            free_high: free_low + (frames_limit / 512).clamp(16, 256),
            laundry_max: (frames_limit / 8).clamp(64, 2048),
            ..self
        }
    }
}
