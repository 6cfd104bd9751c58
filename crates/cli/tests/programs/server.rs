//! redis-server: a long-lived program that forks to save while it goes on serving.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::child::{self, Running};
use super::needs;
use super::scratch::Scratch;
use super::trial::{Statistics, shares};

/// The longest time that one answer may take. A whole save is one, and so is the sum over all keys.
fn answer_limit() -> Duration {
    Duration::from_secs(needs::size(300, 2400))
}

/// The results of a session with the server: everything that must be the same in all runs.
#[derive(Debug, PartialEq, Eq)]
struct Session {
    filled: String,
    read_back: String,
    changed: String,
}

#[test]
fn a_server_that_forks_saves_what_it_holds() {
    if !needs::are_met(&["redis-server"]) {
        return;
    }
    let scratch = Scratch::new("redis");
    let keys = needs::size(20_000, 1_000_000);
    let (native, peak_bytes) = serve_natively(&scratch, keys);
    println!(
        "redis        native            {:6} MiB {native:?}",
        peak_bytes >> 20
    );
    for share in shares() {
        let what = format!("redis in {share} % of its memory");
        let folder = scratch.folder(&format!("share{share}"));
        let statistics = scratch.join(&format!("share{share}.json"));
        let mut command = Command::new(needs::tidemark());
        let memory = format!("{}K", (peak_bytes * share / 100) >> 10);
        command
            .args(["run", "--memory", &memory, "--stats"])
            .arg(&statistics);
        command.args(["--", "redis-server"]);
        let begun = Instant::now();
        let mut server = start(command, &folder);
        let session = work(&mut server, &folder, keys);
        let outcome = server.finish(answer_limit());
        outcome.expect_code(0, &what);
        assert_eq!(session, native, "{what}");
        let total = Statistics::read(&statistics, &what, &outcome);
        total.check(&what);
        println!(
            "redis        {share:3} % {memory} {:.2?} in {} processes, page-ins {}, page-outs {}",
            begun.elapsed(),
            total.processes(),
            total.field("page_ins"),
            total.field("page_outs")
        );
        assert!(
            total.processes() >= 3,
            "{what}: two saves are two children beside the server"
        );
        if share == 25 {
            assert!(total.field("page_outs") > 0, "{what}: nothing was paged");
        }
        // What it saved must be readable by a server that was never under a budget.
        assert_eq!(
            load(&scratch.join("check"), &folder.join("dump.rdb")),
            native.changed,
            "{what}"
        );
    }
}

fn serve_natively(scratch: &Scratch, keys: u64) -> (Session, u64) {
    let folder = scratch.folder("native");
    let mut server = start(Command::new("redis-server"), &folder);
    let session = work(&mut server, &folder, keys);
    let outcome = server.finish(answer_limit());
    outcome.expect_code(0, "redis natively");
    assert_eq!(
        load(&scratch.join("check"), &folder.join("dump.rdb")),
        session.changed
    );
    (session, outcome.peak_bytes)
}

fn start(mut command: Command, folder: &Path) -> Running {
    std::fs::create_dir_all(folder).expect("the test may make folders");
    command.args([
        "--port",
        "0",
        "--unixsocket",
        "socket",
        "--save",
        "",
        "--dir",
        ".",
    ]);
    command.args(["--enable-debug-command", "yes", "--loglevel", "warning"]);
    command.current_dir(folder);
    child::start(command, &folder.with_extension("out"))
}

/// Fills the server, saves, changes a part while saving, saves again, and ends it.
fn work(server: &mut Running, folder: &Path, keys: u64) -> Session {
    let mut client = connect(server, folder);
    client.expect(&format!("DEBUG POPULATE {keys} key 180"), "OK");
    for number in (0..keys).step_by(17) {
        client.expect(&format!("SET key:{number} changed-{number}"), "OK");
    }
    let filled = client.ask("DEBUG DIGEST");
    save(&mut client, folder, |_| {});
    // Reloading empties the server and reads back what the child has saved.
    client.expect("DEBUG RELOAD NOSAVE", "OK");
    let read_back = client.ask("DEBUG DIGEST");
    assert_eq!(
        filled, read_back,
        "the save holds something else than the server"
    );
    save(&mut client, folder, |client| {
        for number in (0..keys).step_by(5) {
            client.expect(
                &format!("SET key:{number} changed-while-saving-{number}"),
                "OK",
            );
        }
    });
    save(&mut client, folder, |_| {});
    server.sample();
    let changed = client.ask("DEBUG DIGEST");
    client.send("SHUTDOWN NOSAVE");
    Session {
        filled,
        read_back,
        changed,
    }
}

/// Saves in a child, and does `meanwhile` while it writes.
fn save(client: &mut Client, folder: &Path, meanwhile: impl FnOnce(&mut Client)) {
    client.expect("BGSAVE", "Background saving started");
    meanwhile(client);
    let deadline = Instant::now() + answer_limit();
    loop {
        let state = client.ask("INFO persistence");
        if state.contains("rdb_bgsave_in_progress:0") {
            let errors = folder.with_extension("out").join("stderr");
            assert!(
                state.contains("rdb_last_bgsave_status:ok"),
                "the child failed:\n{state}\nthe server and it wrote:\n{}",
                std::fs::read_to_string(errors).unwrap_or_default()
            );
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the child does not end:\n{state}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The output of a native server for a saved file.
fn load(folder: &Path, saved: &Path) -> String {
    std::fs::create_dir_all(folder).expect("the test may make folders");
    std::fs::copy(saved, folder.join("dump.rdb")).expect("the server has saved");
    let mut server = start(Command::new("redis-server"), folder);
    let mut client = connect(&mut server, folder);
    let digest = client.ask("DEBUG DIGEST");
    client.send("SHUTDOWN NOSAVE");
    server
        .finish(answer_limit())
        .expect_code(0, "redis natively");
    std::fs::remove_dir_all(folder).expect("the test made it");
    digest
}

/// A connection to the server, one question at a time.
struct Client {
    stream: BufReader<UnixStream>,
}

fn connect(server: &mut Running, folder: &Path) -> Client {
    let socket = folder.join("socket");
    let mut stream = None;
    server.wait_until("the server answers", Duration::from_secs(60), || {
        stream = UnixStream::connect(&socket).ok();
        stream.is_some()
    });
    let stream = stream.expect("it was waited for");
    stream
        .set_read_timeout(Some(answer_limit()))
        .expect("sockets take a limit");
    let mut client = Client {
        stream: BufReader::new(stream),
    };
    // While it loads a file, it says so instead of answering.
    let deadline = Instant::now() + answer_limit();
    while client.ask("PING") != "PONG" {
        assert!(Instant::now() < deadline, "the server loads for too long");
        std::thread::sleep(Duration::from_millis(20));
    }
    client
}

impl Client {
    fn send(&mut self, command: &str) {
        let line = format!("{command}\r\n");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .expect("the server listens");
    }

    fn ask(&mut self, command: &str) -> String {
        self.send(command);
        let line = self.line();
        let (kind, rest) = line.split_at(1);
        match kind {
            "+" | ":" | "-" => rest.to_owned(),
            "$" => {
                let length: usize = rest.parse().expect("a length");
                let mut text = vec![0; length + 2];
                self.stream
                    .read_exact(&mut text)
                    .expect("the server answers in time");
                String::from_utf8_lossy(&text[..length]).into_owned()
            }
            _ => panic!("`{command}` was answered by {line}"),
        }
    }

    fn expect(&mut self, command: &str, answer: &str) {
        assert_eq!(self.ask(command), answer, "`{command}`");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream
            .read_line(&mut line)
            .expect("the server answers in time");
        assert!(!line.is_empty(), "the server closed the connection");
        line.trim_end().to_owned()
    }
}
