//! First touches that are found many at a time: a page that is written has its record however the
//! process leaves its memory, and a neighbour that nobody writes to has none.

use std::collections::BTreeSet;

use tidemark_trace::Event;

use crate::recording::{Process, Recording};
use crate::running::{is_permitted, printed_pages, recorded};
use crate::support::{Folder, TIDEMARK};
use crate::tool::compile;

/// Writes to every page of 3,000, or every tenth, and ends as it is told: `e` by returning, `u` by
/// `_exit`, `x` by executing another program.
const ENDS: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>
    int main(int count, char **words) {
        int step = atoi(words[2]);
        char *at = mmap(0, 3000 * 4096L, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%p\n", at);
        fflush(stdout);
        for (int page = 0; page < 3000; page += step) at[page * 4096L] = 1;
        switch (words[1][0]) {
        case 'u': _exit(0);
        case 'x': execl("/bin/sh", "sh", "-c", "exit 0", (char *)0);
        }
        return 0;
    }
"#;

#[test]
fn pages_that_were_written_have_records_and_their_neighbours_have_none() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-neighbours");
    let program = compile(&folder, "ends", ENDS, &[]);
    for how in ["e", "u", "x"] {
        for step in [1, 10] {
            let (output, recording) = recorded(&folder, &[&program, how, &step.to_string()]);
            let start = printed_pages(&output)[0];
            let found = pages_in(recording.only(), start, 3000);
            let written: BTreeSet<u64> = (0..3000).step_by(step).collect();
            assert!(found == written, "{how} {step}: {}", found.len());
        }
    }
}

/// Writes to the first 100 pages and forks. The child writes to each second page of the next 100
/// and ends by `_exit`; the parent to each second one of the 100 after those.
const FORKS: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
        char *at = mmap(0, 400 * 4096L, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%p\n", at);
        fflush(stdout);
        for (int page = 0; page < 100; page++) at[page * 4096L] = 1;
        int child = fork();
        int from = child ? 200 : 100;
        for (int page = from; page < from + 100; page += 2) at[page * 4096L] = 2;
        for (int page = 0; page < 400; page++) {
            int is_own = page >= from && page < from + 100 && page % 2 == 0;
            if ((page < 100 || is_own) && at[page * 4096L] != (is_own ? 2 : 1)) abort();
        }
        if (!child) _exit(0);
        int status;
        wait(&status);
        return status;
    }
"#;

#[test]
fn a_child_and_its_parent_have_each_their_own() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-neighbours-fork");
    let program = compile(&folder, "forks", FORKS, &[]);
    let (output, recording) = recorded(&folder, &[&program]);
    let start = printed_pages(&output)[0];
    assert_eq!(recording.processes.len(), 2);
    for (process, from) in recording.processes.iter().zip([200, 100]) {
        let found = pages_in(process, start, 400);
        let own = |pages: &BTreeSet<u64>, from, to| -> BTreeSet<u64> {
            pages.range(from..to).copied().collect()
        };
        let wanted: BTreeSet<u64> = (from..from + 100).step_by(2).collect();
        assert_eq!(own(&found, from, from + 100), wanted);
        // What the parent wrote is not the child's doing; it read of it, though.
        if from == 200 {
            assert_eq!(own(&found, 0, 100).len(), 100);
            assert_eq!(own(&found, 100, 200).len(), 0);
        }
    }
}

/// Writes to each third page of an area; moves it, empties a part of it, and writes to each third
/// page that follows the first ones. Then the same from four threads elsewhere, a quarter each.
const CHANGES: &str = r#"
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    static char *area(void) {
        return mmap(0, 600 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    static char *shared;
    static void *work(void *number) {
        for (long page = (long)number; page < 600; page += 4) shared[page * 4096L] = 1 + page % 4;
        return 0;
    }
    int main(void) {
        char *from = area(), *to = area();
        shared = area();
        for (int page = 0; page < 600; page += 3) from[page * 4096L] = 1;
        to = mremap(from, 600 * 4096L, 600 * 4096L, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        madvise(to, 300 * 4096L, MADV_DONTNEED);
        for (int page = 1; page < 600; page += 3) to[page * 4096L] = 2;
        for (int page = 0; page < 600; page++) {
            int value = page % 3 == 0 ? page >= 300 : page % 3 == 1 ? 2 : 0;
            if (page % 3 < 2 && to[page * 4096L] != value) abort();
        }
        pthread_t threads[4];
        for (long each = 0; each < 4; each++) pthread_create(&threads[each], 0, work, (void *)each);
        for (int each = 0; each < 4; each++) pthread_join(threads[each], 0);
        for (int page = 0; page < 600; page++) if (shared[page * 4096L] != 1 + page % 4) abort();
        printf("%p %p %p\n", from, to, shared);
        return 0;
    }
"#;

#[test]
fn what_moves_or_is_emptied_keeps_its_records() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-neighbours-moves");
    let program = compile(&folder, "changes", CHANGES, &["-pthread"]);
    let (output, recording) = recorded(&folder, &[&program]);
    let starts = printed_pages(&output);
    let process = recording.only();
    let thirds = |rest: u64| -> BTreeSet<u64> { (rest..600).step_by(3).collect() };
    // What has moved before it was looked at is told of where it is then.
    let mut at_first = pages_in(process, starts[0], 600);
    at_first.extend(pages_in(process, starts[1], 600));
    assert!(at_first.is_superset(&thirds(0)) && at_first.is_superset(&thirds(1)));
    assert!(at_first.is_disjoint(&thirds(2)));
    assert_eq!(pages_in(process, starts[2], 600).len(), 600);
}

/// Uses as many pages as it is told to, over and over, for 1.5 s; then as many as it is told to
/// next, for 2.5 s, if it is.
const KEEN: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <time.h>
    static void use(volatile char *at, int pages, double seconds) {
        clock_t end = clock() + seconds * CLOCKS_PER_SEC;
        while (clock() < end)
            for (int page = 0; page < pages; page++) at[page * 4096L] = 1;
    }
    int main(int count, char **words) {
        int pages = atoi(words[1]);
        volatile char *at = mmap(0, pages * 4096L, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        use(at, pages, 1.5);
        if (count > 2) use(at, atoi(words[2]), 2.5);
        return 0;
    }
"#;

/// The lengths of windows that the only process of a recording was told to have.
fn lengths(recording: &Recording) -> Vec<u64> {
    let events = recording.only().events.iter();
    let told = events.filter_map(|(_, _, event)| match event {
        Event::Windows { ns } => Some(*ns),
        _ => None,
    });
    told.collect()
}

#[test]
fn found_h1_windows_grow_while_sampling_is_dear_and_shrink_again() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-windows-grow");
    let program = compile(&folder, "keen", KEEN, &[]);
    let (_, recording) = recorded(&folder, &[&program, "6000", "50"]);
    let lengths_told = lengths(&recording);
    // 6,000 pages cost 24 ms a window at least, and 50 pages a fraction of one.
    let longest = lengths_told.iter().max().expect("windows have grown");
    let doubled = |ns: &u64| ns.is_multiple_of(100_000_000) && (ns / 100_000_000).is_power_of_two();
    assert!(lengths_told.iter().all(doubled), "{lengths_told:?}");
    assert!(lengths_told.last() < Some(longest), "{lengths_told:?}");
    let info = std::process::Command::new(TIDEMARK)
        .args(["info", &folder.path("trace.tide")])
        .output()
        .unwrap();
    let info = String::from_utf8(info.stdout).unwrap();
    // They are told in ms below a second, and in s from there on.
    let wanted = match longest / 1_000_000 {
        millis @ 1000.. => format!("windows of 100 ms up to {} s", millis as f64 / 1e3),
        millis => format!("windows of 100 ms up to {millis} ms"),
    };
    assert!(info.contains(&wanted), "{info}");
    for options in [
        &["20"][..],
        &["--window", "auto", "20"],
        &["--window", "200ms", "4000"],
    ] {
        let mut all = options.to_vec();
        all.insert(options.len() - 1, &program);
        let (_, recording) = recorded(&folder, &all);
        assert!(lengths(&recording).is_empty(), "{options:?}");
    }
}

/// The pages of the area at `start` that have records, numbered from there.
fn pages_in(process: &Process, start: u64, pages: u64) -> BTreeSet<u64> {
    let times = process.times_in(start..start + pages);
    times.keys().map(|page| page - start).collect()
}
