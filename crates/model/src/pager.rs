//! The simulated pager: a store that is slow, reorders, fails and fills up.
//!
//! The same [`SimPager`] stands for the swap store and for external pagers; only the addresses
//! differ. It is as unkind as the [seam](tidemark_core::seams::pager) allows: the bytes of a
//! transfer are read or written at any moment between its start and its end, a failed store leaves
//! noise on the store, a failed fetch leaves noise in the frames, and a slot that was given back
//! holds noise.
//!
//! # Invariants
//! 1. Every transfer is answered exactly once, at the time drawn for it when it started.
//! 2. While a store writes a slot, no other transfer concerns it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use tidemark_core::id::{FrameId, PageId, PagerId, SlotId, Ticket};
use tidemark_core::memory::swap_slots::{LocalSlots, Slots};
use tidemark_core::seams::pager::{Direction, Outcome, Place, Reply, Request};
use tidemark_core::time::Time;

use crate::physical::{Physical, Stamp};
use crate::random::{Choices, SplitMix64};

/// The behaviour of a pager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temper {
    /// The least time a transfer takes.
    pub latency_ns_min: u64,
    /// The most time a transfer takes. Transfers that draw different times are reordered.
    pub latency_ns_max: u64,
    /// The number of a thousand fetches that fail.
    pub fetch_failures_per_mille: u32,
    /// The number of a thousand stores that fail.
    pub store_failures_per_mille: u32,
    /// The number of pages that an external pager can hold; stores beyond that fail.
    pub capacity_pages: usize,
}

impl Temper {
    /// A pager that answers in order, always succeeds and never fills up.
    pub const CALM: Temper = Temper {
        latency_ns_min: 100_000,
        latency_ns_max: 100_000,
        fetch_failures_per_mille: 0,
        store_failures_per_mille: 0,
        capacity_pages: usize::MAX,
    };
}

/// The place at which a pager keeps one page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// A slot of the swap store.
    Slot(SlotId),
    /// A page of an external object.
    External(PagerId, u64),
}

struct Transfer {
    request: Request,
    due: Time,
    outcome: Outcome,
    pieces: Vec<Piece>,
}

struct Piece {
    address: Address,
    frame: FrameId,
    /// The contents of the frame when a store started, if that is when it is read.
    early: Option<Stamp>,
}

/// A simulated store.
pub struct SimPager {
    physical: Physical,
    shelf: BTreeMap<Address, Stamp>,
    temper: Temper,
    random: SplitMix64,
    now: Time,
    transfers: BTreeMap<(Time, Ticket), Transfer>,
    is_held: bool,
    fetch_failures_coming: u32,
    store_failures_coming: u32,
}

impl SimPager {
    /// Makes an empty store that moves pages from and to `physical`.
    pub fn new(physical: Physical, temper: Temper, seed: u64) -> SimPager {
        assert!(temper.latency_ns_min <= temper.latency_ns_max);
        SimPager {
            physical,
            shelf: BTreeMap::new(),
            temper,
            random: SplitMix64::new(seed),
            now: Time(0),
            transfers: BTreeMap::new(),
            is_held: false,
            fetch_failures_coming: 0,
            store_failures_coming: 0,
        }
    }

    /// Says what the store holds at `address`.
    pub fn preset(&mut self, address: Address, stamp: Stamp) {
        self.shelf.insert(address, stamp);
    }

    /// Turns what the store holds at `address` into noise.
    pub fn spoil(&mut self, address: Address) {
        self.shelf.insert(address, Stamp::NOISE);
    }

    /// Behaves like `temper` from the next transfer on.
    pub fn set_temper(&mut self, temper: Temper) {
        self.temper = temper;
    }

    /// Fails the next fetches, that many.
    pub fn fail_next_fetches(&mut self, count: u32) {
        self.fetch_failures_coming += count;
    }

    /// Fails the next stores, that many.
    pub fn fail_next_stores(&mut self, count: u32) {
        self.store_failures_coming += count;
    }

    /// Fails nothing of what starts from now on, whatever was announced.
    pub fn cancel_failures(&mut self) {
        self.fetch_failures_coming = 0;
        self.store_failures_coming = 0;
    }

    /// Answers nothing until [`release`](Self::release).
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Answers again.
    pub fn release(&mut self) {
        self.is_held = false;
    }

    /// Lets the time come to `now`: what is due by then can be collected.
    pub fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time runs forward");
        self.now = now;
    }

    /// The time at which the next transfer will have ended, if one is under way and may end.
    pub fn next_due(&self) -> Option<Time> {
        let (&(due, _), _) = self.transfers.first_key_value()?;
        (!self.is_held).then_some(due)
    }

    /// The number of transfers under way.
    pub fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// The contents that the store holds at `address`.
    pub fn held_at(&self, address: Address) -> Option<Stamp> {
        self.shelf.get(&address).copied()
    }

    /// Returns true if the transfer that starts now is one that fails.
    fn draw_failure(&mut self, direction: Direction, pieces: &[(Address, FrameId)]) -> bool {
        let (coming, per_mille) = match direction {
            Direction::Fetch => (
                &mut self.fetch_failures_coming,
                self.temper.fetch_failures_per_mille,
            ),
            Direction::Store => (
                &mut self.store_failures_coming,
                self.temper.store_failures_per_mille,
            ),
        };
        if *coming > 0 {
            *coming -= 1;
            return true;
        }
        let is_full = direction == Direction::Store && {
            let fresh = pieces
                .iter()
                .filter(|(address, _)| !self.shelf.contains_key(address));
            self.shelf.len() + fresh.count() > self.temper.capacity_pages
        };
        is_full || self.random.chance(u64::from(per_mille), 1000)
    }

    fn begin_pieces(&mut self, direction: Direction, pieces: &[(Address, FrameId)]) -> Vec<Piece> {
        let mut begun = Vec::new();
        for &(address, frame) in pieces {
            let early = match direction {
                Direction::Fetch => {
                    self.physical.begin_fill(frame);
                    None
                }
                Direction::Store => {
                    let stamp = self.physical.begin_store(frame);
                    self.random.chance(1, 2).then_some(stamp)
                }
            };
            begun.push(Piece {
                address,
                frame,
                early,
            });
        }
        begun
    }

    /// A fetch that was given up may still be reading when its slots are used again; a store may
    /// still be writing, and must be waited for.
    fn assert_no_conflict(&self, pieces: &[(Address, FrameId)]) {
        let stores = self
            .transfers
            .values()
            .filter(|t| t.request.direction == Direction::Store);
        for stored in stores.flat_map(|transfer| &transfer.pieces) {
            let is_same = |&(address, _): &(Address, FrameId)| address == stored.address;
            assert!(
                !pieces.iter().any(is_same),
                "{:?} is being written already",
                stored.address
            );
        }
    }

    fn end_fetch(&mut self, transfer: &Transfer) -> Outcome {
        let held: Vec<Option<Stamp>> = transfer
            .pieces
            .iter()
            .map(|piece| self.held_at(piece.address))
            .collect();
        let is_failed = transfer.outcome == Outcome::Failed;
        let is_absent = !is_failed && held.iter().all(Option::is_none);
        for (piece, held) in transfer.pieces.iter().zip(held) {
            assert!(
                held.is_some() || matches!(piece.address, Address::External(..)),
                "{:?} is fetched and was never stored",
                piece.address
            );
            let stamp = if is_failed || is_absent {
                Stamp::NOISE
            } else {
                held.unwrap_or_default()
            };
            self.physical.end_fill(piece.frame, stamp);
        }
        if is_absent {
            Outcome::Absent
        } else {
            transfer.outcome
        }
    }

    fn end_store(&mut self, transfer: &Transfer) -> Outcome {
        for piece in &transfer.pieces {
            let late = self.physical.end_store(piece.frame);
            let is_done = transfer.outcome == Outcome::Done;
            let stamp = if is_done {
                piece.early.unwrap_or(late)
            } else {
                Stamp::NOISE
            };
            let is_kept = !is_done && matches!(piece.address, Address::External(..));
            if !is_kept {
                self.shelf.insert(piece.address, stamp);
            }
        }
        transfer.outcome
    }
}

impl SimPager {
    /// Starts a transfer: `pages[i]` to or from `frames[i]`.
    pub fn start(&mut self, request: Request, pages: &[PageId], frames: &[FrameId]) {
        assert_eq!(pages.len(), frames.len());
        assert_eq!(
            pages.len(),
            request.pages as usize,
            "a request says how many pages it has"
        );
        assert!(request.pages > 0, "a request without pages");
        let address = |position: usize| match request.place {
            Place::Swap { first } => Address::Slot(SlotId(first.0 + position as u32)),
            Place::External { pager } => Address::External(pager, pages[position].index),
        };
        let pieces: Vec<(Address, FrameId)> = frames
            .iter()
            .enumerate()
            .map(|(n, frame)| (address(n), *frame))
            .collect();
        self.assert_no_conflict(&pieces);
        let is_failing = self.draw_failure(request.direction, &pieces);
        let outcome = if is_failing {
            Outcome::Failed
        } else {
            Outcome::Done
        };
        let spread = self.temper.latency_ns_max - self.temper.latency_ns_min;
        let latency_ns = self.temper.latency_ns_min + self.random.below(spread + 1);
        let due = self.now.after_ns(latency_ns);
        let pieces = self.begin_pieces(request.direction, &pieces);
        let old = self.transfers.insert(
            (due, request.ticket),
            Transfer {
                request,
                due,
                outcome,
                pieces,
            },
        );
        assert!(
            old.is_none(),
            "{:?} is used twice at a time",
            request.ticket
        );
    }

    /// Hands over the next finished transfer.
    pub fn next_reply(&mut self) -> Option<Reply> {
        if self.next_due()? > self.now {
            return None;
        }
        let (_, transfer) = self.transfers.pop_first()?;
        assert!(transfer.due <= self.now);
        let outcome = match transfer.request.direction {
            Direction::Fetch => self.end_fetch(&transfer),
            Direction::Store => self.end_store(&transfer),
        };
        Some(Reply {
            ticket: transfer.request.ticket,
            outcome,
        })
    }
}

/// The slots of a simulated swap store. Remembers which were given back, so that their contents can
/// be spoiled: a later read finds noise.
pub struct SimSlots {
    slots: LocalSlots,
    owners: BTreeMap<SlotId, u32>,
    ledger: Ledger,
}

/// The part of a [`SimSlots`] that the world sees while the core owns it.
#[derive(Clone, Default)]
pub struct Ledger {
    entries: Arc<Mutex<LedgerEntries>>,
}

#[derive(Default)]
struct LedgerEntries {
    given_back: VecDeque<SlotId>,
    used: BTreeSet<SlotId>,
}

impl Ledger {
    /// Hands over the next slot that was given back since this was last asked, unless it is in
    /// use again.
    pub fn take_given_back(&self) -> Option<SlotId> {
        let mut entries = self
            .entries
            .lock()
            .expect("no thread panics while holding it");
        while let Some(slot) = entries.given_back.pop_front() {
            if !entries.used.contains(&slot) {
                return Some(slot);
            }
        }
        None
    }

    /// The number of slots in use.
    pub fn slots_used(&self) -> usize {
        self.entries
            .lock()
            .expect("no thread panics while holding it")
            .used
            .len()
    }
}

impl SimSlots {
    /// A store of `slots` free slots that writes into `ledger`.
    pub fn new(slots: u32, ledger: Ledger) -> SimSlots {
        SimSlots {
            slots: LocalSlots::new(slots),
            owners: BTreeMap::new(),
            ledger,
        }
    }

    fn note_taken(&mut self, first: SlotId, count: u32) {
        let entries = self.ledger.entries.lock();
        let mut entries = entries.expect("no thread panics while holding it");
        for slot in first.0..first.0 + count {
            let old = self.owners.insert(SlotId(slot), 1);
            assert!(old.is_none(), "slot {slot} is handed out twice");
            entries.used.insert(SlotId(slot));
        }
    }
}

impl Slots for SimSlots {
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)> {
        let (first, count) = self.slots.allocate(want)?;
        self.note_taken(first, count);
        Some((first, count))
    }

    fn share(&mut self, slot: SlotId) {
        *self.owners.get_mut(&slot).expect("a shared slot is in use") += 1;
        self.slots.share(slot);
    }

    fn release(&mut self, slot: SlotId) {
        let owners = self
            .owners
            .get_mut(&slot)
            .expect("a released slot is in use");
        *owners -= 1;
        if *owners == 0 {
            self.owners.remove(&slot);
            let mut entries = self
                .ledger
                .entries
                .lock()
                .expect("no thread panics while holding it");
            entries.used.remove(&slot);
            entries.given_back.push_back(slot);
        }
        self.slots.release(slot);
    }

    fn free(&self) -> u32 {
        self.slots.free()
    }

    fn claim(&mut self, slot: SlotId) -> bool {
        let is_taken = self.slots.claim(slot);
        if is_taken {
            self.note_taken(slot, 1);
        }
        is_taken
    }

    fn find_block(&mut self, pages: u32) -> Option<SlotId> {
        self.slots.find_block(pages)
    }

    fn has_one_owner(&self, slot: SlotId) -> bool {
        self.slots.has_one_owner(slot)
    }
}
