//! Pull: the oldest page of a list that may leave, as the Mach pagers looked for it.

use super::Probe;
use crate::id::FrameId;
use crate::queue::Queues;

/// Finds the first frame of `list` that may leave, and leaves it there in front.
///
/// Frames that may not leave go to the end, so that nobody has to pass them again soon. Looks at
/// each member once at most.
pub(super) fn pull(queues: &mut Queues, list: u8, probe: &Probe<'_>) -> Option<FrameId> {
    for _ in 0..queues.length(list) {
        let frame = FrameId(queues.front(list)?);
        if probe.may_leave(frame) {
            return Some(frame);
        }
        queues.move_to_back(list, frame.0);
    }
    None
}
