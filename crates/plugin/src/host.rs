//! The policy around a module: it tells the module what happens, and checks what it answers.
//!
//! # Invariants
//! 1. The host knows by itself which frames hold pages, in the order in which they came. Where the
//!    module has no usable answer, the oldest that may leave is named.
//! 2. A module whose calls were stopped or trapped [`SETBACKS_MAX`] times is called no more.

use tidemark_core::collections::queue::Queues;
use tidemark_core::id::{FrameId, PageId, SpaceId};
use tidemark_core::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, SimulatedPolicy, SpacePolicy,
};
use wasmi::{TypedFunc, WasmParams, WasmResults};

use crate::abi::{self, About, Calls, Question, State};
use crate::guest::{Answer, Bounds, Guest, Setback};
use crate::shelf::{Counts, Kept};

/// The number of calls that may be stopped or trap before a module is called no more.
pub const SETBACKS_MAX: u32 = 16;

/// The list of all frames that hold pages.
const ALL: u8 = 0;

/// A policy that asks a module.
pub struct Hosted {
    kept: &'static Kept,
    /// `None` once it is called no more.
    guest: Option<Guest>,
    setbacks: u32,
    order: Queues,
}

impl Hosted {
    /// Starts the module that is `kept`, for a memory of `frames` frames that may grow to
    /// `frames_max`.
    pub fn new(kept: &'static Kept, frames_max: u32, frames: u32, seed: u64) -> Hosted {
        let mut hosted = Hosted {
            kept,
            // It has been started before, in less memory: what can fail now is the host.
            guest: Guest::new(&kept.bytes, Bounds::new(frames_max)).ok(),
            setbacks: 0,
            order: Queues::new(1, frames_max),
        };
        if hosted.guest.is_none() {
            hosted.counts().add_given_up();
        }
        let size = (frames_max.cast_signed(), frames.cast_signed());
        let parameters = (size.0, size.1, seed.cast_signed());
        hosted.tell(|calls| calls.start, parameters);
        hosted
    }

    fn counts(&self) -> &'static Counts {
        &self.kept.counts
    }

    /// Calls a function that may ask nothing, if the module has it.
    fn tell<P: WasmParams>(
        &mut self,
        function: impl FnOnce(&Calls) -> Option<TypedFunc<P, ()>>,
        parameters: P,
    ) {
        let Some(guest) = &mut self.guest else {
            return;
        };
        if let Some(function) = function(&guest.calls)
            && let Err(setback) = guest.tell(function, parameters)
        {
            self.set_back(&setback);
        }
    }

    /// Calls a function that may ask about frames. `None` if the module has none, or it did not
    /// come to its end.
    fn ask<R: WasmResults>(
        &mut self,
        function: impl FnOnce(&Calls) -> Option<TypedFunc<(), R>>,
        probe: &mut Probe<'_>,
    ) -> Option<R> {
        let guest = self.guest.as_mut()?;
        let function = function(&guest.calls)?;
        let order = &self.order;
        show(guest.store.data_mut(), probe);
        match guest.ask(function, |question| answer(question, order, probe)) {
            Ok(result) => Some(result),
            Err(setback) => {
                self.set_back(&setback);
                None
            }
        }
    }

    fn set_back(&mut self, setback: &Setback) {
        self.counts().add(setback);
        self.setbacks += 1;
        if self.setbacks == SETBACKS_MAX {
            self.guest = None;
            self.counts().add_given_up();
        }
    }

    /// The frame that is `named`, if it holds a page that may leave.
    fn check_named(&self, named: i32, probe: &Probe<'_>) -> Option<FrameId> {
        let frame = FrameId(named.cast_unsigned());
        let is_fine = holds_page(&self.order, frame) && probe.may_leave(frame);
        is_fine.then_some(frame)
    }

    /// The answer of a call that may always name no frame.
    fn take_named(&mut self, named: Option<i32>, probe: &Probe<'_>) -> Option<FrameId> {
        let named = named.filter(|&named| named != abi::NONE)?;
        let frame = self.check_named(named, probe);
        if frame.is_none() {
            self.counts().add_misnamed();
        }
        frame
    }

    fn find_oldest(&self, probe: &Probe<'_>) -> Option<FrameId> {
        let mut frames = self.order.iter(ALL).map(FrameId);
        frames.find(|&frame| probe.may_leave(frame))
    }
}

impl Policy for Hosted {
    fn describe(&self) -> &'static Description {
        &self.kept.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.order.push_back(ALL, frame.0);
        let (object, index, cause, space, is_external) = abi::arrival(arrival);
        let parameters = (signed(frame), object, index, cause, space, is_external);
        self.tell(|calls| Some(calls.page_entered), parameters);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.order.remove(frame.0);
        let (object, index) = numbers(page);
        let parameters = (signed(frame), object, index, abi::departure(departure));
        self.tell(|calls| Some(calls.page_left), parameters);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        self.tell(|calls| calls.page_rescued, signed(frame));
    }

    fn page_missed(&mut self, page: PageId) {
        self.tell(|calls| calls.page_missed, numbers(page));
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let answer = self.ask(|calls| Some(calls.choose), probe);
        if let Some(named) = answer {
            let frame = self.check_named(named, probe);
            // Pages that are being written are worth waiting for, if the module says so.
            if frame.is_some() || (named == abi::NONE && probe.laundry() > 0) {
                return frame;
            }
        }
        let oldest = self.find_oldest(probe);
        if answer.is_some() && oldest.is_some() {
            self.counts().add_misnamed();
        }
        oldest
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let named = self.ask(|calls| calls.trim, probe);
        self.take_named(named, probe)
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let named = self.ask(|calls| calls.clean, probe);
        self.take_named(named, probe)
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        let _ = self.ask(|calls| calls.tick, probe);
    }

    fn resize(&mut self, frames: u32) {
        self.tell(|calls| calls.resize, frames.cast_signed());
    }

    fn check(&self) {
        self.order.check();
    }
}

impl SimulatedPolicy for Hosted {
    fn page_referenced(&mut self, frame: FrameId) {
        self.tell(|calls| calls.page_referenced, signed(frame));
    }

    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        let parameters = (signed(frame), next.cast_signed());
        self.tell(|calls| calls.page_foreseen, parameters);
    }
}

impl SpacePolicy for Hosted {
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        let parameters = (space.0.cast_signed(), ticks.cast_signed());
        self.tell(|calls| calls.clock_moved, parameters);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.tell(|calls| calls.space_ended, space.0.cast_signed());
    }
}

/// Lets the module see what it may ask without leaving it.
fn show(state: &mut State, probe: &Probe<'_>) {
    state.now_ns = probe.now().0.cast_signed();
    state.frames_free = probe.frames_free().cast_signed();
    state.laundry = probe.laundry().cast_signed();
    state.answers_arrival = probe.answers_arrival().into();
}

/// Answers a question about a frame. A frame without a page has not been used, is clean, and may
/// not leave; one that there can never be has no answer.
fn answer(question: Question, order: &Queues, probe: &mut Probe<'_>) -> Option<Answer> {
    let Question { about, frame } = question;
    let frame = FrameId(frame);
    if frame.0 >= order.members_max() {
        return None;
    }
    let is_there = holds_page(order, frame);
    Some(match about {
        About::Unmap => {
            if is_there {
                probe.unmap(frame);
            }
            Answer::Done
        }
        _ if !is_there => Answer::Number(0),
        About::MayLeave => Answer::Number(probe.may_leave(frame).into()),
        About::Referenced => Answer::Number(probe.take_referenced(frame).into()),
        About::MayBeModified => Answer::Number(probe.may_be_modified(frame).into()),
        About::Modified => Answer::Number(match probe.is_modified(frame) {
            Some(is_modified) => is_modified.into(),
            None => -1,
        }),
    })
}

fn holds_page(order: &Queues, frame: FrameId) -> bool {
    frame.0 < order.members_max() && order.list_of(frame.0).is_some()
}

fn signed(frame: FrameId) -> i32 {
    frame.0.cast_signed()
}

fn numbers(page: PageId) -> (i32, i64) {
    (page.object.0.cast_signed(), page.index.cast_signed())
}
