//! The page as text: whole, bound to nothing outside, and small.

use std::path::PathBuf;

use tidemark_report::page::page;
use tidemark_report::replay;

use crate::sample;

#[test]
fn a_page_is_one_file_that_loads_nothing() {
    let html = page(&sample::report());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    std::fs::write(path, &html).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    for outside in [
        "src=\"http",
        "href=\"h",
        "href=\"/",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(
        html.contains("Permission is hereby granted"),
        "the licence travels along"
    );
    assert!(html.len() < 700_000, "{} bytes", html.len());
}

#[test]
fn a_page_of_replays_loads_nothing_either() {
    let mut record = sample::replays();
    record.traces[0].name = "</script><script>alert(1)</script>".into();
    record.runs[0].programs[0].name = "<img src=x onerror=alert(1)>".into();
    let html = replay::page(&record);
    for outside in [
        "src=\"http",
        "href=\"",
        "@import",
        "fetch(",
        "<img",
        "alert(1)</script>",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    for text in [
        "default-src 'none'",
        "mach3, 1 MiB",
        "7.50",
        "first touches: 700",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn answers_and_tables_stand_in_the_text() {
    let html = page(&sample::report());
    for text in [
        "27 MiB",
        "<h3>Under ideal policies</h3>",
        "in which it takes at most 10 % longer under <code>tidemark run</code>",
        "too short to tell",
        "26.2\u{a0}MiB to 29.9\u{a0}MiB",
        "libc.so.6",
        "space-time",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn the_answer_and_its_reason_come_first_in_one_sentence() {
    let html = page(&sample::report());
    let (head, _) = html.split_once("<h2>Memory needed</h2>").unwrap();
    let (_, answer) = head.split_once("<p class=\"answer\">").unwrap();
    let (answer, _) = answer.split_once("</p>").unwrap();
    assert!(answer.starts_with("It needs 27.7 MiB") && answer.contains("because"));
    assert_eq!(answer.matches(". ").count(), 0, "{answer}");
}

#[test]
fn names_of_regions_lead_from_map_to_footprint_to_curve() {
    let html = page(&sample::report());
    // The footprint names the heap, and leads to its row in the table of the map.
    let (_, footprint) = html.split_once("id=\"footprint-plot\"").unwrap();
    let (footprint, rest) = footprint.split_once("</section>").unwrap();
    let (_, link) = footprint.split_once("<td><a href=\"#").unwrap();
    let (row, name) = link.split_once('"').unwrap();
    assert!(name.contains(">[heap]</a>"), "{name}");
    let (_, row) = rest.split_once(&format!("<tr id=\"{row}\">")).unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert!(
        row.contains("href=\"#map\"") && row.contains("href=\"#curves\""),
        "{row}"
    );
    let (_, curves) = html.split_once("id=\"curve-plot\"").unwrap();
    let (curves, _) = curves.split_once("</section>").unwrap();
    assert!(curves.contains("data-region=\"0\">[heap]"), "{curves}");
}

#[test]
fn a_page_is_bounded_however_long_the_trace_was() {
    let html = page(&sample::largest());
    assert!(html.len() < 4 << 20, "{} bytes", html.len());
}

#[test]
fn names_from_a_trace_are_text_and_nothing_else() {
    let mut record = sample::report();
    record.trace.command = vec!["</script><script>alert(1)</script>".into()];
    record.map.regions[1].label = "/tmp/<img src=x onerror=alert(1)>".into();
    record.map.marks[0].name = "<b>".into();
    let html = page(&record);
    assert!(!html.contains("alert(1)</script>") && !html.contains("<img"));
}

#[test]
fn a_trace_without_references_still_has_a_page() {
    let mut record = sample::report();
    record.curve.curves.clear();
    record.curve.needs.clear();
    record.curve.run = None;
    record.wss.windows.clear();
    record.map.regions.clear();
    record.map.columns = 0;
    record.phases.levels.clear();
    record.space_time.rows.clear();
    record.trace.time = 0;
    let html = page(&record);
    assert!(html.contains("No bound was asked for."));
}

#[test]
fn found_m12_one_size_of_memory_is_drawn_as_bars_by_system() {
    let several = replay::page(&sample::replays());
    assert!(several.contains("id=\"sweep-plot\"") && !several.contains("class=\"measures\""));
    let mut record = sample::replays();
    let memory = record.runs[0].memory_bytes;
    record.runs.retain(|run| run.memory_bytes == memory);
    record.runs[0].over_optimal = None;
    assert!(record.runs.len() > 1);
    let html = replay::page(&record);
    assert!(!html.contains("id=\"sweep-plot\""));
    let (_, bars) = html.split_once("class=\"measures\"").unwrap();
    let (bars, _) = bars.split_once("<table").unwrap();
    for name in ["Elapsed", "Page-ins", "Over the optimum"] {
        assert!(bars.contains(name), "{name}");
    }
    // Runs that come to the same share a bar.
    let count = bars.matches("<i style").count();
    assert!((3..=3 * record.runs.len()).contains(&count), "{bars}");
    assert!(
        bars.contains("width:100.000%") && bars.contains("width:0.000%"),
        "{bars}"
    );
}

#[test]
fn found_l_windows_are_told_in_readable_units() {
    let mut record = sample::report();
    record.trace.granularity = "window 100000000 to 400000000".into();
    let html = page(&record);
    let (_, facts) = html.split_once("class=\"facts\"").unwrap();
    let (facts, _) = facts.split_once("</p>").unwrap();
    assert!(
        facts.contains("each page at most once per window of 100 ms to 400 ms"),
        "{facts}"
    );
    assert!(!facts.contains("00000000"), "{facts}");
    record.trace.granularity = "exact".into();
    assert!(page(&record).contains("page references (every change of page)"));
}

#[test]
fn found3_c_runs_that_come_to_the_same_share_a_bar_and_copies_a_line() {
    let mut record = sample::replays();
    let first = record.runs[0].clone();
    let names = ["fifo", "clock", "mach86", "mach3", "netbsd", "vms"];
    record.runs = names
        .iter()
        .map(|name| tidemark_results::replay::Run {
            system: (*name).into(),
            policy: (*name).into(),
            ..first.clone()
        })
        .collect();
    record.copies = 2;
    record.traces.truncate(1);
    let trace = record.traces[0].name.clone();
    for run in &mut record.runs {
        let program = run.programs[0].clone();
        run.programs = (1..=2)
            .map(|copy| tidemark_results::replay::ProgramRun {
                name: format!("{trace} {copy}"),
                end_s: program.end_s + f64::from(copy),
                ..program.clone()
            })
            .collect();
    }
    let html = replay::page(&record);
    let (_, bars) = html.split_once("class=\"measures\"").unwrap();
    let (bars, _) = bars.split_once("<table").unwrap();
    assert_eq!(bars.matches("<i style").count(), 3, "{bars}");
    assert!(bars.contains("and 3 more"), "{bars}");
    let (_, programs) = html.split_once("<section id=\"programs\"").unwrap();
    let (programs, _) = programs.split_once("</section>").unwrap();
    assert_eq!(programs.matches("<tr>").count(), 1 + names.len());
    assert!(programs.contains(&format!("2 × {trace}")) && programs.contains(" to "));
}
