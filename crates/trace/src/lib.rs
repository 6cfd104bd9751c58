//! Trace files: what a program referred to, and when.
//!
//! [`model`] and [`event`] hold what a trace says, whatever file it came from. [`container`] is the
//! file of our own, which [`Writer`] writes and [`Reader`] and [`Blocks`] read; an [`Appender`]
//! fills it reference by reference. [`import`] and [`export`] speak the languages of other tools,
//! [`generate`] makes traces up, [`summary`] adds one up, [`regions`] and [`spans`] know what is
//! mapped where, [`private`] takes out what an engine does not manage.

#![forbid(unsafe_code)]

pub mod appender;
pub mod container;
pub mod error;
pub mod event;
pub mod export;
pub mod generate;
pub mod import;
pub mod model;
mod page_set;
pub mod private;
pub mod regions;
pub mod spans;
pub mod summary;

pub use appender::{Appender, Repeats};
pub use container::{Blocks, Ending, Reader, Unpacker, Writer};
pub use error::{Error, ErrorKind, Place};
pub use event::{Copied, Event, FileEvent, LifeEvent, MappingEvent, Memory};
pub use model::{Block, Flaw, Granularity, Header, Kinds, Placed, Rights, Speed, TimeUnit};
pub use page_set::PageSet;
