//! Memory control groups, version 1 or 2, whichever the host has.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::output::say;

/// The time that a group's last processes and pages may take to go away.
const REMOVAL_LIMIT: Duration = Duration::from_secs(5);

/// The interface of the host's memory controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of its own, `memory.limit_in_bytes`.
    One,
    /// The unified hierarchy, `memory.max`.
    Two,
}

/// The host's memory controller.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Its interface.
    pub version: Version,
    root: PathBuf,
}

/// A group of processes; removed, with the processes left in it, when dropped.
#[derive(Debug)]
pub struct Group {
    version: Version,
    path: PathBuf,
}

impl Controller {
    /// Finds the memory controller, or says in one line why there is none to use.
    pub fn find() -> Result<Controller, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
        if let Some(root) = mounts
            .lines()
            .find_map(|line| mount_of(line, "cgroup", "memory"))
        {
            return Ok(Controller {
                version: Version::One,
                root,
            });
        }
        let root = mounts
            .lines()
            .find_map(|line| mount_of(line, "cgroup2", ""))
            .ok_or("no control groups are mounted")?;
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|name| name == "memory") {
            return Err("the control groups have no memory controller".to_owned());
        }
        write(&root.join("cgroup.subtree_control"), "+memory")?;
        Ok(Controller {
            version: Version::Two,
            root,
        })
    }

    /// The path that a group of this name has or would have.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Makes a group of this name that may hold `limit_bytes` of memory and any amount of swap.
    pub fn create(&self, name: &str, limit_bytes: Option<u64>) -> Result<Group, String> {
        let path = self.path_of(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Group {
            version: self.version,
            path,
        };
        if let Some(limit_bytes) = limit_bytes {
            group.set_limit(limit_bytes)?;
        }
        Ok(group)
    }

    /// Removes the groups of benchmarks that are no more.
    pub fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let maker = entry.file_name().to_str().and_then(maker_of);
            let is_dead = |maker| {
                let answer = rustix::process::test_kill_process(maker);
                answer == Err(rustix::io::Errno::SRCH)
            };
            if maker.is_some_and(is_dead) {
                Controller::remove_stale(&entry.path());
            }
        }
    }

    /// Removes a group that a run cut short has left behind.
    pub fn remove_stale(path: &Path) {
        let version = match path.join("memory.limit_in_bytes").exists() {
            true => Version::One,
            false => Version::Two,
        };
        drop(Group {
            version,
            path: path.to_owned(),
        });
    }
}

impl Group {
    /// The path of the group.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how much memory the group may hold; what it holds beyond that goes to swap.
    pub fn set_limit(&self, limit_bytes: u64) -> Result<(), String> {
        let file = match self.version {
            // Memory and swap together stay unlimited: that is what a new group has.
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        write(&self.path.join(file), &limit_bytes.to_string())
    }

    /// Returns true if what zswap's pool holds is charged to the group. It is in the unified
    /// hierarchy alone (Linux: `obj_cgroup_charge_zswap` in `mm/memcontrol.c`).
    pub fn pays_for_zswap(&self) -> bool {
        matches!(self.version, Version::Two)
    }

    /// The most memory the group has held, if the kernel counts that.
    pub fn memory_peak_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        fs::read_to_string(self.path.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Returns true if the kernel ended a process of the group because it found no page to take.
    pub fn was_out_of_memory(&self) -> bool {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.is_some_and(|count| count.trim() != "0")
    }

    fn end_processes(&self) {
        let processes = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines().filter_map(|line| line.parse().ok()) {
            if let Some(process) = Pid::from_raw(process) {
                // One that is already gone needs no ending.
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let start = Instant::now();
        loop {
            self.end_processes();
            if fs::remove_dir(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            if start.elapsed() > REMOVAL_LIMIT {
                let path = self.path.display();
                say!("tidemark bench: {path} can't be removed; try `rmdir {path}`");
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The benchmark that makes groups of this name.
fn maker_of(name: &str) -> Option<Pid> {
    let (maker, _) = name.strip_prefix("tidemark-bench-")?.split_once('-')?;
    Pid::from_raw(maker.parse().ok()?)
}

/// The mount point in a line of mountinfo, if it is of `kind` and has the option `option`.
fn mount_of(line: &str, kind: &str, option: &str) -> Option<PathBuf> {
    let (mount, source) = line.split_once(" - ")?;
    let mut source = source.split(' ');
    let is_kind = source.next()? == kind;
    let mut options = source.nth(1)?.split(',');
    let is_match = is_kind && (option.is_empty() || options.any(|each| each == option));
    let point = mount.split(' ').nth(4)?;
    is_match.then(|| PathBuf::from(point.replace("\\040", " ")))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_names_its_maker() {
        assert_eq!(maker_of("tidemark-bench-71-2"), Pid::from_raw(71));
        assert_eq!(maker_of("tidemark-bench-71"), None);
        assert_eq!(maker_of("tidemark-ownmem"), None);
    }

    #[test]
    fn the_memory_controller_is_found_among_the_mounts() {
        let one = "34 24 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let two = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let other = "35 24 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        assert_eq!(
            mount_of(one, "cgroup", "memory"),
            Some("/sys/fs/cgroup/memory".into())
        );
        assert_eq!(mount_of(two, "cgroup2", ""), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount_of(other, "cgroup", "memory"), None);
        assert_eq!(mount_of(two, "cgroup", "memory"), None);
    }
}
