//! `tidemark volume`: what goes in comes out, and what can't be done is said in one line.

use std::process::{Command, Output, Stdio};

use crate::support::{Folder, TIDEMARK, stderr};

/// Runs `tidemark volume` with these words in `folder`.
fn volume(folder: &Folder, line: &str) -> Output {
    Command::new(TIDEMARK)
        .arg("volume")
        .args(line.split(' '))
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs it, and expects it to be done; answers what it printed.
fn done(folder: &Folder, line: &str) -> Vec<u8> {
    let output = volume(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    output.stdout
}

/// Runs it, and expects it to be refused with one line that has these parts.
fn refused(folder: &Folder, line: &str, parts: &[&str]) {
    let output = volume(folder, line);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {told}");
    assert_eq!(told.lines().count(), 1, "{line}: {told}");
    assert!(output.stdout.is_empty(), "{line}");
    for part in parts {
        assert!(told.contains(part), "{line}: `{part}` is not in: {told}");
    }
}

fn put(folder: &Folder, name: &str, contents: &[u8]) {
    std::fs::write(folder.0.join(name), contents).unwrap();
}

fn taken(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.0.join(name)).unwrap()
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn files_go_in_and_come_out() {
    let folder = Folder::new("volume");
    put(&folder, "words", b"some words\n");
    put(&folder, "game", &[7; 1500]);
    done(&folder, "make v.img --blocks 512 --date 2026-11-25");
    assert_eq!(taken(&folder, "v.img").len(), 512 * 512);
    done(&folder, "put v.img words --date 2026-11-25T22:05:59");
    done(
        &folder,
        r"put v.img words --name a\x83b --protect --date 2026-11-25",
    );
    done(&folder, "put v.img game --game --date 2000-02-29");
    let out = done(&folder, "get v.img words");
    assert_eq!(out[..11], *b"some words\n");
    assert_eq!(out[11..], [0; 501]);
    done(&folder, r"get v.img a\x83b -o words.out");
    assert_eq!(taken(&folder, "words.out"), out);
    let listed = json(&done(&folder, "ls v.img --json"));
    assert_eq!(listed["schema"], "tidemark.volume.v1");
    assert_eq!(listed["formatted"], "2026-11-25T00:00:00");
    let files = [
        ("words", "data", "2026-11-25T22:05:59", "allowed", 1),
        (r"a\x83b", "data", "2026-11-25T00:00:00", "forbidden", 1),
        ("game", "game", "2000-02-29T00:00:00", "allowed", 3),
    ];
    for (number, (name, kind, created, copying, blocks)) in files.into_iter().enumerate() {
        let file = &listed["files"][number];
        assert_eq!(file["name"], name);
        assert_eq!(
            (&file["kind"], &file["created"]),
            (&kind.into(), &created.into())
        );
        assert_eq!(
            (&file["copying"], &file["blocks"]),
            (&copying.into(), &blocks.into())
        );
    }
    assert_eq!(listed["files"][2]["first_block"], 0);
    let text = String::from_utf8(done(&folder, "ls v.img")).unwrap();
    assert!(
        text.contains("480; 475 free") || text.contains("480 for files; 475 free"),
        "{text}"
    );
    done(&folder, r"rm v.img a\x83b game");
    let listed = json(&done(&folder, "ls v.img --json"));
    assert_eq!(listed["files"].as_array().unwrap().len(), 1);
    assert_eq!(listed["free_blocks"], 479);
    let told = String::from_utf8(done(&folder, "check v.img")).unwrap();
    assert!(
        told.contains("nothing is wrong: 1 files, 479 of 480 blocks free"),
        "{told}"
    );
    // The same commands make the same bytes.
    let first = taken(&folder, "v.img");
    done(&folder, "make w.img --blocks 512 --date 2026-11-25");
    done(&folder, "put w.img words --date 2026-11-25T22:05:59");
    let second = taken(&folder, "w.img");
    let start = usize::from(u16::from_le_bytes([
        first[511 * 512 + 0x50],
        first[511 * 512 + 0x51],
    ]));
    assert!(first[start * 512..] == second[start * 512..]);
}

#[test]
fn a_card_has_200_blocks_for_files_or_all() {
    let folder = Folder::new("volume-card");
    put(&folder, "big", &[1; 201 * 512]);
    done(&folder, "make card.img");
    refused(
        &folder,
        "put card.img big",
        &[
            "`card.img`: is full: 201 blocks are needed, 200 are free",
            "delete files",
        ],
    );
    done(&folder, "make all.img --all-blocks");
    done(&folder, "put all.img big");
    let listed = json(&done(&folder, "ls all.img --json"));
    assert_eq!(
        (&listed["user_blocks"], &listed["free_blocks"]),
        (&241.into(), &40.into())
    );
}

#[test]
fn what_is_wrong_is_found_and_mended() {
    let folder = Folder::new("volume-check");
    put(&folder, "one", &[1; 2000]);
    done(&folder, "make v.img");
    done(&folder, "put v.img one");
    let sound = taken(&folder, "v.img");
    // The chain of `one` is 199, 198, 197, 196: it comes back to 199.
    let mut bytes = sound.clone();
    bytes[254 * 512 + 2 * 196..][..2].copy_from_slice(&199_u16.to_le_bytes());
    put(&folder, "v.img", &bytes);
    let output = volume(&folder, "check v.img");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("comes back to its own block 199"), "{told}");
    let parts = [
        "`v.img`: is damaged",
        "`one`",
        "`tidemark volume check --repair v.img`",
    ];
    for line in ["get v.img one", "rm v.img one", "put v.img one --name two"] {
        refused(&folder, line, &parts);
    }
    let output = volume(&folder, "ls v.img");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("is damaged"),
        "{}",
        stderr(&output)
    );
    assert!(taken(&folder, "v.img") == bytes);
    let output = volume(&folder, "check v.img --repair --json");
    assert_eq!(output.status.code(), Some(1));
    let found = json(&output.stdout);
    assert_eq!(
        (&found["is_sound"], &found["is_repaired"]),
        (&true.into(), &true.into())
    );
    assert_eq!(found["findings"][0]["kind"], "chain");
    assert!(taken(&folder, "v.img") == sound);
    assert_eq!(
        json(&done(&folder, "check v.img --json"))["findings"],
        serde_json::json!([])
    );
}

#[test]
fn what_can_not_be_done_with_volumes() {
    let folder = Folder::new("volume-bad");
    put(&folder, "words", b"some words\n");
    put(&folder, "a-name-that-is-long", b"x");
    done(&folder, "make v.img");
    done(&folder, "put v.img words");
    let before = taken(&folder, "v.img");
    std::fs::write(folder.0.join("blank.img"), vec![0; 128 << 10]).unwrap();
    let cases: [(&str, &[&str]); 20] = [
        (
            "make new.img --blocks 255",
            &["`--blocks 255`", "256 to 65536"],
        ),
        ("make new.img --blocks 65537", &["`--blocks 65537`"]),
        ("make new.img --blocks many", &["many"]),
        (
            "make new.img --date tomorrow",
            &["`--date tomorrow`", "2026-11-25"],
        ),
        ("make v.img", &["`v.img`: is there already", "--force"]),
        ("make /no/such/v.img", &["/no/such/v.img"]),
        ("ls none.img", &["`none.img`", "no such file"]),
        ("ls .", &["`.`: is a directory"]),
        ("ls words", &["`words`: is 11 bytes long", "256 to 65536"]),
        (
            "ls blank.img",
            &["`blank.img`: is no VMUFAT volume", "0x55", "volume make"],
        ),
        ("ls -", &["`standard input`: is 0 bytes long"]),
        (
            "get v.img other",
            &["`v.img`: has no file `other`", "volume ls v.img"],
        ),
        (
            "get v.img words -o v.img",
            &["-o v.img", "is the same file as"],
        ),
        ("get v.img a/b", &["`a/b`: is no name"]),
        ("put v.img v.img", &["v.img", "is the same file as"]),
        ("put v.img none", &["`none`", "no such file"]),
        (
            "put v.img a-name-that-is-long",
            &["a-name-that-is-long", "`--name`"],
        ),
        (
            "put v.img words words --name w",
            &["`--name w`: is for one file"],
        ),
        ("put - words", &["`-`"]),
        ("rm v.img words other", &["has no file `other`"]),
    ];
    for (line, parts) in cases {
        refused(&folder, line, parts);
    }
    refused(&folder, "check - --repair", &["`-`", "name one"]);
    // Nothing of it has changed the volume, not even what came before a word that was wrong.
    assert!(taken(&folder, "v.img") == before);
    assert!(!folder.0.join("new.img").exists());
}

#[test]
fn a_volume_has_one_game_and_is_replaced_when_that_is_asked_for() {
    let folder = Folder::new("volume-game");
    put(&folder, "words", b"some words\n");
    done(&folder, "make v.img");
    done(&folder, "put v.img words --game --name game1");
    refused(
        &folder,
        "put v.img words --game --name game2",
        &["has no place for the game", "0 are free there"],
    );
    done(&folder, "make v.img --force");
    assert_eq!(
        json(&done(&folder, "ls v.img --json"))["files"],
        serde_json::json!([])
    );
}

#[test]
fn volumes_are_read_from_standard_input() {
    let folder = Folder::new("volume-stdin");
    put(&folder, "words", b"some words\n");
    done(&folder, "make v.img");
    done(&folder, "put v.img words");
    for (line, named) in [
        ("get - words", "get v.img words"),
        ("ls - --json", "ls v.img --json"),
        ("check - --json", "check v.img --json"),
    ] {
        let output = Command::new(TIDEMARK)
            .arg("volume")
            .args(line.split(' '))
            .stdin(std::fs::File::open(folder.0.join("v.img")).unwrap())
            .output()
            .unwrap();
        assert_eq!(output.stdout, done(&folder, named), "{line}");
    }
}
