//! An object by HTTPS, and values of Redis by TLS, of servers whose certificate is made for these.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidemark_stores::{create, open};
use tidemark_testing::servers::unused_port;
use tidemark_testing::skip;

use crate::server::Server;

/// The object.
const CONTENTS: &[u8] = b"contents that are read by a range";

/// A folder with the certificates of an authority and of a server, and the server's key.
struct Made(PathBuf);

impl Made {
    fn new() -> Option<Made> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = format!("tidemark-tls-{process}-{number}");
        let made = Made(Path::new("/var/tmp").join(folder));
        std::fs::create_dir(&made.0).unwrap();
        let extensions = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        std::fs::write(made.0.join("extensions"), extensions).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for line in [
            format!(
                "req -x509 {key} -subj /CN=authority -addext basicConstraints=critical,CA:TRUE \
                 -keyout authority.key -out authority.pem"
            ),
            format!("req {key} -subj /CN=server -keyout server.key -out server.csr"),
            "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
             -extfile extensions -out server.pem"
                .into(),
        ] {
            let mut command = Command::new("openssl");
            let command = command.args(line.split_whitespace()).current_dir(&made.0);
            let Ok(output) = command.output() else {
                skip("openssl is not there");
                return None;
            };
            assert!(output.status.success(), "{output:?}");
        }
        Some(made)
    }

    fn server(&self) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from_pem_file(self.0.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.0.join("server.key")).unwrap();
        let arithmetic = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(arithmetic);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate], key).unwrap())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Answers one request of each connection, until a client refuses the certificate or goes.
fn serve(client: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).unwrap();
    let mut stream = StreamOwned::new(connection, client);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.extend(byte);
    }
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let (_, range) = text.split_once("range: bytes=").unwrap();
    let (range, _) = range.split_once('\r').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    let body = &CONTENTS[first..=last];
    let head = format!(
        "HTTP/1.1 206 Partial\r\nConnection: close\r\nContent-Length: {}\r\nContent-Range: bytes \
         {first}-{last}/{}\r\n\r\n",
        body.len(),
        CONTENTS.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The output of a program of a test below.
fn run(program: &str, url: &str, authorities: Option<PathBuf>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", program, "--nocapture"]);
    command.env("TIDEMARK_TEST_URL", url);
    match authorities {
        Some(file) => command.env("SSL_CERT_FILE", file),
        None => command.env_remove("SSL_CERT_FILE"),
    };
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The program of the test below: reads an object by HTTPS.
#[test]
#[ignore = "a program of another test"]
fn reads_by_https() {
    let url = std::env::var("TIDEMARK_TEST_URL").unwrap();
    let store = match open(&url) {
        Ok(store) => store,
        Err(error) => return println!("not opened: {error}"),
    };
    let mut bytes = [0; 8];
    store.read(9, &mut bytes).unwrap();
    println!("read: {}", String::from_utf8_lossy(&bytes));
}

#[test]
fn an_object_is_read_by_https_from_a_server_that_an_authority_vouches_for() {
    let Some(made) = Made::new() else { return };
    let config = made.server();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // A client that refuses the certificate goes.
            let _ = serve(client.unwrap(), Arc::clone(&config));
        }
    });
    let url = format!("https://127.0.0.1:{port}/object");
    let run = |authorities| run("tls::reads_by_https", &url, authorities);
    let text = run(Some(made.0.join("authority.pem")));
    assert!(text.contains("read: that are"), "{text}");
    let text = run(Some(made.0.join("nothing")));
    assert!(
        text.contains("no list of certificate authorities"),
        "{text}"
    );
    let text = run(None);
    assert!(
        text.contains("not opened") && !text.contains("read: "),
        "{text}"
    );
}

/// The program of the test below: writes values of Redis by TLS, and reads them.
#[test]
#[ignore = "a program of another test"]
fn writes_by_tls() {
    let url = std::env::var("TIDEMARK_TEST_URL").unwrap();
    let store = match create(&url, 200_000) {
        Ok(store) => store,
        Err(error) => return println!("not made: {error}"),
    };
    let written: Vec<u8> = (0..100_000u32).map(|number| (number % 251) as u8).collect();
    store.write(60_000, &written).unwrap();
    let again = open(&url).unwrap();
    let mut read = vec![1; 200_000];
    again.read(0, &mut read).unwrap();
    let others = [&read[..60_000], &read[160_000..]].concat();
    assert!(read[60_000..160_000] == written && others.iter().all(|byte| *byte == 0));
    println!("read: all");
}

#[test]
fn values_of_redis_go_by_tls_to_a_server_that_an_authority_vouches_for() {
    let Some(made) = Made::new() else { return };
    let file = |name: &str| made.0.join(name).display().to_string();
    let port = unused_port().to_string();
    let settings = [
        ["--tls-port", &port],
        ["--tls-cert-file", &file("server.pem")],
        ["--tls-key-file", &file("server.key")],
        ["--tls-ca-cert-file", &file("authority.pem")],
        ["--tls-auth-clients", "no"],
    ];
    let settings = settings.concat().into_iter().map(str::to_owned);
    let Some(server) = Server::start_with(settings.collect()) else {
        return;
    };
    let run = |url: &str, authorities| run("tls::writes_by_tls", url, authorities);
    let url = format!("rediss://127.0.0.1:{port}/0/tls");
    let text = run(&url, Some(made.0.join("authority.pem")));
    assert!(text.contains("read: all"), "{text}");
    assert_eq!(server.ask::<u64>(&["STRLEN", "tls:2"]), 65_536);
    let text = run(&url, None);
    assert!(
        text.contains("not made") && text.contains("set `SSL_CERT_FILE`"),
        "{text}"
    );
    // A server that speaks TLS is not spoken to without, nor the other way round.
    for (wrong, remedy) in [
        (format!("redis://127.0.0.1:{port}/0/tls"), ""),
        (
            format!("rediss://127.0.0.1:{}/0/tls", server.port),
            "use `redis://`",
        ),
    ] {
        let text = run(&wrong, Some(made.0.join("authority.pem")));
        assert!(text.contains("not made") && text.contains(remedy), "{text}");
    }
}
