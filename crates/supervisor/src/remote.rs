//! The other end of a control socket: finding a run, and asking it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_results::control::{MemoryMap, Reply, Request};
use tidemark_results::{Refusal, refuse};

use crate::folder;
use crate::program::plain;

/// The time that a run has to take a request, and then to reply.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause between two requests for a map, in which an engine usually draws it.
const MAP_PAUSE: Duration = Duration::from_millis(20);
/// The longest reply: a run has 1024 tasks at most.
const REPLY_BYTES_MAX: u64 = 16 << 20;

/// A run that can be asked.
#[derive(Debug)]
pub struct Remote {
    /// The run, as messages name it: it may be gone by then.
    name: String,
    stream: UnixStream,
    /// The part of the next reply that has come.
    input: Vec<u8>,
}

/// The longest command that is shown beside a process id.
const COMMAND_MAX: usize = 40;

/// The process id of a run, and what it runs if that can be read: `4711 (sort big.txt)`.
fn describe(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    match command_of(&line) {
        Some(command) => format!("{pid} ({command})"),
        None => pid.to_string(),
    }
}

/// The command of a `tidemark run`, by its own command line, whose words end in zero bytes: what
/// follows `--`, or else all that follows `run`.
fn command_of(line: &[u8]) -> Option<String> {
    let words: Vec<String> = line
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let after = |mark: &str| words.iter().position(|word| word == mark).map(|at| at + 1);
    let from = after("--").or_else(|| after("run"))?;
    let command = words[from..].join(" ");
    let shown: String = command
        .trim()
        .chars()
        .map(|character| {
            if character.is_control() {
                '?'
            } else {
                character
            }
        })
        .take(COMMAND_MAX)
        .collect();
    let is_cut = command.trim().chars().count() > COMMAND_MAX;
    (!shown.is_empty()).then(|| if is_cut { format!("{shown}…") } else { shown })
}

impl Remote {
    /// Connects to the run at `socket`; to that of the `tidemark run` with process id `run`; or to
    /// the only one there is.
    pub fn find(socket: Option<&Path>, run: Option<u32>) -> Result<Remote, Refusal> {
        if let Some(path) = socket {
            return Remote::connect(path, format!("the run at `{}`", path.display()));
        }
        let name = |pid: u32| format!("run {}", describe(pid));
        let runs = folder::find_runs();
        let pids = || {
            let pids: Vec<String> = runs.iter().map(|(pid, _)| describe(*pid)).collect();
            pids.join(", ")
        };
        match (run, &*runs) {
            (Some(wanted), runs) => match runs.iter().find(|(pid, _)| *pid == wanted) {
                Some((pid, path)) => Remote::connect(path, name(*pid)),
                None if runs.is_empty() => refuse!("no `tidemark run` of this user takes requests"),
                None => refuse!(
                    "{wanted} is no `tidemark run` of this user that takes requests; there are: {}",
                    pids()
                ),
            },
            (None, []) => refuse!("no `tidemark run` of this user takes requests"),
            (None, [(pid, path)]) => Remote::connect(path, name(*pid)),
            (None, _) => refuse!("several runs take requests; name one: {}", pids()),
        }
    }

    fn connect(path: &Path, name: String) -> Result<Remote, Refusal> {
        let connected = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => Ok(Remote {
                name,
                stream,
                input: vec![],
            }),
            Err(error) => refuse!("`{}`: {}; is the run over?", path.display(), plain(&error)),
        }
    }

    /// Asks, and waits for the reply.
    ///
    /// # Errors
    /// The run is gone, does not reply within ten seconds, or refuses.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Refusal> {
        match self.exchange(request)? {
            Reply::Refused(line) => Err(Refusal::new(line)),
            reply => Ok(reply),
        }
    }

    /// The map of a task as it is now.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), or the task's engine draws none within ten seconds: the task is
    /// stopped, or has just ended.
    pub fn ask_map(&mut self, pid: u32, cells: Option<u32>) -> Result<MemoryMap, Refusal> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            // The first reply is an earlier drawing.
            let waited_s = began.elapsed().as_secs_f64();
            if let Reply::Map(map) = self.ask(&Request::Map { pid, cells })?
                && map.age_s.is_some_and(|age_s| age_s < waited_s)
            {
                return Ok(*map);
            }
            std::thread::sleep(MAP_PAUSE);
        }
        refuse!("task {pid} does not say where its pages are; is it stopped?")
    }

    /// Makes a request as [`ask`](Self::ask) does, except that a refusal is a reply like any other.
    pub fn exchange(&mut self, request: &Request) -> Result<Reply, Refusal> {
        let line = self.exchange_lines(request.to_line().as_bytes());
        Reply::parse(&line.map_err(|error| self.complain(&error))?)
    }

    fn exchange_lines(&mut self, line: &[u8]) -> std::io::Result<Vec<u8>> {
        self.stream.write_all(line)?;
        let mut bytes = [0; 1 << 16];
        loop {
            if let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
                return Ok(self.input.drain(..=end).collect());
            }
            if self.input.len() as u64 > REPLY_BYTES_MAX {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            match self.stream.read(&mut bytes)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => self.input.extend_from_slice(&bytes[..read]),
            }
        }
    }

    fn complain(&self, error: &std::io::Error) -> Refusal {
        use std::io::ErrorKind as Kind;
        let name = &self.name;
        Refusal::new(match error.kind() {
            Kind::WouldBlock | Kind::TimedOut => {
                format!("{name} gives no reply within 10 seconds")
            }
            Kind::UnexpectedEof | Kind::BrokenPipe | Kind::ConnectionReset => {
                format!("{name} is over")
            }
            _ => format!("{name}: {}", plain(error)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_b12_a_run_is_told_by_what_it_runs() {
        let line = b"/usr/bin/tidemark\0run\0--memory\08M\0--\0sort\0-r\0big.txt\0";
        assert_eq!(command_of(line).as_deref(), Some("sort -r big.txt"));
        let line = b"tidemark\0run\0--memory\08M\0sort\0";
        assert_eq!(command_of(line).as_deref(), Some("--memory 8M sort"));
        assert_eq!(command_of(b"tidemark\0keep\0"), None);
        assert_eq!(command_of(b""), None);
        let long = format!("tidemark\0run\0--\0{}\0", "x".repeat(99));
        let told = command_of(long.as_bytes()).unwrap();
        assert_eq!(told, format!("{}…", "x".repeat(40)));
        assert!(describe(std::process::id()).starts_with(&std::process::id().to_string()));
    }
}
