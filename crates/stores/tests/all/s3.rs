//! Objects of a real server of S3 that checks signatures, `s3s-fs`, which keeps objects as files.
//! It takes a minute to build: `scripts/s3-server` does, and runs these.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tidemark_core::random::SplitMix64;
use tidemark_stores::open;
use tidemark_testing::servers::unused_port;
use tidemark_testing::waits;

use crate::redis::{MIB, settings};

/// The longest wait for the server or a program.
const LIMIT: Duration = Duration::from_secs(60);
const BYTES: usize = 2 * MIB as usize + 321;
/// A key that addresses write otherwise.
const KEY: &str = "a folder/größe+1 %?#=&.bin";
const ADDRESS: &str = "s3://some/a folder/größe+1 %25%3F%23=&.bin";
const ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// The server, with one object in the bucket `some`.
struct Server {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start() -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = PathBuf::from(format!("/var/tmp/tidemark-s3-{process}-{number}"));
        let object = folder.join("some").join(KEY);
        std::fs::create_dir_all(object.parent().unwrap()).unwrap();
        std::fs::write(object, contents()).unwrap();
        let port = unused_port();
        let child = Server::spawn(&folder, port);
        let mut server = Server {
            child,
            folder,
            port,
        };
        server.await_start();
        server
    }

    fn spawn(folder: &PathBuf, port: u16) -> Child {
        let program = std::env::var("TIDEMARK_S3_SERVER").expect("the path of `s3s-fs`");
        let mut command = Command::new(program);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--access-key", ID, "--secret-key", SECRET]);
        command.args(["--domain", &format!("store.test:{port}")]);
        command.arg(folder).env("RUST_LOG", "off");
        command.stdout(Stdio::null()).spawn().unwrap()
    }

    fn await_start(&mut self) {
        waits::until("the server starts", LIMIT, || {
            assert_eq!(self.child.try_wait().unwrap(), None, "the server ends");
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Kills it as `kill -9` does.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again.
    fn revive(&mut self) {
        self.child = Server::spawn(&self.folder, self.port);
        self.await_start();
    }

    /// A program that reads what is at `address`, by the settings for this server.
    fn reader(&self, address: &str) -> Command {
        self.reader_by(Command::new(std::env::current_exe().unwrap()), address)
    }

    /// The same by a command that the program's arguments go to.
    fn reader_by(&self, mut command: Command, address: &str) -> Command {
        command.args(["--ignored", "--exact", "s3::reads_an_object", "--nocapture"]);
        for name in ["AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"] {
            command.env_remove(name);
        }
        command
            .env("TIDEMARK_TEST_URL", address)
            .env(
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            )
            .env("AWS_ACCESS_KEY_ID", ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn contents() -> Vec<u8> {
    let mut random = SplitMix64::new(11);
    let words = (0..BYTES.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
    words.take(BYTES).collect()
}

/// The program of the tests below: reads an object in a memory of half of it, and waits in the
/// midst of that for a line.
#[test]
#[ignore = "a program of other tests"]
fn reads_an_object() {
    let store = match open(&std::env::var("TIDEMARK_TEST_URL").unwrap()) {
        Ok(store) => store,
        Err(error) => return println!("not opened: {error}"),
    };
    let engine = settings().start().unwrap();
    let region = engine.read_pager(store).unwrap();
    let plain = contents();
    assert_eq!(region.len(), plain.len());
    let mut random = SplitMix64::new(3);
    for turn in 0..80 {
        if turn == 20 {
            println!("in the midst");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        let start = random.below(BYTES as u64) as usize;
        let end = (start + 9000).min(BYTES);
        assert!(region[start..end] == plain[start..end], "{turn}");
    }
    assert!(**region == plain && region[BYTES - 1..] == plain[BYTES - 1..]);
    println!("read: all");
}

/// The output of a program that nothing happens to.
fn output(command: Command) -> String {
    output_and(command, |_| ())
}

/// The output of a program, after something was done in the midst of it. What is done is given a
/// function that lets it go on.
fn output_and(mut command: Command, act: impl FnOnce(&mut dyn FnMut())) -> String {
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("in the midst") && output.read_line(&mut text).unwrap() > 0 {}
    if text.contains("in the midst") {
        let mut stdin = child.stdin.take().unwrap();
        let mut go_on = || stdin.write_all(b"\n").unwrap();
        act(&mut go_on);
        // Its input ends here, which lets it go on, too.
    }
    waits::for_end(&mut child, LIMIT);
    output.read_to_string(&mut text).unwrap();
    text
}

#[test]
#[ignore = "needs s3s-fs: scripts/s3-server"]
fn an_object_of_s3_is_read_by_signed_requests() {
    let server = Server::start();
    let text = output(server.reader(ADDRESS));
    assert!(text.contains("read: all"), "{text}");
}

#[test]
#[ignore = "needs s3s-fs: scripts/s3-server"]
fn a_server_of_s3_that_is_killed_and_started_again_gives_no_wrong_byte() {
    let mut server = Server::start();
    let reader = server.reader(ADDRESS);
    let text = output_and(reader, |_| {
        server.kill();
        server.revive();
    });
    assert!(text.contains("read: all"), "{text}");
    // While it is away, reads wait.
    let reader = server.reader(ADDRESS);
    let text = output_and(reader, |go_on| {
        server.kill();
        go_on();
        std::thread::sleep(Duration::from_millis(500));
        server.revive();
    });
    assert!(text.contains("read: all"), "{text}");
}

#[test]
#[ignore = "needs s3s-fs: scripts/s3-server"]
fn what_a_server_of_s3_refuses_is_one_line_with_its_words() {
    let server = Server::start();
    let told = |address: &str, settings: &[(&str, &str)]| {
        let mut reader = server.reader(address);
        reader.envs(settings.iter().copied());
        let text = output(reader);
        let line = text.lines().find(|line| line.starts_with("not opened: "));
        let line = line.unwrap_or_else(|| panic!("{text}")).to_string();
        println!("{line}");
        assert!(!line.contains(SECRET) && !line.contains("X-Amz"), "{line}");
        line
    };
    let secret = |value| ("AWS_SECRET_ACCESS_KEY", value);
    let id = |value| ("AWS_ACCESS_KEY_ID", value);
    assert!(told(ADDRESS, &[secret("wrong")]).contains("403 Forbidden: SignatureDoesNotMatch"));
    assert!(told(ADDRESS, &[id("WRONG")]).contains("403 Forbidden"));
    let nobody = told(ADDRESS, &[secret(""), id("")]);
    assert!(nobody.contains("403 Forbidden") && nobody.contains("are not set"));
    assert!(told("s3://some/none", &[]).contains("404 Not Found: NoSuchKey"));
    assert!(told("s3://other/none", &[]).contains("404 Not Found"));
    let closed = ("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    assert!(told(ADDRESS, &[closed]).contains("refused"));
}

#[test]
#[ignore = "needs s3s-fs and root: scripts/s3-server"]
fn a_bucket_can_be_the_first_part_of_the_host() {
    let server = Server::start();
    let hosts = server.folder.join("hosts");
    std::fs::write(&hosts, "127.0.0.1 some.store.test\n").unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-euc"]);
    shell.arg("mount --bind \"$0\" /etc/hosts; exec \"$@\"");
    shell.arg(&hosts).arg(std::env::current_exe().unwrap());
    let mut reader = server.reader_by(shell, ADDRESS);
    let place = format!("http://store.test:{}", server.port);
    reader.env("AWS_ENDPOINT_URL", place);
    reader.env("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true");
    let text = output(reader);
    assert!(text.contains("read: all"), "{text}");
}
