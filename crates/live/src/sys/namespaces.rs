//! Namespaces of a process's own, in which an ordinary user may mount.

use rustix::fs::{Mode, OFlags};
use rustix::thread::UnshareFlags;

use super::Errno;

/// Has this process, which must have one thread, be root in a user namespace of its own, which has
/// its user and its group alone, and in a mount namespace of that. Outside it has no more rights.
///
/// # Errors
/// The kernel permits none, or there are more threads.
pub fn enter() -> Result<(), Errno> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: only to part with the table of open files can have descriptors mean something else
    // to one thread than to another; that table is not among these.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    let (user, group) = (user.as_raw(), group.as_raw());
    // Without that an ordinary user may not map a group.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::io::write(file, text.as_bytes()).map(drop)
}
