//! Regions on the real kernel: contents, limits and errors.

use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Advice, Engine, Error, MEMORY_BYTES_LEAST, Region};
use tidemark_testing::{skip, waits};

use crate::child;
use crate::engine::start;
use crate::pagers::Plain;

pub const PAGE: usize = 4096;
pub const MIB: u64 = 1 << 20;
/// The longest time that a wait of these tests may take.
const LIMIT: Duration = Duration::from_secs(60);

/// An engine, unless the kernel does not permit one.
fn engine(memory: u64, policy: &str) -> Option<Engine> {
    let settings = Engine::builder().memory(memory).policy(policy);
    start(
        settings
            .swap_folder(&std::env::temp_dir())
            .swap_size(64 * MIB),
    )
}

/// Writes and reads at random in step with a plain array.
pub fn keep_step(region: &mut [u8], seed: u64, steps: u32) {
    let mut random = SplitMix64::new(seed);
    let mut plain = vec![0u8; region.len()];
    for _ in 0..steps {
        let at = random.below(region.len() as u64) as usize;
        let end = (at + random.below(3 * PAGE as u64) as usize).min(region.len());
        if random.below(2) == 0 {
            let value = random.below(256) as u8;
            region[at..end].fill(value);
            plain[at..end].fill(value);
        } else {
            assert!(
                region[at..end] == plain[at..end],
                "{at}..{end}, seed {seed}"
            );
        }
    }
    assert!(*region == plain, "seed {seed}");
}

const POLICIES: [&str; 6] = [
    "tidemark",
    "mach86",
    "2q-faults",
    "clock",
    "mglru",
    "random",
];

/// The place of pages that leave.
#[derive(Clone, Copy, Debug)]
enum Kept {
    File,
    Encrypted,
    Pager,
}

/// A region of four times its engine's memory, in step with a plain array.
fn check_contents((policy, kept, is_limited): (&str, Kept, bool), steps: u32) -> Result<(), Error> {
    let settings = Engine::builder().memory(MIB).policy(policy);
    let settings = settings
        .swap_folder(&std::env::temp_dir())
        .swap_size(64 * MIB);
    let settings = match kept {
        Kept::File => settings,
        Kept::Encrypted => settings.encrypt(true),
        Kept::Pager => settings.store(Plain::new(64 << 20)),
    };
    let settings = match is_limited {
        false => settings,
        true => settings.serve_user_mode_only(),
    };
    let engine = settings.start()?;
    let mut region = engine.zeros(4 * MIB)?;
    keep_step(&mut region, 7, steps);
    let counted = engine.statistics()?;
    let what = format!("{policy}, {kept:?}, limited: {is_limited}: {counted:?}");
    assert!(counted.page_ins > 100 && counted.page_outs > 100, "{what}");
    assert!(counted.resident_bytes <= MIB, "{what}");
    Ok(())
}

/// Every policy with every store and every kind of faults.
fn check_all(steps: u32) {
    for policy in POLICIES {
        for kept in [Kept::File, Kept::Encrypted, Kept::Pager] {
            for is_limited in [false, true] {
                match check_contents((policy, kept, is_limited), steps) {
                    Ok(()) => {}
                    Err(error) if error.is_refusal() => return skip(&error.to_string()),
                    Err(error) => panic!("{policy}, {kept:?}, {is_limited}: {error}"),
                }
            }
        }
    }
}

#[test]
fn contents_are_those_of_a_plain_array_under_every_policy_in_every_store() {
    check_all(600);
}

#[test]
#[ignore = "takes an hour"]
fn the_same_at_length() {
    check_all(400_000);
}

#[test]
fn threads_that_fault_at_once_see_what_they_have_written() {
    let Some(engine) = engine(MIB, "tidemark") else {
        return;
    };
    let mut region = engine.zeros(8 * MIB).unwrap();
    let part = region.len() / 4;
    std::thread::scope(|scope| {
        for (seed, part) in (1..).zip(region.chunks_mut(part)) {
            scope.spawn(move || keep_step(part, seed, 1000));
        }
    });
}

#[test]
fn engines_of_one_process_do_not_meet() {
    let (Some(one), Some(other)) = (engine(MIB, "fifo"), engine(2 * MIB, "mach86")) else {
        return;
    };
    let (mut first, mut second) = (one.zeros(3 * MIB).unwrap(), other.zeros(6 * MIB).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| keep_step(&mut first, 3, 1000));
        scope.spawn(|| keep_step(&mut second, 4, 1000));
    });
    drop((one, first));
    keep_step(&mut second[..PAGE], 0, 0);
    assert_eq!(other.statistics().unwrap().region_bytes, 6 * MIB);
}

#[test]
fn what_the_process_has_beside_regions_counts_up_to_a_quarter() {
    let settings = || {
        let settings = Engine::builder().memory(16 * MIB).swap_size(64 * MIB);
        settings.swap_folder(&std::env::temp_dir()).count_process()
    };
    for settings in [settings(), settings().compress()] {
        let Some(engine) = start(settings) else {
            return;
        };
        // Of other tests of this process memory comes and goes meanwhile.
        let other = vec![1u8; 256 << 20];
        let Err(Error::TooLarge { left, .. }) = engine.zeros(1 << 40) else {
            panic!("more than there is room for");
        };
        let mut region = engine.zeros(left).expect("there is room");
        keep_step(&mut region, 11, 2000);
        let counted = || engine.statistics().expect("the engine is there");
        waits::until("a quarter is left to others", LIMIT, || {
            region[0] = 1;
            let counted = counted();
            counted.beside_bytes == 4 * MIB && counted.resident_bytes <= 12 * MIB
        });
        region.fill(7);
        assert!(region.iter().all(|&byte| byte == 7));
        assert!(other.iter().all(|&byte| byte == 1));
    }
}

/// One engine's pages are not memory beside another's regions.
#[test]
fn pages_of_other_engines_are_not_beside() {
    let name = "regions::the_same_in_a_process_of_its_own";
    let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
    program.args([name, "--exact", "--ignored", "--nocapture"]);
    let output = child::run(&mut program);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
#[ignore = "another test starts it, as nothing else may take memory meanwhile"]
fn the_same_in_a_process_of_its_own() {
    let settings = |memory: u64| {
        let settings = Engine::builder().memory(memory * MIB).swap_size(64 * MIB);
        settings.swap_folder(&std::env::temp_dir())
    };
    let (Some(first), Some(second)) = (
        start(settings(256).count_process()),
        start(settings(64).count_process()),
    ) else {
        return;
    };
    let fill = |engine: &Engine, mebibytes: u64| {
        let mut region = engine.zeros(mebibytes * MIB).expect("there is room");
        region.fill(1);
        region
    };
    let one = fill(&first, 160);
    let two = fill(&second, 80);
    let beside = |engine: &Engine, region: &Region| {
        assert!(region.iter().all(|&byte| byte == 1));
        engine.statistics().expect("it is there").beside_bytes
    };
    // Tables, and buffers of transfers.
    assert!(beside(&first, &one) < 16 * MIB && beside(&second, &two) < 14 * MIB);
    drop(one);
    let Some(third) = start(settings(64).count_process()) else {
        return;
    };
    let three = fill(&third, 80);
    assert!(beside(&third, &three) < 14 * MIB && beside(&second, &two) < 14 * MIB);
}

#[test]
fn system_calls_read_and_write_what_is_out() {
    let Some(engine) = engine(MIB, "tidemark") else {
        return;
    };
    let mut region = engine.zeros(4 * MIB).unwrap();
    for (index, number) in region.as_mut_slice_of::<u64>().iter_mut().enumerate() {
        *number = index as u64;
    }
    let path = std::env::temp_dir().join(format!("tidemark-regions-{}", std::process::id()));
    let mut file = std::fs::File::options();
    let mut file = file
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(&region).unwrap();
    region.clear().unwrap();
    assert!(region.iter().all(|byte| *byte == 0));
    file.rewind().unwrap();
    file.read_exact(&mut region).unwrap();
    let numbers = region.as_slice_of::<u64>().iter();
    assert!(numbers.zip(0..).all(|(number, index)| *number == index));
}

#[test]
fn what_is_dropped_leaves_room_and_what_is_too_large_is_refused() {
    let Some(engine) = engine(MIB, "tidemark") else {
        return;
    };
    for _ in 0..3 {
        let mut region = engine.zeros(60 * MIB).unwrap();
        region.fill(1);
        let refused = engine.zeros(60 * MIB).unwrap_err();
        let Error::TooLarge { bytes, left } = refused else {
            panic!("{refused}");
        };
        assert!(bytes == 60 * MIB && left < 6 * MIB);
        assert!(engine.zeros(left).is_ok());
    }
    assert_eq!(engine.statistics().unwrap().region_bytes, 0);
}

#[test]
fn blocks_of_a_heap_are_counted_with_the_regions() {
    let Some(engine) = engine(MIB, "tidemark") else {
        return;
    };
    let region = engine.zeros(20 * MIB).unwrap();
    let heap = engine.heap().unwrap();
    let mib = MIB as usize;
    let region_bytes = || engine.statistics().unwrap().region_bytes / MIB;
    let first = heap.take(30 * mib).unwrap();
    let second = heap.take(10 * mib - 1).unwrap();
    assert_eq!(first % PAGE, 0);
    assert_eq!(region_bytes(), 60);
    assert_eq!(heap.bytes_of(second), Some(10 * mib));
    assert!(matches!(heap.take(5 * mib), Err(Error::TooLarge { .. })));
    assert!(engine.zeros(5 * MIB).is_err());
    assert!(matches!(heap.take(0), Err(Error::Empty)));
    assert!(matches!(heap.take(usize::MAX), Err(Error::TooLarge { .. })));
    assert!(heap.stretch(second, 12 * mib) && !heap.stretch(second, 20 * mib));
    assert!(!heap.stretch(first, 31 * mib) && heap.stretch(first, 1));
    assert_eq!(region_bytes(), 62);
    assert!(heap.give(first) && !heap.give(first) && !heap.give(second + PAGE));
    assert!(!heap.give(region.address()) && !heap.give(0));
    assert_eq!(region_bytes(), 32);
    drop(heap);
    assert_eq!(region_bytes(), 20);
    assert!(engine.zeros(44 * MIB).is_ok());
}

#[test]
fn what_is_asked_for_ahead_is_read_without_a_fault() {
    let Some(engine) = engine(2 * MIB, "mach86") else {
        return;
    };
    let kept = engine.zeros(256 << 10).map(|mut region| {
        region.fill(5);
        region
    });
    let mut kept = kept.unwrap();
    let mut other = engine.zeros(4 * MIB).unwrap();
    other.fill(7);
    drop(other);
    let before = engine.statistics().unwrap();
    kept.prefetch(0..kept.len()).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while engine.statistics().unwrap().page_ins < before.page_ins + 64 {
        assert!(Instant::now() < end, "{:?}", engine.statistics());
        std::thread::yield_now();
    }
    assert!(kept.iter().all(|byte| *byte == 5));
    assert_eq!(engine.statistics().unwrap().page_ins, before.page_ins + 64);
    kept.advise(0..PAGE, Advice::Random).unwrap();
    kept.fill(6);
}

/// The program of [`a_page_that_is_lost_is_told_and_ends_the_program`].
#[test]
#[ignore = "a program of another test"]
fn loses_a_page() {
    let plan = std::env::var("TIDEMARK_TEST_FAULTS").unwrap();
    let settings = Engine::builder()
        .memory(MIB)
        .swap_size(64 * MIB)
        .faults(&plan);
    let engine = settings.swap_folder(&std::env::temp_dir()).start().unwrap();
    let mut region = engine.zeros(4 * MIB).unwrap();
    for turn in 1..4 {
        region.fill(turn);
        assert!(region.iter().all(|byte| *byte == turn));
    }
}

#[test]
fn a_page_that_is_lost_is_told_and_ends_the_program() {
    if engine(MIB, "tidemark").is_none() {
        return;
    }
    for (plan, told) in [
        ("read:3", "reading the swap file at byte"),
        ("flip:3", "what came back is not what was stored"),
        ("writes-from:20", "writing the swap file at byte"),
    ] {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args([
            "--ignored",
            "--exact",
            "regions::loses_a_page",
            "--nocapture",
        ]);
        program.env("TIDEMARK_TEST_FAULTS", plan);
        let output = child::run(&mut program);
        let text = String::from_utf8_lossy(&output.stderr);
        let signal = output.status.signal();
        assert_eq!(signal, Some(7), "{plan}: {text}");
        assert!(
            text.contains("can't be had") && text.contains(told),
            "{plan}: {text}"
        );
    }
}

#[test]
fn bad_arguments_name_themselves() {
    let start = |settings: tidemark_regions::Builder| settings.start().unwrap_err().to_string();
    let settings = Engine::builder;
    assert!(start(settings().memory(MEMORY_BYTES_LEAST - 1)).contains("`memory` is 262143"));
    assert!(start(settings().swap_size(u64::MAX)).contains("`swap_size` is 18446744073709551615"));
    assert!(start(settings().policy("opt")).contains("`opt` can run live"));
    assert!(start(settings().policy("nothing")).contains("`nothing` can run live"));
    let nowhere = std::path::Path::new("/nowhere/at/all");
    assert!(start(settings().swap_folder(nowhere)).contains("`/nowhere/at/all`"));
    let Some(engine) = engine(MIB, "tidemark") else {
        return;
    };
    let refused = |bytes| {
        engine
            .zeros(bytes)
            .map(|_: Region| ())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(0).contains("`bytes` is 0"));
    assert!(refused(u64::MAX).contains("`bytes` is 18446744073709551615"));
    let region = engine.zeros(10).unwrap();
    assert_eq!(region.len(), 10);
    let outside = region
        .advise(4..11, Advice::Normal)
        .unwrap_err()
        .to_string();
    assert!(outside.contains("`4..11` is not within a region of 10 bytes"));
}
