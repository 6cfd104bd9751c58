//! Carrying out what is queued: runs of pages, one call of the kernel each.
//!
//! Leaves go before enters, so that a page can take the place of another in one settle.
//!
//! A call must stay inside one mapping of the program, and a run knows nothing of mappings. When
//! the kernel refuses a run for that, it is tried by halves.
//!
//! Linux 6.18 may move pages without a word. When an entry changes under its hands it begins a
//! batch anew, moves it, takes the old answer for the new one, and comes to the same batch again,
//! where it finds its own pages in the way (`move_pages` in `mm/userfaultfd.c` keeps `EAGAIN` in
//! `err`). The place the page came from shows such a call: it is empty.

use std::time::Duration;

use tidemark_core::id::{FrameId, VirtPage};
use tidemark_core::seams::machine::Setback;

use super::slot::{Contents, NOWHERE, Standing};
use super::{LiveMachine, TIP_PAGES, address, consecutive};
use crate::sys::pool::ZEROS_MAX;
use crate::sys::uffd::{Progress, Stop};
use crate::sys::{PAGE, reserve};

/// The number of times that a page that the kernel is working on is tried again at once.
const TRIES_AT_ONCE: u32 = 16;
/// The number of times, and the pauses after which, a page is tried again in step that the kernel
/// holds.
const TRIES_IN_STEP: u32 = 4000;
const PAUSE_IN_STEP: Duration = Duration::from_micros(50);
/// The most times that it is halved.
const WAITS_HALVED_MAX: u32 = 12;
/// The number of times that a page that is to be dropped is tried again at once (another process
/// may be sharing it just then).
const TRIES_TO_DROP_AT_ONCE: u32 = 64;
/// The number of times that it is tried after pauses: the kernel may hold it. Half as many for each
/// page in a row that this does not help with.
const TRIES_TO_DROP: u32 = 4000;
const PAUSE_TO_DROP: Duration = Duration::from_micros(50);
/// The number of times that an enter is tried again over time where nothing is registered. A
/// message about the range, which is on its way, ends it sooner.
const TRIES_ABSENT_MAX: u64 = 200;

impl LiveMachine {
    /// Gives the pages of dropped slots back to the host.
    pub(super) fn empty_slots(&mut self) {
        if self.drops.is_empty() {
            return;
        }
        let mut drops = std::mem::take(&mut self.drops);
        drops.sort_unstable();
        let mut rest = drops.as_slice();
        while let Some(first) = rest.first() {
            let count = consecutive(rest.iter().copied()).min(TIP_PAGES as u32);
            self.drop_pages(*first, count);
            rest = &rest[count as usize..];
        }
        drops.clear();
        self.drops = drops;
    }

    /// Drops what lies under `count` slots from `first` on, by way of the tip.
    fn drop_pages(&mut self, first: FrameId, count: u32) {
        assert!(count as usize <= TIP_PAGES);
        let start = self.pool.run_address(first, count as usize);
        let tip = self.tip.start();
        let (bytes, mut done, mut tries) = (count as usize * PAGE, 0, 0);
        let mut bytes_max = bytes;
        while done < bytes {
            let left = (bytes - done).min(bytes_max);
            match self.tip_uffd.move_pages(tip + done, start + done, left) {
                Progress::All => done += left,
                Progress::Part(moved) => done += moved,
                // A hole already.
                Progress::Nothing(Stop::Absent) => done += PAGE,
                // In a forked child, what is opened later is a mapping of its own.
                Progress::Nothing(Stop::Unsuitable) if left > PAGE => {
                    bytes_max = left.div_ceil(2).next_multiple_of(PAGE);
                }
                Progress::Nothing(stop) => {
                    let page = FrameId(first.0 + (done / PAGE) as u32);
                    if self.may_drop_later(stop, page, tries) {
                        tries += 1;
                        continue;
                    }
                    self.keep_zeros(page);
                    done += PAGE;
                }
            }
            tries = 0;
        }
        self.empty_tip();
    }

    /// Does what can be done about a page that can't be dropped yet; whether to try again.
    fn may_drop_later(&mut self, stop: Stop, page: FrameId, tries: u32) -> bool {
        if tries >= TRIES_TO_DROP_AT_ONCE + (TRIES_TO_DROP >> self.drops_in_vain) {
            self.drops_in_vain = (self.drops_in_vain + 1).min(WAITS_HALVED_MAX);
            return false;
        }
        match stop {
            // Something has read the tip, and left a page of zeros there.
            Stop::Present => self.empty_tip(),
            // The program has locked one of the two.
            Stop::Unsuitable if reserve::unlock() => {}
            // Shared since a fork, or a page of zeros that reading has left.
            _ => self.pool.unshare(page),
        }
        if tries >= TRIES_TO_DROP_AT_ONCE {
            std::thread::sleep(PAUSE_TO_DROP);
        }
        true
    }

    /// Leaves a page of zeros under a slot whose page can't be dropped: that costs memory, and does
    /// no harm. It is tried again when something is to be moved there.
    fn keep_zeros(&mut self, page: FrameId) {
        self.pool.clear(page);
        self.tally.kept += 1;
    }

    fn empty_tip(&mut self) {
        let emptied = self.tip.drop_contents();
        emptied.expect("the tip is plain memory of this process");
    }

    pub(super) fn carry_out_leaves(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        let mut queue = std::mem::take(&mut self.leaving);
        if !self.kept.is_empty() {
            queue.retain(|frame| {
                let is_kept = self.kept.contains(address(self.slots[frame.index()].at()));
                if is_kept {
                    self.keep_mapped(*frame, Setback::Busy);
                }
                !is_kept
            });
        }
        self.sort_by_address(&mut queue);
        let mut rest = queue.as_slice();
        while let Some(first) = rest.first() {
            let run = self.run_of_both(rest);
            if self.is_held(*first) {
                self.keep_mapped(*first, Setback::Busy);
            } else {
                self.move_out(&rest[..run]);
            }
            rest = &rest[run..];
        }
        queue.clear();
        self.leaving = queue;
    }

    pub(super) fn carry_out_enters(&mut self) {
        if self.entering.is_empty() {
            return;
        }
        let mut queue = std::mem::take(&mut self.entering);
        self.sort_by_address(&mut queue);
        let mut rest = queue.as_slice();
        while let Some(first) = rest.first() {
            if self.is_hole(*first) {
                let run = self.run_of_holes(rest);
                self.fill_in(&rest[..run]);
                rest = &rest[run..];
            } else {
                let run = self.run_of_both(rest);
                if self.is_held(*first) {
                    self.copy_in(*first);
                } else {
                    self.move_in(&rest[..run]);
                }
                rest = &rest[run..];
            }
        }
        queue.clear();
        self.entering = queue;
    }

    /// Moves a run from the program to its slots.
    fn move_out(&mut self, run: &[FrameId]) {
        let mut done = 0;
        let mut tries = 0;
        let mut pages_max = run.len();
        // How many have been made this process's own, or could not be.
        let mut own = 0;
        while let Some(frame) = run.get(done) {
            let from = address(self.slots[frame.index()].at());
            let pages = pages_max.min(run.len() - done);
            let to = self.pool.run_address(*frame, pages);
            self.tally.move_calls += 1;
            match self.program.move_pages(to, from, pages * PAGE) {
                Progress::All => done += self.note_left(&run[done..done + pages]),
                Progress::Part(bytes) => done += self.note_left(&run[done..done + bytes / PAGE]),
                Progress::Nothing(Stop::Present) if self.has_left(from) => {
                    done += self.note_left(&run[done..=done]);
                }
                Progress::Nothing(Stop::Unsuitable) if pages > 1 => {
                    pages_max = pages / 2;
                    continue;
                }
                Progress::Nothing(stop) if tries < TRIES_AT_ONCE && self.may_help(stop, *frame) => {
                    tries += 1;
                    continue;
                }
                // Shared since a fork, unless it is pinned: the whole run is, most likely.
                Progress::Nothing(Stop::Busy) if own <= done => {
                    own = run.len();
                    if let Some(hand) = self.hand {
                        self.open_for_hand(from, (own - done) * PAGE);
                        let faults = &self.program;
                        hand.make_own(from, (own - done) * PAGE, || faults.has_messages());
                    }
                    continue;
                }
                Progress::Nothing(stop) if self.await_release(stop, tries) => {
                    tries += 1;
                    continue;
                }
                // No message is read meanwhile: nothing of the run can leave in this settle.
                Progress::Nothing(Stop::Changing) if self.is_changing() => {
                    for frame in &run[done..] {
                        self.note_stayed(*frame, Stop::Changing);
                    }
                    return;
                }
                Progress::Nothing(stop) => {
                    self.note_stayed(*frame, stop);
                    done += 1;
                    // Its neighbours are most likely no better: goes on by small steps.
                    (tries, pages_max) = (0, 1);
                    continue;
                }
            }
            if tries > 0 {
                self.waits_in_vain = 0;
            }
            tries = 0;
            pages_max = (pages_max * 2).min(run.len());
        }
    }

    /// Returns true if a page that was refused because of another at its destination has left
    /// `from` all the same: then the other is itself.
    fn has_left(&mut self, from: usize) -> bool {
        let has_left = self.pages.is_hole(from);
        let has_left = has_left.expect("the kernel answers about this process's own pages");
        self.tally.unsaid += u64::from(has_left);
        has_left
    }

    /// Waits a little in step, if the kernel holds a page: for ends of its own, or for a transfer
    /// that it has reported and not let go of yet. Who waits for the page would touch it again
    /// meanwhile, which the lab knows nothing of. Whether to try again.
    fn await_release(&mut self, stop: Stop, tries: u32) -> bool {
        if !self.is_suspicious {
            return false;
        }
        if tries >= TRIES_IN_STEP >> self.waits_in_vain {
            // Pinned for good, most likely, and so are others: they are waited for half as long.
            self.waits_in_vain = (self.waits_in_vain + 1).min(WAITS_HALVED_MAX);
            return false;
        }
        let is_held = match stop {
            Stop::Busy => true,
            Stop::Changing => !self.is_changing(),
            _ => false,
        };
        if is_held {
            std::thread::sleep(PAUSE_IN_STEP);
        }
        is_held
    }

    /// Does what can be done at once about a page that would not leave; whether to try again.
    fn may_help(&mut self, stop: Stop, frame: FrameId) -> bool {
        match stop {
            Stop::Changing => true,
            // A read of the hole has put a page of zeros there, which has no owner.
            Stop::Present => {
                self.drop_pages(frame, 1);
                true
            }
            Stop::Absent | Stop::Busy | Stop::Unsuitable => false,
            Stop::NoMemory | Stop::Ending | Stop::Other(_) => false,
        }
    }

    fn note_left(&mut self, run: &[FrameId]) -> usize {
        for frame in run {
            let slot = &mut self.slots[frame.index()];
            slot.set_standing(Standing::Unmapped);
            slot.set_at(NOWHERE);
            slot.set_contents(Contents::Bytes);
        }
        self.tally.moved_out += run.len() as u64;
        run.len()
    }

    fn note_stayed(&mut self, frame: FrameId, stop: Stop) {
        match stop {
            Stop::Absent | Stop::Ending => {
                self.set_unmapped(frame);
                self.tally.gone += 1;
                self.setbacks.push_back((frame, Setback::Gone));
            }
            // The program has made its mapping read-only, or locked it: such pages can't be moved.
            // The page stays where it is, and stops being ours until it can be adopted again.
            Stop::Unsuitable => {
                self.set_unmapped(frame);
                self.tally.disowned += 1;
                self.setbacks.push_back((frame, Setback::Gone));
            }
            Stop::Changing => self.keep_mapped(frame, Setback::Later),
            Stop::Present | Stop::Busy => self.keep_mapped(frame, Setback::Busy),
            Stop::NoMemory | Stop::Other(_) => self.keep_mapped(frame, Setback::Busy),
        }
    }

    fn keep_mapped(&mut self, frame: FrameId, setback: Setback) {
        self.slots[frame.index()].set_standing(Standing::Mapped);
        self.tally.busy += 1;
        self.setbacks.push_back((frame, setback));
    }

    /// Moves a run from its slots into the program.
    fn move_in(&mut self, run: &[FrameId]) {
        let mut done = 0;
        let mut tries = 0;
        let mut pages_max = run.len();
        while let Some(frame) = run.get(done) {
            let from = self.pool.address(*frame);
            let to = address(self.slots[frame.index()].at());
            let pages = pages_max.min(run.len() - done);
            self.tally.move_calls += 1;
            match self.program.move_pages(to, from, pages * PAGE) {
                Progress::All => {
                    self.protect_arrived(to, pages * PAGE);
                    done += self.note_moved_in(&run[done..done + pages]);
                }
                Progress::Part(bytes) => {
                    self.protect_arrived(to, bytes);
                    done += self.note_moved_in(&run[done..done + bytes / PAGE]);
                }
                Progress::Nothing(Stop::Present) if self.has_left(from) => {
                    self.protect_arrived(to, PAGE);
                    let at = self.slots[frame.index()].at();
                    done += self.note_moved_in(&run[done..=done]);
                    // In step, who waits is woken when the step is over.
                    if !self.is_suspicious {
                        self.wake(at);
                    }
                }
                // Shared since a fork, unless it is pinned: a write makes it our own.
                Progress::Nothing(Stop::Busy) if tries == 0 => {
                    self.pool.unshare(*frame);
                    tries += 1;
                    continue;
                }
                Progress::Nothing(stop) if self.await_release(stop, tries) => {
                    tries += 1;
                    continue;
                }
                Progress::Nothing(Stop::Unsuitable) if pages > 1 => {
                    pages_max = pages / 2;
                    continue;
                }
                Progress::Nothing(Stop::Unsuitable) => {
                    self.copy_in(*frame);
                    done += 1;
                }
                Progress::Nothing(stop) => {
                    self.note_not_entered(*frame, stop);
                    done += 1;
                }
            }
            tries = 0;
            pages_max = run.len();
        }
    }

    fn note_moved_in(&mut self, run: &[FrameId]) -> usize {
        self.note_entered(run);
        self.tally.moved_in += run.len() as u64;
        run.len()
    }

    /// Fills a run of addresses with zeros; their slots are holes.
    fn fill_in(&mut self, run: &[FrameId]) {
        let mut done = 0;
        let mut pages_max = ZEROS_MAX;
        while let Some(frame) = run.get(done) {
            let to = address(self.slots[frame.index()].at());
            let pages = pages_max.min(run.len() - done);
            self.tally.move_calls += 1;
            let filled = match self.program.copy(to, self.pool.zeros(), pages * PAGE) {
                Progress::All => pages,
                Progress::Part(bytes) => bytes / PAGE,
                Progress::Nothing(Stop::Absent) if pages > 1 => {
                    pages_max = pages / 2;
                    continue;
                }
                Progress::Nothing(stop) => {
                    self.note_not_entered(*frame, stop);
                    done += 1;
                    continue;
                }
            };
            self.note_entered(&run[done..done + filled]);
            self.tally.zero_filled += filled as u64;
            done += filled;
            pages_max = ZEROS_MAX;
        }
    }

    /// Copies one page in, where a move is not allowed: the program's mapping is not writable or
    /// locked, or the frame is held.
    fn copy_in(&mut self, frame: FrameId) {
        let to = address(self.slots[frame.index()].at());
        match self.program.copy(to, self.pool.address(frame), PAGE) {
            Progress::All | Progress::Part(_) => {
                self.protect_arrived(to, PAGE);
                // The slot of a held frame is dropped when it is released.
                if !self.is_held(frame) {
                    self.queue_drop(frame);
                }
                self.note_entered(&[frame]);
                self.tally.copied_in += 1;
            }
            Progress::Nothing(stop) => self.note_not_entered(frame, stop),
        }
    }

    fn note_entered(&mut self, run: &[FrameId]) {
        for frame in run {
            let slot = &mut self.slots[frame.index()];
            slot.set_standing(Standing::Mapped);
            slot.set_contents(Contents::Hole);
            slot.set_sum_current(false);
        }
    }

    fn note_not_entered(&mut self, frame: FrameId, stop: Stop) {
        let slot = &mut self.slots[frame.index()];
        match stop {
            Stop::Absent | Stop::Unsuitable | Stop::Other(_)
                if slot.tries() >= TRIES_ABSENT_MAX =>
            {
                self.give_up_enter(frame);
            }
            Stop::Absent | Stop::Unsuitable | Stop::Other(_) => {
                slot.set_tries(slot.tries() + 1);
                self.defer(frame);
            }
            // The page that stands there was written by the program: it is the true one.
            Stop::Present | Stop::Ending => self.give_up_enter(frame),
            Stop::Changing | Stop::Busy | Stop::NoMemory => self.defer(frame),
        }
    }

    fn defer(&mut self, frame: FrameId) {
        self.slots[frame.index()].set_standing(Standing::Deferred);
        self.tally.deferred += 1;
        self.deferred.push(frame);
    }

    fn give_up_enter(&mut self, frame: FrameId) {
        let at = self.slots[frame.index()].at();
        self.set_unmapped(frame);
        self.wake(at);
        self.tally.gone += 1;
        self.setbacks.push_back((frame, Setback::Gone));
    }

    /// Pages come to the kernel in the order of their addresses, which shows the runs.
    fn sort_by_address(&self, queue: &mut [FrameId]) {
        if queue.len() > 1 {
            queue.sort_unstable_by_key(|frame| self.slots[frame.index()].at());
        }
    }

    /// The number of frames, from the first on, whose addresses and slots both follow each other,
    /// and that, if they are to be moved in, have pages to move. A held frame stands alone.
    fn run_of_both(&self, queue: &[FrameId]) -> usize {
        let first = queue[0];
        let start = self.slots[first.index()];
        let follows = |(count, frame): &(u32, &FrameId)| {
            let slot = self.slots[frame.index()];
            frame.0 == first.0 + count
                && slot.at() == start.at().plus(u64::from(*count))
                && (slot.contents() == Contents::Hole) == (start.contents() == Contents::Hole)
                && !slot.is_held()
        };
        if start.is_held() {
            1
        } else {
            (0..).zip(queue).take_while(follows).count()
        }
    }

    fn is_held(&self, frame: FrameId) -> bool {
        self.slots[frame.index()].is_held()
    }

    /// The number of frames, from the first on, that are holes at addresses that follow each other.
    fn run_of_holes(&self, queue: &[FrameId]) -> usize {
        let start: VirtPage = self.slots[queue[0].index()].at();
        let follows = |(count, frame): &(u64, &FrameId)| {
            self.is_hole(**frame) && self.slots[frame.index()].at() == start.plus(*count)
        };
        (0..).zip(queue).take_while(follows).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::machine::tests::World;
    use crate::sys::testing::{self, fill, skip};
    use tidemark_core::seams::machine::Machine;

    #[test]
    fn found_f2_a_page_that_cant_be_dropped_is_left_as_zeros() {
        let Some(mut world) = World::new(4, 4) else {
            return;
        };
        world.enter_zeros(0, 0, 1);
        fill(&world.region, 0, 7);
        world.unmap(0);
        let slot = world.machine.pool().address(FrameId(0));
        let Ok(pins) = testing::pin(slot, PAGE) else {
            return skip("io_uring");
        };
        world.machine.retire(FrameId(0));
        world.machine.settle();
        assert_eq!(world.machine.tally().kept, 1);
        let mut page = [1; PAGE];
        world.machine.pool().read(FrameId(0), &mut page);
        assert!(page.iter().all(|byte| *byte == 0));
        // The slot is emptied when it is used again, once the kernel has let go.
        drop(pins);
        world.enter_zeros(0, 0, 1);
        fill(&world.region, 0, 9);
        let end = Instant::now() + Duration::from_secs(20);
        world.unmap(0);
        while let Some((_, setback)) = world.machine.take_setback() {
            assert!(setback == Setback::Busy && Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
            world.unmap(0);
        }
        world.machine.pool().read(FrameId(0), &mut page);
        assert_eq!(page[0], 9);
    }
}
