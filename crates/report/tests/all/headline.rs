//! The sentence at the head of a report: the memory that is needed, and the reason.

use tidemark_report::headline::headline;
use tidemark_results::analysis::report::ReportRecord;
use tidemark_results::analysis::verdict::{Cliff, Verdict};

use crate::sample;

fn told(change: impl Fn(&mut ReportRecord)) -> String {
    let mut record = sample::report();
    change(&mut record);
    headline(&record)
}

fn set_cliff(record: &mut ReportRecord, pages: u64, is_loop: bool) {
    let bytes = pages * 4096;
    record.curve.verdict = Some(Verdict {
        sizes: vec![],
        cliff: Some(Cliff {
            pages,
            bytes,
            is_loop,
        }),
    });
}

#[test]
fn a_loop_of_about_the_memory_that_is_needed_is_the_reason() {
    let told = told(|record| {
        set_cliff(record, 6_400, true);
        record.curve.run.as_mut().unwrap().slowdowns_percent_unmet = vec![];
    });
    assert_eq!(
        told,
        "It needs 27.7 MiB (85 % of its 32.8 MiB) under `tidemark run` to take at most 10 % \
         longer, because it walks in a loop of about 25 MiB."
    );
}

#[test]
fn a_cliff_that_is_no_loop_is_told_as_what_it_is() {
    let told = told(|record| set_cliff(record, 6_400, false));
    let reason = "because LRU has less than half of the optimum's hits in less than 25 MiB.";
    assert!(told.ends_with(reason), "{told}");
}

#[test]
fn without_a_cliff_near_the_need_the_working_set_is_the_reason() {
    let told = told(|record| set_cliff(record, 3, true));
    let reason = "because its working set is 15.2 MiB in the mean and 31.6 MiB at its peak, in a \
                  window of 100 M instructions.";
    assert!(told.ends_with(reason), "{told}");
}

#[test]
fn a_working_set_that_is_much_smaller_than_the_need_is_no_reason() {
    let told = told(|record| record.wss.windows.last_mut().unwrap().peak = 2_560);
    let reason = "because it comes back to pages after more than 100 M instructions, in which it \
                  uses 10 MiB at most.";
    assert!(told.ends_with(reason), "{told}");
}

#[test]
fn bounds_that_no_memory_keeps_are_told_and_the_first_that_is_kept() {
    let told_first = told(|_| {});
    assert!(
        told_first.contains("to take at most 10 % longer (no amount keeps 1 %)"),
        "{told_first}"
    );
    let told_none = told(|record| record.curve.run.as_mut().unwrap().needs.clear());
    assert_eq!(
        told_none,
        "It takes more than 1 % longer under `tidemark run` in any amount of memory."
    );
}

#[test]
fn where_the_least_memory_is_enough_no_reason_is_told() {
    let told = told(|record| {
        record.curve.run.as_mut().unwrap().needs[0].is_at_most = true;
    });
    assert!(told.starts_with("It needs at most 27.7 MiB"), "{told}");
    assert!(told.ends_with("its managed memory is 32.8 MiB."), "{told}");
}

#[test]
fn without_a_simulated_run_the_ideal_policy_answers() {
    let told_ideal = told(|record| record.curve.run = None);
    assert!(
        told_ideal.starts_with("It needs 27 MiB of 35.6 MiB under ideal LRU to take at most 1 %"),
        "{told_ideal}"
    );
    let told_nothing = told(|record| {
        record.curve.run = None;
        record.curve.needs.clear();
    });
    assert_eq!(told_nothing, "");
}
