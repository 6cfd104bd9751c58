//! Objects of servers of HTTP, and of S3, by ranges.
//!
//! # Invariants
//! 1. All bytes are of one version of the object, where the server names versions (a strong
//!    `ETag`): one that has changed is an error. Where it does not, one of another size is.
//! 2. An answer that is not the range that was asked for is an error, also if it has as many bytes.

use std::env;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use tidemark_regions::{Pager, PagerError};
use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::{ANSWER_LIMIT, CONNECT_LIMIT, Error, shown};

/// The time for which a signature holds. Each request has its own.
const SIGNED_FOR: Duration = Duration::from_secs(600);
/// The number of connections that are kept while none is in use.
const IDLE_MAX: usize = 16;
const REGION: &str = "us-east-1";
/// The lists of authorities of Debian's kin and of Red Hat's.
const AUTHORITIES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

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
    Signed {
        bucket: Bucket,
        key: String,
        credentials: Option<Credentials>,
    },
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
    /// Opens what is there. An object of S3 is asked of the server `AWS_ENDPOINT_URL`, Amazon's if
    /// that is not set, in the region `AWS_REGION`, and signed with `AWS_ACCESS_KEY_ID` and
    /// `AWS_SECRET_ACCESS_KEY`, if they are set.
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
            return Err(refused(status));
        }
        let headers = answer.headers();
        let range = header(headers, "content-range").and_then(sent);
        let range = range.ok_or_else(|| PagerError::lasting("the server names no range"))?;
        let is_asked_for = range.first == offset && range.last == last;
        if !is_asked_for {
            let Sent { first, last, .. } = range;
            let text = format!("the server sends bytes {first} to {last} instead");
            return Err(PagerError::lasting(text));
        }
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
        let wrong = |why: String| Error::Address {
            url: shown(url),
            why,
        };
        let key = url.path().trim_start_matches('/');
        let (Some(bucket), false) = (url.host_str(), key.is_empty()) else {
            return Err(wrong("needs `s3://BUCKET/KEY`".into()));
        };
        let region = env::var("AWS_REGION").unwrap_or_else(|_| REGION.into());
        let own = env::var("AWS_ENDPOINT_URL").ok();
        let (server, style) = match own {
            Some(server) => (server, UrlStyle::Path),
            None => {
                let server = format!("https://s3.{region}.amazonaws.com");
                (server, UrlStyle::VirtualHost)
            }
        };
        let parsed = server.parse();
        let server: Url =
            parsed.map_err(|error| wrong(format!("`AWS_ENDPOINT_URL` is `{server}`: {error}")))?;
        let bucket = Bucket::new(server, style, bucket.to_string(), region);
        Ok(Place::Signed {
            bucket: bucket.map_err(|error| wrong(error.to_string()))?,
            key: key.into(),
            credentials: Credentials::from_env(),
        })
    }

    /// The address of the next request.
    fn url(&self) -> Url {
        match self {
            Place::Url(url) => url.clone(),
            Place::Signed {
                bucket,
                key,
                credentials,
            } => bucket
                .get_object(credentials.as_ref(), key)
                .sign(SIGNED_FOR),
        }
    }
}

/// The authorities that the machine trusts, or those of `SSL_CERT_FILE`.
fn secured(url: &Url) -> Result<TlsConfig, Error> {
    let chosen = env::var("SSL_CERT_FILE").ok();
    let files = chosen.iter().map(String::as_str).chain(AUTHORITIES);
    let found = files.take(chosen.as_ref().map_or(AUTHORITIES.len(), |_| 1));
    let found = found.into_iter().find_map(|file| std::fs::read(file).ok());
    let text = found.ok_or_else(|| Error::Address {
        url: shown(url),
        why: "no list of certificate authorities; install `ca-certificates`, or set \
              `SSL_CERT_FILE`"
            .into(),
    })?;
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

fn refused(status: StatusCode) -> PagerError {
    let text = match status {
        StatusCode::OK => "the server does not serve ranges".into(),
        StatusCode::RANGE_NOT_SATISFIABLE => "it has no such bytes, or none at all".into(),
        StatusCode::PRECONDITION_FAILED => "it has changed since it was opened".into(),
        status => format!("the server answers {status}"),
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
