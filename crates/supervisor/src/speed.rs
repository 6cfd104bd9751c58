//! The speed of a program without the recorder: measured in a run by itself, or estimated from the
//! processor's clock.
//!
//! A second run of a program may do harm: it may append to a file, send a message, or
//! read what can be read but once. So it is [confined](confine) by default: it
//! changes no file outside a folder of its own, which is removed, opens no socket, signals nothing
//! outside, and is ended after a while. Where that makes it fail, it is not timed, and the caller
//! gets the reason. It has its input once more where that is a file; where it is a pipe or a
//! terminal, a byte is offered, and a program that takes it has not been timed.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, PipeReader, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::process::{Pid, Signal};
use tidemark_live::sys::confine::confine;
use tidemark_live::sys::measure;
use tidemark_results::Refusal;
use tidemark_trace::Speed;

use crate::folder::PrivateFolder;
use crate::program::plain;

/// A program is run by itself until its runs have taken so long, but at most so often.
const RUNS_LONG: Duration = Duration::from_secs(1);
const RUNS_MAX: u32 = 5;
/// The longest time that a program that is confined has for all its runs.
const CONFINED_LONG: Duration = Duration::from_secs(60);
/// The device that takes all that is written to it: programs open it themselves.
const SINK: &str = "/dev/null";

/// Steps of a stretch, each of which waits for the one before: a multiplication and an exclusive
/// or, which keeps a compiler from multiplying the factors first.
const STRETCH: u64 = 100_000;
/// Stretches that are tried; the quickest counts, since nothing has interrupted it.
const STRETCHES: u32 = 40;
/// The length of a step, in cycles: three and one, on x86-64 since 2008 and on most of aarch64.
const CYCLES: f64 = 4.0;
/// Instructions that ordinary programs execute in a cycle. Those tried came to 1.2 to 3.7.
const INSTRUCTIONS_A_CYCLE: f64 = 2.2;

/// The reason why a program was not timed by itself.
#[derive(Debug)]
pub enum Untimed {
    /// The kernel can't confine it.
    Unconfined(io::Error),
    /// The program failed, with this status.
    Failed(ExitStatus),
    /// The program reads input that can be read only once.
    Reads,
    /// The program took longer than it may.
    TooLong,
    /// The program could not be started.
    Unstarted(String),
}

impl fmt::Display for Untimed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untimed::Unconfined(_) => formatter.write_str(
                "this kernel has no Landlock of version 6 (Linux 6.12), by which a second run \
                 changes nothing",
            ),
            Untimed::Failed(status) => write!(
                formatter,
                "where it may change no files and open no sockets it ended with {status}"
            ),
            Untimed::Reads => formatter.write_str("it reads input that can be read only once"),
            Untimed::TooLong => write!(
                formatter,
                "it takes longer than {} s",
                CONFINED_LONG.as_secs()
            ),
            Untimed::Unstarted(why) => formatter.write_str(why),
        }
    }
}

/// Runs the program by itself as it is, whatever it does, with the input that is a file and else
/// without, and throws its output away. The quickest run counts: it had the machine most to itself.
pub fn time(program: &Path, words: &[OsString]) -> Result<Speed, Untimed> {
    time_runs(program, words, None)
}

/// Runs the program by itself, as [`time`] does, confined so that it can change nothing outside.
///
/// # Errors
/// If it can't be confined, or does not come to its end so.
pub fn time_confined(program: &Path, words: &[OsString]) -> Result<Speed, Untimed> {
    let unstarted = |refusal: Refusal| Untimed::Unstarted(refusal.to_string());
    let scratch = PrivateFolder::new().map_err(unstarted)?;
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let folder = scratch.path();
        // What a thread starts is confined as it is, and this thread stays free.
        scope.spawn(move || {
            let timed = confine_to(folder)
                .map_err(Untimed::Unconfined)
                .and_then(|()| time_runs(program, words, Some(folder)));
            // Who asked does not wait any more if it took too long.
            let _ = sender.send(timed);
        });
        match receiver.recv_timeout(CONFINED_LONG) {
            Ok(timed) => timed,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                end_descendants(std::process::id());
                Err(Untimed::TooLong)
            }
        }
    })
}

fn confine_to(folder: &Path) -> io::Result<()> {
    let (folder, sink) = (File::open(folder)?, File::open(SINK)?);
    confine(&[folder.as_fd()], &[sink.as_fd()])
}

/// Kills all that `process` has started.
fn end_descendants(process: u32) {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return;
    };
    for task in tasks.flatten() {
        let children = std::fs::read_to_string(task.path().join("children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let Some((pid, number)) = child
                .parse()
                .ok()
                .and_then(|number: i32| Some((Pid::from_raw(number)?, number)))
            else {
                continue;
            };
            end_descendants(number.cast_unsigned());
            // One that has ended meanwhile needs no ending.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

fn time_runs(program: &Path, words: &[OsString], scratch: Option<&Path>) -> Result<Speed, Untimed> {
    let began = Instant::now();
    let mut quickest: Option<(u64, Speed)> = None;
    for _ in 0..RUNS_MAX {
        let (elapsed_ns, speed) = time_once(program, words, scratch)?;
        if quickest.is_none_or(|(least_ns, _)| elapsed_ns < least_ns) {
            quickest = Some((elapsed_ns, speed));
        }
        if began.elapsed() > RUNS_LONG {
            break;
        }
    }
    let (_, speed) = quickest.expect("there is a first run");
    Ok(speed)
}

fn time_once(
    program: &Path,
    words: &[OsString],
    scratch: Option<&Path>,
) -> Result<(u64, Speed), Untimed> {
    let unstarted = |error: io::Error| {
        Untimed::Unstarted(format!("`{}`: {}", program.display(), plain(&error)))
    };
    let mut command = Command::new(program);
    command.args(words);
    if let Some(folder) = scratch {
        command.env("TMPDIR", folder);
    }
    let (input, offered) = input().map_err(unstarted)?;
    // Some programs do less where they see that what they write is thrown away.
    command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (began, before) = (Instant::now(), measure::children_ns());
    let mut child = command.spawn().map_err(unstarted)?;
    let outputs: [Option<Box<dyn io::Read + Send>>; 2] = [
        child.stdout.take().map(|it| Box::new(it) as _),
        child.stderr.take().map(|it| Box::new(it) as _),
    ];
    for mut output in outputs.into_iter().flatten() {
        // What it leaves behind may hold its output open for ever.
        std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
    }
    let status = child.wait().map_err(unstarted)?;
    let elapsed_ns = began.elapsed().as_nanos() as u64;
    let is_left = |offered: &PipeReader| rustix::io::ioctl_fionread(offered).is_ok_and(|it| it > 0);
    if offered.is_some_and(|offered| !is_left(&offered)) {
        return Err(Untimed::Reads);
    }
    if !status.success() {
        return Err(Untimed::Failed(status));
    }
    let (user, all) = measure::children_ns();
    let speed = Speed::Measured {
        user_ns: user - before.0,
        system_ns: (all - user) - (before.1 - before.0),
        elapsed_ns,
    };
    Ok((elapsed_ns, speed))
}

/// The input of a run by itself: that of this command once more where that is a file, nothing where
/// there is none; else a pipe with a byte in it, and that pipe, to see whether the byte is taken.
fn input() -> io::Result<(Stdio, Option<PipeReader>)> {
    let own = io::stdin();
    let kind = rustix::fs::fstat(own.as_fd()).map(|found| FileType::from_raw_mode(found.st_mode));
    match kind {
        Ok(FileType::RegularFile) => {
            let mut file = File::open("/proc/self/fd/0")?;
            file.seek(SeekFrom::Start(rustix::fs::tell(own.as_fd())?))?;
            Ok((file.into(), None))
        }
        Ok(FileType::Fifo | FileType::Socket) => offer(),
        Ok(FileType::CharacterDevice) if rustix::termios::isatty(own.as_fd()) => offer(),
        Ok(_) | Err(_) => Ok((Stdio::null(), None)),
    }
}

fn offer() -> io::Result<(Stdio, Option<PipeReader>)> {
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(b"\n")?;
    Ok((reader.try_clone()?.into(), Some(reader)))
}

/// The time of an instruction of an ordinary program here, by the processor's clock. Takes
/// some hundredths of a second.
pub fn calibrate() -> Speed {
    let stretch_ns = |_| {
        let began = Instant::now();
        let (mut number, factor) = (black_box(3_u64), black_box(0x9E37_79B9_7F4A_7C15));
        let mask = black_box(0x5555_u64);
        for _ in 0..STRETCH {
            number = number.wrapping_mul(factor) ^ mask;
        }
        black_box(number);
        began.elapsed().as_nanos() as u64
    };
    let quickest_ns = (0..STRETCHES).map(stretch_ns).min().unwrap_or(0);
    let cycle_ns = quickest_ns as f64 / STRETCH as f64 / CYCLES;
    Speed::Calibrated {
        unit_fs: ((cycle_ns / INSTRUCTIONS_A_CYCLE * 1e6) as u64).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> [OsString; 2] {
        ["-c", script].map(OsString::from)
    }

    const SHELL: &str = "/bin/sh";

    #[test]
    fn a_processor_of_today_takes_a_tenth_of_a_nanosecond_or_a_few() {
        let Speed::Calibrated { unit_fs } = calibrate() else {
            panic!("a clock is calibrated");
        };
        assert!((20_000..5_000_000).contains(&unit_fs), "{unit_fs}");
    }

    #[test]
    fn a_program_that_fails_by_itself_is_not_timed() {
        let told = time(Path::new(SHELL), &shell("exit 3")).unwrap_err();
        assert!(told.to_string().contains("exit status: 3"), "{told}");
        let speed = time(Path::new(SHELL), &shell("exit 0")).unwrap();
        let Speed::Measured { elapsed_ns, .. } = speed else {
            panic!("it was run");
        };
        assert!(elapsed_ns > 0);
    }

    #[test]
    fn found3_b1_a_second_run_that_is_confined_changes_nothing() {
        let scratch = PrivateFolder::new().unwrap();
        let log = scratch.path().join("log");
        std::fs::write(&log, "one\n").unwrap();
        let append = format!("echo two >> {}", log.display());
        match time_confined(Path::new(SHELL), &shell(&append)) {
            Err(Untimed::Unconfined(_)) => {
                return tidemark_testing::skip("this kernel has no Landlock of version 6");
            }
            Err(Untimed::Failed(_)) => {}
            other => panic!("it was let write: {other:?}"),
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\n");
        // Files that it leaves in its own folder do no harm.
        let own = shell("echo > $TMPDIR/own && echo gone > /dev/null");
        let speed = time_confined(Path::new(SHELL), &own).unwrap();
        assert!(matches!(
            speed,
            Speed::Measured {
                elapsed_ns: 1..,
                ..
            }
        ));
        // The same without restraint is done.
        time(Path::new(SHELL), &shell(&append)).unwrap();
        assert!(
            std::fs::read_to_string(&log)
                .unwrap()
                .starts_with("one\ntwo\n")
        );
    }

    #[test]
    fn input_that_is_there_but_once_is_not_taken() {
        let (_, offered) = offer().unwrap();
        let mut offered = offered.expect("a pipe");
        assert_eq!(rustix::io::ioctl_fionread(&offered), Ok(1));
        let mut all = vec![];
        io::Read::read_to_end(&mut offered, &mut all).unwrap();
        assert_eq!(all, b"\n");
    }
}
