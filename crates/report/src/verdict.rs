//! The verdict in words: why a program misses, and what avoids that.

use tidemark_results::analysis::curve::CurveRecord;
use tidemark_results::analysis::verdict::{Cliff, Reasons};
use tidemark_results::text;

use crate::{numbers, words};

/// A sentence or two for each size of memory, and one about the cliff.
pub fn verdict(record: &CurveRecord) -> Vec<String> {
    let Some(verdict) = &record.verdict else {
        return vec![];
    };
    let sizes = verdict.sizes.iter().flat_map(|reasons| {
        let best = best(reasons);
        [Some(why(reasons)), best].into_iter().flatten()
    });
    // A cliff at the first page tells nothing.
    let steep = verdict.cliff.filter(|it| it.pages > 1);
    sizes.chain(steep.map(cliff)).collect()
}

/// The reasons for the misses in one size, the larger one first.
fn why(reasons: &Reasons) -> String {
    let size = text::bytes(reasons.bytes);
    let counts = format!(
        "of {} misses under LRU {} are first touches, {} the optimum has too, and {} are the \
         policy's",
        text::count(reasons.misses),
        text::count(reasons.first_touches),
        text::count(reasons.for_size),
        text::count(reasons.for_policy),
    );
    let (for_size, for_policy) = (reasons.for_size, reasons.for_policy);
    let lead = match for_size + for_policy {
        0 => return format!("In {size} only first touches miss: memory is large enough."),
        _ if for_policy > for_size => "the policy is at fault more than the size",
        _ => "memory is too small",
    };
    format!("In {size} {lead}: {counts}.")
}

/// The policy that helps most.
fn best(reasons: &Reasons) -> Option<String> {
    let best = reasons.best.as_ref().filter(|_| reasons.for_policy > 0)?;
    let name = words::policy(&best.policy);
    let misses = text::count(best.misses);
    let closed = reasons.gap_closed().filter(|closed| *closed > 0.0);
    Some(match closed {
        Some(closed) => format!(
            "Of the policies that can run live, {name} has the fewest there: {misses}, {} % of the \
             way from LRU to the optimum.",
            numbers::digits((closed * 100.0).round())
        ),
        None => format!(
            "No policy that can run live has fewer there than LRU; {name} comes next, with \
             {misses}."
        ),
    })
}

fn cliff(cliff: Cliff) -> String {
    let (size, pages) = (text::bytes(cliff.bytes), text::count(cliff.pages));
    match cliff.is_loop {
        true => format!(
            "The program walks in a loop of about {size} ({pages} pages): in less, LRU has little \
             use of memory."
        ),
        false => format!("From {size} on LRU has at least half of the optimum's hits."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_results::analysis::verdict::Best;

    fn reasons(for_size: u64, for_policy: u64, best: u64) -> Reasons {
        Reasons {
            pages: 256,
            bytes: 1 << 20,
            misses: 1000 + for_size + for_policy,
            first_touches: 1000,
            for_size,
            for_policy,
            best: Some(Best {
                policy: "mach86".into(),
                misses: best,
            }),
        }
    }

    #[test]
    fn the_larger_reason_leads() {
        let told = why(&reasons(500, 20, 0));
        assert_eq!(
            told,
            "In 1 MiB memory is too small: of 1,520 misses under LRU 1,000 are first touches, \
             500 the optimum has too, and 20 are the policy's."
        );
        assert!(why(&reasons(20, 500, 0)).contains("the policy is at fault"));
        assert!(why(&reasons(0, 0, 0)).contains("large enough"));
    }

    #[test]
    fn the_best_policy_is_told_with_the_part_it_avoids() {
        let told = best(&reasons(0, 400, 1100)).unwrap();
        assert!(
            told.contains("mach86 has the fewest there: 1,100, 75 %"),
            "{told}"
        );
        let told = best(&reasons(0, 400, 1500)).unwrap();
        assert!(told.starts_with("No policy"), "{told}");
        assert_eq!(best(&reasons(400, 0, 1400)), None);
    }
}
