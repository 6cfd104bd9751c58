//! A run that is asked while it goes on: `tidemark ctl`, and its control socket.
//!
//! Engines are the real ones. Signals go to processes that a test has started, by their numbers.

mod engines;
mod load_control;
mod map;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemark_testing::waits;

use crate::needs;
use crate::support::{self, Folder};

/// The longest time that anything here may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Writes its number to `NAME`, then touches so many MiB again and again, or once if one more word
/// is there, says each turn in `NAME.turns`, and ends when `stop` is there. What it has written
/// must be there.
const TOUCHER: &str = "
import mmap, os, sys, time
name, pages = sys.argv[1], int(sys.argv[2]) * 256
memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
with open(name + '.new', 'w') as file:
    file.write(str(os.getpid()))
os.rename(name + '.new', name)
turn = 0
while not os.path.exists('stop'):
    for page in range(pages):
        if memory[page * 4096] != turn & 255:
            sys.exit(9)
        memory[page * 4096] = turn + 1 & 255
    turn += 1
    with open(name + '.turns', 'w') as file:
        file.write(str(turn))
    time.sleep(0.01)
    while len(sys.argv) > 3 and not os.path.exists('stop'):
        time.sleep(0.1)
";

/// Two programs of 12 MiB each in one run, begun with these options, that are there by now.
struct Run {
    folder: Folder,
    child: Child,
    socket: String,
}

impl Run {
    fn start(name: &str, options: &[&str]) -> Run {
        let script = "python3 program.py a 12 & a=$!; python3 program.py b 12; s=$?
                      wait $a && exit $s";
        // Whoever stops does so because it was asked to.
        let options = [&["--load-control", "none"], options].concat();
        let run = Run::of(name, &options, TOUCHER, script);
        wait_until("both programs turn", || {
            run.turns("a") > 0 && run.turns("b") > 0
        });
        run
    }

    /// A script that runs a Python program of this text, begun with these options.
    fn of(name: &str, options: &[&str], program: &str, script: &str) -> Run {
        let folder = Folder::new(name);
        let socket = folder.path("socket");
        folder.program("program.py", program.as_bytes());
        let child = Command::new(needs::tidemark())
            .args(["run", "--swap-size", "256M", "--control", &socket])
            .args(options)
            .args(["--", "sh", "-c", script])
            .current_dir(&folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Run {
            folder,
            child,
            socket,
        }
    }

    /// The number of turns that a program has said.
    fn turns(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.folder.path(&format!("{name}.turns")));
        text.ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn pid(&self, name: &str) -> u32 {
        let text = std::fs::read_to_string(self.folder.path(name)).unwrap();
        text.parse().unwrap()
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        ctl(&[&["--socket", &self.socket], arguments].concat())
    }

    /// The line that a request is answered by.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        refused(&self.ctl(arguments))
    }

    fn state(&self) -> Value {
        let text = self.done(&["--json", "stats"]);
        serde_json::from_str::<Value>(&text).unwrap()["stats"].take()
    }

    /// The state of the task that a program is.
    fn task(&self, name: &str) -> Value {
        let pid = self.pid(name);
        let state = self.state();
        let tasks = state["tasks"].as_array().unwrap();
        let task = tasks.iter().find(|task| task["pid"] == pid);
        task.unwrap_or_else(|| panic!("{name}: {state}")).clone()
    }

    /// Ends both programs, and waits for the end of the run.
    fn end(mut self) -> Output {
        std::fs::write(self.folder.path("stop"), "").unwrap();
        let mut output = Output {
            status: waits::for_end(&mut self.child, LIMIT),
            stdout: vec![],
            stderr: vec![],
        };
        use std::io::Read;
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        out.unwrap().read_to_end(&mut output.stdout).unwrap();
        err.unwrap().read_to_end(&mut output.stderr).unwrap();
        output
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind: the programs see the file, or are ended.
        let _ = std::fs::write(self.folder.path("stop"), "");
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            signal("TERM", self.child.id());
            let _ = self.child.wait();
        }
    }
}

fn ctl(arguments: &[&str]) -> Output {
    let mut command = Command::new(needs::tidemark());
    command.arg("ctl").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// The one line of a command that was refused.
fn refused(output: &Output) -> String {
    let told = support::stderr(output);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(told.lines().count(), 1, "{told}");
    told
}

fn signal(name: &str, pid: u32) {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, &pid.to_string()]);
    assert!(kill.status().unwrap().success());
}

/// Returns true if a process is stopped.
fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    waits::until(what, LIMIT, holds);
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn a_budget_that_changes_is_kept_and_comes_back() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("budget", &["--memory", "32M", "--memory-max", "48M"]);
    let in_use = || bytes(&run.state()["memory"]["resident_bytes"]);
    wait_until("all of it is in memory", || in_use() > 22 << 20);
    assert!(
        run.done(&["budget", "12M"])
            .starts_with("the budget is 12 MiB")
    );
    wait_until("it is kept", || in_use() <= 12 << 20);
    let state = run.state();
    let tasks = state["tasks"].as_array().unwrap();
    let given: u64 = tasks.iter().map(|task| bytes(&task["budget_bytes"])).sum();
    let memory = &state["memory"];
    assert!(
        given + bytes(&memory["unassigned_bytes"]) <= 12 << 20,
        "{state}"
    );
    assert_eq!(bytes(&memory["budget_bytes_max"]), 48 << 20);
    let turns = run.turns("b");
    wait_until("they go on", || run.turns("b") > turns + 1);
    assert!(bytes(&run.state()["counts"]["page_outs"]) > 0);
    assert_eq!(run.done(&["budget", "48M"]), "the budget is 48 MiB\n");
    wait_until("it grows again", || in_use() > 22 << 20);
    let told = run.refused(&["budget", "1M"]);
    assert!(
        told.contains("1 MiB is too small; the least is 4 MiB"),
        "{told}"
    );
    let told = run.refused(&["budget", "1G"]);
    assert!(
        told.contains("1 GiB is too large; the most is 48 MiB"),
        "{told}"
    );
    assert_eq!(bytes(&run.state()["memory"]["budget_bytes"]), 48 << 20);
    let output = run.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Fills 24 MiB with what compresses, and sleeps until `stop` is there.
const SLEEPER: &str = "
import os, sys, time
memory = bytearray(24 << 20)
for at in range(0, len(memory), 64):
    memory[at:at + 4] = at.to_bytes(4)
open(sys.argv[1], 'w').close()
while not os.path.exists('stop'):
    time.sleep(0.1)
";

#[test]
fn what_leaves_as_the_budget_is_lowered_is_compressed_and_stays() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::of(
        "lowered",
        &["--memory", "48M"],
        SLEEPER,
        "python3 program.py a",
    );
    let path = run.folder.path("a");
    wait_until("it sleeps", || Path::new(&path).exists());
    run.done(&["budget", "16M"]);
    let in_use = || bytes(&run.state()["memory"]["resident_bytes"]);
    wait_until("it is kept", || in_use() <= 16 << 20);
    let counts = run.state()["counts"].clone();
    let (left, compressed) = (
        bytes(&counts["page_outs"]),
        bytes(&counts["compressed_pages"]),
    );
    assert!(left >= 3000 && compressed * 10 >= left * 9, "{counts}");
    assert!(bytes(&counts["bytes_written"]) < 4 << 20, "{counts}");
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn memory_is_divided_as_was_asked_for_and_the_least_is_left_to_an_idle_task() {
    const LEAST: u64 = 6 << 20;
    if !needs::are_met(&["python3"]) {
        return;
    }
    for division in ["demand", "pressure"] {
        let kept = Folder::new("division-kept");
        let record = kept.path("stats.json");
        let options = ["--memory", "20M", "--stats", &record];
        let divided = ["--division", division, "--per-task-min", "6M"];
        let script = "python3 program.py a 12 idle & a=$!; python3 program.py b 16; s=$?
                      wait $a && exit $s";
        let run = Run::of(division, &[options, divided].concat(), TOUCHER, script);
        wait_until("both are there", || {
            run.turns("a") > 0 && run.turns("b") > 0
        });
        let state = run.state();
        assert_eq!(state["division"], division);
        assert_eq!(bytes(&state["memory"]["task_bytes_min"]), LEAST);
        let given = || bytes(&run.task("a")["budget_bytes"]);
        wait_until("the idle one has given what it had", || {
            given() < LEAST + (1 << 20)
        });
        let turns = run.turns("b");
        wait_until("the other turns", || {
            // What it does not use of that goes to the other.
            assert!(given() > LEAST - (1 << 20));
            run.turns("b") > turns + 3
        });
        assert_eq!(run.end().status.code(), Some(0));
        let record = std::fs::read_to_string(record).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["division"], division);
        assert_eq!(bytes(&record["task_bytes_min"]), LEAST);
    }
}

#[test]
fn a_suspended_task_stands_still_until_it_is_resumed() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("suspend", &["--memory", "64M"]);
    let pid = run.pid("a");
    let number = pid.to_string();
    assert!(
        run.done(&["resume", &number])
            .contains("is not suspended, as before")
    );
    let resident = || bytes(&run.task("a")["resident_bytes"]);
    wait_until("it is in memory", || resident() > 11 << 20);
    assert_eq!(
        run.done(&["suspend", &number]),
        format!("task {pid} is suspended\n")
    );
    assert!(
        run.done(&["suspend", &number])
            .contains("is suspended, as before")
    );
    let task = run.task("a");
    assert_eq!(task["state"], "suspended");
    assert_eq!(task["waits_for"], "resume");
    wait_until("its memory has left", || resident() <= 1 << 20);
    let told = run.done(&["evict", &number]);
    assert!(told.contains("is suspended, and paged out"), "{told}");
    let (still, others) = (run.turns("a"), run.turns("b"));
    wait_until("the other goes on", || run.turns("b") > others + 2);
    assert_eq!(run.turns("a"), still);
    // Its engine waits as well, whatever it holds.
    let engine = engines::engine_of(run.child.id(), "a");
    let (before, start) = (engines::processor_s(engine), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let share = (engines::processor_s(engine) - before) / start.elapsed().as_secs_f64();
    assert!(share < 0.25, "{share} of a processor");
    // It is no stopped process: to its parent it is merely slow.
    assert!(!is_stopped(pid));
    assert_eq!(
        run.done(&["resume", &number]),
        format!("task {pid} goes on\n")
    );
    wait_until("it goes on", || run.turns("a") > still + 2);
    assert!(resident() > 11 << 20, "what it had has come back");
    assert_eq!(run.end().status.code(), Some(0));
}

/// Fills 24 MiB, says so in a file of its name, and ends when `stop` is there.
const JOB: &str = "
import os, sys, time
memory = bytearray(24 << 20)
for at in range(0, len(memory), 4096):
    memory[at] = 1
open(sys.argv[1], 'w').close()
while not os.path.exists('stop'):
    time.sleep(0.01)
";

#[test]
fn jobs_do_not_begin_that_there_is_no_room_for() {
    if !needs::are_met(&["python3", "make"]) {
        return;
    }
    // A `python3` that is a script begins processes of its own, which no job accounts for.
    let script = "python=$(python3 -c 'import sys; print(sys.executable)')
                  { echo 'all: 1 2 3 4 5 6 7 8'; echo \"%:; @$python program.py \\$@\"; } > Makefile
                  make";
    let options = ["--memory", "40M", "--jobserver=8"];
    let run = Run::of("jobs", &options, JOB, script);
    let jobs = |run: &Run| run.state()["jobs"].clone();
    wait_until("the socket is there", || {
        run.ctl(&["stats"]).status.success()
    });
    wait_until("two jobs are at work", || {
        ["1", "2"]
            .iter()
            .all(|name| Path::new(&run.folder.path(name)).exists())
    });
    // Those that have begun by now go on.
    wait_until("no other may begin", || jobs(&run)["allowed"] == 1);
    let at_work = bytes(&jobs(&run)["at_work"]);
    assert!((2..=8).contains(&at_work), "{at_work}");
    assert_eq!(jobs(&run)["slots"], 8);
    let told = run.done(&["stats"]);
    assert!(told.contains("jobs, 1 of 8 allowed"), "{told}");
    let output = run.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(support::stderr(&output), "");
}

#[test]
fn what_a_suspended_task_had_goes_to_others() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    // Neither has room for all it touches while the other is there.
    let run = Run::start("others", &["--memory", "20M"]);
    run.done(&["suspend", &run.pid("a").to_string()]);
    let resident = |name: &str| bytes(&run.task(name)["resident_bytes"]);
    wait_until("the other has it", || resident("b") > 11 << 20);
    let page_ins = || bytes(&run.task("b")["counts"]["page_ins"]);
    // What is still out comes back first.
    wait_until("the other pages no more", || {
        let (before, turns) = (page_ins(), run.turns("b"));
        wait_until("the other turns", || run.turns("b") > turns + 2);
        page_ins() - before < 256
    });
    let (before, turns) = (page_ins(), run.turns("b"));
    wait_until("the other turns", || run.turns("b") > turns + 5);
    assert!(page_ins() - before < 5 * 256, "it still pages");
    run.done(&["resume", &run.pid("a").to_string()]);
    let turns = run.turns("a");
    wait_until("it goes on", || run.turns("a") > turns + 2);
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn a_suspended_task_that_is_killed_is_gone_at_once() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("killed", &["--memory", "64M"]);
    let pid = run.pid("b");
    run.done(&["suspend", &pid.to_string()]);
    // Until then it may have all that it needs for its next turns.
    wait_until("its memory has left", || {
        bytes(&run.task("b")["resident_bytes"]) <= 1 << 20
    });
    let turns = run.turns("b");
    signal("KILL", pid);
    wait_until("it is gone", || {
        let state = run.state();
        let tasks = state["tasks"].as_array().unwrap();
        tasks.iter().all(|task| task["pid"] != pid)
    });
    assert!(run.turns("b") <= turns + 1);
    assert_eq!(run.end().status.code(), Some(137));
}

#[test]
fn an_evicted_task_is_out_and_comes_back() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("evict", &["--memory", "64M"]);
    let number = run.pid("a").to_string();
    let resident = || bytes(&run.task("a")["resident_bytes"]);
    wait_until("it is in memory", || resident() > 11 << 20);
    run.done(&["evict", &number]);
    let out = || bytes(&run.task("a")["counts"]["page_outs"]) >= 11 << 8;
    wait_until("it has been out", out);
    wait_until("it is back", || resident() > 11 << 20);
    // One that is being paged out is so, all the more, when it is suspended.
    run.done(&["evict", &number]);
    run.done(&["suspend", &number]);
    assert_eq!(run.task("a")["state"], "suspended");
    wait_until("it is out", || resident() <= 1 << 20);
    run.done(&["resume", &number]);
    wait_until("it is back", || resident() > 11 << 20);
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn whatever_ends_the_supervisor_no_task_stays_suspended() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let mut run = Run::start("ended", &["--memory", "64M"]);
    let pid = run.pid("b");
    run.done(&["suspend", &pid.to_string()]);
    let out = || bytes(&run.task("b")["resident_bytes"]) <= 1 << 20;
    wait_until("it is out", out);
    let turns = run.turns("b");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    wait_until("it turns", || run.turns("b") > turns + 1);
    // It has its memory back, since nobody else has it.
    let anonymous = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    };
    wait_until("it has its memory back", || anonymous() > 10 << 20);
    let told = run.refused(&["stats"]);
    assert!(told.contains("is the run over?"), "{told}");
    std::fs::write(run.folder.path("stop"), "").unwrap();
    wait_until("it ends", || !Path::new(&format!("/proc/{pid}")).exists());
    // The last one leaves nothing behind.
    let begins = format!("tidemark-{}-", run.child.id());
    let is_left = || {
        let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        let mut names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with(&begins))
    };
    wait_until("the folder of the run is gone", || !is_left());
}

#[test]
fn a_signal_that_ends_the_run_reaches_what_is_suspended() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let mut run = Run::start("signalled", &["--memory", "64M"]);
    let state = run.state();
    let program = state["program_pid"].as_u64().unwrap() as u32;
    run.done(&["suspend", &program.to_string()]);
    signal("TERM", run.child.id());
    waits::for_end(&mut run.child, LIMIT);
    std::fs::write(run.folder.path("stop"), "").unwrap();
    for name in ["a", "b"] {
        let path = format!("/proc/{}", run.pid(name));
        wait_until("what it left behind ends", || !Path::new(&path).exists());
    }
}

#[test]
fn bad_input_is_one_line() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("bad-requests", &["--memory", "64M", "--policy", "clock"]);
    let own = std::process::id().to_string();
    for (arguments, told) in [
        (&["suspend", own.as_str()][..], "there is no task"),
        (&["evict", "4000000000"], "there is no task"),
        (&["budget", "lots"], "`budget lots`"),
        (&["budget", "50%"], "a percentage is of what"),
        (&["policy", "lru"], "it is `clock`"),
        (
            &["load-control", "swap-token"],
            "there are: none, medium-term, vms-swapper, task-swapper, working-set",
        ),
        (&["suspend", "-1"], "unexpected argument"),
        (&["suspend"], "required arguments were not provided"),
        (&["explode"], "invalid value 'explode'"),
    ] {
        let line = run.refused(arguments);
        assert!(line.contains(told), "{arguments:?}: {line}");
    }
    assert_eq!(run.done(&["policy"]), "clock\n");
    let told = refused(&ctl(&["--socket", "/nowhere", "stats"]));
    assert!(
        told.contains("`/nowhere`: no such file or directory"),
        "{told}"
    );
    let told = refused(&ctl(&[&own, "stats"]));
    assert!(told.contains("is no `tidemark run` of this user"), "{told}");
    // By its number, and as a table.
    let output = ctl(&[&run.child.id().to_string(), "stats"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with(&format!("run {}: ", run.child.id())),
        "{text}"
    );
    assert!(text.contains("python3"), "{text}");
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn clients_that_stall_or_talk_nonsense_hold_nobody_up() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("clients", &["--memory", "64M"]);
    let connect = || UnixStream::connect(&run.socket).unwrap();
    let mut silent = vec![connect()];
    let mut half = connect();
    half.write_all(b"{\"command\":").unwrap();
    let mut greedy = connect();
    greedy.set_nonblocking(true).unwrap();
    // Asks until nothing more is taken, and takes no reply.
    while greedy.write(b"{\"command\":\"stats\"}\n").is_ok() {}
    let mut noisy = connect();
    noisy.write_all(&[0xff; 100]).unwrap();
    noisy.write_all(b"\n{\"command\":\"stats\"}\n").unwrap();
    let mut lines = BufReader::new(noisy).lines();
    assert!(lines.next().unwrap().unwrap().contains("not a request"));
    assert!(
        lines
            .next()
            .unwrap()
            .unwrap()
            .contains("tidemark.control.v1")
    );
    // More than there is room for.
    silent.extend((0..40).map(|_| connect()));
    let turns = run.turns("a");
    wait_until("the programs go on", || run.turns("a") > turns + 2);
    drop(silent);
    wait_until("there is room again", || {
        run.ctl(&["stats"]).status.success()
    });
    assert_eq!(run.end().status.code(), Some(0));
}

/// Checks text against the rules of the OpenMetrics format, and prints the samples it has.
const CHECKER: &str = r##"
import re, sys
text = sys.stdin.read()
assert text.endswith('# EOF\n') and text.count('# EOF') == 1
families, seen, current, count = {}, set(), None, 0
name = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(rf'({name})(?:\{{({label}(?:,{label})*)\}})? (-?[0-9]+(?:\.[0-9]+)?)$')
for line in text.splitlines()[:-1]:
    meta = re.match(rf'# (TYPE|UNIT|HELP) ({name}) (.*)$', line)
    if meta:
        kind, family, rest = meta.groups()
        if kind == 'TYPE':
            assert family not in families, line
            assert rest in ('counter', 'gauge', 'info'), line
            families[family], current = rest, family
        assert family == current, line
        assert kind != 'UNIT' or family.endswith('_' + rest), line
        continue
    match = sample.match(line)
    assert match, line
    suffix = {'counter': '_total', 'info': '_info', 'gauge': ''}[families[current]]
    assert match.group(1) == current + suffix, line
    key = (match.group(1), match.group(2))
    assert key not in seen, line
    seen.add(key)
    assert float(match.group(3)) >= 0, line
    count += 1
print(count)
"##;

/// The number of samples in a text that is in the OpenMetrics format.
fn checked(text: &[u8]) -> u64 {
    let mut python = Command::new("python3");
    python.args(["-c", CHECKER]);
    let mut child = python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(text));
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn metrics_are_in_the_open_metrics_format_wherever_they_are_asked_for() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    // Free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let run = Run::start("metrics", &["--memory", "16M", "--metrics", &address]);
    let text = run.done(&["metrics"]);
    let samples = checked(text.as_bytes());
    assert!(samples > 3 * 18, "{text}");
    let number = run.pid("a");
    let line = format!("tidemark_task_resident_bytes{{pid=\"{number}\",program=\"python3\"}} ");
    assert!(text.contains(&line), "{text}");
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = vec![];
    std::io::Read::read_to_end(&mut stream, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    assert!(checked(body.as_bytes()) > 3 * 18, "{body}");
    // Of one task the same, whichever tasks there are beside it by now.
    let label = format!("{{pid=\"{number}\"");
    let of_task = |text: &str| {
        let names = text.lines().filter(|line| line.contains(&label));
        let names = names.map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
        names.collect::<Vec<String>>()
    };
    assert!(of_task(&text).len() >= 18, "{text}");
    assert_eq!(of_task(body), of_task(&text));
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn a_timeline_has_rates_and_what_was_asked_for() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start(
        "timeline",
        &["--memory", "16M", "--timeline", "timeline.json"],
    );
    let pid = run.pid("a");
    let run_pid = bytes(&run.state()["pid"]);
    let number = pid.to_string();
    run.done(&["suspend", &number]);
    run.done(&["resume", &number]);
    run.done(&["budget", "12M"]);
    wait_until("it pages", || bytes(&run.state()["counts"]["page_ins"]) > 0);
    let turns = run.turns("b");
    wait_until("it goes on", || run.turns("b") > turns + 2);
    let path = run.folder.path("timeline.json");
    let is_there = |name: &str| std::fs::read_to_string(&path).unwrap().contains(name);
    wait_until("rates are written", || is_there("pages per second"));
    let copy = Folder::new("timeline-copy");
    let kept = copy.path("timeline.json");
    std::fs::hard_link(&path, &kept).unwrap();
    assert_eq!(run.end().status.code(), Some(0));
    let text = std::fs::read_to_string(&kept).unwrap();
    let events: Value = serde_json::from_str(&text).unwrap();
    let events = events.as_array().unwrap();
    let of_task = |name: &str| {
        let events = events.iter();
        let found = events.filter(|it| it["name"] == name && it["pid"] == pid);
        found.collect::<Vec<&Value>>()
    };
    // The shell's name, perhaps, and then the program's.
    let names = of_task("process_name");
    assert_eq!(names.last().unwrap()["args"]["name"], "python3");
    // A suspension lasts from one to the other, and says who asked.
    let suspended = of_task("suspended");
    let parts: Vec<&Value> = suspended.iter().map(|it| &it["ph"]).collect();
    assert_eq!(parts, ["B", "E"]);
    assert_eq!(suspended[0]["args"]["by"], "a request");
    assert_eq!(suspended[1]["args"]["resumed by"], "a request");
    assert!(bytes(&suspended[0]["ts"]) <= bytes(&suspended[1]["ts"]));
    // The run as a whole has a track of its own.
    let of_run = |name: &str| {
        let found = events.iter();
        let mut found = found.filter(|it| it["name"] == name && it["ph"] == "C");
        found.any(|it| it["pid"] == run_pid)
    };
    for name in ["faults per second", "memory", "swap", "tasks"] {
        assert!(of_run(name), "{name}: {text}");
    }
    let rates = of_task("faults per second");
    assert!(!rates.is_empty(), "{text}");
    let times: Vec<u64> = rates.iter().map(|event| bytes(&event["ts"])).collect();
    assert!(times.is_sorted(), "{times:?}");
    let had = |kind: &str| rates.iter().any(|event| bytes(&event["args"][kind]) > 0);
    assert!(had("page-in") || had("soft") || had("zero fill"), "{text}");
    assert!(
        events
            .iter()
            .any(|it| it["name"] == "budget 12 MiB" && it["s"] == "g")
    );
}

#[test]
fn a_timeline_that_is_no_plain_file_is_refused() {
    if !needs::are_met(&[]) {
        return;
    }
    let mut command = Command::new(needs::tidemark());
    command.args([
        "run",
        "--memory",
        "16M",
        "--timeline",
        "/dev/null",
        "--",
        "true",
    ]);
    let told = refused(&command.output().unwrap());
    assert!(
        told.contains("the timeline is to be no plain file"),
        "{told}"
    );
}
