//! The settings of an engine.

use std::path::{Path, PathBuf};

use tidemark_live::store::faults::FaultPlan;

/// The least memory of an engine.
pub const MEMORY_BYTES_LEAST: u64 = 256 << 10;
/// The default size of the swap file.
const SWAP_BYTES: u64 = 4 << 30;
const POLICY: &str = "tidemark";

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) memory_bytes: u64,
    pub(crate) policy: String,
    pub(crate) swap_folder: PathBuf,
    pub(crate) swap_bytes: u64,
    pub(crate) faults: FaultPlan,
    pub(crate) serves_instructions_only: bool,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            memory_bytes: 64 << 20,
            policy: POLICY.into(),
            swap_folder: "/var/tmp".into(),
            swap_bytes: SWAP_BYTES,
            faults: FaultPlan::default(),
            serves_instructions_only: false,
        }
    }

    /// Sets the most memory, in bytes, that all regions together may have: at least
    /// [`MEMORY_BYTES_LEAST`].
    pub fn memory(mut self, bytes: u64) -> Builder {
        self.memory_bytes = bytes;
        self
    }

    /// Sets the replacement policy, by name. It must be one that can run live: `tidemark policies`
    /// lists them.
    pub fn policy(mut self, name: &str) -> Builder {
        self.policy = name.into();
        self
    }

    /// Sets the folder in which a swap file without a name is made.
    pub fn swap_folder(mut self, folder: &Path) -> Builder {
        self.swap_folder = folder.into();
        self
    }

    /// Sets the size of the swap file, in bytes.
    pub fn swap_size(mut self, bytes: u64) -> Builder {
        self.swap_bytes = bytes;
        self
    }

    /// Serves the faults of instructions alone, as where the kernel does not permit more: see
    /// [`Engine::serves_system_calls`](crate::Engine::serves_system_calls). For tests of a program
    /// that is to run there.
    pub fn serve_instructions_only(mut self) -> Builder {
        self.serves_instructions_only = true;
        self
    }

    /// Has transfers fail as [`FaultPlan::parse`] says, for tests.
    #[doc(hidden)]
    pub fn faults(mut self, plan: &str) -> Builder {
        self.faults = FaultPlan::parse(plan).expect("tests write plans that can be read");
        self
    }
}
