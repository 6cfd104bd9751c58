//! Kills: of the program, of a child, and of the command. The trace opens, and has what came
//! before.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidemark_trace::{Ending, Event, Kinds, LifeEvent};

use crate::recording::Recording;
use crate::support::{Folder, stderr};
use crate::tool::{LIMIT, await_line, compile, end, finish, record, recorder, start};

/// Stores to 300 pages, says so, and goes on for ever; with an argument, has a child do that.
const SOURCE: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    #include <signal.h>
    #include <sys/wait.h>
    static volatile char pages[300][4096];
    static void work(void) {
        for (int i = 0; i < 300; i++) pages[i][0] = 1;
        printf("%d\n", getpid());
        fflush(stdout);
    }
    int main(int count, char **arguments) {
        if (count == 1) { work(); for (;;) pages[7][0]++; }
        if (arguments[1][0] == 'k') { work(); kill(getpid(), SIGKILL); }
        pid_t child = fork();
        if (child == 0) { work(); kill(getpid(), SIGKILL); }
        int status;
        waitpid(child, &status, 0);
        return WTERMSIG(status);
    }
"#;

#[test]
fn a_program_that_kills_itself_loses_nothing() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("kill-self");
    let program = compile(&folder, "works", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    for mode in ["--exact", "--quantum=1000"] {
        let output = finish(&mut record(recorder, &["-o", &trace, mode, &program, "k"]));
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        let recording = Recording::read(&trace);
        let process = recording.only();
        assert!(process.find(|event| *event == Event::Life(LifeEvent::Killed { signal: 9 })));
        assert!(process.pages(Kinds::STORE).len() >= 300);
    }
}

#[test]
fn a_child_that_is_killed_is_recorded_up_to_then() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("kill-child");
    let program = compile(&folder, "works", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    let output = finish(&mut record(recorder, &["-o", &trace, &program, "child"]));
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    let recording = Recording::read(&trace);
    assert_eq!(recording.processes.len(), 2);
    let child = &recording.processes[1];
    assert!(child.find(|event| *event == Event::Life(LifeEvent::Killed { signal: 9 })));
    assert!(child.pages(Kinds::STORE).len() >= 300);
    assert!(
        recording.processes[0].find(|event| *event == Event::Life(LifeEvent::Exit { status: 9 }))
    );
}

#[test]
fn a_recorder_that_is_killed_from_outside_has_told_all_until_then() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("kill-recorder");
    let program = compile(&folder, "works", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    let mut child = start(&mut record(recorder, &["-o", &trace, &program]), &folder);
    let pid = await_line(&folder);
    await_work(pid);
    kill_process(pid, Signal::KILL).unwrap();
    let status = end(&mut child);
    assert_eq!(status.signal(), Some(9));
    let recording = Recording::read(&trace);
    assert_eq!(recording.ending, Ending::Complete);
    assert!(recording.only().pages(Kinds::STORE).len() >= 300);
    assert!(
        recording
            .only()
            .find(|event| *event == Event::Life(LifeEvent::Killed { signal: 9 }))
    );
}

#[test]
fn when_the_command_is_killed_the_trace_opens_and_the_program_goes_on() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("kill-command");
    let program = compile(&folder, "works", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    let mut child = start(&mut record(recorder, &["-o", &trace, &program]), &folder);
    let pid = await_line(&folder);
    Recording::await_stores(&trace, 300);
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = Recording::read(&trace);
    assert_ne!(recording.ending, Ending::Complete);
    assert!(recording.only().pages(Kinds::STORE).len() >= 300);
    let began = Instant::now();
    let said = loop {
        let said = std::fs::read_to_string(folder.path("stderr")).unwrap();
        if said.contains("the collector is gone") {
            break said;
        }
        assert!(began.elapsed() < LIMIT, "it tells");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(said.lines().count(), 1, "{said}");
    // The program goes on.
    await_work(pid);
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn signals_are_the_program_s() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("pass-on");
    let program = compile(&folder, "works", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    let mut child = start(&mut record(recorder, &["-o", &trace, &program]), &folder);
    await_line(&folder);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(end(&mut child).signal(), Some(15));
    let recording = Recording::read(&trace);
    assert!(
        recording
            .only()
            .find(|event| *event == Event::Life(LifeEvent::Killed { signal: 15 }))
    );
}

#[test]
fn what_outlives_the_program_goes_on_unrecorded() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("outlives");
    let (trace, told) = (folder.path("trace.tide"), folder.path("told"));
    let script = format!("(sleep 1; echo still here > {told}) > /dev/null 2>&1 & exit 4");
    let output = finish(&mut record(
        recorder,
        &["-o", &trace, "/bin/sh", "-c", &script],
    ));
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(stderr(&output), "");
    let recording = Recording::read(&trace);
    assert_eq!(recording.ending, Ending::Complete);
    let began = Instant::now();
    while std::fs::read_to_string(&told).is_ok_and(|text| text.is_empty())
        || !std::path::Path::new(&told).exists()
    {
        assert!(began.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a process has had more processor time.
fn await_work(pid: Pid) {
    let (before, began) = (processor_time(pid), Instant::now());
    while processor_time(pid) == before {
        assert!(began.elapsed() < LIMIT, "the program stands still");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Clock ticks of processor time a process has had.
fn processor_time(pid: Pid) -> u64 {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(11).unwrap().parse().unwrap()
}
