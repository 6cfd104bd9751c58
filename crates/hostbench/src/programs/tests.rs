use super::*;
use crate::child::Stop;

fn program(command: &[&str]) -> Program {
    Program {
        name: "one".to_owned(),
        needs: Vec::new(),
        prepare: None,
        command: command.iter().map(|&word| word.to_owned()).collect(),
        client: None,
        outputs: Vec::new(),
        environment: BTreeMap::new(),
    }
}

fn plan(folder: &Path, programs: Vec<Program>) -> Plan {
    Plan {
        programs,
        shares: vec![50],
        entrants: Vec::new(),
        rounds: 2,
        cache: Cache::Warm,
        limit: Duration::from_secs(60),
        folder: folder.to_owned(),
        suite: folder.to_owned(),
    }
}

/// Runs a suite of one program without contenders in a folder of its own.
fn run(name: &str, program: Program) -> Measured {
    let folder = std::env::temp_dir().join(format!("tidemark-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let measured = measure(&plan(&folder, vec![program]), &AtomicBool::new(false));
    std::fs::remove_dir(&folder).expect("nothing is left in the folder");
    measured.expect("a suite without contenders can run anywhere")
}

#[test]
fn a_program_runs_by_itself_on_its_input() {
    let mut one = program(&["sh", "-c", "cat in; cp in out; echo $WORD"]);
    one.prepare = Some("echo input >in; test -d \"$SUITE\"".to_owned());
    one.outputs = vec!["out".to_owned()];
    one.environment.insert("WORD".to_owned(), "one".to_owned());
    let first = run("suite-input", one.clone());
    assert!(
        first.skipped.is_empty() && !first.is_interrupted,
        "{first:?}"
    );
    let native = &first.programs[0].native;
    assert_eq!(native.rounds_s.len(), 2);
    assert!(native.elapsed_s > 0.0);
    assert_eq!(first.programs[0].shares[0].share_percent, 50);
    one.environment.insert("WORD".to_owned(), "two".to_owned());
    let second = run("suite-other-input", one);
    assert_ne!(native.checksum, second.programs[0].native.checksum);
}

#[test]
fn a_client_makes_its_server_end_and_its_output_counts() {
    let mut one = program(&[
        "sh",
        "-c",
        "echo $$; until test -e stop; do sleep 0.01; done; rm stop",
    ]);
    let client = |script: &str| Some(["sh", "-c", script].map(str::to_owned).to_vec());
    one.client = client("echo done; touch stop");
    // The server's own output is another each time; it does not count.
    let first = run("suite-client", one.clone());
    let second = run("suite-client-again", one.clone());
    let checksum = |measured: &Measured| measured.programs[0].native.checksum.clone();
    assert_eq!(checksum(&first), checksum(&second));
    one.client = client("echo no >&2; exit 3");
    let failed = run("suite-client-fails", one);
    let reason = &failed.skipped[0].reason;
    assert!(
        reason.contains("its client: it ended with exit status: 3: no"),
        "{reason}"
    );
}

#[test]
fn a_program_that_can_not_run_is_left_out() {
    let mut one = program(&["true"]);
    one.needs = vec!["no-such-command".to_owned()];
    let measured = run("suite-needs", one.clone());
    assert!(measured.programs.is_empty());
    assert!(
        measured.skipped[0]
            .reason
            .starts_with("`no-such-command` is missing")
    );
    one.needs = vec!["sh".to_owned(), "/bin/sh".to_owned()];
    one.prepare = Some("echo none >&2; exit 1".to_owned());
    let measured = run("suite-prepare", one);
    let reason = &measured.skipped[0].reason;
    assert!(
        reason.starts_with("its input can't be made") && reason.ends_with("none"),
        "{reason}"
    );
}

#[test]
fn a_share_is_of_the_native_peak() {
    let native = NativeRecord {
        anonymous_peak_bytes: 101 << 20,
        file_peak_bytes: 3 << 20,
        ..NativeRecord::default()
    };
    let limit = Duration::from_secs(9);
    let share_of =
        |percent, cache| ShareRecord::new(percent, &native, limit, (cache, &[Entrant::Zswap]));
    let share = |percent| share_of(percent, Cache::Cold);
    let half = share(50);
    assert_eq!(half.memory_bytes, (101 << 20) / 2);
    assert_eq!(half.group_bytes, half.memory_bytes + (3 << 20) + (8 << 20));
    let warm = share_of(50, Cache::Warm);
    assert_eq!(half.group_bytes - warm.group_bytes, 3 << 20);
    assert_eq!(share(25).memory_bytes % 4096, 0);
    assert_eq!(half.contenders[0].name, "zswap");
}

#[test]
fn a_run_over_the_limit_counts_as_that_long_and_a_wrong_output_as_none() {
    let sample = |checksum: &str| {
        Outcome::Ran(turn::Sample {
            elapsed: Duration::from_secs(3),
            checksum: checksum.to_owned(),
            counts: record::Counts::default(),
        })
    };
    let mut contender = record::EntrantRecord::default();
    contender.add(sample("right"), "right");
    assert_eq!(
        (contender.elapsed_s, contender.is_given_up()),
        (Some(3.0), false)
    );
    let limit = Duration::from_secs(9);
    contender.add(Outcome::Stopped(Stop::TooLong(limit)), "right");
    assert_eq!(
        (contender.elapsed_s, contender.is_given_up()),
        (Some(6.0), true)
    );
    contender.add(sample("wrong"), "right");
    assert_eq!(contender.elapsed_s, None);
    assert_eq!(
        contender.failures,
        ["its output is not that of the native run"]
    );
}

#[test]
fn plans_that_can_not_be_are_refused() {
    let folder = Path::new("/tmp");
    let check = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(folder, vec![program(&["true"])]);
        change(&mut plan);
        plan.check()
    };
    assert_eq!(check(&|_| {}), Ok(()));
    assert!(check(&|plan| plan.shares = vec![101]).is_err());
    assert!(check(&|plan| plan.rounds = 0).is_err());
    assert!(check(&|plan| plan.programs[0].name = "../x".to_owned()).is_err());
    assert!(check(&|plan| plan.programs[0].command.clear()).is_err());
    assert!(check(&|plan| plan.entrants = vec![Entrant::Zram, Entrant::Zram]).is_err());
}
