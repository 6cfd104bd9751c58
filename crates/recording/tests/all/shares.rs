//! Memory of which a share was touched.

use std::sync::mpsc::sync_channel;

use tidemark_log::kind;
use tidemark_recording::{Process, Settings, Sink};

fn entry(kind: u8, argument: u64, words: &[u64]) -> Vec<u64> {
    let head = u64::from(kind) << 56 | (words.len() as u64 + 1) << 32 | argument;
    [&[head], words].concat()
}

/// The pages on record in each of two windows, of 1,000 pages of which so many in 256 were touched.
fn pages_of(share: u64) -> [Vec<u64>; 2] {
    let (finished, blocks) = sync_channel(16);
    let settings = Settings {
        page_shift: 12,
        quantum: None,
        is_live: true,
    };
    let mut process = Process::new(0, settings, Sink::new(finished));
    [100, 200].map(|time| {
        let touched = entry(kind::TOUCH_SHARE, share, &[1 << 32, 1000 << 12]);
        // What has a record already has no other in the window.
        let again = entry(kind::TOUCH, 4, &[1 << 32]);
        let clock = entry(kind::CLOCK, 0, &[time]);
        let entries = [again, clock, touched, entry(kind::WINDOW, 0, &[])].concat();
        let words: Vec<[u8; 8]> = entries.into_iter().map(u64::to_le_bytes).collect();
        process.play(&words, false);
        process.finish_block();
        blocks.try_iter().flat_map(|block| block.pages).collect()
    })
}

#[test]
fn a_share_of_the_pages_has_records_and_it_is_the_same_ones_each_time() {
    let [first, second] = pages_of(64);
    assert!((200..300).contains(&first.len()), "{}", first.len());
    assert_eq!(first, second);
    let [all, _] = pages_of(256);
    assert_eq!(all, (1 << 20..(1 << 20) + 1000).collect::<Vec<u64>>());
    assert!(first.iter().all(|page| all.contains(page)));
}
