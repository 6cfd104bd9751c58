//! The memory that this process may still take.

use std::fs;
use std::path::Path;

/// The memory that is available, in bytes: of the machine, and within the control groups that this
/// process is in.
pub fn available_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| available_of_machine(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = places(&groups).into_iter().filter_map(left_in_group);
    left.chain(machine).min().unwrap_or(u64::MAX)
}

/// The size of the machine's physical memory in bytes.
pub fn physical_memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    // The fields are of the machine's word size, which is not `u64` everywhere.
    #[allow(clippy::useless_conversion)]
    let total = u64::from(system.totalram);
    total * u64::from(system.mem_unit)
}

/// The available memory by `/proc/meminfo`, in bytes.
fn available_of_machine(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The folders of the groups in `/proc/self/cgroup` and of all above them, with the names of the
/// files that have limit and use.
fn places(groups: &str) -> Vec<(String, &'static str, &'static str)> {
    let mut places = vec![];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
        let (Some(controllers), Some(path)) = (controllers, path) else {
            continue;
        };
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => continue,
        };
        for folder in Path::new(path).ancestors() {
            let folder = folder.display().to_string();
            let folder = format!("{root}/{}", folder.trim_start_matches('/'));
            places.push((folder, limit, used));
        }
    }
    places
}

/// The memory left in a group that has a limit. Pages of files, which the kernel takes back first,
/// count as left.
fn left_in_group((folder, limit, used): (String, &str, &str)) -> Option<u64> {
    let number = |file: &str| {
        fs::read_to_string(format!("{folder}/{file}"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let (limit, used): (u64, u64) = (number(limit)?, number(used)?);
    let counts = fs::read_to_string(format!("{folder}/memory.stat")).unwrap_or_default();
    Some(limit.saturating_sub(used.saturating_sub(pages_of_files(&counts))))
}

/// The bytes of file pages unused lately, in a group's `memory.stat`; those of the groups below
/// with it, where they are counted apart.
fn pages_of_files(text: &str) -> u64 {
    let count = |name: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.and_then(|number| number.trim().parse().ok())
    };
    count("total_inactive_file")
        .or_else(|| count("inactive_file"))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_memory_is_read_in_bytes() {
        let text =
            "MemTotal:       24684084 kB\nMemFree:        11402224 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_of_machine(text), Some(2 << 20));
        assert_eq!(available_of_machine("MemTotal: 3 kB\n"), None);
        assert!(available_bytes() > 1 << 20);
        assert!(physical_memory_bytes() > 1 << 24);
    }

    #[test]
    fn groups_are_looked_at_up_to_the_root() {
        let folders = |text| {
            let places = places(text).into_iter();
            places
                .map(|place| format!("{}/{}", place.0, place.1))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            folders("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup//memory.max",
            ]
        );
        assert_eq!(
            folders("5:devices:/x\n4:memory:/x\n"),
            [
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory//memory.limit_in_bytes",
            ]
        );
    }

    #[test]
    fn pages_of_files_count_as_left() {
        assert_eq!(pages_of_files("anon 5\ninactive_file 70\n"), 70);
        assert_eq!(
            pages_of_files("inactive_file 7\ntotal_inactive_file 90\n"),
            90
        );
        assert_eq!(pages_of_files(""), 0);
    }
}
