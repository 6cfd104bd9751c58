//! Load controls, and the task control that asks them about whole processes.

pub mod clock_pressure;
pub mod history;
pub mod medium_term;
pub mod registry;
pub mod swap_token;
pub mod task_swapper;
pub mod tasks;
pub mod unlimited;
pub mod working_set;

pub use crate::seams::load_control::{
    Description, LoadControl, LoadView, SpaceLoad, Turn, Verdict,
};
