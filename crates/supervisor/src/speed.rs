//! The speed of a program without the recorder: it is run by itself if that is asked for, and else
//! told from the machine's clock.

use std::ffi::OsString;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidemark_live::sys::measure;
use tidemark_results::{Refusal, refuse};
use tidemark_trace::Speed;

use crate::program::plain;

/// A program is run by itself until its runs have taken so long, but at most so often.
const RUNS_LONG: Duration = Duration::from_secs(1);
const RUNS_MAX: u32 = 5;

/// Steps of a stretch, each of which waits for the one before: a multiplication and an exclusive
/// or, which keeps a compiler from multiplying the factors first.
const STRETCH: u64 = 100_000;
/// Stretches that are tried; the quickest counts, since nothing has interrupted it.
const STRETCHES: u32 = 40;
/// The length of a step, in cycles: three and one, on x86-64 since 2008 and on most of aarch64.
const CYCLES: f64 = 4.0;
/// Instructions that ordinary programs execute in a cycle. Those tried came to 1.2 to 3.7.
const INSTRUCTIONS_A_CYCLE: f64 = 2.2;

/// Runs the program by itself, without input, and throws its output away. The quickest run counts:
/// it had the machine most to itself.
pub fn time(program: &Path, words: &[OsString]) -> Result<Speed, Refusal> {
    let began = Instant::now();
    let mut quickest: Option<(u64, Speed)> = None;
    for _ in 0..RUNS_MAX {
        let (elapsed_ns, speed) = time_once(program, words)?;
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

fn time_once(program: &Path, words: &[OsString]) -> Result<(u64, Speed), Refusal> {
    let (began, before) = (Instant::now(), measure::children_ns());
    let status = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let elapsed_ns = began.elapsed().as_nanos() as u64;
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => refuse!(
            "`--time`: `{}` by itself, without input, ended with {status}; leave out `--time`",
            program.display()
        ),
        Err(error) => refuse!("`{}`: {}", program.display(), plain(&error)),
    }
    let (user, all) = measure::children_ns();
    let speed = Speed::Measured {
        user_ns: user - before.0,
        system_ns: (all - user) - (before.1 - before.0),
        elapsed_ns,
    };
    Ok((elapsed_ns, speed))
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

    #[test]
    fn a_processor_of_today_takes_a_tenth_of_a_nanosecond_or_a_few() {
        let Speed::Calibrated { unit_fs } = calibrate() else {
            panic!("a clock is calibrated");
        };
        assert!((20_000..5_000_000).contains(&unit_fs), "{unit_fs}");
    }

    #[test]
    fn a_program_that_fails_by_itself_is_not_timed() {
        let words = [OsString::from("-c"), OsString::from("exit 3")];
        let told = time(Path::new("/bin/sh"), &words).unwrap_err().to_string();
        assert!(told.contains("exit status: 3"), "{told}");
        let words = [
            OsString::from("-c"),
            OsString::from("read line || exit 0; exit 1"),
        ];
        let speed = time(Path::new("/bin/sh"), &words).unwrap();
        let Speed::Measured { elapsed_ns, .. } = speed else {
            panic!("it was run");
        };
        assert!(elapsed_ns > 0);
    }
}
