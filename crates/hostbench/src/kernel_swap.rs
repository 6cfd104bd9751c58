//! The kernel's own swap as a contender: swap files, and what the kernel counts of them.
//!
//! [`host`](crate::host) keeps account of what was changed, and puts it back.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;

/// The beginning and the end of the name of a swap file; the number of its process is between.
const NAME: (&str, &str) = ("tidemark-bench-", ".swap");
/// The time for which turning swap off is tried. While another process does the same, or pages of a
/// program that is being ended are in the way, the kernel refuses.
const OFF_LIMIT: Duration = Duration::from_secs(10);
const OFF_PAUSE: Duration = Duration::from_millis(100);

/// Pages that went in and out of all swap since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapCounters {
    /// Pages read.
    pub page_ins: u64,
    /// Pages written.
    pub page_outs: u64,
}

impl SwapCounters {
    /// Reads the counters as they stand.
    pub fn now() -> Option<SwapCounters> {
        SwapCounters::parse(&fs::read_to_string("/proc/vmstat").ok()?)
    }

    /// The counts since `earlier`.
    pub fn since(self, earlier: SwapCounters) -> SwapCounters {
        SwapCounters {
            page_ins: self.page_ins - earlier.page_ins,
            page_outs: self.page_outs - earlier.page_outs,
        }
    }

    fn parse(text: &str) -> Option<SwapCounters> {
        Some(SwapCounters {
            page_ins: vmstat(text, "pswpin")?,
            page_outs: vmstat(text, "pswpout")?,
        })
    }
}

/// One counter of `/proc/vmstat`.
pub fn vmstat(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Writes out and forgets what the page cache holds, so that each run starts alike. Without the
/// privilege it is left as it is.
pub fn drop_caches() {
    rustix::fs::sync();
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
}

/// The swap file of this process in `folder`.
pub fn own_swap_file(folder: &Path) -> PathBuf {
    folder.join(format!("{}{}{}", NAME.0, std::process::id(), NAME.1))
}

/// Makes a file of `bytes` that swap can lie on.
pub fn make_swap_file(path: &Path, bytes: u64) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut options = File::options();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(told)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(|error| told(error.into()))
}

/// Makes a file or a device swap that is preferred to any other the host has.
pub fn turn_on(path: &Path) -> Result<(), String> {
    run("mkswap", &[path.as_os_str()])?;
    run(
        "swapon",
        &["-p".as_ref(), "32767".as_ref(), path.as_os_str()],
    )
}

/// Turns a swap file off and removes it. One that is gone needs nothing.
pub fn remove_swap_file(path: &Path) -> Result<(), String> {
    turn_off(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Turns swap off, if it is on.
pub fn turn_off(path: &Path) -> Result<(), String> {
    let start = Instant::now();
    while is_swap_in_use(path) {
        match run("swapoff", &[path.as_os_str()]) {
            Err(message) if start.elapsed() > OFF_LIMIT => return Err(message),
            Ok(()) | Err(_) => std::thread::sleep(OFF_PAUSE),
        }
    }
    Ok(())
}

/// The swap files of benchmarks among those that `/proc/swaps` lists.
pub fn collect_own_swap_files(swaps: &str) -> Vec<String> {
    let files = swaps
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let is_own = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = name.strip_prefix(NAME.0);
        let number = number.and_then(|rest| rest.strip_suffix(NAME.1));
        path.starts_with('/') && number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    files.filter(is_own).map(str::to_owned).collect()
}

fn is_swap_in_use(path: &Path) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let path = path.to_string_lossy();
    swaps
        .lines()
        .any(|line| line.split_whitespace().next() == Some(path.as_ref()))
}

/// Runs a command of util-linux and makes one line of what it complains about.
fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        // What is typed at the terminal, or sent to the whole group, is not to stop it midway.
        .process_group(0)
        .output()
        .map_err(|error| format!("`{program}` can't be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint
        .trim()
        .lines()
        .next()
        .unwrap_or("it failed without a word")
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_files_of_benchmarks_are_told_by_their_names() {
        let swaps = "Filename Type Size Used Priority\n\
            /var/tmp/tidemark-bench-71.swap file 65532 0 32767\n\
            /dev/vdb partition 65532 0 -2\n\
            /home/tidemark-bench-mine.swap file 65532 0 -3\n";
        let own = collect_own_swap_files(swaps);
        assert_eq!(own, ["/var/tmp/tidemark-bench-71.swap"]);
    }

    #[test]
    fn swap_counters_come_from_vmstat_and_count_from_a_start() {
        let before = SwapCounters::parse("pswpin 10\npswpout 20\npswpin_x 7\n");
        let after = SwapCounters::parse("nr_free 1\npswpin 15\npswpout 120\n");
        let (before, after) = (before.expect("complete"), after.expect("complete"));
        assert_eq!(
            after.since(before),
            SwapCounters {
                page_ins: 5,
                page_outs: 100
            }
        );
        assert_eq!(SwapCounters::parse("pswpin 1\n"), None);
    }
}
