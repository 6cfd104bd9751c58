//! Running one measured program to its end, with a time limit, ready to be interrupted.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupt::Interrupt;

/// How long a program that was told to end may take.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Runs `command` and returns what it wrote to standard output. If it fails, the last line it
/// complained with is part of the reason. After `limit` it is given up.
pub fn run(command: &[OsString], limit: Duration, interrupt: &Interrupt) -> Result<String, String> {
    let name = command[0].to_string_lossy().into_owned();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("`{name}` can't be started: {error}"))?;
    let stdout = collect(child.stdout.take().expect("standard output is a pipe"));
    let stderr = collect(child.stderr.take().expect("standard error is a pipe"));
    match wait(&mut child, limit, interrupt) {
        Ok(()) => Ok(stdout.recv_timeout(END_LIMIT).unwrap_or_default()),
        Err(reason) => {
            let complaint = stderr.recv_timeout(END_LIMIT).unwrap_or_default();
            let last = complaint.lines().rfind(|line| !line.trim().is_empty());
            Err(last.map_or(reason.clone(), |last| format!("{reason}: {}", last.trim())))
        }
    }
}

/// Reads a stream to its end, so that the program never waits for us. What it leaves behind may
/// hold the stream open, so whoever waits for the text sets a limit.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is all there is to tell.
        let _ = stream.read_to_end(&mut bytes);
        // Nobody waits any more if the limit has passed.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn wait(child: &mut Child, limit: Duration, interrupt: &Interrupt) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) => {}
            Err(error) => return Err(format!("it can't be waited for: {error}")),
        }
        if interrupt.is_wanted() || start.elapsed() > limit {
            end(child);
            return Err(match interrupt.is_wanted() {
                true => "interrupted".to_owned(),
                false => format!("it took longer than {} s", limit.as_secs()),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Ends the program and its children: first politely, since `tidemark run` has a tree to end.
fn end(child: &mut Child) {
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
