//! The kernel's own swap as a contender: a swap file, the host's read-ahead, and putting back
//! whatever was changed.
//!
//! Changes to the host are written to a ledger before they are made. Normally [`KernelSwap`]
//! undoes them when it is dropped, signals included; after a kill -9 the next run finds the
//! ledger and undoes them first. Swap files in use that are named as ours are undone, too: whoever
//! holds the ledger is the only one who can have made them.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, FlockOperation};

use crate::cgroup::Controller;
use crate::output::say;

/// The setting of the kernel's read-ahead from swap: the logarithm of pages.
const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
/// The record of changes, and the lock that keeps two benchmarks apart.
const LEDGER: &str = "/run/tidemark-bench.ledger";
/// The beginning and the end of the name of a swap file; the number of its process is between.
const NAME: (&str, &str) = ("tidemark-bench-", ".swap");
/// The time for which turning swap off is tried. While somebody else is at it, or pages of a
/// program that is being ended are in the way, the kernel refuses.
const OFF_LIMIT: Duration = Duration::from_secs(10);
const OFF_PAUSE: Duration = Duration::from_millis(100);

/// A swap file in use, and the right to change the kernel's settings.
pub struct KernelSwap {
    swap_file: PathBuf,
    page_cluster_default: u32,
    ledger: Ledger,
}

/// Pages that went in and out of all swap since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapCounters {
    /// Pages read.
    pub page_ins: u64,
    /// Pages written.
    pub page_outs: u64,
}

impl KernelSwap {
    /// Makes a swap file of at least `bytes` in `folder` and turns it on, or says in one line why
    /// that can't be done. The file is preferred to any other swap the host has.
    pub fn start(folder: &Path, bytes: u64) -> Result<KernelSwap, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("it needs root".to_owned());
        }
        let mut ledger = Ledger::open()?;
        ledger.undo_leftovers();
        let page_cluster_default = read_page_cluster()?;
        let swap_file = folder.join(format!("{}{}{}", NAME.0, std::process::id(), NAME.1));
        ledger.note("page-cluster", &page_cluster_default.to_string())?;
        ledger.note("swap", &swap_file.to_string_lossy())?;
        let swap = KernelSwap {
            swap_file,
            page_cluster_default,
            ledger,
        };
        make_swap_file(&swap.swap_file, bytes)?;
        run("mkswap", &[swap.swap_file.as_os_str()])?;
        run(
            "swapon",
            &["-p".as_ref(), "32767".as_ref(), swap.swap_file.as_os_str()],
        )?;
        Ok(swap)
    }

    /// The read-ahead the host came with.
    pub fn page_cluster_default(&self) -> u32 {
        self.page_cluster_default
    }

    /// Sets the read-ahead of the next run.
    pub fn set_page_cluster(&self, page_cluster: u32) -> Result<(), String> {
        write_page_cluster(page_cluster)
    }

    /// Notes that a control group is about to be made.
    pub fn note_group(&mut self, path: &Path) -> Result<(), String> {
        self.ledger.note("group", &path.to_string_lossy())
    }
}

impl Drop for KernelSwap {
    fn drop(&mut self) {
        let restored = write_page_cluster(self.page_cluster_default);
        let removed = remove_swap_file(&self.swap_file);
        match restored.and(removed) {
            Ok(()) => self.ledger.clear(),
            Err(message) => say!("tidemark bench: left behind: {message}"),
        }
    }
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

/// The changes under way, one a line: a kind, a blank, a value.
struct Ledger {
    file: File,
}

impl Ledger {
    fn open() -> Result<Ledger, String> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let file = options
            .open(LEDGER)
            .map_err(|error| format!("{LEDGER}: {error}"))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| "another `tidemark bench` uses the kernel's swap".to_owned())?;
        Ok(Ledger { file })
    }

    /// Undoes what a benchmark that was killed has noted.
    fn undo_leftovers(&mut self) {
        let mut text = String::new();
        // An unreadable ledger has nothing to undo.
        let _ = self.file.read_to_string(&mut text);
        let mut is_clean = true;
        // Groups hold what keeps swap in use, so they go first: they come last in the ledger.
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let unknown = collect_own_swap_files(&swaps);
        let unknown = unknown.iter().map(|path| ("swap", path.as_str()));
        let noted = text.lines().rev().filter_map(|line| line.split_once(' '));
        if let Ok(controller) = Controller::find() {
            controller.remove_abandoned();
        }
        for (kind, value) in noted.chain(unknown) {
            let undone = match kind {
                "group" => {
                    Controller::remove_stale(Path::new(value));
                    Ok(())
                }
                "swap" => remove_swap_file(Path::new(value)),
                _ => value
                    .parse()
                    .map_err(|_| "not a number".to_owned())
                    .and_then(write_page_cluster),
            };
            if let Err(message) = undone {
                is_clean = false;
                say!("tidemark bench: left behind by an earlier run: {message}");
            }
        }
        if is_clean {
            self.clear();
        }
    }

    fn note(&mut self, kind: &str, value: &str) -> Result<(), String> {
        writeln!(self.file, "{kind} {value}")
            .and_then(|()| self.file.sync_data())
            .map_err(|error| format!("{LEDGER}: {error}"))
    }

    fn clear(&mut self) {
        // A line too many is undone again by the next run, without harm.
        let _ = self.file.set_len(0).and_then(|()| self.file.rewind());
    }
}

fn read_page_cluster() -> Result<u32, String> {
    let text =
        fs::read_to_string(PAGE_CLUSTER).map_err(|error| format!("{PAGE_CLUSTER}: {error}"))?;
    text.trim()
        .parse()
        .map_err(|_| format!("{PAGE_CLUSTER} is `{}`, not a number", text.trim()))
}

fn write_page_cluster(page_cluster: u32) -> Result<(), String> {
    fs::write(PAGE_CLUSTER, page_cluster.to_string())
        .map_err(|error| format!("{PAGE_CLUSTER}: {error}"))
}

fn make_swap_file(path: &Path, bytes: u64) -> Result<(), String> {
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

fn remove_swap_file(path: &Path) -> Result<(), String> {
    turn_off(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

fn turn_off(path: &Path) -> Result<(), String> {
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
fn collect_own_swap_files(swaps: &str) -> Vec<String> {
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
