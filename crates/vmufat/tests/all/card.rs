//! A volume of 256 blocks is a card, byte for byte where cards are all alike.
//!
//! What is expected is written out here block by block, from published descriptions and images of
//! cards that consoles have formatted. Cards differ in colour, icon and date alone.

use crate::support::{WHEN, contents, data, made_of};
use tidemark_vmufat::{Copying, Kind, NewFile};

/// The root block from 0x40 on, of every card.
const PLACES: [u8; 24] = [
    0xff, 0x00, // the last block
    0x00, 0x00, // the partition
    0xff, 0x00, // the root block
    0xfe, 0x00, 0x01, 0x00, // the FAT and its size
    0xfd, 0x00, 0x0d, 0x00, // the directory and its size
    0x00, 0x00, // the icon
    0xc8, 0x00, // blocks for files
    0x1f, 0x00, // hidden blocks
    0x00, 0x00, 0x80, 0x00, // the place and size of a game
];

#[test]
fn a_volume_of_256_blocks_is_a_card_byte_for_byte() {
    let mut card = vec![0; 128 << 10];
    let root = &mut card[255 * 512..];
    root[..16].fill(0x55);
    root[0x30..0x38].copy_from_slice(&WHEN.0);
    root[0x40..0x58].copy_from_slice(&PLACES);
    for block in 0..256_usize {
        let word: u16 = match block {
            0..=240 => 0xfffc,
            241 | 254 | 255 => 0xfffa,
            _ => block as u16 - 1,
        };
        card[254 * 512 + 2 * block..][..2].copy_from_slice(&word.to_le_bytes());
    }
    let image = made_of(256).into_device();
    for (block, (is, due)) in image.bytes().chunks(512).zip(card.chunks(512)).enumerate() {
        assert_eq!(is, due, "block {block}");
    }
}

#[test]
fn files_lie_where_consoles_put_them() {
    let mut volume = made_of(256);
    let save = contents(1, 23 * 512);
    volume.write(&data("CRAZYTAXI_DC"), &save).unwrap();
    let game = NewFile {
        kind: Kind::Game,
        copying: Copying::Forbidden,
        ..data("MINIGAME.VMS")
    };
    volume.write(&game, &contents(2, 3 * 512)).unwrap();
    let image = volume.into_device();
    let bytes = image.bytes();
    // A save of 23 blocks is in 199 down to 177, as on the card of a console.
    let word = |block: usize| {
        let at = 254 * 512 + 2 * block;
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    };
    assert_eq!(word(177), 0xfffa);
    assert!((178..=199).all(|block| word(block) == block as u16 - 1));
    assert!((3..177).chain(200..241).all(|block| word(block) == 0xfffc));
    for (part, block) in save.chunks(512).zip((177..=199).rev()) {
        assert_eq!(part, &bytes[block * 512..][..512]);
    }
    // The game is in 0, 1, 2, and its header is in its second block.
    assert_eq!([word(0), word(1), word(2)], [1, 2, 0xfffa]);
    let mut record = *b"\x33\x00\xc7\x00CRAZYTAXI_DC--------\x17\x00\x00\x00\x00\x00\x00\x00";
    record[16..24].copy_from_slice(&WHEN.0);
    assert_eq!(&bytes[253 * 512..][..32], &record);
    let mut record = *b"\xcc\xff\x00\x00MINIGAME.VMS--------\x03\x00\x01\x00\x00\x00\x00\x00";
    record[16..24].copy_from_slice(&WHEN.0);
    assert_eq!(&bytes[253 * 512 + 32..][..32], &record);
}
