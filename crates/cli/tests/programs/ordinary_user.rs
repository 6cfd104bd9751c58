//! The command for a user who is not root: it works where the privilege is given, and says in one
//! line what is missing where it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{child, needs};

const LIMIT: Duration = Duration::from_secs(60);
/// The user and group `nobody`.
const NOBODY: &str = "65534";

#[test]
fn without_the_privilege_faults_are_served_in_user_mode_and_one_line_says_so() {
    let Some(place) = Place::new("refused") else {
        return;
    };
    let outcome = child::run(place.command(&[]), &place.folder, LIMIT);
    let outcome = outcome.expect_code(7, "it runs");
    assert_eq!(outcome.output_text(), "150000\n");
    let device = fs::metadata("/dev/userfaultfd").map_or(0, |data| data.permissions().mode());
    let sysctl = fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or_default();
    if device & 0o006 == 0o006 || sysctl.trim() == "1" {
        return;
    }
    let errors = outcome.errors_text();
    assert_eq!(errors.lines().count(), 1, "one line:\n{errors}");
    assert!(errors.contains("in user mode alone"), "{errors}");
    let mut command = place.as_nobody();
    command.arg(place.folder.join("tidemark"));
    command.args(["run", "--memory", "16M", "--files", "--", "true"]);
    let outcome = child::run(command, &place.folder, LIMIT);
    let errors = outcome.expect_code(2, "it needs more").errors_text();
    assert_eq!(errors.lines().count(), 1, "one line:\n{errors}");
    assert!(errors.contains("`--files` needs all faults"), "{errors}");
}

#[test]
fn with_the_privilege_an_ordinary_user_runs_programs() {
    let Some(place) = Place::new("permitted") else {
        return;
    };
    let given = ["--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"];
    let outcome = child::run(place.command(&given), &place.folder, LIMIT);
    assert_eq!(
        outcome
            .expect_code(7, "the privilege is given")
            .output_text(),
        "150000\n"
    );
}

#[test]
fn found_f10_a_program_of_another_user_says_once_that_it_is_not_managed() {
    let Some(place) = Place::new("switched") else {
        return;
    };
    let mut command = Command::new(place.folder.join("tidemark"));
    command
        .args(["run", "--memory", "16M", "--swap-size", "16M", "--swap"])
        .arg(&place.folder)
        .args(["--", "setpriv", "--reuid", NOBODY, "--regid", NOBODY])
        .args(["--clear-groups", "sh", "-c", "sh -c 'sh -c true; exit 4'"])
        .current_dir(&place.folder);
    let outcome = child::run(command, &place.folder, LIMIT);
    let errors = outcome.expect_code(4, "it runs all the same").errors_text();
    let told = errors.lines().filter(|line| line.contains("unmanaged"));
    assert_eq!(told.count(), 1, "{errors}");
    assert!(errors.contains("ran unmanaged: "), "{errors}");
}

#[test]
fn found_f10_a_child_of_a_process_that_has_given_up_its_rights_has_its_memory() {
    let Some(place) = Place::new("dropped") else {
        return;
    };
    let mut command = Command::new(place.folder.join("tidemark"));
    command
        .args(["run", "--memory", "16M", "--swap-size", "64M", "--swap"])
        .arg(&place.folder)
        .args(["--", "python3", "-c", DROPPER])
        .current_dir(&place.folder);
    let outcome = child::run(command, &place.folder, LIMIT);
    outcome.expect_code(6, "the child of a server that is nobody now");
}

/// Fills more than its budget, closes a part of it, becomes nobody, and forks a child that looks at
/// all of it; ends with 6 if that found what it should.
const DROPPER: &str = "import ctypes, mmap, os
memory = mmap.mmap(-1, 24 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(memory), 4096): memory[at] = 1 + at % 251
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def protect(at, bytes, rights):
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + at), bytes, rights) == 0
protect(1 << 20, 2 << 20, mmap.PROT_READ)
protect(4 << 20, 1 << 20, 0)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
child = os.fork()
if child == 0:
    protect(4 << 20, 1 << 20, mmap.PROT_READ)
    os._exit(6 * all(memory[at] == 1 + at % 251 for at in range(0, len(memory), 4096)))
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
";

/// A folder that everybody may enter, with the command in it: the build's folder may be private.
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
}

impl Place {
    /// Copies the command; `None`, having said so, if this test can't run here.
    pub fn new(name: &str) -> Option<Self> {
        if !needs::are_met(&["setpriv", "awk"]) {
            return None;
        }
        if !needs::is_root() {
            needs::lacks("only root may become another user");
            return None;
        }
        let folder = Path::new("/var/tmp").join(format!("tidemark-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("everybody may make folders there");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let built = needs::tidemark().parent().expect("a file has a folder");
        for name in ["tidemark", "libtidemark_shim.so"] {
            fs::copy(built.join(name), folder.join(name)).expect("both have been built");
        }
        Some(Self { folder })
    }

    /// A command that runs what is added to it as an ordinary user.
    pub fn as_nobody(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command
    }

    /// A program that needs more than its budget, prints a sum and ends with 7.
    fn command(&self, privileges: &[&str]) -> Command {
        let program = "BEGIN { for (i = 0; i < 150000; i++) t[i] = i \" text\"; \
            for (k in t) n += (t[k] == k \" text\"); print n; exit 7 }";
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .args(privileges);
        command.arg(self.folder.join("tidemark"));
        command
            .args(["run", "--memory", "16M", "--swap"])
            .arg(&self.folder);
        command
            .args(["--", "awk", program])
            .current_dir(&self.folder);
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What can't be removed stays in a folder for what is temporary.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
