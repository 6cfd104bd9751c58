//! Volumes for the kernel: VMUFAT, as `tidemark volume` makes and reads it.
//!
//! The same files give the same bytes: the volume has no times.

use std::path::{Path, PathBuf};

use tidemark_results::refusal::plain;
use tidemark_results::{Refusal, refuse};
use tidemark_vmufat::{
    BLOCK_BYTES, BLOCKS_MAX, BLOCKS_MIN, Copying, Error, Image, Kind, Layout, Name, NewFile,
    Timestamp, Volume,
};

/// The files of a volume that is to be made.
#[derive(Default)]
pub struct OnVolume(Vec<(Name, Vec<u8>)>);

impl OnVolume {
    /// The kernel's programs.
    pub fn of_programs() -> Result<OnVolume, Refusal> {
        let folder = tidemark_parts::KERNEL.find()?.join("programs");
        let unreadable = |error| Refusal::new(format!("`{}`: {}", folder.display(), plain(&error)));
        let entries = std::fs::read_dir(&folder).map_err(unreadable)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(unreadable)?;
        paths.sort();
        let mut files = OnVolume::default();
        paths.iter().try_for_each(|path| files.add_file(path))?;
        Ok(files)
    }

    /// Adds a file of the host under its own name.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Refusal> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name else {
            refuse!("`{}`: has no name; name a file", path.display());
        };
        self.add(&name, read(path)?)
    }

    /// Adds a file.
    pub fn add(&mut self, text: &str, contents: Vec<u8>) -> Result<(), Refusal> {
        let Some(name) = text
            .is_ascii()
            .then(|| Name::new(text.as_bytes()))
            .flatten()
        else {
            refuse!("`{text}`: names on a volume are 1 to 12 bytes of ASCII; rename the file");
        };
        if self.0.iter().any(|(other, _)| *other == name) {
            refuse!("`{text}`: two files of that name; name one of them otherwise");
        }
        self.0.push((name, contents));
        Ok(())
    }

    /// The smallest volume of 256, 512, … blocks that holds them.
    pub fn into_volume(self) -> Result<Vec<u8>, Refusal> {
        let mut blocks = BLOCKS_MIN;
        loop {
            match self.volume_of(blocks) {
                Ok(bytes) => return Ok(bytes),
                Err(_) if blocks < BLOCKS_MAX => blocks *= 2,
                Err(error) => refuse!(
                    "the volume, of {BLOCKS_MAX} blocks of {BLOCK_BYTES} bytes as the largest is, \
                     {error}; name fewer or smaller files"
                ),
            }
        }
    }

    fn volume_of(&self, blocks: u32) -> Result<Vec<u8>, Error<std::convert::Infallible>> {
        let size = Error::Size { blocks };
        let image = Image::zeroed(blocks).ok_or(size)?;
        let layout = Layout::new(blocks).ok_or(size)?.without_hidden();
        let mut volume = Volume::format(image, layout, Timestamp::default())?;
        for (name, contents) in &self.0 {
            let file = NewFile {
                name: *name,
                kind: Kind::Data,
                copying: Copying::Allowed,
                created: Timestamp::default(),
            };
            volume.write(&file, contents)?;
        }
        Ok(volume.into_device().into_bytes())
    }
}

/// Reads a file that is to be put on a volume.
pub fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
    }
}
