//! Pull: the page at an end of a list that may leave, as the Mach pagers looked for it.
//!
//! A policy may come to the end of its rules with nothing to show for it: every page was used, and
//! the kernel it follows would have gone round once more, waited, or killed a process. Here the
//! page that waits must be served: [`pull_any`] then names the oldest, whatever its use.

use crate::collections::queue::Queues;
use crate::id::FrameId;
use crate::seams::probe::Probe;

/// Finds the first frame of `list` that may leave, and leaves it there in front.
///
/// Frames that may not leave go to the end, so that they are not passed again soon. Looks at
/// each member once at most.
#[inline]
pub(crate) fn pull(queues: &mut Queues, list: u8, probe: &Probe<'_>) -> Option<FrameId> {
    for _ in 0..queues.length(list) {
        let frame = FrameId(queues.front(list)?);
        if probe.may_leave(frame) {
            return Some(frame);
        }
        queues.move_to_back(list, frame.0);
    }
    None
}

/// Finds the oldest frame that may leave on the first of `lists` that has one.
pub(crate) fn pull_any(queues: &mut Queues, lists: &[u8], probe: &Probe<'_>) -> Option<FrameId> {
    lists.iter().find_map(|&list| pull(queues, list, probe))
}

/// Finds the last frame of `list` that may leave, and leaves it there behind all others. As
/// [`pull`], from the other end.
#[inline]
pub(crate) fn pull_newest(queues: &mut Queues, list: u8, probe: &Probe<'_>) -> Option<FrameId> {
    for _ in 0..queues.length(list) {
        let frame = FrameId(queues.back(list)?);
        if probe.may_leave(frame) {
            return Some(frame);
        }
        queues.remove(frame.0);
        queues.push_front(list, frame.0);
    }
    None
}
