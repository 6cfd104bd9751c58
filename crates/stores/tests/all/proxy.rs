//! A relay between a client and a server, that delays what it carries and cuts connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The relay: it ends when it is dropped.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    to: u16,
    delay: Duration,
    /// The bytes after which both connections end, counted anew for each; none, if zero.
    cut_after: AtomicU64,
    cuts: AtomicU64,
    streams: Mutex<Vec<TcpStream>>,
    is_ending: AtomicBool,
}

impl Proxy {
    /// Begins to relay to the port `to`, with so much `delay` on the way there and on the way back
    /// together.
    pub fn start(to: u16, delay: Duration) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            to,
            delay: delay / 2,
            cut_after: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            streams: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.is_ending.load(Relaxed) {
                    return;
                }
                of_thread.relay(client.unwrap());
            }
        });
        Proxy { port, shared }
    }

    /// Cuts each connection when about so many bytes have been carried.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.cut_after.store(bytes, Relaxed);
    }

    /// The number of connections that were cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Relaxed)
    }
}

impl Shared {
    fn relay(self: &Arc<Shared>, client: TcpStream) {
        // A server that is not there is a connection that ends.
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.to)) else {
            return;
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.streams
                .lock()
                .unwrap()
                .push(stream.try_clone().unwrap());
        }
        let carried = Arc::new(AtomicU64::new(0));
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let (sender, receiver) = channel();
            let (shared, carried) = (Arc::clone(self), Arc::clone(&carried));
            std::thread::spawn(move || shared.read(from, &sender, &carried));
            std::thread::spawn(move || write(to, &receiver));
        }
    }

    /// Reads what one side sends, with the time at which the other is to get it.
    fn read(&self, mut from: TcpStream, to: &Sender<(Instant, Vec<u8>)>, carried: &AtomicU64) {
        let mut bytes = vec![0; 256 << 10];
        loop {
            let count = match from.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let most = self.cut_after.load(Relaxed);
            let before = carried.fetch_add(count as u64, Relaxed);
            if most > 0 && before + count as u64 >= most {
                // A part of it still arrives.
                let part = bytes[..count / 2].to_vec();
                let _ = to.send((Instant::now() + self.delay, part));
                self.cuts.fetch_add(1, Relaxed);
                return;
            }
            let sent = to.send((Instant::now() + self.delay, bytes[..count].to_vec()));
            if sent.is_err() {
                return;
            }
        }
    }
}

fn write(mut to: TcpStream, from: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, bytes)) = from.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Relaxed);
        for stream in self.shared.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
