//! Stores beyond the local disk, as pagers of [`tidemark_regions`].
//!
//! - `redis://[USER:PASSWORD@]HOST[:PORT]/DATABASE/NAME`: values of a server of Redis's protocol,
//!   which are read and written. `rediss://…` is the same by TLS.
//! - `http://…`, `https://…`: an object of a server that serves ranges, which is read.
//! - `s3://BUCKET/KEY`: an object of Amazon's S3, or of what is compatible with it, which is read.
//!
//! [`open`] gives a pager for contents that are there, [`create`] for zeros, and [`swap`] a store
//! for the pages that leave an engine's memory:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidemark_regions::Engine;
//!
//! let store = tidemark_stores::swap("redis://127.0.0.1/0/swap", 1 << 30)?;
//! let engine = Engine::builder().memory(64 << 20).store(store).start()?;
//! let weights = tidemark_stores::open("https://example.org/weights.f32")?;
//! let region = engine.read_pager(weights)?;
//! println!("{}", region.as_slice_of::<f32>()[12_345_678]);
//! # Ok(())
//! # }
//! ```
//!
//! [`mounted`] makes a file of the kernel's of a pager, for programs that know files alone.
//!
//! # Time-outs
//! A connection is waited for 5 seconds ([`CONNECT_LIMIT`]), and each answer 10 seconds
//! ([`ANSWER_LIMIT`]). What fails then, or because a connection has ended, a server starts or is
//! busy, is an error that may pass: the engine makes the call again, by a new connection, for as
//! long as [its patience](tidemark_regions::Builder::patience) lasts.
//!
//! # Invariants
//! 1. Bytes that a server does not have are an error, and never zeros.
//! 2. A write that was not answered takes no effect after one that was made later.
//! 3. A call uses a connection alone, and gives it back only if all of its answers have come.
#![forbid(unsafe_code)]

mod choice;
mod http;
pub mod mounted;
mod redis;
mod s3;

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidemark_regions::{Pager, PagerError};
use url::Url;

pub use crate::choice::{Behind, Choice};
pub use crate::http::Http;
pub use crate::redis::Redis;

/// The time for which a connection is waited for.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The time for which an answer is waited for.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The lists of authorities of Debian's kin and of Red Hat's.
const AUTHORITIES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// The reason why a store can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// An address that names no store.
    Address {
        /// The address, without its password.
        url: String,
        /// The reason, and the remedy.
        why: String,
    },
    /// A store that does not answer, or refuses.
    Store {
        /// The address, likewise.
        url: String,
        /// The reason.
        error: PagerError,
    },
}

/// Opens the store at an address, whose contents are there.
///
/// # Errors
/// The address names none; the server can't be reached, refuses, or does not have it.
pub fn open(url: &str) -> Result<Arc<dyn Pager>, Error> {
    let parsed = parse(url)?;
    match parsed.scheme() {
        "redis" | "rediss" => Ok(Arc::new(Redis::open(&parsed)?)),
        "http" | "https" | "s3" => Ok(Arc::new(Http::open(&parsed)?)),
        _ => Err(unknown(&parsed)),
    }
}

/// Makes a store of `bytes` zeros at an address, in place of what is there.
///
/// # Errors
/// As for [`open`], and for a store that can't be written to.
pub fn create(url: &str, bytes: u64) -> Result<Arc<dyn Pager>, Error> {
    let parsed = parse(url)?;
    writable(&parsed)?;
    Ok(Arc::new(Redis::create(&parsed, bytes)?))
}

/// Makes a store of `bytes` for the pages that leave an engine's memory. It takes room as it is
/// written, and is removed when it is dropped. One that a killed process leaves behind stays until
/// its keys are removed.
///
/// # Errors
/// As for [`create`], and if there is something at the address.
pub fn swap(url: &str, bytes: u64) -> Result<Arc<dyn Pager>, Error> {
    let parsed = parse(url)?;
    writable(&parsed)?;
    Ok(Arc::new(Redis::swap(&parsed, bytes)?))
}

/// The address of a store for pages as it is shown: without its password.
///
/// # Errors
/// It names no store, or one that can't be written to.
pub fn shown_swap(url: &str) -> Result<String, Error> {
    let parsed = parse(url)?;
    writable(&parsed)?;
    Redis::check(&parsed)?;
    Ok(shown(&parsed))
}

impl Choice {
    /// Its name, without a password.
    ///
    /// # Errors
    /// Its address names no store, or one that can't be written to.
    pub fn shown(&self) -> Result<String, Error> {
        let behind = match &self.behind {
            Behind::Nothing => return Ok("compressed".into()),
            Behind::File => "file".into(),
            Behind::Server(address) => shown_swap(address)?,
        };
        Ok(match self.is_compressed {
            true => format!("compressed+{behind}"),
            false => behind,
        })
    }
}

fn parse(url: &str) -> Result<Url, Error> {
    Url::parse(url).map_err(|error| Error::Address {
        url: url.into(),
        why: format!("{error}; needs one like `redis://HOST/0/NAME` or `https://HOST/PATH`"),
    })
}

fn writable(url: &Url) -> Result<(), Error> {
    match url.scheme() {
        "redis" | "rediss" => Ok(()),
        "http" | "https" | "s3" => Err(Error::Address {
            url: shown(url),
            why: "objects are only read; needs one like `redis://HOST/0/NAME`".into(),
        }),
        _ => Err(unknown(url)),
    }
}

fn unknown(url: &Url) -> Error {
    Error::Address {
        url: shown(url),
        why: "its scheme is unknown; needs `redis`, `rediss`, `http`, `https` or `s3`".into(),
    }
}

/// The certificates of the authorities that the machine trusts, or of `SSL_CERT_FILE`, as PEM.
fn authorities(url: &Url) -> Result<Vec<u8>, Error> {
    let chosen = env::var("SSL_CERT_FILE").ok();
    let files = chosen.iter().map(String::as_str).chain(AUTHORITIES);
    let mut files = files.take(chosen.as_ref().map_or(AUTHORITIES.len(), |_| 1));
    let found = files.find_map(|file| std::fs::read(file).ok());
    found.ok_or_else(|| Error::Address {
        url: shown(url),
        why: "no list of certificate authorities; install `ca-certificates`, or set \
              `SSL_CERT_FILE`"
            .into(),
    })
}

/// The address without its password and without what follows `?`, which may be a signature.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // It fails for addresses without a host, which have no password.
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Address { url, why } => write!(out, "`{url}` is no store: {why}"),
            Error::Store { url, error } => {
                let why = error.to_string();
                write!(out, "`{url}`: {why}{}", remedy(url, &why))
            }
        }
    }
}

/// The remedy where TLS fails, to stand behind the reason; empty for other reasons.
fn remedy(url: &str, why: &str) -> &'static str {
    let has_tls = url.starts_with("rediss:") || url.starts_with("https:");
    if has_tls && why.contains("certificate") {
        "; if you are its authority, set `SSL_CERT_FILE` to the authority's certificate"
    } else if url.starts_with("rediss:") && why.contains("Resource temporarily unavailable") {
        "; if the port is one without TLS, use `redis://`"
    } else {
        ""
    }
}

impl std::error::Error for Error {}
