//! Images of volumes as files: opening, saving, and what is said where that can't be done.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_supervisor::program::plain;
use tidemark_vmufat::{Civil, Error, Image, Name, Timestamp, Volume};

use crate::exit::{Exit, Refusal, refuse};
use crate::files;
use crate::traces::Input;

/// Opens the volume at `path`; `-` is standard input. Answers what it is called, too.
pub fn open(path: &Path) -> Result<(String, Volume<Image>), Refusal> {
    let (name, reader) = Input::open(path)?.metered();
    let mut bytes = vec![];
    let read = reader
        .take(Image::BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes);
    if let Err(error) = read {
        refuse!("`{name}`: {}", plain(&error));
    }
    let size = match bytes.len() {
        more if more > Image::BYTES_MAX => "is more than 32M long".to_owned(),
        bytes => format!("is {bytes} bytes long"),
    };
    let Some(image) = Image::new(bytes) else {
        refuse!("`{name}`: {size}; a volume has 256 to 65536 whole blocks of 512 bytes");
    };
    let volume = opened(path, Volume::mount(image))?;
    Ok((name, volume))
}

/// Opens the volume at `path`, to be [saved](save) there again.
pub fn open_for_change(path: &Path) -> Result<Volume<Image>, Refusal> {
    if path.as_os_str() == "-" {
        refuse!("`-`: a volume that is changed is a file; name one");
    }
    open(path).map(|(_, volume)| volume)
}

/// Puts a volume at `path`, in the place of what is there.
pub fn save(path: &Path, volume: Volume<Image>) -> Result<Exit, Refusal> {
    files::write(path, volume.into_device().bytes())?;
    Ok(Exit::Fine)
}

/// The result of an operation on the volume at `path`, or a refusal that says what to do.
pub fn opened<T>(path: &Path, result: Result<T, Error<Infallible>>) -> Result<T, Refusal> {
    result.map_err(|error| {
        let is_stdin = path.as_os_str() == "-";
        let path = path.display();
        let remedy = match error {
            _ if is_stdin => return Refusal::new(format!("`standard input`: {error}")),
            Error::Damaged(_) => format!("; `tidemark volume check --repair {path}` mends it"),
            Error::NoFile(_) => format!("; `tidemark volume ls {path}` lists its files"),
            Error::Full { .. } | Error::NoPlaceForGame { .. } | Error::DirectoryFull { .. } => {
                "; delete files of it, or make a larger one".into()
            }
            Error::Unformatted { .. } => {
                format!("; `tidemark volume make --force {path}` makes it one")
            }
            Error::Device(_) | Error::Size { .. } | Error::Layout(_) => String::new(),
        };
        Refusal::new(format!("`{path}`: {error}{remedy}"))
    })
}

/// The contents of a file that goes into a volume. Larger ones than any volume are not read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Refusal> {
    let name = path.display();
    let mut bytes = vec![];
    let read = File::open(path)
        .and_then(|file| file.take(Image::BYTES_MAX as u64).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() < Image::BYTES_MAX => Ok(bytes),
        Ok(_) => refuse!("`{name}`: is larger than any volume, which has at most 32M"),
        Err(error) => refuse!("`{name}`: {}; name a file that can be read", plain(&error)),
    }
}

/// The name that `text` spells, in which `\xNN` stands for any byte.
pub fn name_of(text: &str) -> Result<Name, Refusal> {
    Name::spelled(text).ok_or_else(|| {
        Refusal::new(format!(
            "`{text}`: is no name for a file; write 1 to 12 bytes of ASCII, without slashes or a \
             space at the end, or `\\xNN` for other bytes"
        ))
    })
}

/// The name that a file at `path` gets in a volume.
pub fn new_name(path: &Path) -> Result<Name, Refusal> {
    let text = path.file_name().unwrap_or_default().to_string_lossy();
    let name = text.is_ascii().then(|| Name::new(text.as_bytes()));
    name.flatten().ok_or_else(|| {
        Refusal::new(format!(
            "`{}`: names in volumes are 1 to 12 bytes of ASCII; give it one with `--name`",
            path.display()
        ))
    })
}

/// The time stamp of a date, or of now.
pub fn moment(date: Option<&str>) -> Result<Timestamp, Refusal> {
    let Some(text) = date else {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        return Ok(Timestamp::from_unix(
            since.map_or(0, |since| since.as_secs()),
        ));
    };
    let stamp = Civil::parse(text).and_then(Timestamp::new);
    stamp.ok_or_else(|| {
        Refusal::new(format!(
            "`--date {text}`: is no date; write it like `2026-11-25` or `2026-11-25T22:05:59`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_in_ascii_and_numbers() {
        assert_eq!(name_of("SAVE.1").unwrap().as_bytes(), b"SAVE.1");
        assert_eq!(name_of(r"\x83\x5C").unwrap().as_bytes(), b"\x83\x5c");
        // What is printed can be given again.
        let name = Name::new(b"a\\x\x83").unwrap();
        assert_eq!(name_of(&name.to_string()).unwrap(), name);
        for bad in ["", r"\x8", r"\x+1", r"\xé", "é", "a/b", "thirteen-long"] {
            assert!(name_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dates_are_of_the_calendar() {
        let stamp = moment(Some("2026-11-25T22:05:59")).unwrap();
        assert_eq!(stamp.0, [0x20, 0x26, 0x11, 0x25, 0x22, 5, 0x59, 2]);
        assert_eq!(moment(Some("1999-12-31")).unwrap().0[7], 4);
        for bad in [
            "",
            "2026",
            "2026-2-1",
            "2026-02-30",
            "2026-01-01T24:00:00",
            "2026-01-01T1:1",
        ] {
            assert!(moment(Some(bad)).is_err(), "{bad}");
        }
    }
}
