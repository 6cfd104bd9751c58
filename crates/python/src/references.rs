//! A trace in the form the analyses take, as columns.

use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::{PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;
use tidemark_lab::analysis::intervals::Intervals;
use tidemark_lab::analysis::reference_string::{ReferenceString, Touch};
use tidemark_lab::analysis::references::{Departure, Name};
use tidemark_lab::analysis::sight::Sight;
use tidemark_lab::analysis::{self, Choice, Loading};
use tidemark_trace::{Block, Blocks, Error, Granularity, Unpacker};

use crate::columns::{Column, column};
use crate::exceptions::{of_argument, of_trace};
use crate::pool;
use crate::trace::{
    Columns, check_ending, granularity_name, open, out_of_memory, parse_time_unit, time_unit_name,
};

/// Blocks unpacked at a time, ahead of the numbering of their pages.
const STRETCH: usize = 16;

/// References with densely numbered pages: what every analysis takes.
#[pyclass(frozen, module = "tidemark._tidemark")]
pub struct References {
    /// The page of each reference, numbered from 0 in the order of first appearance.
    #[pyo3(get)]
    page: Column<u32>,
    /// Virtual time after each reference; empty if that is the number of references.
    time: Column<u64>,
    /// The number of different pages.
    #[pyo3(get)]
    pub page_count: u32,
    /// The size of a page, in bytes.
    #[pyo3(get)]
    page_bytes: u64,
    /// The repeats that the recorder kept: `exact`, `quantum`, `window` or `regions`.
    #[pyo3(get)]
    granularity: &'static str,
    /// The length of a quantum in units of time, or of a window in ns.
    #[pyo3(get)]
    granularity_length: Option<u64>,
    /// The unit of times: `instructions`, `references` or `nanoseconds`.
    #[pyo3(get)]
    time_unit: &'static str,
    /// From the first reference to the end, in units of time.
    #[pyo3(get)]
    pub duration: u64,
    pub names: Vec<Name>,
    /// The pages that leave memory for good.
    departures: Vec<Departure>,
    touch: Touch,
    intervals: OnceLock<Intervals>,
}

#[pymethods]
impl References {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.page.bind(py).len()
    }

    /// Virtual time after each reference, or nothing if that is the number of references.
    #[getter]
    fn time(&self, py: Python<'_>) -> Option<Column<u64>> {
        match self.time.bind(py).len() {
            0 => None,
            _ => Some(self.time.clone_ref(py)),
        }
    }

    /// The name of each page in the trace: its process and its virtual page number.
    fn names(&self, py: Python<'_>) -> (Column<u32>, Column<u64>) {
        let names = self.names.iter();
        (
            column(py, names.clone().map(|name| name.process).collect()),
            column(py, names.map(|name| name.page).collect()),
        )
    }

    /// The number of each page among copies of one name; and the pages that leave memory for good,
    /// each with the number of references before.
    fn lives(&self, py: Python<'_>) -> (Column<u32>, Column<u64>, Column<u32>) {
        let copies = self.names.iter().map(|name| name.copy);
        let each = self.departures.iter();
        let before = each
            .clone()
            .flat_map(|one| one.pages.iter().map(|_| one.before));
        let pages = each.flat_map(|one| one.pages.iter().copied());
        (
            column(py, copies.collect()),
            column(py, before.collect()),
            column(py, pages.collect()),
        )
    }
}

impl References {
    fn new(py: Python<'_>, loaded: analysis::References) -> References {
        let (granularity, granularity_length) = granularity_name(loaded.granularity);
        let string = ReferenceString::of(&loaded);
        let (duration, touch) = (string.duration(), string.touch());
        References {
            page_count: loaded.page_count,
            page_bytes: loaded.page_bytes,
            granularity,
            granularity_length,
            time_unit: time_unit_name(loaded.time),
            duration,
            names: loaded.names,
            departures: loaded.departures,
            touch,
            intervals: OnceLock::new(),
            page: column(py, loaded.pages),
            time: column(py, loaded.times),
        }
    }

    /// Does `job` with the references, on every processor while other Python threads run.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn compute<T: Send>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(ReferenceString<'_>) -> T + Send,
    ) -> PyResult<T> {
        let page = self.page.bind(py).readonly();
        let time = self.time.bind(py).readonly();
        let (pages, times) = (page.as_slice()?, time.as_slice()?);
        pool::compute(py, || {
            let string = ReferenceString::new(pages, self.page_count);
            let string = string.at(times).lasting(self.touch);
            job(string.departing(&self.departures))
        })
    }

    /// The longest window that the trace was sampled in, in ns; `None` if it was not sampled.
    pub fn sampling_window(&self) -> Option<u64> {
        self.granularity_length
            .filter(|_| matches!(self.granularity, "window" | "regions"))
    }

    /// The measures for which there is an answer. `string` is this one's.
    pub fn sight(&self, string: ReferenceString<'_>) -> Sight {
        match self.sampling_window() {
            Some(longest) => Sight::in_windows(string, &self.names, longest),
            None => Sight::FULL,
        }
    }

    /// The intervals of `string`, which is this one's; measured once.
    pub fn intervals(&self, string: ReferenceString<'_>) -> &Intervals {
        self.intervals.get_or_init(|| Intervals::measure(string))
    }
}

/// Pages as they come from Python.
#[derive(FromPyObject)]
pub enum Pages<'py> {
    /// Numbers of 64 bits.
    Wide(PyReadonlyArray1<'py, u64>),
    /// Numbers of 32 bits.
    Narrow(PyReadonlyArray1<'py, u32>),
}

/// Loads the trace at `path`, or from the columns `read` from it; of the processes with these
/// numbers, or of all.
#[pyfunction]
pub fn load(
    py: Python<'_>,
    path: PathBuf,
    columns: Option<&Bound<'_, Columns>>,
    processes: Option<Vec<u32>>,
) -> PyResult<References> {
    match columns {
        Some(columns) => load_columns(py, columns.get(), processes),
        None => load_file(py, path, processes),
    }
}

/// Numbers the pages of an array.
#[pyfunction]
pub fn number(
    py: Python<'_>,
    page: Pages<'_>,
    time: Option<PyReadonlyArray1<'_, u64>>,
    page_bytes: u64,
    time_unit: &str,
) -> PyResult<References> {
    if !page_bytes.is_power_of_two() {
        return Err(of_argument("page_bytes", page_bytes, "a power of two"));
    }
    let times = match &time {
        Some(time) => time.as_slice()?,
        None => &[],
    };
    let unit = parse_time_unit(time_unit)?;
    let mut loaded = match &page {
        Pages::Wide(page) => {
            let page = page.as_slice()?;
            py.detach(|| analysis::References::from_pages(page.iter().copied()))
        }
        Pages::Narrow(page) => {
            let page = page.as_slice()?;
            py.detach(|| analysis::References::from_pages(page.iter().map(|&page| page.into())))
        }
    };
    loaded.page_bytes = page_bytes;
    loaded.times = times.to_vec();
    loaded.time = unit;
    loaded.granularity = Granularity::Exact;
    Ok(References::new(py, loaded))
}

/// Makes what was pickled anew: its columns, the process and number of each page, what
/// [`lives`](References::lives) tells, the size of a page, the granularity by name and length, and
/// the unit of time.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python keeps each")]
pub fn restore(
    py: Python<'_>,
    page: PyReadonlyArray1<'_, u32>,
    time: Option<PyReadonlyArray1<'_, u64>>,
    names: (PyReadonlyArray1<'_, u32>, PyReadonlyArray1<'_, u64>),
    lives: (
        PyReadonlyArray1<'_, u32>,
        PyReadonlyArray1<'_, u64>,
        PyReadonlyArray1<'_, u32>,
    ),
    page_bytes: u64,
    granularity: (String, Option<u64>),
    time_unit: &str,
) -> PyResult<References> {
    let (processes, numbers) = (names.0.as_slice()?, names.1.as_slice()?);
    let (copies, before, departed) = (
        lives.0.as_slice()?,
        lives.1.as_slice()?,
        lives.2.as_slice()?,
    );
    let pages = page.as_slice()?;
    let times = match &time {
        Some(time) => time.as_slice()?,
        None => &[],
    };
    let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    let is_whole = pages.iter().all(|&page| page < count)
        && processes.len() == numbers.len()
        && copies.len() == numbers.len()
        && before.len() == departed.len()
        && before.is_sorted()
        && departed.iter().all(|&page| page < count)
        && (times.is_empty() || times.len() == pages.len());
    if !is_whole {
        let needs = "columns of one length, and a name for each page";
        return Err(of_argument("state", "inconsistent", needs));
    }
    let names = processes.iter().zip(numbers).zip(copies);
    let names = names.map(|((&process, &page), &copy)| Name {
        process,
        copy,
        page,
    });
    let loaded = analysis::References {
        pages: pages.to_vec(),
        times: times.to_vec(),
        page_count: count,
        names: names.collect(),
        visits: Vec::new(),
        sizes: Vec::new(),
        common: std::collections::BTreeMap::new(),
        departures: collect_departures(before, departed),
        alive_max: count,
        page_bytes,
        granularity: match (granularity.0.as_str(), granularity.1) {
            ("quantum", Some(length)) => Granularity::Quantum(length),
            ("window", Some(length)) => Granularity::Window(length),
            ("regions", Some(length)) => Granularity::Regions(length),
            _ => Granularity::Exact,
        },
        time: parse_time_unit(time_unit)?,
    };
    Ok(References::new(py, loaded))
}

/// The departures of which the columns tell.
fn collect_departures(before: &[u64], pages: &[u32]) -> Vec<Departure> {
    let each: Vec<(u64, u32)> = before.iter().copied().zip(pages.iter().copied()).collect();
    let together = each.chunk_by(|one, next| one.0 == next.0);
    together
        .map(|some| Departure {
            before: some[0].0,
            pages: some.iter().map(|&(_, page)| page).collect(),
        })
        .collect()
}

fn load_file(py: Python<'_>, path: PathBuf, processes: Option<Vec<u32>>) -> PyResult<References> {
    let blocks = open(py, &path)?;
    check_ending(&path, &blocks)?;
    let choice = choose(processes, blocks.index().processes())?;
    let entries = blocks.index().entries.iter().enumerate();
    let chosen: Vec<usize> = entries
        .filter(|(_, entry)| takes(&choice, entry.process))
        .map(|(number, _)| number)
        .collect();
    let pool = pool::threads()?;
    let processes = count_chosen(&choice, blocks.index().processes());
    let mut loading = Loading::of(blocks.header(), choice, processes);
    for stretch in chosen.chunks(STRETCH) {
        let unpacked = py.detach(|| {
            let unpacked = pool.install(|| unpack_all(&blocks, stretch))?;
            unpacked.iter().for_each(|block| loading.take(block));
            Ok(())
        });
        unpacked.map_err(|error| of_trace(&path, &error))?;
        py.check_signals()?;
    }
    Ok(References::new(py, py.detach(|| loading.finish())))
}

fn load_columns(
    py: Python<'_>,
    columns: &Columns,
    processes: Option<Vec<u32>>,
) -> PyResult<References> {
    let last = columns.outlines.iter().map(|outline| outline.process).max();
    let choice = choose(processes, last.map_or(0, |last| last + 1))?;
    let page = columns.page.bind(py).readonly();
    let time = columns.time.bind(py).readonly();
    let kinds = columns.kinds.bind(py).readonly();
    let (mut pages, mut times) = (page.as_slice()?, time.as_slice()?);
    let mut kinds = kinds.as_slice()?;
    let processes = count_chosen(&choice, last.map_or(0, |last| last + 1));
    let loaded = py.detach(|| {
        let mut loading = Loading::of(&columns.header, choice, processes);
        let mut block = Block::default();
        for outline in &columns.outlines {
            let (page, kind, time);
            (page, pages) = pages.split_at(outline.records);
            (kind, kinds) = kinds.split_at(outline.records);
            (time, times) = times.split_at(outline.records);
            block.clear();
            block.process = outline.process;
            block.time_start = outline.time_start;
            block.pages.extend_from_slice(page);
            block.kinds.extend_from_slice(kind);
            let mut before = outline.time_start;
            block.gaps.extend(time.iter().map(|&time| {
                let gap = time - std::mem::replace(&mut before, time);
                u32::try_from(gap).expect("times are sums of gaps")
            }));
            block.events.extend_from_slice(&outline.events);
            loading.take(&block);
        }
        loading.finish()
    });
    Ok(References::new(py, loaded))
}

/// Checks that the trace has the processes asked for.
fn choose(processes: Option<Vec<u32>>, count: u32) -> PyResult<Choice> {
    let Some(processes) = processes else {
        return Ok(Choice::All);
    };
    match processes.iter().find(|&&process| process >= count) {
        Some(process) => {
            let needs = format!("numbers below {count}, the trace's number of processes");
            Err(of_argument("processes", process, &needs))
        }
        None => Ok(Choice::Only(processes)),
    }
}

fn count_chosen(choice: &Choice, count: u32) -> usize {
    match choice {
        Choice::All => count as usize,
        Choice::Only(chosen) => chosen.len(),
    }
}

fn takes(choice: &Choice, process: u32) -> bool {
    match choice {
        Choice::All => true,
        Choice::Only(chosen) => chosen.contains(&process),
    }
}

fn unpack_all(blocks: &Blocks, numbers: &[usize]) -> Result<Vec<Block>, Error> {
    numbers
        .par_iter()
        .map_init(Unpacker::new, |unpacker, &number| {
            let unpacker = unpacker.as_mut().map_err(|_| out_of_memory())?;
            let mut block = Block::default();
            blocks.read(number, unpacker, &mut block)?;
            Ok(block)
        })
        .collect()
}
