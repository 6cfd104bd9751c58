//! Signal 9 for the program, for a child of it, and for the supervisor: nothing hangs, nothing
//! wrong is read, nothing is left behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::child::{self, Running};
use super::needs;
use super::process_tree::{command_line, members};
use super::scratch::Scratch;
use super::trial::Statistics;

const LIMIT: Duration = Duration::from_secs(90);

/// Holds many times its budget, reads it over and over, and goes on until a file `stop` appears. A
/// file says how often it has read all of it. With `fork` it does so in parent and child at once.
const HOLDER: &str = "
import os, random, sys, time
numbers = random.Random(1968)
blocks = [numbers.randbytes(1 << 16) for _ in range(64 * 16)]
sums = [hash(block) for block in blocks]
child = os.fork() if sys.argv[1] == 'fork' else None
name = 'child' if child == 0 else 'ready'
if child == 0:
    blocks[::2] = [bytes(reversed(block)) for block in blocks[::2]]
    sums = [hash(bytes(bytearray(block))) for block in blocks]
print(name, os.getpid(), flush=True)
rounds = 0
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists('stop'):
    for block, known in zip(blocks, sums):
        if hash(bytes(bytearray(block))) != known:
            print('wrong', flush=True)
            os._exit(3)
    rounds += 1
    with open(name + '.rounds', 'w') as file:
        file.write(f'{rounds}.')
if child:
    print('child ended', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print('right', flush=True)
";

#[test]
fn a_killed_program_ends_the_run() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("kill-program");
    let mut holder = Holder::start(&scratch, "alone");
    let program = holder.process("ready");
    child::kill(program);
    let statistics = scratch.join("statistics.json");
    let outcome = holder.running.finish(LIMIT);
    let (signal, code) = (outcome.status.signal(), outcome.status.code());
    assert!(
        signal == Some(9) || code == Some(128 + 9),
        "signal 9 shows as {}",
        outcome.status
    );
    let total = Statistics::read(&statistics, "a killed program", &outcome);
    total.check("a killed program");
    assert!(total.field("page_outs") > 0, "its counters died with it");
    expect_nothing_left(&scratch);
}

#[test]
fn a_killed_child_leaves_its_parent_unharmed() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("kill-child");
    let mut holder = Holder::start(&scratch, "fork");
    holder.process("ready");
    let child = holder.process("child");
    child::kill(child);
    // The parent reads all of its memory once more with the child gone.
    await_rounds(&scratch, "ready", 2);
    scratch.write("stop", "");
    let outcome = holder.running.finish(LIMIT);
    outcome.expect_code(0, "the parent");
    let said = outcome.output_text();
    assert!(
        said.contains("child ended -9") && said.ends_with("right\n"),
        "it said:\n{said}"
    );
    expect_nothing_left(&scratch);
}

#[test]
fn a_killed_supervisor_harms_no_program() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("kill-supervisor");
    let mut holder = Holder::start(&scratch, "alone");
    let program = Remaining(holder.process("ready"));
    child::kill(holder.running.id());
    let outcome = holder.running.finish(LIMIT);
    assert_eq!(outcome.status.signal(), Some(9));
    // The program reads all of its memory once more with the supervisor gone.
    await_rounds(&scratch, "ready", 2);
    scratch.write("stop", "");
    let deadline = Instant::now() + LIMIT;
    while child::is_alive(program.0) {
        assert!(
            Instant::now() < deadline,
            "the program hangs without its supervisor"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = fs::read_to_string(scratch.join("out/stdout")).expect("it was made at the start");
    assert!(said.ends_with("right\n"), "it said:\n{said}");
    expect_nothing_left(&scratch);
}

/// Waits until the process `name` has ended so many `more` rounds over its memory.
fn await_rounds(scratch: &Scratch, name: &str, more: u64) {
    let path = scratch.join(&format!("{name}.rounds"));
    let rounds = || {
        let text = fs::read_to_string(&path).ok()?;
        text.strip_suffix('.')?.parse::<u64>().ok()
    };
    let (mut last, mut ended) = (rounds(), 0);
    let deadline = Instant::now() + LIMIT;
    while ended < more {
        assert!(
            Instant::now() < deadline,
            "`{name}` reads its memory no more"
        );
        std::thread::sleep(Duration::from_millis(10));
        let now = rounds();
        if now.is_some() && now != last {
            (last, ended) = (now, ended + 1);
        }
    }
}

/// The program under way, in a sixth of the memory that it holds.
struct Holder {
    running: Running,
    said: PathBuf,
}

impl Holder {
    fn start(scratch: &Scratch, kind: &str) -> Self {
        let script = scratch.write("holder.py", HOLDER);
        let swap = scratch.folder("swap");
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "12M", "--swap"]).arg(swap);
        command.arg("--stats").arg(scratch.join("statistics.json"));
        command.args(["--", needs::python()]).arg(script).arg(kind);
        command
            .current_dir(scratch.path())
            .env("PYTHONHASHSEED", "1");
        let folder = scratch.join("out");
        Self {
            running: child::start(command, &folder),
            said: folder.join("stdout"),
        }
    }

    /// Waits until the process that calls itself `name` is at work; gives its identifier.
    fn process(&mut self, name: &str) -> u32 {
        let said = self.said.clone();
        let find = move || {
            let text = fs::read_to_string(&said).unwrap_or_default();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name).map(str::to_owned));
            line.and_then(|line| line.trim().parse::<u32>().ok())
        };
        self.running
            .wait_until(&format!("`{name}`"), LIMIT, || find().is_some());
        let found = find().expect("it was waited for");
        let tree = members(self.running.id());
        assert!(
            tree.contains(&found),
            "{found} ({}) is not in {tree:?}",
            command_line(found)
        );
        found
    }
}

/// A process that has lost its parent; ended when the test is over.
struct Remaining(u32);

impl Drop for Remaining {
    fn drop(&mut self) {
        if child::is_alive(self.0) {
            child::kill(self.0);
        }
    }
}

fn expect_nothing_left(scratch: &Scratch) {
    let folder: &Path = &scratch.join("swap");
    let left: Vec<_> = fs::read_dir(folder)
        .expect("the test made it")
        .flatten()
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
