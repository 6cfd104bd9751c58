//! The terminal: another screen without echo while this lives, and the old one afterwards.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use tidemark_results::Refusal;

use crate::screen::{Line, Paint, Size};

/// Another screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The cursor, and the old screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell it.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// The terminal that this process has on its standard input and output.
pub struct Terminal {
    before: Termios,
    is_over: Arc<AtomicBool>,
    paint: Paint,
}

/// The outcome of a wait for keys.
#[derive(Debug)]
pub enum Typed {
    /// The time is over, or the terminal has another size.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The terminal is gone, or this process is to end.
    End,
}

impl Terminal {
    /// Takes the terminal.
    pub fn open() -> Result<Terminal, Refusal> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).map_err(|error| Refusal::new(error.to_string()))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let signals = [SIGHUP, SIGINT, SIGTERM].map(|signal| (signal, Arc::clone(&is_over)));
        // A change of size only has to end a wait.
        let changes = [(SIGWINCH, Arc::default())];
        for (signal, flag) in signals.into_iter().chain(changes) {
            signal_hook::flag::register(signal, flag)
                .map_err(|error| Refusal::new(format!("signals can't be caught: {error}")))?;
        }
        let terminal = Terminal {
            before: before.clone(),
            is_over,
            paint: Paint::of_environment(),
        };
        let mut raw = before;
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Flush, &raw)
            .map_err(|error| Refusal::new(error.to_string()))?;
        write(ENTER)?;
        Ok(terminal)
    }

    /// The means to set lines apart.
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// The size of the screen now.
    pub fn size(&self) -> Size {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
                columns: size.ws_col.into(),
                rows: size.ws_row.into(),
            },
            _ => USUAL,
        }
    }

    /// Shows these lines, from the top, and nothing else.
    pub fn draw(&mut self, lines: &[Line]) -> Result<(), Refusal> {
        let lines: Vec<String> = lines.iter().map(|line| line.painted(self.paint)).collect();
        // In one piece, so that no half of it is seen.
        write(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")))
    }

    /// Waits for keys, for `limit` at most.
    pub fn read(&mut self, limit: Duration) -> Typed {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let stdin = std::io::stdin();
        let mut files = [PollFd::new(&stdin, PollFlags::IN)];
        let ready = poll(&mut files, Some(&limit));
        if self.is_over.load(Relaxed) {
            return Typed::End;
        }
        if !matches!(ready, Ok(1..)) {
            return Typed::Nothing;
        }
        let mut bytes = [0; 256];
        // Not through the buffer of the standard library: what lies there ends no wait.
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) | Err(_) => Typed::End,
            Ok(read) => Typed::Bytes(bytes[..read].to_vec()),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no more of this.
        let _ = write(LEAVE);
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
    }
}

fn write(text: &str) -> Result<(), Refusal> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written
        .and_then(|()| stdout.flush())
        .map_err(|error| Refusal::new(format!("the terminal can't be written to: {error}")))
}
