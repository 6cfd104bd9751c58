//! `import`, `export`, `info` and `generate`: what they make of good and of bad input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tidemark_trace::container::VERSION;

use crate::support::{Folder, TIDEMARK, stderr, tidemark};

/// Expects the command to succeed; its stdout.
fn done(arguments: &[&str]) -> Vec<u8> {
    let output = tidemark(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        stderr(&output)
    );
    output.stdout
}

/// Expects a refusal whose one line contains each of `parts`.
fn refused(arguments: &[&str], parts: &[&str]) {
    expect_refusal(&tidemark(arguments), parts);
}

fn expect_refusal(output: &Output, parts: &[&str]) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

/// Runs the command with `input` on its standard input.
fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(TIDEMARK)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have refused and gone before it read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn info(path: &str) -> Value {
    serde_json::from_slice(&done(&["info", "--json", path])).unwrap()
}

/// A file in `folder` with these contents.
fn file(folder: &Folder, name: &str, contents: &[u8]) -> String {
    let path = folder.path(name);
    std::fs::write(&path, contents).unwrap();
    path
}

/// A small trace in `folder`.
fn trace(folder: &Folder) -> String {
    let path = folder.path("small.tide");
    done(&["generate", "golden", "phase", "-o", &path]);
    path
}

#[test]
fn what_is_generated_is_told() {
    let folder = Folder::new("traces-generate");
    let patterns: [(&[&str], u64); 9] = [
        (&["sequential"], 3000),
        (&["reverse"], 3000),
        (&["loop", "--pages", "7"], 7),
        (&["sweep", "--pages", "7"], 7),
        (&["random", "--pages", "7"], 7),
        (&["zipf", "--pages", "7", "--exponent", "0.8"], 7),
        (&["skewed", "--pages", "7"], 7),
        (&["phased", "--pages", "7", "--phases", "3"], 21),
        (
            &[
                "localities",
                "--localities",
                "2",
                "--pages",
                "9",
                "--deviation",
                "0",
            ],
            18,
        ),
    ];
    for (pattern, pages) in patterns {
        let path = folder.path(pattern[0]);
        let common = ["--references", "3k", "--seed", "5", "-o", &path];
        done(&[&["generate"], pattern, &common[..]].concat());
        let found = info(&path);
        assert_eq!(found["schema"], "tidemark.info.v1");
        assert_eq!(found["records"], 3000, "{pattern:?}");
        assert_eq!(found["pages"], pages, "{pattern:?}");
        assert_eq!(found["is_complete"], true);
        let source = found["header"]["source"].as_str().unwrap();
        assert!(source.contains("seed 5"), "{source}");
    }
}

#[test]
fn the_published_traces_can_be_made() {
    let folder = Folder::new("traces-golden");
    let published = [
        ("loop", 15_000, 150),
        ("scanhot", 110_000, 10_050),
        ("skew", 200_000, 997),
        ("phase", 100_000, 1600),
        ("sheep", 16_000, 160),
        ("mixed", 200_000, 799),
    ];
    for (name, references, pages) in published {
        let path = folder.path(name);
        done(&["generate", "golden", name, "-o", &path]);
        let found = info(&path);
        assert_eq!(found["records"], references, "{name}");
        assert_eq!(found["pages"], pages, "{name}");
    }
}

#[test]
fn what_can_not_be_generated_is_refused() {
    let folder = Folder::new("traces-ungenerated");
    let path = folder.path("x.tide");
    let pattern = |arguments: &[&str], parts: &[&str]| {
        refused(&[&["generate"], arguments, &["-o", &path]].concat(), parts);
    };
    pattern(&["loop", "--pages", "0"], &["`--pages 0`", "at least 1"]);
    pattern(
        &["loop", "--pages", "ten"],
        &["ten", "write a whole number"],
    );
    pattern(&["loop", "--references", "0"], &["`--references 0`"]);
    pattern(&["loop", "--exponent", "1"], &["--exponent"]);
    pattern(&["zipf", "--exponent", "-1"], &["-1"]);
    pattern(&["zipf", "--exponent", "eleven"], &["from 0 to 10"]);
    pattern(
        &["zipf", "--pages", "1G"],
        &["`--pages 1000000000`", "needs 1 to"],
    );
    pattern(
        &["localities", "--pages", "5", "--overlap", "6"],
        &["`--overlap 6`"],
    );
    pattern(&["localities", "--holding", "0"], &["`--holding 0`"]);
    pattern(&["golden", "looop"], &["looop"]);
    pattern(
        &["golden", "loop", "--references", "5"],
        &["loop has 15000"],
    );
    assert!(
        !std::path::Path::new(&path).exists(),
        "nothing is left behind"
    );
    refused(&["generate", "loop"], &["no file", "-o"]);
    refused(
        &["generate", "loop", "-o", "/no/such/folder/x.tide"],
        &["/no/such/folder/x.tide", "no such file"],
    );
}

#[test]
fn every_format_goes_out_and_comes_back() {
    let folder = Folder::new("traces-formats");
    let original = trace(&folder);
    let pages = done(&["export", &original, "--to", "pages"]);
    for name in ["x.lackey", "x.oracleGeneral", "x.csv", "x.txt", "x.u32"] {
        let (out, back) = (folder.path(name), folder.path("back.tide"));
        done(&["export", &original, "-o", &out]);
        done(&["import", &out, "-o", &back, "--repeats", "keep"]);
        let found = done(&["export", &back, "--to", "pages"]);
        assert!(found == pages, "{name}");
    }
    let parquet = folder.path("x.parquet");
    done(&["export", &original, "-o", &parquet]);
    assert!(std::fs::read(&parquet).unwrap().starts_with(b"PAR1"));
    let parquet = done(&["export", &original, "--parquet"]);
    assert!(parquet.ends_with(b"PAR1"));
}

#[test]
fn pipes_work_both_ways() {
    let made = piped(&["import", "-", "--from", "pages", "-o", "-"], b"1\n2\n1\n");
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let told = piped(&["info", "-", "--json"], &made.stdout);
    let found: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&found["records"], &found["pages"]), (&3.into(), &2.into()));
    let back = piped(&["export", "-", "--to", "pages"], &made.stdout);
    assert_eq!(back.stdout, b"1\n2\n1\n");
}

#[test]
fn lackeys_lines_are_merged_unless_they_are_to_be_kept() {
    let folder = Folder::new("traces-lackey");
    let text = b"==9== Lackey\nI  00401000,3\n L 00401008,4\nI  00401003,5\n S 00500ffc,8\n";
    let input = file(&folder, "x.lackey", text);
    let output = folder.path("x.tide");
    done(&["import", &input, "-o", &output]);
    let found = info(&output);
    assert_eq!((&found["records"], &found["pages"]), (&3.into(), &3.into()));
    assert_eq!(found["header"]["time"], "instructions");
    assert_eq!(found["processes"][0]["kinds"]["load"], 1);
    done(&["import", &input, "-o", &output, "--repeats", "keep"]);
    assert_eq!(info(&output)["records"], 5);
    done(&["import", &input, "-o", &output, "--page-size", "64K"]);
    assert_eq!(info(&output)["pages"], 2, "0x40 and 0x50");
}

#[test]
fn csv_columns_can_be_chosen() {
    let folder = Folder::new("traces-csv");
    let input = file(&folder, "x.log", b"R\t1fff\t2\nW\t3000\t1\n");
    let output = folder.path("x.tide");
    let options = [
        "--columns",
        "kinds=1,address=2,bytes=3",
        "--delimiter",
        "tab",
    ];
    let import = [
        "import",
        "--from",
        "csv",
        &input,
        "-o",
        &output,
        "--hexadecimal",
    ];
    done(&[&import[..], &options[..]].concat());
    assert_eq!(
        done(&["export", "--to", "csv", &output]),
        b"process,page,kinds,references\n0,1,r,1\n0,2,r,1\n0,3,w,2\n"
    );
}

#[test]
fn wrong_input_is_named_with_its_place() {
    let folder = Folder::new("traces-wrong");
    let output = folder.path("x.tide");
    let import = |name: &str, contents: &[u8], parts: &[&str]| {
        let input = file(&folder, name, contents);
        refused(
            &["import", &input, "-o", &output],
            &[&[input.as_str()], parts].concat(),
        );
    };
    import(
        "a.txt",
        b"1\n2\nthree\n",
        &["line 3: `three`; needs a page number"],
    );
    import("b.txt", b"", &["no reference in it"]);
    import(
        "a.lackey",
        b"I  400000,3\nhello\n",
        &["line 2: `hello`", "--log-file"],
    );
    import(
        "a.csv",
        b"page\n1\n\"x\n",
        &["line 3: `x`; needs a page number"],
    );
    import(
        "a.u32",
        b"\x01\0\0\0\x02\0\0",
        &["byte 4: 3 bytes of a record of 4"],
    );
    import(
        "a.oracleGeneral",
        &[0; 24],
        &["record 1: ", "a later request"],
    );
    import(
        "b.oracleGeneral",
        &[0xff; 30],
        &["byte 24: 6 bytes of a record of 24"],
    );
    import(
        "a.txt.zst",
        b"\x28\xb5\x2f\xfd\x04",
        &["compressed with zstd, and damaged"],
    );
    import(
        "a.weird",
        b"one fine day\n",
        &["a.weird`: unknown format", "--from"],
    );
    import("a.tide", b"1\n", &["is a trace already"]);
    assert!(
        !std::path::Path::new(&output).exists(),
        "nothing is left behind"
    );
    let left: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .contains("tmp")
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn wrong_options_of_import_are_named() {
    let folder = Folder::new("traces-options");
    let input = file(&folder, "x.csv", b"1,2\n");
    let output = folder.path("x.tide");
    let with = |options: &[&str], parts: &[&str]| {
        refused(
            &[&["import", &input, "-o", &output], options].concat(),
            parts,
        );
    };
    with(&["--columns", "page=3"], &["no column `3`"]);
    with(&["--columns", "pgae=1"], &["unknown `pgae`"]);
    with(
        &["--page-size", "4095"],
        &["`--page-size 4095`", "power of two"],
    );
    with(&["--page-size", "0"], &["power of two"]);
    with(&["--delimiter", ",,"], &["`--delimiter ,,`"]);
    with(&["--from", "xml"], &["xml"]);
    with(
        &["--from", "pages", "--columns", "page=1"],
        &["only CSV has columns"],
    );
    refused(
        &["import", "/no/such/file.csv", "-o", &output],
        &["/no/such/file.csv", "no such file"],
    );
    refused(
        &["import", "/", "--from", "csv", "-o", &output],
        &["`/`: is a directory"],
    );
    refused(&["import", &input], &["--output"]);
}

#[test]
fn a_file_that_is_no_trace_is_told_apart() {
    let folder = Folder::new("traces-foreign");
    let small = std::fs::read(trace(&folder)).unwrap();
    let newer = [&small[..8], &[VERSION as u8 + 1], &small[9..]].concat();
    let told = format!(
        "a trace of version {}; this program reads up to {VERSION}",
        VERSION + 1
    );
    let cases: [(&str, &[u8], &str); 7] = [
        ("empty", b"", "empty"),
        ("text", b"1\n2\n", "not a trace but text; `tidemark import`"),
        ("packed", b"\x28\xb5\x2f\xfd....", "compressed with zstd"),
        (
            "program",
            b"\x7fELF\x02\x01\x01",
            "not a trace but a program; `tidemark record`",
        ),
        ("zeros", &[0; 100], "not a trace"),
        ("newer", &newer, &told),
        ("head", &small[..50], "cut off before its first block"),
    ];
    for (name, contents, expected) in cases {
        let path = file(&folder, name, contents);
        refused(&["info", &path], &[&path, expected]);
        refused(&["export", &path, "--to", "csv"], &[&path, expected]);
    }
}

#[test]
fn a_flipped_byte_anywhere_is_one_line() {
    let folder = Folder::new("traces-flipped");
    let path = folder.path("tiny.tide");
    done(&[
        "generate",
        "loop",
        "--pages",
        "3",
        "--references",
        "20",
        "-o",
        &path,
    ]);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x55;
        std::fs::write(&path, &wrong).unwrap();
        refused(&["info", &path], &[&path]);
    }
}

#[test]
fn a_trace_cut_off_opens_as_far_as_it_is_good() {
    let folder = Folder::new("traces-cut");
    let whole = std::fs::read(trace(&folder)).unwrap();
    let marks: Vec<usize> = (0..whole.len() - 4)
        .filter(|&at| &whole[at..at + 4] == b"BLOK" || &whole[at..at + 4] == b"INDX")
        .collect();
    assert_eq!(marks.len(), 3, "two blocks and the index");
    // Where a recording was ended: all is good, and only said to be early.
    let ended = file(&folder, "ended.tide", &whole[..marks[1]]);
    let output = tidemark(&["info", "--json", &ended]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("ends early, at byte"),
        "{}",
        stderr(&output)
    );
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["records"], &found["is_complete"]),
        (&65_536.into(), &false.into())
    );
    // Where a copy broke off: only with a word.
    let broken = file(&folder, "broken.tide", &whole[..marks[1] + 100]);
    let place = format!("byte {}", marks[1]);
    refused(
        &["info", &broken],
        &[&broken, &place, "truncated", "--partial"],
    );
    refused(
        &[
            "export",
            &broken,
            "--to",
            "u32",
            "-o",
            &folder.path("y.u32"),
        ],
        &["--partial"],
    );
    let found: Value =
        serde_json::from_slice(&done(&["info", "--json", "--partial", &broken])).unwrap();
    assert_eq!(found["records"], 65_536);
    let bytes = done(&["export", "--partial", &broken, "--to", "u32"]);
    assert_eq!(bytes.len(), 4 * 65_536);
    for command in ["curve", "wss", "map"] {
        refused(&[command, &broken], &[&broken, &place, "--partial"]);
        let shown = done(&[command, "--json", "--partial", &broken]);
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        assert_eq!(shown["trace"]["records"], 65_536, "{command}");
    }
}

#[test]
fn what_does_not_fit_a_format_says_what_would() {
    let folder = Folder::new("traces-large");
    let input = file(&folder, "x.txt", b"1\n68719476736\n");
    let path = folder.path("x.tide");
    done(&["import", &input, "-o", &path]);
    refused(
        &["export", &path, "-o", &folder.path("x.u32")],
        &["record 2: page 68719476736 is too large", "`--dense`"],
    );
    assert_eq!(
        done(&["export", &path, "--dense", "--to", "u32"]),
        [0, 0, 0, 0, 1, 0, 0, 0]
    );
    refused(
        &[
            "export",
            &path,
            "--process",
            "1",
            "-o",
            &folder.path("x.txt"),
        ],
        &["`--process 1`"],
    );
    refused(&["export", &path], &["unknown format", "--to"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new("traces-pipe");
    let path = trace(&folder);
    let shell = format!("{TIDEMARK} export {path} --to pages | head -1");
    let output = Command::new("sh").args(["-c", &shell]).output().unwrap();
    assert_eq!(output.stdout, b"13\n");
    assert_eq!(
        stderr(&output).matches("roken").count(),
        0,
        "{}",
        stderr(&output)
    );
}

#[test]
fn info_is_a_page_for_people() {
    let folder = Folder::new("traces-page");
    let path = trace(&folder);
    let text = String::from_utf8(done(&["info", &path])).unwrap();
    for part in [
        "golden phase, seed 3",
        "every change of page",
        "100,000",
        "1,600",
        "complete",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
