//! The end of the engine: when its program has ended, or has executed another. See
//! [`Ending`](crate::parts::ending::Ending).

use std::time::Duration;

use super::Engine;
use crate::parts::ending::{QUIET_NS, Sight};
use crate::parts::units;
use crate::sys::program;

/// The time for which the end waits for children's engines to begin.
const CHILDREN_NS_MAX: u64 = 5_000_000_000;
/// The pause between two looks at them.
const CHILDREN_PAUSE: Duration = Duration::from_millis(1);

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

    /// Waits for the engines of forked children to begin, while this one has files for them: a file
    /// that has no name any more can be had here alone.
    fn wait_for_children(&mut self) {
        if self.addresses.files().is_empty() {
            return;
        }
        let end = units::now().after_ns(CHILDREN_NS_MAX);
        self.close_needless();
        while self.intake.freeze().awaits_children() && units::now() < end {
            std::thread::sleep(CHILDREN_PAUSE);
            self.close_needless();
        }
    }

    /// Ends this process, and leaves the program, which is not in the memory that it served.
    fn leave(&mut self) -> ! {
        self.wait_for_children();
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
