//! The steward of a run: which tasks are there, and what each may use.
//!
//! A task that comes is admitted as soon as there are frames for it. From then on its engine
//! follows its [record](crate::Records), says there that it is short, or has given up what was
//! taken from it, and its driver passes that on as a [change](Steward::handle_change). At each
//! [interval](tidemark_partition::INTERVAL_NS) all are measured, load control says which of them
//! run, and memory is divided anew, by the rules of [`tidemark_partition`].
//!
//! Two tasks never have the same frames, though engines change their budgets at the same time: see
//! [`Steward::divide`].
//!
//! # Invariants
//! 1. What tasks may use, and what none has, is no more than the total once it was divided.
//! 2. A member without a record waits to be admitted, or its driver answers it at this moment.
//! 3. A record says that its task is suspended if one of its [causes](By) holds, and not otherwise.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tidemark_core::load::tasks::TaskControl;
use tidemark_core::time::Time;
use tidemark_partition::{
    self as share, ADMISSION_NS, Admission, Divider, Division, Holder, INTERVAL_NS, Occasion,
    TRANSFER_NS,
};

use self::load::Control;
use self::member::{By, Member, Stage};
use crate::jobs::Window;
use crate::records::{Record, Records};

mod load;
pub(crate) mod member;

/// The time after which an eviction ends though its task has not given everything up: pages may be
/// pinned, or the task stopped.
pub const EVICTION_NS: u64 = 60_000_000_000;

/// The number of a task, which no other task of the run has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TaskId(u64);

/// Something that the driver does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Answers a newcomer, which may use this number of frames, and says so:
    /// [`Steward::handle_admitted`]; or that it [is gone](Steward::handle_gone).
    Admit {
        /// The newcomer.
        task: TaskId,
        /// The frames.
        frames: u64,
    },
    /// Lets a newcomer run unmanaged. It is no member any more.
    TurnAway(TaskId),
    /// Has the engine of a task look at its record.
    Poke(TaskId),
    /// Notes that load control has a task wait from now on, or not any more.
    Turn {
        /// The task.
        task: TaskId,
        /// True if it waits.
        is_suspended: bool,
    },
    /// Notes that a task is suspended from now on, or not any more, for the sake of `by`.
    Suspension {
        /// The task.
        task: TaskId,
        /// True if it is suspended.
        is_suspended: bool,
        /// The one who wanted that last.
        by: By,
    },
}

/// The counts and the size that a task leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The pages that it has sent away.
    pub page_outs: u64,
    /// The requests that took.
    pub page_out_requests: u64,
    /// The most pages that it was seen to need.
    pub pages: u64,
}

/// The steward of a run.
#[derive(Debug)]
pub struct Steward {
    divider: Divider,
    members: Vec<Member>,
    tasks_come: u64,
    /// The time at which memory is divided next.
    next_division: Time,
    /// The time at which all are measured next.
    next_interval: Time,
    /// Since when frames have been on their way from one task to another.
    unsettled_since: Option<Time>,
    control: Option<Control>,
    /// A task has ended since load control was last asked.
    has_lost: bool,
    jobs: Option<Window>,
    actions: VecDeque<Action>,
}

impl Steward {
    /// A steward without members, whose first interval ends then.
    pub fn new(divider: Divider, first_interval: Time) -> Steward {
        Steward {
            divider,
            members: Vec::new(),
            tasks_come: 0,
            next_division: first_interval,
            next_interval: first_interval,
            unsettled_since: None,
            control: None,
            has_lost: false,
            jobs: None,
            actions: VecDeque::new(),
        }
    }

    /// Has memory divided in that way from the next division on.
    pub fn divide_by(&mut self, divider: Divider) {
        self.divider = divider;
    }

    /// The way in which memory is divided.
    pub fn divider(&self) -> Divider {
        self.divider
    }

    /// Keeps account of the room for up to `most` jobs at a time.
    pub fn offer_jobs(&mut self, most: u32) {
        self.jobs = Some(Window::new(most));
    }

    /// The jobs that may be at work, if account is kept of that.
    pub fn jobs_allowed(&self) -> Option<u32> {
        self.jobs.as_ref().map(Window::jobs)
    }

    /// Learns that `count` jobs have ended.
    pub fn handle_ended_jobs(&mut self, count: u32) {
        if let Some(jobs) = &mut self.jobs {
            jobs.note_ended_jobs(count);
        }
    }

    /// Learns the number of jobs at work, and the `sizes` of their processes in pages, where
    /// `frames` are for all.
    pub fn handle_jobs(&mut self, at_work: u32, frames: u64, sizes: &[u64]) {
        if let Some(jobs) = &mut self.jobs {
            jobs.look(at_work, frames, sizes);
        }
    }

    /// Decides which tasks run by `control` from the beginning on.
    ///
    /// - Needs: no load control has decided before.
    pub fn begin_control(&mut self, control: Option<TaskControl>) {
        assert!(self.control.is_none());
        self.control = control.map(Control::new);
    }

    /// Decides which tasks run by `control` from now on, or has all of them run. Those that another
    /// has suspended go on.
    pub fn control_by(
        &mut self,
        now: Time,
        records: &mut dyn Records,
        control: Option<TaskControl>,
    ) {
        self.control = control.map(Control::new);
        for place in 0..self.members.len() {
            self.set_suspended(now, records, place, By::Control, false);
        }
    }

    /// Learns that a task has come, for which its parent has `claimed` a record if it was forked.
    /// It is admitted, or turned away, at a division.
    pub fn handle_arrival(&mut self, now: Time, claimed: Option<Record>) -> TaskId {
        self.tasks_come += 1;
        let task = TaskId(self.tasks_come);
        self.members.push(Member::new(task, now, claimed));
        task
    }

    /// Learns of a task that another steward has taken in, and that has a `record` if it was
    /// admitted.
    pub fn handle_taken_over(
        &mut self,
        now: Time,
        claimed: Option<Record>,
        record: Option<Record>,
    ) -> TaskId {
        let task = self.handle_arrival(now, claimed);
        if let Some(record) = record {
            self.handle_admitted(task, record);
        }
        task
    }

    /// Learns that a task has been answered, and that this is its record.
    pub fn handle_admitted(&mut self, task: TaskId, record: Record) {
        if let Some(place) = self.find(task) {
            let member = &mut self.members[place];
            (member.record, member.is_granted) = (Some(record), false);
        }
    }

    /// Learns that a task is gone, or runs unmanaged. Its frames are others' at the next division.
    pub fn handle_gone(&mut self, task: TaskId, remains: Remains) {
        let Some(place) = self.find(task) else { return };
        let member = self.members.remove(place);
        let Some(record) = member.any_record() else {
            return;
        };
        if let Some(jobs) = self.jobs.as_mut().filter(|_| remains.pages > 0) {
            jobs.note_ended_process(remains.pages);
        }
        if let Some(control) = &mut self.control {
            control.note_end(record, &remains);
        }
        self.has_lost = true;
    }

    /// Divides memory as tasks have come, gone or asked, or the total has changed.
    ///
    /// Work: a look at each task, twice.
    pub fn handle_change(&mut self, now: Time, records: &mut dyn Records) {
        if self.has_lost {
            self.control_load(now, records);
        }
        self.divide(now, records, Occasion::Change);
    }

    /// Does what is due by now.
    ///
    /// Work: a look at each task, three times at the end of an interval, else as
    /// [`handle_change`](Self::handle_change).
    pub fn handle_tick(&mut self, now: Time, records: &mut dyn Records) {
        if now < self.next_division {
            return;
        }
        if !self.is_interval_over(now) {
            return self.handle_change(now, records);
        }
        self.next_interval = now.after_ns(INTERVAL_NS);
        self.measure(records);
        if self.control_load(now, records) {
            self.divide(now, records, Occasion::Change);
        }
        self.divide(now, records, Occasion::Interval);
        // Who still wants more says so again.
        for record in self.members.iter().filter_map(|member| member.record) {
            records.forget_asking(record);
        }
    }

    /// Returns true if an interval is over, and [`handle_tick`](Self::handle_tick) measures all.
    pub fn is_interval_over(&self, now: Time) -> bool {
        now >= self.next_interval
    }

    /// The time at which [`handle_tick`](Self::handle_tick) has something to do: an interval from
    /// the last one at most.
    pub fn poll_deadline(&self) -> Time {
        self.next_division
    }

    /// The next thing to be done, the first one first.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Suspends a task by request, or takes that back; others may have it wait still.
    pub fn handle_request(
        &mut self,
        now: Time,
        records: &mut dyn Records,
        task: TaskId,
        is_suspended: bool,
    ) {
        if let Some(place) = self.find(task) {
            self.set_suspended(now, records, place, By::Request, is_suspended);
            self.handle_change(now, records);
        }
    }

    /// Takes a task out of memory once, which runs on: it may use no more than the floor until it
    /// does, and grows again then, as one that has just come. One that is suspended leaves anyway.
    pub fn handle_eviction(&mut self, now: Time, records: &mut dyn Records, task: TaskId) {
        if let Some(place) = self.find(task) {
            let member = &mut self.members[place];
            if member.stage() == Stage::Running {
                member.begin_eviction(now);
                self.handle_change(now, records);
            }
        }
    }

    /// Has every task go on, and suspends none from here on.
    pub fn handle_end(&mut self, now: Time, records: &mut dyn Records) {
        self.control = None;
        for place in 0..self.members.len() {
            self.set_suspended(now, records, place, By::Request, false);
            self.set_suspended(now, records, place, By::Control, false);
        }
        self.divide(now, records, Occasion::Change);
    }

    /// The stage of a member; `None` if it is none.
    pub fn stage(&self, task: TaskId) -> Option<Stage> {
        self.find(task).map(|place| self.members[place].stage())
    }

    /// Returns true if `by` has a task wait.
    pub fn is_suspended_by(&self, task: TaskId, by: By) -> bool {
        let found = self.find(task);
        found.is_some_and(|place| self.members[place].is_suspended_by(by))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn find(&self, task: TaskId) -> Option<usize> {
        // They are in the order in which they came.
        self.members.binary_search_by_key(&task, |it| it.task).ok()
    }

    fn measure(&mut self, records: &dyn Records) {
        let is_scarce = records.frames_resident() * 4 >= records.frames_total() * 3;
        for member in &mut self.members {
            member.measure(records, is_scarce);
        }
    }

    /// Suspends the task at `place` for `by`, or lets it go on as far as `by` is concerned.
    fn set_suspended(
        &mut self,
        now: Time,
        records: &mut dyn Records,
        place: usize,
        by: By,
        is_suspended: bool,
    ) {
        let member = &mut self.members[place];
        let Some(record) = member.record else { return };
        let (task, was_suspended) = (member.task, member.is_suspended());
        if by == By::Control && member.is_suspended_by(by) != is_suspended {
            self.actions.push_back(Action::Turn { task, is_suspended });
        }
        member.note_wish(by, is_suspended);
        let is_suspended = member.is_suspended();
        if is_suspended == was_suspended {
            return;
        }
        records.forget_asking(record);
        if is_suspended {
            let control = self.control.as_ref();
            let demand = control.map_or(0, |control| control.demand(record));
            let needed = records.read(record).bounded().resident.max(demand);
            member.note_suspended(needed);
            records.suspend(record, needed);
        } else {
            member.note_resumed(now);
            records.resume(record);
        }
        self.actions.push_back(Action::Poke(task));
        self.actions.push_back(Action::Suspension {
            task,
            is_suspended,
            by,
        });
    }

    /// Divides memory among all, tells those concerned, and answers newcomers it suffices for.
    ///
    /// Engines take what no task has, and give to children they fork, at any moment. So no task
    /// takes anything while it is divided; budgets are read before children are looked for; what
    /// is lowered is lowered first, and only if none turns out to have had more than was read is
    /// anything raised.
    fn divide(&mut self, now: Time, records: &mut dyn Records, occasion: Occasion) {
        for member in &mut self.members {
            member.end_eviction(now, records);
        }
        records.hold_unassigned();
        let total = records.frames_total();
        let holders = self.collect_holders(now, records);
        let division = self.divider.divide(total, &holders, occasion);
        let is_leaving = self.members.iter().any(|member| member.is_leaving(records));
        for (member, holder) in self.members.iter_mut().zip(&holders) {
            member.is_served |= share::uses_share(holder.resident, division.fair);
        }
        if !self.lower(records, &holders, &division.given) {
            return self.plan_division(now, false);
        }
        // A task that is being paged out would take unassigned frames.
        let left = match self.members.iter().any(Member::is_evicting) {
            true => 0,
            false => share::unassigned(total, &holders, &division.given),
        };
        let children = holders[self.members.len()..].iter();
        let children: u64 = children.map(|holder| holder.given).sum();
        let is_told = self.raise(now, records, &division, total.saturating_sub(children));
        records.release_unassigned(left);
        self.plan_division(now, division.is_settled && is_told && !is_leaving);
    }

    /// Collects the holders of frames to divide among: the members in their order, then children on
    /// their way, which have what their parents left them. One that has been left nothing yet holds
    /// nothing, and wants nothing: its frames are its parent's until they are its own.
    fn collect_holders(&mut self, now: Time, records: &mut dyn Records) -> Vec<Holder> {
        let members = self.members.iter_mut();
        let mut holders: Vec<Holder> = members.map(|it| it.look(now, records)).collect();
        let is_awaited = |child: &Record| {
            let mut members = self.members.iter();
            members.all(|member| member.any_record() != Some(*child))
        };
        let children = records.find_children();
        for child in children.into_iter().filter(is_awaited) {
            let reading = records.read(child).bounded();
            // Nothing is taken from it before it can say what it uses.
            let holder = Holder {
                given: reading.budget,
                understood: reading.understood,
                resident: reading.budget,
                ..Holder::NEW
            };
            holders.extend((holder.given > 0).then_some(holder));
        }
        holders
    }

    /// Lowers what members may use to what is `given` now. False if one of them turns out to hold
    /// more than was known of its [holder](Holder): what was to be given to others is not free.
    fn lower(&mut self, records: &mut dyn Records, holders: &[Holder], given: &[u64]) -> bool {
        let mut is_as_known = true;
        for (place, (holder, &frames)) in holders.iter().zip(given).enumerate() {
            let record = self.members.get(place).and_then(|member| member.record);
            let Some(record) = record.filter(|_| frames < holder.given) else {
                continue;
            };
            let known = frames.max(holder.understood).max(holder.resident);
            is_as_known &= self.give(records, place, frames)
                && records.read(record).bounded().understood <= known;
        }
        is_as_known
    }

    /// Raises what members may use, to no more than `most` in all, and answers newcomers. False if
    /// any waits for what is not free, or was not told.
    ///
    /// One is given again what it has not given up yet. Who says that it has more than it was ever
    /// given gains nothing by that.
    fn raise(
        &mut self,
        now: Time,
        records: &mut dyn Records,
        division: &Division,
        most: u64,
    ) -> bool {
        let mut is_told = true;
        let mut turned_away = Vec::new();
        let given: u64 = self.members.iter().map(|member| member.given).sum();
        let mut room = most.saturating_sub(given);
        for (place, &due) in (0..self.members.len()).zip(&division.given) {
            let member = &mut self.members[place];
            let before = member.given;
            let frames = due.min(before + room);
            is_told &= frames == due;
            if member.record.is_some() {
                is_told &= self.give(records, place, frames);
            } else if member.is_granted {
                is_told = false;
            } else {
                let task = member.task;
                match division.admission(frames, member.waited_ns(now), member.is_forked()) {
                    Admission::Waits => is_told = false,
                    Admission::TurnedAway => turned_away.push(task),
                    Admission::Admitted => {
                        (member.given, member.is_granted) = (frames, true);
                        self.actions.push_back(Action::Admit { task, frames });
                    }
                }
            }
            room -= self.members[place].given.saturating_sub(before);
        }
        for task in turned_away {
            self.members.retain(|member| member.task != task);
            self.actions.push_back(Action::TurnAway(task));
        }
        is_told
    }

    /// Lets the member at `place` use `frames`. False if its engine changes that at this
    /// moment, and nothing has been said.
    fn give(&mut self, records: &mut dyn Records, place: usize, frames: u64) -> bool {
        let member = &mut self.members[place];
        let record = member.record.expect("one that was admitted has a record");
        if member.given == frames {
            return true;
        }
        if !records.change_budget(record, member.given, frames) {
            return false;
        }
        if frames > member.given {
            records.forget_asking(record);
        }
        member.given = frames;
        self.actions.push_back(Action::Poke(member.task));
        true
    }

    /// Decides when to look again: soon, while frames are on their way.
    fn plan_division(&mut self, now: Time, is_settled: bool) {
        self.unsettled_since = match is_settled {
            true => None,
            false => self.unsettled_since.or(Some(now)),
        };
        // A task that is stopped gives nothing up until it goes on: no hurry then.
        let since = self.unsettled_since;
        let is_recent = since.is_some_and(|since| now.since_ns(since) < ADMISSION_NS);
        let is_awaited = self.members.iter().any(|member| member.record.is_none());
        let is_hurried = !is_settled && (is_recent || is_awaited);
        self.next_division = match is_hurried {
            true => self.next_interval.min(now.after_ns(TRANSFER_NS)),
            false => self.next_interval,
        };
    }
}
