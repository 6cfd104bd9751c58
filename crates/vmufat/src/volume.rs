//! A volume: its files are found, read, written and deleted.
//!
//! Table and directory are in memory; every change goes to the device before its call returns.
//!
//! # The order of writes
//! - A new file: its contents into free blocks, and the table, in any order; then its record. The
//!   write of the record makes the file, whole; before it, blocks are lost at most.
//! - A file in place of another: the same beside the old one, whose record is overwritten by that
//!   of the new one in the same write; then the old one's blocks are freed.
//! - A deletion: the last record of the directory moves into the place of the file's, so that no
//!   gap hides the files behind it from readers that stop at one; then it is removed where it was;
//!   then the blocks are freed.
//!
//! The device is settled between these steps. Only a record that is there twice and blocks without
//! a file can be left behind.

use alloc::vec;
use alloc::vec::Vec;

use crate::check::{self, Checked, Finding};
use crate::device::{BLOCK_BYTES, Block, BlockDevice};
use crate::error::Error;
use crate::layout::{BLOCKS_MAX, BLOCKS_MIN, Layout, RECORDS_PER_BLOCK};
use crate::name::Name;
use crate::record::{Copying, File, Kind, NO_FILE, RECORD_BYTES, Record};
use crate::repair;
use crate::table::{Table, one_per_table_block};
use crate::time::Timestamp;

/// A volume on a device.
#[derive(Debug)]
pub struct Volume<D> {
    device: D,
    contents: Contents,
    /// Set where the device failed, and may hold something else than `contents`.
    is_stale: bool,
}

/// Everything that a volume holds beside the contents of its files.
#[derive(Clone, Debug)]
struct Contents {
    layout: Layout,
    formatted: Timestamp,
    table: Table,
    records: Vec<Record>,
    /// Everything that is wrong with it.
    findings: Vec<Finding>,
}

/// A file to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its name.
    pub name: Name,
    /// Data, or a game.
    pub kind: Kind,
    /// If it may be copied from card to card.
    pub copying: Copying,
    /// The time of its making.
    pub created: Timestamp,
}

/// The record and blocks for a file that is to be written.
struct Plan {
    /// The number of the directory record for the file.
    slot: usize,
    /// The blocks it gets, in order.
    blocks: Vec<u16>,
    /// The blocks of the file that is there already.
    old: Vec<u16>,
}

impl<D: BlockDevice> Volume<D> {
    /// Makes `device` a volume without files.
    ///
    /// - Needs: `layout` is made for as many blocks as the device has.
    /// - Leaves: what was in blocks for files is there still, and belongs to nothing.
    ///
    /// The root block goes first and comes last, so that what is cut off is no volume.
    pub fn format(
        mut device: D,
        layout: Layout,
        formatted: Timestamp,
    ) -> Result<Volume<D>, Error<D::Error>> {
        let blocks = device.blocks();
        if layout.blocks() != blocks {
            return Err(Error::Size { blocks });
        }
        let nothing = [0; BLOCK_BYTES];
        write(&mut device, layout.root(), &nothing)?;
        settle(&mut device)?;
        let table = Table::empty(&layout);
        for number in layout.directory_first()..=layout.directory_last() {
            write(&mut device, number, &nothing)?;
        }
        for word in (0..blocks).step_by(BLOCK_BYTES / 2) {
            let word = word as u16;
            write(
                &mut device,
                layout.fat_block_of(word),
                &table.block_with(word),
            )?;
        }
        settle(&mut device)?;
        write(&mut device, layout.root(), &layout.root_block(formatted))?;
        settle(&mut device)?;
        Volume::mount(device)
    }

    /// Opens the volume that fills `device`.
    ///
    /// A volume that contradicts itself opens, too: what is wrong is in
    /// [`findings`](Self::findings), and what of it is sound can be read.
    pub fn mount(mut device: D) -> Result<Volume<D>, Error<D::Error>> {
        let contents = Contents::read(&mut device)?;
        Ok(Volume {
            device,
            contents,
            is_stale: false,
        })
    }

    /// Writes a file, in the place of one of the same name if there is one: until the new one is
    /// whole, the old one stays. An empty file takes a block, as every file takes whole blocks.
    pub fn write(&mut self, file: &NewFile, contents: &[u8]) -> Result<(), Error<D::Error>> {
        self.prepare()?;
        let plan = self.contents.plan(file, contents.len())?;
        let made = self.carry_out(file, contents, &plan);
        self.note(made)
    }

    /// Deletes a file.
    pub fn delete(&mut self, name: &Name) -> Result<(), Error<D::Error>> {
        self.prepare()?;
        let slot = self.contents.find(name).ok_or(Error::NoFile(*name))?;
        let blocks = self.contents.chain_of(slot)?;
        let made = self.remove(slot, &blocks);
        self.note(made)
    }

    /// Mends everything in [`findings`](Self::findings), and returns what that was. A file keeps
    /// what is sound of it; one of which nothing is sound is removed.
    pub fn repair(&mut self) -> Result<Vec<Finding>, Error<D::Error>> {
        self.refresh()?;
        let Contents {
            layout,
            table,
            records,
            ..
        } = &self.contents;
        let checked = check::check(layout, table, records);
        let mended = self.mend(&checked);
        self.note(mended)?;
        Ok(checked.findings)
    }

    /// Reads a file. It is as long as its blocks.
    pub fn read(&mut self, name: &Name) -> Result<Vec<u8>, Error<D::Error>> {
        let blocks = self.blocks_of(name)?;
        let mut bytes = vec![0; blocks.len() * BLOCK_BYTES];
        let mut block = [0; BLOCK_BYTES];
        for (number, part) in blocks.iter().zip(bytes.chunks_exact_mut(BLOCK_BYTES)) {
            self.device
                .read(*number, &mut block)
                .map_err(Error::Device)?;
            part.copy_from_slice(&block);
        }
        Ok(bytes)
    }

    /// The blocks of a file, in order: where a pager finds its pages.
    pub fn blocks_of(&self, name: &Name) -> Result<Vec<u16>, Error<D::Error>> {
        let slot = self.contents.find(name).ok_or(Error::NoFile(*name))?;
        self.contents.chain_of(slot)
    }

    /// The file called `name`, if there is one.
    pub fn find(&self, name: &Name) -> Option<File> {
        let slot = self.contents.find(name)?;
        File::decode(&self.contents.records[slot])
    }

    /// The files, in the order of their records.
    pub fn files(&self) -> impl Iterator<Item = File> {
        self.contents.records.iter().filter_map(File::decode)
    }

    /// Everything that is wrong with the volume.
    pub fn findings(&self) -> &[Finding] {
        &self.contents.findings
    }

    /// The places of things on it.
    pub fn layout(&self) -> &Layout {
        &self.contents.layout
    }

    /// The moment at which the volume was formatted.
    pub fn formatted(&self) -> Timestamp {
        self.contents.formatted
    }

    /// The blocks that new files may use and that are free.
    pub fn free_blocks(&self) -> u32 {
        let Contents { layout, table, .. } = &self.contents;
        table.count_free(layout.user_blocks())
    }

    /// The device. What is written there is not known here.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Gives the device back.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Makes sure that what is in memory is what the device has, and that it may be changed.
    fn prepare(&mut self) -> Result<(), Error<D::Error>> {
        self.refresh()?;
        let mut findings = self.contents.findings.iter();
        match findings.find(|finding| !finding.is_harmless()) {
            Some(&finding) => Err(Error::Damaged(finding)),
            None => Ok(()),
        }
    }

    /// Reads the volume again if its device failed in the middle of a change.
    fn refresh(&mut self) -> Result<(), Error<D::Error>> {
        if self.is_stale {
            self.contents = Contents::read(&mut self.device)?;
            self.is_stale = false;
        }
        Ok(())
    }

    /// Notes how a change went on the device. If it failed, what is there is read again, at once
    /// or before the next change.
    fn note(&mut self, made: Result<(), D::Error>) -> Result<(), Error<D::Error>> {
        if let Err(error) = made {
            self.is_stale = true;
            // The first of two errors is the one to tell.
            let _ = self.refresh();
            return Err(Error::Device(error));
        }
        let Contents {
            layout,
            table,
            records,
            findings,
            ..
        } = &mut self.contents;
        // What is wrong may be elsewhere now; a change makes nothing wrong that was not.
        if !findings.is_empty() {
            *findings = check::check(layout, table, records).findings;
        }
        Ok(())
    }

    /// Writes a file as planned.
    fn carry_out(&mut self, file: &NewFile, contents: &[u8], plan: &Plan) -> Result<(), D::Error> {
        let Plan { slot, blocks, old } = plan;
        let mut parts = contents.chunks(BLOCK_BYTES);
        for &number in blocks {
            let mut block = [0; BLOCK_BYTES];
            let part = parts.next().unwrap_or_default();
            block[..part.len()].copy_from_slice(part);
            self.device.write(number, &block)?;
        }
        self.contents.table.chain(blocks);
        self.write_words(blocks)?;
        let file = File {
            name: file.name,
            kind: file.kind,
            copying: file.copying,
            first: blocks[0],
            created: file.created,
            blocks: blocks.len() as u16,
            header: match file.kind {
                Kind::Data => 0,
                Kind::Game => 1,
            },
        };
        self.contents.records[*slot] = file.encode();
        self.write_record(*slot)?;
        self.contents.table.free(old);
        self.write_words(old)
    }

    /// Removes the record `slot`, then frees the file's blocks.
    fn remove(&mut self, slot: usize, blocks: &[u16]) -> Result<(), D::Error> {
        let records = &mut self.contents.records;
        let last = records
            .iter()
            .rposition(|record| File::decode(record).is_some());
        let last = last.unwrap_or(slot);
        records[slot] = records[last];
        let layout = &self.contents.layout;
        // In one block, one write does both.
        if layout.directory_block_of(slot) != layout.directory_block_of(last) {
            self.write_record(slot)?;
        }
        self.contents.records[last] = NO_FILE;
        self.write_record(last)?;
        self.contents.table.free(blocks);
        self.write_words(blocks)
    }

    /// Writes what a repair changes, records first.
    fn mend(&mut self, checked: &Checked) -> Result<(), D::Error> {
        let Contents {
            layout,
            table,
            records,
            ..
        } = &mut self.contents;
        let (old_table, old_records) = (table.clone(), records.clone());
        repair::apply(checked, table, records);
        let again = check::check(layout, table, records);
        assert!(again.findings.is_empty(), "a repair leaves nothing to find");
        self.contents.findings.clear();
        let changed = (0..old_records.len()).step_by(RECORDS_PER_BLOCK);
        for slot in changed {
            let range = slot..slot + RECORDS_PER_BLOCK;
            if self.contents.records[range.clone()] != old_records[range] {
                self.write_record(slot)?;
            }
        }
        let table = &self.contents.table;
        let blocks = 0..=self.contents.layout.root();
        let changed = blocks.filter(|&block| table.word(block) != old_table.word(block));
        let changed: Vec<u16> = changed.collect();
        self.write_words(&changed)
    }

    /// Writes the words of `blocks` to the device.
    fn write_words(&mut self, blocks: &[u16]) -> Result<(), D::Error> {
        for word in one_per_table_block(blocks) {
            let number = self.contents.layout.fat_block_of(word);
            let block = self.contents.table.block_with(word);
            self.device.write(number, &block)?;
        }
        self.device.settle()
    }

    /// Writes the block of the directory with the record `slot` to the device.
    fn write_record(&mut self, slot: usize) -> Result<(), D::Error> {
        let first = slot / RECORDS_PER_BLOCK * RECORDS_PER_BLOCK;
        let records = &self.contents.records[first..first + RECORDS_PER_BLOCK];
        let mut block = [0; BLOCK_BYTES];
        for (place, record) in block.chunks_exact_mut(RECORD_BYTES).zip(records) {
            place.copy_from_slice(record);
        }
        let number = self.contents.layout.directory_block_of(slot);
        self.device.write(number, &block)?;
        self.device.settle()
    }
}

impl Contents {
    /// Reads what a device holds.
    fn read<D: BlockDevice>(device: &mut D) -> Result<Contents, Error<D::Error>> {
        let blocks = device.blocks();
        if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) {
            return Err(Error::Size { blocks });
        }
        let root = (blocks - 1) as u16;
        let mut block = [0; BLOCK_BYTES];
        device.read(root, &mut block).map_err(Error::Device)?;
        if !Layout::is_formatted(&block) {
            return Err(Error::Unformatted { root });
        }
        let layout = Layout::parse(&block, blocks).map_err(Error::Layout)?;
        let formatted = Layout::formatted(&block);
        let mut table = Table::unread(&layout);
        for number in layout.fat_block_of(0)..=layout.fat_last() {
            device.read(number, &mut block).map_err(Error::Device)?;
            table.load(&block);
        }
        let mut records = Vec::with_capacity(layout.records());
        for number in (layout.directory_first()..=layout.directory_last()).rev() {
            device.read(number, &mut block).map_err(Error::Device)?;
            let read = block.chunks_exact(RECORD_BYTES);
            records.extend(read.map(|bytes| {
                let mut record = NO_FILE;
                record.copy_from_slice(bytes);
                record
            }));
        }
        let findings = check::check(&layout, &table, &records).findings;
        Ok(Contents {
            layout,
            formatted,
            table,
            records,
            findings,
        })
    }

    /// Decides where a file of `bytes` goes.
    fn plan<E>(&self, file: &NewFile, bytes: usize) -> Result<Plan, Error<E>> {
        let needed = bytes.div_ceil(BLOCK_BYTES).max(1);
        let limit = self.layout.user_blocks();
        let blocks = match file.kind {
            Kind::Data => {
                let blocks = self.table.find_free(limit, needed);
                if blocks.len() < needed {
                    return Err(Error::Full {
                        needed: needed as u64,
                        free: blocks.len() as u32,
                    });
                }
                blocks
            }
            Kind::Game => {
                let free = self.table.count_free_at_start(limit);
                if (free as usize) < needed {
                    return Err(Error::NoPlaceForGame {
                        needed: needed as u64,
                        free,
                    });
                }
                (0..needed as u16).collect()
            }
        };
        let old_slot = self.find(&file.name);
        let mut slots = self.records.iter();
        let slot = old_slot
            .or_else(|| slots.position(|record| File::decode(record).is_none()))
            .ok_or(Error::DirectoryFull {
                records: self.records.len(),
            })?;
        let old = match old_slot {
            Some(slot) => self.chain_of(slot)?,
            None => Vec::new(),
        };
        Ok(Plan { slot, blocks, old })
    }

    /// The record of the first file called `name`.
    fn find(&self, name: &Name) -> Option<usize> {
        let is_called = |record: &Record| File::decode(record).is_some_and(|it| it.name == *name);
        self.records.iter().position(is_called)
    }

    /// The blocks of the file of a record, if they are all there.
    fn chain_of<E>(&self, slot: usize) -> Result<Vec<u16>, Error<E>> {
        let is_of =
            |finding: &&Finding| matches!(finding, Finding::Chain { slot: of, .. } if *of == slot);
        if let Some(&finding) = self.findings.iter().find(is_of) {
            return Err(Error::Damaged(finding));
        }
        let file = File::decode(&self.records[slot]).expect("a slot that was found has a file");
        let mut blocks = Vec::with_capacity(usize::from(file.blocks));
        let mut at = file.first;
        for _ in 0..file.blocks {
            blocks.push(at);
            at = self.table.word(at);
        }
        Ok(blocks)
    }
}

fn write<D: BlockDevice>(
    device: &mut D,
    number: u16,
    block: &Block,
) -> Result<(), Error<D::Error>> {
    device.write(number, block).map_err(Error::Device)
}

fn settle<D: BlockDevice>(device: &mut D) -> Result<(), Error<D::Error>> {
    device.settle().map_err(Error::Device)
}
