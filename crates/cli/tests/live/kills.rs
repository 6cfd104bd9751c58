//! Ends of every kind: nothing that was touched before is lost, but for what was written just
//! before a signal.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidemark_trace::{Ending, Event, Kinds, LifeEvent};

use crate::recording::Recording;
use crate::running::{is_permitted, live};
use crate::support::{Folder, stderr};
use crate::tool::{self, LIMIT, await_line, compile, end, finish};

/// Stores to 300 pages, says so, and ends in the way it is told to: `e` by exit, `u` by _exit,
/// `k` by SIGKILL, `s` by SIGSEGV, both after a while; `l` lasts, and writes to the file it is
/// given each 100 ms.
const SOURCE: &str = r#"
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <time.h>
    #include <unistd.h>
    int main(int count, char **words) {
        volatile char *at = mmap(0, 300 * 4096L, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < 300; page++) at[page * 4096L] = 1;
        // The engine looks each 20 ms, if it has a processor.
        if (words[1][0] == 'k' || words[1][0] == 's') usleep(500000);
        switch (words[1][0]) {
        case 'e': exit(4);
        case 'u': _exit(4);
        case 'k': kill(getpid(), SIGKILL);
        case 's': *(volatile int *)8 = 0;
        }
        printf("%d\n", getpid());
        fflush(stdout);
        FILE *file = fopen(words[2], "w");
        for (int turn = 0; turn < 100; turn++) {
            clock_t end = clock() + CLOCKS_PER_SEC / 10;
            while (clock() < end)
                for (int page = 0; page < 300; page++) at[page * 4096L]++;
            fprintf(file, "%d\n", turn);
            fflush(file);
        }
        return 0;
    }
"#;

#[test]
fn nothing_is_lost_however_a_program_ends() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-ends");
    let program = compile(&folder, "ends", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    for (how, end) in [
        ("e", Event::Life(LifeEvent::Exit { status: 4 })),
        ("u", Event::Life(LifeEvent::Exit { status: 4 })),
        ("k", Event::Life(LifeEvent::Killed { signal: 9 })),
        ("s", Event::Life(LifeEvent::Killed { signal: 11 })),
    ] {
        let output = finish(&mut live(&["-o", &trace, &program, how]));
        assert_eq!(stderr(&output), "", "{how}");
        match end {
            Event::Life(LifeEvent::Killed { signal }) => {
                assert_eq!(output.status.signal(), Some(signal.cast_signed()));
            }
            _ => assert_eq!(output.status.code(), Some(4)),
        }
        let recording = Recording::read(&trace);
        assert_eq!(recording.ending, Ending::Complete);
        assert!(recording.only().find(|event| *event == end), "{how}");
        assert!(recording.only().pages(Kinds::STORE).len() >= 300, "{how}");
    }
}

#[test]
fn when_the_command_is_killed_the_trace_opens_and_the_program_goes_on() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-kill-command");
    let program = compile(&folder, "ends", SOURCE, &[]);
    let (trace, told) = (folder.path("trace.tide"), folder.path("told"));
    let (mut child, pid) = start(&folder, &["-o", &trace, &program, "l", &told]);
    Recording::await_stores(&trace, 300);
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = Recording::read(&trace);
    assert_ne!(recording.ending, Ending::Complete);
    assert!(recording.only().pages(Kinds::STORE).len() >= 300);
    let lines = || std::fs::read_to_string(&told).unwrap().lines().count();
    let (before, began) = (lines(), Instant::now());
    while lines() < before + 3 {
        assert!(began.elapsed() < LIMIT, "the program goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path("stderr")).unwrap(), "");
}

#[test]
fn a_signal_for_the_command_is_the_program_s() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-pass-on");
    let program = compile(&folder, "ends", SOURCE, &[]);
    let (trace, told) = (folder.path("trace.tide"), folder.path("told"));
    let (mut child, _) = start(&folder, &["-o", &trace, &program, "l", &told]);
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
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-outlives");
    let (trace, told, errors) = (
        folder.path("trace.tide"),
        folder.path("told"),
        folder.path("errors"),
    );
    let script =
        format!("(sleep 1; (echo still here); /bin/echo and here) > {told} 2> {errors} & exit 4");
    let output = finish(&mut live(&["-o", &trace, "/bin/sh", "-c", &script]));
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(stderr(&output), "");
    assert_eq!(Recording::read(&trace).ending, Ending::Complete);
    let began = Instant::now();
    while !std::fs::read_to_string(&told).is_ok_and(|text| text == "still here\nand here\n") {
        assert!(began.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), "");
}

/// Starts a recording, and waits until its program says which process it is.
fn start(folder: &Folder, arguments: &[&str]) -> (Child, Pid) {
    let child = tool::start(&mut live(arguments), folder);
    (child, await_line(folder))
}
