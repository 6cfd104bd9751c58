//! Any bytes as the root block, table and directory of a volume: no panic, no endless loop; what is
//! wrong is found, a repair leaves nothing to find, and every file that is left can be read and
//! deleted.
//!
//! The first byte chooses one of some sizes, and what the rest is written over, from the end of the
//! volume downwards: zeros, or a volume that has files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_vmufat::{Copying, Error, Image, Kind, Layout, Name, NewFile, Timestamp, Volume};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let blocks = [256, 512, 700, 4096][usize::from(choice >> 1 & 3)];
    let mut image = match choice & 1 {
        0 => vec![0; blocks as usize * 512],
        _ => filled(blocks),
    };
    let over = bytes.len().min(image.len());
    let start = image.len() - over;
    image[start..].copy_from_slice(&bytes[..over]);
    use_up(Image::new(image).expect("the sizes are those of volumes"));
});

/// The bytes of a volume that has files.
fn filled(blocks: u32) -> Vec<u8> {
    let layout = Layout::new(blocks).expect("the sizes are those of volumes");
    let image = Image::zeroed(blocks).expect("the sizes are those of volumes");
    let mut volume = Volume::format(image, layout, Timestamp::from_unix(0)).expect("it is memory");
    for number in 0..20 {
        let file = new_file(number);
        volume
            .write(&file, &vec![number; usize::from(number) * 200])
            .expect("there is room");
    }
    volume.into_device().bytes().to_vec()
}

fn new_file(number: u8) -> NewFile {
    NewFile {
        name: Name::new(&[b'A' + number]).expect("a letter is a name"),
        kind: match number {
            3 => Kind::Game,
            _ => Kind::Data,
        },
        copying: Copying::Allowed,
        created: Timestamp::from_unix(0),
    }
}

/// Does with a volume what can be done.
fn use_up(image: Image) {
    let Ok(mut volume) = Volume::mount(image) else {
        return;
    };
    let found = volume.findings().to_vec();
    for file in volume.files().collect::<Vec<_>>() {
        let read = volume.read(&file.name);
        assert!(matches!(read, Ok(_) | Err(Error::Damaged(_))));
    }
    assert_eq!(volume.repair(), Ok(found));
    let mut volume = Volume::mount(volume.into_device()).expect("it was one before");
    assert_eq!(volume.findings(), []);
    let written = volume.write(&new_file(1), &[1; 3000]);
    assert!(!matches!(written, Err(Error::Damaged(_))));
    for file in volume.files().collect::<Vec<_>>() {
        let bytes = volume.read(&file.name).expect("nothing is wrong with it");
        assert_eq!(bytes.len(), usize::from(file.blocks) * 512);
        volume.delete(&file.name).expect("it is there");
    }
    assert_eq!(volume.findings(), []);
}
