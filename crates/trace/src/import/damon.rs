//! DAMON, as `damo` prints what it saw: `damo report raw`, or from version 2 on `damo report access
//! --raw_number`. A snapshot is a window of time, and each page of a region that was accessed in it
//! is touched once, as the window begins: DAMON looks at one page of a region and takes the others
//! to be alike.
//!
//! ```text
//! monitoring_start:                0 ns        snapshot time: [0, 122744500] (122744500)
//! monitoring_end:            122.745 ms        …
//! target_id: 0                                 0   addr 4096  size 2525474816  access 0.0 age 1
//! 000000001000-00009687c000 (2.352 GiB) 1 10
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read, Write};

use crate::appender::Appender;
use crate::error::{Error, Otherwise, Place};
use crate::event::Event;
use crate::model::{Granularity, Header, Kinds, TimeUnit};

use super::lines::Lines;
use super::time::{Scale, parse};
use super::{malformed, malformed_but, number};

/// The parts of a file that become part of the trace.
pub const USED: &str = "pages of regions that were accessed, each once in a snapshot; time";
/// The parts that do not.
pub const UNUSED: &str = "numbers of accesses, ages";

/// The most pages of one snapshot.
const SNAPSHOT_PAGES_MAX: u64 = 1 << 26;

/// The most targets.
const TARGETS_MAX: usize = 1 << 12;

const EXPECTED: &str = "a line of `damo report raw`, or of `damo report access --raw_number`";

/// A region that was accessed, or not.
struct Region {
    start: u64,
    end: u64,
    is_accessed: bool,
}

/// The contents of a line.
enum Line {
    Start(u64),
    End(u64),
    Target(u64),
    Region(Region),
    Other,
}

/// A report, read up to the end of its first snapshot's times.
pub struct Report<R> {
    lines: Lines<R>,
    window: Window,
}

/// A snapshot's time.
#[derive(Clone, Copy, Default)]
struct Window {
    start_ns: u64,
    end_ns: u64,
}

/// A target, as far as it is known.
struct Target {
    process: u32,
    longest_ns: u64,
}

impl<R: Read> Report<R> {
    /// Begins to read a report: finds its first snapshot.
    ///
    /// # Errors
    /// There is none, or reading fails.
    pub fn open(source: R) -> Result<Report<R>, Error> {
        let mut lines = Lines::new(source);
        let mut window = Window::default();
        while let Some(line) = lines.next()? {
            let found = line.to_vec();
            match read(&found) {
                Some(Line::Start(start_ns)) => window.start_ns = start_ns,
                Some(Line::End(end_ns)) => {
                    window.end_ns = end_ns;
                    window.check(lines.place())?;
                    return Ok(Report { lines, window });
                }
                // `snapshot time` tells both.
                Some(Line::Region(_)) | None => {
                    return Err(malformed(lines.place(), EXPECTED, &found));
                }
                Some(Line::Target(_) | Line::Other) => {}
            }
            if let Some(both) = snapshot(&found) {
                both.check(lines.place())?;
                return Ok(Report {
                    lines,
                    window: both,
                });
            }
        }
        Err(Error::new(crate::error::ErrorKind::NoReferences))
    }

    /// The header of the trace.
    pub fn header(&self, page_bytes: u64) -> Header {
        Header {
            granularity: Granularity::Regions(self.window.length_ns()),
            time: TimeUnit::Nanoseconds,
            ..super::header("DAMON", page_bytes)
        }
    }

    /// Appends what the report holds.
    ///
    /// # Errors
    /// A line is none of a report's, too much was accessed in a snapshot, or reading or writing
    /// fails.
    pub fn import<W: Write>(mut self, page_bytes: u64, out: &mut Appender<W>) -> Result<(), Error> {
        let mut targets: BTreeMap<u64, Target> = BTreeMap::new();
        let (mut window, mut target, mut pages) = (self.window, 0, 0);
        let first_ns = window.length_ns();
        while let Some(line) = self.lines.next()? {
            let found = line.to_vec();
            let place = self.lines.place();
            if let Some(both) = snapshot(&found) {
                both.check(place)?;
                (window, pages) = (both, 0);
                continue;
            }
            match read(&found) {
                Some(Line::Start(start_ns)) => (window.start_ns, pages) = (start_ns, 0),
                Some(Line::End(end_ns)) => {
                    window.end_ns = end_ns;
                    window.check(place)?;
                }
                Some(Line::Target(number)) => target = number,
                Some(Line::Region(region)) if region.is_accessed => {
                    pages = region.pages(page_bytes).saturating_add(pages);
                    if pages > SNAPSHOT_PAGES_MAX {
                        let expected = "at most 67108864 pages accessed in a snapshot";
                        let otherwise = Some(Otherwise::InLargerPages);
                        return Err(malformed_but(place, expected, &found, otherwise));
                    }
                    let process = process(&mut targets, target, window, first_ns, place, out)?;
                    append(&region, window, page_bytes, process, out)?;
                }
                Some(Line::Region(_) | Line::Other) => {}
                None => return Err(malformed(place, EXPECTED, &found)),
            }
        }
        Ok(())
    }
}

/// Appends a region's pages.
fn append<W: Write>(
    region: &Region,
    window: Window,
    page_bytes: u64,
    process: u32,
    out: &mut Appender<W>,
) -> Result<(), Error> {
    let first = region.start / page_bytes;
    let mut gap = window.start_ns.saturating_sub(out.time(process));
    for page in first..first + region.pages(page_bytes) {
        out.append(process, page, Kinds::default(), std::mem::take(&mut gap))?;
    }
    Ok(())
}

/// The process of a target, which begins with `window` or has its windows grow to that.
fn process<W: Write>(
    targets: &mut BTreeMap<u64, Target>,
    name: u64,
    window: Window,
    first_ns: u64,
    place: Place,
    out: &mut Appender<W>,
) -> Result<u32, Error> {
    let known = targets.len();
    let target = match targets.entry(name) {
        Entry::Occupied(target) => target.into_mut(),
        Entry::Vacant(_) if known == TARGETS_MAX => {
            let found = name.to_string();
            return Err(malformed(place, "at most 4096 targets", found.as_bytes()));
        }
        Entry::Vacant(place) => {
            let process = u32::try_from(known).expect("they are bounded");
            out.begin(process, window.start_ns)?;
            place.insert(Target {
                process,
                longest_ns: first_ns,
            })
        }
    };
    if window.length_ns() > target.longest_ns {
        target.longest_ns = window.length_ns();
        let ns = target.longest_ns;
        out.append_event(target.process, Event::Windows { ns })?;
    }
    Ok(target.process)
}

impl Window {
    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn check(&self, place: Place) -> Result<(), Error> {
        match self.start_ns < self.end_ns {
            true => Ok(()),
            false => {
                let found = format!("{} to {}", self.start_ns, self.end_ns);
                let expected = "a snapshot that ends after it begins";
                Err(malformed(place, expected, found.as_bytes()))
            }
        }
    }
}

impl Region {
    fn pages(&self, page_bytes: u64) -> u64 {
        let first = self.start / page_bytes;
        self.end.div_ceil(page_bytes) - first
    }
}

/// Reads `snapshot time: [0, 122744500] (122744500)`.
fn snapshot(line: &[u8]) -> Option<Window> {
    let rest = line.strip_prefix(b"snapshot time: [")?;
    let close = rest.iter().position(|&byte| byte == b']')?;
    let comma = rest[..close].iter().position(|&byte| byte == b',')?;
    Some(Window {
        start_ns: duration(&rest[..comma])?,
        end_ns: duration(&rest[comma + 1..close])?,
    })
}

/// Reads a line; `None` if it is none of a report's.
fn read(line: &[u8]) -> Option<Line> {
    let line = line.trim_ascii();
    let behind = |mark: &[u8]| line.strip_prefix(mark).map(<[u8]>::trim_ascii);
    if let Some(text) = behind(b"monitoring_start:") {
        return duration(text).map(Line::Start);
    }
    if let Some(text) = behind(b"monitoring_end:") {
        return duration(text).map(Line::End);
    }
    if let Some(text) = behind(b"target_id:").or(behind(b"target id:")) {
        return number(text, false).map(Line::Target);
    }
    if let Some(region) = raw_region(line).or_else(|| access_region(line)) {
        return (region.start < region.end).then_some(Line::Region(region));
    }
    const OTHERS: [&[u8]; 16] = [
        b"base_time_absolute:",
        b"monitoring_duration:",
        b"nr_regions:",
        b"#",
        b"snapshot time:",
        b"heatmap:",
        b"intervals:",
        b"memory bw estimate",
        b"total size:",
        b"record DAMON intervals:",
        b"kdamond",
        b"context",
        b"scheme",
        b"<",
        b"df-pass",
        b"filters:",
    ];
    let is_other = line.is_empty() || OTHERS.iter().any(|mark| line.starts_with(mark));
    is_other.then_some(Line::Other)
}

/// Reads `000000001000-00009687c000 (   2.352 GiB)           0    10`, and the older
/// `563ebaa00000-563ebc99e000(  31.617 MiB):  1`.
fn raw_region(line: &[u8]) -> Option<Region> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().position(|&byte| byte == b')')?;
    let range = line[..open].trim_ascii();
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let behind = line.get(close + 1..)?;
    let behind = behind.strip_prefix(b":").unwrap_or(behind).trim_ascii();
    let accesses = behind.split(u8::is_ascii_whitespace).next()?;
    Some(Region {
        start: number(&range[..dash], true)?,
        end: number(&range[dash + 1..], true)?,
        is_accessed: number(accesses, false)? > 0,
    })
}

/// Reads `0   addr 4096  size 2525474816  access 10.000000 age 1000000`, in raw numbers.
fn access_region(line: &[u8]) -> Option<Region> {
    let words: Vec<&[u8]> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let [place, b"addr", start, b"size", bytes, b"access", rate, ..] = words[..] else {
        return None;
    };
    number(place, false)?;
    let start = number(start, false)?;
    let rate = std::str::from_utf8(rate).ok()?.parse::<f64>().ok()?;
    Some(Region {
        start,
        end: start.checked_add(number(bytes, false)?)?,
        is_accessed: rate > 0.0,
    })
}

/// Reads a duration: `122744500` nanoseconds, `122.745 ms`, `8 m 33.329 s`.
fn duration(text: &[u8]) -> Option<u64> {
    let words: Vec<&[u8]> = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    if let [alone] = words[..] {
        return parse(alone, Scale::Nanoseconds);
    }
    let (pairs, []) = words.as_chunks::<2>() else {
        return None;
    };
    let mut sum = 0_u64;
    for [amount, unit] in pairs {
        let (scale, times) = match *unit {
            b"ns" => (Scale::Nanoseconds, 1),
            b"us" => (Scale::Microseconds, 1),
            b"ms" => (Scale::Milliseconds, 1),
            b"s" => (Scale::Seconds, 1),
            b"m" => (Scale::Seconds, 60),
            b"h" => (Scale::Seconds, 3600),
            b"d" => (Scale::Seconds, 86_400),
            _ => return None,
        };
        sum = sum.checked_add(parse(amount, scale)?.checked_mul(times)?)?;
    }
    (!pairs.is_empty()).then_some(sum)
}
