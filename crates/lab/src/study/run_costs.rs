//! The costs of `tidemark run`, beside those of a disk and of a fault that `tidemark doctor
//! --calibrate` measures here: one table, of which each line says what it was measured with.
//!
//! | cost | value | measured with |
//! | --- | --- | --- |
//! | [`START_NS`] | 10 ms | `scripts/first-answer --costs`: `tidemark run -- true` less `true` |
//! | [`PROCESS_NS`] | 5 ms | the same: a shell that runs `true` twenty times, for each |
//! | [`TOUCH_NS`] | 5 us | the same: a heap that grows by 60 MB, in ample memory, a page |
//! | [`TOUCH_NATIVE_NS`] | 0.5 us | the same natively |
//! | [`FAULT_IN_A_RUN`] | 5.5 | the same: `perl` that pages much, for each fault, over `doctor`'s |
//! | [`FAULT_NS`] | 30 us | the same, where `doctor --calibrate` has measured none |
//! | [`LIVE_OVER_LAB`] | 1.8 | the same: a `perl` that pages little, over one that pages much |
//! | [`ENGINE_BYTES`] | 450 KiB | `engine_bytes` of `run --stats`: six programs, a straight line |
//! | [`ENGINE_PAGE_BYTES`] | 180 | the same, for each page of the program |

/// The time that `tidemark run` takes to start and to end.
pub const START_NS: u64 = 10_000_000;
/// The time that each process in a run takes to start and to end, beyond its native time.
pub const PROCESS_NS: u64 = 5_000_000;
/// The time of a first touch, those around it that are made with it included, beyond the fault: a
/// page of zeros that is moved into place.
pub const TOUCH_NS: u64 = 5_000;
/// The time of a first touch natively, which the program's own time has in it.
pub const TOUCH_NATIVE_NS: u64 = 500;
/// The cost of a fault in a run, over that of one fault after the other that `doctor` measures: the
/// program finds its caches and its translations of addresses cold afterwards, the engine finds its
/// own cold and decides, and at times a processor that sleeps is woken. Processor time of a `perl`
/// with 150 thousand soft faults, for each: the engine in the kernel 11 us, its decisions 8, the
/// program in the kernel 5, and its own instructions 8 more than without.
pub const FAULT_IN_A_RUN: f64 = 5.5;
/// The cost of a fault in a run, where none was measured on this machine.
pub const FAULT_NS: u64 = 30_000;
/// The factor by which a small slow-down is larger live than in the lab: faults are far apart then,
/// and each finds the caches cold and the processors asleep. A `perl` with 5,100 faults in two
/// seconds took 57 us for each, where dense ones took 30.
pub const LIVE_OVER_LAB: f64 = 1.8;
/// The memory that an engine takes.
pub const ENGINE_BYTES: u64 = 450 << 10;
/// The memory that an engine takes for each page of its program.
pub const ENGINE_PAGE_BYTES: u64 = 180;
/// The part of what a process has beside its frames that does not count.
pub const BESIDE_FREE_BYTES: u64 = 2 << 20;

/// The part, as a divisor, by which starts differ from one run to the next: a slow-down that comes
/// to less can't be told from chance.
pub const START_PART: u64 = 4;
