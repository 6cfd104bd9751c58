//! Pages that leave to a real server of Redis, with compressed memory in front of it and without:
//! the server is killed and comes back, or does not.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tidemark_testing::servers;

use super::child::{self, Outcome, Running};
use super::needs;
use super::ordinary_user::Place;
use super::scratch::Scratch;

const LIMIT: Duration = Duration::from_secs(120);

/// Has 64 MiB of records of which half does not compress, reads and changes them at random, and
/// compares each with what it must be. Tells when it is under way.
const RECORDS: &str = "
import hashlib, random, sys
numbers = random.Random(1978)
def fresh():
    return b''.join(numbers.randbytes(2048) + b'marked for redis' * 128 for _ in range(16))
records = [bytearray(fresh()) for _ in range(1024)]
sums = [hashlib.md5(record).digest() for record in records]
print('under way', flush=True)
for turn in range(int(sys.argv[1])):
    at = numbers.randrange(len(records))
    if hashlib.md5(records[at]).digest() != sums[at]:
        print('wrong', flush=True)
    if turn % 3 == 0:
        records[at][numbers.randrange(65536)] ^= 0xff
        sums[at] = hashlib.md5(records[at]).digest()
    if turn % 512 == 511:
        print(turn, flush=True)
for record, known in zip(records, sums):
    if hashlib.md5(record).digest() != known:
        print('wrong', flush=True)
print('right', hashlib.md5(b''.join(sums)).hexdigest(), flush=True)
";

/// A server in a folder of its own, whose writes outlive it.
struct Server {
    child: Option<Child>,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start(scratch: &Scratch) -> Server {
        let mut server = Server {
            child: None,
            folder: scratch.folder("redis"),
            port: servers::unused_port(),
        };
        server.revive();
        server
    }

    /// Kills it as `kill -9` does.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is this test's");
            child.wait().expect("it is this test's");
        }
    }

    /// Starts it again, with what was written before.
    fn revive(&mut self) {
        let mut command = servers::redis_command(self.port, &self.folder);
        self.child = Some(command.spawn().expect("it was looked for"));
        self.wait_for("PING", "+PONG");
    }

    /// Waits until it answers so.
    fn wait_for(&self, question: &str, answer: &str) {
        servers::wait_for_redis(self.port, question, answer);
    }

    /// The first line of its answer.
    fn ask(&self, question: &str) -> std::io::Result<String> {
        servers::ask_redis(self.port, question)
    }

    fn url(&self, name: &str) -> String {
        format!("redis://127.0.0.1:{}/0/{name}", self.port)
    }

    /// Returns true if what it has written to its folder has a part of the program's records.
    fn shows_records(&self) -> bool {
        let text = b"marked for redis".repeat(4);
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it is this test's") {
                let path = entry.expect("it is this test's").path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(bytes) = std::fs::read(&path)
                    && bytes.windows(text.len()).any(|part| part == text)
                {
                    return true;
                }
            }
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns true if there is all that a real server and its file need.
fn are_needs_met() -> bool {
    if !needs::are_met(&["python3", "redis-server"]) {
        return false;
    }
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    match device.is_ok() && needs::is_root() {
        true => true,
        false => needs::lacks("FUSE can't be mounted: that takes /dev/fuse and root"),
    }
}

/// `tidemark run` of the records, in a quarter of their memory.
fn run_of(store: &str, turns: u32, scratch: &Scratch) -> Command {
    let script = scratch.write("records.py", RECORDS);
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "16M", "--store", store, "--stats"]);
    command.arg(scratch.join("stats.json"));
    command
        .args(["--", needs::python()])
        .arg(script)
        .arg(turns.to_string());
    command
}

/// The output of the program natively.
fn natively(turns: u32, scratch: &Scratch) -> String {
    let script = scratch.write("records.py", RECORDS);
    let mut command = Command::new(needs::python());
    command.arg(script).arg(turns.to_string());
    let outcome = child::run(command, &scratch.join("native"), LIMIT);
    outcome.expect_code(0, "natively").output_text()
}

/// Waits until a run has written this.
fn wait_for_output(running: &mut Running, scratch: &Scratch, text: &str) {
    let output = scratch.join("out").join("stdout");
    running.wait_until(text, LIMIT, || {
        std::fs::read_to_string(&output).is_ok_and(|it| it.contains(text))
    });
}

fn lines_of_ours(outcome: &Outcome) -> Vec<String> {
    let errors = outcome.errors_text();
    let lines = errors.lines().filter(|line| line.starts_with("tidemark"));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_program_is_what_it_is_natively_with_its_pages_on_a_server() {
    if !are_needs_met() {
        return;
    }
    let scratch = Scratch::new("remote");
    let server = Server::start(&scratch);
    let native = natively(1000, &scratch);
    for kind in ["", "compressed+"] {
        let store = format!("{kind}{}", server.url("swap"));
        let command = run_of(&store, 1000, &scratch);
        let outcome = child::run(command, &scratch.join("out"), LIMIT);
        outcome.expect_code(0, &store);
        assert_eq!(outcome.output_text(), native, "{store}");
        assert_eq!(lines_of_ours(&outcome), [""; 0], "{store}");
        let record = std::fs::read_to_string(scratch.join("stats.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["store"], store);
        let count = |name: &str| record["total"][name].as_u64().unwrap_or_default();
        // A quarter of the pages fits at most, and half of them compressed.
        assert!(count("bytes_written") > 16 << 20, "{store}: {record}");
        assert!(count("bytes_read") > 16 << 20, "{store}: {record}");
        let is_compressed = !kind.is_empty();
        assert_eq!(
            count("compressed_pages") > 8192,
            is_compressed,
            "{store}: {record}"
        );
        assert_eq!(
            count("decompressed_pages") > 8192,
            is_compressed,
            "{store}: {record}"
        );
        assert_eq!(
            server.ask("DBSIZE").unwrap(),
            ":0",
            "{store}: nothing is left"
        );
    }
}

#[test]
fn a_server_sees_nothing_of_the_program_unless_that_is_wanted() {
    if !are_needs_met() {
        return;
    }
    for (options, is_shown) in [(vec![], false), (vec!["--swap-plain"], true)] {
        let scratch = Scratch::new("remote-seen");
        let server = Server::start(&scratch);
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "16M", "--store", &server.url("seen")]);
        command.args(options).args(["--", needs::python()]);
        command.arg(scratch.write("records.py", RECORDS)).arg("0");
        let outcome = child::run(command, &scratch.join("out"), LIMIT);
        outcome.expect_code(0, "it pages");
        assert_eq!(server.shows_records(), is_shown);
    }
}

#[test]
fn a_server_that_is_killed_and_comes_back_costs_no_byte() {
    if !are_needs_met() {
        return;
    }
    let scratch = Scratch::new("remote-killed");
    let mut server = Server::start(&scratch);
    let native = natively(2048, &scratch);
    let store = format!("compressed+{}", server.url("killed"));
    let mut running = child::start(run_of(&store, 2048, &scratch), &scratch.join("out"));
    for moment in ["under way", "511", "1023"] {
        wait_for_output(&mut running, &scratch, moment);
        server.kill();
        // So that calls fail, and more than once.
        std::thread::sleep(Duration::from_millis(500));
        server.revive();
    }
    let outcome = running.finish(LIMIT);
    outcome.expect_code(0, &store);
    assert_eq!(outcome.output_text(), native);
    assert_eq!(lines_of_ours(&outcome), [""; 0]);
    assert_eq!(server.ask("DBSIZE").unwrap(), ":0");
}

#[test]
fn a_server_that_stays_away_ends_the_program_with_its_name() {
    if !are_needs_met() {
        return;
    }
    for kind in ["", "compressed+"] {
        let scratch = Scratch::new("remote-gone");
        let mut server = Server::start(&scratch);
        let (url, turns) = (server.url("gone"), 1 << 20);
        let mut command = run_of(&format!("{kind}{url}"), turns, &scratch);
        command.env("TIDEMARK_STORE_PATIENCE", "2");
        let mut running = child::start(command, &scratch.join("out"));
        wait_for_output(&mut running, &scratch, "under way");
        server.kill();
        let outcome = running.finish(LIMIT);
        assert!(!outcome.status.success(), "{:?}", outcome.status);
        let said = outcome.output_text();
        assert!(!said.contains("wrong") && !said.contains("right"), "{said}");
        let lines = lines_of_ours(&outcome);
        let told = |words: &[&str]| {
            let has_all = |line: &&String| words.iter().all(|word| line.contains(word));
            lines.iter().filter(has_all).count()
        };
        assert_eq!(
            told(&[&url, "refused", "tried again for 2s"]),
            1,
            "{lines:?}"
        );
        assert_eq!(told(&["is ended", "swap file"]), 1, "{lines:?}");
        // The third says that the keys stay.
        assert_eq!(told(&[&url, "can't be removed"]), 1, "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}

#[test]
fn a_program_is_ended_while_its_server_is_away() {
    if !are_needs_met() {
        return;
    }
    let scratch = Scratch::new("remote-ended");
    let mut server = Server::start(&scratch);
    let store = format!("compressed+{}", server.url("ended"));
    let mut command = run_of(&store, 1 << 20, &scratch);
    // Far longer than this test waits.
    command.env("TIDEMARK_STORE_PATIENCE", "100000");
    let mut running = child::start(command, &scratch.join("out"));
    wait_for_output(&mut running, &scratch, "under way");
    server.kill();
    // So that it waits for pages.
    std::thread::sleep(Duration::from_secs(1));
    let group = Pid::from_raw(running.id() as i32).expect("a process of this test");
    kill_process_group(group, Signal::TERM).expect("it is there");
    let outcome = running.finish(LIMIT);
    assert_eq!(
        outcome.status.signal(),
        Some(15),
        "{}",
        outcome.errors_text()
    );
    let lines = lines_of_ours(&outcome);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("can't be removed"), "{lines:?}");
}

#[test]
fn an_ordinary_user_s_pages_go_to_a_server() {
    if !are_needs_met() {
        return;
    }
    let Some(place) = Place::new("remote-user") else {
        return;
    };
    let scratch = Scratch::new("remote-user");
    let server = Server::start(&scratch);
    let script = place.folder.join("records.py");
    std::fs::write(&script, RECORDS).expect("it is this test's");
    let store = format!("compressed+{}", server.url("user"));
    // As it is on most machines: all may open the device.
    let open =
        "mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", open, "sh", "setpriv"]);
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(place.folder.join("tidemark"));
    command.args(["run", "--memory", "16M", "--store", &store]);
    command
        .args(["--", "/usr/bin/python3"])
        .arg(script)
        .arg("200");
    command.current_dir(&place.folder);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_code(0, "it needs no rights");
    assert_eq!(outcome.output_text(), natively(200, &scratch));
    assert_eq!(server.ask("DBSIZE").unwrap(), ":0");
}

#[test]
fn what_outlives_its_program_keeps_its_pages() {
    if !are_needs_met() {
        return;
    }
    let scratch = Scratch::new("remote-outlived");
    let server = Server::start(&scratch);
    let store = format!("compressed+{}", server.url("outlived"));
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "16M", "--store", &store, "--"]);
    let script = format!(
        "{} {} 200 > {} & while ! grep -q 'under way' {}; do sleep 0.1; done",
        needs::python(),
        scratch.write("records.py", RECORDS).display(),
        scratch.join("later").display(),
        scratch.join("later").display(),
    );
    command.args(["sh", "-c", &script]);
    let native = natively(200, &scratch);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_code(0, "the shell");
    let end = Instant::now() + LIMIT;
    let written = || std::fs::read_to_string(scratch.join("later")).unwrap();
    while !written().contains("right") {
        assert!(Instant::now() < end, "it does not end: {}", written());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(written(), native);
    server.wait_for("DBSIZE", ":0");
}

#[test]
fn addresses_that_are_none_are_refused_by_name() {
    if !are_needs_met() {
        return;
    }
    let scratch = Scratch::new("remote-wrong");
    let server = Server::start(&scratch);
    let taken = server.url("taken");
    server.wait_for("SET taken 1", "+OK");
    let closed = format!("redis://me:secret@127.0.0.1:{}/0/a", servers::unused_port());
    for (store, words) in [
        (
            "compressed+nothing",
            vec!["compressed+nothing", "redis://HOST/0/NAME"],
        ),
        (
            "compressed+redis://127.0.0.1",
            vec!["`redis://127.0.0.1`", "no name"],
        ),
        (
            "redis://127.0.0.1/x/y",
            vec!["`redis://127.0.0.1/x/y`", "no database"],
        ),
        (
            "compressed+s3://a/b",
            vec!["`s3://a/b`", "objects are only read"],
        ),
        (
            "compressed+ftp://a/b",
            vec!["`ftp://a/b`", "scheme is unknown"],
        ),
        (&taken, vec![&taken, "exists"]),
        (&closed, vec!["redis://me@127.0.0.1", "refused"]),
    ] {
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "16M", "--store", store, "--", "true"]);
        let outcome = child::run(command, &scratch.join("out"), LIMIT);
        outcome.expect_code(2, store);
        let errors = outcome.errors_text();
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(!errors.contains("secret"), "{errors}");
        for word in words {
            assert!(errors.contains(word), "{errors} does not speak of {word}");
        }
    }
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "16M", "--swap", "/var/tmp", "--store"]);
    command.arg(server.url("a")).args(["--", "true"]);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_code(2, "a folder and a server");
    assert!(
        outcome
            .errors_text()
            .contains("`--swap`: there is no swap file")
    );
    assert_eq!(server.ask("DBSIZE").unwrap(), ":1", "nothing was made");
}
