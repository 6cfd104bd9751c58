//! The parameters on the command line: `name=value`, separated by blanks.

/// The programs whose pages are paged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Programs {
    /// Everything a program has: text and variables from the volume, and what it maps.
    Paged,
    /// The memory that a program maps by system call. The rest of it is the kernel's, and stays.
    Pinned,
}

/// By what the core's clock goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// The machine's clock.
    Real,
    /// Faults: all that follows from one is over before a program goes on, so that the same
    /// references lead to the same decisions.
    Faults,
}

/// A fault that is made on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injected {
    /// A bit of a page that was read from swap is changed.
    Flip,
    /// A request to read fails.
    Read,
    /// A request to write fails.
    Write,
    /// The kernel panics, when a program has touched a page that was not there.
    Panic,
    /// The kernel fills its stack, on the same occasion.
    Overflow,
}

/// The layout of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One page at a time.
    Demand,
    /// In clusters, with read-ahead and frames kept free.
    Clustered,
}

/// The requested settings.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    /// Frames of user memory.
    pub frames: u32,
    /// The replacement policy.
    pub policy: &'a str,
    /// The load control.
    pub load: &'a str,
    /// The seed of the policy's random numbers.
    pub seed: u64,
    /// The factor by which the core's clock is faster than the machine's.
    pub pace: u64,
    /// The layout of memory.
    pub layout: Layout,
    /// The programs whose pages are paged.
    pub programs: Programs,
    /// By what the core's clock goes.
    pub time: Time,
    /// True if decisions are logged.
    pub is_logging: bool,
    /// A fault to be made, and at which occasion, counted from 1.
    pub injected: Option<(Injected, u64)>,
    /// The first program and its arguments, separated by commas.
    pub run: &'a str,
}

/// A parameter that can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mistake<'a> {
    /// The parameter as it was given.
    pub given: &'a str,
    /// The expected form.
    pub needs: &'static str,
}

/// The fewest frames programs get by with: what one instruction and one system call may need at
/// the same time, and some.
const FRAMES_MIN: u64 = 16;
const FRAMES_MAX: u64 = 1 << 17;
const PACE_MAX: u64 = 1000;

/// Reads the command line.
pub fn parse(line: &str) -> Result<Parameters<'_>, Mistake<'_>> {
    let mut parameters = Parameters {
        frames: 2048,
        policy: "clock",
        load: "none",
        seed: 1,
        pace: 1,
        layout: Layout::Clustered,
        programs: Programs::Paged,
        time: Time::Real,
        is_logging: false,
        injected: None,
        run: "",
    };
    for word in line.split_ascii_whitespace() {
        // What the emulator adds on its own account.
        if word.starts_with("virtio_mmio.") {
            continue;
        }
        set(&mut parameters, word)?;
    }
    match parameters.run {
        "" => Err(Mistake {
            given: "run",
            needs: "the first program, as in `run=sh,script`",
        }),
        _ => Ok(parameters),
    }
}

fn set<'a>(parameters: &mut Parameters<'a>, word: &'a str) -> Result<(), Mistake<'a>> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let mistake = |needs| Mistake { given: word, needs };
    match name {
        "memory" => {
            let frames = parse_bytes(value).map(|bytes| bytes / 4096);
            let frames = frames.filter(|frames| (FRAMES_MIN..=FRAMES_MAX).contains(frames));
            let frames = frames.ok_or(mistake("64K to 512M"))?;
            parameters.frames = frames as u32;
        }
        "policy" => parameters.policy = value,
        "load" => parameters.load = value,
        "run" => parameters.run = value,
        "seed" => parameters.seed = value.parse().map_err(|_| mistake("a number"))?,
        "pace" => {
            let pace = value.parse().ok();
            let pace = pace.filter(|pace| (1..=PACE_MAX).contains(pace));
            parameters.pace = pace.ok_or(mistake("1 to 1000"))?;
        }
        "log" => {
            parameters.is_logging =
                choose(value, &[("no", false), ("yes", true)]).ok_or(mistake("yes or no"))?
        }
        "layout" => {
            let all = [("demand", Layout::Demand), ("clustered", Layout::Clustered)];
            parameters.layout = choose(value, &all).ok_or(mistake("demand or clustered"))?;
        }
        "programs" => {
            let all = [("paged", Programs::Paged), ("pinned", Programs::Pinned)];
            parameters.programs = choose(value, &all).ok_or(mistake("paged or pinned"))?;
        }
        "time" => {
            let all = [("real", Time::Real), ("faults", Time::Faults)];
            parameters.time = choose(value, &all).ok_or(mistake("real or faults"))?;
        }
        "inject" => {
            let needs = mistake("flip, read, write, panic or overflow, and when: `flip:100`");
            let (what, when) = value.split_once(':').ok_or(needs)?;
            let all = [
                ("flip", Injected::Flip),
                ("read", Injected::Read),
                ("write", Injected::Write),
                ("panic", Injected::Panic),
                ("overflow", Injected::Overflow),
            ];
            let what = choose(what, &all).ok_or(needs)?;
            parameters.injected = Some((what, when.parse().map_err(|_| needs)?));
        }
        _ => return Err(mistake("to be a parameter the kernel knows")),
    }
    Ok(())
}

fn choose<T: Copy>(value: &str, all: &[(&str, T)]) -> Option<T> {
    let found = all.iter().find(|(name, _)| *name == value);
    found.map(|&(_, meaning)| meaning)
}

/// A number of bytes, with `K` or `M` behind it or nothing.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
