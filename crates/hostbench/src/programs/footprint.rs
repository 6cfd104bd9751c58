//! The memory of a program and of all that it starts, from `/proc`.

use std::fs;

/// Memory of a tree of processes, or the most of each kind there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Private memory (RssAnon).
    pub anonymous_bytes: u64,
    /// Mapped files (RssFile): code and libraries. What two processes share counts twice.
    pub file_bytes: u64,
}

impl Footprint {
    /// The memory of `process` and its descendants as it stands.
    pub fn of_tree(process: u32) -> Footprint {
        let mut sum = Footprint::default();
        let mut rest = vec![process];
        while let Some(process) = rest.pop() {
            // One that ends meanwhile holds nothing any more.
            let status = fs::read_to_string(format!("/proc/{process}/status"));
            let one = Footprint::parse(&status.unwrap_or_default());
            sum.anonymous_bytes += one.anonymous_bytes;
            sum.file_bytes += one.file_bytes;
            rest.extend(children(process));
        }
        sum
    }

    /// Keeps the larger of each kind.
    pub fn raise_to(&mut self, other: Footprint) {
        self.anonymous_bytes = self.anonymous_bytes.max(other.anonymous_bytes);
        self.file_bytes = self.file_bytes.max(other.file_bytes);
    }

    fn parse(status: &str) -> Footprint {
        let kibibytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        Footprint {
            anonymous_bytes: kibibytes("RssAnon:").unwrap_or(0) * 1024,
            file_bytes: kibibytes("RssFile:").unwrap_or(0) * 1024,
        }
    }
}

/// The children of all threads of `process`.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let lists = threads.into_iter().flatten().flatten().map(|thread| {
        let list = fs::read_to_string(thread.path().join("children"));
        list.unwrap_or_default()
    });
    lists
        .flat_map(|list| {
            let numbers = list.split_whitespace().map(str::parse);
            numbers.flatten().collect::<Vec<u32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_memory_are_found_in_a_status() {
        let status = "Name:\tsort\nVmRSS:\t 99 kB\nRssAnon:\t     12 kB\nRssFile:\t      7 kB\n";
        let footprint = Footprint::parse(status);
        assert_eq!(
            (footprint.anonymous_bytes, footprint.file_bytes),
            (12 << 10, 7 << 10)
        );
        assert_eq!(Footprint::parse(""), Footprint::default());
    }

    #[test]
    fn this_process_takes_memory() {
        let own = Footprint::of_tree(std::process::id());
        assert!(own.anonymous_bytes > 0 && own.file_bytes > 0, "{own:?}");
    }
}
