//! Terminal drawings at fixed widths, as they were when last looked at.
//!
//! `TIDEMARK_GOLDEN=write` rewrites the files under `golden/`; the change shows in review.

use std::path::Path;

use tidemark_report::terminal::{Screen, curves, experiments, map, sizes};

use crate::sample;

fn expect_golden(name: &str, drawn: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("TIDEMARK_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, drawn).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(drawn, expected, "{name} is drawn otherwise:\n{drawn}");
}

fn expect_width(drawn: &str, columns: usize) {
    for line in drawn.lines() {
        assert!(line.chars().count() <= columns, "{line}");
    }
}

#[test]
fn curves_in_eighty_columns() {
    let drawn = curves(&sample::curves(), Screen::new(80, false));
    expect_width(&drawn, 80);
    expect_golden("curves-80.txt", &drawn);
}

#[test]
fn working_sets_in_eighty_columns() {
    let drawn = sizes(&sample::sizes(), Screen::new(80, false));
    expect_width(&drawn, 80);
    expect_golden("sizes-80.txt", &drawn);
}

#[test]
fn maps_in_a_hundred_columns() {
    let drawn = map(&sample::map(), Screen::new(100, false));
    expect_width(&drawn, 100);
    expect_golden("map-100.txt", &drawn);
}

#[test]
fn maps_in_colour() {
    let drawn = map(&sample::map(), Screen::new(60, true));
    assert!(drawn.contains("\x1b[38;2;") && drawn.contains('▀'));
    expect_golden("map-60-colour.txt", &drawn);
}

#[test]
fn without_colours_there_are_no_escapes() {
    let screen = Screen::new(80, false);
    for drawn in [
        curves(&sample::curves(), screen),
        sizes(&sample::sizes(), screen),
        map(&sample::map(), screen),
    ] {
        assert!(!drawn.contains('\x1b'));
    }
}

#[test]
fn nothing_recorded_is_drawn_as_nothing() {
    let screen = Screen::new(60, true);
    let mut empty = sample::map();
    empty.regions.clear();
    empty.columns = 0;
    assert!(map(&empty, screen).contains("addresses over time"));
    let mut empty = sample::sizes();
    empty.windows.clear();
    assert!(sizes(&empty, screen).contains("working set"));
    let mut empty = sample::curves();
    empty.curves.clear();
    assert!(curves(&empty, screen).contains("misses by memory"));
}

#[test]
fn experiments_as_tables() {
    expect_golden("experiments.txt", &experiments(&sample::experiments()));
}
