//! The engine's own memory: programs that lock all they have, change whatever is mapped in them, or
//! touch what is not, fare as they do natively.

use std::process::Command;
use std::time::Duration;

use super::child::{self, Outcome};
use super::needs;
use super::scratch::Scratch;

const SOURCE: &str = include_str!("own_memory.c");
const LIMIT: Duration = Duration::from_secs(60);

const BOTH: [&[&str]; 2] = [&[], &["--in-thread"]];

/// `MCL_CURRENT`, `MCL_FUTURE` and `MCL_ONFAULT` in every combination that means something.
const FORMS: [u32; 6] = [1, 2, 3, 5, 6, 7];

#[test]
fn found_f1_a_program_locks_all_its_memory() {
    let Some(program) = Program::build("lock-all") else {
        return;
    };
    for mode in BOTH {
        for flags in FORMS {
            let what = format!("lock-all library {flags}");
            let outcome = program.run(mode, &what);
            let expected = "answer 0, 0 pages wrong, little locked\n";
            assert_eq!(outcome.output_text(), expected, "{what} {mode:?}");
            expect_word_of_locks(&outcome, &what);
            // What is locked now is more than the budget as soon as the call is over.
            let is_said = outcome.errors_text().contains("has locked");
            assert!(is_said || !matches!(flags, 1 | 3), "{what} {mode:?}");
        }
    }
}

#[test]
fn found_f1_a_program_locks_all_its_memory_by_system_calls() {
    let Some(program) = Program::build("lock-calls") else {
        return;
    };
    for way in ["number 1", "number 7", "own 1", "own 3"] {
        let what = format!("lock-all {way}");
        let outcome = program.run(&[], &what);
        let expected = "answer 0, 0 pages wrong, little locked\n";
        assert_eq!(outcome.output_text(), expected, "{what}");
        expect_word_of_locks(&outcome, &what);
    }
}

#[test]
fn found_f1_more_is_locked_than_the_budget_has() {
    let Some(program) = Program::build("lock-one") else {
        return;
    };
    for mode in BOTH {
        let outcome = program.run(mode, "lock-one");
        let expected = "locked 0, 12288 KiB, 0 pages wrong, again 0, unlocked 0, 0 KiB, \
                        0 pages wrong\n";
        assert_eq!(outcome.output_text(), expected, "{mode:?}");
        let said = outcome.errors_text();
        let wanted = "has locked 12 MiB, which stay in memory beyond the budget of 8 MiB\n";
        assert!(said.ends_with(wanted), "{mode:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{mode:?}: {said}");
    }
}

#[test]
fn found_f16_every_mapping_is_locked_and_none_of_ours_can_be_changed() {
    let Some(program) = Program::build("lock-each") else {
        return;
    };
    for mode in BOTH {
        let outcome = program.run(mode, "lock-each");
        let expected = "tried some, 0 pages wrong, 0 KiB\n";
        assert_eq!(outcome.output_text(), expected, "{mode:?}");
        expect_word_of_locks(&outcome, "lock-each");
    }
}

#[test]
fn found_f16_a_clone3_whose_arguments_cannot_be_read_fails() {
    let Some(program) = Program::build("bad-clone") else {
        return;
    };
    for mode in BOTH {
        let outcome = program.run(mode, "bad-clone");
        assert_eq!(
            outcome.output_text(),
            "-1 Bad address\n".repeat(5),
            "{mode:?}"
        );
        assert_eq!(outcome.errors_text(), "", "{mode:?}");
    }
}

#[test]
fn found_f4_a_stray_access_meets_nothing_of_ours() {
    let Some(program) = Program::build("stray") else {
        return;
    };
    for mode in BOTH {
        for what in ["stray", "stray-exec"] {
            let outcome = program.run(mode, what);
            let expected = "mapped in the child: 1000\n\
                            a write beyond a mapping: 11\n\
                            mapped in the parent: 1\n";
            assert_eq!(outcome.output_text(), expected, "{what} {mode:?}");
            assert_eq!(outcome.errors_text(), "", "{what} {mode:?}");
        }
    }
}

#[test]
fn found_f6_a_core_dump_holds_what_is_the_programs() {
    let Some(program) = Program::build("dump") else {
        return;
    };
    let outcome = program.run(&[], "dump");
    // In steps of 512 MiB.
    assert_eq!(outcome.output_text(), "0\n");
}

#[test]
fn found_f6_a_limit_of_addresses_leaves_the_program_most_of_them() {
    let Some(program) = Program::build("reserve") else {
        return;
    };
    let outcome = program.limited("ulimit -v 600000", &[], "reserve");
    outcome.expect_code(0, "reserve");
    let said = (outcome.output_text(), outcome.errors_text());
    assert_eq!(said, ("0 pages wrong\n".into(), String::new()));
}

#[test]
fn found_f6_a_program_limits_its_addresses() {
    let Some(program) = Program::build("limit") else {
        return;
    };
    for mode in BOTH {
        let outcome = program.run(mode, "limit");
        let expected = "1024 and 2048 MiB, some more, not too much, bad -1, Bad address\n\
                        a child: 1000\n";
        let said = (outcome.output_text(), outcome.errors_text());
        assert_eq!(said, (expected.into(), String::new()), "{mode:?}");
    }
}

/// At most one line is said, and it is about what is locked.
fn expect_word_of_locks(outcome: &Outcome, what: &str) {
    let said = outcome.errors_text();
    let is_fine = said.is_empty() || said.lines().count() == 1 && said.contains("MiB, which stay");
    assert!(is_fine, "{what}: {said}");
}

struct Program {
    scratch: Scratch,
}

impl Program {
    fn build(name: &str) -> Option<Program> {
        if !needs::are_met(&["cc"]) {
            return None;
        }
        let scratch = Scratch::new(&format!("own-memory-{name}"));
        let source = scratch.write("own_memory.c", SOURCE);
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-o"]);
        compile.arg(scratch.join("program")).arg(source);
        child::run(compile, &scratch.join("cc"), LIMIT).expect_success("cc");
        Some(Program { scratch })
    }

    /// Runs it in 8 MiB. Should the engine's memory be locked after all, the machine's is safe: the
    /// engine has no more of it that can be written to than the limit.
    fn run(&self, mode: &[&str], what: &str) -> Outcome {
        let outcome = self.limited("ulimit -d 1000000", mode, what);
        outcome.expect_code(0, what);
        outcome
    }

    fn limited(&self, limit: &str, mode: &[&str], what: &str) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit} && exec \"$@\""), "sh"]);
        command
            .arg(needs::tidemark())
            .args(["run", "--memory", "8M"]);
        command
            .args(mode)
            .arg("--")
            .arg(self.scratch.join("program"));
        command.args(what.split(' '));
        child::run(command, &self.scratch.join("out"), LIMIT)
    }
}
