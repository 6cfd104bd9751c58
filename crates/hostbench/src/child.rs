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
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("`{name}` can't be started: {error}"))?;
    let stdout = child.stdout.take().map(collect);
    let stderr = collect(child.stderr.take().expect("standard error is a pipe"));
    match wait(&mut child, limit, interrupt) {
        Ok(()) => {
            let text = stdout.and_then(|stdout| stdout.recv_timeout(END_LIMIT).ok());
            Ok(text.unwrap_or_default())
        }
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

fn wait(child: &mut Child, limit: Duration, interrupt: &AtomicBool) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) => {}
            Err(error) => return Err(format!("it can't be waited for: {error}")),
        }
        if interrupt.load(Ordering::Relaxed) || start.elapsed() > limit {
            end(child);
            return Err(match interrupt.load(Ordering::Relaxed) {
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
            "nobody waited for the sleeper"
        );
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        std::fs::remove_file(&pid_file).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        // Whoever adopts orphans takes the dead one away soon, or never: a zombie has no memory.
        let state = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero()));
        assert!(
            state.map_or(true, |sizes| sizes.starts_with("0 ")),
            "the sleeper lives"
        );
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
