//! `tidemark top` in a real terminal, over a run that this test plays: of 1, 20 and 300 tasks.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::needs;
use crate::support::{self, Folder, TIDEMARK};

/// Runs a command in a terminal of ROWS and COLUMNS, and plays steps on it: waits until a text is
/// on the screen, and types keys. Prints what was on the screen then, and how the command ended,
/// in JSON. Ends with 77 if a step takes too long.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, re, select, struct, sys, termios, time
rows, columns, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
    os.execvp(sys.argv[4], sys.argv[4:])
said, screens, end = b'', [], time.time() + 60
def screen():
    frame = said.rsplit(b'\x1b[H', 1)[-1]
    whole = said.count(b'\x1b[H') and frame.endswith(b'\x1b[K\x1b[J')
    if not whole:
        return None
    text = frame.decode().replace('\x1b[K', '').replace('\x1b[J', '')
    return re.sub('\x1b\\[[0-9;]*m', '', text).split('\r\n')
def hear():
    global said
    if time.time() > end:
        os.kill(pid, 9)
        print(said.decode(errors='replace')[-4000:], file=sys.stderr)
        sys.exit(77)
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            said += os.read(terminal, 1 << 20)
        except OSError:
            return False
    return True
for needle, keys in steps:
    while not any(needle in line for line in screen() or []):
        if not hear():
            break
    screens.append(screen())
    os.write(terminal, keys.encode())
ended = 0
while not ended:
    hear()
    ended, status = os.waitpid(pid, os.WNOHANG)
while hear() and select.select([terminal], [], [], 0)[0]:
    pass
print(json.dumps({'screens': screens, 'status': os.waitstatus_to_exitcode(status),
    'is_coloured': b'm' in re.sub(rb'[^\x1bm]', b'', said) and b'\x1b[1m' in said,
    'is_left': said.rfind(b'\x1b[?1049l') > said.rfind(b'\x1b[?1049h') >= 0}))
"#;

/// A run that replies as it is told, and remembers what it was asked.
struct Played {
    folder: Folder,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Played {
    /// A run of so many tasks.
    fn new(name: &str, tasks: u32) -> Played {
        let folder = Folder::new(name);
        let listener = UnixListener::bind(folder.path("socket")).unwrap();
        let asked = Arc::new(Mutex::new(vec![]));
        let played = Played {
            folder,
            asked: Arc::clone(&asked),
        };
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                for line in lines.map_while(Result::ok) {
                    let reply = reply_to(&line, tasks);
                    if !line.contains("stats") && !line.contains("map") {
                        asked.lock().unwrap().push(line);
                    }
                    let _ = stream.write_all(format!("{reply}\n").as_bytes());
                }
            }
        });
        played
    }

    /// `tidemark top` in a terminal, with these steps. What was seen, and how it ended.
    fn play(&self, (rows, columns): (usize, usize), steps: Value, variables: &[&str]) -> Value {
        let output = Command::new("python3")
            .args(["-c", TERMINAL])
            .args([rows.to_string(), columns.to_string(), steps.to_string()])
            .args([TIDEMARK, "top", "--interval", "0.1", "--socket"])
            .arg(self.folder.path("socket"))
            .env_remove("NO_COLOR")
            .envs(variables.iter().map(|name| (*name, "1")))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", support::stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn once(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path("socket");
        support::tidemark(&[&["top", "--socket", &socket], arguments].concat())
    }
}

fn reply_to(line: &str, tasks: u32) -> Value {
    let request: Value = serde_json::from_str(line).unwrap();
    match request["command"].as_str().unwrap() {
        "stats" => json!({"stats": state(tasks)}),
        "map" => json!({"map": map(&request)}),
        "evict" => json!({"refused": format!("task {} stays", request["pid"])}),
        other => json!({"done": format!("{other} is done")}),
    }
}

fn state(tasks: u32) -> Value {
    let task = |number: u32| {
        json!({
            "pid": 1000 + number, "parent": null, "program": format!("worker{number}"),
            "state": if number == 1 { "suspended" } else { "running" }, "waits_for": "store",
            "elapsed_s": 1.5, "budget_bytes": 64 << 20, "asked_bytes": 0,
            "resident_bytes": u64::from(number) << 20, "beside_bytes": 0,
            "unmanaged_bytes": 3 << 20, "engine_bytes": 1 << 20, "managed_bytes": 1 << 30,
            "pinned_pages": 0, "stores_under_way": 2,
            "counts": {"page_ins": 123_456, "page_outs": 10, "compressed_pages": 5},
            "rates": {"page_ins": 77.0, "soft_faults": 12.0, "stall_s": 0.5},
        })
    };
    json!({
        "schema": "tidemark.control.v1", "pid": 999, "program_pid": 1000, "elapsed_s": 12.0,
        "policy": "2q-faults", "store": "compressed+file",
        "memory": {
            "budget_bytes": 1_u64 << 30, "budget_bytes_max": 1_u64 << 30,
            "resident_bytes": 1 << 29, "resident_bytes_peak": 1 << 29, "unassigned_bytes": 0,
            "unmanaged_bytes": 5 << 20, "engine_bytes": 1 << 20,
        },
        "swap": {"bytes": 1_u64 << 32, "used_bytes": 1 << 20},
        "counts": {}, "rates": {},
        "tasks": (1..=tasks).map(task).collect::<Vec<Value>>(),
    })
}

/// The first quarter in memory, the second compressed, the third on disk, the last nowhere.
fn map(request: &Value) -> Value {
    let pid = request["pid"].as_u64().unwrap();
    let cells = request["cells"].as_u64().unwrap();
    let cell = |number: u64| {
        let is_in = |quarter: u64| if number * 4 / cells == quarter { 16 } else { 0 };
        json!({
            "address": 0x7000_0000_0000 + number * 4096, "in_memory": is_in(0),
            "compressed": is_in(1), "on_disk": is_in(2), "empty": is_in(3),
        })
    };
    json!({
        "pid": pid, "program": format!("worker{}", pid - 1000), "age_s": 0.1, "pages": 32768,
        "cells": (0..cells).map(cell).collect::<Vec<Value>>(),
    })
}

fn lines(screen: &Value) -> Vec<&str> {
    let lines = screen.as_array().unwrap().iter();
    lines.map(|line| line.as_str().unwrap()).collect()
}

#[test]
fn screens_of_all_sizes_hold_runs_of_all_sizes() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    for tasks in [1, 20, 300] {
        let run = Played::new(&format!("top-{tasks}"), tasks);
        for size in [(24, 80), (60, 200)] {
            let seen = run.play(size, json!([["empty 25%", "q"]]), &[]);
            assert_eq!(seen["status"], 0, "{seen}");
            assert_eq!(seen["is_left"], true, "{seen}");
            let lines = lines(&seen["screens"][0]);
            assert_eq!(lines.len(), size.0);
            assert!(lines.iter().all(|line| line.chars().count() <= size.1));
            let height = if size.0 == 24 { 3 } else { 8 };
            let is_task = |line: &&&str| line.contains("worker") && !line.starts_with("map ");
            let shown = lines.iter().filter(is_task).count();
            let most = size.0 - 6 - 1 - height;
            assert_eq!(shown, (tasks as usize).min(most), "{lines:#?}");
            // The map of that which is chosen, a quarter of each.
            let told = format!("map {} worker{tasks}, 128M:", 1000 + tasks);
            let caption = lines[size.0 - 2 - height];
            assert!(caption.starts_with(&told), "{lines:#?}");
            let places = "█ memory 25% ▓ compressed 25% ░ disk 25% empty 25%";
            assert!(caption.ends_with(places), "{lines:#?}");
            let bar = ["█", "▓", "░"].map(|mark| mark.repeat(size.1 / 4)).concat();
            let bars = &lines[size.0 - 1 - height..size.0 - 1];
            assert!(bars.iter().all(|line| line.trim_end() == bar), "{lines:#?}");
            // The most memory comes first.
            let first = format!(">   {} worker{tasks}", 1000 + tasks);
            assert!(lines[5].starts_with(&first), "{lines:#?}");
            assert!(
                lines[1].starts_with("memory 512 MiB of 1 GiB"),
                "{lines:#?}"
            );
            assert_eq!(lines[4].contains("COMPR"), size.1 == 200, "{lines:#?}");
        }
    }
}

#[test]
fn keys_choose_sort_and_ask() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Played::new("top-keys", 20);
    let steps = json!([
        ["map 1020", "\u{1b}[B"],
        ["map 1019", "m"],
        [">   1019", "z"],
        ["suspend is done", "r"],
        ["resume is done", "e"],
        ["task 1019 stays", "b"],
        ["budget of all tasks: _", "12Mx"],
        ["12Mx_", "\u{7f}\r"],
        ["budget is done", "s"],
        ["by budget", "bnonsense\r"],
        ["`budget nonsense`", "\u{3}"],
    ]);
    let seen = run.play((24, 80), steps, &[]);
    assert_eq!(seen["status"], 0, "{seen}");
    assert_eq!(seen["is_left"], true);
    assert_eq!(seen["is_coloured"], true);
    let asked = run.asked.lock().unwrap().clone();
    let wanted = [
        r#"{"command":"suspend","pid":1019}"#,
        r#"{"command":"resume","pid":1019}"#,
        r#"{"command":"evict","pid":1019}"#,
        r#"{"command":"budget","bytes":12582912}"#,
    ];
    assert_eq!(asked, wanted);
}

#[test]
fn colours_are_left_out_if_the_environment_says_so() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Played::new("top-plain", 2);
    let seen = run.play((24, 80), json!([["q quit", "q"]]), &["NO_COLOR"]);
    assert_eq!(seen["is_coloured"], false, "{seen}");
}

#[test]
fn one_screen_is_for_scripts_and_a_terminal_for_the_rest() {
    let run = Played::new("top-once", 300);
    let output = run.once(&["--once"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.contains("worker")).count(),
        300
    );
    assert!(!text.contains('\u{1b}') && !text.contains("quit"), "{text}");
    for (arguments, told) in [
        (&[][..], "there is no terminal; `--once` prints one screen"),
        (
            &["--interval", "0"],
            "`--interval 0`: give 0.1 to 30 seconds",
        ),
        (
            &["--interval", "nan"],
            "`--interval NaN`: give 0.1 to 30 seconds",
        ),
    ] {
        let output = run.once(arguments);
        let line = support::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(line.contains(told) && line.lines().count() == 1, "{line}");
    }
}
