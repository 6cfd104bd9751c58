//! Ages: small numbers that go up with each use of a page and down without.
//!
//! The kernels that age pages go round their lists until some page is old enough to leave. When
//! nothing is used any more between two rounds, what those rounds would do can be done at once.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::FrameId;
use crate::seams::probe::Probe;

/// Takes from the ages of all pages of `list` the least that makes one which may leave be 0.
/// Answers whether there is one.
pub(crate) fn count_down(
    queues: &Queues,
    list: u8,
    ages: &mut Column<u8>,
    probe: &Probe<'_>,
) -> bool {
    let members = queues.iter(list).map(FrameId);
    let may_leave = members.filter(|&frame| probe.may_leave(frame));
    let Some(least) = may_leave.map(|frame| ages[frame.index()]).min() else {
        return false;
    };
    for frame in queues.iter(list) {
        let age = &mut ages[frame as usize];
        *age = age.saturating_sub(least);
    }
    true
}
