//! A member of a run, as the steward knows it.

use tidemark_core::id::SpaceId;
use tidemark_core::load::tasks::{RETURN_NS, Standing, frames_of_return};
use tidemark_core::time::Time;
use tidemark_partition::measures::{self, Measures, Meter};
use tidemark_partition::{ANY, FIRST_FRAMES, FLOOR_FRAMES, FRAMES_MIN, Holder};

use super::{EVICTION_NS, TaskId};
use crate::records::{Counts, PAGES_MAX, Reading, Record, Records};

/// The one who wants a task to be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A request by the user or another program.
    Request,
    /// Load control.
    Control,
}

/// The stage of a member in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for its first memory.
    Coming,
    /// It runs.
    Running,
    /// It runs, and is being paged out.
    Evicting,
    /// It waits out of memory, or is on its way out.
    Suspended,
}

/// A task that is managed, or will be when there are frames for it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) task: TaskId,
    came: Time,
    /// The record that its parent has claimed for it, if it was forked.
    claimed: Option<Record>,
    /// Its record; `None` until it was admitted.
    pub(super) record: Option<Record>,
    /// It was told that it is admitted, and its driver has not said yet that it was answered.
    pub(super) is_granted: bool,
    pub(super) given: u64,
    counts: Counts,
    meter: Meter,
    measures: Measures,
    /// It has used an equal share.
    pub(super) is_served: bool,
    eviction: Option<Time>,
    suspension: Suspension,
}

/// The suspension of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Suspension {
    is_requested: bool,
    is_controlled: bool,
    /// The frames it had before, or needed, if that is more.
    needed: u64,
    /// The time until which it is given as many again, once it goes on.
    returns_until: Option<Time>,
}

impl Member {
    pub(super) fn new(task: TaskId, came: Time, claimed: Option<Record>) -> Member {
        Member {
            task,
            came,
            claimed,
            record: None,
            is_granted: false,
            given: 0,
            counts: Counts::default(),
            meter: Meter::default(),
            measures: Measures::default(),
            is_served: false,
            eviction: None,
            suspension: Suspension::default(),
        }
    }

    /// Its record, or the one that was claimed for it.
    pub(super) fn any_record(&self) -> Option<Record> {
        self.record.or(self.claimed)
    }

    /// Returns true if it was forked.
    pub(super) fn is_forked(&self) -> bool {
        self.claimed.is_some()
    }

    /// The time for which it has waited to be admitted.
    pub(super) fn waited_ns(&self, now: Time) -> u64 {
        now.since_ns(self.came)
    }

    pub(super) fn stage(&self) -> Stage {
        match (self.record, self.is_suspended(), self.eviction) {
            (None, ..) => Stage::Coming,
            (_, true, _) => Stage::Suspended,
            (_, _, Some(_)) => Stage::Evicting,
            (_, _, None) => Stage::Running,
        }
    }

    /// Returns true if `by` has it wait.
    pub(super) fn is_suspended_by(&self, by: By) -> bool {
        match by {
            By::Request => self.suspension.is_requested,
            By::Control => self.suspension.is_controlled,
        }
    }

    /// Returns true if it has a cause to wait.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspension.is_requested || self.suspension.is_controlled
    }

    /// Notes that `by` has it wait from now on, or not any more.
    pub(super) fn note_wish(&mut self, by: By, is_wanted: bool) {
        match by {
            By::Request => self.suspension.is_requested = is_wanted,
            By::Control => self.suspension.is_controlled = is_wanted,
        }
    }

    /// Notes that it waits from now on, and needs `needed` frames when it goes on.
    pub(super) fn note_suspended(&mut self, needed: u64) {
        self.eviction = None;
        self.suspension.needed = needed;
        self.suspension.returns_until = None;
    }

    /// Notes that it goes on: it grows again, as one that has just come, and is owed what it had.
    pub(super) fn note_resumed(&mut self, now: Time) {
        self.is_served = false;
        self.suspension.returns_until = Some(now.after_ns(RETURN_NS));
    }

    pub(super) fn begin_eviction(&mut self, now: Time) {
        self.eviction.get_or_insert(now);
    }

    /// Ends its eviction if it is out, or that takes too long.
    pub(super) fn end_eviction(&mut self, now: Time, records: &dyn Records) {
        let Some(since) = self.eviction else { return };
        if self.is_out(records) || now.since_ns(since) >= EVICTION_NS {
            self.eviction = None;
            self.is_served = false;
        }
    }

    pub(super) fn is_evicting(&self) -> bool {
        self.eviction.is_some()
    }

    /// Returns true if it still has to leave memory.
    pub(super) fn is_leaving(&self, records: &dyn Records) -> bool {
        (self.is_suspended() || self.is_evicting()) && !self.is_out(records)
    }

    /// Returns true if it uses no more than the floor, and may use no more.
    fn is_out(&self, records: &dyn Records) -> bool {
        let reading = self.record.map(|record| records.read(record));
        reading.is_none_or(|it| {
            it.budget <= FLOOR_FRAMES
                && it.understood <= FLOOR_FRAMES
                && it.resident <= FLOOR_FRAMES
        })
    }

    /// Measures the use that it makes of its memory. Its processor time and its size are looked up
    /// only while memory `is_scarce`: before, none is to give up what is in use.
    pub(super) fn measure(&mut self, records: &dyn Records, is_scarce: bool) {
        let Some(record) = self.record else { return };
        let resident = records.read(record).bounded().resident;
        // What the least of tasks have is not taken from them, whatever they do.
        let is_looked_at = is_scarce && resident > FLOOR_FRAMES;
        self.counts.follow(&records.counts(record, is_looked_at));
        let counts = &self.counts;
        self.measures = self.meter.note(measures::Counts {
            pages_moved: counts.page_ins + counts.page_outs,
            page_ins: counts.page_in_faults,
            minor_faults: counts.soft_faults,
            processor_ns: is_looked_at.then_some(counts.processor_ns),
            resident,
            size: match is_scarce {
                true => records.size(record).min(PAGES_MAX),
                false => resident,
            },
        });
    }

    /// The task as load control sees it; `None` until it has a record.
    pub(super) fn standing(&mut self, records: &dyn Records, is_spared: bool) -> Option<Standing> {
        let record = self.record?;
        self.counts.follow(&records.counts(record, true));
        let counts = &self.counts;
        Some(Standing {
            task: SpaceId(record.0),
            faults: counts.faults,
            page_ins: counts.page_in_faults,
            waited_ns: counts.waited_ns,
            page_outs: counts.page_outs,
            page_out_requests: counts.page_out_requests,
            resident: records.read(record).bounded().resident as u32,
            pages: records.size(record).min(PAGES_MAX) as u32,
            ran_ns: counts.ran_ns,
            processor_ns: counts.processor_ns,
            paged_ns: counts.paged_ns,
            is_suspended: self.is_suspended(),
            is_spared,
        })
    }

    /// Learns what it may use, which its engine may have changed, and answers the holder that the
    /// division sees.
    pub(super) fn look(&mut self, now: Time, records: &dyn Records) -> Holder {
        let reading = self
            .any_record()
            .map(|record| records.read(record).bounded());
        let reading = reading.unwrap_or_default();
        if self.is_granted {
            // It is about to have that, if its parent has not left it more. Nothing is taken from
            // it before it can say what it uses.
            let given = self.given.max(reading.budget);
            return Holder {
                given,
                understood: reading.understood,
                resident: given,
                ..Holder::NEW
            };
        }
        self.given = reading.budget;
        let held = Holder {
            given: reading.budget,
            understood: reading.understood,
            resident: reading.resident + reading.beside,
            ..Holder::NEW
        };
        match self.record {
            Some(_) => Holder {
                measures: self.measures,
                asked: self.asked(now, &reading),
                is_served: self.is_served,
                most: self.most(&reading),
                ..held
            },
            // A forked child brings what its parent has left it, which may be less than the floor
            // that it must have to be admitted.
            None => Holder {
                asked: match self.is_forked() {
                    true => FLOOR_FRAMES,
                    false => FIRST_FRAMES,
                },
                ..held
            },
        }
    }

    /// The frames that it asks to have in all: zero if it does not.
    fn asked(&self, now: Time, reading: &Reading) -> u64 {
        if self.is_evicting() || self.is_suspended() {
            return 0;
        }
        let until = self.suspension.returns_until;
        let is_due = until.is_some_and(|until| now < until);
        let frames = frames_of_return(self.suspension.needed, FLOOR_FRAMES);
        match is_due && reading.budget < frames {
            true => reading.asked.max(frames),
            false => reading.asked,
        }
    }

    /// The most that it may have: what it still has, while it is on its way out.
    fn most(&self, reading: &Reading) -> u64 {
        match (self.is_suspended(), self.is_evicting()) {
            (true, _) => reading.resident.max(FRAMES_MIN),
            (false, true) => FLOOR_FRAMES,
            (false, false) => ANY,
        }
    }
}
