//! Folders that a test may fill, on the disk of the build, removed when dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own, gone when dropped; kept if its test failed and `KEEP_SCRATCH` is set.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes an empty folder whose name begins with `name`.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&path).expect("the build's folder takes a new one");
        Self { path }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a folder inside the folder.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).expect("a new folder takes another");
        path
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        std::fs::write(&path, contents).expect("a new folder takes a file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("KEEP_SCRATCH").is_some() {
            eprintln!("kept: {}", self.path.display());
            return;
        }
        // What can't be removed now, `cargo clean` removes.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The files below `folder` by their path in it.
pub fn files_below(folder: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).expect("a folder of the test can be read") {
            let path = entry.expect("a folder of the test can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                let inside = path
                    .strip_prefix(folder)
                    .expect("it lies below")
                    .to_path_buf();
                found.insert(inside, path);
            }
        }
    }
    found
}
