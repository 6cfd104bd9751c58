//! The parts of an [`Engine`](crate::engine::Engine). A part has private fields, does not know the
//! engine, and is lent what it needs: the sequences that use several parts are in `engine`.

pub mod mode;
pub mod trouble;
pub mod units;
