//! Shrinking: finding a short list of steps that still fails, by deleting steps.
//!
//! Halves first, then smaller and smaller chunks, then single steps, until nothing more can go
//! (the idea of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002,
//! without its complements: deletion alone finds the same minima here).

use std::time::{Duration, Instant};

use crate::step::Plan;

/// No more runs and no more time than this: a slow failure is reported long rather than never.
const RUNS_MAX: u32 = 4000;
const TIME_MAX: Duration = Duration::from_secs(20);

/// Deletes steps from a failing plan as long as `is_failing` says it still fails.
pub fn shrink(plan: Plan, mut is_failing: impl FnMut(&Plan) -> bool) -> Plan {
    let Plan { setup, steps } = plan;
    let steps = shrink_steps(steps, |steps| {
        let steps = steps.to_vec();
        let setup = setup.clone();
        is_failing(&Plan { setup, steps })
    });
    Plan { setup, steps }
}

/// Deletes steps of any kind as long as `is_failing` says that what is left still fails.
pub fn shrink_steps<S: Clone>(
    mut steps: Vec<S>,
    mut is_failing: impl FnMut(&[S]) -> bool,
) -> Vec<S> {
    let started = Instant::now();
    let mut runs = 0;
    let mut chunk = steps.len().div_ceil(2);
    while chunk > 0 && runs < RUNS_MAX && started.elapsed() < TIME_MAX {
        let mut at = 0;
        let mut is_shorter = false;
        while at < steps.len() && runs < RUNS_MAX && started.elapsed() < TIME_MAX {
            let mut candidate = steps.clone();
            let end = (at + chunk).min(candidate.len());
            candidate.drain(at..end);
            runs += 1;
            if is_failing(&candidate) {
                steps = candidate;
                is_shorter = true;
            } else {
                at += chunk;
            }
        }
        if chunk > 1 {
            chunk = chunk.div_ceil(2);
        } else if !is_shorter {
            break;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Setup;
    use crate::step::Step;

    #[test]
    fn only_the_steps_that_matter_are_left() {
        let steps = (0..100).map(Step::Tick).collect();
        let plan = Plan {
            setup: Setup::demand(1),
            steps,
        };
        let matters = |plan: &Plan| {
            [7, 50, 51]
                .iter()
                .all(|&ms| plan.steps.contains(&Step::Tick(ms)))
        };
        let plan = shrink(plan, matters);
        assert_eq!(plan.steps, [Step::Tick(7), Step::Tick(50), Step::Tick(51)]);
    }
}
