//! The needs of a test. Where it lacks, the test says so and skips; under `REQUIRE_ALL=1`, as in
//! continuous integration, that is a failure.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns true if the full sizes were asked for.
pub fn is_full() -> bool {
    std::env::var("TIDEMARK_ACCEPTANCE").is_ok_and(|value| value == "full")
}

/// Picks the small size, or the full one.
pub fn size<T>(small: T, full: T) -> T {
    if is_full() { full } else { small }
}

/// Returns true if these programs are there and page faults may be handled; says what is missing.
pub fn are_met(programs: &[&str]) -> bool {
    for program in programs {
        if find(program).is_none() {
            return lacks(&format!(
                "`{program}` is not installed (`scripts/deps test`)"
            ));
        }
    }
    if !may_handle_faults() {
        return lacks("userfaultfd is not permitted (`tidemark doctor` says how to permit it)");
    }
    true
}

/// Says what is missing. Under `REQUIRE_ALL=1` that fails the test.
pub fn lacks(what: &str) -> bool {
    tidemark_testing::skip(what);
    false
}

/// The path of `program`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|at| at.is_file())
}

/// Returns true if the kernel is of this version or newer.
pub fn has_kernel(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    (next().unwrap_or(0), next().unwrap_or(0)) >= (major, minor)
}

/// Returns true if this process is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns true if a process of this user may handle page faults, those in system calls included.
pub fn may_handle_faults() -> bool {
    let sysctl = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd");
    let is_open_to_all = sysctl.is_ok_and(|value| value.trim() == "1");
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/userfaultfd");
    is_root() || is_open_to_all || device.is_ok()
}

/// The command under test, with its preload library beside it: what `TIDEMARK` names, or the one
/// that Cargo has built.
pub fn tidemark() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(named) = std::env::var_os("TIDEMARK") {
            return PathBuf::from(named);
        }
        let command = PathBuf::from(env!("CARGO_BIN_EXE_tidemark"));
        build_shim(&command);
        command
    })
}

/// Builds the preload library where Cargo puts the command: a test of one crate does not build
/// another one's library by itself.
fn build_shim(command: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "tidemark-shim"]);
    build.args(["--package", "tidemark-pool"]);
    if command
        .parent()
        .is_some_and(|folder| folder.ends_with("release"))
    {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = build.status().expect("cargo runs: it runs this test");
    assert!(status.success(), "the preload library does not build");
}

/// The Python interpreter itself, past any wrapper script that chooses a version.
pub fn python() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let asked = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output();
        let output = asked.expect("python3 runs: the caller has looked for it");
        String::from_utf8(output.stdout)
            .expect("a path in UTF-8")
            .trim()
            .to_owned()
    })
}
