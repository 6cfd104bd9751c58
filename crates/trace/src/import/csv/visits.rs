//! Visits: the lines that want their objects at once, and the sizes of objects.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::event::Event;
use crate::import::malformed;

use super::places::Places;
use super::rows::Rows;
use super::{Form, Role, field, subject_of, whole};

/// The visit and the sizes of the lines before.
#[derive(Default)]
pub struct Visits {
    /// The visit of the line before, as it is called there.
    current: Option<Vec<u8>>,
    /// The size of each object, in bytes.
    sizes: BTreeMap<u64, u64>,
}

impl Visits {
    /// Takes in a line that is about to be appended, and appends the events before it: a visit that
    /// begins, an object's size where it is named for the first time. Does nothing where the file
    /// has no column of visits.
    ///
    /// # Errors
    /// The visit or the size is missing, the size is none or not the object's of before, or writing
    /// fails.
    pub fn follow<W: Write, R: Read>(
        &mut self,
        rows: &Rows<R>,
        places: &Places,
        form: &Form,
        out: &mut Appender<W>,
    ) -> Result<(), Error> {
        let Some(visit) = field(rows, places, Role::Visit) else {
            return Ok(());
        };
        if visit.is_empty() {
            return Err(malformed(rows.place(), "a visit", visit));
        }
        if self.current.as_deref() != Some(visit) {
            self.current = Some(visit.to_vec());
            out.append_event(0, Event::Visit)?;
        }
        let expected = "the size of an object in bytes, from 1 up";
        let Some(bytes) = whole(rows, places, Role::Bytes, expected)? else {
            return Ok(());
        };
        let page = subject_of(rows, places, form)?;
        let text = || field(rows, places, Role::Bytes).unwrap_or_default();
        match self.sizes.insert(page, bytes) {
            _ if bytes == 0 => Err(malformed(rows.place(), expected, text())),
            Some(before) if before != bytes => {
                let expected = "the size in bytes that the object has on lines before; it has one";
                Err(malformed(rows.place(), expected, text()))
            }
            Some(_) => Ok(()),
            None => out.append_event(0, Event::Size { page, bytes }),
        }
    }
}
