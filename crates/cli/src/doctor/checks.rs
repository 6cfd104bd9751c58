//! The checks of `doctor`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use tidemark_emulator::machine::{EMULATOR, find_kernel};
use tidemark_live::sys::Errno;
use tidemark_live::sys::program::shares_memory_with;
use tidemark_live::sys::uffd::{Faults, Features, OpenError, Uffd};
use tidemark_results::host::{Check, Verdict};
use tidemark_results::text::bytes;

use tidemark_supervisor::host::{self, Caller, Lack};
use tidemark_supervisor::{container, program, recorder, room, swap};

/// The memory the trial run is given.
const TRIAL_MEMORY: &str = "16M";

/// The effect of a userfaultfd that serves faults in user mode alone.
const USER_MODE: &str = "permitted in user mode alone: `run` holds system calls up until their \
                         memory is there, and is slower; `--files`, `--in-thread`, `--in-step` and \
                         `record --live` need all of it";

/// The remedy for a container's filter that forbids what a profile of ours permits.
const PROFILE: &str = "start the container with `--security-opt seccomp=FILE`; `tidemark \
                       doctor --seccomp` prints the FILE";
/// Another way to permit userfaultfd to a container's root, if that is the machine's.
const FOR_ROOT: &str = "without the device: start it with `--cap-add SYS_PTRACE \
                        --security-opt seccomp=FILE`; `tidemark doctor --seccomp` prints the FILE";

/// The oldest kernel that has what is needed.
const KERNEL_MIN: (u32, u32) = (6, 8);

/// Looks at everything. Swap files would go to `folder`.
pub fn collect(folder: Option<&Path>) -> Vec<Check> {
    let mut checks = vec![
        kernel(),
        memory(),
        userfaultfd(),
        arrays(),
        features(),
        in_thread(),
        processes(),
        io_uring(),
    ];
    checks.push(swap_folder(folder));
    checks.push(library());
    // A trial tells nothing new where its needs are known to be missing.
    if checks.iter().all(|check| check.verdict != Verdict::Missing) {
        checks.push(trial(folder));
    }
    checks.extend([recording(), emulated_kernel()]);
    checks.extend([kernel_swap(), mapped_files(), tracing(), layout()]);
    checks
}

fn kernel() -> Check {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let finding = format!("Linux {release} on {}", uname.machine().to_string_lossy());
    match parse_version(&release) {
        Some(version) if version >= KERNEL_MIN => fine("kernel", finding),
        _ => missing("kernel", finding, "boot Linux 6.8 or later"),
    }
}

fn memory() -> Check {
    let processors = host::processors();
    let memory = bytes(room::physical_memory_bytes());
    fact(
        "machine",
        format!("{processors} processors, {memory} of memory"),
    )
}

fn userfaultfd() -> Check {
    let name = "userfaultfd";
    match Uffd::offered() {
        // A run does without the rest.
        Err(error) if host::has_user_mode() => {
            let lack = host::describe_error(error);
            let is_root = rustix::process::geteuid().is_root();
            let others = match (container::is_around(), is_root) {
                (true, true) => vec![FOR_ROOT.to_owned()],
                (false, false) => host::PERMISSIONS.map(str::to_owned).into(),
                (true, false) | (false, true) => vec![],
            };
            Check {
                others,
                ..limited(name, USER_MODE, lack.remedy.text())
            }
        }
        Ok(_) => fine(
            "userfaultfd",
            "permitted, for faults inside system calls, too".into(),
        ),
        Err(error) => {
            let is_denied = matches!(error, OpenError::NotPermitted { .. });
            let lack = host::describe_error(error);
            let others = match (is_denied, container::is_around(), Caller::find()) {
                (true, false, Caller::User) => host::PERMISSIONS.map(str::to_owned).into(),
                (true, true, Caller::Root) => vec![FOR_ROOT.to_owned()],
                _ => vec![],
            };
            Check {
                others,
                ..lacking("userfaultfd", lack, Verdict::Missing)
            }
        }
    }
}

/// The arrays and regions of the library, which need less than a run.
fn arrays() -> Check {
    let name = "arrays";
    let lacks = |offered| host::describe_missing(Features::MOVE.without(offered));
    match (Uffd::offered(), Uffd::offered_for(Faults::UserMode)) {
        (Ok(offered), _) => match lacks(offered) {
            None => fine(name, "regions of the library can be had".into()),
            Some(lack) => lacking(name, lack, Verdict::Limited),
        },
        (Err(_), Ok(offered)) => match lacks(offered) {
            None => limited(
                name,
                "regions of the library can be had; system calls fail on pages that are out",
                "permit userfaultfd, as above",
            ),
            Some(lack) => lacking(name, lack, Verdict::Limited),
        },
        // The kernel permits these to all: it is another that forbids them.
        (Err(_), Err(OpenError::NotPermitted { call, .. })) if call == Errno::PERM => limited(
            name,
            "none: a filter of system calls forbids userfaultfd for faults in user mode, too",
            match container::is_around() {
                true => PROFILE,
                false => "have the filter permit userfaultfd",
            },
        ),
        (Err(_), Err(_)) => fact(name, "not without userfaultfd".into()),
    }
}

fn features() -> Check {
    let name = "userfaultfd features";
    let offered = Uffd::offered().or_else(|_| Uffd::offered_for(Faults::UserMode));
    let Ok(offered) = offered else {
        return fact(name, "not known without userfaultfd".into());
    };
    match host::describe_missing(host::NEEDED.without(offered)) {
        None => fine(name, host::feature_names(host::NEEDED).join(", ")),
        Some(lack) => lacking(name, lack, Verdict::Missing),
    }
}

fn in_thread() -> Check {
    let name = "--in-thread";
    match Uffd::offered().map(|offered| host::describe_missing(Features::SIGBUS.without(offered))) {
        Ok(None) => fine(name, "SIGBUS delivery".into()),
        Ok(Some(lack)) => lacking(name, lack, Verdict::Limited),
        Err(_) => fact(name, "not without all of userfaultfd".into()),
    }
}

/// Checks whether an engine can tell that its process executes another program.
fn processes() -> Check {
    let name = "new programs";
    match shares_memory_with(std::process::id()) {
        true => fine(
            name,
            "a process that executes another program gives memory back at once".into(),
        ),
        false => limited(
            name,
            "kcmp is refused; a process that executes another program gives memory back late",
            match container::is_around() {
                true => PROFILE,
                false => "have the filter of system calls permit kcmp",
            },
        ),
    }
}

fn io_uring() -> Check {
    let disabled = read_number("/proc/sys/kernel/io_uring_disabled");
    let remedy = "sudo sysctl -w kernel.io_uring_disabled=0";
    let limited = |finding: &str, remedy: &str| {
        let finding = format!("{finding}; threads do the transfers instead");
        limited("io_uring", &finding, remedy)
    };
    match (disabled, rustix::process::geteuid().is_root()) {
        (None, _) if !Path::new("/proc/sys/kernel/io_uring_disabled").exists() => {
            limited("the kernel has none", "use a kernel with CONFIG_IO_URING=y")
        }
        (Some(0), _) | (Some(1), true) | (None, _) => match host::try_io_uring() {
            Ok(()) => fine("io_uring", "permitted".into()),
            Err(error) => limited(
                &format!("refused: {error}"),
                match container::is_around() {
                    true => PROFILE,
                    false => "have the filter of system calls permit io_uring_setup",
                },
            ),
        },
        (Some(_), _) => limited("switched off by the administrator", remedy),
    }
}

fn swap_folder(folder: Option<&Path>) -> Check {
    let name = "swap";
    match swap::create(folder, Some(16 << 20), 16 << 20) {
        Err(refusal) => missing(
            name,
            refusal.to_string(),
            "name a folder on a disk with `--swap`",
        ),
        Ok(swap) => {
            let free = rustix::fs::statvfs(&swap.folder)
                .map(|found| bytes(found.f_bavail.saturating_mul(found.f_frsize)));
            let free = free.unwrap_or_else(|_| "?".into());
            let shown = swap.folder.display();
            match swap.is_direct {
                true => fine(name, format!("`{shown}`: direct transfers, {free} free")),
                false => limited(
                    name,
                    &format!("`{shown}`: through the page cache, {free} free"),
                    "name a folder on ext4, xfs or btrfs with `--swap`",
                ),
            }
        }
    }
}

fn library() -> Check {
    match host::find_shim() {
        Ok(path) => fine("preload library", path.display().to_string()),
        Err(refusal) => missing("preload library", refusal.to_string(), "make build"),
    }
}

/// Checks whether programs can be recorded under Valgrind.
fn recording() -> Check {
    let name = "record";
    match (recorder::find_recorder(), recorder::find_valgrind()) {
        (Ok(path), Ok(_)) => fine(name, format!("the recorder, `{}`", path.display())),
        (Ok(_), Err(_)) => limited(
            name,
            "`valgrind` is not installed; `record --live` does without it",
            "apt-get install valgrind",
        ),
        (Err(refusal), _) => limited(name, &refusal.to_string(), "make build"),
    }
}

/// Checks whether the kernel can be booted.
fn emulated_kernel() -> Check {
    let name = "kernel run";
    let emulator = program::find(OsStr::new(EMULATOR));
    match (find_kernel(), emulator) {
        (Ok(path), Ok(_)) => fine(name, format!("the kernel, `{}`", path.display())),
        (Ok(_), Err(_)) => limited(
            name,
            "`qemu-system-x86_64` is not installed",
            "apt-get install qemu-system-x86",
        ),
        (Err(refusal), _) => limited(name, &refusal.to_string(), "make kernel"),
    }
}

/// Runs a program for real.
fn trial(folder: Option<&Path>) -> Check {
    let name = "trial run";
    let Ok(command) = std::env::current_exe() else {
        return fact(name, "this command's own path is not known".into());
    };
    let mut trial = Command::new(command);
    trial.args(["run", "--memory", TRIAL_MEMORY, "--swap-size", "64M"]);
    if let Some(folder) = folder {
        trial.arg("--swap").arg(folder);
    }
    trial
        .args(["--", "sh", "-c", "exit 42"])
        .stdin(Stdio::null());
    match trial.output() {
        Ok(output) if output.status.code() == Some(42) && is_quiet(&output.stderr) => {
            fine(name, "a shell ran in 16 MiB and ended as it should".into())
        }
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            let told = told.lines().next().unwrap_or("it said nothing");
            missing(
                name,
                format!("{}: {told}", output.status),
                "report it, with this output",
            )
        }
        Err(error) => missing(name, error.to_string(), "report it, with this output"),
    }
}

/// Returns true if a run has said no more than how it serves faults.
fn is_quiet(errors: &[u8]) -> bool {
    let text = String::from_utf8_lossy(errors);
    text.lines().all(|line| line.contains(host::IN_USER_MODE))
}

/// Checks whether the kernel's own swap can be measured beside ours.
fn kernel_swap() -> Check {
    let name = "bench kernel-swap";
    let limited = |finding: &str, remedy: &str| limited(name, finding, remedy);
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    let has_v2 = controllers.is_ok_and(|list| list.split_whitespace().any(|name| name == "memory"));
    let has_v1 = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !rustix::process::geteuid().is_root() {
        return limited(
            "needs root, for a swap file and a memory cgroup",
            "sudo tidemark bench …",
        );
    }
    if !Path::new("/proc/swaps").exists() {
        return limited("the kernel has no swap", "use a kernel with CONFIG_SWAP=y");
    }
    match (has_v2, has_v1) {
        (true, _) => fine(name, "root, and memory cgroups of version 2".into()),
        (false, true) => fine(name, "root, and memory cgroups of version 1".into()),
        (false, false) => limited(
            "there is no memory cgroup",
            "boot without cgroup_disable=memory, or mount -t cgroup2 none /sys/fs/cgroup",
        ),
    }
}

/// Says what is given up where mapped files are managed.
fn mapped_files() -> Check {
    let name = "mapped files";
    match Uffd::offered() {
        Ok(_) => fact(
            name,
            "`run --files` manages those that are read, `--files-write` those that are written to, \
             too: each process has pages of its own, others see what is written after `msync`, \
             `munmap` or the end, and no other process may write to the same pages"
                .into(),
        ),
        Err(_) => fact(name, "left to the kernel: see userfaultfd".into()),
    }
}

fn tracing() -> Check {
    let name = "ptrace";
    fact(
        name,
        match read_number("/proc/sys/kernel/yama/ptrace_scope") {
            None | Some(0) => "permitted among the processes of a user".into(),
            Some(1) => "permitted to parents alone (yama 1)".into(),
            Some(scope) => format!("restricted (yama {scope})"),
        } + "; run does not need it",
    )
}

fn layout() -> Check {
    let name = "address layout";
    fact(
        name,
        match read_number("/proc/sys/kernel/randomize_va_space") {
            Some(0) => "fixed".into(),
            _ => "random from run to run; `setarch -R` makes decision logs comparable".into(),
        },
    )
}

/// The first two numbers of a kernel release.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn read_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn fine(name: &str, finding: String) -> Check {
    Check {
        name: name.into(),
        verdict: Verdict::Fine,
        finding,
        remedy: None,
        others: vec![],
    }
}

fn fact(name: &str, finding: String) -> Check {
    Check {
        verdict: Verdict::Fact,
        ..fine(name, finding)
    }
}

fn missing(name: &str, finding: String, remedy: &str) -> Check {
    Check {
        verdict: Verdict::Missing,
        remedy: Some(remedy.into()),
        ..fine(name, finding)
    }
}

fn limited(name: &str, finding: &str, remedy: &str) -> Check {
    Check {
        verdict: Verdict::Limited,
        ..missing(name, finding.into(), remedy)
    }
}

fn lacking(name: &str, lack: Lack, verdict: Verdict) -> Check {
    Check {
        verdict,
        ..missing(name, lack.what, lack.remedy.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_by_number() {
        assert_eq!(parse_version("6.18.44-fc"), Some((6, 18)));
        assert!(parse_version("6.12-rc1").unwrap() >= KERNEL_MIN);
        assert!(parse_version("5.15.0").unwrap() < KERNEL_MIN);
        assert_eq!(parse_version("unknown"), None);
    }

    #[test]
    fn whatever_is_missing_comes_with_a_remedy() {
        for check in collect(None) {
            let is_amiss = [Verdict::Missing, Verdict::Limited].contains(&check.verdict);
            assert_eq!(is_amiss, check.remedy.is_some(), "{check:?}");
        }
    }
}
