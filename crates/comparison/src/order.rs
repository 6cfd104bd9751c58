//! The order for a comparison.

use std::ffi::OsString;
use std::path::PathBuf;

use tidemark_lab::names::Divider;
use tidemark_lab::study::{NamedDisk, Replay};
use tidemark_live::control::Store;
use tidemark_live::engine::MAPPED_BYTES_LEAST;
use tidemark_live::glob::Glob;
use tidemark_results::{Refusal, refuse};
use tidemark_supervisor::{host, program};
use tidemark_trace::private::{Extent, LARGE_BYTES_LEAST};

// The lab and the live engine leave the same mappings alone in step.
const _: () = assert!(MAPPED_BYTES_LEAST as u64 == LARGE_BYTES_LEAST);

/// A pattern of the paths of files.
#[derive(Clone, Debug)]
pub struct NamedFiles {
    /// The pattern as it was written.
    pub pattern: OsString,
    /// The pattern, parsed.
    pub glob: Glob,
}

/// An order to compare.
pub struct Order<'a> {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The path at which the program was found.
    pub path: PathBuf,
    /// Answers the sizes of memory in pages, each once, rising, of a program that uses this many
    /// bytes of managed memory.
    pub sizes: &'a dyn Fn(u64) -> Result<Vec<u32>, Refusal>,
    /// The policies, of those that can run live.
    pub policies: Vec<&'static str>,
    /// The store of pages that leave.
    pub store: Store,
    /// The pattern of the files whose mappings are managed, too, in step.
    pub files: Option<NamedFiles>,
    /// The path at which the recording is kept; if it is there already, it is taken in place of a
    /// new one.
    pub trace: Option<PathBuf>,
    /// True if every change of page is recorded.
    pub is_exact: bool,
    /// True if the program waits at each fault until all is over, live and in the lab.
    pub is_in_step: bool,
    /// The number of times each live run is made.
    pub runs: u32,
    /// The disk that the prediction assumes.
    pub disk: NamedDisk,
    /// The load control, of those that can run live; `None`: that of `tidemark run`.
    pub load_control: Option<String>,
    /// The way in which memory is divided among processes.
    pub divider: Divider,
    /// The folder for the swap file of live runs.
    pub swap: Option<PathBuf>,
    /// The size of that file.
    pub swap_size_bytes: Option<u64>,
}

impl Order<'_> {
    /// Refuses what can be told before a recording, which takes minutes.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let shim = host::find_shim()?;
        if self.is_in_step {
            host::find_pool(&shim)?;
        }
        if let Some(obstacle) = program::find_obstacle(&self.path) {
            refuse!("`{}` {}", self.path.display(), obstacle.reason());
        }
        if let Some(lack) = host::find_lack(false) {
            refuse!("{lack}");
        }
        Ok(())
    }

    /// The program and its arguments, as each step is given them. Valgrind calls a program by the
    /// path that it was found at; in step it has that name live, too.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let mut words = self.program.clone();
        if self.is_in_step {
            words[0] = self.path.clone().into();
        }
        words
    }

    /// The memory that is managed.
    pub(crate) fn extent(&self) -> Extent {
        match self.is_in_step {
            true => Extent::Large,
            false => Extent::All,
        }
    }

    /// The sizes of memory, each once, rising.
    pub(crate) fn memory_pages(&self, replay: &Replay) -> Result<Vec<u32>, Refusal> {
        (self.sizes)(replay.footprint_pages(1) * replay.page_bytes())
    }

    /// The program and its arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.program.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// Remarks that a reader of the numbers may need.
    pub(crate) fn notes(&self) -> Vec<String> {
        let told: &[&str] = match self.is_in_step {
            true => &[
                "in step: time is counted in faults, mapped pages count as modified, and only \
                 mappings of 4 MiB or more are managed (the allocator's pool is one); elapsed \
                 times mean nothing",
                "pages are named by object and index: object 0 is the pool, the others are the \
                 program's own mappings, in order",
            ],
            false => &[
                "the simulation pages out every page that was written; a live run skips pages \
                 whose contents did not change or are zeros",
            ],
        };
        let files: &[&str] = match self.files {
            Some(_) => &["mappings of the named files are managed, too, each an object of its own"],
            None => &[],
        };
        let sizes: &[&str] = match self.store {
            Store::Compressed | Store::CompressedAndFile => &[
                "compressed sizes are drawn from those of a live run in half of the memory; each \
                 page keeps about its size",
            ],
            Store::File => &[],
        };
        told.iter()
            .chain(files)
            .chain(sizes)
            .map(|note| (*note).to_owned())
            .collect()
    }
}
