//! A process and its descendants, as `/proc` shows them.

use std::fs;

/// Returns true if a process is an engine, whose memory is its program's.
pub fn is_engine(process: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| name == "tidemark-engine\n")
}

/// The engines that are children of `supervisor`.
pub fn engines(supervisor: u32) -> Vec<u32> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let parent = format!("PPid:\t{supervisor}");
    let is_its = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status"));
        status.is_ok_and(|status| status.lines().any(|line| line == parent))
    };
    let engines = processes.filter(|process| is_engine(*process));
    engines.filter(is_its).collect()
}

/// The processes that `root` started, directly or not, `root` first, without engines.
pub fn members(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&process) = found.get(next) {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{process}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            // A process that has ended meanwhile has no children to find.
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children
                .split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok());
            found.extend(children.filter(|id| !is_engine(*id)));
        }
    }
    found
}

/// The resident memory of `process`, in bytes: now, and at most so far.
pub fn resident_bytes(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// The command line of `process`, for people.
pub fn command_line(process: u32) -> String {
    let raw = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw).replace('\0', " ")
}

/// Describes the waits of all threads of the tree below `root`, for the report of a hang.
pub fn describe(root: u32) -> String {
    let mut text = String::new();
    for process in members(root) {
        text += &format!("process {process}: {}\n", command_line(process));
        let tasks = fs::read_dir(format!("/proc/{process}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let status = read("status");
            let state = status
                .lines()
                .find(|line| line.starts_with("State:"))
                .unwrap_or("State: ?");
            text += &format!(
                "  thread {} {:16} {} in {} syscall {}\n",
                task.file_name().display(),
                read("comm").trim(),
                state,
                read("wchan"),
                read("syscall").trim(),
            );
        }
    }
    text
}
