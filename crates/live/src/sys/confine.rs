//! Confinement: a thread, and all that it starts, that can change nothing outside some files.
//!
//! Two of the kernel's means together. Landlock forbids to write, make, cut or remove files, to
//! open connections by TCP, and to signal processes outside. A system call filter forbids what
//! Landlock does not know: sockets of every kind, owners, rights and times of files, shared memory
//! and queues of System V and POSIX, mounts, clocks, and a second way to make system calls
//! (io_uring). What is forbidden fails with `EACCES`. Neither can be undone by what is confined.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fd::{FromRawFd, OwnedFd};

/// The oldest version that confines signals and connections, too: Linux 6.12.
const VERSION_LEAST: i64 = 6;
/// Asks for the version of Landlock.
const ASK_VERSION: libc::c_uint = 1;
/// A rule about a file, or all below a folder.
const RULE_BENEATH: libc::c_int = 1;
/// Writing, removing, making, linking and cutting files: of the rights, bits 1, 4 to 12, 13, 14.
const FILES: u64 = 1 << 1 | 0x1FF << 4 | 1 << 13 | 1 << 14;
/// Of those, what one may do to a file that is no folder.
const ONE_FILE: u64 = 1 << 1 | 1 << 14;
/// Binding and connecting by TCP.
const CONNECTIONS: u64 = 0b11;
/// Abstract sockets and signals of others.
const OTHERS: u64 = 0b11;

/// The layout of the kernel's `landlock_ruleset_attr`.
#[repr(C)]
struct Ruleset {
    files: u64,
    connections: u64,
    others: u64,
}

/// The layout of the kernel's `landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    file: libc::c_int,
}

/// Confines the calling thread, and what it starts from now on, for good. `folders` and what is
/// below them may be changed, and `files` written.
///
/// # Errors
/// This kernel can't do that; nothing has changed for the thread then but that it gains no
/// privileges by executing programs.
pub fn confine(folders: &[BorrowedFd<'_>], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    // SAFETY: asks for a number, with no memory given.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Ruleset>(),
            0_usize,
            ASK_VERSION,
        )
    };
    if version < VERSION_LEAST {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let rules = make_rules()?;
    let rules = rules.as_fd();
    folders
        .iter()
        .try_for_each(|folder| allow(rules, *folder, FILES))?;
    files
        .iter()
        .try_for_each(|file| allow(rules, *file, ONE_FILE))?;
    // SAFETY: numbers alone; the thread gains no privileges from now on.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    filter_calls()?;
    // SAFETY: a descriptor that is open, and no flags.
    checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_restrict_self,
            rules.as_raw_fd(),
            0 as libc::c_uint,
        )
    })?;
    Ok(())
}

fn make_rules() -> io::Result<OwnedFd> {
    let ruleset = Ruleset {
        files: FILES,
        connections: CONNECTIONS,
        others: OTHERS,
    };
    // SAFETY: the structure lives through the call, and its size is passed.
    let made = checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const ruleset,
            size_of::<Ruleset>(),
            0 as libc::c_uint,
        )
    })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(made as libc::c_int) })
}

fn allow(rules: BorrowedFd<'_>, place: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
    let beneath = Beneath {
        allowed,
        file: place.as_raw_fd(),
    };
    // SAFETY: the structure lives through the call, and both descriptors are open.
    checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            RULE_BENEATH,
            &raw const beneath,
            0 as libc::c_uint,
        )
    })?;
    Ok(())
}

/// The places of the call's number and of its architecture in what a filter sees.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// Numbers from here on are of another table of calls.
const NUMBERS_MOST: u32 = 0x4000_0000;

/// Has the kernel refuse the forbidden calls of this thread.
fn filter_calls() -> io::Result<()> {
    let step = |code: u32, value: u32, (yes, no): (u8, u8)| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: value,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
    let mut steps = vec![
        step(load, ARCHITECTURE_AT, (0, 0)),
        step(equal, ARCHITECTURE, (1, 0)),
        step(answer, refusal, (0, 0)),
        step(load, NUMBER_AT, (0, 0)),
        step(
            libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K,
            NUMBERS_MOST,
            (0, 1),
        ),
        step(answer, refusal, (0, 0)),
    ];
    for number in FORBIDDEN {
        steps.push(step(equal, *number as u32, (0, 1)));
        steps.push(step(answer, refusal, (0, 0)));
    }
    steps.push(step(answer, libc::SECCOMP_RET_ALLOW, (0, 0)));
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the steps live through the call, which copies them.
    checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0 as libc::c_uint,
            &raw const program,
        )
    })?;
    Ok(())
}

/// The calls that could change something outside and that Landlock does not know.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_io_uring_setup,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

fn checked(answer: i64) -> io::Result<i64> {
    match answer {
        ..0 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::net::TcpStream;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn what_is_confined_changes_nothing_outside_its_folder() {
        let name = format!("confine-{}", std::process::id());
        let outside = std::env::temp_dir().join(name);
        let inside = outside.join("inside");
        fs::create_dir_all(&inside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let (outer, inner) = (outside.clone(), inside.clone());
        let confined = std::thread::spawn(move || {
            let folder = File::open(&inner).unwrap();
            let sink = File::open("/dev/null").unwrap();
            if confine(&[folder.as_fd()], &[sink.as_fd()]).is_err() {
                return false;
            }
            let kept = outer.join("kept");
            let run = |script: &str| {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(script).current_dir(&outer);
                command.stderr(std::process::Stdio::null());
                command.status().unwrap().success()
            };
            assert!(fs::write(&kept, "lost").is_err());
            assert!(fs::remove_file(&kept).is_err());
            assert!(fs::set_permissions(&kept, fs::Permissions::from_mode(0o000)).is_err());
            assert!(
                TcpStream::connect("127.0.0.1:1")
                    .is_err_and(|error| { error.kind() == io::ErrorKind::PermissionDenied })
            );
            assert!(!run("echo lost >> kept") && !run("mv kept inside/moved"));
            assert!(!run(&format!("kill -0 {}", std::process::id())));
            assert!(run("test $(cat kept) = kept"));
            assert!(run("echo made > inside/made && rm inside/made"));
            true
        });
        let was_confined = confined.join().expect("it is as it should be");
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        // This thread is free.
        fs::remove_dir_all(&outside).unwrap();
        if !was_confined {
            tidemark_testing::skip("this kernel has no Landlock of version 6");
        }
    }
}
