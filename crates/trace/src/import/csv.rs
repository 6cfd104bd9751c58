//! Comma-separated values, one reference a line: the page or address, and what else there is.
//!
//! Columns are chosen by number, from 1, or by their names in the first line. Without a choice the
//! names in the first line choose, if they are known and one alone is a page's. Nothing else is
//! guessed: any number looks like a page's. A file of one column without a name holds pages.
//! [`Table::used`] and [`Table::unused`] are what is used and what is not. Lines that begin with
//! `#` are left out.

mod places;
mod rows;
mod visits;
mod words;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use xxhash_rust::xxh3::xxh3_64;

use crate::appender::Appender;
use crate::error::{Error, ErrorKind, Otherwise, Useless};
use crate::event::{Event, LifeEvent};
use crate::model::{Header, Kinds, TimeUnit};

use super::time::{Scale, parse};
use super::{PAGES_MAX, malformed, malformed_but, number};
use places::Places;
use rows::Rows;
use visits::Visits;

/// The most processes.
const PROCESSES_MAX: usize = 1 << 20;

/// The longest access, in bytes.
const ACCESS_BYTES_MAX: u64 = 1 << 40;

/// The unit of a sector, whatever the size of a page.
const SECTOR_BYTES: u64 = 512;

/// The contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The number of a page.
    Page,
    /// An address, in bytes.
    Address,
    /// An address, in sectors of 512 bytes.
    Sector,
    /// A key, which may be any text: its hash is the page.
    Key,
    /// The number of bytes accessed from the page or address on.
    Bytes,
    /// The number of pages accessed from the page on.
    Count,
    /// The number of a process.
    Process,
    /// The kinds of access: letters of `x` or `f` (fetch), `r` or `l` (load), `w` or `s` (store),
    /// `m` (load and store), `k` (kernel), or such a word.
    Kinds,
    /// The process's time at the reference.
    Time,
    /// The visit that wants the object: lines that follow one another with the same text are one.
    /// A page is an object then, and `Bytes` its size.
    Visit,
}

/// The column of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The column of this number, from 1.
    Number(usize),
    /// The column of this name in the first line.
    Name(String),
}

/// The unit of the time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// As the column's name tells; a name that tells none is refused.
    ByName,
    /// This unit.
    In(Scale),
    /// Times are left out: each reference takes a unit.
    None,
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
    pub time: Clock,
    /// The columns chosen; empty to look at the first line.
    pub columns: Vec<(Role, Column)>,
}

/// A file of such lines, of which the first has been read.
pub struct Table<'a, R> {
    rows: Rows<R>,
    form: &'a Form,
    places: Places,
    /// True if the line read last is still to be appended.
    is_pending: bool,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 10] = [
        Role::Page,
        Role::Address,
        Role::Sector,
        Role::Key,
        Role::Bytes,
        Role::Count,
        Role::Process,
        Role::Kinds,
        Role::Time,
        Role::Visit,
    ];

    /// Its name, as `--columns` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Page => "page",
            Role::Address => "address",
            Role::Sector => "sector",
            Role::Key => "key",
            Role::Bytes => "bytes",
            Role::Count => "count",
            Role::Process => "process",
            Role::Kinds => "kinds",
            Role::Time => "time",
            Role::Visit => "visit",
        }
    }
}

impl<'a, R: Read> Table<'a, R> {
    /// Begins to read `source`: finds its columns.
    ///
    /// # Errors
    /// A chosen column is missing, a column of times tells no unit, or reading fails.
    pub fn open(source: R, form: &'a Form) -> Result<Table<'a, R>, Error> {
        let mut rows = Rows::new(source, form.delimiter);
        let (places, is_pending) = places::find(&mut rows, form)?;
        Ok(Table {
            rows,
            form,
            places,
            is_pending,
        })
    }

    /// The header of the trace. Without a time column a reference is the unit of time.
    pub fn header(&self) -> Header {
        let time = match self.places.of(Role::Time).and(self.places.scale) {
            None => TimeUnit::References,
            Some(Scale::Instructions) => TimeUnit::Instructions,
            Some(_) => TimeUnit::Nanoseconds,
        };
        Header {
            time,
            ..super::header("comma-separated values", self.form.page_bytes)
        }
    }

    /// The parts of each line that are used, each with its column.
    pub fn used(&self) -> String {
        self.places.used()
    }

    /// The columns that are not used; empty if all are.
    pub fn unused(&self) -> String {
        self.places.unused()
    }

    /// Refuses a part of the form that has no effect on the columns that were found.
    ///
    /// # Errors
    /// [`ErrorKind::Useless`].
    pub fn check_form(&self) -> Result<(), Error> {
        let is_timed = self.places.of(Role::Time).is_some();
        if matches!(self.form.time, Clock::In(_)) && !is_timed {
            return Err(Error::new(ErrorKind::Useless(Useless::TimeUnit)));
        }
        if self.form.is_hexadecimal && self.places.subject() == Role::Key {
            return Err(Error::new(ErrorKind::Useless(Useless::Hexadecimal)));
        }
        Ok(())
    }

    /// Appends what the file holds.
    ///
    /// # Errors
    /// A field is none of its role, a process's time goes back, an object's size changes, or
    /// reading or writing fails.
    pub fn import<W: Write>(mut self, out: &mut Appender<W>) -> Result<(), Error> {
        let mut processes = BTreeMap::new();
        let mut visits = Visits::default();
        while std::mem::take(&mut self.is_pending) || self.rows.next()? {
            let before = (&mut processes, &mut visits);
            append(&self.rows, &self.places, self.form, before, out)?;
        }
        Ok(())
    }
}

/// Appends one line, with what is known of the processes and visits before.
fn append<W: Write, R: Read>(
    rows: &Rows<R>,
    places: &Places,
    form: &Form,
    (processes, visits): (&mut BTreeMap<u64, u32>, &mut Visits),
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let process = whole(rows, places, Role::Process, "the number of a process")?;
    let time = time(rows, places)?;
    let kinds = match field(rows, places, Role::Kinds) {
        None => Kinds::default(),
        Some(text) => words::kinds(text).ok_or_else(|| {
            let expected = "kinds of access, like `r`, `w` or `store`";
            malformed(rows.place(), expected, text)
        })?,
    };
    let (first, last) = pages(rows, places, form)?;
    let process = number_process(process.unwrap_or(0), time, processes, rows, out)?;
    visits.follow(rows, places, form, out)?;
    let mut gap = match time {
        None => 1,
        Some(time) => time.checked_sub(out.time(process)).ok_or_else(|| {
            let text = field(rows, places, Role::Time).unwrap_or_default();
            let expected = "a time that does not go back in its process; sort the lines";
            malformed_but(rows.place(), expected, text, Some(Otherwise::WithoutTimes))
        })?,
    };
    for page in first..=last {
        out.append(process, page, kinds, std::mem::take(&mut gap))?;
    }
    Ok(())
}

/// The text in the column of a role, if there is such a column.
fn field<'a, R>(rows: &'a Rows<R>, places: &Places, role: Role) -> Option<&'a [u8]> {
    let at = places.of(role)?;
    Some(rows.field(at).unwrap_or_default().trim_ascii())
}

/// A decimal number in the column of a role.
fn whole<R>(
    rows: &Rows<R>,
    places: &Places,
    role: Role,
    expected: &'static str,
) -> Result<Option<u64>, Error> {
    let Some(text) = field(rows, places, role) else {
        return Ok(None);
    };
    let found = number(text, false).ok_or_else(|| malformed(rows.place(), expected, text))?;
    Ok(Some(found))
}

/// The time of a line, in nanoseconds or instructions.
fn time<R>(rows: &Rows<R>, places: &Places) -> Result<Option<u64>, Error> {
    let (Some(text), Some(scale)) = (field(rows, places, Role::Time), places.scale) else {
        return Ok(None);
    };
    let time = parse(text, scale).ok_or_else(|| {
        let (expected, otherwise) = match scale {
            Scale::Instructions => ("a whole number of instructions", Some(Otherwise::InSeconds)),
            _ => ("a time from 0 up, of at most 584 years, like `12.5`", None),
        };
        malformed_but(rows.place(), expected, text, otherwise)
    })?;
    Ok(Some(time))
}

/// The number of a line's page, address or sector, or the hash of its key.
fn subject_of<R>(rows: &Rows<R>, places: &Places, form: &Form) -> Result<u64, Error> {
    let subject = places.subject();
    let text = field(rows, places, subject).unwrap_or_default();
    let (expected, otherwise) = match subject {
        Role::Key if text.is_empty() => return Err(malformed(rows.place(), "a key", text)),
        Role::Key => return Ok(xxh3_64(text)),
        Role::Address => ("an address", None),
        Role::Sector => ("the number of a sector", None),
        _ => ("a page number", Some(Otherwise::ByKey)),
    };
    let start = number(text, form.is_hexadecimal);
    start.ok_or_else(|| malformed_but(rows.place(), expected, text, otherwise))
}

/// The first and the last page of a line.
fn pages<R>(rows: &Rows<R>, places: &Places, form: &Form) -> Result<(u64, u64), Error> {
    let subject = places.subject();
    let start = subject_of(rows, places, form)?;
    if subject == Role::Key || places.of(Role::Visit).is_some() {
        return Ok((start, start));
    }
    let bytes = whole(rows, places, Role::Bytes, "a number of bytes")?;
    let count = whole(rows, places, Role::Count, "a number of pages")?;
    let shift = form.page_bytes.trailing_zeros();
    let (first, last) = match (subject, bytes) {
        (Role::Page, _) => {
            let of_bytes = bytes.map(|bytes| bytes.div_ceil(form.page_bytes));
            let count = of_bytes.or(count).unwrap_or(1);
            if count == 0 && of_bytes.is_none() {
                return Err(malformed(rows.place(), "a number of pages from 1 up", b"0"));
            }
            (start, start.saturating_add(count.saturating_sub(1)))
        }
        (_, bytes) => {
            let unit = if subject == Role::Sector {
                SECTOR_BYTES
            } else {
                1
            };
            let start = start.saturating_mul(unit);
            let end = start.saturating_add(bytes.unwrap_or(1).saturating_sub(1));
            (start >> shift, end >> shift)
        }
    };
    let is_bounded = bytes.is_none_or(|bytes| bytes <= ACCESS_BYTES_MAX);
    if last - first >= PAGES_MAX || !is_bounded {
        let found = bytes.or(count).unwrap_or(0).to_string();
        let expected = "an access of at most 1048576 pages";
        return Err(malformed(rows.place(), expected, found.as_bytes()));
    }
    Ok((first, last))
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
        let start = Event::Life(LifeEvent::Start {
            pid,
            parent: 0,
            program,
        });
        out.append_event(number, start)?;
    }
    Ok(number)
}
