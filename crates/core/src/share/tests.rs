use super::*;

const TOTAL: u64 = 16_384;

/// A process at rest that uses `resident` of `given` frames.
fn settled(given: u64, resident: u64, pressure: u64) -> Holder {
    Holder {
        given,
        understood: given,
        resident,
        pressure,
    }
}

/// Lets engines obey: they understand, and give up or fill what they were told.
fn obey(holders: &mut [Holder], given: &[u64], wants: &[u64]) {
    for ((holder, &given), &want) in holders.iter_mut().zip(given).zip(wants) {
        holder.given = given;
        holder.understood = given;
        holder.resident = want.min(given);
    }
}

fn held(holders: &[Holder]) -> u64 {
    holders.iter().map(Holder::held).sum()
}

#[test]
fn nobody_needs_nothing() {
    assert!(divide(TOTAL, &[]).is_empty());
}

#[test]
fn one_process_gets_everything() {
    assert_eq!(divide(TOTAL, &[Holder::NEW]), [TOTAL]);
}

#[test]
fn a_newcomer_gets_an_equal_share_of_what_an_idle_process_does_not_use() {
    let given = divide(TOTAL, &[settled(TOTAL, 400, 0), Holder::NEW]);
    // The first still holds what it was given, until its engine has understood.
    assert_eq!(given, [TOTAL / 2, 0]);
    let given = divide(TOTAL, &[settled(TOTAL / 2, 400, 0), Holder::NEW]);
    assert_eq!(given, [TOTAL / 2, TOTAL / 2]);
}

#[test]
fn a_newcomer_waits_for_frames_that_are_still_in_use() {
    let slow = Holder {
        given: TOTAL,
        understood: TOTAL / 2,
        resident: TOTAL - 1000,
        pressure: 9,
    };
    let given = divide(
        TOTAL,
        &[
            Holder {
                given: TOTAL / 2,
                ..slow
            },
            Holder::NEW,
        ],
    );
    assert_eq!(given[1], 1000);
}

#[test]
fn what_one_leaves_goes_to_the_others() {
    let given = divide(TOTAL, &[settled(1000, 1000, 0), settled(1000, 900, 0)]);
    assert_eq!(given, [TOTAL / 2, TOTAL / 2]);
}

#[test]
fn idle_memory_goes_to_the_one_that_pages() {
    let mut holders = [settled(8192, 400, 0), settled(8192, 8192, 500)];
    let given = divide(TOTAL, &holders);
    assert_eq!(given[0], 400 + 50 + 64);
    assert_eq!(given[1], 8192, "not before the first has understood");
    obey(&mut holders, &given, &[400, TOTAL]);
    let given = divide(TOTAL, &holders);
    assert!(given[1] > TOTAL - 600, "{given:?}");
}

#[test]
fn used_memory_of_a_quiet_process_goes_slowly() {
    let holders = [settled(8192, 8192, 0), settled(8192, 8192, 500)];
    let given = divide(TOTAL, &holders);
    assert_eq!(given[0], 8192 - (8192 - FLOOR_FRAMES) / 16);
}

#[test]
fn equal_pressure_changes_nothing() {
    let holders = [settled(4096, 4096, 500); 4];
    assert_eq!(divide(TOTAL, &holders), [4096; 4]);
}

#[test]
fn nobody_falls_below_the_floor() {
    let mut holders = [settled(8192, 8192, 0), settled(8192, 8192, 500)];
    for _ in 0..1000 {
        let given = divide(TOTAL, &holders);
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
    let given = divide(FLOOR_FRAMES * 2, &[Holder::NEW; 8]);
    assert_eq!(given, [FLOOR_FRAMES / 4; 8]);
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
        let given = divide(TOTAL, &holders);
        for (holder, given) in holders.iter_mut().zip(given) {
            holder.given = given;
        }
        assert!(held(&holders) <= TOTAL, "step {step}: {holders:?}");
        for holder in &mut holders {
            holder.pressure = random(3) * random(1000);
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
