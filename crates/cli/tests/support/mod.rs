//! The parts that the tests of the command share: a way to run it, and places for files.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tidemark_live::stamp::{STAMP, STAMP_BYTES};

/// The command under test.
pub const TIDEMARK: &str = env!("CARGO_BIN_EXE_tidemark");

/// A folder for one test, gone at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes a folder that is named after the test, on a disk if there is one.
    pub fn new(name: &str) -> Folder {
        // Tests of one binary may have taken the same name.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A file in the folder with these contents, that may be executed.
    pub fn program(&self, name: &str, contents: &[u8]) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().into()
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the command and waits for its end.
pub fn tidemark(arguments: &[&str]) -> Output {
    Command::new(TIDEMARK)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The output of the command, which ends well.
pub fn text(arguments: &[&str]) -> String {
    let output = tidemark(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The output of the command, which ends well and says nothing on stderr.
pub fn quiet_text(arguments: &[&str]) -> String {
    let output = tidemark(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    String::from_utf8(output.stdout).unwrap()
}

/// The command's output on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A library that can be loaded before any other and does nothing: the supervisor needs one to
/// hand to programs, and these tests are not about what it does there.
pub fn idle_library() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("idle-library-{}.so", std::process::id()));
        // With the stamp of this build behind it, at a place where that is looked for.
        let mut bytes = std::fs::read(foreign_library()).unwrap();
        bytes.resize(bytes.len().next_multiple_of(STAMP_BYTES), 0);
        bytes.extend(STAMP.0);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    MADE.get_or_init(make).clone()
}

/// A library that can be loaded, and that is of no build of this command.
pub fn foreign_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        let path = line.split_whitespace().last()?;
        path.contains("/libc.so.6").then(|| PathBuf::from(path))
    });
    libc.expect("tests are linked to glibc")
}
