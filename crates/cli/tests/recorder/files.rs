//! Files: what system calls read, write and cut.

use tidemark_trace::{Event, FileEvent};

use crate::recording::Recording;
use crate::support::Folder;
use crate::tool::{compile, recorded, recorder};

/// Reads and writes a file in every way there is.
const SOURCE: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/sendfile.h>
    #include <sys/uio.h>
    #include <unistd.h>
    static char bytes[20000];
    static void must(long got, long expected) { if (got != expected) _exit(9); }
    int main(int count, char** names) {
        (void)count;
        must(chdir(names[1]), 0);
        int one = open("one", O_RDWR | O_CREAT | O_TRUNC, 0600);
        memset(bytes, 7, sizeof bytes);
        must(write(one, bytes, 10000), 10000);
        must(pwrite(one, bytes, 500, 12288), 500);
        must(lseek(one, 100, SEEK_SET), 100);
        must(read(one, bytes, 5000), 5000);
        must(pread(one, bytes, 20000, 8192), 4596);
        struct iovec parts[2] = { { bytes, 10 }, { bytes + 10, 20 } };
        must(preadv(one, parts, 2, 4096), 30);
        int two = open("two", O_RDWR | O_CREAT | O_TRUNC, 0600);
        off_t from = 8192;
        must(sendfile(two, one, &from, 1000), 1000);
        must(writev(two, parts, 2), 30);
        loff_t source = 4096, target = 40960;
        must(copy_file_range(one, &source, two, &target, 4096, 0), 4096);
        must(ftruncate(two, 5000), 0);
        must(link("one", "other"), 0);
        must(unlink("one"), 0);
        must(unlink("other"), 0);
        must(rename("two", "three"), 0);
        int pipes[2];
        must(pipe(pipes), 0);
        must(write(pipes[1], bytes, 10), 10);
        must(read(pipes[0], bytes, 10), 10);
        int made_up = open("/proc/self/stat", O_RDONLY);
        if (read(made_up, bytes, 100) <= 0) _exit(9);
        char* page = 0;
        must(posix_memalign((void**)&page, 4096, 4096), 0);
        int direct = open("three", O_RDWR | O_DIRECT);
        if (direct >= 0 && read(direct, page, 4096) < 0) _exit(9);
        must(read(-1, bytes, 1), -1);
        return 0;
    }
"#;

/// Reads a file byte by byte.
const BYTES: &str = r#"
    #include <fcntl.h>
    #include <unistd.h>
    int main(int count, char** names) {
        (void)count;
        int file = open(names[1], O_RDONLY);
        char byte;
        for (int i = 0; i < 9000; i++)
            if (read(file, &byte, 1) != 1) return 1;
        return 0;
    }
"#;

/// The event's facts on a file in `folder`, by its name there.
fn told(event: &Event, folder: &str) -> Option<(char, String, u64, u64)> {
    let (what, file, offset, bytes) = match (event, event.copied()) {
        (Event::File(FileEvent::Cut { file, bytes }), _) => ('c', file.as_str(), 0, *bytes),
        (_, Some(copied)) => {
            let what = if copied.is_write { 'w' } else { 'r' };
            (what, copied.file, copied.offset, copied.bytes)
        }
        (_, None) => return None,
    };
    // What the loader reads of libraries is no business of these tests.
    let name = file.strip_prefix(folder)?.trim_start_matches('/');
    Some((what, name.to_owned(), offset, bytes))
}

/// The facts of a recording of one process on files in `folder`, in order.
fn all_told(recording: &Recording, folder: &str) -> Vec<(char, String, u64, u64)> {
    let events = recording.only().events.iter();
    let told = events.filter_map(|(.., event)| told(event, folder));
    told.collect()
}

#[test]
fn reads_writes_and_cuts_are_recorded_to_the_byte() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("file-calls");
    let program = compile(&folder, "calls", SOURCE, &[]);
    let place = std::fs::canonicalize(folder.path(".")).unwrap();
    let place = place.to_str().unwrap();
    let expected = [
        ('c', "one", 0, 0),
        ('w', "one", 0, 10_000),
        ('w', "one", 12_288, 500),
        ('r', "one", 100, 5000),
        ('r', "one", 8192, 4596),
        ('r', "one", 4096, 30),
        ('c', "two", 0, 0),
        ('r', "one", 8192, 1000),
        ('w', "two", 0, 1030),
        ('r', "one", 4096, 4096),
        ('w', "two", 40_960, 4096),
        ('c', "two", 0, 5000),
        ('c', "other", 0, 0),
    ];
    let expected = expected.map(|(what, name, offset, bytes)| (what, name.into(), offset, bytes));
    for mode in [&["--quantum", "1000000"][..], &["--exact"]] {
        // What it is renamed over would be cut.
        let _ = std::fs::remove_file(folder.path("three"));
        let arguments = [mode, &["--", &program, place]].concat();
        let (_, recording) = recorded(&folder, recorder, &arguments);
        let mut found = all_told(&recording, place);
        found.retain(|(_, name, ..)| name != "calls");
        assert_eq!(found, expected, "{mode:?}");
        let strange = |event: &Event| match event {
            Event::File(FileEvent::Read { file, .. }) => {
                file.starts_with("/proc") || file.contains("pipe")
            }
            _ => false,
        };
        assert!(!recording.only().find(strange));
    }
}

#[test]
fn who_reads_byte_by_byte_makes_few_events() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new("file-bytes");
    let program = compile(&folder, "bytes", BYTES, &[]);
    let file = folder.path("read");
    std::fs::write(&file, [1; 10_000]).unwrap();
    let place = std::fs::canonicalize(folder.path(".")).unwrap();
    for mode in [&["--quantum", "1000"][..], &["--exact"]] {
        let arguments = [mode, &["--", &program, &file]].concat();
        let (_, recording) = recorded(&folder, recorder, &arguments);
        let mut found = all_told(&recording, place.to_str().unwrap());
        found.retain(|(_, name, ..)| name == "read");
        let bytes: u64 = found.iter().map(|(.., bytes)| bytes).sum();
        assert_eq!(bytes, 9000, "{mode:?}");
        assert!(found.len() < 20, "{mode:?}: {}", found.len());
    }
}
