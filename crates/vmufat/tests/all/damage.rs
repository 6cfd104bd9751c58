//! Volumes that contradict themselves: each damage is found and named, no file that it does not
//! touch is harmed by a repair, and no bytes make this crate panic.

use crate::support::{self, Laws, contents, damage, data, laws, made, made_of, name};
use tidemark_model::random::{Choices, SplitMix64};
use tidemark_vmufat::{Error, Fault, Finding, Image, Kind, Layout, NewFile, Volume};

/// A card with the files A (3 blocks: 199, 198, 197), B (2: 196, 195), C (4: 194 to 191).
fn card() -> Vec<u8> {
    let mut volume = made_of(256);
    for (text, blocks) in [("A", 3), ("B", 2), ("C", 4)] {
        let bytes = contents(blocks as u64, blocks * 512);
        volume.write(&data(text), &bytes).unwrap();
    }
    volume.into_device().bytes().to_vec()
}

fn mount(bytes: &[u8]) -> Result<Volume<Image>, Error<std::convert::Infallible>> {
    Volume::mount(Image::new(bytes.to_vec()).unwrap())
}

fn set_word(bytes: &mut [u8], block: usize, word: u16) {
    bytes[254 * 512 + 2 * block..][..2].copy_from_slice(&word.to_le_bytes());
}

fn record(bytes: &mut [u8], slot: usize) -> &mut [u8] {
    &mut bytes[253 * 512 + 32 * slot..][..32]
}

/// Expects exactly these findings, in words; that nothing may be changed; that a file is readable
/// or not; and that a repair leaves a sound volume with these files and sizes.
fn expect(bytes: &[u8], told: &[&str], unreadable: &[&str], left: &[(&str, usize)]) {
    let mut volume = mount(bytes).unwrap();
    let found: Vec<String> = volume.findings().iter().map(ToString::to_string).collect();
    assert_eq!(found, told);
    let is_harmless = volume.findings().iter().all(Finding::is_harmless);
    let refusal = volume.write(&data("NEW"), b"x");
    assert_eq!(refusal.is_ok(), is_harmless);
    if let Err(error) = refusal {
        assert!(error.to_string().starts_with("is damaged: "), "{error}");
        assert_eq!(volume.delete(&name("A")), Err(error));
    } else {
        volume.delete(&name("NEW")).unwrap();
    }
    let whole = laws(&mut mount(&card()).unwrap());
    for text in ["A", "B", "C"] {
        let Some(file) = volume.find(&name(text)) else {
            continue;
        };
        match volume.read(&file.name) {
            Ok(contents) => assert_eq!(contents, whole[&file.name].contents),
            Err(Error::Damaged(Finding::Chain { .. })) => assert!(unreadable.contains(&text)),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(volume.repair().unwrap().len(), told.len());
    assert_eq!(volume.findings(), []);
    assert_eq!(volume.repair().unwrap(), []);
    let mut volume = Volume::mount(volume.into_device()).unwrap();
    assert_eq!(volume.findings(), []);
    let files = volume
        .files()
        .map(|file| (file.name.to_string(), file.blocks.into()));
    let files: Vec<(String, usize)> = files.collect();
    let due = left.iter().map(|&(text, blocks)| (text.to_owned(), blocks));
    assert_eq!(files, due.collect::<Vec<_>>());
    // What is left of a file is its beginning.
    for (found, law) in laws(&mut volume) {
        if let Some(whole) = whole.get(&found) {
            assert!(whole.contents.starts_with(&law.contents));
        }
    }
    volume.write(&data("NEW"), b"x").unwrap();
}

const ALL: [(&str, usize); 3] = [("A", 3), ("B", 2), ("C", 4)];

#[test]
fn nothing_is_wrong_with_a_sound_volume() {
    expect(&card(), &[], &[], &ALL);
}

#[test]
fn a_chain_that_comes_back_to_itself() {
    let mut bytes = card();
    set_word(&mut bytes, 191, 193);
    let told = "`C` (record 2) is good for 4 blocks, and then comes back to its own block 193";
    expect(&bytes, &[told], &["C"], &ALL);
    let mut bytes = card();
    set_word(&mut bytes, 194, 194);
    let told = [
        "`C` (record 2) is good for 1 blocks, and then comes back to its own block 194",
        "3 blocks are in use by no file, the first of them 191",
    ];
    expect(&bytes, &told, &["C"], &[("A", 3), ("B", 2), ("C", 1)]);
}

#[test]
fn files_that_share_blocks() {
    let mut bytes = card();
    set_word(&mut bytes, 196, 198);
    let told = [
        "`B` (record 1) is good for 1 blocks, and then leads to block 198, which is of the file of \
         record 0",
        "1 blocks are in use by no file, the first of them 195",
    ];
    expect(&bytes, &told, &["B"], &[("A", 3), ("B", 1), ("C", 4)]);
    // Two records with the same first block, which are not one record twice.
    let mut bytes = card();
    let first = record(&mut bytes, 0)[2..4].to_vec();
    record(&mut bytes, 2)[2..4].copy_from_slice(&first);
    let told = [
        "`C` (record 2) is good for 0 blocks, and then leads to block 199, which is of the file of \
         record 0",
        "4 blocks are in use by no file, the first of them 191",
    ];
    expect(&bytes, &told, &["C"], &[("A", 3), ("B", 2)]);
}

#[test]
fn chains_that_leave_the_blocks_for_files() {
    for (word, told) in [
        (241, "leads to block 241, which is none of those for files"),
        (
            0xfff0,
            "leads to block 65520, which is none of those for files",
        ),
        (
            0xffff,
            "leads to block 65535, which is none of those for files",
        ),
        (5, "leads to block 5, which is free"),
    ] {
        let mut bytes = card();
        set_word(&mut bytes, 198, word);
        // A block that is marked as damaged is none of the file's.
        let (good, left) = match word {
            0xffff => (1, "leads to block 198, which is marked as damaged"),
            _ => (2, told),
        };
        let told = [
            format!("`A` (record 0) is good for {good} blocks, and then {left}"),
            "1 blocks are in use by no file, the first of them 197".into(),
        ];
        let told = told.each_ref().map(String::as_str);
        expect(&bytes, &told, &["A"], &[("A", good), ("B", 2), ("C", 4)]);
    }
    let mut bytes = card();
    record(&mut bytes, 1)[2..4].copy_from_slice(&[0xfa, 0xff]);
    let told = [
        "`B` (record 1) is good for 0 blocks, and then leads to block 65530, which is none of \
         those for files",
        "2 blocks are in use by no file, the first of them 195",
    ];
    expect(&bytes, &told, &["B"], &[("A", 3), ("C", 4)]);
}

#[test]
fn sizes_that_are_not_those_of_chains() {
    for recorded in [0, 1, 5, 0xffff_u16] {
        let mut bytes = card();
        record(&mut bytes, 0)[0x18..0x1a].copy_from_slice(&recorded.to_le_bytes());
        let told = format!("`A` (record 0) has 3 blocks, and its record says {recorded}");
        expect(&bytes, &[&told], &["A"], &ALL);
    }
}

#[test]
fn blocks_that_nobody_has_and_words_of_the_volume_s_own() {
    let mut bytes = card();
    set_word(&mut bytes, 7, 9);
    set_word(&mut bytes, 9, 0xfffa);
    let lost = "2 blocks are in use by no file, the first of them 7";
    expect(&bytes, &[lost], &[], &ALL);
    let mut bytes = card();
    set_word(&mut bytes, 255, 0xfffc);
    set_word(&mut bytes, 245, 0);
    let told = [
        "block 245 is the volume's own, and the FAT has 0x0000 for it instead of 0x00f4",
        "block 255 is the volume's own, and the FAT has 0xfffc for it instead of 0xfffa",
    ];
    expect(&bytes, &told, &[], &ALL);
    // A damaged block is no fault, and is never used.
    let mut bytes = card();
    set_word(&mut bytes, 190, 0xffff);
    expect(&bytes, &[], &[], &ALL);
    let mut volume = mount(&bytes).unwrap();
    volume.write(&data("D"), &contents(1, 190 * 512)).unwrap();
    assert!(!volume.blocks_of(&name("D")).unwrap().contains(&190));
    assert_eq!(volume.free_blocks(), 0);
}

#[test]
fn records_that_are_none_of_a_file() {
    let mut bytes = card();
    record(&mut bytes, 1)[0] = 0x77;
    expect(
        &bytes,
        &["`B` (record 1) is of unknown kind 0x77"],
        &[],
        &ALL,
    );
    let mut bytes = card();
    record(&mut bytes, 1)[4..16].fill(0);
    let left = [("A", 3), ("FILE~2", 2), ("C", 4)];
    expect(&bytes, &["the file of record 1 has no name"], &[], &left);
    let mut bytes = card();
    record(&mut bytes, 2)[4] = b'A';
    let told = "two files are called `A`, in records 0 and 2";
    expect(&bytes, &[told], &[], &[("A", 3), ("B", 2), ("A~2", 4)]);
    let mut bytes = card();
    let twice = record(&mut bytes, 0).to_vec();
    record(&mut bytes, 5).copy_from_slice(&twice);
    let told = "`A` is recorded twice, in records 0 and 5";
    expect(&bytes, &[told], &[], &ALL);
}

#[test]
fn what_is_no_volume_is_said_to_be_none() {
    let told = |bytes: &[u8]| mount(bytes).unwrap_err().to_string();
    let mut bytes = card();
    bytes[255 * 512 + 15] = 0;
    assert_eq!(
        told(&bytes),
        "is no VMUFAT volume: its last block, 255, does not begin with 16 bytes 0x55"
    );
    let mut bytes = card();
    bytes[255 * 512 + 0x4a] = 254;
    assert_eq!(
        told(&bytes),
        "has a broken root block: the place of the directory is 254; needs 1 to 253"
    );
    let longer = [card(), vec![0; 512]].concat();
    assert!(told(&longer).contains("its last block, 256"));
    assert!(Image::new(vec![0; 255 * 512]).is_none());
    assert!(Image::new(vec![0; 256 * 512 + 1]).is_none());
}

/// Does to a volume what can be done, whatever it is.
fn use_up(image: Image) {
    let Ok(mut volume) = Volume::mount(image) else {
        return;
    };
    let names: Vec<_> = volume.files().map(|file| file.name).collect();
    for name in &names {
        let _ = volume.read(name);
    }
    let sound: Vec<_> = names
        .iter()
        .filter_map(|name| Some((*name, volume.read(name).ok()?)))
        .collect();
    let harmless = volume.findings().iter().all(Finding::is_harmless);
    let written = volume.write(&data("W"), b"w");
    assert_eq!(matches!(written, Err(Error::Damaged(_))), !harmless);
    let found = volume.findings().len();
    assert_eq!(volume.repair().unwrap().len(), found);
    assert_eq!(volume.findings(), []);
    let mut volume = Volume::mount(volume.into_device()).unwrap();
    assert_eq!(volume.findings(), []);
    // What could be read before still can be, except what was removed or renamed for its record.
    let files: Laws = laws(&mut volume);
    for (name, contents) in sound {
        if let Some(law) = files.get(&name).filter(|_| name != support::name("W")) {
            assert!(law.contents == contents);
        }
    }
    let _ = volume.write(&data("W"), &contents(3, 9000));
    for file in volume.files().collect::<Vec<_>>() {
        volume.delete(&file.name).unwrap();
    }
    assert_eq!(volume.findings(), []);
    assert_eq!(volume.files().count(), 0);
}

#[test]
fn no_damage_makes_a_panic_and_every_repair_is_whole() {
    for seed in 0..600 {
        let mut random = SplitMix64::new(seed);
        let layout = Layout::new([256, 512, 777][random.below(3) as usize]).unwrap();
        let mut volume = made(layout);
        for number in 0..random.below(40) {
            let file = NewFile {
                kind: match number {
                    0 => Kind::Game,
                    _ => Kind::Data,
                },
                ..data(&format!("F{number}"))
            };
            let _ = volume.write(&file, &contents(number, random.below(4000) as usize));
        }
        let mut image = volume.into_device();
        damage(&mut image, &mut random);
        use_up(image);
    }
}

#[test]
fn no_bytes_at_all_make_a_panic() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let layout = Layout::new(256 + random.below(400) as u32).unwrap();
        let image = made(layout).into_device();
        // Everything but the root block is noise.
        let root = usize::from(layout.root()) * 512;
        let mut bytes = contents(seed, image.bytes().len());
        bytes[root..].copy_from_slice(&image.bytes()[root..]);
        if random.chance(1, 2) {
            let at = root + 0x40 + random.below(24) as usize;
            bytes[at] = random.draw() as u8;
        }
        use_up(Image::new(bytes).unwrap());
    }
}

#[test]
fn a_fault_names_what_it_leads_to() {
    let mut bytes = card();
    set_word(&mut bytes, 191, 199);
    let volume = mount(&bytes).unwrap();
    let [Finding::Chain { fault, .. }] = volume.findings() else {
        panic!("{:?}", volume.findings());
    };
    let shared = Fault::Shared {
        block: 199,
        with: 0,
    };
    assert_eq!(*fault, shared);
}
