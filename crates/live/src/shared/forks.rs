//! Forks: records of children, and how frames come to them.
//!
//! A child begins with all pages that its parent has in memory. Each of the two comes to have
//! copies of its own of what it writes to, so both count in full, from the moment at which the
//! child's record has frames.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release, SeqCst};

use tidemark_partition as share;

use super::owned::ones;
use super::{Field, Loan, Offer, PROCESSES_MAX, Process, ProcessIndex, Shared, State};

impl Shared {
    /// Claims a record for a child of `parent` that is about to be forked, and counts the child
    /// as an owner of every slot its parent owns.
    ///
    /// - Needs: the parent's engine is at rest.
    pub fn claim_child(&self, parent: ProcessIndex) -> Option<ProcessIndex> {
        let child = self.claim()?;
        let (from, to) = (self.owned(parent), self.owned(child));
        let refs = self.slot_refs();
        for word in from.words_used() {
            let bits = from.words[word].load(Relaxed);
            for bit in ones(bits) {
                refs[word * 64 + bit].fetch_add(1, AcqRel);
            }
            if bits != 0 {
                to.note_part(word);
                to.words[word].store(bits, Release);
            }
        }
        self.process(child).set_parent(self.process(parent).pid());
        Some(child)
    }

    /// Returns true if `index` is a record that was claimed for a process that has not begun.
    pub fn is_reserved(&self, index: ProcessIndex) -> bool {
        index.0 < PROCESSES_MAX as u32 && self.process(index).state() == State::Reserved
    }
}

impl Process<'_> {
    /// Returns true if a child that begins with `used` pages can have what it needs from unassigned
    /// frames, or from those that this process does not use: it need give up no pages.
    pub fn can_endow(&self, used: u32) -> bool {
        let used = used.into();
        self.shared.unassigned() >= share::needs_at_fork(used)
            || share::left_at_fork(self.budget().into(), used).is_some()
    }

    /// Gives `child`, which is about to be forked and begins with `used` pages, its frames: what it
    /// needs, from unassigned frames or from those that this process does not use, or half of what
    /// this process may use. `None`, and nothing has changed, if `used` pages are more than that;
    /// unless it `is_late`, and no time is left to give them up. Answers what the child has.
    ///
    /// The frames are the child's as soon as they are no longer the parent's: a look in between
    /// counts them twice, and never as unassigned. From then on they are not the parent's to be
    /// given again, either: it [says](Self::understood) before that it does without them. Engine
    /// only, and the program is at rest: it takes no frame until it has followed its budget again.
    /// What it uses has been published.
    pub fn endow(&self, child: &Process<'_>, used: u32, is_late: bool) -> Option<u32> {
        let needed = share::needs_at_fork(used.into()).min(u32::MAX.into()) as u32;
        if child.take_unassigned(needed, needed) > 0 {
            return Some(child.begin_with(needed, used));
        }
        loop {
            let before = self.budget();
            let (left, part) = match share::left_at_fork(before.into(), used.into()) {
                Some(left) => (left as u32, needed),
                None => (before - before / 2, before / 2),
            };
            if used > part && !is_late {
                child.set_budget(0);
                return None;
            }
            child.set_budget(part);
            self.set_understood(self.understood().min(left.into()) as u32);
            if self.change_budget(before, left) {
                return Some(child.begin_with(part, used));
            }
        }
    }

    /// Notes of a child that is being forked that pages may stand in it of which its copy of the
    /// tables does not know. The parent's engine only, before there is one.
    pub fn note_served_at_fork(&self) {
        self.field(Field::ServedAtFork).store(1, SeqCst);
    }

    /// Returns true if there may be [such pages](Self::note_served_at_fork).
    pub fn was_served_at_fork(&self) -> bool {
        self.field(Field::ServedAtFork).load(SeqCst) != 0
    }

    /// Says of a child that is being forked which userfaultfd is its. The parent's engine only.
    /// False if it has been said before: what was offered first is taken back then, and the child
    /// finds nothing.
    pub fn offer_userfaultfd(&self, offer: Offer) -> bool {
        let field = self.field(Field::Userfaultfd);
        let is_first = field.compare_exchange(Offer::Open.word(), offer.word(), SeqCst, SeqCst);
        if is_first.is_err() {
            field.store(Offer::Nothing.word(), SeqCst);
        }
        is_first.is_ok()
    }

    /// The offer, as it stands.
    pub fn offer(&self) -> Offer {
        Offer::of(self.field(Field::Userfaultfd).load(SeqCst))
    }

    /// Says that the child has a copy of what was offered, or can't have one. The child's engine
    /// only.
    pub fn close_offer(&self, taken: Option<Loan>) {
        let word = taken.map_or(Offer::Nothing, Offer::Taken).word();
        self.field(Field::Userfaultfd).store(word, SeqCst);
    }

    /// Says that the child with this `loan` has ended. Nothing changes if the record is another
    /// child's by now. The parent's engine only.
    pub fn note_ended_child(&self, loan: Loan) {
        for offer in [Offer::File(loan), Offer::Taken(loan)] {
            let field = self.field(Field::Userfaultfd);
            // The other one stands there, or none of both.
            let _ = field.compare_exchange(offer.word(), Offer::Ended.word(), SeqCst, SeqCst);
        }
    }

    /// Says of a child that may use `part` frames that it uses as many of them as it begins with.
    fn begin_with(&self, part: u32, used: u32) -> u32 {
        self.set_resident(used.min(part).into());
        self.set_understood(part);
        part
    }
}
