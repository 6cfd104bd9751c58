//! A real server of Redis, in a folder of its own, that can be killed and started again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tidemark_testing::{servers, skip, waits};

/// The longest wait for it to answer, or to end.
const LIMIT: Duration = Duration::from_secs(30);

/// The server.
pub struct Server {
    child: Option<Child>,
    folder: PathBuf,
    /// Settings beyond those that all have.
    settings: Vec<String>,
    pub port: u16,
}

impl Server {
    /// Starts one whose writes outlive it, unless there is none.
    pub fn start() -> Option<Server> {
        Server::start_with(vec![])
    }

    /// The same with more settings.
    pub fn start_with(settings: Vec<String>) -> Option<Server> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = Path::new("/var/tmp").join(format!("tidemark-redis-{process}-{number}"));
        if Command::new("redis-server")
            .arg("--version")
            .output()
            .is_err()
        {
            skip("redis-server is not there");
            return None;
        }
        std::fs::create_dir(&folder).unwrap();
        let mut server = Server {
            child: None,
            folder,
            settings,
            port: servers::unused_port(),
        };
        server.revive();
        Some(server)
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts it again, with what was written before.
    pub fn revive(&mut self) {
        let mut command = servers::redis_command(self.port, &self.folder);
        command.args(&self.settings);
        let mut child = command.spawn().unwrap();
        waits::until("the server starts", LIMIT, || {
            assert_eq!(child.try_wait().unwrap(), None, "the server ends");
            self.try_ask::<String>(&["PING"]).is_ok()
        });
        self.child = Some(child);
    }

    /// Removes what it would know when it is started again.
    pub fn forget(&self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
        std::fs::create_dir(&self.folder).unwrap();
    }

    pub fn url(&self, name: &str) -> String {
        format!("redis://127.0.0.1:{}/0/{name}", self.port)
    }

    /// The answer to a command of numbers and words.
    pub fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).unwrap()
    }

    fn try_ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_connection()?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
