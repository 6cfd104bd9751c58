//! Impossible requests are refused with one line on stderr, and status 2.

use std::process::{Command, Output, Stdio};

use crate::support::{Folder, TIDEMARK, foreign_library, idle_library, stderr, tidemark};

/// Expects `output` to be a refusal whose one line contains each of `parts`.
fn expect_refusal(output: &Output, parts: &[&str]) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

/// Expects `tidemark run OPTIONS -- true` to be refused.
fn expect_run_refused(options: &[&str], parts: &[&str]) {
    let arguments = [&["run"], options, &["--", "true"]].concat();
    expect_refusal(&tidemark(&arguments), parts);
}

/// Expects `tidemark run --memory 64M -- PROGRAM` to be refused.
fn expect_program_refused(program: &str, parts: &[&str]) {
    expect_refusal(&tidemark(&["run", "--memory", "64M", "--", program]), parts);
}

#[test]
fn a_pattern_of_files_that_can_match_none() {
    let memory = ["--memory", "64M", "--files"];
    let refused = |pattern: &str, parts: &[&str]| {
        expect_run_refused(&[&memory[..], &[pattern]].concat(), parts);
    };
    refused("data/*.bin", &["`--files data/*.bin`", "absolute paths"]);
    refused("/data/[0-9", &["`--files /data/[0-9`", "`[` without `]`"]);
    refused("", &["`--files `", "empty"]);
    let in_thread = ["--memory", "64M", "--in-thread", "--files"];
    let output = tidemark(&[&["run"], &in_thread[..], &["--", "true"]].concat());
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("--in-thread") && told.contains("--files"),
        "{told}"
    );
}

#[test]
fn an_unknown_unit() {
    let told = "tidemark: `--memory 12Q`: unknown unit `Q`; use K, M, G or T\n";
    let output = tidemark(&["run", "--memory", "12Q", "--", "true"]);
    assert_eq!(stderr(&output), told);
    assert_eq!(output.status.code(), Some(2));
    expect_run_refused(
        &["--memory", "64M", "--swap-size", "1X"],
        &["--swap-size 1X", "`X`"],
    );
}

#[test]
fn no_size_at_all() {
    expect_run_refused(&["--memory", "lots"], &["`--memory lots`"]);
    expect_run_refused(&["--memory", ""], &["not a size"]);
    expect_run_refused(&["--memory=-5M"], &["`--memory -5M`: not a size"]);
}

#[test]
fn too_little_memory() {
    expect_run_refused(
        &["--memory", "4K"],
        &["`--memory 4K`", "the least that works is 4M"],
    );
    expect_run_refused(&["--memory", "0"], &["the least that works is 4M"]);
}

#[test]
fn a_division_that_is_not_there_and_a_least_that_is_too_small_or_too_large() {
    expect_run_refused(
        &["--memory", "64M", "--division", "fair"],
        &["`--division`: `fair`", "demand, fault-frequency", "global"],
    );
    expect_run_refused(
        &["--memory", "64M", "--per-task-min", "64K"],
        &["`--per-task-min 64K`: too small", "1 MiB"],
    );
    expect_run_refused(
        &["--memory", "64M", "--per-task-min", "65M"],
        &["`--per-task-min 65M`: more than all processes have"],
    );
}

#[test]
fn found_h4_a_share_of_what_is_not_known_yet_is_refused() {
    let told = ["`--memory 50%`", "not known before", "give a size"];
    expect_run_refused(&["--memory", "50%"], &told);
    expect_refusal(
        &tidemark(&["bench", "loop", "--memory", "50%", "--size", "8M"]),
        &told,
    );
    expect_run_refused(
        &["--memory", "64M", "--swap-size", "50%"],
        &["`--swap-size 50%`", "give a size"],
    );
}

#[test]
fn no_memory_given() {
    expect_refusal(&tidemark(&["run", "--", "true"]), &["--memory <SIZE>"]);
}

#[test]
fn a_policy_that_is_none() {
    let near = ["`clokc`", "did you mean `clock`?"];
    expect_run_refused(&["--memory", "64M", "--policy", "clokc"], &near);
    expect_run_refused(
        &["--memory", "64M", "--policy", "zzzzzzzz"],
        &["tidemark policies"],
    );
    expect_refusal(&tidemark(&["policies", "clokc"]), &near);
    let swapped = tidemark(&["curve", "x.tide", "--policies", "lur"]);
    expect_refusal(&swapped, &["`lur`: no such policy; did you mean `lru`?\n"]);
}

#[test]
fn found_c_words_and_options_that_are_near_are_suggested() {
    let lines: [(&[&str], &str); 8] = [
        (&["curv", "x.tide"], "did you mean `curve`?"),
        (&["rnu", "--memory", "8M", "true"], "did you mean `run`?"),
        (&["volume", "mkae"], "did you mean `make`?"),
        (
            &["curve", "x.tide", "--polices", "lru"],
            "did you mean `--policies`?",
        ),
        (
            &["curve", "x.tide", "--rehearse", "nevr"],
            "did you mean `never`?",
        ),
        (
            &["import", "x", "-o", "y", "--form", "csv"],
            "did you mean `--from`?",
        ),
        (
            &["import", "x", "-o", "y", "--from", "cvs"],
            "did you mean `csv`?",
        ),
        (
            &["import", "x.csv", "-o", "y", "--columns", "pgae=1"],
            "unknown `pgae`; did you mean `page`?",
        ),
    ];
    for (line, near) in lines {
        expect_refusal(&tidemark(line), &[near]);
    }
    let far = tidemark(&["curve", "x.tide", "--zzzzzz"]);
    expect_refusal(&far, &["`--help` shows what there is"]);
}

#[test]
fn found_c_a_share_above_the_whole_is_no_size_of_the_address_space() {
    // What is more than all is a size like another: there is no trace.
    expect_refusal(
        &tidemark(&["curve", "no.tide", "--at", "150%"]),
        &["no such file"],
    );
    let large = ["curve", "no.tide", "--at", "99999999999999999999%"];
    expect_refusal(
        &tidemark(&large),
        &["too large a share; give a size, like `512M`"],
    );
}

#[test]
fn found_n10_a_module_that_is_not_there() {
    let policy = ["--memory", "64M", "--policy", "./nix.wasm"];
    let told = ["`./nix.wasm`: can't be read: no such file or directory\n"];
    expect_run_refused(&policy, &told);
}

#[test]
fn found_n7_options_are_checked_before_a_trace_is_read() {
    // No trace: it would be complained of, if it came to that.
    let lines: [(&[&str], &[&str]); 12] = [
        (&["curve", "--at", "64X"], &["`--at 64X`", "unknown unit"]),
        (&["curve", "--at", "50%,0"], &["`--at 0`"]),
        (
            &["curve", "--policies", "lruu"],
            &["`lruu`", "did you mean `lru`"],
        ),
        (
            &["curve", "--policies", "zzzzzzzz"],
            &["`zzzzzzzz`", "there are lru"],
        ),
        (&["curve", "--slowdown", "0"], &["`--slowdown 0`"]),
        (&["curve", "--sample", "200%"], &["`--sample 200%`"]),
        (&["report", "--slowdown", "nan"], &["--slowdown"]),
        (
            &["wss", "--windows", "0"],
            &["`--windows 0`: must be at least 1"],
        ),
        (&["wss", "--windows", "1M,x"], &["`--windows x`"]),
        (&["map", "--rows", "0"], &["`--rows 0`"]),
        (&["replay", "--memory", "64X"], &["`--memory 64X`"]),
        (&["replay", "-m", "50%", "--wired", "x"], &["`--wired x`"]),
    ];
    for (options, parts) in lines {
        let output = tidemark(&[options, &["no-such.tide"]].concat());
        expect_refusal(&output, parts);
        assert!(!stderr(&output).contains("no-such.tide"), "{options:?}");
    }
}

#[test]
fn a_missing_program() {
    expect_program_refused("no-such-program-here", &["no-such-program-here", "$PATH"]);
    expect_program_refused("/no/such/program", &["/no/such/program", "no such file"]);
    expect_refusal(&tidemark(&["run", "--memory", "64M"]), &["PROGRAM"]);
}

#[test]
fn a_program_that_is_none() {
    let folder = Folder::new("no-program");
    expect_program_refused("/", &["`/`: is a directory"]);
    expect_program_refused(
        "/etc/passwd",
        &["`/etc/passwd`: not executable", "chmod +x"],
    );
    let text = folder.program("text", b"just words\n");
    expect_program_refused(&text, &[&text, "neither an ELF program nor a script"]);
    let script = folder.program("script", b"#!/no/such/interpreter\n");
    expect_program_refused(&script, &[&script]);
}

#[test]
fn programs_that_can_not_be_managed() {
    let folder = Folder::new("foreign");
    let mut head = [0u8; 128];
    head[..6].copy_from_slice(b"\x7fELF\x01\x01");
    let foreign = folder.program("foreign", &head);
    expect_program_refused(&foreign, &["another kind of machine", "--allow-unmanaged"]);
    head[4] = 2;
    head[16] = 2;
    head[18] = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    let alone = folder.program("static", &head);
    expect_program_refused(&alone, &["is statically linked", "--allow-unmanaged"]);
    let script = folder.program("script", format!("#!{alone}\n").as_bytes());
    expect_program_refused(&script, &[&script, "is statically linked"]);
}

#[test]
fn found_m5_a_program_with_privileges_of_its_own_has_one_true_remedy() {
    if !rustix::process::geteuid().is_root() {
        tidemark_testing::skip("only root may give files away");
        return;
    }
    let folder = Folder::new("privileged");
    let contents = std::fs::read("/bin/true").unwrap();
    let program = folder.program("privileged", &contents);
    std::os::unix::fs::chown(&program, Some(65534), Some(65534)).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(&program, mode).unwrap();
    let trace = folder.path("trace.tide");
    for command in [
        &["run", "--memory", "64M", "--", &program][..],
        &["record", "--live", "-o", &trace, "--", &program],
        &["record", "-o", &trace, "--", &program],
        &["compare", "--memory", "50%", "--", &program],
    ] {
        let output = tidemark(command);
        expect_refusal(&output, &[&program, "set-user-id", "a copy of it"]);
        let told = stderr(&output);
        assert!(!told.contains("without `--live`"), "{told}");
    }
    // What is told is true.
    let copy = folder.program("copy", &contents);
    let output = Command::new(TIDEMARK)
        .args(["run", "--memory", "64M", "--swap-size", "1M", "--", &copy])
        .env("TIDEMARK_SHIM", idle_library())
        .output()
        .unwrap();
    let is_there = tidemark_live::sys::uffd::Uffd::offered().is_ok();
    assert_eq!(output.status.success(), is_there, "{}", stderr(&output));
}

#[test]
fn found_m7_what_is_too_small_is_refused_with_what_the_program_uses() {
    if tidemark_live::sys::uffd::Uffd::offered().is_err() {
        return;
    }
    let folder = Folder::new("share");
    let trace = folder.path("loop.tide");
    let made = tidemark(&["generate", "loop", "--pages", "2048", "-o", &trace]);
    assert!(made.status.success(), "{}", stderr(&made));
    let compare = |options: &[&str]| {
        Command::new(TIDEMARK)
            .args(["compare", "--disk", "ssd"])
            .args(options)
            .args(["--", "true"])
            .env("TIDEMARK_SHIM", idle_library())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = compare(&["--memory", "75%,25%", "--trace", &trace]);
    let parts = ["`--memory 25%`", "uses 8 MiB of managed", "in is 4M, 50 %"];
    expect_refusal(&output, &parts);
    // What needs no recording to be told is told before.
    let new = folder.path("new.tide");
    let swap = ["--memory", "50%", "--trace", &new, "--swap-size", "lots"];
    expect_refusal(&compare(&swap), &["--swap-size lots"]);
    assert!(!std::path::Path::new(&new).exists());
}

#[test]
fn swap_that_can_not_be() {
    let memory = ["--memory", "64M"];
    let with = |options: &[&'static str]| [&memory[..], options].concat();
    expect_run_refused(
        &with(&["--swap", "/no/such/folder/x"]),
        &["/no/such/folder/x", "no such"],
    );
    expect_run_refused(
        &with(&["--swap", "/etc/passwd"]),
        &["/etc/passwd", "is there already"],
    );
    expect_run_refused(&with(&["--swap", "/proc"]), &["`--swap /proc`"]);
    let mistyped = ["`--swap /nix-no-such`", "no such folder", "`.swap`"];
    expect_run_refused(&with(&["--swap", "/nix-no-such"]), &mistyped);
    expect_run_refused(
        &with(&["--swap", "/no/such/x.swap"]),
        &["/no/such/x.swap", "no such folder"],
    );
    expect_run_refused(
        &with(&["--swap-size", "9000T"]),
        &["no room for 9000 TiB", "free"],
    );
    expect_run_refused(&with(&["--swap-size", "4K"]), &["needs at least 1 MiB"]);
    let without_file = ["--memory", "64M", "--store", "compressed", "--swap", "/tmp"];
    expect_run_refused(&without_file, &["`--swap`: there is no swap file"]);
    let without_file = ["--memory", "64M", "--store", "compressed", "--swap-plain"];
    expect_run_refused(&without_file, &["`--swap-plain`: there is no swap file"]);
    if std::path::Path::new("/dev/shm").is_dir() {
        expect_run_refused(&with(&["--swap", "/dev/shm"]), &["/dev/shm", "tmpfs"]);
    }
}

#[test]
fn files_that_can_not_be_written() {
    let memory = ["--memory", "64M", "--swap-size", "1M"];
    let with = |options: &[&'static str]| [&memory[..], options].concat();
    expect_run_refused(
        &with(&["--stats", "/no/such/stats.json"]),
        &["/no/such/stats.json"],
    );
    expect_run_refused(&with(&["--stats", "/"]), &["`/`"]);
    expect_run_refused(
        &with(&["--log-decisions", "/no/such/log"]),
        &["/no/such/log"],
    );
}

#[test]
fn what_can_not_be_compared() {
    let refused = |options: &[&str], parts: &[&str]| {
        let arguments = [&["compare"], options, &["--", "true"]].concat();
        expect_refusal(&tidemark(&arguments), parts);
    };
    refused(&[], &["--memory"]);
    refused(&["--memory", "4K"], &["`--memory 4K`: too small", "is 4M"]);
    refused(&["--memory", "64M,12Q"], &["`--memory 12Q`", "unit `Q`"]);
    refused(
        &["--memory", "64M", "--policy", "lru"],
        &["`--policy`", "every reference"],
    );
    refused(&["--memory", "64M", "--policy", "clok"], &["clok", "clock"]);
    refused(
        &["--memory", "64M", "--runs", "0"],
        &["`--runs 0`: takes 1 to 100"],
    );
    refused(
        &["--memory", "64M", "--disk", "tape"],
        &["`--disk tape`", "ssd"],
    );
    expect_refusal(
        &tidemark(&["compare", "--memory", "64M", "--", "/no/such/program"]),
        &["/no/such/program"],
    );
    expect_refusal(
        &tidemark(&[
            "replay",
            "-m",
            "64M",
            "--in-step",
            "--disk",
            "hdd",
            "x.tide",
        ]),
        &["--in-step", "--disk"],
    );
    expect_run_refused(
        &["--memory", "64M", "--in-step", "--in-thread"],
        &["--in-step", "--in-thread"],
    );
}

#[test]
fn a_missing_library() {
    let output = Command::new(TIDEMARK)
        .args(["run", "--memory", "64M", "--swap-size", "1M", "--", "true"])
        .env("TIDEMARK_SHIM", "/no/such/library.so")
        .output()
        .unwrap();
    expect_refusal(&output, &["/no/such/library.so", "TIDEMARK_SHIM"]);
}

#[test]
fn found_a4_a_library_of_another_build() {
    let library = foreign_library();
    let path = library.to_string_lossy().into_owned();
    for policy in ["mach3", "tidemark"] {
        let output = Command::new(TIDEMARK)
            .args(["run", "--memory", "64M", "--policy", policy])
            .args(["--allow-unmanaged", "--", "echo", "ran"])
            .env("TIDEMARK_SHIM", &library)
            .output()
            .unwrap();
        if tidemark_live::sys::uffd::Uffd::offered().is_err() {
            return;
        }
        expect_refusal(&output, &[&path, "of another build", "`make`"]);
        assert!(output.stdout.is_empty(), "nothing was started");
    }
}

#[test]
fn found_c_limits_of_files_are_named_with_what_is_needed() {
    let run = |limit: &str| {
        let script = format!("{limit}; exec '{TIDEMARK}' run --memory 64M -- true");
        let mut command = Command::new("bash");
        command
            .args(["-c", &script])
            .env("TIDEMARK_SHIM", idle_library());
        command.stdin(Stdio::null()).output().unwrap()
    };
    expect_refusal(
        &run("ulimit -n 16"),
        &["16 files", "`ulimit -n`", "32 at least"],
    );
    if tidemark_live::sys::uffd::Uffd::offered().is_ok() {
        expect_refusal(
            &run("ulimit -f 100"),
            &["100 KiB", "`ulimit -f`", "`--swap-size`"],
        );
    }
}

#[test]
fn options_and_commands_that_are_none() {
    expect_run_refused(&["--frobnicate"], &["--frobnicate", "--help"]);
    expect_refusal(&tidemark(&["frobnicate"]), &["frobnicate", "--help"]);
    expect_refusal(&tidemark(&["completions", "dos"]), &["dos"]);
    expect_refusal(&tidemark(&["man", "frobnicate"]), &["frobnicate"]);
}

#[test]
fn no_privilege() {
    // A folder that anybody may look into, unlike perhaps the one the command was built in.
    let folder = std::env::temp_dir().join(format!("tidemark-nobody-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let command = folder.join("tidemark");
    std::fs::copy(TIDEMARK, &command).unwrap();
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--no-new-privs",
            "--",
        ])
        .arg(&command)
        .args([
            "run",
            "--in-thread",
            "--memory",
            "64M",
            "--swap-size",
            "1M",
            "--",
            "true",
        ])
        .env("TIDEMARK_SHIM", idle_library())
        .stdin(Stdio::null())
        .output();
    let _ = std::fs::remove_dir_all(&folder);
    let is_free = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd")
        .is_ok_and(|text| text.trim() == "1");
    match output {
        Ok(output) if !is_free && !stderr(&output).contains("setpriv:") => {
            expect_refusal(
                &output,
                &["userfaultfd is not permitted", "--allow-unmanaged"],
            );
        }
        _ => {
            tidemark_testing::skip("needs root, setpriv, and vm.unprivileged_userfaultfd=0");
        }
    }
}
