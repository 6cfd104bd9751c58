//! `import`: what is asked for is done or refused, files are known for what they are, and times
//! that begin at an epoch make no program longer.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{Folder, TIDEMARK, stderr, tidemark};

/// Runs the command, which has to work.
fn done(arguments: &[&str]) -> Output {
    let output = tidemark(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        stderr(&output)
    );
    output
}

/// Runs the command, which has to refuse in one line.
fn refused(arguments: &[&str]) -> String {
    let output = tidemark(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    told
}

fn file(folder: &Folder, name: &str, contents: &[u8]) -> String {
    let path = folder.path(name);
    std::fs::write(&path, contents).unwrap();
    path
}

/// The pages of the samples: with a reference to the page of the one before.
const PAGES: [u64; 4] = [300, 300, 70_000, 300];

/// A small file of each format.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    [binary_samples(), text_samples()].concat()
}

fn binary_samples() -> Vec<(&'static str, Vec<u8>)> {
    let oracle = |(at, page): (usize, &u64)| {
        let mut record = (at as u32).to_le_bytes().to_vec();
        record.extend(page.to_le_bytes());
        record.extend(4096_u32.to_le_bytes());
        record.extend((-1_i64).to_le_bytes());
        record
    };
    let records: Vec<u8> = PAGES.iter().enumerate().flat_map(oracle).collect();
    let mut lcs = 0x1234_5678_9abc_def0_u64.to_le_bytes().to_vec();
    lcs.extend(1_u64.to_le_bytes());
    lcs.resize(8184, 0);
    lcs.extend(0x1234_5678_9abc_def0_u64.to_le_bytes());
    lcs.extend(&records);
    let command = |(at, page): (usize, &u64)| {
        let mut record = vec![0x28, 0, 0, 2, 1, 0, 0, 0];
        record.extend(512_u32.to_le_bytes());
        record.extend(1_u32.to_le_bytes());
        record.extend((page * 8).to_le_bytes());
        record.extend((at as u64 * 1000).to_le_bytes());
        record.extend(9_u64.to_le_bytes());
        record
    };
    let instruction = |page: &u64| {
        let mut record = vec![0; 64];
        record[..8].copy_from_slice(&(page * 4096).to_le_bytes());
        record[32..40].copy_from_slice(&(page * 4096).to_le_bytes());
        record
    };
    let word = |&page: &u64| (page as u32).to_le_bytes();
    vec![
        ("oracleGeneral", records),
        ("lcs", lcs),
        (
            "vscsi",
            PAGES.iter().enumerate().flat_map(command).collect(),
        ),
        ("u32", PAGES.iter().flat_map(word).collect()),
        (
            "u64",
            PAGES.iter().flat_map(|page| page.to_le_bytes()).collect(),
        ),
        ("champsim", PAGES.iter().flat_map(instruction).collect()),
    ]
}

fn text_samples() -> Vec<(&'static str, Vec<u8>)> {
    let lines = |line: &dyn Fn(usize, u64) -> String| -> Vec<u8> {
        let lines = PAGES.iter().enumerate().map(|(at, page)| line(at, *page));
        lines.collect::<String>().into_bytes()
    };
    let view = |at: usize, page: u64| {
        let address = page * 4096;
        format!("{at} {at}: 77 ifetch 2 byte(s) @ 0x{address:016x} jump\n")
    };
    let damon = |at: usize, page: u64| {
        let (start, from, to) = (page * 4096, at * 1000, (at + 1) * 1000);
        format!("snapshot time: [{from}, {to}] (1000)\n0 addr {start} size 4096 access 5.0 age 0\n")
    };
    let csv = lines(&|at, page| format!("{at},{}\n", page * 4096));
    let sample =
        |at: usize, page: u64| format!("sort 77 1.00000{at}: page-faults: {:x}\n", page * 4096);
    vec![
        (
            "lackey",
            lines(&|_, page| format!(" L {:08x},4\n", page * 4096)),
        ),
        ("lis", lines(&|at, page| format!("{page} 1 0 {at}\n"))),
        ("csv", [b"time,address\n".to_vec(), csv].concat()),
        ("pages", lines(&|_, page| format!("{page}\n"))),
        ("perf", lines(&sample)),
        ("damon", lines(&damon)),
        ("drmemtrace", lines(&view)),
        (
            "pinatrace",
            lines(&|_, page| format!("0x1: R 0x{:x}\n", page * 4096)),
        ),
    ]
}

/// All that a trace says.
fn contents(trace: &str) -> (Vec<u8>, Value) {
    let rows = done(&["export", trace, "--to", "csv"]).stdout;
    let info = done(&["info", trace, "--json"]).stdout;
    let mut info: Value = serde_json::from_slice(&info).unwrap();
    // Its length in bytes changes with the name of the source alone.
    info["bytes"] = Value::Null;
    (rows, info)
}

#[test]
fn every_format_is_imported() {
    let folder = Folder::new("imports-formats");
    let output = folder.path("x.tide");
    let help = String::from_utf8(done(&["import", "--help"]).stdout).unwrap();
    for (format, bytes) in samples() {
        assert!(
            help.contains(&format!("- {format}:")),
            "{format} is in the help"
        );
        let input = file(&folder, "sample", &bytes);
        let mut arguments = vec!["import", &input, "-o", &output, "--from", format];
        if format == "csv" {
            arguments.extend(["--time-unit", "ms"]);
        }
        done(&arguments);
        let (_, info) = contents(&output);
        assert_eq!(info["pages"], 2, "{format}");
    }
    let count = help
        .lines()
        .filter(|line| line.trim_start().starts_with("- "))
        .count();
    // Two ways of repeats and seven units of time are listed so as well.
    assert_eq!(
        count,
        samples().len() + 2 + 7,
        "each format has a sample here"
    );
}

#[test]
fn formats_are_known_by_content_where_the_name_says_nothing() {
    let folder = Folder::new("imports-content");
    let (named, guessed) = (folder.path("named.tide"), folder.path("guessed.tide"));
    let is_told = |(format, _): &(&str, Vec<u8>)| !["u32", "u64", "oracleGeneral"].contains(format);
    for (format, bytes) in samples().into_iter().filter(is_told) {
        let bytes = match format {
            // Numbers without a unit are refused whichever way the format is known.
            "csv" => b"page,process\n7,1\n8,1\n".to_vec(),
            // So few instructions could be anything.
            "champsim" => bytes.repeat(4),
            _ => bytes,
        };
        let packed = folder.path("packed.txt.gz");
        let mut packer = Command::new("gzip")
            .stdin(std::process::Stdio::piped())
            .stdout(std::fs::File::create(&packed).unwrap())
            .spawn()
            .unwrap();
        let mut stdin = packer.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, &bytes).unwrap();
        drop(stdin);
        assert!(packer.wait().unwrap().success());
        let [plain, text] = ["trace", "trace.txt"].map(|name| file(&folder, name, &bytes));
        done(&["import", &plain, "-o", &named, "--from", format]);
        for input in [&plain, &text, &packed] {
            done(&["import", input, "-o", &guessed]);
            assert_eq!(contents(&named), contents(&guessed), "{format}: {input}");
        }
    }
    let words = file(&folder, "words", b"just words\nand more of them\n");
    let told = refused(&["import", &words, "-o", &guessed]);
    for format in ["lackey", "champsim", "pinatrace", "drmemtrace"] {
        assert!(told.contains(&format!("`{format}`")), "{told}");
    }
    // Lines that an importer takes at first, and not later, are refused with their number.
    let mixed = ["1\n".repeat(50), "words\n".into()].concat();
    let mixed = file(&folder, "mixed.txt", mixed.as_bytes());
    let told = refused(&["import", &mixed, "-o", &guessed]);
    assert!(told.contains("line 51"), "{told}");
}

#[test]
fn found_a5_no_option_of_import_is_dropped() {
    let folder = Folder::new("imports-options");
    let (plain, other) = (folder.path("plain.tide"), folder.path("other.tide"));
    let options: [&[&str]; 7] = [
        &["--page-size", "64K"],
        &["--repeats", "keep"],
        &["--repeats", "merge"],
        &["--columns", "page=2"],
        &["--delimiter", ";"],
        &["--hexadecimal"],
        &["--time-unit", "us"],
    ];
    let help = String::from_utf8(done(&["import", "--help"]).stdout).unwrap();
    let listed: BTreeSet<&str> = help
        .split_whitespace()
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-'))
        .collect();
    let tried: BTreeSet<&str> = options.iter().map(|option| option[0]).collect();
    let others = ["--from", "--output", "--help"];
    for option in listed
        .iter()
        .filter(|option| help.contains(&format!("      {option}")))
    {
        let is_known = tried.contains(option) || others.contains(option);
        assert!(is_known, "{option} of import is not tried here");
    }
    for (format, bytes) in samples() {
        let input = file(&folder, "sample", &bytes);
        let import = |output: &str, more: &[&str]| {
            let base = ["import", &input, "-o", output, "--from", format];
            tidemark(&[&base[..], more].concat())
        };
        let unit: &[&str] = if format == "csv" {
            &["--time-unit", "ms"]
        } else {
            &[]
        };
        assert_eq!(import(&plain, unit).status.code(), Some(0), "{format}");
        let merged = ["lackey", "drmemtrace", "champsim"].contains(&format);
        for option in options {
            let is_default = match option {
                ["--repeats", "keep"] => !merged,
                ["--repeats", "merge"] => merged,
                _ => false,
            };
            if is_default {
                continue;
            }
            let more = match option[0] {
                "--time-unit" => option.to_vec(),
                _ => [option, unit].concat(),
            };
            let result = import(&other, &more);
            if result.status.code() == Some(0) {
                let is_same = contents(&plain) == contents(&other);
                assert!(
                    !is_same,
                    "{format}: {option:?} has no effect: {}",
                    stderr(&result)
                );
            }
        }
    }
}

#[test]
fn found_a5_no_column_that_is_chosen_is_dropped() {
    let folder = Folder::new("imports-columns");
    let (plain, other) = (folder.path("plain.tide"), folder.path("other.tide"));
    let input = file(
        &folder,
        "x.csv",
        b"40960,8192,3,w,2.5,7\n81920,4096,1,r,7.5,7\n",
    );
    let others = ["bytes=2", "count=3", "kinds=4", "time=5", "process=6"];
    let subjects = ["page=1", "address=1", "sector=1", "key=1"];
    let import = |output: &str, columns: &[&str]| {
        let columns = columns.join(",");
        let base = ["import", &input, "-o", output, "--columns", &columns];
        let unit: &[&str] = if columns.contains("time=") {
            &["--time-unit", "ms"]
        } else {
            &[]
        };
        tidemark(&[&base[..], unit].concat())
    };
    for subject in subjects {
        assert_eq!(
            import(&plain, &[subject]).status.code(),
            Some(0),
            "{subject}"
        );
        for other_subject in subjects {
            let result = import(&other, &[subject, other_subject]);
            assert_eq!(result.status.code(), Some(2), "{subject},{other_subject}");
        }
        for column in others {
            let result = import(&other, &[subject, column]);
            let is_refused = result.status.code() == Some(2);
            let is_same = || contents(&plain) == contents(&other);
            assert!(is_refused || !is_same(), "{subject},{column} has no effect");
            for more in others.iter().filter(|more| **more != column && !is_refused) {
                let both = import(&plain, &[subject, column, more]);
                let has_effect = both.status.code() == Some(2) || !is_same();
                assert!(
                    has_effect,
                    "{subject},{column},{more} is {subject},{column}"
                );
            }
            assert_eq!(import(&plain, &[subject]).status.code(), Some(0));
        }
    }
    // Options without a column that they could act on.
    for (columns, option) in [("page=1", "--time-unit=s"), ("key=1", "--hexadecimal")] {
        let told = refused(&["import", &input, "-o", &other, "--columns", columns, option]);
        assert!(told.contains("would have no effect"), "{told}");
    }
    // Without a choice each column is used, or is said not to be.
    let told = stderr(&done(&[
        "import",
        &file(&folder, "y.csv", b"lbn,size,op,host\n1,2,r,a\n"),
        "-o",
        &other,
    ]));
    assert!(
        told.contains("used: page from `lbn`, kinds from `op`; not used: `size`, `host`"),
        "{told}"
    );
}

#[test]
fn found_a6_files_of_another_kind_are_refused_by_their_name() {
    let folder = Folder::new("imports-kinds");
    let output = folder.path("x.tide");
    let program = std::fs::read("/proc/self/exe").unwrap()[..4096].to_vec();
    let wide: Vec<u8> = (1..99_u64).flat_map(u64::to_le_bytes).collect();
    let lcs = samples()
        .into_iter()
        .find(|(format, _)| *format == "lcs")
        .unwrap()
        .1;
    let vscsi = samples()
        .into_iter()
        .find(|(format, _)| *format == "vscsi")
        .unwrap()
        .1;
    for (contents, expected) in [
        (&program[..], "is a program or library; `tidemark record`"),
        (
            &wide[..],
            "is numbers of 64 bits; import it with `--from u64`",
        ),
        (
            &lcs[..],
            "is libCacheSim's lcs; import it with `--from lcs`",
        ),
        (
            &vscsi[..],
            "is a vscsi trace; import it with `--from vscsi`",
        ),
        (
            b"page,time\n1,2\n3,4\n5,6\n7,8\n9,0\n1,2\n",
            "is text; import it with `--from csv`",
        ),
        (
            b"PK\x03\x04\x14\0\0\0",
            "is a zip archive; unpack it first; of drmemtrace,",
        ),
        (
            b"PERFILE2\0\0\0\0",
            "is a record of perf's; import what `perf script",
        ),
        (b"\x89TIDE\r\n\x1a\x02\0\0\0", "is a trace of tidemark's"),
    ] {
        let input = file(&folder, "x.u32", contents);
        let told = refused(&["import", &input, "-o", &output]);
        assert!(told.contains(expected), "{told}");
    }
    // Compressed input is unpacked first, and then looked at: once is enough.
    let twice = packed("gzip", &packed("gzip", b"1\n2\n"));
    let input = file(&folder, "x.txt.gz.gz", &twice);
    let told = refused(&["import", &input, "-o", &output, "--from", "pages"]);
    assert!(told.contains("is compressed twice"), "{told}");
    let noise: Vec<u8> = (0..4000_u32)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let input = file(&folder, "noise.u32", &noise);
    let told = stderr(&done(&["import", &input, "-o", &output]));
    assert!(
        told.contains("note: 4000 of the first 4000 numbers are different"),
        "{told}"
    );
    let input = file(&folder, "x.weird", b"1 2\n");
    let told = refused(&["import", &input, "-o", &output]);
    assert!(
        told.contains("`--from`: `lackey`, `oracleGeneral`, `lcs`"),
        "{told}"
    );
    assert!(told.contains("`--from csv --delimiter space"), "{told}");
}

/// `bytes`, packed by a command.
fn packed(packer: &str, bytes: &[u8]) -> Vec<u8> {
    let folder = Folder::new(&format!("imports-packed-{packer}"));
    let input = file(&folder, "x", bytes);
    let output = Command::new(packer).args(["-c", &input]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn found_b4_what_gzip_xz_and_zstd_packed_is_seen_through() {
    let folder = Folder::new("imports-packers");
    let output = folder.path("x.tide");
    let text: String = (0..30_000)
        .map(|at| format!("{}\n", at * at % 977))
        .collect();
    for (packer, ending) in [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst")] {
        let input = file(
            &folder,
            &format!("x.pages.{ending}"),
            &packed(packer, text.as_bytes()),
        );
        let told = stderr(&done(&["import", &input, "-o", &output]));
        assert!(told.contains("30,000 references"), "{told}");
        assert_eq!(
            done(&["export", &output, "--to", "pages"]).stdout,
            text.as_bytes()
        );
    }
}

#[test]
fn found_a1_times_that_begin_at_an_epoch_make_no_trace_longer() {
    let folder = Folder::new("imports-epoch");
    let answers = |begin: u64, unit: &str| {
        let lines = (0..300).map(|at| format!("{},{},{}\n", begin + at, at % 2, at % 3));
        let text = format!("time,process,page\n{}", lines.collect::<String>());
        let input = file(&folder, "x.csv", text.as_bytes());
        let (trace, page) = (folder.path("x.tide"), folder.path("x.html"));
        done(&["import", &input, "-o", &trace, "--time-unit", unit]);
        let policies = ["--policies", "lru,ws,vmin,opt,clock", "--rehearse", "never"];
        let commands: [&[&str]; 4] = [
            &[&["curve", &trace, "--json"], &policies[..]].concat(),
            &["wss", &trace, "--json"],
            &["map", &trace, "--json"],
            &[
                "report",
                &trace,
                "-o",
                &page,
                "--rehearse",
                "never",
                "--json",
            ],
        ];
        commands.map(|command| String::from_utf8(done(command).stdout).unwrap())
    };
    for unit in ["instructions", "s", "100ns"] {
        let (from_zero, from_epoch) = (answers(0, unit), answers(1_600_000_000, unit));
        assert_eq!(from_zero, from_epoch, "{unit}");
    }
    let [curve, ..] = answers(1_600_000_000, "instructions");
    let curve: Value = serde_json::from_str(&curve).unwrap();
    // The time of both processes, last less first of each.
    assert_eq!(curve["trace"]["time"], 298 + 298);
    let needs = curve["needs"].as_array().unwrap();
    assert!(!needs.is_empty());
    // Three pages in turn, of one process and of the other: nothing is saved by less.
    for need in needs {
        assert!(need["pages"].as_u64().unwrap() >= 3, "{need}");
    }
}

/// The script reads each file by a reader of its own, in Python.
#[test]
fn found_b4_an_independent_script_finds_the_same_pages_and_misses() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/imports-table");
    let output = Command::new("python3")
        .args([script, "--check", TIDEMARK])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", stderr(&output));
    assert!(table.lines().count() > 20, "{table}");
    assert!(!table.contains("other pages"), "{table}");
}
