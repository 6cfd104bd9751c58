//! Running one measured program to its end, with a time limit, ready to be interrupted.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupt::Interrupt;

/// How long one run may take.
const RUN_LIMIT: Duration = Duration::from_secs(1800);
/// How long a program that was told to end may take.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Runs `command` and returns what it wrote to standard output.
pub fn run(command: &[OsString], interrupt: &Interrupt) -> Result<String, String> {
    let name = command[0].to_string_lossy().into_owned();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("`{name}` can't be started: {error}"))?;
    let mut stdout = child.stdout.take().expect("standard output is a pipe");
    let reader = std::thread::spawn(move || {
        let mut output = String::new();
        stdout.read_to_string(&mut output).map(|_| output)
    });
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) => {}
            Err(error) => return Err(format!("it can't be waited for: {error}")),
        }
        if interrupt.is_wanted() || start.elapsed() > RUN_LIMIT {
            end(&mut child);
            return Err(match interrupt.is_wanted() {
                true => "interrupted".to_owned(),
                false => format!("it took longer than {} s", RUN_LIMIT.as_secs()),
            });
        }
        std::thread::sleep(POLL);
    }
    match reader.join() {
        Ok(Ok(output)) => Ok(output),
        _ => Err("its output can't be read".to_owned()),
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
