//! Volumes that are cut off: at every single write of every operation, and with the writes between
//! two settlings in other orders. Each volume that is left is repaired, and has the files from
//! before the operation or those from after it.

use std::collections::BTreeSet;

use crate::support::{
    Asked, Failed, Law, Laws, Recorder, WHEN, contents, damage, data, laws, made, name,
};
use tidemark_model::random::{Choices, SplitMix64};
use tidemark_vmufat::{BlockDevice, Error, Finding, Image, Kind, Layout, Name, NewFile, Volume};

/// A change that may fail.
type Attempt<'a> = &'a dyn Fn(&mut Volume<Recorder>) -> Result<(), Error<Failed>>;

/// Every image that may be left where a device is cut off while it is asked this: each number of
/// whole steps between settlings, and of the step after them the writes up to each of them, each
/// alone, all but each, and some at random.
fn cut_images(before: &Image, asked: &[Asked], random: &mut SplitMix64) -> Vec<Image> {
    let mut whole = before.clone();
    let mut images = vec![];
    for step in asked.split(|one| matches!(one, Asked::Settle)) {
        let count = step.len();
        let mut subsets: BTreeSet<Vec<bool>> = BTreeSet::new();
        for at in 0..count {
            subsets.insert((0..count).map(|index| index <= at).collect());
            subsets.insert((0..count).map(|index| index == at).collect());
            subsets.insert((0..count).map(|index| index != at).collect());
        }
        for _ in 0..count.min(3) {
            subsets.insert((0..count).map(|_| random.chance(1, 2)).collect());
        }
        for subset in subsets {
            let mut image = whole.clone();
            let made = step.iter().zip(subset).filter(|(_, is_made)| *is_made);
            made.for_each(|(one, _)| carry_out(&mut image, one));
            images.push(image);
        }
        step.iter().for_each(|one| carry_out(&mut whole, one));
    }
    images
}

fn carry_out(image: &mut Image, asked: &Asked) {
    if let Asked::Write(number, block) = asked {
        image.write(*number, block).unwrap();
    }
}

/// Checks one image that is left.
fn check_cut(image: Image, before: &Laws, after: &Laws, random: &mut SplitMix64) {
    let mut cut = Volume::mount(Recorder::new(image.clone())).unwrap();
    // Nothing but what the order of writes allows is found, and every file can be read at once.
    for finding in cut.findings() {
        let is_foreseen = matches!(finding, Finding::Doubled { .. } | Finding::Lost { .. });
        assert!(is_foreseen, "{finding}");
    }
    let found = laws(&mut cut);
    assert!(found == *before || found == *after);
    let was_sound = cut.findings().is_empty();
    assert_eq!(cut.repair().unwrap().is_empty(), was_sound);
    expect_sound(&mut cut, &found);
    let recorder = cut.into_device();
    let mut again = Volume::mount(recorder.image).unwrap();
    expect_sound(&mut again, &found);
    // A repair that is cut off, too, is made again.
    for image in cut_images(&image, &recorder.asked, random) {
        let mut cut = Volume::mount(image).unwrap();
        cut.repair().unwrap();
        expect_sound(&mut cut, &found);
    }
}

/// Checks that nothing is wrong with a volume that has these files, and that no block is lost.
fn expect_sound<D: BlockDevice<Error: std::fmt::Debug>>(volume: &mut Volume<D>, due: &Laws) {
    assert_eq!(volume.findings(), []);
    assert!(laws(volume) == *due);
    let used: usize = due.values().map(Law::blocks).sum();
    let free = u32::from(volume.layout().user_blocks()) - used as u32;
    assert_eq!(volume.free_blocks(), free);
}

/// Makes random changes to a volume, and cuts each off at every write.
fn check_history(layout: Layout, seed: u64, changes: usize, names: u64, blocks_max: u64) -> usize {
    let mut random = SplitMix64::new(seed);
    let image = made(layout).into_device();
    let mut volume = Volume::mount(Recorder::new(image)).unwrap();
    let mut files = Laws::new();
    let mut cuts = 0;
    for _ in 0..changes {
        let image = volume.device_mut().image.clone();
        volume.device_mut().asked.clear();
        let before = files.clone();
        change(&mut volume, &mut files, &mut random, names, blocks_max);
        let asked = volume.device_mut().asked.clone();
        for cut in cut_images(&image, &asked, &mut random) {
            check_cut(cut, &before, &files, &mut random);
            cuts += 1;
        }
    }
    cuts
}

/// Makes a change to a volume, and to the map of its files.
fn change(
    volume: &mut Volume<Recorder>,
    files: &mut Laws,
    random: &mut SplitMix64,
    names: u64,
    blocks_max: u64,
) {
    let name = name(&format!("F{}", random.below(names)));
    if random.chance(2, 5) {
        match volume.delete(&name) {
            Ok(()) => assert!(files.remove(&name).is_some()),
            Err(error) => assert_eq!(error, Error::NoFile(name)),
        }
        return;
    }
    let kind = match random.chance(1, 8) {
        true => Kind::Game,
        false => Kind::Data,
    };
    let file = NewFile {
        name,
        kind,
        ..data("X")
    };
    let bytes = contents(random.draw(), random.below(blocks_max * 512) as usize);
    if volume.write(&file, &bytes).is_ok() {
        files.insert(name, Law::new(file, &bytes));
    }
}

#[test]
fn a_card_cut_at_every_write_of_every_operation_loses_no_file() {
    let cuts = check_history(Layout::new(256).unwrap(), 11, 150, 12, 24);
    assert!(cuts > 1000, "{cuts}");
}

#[test]
fn a_volume_of_several_table_and_directory_blocks_cut_at_every_write_loses_no_file() {
    // So many small files that the directory has several blocks, and chains across table blocks.
    let cuts = check_history(Layout::new(700).unwrap(), 12, 150, 70, 12);
    assert!(cuts > 1000, "{cuts}");
}

#[test]
fn a_format_that_is_cut_off_leaves_no_volume_or_an_empty_one() {
    let mut old = made(Layout::new(256).unwrap());
    old.write(&data("OLD"), &contents(1, 5000)).unwrap();
    let old_files = laws(&mut old);
    let before = old.into_device();
    let mut device = Recorder::new(before.clone());
    let layout = Layout::new(256).unwrap().without_hidden();
    Volume::format(&mut device, layout, WHEN).unwrap();
    let images = cut_images(&before, &device.asked, &mut SplitMix64::new(13));
    assert!(images.len() > 30);
    for image in images {
        match Volume::mount(image) {
            // Nothing has been written yet.
            Ok(mut volume) if volume.layout().user_blocks() == 200 => {
                expect_sound(&mut volume, &old_files);
            }
            Ok(mut volume) => expect_sound(&mut volume, &Laws::new()),
            Err(error) => assert_eq!(error, Error::Unformatted { root: 255 }),
        }
    }
}

#[test]
fn a_repair_that_is_cut_off_comes_to_the_same_when_it_is_made_again() {
    let mut cuts = 0;
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut volume = made(Layout::new([256, 700][seed as usize % 2]).unwrap());
        for number in 0..40 {
            let bytes = contents(number, random.below(6000) as usize);
            let _ = volume.write(&data(&format!("F{number}")), &bytes);
        }
        let mut image = volume.into_device();
        damage(&mut image, &mut random);
        let Ok(mut volume) = Volume::mount(Recorder::new(image.clone())) else {
            continue;
        };
        volume.repair().unwrap();
        let asked = volume.device_mut().asked.clone();
        let due = sorted_contents(&mut volume);
        for image in cut_images(&image, &asked, &mut random) {
            let mut again = Volume::mount(image).unwrap();
            again.repair().unwrap();
            assert_eq!(again.findings(), []);
            assert!(sorted_contents(&mut again) == due);
            cuts += 1;
        }
    }
    assert!(cuts > 200, "{cuts}");
}

/// The contents of the files. Their names may differ where some had to be renamed.
fn sorted_contents<D: BlockDevice<Error: std::fmt::Debug>>(volume: &mut Volume<D>) -> Vec<Vec<u8>> {
    let mut all: Vec<_> = laws(volume).into_values().map(|law| law.contents).collect();
    all.sort();
    all
}

#[test]
fn a_device_that_fails_is_read_again_before_the_next_change() {
    let layout = Layout::new(600).unwrap();
    let mut random = SplitMix64::new(14);
    let mut volume = Volume::mount(Recorder::new(made(layout).into_device())).unwrap();
    let mut files = Laws::new();
    for _ in 0..60 {
        change(&mut volume, &mut files, &mut random, 60, 9);
    }
    let base = volume.into_device().image;
    let first = *files.keys().next().unwrap();
    let attempts: [Attempt<'_>; 3] = [
        &|volume| volume.write(&data("NEW"), &contents(1, 3000)),
        &|volume| {
            volume.write(
                &NewFile {
                    name: first,
                    ..data("X")
                },
                &contents(2, 2000),
            )
        },
        &|volume| volume.delete(&first),
    ];
    for attempt in attempts {
        let mut failures = 0;
        for writes_left in 0..100 {
            let mut device = Recorder::new(base.clone());
            device.writes_left = Some(writes_left);
            let mut volume = Volume::mount(device).unwrap();
            match attempt(&mut volume) {
                Ok(()) => break,
                Err(error) => assert_eq!(error, Error::Device(Failed)),
            }
            failures += 1;
            // What is in memory is what is there.
            let there = volume.device_mut().image.clone();
            let mut mounted = Volume::mount(there).unwrap();
            assert_eq!(volume.findings(), mounted.findings());
            let found = laws(&mut volume);
            assert!(found == laws(&mut mounted));
            // The device works again: the volume is mended, and the same can be done.
            volume.device_mut().writes_left = None;
            volume.repair().unwrap();
            let is_gone = volume.find(&first).is_none();
            match attempt(&mut volume) {
                Ok(()) => {}
                Err(error) => assert!(is_gone && error == Error::NoFile(first), "{error:?}"),
            }
            assert_eq!(volume.findings(), []);
        }
        assert!(failures >= 3, "{failures}");
    }
}

#[test]
fn a_file_in_place_of_another_needs_room_beside_it() {
    let mut volume = made(Layout::new(256).unwrap());
    let old = contents(1, 120 * 512);
    volume.write(&data("BIG"), &old).unwrap();
    let full = Error::Full {
        needed: 90,
        free: 80,
    };
    assert_eq!(
        volume.write(&data("BIG"), &contents(2, 90 * 512)),
        Err(full)
    );
    let big: Name = name("BIG");
    assert_eq!(volume.read(&big).unwrap(), old);
    volume.write(&data("BIG"), &contents(3, 80 * 512)).unwrap();
    assert_eq!(volume.read(&big).unwrap(), contents(3, 80 * 512));
    assert_eq!(volume.free_blocks(), 120);
}
