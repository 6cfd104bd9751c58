//! Waiting awake: a thread watches the store for a while before it sleeps.

use std::time::{Duration, Instant};

use tidemark_live::engine::AWAKE_NS;
use tidemark_live::sys::ring::Watch;

/// The number of looks of a thread between two looks at the clock.
const LOOKS: u32 = 32;

/// Watches the store of this process's engine for [`AWAKE_NS`]. Answers whether it has finished
/// something.
pub(crate) fn finishes_soon(watch: Watch) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            // SAFETY: the engine and its ring last as long as the process; a fork leaves the
            // parent's ring mapped in the child.
            if unsafe { watch.has_finished() } {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= Duration::from_nanos(AWAKE_NS) {
            return false;
        }
    }
}
