//! Mappings, the stack, and the memory that the kernel touches.

use std::collections::BTreeMap;

use tidemark_trace::{Event, Kinds, MappingEvent, Memory, Rights};

use crate::recording::Process;
use crate::support::Folder;
use crate::tool::{compile, recorded, recorder};

#[test]
fn what_the_kernel_writes_and_reads_for_a_call_counts() {
    const SOURCE: &str = r#"
        #include <fcntl.h>
        #include <unistd.h>
        #include <sys/mman.h>
        #include "tidemark.h"
        int main(void) {
            char *area = mmap(0, 1000 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
            TIDEMARK_MARK("read");
            if (read(zero, area, 1000 * 4096) != 1000 * 4096) return 1;
            TIDEMARK_MARK("write");
            if (write(null, area, 500 * 4096) != 500 * 4096) return 2;
            TIDEMARK_MARK("end");
            return 0;
        }
    "#;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("kernel");
    let program = compile(&folder, "calls", SOURCE, &[]);
    for mode in ["--exact", "--quantum=1000"] {
        let (_, recording) = recorded(&folder, recorder, &[mode, &program]);
        let process = recording.only();
        let stored = process.pages(Kinds::KERNEL.with(Kinds::STORE)).len();
        assert!((1000..1020).contains(&stored), "{stored} pages read into");
        let loaded = process.pages(Kinds::KERNEL.with(Kinds::LOAD)).len();
        assert!((500..530).contains(&loaded), "{loaded} pages written from");
    }
}

#[test]
fn the_stack_grows_before_it_is_used() {
    const SOURCE: &str = r"
        #include <string.h>
        __attribute__((noinline)) static int deep(int level) {
            volatile char frame[3000];
            frame[0] = level;
            return level == 0 ? frame[0] : deep(level - 1) + frame[0];
        }
        int main(void) { return deep(300) == 1; }
    ";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("stack");
    let program = compile(&folder, "deep", SOURCE, &[]);
    let (_, recording) = recorded(&folder, recorder, &["--exact", &program]);
    let process = recording.only();
    let mut low = None;
    for (_, _, event) in &process.events {
        match event {
            Event::Mapping(MappingEvent::Map { memory, start, .. }) if *memory == Memory::Stack => {
                low = Some(*start)
            }
            Event::Mapping(MappingEvent::StackGrowth { start, pages }) => {
                assert_eq!(Some(start + pages), low);
                low = Some(*start);
            }
            _ => {}
        }
    }
    let grown: u64 = process
        .events
        .iter()
        .map(|(.., event)| match event {
            Event::Mapping(MappingEvent::StackGrowth { pages, .. }) => *pages,
            _ => 0,
        })
        .sum();
    assert!(
        (215..260).contains(&grown),
        "{grown} pages for 300 frames of 3000 bytes"
    );
}

#[test]
fn found_h6_what_the_c_library_maps_for_itself_is_told_from_what_the_program_maps() {
    const SOURCE: &str = r"
        #include <stdlib.h>
        #include <sys/mman.h>
        int main(void) {
            *(volatile char *)malloc(700 << 12) = 1;
            return mmap(0, 800 << 12, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
        }
    ";
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("inner");
    let program = compile(&folder, "maps", SOURCE, &[]);
    let (_, recording) = recorded(&folder, recorder, &[&program]);
    let events = recording.only().events.iter();
    let maps = events.filter_map(|(.., event)| match event {
        Event::Mapping(MappingEvent::Map { pages, memory, .. }) if *pages >= 700 => {
            Some((*pages, memory))
        }
        _ => None,
    });
    let maps: Vec<(u64, &Memory)> = maps.filter(|(_, memory)| memory.file().is_none()).collect();
    assert_eq!(maps, [(701, &Memory::Inner), (800, &Memory::Anonymous)]);
}

/// A program that churns mappings and then prints what the kernel says it has. Its events give
/// the same: the same ranges, rights, sharing, files and offsets.
#[test]
fn mappings_are_those_the_kernel_lists() {
    const SOURCE: &str = r#"
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        #include <sys/mman.h>
        #define PAGE 4096L
        int main(int count, char **arguments) {
            char *kept[40] = {0};
            unsigned seed = 7;
            int self = open(arguments[0], O_RDONLY);
            for (int round = 0; round < 4000; round++) {
                seed = seed * 1103515245 + 12345;
                int at = seed / 65536 % 40, what = seed / 1024 % 6;
                if (!kept[at]) {
                    int shared = what & 1 ? MAP_SHARED : MAP_PRIVATE;
                    kept[at] = what < 4
                        ? mmap(0, 8 * PAGE, 3, shared | MAP_ANONYMOUS, -1, 0)
                        : mmap(0, 8 * PAGE, 1, shared, self, PAGE);
                    continue;
                }
                switch (what) {
                case 0: munmap(kept[at] + 2 * PAGE, 3 * PAGE); munmap(kept[at], 8 * PAGE);
                        kept[at] = 0; break;
                case 1: mprotect(kept[at] + PAGE, 2 * PAGE, 1); break;
                case 2: mprotect(kept[at] + PAGE, 2 * PAGE, 0); break;
                case 3: { char *moved = mremap(kept[at], PAGE, 9 * PAGE, MREMAP_MAYMOVE);
                          munmap(kept[at] + PAGE, 7 * PAGE);
                          if (moved != MAP_FAILED) munmap(moved + 8 * PAGE, PAGE), kept[at] = moved;
                          break; }
                case 4: mmap(kept[at] + 4 * PAGE, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                             -1, 0); break;
                default: munmap(kept[at], 8 * PAGE); kept[at] = 0; break;
                }
            }
            char buffer[65536];
            int maps = open("/proc/self/maps", O_RDONLY);
            for (long got; (got = read(maps, buffer, sizeof buffer)) > 0;)
                if (write(1, buffer, got) != got) return 1;
            return 0;
        }
    "#;
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("maps");
    let program = compile(&folder, "churns", SOURCE, &[]);
    let (output, recording) = recorded(&folder, recorder, &[&program]);
    let process = recording.only();
    let listed = listed_pages(&String::from_utf8(output.stdout).unwrap());
    let told = told_pages(process);
    // The heap and the stack are Valgrind's to lay out; what it lists of them is checked elsewhere.
    for (page, mapping) in &listed {
        assert_eq!(told.get(page), Some(mapping), "page {page:#x}");
    }
    let more: Vec<_> = told
        .keys()
        .filter(|page| !listed.contains_key(page))
        .collect();
    assert!(more.is_empty(), "not there: {more:x?}");
    assert!(listed.len() > 500);
}

/// Rights, whether it is shared, and the file with the offset of the page.
type Mapping = (Rights, bool, Option<(String, u64)>);

/// The pages in a list of mappings, as Valgrind gives it to programs, each with what is there.
fn listed_pages(text: &str) -> BTreeMap<u64, Mapping> {
    let mut pages = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = words[0].split_once('-').unwrap();
        let file = words.get(5).copied().unwrap_or("");
        let rights = words[1]
            .bytes()
            .zip([Rights::READ, Rights::WRITE, Rights::EXECUTE]);
        let rights = rights
            .filter(|&(byte, _)| byte != b'-')
            .fold(0, |all, (_, it)| all | it.0);
        let range = number(start) >> 12..number(end) >> 12;
        // What is Valgrind's own, or the kernel's, is not the program's.
        let is_foreign = file.contains("tidemark-amd64-linux") || file.starts_with("[v");
        if is_foreign || is_of_valgrind(range.start) {
            continue;
        }
        for (index, page) in range.enumerate() {
            let offset = number(words[2]) + 4096 * index as u64;
            let is_file = file.starts_with('/') && !file.starts_with("/dev/zero");
            let file = is_file.then(|| (file.to_string(), offset));
            pages.insert(page, (Rights(rights), words[1].ends_with('s'), file));
        }
    }
    pages
}

/// The memory of Valgrind itself: the tool's image, and from 64 GiB up; and the stack.
fn is_of_valgrind(page: u64) -> bool {
    (0x58000..0x5a000).contains(&page) || page >= 0x10_0000_0000 >> 12
}

/// The pages that a process's events say are mapped.
fn told_pages(process: &Process) -> BTreeMap<u64, Mapping> {
    let mut pages: BTreeMap<u64, Mapping> = BTreeMap::new();
    for (_, _, event) in &process.events {
        match event {
            Event::Mapping(MappingEvent::Map {
                start,
                pages: count,
                rights,
                is_shared,
                memory,
                offset,
            }) => {
                for index in 0..*count {
                    let offset = offset + 4096 * index;
                    let file = memory.file().map(|file| (file.to_owned(), offset));
                    pages.insert(start + index, (*rights, *is_shared, file));
                }
            }
            Event::Mapping(MappingEvent::Unmap {
                start,
                pages: count,
            }) => pages.retain(|page, _| !(*start..start + count).contains(page)),
            Event::Mapping(MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            }) => {
                let moved: Vec<Mapping> = (*from..from + from_pages)
                    .filter_map(|page| pages.remove(&page))
                    .collect();
                for index in 0..*to_pages {
                    let mut mapping = moved[0].clone();
                    if let Some((_, offset)) = &mut mapping.2 {
                        *offset += 4096 * index;
                    }
                    pages.insert(to + index, mapping);
                }
            }
            Event::Mapping(MappingEvent::Protect {
                start,
                pages: count,
                rights,
            }) => {
                for page in *start..start + count {
                    pages.entry(page).and_modify(|mapping| mapping.0 = *rights);
                }
            }
            _ => {}
        }
    }
    pages.retain(|&page, _| !is_of_valgrind(page));
    pages
}
