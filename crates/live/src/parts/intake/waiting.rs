//! The faults that are not over.

use std::collections::VecDeque;

use tidemark_core::id::Waiter;
use tidemark_core::time::Time;

use crate::sys::uffd::MESSAGES_MAX;

/// A fault that was read and is not over.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The address that was touched.
    pub address: usize,
    /// True if it was written to.
    pub is_write: bool,
    /// The thread that waits; 0 if the kernel has no number for it here.
    pub thread: u32,
    /// The time at which the fault was read.
    pub since: Time,
}

/// The most faults that a frozen engine takes in. Threads that the kernel has no number for may
/// have several each.
const ARRIVED_MAX: usize = 16 << 10;

/// The faults that are not over.
#[derive(Default)]
pub struct Waiting {
    /// Read and not served yet.
    arrived: VecDeque<Arrival>,
    /// Some of them have not been looked at: a parked program's are looked at, and held.
    has_new: bool,
    /// To be looked at again in the next turn: the address space was changing.
    again: Vec<Arrival>,
    /// Handed to the core, by the number in their [`Waiter`].
    pending: Vec<Option<Arrival>>,
    unused: Vec<u32>,
}

impl Waiting {
    /// Returns true if some faults are to be looked at again soon.
    pub fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns true if some faults have been read and not looked at.
    pub fn has_new(&self) -> bool {
        self.has_new
    }

    /// The number of faults that are not over.
    pub fn len(&self) -> usize {
        let pending = self.pending.len() - self.unused.len();
        self.arrived.len() + self.again.len() + pending
    }

    /// Has all faults that have arrived begin to wait at `now`.
    pub fn renew(&mut self, now: Time) {
        self.arrived
            .iter_mut()
            .for_each(|arrival| arrival.since = now);
    }

    /// Has a fault looked at again in the next turn.
    pub fn put_off(&mut self, arrival: Arrival) {
        self.again.push(arrival);
    }

    /// Takes in a fault. A thread waits at one place: what it was said to wait at before is stale,
    /// and to serve that now would be to decide about a page without a touch. Threads that
    /// the kernel has no number for here share 0.
    pub fn arrive(&mut self, arrival: Arrival) {
        if arrival.thread != 0 {
            let is_other = |known: &Arrival| known.thread != arrival.thread;
            self.arrived.retain(is_other);
            self.again.retain(is_other);
        }
        self.arrived.push_back(arrival);
        self.has_new = true;
    }

    /// Forgets all faults: their threads do not exist in a forked child.
    pub fn clear(&mut self) {
        *self = Waiting::default();
    }

    /// Every fault that is not over, and forgets that they were looked at. From then on as many as
    /// a frozen engine takes in need no memory. Answers how many there are.
    pub fn requeue_all(&mut self) -> usize {
        self.has_new |= self.has_again();
        self.arrived.extend(self.again.drain(..));
        let more = ARRIVED_MAX.saturating_sub(self.arrived.len());
        self.arrived.reserve(more);
        self.arrived.len()
    }

    /// Begins to look at every fault that is not over. Answers how many there are.
    pub fn look_at_all(&mut self) -> usize {
        let count = self.requeue_all();
        self.has_new = false;
        count
    }

    /// Takes the fault that has been there longest. An empty queue begins at its start again: it
    /// would else go through all of the memory that it is given for a freeze.
    pub fn next_arrived(&mut self) -> Option<Arrival> {
        let next = self.arrived.pop_front();
        if self.arrived.is_empty() {
            self.arrived.clear();
        }
        next
    }

    /// Returns true if the faults of one more read need no memory.
    pub fn has_room(&self) -> bool {
        self.arrived.len() + MESSAGES_MAX <= self.arrived.capacity()
    }

    /// A fault that was handed to the core; `None` if it is over.
    fn find(&self, waiter: Waiter) -> Option<Arrival> {
        *self.pending.get(waiter.0 as usize)?
    }

    /// The token of a fault that was handed to the core and is not over.
    pub fn token(&self, waiter: Waiter) -> Option<Token> {
        let since = self.find(waiter)?.since;
        Some(Token { waiter, since })
    }

    /// Returns true if a fault is over.
    pub fn is_over(&self, token: Token) -> bool {
        self.token(token.waiter) != Some(token)
    }

    /// Returns true if a fault of `thread` at `address` is not over.
    pub fn has(&self, thread: u32, address: usize) -> bool {
        let pending = self.pending.iter().flatten();
        let mut all = self.arrived.iter().chain(&self.again).chain(pending);
        all.any(|known| known.thread == thread && known.address == address)
    }

    /// Takes in that a fault is handed to the core.
    pub fn add(&mut self, arrival: Arrival) -> Waiter {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u32 - 1
        });
        self.pending[number as usize] = Some(arrival);
        Waiter(u64::from(number))
    }

    /// Ends a fault. In a forked child, those of its parent end without a waiting thread.
    pub fn take(&mut self, waiter: Waiter) -> Option<Arrival> {
        let arrival = self.pending.get_mut(waiter.0 as usize)?.take()?;
        self.unused.push(waiter.0 as u32);
        Some(arrival)
    }

    /// Puts a fault behind all that have arrived: it is held.
    pub fn put_back(&mut self, arrival: Arrival) {
        self.arrived.push_back(arrival);
    }

    /// A fault that has arrived, by its place in the queue.
    pub fn arrived_at(&self, index: usize) -> Option<Arrival> {
        self.arrived.get(index).copied()
    }
}

/// The answer to a faulting thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOutcome {
    /// Touch again: the page is there, or will be soon.
    Touch,
    /// The page is on its way: wait for the store, and ask again with this.
    Wait(Token),
    /// This address is nothing of the engine's.
    Foreign,
}

/// Names a fault that is not over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    waiter: Waiter,
    since: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(thread: u32, address: usize) -> Arrival {
        Arrival {
            address,
            is_write: false,
            thread,
            since: Time(0),
        }
    }

    #[test]
    fn a_frozen_engine_takes_faults_in_without_memory() {
        let mut waiting = Waiting::default();
        assert!(!waiting.has_room());
        waiting.put_off(fault(7, 0x1000));
        waiting.requeue_all();
        let capacity = waiting.arrived.capacity();
        while waiting.has_room() {
            (0..MESSAGES_MAX).for_each(|_| waiting.arrive(fault(0, 0x2000)));
        }
        assert_eq!(waiting.arrived.capacity(), capacity);
        assert!(waiting.arrived.len() + 2 * MESSAGES_MAX > ARRIVED_MAX);
    }

    #[test]
    fn faults_are_new_until_they_are_looked_at() {
        let mut waiting = Waiting::default();
        waiting.arrive(fault(7, 0x1000));
        // Room is made for a freeze, and nothing is looked at.
        waiting.requeue_all();
        assert!(waiting.has_new());
        assert_eq!(waiting.look_at_all(), 1);
        // It is held: its program is parked.
        assert!(!waiting.has_new() && waiting.len() == 1);
        // The thread was interrupted and touches the same page.
        waiting.arrive(fault(7, 0x1000));
        assert!(waiting.has_new() && waiting.len() == 1);
        // One that was looked at in vain is looked at again after a freeze.
        waiting.look_at_all();
        waiting.put_off(fault(8, 0x2000));
        waiting.requeue_all();
        assert!(waiting.has_new());
    }

    #[test]
    fn faults_that_come_one_by_one_use_the_same_memory() {
        let mut waiting = Waiting::default();
        waiting.requeue_all();
        let mut place_of_next = || {
            waiting.arrive(fault(0, 0x1000));
            let place = std::ptr::from_ref(&waiting.arrived[0]);
            waiting.next_arrived().expect("it has arrived");
            place
        };
        assert_eq!(place_of_next(), place_of_next());
    }

    #[test]
    fn a_thread_waits_at_the_last_place_it_was_said_to_wait_at() {
        let mut waiting = Waiting::default();
        waiting.put_off(fault(7, 0x1000));
        waiting.put_off(fault(8, 0x2000));
        waiting.arrive(fault(7, 0x3000));
        waiting.arrive(fault(9, 0x4000));
        waiting.arrive(fault(9, 0x5000));
        // Two threads without a number.
        waiting.arrive(fault(0, 0x6000));
        waiting.arrive(fault(0, 0x7000));
        waiting.requeue_all();
        let left = waiting.arrived.iter().map(|arrival| arrival.address);
        assert_eq!(
            left.collect::<Vec<_>>(),
            [0x3000, 0x5000, 0x6000, 0x7000, 0x2000]
        );
    }
}
