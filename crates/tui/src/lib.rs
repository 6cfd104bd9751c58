//! The live screen of a run: `tidemark top`.
//!
//! [`screen`] draws a state as lines of text, and nothing else; [`view`] is what a person has
//! chosen to see; [`keys`] reads what is typed; [`terminal`] has the terminal as it is needed, and
//! puts it back. The loop here asks the run at an interval, through what it is lent for that.

#![forbid(unsafe_code)]

pub mod keys;
pub mod screen;
pub mod terminal;
pub mod view;

use std::time::{Duration, Instant};

use tidemark_results::control::{Reply, Request, RunState};
use tidemark_results::{Refusal, refuse};

use keys::Keys;
use terminal::{Terminal, Typed};
use view::{Outcome, View};

/// The part that asks the run, and waits for its reply.
pub type Ask<'a> = &'a mut dyn FnMut(&Request) -> Result<Reply, Refusal>;

/// Shows the run until somebody quits. The screen is drawn anew at each `interval`.
///
/// # Errors
/// There is no terminal, or the run is over.
pub fn show(ask: Ask<'_>, interval: Duration) -> Result<(), Refusal> {
    let mut state = state_of(ask)?;
    let mut terminal = Terminal::open()?;
    let (mut view, mut keys) = (View::default(), Keys::default());
    let mut next = Instant::now() + interval;
    loop {
        let size = terminal.size();
        view.settle(&state, size.rows);
        terminal.draw(&screen::draw(&state, &view, size, terminal.paint()))?;
        let left = next.saturating_duration_since(Instant::now());
        let typed = match terminal.read(left) {
            Typed::Nothing => vec![],
            Typed::End => return Ok(()),
            Typed::Bytes(bytes) => keys.take(&bytes),
        };
        for key in typed {
            match view.press(key, &state) {
                Outcome::Nothing => {}
                Outcome::Quit => return Ok(()),
                Outcome::Ask(request) => {
                    view.tell(&ask(&request)?);
                    next = Instant::now();
                }
            }
        }
        if Instant::now() >= next {
            state = state_of(ask)?;
            next = Instant::now() + interval;
        }
    }
}

/// The state of the run.
pub fn state_of(ask: Ask<'_>) -> Result<RunState, Refusal> {
    match ask(&Request::Stats)? {
        Reply::Stats(state) => Ok(*state),
        other => refuse!("the run replies to something else: {}", other.to_line()),
    }
}
