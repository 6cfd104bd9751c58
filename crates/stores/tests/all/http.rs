//! Objects by ranges, of a small server in the test that also does what servers should not.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tidemark_core::random::SplitMix64;
use tidemark_regions::Pager;
use tidemark_stores::open;

use crate::redis::{MIB, settings, start};

/// The manners of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// It serves ranges.
    Well,
    /// Each third answer is an error, a busy server's, or ends in the midst.
    Tired,
    /// It sends the whole, whatever is asked for.
    Whole,
    /// It sends as many bytes of another place.
    Elsewhere,
    /// It does not know the object.
    Missing,
}

struct Server {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    contents: Mutex<(Vec<u8>, u32)>,
    manner: Manner,
    asked: AtomicU64,
    /// The first line of the last request.
    last: Mutex<String>,
    is_ending: AtomicBool,
}

impl Server {
    fn start(contents: Vec<u8>, manner: Manner) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            contents: Mutex::new((contents, 1)),
            manner,
            asked: AtomicU64::new(0),
            last: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.is_ending.load(Relaxed) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || shared.serve(&client.unwrap()));
            }
        });
        Server { port, shared }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/folder/object?name=1", self.port)
    }
}

impl Shared {
    /// Serves a client until it goes, or its connection is cut.
    fn serve(&self, client: &TcpStream) {
        client.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(client);
        while let Some((line, headers)) = request(&mut reader) {
            *self.last.lock().unwrap() = line;
            let asked = self.asked.fetch_add(1, Relaxed);
            if self.answer(client, &headers, asked).is_none() {
                let _ = client.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// Answers a request; nothing if the connection is over then.
    fn answer(&self, mut client: &TcpStream, headers: &[String], asked: u64) -> Option<()> {
        let (contents, version) = self.contents.lock().unwrap().clone();
        let find = |name: &str| headers.iter().find_map(|line| line.strip_prefix(name));
        let tag = format!("\"v{version}\"");
        let is_tired = self.manner == Manner::Tired && asked > 0;
        let refusal = match (self.manner, asked % 9) {
            (Manner::Missing, _) => Some("404 Not Found"),
            (_, 3) if is_tired => Some("503 Busy"),
            (_, 6) if is_tired => Some("429 Slower"),
            _ if find("if-match: ").is_some_and(|wanted| wanted != tag) => Some("412 Changed"),
            _ => None,
        };
        if let Some(status) = refusal {
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            return client.write_all(head.as_bytes()).ok();
        }
        let range = find("range: bytes=").unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let bytes = contents.len();
        if first >= bytes {
            let head = "HTTP/1.1 416 Beyond\r\nContent-Length: 0\r\n\r\n";
            return client.write_all(head.as_bytes()).ok();
        }
        let last = last.min(bytes - 1);
        let (status, first, last) = match self.manner {
            Manner::Whole => ("200 OK", 0, bytes - 1),
            Manner::Elsewhere if asked > 0 => ("206 Partial", first - 1, last - 1),
            _ => ("206 Partial", first, last),
        };
        let body = &contents[first..=last];
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: {tag}\r\nContent-Range: bytes \
             {first}-{last}/{bytes}\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).ok()?;
        let is_cut = is_tired && asked.is_multiple_of(9);
        let sent = match is_cut {
            true => &body[..body.len() / 2],
            false => body,
        };
        client.write_all(sent).ok()?;
        (!is_cut).then_some(())
    }
}

/// The first line of a request, and its headers in lower case.
fn request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<String>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_string()),
        }
    }
    let first = lines.remove(0);
    let lower = |line: String| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line,
    };
    Some((first, lines.into_iter().map(lower).collect()))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn at_random(bytes: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(5);
    let words = (0..bytes.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
    words.take(bytes).collect()
}

const BYTES: usize = 4 * MIB as usize + 99;

#[test]
fn an_object_is_read_by_ranges_also_of_a_server_that_is_tired() {
    for manner in [Manner::Well, Manner::Tired] {
        let contents = at_random(BYTES);
        let server = Server::start(contents.clone(), manner);
        let Some(engine) = start(settings()) else {
            return;
        };
        let region = engine.read_pager(open(&server.url()).unwrap()).unwrap();
        assert_eq!(region.len(), BYTES);
        let mut random = SplitMix64::new(9);
        for _ in 0..300 {
            let start = random.below(BYTES as u64 - 9000) as usize;
            assert!(region[start..start + 9000] == contents[start..start + 9000]);
        }
        assert!(**region == contents);
        // Far fewer requests than pages.
        let asked = server.shared.asked.load(Relaxed);
        assert!(asked > 50 && asked < 3000, "{manner:?}: {asked}");
        // It may refuse the first request of another store, which is not tried again.
        let store = open(&server.url())
            .or_else(|_| open(&server.url()))
            .unwrap();
        let mut copy = engine.from_pager(store).unwrap();
        copy[5] = !copy[5];
        assert!(copy[5] == !contents[5] && copy[6..] == contents[6..]);
    }
}

#[test]
fn an_object_that_changes_is_an_error_and_versions_are_never_mixed() {
    let server = Server::start(at_random(BYTES), Manner::Well);
    let store = open(&server.url()).unwrap();
    let mut bytes = [0; 100];
    store.read(0, &mut bytes).unwrap();
    server.shared.contents.lock().unwrap().1 = 2;
    let error = store.read(100, &mut bytes).unwrap_err();
    assert!(
        !error.is_temporary() && error.to_string().contains("it has changed"),
        "{error}"
    );
}

#[test]
fn a_server_that_answers_otherwise_is_named() {
    let told = |manner| {
        let server = Server::start(at_random(BYTES), manner);
        open(&server.url()).unwrap_err().to_string()
    };
    let whole = told(Manner::Whole);
    assert!(
        whole.contains("/folder/object`: the server does not serve ranges"),
        "{whole}"
    );
    assert!(told(Manner::Missing).contains("the server answers 404"));
    let empty = Server::start(Vec::new(), Manner::Well);
    assert!(
        open(&empty.url())
            .unwrap_err()
            .to_string()
            .contains("no such bytes")
    );

    let elsewhere = Server::start(at_random(BYTES), Manner::Elsewhere);
    let store = open(&elsewhere.url()).unwrap();
    let error = store.read(4096, &mut [0; 4096]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("sends bytes 4095 to 8190 instead"),
        "{error}"
    );

    let port = empty.port;
    drop(empty);
    let gone = open(&format!("http://127.0.0.1:{port}/x"));
    assert!(gone.is_err());
}
