//! The reasons why a scenario can't be run.

/// The reason why a scenario can't be run on a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// There is nothing to run.
    NoPrograms,
    /// There is nothing to run on.
    NoProcessors,
    /// No policy has that name.
    UnknownPolicy {
        /// The name that was asked for.
        name: String,
    },
    /// The policy has no knob of that name.
    UnknownKnob {
        /// The name that was asked for.
        name: String,
    },
    /// The knob can't have that value.
    KnobOutOfRange {
        /// The knob's name.
        name: String,
        /// The value that was asked for.
        value: u64,
        /// The least it can have.
        min: u64,
        /// The greatest it can have.
        max: u64,
    },
    /// No load control has that name.
    UnknownLoad {
        /// The name that was asked for.
        name: String,
    },
    /// The load control acts on single pages of a program, and each program has a memory of its
    /// own.
    LoadOfPages {
        /// The name that was asked for.
        name: String,
    },
    /// The memory that the kernel leaves is less than the least that works.
    MemoryTooSmall {
        /// The size of memory, in pages.
        memory_pages: u32,
        /// The part of it that the kernel has, in pages.
        wired_pages: u32,
        /// The least that must be left, in pages.
        needs_pages: u32,
    },
    /// Two programs' pages have different sizes.
    PageSizesDiffer {
        /// One size, in bytes.
        one: u64,
        /// Another size, in bytes.
        other: u64,
    },
    /// No process can run, and no event will change that.
    Stuck {
        /// The time at which that came to be.
        time_ns: u64,
        /// The number of threads that wait for memory.
        waiting: u32,
        /// The number of those that are suspended.
        suspended: u32,
    },
}
