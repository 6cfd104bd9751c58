//! Children, threads, programs executed.

use tidemark_trace::{Event, Kinds, LifeEvent};

use crate::recording::{Process, Recording};
use crate::running::{is_permitted, live, printed_pages, recorded};
use crate::support::{Folder, stderr};
use crate::tool::{compile, finish};

/// Fills 300 pages; has a child fill 200 and end with 5; has a spawned shell end with 6.
const FAMILY: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void fill(int pages) {
        char *at = mmap(0, pages * 4096L, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < pages; page++) at[page * 4096L] = 1;
    }
    int main(void) {
        fill(300);
        pid_t child = fork();
        if (child == 0) { fill(200); _exit(5); }
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 5) return 1;
        printf("%x\n", child);
        fflush(stdout);
        return WEXITSTATUS(system("exec /bin/sh -c 'exit 6'")) == 6 ? 0 : 2;
    }
"#;

#[test]
fn children_are_followed() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-family");
    let program = compile(&folder, "family", FAMILY, &[]);
    let (output, recording) = recorded(&folder, &[&program]);
    assert_eq!(stderr(&output), "");
    let text = String::from_utf8_lossy(&output.stdout);
    let pid = u32::from_str_radix(text.trim(), 16).unwrap();
    let parent = recording.started("/family");
    assert!(parent.find(|event| *event == Event::Life(LifeEvent::Fork { child: pid })));
    assert!(parent.pages(Kinds::STORE).len() >= 300);
    assert_eq!(
        ending(parent),
        Some(Event::Life(LifeEvent::Exit { status: 0 }))
    );
    let child = of_pid(&recording, pid);
    assert!(child.pages(Kinds::STORE).len() >= 200);
    assert!([None, Some(Event::Life(LifeEvent::Exit { status: 5 }))].contains(&ending(child)));
    let spawned = recording.processes.iter().find(|process| {
        process.find(
            |it| matches!(it, Event::Life(LifeEvent::Exec { program }) if !program.is_empty()),
        )
    });
    let spawned = spawned.expect("the shell has been executed");
    assert!([None, Some(Event::Life(LifeEvent::Exit { status: 6 }))].contains(&ending(spawned)));
    let own = match parent.events[0].2 {
        Event::Life(LifeEvent::Start { pid, parent: 0, .. }) => pid,
        ref other => panic!("{other:?}"),
    };
    for process in &recording.processes[1..] {
        let is_child = |event: &Event| {
            matches!(
                event,
                Event::Life(LifeEvent::Start { parent, .. })
                    if *parent == own
            )
        };
        assert!(process.find(is_child), "{:?}", process.events);
    }
}

#[test]
fn the_program_s_status_and_output_are_the_command_s() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-status");
    let trace = folder.path("trace.tide");
    let script = "echo out; echo error >&2; exit 7";
    let output = finish(&mut live(&["-o", &trace, "/bin/sh", "-c", script]));
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(
        (&*output.stdout, &*output.stderr),
        (&b"out\n"[..], &b"error\n"[..])
    );
    let recording = Recording::read(&trace);
    assert_eq!(
        ending(recording.only()),
        Some(Event::Life(LifeEvent::Exit { status: 7 }))
    );
}

/// Two threads that live for 300 ms beside the first, and touch 100 pages each for all of it.
const THREADS: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static void *work(void *place) {
        for (int turn = 0; turn < 30; turn++) {
            for (int page = 0; page < 100; page++) ((volatile char *)place)[page * 4096L]++;
            usleep(10000);
        }
        return 0;
    }
    int main(void) {
        char *at = mmap(0, 200 * 4096L, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, at + i * 100 * 4096L);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        printf("%p\n", at);
        return 0;
    }
"#;

#[test]
fn threads_that_last_are_told() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-threads");
    let program = compile(&folder, "threads", THREADS, &["-pthread"]);
    let (output, recording) = recorded(&folder, &[&program]);
    let process = recording.only();
    let starts = process
        .events
        .iter()
        .filter(|(.., event)| matches!(event, Event::Life(LifeEvent::ThreadStart { .. })));
    assert_eq!(starts.count(), 2, "{:?}", process.events);
    let start = printed_pages(&output)[0];
    assert_eq!(process.times_in(start..start + 200).len(), 200);
}

#[test]
fn a_mark_names_a_phase() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-marks");
    let script = format!(
        "'{}' mark first; '{0}' mark second",
        crate::support::TIDEMARK
    );
    let (_, recording) = recorded(&folder, &["/bin/sh", "-c", &script]);
    let names: Vec<&str> = recording.processes[0]
        .marks()
        .iter()
        .map(|mark| mark.0)
        .collect();
    assert_eq!(names, ["first", "second"]);
}

fn ending(process: &Process) -> Option<Event> {
    let is_end = |event: &&Event| {
        matches!(
            event,
            Event::Life(LifeEvent::Exit { .. } | LifeEvent::Killed { .. })
        )
    };
    process
        .events
        .iter()
        .map(|(.., event)| event)
        .find(is_end)
        .cloned()
}

fn of_pid(recording: &Recording, wanted: u32) -> &Process {
    let is_it = |event: &Event| {
        matches!(
            event,
            Event::Life(LifeEvent::Start { pid, .. })
                if *pid == wanted
        )
    };
    recording
        .processes
        .iter()
        .find(|process| process.find(is_it))
        .unwrap()
}

/// Starts the first process of a namespace of processes; prints the number it has outside.
const APART: &str = r#"
    #define _GNU_SOURCE
    #include <sched.h>
    #include <signal.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static int first(void *argument) {
        (void)argument;
        char *at = mmap(0, 200 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < 200; page++) at[page * 4096L] = 1;
        return getpid();
    }
    int main(void) {
        char *stack = mmap(0, 1 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        for (int turn = 0; turn < 2; turn++) {
            pid_t child = clone(first, stack + (1 << 20), CLONE_NEWPID | SIGCHLD, 0);
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child) return 1;
            if (WEXITSTATUS(status) != 1) return 2;
            printf("%x\n", child);
        }
        return 0;
    }
"#;

#[test]
fn found_l_processes_have_the_numbers_that_they_have_here() {
    // Who may record may not make namespaces, unless it is root.
    if !is_permitted() || !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = Folder::new("live-apart");
    let program = compile(&folder, "apart", APART, &[]);
    let (output, recording) = recorded(&folder, &[&program]);
    assert_eq!(stderr(&output), "");
    let parent = recording.started("/apart");
    let own = match parent.events[0].2 {
        Event::Life(LifeEvent::Start { pid, .. }) => pid,
        ref other => panic!("{other:?}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for word in text.split_whitespace() {
        let pid = u32::from_str_radix(word, 16).unwrap();
        assert!(parent.find(|event| *event == Event::Life(LifeEvent::Fork { child: pid })));
        let child = of_pid(&recording, pid);
        let is_child = |event: &Event| {
            matches!(
                event,
                Event::Life(LifeEvent::Start { parent, .. })
                    if *parent == own
            )
        };
        assert!(child.find(is_child), "{:?}", child.events);
        assert!(child.pages(Kinds::STORE).len() >= 200);
    }
    assert_eq!(text.split_whitespace().count(), 2);
}
