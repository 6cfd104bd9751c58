use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::sys::socket;
use crate::sys::testing::skip;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// Lets a thread that does not exist fault so often, so far apart, every `away`th time on another
/// processor. Answers the time of the last fault.
fn fault(place: &mut Place, from: Time, (count, apart_ns): (u64, u64), away: u64) -> Time {
    let mut gauges = Gauges::new();
    for number in 0..count {
        let now = from.after_ns(number * apart_ns);
        place.note_fault(0);
        if place.series.is_none() {
            place.count.samples += 1;
            place.count.away += u32::from(number % away == 0);
        }
        place.keep_near(0, now, &mut gauges);
    }
    from.after_ns(count * apart_ns)
}

fn place() -> Place {
    Place::new(None, None)
}

#[test]
fn threads_that_fault_elsewhere_are_confined_after_a_window() {
    let mut place = place();
    fault(&mut place, Time(1000 * MS), (130, 50 * US), 2);
    assert!(place.series.is_some());
}

#[test]
fn threads_that_fault_here_or_seldom_are_let_be() {
    let mut place = place();
    fault(&mut place, Time(1000 * MS), (500, 50 * US), 10);
    assert!(place.series.is_none());
    fault(&mut place, Time(2000 * MS), (500, 300 * US), 1);
    assert!(place.series.is_none());
}

#[test]
fn series_grow_while_they_pay_and_are_rare_where_they_do_not() {
    let mut place = place();
    let mut now = Time(1000 * MS);
    for _ in 0..8 {
        let apart_ns = if place.series.is_some() { 20 } else { 60 } * US;
        now = fault(&mut place, now, (1, apart_ns), 1);
        while place.series.is_none() {
            now = fault(&mut place, now, (1, 60 * US), 1);
        }
        while place.series.is_some() {
            now = fault(&mut place, now, (1, 20 * US), 1);
        }
    }
    assert_eq!(place.series_ns, SERIES_NS_MOST);
    // Together is no better: the pauses grow, and the series are short.
    let end = now.after_ns(10_000 * MS);
    let mut series = 0;
    while now < end {
        let was = place.series.is_some();
        now = fault(&mut place, now, (1, 60 * US), 1);
        series += u32::from(was && place.series.is_none());
    }
    assert_eq!(place.series_ns, SERIES_NS_LEAST);
    assert!((5..20).contains(&series), "{series} series in ten seconds");
}

#[test]
fn a_series_ends_without_faults() {
    let mut place = place();
    let now = fault(&mut place, Time(1000 * MS), (130, 50 * US), 2);
    let due = place.due().expect("there is a series");
    place.follow(&Ranges::new(), now, &mut Gauges::new());
    assert!(place.series.is_some());
    place.follow(&Ranges::new(), due, &mut Gauges::new());
    assert!(place.series.is_none());
}

#[test]
fn who_is_confined_and_what_it_starts_may_go_anywhere_afterwards() {
    let allowed = thread::allowed().unwrap();
    let cpus: Vec<u32> = (0..64)
        .filter(|cpu| allowed.is_set(*cpu as usize))
        .collect();
    let [_, .., last] = cpus[..] else {
        return skip("a second processor");
    };
    let (ours, theirs) = socket::pair().unwrap();
    let (sender, receiver) = channel();
    let sleeper = std::thread::spawn(move || {
        sender.send(thread::current()).unwrap();
        rustix::io::read(&theirs, &mut [0; 1]).unwrap();
        let child = std::thread::spawn(move || {
            sender.send(thread::current()).unwrap();
            rustix::io::read(&theirs, &mut [0; 1]).unwrap();
        });
        child.join().unwrap();
    });
    let patience = Duration::from_secs(10);
    let number = receiver.recv_timeout(patience).unwrap();
    let mut threads = Vec::new();
    thread::collect_threads(&mut threads).unwrap();
    let mut series = Series {
        processor: last,
        free_ns: 0,
        confined: Vec::new(),
        threads,
    };
    series.confine(number);
    assert_eq!(thread::allowed_to(number).ok(), thread::only(last));
    socket::send(&ours, b"!", &[]).unwrap();
    let child = receiver.recv_timeout(patience).unwrap();
    assert_eq!(thread::allowed_to(child).ok(), thread::only(last));
    series.release();
    assert_eq!(thread::allowed_to(number).ok(), Some(allowed));
    assert_eq!(thread::allowed_to(child).ok(), Some(allowed));
    socket::send(&ours, b"!", &[]).unwrap();
    sleeper.join().unwrap();
}
