//! Real servers that tests talk to on this machine.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The ports that are looked at, and the first of them: below those that the kernel gives to
/// connections by itself, one of which to such a port would be one to itself.
const PORTS: u32 = 12_000;
const FIRST_PORT: u32 = 20_000;
/// The longest wait for a server.
const LIMIT: Duration = Duration::from_secs(30);

/// A port on which nothing listens. No two calls of a process answer the same one soon.
///
/// # Panics
/// All are in use.
pub fn unused_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that test at the same time begin far from each other.
    let first = std::process::id() * 31;
    let port = || (FIRST_PORT + (first + NEXT.fetch_add(1, Relaxed)) % PORTS) as u16;
    let mut ports = (0..PORTS).map(|_| port());
    let unused = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    unused.expect("one of thousands is unused")
}

/// The command that starts a server of Redis at a port of this machine. Its writes are in `folder`,
/// and outlive it.
pub fn redis_command(port: u16, folder: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        // What was answered has been handed to the kernel before.
        .args(["--appendonly", "yes", "--appendfsync", "no", "--save", ""])
        .arg("--dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits until the server of Redis at `port` answers `question` so.
///
/// # Panics
/// It does not.
pub fn wait_for_redis(port: u16, question: &str, answer: &str) {
    let end = Instant::now() + LIMIT;
    loop {
        let told = ask_redis(port, question).unwrap_or_default();
        if told == answer {
            return;
        }
        assert!(Instant::now() < end, "{question}: `{told}`, not {answer}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first line of the answer of the server of Redis at `port`.
///
/// # Errors
/// It does not answer.
pub fn ask_redis(port: u16, question: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(format!("{question}\r\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().into())
}
