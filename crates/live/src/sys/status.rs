//! The memory of a process that files don't back: `/proc/PID/status`.

use rustix::fs::{Mode, OFlags};

use super::{Errno, program};

/// More than the file has.
const STATUS_BYTES: usize = 8192;

/// The resident memory of this process that is anonymous or shared, in bytes.
pub fn own_resident_bytes() -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/proc/self/status", flags, Mode::empty())?;
    let mut text = [0; STATUS_BYTES];
    let mut filled = 0;
    while filled < STATUS_BYTES {
        match rustix::io::read(&file, &mut text[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    resident_bytes(&text[..filled]).ok_or(Errno::NOENT)
}

/// The process that traces the program; zero if none does.
pub fn tracer() -> Option<u32> {
    let file = program::open("status", OFlags::RDONLY | OFlags::CLOEXEC).ok()?;
    let mut text = [0; STATUS_BYTES];
    let count = rustix::io::read(&file, &mut text).ok()?;
    let mut lines = text[..count].split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// The resident memory that is anonymous or shared, in bytes, of the process with this `status`.
/// `None` if it has none any more: it has ended.
pub fn resident_bytes(status: &[u8]) -> Option<u64> {
    let field = |name: &[u8]| {
        let mut lines = status.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(name))?;
        let text = std::str::from_utf8(line).ok()?;
        let kib: u64 = text.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib << 10)
    };
    Some(field(b"RssAnon:")? + field(b"RssShmem:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_and_shared_memory_add_up() {
        let status = b"Name:\tcat\nVmRSS:\t 900 kB\nRssAnon:\t 100 kB\nRssFile:\t 700 kB\n\
            RssShmem:\t 100 kB\nThreads:\t1\n";
        assert_eq!(resident_bytes(status), Some(200 << 10));
        assert_eq!(resident_bytes(b"Name:\tdead\nThreads:\t1\n"), None);
    }

    #[test]
    fn memory_counts_once_it_is_written_to() {
        const BYTES: usize = 32 << 20;
        let before = own_resident_bytes().unwrap();
        let written = vec![1u8; BYTES];
        let after = own_resident_bytes().unwrap();
        assert!(after >= before + (BYTES as u64 >> 1), "{before} {after}");
        drop(written);
    }
}
