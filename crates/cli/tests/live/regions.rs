//! Some pages of each region, in place of all pages.

use tidemark_trace::{Granularity, Kinds};

use crate::running::{is_permitted, live, printed_pages, recorded};
use crate::support::{Folder, stderr, text, tidemark};
use crate::tool::{compile, finish};

/// The pages of the program, and where those begin that it uses over and over: an eighth.
const PAGES: u64 = 16_384;
const HOT_FROM: u64 = 5_000;
const HOT: u64 = PAGES / 8;

/// Writes to 64 MiB, and then to an eighth of it over and over. Prints where it is.
const HOT_EIGHTH: &str = r#"
    #include <stdio.h>
    #include <sys/mman.h>
    #include <time.h>
    int main(void) {
        long pages = 16384;
        volatile char *at = mmap(0, pages * 4096, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%p\n", at);
        for (long page = 0; page < pages; page++) at[page * 4096] = 1;
        clock_t end = clock() + 2 * CLOCKS_PER_SEC;
        while (clock() < end)
            for (long page = 5000; page < 5000 + pages / 8; page++) at[page * 4096]++;
        return 0;
    }
"#;

#[test]
fn a_hot_eighth_is_hot_and_the_rest_is_cold() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-regions");
    let program = compile(&folder, "hot", HOT_EIGHTH, &[]);
    let options = ["--sample", "regions", "--window", "50ms"];
    let (output, recording) = recorded(&folder, &[&options[..], &[&program]].concat());
    assert_eq!(
        recording.header.granularity,
        Granularity::Regions(50_000_000)
    );
    let (process, start) = (recording.only(), printed_pages(&output)[0]);
    let hot = start + HOT_FROM..start + HOT_FROM + HOT;
    let all = process.times_in(start..start + PAGES);
    assert_eq!(all.len() as u64, PAGES, "first touches are counted");
    let records = |is_wanted: &dyn Fn(&u64) -> bool| {
        let wanted = all.iter().filter(|(page, _)| is_wanted(page));
        wanted.map(|(_, times)| times.len() as u64 - 1).sum::<u64>()
    };
    let inside = records(&|page| hot.contains(page));
    let outside = records(&|page| !hot.contains(page));
    let windows = inside / HOT;
    // Some windows go by before the borders are found, and the hot part is said to be larger.
    assert!(windows >= 10, "{inside}, {outside}");
    assert!(outside < inside / 2, "{inside}, {outside}");
    let (found, end) = (windows, process.time());
    let late = |page: &u64| all[page].iter().filter(|&&time| time > end / 2).count();
    let cold = all.keys().filter(|page| !hot.contains(page)).map(late);
    let cold = cold.sum::<usize>() as u64;
    let hot = hot.clone().map(|page| late(&page)).sum::<usize>() as u64;
    assert!(cold * 10 < hot, "{cold}, {hot}, in {found} windows");
    // A touch that was seen has a kind. Few pages were watched: sampling cost less than all.
    let seen = process.records.iter().filter(|it| it.kinds != Kinds(0));
    let seen = (seen.count() as u64).saturating_sub(PAGES);
    assert!(seen < inside / 3, "{seen} of {inside}");
}

#[test]
fn what_is_shown_of_regions_is_said_to_be_an_estimate() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-regions-shown");
    let program = compile(&folder, "hot", HOT_EIGHTH, &[]);
    recorded(&folder, &["--sample", "regions", &program]);
    let (trace, page) = (folder.path("trace.tide"), folder.path("report.html"));
    let run = |arguments: &[&str]| text(arguments).replace("\n  ", " ");
    assert!(run(&["info", &trace]).contains("an estimate by regions"));
    for command in ["wss", "map", "curve"] {
        let told = run(&[command, &trace]);
        assert!(told.contains("estimated by regions"), "{command}: {told}");
        let told = run(&[command, "--json", &trace]);
        let granularity = r#""granularity":"regions 100000000""#;
        assert!(told.contains(granularity), "{command}: {told}");
    }
    run(&["report", &trace, "-o", &page]);
    let report = std::fs::read_to_string(&page).unwrap();
    assert!(report.contains("An estimate, not a count"));
}

#[test]
fn regions_are_those_of_a_live_recording() {
    let output = tidemark(&["record", "--sample", "regions", "true"]);
    assert!(stderr(&output).contains("--live"), "{output:?}");
    let output = finish(&mut live(&["--sample", "some", "true"]));
    assert!(stderr(&output).contains("regions"), "{output:?}");
}
