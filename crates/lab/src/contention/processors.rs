//! Processors at work: each does one step after the other, and waits for the locks that others
//! have.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::deeds::{Action, Lock, Stock, free_page, plan, plan_zeroing};
use super::lines::{COUNTERS, Item, Lines};
use super::windows::{Found, Windows};
use super::work::{Deed, Work};
use super::{Charges, Outcome, Setup, Waiting};

/// Free pages that are filled with zeros when work begins, where idle processors do that: more
/// than any work takes.
const ZEROED_FIRST: u64 = 1 << 40;

/// Has the processors do the work, each job by one of them from its start to its end.
///
/// # Panics
/// If there are no processors, no workers, or more workers than processors.
pub fn contend(work: &Work, setup: &Setup, charges: &Charges) -> Outcome {
    assert!((1..=setup.processors).contains(&setup.workers));
    let mut floor = Floor::new(work, setup, charges);
    floor.begin();
    while floor.workers > 0 {
        let Some(Reverse((now, processor))) = floor.ahead.pop() else {
            unreachable!("a processor at work has something ahead, or waits for one that has");
        };
        floor.step(processor, now);
    }
    floor.finish()
}

#[derive(Default)]
struct Held {
    holder: Option<usize>,
    waiters: VecDeque<(usize, u64)>,
    waiting: Waiting,
}

#[derive(Default)]
struct Processor {
    actions: VecDeque<Action>,
    /// The job, and how many of its deeds are done.
    job: Option<(usize, usize)>,
    /// A job that it begins when it has done what it does while idle.
    called_to: Option<usize>,
    /// True if it has nothing to do until it is called.
    is_asleep: bool,
    /// Free pages it has put back that are not filled with zeros.
    unzeroed: u64,
    stock: Stock,
    interrupts_seen: u64,
}

struct Floor<'a> {
    work: &'a Work,
    setup: &'a Setup,
    charges: &'a Charges,
    processors: Vec<Processor>,
    locks: Vec<Held>,
    lines: Lines,
    windows: Windows,
    /// The processors that do something next, and the times.
    ahead: BinaryHeap<Reverse<(u64, usize)>>,
    /// Processors without a job, the longest idle first.
    idle: VecDeque<usize>,
    next_job: usize,
    workers: u32,
    interrupts: u64,
    zeroed: u64,
    scratch: Vec<Action>,
    outcome: Outcome,
}

impl Floor<'_> {
    fn new<'a>(work: &'a Work, setup: &'a Setup, charges: &'a Charges) -> Floor<'a> {
        let processors = setup.processors as usize;
        let locks = 2 + (setup.window_parts + work.files) as usize;
        Floor {
            work,
            setup,
            charges,
            processors: (0..processors).map(|_| Processor::default()).collect(),
            locks: (0..locks).map(|_| Held::default()).collect(),
            lines: Lines::new(locks + 1, processors, charges.line_ns, charges.far_line_ns),
            windows: Windows::new(setup.windows, setup.window_parts),
            ahead: BinaryHeap::new(),
            idle: VecDeque::new(),
            next_job: 0,
            workers: setup.workers,
            interrupts: 0,
            zeroed: if setup.has_idle_zeroing {
                ZEROED_FIRST
            } else {
                0
            },
            scratch: vec![],
            outcome: Outcome::default(),
        }
    }

    /// Spreads the workers over the processors, so that both sockets have some.
    fn begin(&mut self) {
        let (all, workers) = (self.setup.processors, self.setup.workers);
        for processor in 0..all {
            let is_worker = (processor + 1) * workers / all > processor * workers / all;
            match is_worker {
                true => self.ahead.push(Reverse((0, processor as usize))),
                false => {
                    self.processors[processor as usize].is_asleep = true;
                    self.idle.push_back(processor as usize);
                }
            }
        }
    }

    fn step(&mut self, number: usize, now: u64) {
        let Some(action) = self.processors[number].actions.pop_front() else {
            return self.take_deed(number, now);
        };
        let is_worker = self.processors[number].job.is_some();
        let until = match action {
            Action::Compute(ns) => {
                let seen = std::mem::replace(
                    &mut self.processors[number].interrupts_seen,
                    self.interrupts,
                );
                let stolen_ns = (self.interrupts - seen) * self.charges.costs.fault_ns;
                self.outcome.user_ns += ns;
                self.outcome.system_ns += stolen_ns;
                return self.ahead.push(Reverse((now + ns + stolen_ns, number)));
            }
            Action::Work(ns) => now + ns,
            Action::Count => self.count(number, now),
            Action::Take(lock) => match self.take(lock, number, now) {
                Some(until) => until,
                None => return,
            },
            Action::Give(lock) => self.give(lock, number, now),
            Action::Fill => now + self.fill(number),
            Action::Return => {
                self.processors[number].unzeroed += 1;
                now
            }
            Action::Find(piece) => now + self.find(piece, number),
            Action::FreeMore(pages) => {
                free_page(
                    &mut self.processors[number].stock,
                    self.setup,
                    self.charges,
                    &mut self.scratch,
                );
                if pages > 1 {
                    self.scratch.push(Action::FreeMore(pages - 1));
                }
                self.put_first(number);
                now
            }
            Action::Try => return self.attempt(number, now),
            Action::Filled => {
                self.zeroed += 1;
                self.outcome.idle_zeroed += 1;
                now
            }
        };
        if is_worker {
            self.outcome.system_ns += until - now;
        }
        self.ahead.push(Reverse((until, number)));
    }

    /// Goes on with the processor's job. When that is done, the processor that has been idle
    /// longest gets the next one, as a scheduler spreads work.
    fn take_deed(&mut self, number: usize, now: u64) {
        let (job, done) = match self.processors[number].job {
            Some((job, done)) if done < self.work.jobs[job].len() => (job, done),
            job => {
                if job.is_some() {
                    self.processors[number].job = None;
                    self.outcome.elapsed_ns = self.outcome.elapsed_ns.max(now);
                    self.idle.push_back(number);
                }
                let begin = match self.processors[number].called_to.take() {
                    Some(called_to) => Some(called_to),
                    None => self.hand_out(number, now),
                };
                match begin {
                    Some(begin) => (begin, 0),
                    None => return self.rest(number, now),
                }
            }
        };
        let processor = &mut self.processors[number];
        processor.job = Some((job, done + 1));
        let deeds = &self.work.jobs[job];
        let deed = deeds.get(done).copied().unwrap_or(Deed::Compute(0));
        plan(
            deed,
            &mut processor.stock,
            self.setup,
            self.charges,
            &mut self.scratch,
        );
        processor.actions.extend(self.scratch.drain(..));
        self.ahead.push(Reverse((now, number)));
    }

    /// Gives the next job to the processor that has been idle longest. Returns it if that is
    /// `number`, which begins when no other is idle, or when the first jobs are handed out.
    fn hand_out(&mut self, number: usize, now: u64) -> Option<usize> {
        let job = self.next_job;
        if job >= self.work.jobs.len() {
            self.workers -= 1;
            return None;
        }
        self.next_job += 1;
        let is_first = !self.idle.contains(&number);
        let chosen = match is_first {
            true => number,
            false => self.idle.pop_front().expect("the processor itself is idle"),
        };
        if chosen == number {
            return Some(job);
        }
        let chosen_one = &mut self.processors[chosen];
        chosen_one.called_to = Some(job);
        if std::mem::take(&mut chosen_one.is_asleep) {
            self.ahead.push(Reverse((now, chosen)));
        }
        None
    }

    /// Has a processor without a job look for pages to fill with zeros, or sleep.
    fn rest(&mut self, number: usize, now: u64) {
        let processor = &mut self.processors[number];
        if self.setup.has_idle_zeroing && processor.unzeroed > 0 {
            processor.actions.push_back(Action::Try);
            self.ahead.push(Reverse((now, number)));
        } else {
            processor.is_asleep = true;
        }
    }

    fn attempt(&mut self, number: usize, now: u64) {
        let processor = &mut self.processors[number];
        if processor.called_to.is_some() {
            return self.ahead.push(Reverse((now, number)));
        }
        if processor.unzeroed == 0 {
            processor.is_asleep = true;
            return;
        }
        let place = self.place(Lock::Free);
        let line = self.line(place);
        let there = self.lines.use_at(line, place as Item, number, now);
        let lock = &mut self.locks[place];
        if lock.holder.is_some() {
            self.processors[number].actions.push_back(Action::Try);
            let later = there + self.charges.idle_ns;
            return self.ahead.push(Reverse((later, number)));
        }
        lock.holder = Some(number);
        lock.waiting.takes += 1;
        self.processors[number].unzeroed -= 1;
        plan_zeroing(self.charges, &mut self.scratch);
        self.put_first(number);
        self.ahead.push(Reverse((there, number)));
    }

    fn count(&mut self, number: usize, now: u64) -> u64 {
        match self.setup.is_aligned {
            true => now,
            false => self.lines.use_at(0, COUNTERS, number, now),
        }
    }

    /// Takes the lock; `None` if the processor has to wait.
    fn take(&mut self, lock: Lock, number: usize, now: u64) -> Option<u64> {
        let place = self.place(lock);
        let line = self.line(place);
        let there = self.lines.use_at(line, place as Item, number, now);
        let held = &mut self.locks[place];
        held.waiting.takes += 1;
        if held.holder.is_none() {
            held.holder = Some(number);
            return Some(there);
        }
        held.waiting.waits += 1;
        held.waiters.push_back((number, now));
        None
    }

    /// Gives the lock back, or to the processor that has waited longest.
    fn give(&mut self, lock: Lock, number: usize, now: u64) -> u64 {
        let place = self.place(lock);
        let line = self.line(place);
        let there = self.lines.use_at(line, place as Item, number, now);
        let held = &mut self.locks[place];
        assert_eq!(held.holder, Some(number));
        held.holder = None;
        if let Some((next, since)) = held.waiters.pop_front() {
            held.holder = Some(next);
            let begin = self.lines.use_at(line, place as Item, next, there);
            if self.processors[next].job.is_some() {
                self.locks[place].waiting.spin_ns += begin - since;
                self.outcome.system_ns += begin - since;
            }
            self.ahead.push(Reverse((begin, next)));
        }
        there
    }

    /// Takes a page, and answers what filling it with zeros takes.
    fn fill(&mut self, number: usize) -> u64 {
        if self.zeroed > 0 {
            self.zeroed -= 1;
            return 0;
        }
        let processor = &mut self.processors[number];
        processor.unzeroed = processor.unzeroed.saturating_sub(1);
        self.charges.costs.zero_ns
    }

    /// Finds a window, and answers how long the lock is held for it.
    fn find(&mut self, piece: u32, number: usize) -> u64 {
        let found = self.windows.find(piece);
        let costs = &self.charges.costs;
        if found == Found::Hit {
            self.outcome.window_hits += 1;
            return self.charges.search_ns;
        }
        self.outcome.window_misses += 1;
        // The new window's pages are mapped when it is first used, after its lock is given back.
        let map_ns = costs.fault_ns + 2 * (self.charges.search_ns + costs.page_table_ns);
        self.processors[number]
            .actions
            .insert(1, Action::Work(map_ns));
        let others = u64::from(self.setup.processors - 1);
        match found {
            Found::Taken => {
                self.interrupts += 1;
                self.charges.search_ns + others * self.charges.shootdown_ns
            }
            _ => self.charges.search_ns,
        }
    }

    fn put_first(&mut self, number: usize) {
        let actions = &mut self.processors[number].actions;
        self.scratch
            .drain(..)
            .rev()
            .for_each(|action| actions.push_front(action));
    }

    fn place(&self, lock: Lock) -> usize {
        match lock {
            Lock::Free => 0,
            Lock::Queue => 1,
            Lock::Windows(part) => 2 + part as usize,
            Lock::File(file) => 2 + (self.setup.window_parts + file) as usize,
        }
    }

    /// The line of a lock. The two locks of pages share the one with the counters, unless things
    /// are aligned.
    fn line(&self, place: usize) -> usize {
        match place {
            0 | 1 if !self.setup.is_aligned => 0,
            _ => place + 1,
        }
    }

    fn finish(mut self) -> Outcome {
        let outcome = &mut self.outcome;
        for (place, held) in self.locks.iter().enumerate() {
            let kind = match place {
                0 => &mut outcome.free,
                1 => &mut outcome.queue,
                _ if place < 2 + self.setup.window_parts as usize => &mut outcome.windows,
                _ => &mut outcome.files,
            };
            kind.add(held.waiting);
            outcome.spin_ns_most = outcome.spin_ns_most.max(held.waiting.spin_ns);
        }
        outcome.lines_moved = self.lines.moved;
        outcome.lines_moved_false = self.lines.moved_false;
        self.outcome
    }
}
