//! The layout that the kernel gives to the programs that a process starts.

use std::io;

/// Has the programs that this process executes, and theirs, find their mappings at the same
/// addresses each time, rather than at ones that are drawn.
///
/// # Errors
/// If the kernel forbids it.
pub fn keep_addresses() -> io::Result<()> {
    /// Asks, and changes nothing.
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: a number in, a number out.
    let now = unsafe { libc::personality(ASK) };
    let wanted = (now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong;
    // SAFETY: as above.
    if now < 0 || unsafe { libc::personality(wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
