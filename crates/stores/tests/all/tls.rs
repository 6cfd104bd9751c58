//! An object by HTTPS: of a server whose certificate is made for the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidemark_stores::open;
use tidemark_testing::skip;

/// The object.
const CONTENTS: &[u8] = b"contents that are read by a range";

/// A folder with the certificates of an authority and of a server, and the server's key.
struct Made(PathBuf);

impl Made {
    fn new() -> Option<Made> {
        let folder = format!("tidemark-tls-{}", std::process::id());
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
    let run = |authorities: Option<PathBuf>| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--ignored", "--exact", "tls::reads_by_https", "--nocapture"]);
        program.env(
            "TIDEMARK_TEST_URL",
            format!("https://127.0.0.1:{port}/object"),
        );
        match authorities {
            Some(file) => program.env("SSL_CERT_FILE", file),
            None => program.env_remove("SSL_CERT_FILE"),
        };
        let output = program.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
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
