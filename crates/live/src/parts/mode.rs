//! The mode of an engine: who serves a fault, and when the program goes on. Code asks for a
//! property of the mode, not for the mode.
//!
//! | property | thread | in thread | in step |
//! | --- | --- | --- | --- |
//! | [program threads serve](Mode::serves_on_program_threads) | | yes | |
//! | [all work ends at each fault](Mode::ends_work_at_each_fault) | | | yes |
//! | [memory is looked for](Mode::looks_for_memory) | yes | yes | |
//! | [the store is waited for by the engine](Mode::waits_for_store) | yes | | yes |
//! | [others are heard while it waits awake](Mode::listens_while_awake) | yes | | |
//! | [the doorbell is a timer](Mode::is_rung_by_timer) | | yes | |
//! | [every turn looks at everything](Mode::looks_at_all_each_turn) | | yes | |
//! | [the helper is there from the start](Mode::needs_hand_at_once) | | yes | yes |
//! | [files can be managed](Mode::manages_files) | yes | | yes |
//! | [copies of files are managed](Mode::manages_copies) | yes | | |

/// Smaller mappings are left alone in step. The filter that the lab takes for traces leaves out
/// the same ones.
pub const MAPPED_BYTES_LEAST: usize = 4 << 20;

/// The way in which faults are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// By the engine, while the thread that faulted waits.
    #[default]
    Thread,
    /// By the program's threads, each its own faults, in a signal handler.
    InThread,
    /// By the engine, and the program goes on when all that follows from the fault is over.
    InStep,
}

impl Mode {
    /// Returns true if the program's threads serve their own faults, by `SIGBUS`, with the engine's
    /// files in the program's table.
    pub fn serves_on_program_threads(self) -> bool {
        self == Mode::InThread
    }

    /// Returns true if all that follows from a fault is over when its thread goes on. Then faults
    /// alone take the clock further, and decisions follow from the program's references.
    pub fn ends_work_at_each_fault(self) -> bool {
        self == Mode::InStep
    }

    /// Returns true if the engine looks for memory by itself. Otherwise it would matter when it
    /// does.
    pub fn looks_for_memory(self) -> bool {
        self != Mode::InStep
    }

    /// Returns true if a new mapping of this size is managed.
    pub fn manages_mapping_of(self, bytes: usize) -> bool {
        self != Mode::InStep || bytes >= MAPPED_BYTES_LEAST
    }

    /// Returns true if the engine's own thread waits for the store. Otherwise program threads do.
    pub fn waits_for_store(self) -> bool {
        self != Mode::InThread
    }

    /// Returns true if the engine, awake for a transfer, must hear of all else meanwhile.
    pub fn listens_while_awake(self) -> bool {
        self == Mode::Thread
    }

    /// Returns true if the engine may wait for the program's messages alone, by a read.
    pub fn reads_alone(self) -> bool {
        self == Mode::Thread
    }

    /// Returns true if the engine is called by a timer: in a shared table of files there is no
    /// better way.
    pub fn is_rung_by_timer(self) -> bool {
        self == Mode::InThread
    }

    /// Returns true if each turn of the engine's own thread looks at everything: it has few.
    pub fn looks_at_all_each_turn(self) -> bool {
        self == Mode::InThread
    }

    /// Returns true if the engine must have its hand before it is needed: where another thread than
    /// its own may need it, and where it must not matter when it comes.
    pub fn needs_hand_at_once(self) -> bool {
        self != Mode::Thread
    }

    /// Returns true if mapped files can be managed. System calls that are handed such memory would
    /// fail where they can't wait for it.
    pub fn manages_files(self) -> bool {
        self != Mode::InThread
    }

    /// Returns true if copies of files are managed without being named. In step the lab has to know
    /// which files are managed.
    pub fn manages_copies(self) -> bool {
        self == Mode::Thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_step_small_mappings_are_left_alone() {
        assert!(Mode::Thread.manages_mapping_of(4096));
        assert!(Mode::InThread.manages_mapping_of(4096));
        assert!(!Mode::InStep.manages_mapping_of(MAPPED_BYTES_LEAST - 1));
        assert!(Mode::InStep.manages_mapping_of(MAPPED_BYTES_LEAST));
    }
}
