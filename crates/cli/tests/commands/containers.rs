//! The profile of system calls for containers, and what `doctor` says in one: beside the guide.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::needs;
use crate::support::{Folder, TIDEMARK, idle_library, stderr, text};

const PROFILE: &str = include_str!("../../../../docs/seccomp.json");
const GUIDE: &str = include_str!("../../../../docs/guide/containers.md");
/// The calls that the profile permits beyond those of docker's.
const OURS: [&str; 7] = [
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kcmp",
    "pidfd_getfd",
    "process_madvise",
    "userfaultfd",
];

/// The names in a rule of the profile.
fn names(rule: &Value) -> BTreeSet<&str> {
    let names = rule["names"].as_array().expect("a rule names its calls");
    names.iter().map(|name| name.as_str().unwrap()).collect()
}

/// The calls that the profile permits to all, whatever their arguments.
fn permitted(profile: &Value) -> BTreeSet<&str> {
    let rules = profile["syscalls"].as_array().unwrap().iter();
    let to_all = |rule: &&Value| {
        let conditions = ["args", "includes", "excludes"];
        rule["action"] == "SCMP_ACT_ALLOW" && conditions.iter().all(|name| rule[name].is_null())
    };
    rules.filter(to_all).flat_map(names).collect()
}

#[test]
fn the_profile_permits_what_the_guide_says_and_nothing_that_ends_the_confinement() {
    let profile: Value = serde_json::from_str(PROFILE).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    assert_eq!(
        profile["defaultErrnoRet"], 38,
        "ENOSYS, on which programs fall back"
    );
    let rules = profile["syscalls"].as_array().unwrap();
    let ours = rules.iter().find(|rule| rule["comment"] == "for Tidemark");
    assert_eq!(names(ours.unwrap()), BTreeSet::from(OURS));

    let permitted = permitted(&profile);
    let needed = [
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_open",
        "seccomp",
    ];
    for call in OURS.iter().chain(&needed) {
        assert!(permitted.contains(call), "{call}");
        assert!(
            GUIDE.contains(&format!("`{call}`")),
            "{call} is not in the guide"
        );
    }
    for call in [
        "bpf",
        "mount",
        "unshare",
        "setns",
        "init_module",
        "kexec_load",
        "keyctl",
        "add_key",
        "open_by_handle_at",
        "perf_event_open",
        "pivot_root",
        "reboot",
        "swapon",
        "clone3",
    ] {
        assert!(!permitted.contains(call), "{call}");
    }
    // No call is permitted by one rule and refused by another.
    let refused = rules
        .iter()
        .filter(|rule| rule["action"] != "SCMP_ACT_ALLOW");
    let refused: BTreeSet<&str> = refused.flat_map(names).collect();
    assert_eq!(refused, BTreeSet::from(["clone3"]));
}

#[test]
fn doctor_prints_the_profile() {
    assert_eq!(text(&["doctor", "--seccomp"]), PROFILE);
}

/// Has the kernel answer the calls of [`OURS`] with EPERM, and executes the arguments.
const FILTER: &str = r"
import ctypes, os, platform, struct, sys
first = {'x86_64': [323, 312], 'aarch64': [282, 272]}[platform.machine()]
calls = first + [425, 426, 427, 438, 440]
steps = [(0x20, 0, 0, 0)]
steps += [(0x15, len(calls) - place, 0, call) for place, call in enumerate(calls)]
steps += [(6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x00050001)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [('steps', ctypes.c_ushort), ('code', ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
assert ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

/// Gives a container's devices to the arguments: `$1` is empty, or the mode of `userfaultfd`.
const DEVICES: &str = r#"
mount -t tmpfs devices "$0"
for device in null:3 zero:5 random:8 urandom:9; do
    mknod -m 666 "$0/${device%:*}" c 1 "${device#*:}"
done
[ -z "$1" ] || mknod -m "$1" "$0/userfaultfd" c 10 "$2"
mount --bind "$0" /dev
shift 2
exec "$@"
"#;

/// The minor number of `/dev/userfaultfd` here.
fn minor() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/misc").ok()?;
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut line| {
        let number = line.next()?.parse().ok()?;
        (line.next() == Some("userfaultfd")).then_some(number)
    })
}

/// The output of `doctor` in a container as docker and podman make it, as `user`, with a device of
/// this mode, without what only aligns it.
fn told(folder: &Path, user: Option<&str>, mode: &str, minor: u32) -> String {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-euc", DEVICES]);
    command.arg(folder.join("devices"));
    command.args([mode, &minor.to_string(), "python3"]);
    command.arg(folder.join("filter.py"));
    if let Some(user) = user {
        command.args([
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
        ]);
    }
    command.arg(folder.join("tidemark")).arg("doctor");
    command
        .env("container", "test")
        .env("TIDEMARK_SHIM", idle_library());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("userfaultfd"), "{}", stderr(&output));
    plain(&text)
}

/// A text whose words have one space between them.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn doctor_says_in_a_container_what_the_guide_says() {
    if !needs::are_met(&["python3", "unshare", "setpriv"]) {
        return;
    }
    let (true, Some(minor)) = (needs::is_root(), minor()) else {
        needs::lacks("needs root, and /dev/userfaultfd");
        return;
    };
    // A folder that another user may look into, unlike perhaps that of the build.
    let path = std::env::temp_dir().join(format!("tidemark-container-{}", std::process::id()));
    std::fs::create_dir_all(path.join("devices")).unwrap();
    let folder = Folder(path);
    std::fs::copy(TIDEMARK, folder.path("tidemark")).unwrap();
    folder.program("filter.py", FILTER.as_bytes());
    let guide = plain(GUIDE);
    let expect = |user, mode, begins: &[&str]| {
        let told = told(&folder.0, user, mode, minor);
        for begin in begins {
            let begin = plain(begin);
            let place = told.find(&begin);
            let place = place.unwrap_or_else(|| panic!("no `{begin}` in\n{told}"));
            // As far as the next check.
            let rest = &told[place..];
            let ends = ["ok ", "- ", "limited ", "MISSING ", "`tidemark run`"];
            let ends = ends.map(|end| rest[begin.len()..].find(&format!(" {end}")));
            let end = ends.into_iter().flatten().min().unwrap();
            let said = &rest[..begin.len() + end];
            assert!(guide.contains(said), "the guide has no `{said}`");
        }
    };
    const NOBODY: Option<&str> = Some("65534");
    const DENIED: &str = "MISSING userfaultfd ";
    expect(
        None,
        "",
        &[
            DENIED,
            "limited arrays",
            "limited io_uring",
            "limited new programs",
        ],
    );
    expect(None, "600", &["ok userfaultfd", "ok arrays"]);
    expect(NOBODY, "", &[DENIED]);
    expect(NOBODY, "600", &[DENIED]);
    expect(NOBODY, "666", &["ok userfaultfd", "ok arrays"]);
}
