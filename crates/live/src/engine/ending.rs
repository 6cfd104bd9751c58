//! The end of the engine: when its program has ended, or has executed another. See
//! [`Ending`](crate::parts::ending::Ending).

use super::Engine;
use crate::parts::ending::{QUIET_NS, Sight};
use crate::parts::units;
use crate::sys::program;

impl Engine {
    /// Leaves if the program has ended, or has executed another. Answers after how long to ask
    /// again at the latest. While the first thread is there that costs next to nothing.
    pub(super) fn see_off(&mut self) -> u64 {
        let now = units::now();
        let pause_ns = match self.ending.look(now) {
            Sight::Unchanged(ns) => return ns,
            Sight::Over => self.leave(),
            Sight::Leaving => self.ending.pause_ns(),
            Sight::There => {
                self.look_for_tracer();
                self.bring(QUIET_NS)
            }
        };
        self.ending.plan_look(now.after_ns(pause_ns));
        pause_ns
    }

    /// Ends this process, and leaves the program, which is not in the memory that it served.
    fn leave(&mut self) -> ! {
        self.finish_files();
        self.telemetry.publish_samples();
        self.publish();
        self.telemetry.flush_decisions();
        self.line.leave();
        let socket = self.setup.control.as_deref();
        self.line.remove_folder_of_the_dead(socket);
        program::leave()
    }
}
