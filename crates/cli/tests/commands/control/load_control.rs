//! Load control: tasks that wait for their turn, and those that never do.

use std::collections::BTreeMap;

use super::*;

/// Writes to pages of so many MiB in no order, says every hundred in `NAME.turns`, and ends when
/// `stop` is there. What it has written must be there. Its contents do not compress.
const SCATTERER: &str = "
import mmap, os, random, sys
name, pages = sys.argv[1], int(sys.argv[2]) * 256
memory = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
written = [0] * pages
draw = random.Random(name)
for page in range(pages):
    memory[page * 4096:page * 4096 + 4096] = draw.randbytes(4096)
    memory[page * 4096] = 0
turn = 0
with open(name + '.new', 'w') as file:
    file.write(str(os.getpid()))
os.rename(name + '.new', name)
while not os.path.exists('stop'):
    for _ in range(100):
        page = draw.randrange(pages)
        if memory[page * 4096] != written[page]:
            sys.exit(9)
        written[page] = turn & 255
        memory[page * 4096] = turn & 255
    turn += 1
    with open(name + '.turns', 'w') as file:
        file.write(str(turn))
";

/// A script that runs four programs of so many MiB together, and fails if one does.
fn four(mib: u32) -> String {
    format!(
        "for name in a b c d; do python3 program.py $name {mib} & all=\"$all $!\"; done
         for one in $all; do wait $one || exit; done"
    )
}

/// Four programs that have no room beside each other, under load control.
fn controlled(name: &str) -> Run {
    contended(name, "working-set")
}

/// The same, under that one.
fn contended(name: &str, load_control: &str) -> Run {
    let script = four(6);
    let options = [
        "--memory",
        "24M",
        "--store",
        "file",
        "--summary",
        "--load-control",
        load_control,
    ];
    let run = Run::of(name, &options, SCATTERER, &script);
    wait_until("it takes requests", || run.ctl(&["stats"]).status.success());
    run
}

/// The numbers of the tasks that load control holds up now.
fn held(run: &Run) -> Vec<u64> {
    let state = run.state();
    let tasks = state["tasks"].as_array().unwrap().iter();
    let held = tasks.filter(|task| task["waits_for"] == "turn");
    held.map(|task| bytes(&task["pid"])).collect()
}

/// The longest wait for each of four tasks to have been held up once. That takes 20 to 75 s where
/// nothing else runs.
const TURNS_LIMIT: Duration = Duration::from_secs(300);

#[test]
fn tasks_that_load_control_holds_up_have_their_turn_and_lose_nothing() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = controlled("turns");
    wait_until("all are there", || {
        run.folder.0.join("a").exists()
            && run.folder.0.join("b").exists()
            && run.folder.0.join("c").exists()
            && run.folder.0.join("d").exists()
    });
    let names = ["a", "b", "c", "d"].map(|name| (name, u64::from(run.pid(name))));
    for (name, pid) in names {
        assert_eq!(run.task(name)["pid"], pid);
    }
    // The turns that each had done when it was first seen held up.
    let mut done = BTreeMap::new();
    waits::until(
        "each is held up at some time, and goes on",
        TURNS_LIMIT,
        || {
            let held = held(&run);
            for (name, _) in names.iter().filter(|(_, pid)| held.contains(pid)) {
                done.entry(*name).or_insert_with(|| run.turns(name));
            }
            let goes_on = |name| {
                done.get(name)
                    .is_some_and(|done| run.turns(name) > done + 2)
            };
            names.iter().all(|(name, _)| goes_on(*name))
        },
    );
    wait_until("a request does not let one go on", || {
        let output = run.ctl(&["resume", &held_one(&run).to_string()]);
        support::stderr(&output).contains("suspended by load control")
    });
    let output = run.end();
    assert_eq!(output.status.code(), Some(0));
    let told = support::stderr(&output);
    let line = told.lines().find(|line| line.contains("  suspended  "));
    assert!(line.is_some_and(|line| line.contains("4 tasks")), "{told}");
}

/// Touches new memory of so many MiB, and gives it back, again and again, some 50 times: it waits
/// at each page, and for none that it had before.
const FRESH: &str = "
import mmap, sys
pages = int(sys.argv[2]) * 256
for turn in range(50):
    with mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(pages):
            memory[page * 4096] = turn + 1
";

#[test]
fn programs_that_fit_and_touch_new_memory_are_never_held_up() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let script = four(4);
    let options = [
        "--memory",
        "96M",
        "--load-control",
        "working-set",
        "--timeline",
        "timeline",
    ];
    let mut run = Run::of("fresh", &options, FRESH, &script);
    wait_until("they end", || run.child.try_wait().unwrap().is_some());
    assert_eq!(run.child.wait().unwrap().code(), Some(0));
    let timeline = std::fs::read_to_string(run.folder.path("timeline")).unwrap();
    assert!(timeline.contains("python3"), "{timeline}");
    // The run's own track counts those that are suspended at each time.
    let span = "\"name\":\"suspended\"";
    assert!(!timeline.contains(span), "{timeline}");
}

/// Runs its arguments in a terminal of their own, and ends as they do.
const TERMINAL: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
";

#[test]
fn the_program_that_has_the_terminal_is_not_held_up() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let folder = Folder::new("foreground");
    let socket = folder.path("socket");
    folder.program("program.py", SCATTERER.as_bytes());
    let script = "for name in b c d; do python3 program.py $name 6 < /dev/null & done
                  exec python3 program.py a 6";
    let options = ["run", "--memory", "24M", "--swap-size", "256M", "--store"];
    let controlled = ["file", "--load-control", "working-set", "--control"];
    let child = Command::new("python3")
        .args(["-c", TERMINAL])
        .arg(needs::tidemark())
        .args(options)
        .args(controlled)
        .args([&socket, "--", "sh", "-c", script])
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = Run {
        folder,
        child,
        socket,
    };
    for name in ["a", "b", "c", "d"] {
        wait_until("it is there", || run.folder.0.join(name).exists());
    }
    for name in ["b", "c", "d"] {
        let (pid, first) = (u64::from(run.pid(name)), u64::from(run.pid("a")));
        wait_until("each of the others is held up at some time", || {
            let held = held(&run);
            assert!(!held.contains(&first), "{held:?}");
            held.contains(&pid)
        });
    }
    let turns = run.turns("a");
    wait_until("it goes on", || run.turns("a") > turns + 2);
    assert_eq!(run.end().status.code(), Some(0));
}

/// A task that load control holds up.
fn held_one(run: &Run) -> u64 {
    let mut found = None;
    wait_until("one is held up", || {
        found = held(run).first().copied();
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_load_control_that_is_put_in_place_holds_tasks_up_until_it_is_taken_away() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = contended("changed", "none");
    assert_eq!(run.done(&["load-control"]), "none\n");
    let told = run.done(&["load-control", "working-set"]);
    assert_eq!(told, "the load control is `working-set`\n");
    assert_eq!(run.state()["load_control"], "working-set");
    held_one(&run);
    let told = run.done(&["load-control", "working-set"]);
    assert_eq!(told, "the load control is `working-set`, as before\n");
    let told = run.done(&["--json", "load-control", "none"]);
    assert_eq!(told, "{\"done\":\"the load control is `none`\"}\n");
    assert_eq!(held(&run), [0; 0], "what it held goes on");
    for name in ["a", "b", "c", "d"] {
        wait_until("it is there", || run.folder.0.join(name).exists());
        let turns = run.turns(name);
        wait_until("it goes on", || run.turns(name) > turns);
    }
    assert_eq!(held(&run), [0; 0]);
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn tasks_that_load_control_holds_up_go_on_without_a_supervisor() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let mut run = controlled("alone");
    held_one(&run);
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let names = ["a", "b", "c", "d"];
    for name in names {
        wait_until("it is there", || run.folder.0.join(name).exists());
        let turns = run.turns(name);
        wait_until("it goes on", || run.turns(name) > turns + 1);
    }
    std::fs::write(run.folder.path("stop"), "").unwrap();
    for name in names {
        let path = format!("/proc/{}", run.pid(name));
        wait_until("it ends", || !Path::new(&path).exists());
    }
}
