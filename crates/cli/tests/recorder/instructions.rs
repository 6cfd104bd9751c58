//! Instructions that Valgrind does not know.

use std::os::unix::process::ExitStatusExt;

use tidemark_trace::{Event, LifeEvent};

use crate::recording::Recording;
use crate::support::{Folder, stderr};
use crate::tool::{compile, finish, record, recorder};

/// Executes one of AVX-512 (`a`), which no Valgrind knows, or one that no processor does (`u`);
/// with `c` the former is caught before the latter.
const SOURCE: &str = r#"
    #include <setjmp.h>
    #include <signal.h>
    static sigjmp_buf back;
    static void caught(int signal) { siglongjmp(back, 1); }
    static void add(void) { __asm__ volatile(".byte 0x62, 0xf1, 0x7d, 0x48, 0xfe, 0xc0"); }
    int main(int count, char **words) {
        if (words[1][0] == 'c') {
            signal(SIGILL, caught);
            if (!sigsetjmp(back, 1)) add();
            signal(SIGILL, SIG_DFL);
        }
        if (words[1][0] == 'a') add();
        __builtin_trap();
    }
"#;

#[test]
fn found_h7_a_program_with_instructions_that_valgrind_does_not_know_is_told() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("instructions");
    let program = compile(&folder, "adds", SOURCE, &[]);
    let trace = folder.path("trace.tide");
    for (how, is_unknown) in [("a", true), ("u", false), ("c", false)] {
        let output = finish(&mut record(recorder, &["-o", &trace, &program, how]));
        assert_eq!(output.status.signal(), Some(4), "{how}: {output:?}");
        let recording = Recording::read(&trace);
        let process = recording.only();
        assert!(
            process.find(|event| *event == Event::Life(LifeEvent::Killed { signal: 4 })),
            "{how}"
        );
        let told = stderr(&output);
        assert_eq!(
            told.lines().count(),
            usize::from(is_unknown),
            "{how}: {told}"
        );
        for part in [&program, "AVX-512", "62 F1 7D 48 FE C0", "`--live`"] {
            assert!(
                told.contains(part) == is_unknown,
                "{how}: `{part}` in: {told}"
            );
        }
    }
}

#[test]
fn found_m2_a_recording_says_nothing_that_it_has_not_measured() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("rates");
    let trace = folder.path("trace.tide");
    let output = finish(&mut record(recorder, &["--summary", "-o", &trace, "true"]));
    let told = stderr(&output);
    assert!(
        told.contains(" instructions, ") && told.contains("/s"),
        "{told}"
    );
    assert!(!told.contains("slower"), "{told}");
}
