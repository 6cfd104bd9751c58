//! The supervisor, seen from outside: the program's status, signals and files are its own, and
//! every process that says hello is taken in.
//!
//! Engines are played by this test's own executable, so that nothing here depends on one.

use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemark_live::control::{self, Hello};
use tidemark_live::shared::{Counter, Shared};
use tidemark_testing::waits;

use crate::support::{self, Folder, TIDEMARK, idle_library, stderr};

/// The longest time that anything here may take.
const LIMIT: Duration = Duration::from_secs(20);

/// `tidemark run OPTIONS -- PROGRAM…`, with swap in `folder`.
fn run(folder: &Folder, options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(TIDEMARK);
    command
        .args([
            "run",
            "--memory",
            "16M",
            "--swap-size",
            "1M",
            "--policy",
            "clock",
        ])
        .arg("--swap")
        .arg(&folder.0)
        .args(options)
        .arg("--")
        .args(program)
        .env("TIDEMARK_SHIM", idle_library())
        .stdin(Stdio::null());
    command
}

/// Returns true if the supervisor may run here; says so if not.
fn may_run() -> bool {
    let may = tidemark_live::sys::uffd::Uffd::offered().is_ok();
    tidemark_testing::require(may, "userfaultfd is not permitted")
}

/// Waits for the end of `child`, within the limit.
fn wait(mut child: Child) -> Output {
    waits::for_end(&mut child, LIMIT);
    child.wait_with_output().unwrap()
}

fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    waits::until(what, LIMIT, holds);
}

fn statistics(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn output_and_status_are_the_programs_own() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("status");
    let script = "echo out; echo err >&2; exit 7";
    let output = run(&folder, &[], &["sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert!(stderr(&output).starts_with("err\n"));
}

#[test]
fn the_program_gets_its_arguments_and_name_as_they_are() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("arguments");
    let program = [
        "sh",
        "-c",
        "echo $0 \"$@\"",
        "name",
        "--memory",
        "a b",
        "--",
        "",
    ];
    let output = run(&folder, &[], &program).output().unwrap();
    assert_eq!(output.stdout, b"name --memory a b -- \n");
}

#[test]
fn a_signal_that_ends_the_program_ends_the_supervisor() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("killed");
    for signal in [9, 15, 11, 10] {
        let script = format!("kill -{signal} $$");
        let output = run(&folder, &[], &["sh", "-c", &script]).output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
    }
}

#[test]
fn signals_sent_to_the_supervisor_reach_the_program_once() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("signals");
    let ready = folder.path("ready");
    let script = format!(
        "trap 'echo hup; touch {ready}-HUP' HUP; trap 'echo usr1; touch {ready}-USR1' USR1
         trap 'echo term; touch {ready}-TERM; exit 3' TERM
         touch {ready}; while :; do sleep 0.01; done"
    );
    let child = run(&folder, &[], &["sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the program runs", || Path::new(&ready).exists());
    for signal in ["HUP", "USR1", "TERM"] {
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        wait_until("the program has the signal", || {
            Path::new(&format!("{ready}-{signal}")).exists()
        });
    }
    let output = wait(child);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hup\nusr1\nterm\n");
}

/// Sends a signal to these, as `kill` takes them: a process, or a group with a dash before it.
fn kill(signal: &str, whom: &[&str]) {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, "--"]).args(whom);
    assert!(kill.status().unwrap().success());
}

/// A Python program that takes every signal as it comes and says its number, and ends with 3 at
/// `SIGTERM`.
const TAKER: &str = "import signal
S = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, S)
print('ready', flush=True)
while (got := signal.sigwaitinfo(S).si_signo) != signal.SIGTERM:
    print(signal.Signals(got).name, flush=True)
raise SystemExit(3)
";

#[test]
fn found_m13_a_signal_to_the_group_reaches_the_program_once() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("group");
    let said = folder.path("said");
    let child = run(&folder, &[], &["python3", "-c", TAKER])
        .process_group(0)
        .stdout(std::fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let has_said = |line: &str| {
        let said = std::fs::read_to_string(&said).unwrap();
        said.lines().any(|known| known == line)
    };
    let pid = child.id().to_string();
    let group = format!("-{pid}");
    wait_until("the program runs", || has_said("ready"));
    kill("USR1", &[&group]);
    wait_until("the group has the signal", || has_said("SIGUSR1"));
    // What the supervisor passes on of the first comes before the second.
    kill("USR2", &[&pid]);
    wait_until("the supervisor passes on", || has_said("SIGUSR2"));
    kill("HUP", &[&group, &pid]);
    wait_until("it comes by two ways", || has_said("SIGHUP"));
    kill("USR1", &[&pid]);
    let count = |name: &str| {
        let said = std::fs::read_to_string(&said).unwrap();
        said.lines().filter(|line| *line == name).count()
    };
    wait_until("the same again", || count("SIGUSR1") > 1);
    kill("TERM", &[&pid]);
    assert_eq!(wait(child).status.code(), Some(3));
    assert_eq!((count("SIGUSR1"), count("SIGUSR2")), (2, 1));
}

/// Runs its arguments in a terminal of their own, as the leader of a session, closes the terminal
/// once they have said that they are ready, and ends as they do, or with 77 if they do not.
const TERMINAL: &str = "import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b''
while b'ready' not in said:
    said += os.read(terminal, 1000)
os.close(terminal)
for _ in range(200):
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.05)
os.kill(pid, 9)
sys.exit(77)
";

#[test]
fn found_f5_a_closed_terminal_hangs_the_program_up() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("terminal");
    let (told, background) = (folder.path("told"), folder.path("background"));
    let script = format!(
        "trap 'echo hup > {told}; exit 3' HUP
         sh -c 'trap \"\" HUP; sleep 1; echo done > {background}' &
         echo ready; while :; do sleep 0.01; done"
    );
    let inner = run(&folder, &[], &["sh", "-c", &script]);
    let mut command = Command::new("python3");
    command
        .args(["-c", TERMINAL])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("TIDEMARK_SHIM", idle_library());
    assert_eq!(wait(command.spawn().unwrap()).status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "hup\n");
    // What ignores the hang-up lives on, as it does without a supervisor.
    wait_until("the job in the background ends", || {
        Path::new(&background).exists()
    });
}

/// The processor time that a process has used, in ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = line.rsplit_once(')').unwrap();
    let words: Vec<&str> = rest.split_whitespace().collect();
    words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap()
}

#[test]
fn a_supervisor_that_lacks_descriptors_waits_without_spinning_and_says_so_once() {
    const FILES: usize = 34;
    if !may_run() {
        return;
    }
    let folder = Folder::new("descriptors");
    let socket = folder.path("socket");
    let inner = run(&folder, &["--control", &socket], &["sleep", "60"]);
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {FILES}; exec \"$@\"");
    command.args(["-c", &script, "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.env("TIDEMARK_SHIM", idle_library());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let connect = || std::os::unix::net::UnixStream::connect(&socket);
    wait_until("it takes requests", || connect().is_ok());
    let clients: Vec<_> = (0..FILES).map(|_| connect().unwrap()).collect();
    let files = || {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count()
    };
    wait_until("all its files are open", || files() >= FILES - 1);
    let (before, start) = (ticks(pid), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(pid) - before;
    let passed = start.elapsed().as_millis() as u64 / 10;
    assert!(used < passed / 4, "{used} ticks of {passed}");
    drop(clients);
    let output = support::tidemark(&["ctl", "--socket", &socket, "stats"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut kill = Command::new("kill");
    assert!(kill.arg(pid.to_string()).status().unwrap().success());
    let output = wait(child);
    let told = stderr(&output);
    assert_eq!(told.matches("have to wait").count(), 1, "{told}");
    assert!(told.contains("`ulimit -n` allows no more"), "{told}");
}

#[test]
fn an_ignored_hang_up_stays_ignored() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("nohup");
    let ready = folder.path("ready");
    let script = format!("touch {ready}; sleep 0.5; exit 5");
    let inner = run(&folder, &[], &["sh", "-c", &script]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(inner.get_program());
    command
        .args(inner.get_args())
        .env("TIDEMARK_SHIM", idle_library());
    let child = command.spawn().unwrap();
    wait_until("the program runs", || Path::new(&ready).exists());
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "HUP", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(wait(child).status.code(), Some(5));
}

#[test]
fn a_program_without_an_engine_is_noted() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("unmanaged");
    let stats = folder.path("stats.json");
    let output = run(&folder, &["--stats", &stats], &["true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("ran unmanaged"), "{output:?}");
    let statistics = statistics(&stats);
    assert_eq!(statistics["schema"], "tidemark.run.v1");
    assert_eq!(statistics["policy"], "clock");
    assert_eq!(statistics["memory_bytes"], 16 << 20);
    assert_eq!(statistics["ending"]["status"], 0);
    assert_eq!(statistics["processes"].as_array().unwrap().len(), 0);
    assert_eq!(statistics["total"]["frames_budget"], 4096);
}

#[test]
fn a_static_program_runs_unmanaged_if_that_is_allowed() {
    let folder = Folder::new("allowed");
    let script = folder.program("script", b"#!/bin/sh\nexit 4\n");
    let stats = folder.path("stats.json");
    // Without a library nothing can be managed; what can't be managed needs no library.
    let ldconfig = "/sbin/ldconfig";
    if Path::new(ldconfig).exists() {
        let options = ["--allow-unmanaged", "--summary", "--stats", &stats];
        let output = run(&folder, &options, &[ldconfig, "-V"]).output().unwrap();
        if stderr(&output).contains("statically linked") {
            assert_eq!(output.status.code(), Some(0));
            assert!(
                statistics(&stats)["notes"][0]
                    .as_str()
                    .unwrap()
                    .contains("unmanaged")
            );
        }
    }
    let output = run(&folder, &["--allow-unmanaged"], &[&script])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_process_that_says_hello_gets_memory_and_leaves_its_counts() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("hello");
    let stats = folder.path("stats.json");
    let output = run(&folder, &["--stats", &stats, "--summary"], &engine())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let statistics = statistics(&stats);
    let process = &statistics["processes"][0];
    assert_eq!(process["page_ins"], 1234);
    assert_eq!(process["program"], "player");
    assert_eq!(process["frames_budget"], 4096);
    assert_eq!(process["ending"]["status"], 0);
    assert_eq!(statistics["total"]["page_ins"], 1234);
    assert!(stderr(&output).contains("1,234"), "{output:?}");
}

#[test]
fn a_supervisor_that_is_slow_is_waited_for() {
    if !may_run() {
        return;
    }
    // Longer than anybody who takes it for gone would wait.
    const STANDSTILL: Duration = Duration::from_secs(11);
    let folder = Folder::new("standstill");
    let (stats, at) = (folder.path("stats.json"), folder.path("stopped"));
    let script = format!("touch {at}; kill -STOP $PPID; {}", engine().join(" "));
    let command = run(&folder, &["--stats", &stats], &["sh", "-c", &script]).spawn();
    let supervisor = command.unwrap();
    wait_until("the supervisor is stopped", || Path::new(&at).exists());
    std::thread::sleep(STANDSTILL);
    kill("CONT", &[&supervisor.id().to_string()]);
    let output = wait(supervisor);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(statistics(&stats)["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn processes_share_the_budget_equally_and_it_comes_back_when_they_end() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("share");
    let stats = folder.path("stats.json");
    let engine = engine().join(" ");
    let script = format!("HOLD=600 {engine} & HOLD=600 {engine} & wait; {engine}");
    let output = run(&folder, &["--stats", &stats], &["sh", "-c", &script])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let statistics = statistics(&stats);
    let processes = statistics["processes"].as_array().unwrap();
    let mut budgets: Vec<u64> = processes
        .iter()
        .map(|process| process["frames_budget"].as_u64().unwrap())
        .collect();
    budgets.sort_unstable();
    // The first of the two to end had half; the other, and the last, had all to itself.
    assert_eq!(budgets.len(), 3);
    assert_eq!(budgets[0], 2048);
    assert_eq!(budgets[2], 4096);
    assert_eq!(statistics["total"]["page_ins"], 3 * 1234);
}

#[test]
fn what_an_engine_gives_up_by_itself_comes_back() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("halved");
    let stats = folder.path("stats.json");
    let mut command = run(&folder, &["--stats", &stats], &engine());
    let output = command
        .env("HALVE", "1")
        .env("HOLD", "900")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let statistics = statistics(&stats);
    assert_eq!(statistics["processes"][0]["frames_budget"], 4096);
}

#[test]
fn more_processes_than_memory_can_hold_run_unmanaged() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("crowd");
    let stats = folder.path("stats.json");
    let engine = engine().join(" ");
    let script = format!("for i in $(seq 70); do HOLD=1500 {engine} & done; wait");
    let output = run(&folder, &["--stats", &stats], &["sh", "-c", &script])
        .output()
        .unwrap();
    let statistics = statistics(&stats);
    let managed = statistics["processes"].as_array().unwrap().len();
    assert!(managed <= 64, "{managed}");
    assert!(stderr(&output).contains("no memory was left for one more process"));
}

#[test]
fn exec_replaces_a_process_under_its_number() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("exec");
    let stats = folder.path("stats.json");
    let mut command = run(&folder, &["--stats", &stats], &engine());
    let output = command.env("THEN_EXEC", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let statistics = statistics(&stats);
    let processes = statistics["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{processes:?}");
    assert_eq!(processes[0]["pid"], processes[1]["pid"]);
    assert_eq!(processes[1]["frames_budget"], 4096);
    assert_eq!(processes[0]["ending"], "replaced");
    assert_eq!(processes[1]["ending"]["status"], 0);
}

#[test]
fn processes_left_behind_are_looked_after_until_they_end() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("daemon");
    let (stats, done) = (folder.path("stats.json"), folder.path("done"));
    let temporary = folder.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let engine = engine().join(" ");
    // Left behind: one that stays, and then starts another, which finds somebody at the socket.
    let later = format!("HOLD=300 {engine} && {engine} && touch {done}");
    let script = format!("({later}) > /dev/null 2>&1 & sleep 0.15; exit 6");
    let mut command = run(&folder, &["--stats", &stats], &["sh", "-c", &script]);
    let output = command.env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert!(!Path::new(&done).exists());
    assert_eq!(statistics(&stats)["processes"][0]["ending"], "running");
    wait_until("both have been managed", || Path::new(&done).exists());
    let is_empty = || std::fs::read_dir(&temporary).unwrap().count() == 0;
    wait_until("the keeper has gone", is_empty);
}

#[test]
fn nothing_is_left_behind() {
    if !may_run() {
        return;
    }
    let folder = Folder::new("clean");
    let temporary = folder.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let options = ["--stats", &folder.path("stats.json")];
    let output = run(&folder, &options, &["true"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let mut left: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["stats.json", "tmp"]);
}

/// The program that plays an engine: this executable, told to run the test below alone.
fn engine() -> [&'static str; 5] {
    let own = std::env::current_exe()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    [
        own.leak(),
        "--quiet",
        "--ignored",
        "--exact",
        "supervisor::plays_an_engine",
    ]
}

/// Not a test: what runs as the program in the tests above.
#[test]
#[ignore = "it is run as a program by the tests above"]
fn plays_an_engine() {
    let socket = std::env::var_os(control::CONTROL).expect("it runs under the supervisor");
    let hello = Hello {
        pid: std::process::id(),
        parent: 0,
        record: None,
    };
    let connection = control::greet(Path::new(&socket), hello).unwrap();
    let (grant, files) = control::await_grant(connection.as_fd()).unwrap();
    let (Some(index), Some(files)) = (grant.record, files) else {
        return;
    };
    let shared = Shared::open(files.shared).unwrap();
    assert_eq!(shared.swap_slots(), 256);
    let process = shared.process(index);
    process.start(hello.pid, 0, "player", now_ns());
    process
        .counter(Counter::PageIns)
        .store(1234, std::sync::atomic::Ordering::Relaxed);
    let hold = std::env::var("HOLD")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let start = Instant::now();
    if std::env::var_os("HALVE").is_some() {
        process.set_budget(process.budget() / 2);
    }
    loop {
        // An engine that obeys whatever it is told, and uses all it may.
        let frames = process.follow_budget((1, u32::MAX));
        let budget = u64::from(frames);
        process.set_resident(budget);
        process.set_understood(frames);
        if budget < shared.frames_total() && process.ask(2 * budget) {
            control::poke(connection.as_fd()).unwrap();
        }
        if start.elapsed() >= Duration::from_millis(hold) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if std::env::var_os("THEN_EXEC").is_some() {
        let [own, arguments @ ..] = engine();
        panic!(
            "{}",
            Command::new(own)
                .args(arguments)
                .env_remove("THEN_EXEC")
                .exec()
        );
    }
}

fn now_ns() -> u64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    (seconds * 1e9) as u64
}
