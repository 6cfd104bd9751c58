//! A block as bytes, and back.
//!
//! Programs repeat themselves: the same few pages, in the same order, with the same gaps. So each
//! record becomes a *row* of two bytes that repeats exactly when the program does, and a
//! compressor finds the repetition. One byte numbers the page in the block's own list of pages,
//! the other has the kinds of access and a short gap. What does not fit goes to columns of its
//! own: *far* numbers of pages and *long* gaps.
//!
//! # Invariants
//! 1. Where more pages than a byte numbers are in a block, those used most have the low numbers.
//! 2. A section that compression does not shorten is stored as it is.

use zstd::bulk::{Compressor, Decompressor};

use crate::error::Part;
use crate::model::Block;

use super::part::{HEAD_BYTES, Mark, number32, number64, seal};
use super::{events, varint};

/// The effort of the compressor. Higher levels take 3 to 5 % off, and halve the speed of writing.
const LEVEL: i32 = 1;

/// The bytes of a block's contents before its sections.
pub const CONTENTS_HEAD_BYTES: usize = 32;

/// A row's page number if the number is in the column of far ones.
const FAR: u8 = u8::MAX;

/// A row's gap if the rest of it is in the column of long ones.
const LONG: u8 = 15;

/// The least bytes a section must have for compression to be tried.
const COMPRESSED_BYTES_MIN: usize = 32;

/// The head of a block's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The process.
    pub process: u32,
    /// The number of records.
    pub records: u32,
    /// The number of events.
    pub events: u32,
    /// The number of pages of the block's list.
    pub listed: u32,
    /// The process's time at the beginning.
    pub time_start: u64,
    /// The process's time at the end.
    pub time_end: u64,
}

/// Turns blocks into bytes. Its memory is bounded by what one block needs.
pub struct Packer {
    compressor: Compressor<'static>,
    numbering: Numbering,
    numbers: Vec<u16>,
    rows: Vec<u8>,
    far: Vec<u8>,
    long: Vec<u8>,
    pages: Vec<u8>,
    events: Vec<u8>,
}

/// Turns bytes into blocks. Its memory is bounded by what one block needs.
pub struct Depacker {
    decompressor: Decompressor<'static>,
    section: Vec<u8>,
    rows: Vec<u8>,
    listed: Vec<u64>,
}

/// Numbers the pages of a block in the order of their first use.
struct Numbering {
    /// For each slot of a hash table: `base` plus the number of the page there. What is below
    /// `base` is left over from earlier blocks, and empty.
    slots: Vec<u32>,
    base: u32,
    pages: Vec<u64>,
    /// Pages numbered lately, by their hashes: most need no further look.
    lately: Box<[Lately; 1 << Numbering::LATELY_BITS]>,
}

impl Outline {
    /// Reads the head of a block's contents.
    pub fn parse(bytes: &[u8; CONTENTS_HEAD_BYTES]) -> Outline {
        Outline {
            process: number32(&bytes[..4]),
            records: number32(&bytes[4..8]),
            events: number32(&bytes[8..12]),
            listed: number32(&bytes[12..16]),
            time_start: number64(&bytes[16..24]),
            time_end: number64(&bytes[24..32]),
        }
    }

    /// Returns true if a block can be as large as it says.
    pub fn is_bounded(&self) -> bool {
        self.records as usize <= Block::RECORDS_MAX
            && self.events as usize <= Block::EVENTS_MAX
            && self.listed <= self.records
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.process.to_le_bytes());
        out.extend(self.records.to_le_bytes());
        out.extend(self.events.to_le_bytes());
        out.extend(self.listed.to_le_bytes());
        out.extend(self.time_start.to_le_bytes());
        out.extend(self.time_end.to_le_bytes());
    }
}

impl Packer {
    /// A packer.
    pub fn new() -> std::io::Result<Packer> {
        Ok(Packer {
            compressor: Compressor::new(LEVEL)?,
            numbering: Numbering::new(),
            numbers: Vec::new(),
            rows: Vec::new(),
            far: Vec::new(),
            long: Vec::new(),
            pages: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Leaves in `part` the whole part that holds `block`, and returns its head.
    ///
    /// - Needs: the block keeps its invariants.
    pub fn pack(&mut self, block: &Block, part: &mut Vec<u8>) -> std::io::Result<Outline> {
        self.fill_rows(block);
        self.events.clear();
        events::put(&mut self.events, &block.events, block.time_start);
        let count = |length| u32::try_from(length).expect("a block's lengths are bounded");
        let outline = Outline {
            process: block.process,
            records: count(block.pages.len()),
            events: count(block.events.len()),
            listed: count(self.numbering.pages.len()),
            time_start: block.time_start,
            time_end: block.time_end(),
        };
        part.clear();
        part.resize(HEAD_BYTES, 0);
        outline.put(part);
        for section in [&self.pages, &self.rows, &self.far, &self.long, &self.events] {
            put_section(&mut self.compressor, section, part)?;
        }
        seal(part, Mark::Block);
        Ok(outline)
    }

    /// Lists the block's pages, and makes a row of each record.
    fn fill_rows(&mut self, block: &Block) {
        self.numbering.begin();
        self.far.clear();
        self.long.clear();
        self.rows.resize(2 * block.pages.len(), 0);
        self.numbers.resize(block.pages.len(), 0);
        let records = block.pages.iter().zip(&block.kinds).zip(&block.gaps);
        let (rows, _) = self.rows.as_chunks_mut::<2>();
        let places = rows.iter_mut().zip(&mut self.numbers);
        for ((row, kept), ((&page, &kinds), &gap)) in places.zip(records) {
            let number = self.numbering.number(page);
            let short = gap.min(u32::from(LONG)) as u8;
            *row = [kinds | short << 4, number.min(u16::from(FAR)) as u8];
            *kept = number;
            if short == LONG {
                varint::put(&mut self.long, u64::from(gap - u32::from(LONG)));
            }
        }
        if self.numbering.pages.len() > usize::from(FAR) {
            self.number_by_use();
        }
        self.list_pages();
    }

    /// Numbers the pages anew, those used most first.
    #[cold]
    fn number_by_use(&mut self) {
        let mut uses = vec![0_u32; self.numbering.pages.len()];
        for &number in &self.numbers {
            uses[usize::from(number)] += 1;
        }
        let last = u16::try_from(uses.len() - 1).expect("a block has no more records");
        let mut order: Vec<u16> = (0..=last).collect();
        // Stable: equals stay in the order of first use.
        order.sort_by_key(|&number| std::cmp::Reverse(uses[usize::from(number)]));
        let mut ranks = vec![0_u16; order.len()];
        for (rank, &number) in order.iter().enumerate() {
            ranks[usize::from(number)] = u16::try_from(rank).expect("a number was one before");
        }
        let (rows, _) = self.rows.as_chunks_mut::<2>();
        for (row, &number) in rows.iter_mut().zip(&self.numbers) {
            let rank = ranks[usize::from(number)];
            row[1] = rank.min(u16::from(FAR)) as u8;
            if row[1] == FAR {
                self.far.extend(rank.to_le_bytes());
            }
        }
        let pages = &self.numbering.pages;
        let pages = order.iter().map(|&number| pages[usize::from(number)]);
        self.numbering.pages = pages.collect();
    }

    fn list_pages(&mut self) {
        self.pages.clear();
        let mut before = 0_u64;
        for &page in &self.numbering.pages {
            let step = page.wrapping_sub(before).cast_signed();
            varint::put(&mut self.pages, varint::fold(step));
            before = page;
        }
    }
}

impl Depacker {
    /// A depacker.
    pub fn new() -> std::io::Result<Depacker> {
        Ok(Depacker {
            decompressor: Decompressor::new()?,
            section: Vec::new(),
            rows: Vec::new(),
            listed: Vec::new(),
        })
    }

    /// Replaces `block` by the one whose contents these are.
    ///
    /// # Errors
    /// What is wrong with the contents; `block` is then left with anything.
    pub fn depack(&mut self, contents: &[u8], block: &mut Block) -> Result<(), Part> {
        let (head, mut rest) = contents
            .split_first_chunk::<CONTENTS_HEAD_BYTES>()
            .ok_or(Part::Column)?;
        let outline = Outline::parse(head);
        if !outline.is_bounded() {
            return Err(Part::Column);
        }
        let (records, listed) = (outline.records as usize, outline.listed as usize);
        block.process = outline.process;
        block.time_start = outline.time_start;
        block.clear();
        self.take_section(&mut rest, listed * varint::BYTES_MAX)?;
        self.list_pages(listed).ok_or(Part::Column)?;
        self.take_section(&mut rest, 2 * records)?;
        std::mem::swap(&mut self.rows, &mut self.section);
        if self.rows.len() != 2 * records {
            return Err(Part::Column);
        }
        self.take_section(&mut rest, 2 * records)?;
        self.fill_pages(listed, &mut block.pages)
            .ok_or(Part::Column)?;
        self.take_section(&mut rest, records * varint::BYTES_MAX)?;
        self.fill_gaps(block).ok_or(Part::Column)?;
        self.take_section(&mut rest, events::BYTES_MAX)?;
        let events = outline.events as usize;
        events::take(&self.section, events, block.time_start, &mut block.events)
            .ok_or(Part::Events)?;
        block.check().map_err(Part::Block)?;
        match rest.is_empty() && block.time_end() == outline.time_end {
            true => Ok(()),
            false => Err(Part::Column),
        }
    }

    /// Takes a section of at most `bytes_max` off the front of `rest`, into `section`.
    fn take_section(&mut self, rest: &mut &[u8], bytes_max: usize) -> Result<(), Part> {
        let (lengths, behind) = rest.split_first_chunk::<8>().ok_or(Part::Column)?;
        let plain = number32(&lengths[..4]) as usize;
        let stored = number32(&lengths[4..]) as usize;
        let (bytes, behind) = behind.split_at_checked(stored).ok_or(Part::Column)?;
        *rest = behind;
        if plain > bytes_max || stored > plain {
            return Err(Part::Column);
        }
        self.section.clear();
        if stored == plain {
            self.section.extend_from_slice(bytes);
            return Ok(());
        }
        self.section.resize(plain, 0);
        match self
            .decompressor
            .decompress_to_buffer(bytes, &mut self.section[..])
        {
            Ok(count) if count == plain => Ok(()),
            Ok(_) | Err(_) => Err(Part::Column),
        }
    }

    /// Reads the block's list of pages. Behind it come zeros, so that every near number has an
    /// entry.
    fn list_pages(&mut self, count: usize) -> Option<()> {
        let mut bytes = &self.section[..];
        self.listed.clear();
        let mut page = 0_u64;
        for _ in 0..count {
            let step = varint::unfold(varint::take(&mut bytes)?);
            page = page.wrapping_add(step.cast_unsigned());
            self.listed.push(page);
        }
        self.listed.resize(count.max(usize::from(FAR) + 1), 0);
        bytes.is_empty().then_some(())
    }

    /// Looks up the rows' pages; `section` holds the far numbers.
    fn fill_pages(&self, count: usize, pages: &mut Vec<u64>) -> Option<()> {
        let (rows, _) = self.rows.as_chunks::<2>();
        let near: &[u64; 256] = self.listed.first_chunk()?;
        let mut largest = 0;
        pages.extend(rows.iter().map(|&[_, number]| {
            if number != FAR {
                largest = largest.max(number);
            }
            near[usize::from(number)]
        }));
        if count < usize::from(FAR) && usize::from(largest) >= count && !rows.is_empty() {
            return None;
        }
        let (far, remainder) = self.section.as_chunks::<2>();
        let mut far = far.iter();
        if far.len() > 0 {
            let known = self.listed.get(..count)?;
            for (page, _) in pages.iter_mut().zip(rows).filter(|(_, row)| row[1] == FAR) {
                let number = u16::from_le_bytes(*far.next()?);
                *page = *known.get(usize::from(number))?;
            }
        } else if rows.iter().any(|&[_, number]| number == FAR) {
            return None;
        }
        (far.len() == 0 && remainder.is_empty()).then_some(())
    }

    /// Splits the rows' other bytes into kinds and gaps; `section` holds the long gaps.
    fn fill_gaps(&mut self, block: &mut Block) -> Option<()> {
        let (rows, _) = self.rows.as_chunks::<2>();
        block
            .kinds
            .extend(rows.iter().map(|&[access, _]| access & 0x0f));
        let length = self.section.len();
        // So that looking one byte ahead needs no check.
        self.section.push(0);
        let long = &self.section[..];
        let mut at = 0;
        block.gaps.resize(rows.len(), 0);
        for (gap, &[access, _]) in block.gaps.iter_mut().zip(rows) {
            let short = access >> 4;
            let next = *long.get(at)?;
            if next >= 0x80 && short == LONG {
                let mut bytes = &long[at..length];
                let before = bytes.len();
                let rest = varint::take(&mut bytes)?;
                at += before - bytes.len();
                *gap = u32::try_from(rest.checked_add(u64::from(LONG))?).ok()?;
            } else {
                // Without a branch: which gaps are long is hard to foresee.
                let is_long = short == LONG;
                *gap = u32::from(short) + if is_long { u32::from(next) } else { 0 };
                at += usize::from(is_long);
            }
        }
        (at == length).then_some(())
    }
}

/// A page and what `slots` has for it.
#[derive(Clone, Copy)]
struct Lately {
    page: u64,
    numbered: u32,
}

impl Numbering {
    const SLOTS_BITS: u32 = 17;
    const LATELY_BITS: u32 = 10;

    fn new() -> Numbering {
        let none = Lately {
            page: 0,
            numbered: 0,
        };
        Numbering {
            slots: vec![0; 1 << Self::SLOTS_BITS],
            base: 1,
            pages: Vec::new(),
            lately: Box::new([none; 1 << Numbering::LATELY_BITS]),
        }
    }

    /// Forgets every page.
    fn begin(&mut self) {
        let used = u32::try_from(self.pages.len()).expect("a block's lengths are bounded");
        self.base += used;
        if self.base > u32::MAX - (1 << 16) {
            self.slots.fill(0);
            self.lately
                .iter_mut()
                .for_each(|lately| lately.numbered = 0);
            self.base = 1;
        }
        self.pages.clear();
    }

    /// The number of `page`.
    #[inline]
    fn number(&mut self, page: u64) -> u16 {
        let hash = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let lately = self.lately[(hash >> (64 - Self::LATELY_BITS)) as usize];
        if lately.page == page && lately.numbered >= self.base {
            return (lately.numbered - self.base) as u16;
        }
        self.look_up(page, hash)
    }

    #[inline(never)]
    fn look_up(&mut self, page: u64, hash: u64) -> u16 {
        let mut slot = (hash >> (64 - Self::SLOTS_BITS)) as usize;
        let number = loop {
            let Some(number) = self.slots[slot].checked_sub(self.base) else {
                let number = self.pages.len() as u32;
                self.slots[slot] = self.base + number;
                self.pages.push(page);
                break number;
            };
            if self.pages[number as usize] == page {
                break number;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        };
        self.lately[(hash >> (64 - Self::LATELY_BITS)) as usize] = Lately {
            page,
            numbered: self.base + number,
        };
        u16::try_from(number).expect("a block has no more records")
    }
}

fn put_section(
    compressor: &mut Compressor<'static>,
    section: &[u8],
    part: &mut Vec<u8>,
) -> std::io::Result<()> {
    let plain = u32::try_from(section.len()).expect("a block's lengths are bounded");
    part.extend(plain.to_le_bytes());
    let at = part.len();
    part.extend(plain.to_le_bytes());
    let start = part.len();
    let mut stored = section.len();
    if section.len() >= COMPRESSED_BYTES_MIN {
        part.resize(start + zstd::zstd_safe::compress_bound(section.len()), 0);
        stored = compressor.compress_to_buffer(section, &mut part[start..])?;
    }
    if stored >= section.len() {
        part.truncate(start);
        part.extend_from_slice(section);
        return Ok(());
    }
    part.truncate(start + stored);
    let stored = u32::try_from(stored).expect("it is shorter than before");
    part[at..start].copy_from_slice(&stored.to_le_bytes());
    Ok(())
}
