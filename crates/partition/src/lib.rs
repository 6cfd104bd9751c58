//! Divides frames among memories, where each process has a core of its own.
//!
//! A supervisor asks when a process comes, goes or wants more, and at intervals; the result is sent
//! to engines live, and set as limits in the lab.
//!
//! Frames go to processes that ask for them. The first process has all there are; one that comes
//! later has what it asks for, or an equal share, if that many are not in use, and at least the
//! floor, and as much again as it has whenever it [is short](Voice::news). Unused frames go at
//! once. Used ones go at once only where the holder is idle, or has more than an equal share and
//! the asking process never used one; else slowly, so that the holder's own faults can show its
//! need, by the [`Rule`] and the [`measures`] of each process.
//!
//! # Invariants
//! 1. The sum of what processes hold never exceeds the total. What is taken from a process counts
//!    as held until its engine has understood and the frames are free.
//! 2. No process is asked to go below [the least](Divider::frames_min) while it uses that, or below
//!    an equal share if that is less.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod measures;
mod rule;

use alloc::vec::Vec;

use self::measures::Measures;
use self::rule::Exchange;
pub use self::rule::Rule;

/// The interval at which memory is divided anew, in nanoseconds.
pub const INTERVAL_NS: u64 = 200_000_000;

/// The interval at which it is looked at again while frames are on their way from one process to
/// another.
pub const TRANSFER_NS: u64 = 2_000_000;

/// The longest wait for the frames of others before a newcomer is turned away, or a forked child is
/// let in with fewer.
pub const ADMISSION_NS: u64 = 2_000_000_000;

/// The least a process is left with while there is enough for all: room for transfers in flight.
pub const FLOOR_FRAMES: u64 = 256;

/// The least a process can be managed with. With less for each, new processes are turned away.
pub const FRAMES_MIN: u64 = 64;

/// The frames that a program begins with where others are: enough for most, while there is more to
/// be taken.
pub const FIRST_FRAMES: u64 = 4096;

/// For how many forks a process keeps what it was given and does not use.
const FORKS_AHEAD: u64 = 8;

/// The bound of a process that has none: [`Holder::most`].
pub const ANY: u64 = u64::MAX;

/// The frames left to a process beyond what it uses, so that it can take a step unhindered.
const SLACK_FRAMES: u64 = 128;

/// The reason for which frames are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A process came, went, asked, or has given up what was taken.
    Change,
    /// An interval has passed, and all have been measured.
    Interval,
}

/// The way in which memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    /// The rule by which frames in use go from some to others.
    pub rule: Rule,
    /// The least frames of a process, if it uses that many.
    pub frames_min: u64,
}

/// One process, as the division sees it. All in frames, but for the measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The frames it was given; zero for one that has just come.
    pub given: u64,
    /// The frames that its engine has understood it may use.
    pub understood: u64,
    /// The frames it uses.
    pub resident: u64,
    /// The use that it makes of them.
    pub measures: Measures,
    /// The frames it asks to have in all, if that is more; zero once it was given something. One
    /// that has just come and asks for nothing is taken to want an equal share.
    pub asked: u64,
    /// True if it has [used](uses_share) an equal share. The part of that share that it has lost
    /// since went to processes that page more.
    pub is_served: bool,
    /// The most that it gets, with no right to more, if it is being paged out or is to stay out of
    /// memory. Else [`ANY`].
    pub most: u64,
}

/// The result of a division.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// The frames each is given from now on.
    pub given: Vec<u64>,
    /// An equal share, in frames.
    pub fair: u64,
    /// With fewer a newcomer is not let in: it waits for them.
    pub floor: u64,
    /// No process waits for frames that others still hold. Else a later division makes up for it.
    pub is_settled: bool,
}

/// The answer to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The newcomer is managed from now on.
    Admitted,
    /// The newcomer waits for frames of others.
    Waits,
    /// The newcomer runs unmanaged.
    TurnedAway,
}

impl Division {
    /// The answer to a newcomer that has waited for `waited_ns` and would be given `frames`.
    ///
    /// A forked child (`is_forked`) has its pages already, so that [`FRAMES_MIN`] suffice for it
    /// when frames are slow to come, and unmanaged it would need memory for all that is out: it is
    /// turned away only where there can't be as many for each.
    pub fn admission(&self, frames: u64, waited_ns: u64, is_forked: bool) -> Admission {
        let is_late = waited_ns > ADMISSION_NS;
        let needed = match is_forked && is_late {
            true => self.floor.min(FRAMES_MIN),
            false => self.floor,
        };
        if self.fair < FRAMES_MIN || (is_late && !is_forked) {
            return Admission::TurnedAway;
        }
        match frames >= needed {
            true => Admission::Admitted,
            false => Admission::Waits,
        }
    }
}

impl Default for Divider {
    fn default() -> Divider {
        Divider {
            rule: Rule::default(),
            frames_min: FLOOR_FRAMES,
        }
    }
}

impl Holder {
    /// A process that has just come.
    pub const NEW: Holder = Holder {
        given: 0,
        understood: 0,
        resident: 0,
        measures: Measures {
            pressure: 0,
            page_ins: 0,
            frequency: 0,
            size: 0,
            demand: None,
            is_idle: false,
        },
        asked: 0,
        is_served: false,
        most: ANY,
    };

    /// Returns true if it is to be out of memory.
    fn is_out(&self) -> bool {
        self.most != ANY
    }

    /// The most it may be using at this moment or the next.
    fn held(&self) -> u64 {
        self.given.max(self.understood).max(self.resident)
    }

    /// Returns true if it is short of frames.
    fn is_hungry(&self) -> bool {
        self.asked > self.given && !self.is_out()
    }

    /// The frames that it gives because it is idle, if it is `due` that number. One that asks has
    /// woken up since.
    fn idle_offer(&self, least: u64, due: u64) -> u64 {
        match self.measures.is_idle && !self.is_hungry() && !self.is_out() {
            true => due.saturating_sub(least),
            false => 0,
        }
    }

    /// The frames it would have beyond what it was given.
    fn wanted(&self, total: u64, fair: u64, is_alone: bool) -> u64 {
        if self.is_out() {
            return 0;
        }
        let asked = match (self.given, self.asked) {
            (0, 0) => fair,
            (0, asked) => asked.min(fair),
            _ => self.asked.min(total),
        };
        match asked > self.given && is_alone {
            true => total.saturating_sub(self.given),
            false => asked.saturating_sub(self.given),
        }
    }

    /// The frames it can do without at once.
    fn unused(&self, floor: u64) -> u64 {
        if self.is_out() {
            return 0;
        }
        self.given.saturating_sub(kept(self.resident).max(floor))
    }
}

/// Returns true if a process that uses `resident` frames uses an equal share, which is `fair`, but
/// for what is left to it unused.
pub fn uses_share(resident: u64, fair: u64) -> bool {
    kept(resident) >= fair
}

/// The reports of one process to the part that divides frames: that it is short of them, and that
/// it has given up what was taken from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Voice {
    /// The number of pages that had come to a frame when that was last looked at.
    arrivals: u64,
    is_owing: bool,
}

/// A report to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The frames that a process asks for in all, if it is short. The report is repeated as long as
    /// it is short.
    pub asks: Option<u64>,
    /// True if the process is down to what it may use, after that had been lowered. Other processes
    /// may wait for these frames.
    pub has_given_up: bool,
}

impl Voice {
    /// Learns that it may use `after` frames, where it had `before`.
    pub fn note_given(&mut self, before: u64, after: u64) {
        self.is_owing |= after < before;
    }

    /// The report of a process that uses `resident` of `given` frames, to which `arrivals` pages
    /// have come since it began.
    pub fn news(&mut self, given: u64, resident: u64, arrivals: u64) -> News {
        let has_taken = core::mem::replace(&mut self.arrivals, arrivals) != arrivals;
        let has_given_up = self.is_owing && resident <= given;
        self.is_owing &= !has_given_up;
        News {
            asks: (has_taken && is_short(given, resident)).then(|| asks(given)),
            has_given_up,
        }
    }
}

/// Returns true if a process that uses `resident` of `given` frames is about to run out of them: it
/// asks for more before it takes pages away, so that it need not wait for the answer.
///
/// What is left to one whose unused frames were taken is not short.
fn is_short(given: u64, resident: u64) -> bool {
    resident + given / 16 + SLACK_FRAMES / 2 >= given
}

/// The frames that a process asks to have in all if it has `given` and that is too little, or uses
/// that many and forks: as much again.
pub fn asks(given: u64) -> u64 {
    given * 2
}

/// The frames left to a process that uses `resident` frames of those that it was given.
fn kept(resident: u64) -> u64 {
    resident + resident / 8 + SLACK_FRAMES
}

/// The frames needed by a process that uses `resident` frames and is about to fork, and what its
/// child needs, which begins with the same pages: a third of it is free, so that neither [takes]
/// more before it has made copies of what it writes to.
pub fn needs_at_fork(resident: u64) -> u64 {
    resident + resident / 2 + FLOOR_FRAMES
}

/// The frames left to a process that was given `given` frames, uses `resident` and hands its child
/// what [that needs](needs_at_fork): half of the rest, and what some forks more need. What is
/// beyond that is given back. `None` if it would have to give up pages.
pub fn left_at_fork(given: u64, resident: u64) -> Option<u64> {
    let needed = needs_at_fork(resident);
    let rest = given.checked_sub(needed)?;
    (rest >= kept(resident).max(FLOOR_FRAMES))
        .then(|| rest.min((FORKS_AHEAD * needed).max(rest / 2)))
}

/// The frames, of those that are free for all, that a process takes if it uses `resident` of
/// `given`: as much again when less than a third of its own is free, and so before a policy begins
/// to look for pages to give up. It costs no other process anything; frames that it does not use it
/// returns at once.
pub fn takes(given: u64, resident: u64) -> u64 {
    match resident + given / 3 > given {
        true => asks(given) - given,
        false => 0,
    }
}

impl Divider {
    /// Divides `total` frames among `holders`.
    pub fn divide(&self, total: u64, holders: &[Holder], occasion: Occasion) -> Division {
        let (out, others): (Vec<&Holder>, Vec<&Holder>) =
            holders.iter().partition(|it| it.is_out());
        let left = total.saturating_sub(out.iter().map(|holder| holder.most).sum());
        let fair = left / others.len().max(1) as u64;
        let floor = FLOOR_FRAMES.min(fair);
        let shares = Shares {
            fair,
            floor,
            least: self.frames_min.max(FLOOR_FRAMES).min(fair),
            rule: self.rule,
        };
        let is_alone = others.len() == 1;
        let wanted = |holder: &Holder| holder.wanted(total, fair, is_alone);
        let mut wants: Vec<u64> = holders.iter().map(wanted).collect();
        let due = holders.iter().map(|holder| holder.given.min(holder.most));
        let mut due: Vec<u64> = due.collect();
        shares.make_room(total, holders, &wants, &mut due);
        // An equal share comes before what goes beyond it.
        let owed = shares.owed(holders, &wants, &due);
        grant(total, &owed, &mut wants, &mut due);
        let rest = wants.clone();
        grant(total, &rest, &mut wants, &mut due);
        if occasion == Occasion::Interval && wants.iter().any(|&want| want > 0) {
            self.rebalance((total, shares.least), holders, &wants, &mut due);
        }
        let given = phase(total, holders, &due);
        let is_settled = given.iter().zip(&due).all(|(given, due)| given >= due);
        Division {
            given,
            fair,
            floor,
            is_settled,
        }
    }

    /// Moves frames in use from those that need them less to those that need them more.
    fn rebalance(&self, bounds: (u64, u64), holders: &[Holder], wants: &[u64], due: &mut [u64]) {
        let exchange = self.rule.exchange(bounds, holders, wants, due);
        if exchange.weights.iter().all(|&weight| weight == 0) {
            return;
        }
        take(exchange.offers.iter().sum(), &exchange.offers, due);
        spread(bounds.0, &exchange, due);
    }
}

/// The part of `total` that is left for all, once each is `given` that: the most that they may
/// be using meanwhile taken off.
pub fn unassigned(total: u64, holders: &[Holder], given: &[u64]) -> u64 {
    let held = holders.iter().zip(given).map(|(holder, &given)| {
        let given = holder.given.max(given);
        Holder { given, ..*holder }.held()
    });
    total.saturating_sub(held.sum())
}

/// The shares that processes have a right to.
struct Shares {
    /// An equal share.
    fair: u64,
    /// The share of a process that has just come.
    floor: u64,
    /// The share that no process loses as long as it uses it.
    least: u64,
    /// The rule, which also says the right of a process that has had an equal share and lost it.
    rule: Rule,
}

impl Shares {
    /// Takes unused frames if they are wanted, then as many as are missing from idle processes,
    /// and, for those with a right to an equal share, what others have beyond one.
    fn make_room(&self, total: u64, holders: &[Holder], wants: &[u64], due: &mut [u64]) {
        if due.iter().sum::<u64>() + wants.iter().sum::<u64>() <= total {
            return;
        }
        for (due, holder) in due.iter_mut().zip(holders) {
            *due -= holder.unused(self.floor);
        }
        let missing = (due.iter().sum::<u64>() + wants.iter().sum::<u64>()).saturating_sub(total);
        let idle = holders.iter().zip(&*due);
        let idle = idle.map(|(holder, &due)| holder.idle_offer(self.least, due));
        take(missing, &idle.collect::<Vec<u64>>(), due);
        let owed = self.owed(holders, wants, due).iter().sum::<u64>();
        let missing = (due.iter().sum::<u64>() + owed).saturating_sub(total);
        let excess = due.iter().map(|due| due.saturating_sub(self.fair));
        take(missing, &excess.collect::<Vec<u64>>(), due);
    }

    /// The part of `wants` that raises no process above an equal share, or up to one again. A new
    /// process is owed the floor: it may be small.
    fn owed(&self, holders: &[Holder], wants: &[u64], due: &[u64]) -> Vec<u64> {
        let right = |holder: &Holder| match (holder.given, holder.is_served) {
            (0, _) => FLOOR_FRAMES,
            (_, true) => self.rule.right(holder, self.fair).max(self.least),
            (_, false) => self.fair,
        };
        let below = |((want, due), holder): ((&u64, &u64), &Holder)| {
            (*want).min(right(holder).saturating_sub(*due))
        };
        wants.iter().zip(due).zip(holders).map(below).collect()
    }
}

/// Gives each its `share` of what is left of `total`, or the same part of it if that is too little.
fn grant(total: u64, share: &[u64], wants: &mut [u64], due: &mut [u64]) {
    let free = total.saturating_sub(due.iter().sum());
    let sum: u64 = share.iter().sum();
    for ((due, want), &share) in due.iter_mut().zip(wants).zip(share) {
        let given = part(share, free, sum);
        *due += given;
        *want -= given;
    }
}

/// Lowers at once, and raises as far as frames are free, each by the same part of what is due.
fn phase(total: u64, holders: &[Holder], due: &[u64]) -> Vec<u64> {
    let lowered: Vec<Holder> = holders
        .iter()
        .zip(due)
        .map(|(holder, &due)| Holder {
            given: holder.given.min(due),
            ..*holder
        })
        .collect();
    let held: u64 = lowered.iter().map(Holder::held).sum();
    let free = total.saturating_sub(held);
    // What a process holds beyond what it was given is its own to be given again.
    let raises: Vec<u64> = lowered
        .iter()
        .zip(due)
        .map(|(holder, &due)| due.saturating_sub(holder.held()))
        .collect();
    let wanted: u64 = raises.iter().sum();
    lowered
        .iter()
        .zip(due)
        .zip(raises)
        .map(|((holder, &due), raise)| {
            let raised = holder.held().max(holder.given) + part(raise, free, wanted);
            due.min(raised)
        })
        .collect()
}

/// The part of `share` that there is if `free` is less than the `sum` of all shares.
fn part(share: u64, free: u64, sum: u64) -> u64 {
    match sum > free {
        true => (u128::from(share) * u128::from(free) / u128::from(sum)) as u64,
        false => share,
    }
}

/// Takes up to `wanted` from `due`, from each in proportion to what it `offers`.
fn take(wanted: u64, offers: &[u64], due: &mut [u64]) {
    let offered: u64 = offers.iter().sum();
    let wanted = wanted.min(offered);
    let mut taken = 0;
    for (due, &offer) in due.iter_mut().zip(offers) {
        let share = u128::from(offer) * u128::from(wanted);
        let share = share.div_ceil(u128::from(offered.max(1))) as u64;
        let share = share.min(wanted - taken).min(*due);
        *due -= share;
        taken += share;
    }
}

/// Gives what is left of `total`, to each by its weight, and no more than it is to get.
fn spread(total: u64, exchange: &Exchange, due: &mut [u64]) {
    let free = total.saturating_sub(due.iter().sum());
    let sum: u64 = exchange.weights.iter().sum();
    let shares = exchange.weights.iter().zip(&exchange.most);
    for (due, (&weight, &most)) in due.iter_mut().zip(shares) {
        let part = u128::from(free) * u128::from(weight) / u128::from(sum.max(1));
        *due += (part as u64).min(most);
    }
}

#[cfg(test)]
mod tests;
