//! The times of an engine's turns: of ticks, of looks, and of what is tried again.

use tidemark_core::time::{STEP_NS, STEP_TICK_NS, Time};

/// The interval at which the core gets the time while it works.
pub const TICK_NS: u64 = 10_000_000;
/// While faults keep it busy, the engine looks at all that is not about them this often. What
/// others want of it at once wakes it.
const LOOK_NS: u64 = 500_000;
/// The least sleep after a fault or a change of memory for the sake of what is due by then: the
/// next is likely to come before, and its turn does that. A timer that is the next one of its
/// processor is set in hardware, and once more when it is taken back, and a virtual machine is left
/// for each: a sleep of 0.5 ms that a fault ends costs 6 us more than one that outlasts the
/// kernel's own tick.
const REST_NS: u64 = 10_000_000;
/// Faults that follow each other in less time keep the engine busy.
const BUSY_NS: u64 = 1_000_000;
/// The pause before something is tried again that the kernel refused for now. It doubles in steps.
const RETRY_NS: u64 = 200_000;
/// The number of turns in vain after which it doubles.
const RETRIES_A_DOUBLING: u32 = 16;
/// The most such doublings.
const RETRY_DOUBLINGS_MAX: u32 = 6;

/// The state that a turn leaves to those that follow.
pub struct Turns {
    /// The number of turns in a row that had something to try again.
    in_vain: u32,
    /// The time of the last look at what is not about faults.
    looked: Time,
    /// Compressed memory has come to rest in this turn: only what is started stirs it up.
    is_tended: bool,
    next_tick: Time,
    /// Faults or changes were served in this turn.
    has_served: bool,
    /// The end of the last turn that served some.
    served: Time,
    /// That turn was the last, and came soon after another.
    is_busy: bool,
    /// In step, how much time has passed beside that of faults.
    passed_ns: u64,
}

impl Turns {
    /// Before the first turn.
    pub fn new(first_tick: Time) -> Turns {
        Turns {
            in_vain: 0,
            looked: Time(0),
            is_tended: false,
            next_tick: first_tick,
            has_served: false,
            served: Time(0),
            is_busy: false,
            passed_ns: 0,
        }
    }

    /// Ends a turn at `now`, after which something is to be tried again if it `is_retrying`.
    pub fn end(&mut self, is_retrying: bool, now: Time) {
        self.is_busy = self.has_served && now.since_ns(self.served) < BUSY_NS;
        if self.has_served {
            self.served = now;
        }
        self.in_vain = match is_retrying {
            true => self.in_vain.saturating_add(1),
            false => 0,
        };
        self.has_served = false;
    }

    /// Takes in that a fault, or a change of memory, was served.
    pub fn note_served(&mut self) {
        self.has_served = true;
    }

    /// Returns true if the last turn served a fault, or a change, soon after another.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// The time to sleep until at `now`, if nothing happens, for the sake of what is `due`: later
    /// where something was [served](Self::note_served) in this turn. What is due by now is not put
    /// off: it takes no timer.
    pub fn rest_until(&self, due: Time, now: Time) -> Time {
        match self.has_served && due > now {
            true => due.max(now.after_ns(REST_NS)),
            false => due,
        }
    }

    /// The time after which a refused call is tried again.
    pub fn retry_ns(&self) -> u64 {
        let doublings = self.in_vain / RETRIES_A_DOUBLING;
        RETRY_NS << doublings.min(RETRY_DOUBLINGS_MAX)
    }

    /// The time of the next look at what is not about faults.
    pub fn next_look(&self) -> Time {
        self.looked.after_ns(LOOK_NS)
    }

    /// Takes in that such a look was made at `now`.
    pub fn note_look(&mut self, now: Time) {
        self.looked = now;
    }

    /// Returns true if the turn that began at `now` has looked at what is not about faults.
    pub fn has_looked(&self, now: Time) -> bool {
        self.looked == now
    }

    /// Has the next turn look.
    pub fn hasten_look(&mut self) {
        self.looked = Time(0);
    }

    /// Returns true if compressed memory has come to rest in this turn.
    pub fn is_tended(&self) -> bool {
        self.is_tended
    }

    /// Takes in whether it has.
    pub fn note_tended(&mut self, is_tended: bool) {
        self.is_tended = is_tended;
    }

    /// The time of the next tick.
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// Plans the next tick, after one at `now`.
    pub fn plan_tick(&mut self, now: Time) {
        self.next_tick = now.after_ns(TICK_NS);
    }
}

// In step.
impl Turns {
    /// The time, which each of `faults` takes further by as much.
    pub fn step_time(&self, faults: u64) -> Time {
        Time(faults * STEP_NS + self.passed_ns)
    }

    /// Lets time pass beside that of faults.
    pub fn pass(&mut self, ns: u64) {
        self.passed_ns += ns;
    }

    /// The time of a tick that is due by `now`, which is over then.
    pub fn take_step_tick(&mut self, now: Time) -> Option<Time> {
        let tick = self.next_tick;
        (tick <= now).then(|| {
            self.next_tick = tick.after_ns(STEP_TICK_NS);
            tick
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_calls_are_tried_again_ever_later_up_to_a_limit() {
        let mut turns = Turns::new(Time(0));
        let first = turns.retry_ns();
        (0..RETRIES_A_DOUBLING).for_each(|_| turns.end(true, Time(0)));
        assert_eq!(turns.retry_ns(), 2 * first);
        (0..1000).for_each(|_| turns.end(true, Time(0)));
        assert_eq!(turns.retry_ns(), first << RETRY_DOUBLINGS_MAX);
        turns.end(false, Time(0));
        assert_eq!(turns.retry_ns(), first);
    }

    #[test]
    fn after_a_fault_no_short_timer_is_set() {
        let (now, due) = (Time(7), Time(8));
        let mut turns = Turns::new(Time(0));
        assert_eq!(turns.rest_until(due, now), due);
        turns.note_served();
        assert_eq!(turns.rest_until(due, now), now.after_ns(REST_NS));
        assert_eq!(turns.rest_until(now, now), now);
        let late = now.after_ns(2 * REST_NS);
        assert_eq!(turns.rest_until(late, now), late);
        turns.end(false, now);
        assert_eq!(turns.rest_until(due, now), due);
    }

    #[test]
    fn in_step_faults_and_waits_alone_take_the_time_further() {
        let mut turns = Turns::new(Time(STEP_TICK_NS));
        assert_eq!(turns.step_time(3), Time(3 * STEP_NS));
        turns.pass(STEP_TICK_NS);
        assert_eq!(turns.step_time(3), Time(3 * STEP_NS + STEP_TICK_NS));
        let now = Time(2 * STEP_TICK_NS);
        let ticks: Vec<Time> = std::iter::from_fn(|| turns.take_step_tick(now)).collect();
        assert_eq!(ticks, [Time(STEP_TICK_NS), Time(2 * STEP_TICK_NS)]);
    }
}
