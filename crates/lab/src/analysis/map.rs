//! Address maps: how often each part of each address space was used in each span of time.
//!
//! A [`Mapper`] takes the blocks of a trace one by one and keeps a bounded number of rows and
//! columns. When time outgrows the columns, each two become one; when pages outgrow the rows, each
//! two rows of the part with the most rows become one. So a trace is mapped in one pass, without
//! knowing its length or its addresses beforehand.
//!
//! A page belongs to what was mapped there when it was referred to: pages are grouped by process,
//! program and label before rows are made of them, so no row has pages of two kinds.
//!
//! # Invariants
//! 1. There are at most `columns_max` columns and `rows_max` rows, apart from one row for each
//!    group of pages that has no second row to merge with.
//! 2. The sum of all cells is the number of records taken in (up to 2^32 a cell).
//!
//! # Bounds
//! Memory: rows × columns × 4 bytes, and a bit for each page between the first and the last of 64
//! that were touched together. A record costs one look into a small table when its page was used
//! lately, and a walk of two ordered maps otherwise.

use std::collections::{BTreeMap, HashMap};

use tidemark_results::analysis::Mark;
use tidemark_results::analysis::map::{Region, Row};
use tidemark_trace::{Block, Kinds, TimeUnit};

pub(crate) mod places;

use super::references::Clock;
use places::{Place, Places};

/// The fineness of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fineness {
    /// The most columns; at least two. A long trace has between half of it and all of it.
    pub columns_max: usize,
    /// The most rows.
    pub rows_max: usize,
}

/// A finished map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// The number of columns.
    pub columns: usize,
    /// The virtual time of a column.
    pub column_time: u64,
    /// Virtual time over all processes.
    pub time: u64,
    /// The parts of the address spaces, by process, program and address.
    pub regions: Vec<Region>,
    /// Moments that were named.
    pub marks: Vec<Mark>,
}

/// Makes a map of the blocks it is given.
pub struct Mapper {
    fineness: Fineness,
    unit: TimeUnit,
    column_time: u64,
    clock: Clock,
    /// The mappings, by process.
    places: Places,
    groups: Vec<Group>,
    group_of: HashMap<Place, usize>,
    rows: Vec<Cells>,
    /// Rows in use: `rows` without those that were merged away.
    rows_used: usize,
    recent: Vec<Recent>,
    marks: Vec<Mark>,
}

/// Pages of one process, program and label.
struct Group {
    place: Place,
    /// A row covers 2^`shift` pages.
    shift: u32,
    /// Rows by their first page shifted right.
    rows: BTreeMap<u64, u32>,
    /// The pages that were touched, 64 a word.
    touched: HashMap<u64, u64>,
}

/// The counts of a row.
#[derive(Clone, Default)]
struct Cells {
    columns: Vec<u32>,
    records: u64,
    stores: u64,
    fetches: u64,
    touched: u64,
}

/// The place at which a page was found last time.
#[derive(Clone, Copy, Default)]
struct Recent {
    page: u64,
    process: u32,
    row: u32,
    /// Of [`Places::generation`]; an entry of another one is stale.
    generation: u64,
}

/// Entries of the table of recent pages; a power of two.
const RECENT: usize = 1 << 13;

/// Pages that were never mapped as far as the trace says.
pub(crate) const UNNAMED: &str = "unnamed";

/// Rows this far apart in one group are two regions, if the gap is as many rows wide as well.
const GAP_PAGES: u64 = 1024;
const GAP_ROWS: u64 = 32;
/// The most regions a group is divided into.
const PARTS_MAX: usize = 24;

impl Default for Fineness {
    fn default() -> Fineness {
        Fineness {
            columns_max: 2048,
            rows_max: 2048,
        }
    }
}

impl Mapper {
    /// A map without references, of a trace whose times are in `unit`.
    ///
    /// # Panics
    /// If there is no room for two columns or one row.
    pub fn new(unit: TimeUnit, fineness: Fineness) -> Mapper {
        assert!(fineness.columns_max >= 2 && fineness.rows_max >= 1);
        Mapper {
            fineness,
            unit,
            column_time: 1,
            clock: Clock::default(),
            places: Places::default(),
            groups: vec![],
            group_of: HashMap::new(),
            rows: vec![],
            rows_used: 0,
            recent: vec![Recent::default(); RECENT],
            marks: vec![],
        }
    }

    /// Takes in the next block of the trace.
    pub fn take(&mut self, block: &Block) {
        self.walk(block, Mapper::take_records);
    }

    /// Takes in the marks of the next block and lets its time pass, without its references.
    pub fn take_events(&mut self, block: &Block) {
        self.walk(block, Mapper::pass_records);
    }

    /// The map of what was taken in.
    pub fn finish(self) -> AddressMap {
        let columns = self.rows.iter().map(|row| row.columns.len()).max();
        let mut regions: Vec<Region> = vec![];
        for group in &self.groups {
            regions.extend(self.regions(group));
        }
        regions.sort_by_key(|region| (region.process, region.start));
        AddressMap {
            columns: columns.unwrap_or(0),
            column_time: self.column_time,
            time: self.clock.now,
            regions,
            marks: self.marks,
        }
    }

    /// Follows the events of a block, and has `records` look after what lies between them.
    fn walk(&mut self, block: &Block, records: fn(&mut Mapper, &Block, usize, usize)) {
        if self.unit != TimeUnit::References {
            self.clock.begin(block.process, block.time_start);
        }
        for (stretch, event) in block.stretches() {
            records(self, block, stretch.start, stretch.end);
            let Some(event) = event else { break };
            if let Some(name) = self.places.happen(block.process, event) {
                let mark = Mark {
                    time: self.clock.now,
                    process: block.process,
                    name,
                };
                self.marks.push(mark);
            }
        }
    }

    /// Lets the time pass that records take.
    fn pass_records(&mut self, block: &Block, from: usize, until: usize) {
        self.clock.pass(match self.unit {
            TimeUnit::References => (until - from) as u64,
            TimeUnit::Instructions | TimeUnit::Nanoseconds => block.gaps[from..until]
                .iter()
                .map(|gap| u64::from(*gap))
                .sum(),
        });
    }

    fn take_records(&mut self, block: &Block, from: usize, until: usize) {
        let process = block.process;
        for at in from..until {
            self.clock.pass(match self.unit {
                TimeUnit::References => 1,
                TimeUnit::Instructions | TimeUnit::Nanoseconds => u64::from(block.gaps[at]),
            });
            // A reference at time t belongs to the span that ends there.
            let mut column = self.clock.now.saturating_sub(1) / self.column_time;
            while column >= self.fineness.columns_max as u64 {
                self.halve_columns();
                column /= 2;
            }
            let row = self.row(process, block.pages[at]);
            self.rows[row].count(column as usize, Kinds(block.kinds[at]));
        }
    }

    /// The row of a page, found or made.
    #[inline]
    fn row(&mut self, process: u32, page: u64) -> usize {
        let slot = slot(process, page);
        let recent = self.recent[slot];
        if recent.page == page
            && recent.process == process
            && recent.generation == self.places.generation()
        {
            return recent.row as usize;
        }
        let row = self.find_row(process, page);
        self.recent[slot] = Recent {
            page,
            process,
            row: row as u32,
            generation: self.places.generation(),
        };
        row
    }

    fn find_row(&mut self, process: u32, page: u64) -> usize {
        let place = self.places.place(process, page);
        let index = match self.group_of.get(&place) {
            Some(index) => *index,
            None => {
                self.groups.push(Group::new(place));
                self.group_of.insert(place, self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[index];
        let word = group.touched.entry(page / 64).or_default();
        let is_new = *word & (1 << (page % 64)) == 0;
        *word |= 1 << (page % 64);
        let key = page >> group.shift;
        if let Some(row) = group.rows.get(&key) {
            let row = *row as usize;
            self.rows[row].touched += u64::from(is_new);
            return row;
        }
        group.rows.insert(key, self.rows.len() as u32);
        self.rows.push(Cells {
            touched: 1,
            ..Cells::default()
        });
        self.rows_used += 1;
        if self.rows_used <= self.fineness.rows_max {
            return self.rows.len() - 1;
        }
        self.make_room();
        let group = &self.groups[index];
        group.rows[&(page >> group.shift)] as usize
    }

    /// Makes each two columns one.
    fn halve_columns(&mut self) {
        self.column_time *= 2;
        for row in &mut self.rows {
            row.columns = row
                .columns
                .chunks(2)
                .map(|pair| {
                    pair.iter()
                        .fold(0, |sum: u32, cell| sum.saturating_add(*cell))
                })
                .collect();
        }
    }

    /// Makes each two rows one, in the groups with the most rows, until the rows fit.
    fn make_room(&mut self) {
        while self.rows_used > self.fineness.rows_max {
            let most = self.groups.iter().enumerate();
            let most = most.max_by_key(|(_, group)| group.rows.len());
            let index = most.expect("a row is in a group").0;
            if self.groups[index].rows.len() < 2 {
                break;
            }
            self.halve_rows(index);
        }
        self.drop_merged();
        self.places.forget_recent();
    }

    fn halve_rows(&mut self, index: usize) {
        let group = &mut self.groups[index];
        let rows = std::mem::take(&mut group.rows);
        group.shift += 1;
        for (key, row) in rows {
            match group.rows.get(&(key / 2)) {
                None => {
                    group.rows.insert(key / 2, row);
                }
                Some(into) => {
                    let from = std::mem::take(&mut self.rows[row as usize]);
                    self.rows[*into as usize].merge(&from);
                    self.rows_used -= 1;
                }
            }
        }
    }

    /// Closes the gaps that merging left among the rows.
    fn drop_merged(&mut self) {
        let mut kept = Vec::with_capacity(self.rows_used);
        for group in &mut self.groups {
            for row in group.rows.values_mut() {
                kept.push(std::mem::take(&mut self.rows[*row as usize]));
                *row = (kept.len() - 1) as u32;
            }
        }
        self.rows = kept;
    }

    /// The regions of a group: its rows, divided at wide gaps.
    fn regions(&self, group: &Group) -> Vec<Region> {
        let rows: Vec<(u64, &Cells)> = group
            .rows
            .iter()
            .map(|(key, row)| (*key, &self.rows[*row as usize]))
            .collect();
        let mut parts = vec![];
        let mut from = 0;
        for cut in group.cuts() {
            parts.push(self.region(group, &rows[from..cut]));
            from = cut;
        }
        if from < rows.len() {
            parts.push(self.region(group, &rows[from..]));
        }
        parts
    }

    fn region(&self, group: &Group, rows: &[(u64, &Cells)]) -> Region {
        let sum = |what: fn(&Cells) -> u64| rows.iter().map(|(_, cells)| what(cells)).sum();
        let start = rows[0].0 << group.shift;
        let last = rows[rows.len() - 1].0;
        let (program, label) = self.places.names(group.place);
        Region {
            process: group.place.process,
            program: program.into(),
            label: label.unwrap_or(UNNAMED).into(),
            start,
            pages: ((last - rows[0].0) << group.shift) + (1 << group.shift),
            touched: sum(|cells| cells.touched),
            records: sum(|cells| cells.records),
            stores: sum(|cells| cells.stores),
            fetches: sum(|cells| cells.fetches),
            rows: rows
                .iter()
                .map(|(key, cells)| cells.row(key << group.shift, 1 << group.shift))
                .collect(),
        }
    }
}

impl Group {
    fn new(place: Place) -> Group {
        Group {
            place,
            shift: 0,
            rows: BTreeMap::new(),
            touched: HashMap::new(),
        }
    }

    /// The divisions of the rows, as places among them: the widest gaps, in order of address.
    fn cuts(&self) -> Vec<usize> {
        let keys: Vec<u64> = self.rows.keys().copied().collect();
        let gap_least = GAP_ROWS.max(GAP_PAGES >> self.shift);
        let mut cuts: Vec<(u64, usize)> = keys
            .windows(2)
            .enumerate()
            .map(|(at, pair)| (pair[1] - pair[0], at + 1))
            .filter(|(gap, _)| *gap > gap_least)
            .collect();
        cuts.sort_unstable_by(|a, b| b.cmp(a));
        cuts.truncate(PARTS_MAX - 1);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|(_, at)| at).collect();
        cuts.sort_unstable();
        cuts
    }
}

impl Cells {
    #[inline]
    fn count(&mut self, column: usize, kinds: Kinds) {
        if column >= self.columns.len() {
            self.columns.resize(column + 1, 0);
        }
        let cell = &mut self.columns[column];
        *cell = cell.saturating_add(1);
        self.records += 1;
        self.stores += u64::from(kinds.has(Kinds::STORE));
        self.fetches += u64::from(kinds.has(Kinds::FETCH));
    }

    fn merge(&mut self, other: &Cells) {
        let length = self.columns.len().max(other.columns.len());
        self.columns.resize(length, 0);
        for (into, from) in self.columns.iter_mut().zip(&other.columns) {
            *into = into.saturating_add(*from);
        }
        self.records += other.records;
        self.stores += other.stores;
        self.fetches += other.fetches;
        self.touched += other.touched;
    }

    fn row(&self, start: u64, pages: u64) -> Row {
        let from = self.columns.iter().position(|cell| *cell > 0).unwrap_or(0);
        let cells = self.columns[from.min(self.columns.len())..].iter();
        Row {
            start,
            pages,
            from,
            cells: cells.map(|cell| u64::from(*cell)).collect(),
        }
    }
}

/// The place of a page in the table of recent ones.
#[inline]
fn slot(process: u32, page: u64) -> usize {
    let mixed = (page ^ (u64::from(process) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % RECENT
}

#[cfg(test)]
mod tests;
