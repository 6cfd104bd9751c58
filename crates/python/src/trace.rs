//! Trace files: what they hold, as columns; and new ones from columns.

use std::fs::File;
use std::path::{Path, PathBuf};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use tidemark_lab::analysis::Loading;
use tidemark_trace::container::Index;
use tidemark_trace::{
    Appender, Block, Blocks, Ending, Error, ErrorKind, Granularity, Header, Kinds, Place, Placed,
    Repeats, TimeUnit, Unpacker, Writer,
};

use crate::columns::{Column, column};
use crate::events::{self, Located};
use crate::exceptions::{of_argument, of_system, of_trace};
use crate::pool;

/// Blocks unpacked before Python is asked whether it was interrupted.
const STRETCH: usize = 64;

/// The summary of a trace.
#[pyclass(frozen, get_all, module = "tidemark._tidemark")]
pub struct Summary {
    /// The size of a page, in bytes.
    page_bytes: u64,
    /// The repeats that the recorder kept: `exact`, `quantum`, `window` or `regions`.
    granularity: &'static str,
    /// The length of a quantum in units of time, or of a window in ns.
    granularity_length: Option<u64>,
    /// The unit of times: `instructions`, `references` or `nanoseconds`.
    time_unit: &'static str,
    /// The program that made the trace.
    source: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// The number of records.
    records: u64,
    /// The number of events.
    events: u64,
    /// The number of processes.
    processes: u32,
    /// The number of blocks.
    blocks: u64,
    /// The length of the file, in bytes.
    bytes: u64,
    /// The offset at which the file was cut off, in bytes, if it was.
    cut_at: Option<u64>,
}

/// The records of a trace.
#[pyclass(frozen, module = "tidemark._tidemark")]
pub struct Columns {
    #[pyo3(get)]
    pub page: Column<u64>,
    #[pyo3(get)]
    pub kinds: Column<u8>,
    #[pyo3(get)]
    pub time: Column<u64>,
    /// The process of each block.
    #[pyo3(get)]
    block_process: Column<u32>,
    /// The number of records of each block.
    #[pyo3(get)]
    block_records: Column<u64>,
    #[pyo3(get)]
    summary: Py<Summary>,
    pub header: Header,
    pub outlines: Vec<Outline>,
    events: Vec<Located>,
}

/// A block without its columns: what it takes to load the references again.
pub struct Outline {
    pub process: u32,
    pub records: usize,
    pub time_start: u64,
    /// The events that loading heeds.
    pub events: Vec<Placed>,
}

#[pymethods]
impl Columns {
    /// The events: records before each, processes, times, kinds, and the other fields.
    #[expect(clippy::type_complexity, reason = "five columns, named in Python")]
    fn events<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Column<u64>,
        Column<u32>,
        Column<u64>,
        Vec<&'static str>,
        Vec<Bound<'py, PyDict>>,
    )> {
        let events = &self.events;
        let fields: PyResult<Vec<_>> = events
            .iter()
            .map(|located| events::fields(py, &located.event))
            .collect();
        Ok((
            column(py, events.iter().map(|located| located.record).collect()),
            column(py, events.iter().map(|located| located.process).collect()),
            column(py, events.iter().map(|located| located.time).collect()),
            events
                .iter()
                .map(|located| events::name(&located.event))
                .collect(),
            fields?,
        ))
    }
}

/// Opens the trace at `path` without reading its blocks.
#[pyfunction]
pub fn summarize(py: Python<'_>, path: PathBuf) -> PyResult<Summary> {
    let blocks = open(py, &path)?;
    summary(&path, &blocks)
}

/// Reads the trace at `path`, on every processor.
#[pyfunction]
pub fn read(py: Python<'_>, path: PathBuf) -> PyResult<Columns> {
    let blocks = open(py, &path)?;
    check_ending(&path, &blocks)?;
    let entries = &blocks.index().entries;
    let records = usize::try_from(blocks.index().records()).expect("an address has 64 bits");
    let mut page = vec![0; records];
    let mut kinds = vec![0; records];
    let mut time = vec![0; records];
    let mut events = Vec::new();
    {
        let pool = pool::threads()?;
        let mut pieces = split(blocks.index(), &mut page, &mut kinds, &mut time);
        for stretch in pieces.chunks_mut(STRETCH) {
            let placed = py.detach(|| pool.install(|| fill_all(&blocks, stretch)));
            for (piece, placed) in stretch.iter().zip(placed.map_err(|e| of_trace(&path, &e))?) {
                let process = entries[piece.number].process;
                events.extend(placed.into_iter().map(|placed| Located {
                    record: piece.record + u64::from(placed.after),
                    process,
                    time: placed.time,
                    event: placed.event,
                }));
            }
            py.check_signals()?;
        }
    }
    let processes = entries.iter().map(|entry| entry.process).collect();
    let lengths = entries.iter().map(|entry| entry.records.into()).collect();
    Ok(Columns {
        page: column(py, page),
        kinds: column(py, kinds),
        time: column(py, time),
        block_process: column(py, processes),
        block_records: column(py, lengths),
        summary: Py::new(py, summary(&path, &blocks)?)?,
        header: blocks.header().clone(),
        outlines: outlines(blocks.index(), &events),
        events,
    })
}

/// Writes a trace of one process.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
pub fn write(
    py: Python<'_>,
    path: PathBuf,
    page: PyReadonlyArray1<'_, u64>,
    kinds: Option<PyReadonlyArray1<'_, u8>>,
    time: Option<PyReadonlyArray1<'_, u64>>,
    page_bytes: u64,
    time_unit: &str,
    source: String,
    command: Vec<String>,
) -> PyResult<u64> {
    let header = Header {
        page_bytes,
        granularity: Granularity::Exact,
        time: parse_time_unit(time_unit)?,
        source,
        command,
        speed: None,
    };
    let page = page.as_slice()?;
    let kinds = kinds.as_ref().map(|kinds| kinds.as_slice()).transpose()?;
    let time = time.as_ref().map(|time| time.as_slice()).transpose()?;
    let file = File::create(&path).map_err(|error| of_system(&path, &error))?;
    py.detach(|| write_all(file, &header, page, kinds, time))
        .map_err(|error| of_trace(&path, &error))
}

/// Opens a trace while other Python threads run: one without an index is walked through.
pub fn open(py: Python<'_>, path: &Path) -> PyResult<Blocks> {
    py.detach(|| Blocks::open(path))
        .map_err(|error| of_trace(path, &error))
}

/// Holds a trace to what the commands take: one that was cut inside a block is a copy that broke
/// off; one that was cut behind a block is a recording that was ended from outside.
pub fn check_ending(path: &Path, blocks: &Blocks) -> PyResult<()> {
    match blocks.ending() {
        Ending::Cut { at, rest: 1.. } => {
            let records = blocks.index().records();
            let error = Error::at(Place::Byte(at), ErrorKind::Cut { records });
            Err(of_trace(path, &error))
        }
        Ending::Cut { rest: 0, .. } | Ending::Complete | Ending::Unknown => Ok(()),
    }
}

/// The unit of time of that name.
pub fn parse_time_unit(name: &str) -> PyResult<TimeUnit> {
    match name {
        "instructions" => Ok(TimeUnit::Instructions),
        "references" => Ok(TimeUnit::References),
        "nanoseconds" => Ok(TimeUnit::Nanoseconds),
        _ => {
            let needs = "`instructions`, `references` or `nanoseconds`";
            Err(of_argument("time_unit", format!("`{name}`"), needs))
        }
    }
}

/// The name of a unit of time.
pub fn time_unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Instructions => "instructions",
        TimeUnit::References => "references",
        TimeUnit::Nanoseconds => "nanoseconds",
    }
}

/// The name of a granularity, and its length.
pub fn granularity_name(granularity: Granularity) -> (&'static str, Option<u64>) {
    match granularity {
        Granularity::Exact => ("exact", None),
        Granularity::Quantum(length) => ("quantum", Some(length)),
        Granularity::Window(length) => ("window", Some(length)),
        Granularity::Regions(length) => ("regions", Some(length)),
    }
}

fn summary(path: &Path, blocks: &Blocks) -> PyResult<Summary> {
    let header = blocks.header();
    let index = blocks.index();
    let (granularity, granularity_length) = granularity_name(header.granularity);
    let file = std::fs::metadata(path).map_err(|error| of_system(path, &error))?;
    Ok(Summary {
        page_bytes: header.page_bytes,
        granularity,
        granularity_length,
        time_unit: time_unit_name(header.time),
        source: header.source.clone(),
        command: header.command.clone(),
        records: index.records(),
        events: index.events(),
        processes: index.processes(),
        blocks: index.entries.len() as u64,
        bytes: file.len(),
        cut_at: match blocks.ending() {
            Ending::Cut { at, .. } => Some(at),
            Ending::Complete | Ending::Unknown => None,
        },
    })
}

/// The place of one block in the columns.
struct Piece<'a> {
    number: usize,
    /// The number of records of the trace that come before.
    record: u64,
    page: &'a mut [u64],
    kinds: &'a mut [u8],
    time: &'a mut [u64],
}

fn split<'a>(
    index: &Index,
    mut page: &'a mut [u64],
    mut kinds: &'a mut [u8],
    mut time: &'a mut [u64],
) -> Vec<Piece<'a>> {
    let mut record = 0;
    let pieces = index.entries.iter().enumerate().map(|(number, entry)| {
        let records = entry.records as usize;
        let piece = Piece {
            number,
            record,
            page: page.split_off_mut(..records).expect("the index was summed"),
            kinds: kinds
                .split_off_mut(..records)
                .expect("the index was summed"),
            time: time.split_off_mut(..records).expect("the index was summed"),
        };
        record += u64::from(entry.records);
        piece
    });
    pieces.collect()
}

/// Unpacks the blocks of `pieces` into them. The events of each come back.
fn fill_all(blocks: &Blocks, pieces: &mut [Piece<'_>]) -> Result<Vec<Vec<Placed>>, Error> {
    pieces
        .par_iter_mut()
        .map_init(
            || (Unpacker::new(), Block::default()),
            |(unpacker, block), piece| {
                let unpacker = unpacker.as_mut().map_err(|_| out_of_memory())?;
                blocks.read(piece.number, unpacker, block)?;
                piece.page.copy_from_slice(&block.pages);
                piece.kinds.copy_from_slice(&block.kinds);
                let mut now = block.time_start;
                for (time, &gap) in piece.time.iter_mut().zip(&block.gaps) {
                    now += u64::from(gap);
                    *time = now;
                }
                Ok(std::mem::take(&mut block.events))
            },
        )
        .collect()
}

/// No memory for an unpacker.
pub fn out_of_memory() -> Error {
    std::io::Error::from(std::io::ErrorKind::OutOfMemory).into()
}

fn outlines(index: &Index, events: &[Located]) -> Vec<Outline> {
    let mut events = events.iter();
    let mut record = 0;
    let outlines = index.entries.iter().map(|entry| {
        let own = events.by_ref().take(entry.events as usize);
        let heeded = own.filter(|located| Loading::heeds(&located.event));
        let outline = Outline {
            process: entry.process,
            records: entry.records as usize,
            time_start: entry.time_start,
            events: heeded
                .map(|located| Placed {
                    after: (located.record - record) as u32,
                    time: located.time,
                    event: located.event.clone(),
                })
                .collect(),
        };
        record += u64::from(entry.records);
        outline
    });
    outlines.collect()
}

fn write_all(
    file: File,
    header: &Header,
    page: &[u64],
    kinds: Option<&[u8]>,
    time: Option<&[u64]>,
) -> Result<u64, Error> {
    let mut appender = Appender::new(Writer::new(file, header)?, Repeats::Kept);
    let mut now = 0;
    for (place, &page) in page.iter().enumerate() {
        let gap = match time {
            Some(time) => time[place] - std::mem::replace(&mut now, time[place]),
            None => 1,
        };
        let kinds = Kinds(kinds.map_or(0, |kinds| kinds[place]));
        appender.append(0, page, kinds, gap)?;
    }
    let records = appender.records();
    appender.finish()?;
    Ok(records)
}
