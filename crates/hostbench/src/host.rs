//! The right to change the host's swap and settings, and putting back whatever was changed.
//!
//! Changes to the host are written to a ledger before they are made. Normally [`Host`] undoes them
//! when it is dropped, signals included; after a kill -9 the next run finds the ledger and undoes
//! them first. Swap files in use that are named as ours are undone, too: the holder of the ledger
//! is the only one who can have made them.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::cgroup::Controller;
use crate::kernel_swap::{self, collect_own_swap_files};
use crate::output::say;
use crate::zram;

/// The setting of the kernel's read-ahead from swap: the logarithm of pages.
pub const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
/// The record of changes, and the lock that keeps two benchmarks apart.
const LEDGER: &str = "/run/tidemark-bench.ledger";

/// The right to change the host.
pub struct Host {
    ledger: Ledger,
    /// The settings that were changed, each with its value before.
    settings: Vec<(PathBuf, String)>,
    swaps: Vec<Swap>,
}

/// Swap that is in use.
enum Swap {
    File(PathBuf),
    /// The number of the device.
    Zram(u32),
}

impl Host {
    /// Takes the right to change the host, and undoes what a benchmark that was killed has left.
    ///
    /// # Errors
    /// The line that says why the host can't be changed.
    pub fn take() -> Result<Host, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("it needs root".to_owned());
        }
        let mut ledger = Ledger::open()?;
        ledger.undo_leftovers();
        Ok(Host {
            ledger,
            settings: Vec::new(),
            swaps: Vec::new(),
        })
    }

    /// Writes `value` to a setting of the kernel, until [`put_back`](Self::put_back).
    pub fn set(&mut self, setting: &Path, value: &str) -> Result<(), String> {
        if !self.settings.iter().any(|(path, _)| path == setting) {
            let before = read_setting(setting)?;
            let line = format!("{}={before}", setting.display());
            self.ledger.note("setting", &line)?;
            self.settings.push((setting.to_owned(), before));
        }
        write_setting(setting, value)
    }

    /// Sets the read-ahead of the next run.
    pub fn set_page_cluster(&mut self, page_cluster: u32) -> Result<(), String> {
        self.set(Path::new(PAGE_CLUSTER), &page_cluster.to_string())
    }

    /// Makes a swap file of at least `bytes` in `folder` and turns it on. It is preferred to any
    /// other swap the host has.
    pub fn add_swap_file(&mut self, folder: &Path, bytes: u64) -> Result<(), String> {
        let path = kernel_swap::own_swap_file(folder);
        self.ledger.note("swap", &path.to_string_lossy())?;
        self.swaps.push(Swap::File(path.clone()));
        kernel_swap::make_swap_file(&path, bytes)?;
        kernel_swap::turn_on(&path)
    }

    /// Makes a compressed memory device for `bytes` of pages and turns it on as swap.
    ///
    /// Returns its number.
    pub fn add_zram(&mut self, bytes: u64) -> Result<u32, String> {
        let number = zram::add()?;
        self.swaps.push(Swap::Zram(number));
        self.ledger.note("zram", &number.to_string())?;
        zram::set_size(number, bytes)?;
        kernel_swap::turn_on(&zram::device(number))?;
        Ok(number)
    }

    /// Notes that a control group is about to be made.
    pub fn note_group(&mut self, path: &Path) -> Result<(), String> {
        self.ledger.note("group", &path.to_string_lossy())
    }

    /// Undoes all changes, and keeps the right to make more.
    pub fn put_back(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        for swap in self.swaps.drain(..).rev() {
            let removed = match swap {
                Swap::File(path) => kernel_swap::remove_swap_file(&path),
                Swap::Zram(number) => zram::remove(number),
            };
            result = result.and(removed);
        }
        for (setting, before) in self.settings.drain(..).rev() {
            result = result.and(write_setting(&setting, &before));
        }
        // What could not be undone is tried again by the next run.
        if result.is_ok() {
            self.ledger.clear();
        }
        result
    }

    /// The read-ahead the host came with.
    pub fn page_cluster_default(&self) -> Result<u32, String> {
        let path = Path::new(PAGE_CLUSTER);
        let changed = self.settings.iter().find(|(setting, _)| setting == path);
        let text = match changed {
            Some((_, before)) => before.clone(),
            None => read_setting(path)?,
        };
        text.parse()
            .map_err(|_| format!("{PAGE_CLUSTER} is `{text}`, not a number"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(message) = self.put_back() {
            say!("tidemark bench: left behind: {message}");
        }
    }
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
            if let Err(message) = undo(kind, value) {
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

/// Undoes one line of the ledger.
fn undo(kind: &str, value: &str) -> Result<(), String> {
    match kind {
        "group" => {
            Controller::remove_stale(Path::new(value));
            Ok(())
        }
        "swap" => kernel_swap::remove_swap_file(Path::new(value)),
        "zram" => match value.parse() {
            Ok(number) => zram::remove(number),
            Err(_) => Err(format!("{LEDGER}: `{value}` is no device")),
        },
        "setting" => match value.split_once('=') {
            Some((setting, before)) => write_setting(Path::new(setting), before),
            None => Err(format!("{LEDGER}: `{value}` is no setting")),
        },
        _ => Err(format!("{LEDGER}: `{kind}` is unknown")),
    }
}

/// The value of a setting of the kernel.
pub fn read_setting(setting: &Path) -> Result<String, String> {
    let text = fs::read_to_string(setting);
    let text = text.map_err(|error| format!("{}: {error}", setting.display()))?;
    Ok(text.trim().to_owned())
}

fn write_setting(setting: &Path, value: &str) -> Result<(), String> {
    fs::write(setting, value).map_err(|error| format!("{}: {error}", setting.display()))
}
