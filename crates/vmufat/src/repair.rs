//! Repair: making a volume consistent again, with everything of it that is sound.
//!
//! What is sound of a file stays; what can't be its is cut off. All is decided before anything is
//! written. Records are written before the table: a repair that is cut off and made again comes to
//! the same result.

use alloc::collections::BTreeSet;

use crate::check::{Checked, Fault, Finding};
use crate::name::Name;
use crate::record::{self, File, NO_FILE, Record};
use crate::table::{END, Table};

/// Changes `table` and `records` so that nothing is found any more.
pub(crate) fn apply(checked: &Checked, table: &mut Table, records: &mut [Record]) {
    let mut names = names(records);
    for finding in &checked.findings {
        match *finding {
            Finding::SystemWord {
                block, expected, ..
            } => table.set(block, expected),
            Finding::UnknownKind { slot, .. } => record::make_data(&mut records[slot]),
            Finding::Doubled { slot, .. } => records[slot] = NO_FILE,
            Finding::SameName { slot, name, .. } => {
                record::rename(&mut records[slot], &new_name(&mut names, &name));
            }
            Finding::Nameless { slot } => {
                let name = Name::new(b"FILE").expect("four letters are a name");
                record::rename(&mut records[slot], &new_name(&mut names, &name));
            }
            Finding::Chain {
                slot,
                fault,
                sound_blocks,
                sound_last,
                ..
            } => match fault {
                Fault::Length { .. } => record::resize(&mut records[slot], sound_blocks),
                _ if sound_blocks == 0 => records[slot] = NO_FILE,
                _ => {
                    record::resize(&mut records[slot], sound_blocks);
                    table.set(sound_last, END);
                }
            },
            Finding::Lost { .. } => table.free(&checked.lost),
        }
    }
}

/// The names that are taken.
fn names(records: &[Record]) -> BTreeSet<Name> {
    let files = records.iter().filter_map(File::decode);
    files.map(|file| file.name).collect()
}

/// A name like `name` that is not taken, which it is from then on.
fn new_name(names: &mut BTreeSet<Name>, name: &Name) -> Name {
    let numbered = (2..).map(|number| name.numbered(number));
    let mut free = numbered.filter(|name| !names.contains(name));
    let new = free.next().expect("there are more numbers than records");
    names.insert(new);
    new
}
