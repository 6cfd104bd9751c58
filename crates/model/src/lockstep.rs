//! Lockstep: a plan runs on the core and on the law at the same time.
//!
//! First safety: with everything going wrong that may, no program ever reads what it did not
//! write. Then liveness: trouble stops, and every program must come to its end.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use tidemark_core::vm::Counters;

use crate::random::SplitMix64;
use crate::shrink::shrink;
use crate::step::{Actor, Plan, Weather};

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The message of the check that failed.
    pub message: String,
    /// The steps that were left after shrinking, and their setup.
    pub plan: Plan,
}

/// Runs a plan; panics where the core breaks the law. Answers what has happened.
pub fn run(plan: &Plan) -> Counters {
    let mut actor = Actor::new(&plan.setup);
    for &step in &plan.steps {
        if plan.setup.is_traced {
            eprintln!("  {step:?}");
        }
        actor.act(step);
    }
    actor.shed_load(plan.setup.swap_slots);
    actor.wind_down()
}

/// Runs a plan and says what a failing check said.
pub fn try_run(plan: &Plan) -> Result<Counters, String> {
    silence_panics();
    IS_QUIET.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(|| run(plan)));
    IS_QUIET.set(false);
    result.map_err(|cause| {
        let place = PLACE.take();
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        format!("{} ({place})", text.unwrap_or("a panic without words"))
    })
}

/// Draws the plan that `seed` names, runs it, and shrinks it if it fails. With `TIDEMARK_TRACE`
/// set, what is left then runs once more and prints what happens.
pub fn try_seed(seed: u64, weather: Weather, steps: usize) -> Result<Counters, Box<Failed>> {
    let plan = Plan::draw(&mut SplitMix64::new(seed), weather, steps);
    let message = match try_run(&plan) {
        Ok(counters) => return Ok(counters),
        Err(message) => message,
    };
    let mut plan = shrink(plan, |candidate| try_run(candidate).is_err());
    plan.setup.is_traced = std::env::var_os("TIDEMARK_TRACE").is_some();
    let message = try_run(&plan).err().unwrap_or(message);
    Err(Box::new(Failed { message, plan }))
}

/// Runs `count` seeds from `first` on; panics with the seed and the shortest list of steps found.
/// Answers what each has done.
pub fn run_seeds(first: u64, count: u64, weather: Weather, steps: usize) -> Vec<Counters> {
    let run_one = |seed| match try_seed(seed, weather, steps) {
        Ok(counters) => counters,
        Err(failed) => panic!(
            "SEED={seed} STEPS={steps}: {}\n{}",
            failed.message, failed.plan
        ),
    };
    (first..first + count).map(run_one).collect()
}

thread_local! {
    static IS_QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static PLACE: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// Lets panics inside [`try_run`] be recorded instead of printed: shrinking makes many.
fn silence_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |cause| {
            if IS_QUIET.get() {
                let place = cause
                    .location()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                PLACE.replace(place);
            } else {
                loud(cause);
            }
        }));
    });
}
