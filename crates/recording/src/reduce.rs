//! Reducing: from every reference of a process to the records that its trace keeps.
//!
//! - *Exact*: a record for each change of page, with all kinds of access the page saw until the
//!   next change, at the time of the first.
//! - *Quantum*: time is cut into quanta; each page has one record in each quantum that it is
//!   referred to in, at the time of the first reference, with all kinds it saw in the quantum.
//!
//! References by the kernel are records of their own, so that those of the program alone can be
//! told apart.

use tidemark_log::{SHARE_BYTES_MAX, Words};
use tidemark_trace::{Event, Kinds};

use crate::moves::{self, Joint};
use crate::runs::{NOWHERE, Run, Step};
use crate::sheet::Sheet;

/// Makes records of a process's references.
#[derive(Debug)]
pub struct Reducer {
    /// The sheet to which records go.
    pub sheet: Sheet,
    /// Instructions begun so far: the process's time.
    pub time: u64,
    page_shift: u32,
    open: Open,
    /// Events that stand after the open records, each with how many of them go before.
    waiting: Vec<(usize, u64, Event)>,
}

/// The records that may still change.
#[derive(Debug)]
enum Open {
    Exact(Option<Record>),
    Quantum(Quantum),
}

#[derive(Clone, Copy, Debug)]
struct Record {
    page: u64,
    time: u64,
    kinds: u8,
}

/// The quantum at hand.
#[derive(Debug)]
struct Quantum {
    length: u64,
    /// Counts the times records were made final; what `slots` has from before is empty.
    number: u64,
    /// The time at which the next begins.
    end: u64,
    records: Vec<Record>,
    /// The number of records of this quantum that are final already.
    drained: usize,
    /// A hash table of places in `records`, by page; never more than half full.
    slots: Vec<Slot>,
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u64,
    quantum: u64,
    index: u32,
    kinds: u8,
}

const EMPTY: Slot = Slot {
    page: 0,
    quantum: u64::MAX,
    index: 0,
    kinds: 0,
};
const SLOTS_FIRST: usize = 512;

/// A time that no program reaches, in the log's units. Larger times show a damaged log; below it,
/// sums of times can't overflow.
const TIME_MAX: u64 = 1 << 62;
/// The most pages of one entry. A damaged log may say more.
const SHARE_PAGES_MAX: u64 = SHARE_BYTES_MAX >> 12;
/// A time that a record's gap holds, with some to spare.
const GAP_SURE: u64 = 1 << 31;

impl Reducer {
    /// A reducer with quanta of this many instructions, or an exact one.
    pub fn new(sheet: Sheet, page_shift: u32, quantum: Option<u64>) -> Reducer {
        Reducer {
            sheet,
            time: 0,
            page_shift,
            open: match quantum {
                None => Open::Exact(None),
                Some(length) => Open::Quantum(Quantum::new(length)),
            },
            waiting: Vec::new(),
        }
    }

    /// Takes in a run. `words` are its number and the addresses it logged.
    #[inline]
    pub fn play(&mut self, run: &mut Run, words: &Words) {
        let after = self.time + u64::from(run.instructions);
        match &mut self.open {
            Open::Exact(open) => {
                let is_plain = self.waiting.is_empty() && self.sheet.make_room(run.records_max);
                match open {
                    Some(open) if is_plain && after - open.time < GAP_SURE => {
                        play_exact(
                            open,
                            &mut self.sheet,
                            run,
                            words,
                            self.time,
                            self.page_shift,
                        );
                    }
                    _ => {
                        let (sheet, waiting) = (&mut self.sheet, &mut self.waiting);
                        let place = (self.time, self.page_shift);
                        play_exact_slowly(open, sheet, waiting, run, words, place);
                    }
                }
            }
            Open::Quantum(quantum) if after < quantum.end => {
                quantum.play(run, words, self.time, self.page_shift);
            }
            Open::Quantum(quantum) => {
                let (sheet, waiting) = (&mut self.sheet, &mut self.waiting);
                let place = (self.time, self.page_shift);
                quantum.play_across(sheet, waiting, run, words, place);
            }
        }
        self.time = after;
    }

    /// Takes in a run that a fault cut short: its steps.
    pub fn play_cut(&mut self, run: &Run, words: &Words) {
        let (sheet, waiting) = (&mut self.sheet, &mut self.waiting);
        let place = (self.time, self.page_shift);
        match &mut self.open {
            Open::Exact(open) => play_exact_slowly(open, sheet, waiting, run, words, place),
            Open::Quantum(quantum) => quantum.play_across(sheet, waiting, run, words, place),
        }
        self.time += u64::from(run.instructions);
    }

    /// Takes in the kernel's reference to `bytes` at `start`.
    pub fn kernel(&mut self, start: u64, bytes: u64, kinds: u8) {
        self.settle_exact();
        let kinds = kinds | Kinds::KERNEL.0;
        let last = start.saturating_add(bytes - 1) >> self.page_shift;
        for page in start >> self.page_shift..=last {
            match &mut self.open {
                Open::Exact(_) => self.sheet.record(page, kinds, self.time),
                Open::Quantum(quantum) => quantum.touch_for_kernel(page, kinds, self.time),
            }
        }
    }

    /// Takes in that it is `time` now: no earlier than it was, and no later than there is room for.
    pub fn set_time(&mut self, time: u64) {
        self.time = self.time.max(time.min(TIME_MAX));
    }

    /// Takes in a touch of the page at `address`, at the time told last.
    pub fn touch(&mut self, address: u64, kinds: u8) {
        self.settle_exact();
        let page = address >> self.page_shift;
        match &mut self.open {
            Open::Exact(_) => self.sheet.record(page, kinds, self.time),
            Open::Quantum(quantum) => quantum.touch(page, kinds, self.time),
        }
    }

    /// Takes in that a share, in 256, of the pages of `bytes` from `start` was touched. Which ones
    /// is not known: they are taken to be the same each time, so that what is used here and there
    /// does not seem to wander. (A page has one record in a window, however often it is reported.)
    pub fn touch_share(&mut self, start: u64, bytes: u64, share: u32) {
        let first = start >> self.page_shift;
        let pages = bytes.div_ceil(1 << self.page_shift).min(SHARE_PAGES_MAX);
        for page in first..first.saturating_add(pages) {
            if spread(page) < share {
                self.touch(page << self.page_shift, 0);
            }
        }
    }

    /// Takes in an event.
    pub fn event(&mut self, event: Event) {
        let open = match &self.open {
            Open::Exact(record) => usize::from(record.is_some()),
            Open::Quantum(quantum) => quantum.records.len(),
        };
        if open == 0 {
            self.sheet.event(event, self.time);
        } else {
            self.waiting.push((open, self.time, event));
        }
    }

    /// Takes in what a system call has read from a file or written to it.
    pub fn moved(&mut self, event: Event) {
        let waiting = self.waiting.iter_mut().map(|(.., event)| event);
        let inside = Joint::Inside(1 << self.page_shift);
        let is_joined = moves::join(waiting, &event, Joint::Anywhere)
            || self.waiting.is_empty() && moves::join(self.sheet.events(), &event, inside);
        if !is_joined {
            self.event(event);
        }
    }

    /// In exact mode, makes the open record final: what follows is a reference anew.
    pub fn settle_exact(&mut self) {
        if let Open::Exact(_) = self.open {
            self.settle();
        }
    }

    /// Makes the records of a window final before it is over.
    pub fn drain_window(&mut self) {
        if let Open::Quantum(quantum) = &mut self.open {
            quantum.drain(&mut self.sheet, &mut self.waiting);
        }
    }

    /// Makes what is open final.
    pub fn settle(&mut self) {
        match &mut self.open {
            Open::Exact(open) => {
                if let Some(record) = open.take() {
                    self.sheet.record(record.page, record.kinds, record.time);
                }
                for (_, time, event) in self.waiting.drain(..) {
                    self.sheet.event(event, time);
                }
            }
            Open::Quantum(quantum) => quantum.settle(&mut self.sheet, &mut self.waiting),
        }
    }
}

/// A number below 256 that pages have as if by chance.
fn spread(page: u64) -> u32 {
    // Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4).
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u32
}

/// The pages a step refers to, first and last; `None` if it did not happen.
#[inline]
fn pages_of(step: &Step, words: &Words, page_shift: u32) -> Option<(u64, u64)> {
    // Word 0 is the run's number, and stands for nought: fixed addresses count from there.
    let mask = u64::from(step.word != 0).wrapping_neg();
    let base = u64::from_le_bytes(words[usize::from(step.word)]) & mask;
    if base == NOWHERE {
        return None;
    }
    let first = base.wrapping_add(step.offset.cast_unsigned());
    let last = first.wrapping_add(u64::from(step.reach));
    Some((
        first >> page_shift,
        (last >> page_shift).max(first >> page_shift),
    ))
}

/// Plays a run where nothing stands between its records, and no gap can be too long.
///
/// Nearly every step changes the page, and when it does is hard to foresee: so each step writes
/// the open record, and only counts it when it is over.
#[inline]
fn play_exact(
    open: &mut Record,
    sheet: &mut Sheet,
    run: &Run,
    words: &Words,
    time: u64,
    page_shift: u32,
) {
    let words = &words[..=run.words];
    let mut now = *open;
    let mut room = sheet.room(run.records_max);
    let mut step_on = |page: u64, kinds: u8, instruction: u32| {
        let is_over = page != now.page;
        room.put(now.page, now.kinds, now.time, is_over);
        now.kinds = if is_over { kinds } else { now.kinds | kinds };
        now.time = if is_over {
            time + u64::from(instruction)
        } else {
            now.time
        };
        now.page = page;
    };
    for step in &run.steps {
        let Some((first, last)) = pages_of(step, words, page_shift) else {
            continue;
        };
        step_on(first, step.kinds, step.instruction);
        for page in first + 1..=last {
            step_on(page, step.kinds, step.instruction);
        }
    }
    let used = room.used();
    sheet.use_room(used);
    *open = now;
}

/// Plays a run record by record.
#[cold]
fn play_exact_slowly(
    open: &mut Option<Record>,
    sheet: &mut Sheet,
    waiting: &mut Vec<(usize, u64, Event)>,
    run: &Run,
    words: &Words,
    (time, page_shift): (u64, u32),
) {
    for step in &run.steps {
        let Some((first, last)) = pages_of(step, words, page_shift) else {
            continue;
        };
        for page in first..=last {
            if let Some(open) = open
                && open.page == page
            {
                open.kinds |= step.kinds;
                continue;
            }
            if let Some(record) = open.take() {
                sheet.record(record.page, record.kinds, record.time);
            }
            for (_, time, event) in waiting.drain(..) {
                sheet.event(event, time);
            }
            *open = Some(Record {
                page,
                kinds: step.kinds,
                time: time + u64::from(step.instruction),
            });
        }
    }
}

impl Quantum {
    fn new(length: u64) -> Quantum {
        Quantum {
            length,
            number: 0,
            end: length,
            records: Vec::new(),
            drained: 0,
            slots: vec![EMPTY; SLOTS_FIRST],
            shift: u64::BITS - SLOTS_FIRST.trailing_zeros(),
        }
    }

    /// Plays a run that ends within this quantum.
    #[inline]
    fn play(&mut self, run: &mut Run, words: &Words, time: u64, page_shift: u32) {
        let words = &words[..=run.words];
        if run.quantum_fixed != self.number {
            self.play_fixed(run, time);
        }
        for index in 0..run.spans.len() {
            let span = run.spans[index];
            let address = u64::from_le_bytes(words[usize::from(span.word)]);
            if address.wrapping_sub(span.start) >= u64::from(span.length) {
                self.play_group(run, index, words, time, page_shift);
            }
        }
    }

    /// Plays a group that is not known to be where it was.
    #[inline(never)]
    fn play_group(
        &mut self,
        run: &mut Run,
        index: usize,
        words: &Words,
        time: u64,
        page_shift: u32,
    ) {
        let (group, span) = (&run.groups[index], &mut run.spans[index]);
        let address = u64::from_le_bytes(words[usize::from(group.word)]);
        if address == NOWHERE {
            return;
        }
        let first = address.wrapping_add(group.offset.cast_unsigned());
        let last = first.wrapping_add(u64::from(group.reach)) >> page_shift;
        let page = first >> page_shift;
        if page == last {
            span.start = (page << page_shift).wrapping_sub(group.offset.cast_unsigned());
            let length = (1 << page_shift) - u64::from(group.reach);
            // Fewer than there are only cost another look.
            span.length = u32::try_from(length).unwrap_or(u32::MAX);
            self.touch(page, group.kinds, time + u64::from(group.instruction));
        } else {
            span.length = 0;
            for step in run.steps.iter().filter(|step| step.word == group.word) {
                self.touch_step(step, words, time, page_shift);
            }
        }
    }

    /// Plays what does not change from one execution to the next: once in each quantum.
    fn play_fixed(&mut self, run: &mut Run, time: u64) {
        run.quantum_fixed = self.number;
        for fixed in &run.fixed {
            self.touch(fixed.page, fixed.kinds, time + u64::from(fixed.instruction));
        }
        for span in &mut run.spans {
            span.length = 0;
        }
    }

    /// Plays a run that may reach into the next quantum.
    #[cold]
    fn play_across(
        &mut self,
        sheet: &mut Sheet,
        waiting: &mut Vec<(usize, u64, Event)>,
        run: &Run,
        words: &Words,
        (start, page_shift): (u64, u32),
    ) {
        let after = start + u64::from(run.instructions);
        for (index, step) in run.steps.iter().enumerate() {
            self.advance(sheet, waiting, start + u64::from(step.instruction));
            self.touch_step(step, words, start, page_shift);
            if step.kinds != Kinds::FETCH.0 {
                continue;
            }
            // A fetch stands for the instructions up to the next step, and for the one that the
            // next step is an access of: its page is referred to in each quantum that one of them
            // falls in.
            let until = run.steps.get(index + 1).map_or(after, |next| {
                let is_fetch = next.kinds == Kinds::FETCH.0;
                start + u64::from(next.instruction) - u64::from(is_fetch)
            });
            while self.end <= until {
                let time = self.end;
                self.advance(sheet, waiting, time);
                self.touch(step.offset.cast_unsigned() >> page_shift, step.kinds, time);
            }
        }
        self.advance(sheet, waiting, after);
    }

    /// Goes on to the quantum that `time` is in.
    fn advance(&mut self, sheet: &mut Sheet, waiting: &mut Vec<(usize, u64, Event)>, time: u64) {
        if time >= self.end {
            self.settle(sheet, waiting);
            self.end = (time / self.length + 1) * self.length;
        }
    }

    #[inline]
    fn touch_step(&mut self, step: &Step, words: &Words, time: u64, page_shift: u32) {
        let Some((first, last)) = pages_of(step, words, page_shift) else {
            return;
        };
        for page in first..=last {
            self.touch(page, step.kinds, time + u64::from(step.instruction));
        }
    }

    #[inline]
    fn touch(&mut self, page: u64, kinds: u8, time: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.quantum != self.number {
                break;
            }
            if slot.page == page {
                if slot.kinds & kinds != kinds {
                    slot.kinds |= kinds;
                    let index = (slot.index as usize).wrapping_sub(self.drained);
                    if let Some(record) = self.records.get_mut(index) {
                        record.kinds |= kinds;
                    }
                }
                return;
            }
            at = (at + 1) & mask;
        }
        self.enter(at, page, kinds, time);
    }

    /// Adds a record for a page new in this quantum, whose slot is `at`.
    #[cold]
    fn enter(&mut self, at: usize, page: u64, kinds: u8, time: u64) {
        self.slots[at] = Slot {
            page,
            quantum: self.number,
            index: (self.drained + self.records.len()) as u32,
            kinds,
        };
        // A run may be played out of its order where that makes no other difference.
        let time = self.records.last().map_or(time, |last| last.time.max(time));
        self.records.push(Record { page, time, kinds });
        if 2 * (self.drained + self.records.len()) > self.slots.len() {
            self.grow();
        }
    }

    /// The kernel's records are kept apart from the program's: as pages of another table, whose
    /// numbers no program has.
    fn touch_for_kernel(&mut self, page: u64, kinds: u8, time: u64) {
        self.touch(page | KERNEL_PAGES, kinds, time);
    }

    fn grow(&mut self) {
        let larger = vec![EMPTY; 2 * self.slots.len()];
        let slots = std::mem::replace(&mut self.slots, larger);
        self.shift -= 1;
        let mask = self.slots.len() - 1;
        for slot in slots.into_iter().filter(|slot| slot.quantum == self.number) {
            let hash = slot.page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
            let mut at = hash as usize & mask;
            while self.slots[at].quantum == self.number {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    fn settle(&mut self, sheet: &mut Sheet, waiting: &mut Vec<(usize, u64, Event)>) {
        self.drain(sheet, waiting);
        self.drained = 0;
        self.number += 1;
    }

    /// Makes the records so far final. Their pages have no other in this quantum.
    fn drain(&mut self, sheet: &mut Sheet, waiting: &mut Vec<(usize, u64, Event)>) {
        self.drained += self.records.len();
        let mut events = waiting.drain(..).peekable();
        for (index, record) in self.records.drain(..).enumerate() {
            while let Some((_, time, event)) = events.next_if(|(after, ..)| *after <= index) {
                sheet.event(event, time);
            }
            sheet.record(record.page & !KERNEL_PAGES, record.kinds, record.time);
        }
        for (_, time, event) in events {
            sheet.event(event, time);
        }
    }
}

/// Set in the numbers of pages the kernel refers to, while a quantum is open.
const KERNEL_PAGES: u64 = 1 << 63;
