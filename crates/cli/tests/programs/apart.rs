//! The engine is in nobody's way: programs that count their threads, filter their calls, stop, give
//! up their rights, or are looked into.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::built::{self, Built, LIMIT};
use super::child::{self, Outcome};
use super::scratch::Scratch;
use super::{needs, process_tree};

/// Fills 24 MiB, and does what its arguments name.
const SOURCE: &str = include_str!("apart.c");
/// Fills as much, and does wrong what its argument names.
const SANITIZED: &str = include_str!("sanitized.c");
/// Has a child that fills as much, and holds it in the midst of a fork.
const HELD: &str = include_str!("held.c");
/// Two thirds of that: a leak checker goes through all memory at random.
const SOME: &[&str] = &["--memory", "16M"];

#[test]
fn found_b18_a_program_has_the_threads_and_children_that_it_has() {
    built::compare("apart-alone", SOURCE, &["alone"]);
}

#[test]
fn a_program_of_one_thread_keeps_the_ways_for_one() {
    built::compare("apart-single", SOURCE, &["single"]);
}

#[test]
fn found_b18_a_filter_for_all_threads_of_several_is_set() {
    if let Some(program) = Built::new("apart-filter", SOURCE) {
        program.compare(&[&[]], &["filter"]);
    }
}

#[test]
fn found_b19_memory_of_a_stopped_child_is_read_from_outside() {
    if let Some(program) = Built::new("apart-stopped", SOURCE) {
        program.compare(&[&[]], &["stopped"]);
    }
}

#[test]
fn memory_of_a_program_whose_fork_a_tracer_holds_is_read_written_and_changed() {
    if let Some(program) = Built::new("apart-held", HELD) {
        let stores = ["file", "compressed+file"].map(|store| ["--store", store]);
        for way in ["at-entry", "at-exit"] {
            program.compare(&[&stores[0], &stores[1]], &[way]);
        }
    }
}

#[test]
fn an_engine_leaves_when_its_program_is_ended_in_the_midst_of_a_fork() {
    if let Some(program) = Built::new("apart-ended", HELD) {
        program.compare(&[&[]], &["ended"]);
    }
}

#[test]
fn a_program_that_has_become_another_users_is_served() {
    if !(needs::is_root() || needs::lacks("not root")) {
        return;
    }
    if let Some(program) = Built::new("apart-rights", SOURCE) {
        // Its child may not be managed, and says so.
        let outcome = program.run_managed(&[], &["rights"]);
        outcome.expect_success("rights");
        let native = program.run_natively(&["rights"]);
        assert_eq!(outcome.output_text(), native.output_text());
    }
}

#[test]
fn found_a11_leaks_are_found_among_pages_that_are_out_and_no_others() {
    if let Some(program) = sanitized("leak") {
        program.compare(&[SOME], &[]);
        let outcome = program.run_managed(SOME, &["leak"]);
        outcome.expect_code(23, "leak");
        let found = "SUMMARY: LeakSanitizer: 1000 byte(s) leaked in 1 allocation(s).";
        assert!(outcome.errors_text().contains(found), "{outcome:?}");
    }
}

#[test]
fn found_a11_undefined_behaviour_is_reported_as_natively() {
    if let Some(program) = sanitized("undefined") {
        program.compare(&[&[]], &[]);
        let outcome = program.run_managed(&[], &["overflow"]);
        outcome.expect_success("overflow");
        let found = "runtime error: signed integer overflow";
        assert!(outcome.errors_text().contains(found), "{outcome:?}");
    }
}

#[test]
fn found_a11_programs_with_a_map_of_memory_run_unmanaged_and_say_so() {
    let ways = [
        ("address", "beyond", "heap-buffer-overflow"),
        ("thread", "race", "ThreadSanitizer: data race"),
    ];
    for (option, way, found) in ways {
        let Some(program) = sanitized(option) else {
            return;
        };
        let reason = format!(
            "tidemark: the program is built with `-fsanitize={option}`, whose map of memory can't \
             be managed; it runs unmanaged\n"
        );
        let outcome = program.run_managed(&[], &[]);
        outcome.expect_success(option);
        assert_eq!(outcome.output_text(), "0 wrong\n", "{option}");
        assert!(outcome.errors_text().starts_with(&reason), "{outcome:?}");
        let outcome = program.run_managed(&[], &[way]);
        assert!(outcome.errors_text().contains(found), "{outcome:?}");
        assert!(!outcome.status.success(), "{outcome:?}");
    }
}

#[test]
fn found_b18_a_program_under_valgrind_runs_unmanaged_and_says_so() {
    if !needs::are_met(&["valgrind"]) {
        return;
    }
    let scratch = Scratch::new("apart-valgrind");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "64M", "--", "valgrind", "-q"]);
    command.args(["sh", "-c", "echo said"]);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_success("valgrind");
    assert_eq!(outcome.output_text(), "said\n");
    let reason = "tidemark: the program is run by Valgrind, which can't follow an engine; it runs \
                  unmanaged\n";
    assert!(outcome.errors_text().starts_with(reason), "{outcome:?}");
}

#[test]
fn found_b18_a_browser_with_its_zygote_shows_a_page() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| needs::find(name).is_some())
    else {
        needs::lacks("a browser of the Chromium kind is not installed");
        return;
    };
    if !needs::are_met(&[]) {
        return;
    }
    let scratch = Scratch::new("apart-browser");
    let profile = format!("--user-data-dir={}", scratch.join("profile").display());
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "300M", "--", browser, "--headless=new"]);
    command.args(["--disable-gpu", "--no-sandbox", &profile, "--dump-dom"]);
    command.arg("data:text/html,<p id=a>x</p><script>a.textContent=6*7</script>");
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    outcome.expect_success(browser);
    let page = outcome.output_text();
    assert!(page.contains("<p id=\"a\">42</p>"), "{outcome:?}");
}

#[test]
fn found_b19_a_debugger_is_told_what_to_do_and_then_sees_all() {
    if !needs::are_met(&["gdb"]) {
        return;
    }
    let Some(program) = Built::new("apart-debugger", SOURCE) else {
        return;
    };
    let mut run = Waiting::start(&program, &["--memory", "16M", "--memory-max", "64M"]);
    let first = run.look();
    assert!(first.output_text().contains("Cannot access memory"));
    let line = run.await_line_beside_debugger("and can't see the");
    let remedy = line.split('`').nth(1).expect("the line names a command");
    let words: Vec<&str> = remedy.split(' ').skip(1).collect();
    let pid = run.supervisor.id().to_string();
    let mut command = Command::new(needs::tidemark());
    command.args([words[0], &pid]).args(&words[1..]);
    let done = child::run(command, &program.scratch.join("ctl"), LIMIT);
    done.expect_success(remedy);
    let begun = Instant::now();
    loop {
        let seen = run.look();
        if seen.output_text().contains("wrong: 0\n") {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "{line}: {seen:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_program_whose_engine_is_ended_is_ended_and_reads_no_zeros() {
    let Some(program) = Built::new("apart-engine", SOURCE) else {
        return;
    };
    let mut run = Waiting::start(&program, &["--memory", "16M"]);
    let engine = run.find_engine();
    let killed = Command::new("kill")
        .args(["-9", &engine.to_string()])
        .status();
    assert!(killed.expect("`kill` runs").success());
    let status = run.supervisor.wait().expect("the run ends");
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let kill = rustix::process::Signal::KILL.as_raw();
    assert_eq!(signal, Some(kill), "{status}");
    run.await_line("was ended, and the process with it");
}

#[test]
fn engines_leave_with_their_programs_when_the_supervisor_was_killed() {
    let Some(program) = Built::new("apart-deserted", SOURCE) else {
        return;
    };
    let mut run = Waiting::start_after(&program, &["--memory", "16M"], &["arena"]);
    let supervisor = run.supervisor.id();
    let (engines, members) = (
        process_tree::engines(supervisor),
        process_tree::members(supervisor),
    );
    assert_eq!(engines.len(), 2, "the program and its child have one each");
    let await_engines = |most: usize| {
        let begun = Instant::now();
        let is_there = |engine: &&u32| process_tree::is_engine(**engine);
        while engines.iter().filter(is_there).count() > most {
            assert!(
                begun.elapsed() < LIMIT,
                "more of {engines:?} than {most} are left"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    run.supervisor.kill().expect("it runs");
    run.supervisor.wait().expect("it has ended");
    // The child, whose memory is out, is the last, and its engine removes what the run has left.
    for member in members.into_iter().filter(|member| *member != run.pid) {
        kill(member);
    }
    await_engines(1);
    kill(run.pid);
    await_engines(0);
}

/// Ends a process, if it has not ended.
fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process as i32);
    let kill = rustix::process::Signal::KILL;
    let _ = process.map(|process| rustix::process::kill_process(process, kill));
}

/// A program that has filled its memory and waits, under a supervisor.
struct Waiting {
    supervisor: Child,
    lines: BufReader<std::process::ChildStderr>,
    pid: u32,
    address: String,
    folder: std::path::PathBuf,
}

impl Waiting {
    fn start(program: &Built, options: &[&str]) -> Waiting {
        Waiting::start_after(program, options, &[])
    }

    /// The same with a program that does what `ways` say before.
    fn start_after(program: &Built, options: &[&str], ways: &[&str]) -> Waiting {
        let mut command = Command::new(needs::tidemark());
        command.arg("run").args(options).arg("--");
        command.arg(&program.path).args(ways).arg("waits");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut supervisor = command.spawn().expect("the command runs");
        let mut first = String::new();
        let output = supervisor.stdout.take().expect("it is a pipe");
        BufReader::new(output)
            .read_line(&mut first)
            .expect("the program says where it is");
        let mut words = first.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let errors = supervisor.stderr.take().expect("it is a pipe");
        Waiting {
            lines: BufReader::new(errors),
            pid: pid.expect("a number"),
            address: words.next().expect("an address").into(),
            folder: program.scratch.join("debugger"),
            supervisor,
        }
    }

    /// Has a debugger count which pages are wrong.
    fn look(&self) -> Outcome {
        let mut command = Command::new("gdb");
        let page = format!("((unsigned char *){})[$i * 4096]", self.address);
        let count = format!(
            "while $i < 6144\nset $bad = $bad + ({page} != 1 + $i % 250)\nset $i = $i + 1\nend\n\
             printf \"wrong: %d\\n\", $bad\n"
        );
        std::fs::create_dir_all(&self.folder).expect("the test may make folders");
        let script = self.folder.join("script");
        std::fs::write(&script, format!("set $i = 0\nset $bad = 0\n{count}"))
            .expect("the test may write files");
        command.args(["-q", "-batch", "-p", &self.pid.to_string(), "-x"]);
        command.arg(script);
        let mut outcome = child::run(command, &self.folder, LIMIT);
        outcome.output.extend_from_slice(&outcome.errors.clone());
        outcome
    }

    /// Waits for a line with `what` in it while a debugger is attached. The engine looks for a
    /// debugger five times a second, and one that leaves at its first error may be there for less.
    fn await_line_beside_debugger(&mut self, what: &str) -> String {
        let mut command = Command::new("gdb");
        command.args(["-q", "-p", &self.pid.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A debugger that reads its commands from a pipe stays until the pipe is closed.
        let mut debugger = command.stdin(Stdio::piped()).spawn().expect("it runs");
        let line = self.await_line(what);
        drop(debugger.stdin.take());
        debugger.wait().expect("it ends with its commands");
        line
    }

    /// Waits for a line with `what` in it.
    fn await_line(&mut self, what: &str) -> String {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            let count = self.lines.read_line(&mut line).expect("lines are text");
            assert!(count > 0, "no line with `{what}`");
        }
        line
    }

    /// The process of the program's engine, a child of the supervisor's.
    fn find_engine(&self) -> u32 {
        let engines = process_tree::engines(self.supervisor.id());
        *engines.first().expect("the program has an engine")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        kill(self.pid);
        let _ = self.supervisor.wait();
    }
}

/// Builds the program with a sanitizer. `None` where that is not installed.
fn sanitized(option: &str) -> Option<Built> {
    let flag = format!("-fsanitize={option}");
    let program = Built::with_flags(&format!("apart-{option}"), SANITIZED, &["-g", &flag]);
    if program.is_none() {
        needs::lacks(&format!("`cc {flag}` does not work"));
    }
    program
}
