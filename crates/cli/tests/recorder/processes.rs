//! Processes, threads, signals and marks.

use std::os::unix::process::ExitStatusExt;

use tidemark_trace::{Event, Granularity, Kinds, LifeEvent, MappingEvent, Memory, Speed};

use crate::recording::Recording;
use crate::support::{Folder, TIDEMARK, stderr};
use crate::tool::{compile, finish, record, recorded, recorder};

#[test]
fn a_quantum_has_one_record_for_each_page() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("quantum");
    let (output, recording) = recorded(&folder, recorder, &["--quantum", "500", "/bin/echo", "hi"]);
    assert_eq!(output.stdout, b"hi\n");
    assert_eq!(recording.header.granularity, Granularity::Quantum(500));
    let mut seen = std::collections::HashSet::new();
    for record in &recording.only().records {
        let is_kernel = record.kinds.has(Kinds::KERNEL);
        assert!(
            seen.insert((record.time / 500, record.page, is_kernel)),
            "{record:?} is a second"
        );
    }
    // Some page of code is referred to in each quantum.
    let fetches = recording
        .only()
        .records
        .iter()
        .filter(|it| it.kinds.has(Kinds::FETCH));
    let quanta: std::collections::BTreeSet<u64> = fetches.map(|it| it.time / 500).collect();
    assert_eq!(quanta.len() as u64, recording.only().time() / 500 + 1);
}

#[test]
fn found_h8_how_fast_a_program_is_by_itself_is_on_record() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("speed");
    let counting = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    let program = ["--time", "/bin/sh", "-c", counting];
    let (_, recording) = recorded(&folder, recorder, &program);
    let Some(Speed::Measured { elapsed_ns, .. }) = recording.header.speed else {
        panic!("{:?}", recording.header);
    };
    assert!(elapsed_ns > 1_000_000, "{elapsed_ns}");
    let never = ["--time=never", "/bin/sh", "-c", counting];
    let (_, recording) = recorded(&folder, recorder, &never);
    let Some(Speed::Calibrated { unit_fs }) = recording.header.speed else {
        panic!("{:?}", recording.header);
    };
    assert!((20_000..5_000_000).contains(&unit_fs), "{unit_fs}");
    let output = finish(&mut record(
        recorder,
        &["--time", "/bin/sh", "-c", "exit 3"],
    ));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("exit status: 3"), "{output:?}");
}

#[test]
fn found3_b1_a_program_is_timed_where_that_changes_nothing() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("confined");
    let log = folder.path("log");
    let counting = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    let (output, recording) = recorded(
        &folder,
        recorder,
        &["--time=auto", "/bin/sh", "-c", counting],
    );
    if stderr(&output).contains("no Landlock") {
        return tidemark_testing::skip("this kernel has no Landlock of version 6");
    }
    assert!(
        matches!(recording.header.speed, Some(Speed::Measured { .. })),
        "{output:?}"
    );
    // What writes is run once, under the recorder.
    let append = format!("echo once >> {log}");
    let (output, recording) = recorded(
        &folder,
        recorder,
        &["--time=auto", "/bin/sh", "-c", &append],
    );
    assert!(matches!(
        recording.header.speed,
        Some(Speed::Calibrated { .. })
    ));
    assert!(
        stderr(&output).contains("not timed by itself first"),
        "{output:?}"
    );
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "once\n");
}

#[test]
fn quanta_and_page_changes_tell_of_the_same_pages() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("both-modes");
    let command = ["/bin/echo", "hi"];
    let (_, quanta) = recorded(&folder, recorder, &command);
    let (_, exact) = recorded(&folder, recorder, &["--exact", "/bin/echo", "hi"]);
    assert_eq!(quanta.only().time(), exact.only().time());
    for kinds in [Kinds::FETCH, Kinds::LOAD, Kinds::STORE] {
        assert_eq!(
            quanta.only().pages(kinds),
            exact.only().pages(kinds),
            "{kinds:?}"
        );
    }
    assert!(quanta.only().records.len() * 5 < exact.only().records.len());
}

#[test]
fn children_and_what_they_execute_are_recorded() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("children");
    let script = "/bin/echo one; (/bin/true; /bin/false) || /bin/echo two; exit 7";
    let trace = folder.path("trace.tide");
    let output = finish(&mut record(
        recorder,
        &["-o", &trace, "/bin/sh", "-c", script],
    ));
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"one\ntwo\n");
    assert_eq!(stderr(&output), "");
    let recording = Recording::read(&trace);
    let shell = &recording.processes[0];
    assert!(shell.find(|event| *event == Event::Life(LifeEvent::Exit { status: 7 })));
    let forks = shell
        .events
        .iter()
        .filter(|(.., event)| matches!(event, Event::Life(LifeEvent::Fork { .. })));
    let forked: Vec<u32> = recording.processes[1..]
        .iter()
        .map(|process| match process.events[0].2 {
            Event::Life(LifeEvent::Start { pid, parent, .. }) => {
                assert_ne!(parent, 0);
                pid
            }
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert!(forks.count() >= 2);
    for name in ["/echo", "/true", "/false"] {
        let executed = recording.processes.iter().find(|process| {
            process.find(|it| {
                matches!(
                    it,
                    Event::Life(LifeEvent::Exec { program })
                        if program.ends_with(name)
                )
            })
        });
        let executed = executed.unwrap_or_else(|| panic!("{name} among {forked:?}"));
        let status = u32::from(name == "/false");
        assert!(
            executed.find(|event| *event == Event::Life(LifeEvent::Exit { status })),
            "{name}"
        );
        assert!(executed.time() > 50_000, "{name} has run");
    }
    // The shell waits for each, and its own records come before theirs and after.
    assert!(shell.find(|event| matches!(event, Event::Life(LifeEvent::Wait { .. }))));
    assert_eq!(recording.turns.first(), Some(&0));
    assert_eq!(recording.turns.last(), Some(&0));
}

#[test]
fn each_yield_is_told_as_a_wait_of_no_time() {
    const SOURCE: &str = r"
        #include <sched.h>
        #include <unistd.h>
        int main(void) {
            for (int round = 0; round < 7; round++) {
                sched_yield();
                getppid();
            }
            return 0;
        }
    ";
    const SCHED_YIELD: u32 = 24;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("yields");
    let program = compile(&folder, "yields", SOURCE, &[]);
    let (_, recording) = recorded(&folder, recorder, &[&program]);
    let events = recording.only().events.iter();
    let waits = events.filter_map(|(.., event)| match event {
        Event::Life(LifeEvent::Wait { call, ns }) if *call == SCHED_YIELD => Some(*ns),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<u64>>(), [0; 7]);
}

#[test]
fn a_forked_child_and_its_parent_have_their_own_times() {
    const SOURCE: &str = r"
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile char pages[200][4096];
        int main(void) {
            for (int i = 0; i < 100; i++) pages[i][0] = 1;
            if (fork() == 0) {
                for (int i = 100; i < 200; i++) pages[i][0] = 1;
                _exit(3);
            }
            int status;
            wait(&status);
            return WEXITSTATUS(status) == 3 ? 0 : 1;
        }
    ";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("fork");
    let program = compile(&folder, "forks", SOURCE, &[]);
    let (_, recording) = recorded(&folder, recorder, &[&program]);
    let [parent, child] = &recording.processes[..] else {
        panic!("{} processes", recording.processes.len());
    };
    assert!(
        child.find(|event| *event == Event::Life(LifeEvent::Exit { status: 3 })),
        "_exit is told of"
    );
    assert!(child.time() < parent.time());
    let (of_parent, of_child) = (parent.pages(Kinds::STORE), child.pages(Kinds::STORE));
    let alone = of_child.difference(&of_parent).count();
    assert!(
        (100..130).contains(&alone),
        "{alone} pages of the child's alone"
    );
    let mapped = |event: &Event| {
        matches!(
            event,
            Event::Mapping(MappingEvent::Map { memory, .. })
                if *memory == Memory::Stack
        )
    };
    assert!(child.find(mapped), "the child has the parent's mappings");
}

#[test]
fn threads_take_turns() {
    const SOURCE: &str = r"
        #include <pthread.h>
        static volatile char pages[3][100][4096];
        static void *work(void *argument) {
            for (int round = 0; round < 200; round++)
                for (int i = 0; i < 100; i++) pages[(long)argument][i][0]++;
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            return 0;
        }
    ";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("threads");
    let program = compile(&folder, "threads", SOURCE, &["-pthread"]);
    let (_, recording) = recorded(&folder, recorder, &[&program]);
    let process = recording.only();
    let count = |is_it: fn(&Event) -> bool| {
        process
            .events
            .iter()
            .filter(|(.., event)| is_it(event))
            .count()
    };
    assert_eq!(
        count(|event| matches!(event, Event::Life(LifeEvent::ThreadStart { .. }))),
        3
    );
    assert_eq!(
        count(|event| matches!(event, Event::Life(LifeEvent::ThreadExit { .. }))),
        4
    );
    assert!(count(|event| matches!(event, Event::Life(LifeEvent::ThreadSwitch { .. }))) >= 4);
    assert!(process.pages(Kinds::STORE).len() >= 300);
    // 60,000 rounds of at least three instructions; no instruction is counted twice.
    assert!(
        (180_000..2_000_000).contains(&process.time()),
        "{}",
        process.time()
    );
}

#[test]
fn what_a_call_has_done_is_told_of_the_thread_that_made_it() {
    const SOURCE: &str = r"
        #include <pthread.h>
        #include <unistd.h>
        static char pages[201][4096];
        static int ends[2];
        static void *work(void *argument) {
            for (int i = 0; i < 200; i++) read(ends[0], &pages[i][0], 1);
            return argument;
        }
        int main(void) {
            pthread_t thread;
            pipe(ends);
            pthread_create(&thread, 0, work, 0);
            for (int i = 0; i < 200; i++) {
                usleep(100);
                write(ends[1], &pages[200][0], 1);
            }
            pthread_join(thread, 0);
            return 0;
        }
    ";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("calls");
    let program = compile(
        &folder,
        "calls",
        SOURCE,
        &["-pthread", "-Wno-unused-result"],
    );
    let (_, recording) = recorded(&folder, recorder, &[&program]);
    let process = recording.only();
    let thread_at = |record: usize| {
        let before = process
            .events
            .iter()
            .take_while(|(after, ..)| *after <= record);
        before.fold(0, |running, (.., event)| match event {
            Event::Life(LifeEvent::ThreadSwitch { thread }) => *thread,
            _ => running,
        })
    };
    let is_written = |kinds: Kinds| kinds.has(Kinds::KERNEL) && kinds.has(Kinds::STORE);
    let numbered = process.records.iter().enumerate();
    let written = numbered.filter(|(_, record)| is_written(record.kinds));
    let of_second = written
        .filter(|(number, _)| thread_at(*number) == 2)
        .count();
    assert!(of_second >= 200, "{of_second}");
}

#[test]
fn a_signal_that_is_caught_and_one_that_kills() {
    const SOURCE: &str = r#"
        #include <setjmp.h>
        #include <signal.h>
        #include <string.h>
        #include "tidemark.h"
        static jmp_buf back;
        volatile char pages[50][4096];
        static void caught(int signal) { (void)signal; longjmp(back, 1); }
        int main(int count, char **arguments) {
            signal(SIGSEGV, caught);
            if (setjmp(back) == 0) *(volatile int *)8 = 1;
            TIDEMARK_MARK("survived");
            signal(SIGSEGV, SIG_DFL);
            for (int i = 0; i < 50; i++) pages[i][0] = 1;
            if (count > 1) *(volatile int *)16 = 1;
            return 0;
        }
    "#;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("signal");
    let program = compile(&folder, "faults", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    for mode in [&["--exact"][..], &["--quantum", "1000"]] {
        let arguments = [&["-o", &trace], mode, &[&program, "die"]].concat();
        let output = finish(record(recorder, &arguments).current_dir(&folder.0));
        assert_eq!(output.status.signal(), Some(11), "{output:?}");
        let recording = Recording::read(&trace);
        let process = recording.only();
        assert!(process.find(|event| *event == Event::Life(LifeEvent::Killed { signal: 11 })));
        let [("survived", after)] = process.marks()[..] else {
            panic!("{:?}", process.marks());
        };
        let later: std::collections::BTreeSet<u64> = process.records[after..]
            .iter()
            .map(|record| record.page)
            .collect();
        assert!(later.len() >= 50, "nothing is lost at the signal");
        let lowest = process.pages(Kinds::default()).into_iter().next();
        assert!(lowest > Some(0), "an access that faulted is none");
    }
}

#[test]
fn marks_from_the_program_and_from_a_script() {
    const SOURCE: &str = r#"
        #include <stdio.h>
        #include "tidemark.h"
        int main(void) {
            printf("%lu", TIDEMARK_MARK("loading"));
            TIDEMARK_MARK("working");
            return 0;
        }
    "#;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("marks");
    let program = compile(&folder, "marks", SOURCE, &[]);
    let alone = finish(&mut std::process::Command::new(&program));
    assert_eq!(alone.stdout, b"0", "unrecorded, a mark does nothing");
    let (output, recording) = recorded(&folder, recorder, &[&program]);
    assert_eq!(output.stdout, b"1");
    let names: Vec<&str> = recording
        .only()
        .marks()
        .iter()
        .map(|&(name, _)| name)
        .collect();
    assert_eq!(names, ["loading", "working"]);

    let script = format!(
        "{TIDEMARK} mark 'phase one'; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; \
         {TIDEMARK} mark two; exit 0"
    );
    let (_, recording) = recorded(&folder, recorder, &["/bin/sh", "-c", &script]);
    let shell = &recording.processes[0];
    let marks = shell.marks();
    let [("phase one", one), ("two", two)] = marks[..] else {
        panic!("{marks:?}");
    };
    assert!(
        one > 0 && two > one + 100,
        "the loop's records lie between {one} and {two}"
    );
    // Outside of a recording a script with marks runs all the same.
    let outside = finish(std::process::Command::new(TIDEMARK).args(["mark", "x"]));
    assert!(outside.status.success());
}

#[test]
fn static_programs_are_recorded() {
    const SOURCE: &str = "#include <stdio.h>\nint main(void) { puts(\"static\"); return 0; }";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("static");
    let program = compile(&folder, "static", SOURCE, &["-static"]);
    let (output, recording) = recorded(&folder, recorder, &[&program]);
    assert_eq!(output.stdout, b"static\n");
    assert!(recording.started("/static").time() > 1000);
}

#[test]
fn what_can_not_be_recorded_is_refused_in_one_line() {
    let folder = Folder::new("refused");
    let nothing = folder.path("nothing");
    let trace = folder.path("trace.tide");
    let text = folder.program("text", b"no program\n");
    let Some(recorder) = recorder() else {
        return;
    };
    let cases: [(&[&str], &str); 6] = [
        (&["/no/such/program"], "no such file"),
        (&[&text], "name its interpreter"),
        (&["--granularity", "5000", "/bin/true"], "power of two"),
        (&["--quantum", "0", "/bin/true"], "takes 1 to"),
        (
            &["-o", "/no/such/folder/x", "/bin/true"],
            "name a file in a folder",
        ),
        (
            &["--exact", "--quantum", "5", "/bin/true"],
            "cannot be used with",
        ),
    ];
    for (arguments, told) in cases {
        let arguments = [&["-o", &trace][..], arguments].concat();
        let arguments = match arguments.contains(&"/no/such/folder/x") {
            true => &arguments[2..],
            false => &arguments[..],
        };
        refuse(&mut record(recorder, arguments), told);
    }
    let elsewhere = &mut record(recorder, &["/bin/true"]);
    refuse(
        elsewhere.env("TIDEMARK_RECORDER", &nothing),
        "make -C recorder",
    );
    let without = &mut record(recorder, &["/bin/true"]);
    refuse(without.env("PATH", &nothing), "apt-get install valgrind");
}

fn refuse(command: &mut std::process::Command, told: &str) {
    let output = finish(command);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains(told) && said.lines().count() == 1, "{said}");
}
