//! Paging: the state of pages that come in and go out. Attempts to serve faults,
//! transfers, faults that wait, pages that can't leave, and what is handed out.
//!
//! These are parts, with their state to themselves; [`vm`](crate::vm) puts them in sequence.

pub(crate) mod attempt;
pub(crate) mod outbox;
pub(crate) mod pins;
pub(crate) mod transfers;
pub(crate) mod waiting;
