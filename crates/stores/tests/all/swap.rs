//! Pages of an engine on a server of Redis that is killed, started again, or far away.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use tidemark_regions::{Advice, Engine};
use tidemark_stores::swap;
use tidemark_testing::waits;

use crate::proxy::Proxy;
use crate::redis::{MIB, in_lockstep, settings, start};
use crate::server::Server;

const BYTES: usize = 4 * MIB as usize;
/// The longest time that a program may take.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_server_that_is_killed_and_started_again_gives_no_wrong_byte() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let store = swap(&server.url("swap"), 16 * MIB).unwrap();
    let Some(engine) = start(settings().store(store)) else {
        return;
    };
    let mut region = engine.zeros(BYTES as u64).unwrap();
    let mut plain = vec![0; BYTES];
    let (turns, told) = channel();
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut kills = 0;
            for turn in told {
                if turn % 500 == 250 {
                    server.kill();
                    kills += 1;
                    // Some calls meet that nothing listens.
                    std::thread::sleep(Duration::from_millis(20));
                    server.revive();
                }
            }
            kills
        });
        in_lockstep(&mut region, &mut plain, 2000, |turn| {
            turns.send(turn).unwrap()
        });
        drop(turns);
        assert_eq!(killer.join().unwrap(), 4);
    });
    assert!(*region == plain[..]);
    drop((region, engine));
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 0);
}

/// The program of the test below: swaps to a server that it is told, and waits before it reads.
#[test]
#[ignore = "a program of another test"]
fn swaps_and_reads_again() {
    let url = std::env::var("TIDEMARK_TEST_URL").unwrap();
    let settings = Engine::builder()
        .memory(MIB)
        .patience(Duration::from_millis(500));
    let engine = settings
        .store(swap(&url, 16 * MIB).unwrap())
        .start()
        .unwrap();
    let mut region = engine.zeros(BYTES as u64).unwrap();
    let numbers = region.as_mut_slice_of::<u64>();
    (1..)
        .zip(numbers.iter_mut())
        .for_each(|(number, place)| *place = number);
    println!("written");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for (number, place) in (1..).zip(numbers.iter()) {
        assert_eq!(number, *place, "a wrong byte");
    }
    println!("all is there");
}

/// The signal and the output of the program after something was done to its server.
fn run_and(url: &str, act: impl FnOnce()) -> (Option<i32>, String) {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--ignored",
        "--exact",
        "swap::swaps_and_reads_again",
        "--nocapture",
    ]);
    program.env("TIDEMARK_TEST_URL", url);
    program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("written") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    act();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let status = waits::for_end(&mut child, LIMIT);
    output.read_to_string(&mut text).unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (status.signal(), text)
}

#[test]
fn a_server_that_stays_away_or_has_lost_all_ends_the_program_with_one_clear_error() {
    let Some(mut server) = Server::start() else {
        return;
    };
    if start(settings()).is_none() {
        return;
    }
    let url = server.url("swap");
    let (signal, text) = run_and(&url, || {});
    assert!(signal.is_none() && text.contains("all is there"), "{text}");

    let (signal, text) = run_and(&url, || server.kill());
    assert_eq!(signal, Some(7), "{text}");
    let said = format!("the swap store `{url}`: ");
    assert!(
        text.contains(&said) && text.contains("tried again for 500ms"),
        "{text}"
    );
    assert!(!text.contains("a wrong byte"), "{text}");

    server.forget();
    server.revive();
    let (signal, text) = run_and(&url, || {
        server.kill();
        server.forget();
        server.revive();
    });
    assert_eq!(signal, Some(7), "{text}");
    assert!(
        text.contains("of the key `swap:") && text.contains("they are lost"),
        "{text}"
    );
    assert!(!text.contains("a wrong byte"), "{text}");
}

/// Prints the speed of walks over pages on a server that is a millisecond away.
#[test]
#[ignore = "a measurement: run it by itself"]
fn measure_throughput_at_a_distance() {
    let Some(server) = Server::start() else {
        return;
    };
    for delay_us in [0, 1000] {
        let proxy = Proxy::start(server.port, Duration::from_micros(delay_us));
        let url = format!("redis://127.0.0.1:{}/0/swap", proxy.port);
        let round_trip = round_trip(&format!("{url}-small"));
        for memory in [16 * MIB, 64 * MIB] {
            let settings = settings().memory(memory);
            let store = swap(&url, 6 * memory).unwrap();
            let Some(engine) = start(settings.store(store)) else {
                return;
            };
            let mut region = engine.zeros(4 * memory).unwrap();
            let numbers = region.as_mut_slice_of::<u64>();
            (1..)
                .zip(numbers.iter_mut())
                .for_each(|(number, place)| *place = number);
            // After this walk no page is modified.
            walk(&engine, &region);
            for advice in [Advice::Normal, Advice::Sequential] {
                region.advise(0..region.len(), advice).unwrap();
                let speed = walk(&engine, &region);
                let cluster = 256.0 * 1024.0 / round_trip.as_secs_f64();
                println!(
                    "delay {delay_us} us, round trip {round_trip:?}, memory {} MiB, {advice:?}: \
                     {:.0} MB/s, {:.2} of a cluster of 256 KiB each round trip",
                    memory / MIB,
                    speed / 1e6,
                    speed / cluster,
                );
            }
        }
    }
}

/// The time that the smallest call takes.
fn round_trip(url: &str) -> Duration {
    let small = swap(url, MIB).unwrap();
    small.write(0, &[1]).unwrap();
    let begun = Instant::now();
    for _ in 0..100 {
        small.read(0, &mut [0]).unwrap();
    }
    begun.elapsed() / 100
}

/// Walks over a region, and returns the bytes that came in each second.
fn walk(engine: &Engine, region: &[u8]) -> f64 {
    let before = engine.statistics().unwrap();
    let begun = Instant::now();
    let sum: u64 = region
        .iter()
        .step_by(4096)
        .map(|byte| u64::from(*byte))
        .sum();
    black_box(sum);
    let seconds = begun.elapsed().as_secs_f64();
    let pages = engine.statistics().unwrap().page_ins - before.page_ins;
    pages as f64 * 4096.0 / seconds
}
