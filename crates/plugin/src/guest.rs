//! A module at work: one instance, called within bounds.
//!
//! Questions about frames can't be answered while the interpreter runs: the core lends its tables
//! for one call of the policy only, and an instance lives longer. So a question suspends the call,
//! the host answers it, and the call goes on.

use std::fmt;

use wasmi::{Error, Instance, Store, StoreLimitsBuilder, TrapCode, TypedFunc};
use wasmi::{TypedResumableCall, Val, WasmParams, WasmResults};

use crate::abi::{Calls, Question, State};
use crate::module::{Wrong, engine, instantiate, plain};

/// The limits of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Memory, in bytes.
    pub memory_bytes: usize,
    /// Steps of the interpreter for each call.
    pub steps: u64,
    /// Questions about frames for each call.
    pub questions: u64,
}

impl Bounds {
    /// The bounds in a memory of up to `frames_max` frames. All grow with it: a policy may keep
    /// records of each frame, and may have to look at each, twice.
    pub fn new(frames_max: u32) -> Bounds {
        let frames = u64::from(frames_max);
        Bounds {
            memory_bytes: (1 << 20) + frames_max as usize * 64,
            steps: (1 << 20) + frames * 256,
            questions: 64 + frames * 8,
        }
    }
}

/// The reason for which a call ended without an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setback {
    /// The call went beyond its limits.
    Stopped,
    /// The call trapped. Holds the reason.
    Trapped(String),
}

impl fmt::Display for Setback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setback::Stopped => formatter.write_str("a call went on for too long"),
            Setback::Trapped(why) => formatter.write_str(why),
        }
    }
}

/// An instance of a module.
pub struct Guest {
    /// Its functions.
    pub calls: Calls,
    /// The store in which it keeps its state.
    pub store: Store<State>,
    /// The instance.
    pub instance: Instance,
    bounds: Bounds,
}

impl Guest {
    /// Starts the module in `bytes`.
    ///
    /// # Errors
    /// If it breaks a rule, lacks a function, or can't be started within `bounds`.
    pub fn new(bytes: &[u8], bounds: Bounds) -> Result<Guest, Wrong> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(bounds.memory_bytes)
            .table_elements(1024)
            .instances(1)
            .tables(4)
            .memories(1)
            .build();
        let state = State {
            limits,
            ..State::default()
        };
        let mut store = Store::new(&engine(), state);
        store.limiter(|state| &mut state.limits);
        fuel(&mut store, bounds.steps);
        let instance = instantiate(&mut store, bytes)?;
        Ok(Guest {
            calls: Calls::find(&store, instance)?,
            store,
            instance,
            bounds,
        })
    }

    /// Calls `function`, which may ask nothing about frames.
    ///
    /// # Errors
    /// If the call did not come to its end.
    pub fn tell<P, R>(&mut self, function: TypedFunc<P, R>, parameters: P) -> Result<R, Setback>
    where
        P: WasmParams,
        R: WasmResults,
    {
        fuel(&mut self.store, self.bounds.steps);
        let answer = function.call(&mut self.store, parameters);
        answer.map_err(|error| setback(&error))
    }

    /// Calls `function`, and lets `answer` answer what it asks. An answer of `None` ends the call.
    ///
    /// # Errors
    /// If the call did not come to its end.
    pub fn ask<R: WasmResults>(
        &mut self,
        function: TypedFunc<(), R>,
        mut answer: impl FnMut(Question) -> Option<Answer>,
    ) -> Result<R, Setback> {
        fuel(&mut self.store, self.bounds.steps);
        let mut call = function.call_resumable(&mut self.store, ());
        for _ in 0..=self.bounds.questions {
            let suspended = match call.map_err(|error| setback(&error))? {
                TypedResumableCall::Finished(result) => return Ok(result),
                TypedResumableCall::OutOfFuel(_) => return Err(Setback::Stopped),
                TypedResumableCall::HostTrap(suspended) => suspended,
            };
            let question = suspended.host_error().downcast_ref::<Question>();
            let question = *question.expect("nothing else suspends a call");
            call = match answer(question) {
                Some(Answer::Number(number)) => {
                    suspended.resume(&mut self.store, &[Val::I32(number)])
                }
                Some(Answer::Done) => suspended.resume(&mut self.store, &[]),
                None => return Err(Setback::Trapped(question.to_string())),
            };
        }
        Err(Setback::Stopped)
    }
}

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A number.
    Number(i32),
    /// The call is done, and has no result.
    Done,
}

fn fuel(store: &mut Store<State>, steps: u64) {
    store.set_fuel(steps).expect("the engine counts steps");
}

fn setback(error: &Error) -> Setback {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Setback::Stopped,
        _ => Setback::Trapped(plain(&error.to_string())),
    }
}
