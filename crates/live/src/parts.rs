//! The parts of an [`Engine`](crate::engine::Engine). A part has private fields, does not know the
//! engine, and is lent what it needs: the sequences that use several parts are in `engine`.

pub mod decisions;
pub mod drawing;
pub mod gauges;
pub mod line;
pub mod mode;
pub mod place;
pub mod sampling;
pub mod setup;
pub mod sleep;
pub mod telemetry;
pub mod trouble;
pub mod units;
