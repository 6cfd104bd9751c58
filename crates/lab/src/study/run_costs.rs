//! The costs of `tidemark run`, beside those of a disk and of a fault that `tidemark doctor
//! --calibrate` measures here: one table, of which each line says what it was measured with.
//!
//! | cost | value | measured with |
//! | --- | --- | --- |
//! | [`START_NS`] | 10 ms | `scripts/first-answer --costs`: `tidemark run -- true` less `true` |
//! | [`PROCESS_NS`] | 5 ms | the same: a shell that runs `true` twenty times, for each |
//! | [`TOUCH_NS`] | 5 us | the same: a heap that grows by 60 MB, in ample memory, for each page |
//! | [`TOUCH_NATIVE_NS`] | 0.5 us | the same natively |
//! | [`FAULT_IN_A_RUN`] | 2 | page-ins of the same 256 MiB in half of that, over `doctor`'s fault |
//! | [`ENGINE_BYTES`] | 450 KiB | `engine_bytes` of `run --stats`: six programs, a straight line |
//! | [`ENGINE_PAGE_BYTES`] | 180 | the same, for each page of the program |
//! | [`LIVE_OVER_LAB`] | 1.5 | `scripts/first-answer`: what want of memory takes, over the lab's |

/// The time that `tidemark run` takes to start and to end, ...
pub const START_NS: u64 = 10_000_000;
/// ... and each process in it, beyond what they take natively.
pub const PROCESS_NS: u64 = 5_000_000;
/// The time of a first touch, those around it that are made with it included, beyond the fault: a
/// page of zeros that is moved into place.
pub const TOUCH_NS: u64 = 5_000;
/// The time of a first touch natively, which the program's own time has in it.
pub const TOUCH_NATIVE_NS: u64 = 500;
/// The cost of a fault in a run, over that of one alone: it finds caches cold, and the engine
/// decides.
pub const FAULT_IN_A_RUN: f64 = 2.0;
/// The memory that an engine takes, ...
pub const ENGINE_BYTES: u64 = 450 << 10;
/// ... and for each page of its program.
pub const ENGINE_PAGE_BYTES: u64 = 180;
/// The part of what a process has beside its frames that does not count.
pub const BESIDE_FREE_BYTES: u64 = 2 << 20;
/// The time that programs take longer live for want of memory, over what they do in the lab:
/// their own
/// instructions find caches cold after each fault, which the lab does not know of. Answers take it
/// for granted.
pub const LIVE_OVER_LAB: f64 = 1.5;

/// The part, as a divisor, by which starts differ from one run to the next: a slow-down that comes
/// to less can't be told from chance.
pub const START_PART: u64 = 4;
