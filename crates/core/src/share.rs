//! Dividing frames among memories, where each process has a core of its own.
//!
//! A supervisor asks when somebody comes or goes, and from time to time; what comes of it is told
//! to engines live, and set as limits in the lab.
//!
//! Memory is divided equally when a process comes, and follows the need afterwards: what a process
//! without page traffic does not use goes to those that page; what it uses goes slowly, so that its
//! own faults can speak up; and among those that page, frames drift to those that page more.
//!
//! # Invariants
//! 1. The sum of what processes hold never exceeds the total. What is taken from a process counts
//!    as held until its engine has understood and the frames are free.
//! 2. No process is asked to go below the floor, or below an equal share if that is less.

use alloc::vec;
use alloc::vec::Vec;

/// How often memory is divided anew, in nanoseconds.
pub const INTERVAL_NS: u64 = 200_000_000;

/// How soon it is looked at again while frames are on their way from one process to another.
pub const TRANSFER_NS: u64 = 2_000_000;

/// How long the frames of others are waited for before a newcomer is turned away.
pub const ADMISSION_NS: u64 = 2_000_000_000;

/// The least a process is left with while there is enough for all: room for transfers in flight.
pub const FLOOR_FRAMES: u64 = 256;

/// The least a process can be managed with. With less for each, new processes are turned away.
pub const FRAMES_MIN: u64 = 64;

/// What is left to an idle process beyond what it uses, so that it can take a step unhindered.
const SLACK_FRAMES: u64 = 64;

/// One process, as the division sees it. All in frames, but for `pressure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What it was given; zero for one that has just come.
    pub given: u64,
    /// What its engine has understood it may use.
    pub understood: u64,
    /// What it uses.
    pub resident: u64,
    /// How many pages it moved in and out lately.
    pub pressure: u64,
}

impl Holder {
    /// A process that has just come.
    pub const NEW: Holder = Holder {
        given: 0,
        understood: 0,
        resident: 0,
        pressure: 0,
    };

    /// The most it may be using at this moment or the next.
    fn held(&self) -> u64 {
        self.given.max(self.understood).max(self.resident)
    }

    /// Whether it would use more: it moves pages, and uses what it has.
    fn is_hungry(&self) -> bool {
        self.pressure > 0 && self.resident + SLACK_FRAMES >= self.given - self.given / 16
    }

    /// What it can do without at once.
    fn unused(&self, floor: u64) -> u64 {
        let kept = self.resident + self.resident / 8 + SLACK_FRAMES;
        self.given.saturating_sub(kept.max(floor))
    }
}

/// How much a process pages, from what it was and how many pages it has moved since: half of each,
/// as one quiet interval does not make a process idle.
pub fn pressure(before: u64, moved: u64) -> u64 {
    (before + moved) / 2
}

/// What each of `holders` is given from now on, of `total` frames.
///
/// Raises may fall short of what is due while frames taken from others are still held; another
/// call, later, makes up for it.
pub fn divide(total: u64, holders: &[Holder]) -> Vec<u64> {
    if holders.is_empty() {
        return vec![];
    }
    let fair = total / holders.len() as u64;
    let floor = FLOOR_FRAMES.min(fair);
    let mut due: Vec<u64> = holders.iter().map(|holder| holder.given).collect();
    admit(total, fair, floor, holders, &mut due);
    rebalance(total, floor, holders, &mut due);
    phase(total, holders, &due)
}

/// Makes room for an equal share for each newcomer: first from what others don't use, then from
/// those that have more than an equal share.
fn admit(total: u64, fair: u64, floor: u64, holders: &[Holder], due: &mut [u64]) {
    let newcomers = holders.iter().filter(|holder| holder.given == 0).count() as u64;
    let needed = newcomers * fair;
    let missing = (due.iter().sum::<u64>() + needed).saturating_sub(total);
    let unused: Vec<u64> = holders.iter().map(|holder| holder.unused(floor)).collect();
    let missing = missing - take(missing, &unused, due);
    let excess: Vec<u64> = due.iter().map(|due| due.saturating_sub(fair)).collect();
    take(missing, &excess, due);
    let mut left = total.saturating_sub(due.iter().sum());
    for (due, holder) in due.iter_mut().zip(holders) {
        if holder.given == 0 {
            *due = fair.min(left);
            left -= *due;
        }
    }
}

/// Moves frames from those that need them less to those that need them more.
fn rebalance(total: u64, floor: u64, holders: &[Holder], due: &mut [u64]) {
    let hungry = |holder: &Holder| {
        if holder.is_hungry() {
            holder.pressure
        } else {
            0
        }
    };
    let pressure: Vec<u64> = holders.iter().map(hungry).collect();
    let sum: u64 = pressure.iter().sum();
    if sum == 0 {
        let equal = vec![1; holders.len()];
        return spread(total, &equal, due);
    }
    // Half the mean: below it, a process gives; above, it gets. In between lies peace.
    let modest = sum / (2 * pressure.iter().filter(|&&pressure| pressure > 0).count() as u64);
    for (index, holder) in holders
        .iter()
        .enumerate()
        .filter(|(_, holder)| holder.given > 0)
    {
        let above_floor = due[index].saturating_sub(floor);
        let given = if pressure[index] == 0 && holder.pressure == 0 {
            holder.unused(floor).max(above_floor / 16)
        } else if pressure[index] < modest {
            above_floor / 16
        } else {
            0
        };
        due[index] -= given.min(above_floor);
    }
    let needs: Vec<u64> = pressure
        .iter()
        .map(|&pressure| if pressure >= modest { pressure } else { 0 })
        .collect();
    spread(total, &needs, due);
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
    let part = |raise: u64| match wanted > free {
        true => (u128::from(raise) * u128::from(free) / u128::from(wanted)) as u64,
        false => raise,
    };
    lowered
        .iter()
        .zip(due)
        .zip(raises)
        .map(|((holder, &due), raise)| due.min(holder.held().max(holder.given) + part(raise)))
        .collect()
}

/// Takes up to `wanted` from `due`, from each in proportion to what it `offers`. Says how much.
fn take(wanted: u64, offers: &[u64], due: &mut [u64]) -> u64 {
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
    taken
}

/// Gives what is left of `total`, to each in proportion to its `needs`.
fn spread(total: u64, needs: &[u64], due: &mut [u64]) {
    let free = total.saturating_sub(due.iter().sum());
    let wanted: u64 = needs.iter().sum();
    for (due, &need) in due.iter_mut().zip(needs) {
        *due += (u128::from(free) * u128::from(need) / u128::from(wanted.max(1))) as u64;
    }
}

#[cfg(test)]
mod tests;
