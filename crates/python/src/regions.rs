//! Memory regions for arrays that are larger than the memory they may use.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tidemark_regions::{Advice, Error};
use tidemark_results::quantity;

use crate::allocator;
use crate::exceptions::of_argument;

/// The engine: a limit of memory, a policy, and a swap file.
#[pyclass(frozen, name = "Engine")]
pub struct Engine(tidemark_regions::Engine);

/// Memory that an engine manages.
#[pyclass(frozen, name = "Region")]
pub struct Region {
    region: Mutex<Contents>,
    address: usize,
    bytes: usize,
}

/// A region, and whether it can be written to.
enum Contents {
    Own(tidemark_regions::Region),
    Read(tidemark_regions::FileRegion),
    Write(tidemark_regions::FileRegionMut),
}

#[pymethods]
impl Engine {
    #[new]
    fn new(
        memory: u64,
        policy: &str,
        swap_folder: PathBuf,
        swap: u64,
        counts_process: bool,
    ) -> PyResult<Engine> {
        let settings = tidemark_regions::Engine::builder().memory(memory);
        let settings = settings.policy(policy);
        let settings = match counts_process {
            true => settings.count_process(),
            false => settings,
        };
        // No folder has such a name.
        let settings = match swap_folder.to_str() {
            Some(url) if url.contains("://") => {
                let store = tidemark_stores::swap(url, swap);
                settings.store(store.map_err(|error| of_stores(&error))?)
            }
            Some(_) | None => settings.swap_folder(&swap_folder).swap_size(swap),
        };
        settings
            .start()
            .map(Engine)
            .map_err(|error| of_regions(&error))
    }

    fn zeros(&self, bytes: u64) -> PyResult<Region> {
        let region = self.0.zeros(bytes).map_err(|error| of_regions(&error))?;
        Ok(Region::new(Contents::Own(region)))
    }

    /// Makes a region of a part of a file, by one of numpy's modes: `r` to be read, `c` for a copy,
    /// `r+` and `w+` to be written to, the latter anew.
    fn open(&self, path: PathBuf, offset: u64, bytes: Option<u64>, mode: &str) -> PyResult<Region> {
        let engine = &self.0;
        let contents = match (mode, bytes) {
            ("r", _) => engine.read_file(&path, offset, bytes).map(Contents::Read),
            ("c", _) => engine.copy_file(&path, offset, bytes).map(Contents::Own),
            ("r+", _) => engine.write_file(&path, offset, bytes).map(Contents::Write),
            ("w+", Some(bytes)) => engine
                .create_file(&path, offset, bytes)
                .map(Contents::Write),
            _ => {
                let needs = "`r`, `c`, `r+`, or `w+` and a `shape`";
                return Err(of_argument("mode", format!("`{mode}`"), needs));
            }
        };
        contents
            .map(Region::new)
            .map_err(|error| of_regions(&error))
    }

    /// Makes a region of what the store at an address has, by the same modes: `w+` makes it, of
    /// `bytes`. Other threads run meanwhile.
    fn open_store(
        &self,
        py: Python<'_>,
        url: &str,
        bytes: Option<u64>,
        mode: &str,
    ) -> PyResult<Region> {
        let opened = py.detach(|| match (mode, bytes) {
            ("w+", Some(bytes)) => Some(tidemark_stores::create(url, bytes)),
            ("r" | "c" | "r+", _) => Some(tidemark_stores::open(url)),
            _ => None,
        });
        let needs = "`r`, `c`, `r+`, or `w+` and a `shape`";
        let opened = opened.ok_or_else(|| of_argument("mode", format!("`{mode}`"), needs))?;
        let store = opened.map_err(|error| of_stores(&error))?;
        let engine = &self.0;
        let contents = match mode {
            "r" => engine.read_pager(store).map(Contents::Read),
            "c" => engine.from_pager(store).map(Contents::Own),
            _ => engine.write_pager(store).map(Contents::Write),
        };
        contents
            .map(Region::new)
            .map_err(|error| of_regions(&error))
    }

    /// Makes an allocator for numpy: large blocks are memory of this engine.
    fn allocator<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let heap = self.0.heap().map_err(|error| of_regions(&error))?;
        allocator::allocator(py, heap)
    }

    /// The most memory of all regions together, in bytes.
    #[getter]
    fn memory(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// True if system calls may be handed any part of an array.
    #[getter]
    fn serves_system_calls(&self) -> bool {
        self.0.serves_system_calls()
    }

    /// The counts so far, each with its name.
    fn statistics(&self) -> PyResult<Vec<(&'static str, u64)>> {
        let counted = self.0.statistics().map_err(|error| of_regions(&error))?;
        Ok(vec![
            ("faults", counted.faults),
            ("page_ins", counted.page_ins),
            ("file_page_ins", counted.file_page_ins),
            ("page_outs", counted.page_outs),
            ("file_page_outs", counted.file_page_outs),
            ("zero_fills", counted.zero_fills),
            ("soft_faults", counted.soft_faults),
            ("resident_bytes", counted.resident_bytes),
            ("region_bytes", counted.region_bytes),
            ("beside_bytes", counted.beside_bytes),
        ])
    }
}

#[pymethods]
impl Region {
    /// The address of the first byte.
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    /// The number of bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn advise(&self, start: usize, end: usize, advice: &str) -> PyResult<()> {
        let advice = match advice {
            "normal" => Advice::Normal,
            "sequential" => Advice::Sequential,
            "reverse" => Advice::Reverse,
            "random" => Advice::Random,
            _ => {
                let needs = "normal, sequential, reverse or random";
                return Err(of_argument("advice", format!("`{advice}`"), needs));
            }
        };
        self.with(|region| region.advise(start..end, advice))
    }

    /// Writes the modified pages to the file, while other threads run.
    fn flush(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<()> {
        let flushed = py.detach(|| {
            let region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
            match &*region {
                Contents::Write(region) => Some(region.flush(start..end)),
                Contents::Own(_) | Contents::Read(_) => None,
            }
        });
        let needs = "one of `open` with the `mode` `r+` or `w+`, or a part of one";
        let flushed = flushed.ok_or_else(|| of_argument("array", "not written to a file", needs));
        flushed?.map_err(|error| of_regions(&error))
    }

    fn prefetch(&self, start: usize, end: usize) -> PyResult<()> {
        self.with(|region| region.prefetch(start..end))
    }
}

impl Region {
    fn new(contents: Contents) -> Region {
        let region = contents.region();
        Region {
            address: region.address(),
            bytes: region.len(),
            region: Mutex::new(contents),
        }
    }

    fn with(
        &self,
        body: impl FnOnce(&tidemark_regions::Region) -> Result<(), Error>,
    ) -> PyResult<()> {
        let region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        body(region.region()).map_err(|error| of_regions(&error))
    }
}

impl Contents {
    fn region(&self) -> &tidemark_regions::Region {
        match self {
            Contents::Own(region) => region,
            Contents::Read(region) => region,
            Contents::Write(region) => region,
        }
    }
}

/// The bytes that a text like `64M` names.
#[pyfunction]
pub fn parse_size(name: &str, text: &str) -> PyResult<u64> {
    quantity::parse(name, text).map_err(|refusal| PyValueError::new_err(refusal.to_string()))
}

fn of_stores(error: &tidemark_stores::Error) -> PyErr {
    let text = error.to_string();
    match error {
        tidemark_stores::Error::Address { .. } => PyValueError::new_err(text),
        tidemark_stores::Error::Store { .. } => PyOSError::new_err(text),
    }
}

fn of_regions(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Size { .. }
        | Error::Policy { .. }
        | Error::FileKind { .. }
        | Error::FileShort { .. }
        | Error::FileFar { .. }
        | Error::PagerFar { .. }
        | Error::Empty
        | Error::Range { .. } => PyValueError::new_err(text),
        // By its number Python finds the kind of error that programs look for.
        Error::File { error, .. } | Error::FileWrite { error, .. } => {
            PyOSError::new_err((error.raw_os_error(), text))
        }
        Error::FileInUse { .. } => PyBlockingIOError::new_err((libc::EWOULDBLOCK, text)),
        Error::TooLarge { .. } => pyo3::exceptions::PyMemoryError::new_err(text),
        Error::Swap { .. }
        | Error::System(_)
        | Error::PagerWrite { .. }
        | Error::FileCut { .. }
        | Error::FileHeld { .. } => PyOSError::new_err(text),
        Error::Forked => PyRuntimeError::new_err(text),
    }
}
