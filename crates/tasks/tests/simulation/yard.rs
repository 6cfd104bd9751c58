//! The yard: a table of records, and engines that read and write it as those of the live machine
//! do, step by step.

use std::cell::RefCell;

use tidemark_core::random::SplitMix64;
use tidemark_partition::{self as share, FLOOR_FRAMES, Voice};
use tidemark_tasks::{Counts, Reading, Record, Records, TaskId};

/// The word in place of the frames that no task has while they are divided.
const HELD: u64 = u64::MAX;
/// The pages that an engine moves in a step, and so has on their way at most.
const MOVED_MAX: u64 = 400;
const MS: u64 = 1_000_000;

/// The stage of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Free,
    /// Claimed for a child that has not been admitted.
    Reserved,
    Running,
    /// Its task is gone, and what was on its way is not over.
    Late,
}

/// A change of words in whose midst an engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Midst {
    Nothing,
    /// It has added frames to its budget, and not taken them yet of those that none has.
    Taking(u64),
    /// It has said that it goes by more frames, and is to look again.
    Following,
    /// It has written down what its child is to have, and said that it goes by the rest, and has
    /// not taken that off its own: the child's place, what its own budget was, and is to be.
    Forking(usize, u64, u64),
}

/// One record, and the engine that it belongs to.
#[derive(Clone, Debug)]
pub struct Engine {
    pub state: State,
    pub task: Option<TaskId>,
    // The words.
    pub budget: u64,
    pub understood: u64,
    pub resident: u64,
    pub asked: u64,
    pub is_suspended: bool,
    pub needed: u64,
    pub counts: Counts,
    // The engine.
    pub midst: Midst,
    /// The frames that it goes by.
    pub follows: u64,
    /// The frames that it has.
    pub held: u64,
    /// Those of them that are on their way out.
    pub leaving: u64,
    /// The pages that its program uses, and the work that it has left, in nanoseconds.
    pub pages: u64,
    pub work_ns: u64,
    pub is_parked: bool,
    pub is_poked: bool,
    pub is_stalled: bool,
    /// It says what is not so.
    pub is_lying: bool,
    /// Its program does nothing.
    pub is_idle: bool,
    /// It has changed its own budget.
    pub has_changed: bool,
    voice: Voice,
}

impl Engine {
    fn free() -> Engine {
        Engine {
            state: State::Free,
            task: None,
            budget: 0,
            understood: 0,
            resident: 0,
            asked: 0,
            is_suspended: false,
            needed: 0,
            counts: Counts::default(),
            midst: Midst::Nothing,
            follows: 0,
            held: 0,
            leaving: 0,
            pages: 0,
            work_ns: 0,
            is_parked: false,
            is_poked: true,
            is_stalled: false,
            is_lying: false,
            is_idle: false,
            has_changed: false,
            voice: Voice::default(),
        }
    }

    /// The frames that it has, or takes at any moment without asking anybody. Those of one that
    /// lies are its own doing.
    pub fn reach(&self) -> u64 {
        match self.is_lying {
            true => 0,
            false => self.held.max(self.follows),
        }
    }

    /// Has it say what is so from here on.
    pub fn stop_lying(&mut self) {
        self.is_lying = false;
        self.resident = self.held;
    }
}

/// The table, the frames that none has, and who does not run yet.
pub struct Yard {
    pub engines: RefCell<Vec<Engine>>,
    pub unassigned: RefCell<u64>,
    pub total: u64,
    /// The frames of newcomers that are being answered.
    pub promised: u64,
    draw: RefCell<SplitMix64>,
    /// Engines take steps in the midst of what the steward does.
    pub is_foul: bool,
    /// The number of calls of the steward's to one such step.
    pub calm: u64,
    /// Children that have begun while the steward was at work.
    pub born: RefCell<Vec<usize>>,
    /// Some engine has something to say.
    pub has_news: RefCell<bool>,
}

impl Yard {
    pub fn new(total: u64, records: usize, seed: u64) -> Yard {
        Yard {
            engines: RefCell::new(vec![Engine::free(); records]),
            unassigned: RefCell::new(0),
            total,
            promised: 0,
            draw: RefCell::new(SplitMix64::new(seed)),
            is_foul: true,
            calm: 1,
            born: RefCell::default(),
            has_news: RefCell::new(false),
        }
    }

    pub fn below(&self, limit: u64) -> u64 {
        self.draw.borrow_mut().below(limit.max(1))
    }

    /// The place of a record that is free.
    pub fn claim(&self, state: State) -> Option<usize> {
        let mut engines = self.engines.borrow_mut();
        let place = engines.iter().position(|it| it.state == State::Free)?;
        engines[place] = Engine {
            state,
            ..Engine::free()
        };
        Some(place)
    }

    pub fn release(&self, place: usize) {
        self.engines.borrow_mut()[place] = Engine::free();
    }

    pub fn unassigned_now(&self) -> u64 {
        match *self.unassigned.borrow() {
            HELD => 0,
            frames => frames,
        }
    }

    /// Ends a division in whose midst the supervisor has gone, as an engine does.
    pub fn end_division(&self) {
        let mut unassigned = self.unassigned.borrow_mut();
        if *unassigned == HELD {
            let engines = self.engines.borrow();
            let known = engines.iter().filter(|it| it.state != State::Free);
            let given: u64 = known.map(|it| it.budget.max(it.understood)).sum();
            *unassigned = self.total.saturating_sub(given);
        }
    }

    /// Has some engine take a step while the steward is at work.
    fn interfere(&self) {
        if !self.is_foul || self.below(self.calm) > 0 {
            return;
        }
        let engines = self.engines.borrow();
        // Records are claimed from the first on.
        let known = engines.iter().rposition(|it| it.state != State::Free);
        drop(engines);
        let place = self.below(known.map_or(1, |last| last as u64 + 1)) as usize;
        match self.below(10) {
            0 if self.below(self.calm) == 0 => self.begin_fork(place),
            1 | 2 => self.born.borrow_mut().extend(self.end_fork(place)),
            _ => self.step(place, self.below(3) * MS / 10),
        }
    }

    /// Has the engine at `place` take one step, in which its program may run for so long.
    pub fn step(&self, place: usize, ran_ns: u64) {
        let engine = &mut self.engines.borrow_mut()[place];
        if engine.state != State::Running || engine.is_stalled {
            return;
        }
        if self.go_on_in_midst(engine) {
            return;
        }
        // One that has nothing to do sleeps until it is poked.
        let sleeps = engine.is_parked || engine.is_idle;
        if sleeps && !engine.is_poked && engine.held <= engine.follows && engine.leaving == 0 {
            return;
        }
        if std::mem::take(&mut engine.is_poked) || !engine.is_parked {
            engine.is_parked = engine.is_suspended;
        }
        if self.follow(engine) {
            return;
        }
        self.page(engine, ran_ns);
        self.publish(engine);
    }

    /// Ends a change of words in whose midst the engine is. True if there was one.
    fn go_on_in_midst(&self, engine: &mut Engine) -> bool {
        match std::mem::replace(&mut engine.midst, Midst::Nothing) {
            Midst::Nothing => return false,
            Midst::Taking(frames) => {
                let mut unassigned = self.unassigned.borrow_mut();
                if *unassigned != HELD && *unassigned >= frames {
                    *unassigned -= frames;
                } else {
                    engine.budget = engine.budget.saturating_sub(frames);
                    engine.has_changed = true;
                }
            }
            Midst::Following => {
                self.follow(engine);
            }
            forking @ Midst::Forking(..) => engine.midst = forking,
        }
        true
    }

    /// Follows the budget: more than was said is said first. True if that takes another step.
    fn follow(&self, engine: &mut Engine) -> bool {
        if engine.budget > engine.understood {
            engine.understood = engine.budget;
            engine.midst = Midst::Following;
            return true;
        }
        engine.voice.note_given(engine.follows, engine.budget);
        engine.follows = engine.budget;
        false
    }

    /// Pages in and out, and has the program run.
    fn page(&self, engine: &mut Engine, ran_ns: u64) {
        // What was on its way has arrived.
        engine.held -= engine.leaving;
        engine.leaving = 0;
        let most = match engine.is_parked {
            true => 0,
            false => engine.follows,
        };
        if engine.held > most {
            engine.leaving = (engine.held - most).min(MOVED_MAX);
            engine.counts.page_outs += engine.leaving;
            engine.counts.page_out_requests += 1;
            return;
        }
        if engine.is_parked || engine.is_idle || ran_ns == 0 {
            return;
        }
        let wanted = engine.pages.min(most);
        let came = wanted.saturating_sub(engine.held).min(MOVED_MAX);
        engine.held += came;
        engine.counts.faults += came;
        engine.counts.soft_faults += 1;
        let missing = engine.pages.saturating_sub(engine.held);
        let waited_ns =
            (u128::from(ran_ns) * u128::from(missing) / u128::from(engine.pages)) as u64;
        let fetched = waited_ns / (4 * MS);
        engine.counts.page_in_faults += fetched;
        engine.counts.faults += fetched;
        engine.counts.page_ins += fetched * 2;
        engine.counts.page_outs += fetched;
        engine.counts.page_out_requests += fetched;
        engine.counts.waited_ns += waited_ns;
        // However little memory there is, a program comes on.
        let used_ns = (ran_ns - waited_ns).max(ran_ns / 64);
        engine.counts.ran_ns += used_ns;
        engine.counts.processor_ns += used_ns;
        engine.work_ns = engine.work_ns.saturating_sub(used_ns);
        if came > 0 || missing > 0 {
            self.take_unassigned(engine, came);
        }
    }

    fn take_unassigned(&self, engine: &mut Engine, coming: u64) {
        let most = share::takes(engine.follows, engine.held + coming);
        let free = *self.unassigned.borrow();
        let most = if free == HELD {
            0
        } else {
            most.min(free.div_ceil(2))
        };
        if most > 0 {
            engine.budget += most;
            engine.has_changed = true;
            engine.midst = Midst::Taking(most);
        }
    }

    /// Says what is in use, then what it goes by, then that it is short.
    fn publish(&self, engine: &mut Engine) {
        engine.resident = engine.held;
        if engine.held <= engine.follows {
            engine.understood = engine.follows;
        }
        let arrivals = engine.counts.faults + engine.counts.page_ins;
        let news = engine.voice.news(engine.follows, engine.held, arrivals);
        let asks = news.asks.filter(|_| !engine.is_parked);
        if let Some(frames) = asks {
            *self.has_news.borrow_mut() |= engine.asked == 0;
            engine.asked = frames;
        }
        *self.has_news.borrow_mut() |= news.has_given_up;
        if engine.is_lying {
            self.lie(engine);
        }
    }

    /// Any number.
    fn any(&self) -> u64 {
        match self.below(9) {
            0 => u64::MAX,
            1 => 0,
            draw => draw * 1000,
        }
    }

    fn lie(&self, engine: &mut Engine) {
        match self.below(3) {
            0 => engine.resident = self.any(),
            1 => engine.asked = self.any(),
            _ => return,
        }
        *self.has_news.borrow_mut() = true;
    }

    /// Begins to fork the program at `place`: the child's record has what it is to have, and the
    /// parent's engine says that it does without.
    pub fn begin_fork(&self, place: usize) {
        let parent = self.engines.borrow()[place].clone();
        let is_able = parent.state == State::Running && parent.midst == Midst::Nothing;
        let is_honest = !parent.is_lying && !parent.is_stalled;
        if !is_able || !is_honest || parent.is_parked || parent.budget < 2 {
            return;
        }
        let (left, part) = match share::left_at_fork(parent.budget, parent.held) {
            Some(left) => (left, share::needs_at_fork(parent.held)),
            None => (parent.budget - parent.budget / 2, parent.budget / 2),
        };
        if parent.held > part.min(left) {
            // It would have to give up pages first.
            return;
        }
        let Some(child) = self.claim(State::Reserved) else {
            return;
        };
        let mut engines = self.engines.borrow_mut();
        engines[child].budget = part;
        engines[child].pages = parent.pages;
        engines[child].work_ns = parent.work_ns / 2;
        engines[place].understood = parent.understood.min(left);
        // At rest it takes nothing, and follows its budget before it does again.
        engines[place].follows = parent.follows.min(left);
        engines[place].midst = Midst::Forking(child, parent.budget, left);
    }

    /// Goes on with a fork. The child's place if it has begun; it had pages of its parent's then.
    pub fn end_fork(&self, place: usize) -> Option<usize> {
        let engines = &mut self.engines.borrow_mut();
        let Midst::Forking(child, before, left) = engines[place].midst else {
            return None;
        };
        if engines[place].budget != before {
            // The steward was quicker: the fork fails.
            engines[place].midst = Midst::Nothing;
            engines[child] = Engine::free();
            return None;
        }
        engines[place].midst = Midst::Nothing;
        (engines[place].budget, engines[place].has_changed) = (left, true);
        let part = engines[child].budget;
        let used = engines[place].held.min(part);
        engines[place].is_poked = true;
        let child_engine = &mut engines[child];
        (child_engine.follows, child_engine.understood) = (part, part);
        (child_engine.held, child_engine.resident) = (used, used);
        Some(child)
    }

    /// Has a task whose supervisor is gone go on by itself.
    pub fn go_on_alone(&self, place: usize) {
        self.end_division();
        let engine = &mut self.engines.borrow_mut()[place];
        engine.is_stalled = false;
        if std::mem::take(&mut engine.is_suspended) {
            engine.is_poked = true;
            engine.budget = engine.budget.max(FLOOR_FRAMES);
        }
    }
}

impl Records for Yard {
    fn frames_total(&self) -> u64 {
        self.total
    }

    fn frames_resident(&self) -> u64 {
        self.engines.borrow().iter().map(|it| it.held).sum()
    }

    fn hold_unassigned(&mut self) {
        *self.unassigned.borrow_mut() = HELD;
        self.interfere();
    }

    fn release_unassigned(&mut self, frames: u64) {
        self.interfere();
        *self.unassigned.borrow_mut() = frames;
    }

    fn read(&self, record: Record) -> Reading {
        self.interfere();
        let engine = &self.engines.borrow()[record.0 as usize];
        Reading {
            budget: engine.budget,
            understood: engine.understood,
            resident: engine.resident,
            beside: 0,
            asked: engine.asked,
        }
    }

    fn change_budget(&mut self, record: Record, from: u64, to: u64) -> bool {
        self.interfere();
        let engine = &mut self.engines.borrow_mut()[record.0 as usize];
        let is_as_before = engine.budget == from;
        if is_as_before {
            engine.budget = to;
        }
        is_as_before
    }

    fn forget_asking(&mut self, record: Record) {
        self.engines.borrow_mut()[record.0 as usize].asked = 0;
    }

    fn suspend(&mut self, record: Record, needed: u64) {
        let engine = &mut self.engines.borrow_mut()[record.0 as usize];
        (engine.is_suspended, engine.needed) = (true, needed);
    }

    fn resume(&mut self, record: Record) {
        self.engines.borrow_mut()[record.0 as usize].is_suspended = false;
    }

    fn find_children(&mut self) -> Vec<Record> {
        self.interfere();
        let engines = self.engines.borrow();
        let reserved = engines.iter().enumerate();
        let reserved = reserved.filter(|(_, engine)| engine.state == State::Reserved);
        reserved.map(|(place, _)| Record(place as u32)).collect()
    }

    fn counts(&self, record: Record, with_processor: bool) -> Counts {
        let engine = &self.engines.borrow()[record.0 as usize];
        let mut counts = engine.counts;
        if !with_processor {
            counts.processor_ns = 0;
        }
        if engine.is_lying {
            match self.below(5) {
                0 => counts.page_in_faults = self.any(),
                1 => counts.waited_ns = self.any(),
                2 => counts.page_outs = self.any(),
                3 => counts.processor_ns = self.any(),
                _ => {}
            }
        }
        counts
    }

    fn size(&self, record: Record) -> u64 {
        let engine = &self.engines.borrow()[record.0 as usize];
        engine.pages.max(engine.held)
    }
}
