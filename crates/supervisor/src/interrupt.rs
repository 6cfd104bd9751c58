//! Interrupts of a command, held back until the host's settings are restored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tidemark_results::Refusal;

use crate::signals::end_by;

/// The request to end the command.
#[derive(Clone)]
pub struct Interrupt {
    is_wanted: Arc<AtomicBool>,
    /// True if a signal ends the command at once.
    is_open: Arc<AtomicBool>,
    /// The number of parties that hold signals back.
    holds: Arc<Mutex<u32>>,
}

/// While one lives, signals only raise the flag; also if its owner panics.
struct Hold<'a> {
    interrupt: &'a Interrupt,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.interrupt.change_holds(|holds| holds - 1);
    }
}

impl Interrupt {
    /// From here on SIGINT, SIGTERM and SIGHUP only raise the flag.
    pub fn catch() -> Result<Interrupt, Refusal> {
        let interrupt = Interrupt::open()?;
        interrupt.change_holds(|holds| holds + 1);
        Ok(interrupt)
    }

    /// Signals end the command, as they do by themselves, but while code is
    /// [`holding`](Self::holding) them.
    pub fn open() -> Result<Interrupt, Refusal> {
        let interrupt = Interrupt {
            is_wanted: Arc::default(),
            is_open: Arc::new(AtomicBool::new(true)),
            holds: Arc::default(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, Arc::clone(&interrupt.is_open))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupt.is_wanted)))
                .map_err(|error| Refusal::new(format!("signals can't be caught: {error}")))?;
        }
        Ok(interrupt)
    }

    /// Does `body`, in which signals only raise the flag: it has a program to end, or a host to put
    /// back. Then ends the command if one has come that is no longer held back.
    pub fn holding<T>(&self, body: impl FnOnce() -> T) -> T {
        self.change_holds(|holds| holds + 1);
        let hold = Hold { interrupt: self };
        let value = body();
        drop(hold);
        if self.is_wanted() && self.is_open.load(Ordering::Relaxed) {
            end_by(SIGINT);
        }
        value
    }

    fn change_holds(&self, change: impl FnOnce(u32) -> u32) {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        *holds = change(*holds);
        self.is_open.store(*holds == 0, Ordering::Relaxed);
    }

    /// Raised once a signal has come.
    pub fn flag(&self) -> &AtomicBool {
        &self.is_wanted
    }

    /// Returns true if a signal has come.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }
}
