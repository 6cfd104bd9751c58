//! Programs on the kernel do what they do as processes of Linux.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::Folder;
use super::{console, is_ready, kernel};

/// Builds the kernel's programs for Linux.
pub fn host_programs(folder: &Folder) -> PathBuf {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/user/build");
    let host = folder.0.join("host");
    let status = Command::new(build).arg(&host).arg("host").status().unwrap();
    assert!(status.success());
    host
}

/// Lines in no order.
pub fn text(lines: u64) -> String {
    let mut random: u64 = 7;
    let mut text = String::new();
    for _ in 0..lines {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(&format!("{:x} line {}\n", random >> 20, random >> 60));
    }
    text
}

#[test]
fn programs_print_what_they_print_on_linux() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-programs");
    let host = host_programs(&folder);
    let text = text(40_000);
    assert!(text.len() > 700_000);
    std::fs::write(folder.path("text"), &text).unwrap();
    std::fs::write(folder.path("few"), &text[..3000]).unwrap();
    for (memory, line) in [
        ("8M", "sheep 4 4096"),
        ("512K", "sort text quiet"),
        ("256K", "words few"),
        ("4M", "words text"),
        ("128K", "sort few"),
        ("256K", "matrix 96"),
        ("1M", "forks 200"),
        ("128K", "cat few"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let mut native = Command::new(host.join(words[0]));
        let native = native
            .args(&words[1..])
            .current_dir(&folder.0)
            .output()
            .unwrap();
        let named = words[1..]
            .iter()
            .filter(|word| folder.0.join(word).is_file());
        let with: String = named.map(|word| format!("--with {word} ")).collect();
        let seen = console(&folder, &format!("--memory {memory} {with}-- {line}"));
        assert_eq!(
            seen,
            String::from_utf8_lossy(&native.stdout),
            "{line} in {memory}"
        );
    }
}

#[test]
fn memory_that_is_changed_at_random_reads_as_on_linux() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-mix");
    let host = host_programs(&folder);
    let contents = text(6000);
    let write = || std::fs::write(folder.path("pages"), &contents[..96 << 10]).unwrap();
    for (number, words) in [
        "--memory 128K",
        "--memory 256K --policy tidemark",
        "--memory 256K --policy mach3 --layout demand --in-step",
        "--memory 512K --policy gnumach --load-control task-swapper --pace 1000",
    ]
    .into_iter()
    .enumerate()
    {
        let line = ["mix", &(number + 1).to_string(), "120", "pages"].join(" ");
        write();
        let text = console(&folder, &format!("{words} --with pages -- {line}"));
        let mut native = Command::new(host.join("mix"));
        let native = native.args(line.split(' ').skip(1)).current_dir(&folder.0);
        // Its children execute it under its name.
        std::fs::copy(host.join("mix"), folder.path("mix")).unwrap();
        let native = native.output().unwrap();
        let printed = String::from_utf8_lossy(&native.stdout);
        assert!(printed.len() > 5, "{line}: {}", super::stderr(&native));
        // Those of its children that trespass are told of besides.
        assert_eq!(
            text.lines().last(),
            printed.lines().last(),
            "{line}: {words}"
        );
    }
}

#[test]
fn system_calls_do_what_they_say_and_refuse_what_they_can_not() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-calls");
    std::fs::write(folder.path("text"), text(400)).unwrap();
    let text = console(&folder, "--memory 256K --with text -- calls text");
    assert!(text.ends_with("\n0 calls went wrong\n"), "{text}");
}

#[test]
fn a_script_executes_fifty_programs() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-script");
    // Longer than a shell's page or two, with what others leave between words.
    let script = "# Fifty.\n".repeat(5000) + &"matrix \t8\r\n".repeat(50) + "echo done\n";
    std::fs::write(folder.path("script"), script).unwrap();
    let seen = console(&folder, "--memory 256K --script script");
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!((lines.len(), lines[50]), (51, "done"));
    assert!(lines[..50].iter().all(|line| *line == lines[0]), "{seen}");
}

#[test]
fn every_policy_of_bits_runs_sheep() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-sheep");
    use tidemark_core::policies;
    use tidemark_core::seams::policy::Sees;
    let policies = policies::entries().iter().map(|entry| entry.description);
    let policies = policies.filter(|description| description.sees <= Sees::Bits);
    for name in policies.map(|description| description.name) {
        let words = format!("--memory 512K --policy {name} -- sheep 3 640");
        assert_eq!(console(&folder, &words), "3 sheep, 0 lost\n", "{name}");
    }
}

/// Ten sheep that want six times the memory there is, with this load control. Answers the
/// decisions, and how often a program was stopped.
fn graze_with(folder: &Folder, load: &str, policy: &str) -> (Vec<u8>, u64) {
    let words = format!(
        "--in-step --pace 1000 --layout demand --memory 1M --policy {policy} --load-control {load} \
         --log-decisions log --stats record -- sheep 10 640"
    );
    assert_eq!(console(folder, &words), "10 sheep, 0 lost\n", "{load}");
    let record = std::fs::read(folder.path("record")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let stops = record["machine"]["suspensions"].as_u64().unwrap();
    (std::fs::read(folder.path("log")).unwrap(), stops)
}

#[test]
fn each_load_control_steps_in_between_sheep() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-load");
    // One policy tells how much each program needs, by which `medium-term` goes; others do not.
    let [(by_need, _), (by_use, stops)] =
        ["wsclock", "clock"].map(|policy| graze_with(&folder, "none", policy));
    assert_eq!(stops, 0);
    for entry in tidemark_core::load::registry::entries() {
        let name = entry.description.name;
        let (policy, without) = match name {
            "none" => continue,
            "medium-term" => ("wsclock", &by_need),
            _ => ("clock", &by_use),
        };
        let (log, stops) = graze_with(&folder, name, policy);
        // It goes by the time that programs wait for pages, and in step they do not.
        let is_idle = name == "working-set";
        assert_eq!(
            log == *without,
            is_idle,
            "{name} has changed nothing, or too much"
        );
        let is_stopping = matches!(name, "medium-term" | "vms-swapper" | "task-swapper");
        assert_eq!(stops > 0, is_stopping, "{name}: {stops} were stopped");
    }
}

#[test]
fn statistics_have_the_form_of_a_run_and_count_this_one() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-statistics");
    console(&folder, "--memory 512K --stats record -- sheep 3 640");
    let record = std::fs::read(folder.path("record")).unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let own = &whole["machine"];
    let record: tidemark_results::RunRecord = serde_json::from_slice(&record).unwrap();
    assert_eq!(
        (record.mode.as_str(), record.total.frames_budget),
        ("kernel", 128)
    );
    assert!(own["translations_forgotten"].as_u64() > Some(100), "{own}");
    assert!(record.total.page_ins > 100 && record.total.page_outs > 100);
    assert!(record.total.cow_faults > 0 && record.total.elapsed_s > 0.0);
}

#[test]
fn what_can_not_be_run_is_said_in_a_line() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-refusals");
    std::fs::write(folder.path("no-image"), vec![7; 64 << 10]).unwrap();
    std::fs::write(folder.path("text"), "text\n".repeat(2000)).unwrap();
    std::fs::write(folder.path("a-name-too-long"), "").unwrap();
    std::fs::write(folder.path("huge"), vec![1; 32 << 20]).unwrap();
    let made = super::support::tidemark(&["kernel", "image", "-o", &folder.path("cut")]);
    assert!(made.status.success());
    let cut = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path("cut"))
        .unwrap();
    cut.set_len(200 << 10).unwrap();
    for (words, code, told) in [
        ("-- nothing", 2, "`nothing` is not on the volume"),
        ("--pinned -- nothing", 2, "`nothing` is not on the volume"),
        (
            "--with text -- text",
            2,
            "`text` is no program that this kernel runs: it is no static ELF executable",
        ),
        ("no-image -- cat", 2, "the first disk is 128 blocks long"),
        ("nowhere -- cat", 2, "`nowhere`: no such file"),
        ("./ -- cat", 2, "is no file; name an image"),
        ("cut -- cat", 2, "its last block, 399, does not begin with"),
        (
            "--with a-name-too-long -- cat",
            2,
            "names on a volume are 1 to 12 bytes",
        ),
        ("--with huge -- cat", 2, "name fewer or smaller files"),
        ("--memory 4K -- cat", 2, "64K to 512M"),
        ("--policy lifo -- cat", 2, "lifo"),
        ("--policy lru -- cat", 2, "must see every reference"),
        (
            "--policy ./mine.wat -- cat",
            2,
            "runs no policies from files",
        ),
        ("--inject melt:1 -- cat", 2, "flip, read, write"),
    ] {
        let output = kernel(&folder, words);
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        let all = String::from_utf8_lossy(&all);
        assert_eq!(output.status.code(), Some(code), "{words}: {all}");
        assert!(all.contains(told), "{words}: {all}");
    }
}

/// Builds a program of the kernel from C, as `kernel/user/build` does.
fn build_user(folder: &Folder, name: &str, source: &str) {
    let user = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/user");
    std::fs::write(folder.0.join("program.c"), source).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-std=gnu17", "-O2", "-ffreestanding", "-fno-pic", "-no-pie"])
        .args([
            "-fno-stack-protector",
            "-fcf-protection=none",
            "-mno-red-zone",
        ])
        .args(["-fno-asynchronous-unwind-tables", "-nostdlib", "-static"])
        .args(["-Wl,--build-id=none", "-Wl,-z,max-page-size=4096"])
        .args([
            "-Wl,--no-warn-rwx-segments",
            "-Wl,--gc-sections,--strip-debug",
        ])
        .arg("-I")
        .arg(&user)
        .arg("-T")
        .arg(user.join("program.ld"))
        .args(["-o", name, "program.c"])
        .args([user.join("kernel.c"), user.join("text.c")])
        .arg("-fno-tree-loop-distribute-patterns")
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", super::stderr(&built));
}

#[test]
fn a_program_without_constants_runs_and_a_segment_out_of_place_is_named() {
    if !is_ready() || !super::needs::are_met(&["cc"]) {
        return;
    }
    let folder = Folder::new("kernel-segments");
    build_user(&folder, "three", "int run(void) { return 3; }\n");
    for layout in ["", "--pinned "] {
        let output = kernel(&folder, &format!("{layout}--with three -- three"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("kernel:"), "{text}");
    }
    // The address of the first segment, in its header.
    let mut bytes = std::fs::read(folder.path("three")).unwrap();
    bytes[64 + 16] = 0x10;
    std::fs::write(folder.path("three"), bytes).unwrap();
    let text = super::console_at_end(&folder, "--with three -- three", 2);
    assert!(text.contains("its segment 0 is at 0x400010"), "{text}");
}

#[test]
fn this_machine_s_own_processor_runs_the_kernel_or_it_is_said_why_not() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-kvm");
    let mut options = std::fs::OpenOptions::new();
    if options.read(true).write(true).open("/dev/kvm").is_ok() {
        assert_eq!(
            console(&folder, "--kvm -- ls"),
            console(&folder, "-- ls"),
            "other files"
        );
        return;
    }
    let output = kernel(&folder, "--kvm -- ls");
    let told = super::stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("without `--kvm` the processor is emulated"),
        "{told}"
    );
}

#[test]
fn a_machine_that_does_not_end_is_ended_with_the_last_lines_of_its_console() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-hang");
    std::fs::write(folder.path("script"), "echo before\nmatrix 4000\n").unwrap();
    let script = folder.path("script");
    let words = [
        "kernel", "run", "--limit", "10", "--memory", "1M", "--script", &script,
    ];
    let output = super::support::tidemark(&words);
    assert_eq!(output.status.code(), Some(2));
    let told = super::stderr(&output);
    assert!(
        told.contains("no end after 10 s; the console's last lines: before"),
        "{told}"
    );
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let folder = Folder::new("kernel-same");
    std::fs::write(folder.path("words"), "ls\n").unwrap();
    for line in [
        "image -o words words",
        "run --script words --log-decisions words",
        "run --with words --stats words -- ls",
        "run --log-decisions words words -- ls",
    ] {
        let mut command = Command::new(super::support::TIDEMARK);
        command
            .arg("kernel")
            .args(line.split(' '))
            .current_dir(&folder.0);
        let output = command.output().unwrap();
        let told = super::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {told}");
        assert!(
            told.contains("is the same file as `words`"),
            "{line}: {told}"
        );
        assert_eq!(std::fs::read(folder.path("words")).unwrap(), b"ls\n");
    }
}
