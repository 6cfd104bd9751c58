use super::*;
use crate::keys::Key;
use crate::view::{Outcome, Sort};
use tidemark_results::control::{Cell, Counts, Rates, Request};

fn task(pid: u32) -> Task {
    let before = Counts::default();
    let counts = Counts::of(|_| u64::from(pid) * 1_000_003);
    Task {
        pid,
        parent: None,
        program: format!("prog\u{1b}[31m ä{pid}"),
        state: TaskState::Running,
        waits_for: Some(Wait::Store),
        elapsed_s: 1.0,
        budget_bytes: 1 << 40,
        asked_bytes: 0,
        resident_bytes: u64::from(pid) << 20,
        beside_bytes: 0,
        unmanaged_bytes: 123_456_789,
        engine_bytes: 1 << 20,
        managed_bytes: 0,
        pinned_pages: 0,
        stores_under_way: 12_345,
        counts,
        rates: counts.since(&before, 1_000),
    }
}

fn run_of(tasks: u32) -> RunState {
    RunState {
        pid: 4_000_000,
        policy: "mach86".into(),
        store: "compressed+file".into(),
        tasks: (1..=tasks).map(task).collect(),
        rates: Rates::default(),
        ..RunState::default()
    }
}

/// The screen without a map.
fn plain(state: &RunState, view: &View, size: Size) -> Vec<Line> {
    let map = None;
    draw(Scene { state, map, view }, size, Paint::Plain)
}

#[test]
fn every_screen_is_filled_and_no_line_is_too_wide() {
    for (columns, rows) in [(80, 24), (200, 60), (40, 10), (1, 1), (20, 3)] {
        for tasks in [0, 1, 20, 300] {
            let state = run_of(tasks);
            let mut view = View::default();
            view.settle(&state, rows);
            let lines = plain(&state, &view, Size { columns, rows });
            assert_eq!(lines.len(), rows);
            for line in &lines {
                assert!(line.text.chars().count() <= columns, "{line:?}");
                assert!(!line.text.contains('\u{1b}'), "{line:?}");
            }
        }
    }
}

#[test]
fn what_matters_most_is_on_the_narrow_screen() {
    let mut view = View::default();
    let state = run_of(3);
    view.settle(&state, 24);
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let lines = plain(&state, &view, size);
    let titles = &lines[4].text;
    for title in ["PID", "MEM", "BUDGET", "UNMAN", "FLT/S", "IN/S", "OUT/S"] {
        assert!(titles.contains(title), "{titles}");
    }
    assert!(lines[5].text.starts_with(">      3 prog?[31m"), "{lines:?}");
    assert!(lines[5].text.contains(" 3M "), "{lines:?}");
    assert!(lines[23].text.starts_with("q quit"));
}

#[test]
fn the_chosen_task_is_always_seen_and_followed() {
    let state = run_of(300);
    let mut view = View::default();
    let seen = |view: &mut View| {
        view.settle(&state, 24);
        let size = Size {
            columns: 80,
            rows: 24,
        };
        let lines = plain(&state, view, size);
        let chosen = lines.iter().filter(|line| line.text.starts_with('>'));
        let chosen: Vec<String> = chosen.map(|line| line.text[1..8].trim().into()).collect();
        assert_eq!(chosen.len(), 1);
        chosen[0].parse::<u32>().unwrap()
    };
    assert_eq!(seen(&mut view), 300);
    for (key, pid) in [
        (Key::Down, 299),
        (Key::PageDown, 285),
        (Key::PageUp, 299),
        (Key::Up, 300),
        (Key::Up, 300),
    ] {
        assert_eq!(view.press(key, &state), Outcome::Nothing);
        assert_eq!(seen(&mut view), pid);
    }
    for _ in 0..40 {
        view.press(Key::PageDown, &state);
        seen(&mut view);
    }
    assert_eq!(seen(&mut view), 1);
    while view.sort != Sort::Pid {
        view.press(Key::Char('s'), &state);
    }
    assert_eq!(seen(&mut view), 1);
    assert_eq!(view.skipped, 0);
    let ask = view.press(Key::Char('z'), &state);
    assert_eq!(ask, Outcome::Ask(Request::Suspend { pid: 1 }));
}

#[test]
fn the_map_is_above_the_keys_and_gives_way_to_tasks() {
    let state = run_of(20);
    let mut view = View::default();
    let map = MemoryMap {
        pid: 20,
        age_s: Some(0.0),
        pages: 240,
        cells: vec![
            Cell {
                on_disk: 1,
                ..Cell::default()
            };
            240
        ],
        ..MemoryMap::default()
    };
    for (columns, rows, height) in [(80, 24, 3), (200, 60, 8), (80, 20, 2)] {
        view.settle(&state, rows);
        let scene = Scene {
            state: &state,
            map: Some(&map),
            view: &view,
        };
        let lines = draw(scene, Size { columns, rows }, Paint::Plain);
        assert_eq!(lines.len(), rows);
        let bars = &lines[rows - 1 - height..rows - 1];
        let bar = "░".repeat(columns);
        assert!(bars.iter().all(|line| line.text == bar), "{lines:#?}");
        let caption = &lines[rows - 2 - height].text;
        assert!(caption.starts_with("map 20 "), "{lines:#?}");
        assert!(lines[rows - 1].text.starts_with("q quit"));
    }
    let tasks = view.task_rows(24);
    view.press(Key::Char('m'), &state);
    assert_eq!((tasks, view.task_rows(24), view.map_rows(24)), (14, 18, 0));
}

#[test]
fn a_budget_is_typed() {
    let state = run_of(1);
    let mut view = View::default();
    view.settle(&state, 24);
    let mut typed = |text: &str| {
        view.press(Key::Char('b'), &state);
        for character in text.chars() {
            view.press(Key::Char(character), &state);
        }
        let outcome = view.press(Key::Enter, &state);
        (outcome, view.told.clone())
    };
    let ask = Outcome::Ask(Request::Budget { bytes: 64 << 20 });
    assert_eq!(typed("64M"), (ask, None));
    let (outcome, told) = typed("q");
    assert_eq!(outcome, Outcome::Nothing);
    assert!(told.unwrap().contains("`budget q`"));
}

#[test]
fn sizes_and_rates_keep_to_their_columns() {
    let sizes = [0, 1, 4096, 1023 << 10, 1 << 20, 999 << 20, u64::MAX];
    let sizes = sizes.map(short);
    assert_eq!(sizes[..6], ["0K", "0.0K", "4K", "1.0M", "1M", "999M"]);
    assert!(short(1 << 49).len() <= 6);
    for number in [0.0, 99_999.4, 99_999.5, 1e6, 9_999_499.0, 1e8] {
        assert!(rate(number).len() <= 6, "{}", rate(number));
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let line = Line::new("x".into(), Tone::Chosen);
    assert_eq!(line.painted(Paint::Plain), "x");
    assert_eq!(line.painted(Paint::Colours), "\u{1b}[1mx\u{1b}[0m");
}

#[test]
fn one_screen_has_every_task_and_no_keys() {
    let text = once(&run_of(300), 80);
    assert_eq!(text.lines().count(), 305);
    assert!(!text.contains("quit"));
}

#[test]
fn found_c_a_screen_says_which_tasks_it_shows_of_how_many() {
    let state = run_of(41);
    let mut view = View::default();
    view.has_map = false;
    let size = Size {
        columns: 80,
        rows: 20,
    };
    let told = |view: &mut View| {
        view.settle(&state, size.rows);
        plain(&state, view, size)[3].text.clone()
    };
    assert!(told(&mut view).starts_with("1-14 of 41 tasks, 0 suspended"));
    (0..14).for_each(|_| drop(view.press(Key::Down, &state)));
    assert!(
        told(&mut view).starts_with("2-15 of 41 tasks"),
        "{}",
        told(&mut view)
    );
    let few = run_of(3);
    let lines = plain(&few, &view, size);
    assert!(lines[3].text.starts_with("3 tasks, "), "{lines:?}");
}

#[test]
fn found_c_a_question_mark_explains_keys_and_columns() {
    let state = run_of(2);
    let mut view = View::default();
    view.settle(&state, 24);
    view.press(Key::Char('?'), &state);
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let lines = plain(&state, &view, size);
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let text = text.join("\n");
    assert_eq!(lines.len(), 24);
    for column in COLUMNS.iter().skip(4) {
        assert!(
            text.contains(column.0) || column.0.ends_with("/S"),
            "{text}"
        );
    }
    // A key takes it away, and does nothing else.
    assert_eq!(view.press(Key::Char('z'), &state), Outcome::Nothing);
    assert!(!view.has_manual);
    assert!(
        plain(&state, &view, size)[0]
            .text
            .starts_with("run 4000000")
    );
}
