//! The choice of the thread that runs next.

use std::collections::{BTreeSet, VecDeque};

use super::scenario::{Program, Scheduler};

/// The threads that want a processor.
pub(super) enum Ready {
    Turns {
        queue: VecDeque<usize>,
        quantum_ns: u64,
    },
    Fair {
        /// By their clocks, and by number.
        queue: BTreeSet<(u64, usize)>,
        /// The lead of each thread's clock over its own running: a thread that has slept for long
        /// may not make up for it.
        lead_ns: Vec<u64>,
        /// The clock of the thread that came to run last.
        clock_ns: u64,
        quantum_ns: u64,
    },
}

impl Ready {
    pub(super) fn new(scheduler: Scheduler, threads: usize) -> Ready {
        match scheduler {
            Scheduler::RoundRobin { quantum_ns } => Ready::Turns {
                queue: VecDeque::new(),
                quantum_ns: quantum_ns.max(1),
            },
            Scheduler::Fair { quantum_ns } => Ready::Fair {
                queue: BTreeSet::new(),
                lead_ns: vec![0; threads],
                clock_ns: 0,
                quantum_ns: quantum_ns.max(1),
            },
        }
    }

    /// Adds a thread, which has run for `fair_ns` by its own clock.
    pub(super) fn push(&mut self, thread: usize, fair_ns: u64) {
        match self {
            Ready::Turns { queue, .. } => queue.push_back(thread),
            Ready::Fair {
                queue,
                lead_ns,
                clock_ns,
                quantum_ns,
            } => {
                let least = clock_ns.saturating_sub(*quantum_ns);
                lead_ns[thread] = lead_ns[thread].max(least.saturating_sub(fair_ns));
                queue.insert((fair_ns + lead_ns[thread], thread));
            }
        }
    }

    /// Takes the thread that runs next out of the queue.
    pub(super) fn pop(&mut self) -> Option<usize> {
        match self {
            Ready::Turns { queue, .. } => queue.pop_front(),
            Ready::Fair {
                queue, clock_ns, ..
            } => {
                let (clock, thread) = queue.pop_first()?;
                *clock_ns = (*clock_ns).max(clock);
                Some(thread)
            }
        }
    }

    /// Takes a thread out, wherever it stands.
    pub(super) fn remove(&mut self, thread: usize) {
        match self {
            Ready::Turns { queue, .. } => queue.retain(|&other| other != thread),
            Ready::Fair { queue, .. } => queue.retain(|&(_, other)| other != thread),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Ready::Turns { queue, .. } => queue.len(),
            Ready::Fair { queue, .. } => queue.len(),
        }
    }

    /// A thread's place in the order of turns: who has the least is next. By queue where turns
    /// are taken, by the clock where they are given; who is not queued stands where it would be
    /// if it came now.
    pub(super) fn order_of(&self, thread: usize, fair_ns: u64) -> u64 {
        match self {
            Ready::Turns { queue, .. } => {
                let place = queue.iter().position(|&other| other == thread);
                place.unwrap_or(queue.len()) as u64
            }
            Ready::Fair { lead_ns, .. } => fair_ns + lead_ns[thread],
        }
    }

    /// The place of a thread that runs, and will be queued when its turn is over.
    pub(super) fn order_behind(&self, thread: usize, fair_ns: u64) -> u64 {
        match self {
            Ready::Turns { queue, .. } => queue.len() as u64 + 1,
            Ready::Fair { .. } => self.order_of(thread, fair_ns),
        }
    }

    /// The time for which a thread of a process of that weight may run while others wait.
    pub(super) fn turn_ns(&self, weight: u32) -> u64 {
        match self {
            Ready::Turns { quantum_ns, .. } => {
                let scaled = u128::from(*quantum_ns) * u128::from(weight);
                ((scaled / u128::from(Program::WEIGHT)) as u64).max(1)
            }
            Ready::Fair { quantum_ns, .. } => *quantum_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let mut ready = Ready::new(Scheduler::RoundRobin { quantum_ns: 8 }, 3);
        for process in [2, 0, 1] {
            ready.push(process, 0);
        }
        ready.remove(0);
        assert_eq!(
            (ready.pop(), ready.pop(), ready.pop()),
            (Some(2), Some(1), None)
        );
        assert_eq!((ready.turn_ns(1024), ready.turn_ns(2048)), (8, 16));
    }

    #[test]
    fn the_fair_one_runs_whoever_has_run_least_and_lets_nobody_save_up() {
        let mut ready = Ready::new(Scheduler::Fair { quantum_ns: 10 }, 3);
        ready.push(0, 500);
        ready.push(1, 300);
        assert_eq!((ready.pop(), ready.pop()), (Some(1), Some(0)));
        // Slept while the others ran to 500: it is one quantum behind them, not 500.
        ready.push(2, 0);
        ready.push(1, 480);
        assert_eq!((ready.pop(), ready.pop()), (Some(1), Some(2)));
    }
}
