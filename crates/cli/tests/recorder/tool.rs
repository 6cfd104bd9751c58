//! The needs of the tests: the recorder, programs of their own, and runs with a limit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tidemark_testing::waits;

use crate::recording::Recording;
use crate::support::{Folder, TIDEMARK, stderr};

/// The longest time that one run may take, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The folder of the recorder, built if need be. `None`, after saying why, where it can't be.
pub fn recorder() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recorder");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorder");
        let made = Command::new("make")
            .arg("--silent")
            .arg("-C")
            .arg(&sources)
            .arg(format!("OUT={}", folder.display()))
            .output()
            .map_err(|error| format!("`make`: {error}"))?;
        match made.status.success() {
            true => Ok(folder),
            false => Err(stderr(&made)),
        }
    });
    match built {
        Ok(folder) => Some(folder),
        Err(why) => {
            tidemark_testing::skip(why);
            None
        }
    }
}

/// `tidemark record` with these arguments, to be changed and run. The program is run by itself
/// before only where they say so.
pub fn record(recorder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(TIDEMARK);
    let is_timing = arguments.iter().any(|word| word.starts_with("--time"));
    command
        .arg("record")
        .args((!is_timing).then_some("--time=never"))
        .args(arguments)
        .env("TIDEMARK_RECORDER", recorder)
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end, or fails the test when it takes too long.
pub fn finish(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    waits::for_end(&mut child, LIMIT);
    child.wait_with_output().unwrap()
}

/// Starts a command whose output goes to files of the folder.
pub fn start(command: &mut Command, folder: &Folder) -> Child {
    let file = |name| Stdio::from(std::fs::File::create(folder.path(name)).unwrap());
    command
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .spawn()
        .unwrap()
}

/// The process that the program says it is.
pub fn await_line(folder: &Folder) -> Pid {
    let began = Instant::now();
    loop {
        let said = std::fs::read_to_string(folder.path("stdout")).unwrap();
        if let Some(line) = said.strip_suffix('\n') {
            return Pid::from_raw(line.parse().unwrap()).unwrap();
        }
        assert!(began.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the end of a command, or fails the test when it takes too long.
pub fn end(child: &mut Child) -> ExitStatus {
    waits::for_end(child, LIMIT)
}

/// Records a program that is to succeed, and reads the trace.
pub fn recorded(folder: &Folder, recorder: &Path, arguments: &[&str]) -> (Output, Recording) {
    let trace = folder.path("trace.tide");
    let mut all = vec!["-o", &trace];
    all.extend(arguments);
    let output = finish(&mut record(recorder, &all));
    assert!(output.status.success(), "{output:?}");
    (output, Recording::read(&trace))
}

/// Compiles a C program.
pub fn compile(folder: &Folder, name: &str, source: &str, options: &[&str]) -> String {
    let (path, program) = (folder.path(&format!("{name}.c")), folder.path(name));
    std::fs::write(&path, source).unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recorder");
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-o", &program, &path, "-I"])
        .arg(header)
        .args(options)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    program
}
