//! `tidemark keep`: takes over processes that outlive the program they were started by, as
//! [`tidemark_supervisor::hand_over`] describes.

use std::os::fd::AsFd;

use clap::Args;
use tidemark_supervisor::hand_over;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;

/// Serves managed processes that outlive their run, until they end; started by `run`
#[derive(Debug, Args)]
pub struct Arguments {}

impl Files for Arguments {}

/// Takes over, and stays until the last process has ended.
pub fn run(_: Arguments) -> Result<Exit, Refusal> {
    match hand_over::keep(std::io::stdin().as_fd()) {
        Ok(()) => Ok(Exit::Fine),
        Err(error) => refuse!("`keep` is started by `run`, which hands over: {error}"),
    }
}
