//! The machine and the date of a measurement.

use serde::{Deserialize, Serialize};

/// The machine that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release and architecture.
    pub kernel: String,
    /// The processor's name, where the kernel tells it.
    pub processor: Option<String>,
    /// The number of processors this process may use.
    pub processors: usize,
    /// The size of memory.
    pub memory_bytes: u64,
}
