//! Compressed memory devices (zram), made and taken away again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel_swap;

/// The folder in which devices are made, by reading, and taken away, by writing a number.
const CONTROL: &str = "/sys/class/zram-control";

/// Makes a device and returns its number.
pub fn add() -> Result<u32, String> {
    let path = Path::new(CONTROL).join("hot_add");
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("the kernel has no zram ({}: {error})", path.display()))?;
    text.trim()
        .parse()
        .map_err(|_| format!("{} gave `{}`, no number", path.display(), text.trim()))
}

/// Gives the device room for `bytes` of pages.
pub fn set_size(number: u32, bytes: u64) -> Result<(), String> {
    let path = attribute(number, "disksize");
    fs::write(&path, bytes.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Turns the device off as swap and takes it away. One that is gone needs nothing.
pub fn remove(number: u32) -> Result<(), String> {
    let device = device(number);
    if !attribute(number, "disksize").exists() {
        return Ok(());
    }
    kernel_swap::turn_off(&device)?;
    let path = Path::new(CONTROL).join("hot_remove");
    fs::write(&path, number.to_string()).map_err(|error| format!("{}: {error}", device.display()))
}

/// The device's file.
pub fn device(number: u32) -> PathBuf {
    format!("/dev/zram{number}").into()
}

/// The memory the device takes for what it holds.
pub fn memory_bytes(number: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(attribute(number, "mm_stat")).ok()?)
}

/// The compressor the device uses.
pub fn compressor(number: u32) -> Option<String> {
    let text = fs::read_to_string(attribute(number, "comp_algorithm")).ok()?;
    parse_chosen(&text).map(str::to_owned)
}

fn attribute(number: u32, name: &str) -> PathBuf {
    Path::new("/sys/block")
        .join(format!("zram{number}"))
        .join(name)
}

/// The third number is all memory the device takes, the waste of its allocator included.
fn parse_memory(mm_stat: &str) -> Option<u64> {
    mm_stat.split_whitespace().nth(2)?.parse().ok()
}

/// The one in brackets of a list of choices.
fn parse_chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_says_of_itself_is_understood() {
        let mm_stat = "  4096  1024  16384  0  20480  1  0  0  0\n";
        assert_eq!(parse_memory(mm_stat), Some(16384));
        assert_eq!(parse_memory("1 2"), None);
        assert_eq!(parse_chosen("lzo [lzo-rle] zstd\n"), Some("lzo-rle"));
        assert_eq!(parse_chosen("lzo"), None);
    }
}
