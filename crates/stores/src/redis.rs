//! Values of a server of Redis's protocol.
//!
//! The key `NAME` has the number of bytes, as text; `NAME:0`, `NAME:1`, … have 64 KiB each, the
//! last one the rest. A call reads (`GETRANGE`) or writes (`SETRANGE`) parts of some values, in one
//! pipeline: one round trip.
//!
//! # Invariants
//! 1. A value that is shorter than it was made is an error: the server has lost it.
//! 2. The connection of a write that was not answered is ended at the server before another write
//!    begins: what it has sent can't take effect later.
//!
//! # Locks
//! `doomed`, then `idle`. `doomed` is held while the server ends connections, a round trip each;
//! `idle` to take a connection or to put one back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Client, Commands, Connection, Pipeline, RedisError, RetryMethod, TlsCertificates};
use tidemark_regions::{Pager, PagerError};
use url::Url;

use crate::{ANSWER_LIMIT, CONNECT_LIMIT, Error, authorities, shown};

/// The size of the values.
pub const CHUNK_BYTES: u64 = 64 << 10;
/// The number of commands that are sent at one time where there are many.
const COMMANDS_MAX: usize = 256;
/// The number of connections that are kept while none is in use.
const IDLE_MAX: usize = 16;

/// A store on such a server.
pub struct Redis {
    client: Client,
    /// The name that all keys begin with.
    name: String,
    shown: String,
    bytes: u64,
    is_temporary: bool,
    idle: Mutex<Vec<Link>>,
    doomed: Mutex<Vec<Identity>>,
}

/// A connection.
struct Link {
    connection: Connection,
    /// Its name at the server, if it tells.
    identity: Option<Identity>,
}

/// A connection's name: the start of the server, and its number since then.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    start: String,
    number: u64,
}

/// The use that a call makes of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

/// A part of a value.
struct Piece {
    key: String,
    offset: u64,
    bytes: usize,
}

impl Redis {
    /// Opens what is there.
    ///
    /// # Errors
    /// The address has no database or name; the server can't be reached, or has nothing there.
    pub fn open(url: &Url) -> Result<Redis, Error> {
        let mut store = Redis::at(url)?;
        let key = store.name.clone();
        let read = store.with_link(Purpose::Read, |link| {
            let size: Option<String> = link.get(&key)?;
            Ok(size)
        });
        let bytes = read.and_then(|size| {
            let size = size.ok_or_else(|| PagerError::lasting(format!("there is no key `{key}`")));
            let size = size?;
            let wrong = || PagerError::lasting(format!("`{key}` is `{size}`, and no size"));
            size.parse().map_err(|_| wrong())
        });
        store.bytes = bytes.map_err(|error| refused(url, error))?;
        Ok(store)
    }

    /// Makes `bytes` zeros, in place of what is there.
    ///
    /// # Errors
    /// Likewise, and if the server refuses to write.
    pub fn create(url: &Url, bytes: u64) -> Result<Redis, Error> {
        let mut store = Redis::at(url)?;
        store.bytes = bytes;
        let made = store.remove().and_then(|()| store.fill());
        made.map_err(|error| refused(url, error))?;
        Ok(store)
    }

    /// Makes room for `bytes` that are removed with it.
    ///
    /// # Errors
    /// Likewise, and if there is something.
    pub fn swap(url: &Url, bytes: u64) -> Result<Redis, Error> {
        let mut store = Redis::at(url)?;
        let key = store.name.clone();
        let made = store.with_link(Purpose::Write, |link| {
            let is_new: bool = link.set_nx(&key, bytes.to_string())?;
            Ok(is_new)
        });
        match made {
            Ok(true) => {}
            Ok(false) => {
                let text = format!("the key `{key}` exists; choose another name, or remove it");
                return Err(refused(url, PagerError::lasting(text)));
            }
            Err(error) => return Err(refused(url, error)),
        }
        store.bytes = bytes;
        store.is_temporary = true;
        Ok(store)
    }

    /// Looks at the address alone.
    ///
    /// # Errors
    /// It has no database or name.
    pub(crate) fn check(url: &Url) -> Result<(), Error> {
        Redis::at(url).map(drop)
    }

    fn at(url: &Url) -> Result<Redis, Error> {
        let wrong = |why: &str| Error::Address {
            url: shown(url),
            why: format!("{why}; needs `redis://HOST/DATABASE/NAME`, such as `redis://HOST/0/a`"),
        };
        let path = url.path().trim_start_matches('/');
        let (database, name) = path
            .split_once('/')
            .ok_or_else(|| wrong("it has no name"))?;
        if name.is_empty() || database.parse::<u32>().is_err() {
            return Err(wrong("it has no database or no name"));
        }
        let mut server = url.clone();
        server.set_path(&format!("/{database}"));
        let client = match url.scheme() {
            "rediss" => {
                let certificates = TlsCertificates {
                    client_tls: None,
                    root_cert: Some(authorities(url)?),
                };
                Client::build_with_tls(server, certificates)
            }
            _ => Client::open(server),
        };
        Ok(Redis {
            client: client.map_err(|error| wrong(&error.to_string()))?,
            name: name.into(),
            shown: shown(url),
            bytes: 0,
            is_temporary: false,
            idle: Mutex::default(),
            doomed: Mutex::default(),
        })
    }

    fn fill(&self) -> Result<(), PagerError> {
        let chunks: Vec<Piece> = self.pieces(0, self.bytes as usize).collect();
        for some in chunks.chunks(COMMANDS_MAX) {
            self.with_link(Purpose::Write, |link| {
                let mut pipeline = Pipeline::with_capacity(some.len());
                for piece in some {
                    // The server fills with zeros what is before.
                    pipeline.setrange(&piece.key, piece.bytes as isize - 1, &[0u8][..]);
                }
                pipeline.ignore().query::<()>(link)
            })?;
        }
        let (key, bytes) = (&self.name, self.bytes.to_string());
        self.with_link(Purpose::Write, |link| link.set(key, &bytes))
    }

    /// Removes what is there.
    fn remove(&self) -> Result<(), PagerError> {
        let size = self.with_link(Purpose::Read, |link| {
            let size: Option<String> = link.get(&self.name)?;
            Ok(size)
        })?;
        let bytes = size.and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
        let chunks = (0..bytes.div_ceil(CHUNK_BYTES)).map(|number| self.key(number));
        let mut keys: Vec<String> = chunks.collect();
        // The size goes last: with it one knows what to remove.
        keys.push(self.name.clone());
        for some in keys.chunks(COMMANDS_MAX) {
            self.with_link(Purpose::Write, |link| link.unlink::<_, ()>(some))?;
        }
        Ok(())
    }

    fn key(&self, number: u64) -> String {
        format!("{}:{number}", self.name)
    }

    /// The parts of values that have a range.
    fn pieces(&self, offset: u64, bytes: usize) -> impl Iterator<Item = Piece> {
        let (mut next, end) = (offset, offset + bytes as u64);
        std::iter::from_fn(move || {
            if next == end {
                return None;
            }
            let (chunk, within) = (next / CHUNK_BYTES, next % CHUNK_BYTES);
            let bytes = (CHUNK_BYTES - within).min(end - next);
            next += bytes;
            Some(Piece {
                key: self.key(chunk),
                offset: within,
                bytes: bytes as usize,
            })
        })
    }

    /// Makes a call with a connection of its own.
    fn with_link<T>(
        &self,
        purpose: Purpose,
        call: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, PagerError> {
        let kept = lock(&self.idle).pop();
        let mut link = match kept {
            Some(link) => link,
            None => self.connect().map_err(|error| told(&error))?,
        };
        if purpose == Purpose::Write {
            self.end_doomed(&mut link).map_err(|error| told(&error))?;
        }
        let called = call(&mut link.connection);
        let is_whole = !called.as_ref().is_err_and(is_of_connection);
        if is_whole {
            let mut idle = lock(&self.idle);
            if idle.len() < IDLE_MAX {
                idle.push(link);
            }
        } else {
            // Others that have not been used for long are as likely to have ended.
            lock(&self.idle).clear();
            if let (Purpose::Write, Some(identity)) = (purpose, link.identity) {
                lock(&self.doomed).push(identity);
            }
        }
        called.map_err(|error| told(&error))
    }

    fn connect(&self) -> Result<Link, RedisError> {
        let mut connection = self.client.get_connection_with_timeout(CONNECT_LIMIT)?;
        connection.set_read_timeout(Some(ANSWER_LIMIT))?;
        connection.set_write_timeout(Some(ANSWER_LIMIT))?;
        let identity = identity(&mut connection)?;
        Ok(Link {
            connection,
            identity,
        })
    }

    /// Has the server end the connections of writes that were not answered.
    fn end_doomed(&self, link: &mut Link) -> Result<(), RedisError> {
        let mut doomed = lock(&self.doomed);
        while let Some(identity) = doomed.last() {
            // Those of a server that has started anew have ended with it.
            let is_there = link
                .identity
                .as_ref()
                .is_some_and(|it| it.start == identity.start);
            if is_there {
                let mut command = redis::cmd("CLIENT");
                command.arg("KILL").arg("ID").arg(identity.number);
                command.query::<()>(&mut link.connection)?;
            }
            doomed.pop();
        }
        Ok(())
    }
}

impl Pager for Redis {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let pieces: Vec<Piece> = self.pieces(offset, into.len()).collect();
        let values = self.with_link(Purpose::Read, |link| {
            let mut pipeline = Pipeline::with_capacity(pieces.len());
            for piece in &pieces {
                let last = piece.offset + piece.bytes as u64 - 1;
                pipeline.getrange(&piece.key, piece.offset as isize, last as isize);
            }
            pipeline.query::<Vec<Vec<u8>>>(link)
        })?;
        let mut rest = into;
        for (piece, value) in pieces.iter().zip(values) {
            let (part, behind) = rest.split_at_mut(piece.bytes);
            rest = behind;
            if value.len() != piece.bytes {
                return Err(PagerError::lasting(format!(
                    "the server has {} bytes of the {} at {} of the key `{}`: they are lost",
                    value.len(),
                    piece.bytes,
                    piece.offset,
                    piece.key
                )));
            }
            part.copy_from_slice(&value);
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(PagerError::lasting("the server has left answers out")),
        }
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        let pieces: Vec<Piece> = self.pieces(offset, from.len()).collect();
        self.with_link(Purpose::Write, |link| {
            let mut pipeline = Pipeline::with_capacity(pieces.len());
            let mut rest = from;
            for piece in &pieces {
                let (part, behind) = rest.split_at(piece.bytes);
                rest = behind;
                pipeline
                    .setrange(&piece.key, piece.offset as isize, part)
                    .ignore();
            }
            pipeline.query::<()>(link)
        })
    }

    fn name(&self) -> String {
        self.shown.clone()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if self.is_temporary
            && let Err(error) = self.remove()
        {
            eprintln!("tidemark: `{}` can't be removed: {error}", self.shown);
        }
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Redis({})", self.shown)
    }
}

/// The name of a connection at its server. Servers that don't tell have none.
fn identity(connection: &mut Connection) -> Result<Option<Identity>, RedisError> {
    let number: Result<u64, RedisError> = redis::cmd("CLIENT").arg("ID").query(connection);
    let about: Result<String, RedisError> = redis::cmd("INFO").arg("server").query(connection);
    match (number, about) {
        (Ok(number), Ok(about)) => {
            let start = about.lines().find_map(|line| line.strip_prefix("run_id:"));
            Ok(start.map(|start| Identity {
                start: start.trim().into(),
                number,
            }))
        }
        (Err(error), _) | (_, Err(error)) if is_of_connection(&error) => Err(error),
        (Err(_), _) | (_, Err(_)) => Ok(None),
    }
}

/// Returns true if a connection can't be used after an error: the answers may be still to come.
fn is_of_connection(error: &RedisError) -> bool {
    use redis::ErrorKind;
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::AuthenticationFailed => true,
        _ => error.is_unrecoverable_error(),
    }
}

fn told(error: &RedisError) -> PagerError {
    let may_pass = match error.retry_method() {
        // A full disk under the server, or its memory, may have room later; what is wrong with
        // the request has not.
        RetryMethod::NoRetry => {
            error.is_io_error() || matches!(error.code(), Some("OOM" | "MISCONF" | "BUSY"))
        }
        _ => error.kind() != redis::ErrorKind::AuthenticationFailed,
    };
    match may_pass {
        true => PagerError::temporary(error),
        false => PagerError::lasting(error),
    }
}

fn refused(url: &Url, error: PagerError) -> Error {
    Error::Store {
        url: shown(url),
        error,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
