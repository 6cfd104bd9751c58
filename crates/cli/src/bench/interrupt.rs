//! Being told to stop, so that what was changed on the host is put back first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::Refusal;

/// Whether somebody wants the benchmark to end.
#[derive(Clone)]
pub struct Interrupt {
    is_wanted: Arc<AtomicBool>,
}

impl Interrupt {
    /// From here on SIGINT, SIGTERM and SIGHUP only raise the flag.
    pub fn catch() -> Result<Interrupt, Refusal> {
        let is_wanted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_wanted))
                .map_err(|error| Refusal::new(format!("signals can't be caught: {error}")))?;
        }
        Ok(Interrupt { is_wanted })
    }

    /// Whether a signal has come.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }
}
