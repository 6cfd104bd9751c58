//! Objects of servers of HTTP, and of S3, by ranges.
//!
//! # Invariants
//! 1. All bytes are of one version of the object, where the server names versions (a strong
//!    `ETag`): one that has changed is an error. Where it does not, one of another size is.
//! 2. An answer that is not the range that was asked for is an error, also if it has as many bytes.

use std::env;
use std::io::Read;
use std::sync::Arc;

use tidemark_regions::{Pager, PagerError};
use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::s3::{self, Object};
use crate::{ANSWER_LIMIT, CONNECT_LIMIT, Error, authorities, shown};

/// The number of connections that are kept while none is in use.
const IDLE_MAX: usize = 16;
/// The bytes of a refusal that are read for its words.
const WORDS_MAX: u64 = 16 << 10;

/// An object.
pub struct Http {
    agent: Agent,
    place: Place,
    shown: String,
    bytes: u64,
    /// The name of its version.
    version: Option<String>,
}

enum Place {
    Url(Url),
    S3(Object),
}

/// A part of an object that a server has sent the head of.
struct Answer {
    body: ureq::Body,
    range: Sent,
    version: Option<String>,
}

/// The range that a server says it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    first: u64,
    last: u64,
    bytes: u64,
}

impl Http {
    /// Opens what is there. An object of S3 is asked of the server `AWS_ENDPOINT_URL_S3` or
    /// `AWS_ENDPOINT_URL`, Amazon's if neither is set, in the region `AWS_REGION` or
    /// `AWS_DEFAULT_REGION`, and signed with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, if
    /// they are set.
    ///
    /// # Errors
    /// The address names no bucket or key; the server can't be reached, or does not have it; it
    /// does not serve ranges.
    pub fn open(url: &Url) -> Result<Http, Error> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_send_request(Some(ANSWER_LIMIT))
            .timeout_recv_response(Some(ANSWER_LIMIT))
            .timeout_per_read(Some(ANSWER_LIMIT))
            .max_idle_connections(IDLE_MAX)
            .max_idle_connections_per_host(IDLE_MAX);
        let place = Place::of(url)?;
        let config = match place.url().scheme() {
            "https" => config.tls_config(secured(url)?),
            _ => config,
        };
        let mut store = Http {
            agent: config.build().new_agent(),
            place,
            shown: shown(url),
            bytes: 0,
            version: None,
        };
        // Of this answer only the head counts: there are servers that send more than one byte then.
        let answer = store.ask(0, 1).map_err(|error| Error::Store {
            url: shown(url),
            error,
        })?;
        store.bytes = answer.range.bytes;
        store.version = answer.version;
        Ok(store)
    }

    /// Asks for `bytes` from `offset` on.
    fn ask(&self, offset: u64, bytes: u64) -> Result<Answer, PagerError> {
        let last = offset + bytes - 1;
        let mut request = self.agent.get(self.place.url().as_str());
        request = request.header("Range", format!("bytes={offset}-{last}"));
        // A range of what was encoded would be one of other bytes.
        request = request.header("Accept-Encoding", "identity");
        if let Some(version) = &self.version {
            request = request.header("If-Match", version);
        }
        let answer = request.call().map_err(|error| told(&error))?;
        let status = answer.status();
        if status != StatusCode::PARTIAL_CONTENT {
            let words = match self.place {
                Place::Url(_) => String::new(),
                Place::S3(ref object) => object.told(status.as_u16(), &text(answer.into_body())),
            };
            return Err(refused(status, &words));
        }
        let headers = answer.headers();
        let range = header(headers, "content-range").and_then(sent);
        let range = range.ok_or_else(|| PagerError::lasting("the server names no range"))?;
        let version = header(headers, "etag").filter(|version| !version.starts_with("W/"));
        Ok(Answer {
            version: version.map(str::to_string),
            range,
            body: answer.into_body(),
        })
    }
}

impl Pager for Http {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let mut answer = self.ask(offset, into.len() as u64)?;
        if answer.range.bytes != self.bytes || answer.version != self.version {
            return Err(PagerError::lasting("it has changed since it was opened"));
        }
        let Sent { first, last, .. } = answer.range;
        if first != offset || last != offset + into.len() as u64 - 1 {
            let text = format!("the server sends bytes {first} to {last} instead");
            return Err(PagerError::lasting(text));
        }
        let mut body = answer.body.as_reader();
        body.read_exact(into).map_err(PagerError::temporary)?;
        // The connection is of use again once its end is seen.
        match body.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(PagerError::lasting("the server sends more than the range")),
            Err(error) => Err(PagerError::temporary(error)),
        }
    }

    fn name(&self) -> String {
        self.shown.clone()
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Http({})", self.shown)
    }
}

impl Place {
    fn of(url: &Url) -> Result<Place, Error> {
        if url.scheme() != "s3" {
            return Ok(Place::Url(url.clone()));
        }
        let object = s3::object(url, |name| env::var(name).ok());
        object.map(Place::S3).map_err(|why| Error::Address {
            url: shown(url),
            why,
        })
    }

    /// The address of the next request.
    fn url(&self) -> Url {
        match self {
            Place::Url(url) => url.clone(),
            Place::S3(object) => object.signed(),
        }
    }
}

/// The settings by which the machine's authorities vouch for a server.
fn secured(url: &Url) -> Result<TlsConfig, Error> {
    let text = authorities(url)?;
    let authorities = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        Ok(_) | Err(_) => None,
    });
    let authorities: Vec<_> = authorities.collect();
    let arithmetic = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&authorities))
        .unversioned_rustls_crypto_provider(arithmetic)
        .build())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The range in `bytes FIRST-LAST/ALL`.
fn sent(text: &str) -> Option<Sent> {
    let (range, bytes) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some(Sent {
        first: first.trim().parse().ok()?,
        last: last.trim().parse().ok()?,
        bytes: bytes.trim().parse().ok()?,
    })
}

/// The begin of a refusal's body; nothing if it does not come.
fn text(body: ureq::Body) -> String {
    let mut bytes = Vec::new();
    let read = body.into_reader().take(WORDS_MAX).read_to_end(&mut bytes);
    read.map_or(String::new(), |_| {
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The error of an answer that has no range; `words` are the server's own.
fn refused(status: StatusCode, words: &str) -> PagerError {
    let text = match status {
        StatusCode::OK => "the server does not serve ranges".into(),
        StatusCode::RANGE_NOT_SATISFIABLE => "it has no such bytes, or none at all".into(),
        StatusCode::PRECONDITION_FAILED => "it has changed since it was opened".into(),
        status if words.is_empty() => format!("the server answers {status}"),
        status => format!("the server answers {status}: {words}"),
    };
    let may_pass = status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        );
    match may_pass {
        true => PagerError::temporary(text),
        false => PagerError::lasting(text),
    }
}

fn told(error: &ureq::Error) -> PagerError {
    use ureq::Error as Why;
    match error {
        Why::Io(_) | Why::Timeout(_) | Why::ConnectionFailed | Why::HostNotFound => {
            PagerError::temporary(error)
        }
        // What a server that ends in the midst of an answer has sent.
        Why::Protocol(_) => PagerError::temporary(error),
        _ => PagerError::lasting(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_servers_write_it() {
        let whole = Sent {
            first: 5,
            last: 9,
            bytes: 100,
        };
        assert_eq!(sent("bytes 5-9/100"), Some(whole));
        for wrong in ["bytes 5-9/*", "5-9/100", "bytes */100", "bytes 5/100", ""] {
            assert_eq!(sent(wrong), None, "{wrong}");
        }
    }
}
