use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::folder::{PrivateFolder, leave_dead_socket};

/// A socket in a folder of its own, and what takes requests there.
struct Desk {
    requests: Requests,
    path: PathBuf,
    _folder: PrivateFolder,
}

impl Desk {
    fn new() -> Desk {
        let folder = PrivateFolder::new().unwrap();
        let path = folder.path().join("socket");
        let mut requests = Requests::default();
        let door = Door::open("--control", &path, Speech::Lines).unwrap();
        requests.add(door).unwrap();
        Desk {
            requests,
            path,
            _folder: folder,
        }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    }

    /// As many steps as anything here needs, each answered by the request itself.
    fn step(&mut self) {
        for _ in 0..4 {
            self.requests
                .step(&mut |request| Reply::Done(format!("{request:?}")));
        }
    }
}

fn line(stream: &mut UnixStream) -> String {
    let mut line = vec![];
    let mut byte = [0];
    while line.last() != Some(&b'\n') && stream.read(&mut byte).unwrap() == 1 {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

#[test]
fn a_request_is_replied_to_and_the_next_after_it() {
    let mut desk = Desk::new();
    let mut client = desk.connect();
    let stats = Request::Stats.to_line();
    let evict = Request::Evict { pid: 7 }.to_line();
    client.write_all(stats.as_bytes()).unwrap();
    client.write_all(evict.as_bytes()).unwrap();
    desk.step();
    assert_eq!(line(&mut client), "{\"done\":\"Stats\"}\n");
    assert_eq!(line(&mut client), "{\"done\":\"Evict { pid: 7 }\"}\n");
    drop(client);
    desk.step();
    assert_eq!(desk.requests.clients.len(), 0);
}

#[test]
fn a_second_request_in_one_go_is_due_at_once() {
    let mut desk = Desk::new();
    let mut client = desk.connect();
    let stats = Request::Stats.to_line();
    client.write_all(stats.repeat(2).as_bytes()).unwrap();
    let mut answered = 0;
    let mut answer = |_| {
        answered += 1;
        Reply::Policy("clock".into())
    };
    desk.requests.step(&mut answer);
    assert!(desk.requests.due().unwrap() <= Instant::now());
    desk.requests.step(&mut answer);
    assert!(desk.requests.due().unwrap() > Instant::now());
    assert_eq!(answered, 2);
}

#[test]
fn a_request_may_come_in_pieces_and_be_the_last_word() {
    let mut desk = Desk::new();
    let mut client = desk.connect();
    let stats = Request::Stats.to_line();
    let (first, rest) = stats.split_at(9);
    client.write_all(first.as_bytes()).unwrap();
    desk.step();
    client.write_all(rest.as_bytes()).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    desk.step();
    assert_eq!(line(&mut client), "{\"done\":\"Stats\"}\n");
    assert_eq!(line(&mut client), "");
}

#[test]
fn nonsense_gets_one_line_and_too_much_of_it_is_the_end() {
    let mut desk = Desk::new();
    let mut client = desk.connect();
    client.write_all(b"\xff\x00 rubbish\n").unwrap();
    desk.step();
    assert!(line(&mut client).starts_with("{\"refused\":\"not a request: "));
    let endless = [b'x'; 2 * tidemark_results::control::REQUEST_BYTES_MAX];
    client.write_all(&endless).unwrap();
    desk.step();
    let told = "{\"refused\":\"a request has 4096 bytes at most\"}\n";
    assert_eq!(line(&mut client), told);
    assert_eq!(desk.requests.clients.len(), 0);
}

#[test]
fn a_client_that_takes_no_reply_holds_nobody_up() {
    let mut desk = Desk::new();
    let mut lazy = desk.connect();
    let mut client = desk.connect();
    let stats = Request::Stats.to_line();
    // More than a socket holds.
    let long = "x".repeat(16 << 20);
    lazy.write_all(stats.repeat(2).as_bytes()).unwrap();
    let mut answered = 0;
    for _ in 0..8 {
        desk.requests.step(&mut |_| {
            answered += 1;
            Reply::Done(long.clone())
        });
    }
    assert_eq!(answered, 1, "the second waits for the first reply to go");
    client.write_all(stats.as_bytes()).unwrap();
    desk.step();
    assert_eq!(line(&mut client), "{\"done\":\"Stats\"}\n");
    assert!(desk.requests.due().unwrap() <= Instant::now() + Duration::from_secs(10));
}

#[test]
fn there_are_so_many_clients_and_no_more() {
    let mut desk = Desk::new();
    let mut clients: Vec<UnixStream> = vec![];
    for _ in 0..=CLIENTS_MAX {
        clients.push(desk.connect());
        desk.step();
    }
    assert_eq!(desk.requests.clients.len(), CLIENTS_MAX);
    let told = line(clients.last_mut().unwrap());
    assert!(told.contains("there are 16 clients already"), "{told}");
    drop(clients);
    desk.step();
    assert_eq!(desk.requests.clients.len(), 0);
}

#[test]
fn a_dead_socket_gives_way_and_nothing_else_does() {
    let folder = PrivateFolder::new().unwrap();
    let path = folder.path().join("socket");
    leave_dead_socket(&path);
    let door = Door::open("--control", &path, Speech::Lines).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let told = Door::open("--control", &path, Speech::Lines)
        .unwrap_err()
        .to_string();
    assert!(told.contains("another process listens there"), "{told}");
    drop(door);
    assert!(!path.exists());
    let path = folder.put("precious", b"").unwrap();
    let told = Door::open("--control", &path, Speech::Lines)
        .unwrap_err()
        .to_string();
    assert!(told.contains("there is a file of that name"), "{told}");
    let missing = folder.path().join("missing/socket");
    let told = Door::open("--control", &missing, Speech::Lines)
        .unwrap_err()
        .to_string();
    assert!(told.contains("no such file or directory"), "{told}");
}

#[test]
fn metrics_are_a_page_and_there_is_no_other() {
    let mut desk = Desk::new();
    let path = desk.path.with_file_name("metrics");
    let door = Door::open_at_place("--metrics", &path, Speech::Http).unwrap();
    desk.requests.add(door).unwrap();
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"),
        ("GET /other HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.0\r\n\r\n", "404 Not Found"),
        ("\r\n\r\n", "404 Not Found"),
        (&"x".repeat(5000), "404 Not Found"),
    ] {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        for _ in 0..4 {
            desk.requests
                .step(&mut |_| Reply::Metrics("# EOF\n".into()));
        }
        let mut page = vec![];
        // What is left unread of too long a request resets the connection.
        let _ = client.read_to_end(&mut page);
        let page = String::from_utf8(page).unwrap();
        assert!(
            page.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{page}"
        );
        assert_eq!(page.ends_with("\r\n\r\n# EOF\n"), status == "200 OK");
    }
}

#[test]
fn a_port_is_for_this_machine_alone() {
    for place in ["0.0.0.0:9100", "[::]:9100", "10.0.0.1:9100", "127.0.0.1:0"] {
        let opened = Door::open_at_place("--metrics", Path::new(place), Speech::Http);
        let told = opened.unwrap_err().to_string();
        assert!(told.contains("not a port of this machine alone"), "{told}");
    }
}

#[test]
fn found_b9_a_port_is_a_port_and_no_name_of_a_file() {
    let told = |place: &str| read_address(place).map(|it| it.map(|it| it.to_string()));
    for place in ["9179", ":9179", "localhost:9179", "127.0.0.1:9179"] {
        assert_eq!(told(place), Ok(Some("127.0.0.1:9179".into())), "{place}");
    }
    assert_eq!(told("[::1]:9179"), Ok(Some("[::1]:9179".into())));
    for place in ["run.sock", "./9179", "/tmp/a:9179", "a:b", "run:"] {
        assert_eq!(told(place), Ok(None), "{place}");
    }
    for place in [
        "0",
        "70000",
        "localhost:0",
        "myhost:9179",
        "localhost:99999",
    ] {
        assert!(told(place).is_err(), "{place}");
    }
}
