//! The loop that every driver of a memory has in common.
//!
//! After each fault, reply and tick, what the core decided is carried out; then it has [room
//! made](crate::vm::Vm::handle_idle) for the next, and that is carried out, too. A driver says how
//! requests are started and events passed on, and [`conclude`](Driver::conclude) keeps the order.

/// The part between a memory and a machine: on a live process, in a simulation or in a test.
pub trait Driver {
    /// Starts every request that the memory has written down. Answers whether there were any.
    fn start_requests(&mut self) -> bool;

    /// Passes on the next thing that programs or their scheduler must know. Answers whether there
    /// was one.
    fn pass_event(&mut self) -> bool;

    /// Has the memory make room, by [`Vm::handle_idle`](crate::vm::Vm::handle_idle).
    fn make_room(&mut self);

    /// Hands over the replies that are there already. Answers whether there were any. A driver
    /// whose requests all take time has none.
    fn take_replies(&mut self) -> bool {
        false
    }

    /// Takes in the decisions, if they are kept.
    fn note_decisions(&mut self) {}

    /// Carries out what the memory wants, and what follows from that.
    fn carry_out(&mut self) {
        loop {
            let has_started = self.start_requests();
            self.note_decisions();
            if self.pass_event() {
                continue;
            }
            if !self.take_replies() && !has_started {
                return;
            }
        }
    }

    /// Carries out what a fault, a reply or a tick came to, and has room made for the next.
    fn conclude(&mut self) {
        self.carry_out();
        self.make_room();
        self.carry_out();
    }
}
