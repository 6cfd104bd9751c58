//! Regions of users who may serve faults in user mode alone.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tidemark_regions::{Builder, Engine};
use tidemark_testing::skip;

use crate::child;
use crate::regions::{MIB, PAGE, keep_step};

/// A user without rights.
const NOBODY: u32 = 65534;
/// The error of a system call that is handed what it can't reach.
const EFAULT: i32 = 14;

fn settings() -> Builder {
    let settings = Engine::builder().memory(MIB).swap_size(64 * MIB);
    settings.swap_folder(&std::env::temp_dir())
}

/// Keeps a region of four times the memory in step with a plain array, and hands it to the kernel.
fn use_limited(engine: &Engine) {
    assert!(!engine.serves_system_calls());
    let mut region = engine.zeros(4 * MIB).unwrap();
    keep_step(&mut region, 11, 2000);
    region.fill(7);
    // Its first pages are out. Nothing of them is passed off as something else.
    let path = std::env::temp_dir().join(format!("tidemark-rights-{}", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    let error = file.write_all(&region).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(EFAULT), "{error}");
    let copy = region[..16 * PAGE].to_vec();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&copy).unwrap();
    assert!(std::fs::read(&path).unwrap() == copy);
    std::fs::remove_file(&path).unwrap();
    assert!(region.iter().all(|byte| *byte == 7));
}

#[test]
fn system_calls_fail_on_pages_that_are_out_where_no_more_is_permitted() {
    let started = settings().serve_user_mode_only().start();
    let engine = match started {
        Ok(engine) => engine,
        Err(error) if error.is_refusal() => return skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    use_limited(&engine);
}

#[test]
fn a_user_without_rights_has_regions() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("only root can become another user");
    }
    match settings().serve_user_mode_only().start() {
        Err(error) if error.is_refusal() => return skip(&error.to_string()),
        other => drop(other.unwrap()),
    }
    // By its open file: the folders before it may be closed to others.
    let mut program = Command::new("/proc/self/exe");
    program.args(["--ignored", "--exact", "rights::as_nobody", "--nocapture"]);
    program.current_dir("/").uid(NOBODY).gid(NOBODY);
    let output = child::run(&mut program);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let written = String::from_utf8_lossy(&output.stdout);
    assert!(written.contains("1 passed"), "{written}");
}

#[test]
#[ignore = "a part of another test, as another user"]
fn as_nobody() {
    let engine = settings().start().unwrap();
    // The administrator may have permitted more.
    if !engine.serves_system_calls() {
        use_limited(&engine);
    }
}
