//! Volumes for the kernel: tape archives (POSIX `ustar`), which any `tar` reads as well.
//!
//! The same files give the same bytes: names and contents stand there, neither owners nor times.

use std::path::{Path, PathBuf};

use tidemark_results::refusal::plain;
use tidemark_results::{Refusal, refuse};

/// Archives are made of blocks of this size, as disks are of sectors.
const BLOCK_BYTES: usize = 512;
/// The kernel reads pages: the disk ends with one, behind the archive's own end of two blocks.
const PAGE_BYTES: usize = 4096;
/// The longest name that a header holds.
const NAME_BYTES_MAX: usize = 99;

/// A volume that is being made.
pub struct Image {
    names: Vec<String>,
    bytes: Vec<u8>,
}

impl Image {
    /// A volume with the kernel's programs.
    pub fn with_programs() -> Result<Image, Refusal> {
        let folder = find_boot_folder()?.join("programs");
        let unreadable = |error| Refusal::new(format!("`{}`: {}", folder.display(), plain(&error)));
        let entries = std::fs::read_dir(&folder).map_err(unreadable)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(unreadable)?;
        paths.sort();
        let mut image = Image {
            names: vec![],
            bytes: vec![],
        };
        paths.iter().try_for_each(|path| image.add_file(path))?;
        Ok(image)
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
    pub fn add(&mut self, name: &str, contents: Vec<u8>) -> Result<(), Refusal> {
        if name.len() > NAME_BYTES_MAX {
            refuse!("`{name}`: a name on the volume has at most {NAME_BYTES_MAX} bytes");
        }
        if self.names.iter().any(|other| other == name) {
            refuse!("`{name}`: two files of that name; name one of them otherwise");
        }
        self.names.push(name.into());
        self.bytes.extend_from_slice(&header(name, contents.len()));
        self.bytes.extend_from_slice(&contents);
        self.bytes
            .resize(self.bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        Ok(())
    }

    /// The volume, whole.
    pub fn into_bytes(mut self) -> Vec<u8> {
        let end = self.bytes.len() + 2 * BLOCK_BYTES + PAGE_BYTES;
        self.bytes.resize(end.next_multiple_of(PAGE_BYTES), 0);
        self.bytes
    }
}

/// A header of the archive, with the sum over its bytes.
fn header(name: &str, bytes: usize) -> [u8; BLOCK_BYTES] {
    let mut header = [0; BLOCK_BYTES];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, name);
    put(100, "0000755");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{bytes:011o}"));
    put(136, "00000000000");
    // The sum is taken with blanks in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Reads a file that is to be put on a volume.
pub fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) => refuse!("`{}`: {}", path.display(), plain(&error)),
    }
}

/// The folder of the kernel and its programs: `$TIDEMARK_KERNEL`, or beside the command, or in the
/// folder in which both were built, or where they are installed.
pub fn find_boot_folder() -> Result<PathBuf, Refusal> {
    let mut places = vec![];
    if let Some(path) = std::env::var_os("TIDEMARK_KERNEL") {
        places.push(PathBuf::from(path));
    } else if let Ok(command) = std::env::current_exe()
        && let Some(folder) = command.parent()
    {
        places.push(folder.join("../kernel/boot"));
        places.push(folder.join("../lib/tidemark/kernel"));
    }
    match places.iter().find(|place| place.join("kernel").is_file()) {
        Some(place) => Ok(place.clone()),
        None => {
            let places = places.iter().map(|place| format!("`{}`", place.display()));
            let places: Vec<String> = places.collect();
            let places = places.join(" or ");
            refuse!("the kernel is not in {places}; build it with `make kernel`")
        }
    }
}
