//! Comma-separated values, one reference a line: the page or address, and what else there is.
//!
//! Columns are chosen by number, from 1, or by their names in the first line. Without a choice the
//! names in the first line choose, if they are known and one alone is a page's. Nothing else is
//! guessed: any number looks like a page's. A file of one column without a name holds pages.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use csv_core::ReadRecordResult;

use crate::appender::Appender;
use crate::container::fill;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{Event, Header, Kinds, TimeUnit};

use super::{malformed, number};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// The most columns.
const COLUMNS_MAX: usize = 1 << 10;

/// The most processes.
const PROCESSES_MAX: usize = 1 << 20;

/// The longest access, in bytes, and so the most pages of one line.
const ACCESS_BYTES_MAX: u64 = 1 << 20;

/// The most characters of the first line's names that an error repeats.
const NAMES_SHOWN_MAX: usize = 300;

/// Names of columns that are known without being chosen, in lower case, with `_` between words.
/// An offset is in bytes, as in block traces of servers.
const NAMES: [(&str, Role); 34] = [
    ("page", Role::Page),
    ("page_number", Role::Page),
    ("page_id", Role::Page),
    ("page_no", Role::Page),
    ("pageno", Role::Page),
    ("vpn", Role::Page),
    ("pfn", Role::Page),
    ("block", Role::Page),
    ("block_number", Role::Page),
    ("block_id", Role::Page),
    ("block_no", Role::Page),
    ("blockno", Role::Page),
    ("lbn", Role::Page),
    ("lba", Role::Page),
    ("obj_id", Role::Page),
    ("object_id", Role::Page),
    ("object", Role::Page),
    ("obj", Role::Page),
    ("key", Role::Page),
    ("id", Role::Page),
    ("address", Role::Address),
    ("addr", Role::Address),
    ("vaddr", Role::Address),
    ("virtual_address", Role::Address),
    ("offset", Role::Address),
    ("process", Role::Process),
    ("process_id", Role::Process),
    ("pid", Role::Process),
    ("kinds", Role::Kinds),
    ("kind", Role::Kinds),
    ("access", Role::Kinds),
    ("time", Role::Time),
    ("bytes", Role::Bytes),
    ("access_bytes", Role::Bytes),
];

/// The contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The number of a page.
    Page,
    /// An address, in bytes.
    Address,
    /// The number of bytes accessed from the address on.
    Bytes,
    /// The number of a process.
    Process,
    /// The kinds of access: letters of `x` or `f` (fetch), `r` or `l` (load), `w` or `s` (store),
    /// `m` (load and store), `k` (kernel), or such a word.
    Kinds,
    /// The process's time at the reference.
    Time,
}

/// The column of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The column of this number, from 1.
    Number(usize),
    /// The column of this name in the first line.
    Name(String),
}

/// The form of the lines.
#[derive(Clone, Debug)]
pub struct Form {
    /// The delimiter between columns.
    pub delimiter: u8,
    /// True if numbers of pages and addresses are hexadecimal without `0x`.
    pub is_hexadecimal: bool,
    /// The size of a page in bytes, a power of two: what addresses are divided by.
    pub page_bytes: u64,
    /// The unit of the time column.
    pub time: TimeUnit,
    /// The columns chosen; empty to look at the first line.
    pub columns: Vec<(Role, Column)>,
}

/// The column of each role, from 0.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    page: Option<usize>,
    address: Option<usize>,
    bytes: Option<usize>,
    process: Option<usize>,
    kinds: Option<usize>,
    time: Option<usize>,
}

/// Reads lines of columns in bounded memory.
struct Rows<R> {
    source: R,
    reader: csv_core::Reader,
    input: Vec<u8>,
    start: usize,
    end: usize,
    output: Vec<u8>,
    ends: Vec<usize>,
    columns: usize,
    line: u64,
}

/// A file of such lines, of which the first has been read.
pub struct Table<'a, R> {
    rows: Rows<R>,
    form: &'a Form,
    places: Places,
    /// True if the line read last is still to be appended.
    is_pending: bool,
}

impl<'a, R: Read> Table<'a, R> {
    /// Begins to read `source`: finds its columns.
    ///
    /// # Errors
    /// A chosen column is missing, or reading fails.
    pub fn open(source: R, form: &'a Form) -> Result<Table<'a, R>, Error> {
        let mut rows = Rows::new(source, form.delimiter);
        let has_line = rows.next()?;
        let (places, has_names) = match has_line {
            true => find_columns(&rows, form)?,
            false => (Places::default(), false),
        };
        Ok(Table {
            rows,
            form,
            places,
            is_pending: has_line && !has_names,
        })
    }

    /// The header of the trace. Without a time column a reference is the unit of time.
    pub fn header(&self) -> Header {
        let has_time = self.places.time.is_some();
        let unit = self.form.time;
        Header {
            time: if has_time { unit } else { TimeUnit::References },
            ..super::header("comma-separated values", self.form.page_bytes)
        }
    }

    /// Appends what the file holds.
    ///
    /// # Errors
    /// A field is none of its role, a process's time goes back, or reading or writing fails.
    pub fn import<W: Write>(mut self, out: &mut Appender<W>) -> Result<(), Error> {
        let mut processes = BTreeMap::new();
        while std::mem::take(&mut self.is_pending) || self.rows.next()? {
            append(&self.rows, &self.places, self.form, &mut processes, out)?;
        }
        Ok(())
    }
}

/// Appends one line.
fn append<W: Write, R: Read>(
    rows: &Rows<R>,
    places: &Places,
    form: &Form,
    processes: &mut BTreeMap<u64, u32>,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let field = |place: Option<usize>, expected, is_hexadecimal| {
        let Some(place) = place else { return Ok(None) };
        let text = rows.field(place).unwrap_or_default().trim_ascii();
        match number(text, is_hexadecimal) {
            Some(number) => Ok(Some(number)),
            None => Err(malformed(rows.place(), expected, text)),
        }
    };
    let page = field(places.page, "a page number", form.is_hexadecimal)?;
    let address = field(places.address, "an address", form.is_hexadecimal)?;
    let process = field(places.process, "the number of a process", false)?;
    let time = field(places.time, "a time, in whole units", false)?;
    let bytes = field(places.bytes, "a number of bytes", false)?.unwrap_or(1);
    let kinds = places.kinds.map_or(Ok(Kinds::default()), |place| {
        let text = rows.field(place).unwrap_or_default().trim_ascii();
        let expected = "kinds of access, like `r`, `w` or `store`";
        kinds(text).ok_or_else(|| malformed(rows.place(), expected, text))
    })?;
    let process = number_process(process.unwrap_or(0), time, processes, rows, out)?;
    let mut gap = match time {
        None => 1,
        Some(time) => time.checked_sub(out.time(process)).ok_or_else(|| {
            let expected = "a time that does not go back in its process";
            malformed(rows.place(), expected, time.to_string().as_bytes())
        })?,
    };
    if bytes > ACCESS_BYTES_MAX {
        let found = bytes.to_string();
        let expected = "an access of at most 1048576 bytes";
        return Err(malformed(rows.place(), expected, found.as_bytes()));
    }
    let shift = form.page_bytes.trailing_zeros();
    let (first, last) = match (page, address) {
        (Some(page), _) => (page, page),
        (None, address) => {
            let address = address.expect("one of both has a column");
            (
                address >> shift,
                address.saturating_add(bytes.saturating_sub(1)) >> shift,
            )
        }
    };
    for page in first..=last {
        out.append(process, page, kinds, std::mem::take(&mut gap))?;
    }
    Ok(())
}

/// The number in the trace of the process called `name`, whose first reference is at `time`.
fn number_process<W: Write, R: Read>(
    name: u64,
    time: Option<u64>,
    processes: &mut BTreeMap<u64, u32>,
    rows: &Rows<R>,
    out: &mut Appender<W>,
) -> Result<u32, Error> {
    if let Some(&number) = processes.get(&name) {
        return Ok(number);
    }
    if processes.len() == PROCESSES_MAX {
        let found = name.to_string();
        let expected = "at most 1048576 processes";
        return Err(malformed(rows.place(), expected, found.as_bytes()));
    }
    let number = u32::try_from(processes.len()).expect("they are bounded");
    processes.insert(name, number);
    out.begin(number, time.unwrap_or(0))?;
    if let Ok(pid) = u32::try_from(name)
        && pid != number
    {
        let program = String::new();
        let start = Event::Start {
            pid,
            parent: 0,
            program,
        };
        out.append_event(number, start)?;
    }
    Ok(number)
}

/// Finds the columns, with the help of the first line; also says whether that holds names.
fn find_columns<R: Read>(rows: &Rows<R>, form: &Form) -> Result<(Places, bool), Error> {
    if form.columns.is_empty() {
        return match rows.fields().any(|field| is_number(field, form)) {
            true => Ok((only_column(rows)?, false)),
            false => Ok((known_columns(rows)?, true)),
        };
    }
    let named = |name: &str| {
        let mut fields = rows.fields();
        fields.position(|field| field.eq_ignore_ascii_case(name.as_bytes()))
    };
    let mut places = Places::default();
    for (role, column) in &form.columns {
        let at = match column {
            Column::Number(number) => number.checked_sub(1).filter(|&at| at < rows.columns),
            Column::Name(name) => named(name),
        };
        let Some(at) = at else {
            let name = match column {
                Column::Number(number) => number.to_string(),
                Column::Name(name) => name.clone(),
            };
            return Err(Error::at(rows.place(), ErrorKind::NoColumn { name }));
        };
        places.set(*role, at);
    }
    let at = places.page.or(places.address).unwrap_or(0);
    let field = rows.field(at).unwrap_or_default().trim_ascii();
    Ok((places, !is_number(field, form)))
}

/// Returns true if a field is no name. What begins as a number and is none is for its line to
/// complain of.
fn is_number(field: &[u8], form: &Form) -> bool {
    field.first().is_some_and(u8::is_ascii_digit) || number(field, form.is_hexadecimal).is_some()
}

/// The columns of a file without names: there must be no choice.
fn only_column<R>(rows: &Rows<R>) -> Result<Places, Error> {
    let columns = rows.columns;
    match columns {
        1 => Ok(Places {
            page: Some(0),
            ..Places::default()
        }),
        _ => Err(Error::at(
            rows.place(),
            ErrorKind::NamelessColumns { columns },
        )),
    }
}

/// The columns that the first line's names choose.
fn known_columns<R>(rows: &Rows<R>) -> Result<Places, Error> {
    let role_of = |field: &[u8]| {
        let name = String::from_utf8_lossy(field).to_ascii_lowercase();
        let name = name.replace([' ', '-', '.'], "_");
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, role)| *role)
    };
    let is_page = |field: &&[u8]| matches!(role_of(field), Some(Role::Page | Role::Address));
    let names = rows.fields().filter(is_page).count();
    if names != 1 {
        let chosen = rows.fields().filter(|field| names == 0 || is_page(field));
        let listed: Vec<_> = chosen.map(|field| String::from_utf8_lossy(field)).collect();
        let listed: String = listed.join(", ").chars().take(NAMES_SHOWN_MAX).collect();
        let kind = match names {
            0 => ErrorKind::UnknownColumns { names: listed },
            _ => ErrorKind::AmbiguousColumns { names: listed },
        };
        return Err(Error::at(rows.place(), kind));
    }
    let mut places = Places::default();
    for (at, field) in rows.fields().enumerate() {
        if let Some(role) = role_of(field) {
            places.set(role, at);
        }
    }
    Ok(places)
}

/// The kinds of access that `text` names.
fn kinds(text: &[u8]) -> Option<Kinds> {
    let words: [(&[u8], Kinds); 9] = [
        (b"fetch", Kinds::FETCH),
        (b"execute", Kinds::FETCH),
        (b"instruction", Kinds::FETCH),
        (b"load", Kinds::LOAD),
        (b"read", Kinds::LOAD),
        (b"store", Kinds::STORE),
        (b"write", Kinds::STORE),
        (b"modify", Kinds::LOAD.with(Kinds::STORE)),
        (b"kernel", Kinds::KERNEL),
    ];
    let word = words
        .iter()
        .find(|(word, _)| text.eq_ignore_ascii_case(word));
    if let Some((_, kinds)) = word {
        return Some(*kinds);
    }
    text.iter().try_fold(Kinds::default(), |all, letter| {
        let one = match letter.to_ascii_lowercase() {
            b'x' | b'f' | b'i' => Kinds::FETCH,
            b'r' | b'l' => Kinds::LOAD,
            b'w' | b's' => Kinds::STORE,
            b'm' => Kinds::LOAD.with(Kinds::STORE),
            b'k' => Kinds::KERNEL,
            _ => return None,
        };
        Some(all.with(one))
    })
}

impl Places {
    fn set(&mut self, role: Role, at: usize) {
        let place = match role {
            Role::Page => &mut self.page,
            Role::Address => &mut self.address,
            Role::Bytes => &mut self.bytes,
            Role::Process => &mut self.process,
            Role::Kinds => &mut self.kinds,
            Role::Time => &mut self.time,
        };
        *place = Some(at);
    }
}

impl<R: Read> Rows<R> {
    fn new(source: R, delimiter: u8) -> Rows<R> {
        Rows {
            source,
            reader: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            input: vec![0; 1 << 16],
            start: 0,
            end: 0,
            output: vec![0; LINE_BYTES_MAX],
            ends: vec![0; COLUMNS_MAX],
            columns: 0,
            line: 0,
        }
    }

    /// Reads the next line; `false` behind the last.
    fn next(&mut self) -> Result<bool, Error> {
        let (mut written, mut ended) = (0, 0);
        self.line = self.reader.line();
        loop {
            // An empty input would stand for the end.
            if self.start == self.end {
                self.start = 0;
                self.end = fill(&mut self.source, &mut self.input)?;
            }
            let input = &self.input[self.start..self.end];
            let (result, read, wrote, ends) = self.reader.read_record(
                input,
                &mut self.output[written..],
                &mut self.ends[ended..],
            );
            self.start += read;
            written += wrote;
            ended += ends;
            let place = Place::Line(self.line);
            let found = &self.output[..written];
            match result {
                ReadRecordResult::Record => {
                    self.columns = ended;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    return Err(malformed(place, "a line of at most 65536 bytes", found));
                }
                ReadRecordResult::OutputEndsFull => {
                    return Err(malformed(place, "at most 1024 columns", found));
                }
            }
        }
    }
}

impl<R> Rows<R> {
    /// The fields of the line, without blanks around.
    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.columns).map(|at| self.field(at).unwrap_or_default().trim_ascii())
    }

    fn field(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.columns].get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.output.get(start..end)
    }

    fn place(&self) -> Place {
        Place::Line(self.line)
    }
}
