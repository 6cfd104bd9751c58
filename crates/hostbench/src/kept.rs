//! The last measurements of `tidemark doctor --calibrate`, for other commands: a file among those
//! that can be made again.

use std::fs;
use std::io;
use std::path::PathBuf;

use tidemark_results::host::{HostRecord, Latency};

/// Keeps what was measured, and answers where.
pub fn keep(record: &HostRecord) -> io::Result<PathBuf> {
    let path = path().ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, record.to_json())?;
    fs::rename(&beside, &path)?;
    Ok(path)
}

/// The measurements that were kept; nothing if there is none that can be read.
pub fn find() -> Option<Vec<Latency>> {
    let text = fs::read_to_string(path()?).ok()?;
    let record: HostRecord = serde_json::from_str(&text).ok()?;
    Some(record.latencies).filter(|latencies| !latencies.is_empty())
}

fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(folder.join("tidemark/calibration.json"))
}
