//! The contenders: ways to run the same program in the same memory.

use std::ffi::OsString;
use std::path::Path;

use clap::ValueEnum;

/// The rivals that ours is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rival {
    /// The kernel's own swap, under a control group: at the host's page-cluster and at the best
    KernelSwap,
    /// A mapped file in place of the array, under the same control group
    Mmap,
    /// No limit at all, for reference
    Native,
}

/// A way of `tidemark run`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The policy asked for, or the default one.
    pub policy: Option<String>,
    /// The load control asked for, or the default one.
    pub load_control: Option<String>,
    /// The division asked for, or the usual one.
    pub division: Option<String>,
    /// True if the faulting thread serves its own faults.
    pub is_in_thread: bool,
}

/// One way to run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contender {
    /// `tidemark run`.
    Own(Own),
    /// The kernel's swap with this read-ahead.
    KernelSwap {
        /// The logarithm of the pages read together.
        page_cluster: u32,
    },
    /// A mapped file.
    Mmap,
    /// No limit.
    Native,
}

/// The read-aheads among which the kernel's best is looked for, beside the host's own.
pub const PAGE_CLUSTERS: [u32; 4] = [0, 3, 5, 6];

impl Contender {
    /// The name in tables and records.
    pub fn name(&self) -> String {
        match self {
            Contender::Own(own) => own.name(),
            Contender::KernelSwap { page_cluster } => format!("kernel-swap-{page_cluster}"),
            Contender::Mmap => "mmap".to_owned(),
            Contender::Native => "native".to_owned(),
        }
    }

    /// The options of `tidemark run` that it stands for.
    pub fn run_options(&self) -> Vec<OsString> {
        let Contender::Own(own) = self else {
            return vec![];
        };
        let named = [
            ("--policy", &own.policy),
            ("--load-control", &own.load_control),
            ("--division", &own.division),
        ];
        let named = named.into_iter().filter_map(|(option, value)| {
            let value = value.as_ref()?;
            Some([OsString::from(option), value.into()])
        });
        let mode = own.is_in_thread.then(|| OsString::from("--in-thread"));
        named.flatten().chain(mode).collect()
    }

    /// Returns true if it runs under a control group that holds it to the memory.
    pub fn is_limited_by_kernel(&self) -> bool {
        match self {
            Contender::KernelSwap { .. } | Contender::Mmap => true,
            Contender::Own(_) | Contender::Native => false,
        }
    }
}

impl Own {
    fn name(&self) -> String {
        let mode = match self.is_in_thread {
            true => "tidemark-in-thread",
            false => "tidemark",
        };
        let with = |sign: char, name: &Option<String>| {
            let name = name.as_ref();
            name.map_or(String::new(), |name| format!("{sign}{name}"))
        };
        let (policy, load_control) = (with(':', &self.policy), with('+', &self.load_control));
        format!("{mode}{policy}{load_control}{}", with('/', &self.division))
    }
}

/// `program arguments…` under `tidemark run`, with these options beside those that every such run
/// has. Where the options keep pages in memory alone there is no swap file.
pub fn under_own(
    tidemark: &Path,
    memory_bytes: u64,
    swap_folder: &Path,
    statistics: &Path,
    options: Vec<OsString>,
) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![tidemark.into(), "run".into(), "--memory".into()];
    command.push(memory_bytes.to_string().into());
    if !is_without_file(&options) {
        command.extend(["--swap".into(), swap_folder.into()]);
    }
    command.extend(["--stats".into(), statistics.into()]);
    command.extend(options);
    command.push("--".into());
    command
}

/// Returns true if these options of `tidemark run` keep pages that leave in memory alone.
fn is_without_file(options: &[OsString]) -> bool {
    let mut last = None;
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--store") => last = words.next().and_then(|store| store.to_str()),
            Some(word) => last = word.strip_prefix("--store=").or(last),
            None => {}
        }
    }
    last == Some("compressed")
}

/// `program arguments…` inside the control group at `group`.
///
/// A shell joins the group and becomes the program, so that the program is in it from its first
/// page on.
pub fn inside_group(group: &Path) -> Vec<OsString> {
    let script = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;
    vec!["/bin/sh".into(), "-c".into(), script.into(), group.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_keeps_pages_in_memory_is_given_no_swap_file() {
        let has_swap = |options: &[&str]| {
            let options = options.iter().map(OsString::from).collect();
            let own = Path::new("/usr/bin/tidemark");
            under_own(own, 1 << 20, Path::new("/tmp"), Path::new("/s"), options)
                .contains(&OsString::from("--swap"))
        };
        assert!(has_swap(&[]));
        assert!(has_swap(&["--store=file"]));
        assert!(has_swap(&["--store", "compressed+file"]));
        assert!(has_swap(&["--store=compressed", "--store=file"]));
        assert!(!has_swap(&["--store=compressed"]));
        assert!(!has_swap(&["--policy=clock", "--store", "compressed"]));
    }
}
