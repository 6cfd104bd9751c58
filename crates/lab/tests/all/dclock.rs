//! DCLOCK against the published miss counts: exact references, no bits.

use tidemark_lab::analysis::references::References;
use tidemark_lab::analysis::simulate::{Job, MachineKind, simulate_all};
use tidemark_model::traces;

#[test]
fn dclock_misses_as_often_as_was_published() {
    let rows = [
        (500, [15000, 10050, 155067, 1880, 16000, 147132]),
        (667, [15000, 10050, 152635, 2166, 16000, 140642]),
    ];
    for (active, expected) in rows {
        let counted = traces::golden().map(|trace| {
            let references = References::from_pages(trace.pages.iter().copied());
            let job = Job {
                policy: "dclock",
                knobs: vec![("active", active)],
                seed: 1,
                frames: trace.frames,
                eyes: MachineKind::Bits,
            };
            simulate_all(&references, &[job]).expect("it is known")[0].misses
        });
        assert_eq!(counted, expected, "{active}");
    }
}
