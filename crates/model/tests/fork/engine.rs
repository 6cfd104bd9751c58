//! The engine's side: what it knows of each page, and what it does about messages, as
//! `engine/changes.rs` and `engine/fork.rs` of `tidemark-live` have it.

use crate::kernel::{Content, Event, Kernel, PAGES, Page, Thread};

/// One rule left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    HeldIsDroppedInTheChild,
    HeldIsDroppedInTheParent,
    HeldIsAppliedNewestFirst,
    HeldOfAnEarlierRestCounts,
    EveryFaultIsServedAtRest,
    PagesAsideAreNotTakenOver,
    MapReturnsDuringAFork,
    MoveReturnsDuringAFork,
    MoveReturnsAmidAChange,
    RestBeginsAmidAChange,
    RestBeginsAmidATransfer,
    PagesMoveAmidAChange,
    LateIsLaidDownAtOnce,
    OwedMeansTheNewcomer,
    DiscardedPagesAreAdoptedAtOnce,
}

impl Flaw {
    pub const ALL: [Flaw; 15] = [
        Flaw::HeldIsDroppedInTheChild,
        Flaw::HeldIsDroppedInTheParent,
        Flaw::HeldIsAppliedNewestFirst,
        Flaw::HeldOfAnEarlierRestCounts,
        Flaw::EveryFaultIsServedAtRest,
        Flaw::PagesAsideAreNotTakenOver,
        Flaw::MapReturnsDuringAFork,
        Flaw::MoveReturnsDuringAFork,
        Flaw::MoveReturnsAmidAChange,
        Flaw::RestBeginsAmidAChange,
        Flaw::RestBeginsAmidATransfer,
        Flaw::PagesMoveAmidAChange,
        Flaw::LateIsLaidDownAtOnce,
        Flaw::OwedMeansTheNewcomer,
        Flaw::DiscardedPagesAreAdoptedAtOnce,
    ];
}

/// The place at which the tables have a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    #[default]
    Nowhere,
    /// With the program.
    Present,
    /// In the pool or the store.
    Out(Content),
    /// On its way from there.
    Coming(Content),
}

/// The tables, and what waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Engine {
    pub is_managed: [bool; PAGES],
    pub table: [Place; PAGES],
    /// Faults that were read.
    pub arrived: Vec<(Page, Thread)>,
    /// Memory that was moved to where something else is still known to be.
    pub late: Vec<(Page, Place, bool)>,
    /// The pages that were moved away, whose unmapping is still to be told of.
    pub owed: Vec<Page>,
    pub is_at_rest: bool,
    /// Changes that were read at rest.
    pub held: Vec<Event>,
    /// Pages that were served at rest.
    pub aside: Vec<Page>,
}

impl Engine {
    pub fn is_settled(&self) -> bool {
        self.late.is_empty()
    }

    pub fn has_transfers(&self) -> bool {
        let is_coming = |place: &Place| matches!(place, Place::Coming(_));
        self.table.iter().any(is_coming)
    }

    /// Takes in a change that was read.
    pub fn take_in(&mut self, event: Event, flaw: Option<Flaw>) {
        match event {
            Event::Fork => {}
            _ if self.is_at_rest => self.held.push(event),
            _ => self.apply(event, flaw),
        }
    }

    /// Goes on after a fork, in the parent.
    pub fn thaw(&mut self, kernel: &Kernel, flaw: Option<Flaw>) {
        self.is_at_rest = false;
        if flaw != Some(Flaw::PagesAsideAreNotTakenOver) {
            self.take_over_aside(kernel);
        }
        if flaw != Some(Flaw::HeldIsDroppedInTheParent) {
            self.apply_held(flaw);
        }
    }

    /// Goes on in the child.
    pub fn thaw_in_child(&mut self, kernel: &mut Kernel, flaw: Option<Flaw>) {
        self.arrived.clear();
        self.is_at_rest = false;
        if flaw != Some(Flaw::HeldIsDroppedInTheChild) {
            self.apply_held(flaw);
        }
        self.settle();
        self.register_again(kernel);
        self.take_over_aside(kernel);
    }

    /// Settles what waits: nothing is changing.
    pub fn settle(&mut self) {
        for late in std::mem::take(&mut self.late) {
            self.lay_down(late);
        }
        self.owed.clear();
    }

    fn apply_held(&mut self, flaw: Option<Flaw>) {
        let mut held = match flaw {
            Some(Flaw::HeldOfAnEarlierRestCounts) => self.held.clone(),
            _ => std::mem::take(&mut self.held),
        };
        if flaw == Some(Flaw::HeldIsAppliedNewestFirst) {
            held.reverse();
        }
        for event in held {
            self.apply(event, flaw);
        }
    }

    fn apply(&mut self, event: Event, flaw: Option<Flaw>) {
        match event {
            Event::Unmap(page) => {
                let owed = self.owed.iter().position(|owed| *owed == page);
                if let Some(index) = owed.filter(|_| flaw != Some(Flaw::OwedMeansTheNewcomer)) {
                    self.owed.swap_remove(index);
                } else {
                    self.forget(page);
                }
            }
            Event::Remove(page) => self.table[page] = Place::Nowhere,
            Event::Move { from, to } => {
                self.late
                    .push((to, self.table[from], self.is_managed[from]));
                self.forget(from);
                self.owed.push(from);
            }
            Event::Fork => {}
        }
        let is_ready = |engine: &Engine, late: usize| {
            !engine.is_managed[engine.late[late].0] || flaw == Some(Flaw::LateIsLaidDownAtOnce)
        };
        while let Some(late) = (0..self.late.len()).find(|&late| is_ready(self, late)) {
            let late = self.late.remove(late);
            self.lay_down(late);
        }
    }

    fn lay_down(&mut self, (to, place, is_managed): (Page, Place, bool)) {
        self.table[to] = place;
        self.is_managed[to] = is_managed;
    }

    fn forget(&mut self, page: Page) {
        self.table[page] = Place::Nowhere;
        self.is_managed[page] = false;
    }

    fn take_over_aside(&mut self, kernel: &Kernel) {
        for page in std::mem::take(&mut self.aside) {
            if kernel.present[page].is_some() {
                self.table[page] = Place::Present;
            }
        }
    }

    fn register_again(&mut self, kernel: &mut Kernel) {
        for page in 0..PAGES {
            if !self.is_managed[page] {
                continue;
            } else if kernel.is_mapped[page] {
                kernel.is_registered[page] = true;
            } else {
                self.forget(page);
            }
        }
    }

    /// The contents that a touch would find, with no one else at work. `None`: it would wait for
    /// ever.
    pub fn look(&self, kernel: &Kernel, page: Page) -> Option<Content> {
        match (kernel.present[page], self.table[page]) {
            (Some(content), _) => Some(content),
            _ if !kernel.is_registered[page] => Some(0),
            _ if !self.is_managed[page] => None,
            (None, Place::Nowhere | Place::Present) => Some(0),
            (None, Place::Out(content)) => Some(content),
            (None, Place::Coming(_)) => None,
        }
    }
}
