//! Loading: the libraries that the dynamic linkers of a run load into programs.
//!
//! `LD_PRELOAD` is for all, and the linker of 32-bit programs complains, in their name, of a
//! library that is not for it. Where there is such a linker, the list leads through a folder for
//! each platform (`$PLATFORM`, which linkers replace by their own): to the library, or to an empty
//! one for 32-bit programs, which does nothing.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::folder::PrivateFolder;

/// The linker of 32-bit programs.
const LINKER_32: &str = "/lib/ld-linux.so.2";
/// The platform names that linkers of 64-bit programs use, by the processor.
const PLATFORMS: [&str; 3] = ["x86_64", "haswell", "xeon_phi"];
/// The platform names that linkers of 32-bit programs use.
const PLATFORMS_32: [&str; 4] = ["i386", "i486", "i586", "i686"];

/// The list that has `libraries` loaded, the first one first, and then `others`. What it takes for
/// 32-bit programs is put into `folder`.
pub fn list(folder: &PrivateFolder, libraries: &[PathBuf], others: Option<OsString>) -> OsString {
    let is_needed = cfg!(target_arch = "x86_64") && Path::new(LINKER_32).exists();
    let spread = is_needed
        .then(|| spread(folder.path(), libraries))
        .flatten();
    join(spread.as_deref().unwrap_or(libraries), others)
}

/// The list that has `libraries` loaded from where they are, and then `others`.
pub fn join(libraries: &[PathBuf], others: Option<OsString>) -> OsString {
    let all = libraries.iter().rev().cloned();
    let list = all.fold(others, |list, library| Some(preload(library, list)));
    list.unwrap_or_default()
}

/// The libraries to be loaded first: ours, then those that would have been.
pub fn preload(library: PathBuf, others: Option<OsString>) -> OsString {
    let mut list = library.into_os_string();
    if let Some(others) = others.filter(|others| !others.is_empty() && *others != list) {
        list.push(":");
        list.push(others);
    }
    list
}

/// Makes a folder for each platform, and answers where libraries are by the linker's own. `None` if
/// that can't be: 32-bit programs complain then, and that is all.
fn spread(folder: &Path, libraries: &[PathBuf]) -> Option<Vec<PathBuf>> {
    // The linker divides the list at these, and knows no quoting.
    if folder
        .to_string_lossy()
        .contains([' ', ':', '\t', '\n', '$'])
    {
        return None;
    }
    for platform in PLATFORMS.iter().chain(&PLATFORMS_32) {
        let place = folder.join(platform);
        std::fs::create_dir(&place).ok()?;
        std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).ok()?;
        for library in libraries {
            let file = place.join(library.file_name()?);
            if PLATFORMS_32.contains(platform) {
                std::fs::write(&file, empty_library()).ok()?;
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).ok()?;
            } else {
                symlink(library, &file).ok()?;
            }
        }
    }
    let spread = libraries.iter().map(|library| {
        let place = folder.join("$PLATFORM");
        Some(place.join(library.file_name()?))
    });
    spread.collect()
}

/// A 32-bit library with nothing in it but what a linker asks for: an ELF header, three program
/// headers (to load, dynamic, a stack that is not executable), a dynamic section, a symbol and a
/// string without a name. (System V ABI, Intel386 supplement.)
fn empty_library() -> Vec<u8> {
    const DYNAMIC: u32 = 0x98;
    const SYMBOLS: u32 = 0xc8;
    const STRINGS: u32 = 0xd8;
    const END: u32 = 0xd9;
    const READ_WRITE: u32 = 6;
    const STACK: u32 = 0x6474_e551;
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, halves: &[u16]| {
        halves
            .iter()
            .for_each(|half| file.extend(half.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, words: &[u32]| {
        words
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
    };
    // A shared object for the 386; its program headers follow at once.
    halves(&mut file, &[3, 3]);
    words(&mut file, &[1, 0, 52, 0, 0]);
    halves(&mut file, &[52, 32, 3, 0, 0, 0]);
    words(&mut file, &[1, 0, 0, 0, END, END, READ_WRITE, 4096]);
    let bytes = SYMBOLS - DYNAMIC;
    words(
        &mut file,
        &[2, DYNAMIC, DYNAMIC, DYNAMIC, bytes, bytes, READ_WRITE, 4],
    );
    words(&mut file, &[STACK, 0, 0, 0, 0, 0, READ_WRITE, 16]);
    file.resize(DYNAMIC as usize, 0);
    // Where strings and symbols are, and how large each is.
    words(
        &mut file,
        &[5, STRINGS, 6, SYMBOLS, 10, 1, 11, 16, 0, 0, 0, 0],
    );
    file.resize(END as usize, 0);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Obstacle, find_obstacle};

    #[test]
    fn our_library_comes_first_and_once() {
        let shim = PathBuf::from("/lib/shim.so");
        assert_eq!(preload(shim.clone(), None), "/lib/shim.so");
        assert_eq!(
            preload(shim.clone(), Some("/a.so:/b.so".into())),
            "/lib/shim.so:/a.so:/b.so"
        );
        assert_eq!(preload(shim, Some("/lib/shim.so".into())), "/lib/shim.so");
    }

    #[test]
    fn found_f10_each_linker_finds_a_library_for_it() {
        let folder = PrivateFolder::new().unwrap();
        let library = std::fs::canonicalize("/proc/self/exe").unwrap();
        let name = library.file_name().unwrap();
        let spread = spread(folder.path(), std::slice::from_ref(&library)).unwrap();
        assert_eq!(spread, [folder.path().join("$PLATFORM").join(name)]);
        let at = |platform| folder.path().join(platform).join(name);
        for platform in PLATFORMS {
            assert_eq!(std::fs::canonicalize(at(platform)).unwrap(), library);
        }
        for platform in PLATFORMS_32 {
            assert_eq!(find_obstacle(&at(platform)), Some(Obstacle::Foreign));
        }
    }

    #[test]
    fn found_f10_the_linker_of_this_machine_replaces_the_platform_by_one_of_those() {
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        let folder = PrivateFolder::new().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().last());
        let library = PathBuf::from(paths.find(|path| path.contains("/libc.so.6")).unwrap());
        let spread = spread(folder.path(), &[library]).unwrap();
        let output = std::process::Command::new("true")
            .env("LD_PRELOAD", &spread[0])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
    }
}
