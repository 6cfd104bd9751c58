//! The record a run leaves behind, and what people read of it.
//!
//! [`record`] holds the types: they are the statistics file of `tidemark run`, field by field.
//! [`analysis`] has the records of what was found out about traces, [`replay`] those of traces that
//! were run on whole memory systems, [`compare`] of predictions beside what came of them,
//! [`experiment`] of published measurements made again, [`thrashing`] of programs that want more
//! than memory holds, [`diff`] of two versions of a program or two runs, and [`dated`] where and
//! when.
//! [`control`] has what a run is asked while it runs, and what it replies. [`host`] is the record
//! of what a host permits. [`basis`] says which numbers are not counted. [`histogram`] counts by
//! size. [`text`] draws tables; every view is a pure function of a record. [`metrics`] is a view
//! for programs that collect numbers.
//!
//! # Versions
//! A record names its [`SCHEMA`]. A field may be added under the same name; a change of meaning or
//! a field taken away makes a new schema.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod basis;
pub mod compare;
pub mod control;
pub mod dated;
pub mod diff;
pub mod experiment;
pub mod histogram;
pub mod host;
pub mod locks;
pub mod metrics;
pub mod quantity;
pub mod record;
pub mod refusal;
pub mod replay;
pub mod suspension;
pub mod text;
pub mod thrashing;

pub use histogram::{Bucket, Histogram};
pub use record::{
    Ending, Latencies, Latency, OtherProcesses, ProcessRecord, RunRecord, SCHEMA, Statistics,
};
pub use refusal::Refusal;
