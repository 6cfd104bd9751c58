//! Tidemark's own policy: it keeps what is used again soonest, and learns that from faults alone.
//!
//! Like LIRS and CLOCK-Pro it keeps most of memory for *hot* pages and lets newcomers prove
//! themselves among a few *cold* ones, so that a scan or a loop larger than memory passes through
//! the cold pages and leaves the hot ones alone. Those two need a bit for each page; here is none.
//! Whether a page is in use is learnt by unmapping it and waiting for a soft fault, which costs a
//! program some fifty times what the unmapping costs. So unmapping follows two rules:
//!
//! - A cold page is unmapped when it is half way out (the `TRIAL` list): it would have to be
//!   unmapped to leave anyway. Its uses before that belong to the fault that brought it and
//!   count for nothing. There are no more trials than a few for each page that arrives.
//!   A page in front of a walk is not tried before the walk has come to it, and more pages are
//!   cold than are in front of walks, up to an eighth of memory.
//! - Of the hot pages a few, the longest trusted, are unmapped and *watched*. Each that turns out
//!   to be in use costs credit, which comes with arriving pages, so that watching never costs
//!   more than a share of the paging. Each that turns out to be idle costs nothing, so that
//!   their number grows as long as they do.
//!
//! Time is counted in pages that have arrived. When a page comes back, how long it was away is
//! compared with how long the hot page watched longest has been idle. If it was away for less, it
//! becomes hot, and that other page leaves in its place. In a loop that never happens: its pages
//! come round at the same distance, hot or not.
//!
//! How many pages are cold adapts, so that whatever leaves next is missed equally seldom. Two
//! rates are kept: how often a page comes back that left as cold a short while ago, and how often
//! a hot page that has been idle for longer than a cold one stays is used after all. While the
//! first is higher, cold pages leave too early and more are kept; while the second is, fewer.
//!
//! At first nothing is known, and most pages are cold: then memory is *open*, and nearly a queue
//! by age of last use, which is what most programs are served best by. Up to half of it is on trial
//! and a quarter of the hot pages is watched; of the oldest cold page and the oldest hot one, the
//! one that has been idle for longer leaves. Trials begin before memory is full, so that the first
//! page to leave is not just the first that came.
//!
//! A loop larger than memory betrays itself: pages come back that left long ago, while none that
//! left just now does, and none on trial is used. Then what is in memory becomes hot as it is, and
//! newcomers pass through the least number of cold pages.
//!
//! Pages that came while memory was filling are hot because there was room, and for no better
//! reason. As long as none of their uses has been seen, they leave more readily than others.
//!
//! # Departures
//! From CLOCK-Pro: no bits and no common clock of all pages, but queues; a page's first use is
//! absorbed; distances are compared by number, not by which hand is where; the number of cold
//! pages follows two measured rates. Why this shape and these numbers:
//! `docs/decisions/0009-default-policy.md`, `0025-cold-pages-by-rates-of-return.md` and
//! `0050-open-until-a-loop-shows.md`.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::{Found, Ghost, Ghosts};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use crate::time::Time;

/// The description of `tidemark`.
pub static DESCRIPTION: Description = Description {
    name: "tidemark",
    summary: "pages that come back sooner than a resident one is used take its place",
    lineage: &[
        "Mach 1986 (vm_pageout)",
        "Jiang and Zhang 2002 (LIRS)",
        "Jiang, Chen and Zhang 2005 (CLOCK-Pro)",
        "Weiner 2012 (refault distance)",
    ],
    sees: Sees::Faults,
    knobs: &[
        Knob {
            name: "cold-least",
            meaning: "pages kept for newcomers at the least, in thousandths of memory",
            min: 1,
            max: 1000,
            default: 20,
        },
        Knob {
            name: "cold-most",
            meaning: "pages kept for newcomers at the most, in thousandths of memory",
            min: 1,
            max: 1000,
            default: 950,
        },
        Knob {
            name: "watched",
            meaning: "hot pages that are unmapped and watched at the least, in thousandths",
            min: 1,
            max: 1000,
            default: 31,
        },
        Knob {
            name: "price",
            meaning: "pages that must arrive for each watched page that was in use",
            min: 1,
            max: 1000,
            default: 3,
        },
    ],
};

/// Cold pages that came or were used lately: mapped, if a fault brought them.
const FRESH: u8 = 0;
/// Cold pages on their way out: unmapped, so that a use shows.
const TRIAL: u8 = 1;
/// Hot pages: mapped, and left in peace.
const HOT: u8 = 2;
/// Hot pages that are unmapped to see whether they are in use.
const WATCHED: u8 = 3;
const LISTS: u8 = 4;

/// The share of cold pages that is on trial, and the most it may be of memory, in thousandths.
/// The more pages are on trial, the nearer to LRU, and the more soft faults.
const TRIAL_OF_COLD: u64 = 750;
const TRIAL_MOST: u64 = 500;
/// The share of hot pages that is watched while memory is open, in thousandths.
const WATCHED_OPEN: u64 = 250;
/// Trials begin when less than this share of memory is free.
const FREE_PART: u64 = 4;
/// The share of free memory below which trials begin, in a memory that has grown since a page had
/// to leave. It may grow again: it asks for more while there is still twice as much (`Voice::news`
/// of `tidemark-partition`).
const FREE_PART_GROWN: u64 = 32;
/// This many pages go on trial for each that arrives: their uses cost a part of what arriving
/// costs. Without a bound a program that fits, or nearly, would have its pages put on trial again
/// as often as it uses them.
const TRIALS_AN_ARRIVAL: u32 = 4;
/// The share of memory, as a divisor, up to which pages on trial are kept though that room is not
/// used, for a change of phase.
const TRIALS_KEPT_PART: u64 = 16;

/// The time that stands for no time at all.
const UNKNOWN: u64 = 0;

/// A page that left is expected back soon while this share of memory has left after it. Longer
/// would take in what comes back after a round of a loop.
const RECENT_PART: u64 = 32;
/// The rates forget as fast as this share of memory arrives.
const RATE_PART: u64 = 4;
/// The number of cold pages moves by one page in this many arrivals. Faster, and it swings.
const ARRIVALS_A_PAGE: i64 = 4;
/// The number of cold pages moves by this share of memory at a time, and by no more pages than go
/// in one request. If room for one hot page in each four arrivals were made, a walk would leave
/// every fourth page behind, and the next walk would read the pages between in requests of three.
const STEP_PART: u64 = 1024;
const STEP_MOST: u64 = 64;
/// The factor by which a cold page must come back less often than an idle hot page for a hot page
/// that has not been seen used to leave in its place.
const UNTRIED_FAVOUR: u128 = 4;

/// A hot page leaves though there are few cold ones only if it has been idle for at least four
/// fifths of what the oldest cold page has; and, while memory is open, a hot page leaves though
/// there are cold ones enough if it has been idle for more than five quarters of that. Cold
/// pages are timed from their coming, hot ones from when they were unmapped, which is less exact.
const IDLE_LEAST: (u64, u64) = (4, 5);
const IDLE_MOST: (u64, u64) = (5, 4);
/// A loop shows when pages that left long ago come back this many times as often as pages on trial
/// are used and as those come back that left just now, and when this share of memory has come back.
const LOOP_FACTOR: u128 = 10;
const LOOP_PART: u64 = 64;
const LOOP_LEAST: u64 = 2;

/// The most pages unmapped for each choice, on trial and watched, and the most that become hot for
/// each arrival: bounds an event's time.
const UNMAPS_MAX: u32 = 256;

/// The most credit there can be, in arrivals, and the least, in thousandths of memory: a program
/// that has used all watched pages at once must not stop the watching for long.
const CREDIT_MOST: i64 = 64;
const DEBT_MOST: i64 = 60;
const DEBT_LEAST: i64 = 16;

/// The state of a resident page. It is kept together, so that a look at it costs one miss of the
/// processor's cache.
#[derive(Clone, Copy, Default)]
struct Resident {
    /// The time at which it was last known to be used.
    seen: u64,
    /// In which event it came or was last rescued, as numbered by choices: a page may not be
    /// unmapped before its program had a chance to touch it.
    event: u32,
    /// True if it came ahead of its use, and none has been seen yet.
    is_ahead: bool,
    /// True if it came while memory was filling, and has not been seen in use.
    is_untried: bool,
}

struct Tidemark {
    queues: Queues,
    ghosts: Ghosts,
    /// The page in each frame.
    residents: Column<Resident>,
    event: u32,
    event_time: Time,
    /// The memory there is, and the part of it that is full when pages have to leave: the most
    /// seen lately.
    frames: u64,
    capacity: u64,
    /// True if it has grown since a page had to leave.
    has_grown: bool,
    /// The number of pages that may go on trial before another one arrives.
    trials_left: u32,
    /// The number of pages that have left since one came, and the most that did so lately.
    leaving: u64,
    batch: u64,
    /// The number of pages in front of walks that have not come to them, the most lately.
    awaited: u64,
    /// The time: how many pages have arrived.
    arrivals: u64,
    /// The arrivals that the choice before this one knew of.
    arrivals_counted: u64,
    rates: Rates,
    cold_target: u64,
    /// True if cold pages are to become hot until no more than the target are left.
    is_closing: bool,
    /// The number of arrivals that have asked for more cold pages since the last step, less those
    /// that have not.
    drift: i64,
    watched_target: u64,
    credit: i64,
    cold_least: u64,
    cold_most: u64,
    watched_least: u64,
    price: i64,
}

/// The refault rates of cold and of hot pages, by which the number of cold pages moves.
#[derive(Default)]
struct Rates {
    /// Of pages that left as cold a short while ago.
    cold: Rate,
    /// Of pages that left as hot a short while ago, or could have.
    hot: Rate,
    /// Of pages on trial.
    trial: Rate,
    /// Of pages that left longer ago.
    far: Rate,
}

/// Uses for each page and arrival, with the past fading.
#[derive(Default)]
struct Rate {
    uses: u64,
    exposure: u64,
}

/// Makes a `tidemark`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max;
    let mut policy = Tidemark {
        queues: Queues::new(LISTS, frames_max),
        ghosts: Ghosts::new(frames_max),
        residents: Column::new(Resident::default(), frames_max as usize),
        event: 1,
        event_time: Time(0),
        frames: 0,
        capacity: 0,
        has_grown: false,
        trials_left: 0,
        leaving: 0,
        batch: 0,
        awaited: 0,
        arrivals: 0,
        arrivals_counted: 0,
        rates: Rates::default(),
        cold_target: u64::MAX,
        is_closing: false,
        drift: 0,
        watched_target: 0,
        credit: 0,
        cold_least: settings.knobs[0],
        cold_most: settings.knobs[1],
        watched_least: settings.knobs[2],
        price: settings.knobs[3] as i64,
    };
    policy.resize(settings.frames);
    policy
}

impl Policy for Tidemark {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.arrivals += 1;
        self.batch = self.batch.max(core::mem::take(&mut self.leaving));
        self.credit = (self.credit + 1).min(CREDIT_MOST);
        let trials_most = (self.frames / TRIALS_KEPT_PART) as u32 + UNMAPS_MAX;
        self.trials_left = (self.trials_left + TRIALS_AN_ARRIVAL).min(trials_most);
        self.follow_rates();
        let found = self.ghosts.take(arrival.page);
        let is_ahead = matches!(arrival.cause, Cause::Prefetched | Cause::ZeroAhead);
        let is_read = matches!(arrival.cause, Cause::Fetched | Cause::Prefetched);
        let is_far = match &found {
            // What is read and forgotten has been away for longer than all that is remembered: a
            // loop of twice memory leaves nothing else to tell it by. (A file's page may be new.)
            None => is_read && !arrival.is_external,
            // The return of others is judged when they are seen to be used. Only pages of runs
            // come ahead, and most of those are.
            Some(found) => is_ahead && !found.is_recent,
        };
        if is_far {
            self.rates.far.note_use();
        }
        let (seen, is_near) = match (is_ahead, found) {
            (true, found) => (found.map_or(UNKNOWN, |found| found.ghost.seen), false),
            (false, None) => (self.arrivals, false),
            (false, Some(found)) => (self.arrivals, self.judge_return(found)),
        };
        // While there is room for hot pages, any page may be one: the first to come are as likely
        // to be used again as later ones, and need not be read again.
        let has_room = self.has_room();
        self.residents[frame.index()] = Resident {
            seen,
            event: self.event,
            is_ahead,
            is_untried: !is_near && self.is_filling(),
        };
        let list = if is_near || has_room { HOT } else { FRESH };
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let Some(list) = self.queues.remove(frame.0) else {
            return;
        };
        if departure == Departure::Discarded {
            return;
        }
        self.leaving += 1;
        // It is not known whether a page that came ahead and was not rescued was used. What was
        // known of it before still holds, and that it was here.
        let seen = self.residents[frame.index()].seen;
        while u64::from(self.ghosts.len()) >= self.frames {
            self.ghosts.drop_oldest();
        }
        if matches!(list, HOT | WATCHED) {
            self.watched_target += 2;
        }
        let ghost = Ghost {
            page,
            seen,
            was_hot: matches!(list, HOT | WATCHED),
        };
        let recent_max = (self.frames / RECENT_PART).max(1);
        self.ghosts.push(ghost, recent_max as u32);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        let Some(list) = self.queues.list_of(frame.0) else {
            return;
        };
        let resident = &mut self.residents[frame.index()];
        let distance = self.arrivals - resident.seen;
        // A page that came ahead of its use has waited for its first one.
        let was_ahead = resident.is_ahead;
        *resident = Resident {
            seen: self.arrivals,
            event: self.event,
            is_ahead: false,
            is_untried: false,
        };
        if list == TRIAL && !was_ahead {
            self.rates.trial.note_use();
        }
        match list {
            WATCHED => {
                if distance > self.cold() {
                    self.rates.hot.note_use();
                }
                self.watched_target = self.watched_target.saturating_sub(1);
                self.credit = (self.credit - self.price).max(-self.debt_most());
                self.queues.move_to_back(HOT, frame.0);
            }
            FRESH | TRIAL if self.is_nearer(distance) || self.has_room() => {
                self.queues.move_to_back(HOT, frame.0);
            }
            FRESH | TRIAL => self.queues.move_to_back(FRESH, frame.0),
            _ => {}
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.has_grown = false;
        self.note_event(probe.now());
        self.note_capacity();
        self.put_on_trial(probe);
        self.watch(probe);
        let order = match self.is_cold_due() {
            true => [TRIAL, FRESH, WATCHED, HOT],
            false => [WATCHED, HOT, TRIAL, FRESH],
        };
        order
            .into_iter()
            .find_map(|list| pull(&mut self.queues, list, probe))
    }

    /// Names nothing: a soft fault or an arrival is over, and the oldest pages go on trial in time.
    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let part = match self.has_grown {
            true => FREE_PART_GROWN,
            false => FREE_PART,
        };
        let is_nearly_full = u64::from(probe.frames_free()) < self.frames / part;
        if is_nearly_full && self.is_filling() {
            self.note_event(probe.now());
            self.put_on_trial(probe);
            self.watch(probe);
        }
        None
    }

    fn resize(&mut self, frames: u32) {
        // A memory that grows as it is filled keeps what was learnt as a part of the whole.
        if self.frames > 0 {
            let grown = u128::from(self.cold_target) * u128::from(frames) / u128::from(self.frames);
            self.cold_target = grown as u64;
        }
        self.has_grown = (1..u64::from(frames)).contains(&self.frames);
        self.frames = frames.into();
        self.capacity = self.frames;
        self.drift = 0;
        self.cold_target = self.cold_target.clamp(self.cold_least(), self.cold_most());
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
        let mut residents = self.residents.iter();
        assert!(residents.all(|resident| resident.seen <= self.arrivals));
        assert!(self.drift.abs() < ARRIVALS_A_PAGE * self.step());
        assert!(self.credit <= CREDIT_MOST);
        assert!((1..=self.frames).contains(&self.cold_target));
    }
}

impl SimulatedPolicy for Tidemark {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }
}

impl SpacePolicy for Tidemark {}

impl Tidemark {
    /// Says whether a page that came back on demand is hot, and learns from it.
    fn judge_return(&mut self, found: Found) -> bool {
        match (found.is_recent, found.ghost.was_hot) {
            (true, true) => self.rates.hot.note_use(),
            (true, false) => self.rates.cold.note_use(),
            (false, _) => self.rates.far.note_use(),
        }
        self.is_nearer(self.arrivals - found.ghost.seen)
    }

    /// Takes one arrival into the rates, and moves the number of cold pages by what they say.
    fn follow_rates(&mut self) {
        let (idle, stay) = (self.idle(), self.cold());
        let watched = u64::from(self.queues.length(WATCHED));
        // Pages come to be watched at an even pace, so that this many have been idle for that long.
        let idle_longer = watched * idle.saturating_sub(stay) / idle.max(1);
        let (cold, hot) = (self.ghosts.recent(false), self.ghosts.recent(true));
        let far = u64::from(self.ghosts.len()) - cold - hot;
        let trial = u64::from(self.queues.length(TRIAL));
        let fading = u64::BITS - (self.frames / RATE_PART).leading_zeros();
        self.rates.cold.pass(cold, fading);
        self.rates.hot.pass(hot + idle_longer, fading);
        self.rates.far.pass(far, fading);
        self.rates.trial.pass(trial, fading);
        if self.is_looping() {
            self.cold_target = self.cold_least();
            self.is_closing = true;
            self.drift = 0;
        }
        self.close();
        self.move_target();
    }

    /// Moves the number of cold pages by what the rates say. While they say nothing, it stays if
    /// memory is open; else it falls, since what made it rise is over: the turn of a walk, say.
    fn move_target(&mut self) {
        let is_cold_higher = self.rates.is_cold_higher(1);
        let is_hot_higher = self.rates.hot.is_higher(&self.rates.cold, 1);
        self.drift += i64::from(is_cold_higher);
        self.drift -= i64::from(is_hot_higher || !is_cold_higher && !self.is_open());
        if self.drift.abs() < ARRIVALS_A_PAGE * self.step() {
            return;
        }
        let step = self.drift / ARRIVALS_A_PAGE;
        let target = self.cold_target.saturating_add_signed(step);
        self.cold_target = target.clamp(self.cold_least(), self.cold_most());
        self.drift = 0;
    }

    /// Returns true if pages come round in a loop that is larger than memory, though memory is full
    /// and more than the least number of pages is cold.
    fn is_looping(&self) -> bool {
        let least = (self.frames / LOOP_PART).max(LOOP_LEAST);
        let Rates {
            cold, far, trial, ..
        } = &self.rates;
        far.uses >= least * Rate::USE
            && !trial.is_higher(far, LOOP_FACTOR)
            && !cold.is_higher(far, LOOP_FACTOR)
            && self.cold_target > self.cold_least()
            && !self.is_filling()
    }

    /// Makes the oldest cold pages hot, as long as there are more than are wanted.
    fn close(&mut self) {
        for _ in 0..UNMAPS_MAX {
            self.is_closing &= self.cold() > self.cold_target;
            let Some(frame) = self.oldest_cold().filter(|_| self.is_closing) else {
                return;
            };
            self.queues.move_to_back(HOT, frame);
        }
    }

    /// By how many pages the number of cold pages moves.
    fn step(&self) -> i64 {
        (self.frames / STEP_PART).clamp(1, STEP_MOST) as i64
    }

    /// Returns true if a cold page is to leave next, rather than a hot one.
    fn is_cold_due(&self) -> bool {
        if self.is_cold_too_young() {
            return false;
        }
        let (idle, age) = (self.idle(), self.cold_age());
        if idle * IDLE_LEAST.1 < age * IDLE_LEAST.0 {
            return true;
        }
        let is_cold_enough =
            self.hot() + self.cold_target <= self.capacity || self.cold() >= self.cold_target;
        let is_hot_older = self.is_open() && idle * IDLE_MOST.1 > age * IDLE_MOST.0;
        is_cold_enough && !is_hot_older && !self.is_untried_one_worse()
    }

    /// Returns true if most of memory is for cold pages: what was used last matters more than what
    /// was used twice.
    fn is_open(&self) -> bool {
        self.cold_target * 2 > self.frames
    }

    /// The number of arrivals that may be owed for watching: none while memory is open, when it
    /// matters most which pages are idle.
    fn debt_most(&self) -> i64 {
        match self.is_open() {
            true => 0,
            false => (self.frames as i64 * DEBT_MOST / 1000).max(DEBT_LEAST),
        }
    }

    /// Returns true if there is room for hot pages.
    fn has_room(&self) -> bool {
        self.hot() + self.cold_target < self.capacity
    }

    /// Numbers events: whatever happens at one time is one.
    fn note_event(&mut self, now: Time) {
        if self.event_time != now {
            self.event_time = now;
            self.event += 1;
        }
    }

    /// Returns true if the hot page that is watched longest has only been kept because there was
    /// room, and cold pages are used more.
    fn is_untried_one_worse(&self) -> bool {
        let first = self.queues.front(WATCHED);
        first.is_some_and(|frame| self.residents[frame as usize].is_untried)
            && self.idle() > self.cold()
            && self.rates.is_cold_higher(UNTRIED_FAVOUR)
    }

    /// Returns true if there is more room than what is kept free ahead of need.
    fn is_filling(&self) -> bool {
        self.hot() + self.cold() + self.capacity / 32 < self.capacity
    }

    /// Learns how much memory is full at the time when pages have to leave. Many may leave at
    /// once to make room ahead of need, and that room is no reason to take in hot pages.
    fn note_capacity(&mut self) {
        if self.arrivals_counted != self.arrivals {
            self.arrivals_counted = self.arrivals;
            self.capacity = (self.hot() + self.cold()).max(self.capacity.saturating_sub(1));
            let fading = u64::from(self.arrivals.is_multiple_of(64));
            self.batch = self.batch.saturating_sub(fading);
            self.awaited = self.awaited.saturating_sub(fading);
        }
        self.cold_target = self.cold_target.clamp(self.cold_least(), self.cold_most());
    }

    /// Unmaps the oldest cold pages, so that a use of them shows while they wait to leave. Those in
    /// front of a walk are left to it: their first use says nothing of a second.
    fn put_on_trial(&mut self, probe: &mut Probe<'_>) {
        let target = (self.cold() * TRIAL_OF_COLD).min(self.frames * TRIAL_MOST);
        for _ in 0..UNMAPS_MAX.min(self.trials_left) {
            if u64::from(self.queues.length(TRIAL)) * 1000 >= target {
                break;
            }
            let Some(frame) = pull(&mut self.queues, FRESH, probe) else {
                break;
            };
            if probe.is_awaited(frame) {
                self.awaited = self.awaited.max(probe.awaited());
                break;
            }
            if self.is_too_young(frame) {
                break;
            }
            probe.unmap(frame);
            self.queues.move_to_back(TRIAL, frame.0);
            self.trials_left -= 1;
        }
    }

    /// Unmaps the hot pages that have been trusted longest, as far as credit goes.
    fn watch(&mut self, probe: &mut Probe<'_>) {
        let hot = self.hot();
        self.watched_target = self
            .watched_target
            .min(self.frames)
            .max(hot * self.watched_least / 1000);
        if self.is_open() {
            self.watched_target = self.watched_target.max(hot * WATCHED_OPEN / 1000);
        }
        for _ in 0..UNMAPS_MAX {
            let is_enough = u64::from(self.queues.length(WATCHED)) >= self.watched_target.min(hot);
            if is_enough || self.credit <= 0 {
                break;
            }
            let Some(frame) = pull(&mut self.queues, HOT, probe) else {
                break;
            };
            probe.unmap(frame);
            self.residents[frame.index()].seen = self.arrivals;
            self.queues.move_to_back(WATCHED, frame.0);
        }
    }

    /// Returns true if a page used again after `distance` is hotter than the hot page watched
    /// longest, by more than reading ahead can make of it by changing the order of arrival.
    fn is_nearer(&self, distance: u64) -> bool {
        distance + distance / 32 < self.idle()
    }

    /// Returns true if a page came or was rescued in the event at hand, as far as can be known
    /// here.
    fn is_too_young(&self, frame: FrameId) -> bool {
        self.residents[frame.index()].event + 1 >= self.event
    }

    /// Returns true if no cold page is old enough to leave. That happens only after a burst of
    /// read-ahead, and then a hot page must leave.
    fn is_cold_too_young(&self) -> bool {
        self.oldest_cold().is_some_and(|frame| {
            self.residents[frame as usize].is_ahead && self.is_too_young(FrameId(frame))
        })
    }

    /// The time for which the hot page that is watched longest has been idle: zero if none is
    /// watched.
    fn idle(&self) -> u64 {
        self.count_since_seen(self.queues.front(WATCHED))
    }

    /// The time since the oldest cold page came, or was last rescued.
    fn cold_age(&self) -> u64 {
        self.count_since_seen(self.oldest_cold())
    }

    /// The cold page that came or was rescued longest ago.
    fn oldest_cold(&self) -> Option<u32> {
        self.queues.front(TRIAL).or(self.queues.front(FRESH))
    }

    /// The number of pages that have arrived since the page in `frame` was last known to be used.
    fn count_since_seen(&self, frame: Option<u32>) -> u64 {
        frame.map_or(0, |frame| {
            self.arrivals - self.residents[frame as usize].seen
        })
    }

    fn hot(&self) -> u64 {
        u64::from(self.queues.length(HOT)) + u64::from(self.queues.length(WATCHED))
    }

    fn cold(&self) -> u64 {
        u64::from(self.queues.length(FRESH)) + u64::from(self.queues.length(TRIAL))
    }

    fn cold_least(&self) -> u64 {
        // A batch takes cold pages only, and leaves as many that are on trial, or that a walk is
        // still to come to.
        let batches = self.batch + self.batch.max(self.awaited);
        let least = (self.frames * self.cold_least / 1000).max(batches);
        least.clamp(1, self.cold_most().min((self.frames / 8).max(1)))
    }

    fn cold_most(&self) -> u64 {
        (self.frames * self.cold_most / 1000).max(1)
    }
}

impl Rates {
    /// Returns true if the rate of cold pages, times the factor, is more than that of hot ones.
    fn is_cold_higher(&self, times: u128) -> bool {
        self.cold.is_higher(&self.hot, times)
    }
}

impl Rate {
    /// Scales of the two numbers: they fade by whole parts.
    const USE: u64 = 1 << 20;
    const PAGE: u64 = 1 << 10;

    fn note_use(&mut self) {
        self.uses += Rate::USE;
    }

    /// Returns true if this rate, times the factor, is more than `other`.
    fn is_higher(&self, other: &Rate, times: u128) -> bool {
        let (uses, exposure) = (u128::from(self.uses), u128::from(self.exposure));
        uses * u128::from(other.exposure) * times > u128::from(other.uses) * exposure
    }

    /// One arrival later, during which `pages` could have been used.
    fn pass(&mut self, pages: u64, fading: u32) {
        self.exposure += pages * Rate::PAGE;
        self.uses -= self.uses >> fading;
        self.exposure -= self.exposure >> fading;
    }
}
