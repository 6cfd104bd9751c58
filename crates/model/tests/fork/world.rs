//! Both sides and three threads, one step at a time; and the law.
//!
//! Beside the kernel runs the truth: the memory as it would be without an engine. A read must give
//! what it says, and so must the child, which has a copy of the truth of the moment of its fork. An
//! operation of another thread that has not returned by then may count or not: what a discard
//! empties may be full, and what is being moved or mapped is not looked at.

use crate::engine::{Engine, Flaw, Place};
use crate::kernel::{Content, Event, Kernel, PAGES, Page, Thread};

/// Two that do anything, and one that forks.
pub const THREADS: usize = 3;

/// The stage of an operation that is done, and has not returned.
const RETURNING: u8 = 9;

/// An operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Read(Page),
    Write(Page, Content),
    Discard(Page),
    /// Waits until nothing is there, as do moves: the kernel gives out only what is free.
    Map(Page),
    Unmap(Page),
    Move(Page, Page),
    /// May write to a page on its way, with the engine at rest: it stands for the thread's stack.
    Fork(Option<(Page, Content)>),
}

/// Of what a fork copies first. The kernel's own pages are one copy, what the engine knows another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Together,
    PagesFirst,
    EngineFirst,
}

/// The scope of an exploration.
#[derive(Clone, Debug)]
pub struct Case {
    /// The pages that are there at first.
    pub mapped: Vec<Page>,
    pub scripts: [Vec<Op>; THREADS],
    pub order: Order,
    pub flaw: Option<Flaw>,
}

/// The next event.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Thread(Thread),
    ReadMessage,
    Serve(usize),
    EndTransfer(Page),
    PageOut(Page),
    Find(Page),
    Adopt(Page),
    Settle,
    Rest,
    ServeAside(usize),
    Thaw,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Progress {
    /// The operations that have returned.
    returned: usize,
    /// The progress of the next one.
    stage: u8,
    /// For the engine.
    waits: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Pages {
    kernel: Kernel,
    truth: [Option<Content>; PAGES],
    threads: [Progress; THREADS],
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Half {
    Pages(Pages),
    Engine(Engine),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    pages: Pages,
    engine: Engine,
    forking: Option<Thread>,
    is_rest_asked: bool,
    is_thaw_asked: bool,
    /// The parts of a fork under way that have been copied. No mapping changes then.
    copied: Option<Half>,
}

impl State {
    /// These pages are there, each with a content of its own.
    pub fn new(mapped: &[Page]) -> State {
        let mut state = State::default();
        for &page in mapped {
            let kernel = &mut state.pages.kernel;
            kernel.is_mapped[page] = true;
            kernel.is_registered[page] = true;
            kernel.present[page] = Some(page as Content + 1);
            state.pages.truth[page] = kernel.present[page];
            state.engine.is_managed[page] = true;
            state.engine.table[page] = Place::Present;
        }
        state
    }

    /// All steps that might be possible.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let arrived = 0..self.engine.arrived.len();
        let of_pages = [Step::EndTransfer, Step::PageOut, Step::Find, Step::Adopt];
        let others = [Step::ReadMessage, Step::Settle, Step::Rest, Step::Thaw];
        (0..THREADS)
            .map(Step::Thread)
            .chain(others)
            .chain(arrived.clone().map(Step::Serve))
            .chain(arrived.map(Step::ServeAside))
            .chain((0..PAGES).flat_map(move |page| of_pages.map(|step| step(page))))
    }

    /// Takes a step. False if it is not possible; an error if the law is broken.
    pub fn take(&mut self, step: Step, case: &Case) -> Result<bool, String> {
        match step {
            Step::Thread(thread) => self.go_on(thread, case),
            _ => Ok(self.act(step, case.flaw).is_some()),
        }
    }

    /// Checks, when no step is possible, that no thread waits, that each page is what it should be
    /// and that the engine knows of what is present.
    pub fn check_end(&self) -> Result<(), String> {
        let threads = &self.pages.threads;
        if let Some(thread) = threads
            .iter()
            .position(|thread| thread.stage > 0 || thread.waits)
        {
            return Err(format!("thread {thread} waits for ever"));
        }
        for page in 0..PAGES {
            let got = self.engine.look(&self.pages.kernel, page);
            expect(page, &[self.pages.truth[page]], got, "in the end")?;
            let is_present = self.pages.kernel.present[page].is_some();
            if self.engine.is_managed[page]
                && is_present != (self.engine.table[page] == Place::Present)
            {
                return Err(format!("page {page} is present, or not, without account"));
            }
        }
        Ok(())
    }

    fn go_on(&mut self, me: Thread, case: &Case) -> Result<bool, String> {
        let Progress {
            returned,
            stage,
            waits,
        } = self.pages.threads[me];
        let Some(&op) = case.scripts[me].get(returned).filter(|_| !waits) else {
            return Ok(false);
        };
        let is_locked = self.copied.is_some();
        let kernel = &mut self.pages.kernel;
        match (op, stage) {
            (Op::Read(page), _) => {
                if self.touch(page, me) {
                    let got = self.pages.kernel.present[page];
                    expect(page, &[self.pages.truth[page]], got, "in the parent")?;
                    self.end(me);
                }
            }
            (Op::Write(page, content), _) => {
                if self.touch(page, me) {
                    self.write(page, content);
                    self.end(me);
                }
            }
            (Op::Discard(page), 0) if kernel.is_registered[page] => {
                kernel.changing += 1;
                self.send(Event::Remove(page), me);
            }
            (Op::Discard(_), 1) => {
                kernel.changing -= 1;
                self.pages.threads[me].stage = 2;
            }
            (Op::Discard(page), _) if !is_locked => {
                kernel.present[page] = None;
                self.pages.truth[page] = Some(0);
                self.end(me);
            }
            (Op::Map(_) | Op::Unmap(_) | Op::Move(..), _) => {
                return Ok(self.change_mapping(op, stage, me, case));
            }
            (Op::Fork(on_the_way), _) => return self.fork(me, on_the_way, case),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The steps of a mapping made, removed or moved. False if the next is not possible.
    fn change_mapping(&mut self, op: Op, stage: u8, me: Thread, case: &Case) -> bool {
        let is_locked = self.copied.is_some();
        let may_return = self.may_return(op, case.flaw);
        let Pages {
            kernel,
            truth,
            threads,
        } = &mut self.pages;
        let stage_now = &mut threads[me].stage;
        match (op, stage) {
            (Op::Map(page), 0) if !is_locked && !kernel.is_mapped[page] => {
                kernel.map(page);
                truth[page] = Some(0);
                *stage_now = RETURNING;
            }
            (Op::Unmap(page), 0) if !is_locked => {
                truth[page] = None;
                let is_registered = kernel.is_registered[page];
                kernel.unmap(page);
                kernel.changing += u8::from(is_registered);
                *stage_now = if is_registered { 1 } else { RETURNING };
            }
            (Op::Move(from, to), 0) if !is_locked && !kernel.is_mapped[to] => {
                truth[to] = truth[from].take();
                kernel.remap(from, to);
                // It unmaps what it has moved away from, and tells of both.
                let is_registered = kernel.is_registered[to];
                kernel.changing += if is_registered { 2 } else { 0 };
                *stage_now = if is_registered { 1 } else { RETURNING };
            }
            (Op::Unmap(page), 1) => self.send(Event::Unmap(page), me),
            (Op::Move(from, to), 1) => self.send(Event::Move { from, to }, me),
            (Op::Move(from, _), 2) => {
                kernel.changing -= 1;
                self.send(Event::Unmap(from), me);
            }
            (Op::Unmap(_), 2) | (Op::Move(..), 3) => {
                kernel.changing -= 1;
                *stage_now = RETURNING;
            }
            (_, RETURNING) if may_return => self.end(me),
            _ => return false,
        }
        true
    }

    /// The steps of a fork.
    fn fork(
        &mut self,
        me: Thread,
        on_the_way: Option<(Page, Content)>,
        case: &Case,
    ) -> Result<bool, String> {
        match (self.pages.threads[me].stage, case.order) {
            (0, _) if self.forking.is_some() => return Ok(false),
            (0, _) => {
                self.forking = Some(me);
                self.is_rest_asked = true;
                self.pages.threads[me] = Progress {
                    stage: 1,
                    waits: true,
                    ..self.pages.threads[me]
                };
            }
            (1, _) => match on_the_way {
                Some((page, _)) if !self.touch(page, me) => {}
                Some((page, content)) => {
                    self.write(page, content);
                    self.pages.threads[me].stage = 2;
                }
                None => self.pages.threads[me].stage = 2,
            },
            (2, Order::Together) => {
                self.check_child(&self.pages, self.engine.clone(), case)?;
                self.begin_sending(me);
            }
            (2, Order::PagesFirst) => {
                self.copied = Some(Half::Pages(self.pages.clone()));
                self.pages.threads[me].stage = 3;
            }
            (2, Order::EngineFirst) => {
                self.copied = Some(Half::Engine(self.engine.clone()));
                self.pages.threads[me].stage = 3;
            }
            (3, _) => {
                match self.copied.take() {
                    Some(Half::Pages(pages)) => {
                        self.check_child(&pages, self.engine.clone(), case)?;
                    }
                    Some(Half::Engine(engine)) => self.check_child(&self.pages, engine, case)?,
                    None => unreachable!("the first half has been copied"),
                }
                self.begin_sending(me);
            }
            _ => {
                self.pages.kernel.changing -= 1;
                self.is_thaw_asked = true;
                self.forking = None;
                self.end(me);
            }
        }
        Ok(true)
    }

    /// The child's first moments, and all that it can see.
    fn check_child(&self, pages: &Pages, mut engine: Engine, case: &Case) -> Result<(), String> {
        let mut kernel = pages.kernel.copy();
        engine.thaw_in_child(&mut kernel, case.flaw);
        for page in 0..PAGES {
            let mut allowed = vec![pages.truth[page]];
            let mut is_amid = false;
            // What is amid when one half is copied or when the other is.
            let both = pages
                .threads
                .iter()
                .zip(&case.scripts)
                .chain(self.pages.threads.iter().zip(&case.scripts));
            for (progress, script) in both.filter(|(progress, _)| progress.stage > 0) {
                match script.get(progress.returned) {
                    Some(Op::Discard(at)) if *at == page => allowed.push(Some(0)),
                    Some(Op::Map(at) | Op::Move(_, at)) => is_amid |= *at == page,
                    _ => {}
                }
            }
            if !is_amid {
                expect(page, &allowed, engine.look(&kernel, page), "in the child")?;
            }
        }
        Ok(())
    }

    fn begin_sending(&mut self, me: Thread) {
        self.pages.kernel.changing += 1;
        self.pages.threads[me].stage = 3;
        self.send(Event::Fork, me);
    }

    /// A child must not find in use what lies where something else was. And what is said of a page
    /// that was moved must not come before all that is to be said of the one that was there.
    fn may_return(&self, op: Op, flaw: Option<Flaw>) -> bool {
        let is_settled = self.pages.kernel.changing == 0 && self.engine.is_settled();
        let may_move = is_settled || flaw == Some(Flaw::MoveReturnsAmidAChange);
        let may = |during_fork| self.forking.is_none() || flaw == Some(during_fork);
        match op {
            Op::Map(_) => may(Flaw::MapReturnsDuringAFork),
            Op::Move(..) => may_move && may(Flaw::MoveReturnsDuringAFork),
            _ => true,
        }
    }

    fn send(&mut self, event: Event, me: Thread) {
        self.pages.kernel.events.push((event, me));
        self.pages.threads[me].stage += 1;
        self.pages.threads[me].waits = true;
    }

    fn touch(&mut self, page: Page, me: Thread) -> bool {
        let is_there = self.pages.kernel.touch(page, me);
        self.pages.threads[me].waits = !is_there;
        is_there
    }

    fn write(&mut self, page: Page, content: Content) {
        self.pages.kernel.present[page] = Some(content);
        self.pages.truth[page] = Some(content);
    }

    fn end(&mut self, me: Thread) {
        let returned = self.pages.threads[me].returned + 1;
        self.pages.threads[me] = Progress {
            returned,
            ..Progress::default()
        };
    }

    /// A step of the engine.
    fn act(&mut self, step: Step, flaw: Option<Flaw>) -> Option<()> {
        let is_at_rest = self.engine.is_at_rest;
        let is_changing = self.pages.kernel.changing > 0;
        let may_move = !is_changing || flaw == Some(Flaw::PagesMoveAmidAChange);
        let may_work = !is_at_rest && self.engine.is_settled() && may_move;
        match step {
            Step::ReadMessage => self.read_message(flaw),
            Step::Serve(index) if may_work => self.serve(index),
            Step::EndTransfer(page) if may_work => {
                let Place::Coming(content) = self.engine.table[page] else {
                    return None;
                };
                self.pages.kernel.present[page].get_or_insert(content);
                self.engine.table[page] = Place::Present;
                Some(())
            }
            Step::PageOut(page) if may_work && self.engine.table[page] == Place::Present => {
                let content = self.pages.kernel.present[page].take()?;
                self.engine.table[page] = Place::Out(content);
                Some(())
            }
            Step::Find(page) if may_work => self.find(page),
            Step::Adopt(page) if may_work => {
                // By then a thread that discards pages has long gone on, unless it is too early.
                let is_early = flaw == Some(Flaw::DiscardedPagesAreAdoptedAtOnce);
                let is_unknown = self.engine.table[page] == Place::Nowhere;
                let may_adopt = self.engine.is_managed[page] && is_unknown && is_early;
                self.pages.kernel.present[page].filter(|_| may_adopt)?;
                self.engine.table[page] = Place::Present;
                Some(())
            }
            Step::Settle if !is_at_rest && !is_changing && !self.engine.is_settled() => {
                self.engine.settle();
                Some(())
            }
            Step::Rest if self.is_rest_asked && !is_at_rest && !self.is_thaw_asked => {
                let is_quiet = !is_changing && self.engine.is_settled();
                let is_done = !self.engine.has_transfers();
                if !(is_quiet || flaw == Some(Flaw::RestBeginsAmidAChange))
                    || !(is_done || flaw == Some(Flaw::RestBeginsAmidATransfer))
                {
                    return None;
                }
                self.is_rest_asked = false;
                self.engine.is_at_rest = true;
                self.wake(self.forking?);
                Some(())
            }
            Step::ServeAside(index) if is_at_rest && may_move => self.serve_aside(index, flaw),
            Step::Thaw if self.is_thaw_asked => {
                self.is_thaw_asked = false;
                self.engine.thaw(&self.pages.kernel, flaw);
                Some(())
            }
            _ => None,
        }
    }

    fn read_message(&mut self, flaw: Option<Flaw>) -> Option<()> {
        let kernel = &mut self.pages.kernel;
        if !kernel.faults.is_empty() {
            self.engine.arrived.push(kernel.faults.remove(0));
        } else if !kernel.events.is_empty() {
            let (event, thread) = kernel.events.remove(0);
            self.engine.take_in(event, flaw);
            self.wake(thread);
        } else {
            return None;
        }
        Some(())
    }

    fn serve(&mut self, index: usize) -> Option<()> {
        let (page, thread) = self.engine.arrived[index];
        let table = &mut self.engine.table[page];
        if self.pages.kernel.present[page].is_none() && self.engine.is_managed[page] {
            match *table {
                Place::Out(content) => {
                    *table = Place::Coming(content);
                    return Some(());
                }
                Place::Coming(_) => return None,
                Place::Nowhere | Place::Present => self.pages.kernel.present[page] = Some(0),
            }
            *table = Place::Present;
        }
        self.engine.arrived.remove(index);
        self.wake(thread);
        Some(())
    }

    /// Serves a fault without changing the tables: of the thread that forks alone.
    fn serve_aside(&mut self, index: usize, flaw: Option<Flaw>) -> Option<()> {
        let (page, thread) = self.engine.arrived[index];
        if self.forking != Some(thread) && flaw != Some(Flaw::EveryFaultIsServedAtRest) {
            return None;
        }
        let present = &mut self.pages.kernel.present[page];
        if present.is_none() && self.engine.is_managed[page] {
            *present = match self.engine.table[page] {
                Place::Out(content) | Place::Coming(content) => Some(content),
                Place::Nowhere | Place::Present => Some(0),
            };
            self.engine.aside.push(page);
        }
        self.engine.arrived.remove(index);
        self.wake(thread);
        Some(())
    }

    /// Manages what is not managed yet.
    fn find(&mut self, page: Page) -> Option<()> {
        if !self.pages.kernel.is_mapped[page] || self.engine.is_managed[page] {
            return None;
        }
        self.pages.kernel.is_registered[page] = true;
        self.engine.is_managed[page] = true;
        self.engine.table[page] = match self.pages.kernel.present[page] {
            Some(_) => Place::Present,
            None => Place::Nowhere,
        };
        Some(())
    }

    fn wake(&mut self, thread: Thread) {
        self.pages.threads[thread].waits = false;
    }
}

fn expect(
    page: Page,
    allowed: &[Option<Content>],
    got: Option<Content>,
    place: &str,
) -> Result<(), String> {
    // What is not mapped nobody looks at.
    if allowed[0].is_none() || allowed.contains(&got) {
        return Ok(());
    }
    Err(format!(
        "page {page} {place}: {got:?} in place of {allowed:?}"
    ))
}
