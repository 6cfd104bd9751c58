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

use tidemark_results::control::{CELLS_MAX, MemoryMap, Reply, Request, RunState};
use tidemark_results::{Refusal, refuse};

use keys::Keys;
use screen::{Scene, Size};
use terminal::{Terminal, Typed};
use view::{Outcome, View};

/// The part that asks the run, and waits for its reply.
pub type Ask<'a> = &'a mut dyn FnMut(&Request) -> Result<Reply, Refusal>;

/// The time after which the map of a task that has just been chosen is asked for again: none may
/// have been drawn before. It doubles each time, up to the interval.
const MAP_PAUSE: Duration = Duration::from_millis(50);

/// Shows the run until the user quits. The screen is drawn anew at each `interval`.
///
/// # Errors
/// There is no terminal, or the run is over.
pub fn show(ask: Ask<'_>, interval: Duration) -> Result<(), Refusal> {
    let mut state = state_of(ask)?;
    let mut terminal = Terminal::open()?;
    let (mut view, mut keys) = (View::default(), Keys::default());
    let mut map = Look::default();
    let mut next = Instant::now() + interval;
    loop {
        let size = terminal.size();
        view.settle(&state, size.rows);
        map.follow(ask, &view, size, interval)?;
        let scene = Scene {
            state: &state,
            map: map.map.as_ref(),
            view: &view,
        };
        terminal.draw(&screen::draw(scene, size, terminal.paint()))?;
        let until = map.next.map_or(next, |due| due.min(next));
        let left = until.saturating_duration_since(Instant::now());
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

/// The map of the chosen task, asked for as long as it is shown.
#[derive(Default)]
struct Look {
    map: Option<MemoryMap>,
    task: Option<u32>,
    pause: Duration,
    /// The time at which to ask next; `None` if no map is shown.
    next: Option<Instant>,
}

impl Look {
    fn follow(
        &mut self,
        ask: Ask<'_>,
        view: &View,
        size: Size,
        interval: Duration,
    ) -> Result<(), Refusal> {
        let task = view.chosen.filter(|_| view.map_rows(size.rows) > 0);
        if task != self.task {
            *self = Look {
                task,
                pause: MAP_PAUSE,
                next: task.map(|_| Instant::now()),
                ..Look::default()
            };
        }
        let Some(pid) = task.filter(|_| self.next.is_some_and(|due| Instant::now() >= due)) else {
            return Ok(());
        };
        let cells = (size.columns as u32).clamp(1, CELLS_MAX);
        let cells = Some(cells);
        self.map = match ask(&Request::Map { pid, cells })? {
            Reply::Map(map) => Some(*map),
            // It has just ended, or the run is of a version that has no maps.
            _ => None,
        };
        self.next = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(interval);
        Ok(())
    }
}

/// The state of the run.
pub fn state_of(ask: Ask<'_>) -> Result<RunState, Refusal> {
    match ask(&Request::Stats)? {
        Reply::Stats(state) => Ok(*state),
        other => refuse!("the run replies to something else: {}", other.to_line()),
    }
}
