//! A run: the driver of the steward, and what happens to its tasks.

use tidemark_core::load::registry;
use tidemark_core::load::tasks::TaskControl;
use tidemark_core::time::Time;
use tidemark_partition::{Divider, FLOOR_FRAMES, INTERVAL_NS, Rule};
use tidemark_tasks::{Action, Record, Remains, Steward, TaskId};

use crate::checks::Checks;
use crate::yard::{Midst, State, Yard};

/// The steps in foul weather, and the most that it takes in fair weather until all have ended.
const FOUL_STEPS: u64 = 250;
const FAIR_STEPS: u64 = 40_000;
const TASKS_MAX: u64 = 40;
const MS: u64 = 1_000_000;

/// The number of kinds of [`Deed`].
pub const DEEDS: usize = Deed::LABELS.len();

/// Something that happens in foul weather.
#[derive(Clone, Copy)]
enum Deed {
    Arrive,
    Fork,
    Exec,
    Kill,
    Stall,
    GoOn,
    Lie,
    Rest,
    Suspend,
    Resume,
    Evict,
    Budget,
    Control,
    Spare,
    HandOver,
    Refuse,
    TurnAway,
    Turn,
    Leave,
    KillChild,
}

impl Deed {
    const LABELS: [&str; 20] = [
        "arrivals",
        "forks",
        "execs",
        "kills",
        "stalls",
        "goings-on",
        "lies",
        "rests",
        "suspensions",
        "resumptions",
        "evictions",
        "budgets",
        "controls",
        "spared",
        "hand-overs",
        "refused",
        "turned away",
        "turns",
        "supervisors gone",
        "children killed",
    ];
}

/// The sums of deeds, as text.
pub fn describe(sums: &[u64; DEEDS]) -> String {
    let parts = Deed::LABELS.iter().zip(sums);
    let parts: Vec<String> = parts.map(|(name, sum)| format!("{sum} {name}")).collect();
    parts.join(", ")
}

pub struct Run {
    pub yard: Yard,
    /// `None` once the supervisor is gone.
    pub steward: Option<Steward>,
    pub now: Time,
    /// Tasks that have come, since when, and their claimed records.
    pub coming: Vec<(TaskId, u64, Option<usize>)>,
    /// Tasks that somebody has asked to be suspended.
    pub requested: Vec<TaskId>,
    /// The longest step so far.
    pub step_ns_max: u64,
    /// Newcomers that are being answered, and the frames that they are to have.
    pub answers: Vec<(TaskId, u64)>,
    /// Children that have not said hello.
    silent: Vec<usize>,
    checks: Checks,
    deeds: [u64; DEEDS],
    /// The supervisor is gone some time.
    is_doomed: bool,
    tasks_come: u64,
}

impl Run {
    pub fn new(seed: u64) -> Run {
        let mut yard = Yard::new(0, 64, seed);
        yard.total = 1024 + yard.below(24_000);
        yard.calm = [1, 3, 10][yard.below(3) as usize];
        let divider = Divider {
            rule: Rule::ALL[yard.below(Rule::ALL.len() as u64) as usize],
            frames_min: FLOOR_FRAMES << yard.below(3),
        };
        let is_doomed = yard.below(8) == 0;
        let mut run = Run {
            steward: Some(Steward::new(divider, Time(INTERVAL_NS))),
            now: Time(0),
            coming: Vec::new(),
            requested: Vec::new(),
            step_ns_max: 0,
            answers: Vec::new(),
            silent: Vec::new(),
            checks: Checks::new(yard.total),
            deeds: [0; DEEDS],
            is_doomed,
            tasks_come: 0,
            yard,
        };
        if run.yard.below(3) > 0 {
            run.change_control("working-set");
        }
        run.arrive();
        run
    }

    /// Foul weather, then fair. Answers what happened how often.
    pub fn play(mut self) -> [u64; DEEDS] {
        let is_slow = self.yard.below(6) == 0;
        for step in 0..FOUL_STEPS {
            if self.is_doomed && step == FOUL_STEPS / 2 {
                self.lose_supervisor();
            }
            self.happen();
            let most_ms = match is_slow {
                true => 3000,
                false => [2, 30, 300][self.yard.below(3) as usize],
            };
            self.pass(MS / 2 + self.yard.below(most_ms * MS));
        }
        self.clear_up();
        for step in 0..FAIR_STEPS {
            if self.is_over() {
                return self.deeds;
            }
            // Most of the time passes between divisions.
            self.pass(if step % 4 == 0 { 5 * MS } else { 100 * MS });
        }
        panic!("tasks have not ended:\n{}", self.describe());
    }

    fn describe(&self) -> String {
        let engines = self.yard.engines.borrow();
        let known = engines.iter().filter(|it| it.state != State::Free);
        let lines: Vec<String> = known.map(|engine| format!("{engine:?}")).collect();
        lines.join("\n")
    }

    fn is_over(&self) -> bool {
        let engines = self.yard.engines.borrow();
        let is_idle = engines.iter().all(|it| it.state == State::Free);
        is_idle && self.steward.as_ref().is_none_or(Steward::is_empty)
    }

    /// The weather clears: nobody stalls, lies, rests or comes any more, and requests are undone.
    fn clear_up(&mut self) {
        self.yard.is_foul = false;
        for engine in self.yard.engines.borrow_mut().iter_mut() {
            (engine.is_stalled, engine.is_idle) = (false, false);
            engine.stop_lying();
        }
        self.checks.forgive(&self.yard);
        while let Some(task) = self.requested.pop() {
            self.tell(|steward, now, yard| steward.handle_request(now, yard, task, false));
        }
        self.checks.clear_up(self.now);
    }

    /// Has time pass: engines and programs run, and the steward hears what there is to hear.
    fn pass(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        self.step_ns_max = self.step_ns_max.max(ns);
        let count = self.yard.engines.borrow().len();
        for _ in 0..2 {
            for place in 0..count {
                self.yard.step(place, ns / 2);
                self.end_fork(place);
            }
            self.checks.look(&self.yard);
        }
        for child in self.yard.born.take() {
            self.count(Deed::Fork);
            self.silent.push(child);
        }
        self.say_hello();
        self.end_programs();
        self.answer();
        let Some(steward) = &self.steward else { return };
        let is_due = self.now >= steward.poll_deadline();
        if is_due && steward.is_interval_over(self.now) {
            self.checks.end_interval(self.now);
        }
        if self.yard.has_news.take() {
            self.tell(|steward, now, yard| steward.handle_change(now, yard));
        }
        if is_due {
            self.tell(|steward, now, yard| steward.handle_tick(now, yard));
        }
        self.check(|checks, run| checks.after_step(run));
    }

    fn end_fork(&mut self, place: usize) {
        let born = self.yard.end_fork(place);
        self.yard.born.borrow_mut().extend(born);
    }

    /// Has children say hello that have begun.
    fn say_hello(&mut self) {
        for child in std::mem::take(&mut self.silent) {
            if self.yard.is_foul && self.yard.below(3) > 0 {
                self.silent.push(child);
            } else if self.steward.is_some() {
                self.come(Some(child));
            } else {
                self.yard.engines.borrow_mut()[child].state = State::Running;
            }
        }
    }

    /// Answers newcomers that have waited for it.
    fn answer(&mut self) {
        let Some(mut steward) = self.steward.take() else {
            self.yard.promised = 0;
            return self.answers.clear();
        };
        for (task, frames) in std::mem::take(&mut self.answers) {
            self.admit(&mut steward, task, frames);
            self.yard.promised -= frames;
        }
        self.steward = Some(steward);
    }

    /// Ends the programs that have done their work.
    fn end_programs(&mut self) {
        let engines = self.yard.engines.borrow().clone();
        for (place, engine) in engines.iter().enumerate() {
            let is_late = engine.state == State::Late;
            if is_late && (!self.yard.is_foul || self.yard.below(4) == 0) {
                self.yard.release(place);
            }
            let is_at_rest = engine.midst == Midst::Nothing;
            if engine.state == State::Running && engine.work_ns == 0 && is_at_rest {
                self.end(place);
            }
        }
    }

    /// Ends the task at `place` of the table. What was on its way holds up its record.
    fn end(&mut self, place: usize) {
        let engine = self.yard.engines.borrow()[place].clone();
        if let Midst::Forking(child, ..) = engine.midst {
            self.yard.release(child);
        }
        if let (Some(task), Some(steward)) = (engine.task, &mut self.steward) {
            let remains = Remains {
                page_outs: engine.counts.page_outs,
                page_out_requests: engine.counts.page_out_requests,
                pages: engine.pages,
            };
            steward.handle_gone(task, remains);
            self.requested.retain(|&it| it != task);
        }
        self.yard.release(place);
        if engine.leaving > 0 {
            self.yard.engines.borrow_mut()[place].state = State::Late;
        }
        *self.yard.has_news.borrow_mut() = true;
    }

    /// Has the steward hear something, and carries out what it decides.
    fn tell(&mut self, tell: impl FnOnce(&mut Steward, Time, &mut Yard)) {
        self.check(|checks, run| checks.begin(run));
        let Some(mut steward) = self.steward.take() else {
            return;
        };
        tell(&mut steward, self.now, &mut self.yard);
        while let Some(action) = steward.poll_action() {
            self.carry_out(&mut steward, action);
        }
        self.steward = Some(steward);
        self.check(|checks, run| checks.settle(run));
    }

    fn carry_out(&mut self, steward: &mut Steward, action: Action) {
        match action {
            Action::Admit { task, frames } if self.yard.is_foul && self.yard.below(3) == 0 => {
                self.answers.push((task, frames));
                self.yard.promised += frames;
            }
            Action::Admit { task, frames } => self.admit(steward, task, frames),
            Action::TurnAway(task) => {
                self.count(Deed::TurnAway);
                self.leave_alone(task);
            }
            Action::Poke(task) => {
                let mut engines = self.yard.engines.borrow_mut();
                let found = engines.iter_mut().find(|it| it.task == Some(task));
                if let Some(engine) = found {
                    engine.is_poked = true;
                }
            }
            Action::Turn { .. } => self.count(Deed::Turn),
            Action::Suspension { .. } => {}
        }
    }

    fn admit(&mut self, steward: &mut Steward, task: TaskId, frames: u64) {
        let found = self.coming.iter().find(|it| it.0 == task);
        let (_, _, claimed) = *found.expect("it has come, and was not answered");
        let is_refused = self.yard.is_foul && self.yard.below(30) == 0;
        let place = claimed.or_else(|| self.yard.claim(State::Running));
        let Some(place) = place.filter(|_| !is_refused) else {
            self.count(Deed::Refuse);
            steward.handle_gone(task, Remains::default());
            if claimed.is_none()
                && let Some(place) = place
            {
                self.yard.release(place);
            }
            return self.leave_alone(task);
        };
        self.coming.retain(|it| it.0 != task);
        let (pages, work_ns) = (64 + self.yard.below(self.yard.total), self.draw_work());
        let engine = &mut self.yard.engines.borrow_mut()[place];
        engine.state = State::Running;
        engine.task = Some(task);
        engine.budget = frames;
        engine.understood = engine.understood.max(frames);
        if claimed.is_none() {
            (engine.pages, engine.work_ns) = (pages, work_ns);
        }
        steward.handle_admitted(task, Record(place as u32));
    }

    /// Work for a program: so long on a processor.
    fn draw_work(&self) -> u64 {
        (1 + self.yard.below(3000)) * MS
    }

    /// A newcomer runs unmanaged. A child's record is released.
    fn leave_alone(&mut self, task: TaskId) {
        let found = self.coming.iter().position(|it| it.0 == task);
        let (_, _, claimed) = self.coming.remove(found.expect("it has come"));
        if let Some(place) = claimed {
            self.yard.release(place);
        }
    }

    fn count(&mut self, deed: Deed) {
        self.deeds[deed as usize] += 1;
    }

    fn come(&mut self, claimed: Option<usize>) {
        let Some(steward) = &mut self.steward else {
            return;
        };
        let record = claimed.map(|place| Record(place as u32));
        let task = steward.handle_arrival(self.now, record);
        self.coming.push((task, self.now.0, claimed));
        *self.yard.has_news.borrow_mut() = true;
    }

    fn arrive(&mut self) {
        self.tasks_come += 1;
        if self.tasks_come <= TASKS_MAX {
            self.count(Deed::Arrive);
            self.come(None);
        }
    }

    /// The place of a task that runs, if there is any.
    fn any_task(&self) -> Option<(usize, TaskId)> {
        let engines = self.yard.engines.borrow();
        let running = engines.iter().enumerate();
        let running = running.filter(|(_, it)| it.state == State::Running);
        let running: Vec<(usize, TaskId)> = running
            .filter_map(|(place, it)| Some((place, it.task?)))
            .collect();
        let draw = self.yard.below(running.len() as u64) as usize;
        running.get(draw).copied()
    }

    fn happen(&mut self) {
        let draw = self.yard.below(40);
        if draw < 6 {
            return self.arrive();
        }
        if draw == 6 && !self.silent.is_empty() {
            let child = self.silent.pop().expect("there is one");
            self.yard.release(child);
            return self.count(Deed::KillChild);
        }
        let Some((place, task)) = self.any_task() else {
            return;
        };
        match draw {
            7..=9 if self.deeds[Deed::Fork as usize] < TASKS_MAX / 2 => {
                self.yard.begin_fork(place);
            }
            10 => {
                self.count(Deed::Exec);
                self.end(place);
                self.come(None);
            }
            11 | 12 => {
                self.count(Deed::Kill);
                self.end(place);
            }
            13..=17 => self.afflict(place, draw),
            18..=23 => self.order(place, task, draw),
            24 => self.hand_over(),
            25 => {
                let names = ["none", "working-set", "medium-term"];
                self.change_control(names[self.yard.below(3) as usize]);
                self.count(Deed::Control);
            }
            _ => {}
        }
    }

    /// Has an engine or a program behave in another way.
    fn afflict(&mut self, place: usize, draw: u64) {
        let mut engines = self.yard.engines.borrow_mut();
        let engine = &mut engines[place];
        let deed = match draw {
            13 => {
                engine.is_stalled = true;
                Deed::Stall
            }
            14 | 15 => {
                engine.is_stalled = false;
                Deed::GoOn
            }
            16 => {
                match engine.is_lying {
                    true => engine.stop_lying(),
                    false => engine.is_lying = true,
                }
                Deed::Lie
            }
            _ => {
                engine.is_idle = !engine.is_idle;
                Deed::Rest
            }
        };
        drop(engines);
        self.checks.forgive(&self.yard);
        self.count(deed);
    }

    /// Carries out what somebody asks for.
    fn order(&mut self, place: usize, task: TaskId, draw: u64) {
        match draw {
            18 => {
                self.requested.retain(|&it| it != task);
                self.requested.push(task);
                self.tell(|steward, now, yard| steward.handle_request(now, yard, task, true));
                self.count(Deed::Suspend);
            }
            19 | 20 => {
                self.requested.retain(|&it| it != task);
                self.tell(|steward, now, yard| steward.handle_request(now, yard, task, false));
                self.count(Deed::Resume);
            }
            21 => {
                self.tell(|steward, now, yard| steward.handle_eviction(now, yard, task));
                self.count(Deed::Evict);
            }
            22 => {
                self.yard.total = 1024 + self.yard.below(24_000);
                self.tell(|steward, now, yard| steward.handle_change(now, yard));
                self.count(Deed::Budget);
            }
            _ => {
                let spared = place.is_multiple_of(2).then_some(task);
                self.tell(|steward, now, yard| steward.handle_foreground(now, yard, spared));
                self.count(Deed::Spare);
            }
        }
    }

    fn change_control(&mut self, name: &str) {
        let entry = registry::find(name).expect("there is one");
        let built = (name != "none").then(|| entry.build(&[]).expect("knobs have defaults"));
        let control = built.map(|load| TaskControl::new(load, 2));
        self.tell(|steward, now, yard| steward.control_by(now, yard, control));
    }

    /// Another supervisor takes over, which gets the state.
    fn hand_over(&mut self) {
        let Some(old) = &self.steward else { return };
        let mut next = Steward::new(old.divider(), self.now.after_ns(INTERVAL_NS));
        self.requested.clear();
        self.tell(|steward, now, yard| steward.handle_end(now, yard));
        self.answer();
        for engine in self.yard.engines.borrow_mut().iter_mut() {
            engine.task = None;
        }
        let count = self.yard.engines.borrow().len();
        for place in 0..count {
            let record = Some(Record(place as u32));
            let engine = &mut self.yard.engines.borrow_mut()[place];
            if engine.state == State::Running {
                engine.task = Some(next.handle_taken_over(self.now, None, record));
            }
        }
        for (task, since, claimed) in &mut self.coming {
            let record = claimed.map(|place| Record(place as u32));
            (*task, *since) = (next.handle_taken_over(self.now, record, None), self.now.0);
        }
        self.steward = Some(next);
        self.checks.forget();
        self.checks.end_interval(self.now);
        self.count(Deed::HandOver);
    }

    /// The supervisor is killed, maybe in the midst of a division. Its tasks go on alone.
    fn lose_supervisor(&mut self) {
        self.answer();
        if self.yard.below(2) == 0 {
            *self.yard.unassigned.borrow_mut() = u64::MAX;
        }
        self.steward = None;
        self.requested.clear();
        for (_, _, claimed) in std::mem::take(&mut self.coming) {
            if let Some(place) = claimed {
                self.yard.engines.borrow_mut()[place].state = State::Running;
            }
        }
        let count = self.yard.engines.borrow().len();
        (0..count).for_each(|place| self.yard.go_on_alone(place));
        self.checks.lose_supervisor();
        self.count(Deed::Leave);
    }

    fn check(&mut self, check: impl FnOnce(&mut Checks, &Run)) {
        let mut checks = std::mem::take(&mut self.checks);
        check(&mut checks, self);
        self.checks = checks;
    }
}
