//! A browser that is driven through a pair of pipes, by its DevTools protocol.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Programs that speak the protocol.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// A busy machine is slow to start a browser.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    child: Child,
    folder: PathBuf,
    commands: File,
    messages: Receiver<Value>,
    last_id: u64,
    session: String,
    /// Everything the page asked the network for.
    pub requests: Vec<String>,
    /// The complaints of the page: uncaught errors, errors in its log.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Starts a browser, if there is one.
    pub fn start(name: &str) -> Option<Browser> {
        let program = PROGRAMS.iter().find(|program| {
            let told = Command::new(program)
                .arg("--version")
                .stderr(Stdio::null())
                .output();
            told.is_ok_and(|told| told.status.success())
        })?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("browser-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = |name: &str| {
            let path = folder.join(name);
            assert!(
                Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
            // Open for both directions, no end waits for the other.
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap();
            (path, file)
        };
        let ((commands_path, commands), (messages_path, messages)) = (pipe("in"), pipe("out"));
        let child = spawn(program, &commands_path, &messages_path, &folder);
        let mut browser = Browser {
            child,
            folder,
            commands,
            messages: listen(messages),
            last_id: 0,
            session: String::new(),
            requests: vec![],
            complaints: vec![],
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap().into();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sets the size of the window in CSS pixels, and what the system prefers.
    pub fn show_as(&mut self, width: u32, height: u32, scheme: &str, is_phone: bool) {
        let metrics = json!({
            "width": width, "height": height, "mobile": is_phone,
            "deviceScaleFactor": if is_phone { 2 } else { 1 },
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
    }

    /// Opens a file, and waits until the page says that it is ready. How long that took.
    pub fn open(&mut self, path: &Path, fragment: &str) -> Duration {
        let begin = Instant::now();
        // Another fragment alone would not load the page anew.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        let url = format!("file://{}{fragment}", path.display());
        self.call("Page.navigate", json!({ "url": url }));
        let is_ready = "document.documentElement?.dataset.ready === 'yes'";
        while self.evaluate(is_ready) != true {
            assert!(
                begin.elapsed() < PATIENCE,
                "never ready: {:?}",
                self.complaints
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        self.settle();
        begin.elapsed()
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let wanted = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// The number of times that pages have been laid out since the browser began.
    pub fn layouts(&mut self) -> u64 {
        self.call("Performance.enable", json!({}));
        let answer = self.call("Performance.getMetrics", json!({}));
        let metrics = answer["metrics"].as_array().unwrap();
        let count = metrics
            .iter()
            .find(|metric| metric["name"] == "LayoutCount");
        count.unwrap()["value"].as_f64().unwrap() as u64
    }

    /// Waits until the page has drawn twice.
    pub fn settle(&mut self) {
        let frames = "new Promise((done) => requestAnimationFrame(() => \
                      requestAnimationFrame(() => done(1))))";
        self.evaluate(frames);
    }

    /// Moves, presses (`mousePressed`) or releases (`mouseReleased`) the mouse.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let is_moved = kind == "mouseMoved";
        let event = json!({
            "type": kind, "x": x, "y": y, "button": if is_moved { "none" } else { "left" },
            "buttons": if kind == "mouseReleased" { 0 } else { 1 }, "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Draws the mouse from one place to another with its button down.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from.0, from.1);
        self.mouse("mousePressed", from.0, from.1);
        for step in 1..=4 {
            let part = f64::from(step) / 4.0;
            let x = from.0 + (to.0 - from.0) * part;
            self.call(
                "Input.dispatchMouseEvent",
                json!({
                    "type": "mouseMoved", "x": x, "y": from.1 + (to.1 - from.1) * part,
                    "button": "left", "buttons": 1,
                }),
            );
        }
        self.mouse("mouseReleased", to.0, to.1);
        self.settle();
    }

    /// The left, top, width and height of an element in the window, scrolled to its middle.
    pub fn place(&mut self, selector: &str) -> [f64; 4] {
        let found = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector('{selector}'); \
             e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect(); \
             return [r.left, r.top, r.width, r.height]; }})()"
        ));
        self.settle();
        std::array::from_fn(|at| found[at].as_f64().unwrap())
    }

    /// Writes a picture of the whole page beside the other things that tests leave.
    pub fn screenshot(&mut self, name: &str) {
        use base64::Engine;
        let wanted = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", wanted);
        let text = picture["data"].as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(path, bytes).unwrap();
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("{method}: no answer"));
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.into());
            }
            "Runtime.exceptionThrown" => {
                self.complaints
                    .push(parameters["exceptionDetails"].to_string());
            }
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            "Runtime.consoleAPICalled" if parameters["type"] == "error" => {
                self.complaints.push(parameters["args"].to_string());
            }
            _ => {}
        }
    }
}

/// Starts `program` with its pipes as the files that the protocol says.
fn spawn(program: &str, commands: &Path, messages: &Path, folder: &Path) -> Child {
    Command::new("sh")
        .args([
            "-c",
            "in=$1; out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"",
            "sh",
        ])
        .args([commands, messages])
        .args([
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-sync",
        ])
        .args(["--use-angle=swiftshader", "--enable-unsafe-swiftshader"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Takes messages apart, on a thread of their own.
fn listen(messages: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(messages);
        let mut bytes = vec![];
        while reader
            .read_until(0, &mut bytes)
            .is_ok_and(|count| count > 0)
        {
            bytes.pop();
            let message = serde_json::from_slice(&bytes).unwrap_or_default();
            if sender.send(message).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    receiver
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "Browser.close" });
        let _ = self.commands.write_all(format!("{close}\0").as_bytes());
        let begin = Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if begin.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
