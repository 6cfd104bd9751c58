//! The index: where each block lies and what it covers, so that blocks can be found without
//! reading those before.

use crate::error::{Error, Part};
use crate::model::{Block, Flaw};

use super::part::{BLOCK_BYTES_MAX, HEAD_BYTES, Mark, number32, number64, seal};

/// The bytes of an entry.
const ENTRY_BYTES: usize = 40;

/// The bytes before the entries: counts of blocks, records, events, processes.
const COUNTS_BYTES: usize = 32;

/// The index's entry for a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The offset in the file at which it begins, in bytes.
    pub at: u64,
    /// Its length in the file, in bytes.
    pub bytes: u32,
    /// The process it is of.
    pub process: u32,
    /// The number of records that it holds.
    pub records: u32,
    /// The number of events that it holds.
    pub events: u32,
    /// The process's time at its beginning.
    pub time_start: u64,
    /// The process's time at its end.
    pub time_end: u64,
}

/// Every block of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The blocks, in the order of the file.
    pub entries: Vec<Entry>,
    order: Order,
}

/// Holds blocks to the order of their processes' times, and of the processes' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    times: Vec<u64>,
}

impl Index {
    /// Appends a block.
    ///
    /// # Errors
    /// Its process's time goes back, its process skips a number, or it is too large for a block.
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), Flaw> {
        let (records, events) = (entry.records as usize, entry.events as usize);
        if records > Block::RECORDS_MAX {
            return Err(Flaw::TooManyRecords { records });
        }
        if events > Block::EVENTS_MAX {
            return Err(Flaw::TooManyEvents { events });
        }
        self.order.pass(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    /// The number of records.
    pub fn records(&self) -> u64 {
        let records = self.entries.iter().map(|entry| u64::from(entry.records));
        records.sum()
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        let events = self.entries.iter().map(|entry| u64::from(entry.events));
        events.sum()
    }

    /// The number of processes.
    pub fn processes(&self) -> u32 {
        u32::try_from(self.order.times.len()).expect("each was numbered in 32 bits")
    }

    /// The part of the file that holds the index.
    pub(super) fn part(&self) -> Vec<u8> {
        let mut part = Vec::with_capacity(HEAD_BYTES + self.contents_bytes());
        part.resize(HEAD_BYTES, 0);
        for count in self.counts() {
            part.extend(count.to_le_bytes());
        }
        for entry in &self.entries {
            part.extend(entry.at.to_le_bytes());
            part.extend(entry.bytes.to_le_bytes());
            part.extend(entry.process.to_le_bytes());
            part.extend(entry.records.to_le_bytes());
            part.extend(entry.events.to_le_bytes());
            part.extend(entry.time_start.to_le_bytes());
            part.extend(entry.time_end.to_le_bytes());
        }
        seal(&mut part, Mark::Index);
        part
    }

    /// Returns true if one more block still leaves an index that its part can hold.
    pub(super) fn has_room(&self) -> bool {
        self.contents_bytes() + ENTRY_BYTES <= u32::MAX as usize
    }

    /// Reads the contents of the part at byte `at`. The blocks must lie one behind the other from
    /// byte `first_at` up to it.
    pub(super) fn parse(contents: &[u8], first_at: u64, at: u64) -> Result<Index, Error> {
        let wrong = || Error::corrupt(at, Part::Index);
        let (counts, rest) = contents.split_at_checked(COUNTS_BYTES).ok_or_else(wrong)?;
        let mut index = Index::default();
        index.entries.reserve(rest.len() / ENTRY_BYTES);
        let mut next_at = first_at;
        let (entries, remainder) = rest.as_chunks::<ENTRY_BYTES>();
        for bytes in entries {
            let entry = Entry {
                at: number64(&bytes[..8]),
                bytes: number32(&bytes[8..12]),
                process: number32(&bytes[12..16]),
                records: number32(&bytes[16..20]),
                events: number32(&bytes[20..24]),
                time_start: number64(&bytes[24..32]),
                time_end: number64(&bytes[32..40]),
            };
            if entry.at != next_at || entry.bytes as usize > HEAD_BYTES + BLOCK_BYTES_MAX {
                return Err(wrong());
            }
            next_at = next_at.saturating_add(u64::from(entry.bytes));
            index.push(entry).map_err(|_| wrong())?;
        }
        let counts: Vec<u64> = counts.chunks(8).map(number64).collect();
        match next_at == at && remainder.is_empty() && counts == index.counts() {
            true => Ok(index),
            false => Err(wrong()),
        }
    }

    fn contents_bytes(&self) -> usize {
        COUNTS_BYTES + self.entries.len() * ENTRY_BYTES
    }

    fn counts(&self) -> [u64; 4] {
        [
            self.entries.len() as u64,
            self.records(),
            self.events(),
            u64::from(self.processes()),
        ]
    }
}

impl Order {
    /// Lets the next block pass.
    fn pass(&mut self, entry: &Entry) -> Result<(), Flaw> {
        let process = entry.process as usize;
        if process > self.times.len() || entry.time_end < entry.time_start {
            return Err(Flaw::OutOfOrder);
        }
        if process == self.times.len() {
            self.times.push(entry.time_end);
            return Ok(());
        }
        if entry.time_start < self.times[process] {
            return Err(Flaw::OutOfOrder);
        }
        self.times[process] = entry.time_end;
        Ok(())
    }
}
