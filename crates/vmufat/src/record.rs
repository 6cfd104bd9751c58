//! Records of the directory: 32 bytes that say what a file is called and where it begins.

use crate::name::Name;
use crate::time::Timestamp;

/// The size of a record.
pub(crate) const RECORD_BYTES: usize = 32;

/// A record as it is on a volume.
pub(crate) type Record = [u8; RECORD_BYTES];

/// The record of no file.
pub(crate) const NO_FILE: Record = [0; RECORD_BYTES];

const DATA: u8 = 0x33;
const GAME: u8 = 0xcc;
const PROTECTED: u8 = 0xff;

const KIND_AT: usize = 0;
const COPYING_AT: usize = 1;
const FIRST_AT: usize = 2;
const NAME_AT: usize = 4;
const CREATED_AT: usize = 0x10;
const BLOCKS_AT: usize = 0x18;
const HEADER_AT: usize = 0x1a;

/// A file as its record describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: Name,
    /// Data, or a game.
    pub kind: Kind,
    /// If the console's file manager may copy it.
    pub copying: Copying,
    /// Its first block.
    pub first: u16,
    /// The time of its making.
    pub created: Timestamp,
    /// Its size in blocks.
    pub blocks: u16,
    /// The block of the file that its header is in.
    pub header: u16,
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data: its blocks may lie anywhere.
    Data,
    /// A game for the card's own processor: it begins at block 0 and is in one piece.
    Game,
}

/// A mark for the console's file manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// The file may be copied from card to card.
    Allowed,
    /// The file may not be copied.
    Forbidden,
}

impl File {
    /// The file a record describes, if it does. One of an unknown kind counts as data.
    pub(crate) fn decode(record: &Record) -> Option<File> {
        let word = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
        let kind = match record[KIND_AT] {
            0 => return None,
            GAME => Kind::Game,
            _ => Kind::Data,
        };
        let copying = match record[COPYING_AT] {
            PROTECTED => Copying::Forbidden,
            _ => Copying::Allowed,
        };
        let mut name = [0; 12];
        name.copy_from_slice(&record[NAME_AT..CREATED_AT]);
        let mut created = Timestamp::default();
        created.0.copy_from_slice(&record[CREATED_AT..BLOCKS_AT]);
        Some(File {
            name: Name::from_record(&name),
            kind,
            copying,
            first: word(FIRST_AT),
            created,
            blocks: word(BLOCKS_AT),
            header: word(HEADER_AT),
        })
    }

    /// The record that describes the file.
    pub(crate) fn encode(&self) -> Record {
        let mut record = NO_FILE;
        record[KIND_AT] = match self.kind {
            Kind::Data => DATA,
            Kind::Game => GAME,
        };
        record[COPYING_AT] = match self.copying {
            Copying::Allowed => 0,
            Copying::Forbidden => PROTECTED,
        };
        record[FIRST_AT..NAME_AT].copy_from_slice(&self.first.to_le_bytes());
        record[NAME_AT..CREATED_AT].copy_from_slice(self.name.padded());
        record[CREATED_AT..BLOCKS_AT].copy_from_slice(&self.created.0);
        record[BLOCKS_AT..HEADER_AT].copy_from_slice(&self.blocks.to_le_bytes());
        record[HEADER_AT..HEADER_AT + 2].copy_from_slice(&self.header.to_le_bytes());
        record
    }
}

/// The byte for the kind of file, if it is none that is known.
pub(crate) fn unknown_kind(record: &Record) -> Option<u8> {
    match record[KIND_AT] {
        0 | DATA | GAME => None,
        other => Some(other),
    }
}

/// Makes the file of a record one of data, with all else as it is.
pub(crate) fn make_data(record: &mut Record) {
    record[KIND_AT] = DATA;
}

/// Renames the file of a record, with all else as it is.
pub(crate) fn rename(record: &mut Record, name: &Name) {
    record[NAME_AT..CREATED_AT].copy_from_slice(name.padded());
}

/// Sets the size of a record's file, with all else as it is.
pub(crate) fn resize(record: &mut Record, blocks: u16) {
    record[BLOCKS_AT..HEADER_AT].copy_from_slice(&blocks.to_le_bytes());
}
