use alloc::vec;

use super::*;

const TOTAL: u64 = 16_384;

/// The rule whose numbers stand here. What is not at intervals is the same for all rules.
const BY_PRESSURE: Divider = Divider {
    rule: Rule::Pressure,
    frames_min: FLOOR_FRAMES,
};

fn divide(total: u64, holders: &[Holder], occasion: Occasion) -> Division {
    BY_PRESSURE.divide(total, holders, occasion)
}

fn under(pressure: u64) -> Measures {
    Measures {
        pressure,
        ..Measures::default()
    }
}

/// A process at rest that uses `resident` of `given` frames.
fn settled(given: u64, resident: u64, pressure: u64) -> Holder {
    Holder {
        given,
        understood: given,
        resident,
        measures: under(pressure),
        asked: 0,
        is_served: false,
        most: ANY,
    }
}

/// One that has run short.
fn asking(given: u64, pressure: u64) -> Holder {
    Holder {
        asked: asks(given),
        ..settled(given, given, pressure)
    }
}

fn change(holders: &[Holder]) -> Vec<u64> {
    divide(TOTAL, holders, Occasion::Change).given
}

fn interval(holders: &[Holder]) -> Vec<u64> {
    divide(TOTAL, holders, Occasion::Interval).given
}

/// Lets engines obey: they understand, and give up or fill what they were told.
fn obey(holders: &mut [Holder], given: &[u64], wants: &[u64]) {
    for ((holder, &given), &want) in holders.iter_mut().zip(given).zip(wants) {
        holder.given = given;
        holder.understood = given;
        holder.resident = want.min(given);
        if holder.asked > 0 {
            holder.asked = asks(given);
        }
    }
}

fn held(holders: &[Holder]) -> u64 {
    holders.iter().map(Holder::held).sum()
}

#[test]
fn nobody_needs_nothing() {
    assert!(change(&[]).is_empty());
}

#[test]
fn one_process_gets_everything() {
    assert_eq!(change(&[Holder::NEW]), [TOTAL]);
    assert_eq!(change(&[asking(1000, 0)]), [TOTAL], "or again, if it asks");
    assert_eq!(change(&[settled(1000, 400, 9)]), [1000], "and not before");
}

#[test]
fn a_newcomer_gets_an_equal_share_of_what_another_does_not_use() {
    let division = divide(
        TOTAL,
        &[settled(TOTAL, 400, 0), Holder::NEW],
        Occasion::Change,
    );
    // The first still holds what it was given, until its engine has understood.
    assert_eq!(division.given, [400 + 50 + SLACK_FRAMES, 0]);
    assert!(!division.is_settled);
    let division = divide(
        TOTAL,
        &[settled(578, 400, 0), Holder::NEW],
        Occasion::Change,
    );
    assert_eq!(division.given, [578, TOTAL / 2]);
    assert!(division.is_settled);
}

#[test]
fn a_newcomer_gets_the_floor_of_what_others_use() {
    let mut holders = [settled(TOTAL, TOTAL, 0), Holder::NEW];
    for _ in 0..3 {
        let given = change(&holders);
        obey(&mut holders, &given, &[TOTAL, FLOOR_FRAMES]);
    }
    let given = holders.map(|holder| holder.given);
    assert_eq!(given, [TOTAL - FLOOR_FRAMES, FLOOR_FRAMES]);
}

#[test]
fn found_f9_a_newcomer_gets_what_it_asks_for_and_no_more_than_an_equal_share() {
    let newcomer = |asked| Holder {
        asked,
        ..Holder::NEW
    };
    let settled = settled(578, 400, 0);
    assert_eq!(
        change(&[settled, newcomer(FIRST_FRAMES)]),
        [578, FIRST_FRAMES]
    );
    assert_eq!(change(&[settled, newcomer(TOTAL)]), [578, TOTAL / 2]);
    assert_eq!(change(&[newcomer(FIRST_FRAMES)]), [TOTAL], "alone");
}

#[test]
fn found_f9_a_fork_takes_nothing_that_is_used() {
    let needed = needs_at_fork(300);
    assert_eq!(left_at_fork(TOTAL, 300), Some((TOTAL - needed) / 2));
    let kept_for_forks = Some(FORKS_AHEAD * needed);
    assert_eq!(left_at_fork(10 * needed, 300), kept_for_forks);
    for resident in [0, 300, 5000, 7000] {
        match left_at_fork(TOTAL, resident) {
            Some(left) => {
                assert!(left >= resident && left >= FLOOR_FRAMES);
                assert!(!is_short(left, resident) && !is_short(needs_at_fork(resident), resident));
                assert!(left + needs_at_fork(resident) <= TOTAL);
                assert_eq!(takes(needs_at_fork(resident), resident), 0);
            }
            None => assert!(2 * resident + resident / 2 + resident / 8 + 384 > TOTAL),
        }
    }
    assert_eq!(left_at_fork(TOTAL, TOTAL / 2), None);
}

#[test]
fn found_f9_what_nobody_has_is_taken_before_it_is_short() {
    assert_eq!(takes(3000, 2000), 0);
    assert_eq!(takes(3000, 2001), 3000);
    assert!(!is_short(3000, 2001));
}

#[test]
fn an_equal_share_is_one_that_is_used() {
    let fair = 4096;
    assert!(
        !uses_share(1000, fair),
        "what it had unused may have gone to others"
    );
    assert!(uses_share(fair - fair / 16 - SLACK_FRAMES, fair));
}

#[test]
fn who_asks_gets_as_much_again_of_what_is_free() {
    let mut holders = [settled(578, 400, 0), asking(FLOOR_FRAMES, 0)];
    let mut sizes = vec![];
    while sizes.last() != Some(&holders[1].given) {
        sizes.push(holders[1].given);
        let given = change(&holders);
        obey(&mut holders, &given, &[400, TOTAL]);
    }
    assert_eq!(sizes[..4], [256, 512, 1024, 2048]);
    assert_eq!(holders[1].given, TOTAL - 578, "{sizes:?}");
}

#[test]
fn what_is_unused_goes_at_once_to_who_asks() {
    let mut holders = [settled(12_000, 400, 0), asking(4384, 0)];
    let division = divide(TOTAL, &holders, Occasion::Change);
    assert_eq!(division.given, [578, 4384]);
    assert!(!division.is_settled);
    obey(&mut holders, &division.given, &[400, TOTAL]);
    holders[1].asked = asks(4384);
    assert_eq!(change(&holders), [578, 8768]);
}

#[test]
fn who_keeps_what_it_uses_and_a_little_is_not_short() {
    for resident in [0, 100, 5000, TOTAL] {
        let holder = settled(2 * TOTAL, resident, 0);
        let kept = holder.given - holder.unused(FLOOR_FRAMES);
        assert!(!is_short(kept, resident), "{resident}");
    }
    assert!(is_short(1000, 900) && !is_short(1000, 850));
}

#[test]
fn what_was_taken_is_said_to_be_free_once_and_a_shortage_while_pages_come() {
    let mut voice = Voice::default();
    assert_eq!(voice.news(1000, 100, 100), News::default());
    let short = News {
        asks: Some(2000),
        has_given_up: false,
    };
    assert_eq!(voice.news(1000, 950, 950), short);
    assert_eq!(voice.news(1000, 950, 950), News::default(), "none has come");
    assert_eq!(voice.news(1000, 950, 951), short);
    voice.note_given(1000, 900);
    assert_eq!(voice.news(900, 950, 951), News::default());
    let free = News {
        asks: None,
        has_given_up: true,
    };
    assert_eq!(voice.news(900, 899, 951), free);
    assert_eq!(voice.news(900, 899, 951), News::default());
}

#[test]
fn a_newcomer_waits_for_frames_that_are_still_in_use() {
    let slow = Holder {
        given: TOTAL - FLOOR_FRAMES,
        understood: TOTAL - 100,
        resident: TOTAL - 200,
        measures: under(9),
        asked: TOTAL,
        is_served: false,
        most: ANY,
    };
    let division = divide(TOTAL, &[slow, Holder::NEW], Occasion::Change);
    assert_eq!(division.given, [TOTAL - FLOOR_FRAMES, 100]);
    assert!(!division.is_settled);
}

#[test]
fn who_has_less_than_an_equal_share_takes_from_who_has_more() {
    let given = change(&[asking(TOTAL - 1000, 500), asking(1000, 0)]);
    assert_eq!(given[0], TOTAL - 2000);
    let given = change(&[asking(TOTAL / 2 + 100, 500), asking(TOTAL / 2 - 100, 0)]);
    assert_eq!(given[0], TOTAL / 2, "and no more than that");
    let served = Holder {
        is_served: true,
        ..asking(1000, 0)
    };
    let given = change(&[asking(TOTAL - 1000, 500), served]);
    assert_eq!(given, [TOTAL - 1000, 1000], "unless it had one");
    let given = change(&[
        settled(TOTAL - 1000, TOTAL - 1000, 0),
        settled(1000, 1000, 9),
    ]);
    assert_eq!(given, [TOTAL - 1000, 1000], "if it asks");
}

#[test]
fn used_memory_of_a_quiet_process_goes_slowly() {
    let holders = [settled(8192, 8192, 0), asking(8192, 500)];
    assert_eq!(change(&holders), [8192; 2], "at intervals only");
    let given = interval(&holders);
    assert_eq!(given[0], 8192 - (8192 - FLOOR_FRAMES) / 16);
}

#[test]
fn equal_pressure_changes_nothing() {
    let holders = [asking(4096, 500); 4];
    assert_eq!(interval(&holders), [4096; 4]);
}

#[test]
fn nobody_falls_below_the_floor() {
    let mut holders = [settled(8192, 8192, 0), asking(8192, 500)];
    for _ in 0..1000 {
        let given = interval(&holders);
        obey(&mut holders, &given, &[TOTAL, TOTAL]);
    }
    assert_eq!(
        holders[0].given,
        FLOOR_FRAMES + 15,
        "a sixteenth of less than 16 is nothing"
    );
}

#[test]
fn with_more_processes_than_floors_all_get_the_same() {
    let given = divide(FLOOR_FRAMES * 2, &[Holder::NEW; 8], Occasion::Change).given;
    assert_eq!(given, [FLOOR_FRAMES / 4; 8]);
}

#[test]
fn nothing_is_taken_while_there_is_something_left() {
    let holders = [settled(3000, 100, 0), asking(4000, 9)];
    assert_eq!(interval(&holders), [3000, 8000]);
}

#[test]
fn the_sum_never_exceeds_the_total_whatever_happens() {
    // A fixed sequence of pseudo-random numbers (Knuth's MMIX generator).
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut holders: Vec<Holder> = vec![];
    for step in 0..20_000 {
        match random(20) {
            0 if holders.len() < 40 => holders.push(Holder::NEW),
            1 if !holders.is_empty() => {
                holders.remove(random(holders.len() as u64) as usize);
            }
            _ => {}
        }
        let occasion = match random(2) {
            0 => Occasion::Change,
            _ => Occasion::Interval,
        };
        let divider = Divider {
            rule: Rule::ALL[random(6) as usize],
            frames_min: random(3) * 1000,
        };
        let given = divider.divide(TOTAL, &holders, occasion).given;
        for (holder, given) in holders.iter_mut().zip(given) {
            holder.given = given;
        }
        assert!(held(&holders) <= TOTAL, "step {step}: {holders:?}");
        let floor = FLOOR_FRAMES.min(TOTAL / holders.len().max(1) as u64);
        let is_asked = |holder: &Holder| holder.given >= floor || holder.given >= holder.understood;
        assert!(holders.iter().all(is_asked), "step {step}: {holders:?}");
        for holder in &mut holders {
            holder.measures = Measures {
                pressure: random(3) * random(1000),
                page_ins: random(2) * random(500),
                frequency: random(2) * random(50_000),
                size: random(2 * TOTAL),
                demand: [None, Some(random(TOTAL))][random(2) as usize],
                is_idle: random(4) == 0,
            };
            holder.asked = random(2) * random(2 * TOTAL);
            holder.is_served |= random(5) == 0;
            // An engine may be slow to understand, and slower to give up frames.
            if random(3) > 0 {
                holder.understood = holder.given;
            }
            let most = holder.understood;
            holder.resident = if random(2) == 0 {
                holder.resident
            } else {
                random(most + 1)
            };
        }
    }
}

#[test]
fn a_total_that_falls_is_kept_as_soon_as_all_have_given_up_and_rises_again() {
    let mut holders: Vec<Holder> = [9000, 5000, 1500, 884]
        .map(|given| asking(given, given / 10))
        .into();
    let wants = [20_000; 4];
    for total in [TOTAL / 2, TOTAL / 4, 1024, 256, TOTAL / 3, TOTAL] {
        for turn in 0..200 {
            let occasion = match turn % 4 {
                0 => Occasion::Interval,
                _ => Occasion::Change,
            };
            let division = divide(total, &holders, occasion);
            let sum: u64 = division.given.iter().sum();
            assert!(sum <= total, "{sum} of {total}: {division:?}");
            let left = unassigned(total, &holders, &division.given);
            assert!(left + sum <= total, "{left} and {sum} of {total}");
            obey(&mut holders, &division.given, &wants);
        }
        assert!(held(&holders) <= total, "{holders:?}");
        let least = holders.iter().map(|holder| holder.given).min().unwrap();
        assert!(least >= FLOOR_FRAMES.min(total / 4), "{holders:?}");
        assert!(held(&holders) >= total / 2, "{total}: {holders:?}");
    }
}

#[test]
fn what_is_to_be_out_gets_no_more_than_it_may_have_and_is_owed_nothing() {
    let out = |resident: u64, most| Holder {
        asked: TOTAL,
        most,
        ..settled(resident, resident, 50)
    };
    // It still has half of memory, and what it gives up is the other's.
    let division = divide(
        TOTAL,
        &[out(TOTAL / 2, TOTAL / 2), asking(TOTAL / 4, 0)],
        Occasion::Change,
    );
    assert_eq!(division.given, [TOTAL / 2, TOTAL / 2]);
    assert_eq!(division.fair, TOTAL / 2, "shares are of what is left");
    let holders = [
        out(TOTAL / 2, 64),
        asking(TOTAL / 4, 9),
        asking(TOTAL / 4, 9),
    ];
    let division = divide(TOTAL, &holders, Occasion::Interval);
    assert_eq!(division.given[0], 64);
    assert_eq!(division.fair, (TOTAL - 64) / 2);
    assert_eq!(
        unassigned(TOTAL, &holders, &division.given),
        0,
        "not free yet"
    );
    // Nothing is left of it to be moved.
    assert_eq!(interval(&[out(64, 64), asking(TOTAL - 64, 9)])[0], 64);
}

#[test]
fn a_forked_child_is_let_in_late_with_few_frames_and_never_turned_away_while_all_can_have_them() {
    use Admission::{Admitted, TurnedAway, Waits};
    let division = divide(
        TOTAL,
        &[settled(TOTAL, TOTAL, 0), Holder::NEW],
        Occasion::Change,
    );
    let (floor, late) = (division.floor, ADMISSION_NS + 1);
    assert!(floor > FRAMES_MIN && division.fair >= FRAMES_MIN);
    let answers = |is_forked| {
        let asked = [
            (floor, 0),
            (floor - 1, 0),
            (FRAMES_MIN, late),
            (FRAMES_MIN - 1, late),
        ];
        asked.map(|(frames, waited_ns)| division.admission(frames, waited_ns, is_forked))
    };
    assert_eq!(answers(true), [Admitted, Waits, Admitted, Waits]);
    assert_eq!(answers(false), [Admitted, Waits, TurnedAway, TurnedAway]);
    let crowded = divide(FRAMES_MIN, &[Holder::NEW; 2], Occasion::Change);
    assert_eq!(crowded.admission(FRAMES_MIN, 0, true), TurnedAway);
}
