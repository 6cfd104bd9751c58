//! The parts of an [`Engine`](crate::engine::Engine). A part has private fields, does not know the
//! engine, and is lent what it needs: the sequences that use several parts are in `engine`.
//!
//! | file | part |
//! | --- | --- |
//! | [`addresses`] | the program's address space: what is managed, to be adopted, locked |
//! | [`intake`] | messages, faults that are not over, changes that are not settled, rests |
//! | [`written`] | files that are written back: who waits, and who claims them |
//! | [`calls`] | system calls that are held up until their memory is there |
//! | [`mod@line`] | the record, the supervisor, the doorbell, a child's parent |
//! | [`telemetry`] | the reports: [`gauges`], [`decisions`], [`sampling`], [`drawing`] |
//! | [`turns`] | the times of ticks, looks and retries |
//! | [`place`] | the processors of engine and program |
//! | [`ending`] | whether the program is there |
//! | [`traced`] | the program's debuggers |
//! | [`setup`], [`mode`] | the settings; the way in which faults are served |
//! | [`sleep`], [`lock`] | the engine's sleep, and the lock that it is lent out by |
//! | [`trouble`], [`units`] | failures and messages; pages, addresses, times |

pub mod addresses;
pub mod calls;
pub mod decisions;
pub mod drawing;
pub mod ending;
pub mod gauges;
pub mod intake;
pub mod line;
pub mod lock;
pub mod mode;
pub mod place;
pub mod sampling;
pub mod setup;
pub mod sleep;
pub mod telemetry;
pub mod traced;
pub mod trouble;
pub mod turns;
pub mod units;
pub mod written;
