//! The parts that the tests of volumes share: a device that can be cut off, and the law of files.

#![allow(dead_code)]

use std::collections::BTreeMap;

use tidemark_model::random::{Choices, SplitMix64};
use tidemark_vmufat::{
    Block, BlockDevice, Copying, Image, Kind, Layout, Name, NewFile, Timestamp, Volume,
};

/// A moment for everything that needs one.
pub const WHEN: Timestamp = Timestamp([0x20, 0x26, 0x11, 0x25, 0x22, 0x05, 0x59, 2]);

/// The requests to a device.
#[derive(Clone, Debug)]
pub enum Asked {
    /// To write a block.
    Write(u16, Box<Block>),
    /// To have all before on the device.
    Settle,
}

/// An image that remembers what was written to it, and may fail.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The contents.
    pub image: Image,
    /// The requests since this was last emptied.
    pub asked: Vec<Asked>,
    /// Writes until it fails, from then on for good.
    pub writes_left: Option<usize>,
}

/// The device has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

impl Recorder {
    /// A device with this image.
    pub fn new(image: Image) -> Recorder {
        Recorder {
            image,
            asked: vec![],
            writes_left: None,
        }
    }
}

impl BlockDevice for Recorder {
    type Error = Failed;

    fn blocks(&self) -> u32 {
        self.image.blocks()
    }

    fn read(&mut self, number: u16, block: &mut Block) -> Result<(), Failed> {
        self.image
            .read(number, block)
            .map_err(|never| match never {})
    }

    fn write(&mut self, number: u16, block: &Block) -> Result<(), Failed> {
        if let Some(left) = &mut self.writes_left {
            *left = left.checked_sub(1).ok_or(Failed)?;
        }
        self.asked.push(Asked::Write(number, Box::new(*block)));
        self.image
            .write(number, block)
            .map_err(|never| match never {})
    }

    fn settle(&mut self) -> Result<(), Failed> {
        self.asked.push(Asked::Settle);
        Ok(())
    }
}

/// A volume without files.
pub fn made(layout: Layout) -> Volume<Image> {
    let image = Image::zeroed(layout.blocks()).unwrap();
    Volume::format(image, layout, WHEN).unwrap()
}

/// A volume of so many blocks, without files.
pub fn made_of(blocks: u32) -> Volume<Image> {
    made(Layout::new(blocks).unwrap())
}

/// A name of ASCII.
pub fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

/// A file of data.
pub fn data(text: &str) -> NewFile {
    NewFile {
        name: name(text),
        kind: Kind::Data,
        copying: Copying::Allowed,
        created: WHEN,
    }
}

/// Bytes that differ between files, and between the blocks of one.
pub fn contents(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let mut all = Vec::with_capacity(bytes + 8);
    while all.len() < bytes {
        all.extend(random.draw().to_le_bytes());
    }
    all.truncate(bytes);
    all
}

/// The expected state of a file, wherever it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law {
    /// The file that was asked for.
    pub file: NewFile,
    /// The contents, with zeros up to whole blocks.
    pub contents: Vec<u8>,
}

impl Law {
    /// The law of a file that is written.
    pub fn new(file: NewFile, contents: &[u8]) -> Law {
        let mut contents = contents.to_vec();
        contents.resize(contents.len().div_ceil(512).max(1) * 512, 0);
        Law { file, contents }
    }

    /// The blocks of the file.
    pub fn blocks(&self) -> usize {
        self.contents.len() / 512
    }
}

/// All files of a volume by their names.
pub type Laws = BTreeMap<Name, Law>;

/// The expected state of a volume.
pub fn laws<D: BlockDevice>(volume: &mut Volume<D>) -> Laws
where
    D::Error: std::fmt::Debug,
{
    let files: Vec<_> = volume.files().collect();
    let laws = files.into_iter().map(|file| {
        let contents = volume.read(&file.name).unwrap();
        assert_eq!(contents.len(), usize::from(file.blocks) * 512);
        let file = NewFile {
            name: file.name,
            kind: file.kind,
            copying: file.copying,
            created: file.created,
        };
        (file.name, Law { file, contents })
    });
    laws.collect()
}

/// Writes words at random into the table, the directory and perhaps the root block of a volume.
pub fn damage(image: &mut Image, random: &mut SplitMix64) {
    let layout = Layout::new(image.blocks()).unwrap();
    let system = layout.root() - layout.directory_first() + 1;
    for _ in 0..random.below(30) {
        let number = match random.chance(1, 2) {
            true => layout.directory_first() + random.below(system.into()) as u16,
            // The first records, and the table.
            false => layout.directory_last() + random.below(3) as u16,
        };
        let mut block = [0; 512];
        image.read(number, &mut block).unwrap();
        let at = random.below(256) as usize * 2;
        let word = match random.below(4) {
            0 => random.draw() as u16,
            1 => [0xfffa, 0xfffc, 0xffff, 0][random.below(4) as usize],
            _ => random.below(layout.blocks().into()) as u16,
        };
        block[at..at + 2].copy_from_slice(&word.to_le_bytes());
        image.write(number, &block).unwrap();
    }
}
