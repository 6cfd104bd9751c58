//! Memory events of perf, as `perf script -F comm,pid,time,event,addr` prints them: a line for each
//! sample.
//!
//! ```text
//!      sort 1443 395.600298: cpu/mem-loads,ldlat=30/P:     7f7d7ceff110
//! ```
//! The page is the address; the process, the time and the event's name are used as well. What else
//! `perf script` prints behind the address is left out: so are call chains, in lines of their own.
//! A sample without an address (0) is left out and counted.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::Error;
use crate::event::{Event, LifeEvent};
use crate::model::{Header, Kinds, TimeUnit};

use super::lines::Lines;
use super::time::{Scale, parse};
use super::{is_remark, malformed, number};

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages from the addresses, processes, time, kinds from the events' names";

/// The most processes.
const PROCESSES_MAX: usize = 1 << 20;

/// A sample.
struct Sample {
    pid: u64,
    time_ns: u64,
    kinds: Kinds,
    address: u64,
}

/// The samples that an import leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of samples without an address.
    pub without_address: u64,
    /// The number of samples with a time before their predecessor's in the process; they count as
    /// at the same time.
    pub backward: u64,
}

/// The header of such a trace.
pub fn header(page_bytes: u64) -> Header {
    Header {
        time: TimeUnit::Nanoseconds,
        ..super::header("perf script", page_bytes)
    }
}

/// Appends what `source` holds.
///
/// # Errors
/// A line is none of perf's, or has no address; or reading or writing fails.
pub fn import<W: Write>(
    source: impl Read,
    page_bytes: u64,
    out: &mut Appender<W>,
) -> Result<LeftOut, Error> {
    let shift = page_bytes.trailing_zeros();
    let mut lines = Lines::new(source);
    let mut processes: BTreeMap<u64, u32> = BTreeMap::new();
    let mut left_out = LeftOut::default();
    while let Some(line) = lines.next()? {
        if is_remark(line) || is_of_chain(line) {
            continue;
        }
        let Some(sample) = sample(line) else {
            let found = line.to_vec();
            let expected = "a sample with its time, event and address; print them with `perf \
                            script -F comm,pid,time,event,addr`, of events recorded with `perf \
                            mem record` or `perf record -d`";
            return Err(malformed(lines.place(), expected, &found));
        };
        if sample.address == 0 {
            left_out.without_address += 1;
            continue;
        }
        let process = match processes.get(&sample.pid) {
            Some(&process) => process,
            None if processes.len() == PROCESSES_MAX => {
                let expected = "at most 1048576 processes";
                let found = sample.pid.to_string();
                return Err(malformed(lines.place(), expected, found.as_bytes()));
            }
            None => {
                let process = u32::try_from(processes.len()).expect("they are bounded");
                processes.insert(sample.pid, process);
                out.begin(process, sample.time_ns)?;
                let event = Event::Life(LifeEvent::Start {
                    pid: u32::try_from(sample.pid).unwrap_or(0),
                    parent: 0,
                    program: String::new(),
                });
                out.append_event(process, event)?;
                process
            }
        };
        let last = out.time(process);
        left_out.backward += u64::from(sample.time_ns < last);
        let gap = sample.time_ns.saturating_sub(last);
        out.append(process, sample.address >> shift, sample.kinds, gap)?;
    }
    Ok(left_out)
}

/// Returns true if a line is of a call chain: an address and a name, without a time.
fn is_of_chain(line: &[u8]) -> bool {
    line.starts_with(b"\t")
        && words(line)
            .next()
            .is_some_and(|word| number(word, true).is_some())
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Reads a sample: what stands before the time is the command, which may have blanks, and the
/// process; behind it stand the period, if that is printed, the event, and the address.
fn sample(line: &[u8]) -> Option<Sample> {
    let words: Vec<&[u8]> = words(line).collect();
    let is_time = |word: &&[u8]| {
        let digits = word.strip_suffix(b":").unwrap_or_default();
        digits.contains(&b'.') && parse(digits, Scale::Seconds).is_some()
    };
    let at = words.iter().position(is_time)?;
    let time_ns = parse(words[at].strip_suffix(b":")?, Scale::Seconds)?;
    let before = &words[..at];
    let before = match before.split_last() {
        // The processor.
        Some((last, rest)) if last.starts_with(b"[") => rest,
        Some(_) | None => before,
    };
    // The process alone, or with its thread: `1443/1444`.
    let pid = before.last()?.split(|&byte| byte == b'/').next()?;
    let pid = number(pid, false)?;
    let behind = &words[at + 1..];
    let event_at = behind.iter().position(|word| word.ends_with(b":"))?;
    let event = behind[event_at];
    let address = number(behind.get(event_at + 1)?, true)?;
    // An instruction's address is followed by its name: then the address accessed was not printed.
    let is_instruction = behind
        .get(event_at + 2)
        .is_some_and(|word| number(word, true).is_none() && !is_of_access(word));
    (!is_instruction).then_some(Sample {
        pid,
        time_ns,
        kinds: kinds(event),
        address,
    })
}

/// Returns true if a word is an access, as `|OP LOAD|LVL L1 hit|…`.
fn is_of_access(word: &[u8]) -> bool {
    word.starts_with(b"|") || word == b"N/A"
}

/// The kinds of access that an event's name tells.
fn kinds(event: &[u8]) -> Kinds {
    let has = |part: &[u8]| event.windows(part.len()).any(|window| window == part);
    match (has(b"load"), has(b"store")) {
        (true, false) => Kinds::LOAD,
        (false, true) => Kinds::STORE,
        (true, true) | (false, false) => Kinds::default(),
    }
}
