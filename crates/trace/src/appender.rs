//! Making a trace of single references, for those who do not have blocks already.

use std::io::Write;

use crate::container::Writer;
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::model::{Block, Kinds, Placed};

/// Gathers references into blocks and writes them.
///
/// Processes may take turns at any time; each turn begins a block, so that turns of a few
/// references cost some 150 bytes each.
pub struct Appender<W: Write> {
    writer: Writer<W>,
    repeats: Repeats,
    block: Block,
    /// The time of the block's last record or event.
    time: u64,
    /// Time that has passed since.
    passed: u64,
    /// For each process but the block's: its time, and what has passed since its last record.
    clocks: Vec<(u64, u64)>,
    references: u64,
}

/// The treatment of a reference to the page of the process's reference before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The reference is written as a record of its own.
    Kept,
    /// The reference becomes one record with the one before, at the time of that one, with both
    /// kinds of access. That changes no count of misses: a reference to the page before never
    /// misses.
    Merged,
}

impl<W: Write> Appender<W> {
    /// Appends to `writer`.
    pub fn new(writer: Writer<W>, repeats: Repeats) -> Appender<W> {
        Appender {
            writer,
            repeats,
            block: Block::default(),
            time: 0,
            passed: 0,
            clocks: vec![(0, 0)],
            references: 0,
        }
    }

    /// Lets time begin at `time` in `process`, which has not done anything yet.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn begin(&mut self, process: u32, time: u64) -> Result<(), Error> {
        self.turn_to(process)?;
        self.block.time_start = time;
        self.time = time;
        Ok(())
    }

    /// Appends a reference, `gap` after the process's reference before.
    ///
    /// - Needs: processes are numbered in the order of their first appearance.
    ///
    /// # Errors
    /// The writer fails, or the process's time exceeds 64 bits.
    pub fn append(&mut self, process: u32, page: u64, kinds: Kinds, gap: u64) -> Result<(), Error> {
        if process != self.block.process {
            self.turn_to(process)?;
        }
        self.references += 1;
        self.pass(gap)?;
        if self.repeats == Repeats::Merged && self.block.pages.last() == Some(&page) {
            let last = self
                .block
                .kinds
                .last_mut()
                .expect("columns are of a length");
            *last |= kinds.0;
            return Ok(());
        }
        if self.block.len() == Block::RECORDS_MAX {
            self.cut()?;
        }
        self.time += self.passed;
        let gap = match u32::try_from(self.passed) {
            Ok(gap) => gap,
            Err(_) => {
                self.cut()?;
                self.block.time_start = self.time;
                0
            }
        };
        self.block.push(page, kinds, gap);
        self.passed = 0;
        Ok(())
    }

    /// Appends an event of `process`, now.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_event(&mut self, process: u32, event: Event) -> Result<(), Error> {
        self.turn_to(process)?;
        if self.block.events.len() == Block::EVENTS_MAX {
            self.cut()?;
        }
        // At the time of the record before: where the next one's time is known is not now.
        self.block.events.push(Placed {
            after: self.block.len() as u32,
            time: self.time,
            event,
        });
        Ok(())
    }

    /// Writes what is left, and completes the trace.
    ///
    /// # Errors
    /// The writer fails, or there was no reference at all.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.references == 0 {
            return Err(Error::new(ErrorKind::NoReferences));
        }
        self.cut()?;
        self.writer.finish()
    }

    /// The number of references appended.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The number of records they have become.
    pub fn records(&self) -> u64 {
        self.writer.records() + self.block.len() as u64
    }

    /// The time in `process`, at its last reference.
    pub fn time(&self, process: u32) -> u64 {
        match process == self.block.process {
            true => self.time + self.passed,
            false => {
                let (time, passed) = self.clocks[process as usize];
                time + passed
            }
        }
    }

    fn pass(&mut self, gap: u64) -> Result<(), Error> {
        let passed = self.passed.checked_add(gap);
        match passed.filter(|passed| self.time.checked_add(*passed).is_some()) {
            Some(passed) => {
                self.passed = passed;
                Ok(())
            }
            None => Err(Error::new(ErrorKind::TooLarge {
                what: "time",
                value: gap,
                max: u64::MAX - self.time - self.passed,
            })),
        }
    }

    fn turn_to(&mut self, process: u32) -> Result<(), Error> {
        if process == self.block.process {
            return Ok(());
        }
        self.cut()?;
        self.clocks[self.block.process as usize] = (self.time, self.passed);
        if process as usize == self.clocks.len() {
            self.clocks.push((0, 0));
        }
        (self.time, self.passed) = self.clocks[process as usize];
        self.block.process = process;
        self.block.time_start = self.time;
        Ok(())
    }

    fn cut(&mut self) -> Result<(), Error> {
        self.writer.write(&self.block)?;
        self.block.clear();
        self.block.time_start = self.time;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Reader;
    use crate::import;

    fn appended(repeats: Repeats, references: &[(u32, u64, u64)]) -> Vec<Block> {
        let header = import::header("a test", 4096);
        let writer = Writer::new(Vec::new(), &header).unwrap();
        let mut appender = Appender::new(writer, repeats);
        for &(process, page, gap) in references {
            appender.append(process, page, Kinds::LOAD, gap).unwrap();
        }
        let bytes = appender.finish().unwrap();
        let mut reader = Reader::new(&bytes[..]).unwrap();
        let mut blocks = vec![Block::default()];
        while reader.next_block(blocks.last_mut().unwrap()).unwrap() {
            blocks.push(Block::default());
        }
        blocks.pop();
        blocks
    }

    #[test]
    fn merged_repeats_keep_the_time() {
        let blocks = appended(
            Repeats::Merged,
            &[(0, 1, 5), (0, 1, 2), (0, 2, 3), (0, 1, 1)],
        );
        assert_eq!(blocks[0].pages, [1, 2, 1]);
        assert_eq!(blocks[0].gaps, [5, 5, 1]);
        let blocks = appended(Repeats::Kept, &[(0, 1, 5), (0, 1, 2)]);
        assert_eq!(blocks[0].pages, [1, 1]);
    }

    #[test]
    fn each_process_has_its_own_time() {
        let blocks = appended(Repeats::Kept, &[(0, 1, 5), (1, 1, 7), (0, 2, 3), (1, 9, 1)]);
        let seen: Vec<_> = blocks
            .iter()
            .map(|block| (block.process, block.time_start, block.time_end()))
            .collect();
        assert_eq!(seen, [(0, 0, 5), (1, 0, 7), (0, 5, 8), (1, 7, 8)]);
    }

    #[test]
    fn a_gap_of_more_than_32_bits_begins_a_block() {
        let far = u64::from(u32::MAX) + 1;
        let blocks = appended(Repeats::Kept, &[(0, 1, 1), (0, 2, far), (0, 3, 1)]);
        assert_eq!(
            (blocks[1].time_start, &blocks[1].gaps[..]),
            (far + 1, &[0, 1][..])
        );
        assert_eq!(blocks[1].time_end(), far + 2);
    }

    #[test]
    fn a_full_block_is_followed_by_another() {
        let references: Vec<_> = (0..70_000).map(|page| (0, page, 1)).collect();
        let blocks = appended(Repeats::Merged, &references);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[1].time_end(), 70_000);
    }
}
