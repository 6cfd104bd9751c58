//! Folders for what a benchmark writes, removed at its end.

use std::fs;
use std::path::{Path, PathBuf};

use crate::output::say;

/// The name of scratch folders, before the process id.
const SCRATCH: &str = "tidemark-bench-";

/// A folder for the files of a benchmark, removed at the end.
pub struct Scratch {
    /// The path of the folder.
    pub path: PathBuf,
}

impl Scratch {
    /// Makes a folder in `folder`, and removes those of benchmarks that were killed.
    pub fn create(folder: &Path) -> Result<Scratch, String> {
        remove_stale(folder);
        let path = folder.join(format!("{SCRATCH}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch { path })
    }
}

/// Removes the folders of benchmarks that were killed. What can't be removed does no harm.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(SCRATCH)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            say!(
                "tidemark bench: left behind: {}: {error}",
                self.path.display()
            );
        }
    }
}
