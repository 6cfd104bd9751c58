//! Time on a stage: it passes when a test says so.

use super::Stage;

impl Stage {
    /// Lets `ns` pass and tells the core.
    pub fn tick(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        self.swap.advance(self.now);
        self.outside.advance(self.now);
        self.vm.handle_tick(self.now, &mut self.machine);
        self.after_step();
        if self.vm.poll_deadline().is_some_and(|due| due <= self.now) {
            self.vm.handle_deadline(self.now, &mut self.machine);
            self.after_step();
        }
    }

    /// Lets time pass to the core's next deadline. Answers whether there is one.
    pub fn pass_to_deadline(&mut self) -> bool {
        let Some(due) = self.vm.poll_deadline() else {
            return false;
        };
        self.now = self.now.max(due);
        self.swap.advance(self.now);
        self.outside.advance(self.now);
        self.vm.handle_deadline(self.now, &mut self.machine);
        self.after_step();
        true
    }
}
