use std::sync::{Arc, Mutex};

use tidemark_core::id::{FrameId, PageId};
use tidemark_core::policies::BuildError;
use tidemark_core::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use tidemark_core::vm::Config;
use tidemark_model::cache::{Cache, MachineKind, Misses, replay};
use tidemark_model::conformance::policy::Candidate;
use tidemark_model::{demand, traces};

use crate::{Setbacks, build, keep, load, setbacks, take_news};

const CLOCK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/policies/clock.wat"
);
const KINDS: [MachineKind; 2] = [MachineKind::Bits, MachineKind::SoftFaults];
/// The parts of a module that names no frame and knows nothing.
const SEES: &str = "(func (export \"tidemark_policy_v1\") (result i32) (i32.const 1))";
const ENTERED: &str = "(func (export \"page_entered\") (param i32 i32 i64 i32 i32 i32))";
const LEFT: &str = "(func (export \"page_left\") (param i32 i32 i64 i32))";
const CHOOSE: &str = "(func (export \"choose\") (result i32) (i32.const -1))";

fn binary(parts: &[&str]) -> Vec<u8> {
    let text = format!("(module {})", parts.join("\n"));
    wat::parse_str(&text).expect("the text is right")
}

/// Keeps a module whose `choose` does that.
fn choosing(name: &str, choose: &str) {
    let import = "(import \"tidemark\" \"may_leave\" (func $may_leave (param i32) (result i32)))";
    let choose = format!("(func (export \"choose\") (result i32) {choose})");
    let bytes = binary(&[import, SEES, ENTERED, LEFT, &choose]);
    keep(name, bytes).expect("it is a policy");
}

/// The refusal of a file that can't serve.
fn refusal(name: &str, parts: &[&str]) -> String {
    let error = keep(name, binary(parts)).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(build(name, 1, 1, 1, &[]).is_err(), "it is not kept");
    error
}

fn policy(name: &str, frames: u32) -> Box<dyn Policy> {
    build(name, frames, frames, 1, &[]).expect("it has been loaded")
}

fn expect_conformance(name: &str) {
    let build = |frames, seed| build(name, frames, frames, seed, &[]).expect("it is known");
    let build = &build;
    Candidate { name, build }.check();
}

/// A loop over more pages than fit, under the policy `name`.
fn go_round(name: &str) -> Misses {
    replay(
        policy(name, 8),
        8,
        MachineKind::Bits,
        &traces::looping(9, 20),
    )
}

/// A policy whose choices are written down.
struct Watched {
    policy: Box<dyn Policy>,
    choices: Arc<Mutex<Vec<Option<FrameId>>>>,
}

impl Policy for Watched {
    fn describe(&self) -> &'static Description {
        self.policy.describe()
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.policy.page_entered(frame, arrival);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.policy.page_left(frame, page, departure);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let choice = self.policy.choose(probe);
        self.choices.lock().unwrap().push(choice);
        choice
    }
}

impl SimulatedPolicy for Watched {}

impl SpacePolicy for Watched {}

fn choices(name: &str, frames: u32, kind: MachineKind, pages: &[u64]) -> Vec<Option<FrameId>> {
    let choices = Arc::default();
    let watched = Watched {
        policy: policy(name, frames),
        choices: Arc::clone(&choices),
    };
    replay(Box::new(watched), frames, kind, pages);
    let choices = choices.lock().unwrap();
    choices.clone()
}

#[test]
fn a_module_says_what_it_is() {
    let description = load(CLOCK).unwrap();
    assert_eq!(description.name, CLOCK);
    assert_eq!(description.sees, Sees::Bits);
    assert!(description.summary.contains("second chance"));
    assert!(description.lineage[0].contains("Corbató"));
    assert!(std::ptr::eq(load(CLOCK).unwrap(), description), "read once");
    assert!(std::ptr::eq(policy(CLOCK, 3).describe(), description));
    let error = build(CLOCK, 3, 3, 1, &[("speed", 1)]).err();
    assert_eq!(error, Some(BuildError::UnknownKnob { name: "speed" }));
}

#[test]
fn the_clock_from_a_file_keeps_the_contract() {
    load(CLOCK).unwrap();
    expect_conformance(CLOCK);
    assert_eq!(setbacks(CLOCK), Some(Setbacks::default()));
    assert_eq!(take_news(CLOCK, true), None);
}

#[test]
fn the_clock_from_a_file_chooses_as_the_one_that_is_built_in() {
    load(CLOCK).unwrap();
    for trace in traces::golden() {
        for kind in KINDS {
            let ours = choices(CLOCK, trace.frames, kind, &trace.pages);
            let theirs = choices("clock", trace.frames, kind, &trace.pages);
            assert!(!ours.is_empty());
            assert!(ours == theirs, "{} {kind:?}", trace.name);
        }
    }
}

#[test]
fn in_a_whole_memory_it_costs_the_same() {
    load(CLOCK).unwrap();
    let trace = &traces::golden()[1];
    for kind in KINDS {
        let cost = |name| {
            let config = Config::demand(trace.frames);
            let counters = demand::replay(policy(name, trace.frames), config, kind, &trace.pages);
            format!("{counters:?}")
        };
        assert_eq!(cost(CLOCK), cost("clock"));
    }
}

#[test]
fn a_call_without_an_end_is_stopped_and_the_oldest_page_leaves() {
    choosing("loop.wasm", "(loop $again (br $again)) unreachable");
    assert_eq!(go_round("loop.wasm"), go_round("fifo"));
    let counted = setbacks("loop.wasm").unwrap();
    assert_eq!((counted.stopped, counted.trapped), (16, 0));
    assert_eq!((counted.misnamed, counted.given_up), (0, 1));
    let told = take_news("loop.wasm", false).unwrap().to_string();
    assert!(
        told.starts_with("16 calls were stopped, 0 trapped"),
        "{told}"
    );
    assert!(told.ends_with("it was called no more"), "{told}");
    assert_eq!(take_news("loop.wasm", true), None, "once");
    expect_conformance("loop.wasm");
}

#[test]
fn questions_without_an_end_are_stopped() {
    let ask = "(loop $again (drop (call $may_leave (i32.const 0))) (br $again)) unreachable";
    choosing("questions.wasm", ask);
    assert_eq!(go_round("questions.wasm"), go_round("fifo"));
    assert_eq!(setbacks("questions.wasm").unwrap().stopped, 16);
    expect_conformance("questions.wasm");
}

#[test]
fn a_call_that_traps_is_no_opinion() {
    for (name, choose) in [
        ("trap.wasm", "unreachable"),
        ("division.wasm", "(i32.div_u (i32.const 1) (i32.const 0))"),
        ("far.wasm", "(call $may_leave (i32.const 123456789))"),
        ("negative.wasm", "(call $may_leave (i32.const -2))"),
    ] {
        choosing(name, choose);
        assert_eq!(go_round(name), go_round("fifo"), "{name}");
        let counted = setbacks(name).unwrap();
        assert_eq!((counted.trapped, counted.given_up), (16, 1), "{name}");
        expect_conformance(name);
    }
}

#[test]
fn recursion_without_an_end_is_stopped() {
    let recurse = "(func $down (result i32) (i32.add (call $down) (i32.const 1)))";
    let choose = "(func (export \"choose\") (result i32) (call $down))";
    keep("deep.wasm", binary(&[SEES, ENTERED, LEFT, recurse, choose])).unwrap();
    assert_eq!(go_round("deep.wasm"), go_round("fifo"));
    assert_eq!(setbacks("deep.wasm").unwrap().given_up, 1);
}

#[test]
fn a_frame_that_can_t_leave_is_not_taken_for_an_answer() {
    for (name, choose) in [
        ("none.wasm", "(i32.const -1)"),
        ("beyond.wasm", "(i32.const 8)"),
        ("huge.wasm", "(i32.const 2147483647)"),
        ("below.wasm", "(i32.const -2147483648)"),
    ] {
        choosing(name, choose);
        let misses = go_round(name);
        assert_eq!(misses, go_round("fifo"), "{name}");
        let counted = setbacks(name).unwrap();
        let evictions = misses.hard - 8;
        assert_eq!(
            (counted.misnamed, counted.given_up),
            (evictions, 0),
            "{name}"
        );
        assert_eq!(take_news(name, false), None, "{name}");
        assert_eq!(take_news(name, true), Some(counted), "{name}");
        expect_conformance(name);
    }
    // The frame is there, and holds a page; but not one that may leave.
    choosing("wired.wasm", "(i32.const 3)");
    let mut cache = Cache::new(policy("wired.wasm", 8), 8, MachineKind::Bits);
    (0..8).for_each(|page| _ = cache.touch(page));
    assert_eq!(cache.choose(), Some(FrameId(3)));
    let page = (0..8).find(|&page| cache.frame_of(page) == Some(FrameId(3)));
    cache.set_wired(page.unwrap(), true);
    let oldest = cache.frame_of(0);
    assert_eq!(cache.choose(), oldest);
}

#[test]
fn what_is_told_may_ask_nothing_and_trap_as_often_as_it_likes() {
    let import = "(import \"tidemark\" \"may_leave\" (func $may_leave (param i32) (result i32)))";
    let entered = "(func (export \"page_entered\") (param i32 i32 i64 i32 i32 i32)
        (drop (call $may_leave (local.get 0))))";
    let bytes = binary(&[import, SEES, entered, LEFT, CHOOSE]);
    keep("asks.wasm", bytes).unwrap();
    assert_eq!(go_round("asks.wasm"), go_round("fifo"));
    let counted = setbacks("asks.wasm").unwrap();
    assert_eq!((counted.trapped, counted.given_up), (16, 1));
    expect_conformance("asks.wasm");
}

#[test]
fn trimming_frames_that_are_not_there_trims_nothing() {
    let trim = "(func (export \"trim\") (result i32) (i32.const 77))";
    let clean = "(func (export \"clean\") (result i32) (i32.const 77))";
    let bytes = binary(&[SEES, ENTERED, LEFT, CHOOSE, trim, clean]);
    keep("trim.wasm", bytes).unwrap();
    assert_eq!(go_round("trim.wasm"), go_round("fifo"));
    assert!(setbacks("trim.wasm").unwrap().misnamed > 100);
}

#[test]
fn memory_grows_with_the_frames_and_no_further() {
    let memory = "(memory (export \"memory\") 1)";
    // Names frame 0 as long as it gets as many pages of memory as it wants, then none.
    let choose = "(func (export \"choose\") (result i32)
        (select (i32.const -1) (i32.const 0)
            (i32.eq (memory.grow (i32.const 1)) (i32.const -1))))";
    keep("grow.wasm", binary(&[memory, SEES, ENTERED, LEFT, choose])).unwrap();
    for (frames, pages) in [(1, 16), (16 << 10, 32)] {
        let mut cache = Cache::new(policy("grow.wasm", frames), frames, MachineKind::Bits);
        cache.touch(1);
        let before = setbacks("grow.wasm").unwrap().misnamed;
        let good = (0..100).take_while(|_| {
            assert_eq!(cache.choose(), cache.frame_of(1));
            setbacks("grow.wasm").unwrap().misnamed == before
        });
        assert_eq!(good.count() + 1, pages, "{frames}");
    }
}

#[test]
fn a_start_that_fails_in_a_large_memory_is_a_setback() {
    let start = "(func (export \"start\") (param i32 i32 i64)
        (if (i32.gt_u (local.get 0) (i32.const 4)) (then unreachable)))";
    keep("start.wasm", binary(&[SEES, ENTERED, LEFT, CHOOSE, start])).unwrap();
    assert_eq!(go_round("start.wasm"), go_round("fifo"));
    assert_eq!(setbacks("start.wasm").unwrap().trapped, 1);
}

#[test]
fn what_is_missing_is_named() {
    let missing = refusal("a.wasm", &[SEES, ENTERED, LEFT]);
    assert_eq!(
        missing,
        "`a.wasm`: has no function `choose`; export it as `() -> i32`"
    );
    let missing = refusal("b.wasm", &[ENTERED, LEFT, CHOOSE]);
    assert!(
        missing.contains("no function `tidemark_policy_v1`"),
        "{missing}"
    );
    let sees_all = "(func (export \"tidemark_policy_v1\") (result i32) (i32.const 2))";
    let missing = refusal("c.wasm", &[sees_all, ENTERED, LEFT, CHOOSE]);
    assert!(
        missing.contains("no function `page_referenced`"),
        "{missing}"
    );
}

#[test]
fn what_is_of_another_type_is_named() {
    let choose = "(func (export \"choose\") (param i64) (result i32) (i32.const -1))";
    let wrong = refusal("d.wasm", &[SEES, ENTERED, LEFT, choose]);
    assert_eq!(
        wrong,
        "`d.wasm`: its function `choose` has another type; it must be `() -> i32`"
    );
    let import = "(import \"tidemark\" \"may_leave\" (func (param i64) (result i32)))";
    let wrong = refusal("e.wasm", &[import, SEES, ENTERED, LEFT, CHOOSE]);
    assert!(wrong.contains("`tidemark.may_leave`"), "{wrong}");
    let import = "(import \"env\" \"puts\" (func (param i32) (result i32)))";
    let wrong = refusal("f.wasm", &[import, SEES, ENTERED, LEFT, CHOOSE]);
    assert!(wrong.contains("imports `env.puts`"), "{wrong}");
    let sees = "(func (export \"tidemark_policy_v1\") (result i32) (i32.const 9))";
    let wrong = refusal("g.wasm", &[sees, ENTERED, LEFT, CHOOSE]);
    assert!(wrong.contains("answers 9"), "{wrong}");
}

#[test]
fn what_can_t_be_started_is_refused() {
    let memory = "(memory (export \"memory\") 1000)";
    let large = refusal("h.wasm", &[memory, SEES, ENTERED, LEFT, CHOOSE]);
    assert!(large.contains("can't be started"), "{large}");
    for (name, body) in [
        ("i.wasm", "unreachable"),
        ("j.wasm", "(loop $again (br $again))"),
    ] {
        let start = format!("(func (export \"start\") (param i32 i32 i64) {body})");
        let wrong = refusal(name, &[SEES, ENTERED, LEFT, CHOOSE, &start]);
        assert!(wrong.contains("can't be started"), "{wrong}");
    }
    let text = "(func (export \"summary\") (result i32) (i32.const 70000))";
    let wrong = refusal("k.wasm", &[SEES, ENTERED, LEFT, CHOOSE, text]);
    assert!(wrong.contains("`summary` points to no text"), "{wrong}");
    let floats = "(func (result f64) (f64.const 1))";
    let wrong = refusal("l.wasm", &[SEES, ENTERED, LEFT, CHOOSE, floats]);
    assert!(wrong.contains("is no WebAssembly module"), "{wrong}");
}

#[test]
fn what_is_no_module_is_refused_in_one_line() {
    let error = load("/no/such/file.wasm").unwrap_err().to_string();
    assert!(
        error.starts_with("`/no/such/file.wasm`: can't be read: "),
        "{error}"
    );
    let error = load(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is no WebAssembly module"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let error = keep("m.wasm", b"\0asm\x01\0\0\0garbage".to_vec());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is no WebAssembly module"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_damaged_module_is_refused_or_slow() {
    let whole = crate::module::read(CLOCK).unwrap();
    let mut random = traces::SplitMix64::new(5);
    let mut refused = 0;
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        let name = format!("damaged-{round}.wasm");
        match keep(&name, bytes) {
            Err(error) => {
                refused += 1;
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
            // Whatever it does: it is shown every page, and one leaves each time.
            Ok(_) => assert!(go_round(&name).hard >= 9 + 19, "{name}"),
        }
    }
    assert!((100..400).contains(&refused), "{refused}");
}

#[test]
fn the_page_about_the_format_has_every_function() {
    let page = include_str!("../../../docs/formats/policy-module-v1.md");
    for (name, signature) in crate::abi::EXPORTS {
        let found = page.lines().any(|line| {
            line.starts_with(&format!("| `{name}`")) && line.contains(&format!("| `{signature}` |"))
        });
        assert!(found, "{name} as {signature}");
    }
}
