//! Files that commands write: what was there is lost only to something whole, and an output that is
//! an input is refused by every command, before anything is touched.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Folder, TIDEMARK, stderr, tidemark};

/// A trace, and files that other commands read.
fn material(folder: &Folder) {
    let trace = folder.path("s.tide");
    let made = tidemark(&["generate", "loop", "--references", "2k", "-o", &trace]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    std::fs::write(folder.0.join("p.pages"), "1\n2\n1\n").unwrap();
    std::fs::write(folder.0.join("words"), "b\na\n").unwrap();
    std::fs::write(folder.0.join("mine.wat"), "(module)").unwrap();
    std::fs::write(folder.0.join("disk.json"), "{}").unwrap();
    std::fs::write(folder.0.join("record.json"), "{}").unwrap();
    let volume = folder.path("v.img");
    for line in [
        &["make", &volume][..],
        &["put", &volume, &folder.path("words")],
    ] {
        let made = tidemark(&[&["volume"], line].concat());
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    }
}

/// Every command that writes, with a file of [`material`] as its input and its output, which
/// stands as `OUT` so that it can be called by other names.
const LINES: [(&str, &str); 25] = [
    ("s.tide", "export s.tide -o OUT --to csv"),
    ("s.tide", "export s.tide --parquet -o OUT"),
    ("p.pages", "import p.pages -o OUT"),
    ("s.tide", "report s.tide -o OUT"),
    ("s.tide", "curve s.tide --png OUT"),
    ("s.tide", "curve s.tide --svg OUT --csv"),
    ("mine.wat", "curve s.tide --policies ./mine.wat --png OUT"),
    ("s.tide", "map s.tide --png OUT"),
    ("s.tide", "map s.tide --svg OUT"),
    ("s.tide", "wss s.tide --png OUT"),
    ("s.tide", "wss s.tide --svg OUT"),
    ("s.tide", "replay -m 50% s.tide --html OUT"),
    ("s.tide", "replay -m 50% s.tide --log-decisions OUT"),
    (
        "mine.wat",
        "replay -m 50% --policy ./mine.wat s.tide --html OUT",
    ),
    (
        "disk.json",
        "replay -m 50% --disk table:disk.json s.tide --html OUT",
    ),
    ("words", "record -o OUT -- sort words"),
    ("words", "record --live -o OUT -- sort words"),
    ("words", "run --memory 64M --stats OUT -- sort words"),
    (
        "words",
        "run --memory 64M --log-decisions OUT -- sort words",
    ),
    (
        "mine.wat",
        "run --memory 64M --policy ./mine.wat --stats OUT -- true",
    ),
    ("record.json", "experiment --from record.json --html OUT"),
    ("v.img", "volume get v.img words -o OUT"),
    ("words", "volume put OUT words"),
    ("words", "volume put OUT p.pages words"),
    ("v.img", "volume put OUT v.img"),
];

/// Runs a line of words in `folder`, with the file `input` on standard input if there is one.
fn run(folder: &Folder, line: &str, input: Option<&str>) -> std::process::Output {
    let input = input.map(|name| std::fs::File::open(folder.path(name)).unwrap());
    Command::new(TIDEMARK)
        .args(line.split(' '))
        .current_dir(&folder.0)
        .stdin(input.map_or(Stdio::null(), Stdio::from))
        .output()
        .unwrap()
}

/// Expects a refusal that names both files, with everything in the folder as it was.
fn expect_refused(folder: &Folder, line: &str, input: Option<&str>, names: [&str; 2]) {
    let before = contents(&folder.0);
    let output = run(folder, line, input);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {told}");
    assert_eq!(told.lines().count(), 1, "{line}: {told}");
    assert!(told.contains("is the same file as"), "{line}: {told}");
    for name in names {
        assert!(told.contains(name), "{line}: `{name}` is not in: {told}");
    }
    assert_eq!(contents(&folder.0), before, "{line}");
}

/// Every file of a folder, byte for byte.
fn contents(folder: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn found_h2_an_output_that_is_the_input_is_refused_by_every_command() {
    let folder = Folder::new("outputs-same");
    material(&folder);
    for (input, line) in LINES {
        let line = line.replace("OUT", input);
        expect_refused(&folder, &line, None, [input, "which is read"]);
    }
}

#[test]
fn found_h2_links_and_standard_input_are_seen_through() {
    let folder = Folder::new("outputs-links");
    material(&folder);
    for (number, (input, line)) in LINES.into_iter().enumerate() {
        let name = format!("link{number}");
        match number % 2 {
            0 => symlink(input, folder.0.join(&name)).unwrap(),
            _ => std::fs::hard_link(folder.0.join(input), folder.0.join(&name)).unwrap(),
        }
        expect_refused(&folder, &line.replace("OUT", &name), None, [&name, input]);
    }
    let piped = [
        ("export - -o s.tide --to csv", "s.tide", "standard input"),
        (
            "export /dev/stdin -o s.tide --to csv",
            "s.tide",
            "/dev/stdin",
        ),
        (
            "import - --from pages -o p.pages",
            "p.pages",
            "standard input",
        ),
        (
            "run --memory 64M --stats words -- sort",
            "words",
            "standard input",
        ),
        ("record -o words -- sort", "words", "standard input"),
    ];
    for (line, input, name) in piped {
        expect_refused(&folder, line, Some(input), [input, name]);
    }
}

#[test]
fn found_h2_two_outputs_are_two_files() {
    let folder = Folder::new("outputs-two");
    material(&folder);
    symlink("a", folder.0.join("b")).unwrap();
    let names = ["--svg a", "--png b"];
    let told = stderr(&run(&folder, "curve s.tide --png b --svg a", None));
    assert!(names.iter().all(|name| told.contains(name)), "{told}");
}

#[test]
fn found_h2_an_old_output_stays_until_the_new_one_is_whole() {
    let folder = Folder::new("outputs-old");
    material(&folder);
    let out = folder.0.join("out");
    std::fs::write(&out, "old").unwrap();
    let cut = std::fs::read(folder.0.join("s.tide")).unwrap();
    std::fs::write(folder.0.join("cut.tide"), &cut[..cut.len() / 2]).unwrap();
    let failing = [
        "export cut.tide -o out --to csv",
        "import words --from pages -o out",
        "curve cut.tide --png out",
        "report cut.tide -o out",
        "record -o out -- /no/such/program",
    ];
    for line in failing {
        assert_eq!(run(&folder, line, None).status.code(), Some(2), "{line}");
        assert_eq!(std::fs::read(&out).unwrap(), b"old", "{line}");
    }
    let names = contents(&folder.0).into_iter().map(|(name, _)| name);
    let drafts = names.filter(|name| name.to_string_lossy().contains("tmp"));
    assert_eq!(drafts.count(), 0);
    for line in ["export s.tide -o out --to csv", "report s.tide -o out"] {
        assert_eq!(run(&folder, line, None).status.code(), Some(0), "{line}");
        assert_ne!(std::fs::read(&out).unwrap(), b"old", "{line}");
        std::fs::write(&out, "old").unwrap();
    }
}

#[test]
fn found_n5_a_trace_that_is_made_again_keeps_the_one_before() {
    let folder = Folder::new("outputs-traces");
    material(&folder);
    for line in [
        "import p.pages -o t.tide",
        "generate loop --references 2k -o t.tide",
    ] {
        let (new, old) = (folder.0.join("t.tide"), folder.0.join("t.tide.old"));
        let _ = std::fs::remove_file(&old);
        std::fs::write(&new, "").unwrap();
        let first = run(&folder, line, None);
        assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
        assert!(!old.exists(), "{line}: nothing was there to be kept");
        std::fs::write(&new, "old").unwrap();
        let second = stderr(&run(&folder, line, None));
        assert!(
            second.contains("is now `") && second.contains("t.tide.old`"),
            "{line}: {second}"
        );
        assert_eq!(std::fs::read(&old).unwrap(), b"old", "{line}");
        assert!(std::fs::metadata(&new).unwrap().len() > 100, "{line}");
        std::fs::remove_file(&new).unwrap();
    }
    // A trace is not to be kept under the name of what is read.
    std::fs::write(folder.0.join("u.tide"), "old").unwrap();
    std::fs::copy(folder.0.join("p.pages"), folder.0.join("u.tide.old")).unwrap();
    let line = "import --from pages u.tide.old -o u.tide";
    expect_refused(&folder, line, None, ["u.tide.old", "which is read"]);
}

#[test]
fn found_n7_a_folder_that_is_missing_is_told_before_a_trace_is_read() {
    let folder = Folder::new("outputs-missing");
    // No trace: it would be complained of, if it came to that.
    for line in [
        "curve none.tide --png no/such.png",
        "map none.tide --svg no/such.svg",
        "report none.tide -o no/such.html",
        "replay -m 50% none.tide --html no/such.html",
        "export none.tide -o no/such.csv",
    ] {
        let told = stderr(&run(&folder, line, None));
        assert!(
            told.contains("no/such") && !told.contains("none.tide"),
            "{line}: {told}"
        );
    }
}

#[test]
fn found_h2_standard_output_and_devices_are_written_to() {
    let folder = Folder::new("outputs-streams");
    material(&folder);
    let plain = run(&folder, "export s.tide -o - --to pages", None).stdout;
    assert_eq!(plain.iter().filter(|&&byte| byte == b'\n').count(), 2000);
    let named = run(&folder, "export s.tide -o /dev/stdout --to pages", None);
    assert_eq!(named.stdout, plain);
    // A file that standard output is appended to goes on at its end.
    let log = folder.0.join("log");
    std::fs::write(&log, "before\n").unwrap();
    let file = std::fs::File::options().append(true).open(&log).unwrap();
    let status = Command::new(TIDEMARK)
        .args(["export", "s.tide", "-o", "/dev/stdout", "--to", "pages"])
        .current_dir(&folder.0)
        .stdout(file)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        std::fs::read(&log).unwrap(),
        [b"before\n", &plain[..]].concat()
    );
    let null = run(&folder, "export s.tide -o /dev/null --to pages", None);
    assert_eq!(null.status.code(), Some(0));
    let svg = run(&folder, "curve s.tide --svg -", None).stdout;
    assert!(
        svg.starts_with(b"<svg"),
        "{}",
        String::from_utf8_lossy(&svg)
    );
}

#[test]
fn found_l_every_command_that_reads_one_trace_reads_standard_input() {
    let folder = Folder::new("outputs-stdin");
    material(&folder);
    let lines = [
        "info INPUT",
        "export INPUT --to pages",
        "curve INPUT --csv",
        "wss INPUT --csv",
        "map INPUT --csv",
        "report INPUT -o page.html --json",
        "replay -m 50% --csv INPUT",
    ];
    for line in lines {
        let named = run(&folder, &line.replace("INPUT", "s.tide"), None);
        let piped = run(&folder, &line.replace("INPUT", "-"), Some("s.tide"));
        let told = stderr(&piped);
        assert_eq!(
            (named.status.code(), piped.status.code()),
            (Some(0), Some(0)),
            "{told}"
        );
        assert_eq!(named.stdout.len() > 20, piped.stdout.len() > 20, "{line}");
    }
    let none = run(&folder, "curve -", None);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        stderr(&none).contains("`standard input`"),
        "{}",
        stderr(&none)
    );
}

/// Lines that write to both standard streams, to one of them, or complain.
const TALKING: [&str; 22] = [
    "--help",
    "--version",
    "run --help",
    "no-such-command",
    "policies",
    "policies clock",
    "policies ./mine.wat",
    "systems",
    "completions bash",
    "man",
    "info s.tide",
    "info no-such.tide",
    "export s.tide --to csv",
    "export s.tide --to pages -o OUT",
    "import p.pages -o OUT",
    "generate loop --references 2k -o OUT",
    "curve s.tide",
    "curve s.tide --policies ./mine.wat,opt --csv",
    "wss s.tide",
    "map s.tide",
    "report s.tide -o OUT",
    "replay -m 50% s.tide",
];

/// A standard stream that takes nothing.
fn dead_stream(is_full: bool) -> Stdio {
    if is_full {
        let full = std::fs::File::options().write(true).open("/dev/full");
        return full.unwrap().into();
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn found_l_no_command_panics_where_its_streams_are_gone() {
    let folder = Folder::new("outputs-gone");
    material(&folder);
    let start = |line: &str| {
        let mut command = Command::new(TIDEMARK);
        command
            .args(line.replace("OUT", "out").split(' '))
            .current_dir(&folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let status = |command: &mut Command| command.status().unwrap().code();
    for line in TALKING {
        let usual = status(&mut start(line));
        assert!(matches!(usual, Some(0..=2)), "{line}: {usual:?}");
        for is_full in [false, true] {
            let without_stderr = status(start(line).stderr(dead_stream(is_full)));
            assert_eq!(without_stderr, usual, "{line}: stderr, {is_full}");
            let without_stdout = status(start(line).stdout(dead_stream(is_full)));
            let is_usual = without_stdout == usual;
            // What has no room for results has failed.
            let has_failed = is_full && without_stdout == Some(2);
            assert!(is_usual || has_failed, "{line}: {without_stdout:?}");
        }
        let mut closed = Command::new("sh");
        closed
            .args(["-c", "exec \"$0\" \"$@\" >&- 2>&-", TIDEMARK])
            .args(line.replace("OUT", "out").split(' '))
            .current_dir(&folder.0);
        assert_eq!(status(&mut closed), usual, "{line}: closed");
    }
}
