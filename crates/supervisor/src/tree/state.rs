//! Members on their way from one supervisor to another.

use serde::{Deserialize, Serialize};

/// The state of a member, beside its connection, when it is handed over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MemberState {
    pub(super) pid: u32,
    /// The record its parent claimed for it, if it was forked.
    pub(super) claimed: Option<u32>,
    /// Its record, if it has been answered.
    pub(super) record: Option<u32>,
    /// Its engine's reference to its memory comes with its connection.
    pub(super) has_memory: bool,
}
