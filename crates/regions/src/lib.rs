//! Memory regions larger than the memory they may use, inside a program's own process.
//!
//! An [`Engine`] has a limit of memory, a replacement policy and a swap file. A [`Region`] of it
//! is plain memory: a slice of bytes, or of numbers. Of all regions of one engine together at most
//! the limit is resident; the rest is in the swap file, and comes back when it is touched. A
//! region may also have the contents of a file: then its unmodified pages are read from there. The
//! modified ones go there, too, if the region is written to its file. In place of a file a
//! [`Pager`] of the program's own can have the contents. A process may have several engines.
//!
//! ```
//! # fn main() -> Result<(), tidemark_regions::Error> {
//! # if let Err(error) = tidemark_regions::Engine::builder().memory(1 << 20).start() {
//! #     return if error.is_refusal() { Ok(()) } else { Err(error) };
//! # }
//! let engine = tidemark_regions::Engine::builder().memory(1 << 20).start()?;
//! let mut region = engine.zeros(4 << 20)?;
//! let numbers = region.as_mut_slice_of::<u64>();
//! for (index, number) in numbers.iter_mut().enumerate() {
//!     *number = index as u64;
//! }
//! assert_eq!(numbers.iter().sum::<u64>(), (4 << 20) / 8 * ((4 << 20) / 8 - 1) / 2);
//! assert!(engine.statistics()?.page_outs > 0);
//! # Ok(())
//! # }
//! ```
//!
//! The core, the machine on userfaultfd and the store are those of `tidemark run`
//! ([`tidemark_live`]); here they run on one thread of the program, and manage nothing but regions.
//!
//! # What a region is not
//! - A forked child has no regions: their addresses are not mapped there.
//! - Memory that is given to the kernel for good (registered buffers of io_uring, `mlock`) stays
//!   resident, beside the limit.
//! - `munmap`, `mremap` and `madvise` by address are not for regions; [`Region`] has calls of its
//!   own.
//!
//! # Rights
//! Root may serve all faults, and who may open `/dev/userfaultfd`. Everyone else may serve those
//! taken in user mode, as long as no filter of system calls forbids it:
//! [`serves_system_calls`](Engine::serves_system_calls) tells.
//!
//! # Threads
//! One thread for each engine owns the core's tables. Other threads send it commands through a
//! queue (its lock is held to put one in or to take one out, and nothing else is taken
//! meanwhile), and wait for the answer. A thread that touches a page that is out waits for the
//! engine's thread, which itself touches no region. Pagers are called by up to eight other threads
//! of the engine. If the engine's thread panics, the process is ended: its threads would wait for
//! ever.
//!
//! # Invariants
//! 1. What may be modified of all regions of an engine fits in its frames and its swap file
//!    together, so that a page that leaves always finds a slot, and leaves a few frames to files
//!    that are read. What is written to a file finds room there.
//! 2. A region is known to the core from before it is handed out until it can't be touched.
#![forbid(unsafe_code)]

mod command;
mod compressed;
mod error;
mod files;
mod flushes;
mod heap;
mod process;
mod region;
mod settings;
mod worker;
mod written;

use std::path::Path;
use std::sync::Arc;

use tidemark_core::id::PAGE_BYTES;
use tidemark_core::seams::policy::Sees;

use crate::command::Handle;
pub use crate::command::Statistics;
pub use crate::error::Error;
pub use crate::heap::Heap;
use crate::region::Use;
pub use crate::region::{FileRegion, FileRegionMut, Region};
pub use crate::settings::{Builder, MEMORY_BYTES_LEAST, SWAP_BYTES};
pub use tidemark_core::memory::address_space::Advice;
pub use tidemark_live::store::pagers::{Pager, PagerError};

/// An engine: a limit of memory, a policy, a swap file and the thread that serves faults. It lives
/// until it and all of its regions are dropped.
#[derive(Clone, Debug)]
pub struct Engine {
    handle: Arc<Handle>,
}

impl Engine {
    /// The settings to begin with: 64 MiB of memory, policy `2q-faults`, and a swap file of 4 GiB
    /// in the folder for temporary files that outlive a start of the machine, `/var/tmp`.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Makes a region of `bytes` zeros, rounded up to pages. It takes no memory before it is
    /// touched.
    ///
    /// # Errors
    /// Zero bytes; more than the engine's memory and swap file can hold beside its other regions;
    /// or the kernel refuses to map or to register memory.
    pub fn zeros(&self, bytes: u64) -> Result<Region, Error> {
        Region::new(Arc::clone(&self.handle), bytes)
    }

    /// Makes a region of a file's contents from byte `offset` on: `bytes` of them, or all that
    /// follow. Its pages are read when they are touched, and dropped when others need their memory.
    ///
    /// What others write to the file meanwhile is seen on pages that are read after that. If the
    /// file is cut, a line says so when a page is touched that it does not have any more, and the
    /// touch is a `SIGBUS`.
    ///
    /// # Errors
    /// The file can't be opened, or is too short; zero bytes; or as for [`zeros`](Self::zeros).
    pub fn read_file(
        &self,
        path: &Path,
        offset: u64,
        bytes: Option<u64>,
    ) -> Result<FileRegion, Error> {
        let region = Region::of_file(Arc::clone(&self.handle), path, offset, bytes, Use::Read)?;
        Ok(FileRegion(region))
    }

    /// Makes a region that begins as what a file has, likewise. Nothing is written to the file:
    /// pages that are modified go to the swap file, so that there must be room for all of them.
    ///
    /// # Errors
    /// As for [`read_file`](Self::read_file) and for [`zeros`](Self::zeros).
    pub fn copy_file(&self, path: &Path, offset: u64, bytes: Option<u64>) -> Result<Region, Error> {
        Region::of_file(Arc::clone(&self.handle), path, offset, bytes, Use::Modify)
    }

    /// Makes a region of the contents of a file, and writes modified pages back to the file: when a
    /// page leaves memory, at [`flush`](FileRegionMut::flush), when the region is dropped, and when
    /// the program ends by `exit` or by returning from `main`. A file that is too short for `bytes`
    /// is made longer, with zeros.
    ///
    /// A file can be written to by one region at a time, and is locked (`flock`) against other
    /// processes that do the same. Regions that read it see what is written on pages that they read
    /// after that. A page is written whole and as it was at one moment: a crash leaves each either
    /// old or new, as far as the disk writes a block at a time. What was not written by then is
    /// lost, unlike with `mmap`, whose pages are the kernel's.
    ///
    /// # Errors
    /// As for [`read_file`](Self::read_file); the file can't be written to, is in use, or can't be
    /// made longer.
    pub fn write_file(
        &self,
        path: &Path,
        offset: u64,
        bytes: Option<u64>,
    ) -> Result<FileRegionMut, Error> {
        FileRegionMut::open(Arc::clone(&self.handle), path, (offset, bytes), false)
    }

    /// Makes a file that ends with `bytes` zeros behind `offset` others, or makes one that exists
    /// that, and a region of them that is written to it, as [`write_file`](Self::write_file) does.
    ///
    /// # Errors
    /// As for [`write_file`](Self::write_file).
    pub fn create_file(
        &self,
        path: &Path,
        offset: u64,
        bytes: u64,
    ) -> Result<FileRegionMut, Error> {
        FileRegionMut::open(Arc::clone(&self.handle), path, (offset, Some(bytes)), true)
    }

    /// Makes a region of what a pager has. It can be modified, and the pager is not told: pages
    /// that are modified go to the swap file, so that there must be room for all of them. Others
    /// are dropped when their memory is needed, and asked for again.
    ///
    /// Contents that are kept compressed:
    ///
    /// ```
    /// use tidemark_regions::{Engine, Pager, PagerError};
    ///
    /// /// Runs of equal bytes: the number of each, and the byte.
    /// struct Runs(Vec<(u64, u8)>);
    ///
    /// impl Pager for Runs {
    ///     fn bytes(&self) -> u64 {
    ///         self.0.iter().map(|(count, _)| count).sum()
    ///     }
    ///
    ///     fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
    ///         let end = offset + into.len() as u64;
    ///         let mut start = 0;
    ///         for &(count, byte) in &self.0 {
    ///             let (low, high) = (start.max(offset), (start + count).min(end));
    ///             if low < high {
    ///                 into[(low - offset) as usize..(high - offset) as usize].fill(byte);
    ///             }
    ///             start += count;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), tidemark_regions::Error> {
    /// # if let Err(error) = Engine::builder().memory(1 << 20).start() {
    /// #     return if error.is_refusal() { Ok(()) } else { Err(error) };
    /// # }
    /// let engine = Engine::builder().memory(1 << 20).start()?;
    /// let mut region = engine.from_pager(Runs(vec![(3_000_000, 1), (2_000_000, 7)]))?;
    /// assert_eq!((region[2_999_999], region[3_000_000]), (1, 7));
    /// region[2_999_999] = 5;
    /// assert_eq!(region.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 17_000_004);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A pager of no bytes or of more than 16 TiB; or as for [`zeros`](Self::zeros).
    pub fn from_pager(&self, pager: impl Pager + 'static) -> Result<Region, Error> {
        Region::of_pager(Arc::clone(&self.handle), Arc::new(pager), Use::Modify)
    }

    /// Makes a region of what a pager has, to be read. It needs no room in the swap file.
    ///
    /// Contents that are computed when they are needed:
    ///
    /// ```
    /// use tidemark_regions::{Engine, Pager, PagerError};
    ///
    /// /// The squares of all numbers below 4 million.
    /// struct Squares;
    ///
    /// impl Pager for Squares {
    ///     fn bytes(&self) -> u64 {
    ///         4_000_000 * 8
    ///     }
    ///
    ///     fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
    ///         for (number, square) in (offset / 8..).zip(into.chunks_mut(8)) {
    ///             square.copy_from_slice(&(number * number).to_ne_bytes());
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), tidemark_regions::Error> {
    /// # if let Err(error) = Engine::builder().memory(1 << 20).start() {
    /// #     return if error.is_refusal() { Ok(()) } else { Err(error) };
    /// # }
    /// let engine = Engine::builder().memory(1 << 20).start()?;
    /// let region = engine.read_pager(Squares)?;
    /// let squares = region.as_slice_of::<u64>();
    /// assert_eq!(squares.partition_point(|square| *square < 1_000_000), 1000);
    /// assert_eq!(squares[3_999_999], 3_999_999 * 3_999_999);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`from_pager`](Self::from_pager).
    pub fn read_pager(&self, pager: impl Pager + 'static) -> Result<FileRegion, Error> {
        let handle = Arc::clone(&self.handle);
        let region = Region::of_pager(handle, Arc::new(pager), Use::Read)?;
        Ok(FileRegion(region))
    }

    /// Makes a region of the contents of a pager, and has the pager [write](Pager::write) the
    /// modified pages when a file would be written to by [`write_file`](Self::write_file). Two
    /// regions that are written to the same contents would undo each other's writes.
    ///
    /// # Errors
    /// As for [`from_pager`](Self::from_pager).
    pub fn write_pager(&self, pager: impl Pager + 'static) -> Result<FileRegionMut, Error> {
        FileRegionMut::of_pager(Arc::clone(&self.handle), Arc::new(pager))
    }

    /// Makes a heap: blocks of the engine's memory by address, for an allocator.
    ///
    /// # Errors
    /// The kernel refuses to map or to register memory.
    pub fn heap(&self) -> Result<Heap, Error> {
        Heap::new(Arc::clone(&self.handle))
    }

    /// The counts of the engine's work so far.
    ///
    /// # Errors
    /// In a forked child, which has no engine.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        self.handle.count()
    }

    /// Returns true if system calls may be handed any part of a region. Where it is false, the
    /// kernel permits this user to serve faults in user mode alone. A system call that is
    /// handed pages that are out then fails with `EFAULT`, or stops before them: hand it a copy.
    pub fn serves_system_calls(&self) -> bool {
        self.handle.serves_system_calls
    }

    /// The most memory, in bytes, that the engine's regions have together.
    pub fn memory_bytes(&self) -> u64 {
        self.handle.memory_bytes
    }
}

impl Builder {
    /// Makes the swap file, and starts the engine's thread.
    ///
    /// # Errors
    /// A setting that can't be, or what the system refuses; each names the setting, its value and
    /// the remedy.
    pub fn start(self) -> Result<Engine, Error> {
        let (least, most) = (MEMORY_BYTES_LEAST, u64::from(u32::MAX / 2) * PAGE_BYTES);
        for (name, bytes) in [
            ("memory", self.memory_bytes),
            ("swap_size", self.swap_bytes),
        ] {
            if !(least..=most).contains(&bytes) {
                return Err(Error::Size { name, bytes });
            }
        }
        let found = tidemark_plugin::find(&self.policy).map(|description| description.sees);
        if !found.is_some_and(Sees::is_shown_live) {
            return Err(Error::Policy { name: self.policy });
        }
        let handle = worker::start(self)?;
        Ok(Engine {
            handle: Arc::new(handle),
        })
    }
}
