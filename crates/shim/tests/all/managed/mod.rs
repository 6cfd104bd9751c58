//! Runs of this test binary itself with the library loaded, in less memory than it needs.
//!
//! Needs a userfaultfd. Without one the tests say so and pass, unless `REQUIRE_ALL=1`.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidemark_live::control;
use tidemark_live::sys::uffd::{Features, Uffd};
use tidemark_testing::waits;

/// The longest time that a program may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The size of a page.
pub const PAGE: usize = 4096;
/// The words of a program to which the kernel refuses its request.
pub const REFUSED: &str = "the kernel refuses";
/// The name of the folder in which a program may put files.
pub const FOLDER: &str = "FOLDER";

/// The end of a program.
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// The text it wrote to standard error.
    pub stderr: String,
    /// The counts of its engine.
    pub counters: BTreeMap<String, u64>,
}

impl Ran {
    /// The lines of the library.
    pub fn lines(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| line.starts_with("tidemark:")).collect()
    }
}

/// Runs one of the `program_...` functions of the file that calls this, managed, in so many MiB.
/// `None` if it can't be run here.
#[track_caller]
pub fn run(program: &str, memory_mib: u64, settings: &[(&str, &str)]) -> Option<Ran> {
    if let Err(error) = Uffd::open(Features::MOVE) {
        tidemark_testing::skip(&format!("no userfaultfd ({error:?})"));
        return None;
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Not in /tmp, which may be memory itself.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("{program}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let counters = folder.join("counters");
    let own = std::env::current_exe().unwrap();
    // Beside this binary, where Cargo puts what it has just built for it.
    let library = own.with_file_name("libtidemark_shim.so");
    assert!(library.exists(), "{} is not built", library.display());
    let module = Path::new(Location::caller().file()).file_stem().unwrap();
    let name = format!("{}::{program}", module.display());
    let mut child = Command::new(&own)
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .arg("--test-threads=1")
        .env("LD_PRELOAD", library)
        .env(control::MEMORY, (memory_mib << 20).to_string())
        .env(control::SWAP_PATH, &folder)
        .env(control::SWAP_BYTES, (512 << 20).to_string())
        .env(control::COUNTERS, &counters)
        .env(FOLDER, &folder)
        .envs(settings.iter().copied())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let status = waits::for_end(&mut child, LIMIT);
    let stderr = std::fs::read_to_string(folder.join("stderr")).unwrap();
    let text = std::fs::read_to_string(&counters).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let counters = pairs
        .map(|(name, count)| (name.into(), count.parse().unwrap()))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    if let Some(line) = stderr.lines().find(|line| line.contains(REFUSED)) {
        tidemark_testing::skip(line);
        return None;
    }
    Some(Ran {
        status,
        stderr,
        counters,
    })
}
