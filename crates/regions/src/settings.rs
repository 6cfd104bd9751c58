//! The settings of an engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidemark_core::vm::Config;
use tidemark_live::store::faults::FaultPlan;
use tidemark_live::store::pagers::{PATIENCE, Pager};
use tidemark_tasks::BESIDE_PART;

/// The least memory of an engine.
pub const MEMORY_BYTES_LEAST: u64 = 256 << 10;
/// The size of the swap file, unless another is set.
pub const SWAP_BYTES: u64 = 4 << 30;
const POLICY: &str = "2q-faults";

/// The use that is made of compressed memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compression {
    /// None.
    Without,
    /// Pages are compressed first, and leave for the store when that is full.
    First,
    /// Pages are compressed, and there is no store.
    Alone,
}

/// The settings of an engine.
#[derive(Clone)]
pub struct Builder {
    pub(crate) memory_bytes: u64,
    pub(crate) policy: String,
    pub(crate) swap_folder: PathBuf,
    pub(crate) swap_bytes: u64,
    pub(crate) store: Option<Arc<dyn Pager>>,
    pub(crate) compression: Compression,
    pub(crate) patience: Duration,
    pub(crate) is_encrypted: Option<bool>,
    pub(crate) faults: FaultPlan,
    pub(crate) serves_user_mode_only: bool,
    pub(crate) counts_process: bool,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            memory_bytes: 64 << 20,
            policy: POLICY.into(),
            swap_folder: "/var/tmp".into(),
            swap_bytes: SWAP_BYTES,
            store: None,
            compression: Compression::Without,
            patience: PATIENCE,
            is_encrypted: None,
            faults: FaultPlan::default(),
            serves_user_mode_only: false,
            counts_process: false,
        }
    }

    /// Sets the most memory, in bytes, that all regions together may have: at least
    /// [`MEMORY_BYTES_LEAST`].
    pub fn memory(mut self, bytes: u64) -> Builder {
        self.memory_bytes = bytes;
        self
    }

    /// Counts all private memory that the process gets from now on against the limit: the engine's
    /// tables, and what the program and its libraries allocate beside regions. Regions have that
    /// much less, but three quarters of the limit at least; what is beside them beyond a quarter is
    /// beyond the limit. It is looked at each 10 ms while there is work. Each of several engines
    /// that count the process counts what is beside all of them.
    ///
    /// With [`compress_alone`](Self::compress_alone) there is nowhere for pages to go that have to
    /// make room: three quarters of the limit must be enough for the regions.
    pub fn count_process(mut self) -> Builder {
        self.counts_process = true;
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

    /// Has pages that leave compressed in memory, within the limit, before they go to the swap file
    /// or the [store](Self::store). Of that a quarter is kept for compressed pages, so that regions
    /// have less room.
    pub fn compress(mut self) -> Builder {
        self.compression = Compression::First;
        self
    }

    /// Has pages that leave compressed in memory alone. There is no swap file: [`swap_size`] is
    /// then the most bytes that regions may have, and what does not fit, compressed, ends the
    /// program as a page that can't be read does.
    ///
    /// [`swap_size`]: Self::swap_size
    pub fn compress_alone(mut self) -> Builder {
        self.compression = Compression::Alone;
        self
    }

    /// Encrypts what goes to the swap file or the store, or does not. If this is not called, a
    /// [store](Self::store) gets encrypted pages, and a swap file pages as they are. The key is
    /// made at the start, lies in this process's memory, and ends with the engine.
    pub fn encrypt(mut self, is_wanted: bool) -> Builder {
        self.is_encrypted = Some(is_wanted);
        self
    }

    /// Serves faults in user mode alone, as where the kernel does not permit more: see
    /// [`Engine::serves_system_calls`](crate::Engine::serves_system_calls). For tests of a program
    /// that is to run there.
    pub fn serve_user_mode_only(mut self) -> Builder {
        self.serves_user_mode_only = true;
        self
    }

    /// Has pages that leave go to `store`, in place of a swap file of the size that the store has.
    /// It must be able to write, and be used by no other. Its contents at first do not matter. What
    /// comes back is compared with the sum of what has left; a difference is an error.
    pub fn store(mut self, store: impl Pager + 'static) -> Builder {
        self.swap_bytes = store.bytes();
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the time for which calls of pagers that fail for now are made again, with pauses that
    /// grow from a millisecond to a second: 30 seconds, unless this is called. A thread that
    /// touches a page waits meanwhile.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.patience = patience;
        self
    }

    /// The pages that regions may have in memory and in a store of `slots` slots together.
    pub(crate) fn pages_of_regions(&self, config: &Config, slots: u32) -> u64 {
        if self.compression != Compression::Without {
            // The pages that they have in memory may be compressed, and have slots then.
            return self.compression.slots_of_pages(slots).into();
        }
        let beside_most = match self.counts_process {
            true => config.frames_max / BESIDE_PART,
            false => 0,
        };
        // Frames that are kept free, or for what is beside, hold no page.
        let spare = config.reserve + config.free_high + beside_most;
        u64::from(config.frames_max.saturating_sub(spare)) + u64::from(slots)
    }

    /// Has transfers fail as [`FaultPlan::parse`] says, for tests.
    #[doc(hidden)]
    pub fn faults(mut self, plan: &str) -> Builder {
        self.faults = FaultPlan::parse(plan).expect("tests write plans that can be read");
        self
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Builder")
            .field("memory_bytes", &self.memory_bytes)
            .field("policy", &self.policy)
            .field("swap_folder", &self.swap_folder)
            .field("swap_bytes", &self.swap_bytes)
            .field("store", &self.store.as_ref().map(|store| store.name()))
            .field("compression", &self.compression)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
