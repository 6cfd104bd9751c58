//! One client of the control socket.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tidemark_results::Refusal;
use tidemark_results::control::{REQUEST_BYTES_MAX, Reply, Request};
use tidemark_results::metrics::CONTENT_TYPE;

use super::{Answer, Speech};

/// The time that a client may leave a reply untaken, or half a request unsaid.
const TURN_LIMIT: Duration = Duration::from_secs(10);
/// The time that a client may stay without asking.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A client that is connected.
#[derive(Debug)]
pub struct Client {
    stream: OwnedFd,
    speech: Speech,
    /// The part of what it has said that is not answered yet.
    input: Vec<u8>,
    /// The reply.
    output: Vec<u8>,
    /// The bytes of the reply that have gone.
    sent: usize,
    /// True if the connection ends once the reply has been sent.
    is_leaving: bool,
    /// The time at which its turn began: to ask, to end the request, or to take the reply.
    turn: Instant,
}

impl Client {
    /// A client at the other end of `stream`.
    pub fn new(stream: OwnedFd, speech: Speech) -> Option<Client> {
        rustix::io::ioctl_fionbio(&stream, true).ok()?;
        Some(Client {
            stream,
            speech,
            input: vec![],
            output: vec![],
            sent: 0,
            is_leaving: false,
            turn: Instant::now(),
        })
    }

    /// The file to wait for: until it takes the reply, or says something.
    pub fn source(&self) -> PollFd<'_> {
        let flags = match self.output.is_empty() {
            true => PollFlags::IN,
            false => PollFlags::OUT,
        };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// The time at which it has been silent for too long.
    pub fn due(&self) -> Instant {
        let is_mute = self.output.is_empty() && self.input.is_empty();
        self.turn
            + match is_mute {
                true => SILENCE_LIMIT,
                false => TURN_LIMIT,
            }
    }

    /// Returns true if it has said a request that is not looked at yet.
    pub fn is_ready(&self) -> bool {
        self.output.is_empty() && self.speech == Speech::Lines && self.input.contains(&b'\n')
    }

    /// Tells it `reply`, as far as it takes that at once, and nothing more.
    pub fn dismiss(&mut self, reply: &Reply) {
        self.begin(reply);
        self.send();
    }

    /// Moves along what can be moved without waiting. False if it is to be let go of.
    pub fn step(&mut self, answer: Answer<'_>) -> bool {
        if !self.send() || self.is_finished() {
            return false;
        }
        if self.output.is_empty() {
            let is_there = self.receive();
            if let Some(request) = self.take_request() {
                let reply = match request {
                    Ok(request) => answer(request),
                    Err(refusal) => Reply::Refused(refusal.to_string()),
                };
                self.begin(&reply);
            } else if self.input.len() >= REQUEST_BYTES_MAX {
                let told = format!("a request has {REQUEST_BYTES_MAX} bytes at most");
                self.begin(&Reply::Refused(told));
                self.is_leaving = true;
            } else if !is_there {
                return false;
            }
            if !self.send() || self.is_finished() {
                return false;
            }
        }
        Instant::now() < self.due()
    }

    fn begin(&mut self, reply: &Reply) {
        self.output = match self.speech {
            Speech::Lines => reply.to_line(),
            Speech::Http => {
                self.is_leaving = true;
                page(reply)
            }
        }
        .into_bytes();
        self.sent = 0;
        self.turn = Instant::now();
    }

    fn is_finished(&self) -> bool {
        self.is_leaving && self.output.is_empty()
    }

    /// Sends what it takes of the reply. False if it has gone.
    fn send(&mut self) -> bool {
        while self.sent < self.output.len() {
            let rest = &self.output[self.sent..];
            match rustix::net::send(&self.stream, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::AGAIN | Errno::INTR) => return true,
                Err(_) => return false,
            }
        }
        if !self.output.is_empty() {
            self.output.clear();
            self.turn = Instant::now();
        }
        true
    }

    /// Reads what it says, as far as a request may go. False if it says no more.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        let room = REQUEST_BYTES_MAX - self.input.len();
        if room == 0 {
            return true;
        }
        match rustix::net::recv(&self.stream, &mut bytes[..room], RecvFlags::empty()) {
            Ok((0, _)) => false,
            Ok((received, _)) => {
                if self.input.is_empty() {
                    self.turn = Instant::now();
                }
                self.input.extend_from_slice(&bytes[..received]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Takes the next request that it has said.
    fn take_request(&mut self) -> Option<Result<Request, Refusal>> {
        match self.speech {
            Speech::Lines => self.take_line().map(|line| Request::parse(&line)),
            Speech::Http => {
                let is_end = |four: &[u8]| four == b"\r\n\r\n";
                self.input.windows(4).position(is_end)?;
                Some(parse_page_request(&self.input))
            }
        }
    }

    /// Takes the next line that it has said, without its end.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<u8> = self.input.drain(..=end).collect();
        line.pop();
        Some(line)
    }
}

/// The request that the head of an HTTP request is: for the one page that there is.
fn parse_page_request(head: &[u8]) -> Result<Request, Refusal> {
    let head = String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some("/" | "/metrics")) => Ok(Request::Metrics),
        _ => Err(Refusal::new("there is `GET /metrics`, and nothing else")),
    }
}

/// A reply, as HTTP has it.
fn page(reply: &Reply) -> String {
    let (status, kind, text) = match reply {
        Reply::Metrics(text) => ("200 OK", CONTENT_TYPE, text.clone()),
        other => ("404 Not Found", "application/json", other.to_line()),
    };
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}
