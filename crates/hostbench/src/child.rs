//! Running one measured program to its end, with a time limit, ready to be interrupted.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The time that a program that was told to end may take.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// The reason why a program did not come to its end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program failed by itself, or a part that it needs did. Holds the line of the error.
    Failed(String),
    /// The program was ended, since it took longer than this.
    TooLong(Duration),
    /// The program was ended, since the command was asked to end.
    Interrupted,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Failed(reason) => formatter.write_str(reason),
            Stop::TooLong(limit) => write!(formatter, "it took longer than {} s", limit.as_secs()),
            Stop::Interrupted => formatter.write_str("interrupted"),
        }
    }
}

/// Runs the words and returns what they wrote to standard output: see [`run_command`].
pub fn run(words: &[OsString], limit: Duration, interrupt: &AtomicBool) -> Result<String, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdout(Stdio::piped());
    run_command(&mut command, limit, interrupt)
}

/// Runs `command` and returns what it wrote to standard output, if that is a pipe. If it fails, the
/// last line it complained with is part of the reason. After `limit` it is given up: whatever it
/// has started in its process group ends with it.
pub fn run_command(
    command: &mut Command,
    limit: Duration,
    interrupt: &AtomicBool,
) -> Result<String, String> {
    let mut child = start(command)?;
    let stdout = child.stdout.take().map(collect);
    watch(&mut child, limit, interrupt, &mut |_| Ok(())).map_err(|stop| stop.to_string())?;
    let text = stdout.and_then(|stdout| stdout.recv_timeout(END_LIMIT).ok());
    Ok(text.unwrap_or_default())
}

/// Starts `command` in a process group of its own, with its complaints to be collected.
pub fn start(command: &mut Command) -> Result<Child, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("`{name}` can't be started: {error}"))
}

/// Waits for a started program, and asks `look` every now and then whether it may go on. If it
/// fails, the last line it complained with is part of the reason. A program that may not go on, or
/// takes longer than `limit`, is ended, and with it all it has started in its process group.
pub fn watch(
    child: &mut Child,
    limit: Duration,
    interrupt: &AtomicBool,
    look: &mut dyn FnMut(u32) -> Result<(), String>,
) -> Result<(), Stop> {
    let stderr = collect(child.stderr.take().expect("standard error is a pipe"));
    let stop = match wait(child, limit, interrupt, look) {
        Ok(()) => return Ok(()),
        Err(Stop::Failed(reason)) => reason,
        Err(stop) => return Err(stop),
    };
    let complaint = stderr.recv_timeout(END_LIMIT).unwrap_or_default();
    let last = complaint.lines().rfind(|line| !line.trim().is_empty());
    let reason = last.map_or(stop.clone(), |last| format!("{stop}: {}", last.trim()));
    Err(Stop::Failed(reason))
}

/// Reads a stream to its end, so that the program never waits for us. What it leaves behind may
/// hold the stream open, so a wait for the text has a limit.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is all there is to tell.
        let _ = stream.read_to_end(&mut bytes);
        // No thread waits any more if the limit has passed.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn wait(
    child: &mut Child,
    limit: Duration,
    interrupt: &AtomicBool,
    look: &mut dyn FnMut(u32) -> Result<(), String>,
) -> Result<(), Stop> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(Stop::Failed(format!("it ended with {status}"))),
            Ok(None) => {}
            Err(error) => return Err(Stop::Failed(format!("it can't be waited for: {error}"))),
        }
        let stop = if interrupt.load(Ordering::Relaxed) {
            Some(Stop::Interrupted)
        } else if start.elapsed() > limit {
            Some(Stop::TooLong(limit))
        } else {
            look(child.id()).err().map(Stop::Failed)
        };
        if let Some(stop) = stop {
            end(child);
            return Err(stop);
        }
        std::thread::sleep(POLL);
    }
}

/// Ends the program and its children: first politely, since `tidemark run` has a tree to end.
pub fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let start = Instant::now();
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(group) = group {
            // A group that is gone needs no ending.
            let _ = kill_process_group(group, signal);
        }
        while start.elapsed() < END_LIMIT {
            if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            std::thread::sleep(POLL);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_ends_with_all_it_has_started() {
        let pid_file = std::env::temp_dir().join(format!("child-limit-{}", std::process::id()));
        let script = format!("sleep 60 & echo $! >{}; wait", pid_file.display());
        let words = ["sh", "-c", &script].map(OsString::from);
        let begin = Instant::now();
        let told = run(&words, Duration::from_secs(1), &AtomicBool::new(false)).unwrap_err();
        assert!(told.contains("it took longer than 1 s"), "{told}");
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "the sleeper was not waited for"
        );
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        std::fs::remove_file(&pid_file).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        // The adopter of orphans takes the dead one away soon, or never: a zombie has no memory.
        let lives = || {
            let sizes = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero()));
            sizes.is_ok_and(|sizes| !sizes.starts_with("0 "))
        };
        // A signal that ends a process takes its time on a busy machine.
        while lives() && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!lives(), "the sleeper lives");
    }

    #[test]
    fn what_a_command_wrote_is_returned_and_its_last_complaint_told() {
        let run = |script: &str| {
            let words = ["sh", "-c", script].map(OsString::from);
            run(&words, Duration::from_secs(60), &AtomicBool::new(false))
        };
        assert_eq!(run("echo one; echo two"), Ok("one\ntwo\n".to_owned()));
        let told = run("echo first >&2; echo last >&2; exit 3").unwrap_err();
        assert!(told.contains("exit status: 3: last"), "{told}");
    }
}
