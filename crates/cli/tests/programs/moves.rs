//! Ranges of several mappings are moved by one call, as natively.

use super::built;

#[test]
fn found_a10_a_range_of_several_mappings_moves_whole() {
    let source = include_str!("moves.c");
    for way in ["advice", "rights", "code"] {
        built::compare(&format!("moves-{way}"), source, &[way]);
    }
}
