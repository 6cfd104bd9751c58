//! System calls where faults are served in user mode alone: they are held up until their memory is
//! there. As root by force, and as an ordinary user, who has no other way.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::built::{Built, LIMIT, expect_same};
use super::child::{self, Outcome};
use super::needs;
use super::ordinary_user::Place;
use super::trial::Statistics;

/// Has `run` serve faults in user mode alone, whatever is permitted.
const FORCED: (&str, &str) = ("TIDEMARK_USER_MODE", "1");

/// Runs a program by force in that way, and takes the line that says so off what it says.
fn run_forced(program: &Built, options: &[&str], ways: &[&str]) -> Outcome {
    let mut command = Command::new(needs::tidemark());
    command.env(FORCED.0, FORCED.1).arg("run");
    if !options.contains(&"--memory") {
        command.args(["--memory", "8M"]);
    }
    command
        .args(options)
        .arg("--")
        .arg(&program.path)
        .args(ways)
        .current_dir(program.scratch.path());
    without_word(child::run(command, &program.scratch.join("out"), LIMIT))
}

fn without_word(mut outcome: Outcome) -> Outcome {
    let text = outcome.errors_text();
    let (said, others): (Vec<&str>, Vec<&str>) = text
        .split_inclusive('\n')
        .partition(|line| line.starts_with("tidemark: faults are served in user mode alone"));
    assert_eq!(said.len(), 1, "it is said once:\n{text}");
    let others = others.concat().into_bytes();
    outcome.errors = others;
    outcome
}

#[test]
fn every_kind_of_call_finds_memory_that_is_out() {
    let Some(program) = Built::new("calls", include_str!("calls.c")) else {
        return;
    };
    let native = program.run_natively(&[]);
    assert!(native.output_text().ends_with("all\n"));
    for options in [
        &["--memory", "4M", "--policy", "2q-faults"][..],
        &["--memory", "4M", "--policy", "tidemark"],
        // It asks for reference bits by unmapping.
        &["--memory", "4M", "--policy", "clock"],
        &["--memory", "32M"],
    ] {
        let outcome = run_forced(&program, options, &[]);
        expect_same(&outcome, &native, &format!("{options:?}"));
    }
}

#[test]
fn a_fork_of_its_own_is_refused_by_name() {
    let source = "
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        int main(void) {
            char *memory = calloc(1, 4 << 20);
            for (int at = 0; at < 4 << 20; at += 4096) memory[at] = 1;
            // clone(SIGCHLD), without the C library.
            long answer = 56;
            register long fourth __asm__(\"r10\") = 0;
            register long fifth __asm__(\"r8\") = 0;
            __asm__ volatile(\"syscall\" : \"+a\"(answer)
                : \"D\"(17L), \"S\"(0L), \"d\"(0L), \"r\"(fourth), \"r\"(fifth)
                : \"rcx\", \"r11\", \"memory\");
            printf(\"%ld\\n\", answer);
            return 6;
        }";
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let Some(program) = Built::new("calls-fork", source) else {
        return;
    };
    let outcome = run_forced(&program, &[], &[]);
    let errors = outcome.expect_code(6, "it goes on").errors_text();
    assert_eq!(outcome.output_text(), "-11\n");
    assert!(
        errors.contains("fails: it is a fork of its own"),
        "{errors}"
    );
}

#[test]
fn an_ordinary_user_runs_real_programs() {
    let Some(place) = Place::new("calls") else {
        return;
    };
    if is_permitted_to_all() {
        return;
    }
    let numbers = place.folder.join("numbers");
    let lines: Vec<String> = (0..200_000u64)
        .map(|line| format!("{}\n", line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20))
        .collect();
    fs::write(&numbers, lines.concat()).expect("the folder is ours");
    let programs = [
        ("8M", "sort -S 64M numbers"),
        (
            "8M",
            "python3 -c \"d = [str(i) * 3 for i in range(200000)]; print(hash(sum(map(len, d))))\"",
        ),
        (
            "8M",
            "sqlite3 :memory: \"create table t(a, b); \
             insert into t select value, hex(value * 7919) from generate_series(1, 150000); \
             select count(*), sum(a), max(b) from t; create index i on t(b); \
             select a from t order by b limit 3;\"",
        ),
        ("4M", "gzip -c numbers | gzip -dc | cksum"),
        ("4M", "tar -cf - numbers | tar -tvf - | wc -l"),
        (
            "8M",
            "sort -S 64M numbers | uniq | head -1000 | sed s/1/x/ | cksum",
        ),
    ];
    for (memory, program) in programs {
        let run = |managed: bool| {
            let mut command = place.as_nobody();
            if managed {
                command.arg(place.folder.join("tidemark"));
                command.args(["run", "--memory", memory, "--stats", "stats.json", "--swap"]);
                command.arg(&place.folder).arg("--");
            }
            command
                .args(["sh", "-c", program])
                .current_dir(&place.folder);
            child::run(command, &place.folder.join("out"), LIMIT)
        };
        let native = run(false);
        let outcome = without_word(run(true));
        expect_same(&outcome, &native, program);
        let statistics = Statistics::read(&place.folder.join("stats.json"), program, &outcome);
        statistics.check(program);
        assert!(
            statistics.field("page_outs") > 0 || memory == "4M",
            "{program}"
        );
    }
}

#[test]
fn a_program_whose_supervisor_or_engine_is_killed_ends() {
    let source = "
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(void) {
            char *memory = malloc(24 << 20);
            printf(\"%d\\n\", getpid());
            fflush(stdout);
            for (;;) {
                memset(memory, 1, 24 << 20);
                FILE *zeros = fopen(\"/dev/zero\", \"r\");
                if (fread(memory, 1, 1 << 20, zeros) != 1 << 20) return 3;
                fclose(zeros);
            }
        }";
    let Some(program) = Built::new("calls-killed", source) else {
        return;
    };
    for victim in ["supervisor", "engine"] {
        let mut command = Command::new(needs::tidemark());
        command.env(FORCED.0, FORCED.1);
        command
            .args(["run", "--memory", "8M", "--"])
            .arg(&program.path);
        let output = fs::File::create(program.scratch.join("pid")).expect("the folder is ours");
        let errors = fs::File::create(program.scratch.join("errors")).expect("so it is");
        let mut supervisor = command
            .stdout(output)
            .stderr(errors)
            .spawn()
            .expect("it runs");
        let end = Instant::now() + LIMIT;
        let pid = loop {
            let text = fs::read_to_string(program.scratch.join("pid")).unwrap_or_default();
            if let Some(pid) = text.strip_suffix('\n') {
                break pid.to_owned();
            }
            assert!(Instant::now() < end, "the program has not begun");
            std::thread::sleep(Duration::from_millis(5));
        };
        let killed = match victim {
            "supervisor" => supervisor.id(),
            _ => engine_of(&pid),
        };
        let status = Command::new("kill")
            .args(["-KILL", &killed.to_string()])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{victim}");
        let status = supervisor.wait().expect("it was started here");
        while Path::new(&format!("/proc/{pid}/exe")).exists() && is_running(&pid) {
            assert!(
                Instant::now() < end,
                "the program goes on without its {victim}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let errors = fs::read_to_string(program.scratch.join("errors")).expect("it is there");
        assert!(errors.contains("ended"), "{victim}: {errors}");
        if victim == "engine" {
            assert!(
                status.signal() == Some(9) || status.code() == Some(137),
                "{status}"
            );
        }
    }
}

/// The process that shares a program's words and has the name of an engine.
fn engine_of(pid: &str) -> u32 {
    let words = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let wanted = words(pid);
    let end = Instant::now() + LIMIT;
    loop {
        let all = fs::read_dir("/proc").expect("it is mounted").flatten();
        let names = all.filter_map(|entry| entry.file_name().into_string().ok());
        let mut engines = names.filter(|name| {
            let comm = fs::read_to_string(format!("/proc/{name}/comm")).unwrap_or_default();
            comm.trim() == "tidemark-engine" && words(name) == wanted
        });
        if let Some(found) = engines.find_map(|name| name.parse().ok()) {
            return found;
        }
        assert!(Instant::now() < end, "there is no engine");
    }
}

fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

fn is_permitted_to_all() -> bool {
    let sysctl = fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd");
    sysctl.is_ok_and(|value| value.trim() == "1")
}
