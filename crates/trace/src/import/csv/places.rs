//! The columns of a file: which holds what, by choice or by the names in the first line.

use crate::error::{Error, ErrorKind};
use crate::import::number;
use crate::import::time::{self, Scale};

use super::rows::Rows;
use super::words::kinds;
use super::{Clock, Column, Form, Role};

/// The most characters of the first line's names that an error repeats.
const NAMES_SHOWN_MAX: usize = 300;

/// The most columns whose names are shown.
const COLUMNS_SHOWN_MAX: usize = 20;

/// Names of columns that are known without being chosen, in lower case, with `_` between words.
/// An offset is in bytes, as in block traces of servers.
const NAMES: [(&str, Role); 58] = [
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
    ("url", Role::Key),
    ("address", Role::Address),
    ("addr", Role::Address),
    ("vaddr", Role::Address),
    ("virtual_address", Role::Address),
    ("offset", Role::Address),
    ("byte_offset", Role::Address),
    ("sector", Role::Sector),
    ("start_sector", Role::Sector),
    ("sector_number", Role::Sector),
    ("process", Role::Process),
    ("process_id", Role::Process),
    ("pid", Role::Process),
    ("kinds", Role::Kinds),
    ("kind", Role::Kinds),
    ("access", Role::Kinds),
    ("access_type", Role::Kinds),
    ("op", Role::Kinds),
    ("opcode", Role::Kinds),
    ("operation", Role::Kinds),
    ("type", Role::Kinds),
    ("rw", Role::Kinds),
    ("request_type", Role::Kinds),
    ("bytes", Role::Bytes),
    ("access_bytes", Role::Bytes),
    ("nr_bytes", Role::Bytes),
    ("size", Role::Bytes),
    ("length", Role::Bytes),
    ("len", Role::Bytes),
    ("request_size", Role::Bytes),
    ("io_size", Role::Bytes),
    ("count", Role::Count),
    ("pages", Role::Count),
    ("page_count", Role::Count),
    ("nr_pages", Role::Count),
    ("blocks", Role::Count),
    ("block_count", Role::Count),
    ("nr_blocks", Role::Count),
];

/// Names of numbers of bytes that mean nothing else; the others may count blocks, or be sizes of
/// objects, and are taken beside an address alone.
const BYTES: [&str; 3] = ["bytes", "access_bytes", "nr_bytes"];

/// Names of keys, which may be text.
const KEYS: [&str; 6] = ["obj_id", "object_id", "object", "obj", "key", "id"];

/// The column of each role, from 0, and what was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Places {
    by_role: [Option<usize>; Role::ALL.len()],
    /// The unit of times.
    pub scale: Option<Scale>,
    /// The columns, as they are called.
    labels: Vec<String>,
}

impl Places {
    /// The column of a role.
    pub fn of(&self, role: Role) -> Option<usize> {
        self.by_role[role as usize]
    }

    /// The role that says which page it is.
    pub fn subject(&self) -> Role {
        let subjects = [Role::Page, Role::Address, Role::Sector, Role::Key];
        let subject = subjects.into_iter().find(|role| self.of(*role).is_some());
        subject.unwrap_or(Role::Page)
    }

    /// The roles that are used, each with its column: `page from `lbn``.
    pub fn used(&self) -> String {
        let used = Role::ALL.iter().filter_map(|role| {
            let label = self.labels.get(self.of(*role)?)?;
            Some(format!("{} from {label}", role.name()))
        });
        used.collect::<Vec<String>>().join(", ")
    }

    /// The columns that are not used; empty if all are.
    pub fn unused(&self) -> String {
        let unused = self.labels.iter().enumerate();
        let unused = unused.filter(|(at, _)| !self.by_role.contains(&Some(*at)));
        let unused: Vec<&str> = unused.map(|(_, label)| label.as_str()).collect();
        let more = unused.len().saturating_sub(COLUMNS_SHOWN_MAX);
        let mut text = unused[..unused.len() - more].join(", ");
        if more > 0 {
            text.push_str(&format!(" and {more} more"));
        }
        text
    }

    fn set(&mut self, role: Role, at: usize) {
        self.by_role[role as usize] = Some(at);
    }

    fn clear(&mut self, role: Role) {
        self.by_role[role as usize] = None;
    }
}

/// Finds the columns with the help of the first line, and reads on to the first line of values.
/// Says whether there is one.
pub fn find<R: std::io::Read>(rows: &mut Rows<R>, form: &Form) -> Result<(Places, bool), Error> {
    let mut has_line = rows.first()?;
    // Names may stand in a remark: `# time,page`.
    if has_line && rows.is_remark() && !has_names(rows, form) {
        has_line = rows.next()?;
    }
    if !has_line {
        return Ok((Places::default(), false));
    }
    let (mut places, has_names) = match form.columns.is_empty() {
        true => guess(rows, form)?,
        false => choose(rows, form)?,
    };
    places.labels = labels(rows, has_names);
    let place = rows.place();
    if has_names {
        has_line = rows.next()?;
    }
    if has_line && form.columns.is_empty() {
        settle(&mut places, rows, form);
    }
    if let Some(at) = places.of(Role::Time)
        && form.time == Clock::ByName
        && places.scale.is_none()
    {
        let name = places.labels[at].trim_matches('`').to_owned();
        return Err(Error::at(place, ErrorKind::NoUnit { name }));
    }
    Ok((places, has_line))
}

/// Drops guessed columns whose first value is none, and takes keys that are text as keys.
fn settle<R>(places: &mut Places, rows: &Rows<R>, form: &Form) {
    let value = |at: usize| rows.field(at).unwrap_or_default().trim_ascii();
    if let Some(at) = places.of(Role::Kinds)
        && kinds(value(at)).is_none()
    {
        places.clear(Role::Kinds);
    }
    if let Some(at) = places.of(Role::Page)
        && !is_number(value(at), form)
        && KEYS.contains(&plain(places.labels[at].trim_matches('`').as_bytes()).as_str())
    {
        places.clear(Role::Page);
        places.set(Role::Key, at);
    }
    if places.of(Role::Key).is_some() {
        places.clear(Role::Bytes);
        places.clear(Role::Count);
    }
}

/// The columns as messages call them.
fn labels<R>(rows: &Rows<R>, has_names: bool) -> Vec<String> {
    let label = |(at, name): (usize, &[u8])| match has_names && !name.is_empty() {
        true => {
            let name = String::from_utf8_lossy(name);
            let name = name.trim_start_matches('#').trim();
            format!("`{}`", name.chars().take(40).collect::<String>())
        }
        false => format!("column {}", at + 1),
    };
    rows.fields().enumerate().map(label).collect()
}

/// The columns that are chosen; also says whether the line holds names.
fn choose<R>(rows: &Rows<R>, form: &Form) -> Result<(Places, bool), Error> {
    let is_named = |field: &[u8], name: &str| {
        let field = field.strip_prefix(b"#").unwrap_or(field).trim_ascii();
        field.eq_ignore_ascii_case(name.as_bytes())
    };
    let mut places = Places::default();
    for (role, column) in &form.columns {
        let at = match column {
            Column::Number(number) => number.checked_sub(1).filter(|&at| at < rows.columns()),
            Column::Name(name) => rows.fields().position(|field| is_named(field, name)),
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
    let has_name = form
        .columns
        .iter()
        .any(|(_, column)| matches!(column, Column::Name(_)));
    let field = |at: usize| rows.field(at).unwrap_or_default().trim_ascii();
    let subject = places.subject();
    let at = places.of(subject).unwrap_or(0);
    let has_names = has_name
        || match subject {
            // Any text is a key: what is known as a name is one.
            Role::Key => role_of(field(at)).is_some() || plain(field(at)) == "key",
            _ => !is_number(field(at), form),
        };
    set_scale(&mut places, form, |at| has_names.then(|| plain(field(at))));
    Ok((places, has_names))
}

/// Sets the unit of times, by choice or by the column's name.
fn set_scale(places: &mut Places, form: &Form, name: impl Fn(usize) -> Option<String>) {
    places.scale = match form.time {
        Clock::None => {
            places.clear(Role::Time);
            None
        }
        Clock::In(scale) => Some(scale),
        Clock::ByName => places
            .of(Role::Time)
            .and_then(name)
            .and_then(|name| time::scale_of_name(&name).flatten()),
    };
}

/// The columns without a choice; also says whether the line holds names.
fn guess<R>(rows: &Rows<R>, form: &Form) -> Result<(Places, bool), Error> {
    if !has_names(rows, form) && rows.fields().any(|field| is_number(field, form)) {
        let columns = rows.columns();
        if columns > 1 {
            let kind = ErrorKind::NamelessColumns { columns };
            return Err(Error::at(rows.place(), kind));
        }
        let mut places = Places::default();
        places.set(Role::Page, 0);
        return Ok((places, false));
    }
    Ok((known(rows, form)?, true))
}

/// Returns true if a line has names and no number.
fn has_names<R>(rows: &Rows<R>, form: &Form) -> bool {
    let is_chosen = |field: &[u8]| {
        let field = String::from_utf8_lossy(field);
        let field = field.trim_start_matches('#').trim();
        let mut columns = form.columns.iter();
        columns.any(|(_, column)| match column {
            Column::Name(name) => field.eq_ignore_ascii_case(name),
            Column::Number(_) => false,
        })
    };
    rows.fields().all(|field| !is_number(field, form))
        && rows
            .fields()
            .any(|field| is_chosen(field) || is_subject(role_of(field)))
}

/// Returns true if a role says which page it is.
fn is_subject(role: Option<Role>) -> bool {
    matches!(
        role,
        Some(Role::Page | Role::Address | Role::Sector | Role::Key)
    )
}

/// Returns true if a field is no name. What begins as a number and is none is for its line to
/// complain of.
fn is_number(field: &[u8], form: &Form) -> bool {
    field.first().is_some_and(u8::is_ascii_digit) || number(field, form.is_hexadecimal).is_some()
}

/// A name in lower case, with `_` between words.
fn plain(field: &[u8]) -> String {
    let name = String::from_utf8_lossy(field).to_ascii_lowercase();
    let name = name.trim_start_matches('#').trim();
    name.replace([' ', '-', '.'], "_")
}

/// The role that a name tells.
fn role_of(field: &[u8]) -> Option<Role> {
    let name = plain(field);
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let known = known.map(|(_, role)| *role);
    known.or_else(|| time::scale_of_name(&name).map(|_| Role::Time))
}

/// The columns that the first line's names choose.
fn known<R>(rows: &Rows<R>, form: &Form) -> Result<Places, Error> {
    let is_page = |field: &&[u8]| is_subject(role_of(field));
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
    let field = |at: usize| rows.field(at).map(plain);
    let subject = rows.fields().find(is_page).and_then(role_of);
    let is_address = matches!(subject, Some(Role::Address | Role::Sector));
    for (at, name) in rows.fields().enumerate() {
        let Some(role) = role_of(name) else { continue };
        let is_apt = match role {
            Role::Bytes => is_address || BYTES.contains(&plain(name).as_str()),
            Role::Count => !is_address,
            _ => true,
        };
        if is_apt && places.of(role).is_none() {
            places.set(role, at);
        }
    }
    // Both would say how many pages it is.
    if places.of(Role::Bytes).is_some() {
        places.clear(Role::Count);
    }
    set_scale(&mut places, form, field);
    Ok(places)
}
