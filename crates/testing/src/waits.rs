//! Waits that have a limit: for a child's end, or for anything else.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// Waits for the end of `child`.
///
/// # Panics
/// It does not end within `limit`; it is killed then.
pub fn for_end(child: &mut Child, limit: Duration) -> ExitStatus {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} does not end within {limit:?}", child.id());
        }
        std::thread::sleep(POLL);
    }
}

/// Waits until it `holds`.
///
/// # Panics
/// It does not within `limit`.
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(POLL);
    }
}
