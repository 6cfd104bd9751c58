//! Load control: what it says, and what a driver does that holds programs up.

use tidemark_core::event::Event;
use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::load::{LoadControl, Turn};

use super::Stage;

impl Stage {
    /// Hands over what load control wanted since this was last asked.
    pub fn take_load_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.load_events)
    }

    /// Puts another load control in place.
    pub fn set_load_control(&mut self, load: Box<dyn LoadControl>) {
        self.vm.set_load_control(load);
    }

    /// Says what the scheduler has to say of a space.
    pub fn take_turn(&mut self, space: SpaceId, turn: Turn) {
        self.vm.handle_turn(space, turn);
    }

    /// Takes a space out of memory as a whole, and answers what it had there.
    pub fn suspend(&mut self, space: SpaceId) -> Vec<VirtPage> {
        let resident = self.vm.resident_pages(space);
        self.vm.handle_suspend(self.now, &mut self.machine, space);
        self.after_step();
        resident
    }

    /// Lets the pages of a space stay again, and brings those of `pages` back for which there are
    /// frames. Answers how many were left.
    pub fn resume(&mut self, space: SpaceId, pages: &[VirtPage]) -> usize {
        self.vm.handle_resume(self.now, &mut self.machine, space);
        let place = |&at: &VirtPage| Some((self.vm.slot_at(space, at)?, at));
        let mut due: Vec<_> = pages.iter().filter_map(place).collect();
        due.sort_unstable_by_key(|&(slot, _)| slot.0);
        let mut done = 0;
        while done < due.len() {
            let (now, rest) = (self.now, &due[done..]);
            match self.vm.handle_recall(now, &mut self.machine, space, rest) {
                0 => break,
                more => done += more,
            }
            self.after_step();
        }
        due.len() - done
    }
}
