//! Objects of S3: their addresses, settings by the environment, signatures, and the words of a
//! refusal.
//!
//! The settings have the names that Amazon's own programs give them. One that is empty is as one
//! that is not set.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use url::Url;

/// The time for which a signature holds. Each request has its own.
const SIGNED_FOR: Duration = Duration::from_secs(600);
/// The region where none is set.
const REGION: &str = "us-east-1";
/// The most characters of a server's words that are repeated.
const WORDS_MAX: usize = 200;

/// An object, and who asks for it.
pub struct Object {
    bucket: Bucket,
    key: String,
    credentials: Option<Credentials>,
}

/// The object at an address `s3://BUCKET/KEY`, by the settings that `setting` has.
///
/// # Errors
/// The address names no bucket or no key, or a setting is wrong: which, and what is needed.
pub fn object(url: &Url, setting: impl Fn(&str) -> Option<String>) -> Result<Object, String> {
    let first = |names: &[&str]| {
        let mut values = names.iter().map(|name| (name.to_string(), setting(name)));
        values.find_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
    };
    let value = |name: &str| first(&[name]).map(|(_, value)| value);
    let key = key(url)?;
    let name = match (url.host_str(), url.username(), url.port()) {
        (Some(name), "", None) => name,
        _ => return Err("needs `s3://BUCKET/KEY`".into()),
    };
    let region = first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let region = region.map_or(REGION.into(), |(_, region)| region);
    let own = first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
    let (server, style) = match own {
        Some((setting, server)) => {
            let parsed = server.parse();
            let wrong = |error| format!("`{setting}` is `{server}`: {error}");
            (parsed.map_err(wrong)?, own_style(value(STYLE))?)
        }
        None => {
            let server = format!("https://s3.{region}.amazonaws.com");
            let parsed: Result<Url, _> = server.parse();
            let wrong = |error| format!("`AWS_REGION` is `{region}`: {error}");
            (parsed.map_err(wrong)?, style_at_amazon(name))
        }
    };
    let credentials = match (value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => Some(match value("AWS_SESSION_TOKEN") {
            Some(token) => Credentials::new_with_token(id, secret, token),
            None => Credentials::new(id, secret),
        }),
        (None, None) => None,
        (Some(_), None) => return Err("`AWS_ACCESS_KEY_ID` needs `AWS_SECRET_ACCESS_KEY`".into()),
        (None, Some(_)) => return Err("`AWS_SECRET_ACCESS_KEY` needs `AWS_ACCESS_KEY_ID`".into()),
    };
    let bucket = Bucket::new(server, style, name.to_string(), region);
    Ok(Object {
        bucket: bucket.map_err(|error| format!("bucket `{name}`: {error}"))?,
        key,
        credentials,
    })
}

impl Object {
    /// The address of the next request.
    pub fn signed(&self) -> Url {
        let action = self.bucket.get_object(self.credentials.as_ref(), &self.key);
        action.sign(SIGNED_FOR)
    }

    /// The words of a server that answers with `status` and `body`, and what may be missing; empty
    /// if there are none.
    pub fn told(&self, status: u16, body: &str) -> String {
        let parts = [element(body, "Code"), element(body, "Message")];
        let mut told: Vec<String> = parts.into_iter().flatten().collect();
        if matches!(status, 401 | 403) && self.credentials.is_none() {
            told.push("`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are not set".into());
        }
        told.join(", ")
    }
}

/// The setting that has a server other than Amazon's asked by hosts named after buckets.
const STYLE: &str = "AWS_VIRTUAL_HOSTED_STYLE_REQUEST";

/// The style of addresses at a server other than Amazon's. Few know hosts named after buckets.
fn own_style(value: Option<String>) -> Result<UrlStyle, String> {
    match value.as_deref() {
        None | Some("false") => Ok(UrlStyle::Path),
        Some("true") => Ok(UrlStyle::VirtualHost),
        Some(value) => Err(format!("`{STYLE}` is `{value}`; needs `true` or `false`")),
    }
}

/// The style of addresses at Amazon: with the bucket in the host, but for names that are no part of
/// a host, or that no certificate there matches.
fn style_at_amazon(bucket: &str) -> UrlStyle {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match bucket.bytes().all(is_plain) {
        true => UrlStyle::VirtualHost,
        false => UrlStyle::Path,
    }
}

/// The key in an address, in which some characters are written as `%20` and the like.
fn key(url: &Url) -> Result<String, String> {
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a key is written with `%3F` for `?` and `%23` for `#`".into());
    }
    let path = url.path().strip_prefix('/').unwrap_or_default();
    let key = percent_decode_str(path).decode_utf8();
    let key = key.map_err(|_| "its key is not UTF-8".to_string())?;
    match key.split('/').any(|part| part == "." || part == "..") {
        true => Err("its key has a part `.` or `..`, which no address can have".into()),
        false if key.is_empty() => Err("needs `s3://BUCKET/KEY`".into()),
        false => Ok(key.into_owned()),
    }
}

/// The text of the first element of this name, as one line.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&apos;", "'");
    let text = text.replace("&amp;", "&");
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(WORDS_MAX).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "s")];

    fn of(url: &str, settings: &[(&str, &str)]) -> Result<Object, String> {
        let find = |name: &str| settings.iter().find(|(set, _)| *set == name);
        object(&url.parse().unwrap(), |name| {
            find(name).map(|(_, value)| (*value).into())
        })
    }

    /// The address of a request without its signature.
    fn asked(url: &str, settings: &[(&str, &str)]) -> String {
        let mut url = of(url, settings).unwrap().signed();
        url.set_query(None);
        url.into()
    }

    fn refused(url: &str, settings: &[(&str, &str)]) -> String {
        of(url, settings).err().unwrap()
    }

    #[test]
    fn a_key_is_what_its_address_stands_for() {
        let key = |url: &str| of(url, &[]).map(|object| object.key);
        assert_eq!(key("s3://b/a b/c").unwrap(), "a b/c");
        assert_eq!(key("s3://b/a%20b%2Bc+d%25%3F%23é").unwrap(), "a b+c+d%?#é");
        assert_eq!(key("s3://b//slash").unwrap(), "/slash");
        assert!(key("s3://b/a?b").unwrap_err().contains("`%3F`"));
        assert!(key("s3://b/a%FF").unwrap_err().contains("not UTF-8"));
        assert!(key("s3://b/a%2F..%2Fc").unwrap_err().contains("`..`"));
        for none in [
            "s3://b",
            "s3://b/",
            "s3:///a",
            "s3://me:secret@b/a",
            "s3://b:9/a",
        ] {
            assert_eq!(key(none).unwrap_err(), "needs `s3://BUCKET/KEY`", "{none}");
        }
    }

    #[test]
    fn a_bucket_is_in_the_host_at_amazon_and_in_the_path_elsewhere() {
        let region = ("AWS_DEFAULT_REGION", "eu-west-1");
        assert_eq!(
            asked("s3://some/a%20b", &[region]),
            "https://some.s3.eu-west-1.amazonaws.com/a%20b"
        );
        for odd in ["a.b", "a_b", "Old"] {
            let path = format!("https://s3.us-east-1.amazonaws.com/{odd}/k");
            assert_eq!(asked(&format!("s3://{odd}/k"), &[]), path);
        }
        let own = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
        let first = ("AWS_ENDPOINT_URL_S3", "http://store:81/s3");
        let hosts = |value| ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", value);
        assert_eq!(asked("s3://b/k", &[own]), "http://127.0.0.1:9000/b/k");
        assert_eq!(asked("s3://b/k", &[own, first]), "http://store:81/s3/b/k");
        assert_eq!(
            asked("s3://b/k", &[first, hosts("true")]),
            "http://b.store:81/s3/k"
        );
        let told = refused("s3://b/k", &[own, hosts("yes")]);
        assert!(told.contains("needs `true` or `false`"), "{told}");
        // An address in numbers has no hosts below it.
        let told = refused("s3://b/k", &[own, hosts("true")]);
        assert!(told.contains("bucket `b`"), "{told}");
        let told = refused("s3://b/k", &[("AWS_ENDPOINT_URL", "nothing")]);
        assert!(told.contains("`AWS_ENDPOINT_URL` is `nothing`"), "{told}");
    }

    #[test]
    fn a_request_is_signed_for_who_is_named_in_full() {
        let signed = |settings: &[_]| of("s3://b/k", settings).unwrap().signed().to_string();
        assert!(!signed(&[]).contains("X-Amz-Signature"));
        assert!(!signed(&[KEYS[0], KEYS[1]]).contains("X-Amz-Security-Token"));
        let token = ("AWS_SESSION_TOKEN", "t");
        let text = signed(&[KEYS[0], KEYS[1], token]);
        assert!(text.contains("X-Amz-Signature") && text.contains("X-Amz-Security-Token=t"));
        for half in KEYS {
            let told = refused("s3://b/k", &[half]);
            assert!(told.contains("needs `AWS_"), "{told}");
        }
    }

    #[test]
    fn a_refusal_has_the_words_of_the_server_in_one_line() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>no \
                    &lt;such&gt;\n &amp;quot; key</Message><Resource>/b/k</Resource></Error>";
        let object = of("s3://b/k", &KEYS).unwrap();
        assert_eq!(object.told(404, body), "NoSuchKey, no <such> &quot; key");
        assert_eq!(object.told(404, "<Code>x"), "");
        let long = format!("<Code>{}</Code>", "é".repeat(10_000));
        assert_eq!(object.told(500, &long).chars().count(), WORDS_MAX);
        let nobody = of("s3://b/k", &[]).unwrap();
        assert!(nobody.told(403, body).contains("are not set"));
        assert!(!nobody.told(404, body).contains("are not set"));
    }
}
