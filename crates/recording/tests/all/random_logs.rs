//! Logs of random entries: whatever a damaged log holds, the trace keeps its invariants.

use std::sync::mpsc::sync_channel;

use proptest::collection::vec;
use proptest::prelude::*;
use tidemark_log::kind;
use tidemark_recording::{Process, Settings, Sink};

/// Words of an entry: mostly small, so that lengths, numbers and spans fit each other.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..32,
        2 => (1u64..64).prop_map(|page| page << 12),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn entry() -> impl Strategy<Value = Vec<u64>> {
    let kinds = kind::RUN..=kind::TOUCH_SHARE + 1;
    (kinds, 0u64..8, vec(word(), 0..12)).prop_map(|(kind, argument, words)| {
        let length = words.len() as u64 + 1;
        let head = u64::from(kind) << 56 | length << 32 | argument;
        [vec![head], words].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]

    #[test]
    fn random_entries_make_blocks_that_hold(
        entries in vec(prop_oneof![9 => entry(), 1 => vec(any::<u64>(), 1..4)], 1..60),
        quantum in proptest::option::of(1u64..2000),
        is_live in any::<bool>(),
        is_torn in any::<bool>(),
    ) {
        let words: Vec<[u8; 8]> = entries.concat().into_iter().map(u64::to_le_bytes).collect();
        let settings = Settings { page_shift: 12, quantum, is_live };
        let (finished, blocks) = sync_channel(4096);
        let mut process = Process::new(0, settings, Sink::new(finished));
        for part in words.chunks(64) {
            process.play(part, is_torn);
            process.finish_block();
            for block in blocks.try_iter() {
                prop_assert_eq!(block.check(), Ok(()));
            }
        }
        process.end(|| None);
        for block in blocks.try_iter() {
            prop_assert_eq!(block.check(), Ok(()));
        }
    }
}
