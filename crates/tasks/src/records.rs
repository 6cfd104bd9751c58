//! Records: the words that tasks and the steward share.

use alloc::vec::Vec;

/// The place of a task's record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Record(pub u32);

/// The frames of one task, as its record says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The frames that it may use.
    pub budget: u64,
    /// The frames that its engine takes for its budget.
    pub understood: u64,
    /// The frames that it uses.
    pub resident: u64,
    /// The pages beside them that count as used.
    pub beside: u64,
    /// The frames that it asks to have in all; zero if it does not.
    pub asked: u64,
}

/// The counts of one task since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Faults.
    pub faults: u64,
    /// Of those, the ones for which a page was fetched. What is read ahead is none of them.
    pub page_in_faults: u64,
    /// Faults on pages that were in memory, unmapped.
    pub soft_faults: u64,
    /// Pages that came from the store.
    pub page_ins: u64,
    /// Pages that left for it.
    pub page_outs: u64,
    /// The requests in which they left.
    pub page_out_requests: u64,
    /// The time that its threads have waited for pages, added up, in nanoseconds.
    pub waited_ns: u64,
    /// The processor time of its programs themselves, in nanoseconds.
    pub ran_ns: u64,
    /// The processor time that its paging has taken, in nanoseconds.
    pub paged_ns: u64,
    /// The processor time of its programs with what the kernel did for them, in nanoseconds; zero
    /// where that was not looked up.
    pub processor_ns: u64,
}

/// The most that a count is taken to be when it is first looked at, and by which it is taken to
/// rise between two looks: more is not believed at once.
const FIRST_MAX: u64 = 1 << 56;
const STEP_MAX: u64 = 1 << 44;

/// The most frames or pages that a record is believed to report.
pub(crate) const PAGES_MAX: u64 = u32::MAX as u64;

impl Reading {
    /// The part of it that can be believed: a record can say anything, and no sum of its numbers is
    /// to run over.
    pub(crate) fn bounded(self) -> Reading {
        Reading {
            budget: self.budget.min(PAGES_MAX),
            understood: self.understood.min(PAGES_MAX),
            resident: self.resident.min(PAGES_MAX),
            beside: self.beside.min(PAGES_MAX),
            asked: self.asked.min(PAGES_MAX),
        }
    }
}

impl Counts {
    /// Learns what a record says by now, as far as that can be believed: a count never falls, and
    /// never rises by more than [`STEP_MAX`].
    pub(crate) fn follow(&mut self, told: &Counts) {
        let pairs = [
            (&mut self.faults, told.faults),
            (&mut self.page_in_faults, told.page_in_faults),
            (&mut self.soft_faults, told.soft_faults),
            (&mut self.page_ins, told.page_ins),
            (&mut self.page_outs, told.page_outs),
            (&mut self.page_out_requests, told.page_out_requests),
            (&mut self.waited_ns, told.waited_ns),
            (&mut self.ran_ns, told.ran_ns),
            (&mut self.paged_ns, told.paged_ns),
            (&mut self.processor_ns, told.processor_ns),
        ];
        for (known, told) in pairs {
            *known += match *known {
                0 => told.min(FIRST_MAX),
                known => told.saturating_sub(known).min(STEP_MAX),
            };
        }
    }
}

/// The table of records: read and written at once, while engines read and write it, too.
///
/// A record that is gone reads as zeros, and takes what is written to it.
pub trait Records {
    /// The frames that all tasks may use together.
    fn frames_total(&self) -> u64;

    /// The frames that all tasks use together.
    fn frames_resident(&self) -> u64;

    /// Has no task take frames that no task has, until
    /// [`release_unassigned`](Self::release_unassigned). What is read of budgets after this has all
    /// that was taken before.
    fn hold_unassigned(&mut self);

    /// Lets tasks take `frames`, which no task has.
    fn release_unassigned(&mut self, frames: u64);

    /// Reads a record: the budget first, and what is in use after the budget that the engine
    /// knows. Either what is in use is not more than that, or it is as it is.
    fn read(&self, record: Record) -> Reading;

    /// Sets what a task may use if that is still `from`. False if its engine has changed it.
    ///
    /// If that is less than before, [what the engine knows](Reading::understood) says from then
    /// on whether it had taken over the more that it had: either it did, and has said so, or it
    /// will not.
    fn change_budget(&mut self, record: Record, from: u64, to: u64) -> bool;

    /// Takes back that a task has asked. One that is still short asks again.
    fn forget_asking(&mut self, record: Record);

    /// Has a task leave memory and wait, which needs `needed` frames when it goes on.
    fn suspend(&mut self, record: Record, needed: u64);

    /// Has a task go on.
    fn resume(&mut self, record: Record);

    /// The records that were claimed for forked children that have not begun, in any order: those
    /// of members, too. What such a record has is its own from the moment at which it is not its
    /// parent's any more; who looks in between finds it in both.
    fn find_children(&mut self) -> Vec<Record>;

    /// The counts of a task. Its processor time takes longer than the rest, and is looked up only
    /// `with_processor`.
    fn counts(&self, record: Record, with_processor: bool) -> Counts;

    /// The pages that a task has, in memory or in the store. Takes longer than the others.
    fn size(&self, record: Record) -> u64;
}
