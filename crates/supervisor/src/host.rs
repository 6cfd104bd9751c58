//! The abilities of this host: the checks that `run` makes before it starts anything, and that
//! `doctor` shows.

use std::fmt;
use std::path::{Path, PathBuf};

use tidemark_live::stamp;
use tidemark_live::sys::uffd::{Faults, Features, OpenError, Uffd};
use tidemark_live::sys::{Errno, personality};

use tidemark_results::{Refusal, refuse};

use crate::container;
use crate::program::plain;

/// The remedy for a kernel that is too old.
const KERNEL: &str = "boot Linux 6.8 or later";
/// The number of files that a run has open at a time: 26, and a few for what is asked for.
const FILES_MIN: u64 = 32;
/// The library that brings the allocator of `--malloc pool`; it lies beside the other.
const POOL: &str = "libtidemark_pool.so";

/// The features that thread mode needs of the userfaultfd.
pub const NEEDED: Features = Features::MOVE
    .and(Features::THREAD_ID)
    .and(Features::CHANGES);

/// Other ways to permit userfaultfd than a command that lasts until the next start of the machine.
pub const PERMISSIONS: [&str; 2] = [
    "for good, to this user: `echo 'KERNEL==\"userfaultfd\", OWNER=\"'$USER'\", MODE=\"0600\"' | \
     sudo tee /etc/udev/rules.d/70-userfaultfd.rules && sudo udevadm trigger /dev/userfaultfd`",
    "for good, to all: `echo vm.unprivileged_userfaultfd=1 | \
     sudo tee /etc/sysctl.d/70-userfaultfd.conf && sudo sysctl --system`",
];

/// The number of processors this process may run on.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Something that is not as it should be, and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: Remedy,
}

/// The remedy for a lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A command, as it is typed.
    Command(&'static str),
    /// A step in words.
    Step(&'static str),
}

impl Remedy {
    /// The remedy where a line of its own is for it.
    pub fn text(&self) -> &'static str {
        match self {
            Remedy::Command(text) | Remedy::Step(text) => text,
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy {
            Remedy::Command(command) => write!(out, "{}; `{command}`", self.what),
            Remedy::Step(step) => write!(out, "{}; {step}", self.what),
        }
    }
}

/// Finds the reason why programs can't be managed here, if there is one.
pub fn find_lack(is_in_thread: bool) -> Option<Lack> {
    let needed = if is_in_thread {
        NEEDED.and(Features::SIGBUS)
    } else {
        NEEDED
    };
    match Uffd::offered() {
        Ok(offered) => describe_missing(needed.without(offered)),
        Err(error) => Some(describe_error(error)),
    }
}

/// The way in which a run can serve faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// All faults are served.
    Full,
    /// Faults in user mode alone are served, for want of the rights that the lack names: system
    /// calls are held up until their memory is there.
    UserMode(Lack),
}

/// The beginning of the line by which a run says that it serves faults in user mode alone.
pub const IN_USER_MODE: &str = "faults are served in user mode alone";

/// If it is set, runs serve faults in user mode alone, whatever is permitted: for tests.
const FORCED: &str = "TIDEMARK_USER_MODE";

/// Finds the way in which a run that needs nothing special can serve faults here.
///
/// # Errors
/// There is none, for want of this.
pub fn find_way() -> Result<Way, Lack> {
    let lack = match find_lack(false) {
        None if std::env::var_os(FORCED).is_none() => return Ok(Way::Full),
        None => Lack {
            what: format!("`{FORCED}` is set"),
            remedy: Remedy::Step("unset it"),
        },
        Some(lack) => lack,
    };
    match has_user_mode() {
        true => Ok(Way::UserMode(lack)),
        false => Err(lack),
    }
}

/// Returns true if faults in user mode can be served here.
pub fn has_user_mode() -> bool {
    let offered = Uffd::offered_for(Faults::UserMode);
    offered.is_ok_and(|offered| NEEDED.without(offered) == Features::NONE)
}

/// Refuses what a run can't do without, and would fail for want of in the midst of something else.
pub fn check_needs() -> Result<(), Refusal> {
    if !Path::new("/proc/self/exe").exists() {
        refuse!("`/proc` is not mounted, and runs need it: `mount -t proc proc /proc`");
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < FILES_MIN => refuse!(
            "{limit} files may be open at a time (`ulimit -n`), and runs need {FILES_MIN} at least"
        ),
        _ => Ok(()),
    }
}

/// Finds the preload library, and refuses one that can't be loaded.
pub fn find_shim() -> Result<PathBuf, Refusal> {
    let found = tidemark_parts::PRELOAD_LIBRARY.find()?;
    // The linker divides the list of libraries at these, and knows no quoting.
    if found.to_string_lossy().contains([' ', ':', '\t', '\n']) {
        refuse!(
            "`{}`: the linker can't load from a path with spaces or colons",
            found.display()
        );
    }
    check_build(&found)?;
    Ok(found)
}

/// Refuses a preload library that was not built with this command: it may know neither what is
/// asked for nor how to say so.
fn check_build(library: &Path) -> Result<(), Refusal> {
    match stamp::is_of_this_build(library) {
        Ok(true) => Ok(()),
        Ok(false) => refuse!(
            "`{}`: the preload library is of another build than this command; build both with \
             `make`",
            library.display()
        ),
        Err(error) => refuse!("`{}`: {}", library.display(), plain(&error)),
    }
}

/// Finds the library of the allocator whose memory is managed, beside the preload library.
pub fn find_pool(shim: &Path) -> Result<PathBuf, Refusal> {
    let place = shim.with_file_name(POOL);
    match place.canonicalize() {
        Ok(found) => Ok(found),
        Err(_) => {
            let place = place.display();
            refuse!(
                "the allocator's library is not at `{place}`, beside the preload library; \
                 `make build` builds both"
            )
        }
    }
}

/// Checks that io_uring is permitted.
pub fn try_io_uring() -> Result<(), Errno> {
    tidemark_live::sys::ring::Ring::new(2).map(drop)
}

/// Describes the effect of a userfaultfd that lacks `missing`.
pub fn describe_missing(missing: Features) -> Option<Lack> {
    if missing == Features::NONE {
        return None;
    }
    let what = format!(
        "the kernel's userfaultfd lacks {}",
        feature_names(missing).join(", ")
    );
    Some(Lack {
        what,
        remedy: Remedy::Step(KERNEL),
    })
}

/// The names of features, as in the kernel's headers.
pub fn feature_names(features: Features) -> Vec<&'static str> {
    let known = [
        (Features::MOVE, "UFFDIO_MOVE"),
        (Features::THREAD_ID, "thread ids"),
        (Features::CHANGES, "remap, remove and unmap events"),
        (Features::SIGBUS, "SIGBUS delivery"),
    ];
    known
        .into_iter()
        .filter(|(feature, _)| feature.without(features) != *feature)
        .map(|(_, name)| name)
        .collect()
}

/// Describes the effect of having no userfaultfd.
pub fn describe_error(error: OpenError) -> Lack {
    let caller = Caller::find();
    match error {
        OpenError::NotPermitted { device, .. } if container::is_around() => Lack {
            what: "userfaultfd is not permitted in this container".into(),
            remedy: Remedy::Step(container::remedy(caller, device)),
        },
        error => describe(error, caller),
    }
}

/// The code that asks for a userfaultfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The root of the whole machine, or of a container that shares its users.
    Root,
    /// The root of a user namespace, which is an ordinary user outside of it.
    NamespaceRoot,
    /// An ordinary user.
    User,
}

impl Caller {
    /// The caller that this process is.
    pub fn find() -> Caller {
        if !rustix::process::geteuid().is_root() {
            return Caller::User;
        }
        match std::fs::read_to_string("/proc/self/uid_map") {
            Ok(map) if !maps_everybody(&map) => Caller::NamespaceRoot,
            Ok(_) | Err(_) => Caller::Root,
        }
    }
}

/// Returns true if a map of user numbers is that of the machine: every number stands for itself.
fn maps_everybody(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

fn describe(error: OpenError, caller: Caller) -> Lack {
    use Remedy::{Command, Step};
    let lack = |what: &str, remedy: Remedy| Lack {
        what: what.into(),
        remedy,
    };
    match (error, caller) {
        (OpenError::NotSupported { .. }, _) => lack(
            "there is no userfaultfd: the kernel was built without it, or a sandbox hides it",
            Step("use a kernel with CONFIG_USERFAULTFD=y, outside gVisor and the like"),
        ),
        (OpenError::NotPermitted { .. }, Caller::Root) => lack(
            "userfaultfd is forbidden even to root: a seccomp filter or a missing capability",
            Step("start the container or the sandbox with `--device /dev/userfaultfd`"),
        ),
        (OpenError::NotPermitted { .. }, Caller::NamespaceRoot) => lack(
            "userfaultfd is not permitted: the root of a user namespace has no more right to it \
             than the user who made the namespace",
            Step(
                "give that user the right, outside of the namespace: \
                 `sudo setfacl -m u:$USER:rw /dev/userfaultfd`, \
                 or to all `sudo sysctl -w vm.unprivileged_userfaultfd=1`",
            ),
        ),
        (
            OpenError::NotPermitted {
                device: Errno::NOENT,
                ..
            },
            Caller::User,
        ) => lack(
            "userfaultfd is not permitted to this user, and there is no /dev/userfaultfd",
            Command("sudo sysctl -w vm.unprivileged_userfaultfd=1"),
        ),
        (OpenError::NotPermitted { .. }, Caller::User) => lack(
            "userfaultfd is not permitted to this user",
            Command("sudo setfacl -m u:$USER:rw /dev/userfaultfd"),
        ),
        (OpenError::Lacks { missing }, _) => {
            let nothing = || lack("nothing is missing", Step("try again"));
            describe_missing(missing).unwrap_or_else(nothing)
        }
        (OpenError::Refused { error }, _) => Lack {
            what: format!("the userfaultfd handshake failed: {error}"),
            remedy: Step(KERNEL),
        },
    }
}

/// Turns the randomisation of addresses off for the programs that are started from here on. Where
/// that is forbidden, programs that hash addresses behave differently each time.
///
/// # Errors
/// It is forbidden: a line that says so.
pub fn keep_addresses() -> Result<(), String> {
    personality::keep_addresses()
        .map_err(|error| format!("addresses stay random, and what hashes them differs: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_permitted(device: Errno) -> OpenError {
        OpenError::NotPermitted {
            call: Errno::PERM,
            device,
        }
    }

    #[test]
    fn a_user_without_privilege_is_told_the_command() {
        let remedy = |device| describe(not_permitted(device), Caller::User).remedy;
        assert_eq!(
            remedy(Errno::ACCESS),
            Remedy::Command("sudo setfacl -m u:$USER:rw /dev/userfaultfd")
        );
        assert!(
            remedy(Errno::NOENT)
                .text()
                .contains("vm.unprivileged_userfaultfd=1")
        );
        let told = describe(not_permitted(Errno::PERM), Caller::Root).to_string();
        assert!(told.contains("; start the container or the sandbox with `--device"));
    }

    #[test]
    fn found_f10_the_root_of_a_user_namespace_is_told_so() {
        assert!(maps_everybody("         0          0 4294967295\n"));
        assert!(!maps_everybody("         0       1000          1\n"));
        let lack = describe(not_permitted(Errno::ACCESS), Caller::NamespaceRoot);
        assert!(lack.what.contains("the root of a user namespace"), "{lack}");
        assert!(!lack.to_string().contains("seccomp"), "{lack}");
    }

    #[test]
    fn missing_features_are_named() {
        assert_eq!(describe_missing(Features::NONE), None);
        let lack = describe_missing(Features::MOVE.and(Features::SIGBUS)).unwrap();
        assert_eq!(
            lack.what,
            "the kernel's userfaultfd lacks UFFDIO_MOVE, SIGBUS delivery"
        );
    }
}
