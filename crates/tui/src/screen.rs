//! The screen as lines of text: a pure function of the state of a run and of a view.
//!
//! # Invariants
//! 1. No line is wider than the screen, and there are no more than it has rows.

mod map;

use tidemark_results::control::{Counter, MemoryMap, RunState, Task, TaskState, Wait};
use tidemark_results::text::bytes;

use crate::view::{OTHER_ROWS, View};

/// The size of a screen, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The width.
    pub columns: usize,
    /// The height.
    pub rows: usize,
}

/// The means to set lines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text alone.
    Plain,
    /// Colours, too.
    Colours,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text.
    pub text: String,
    tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Usual,
    Head,
    Chosen,
    Still,
    Waiting,
    /// Each place of memory in its own colour.
    Map,
}

/// A column: its title, its width, whether it is set to the left, and its text for a task.
type Column = (&'static str, usize, bool, fn(&Task) -> String);

/// The columns, the most important first: as many as there is room for are shown.
const COLUMNS: [Column; 16] = [
    ("PID", 7, false, |task| task.pid.to_string()),
    ("PROGRAM", 9, true, |task| clean(&task.program)),
    ("STATE", 9, true, |task| task.state.name().into()),
    ("WAITS FOR", 9, true, |task| {
        task.waits_for.map_or("", |wait| wait.name()).into()
    }),
    ("MEM", 6, false, |task| short(task.resident_bytes)),
    ("BUDGET", 6, false, |task| short(task.budget_bytes)),
    ("≈UNMAN", 6, false, |task| short(task.unmanaged_bytes)),
    ("FLT/S", 6, false, |task| rate(task.rates.faults())),
    ("IN/S", 6, false, |task| {
        rate(task.rates.get(Counter::PageIns))
    }),
    ("OUT/S", 6, false, |task| {
        rate(task.rates.get(Counter::PageOuts))
    }),
    ("WAITED", 6, false, |task| {
        format!("{:.0}%", task.rates.get(Counter::StallNs) * 100.0)
    }),
    ("AHEAD U/L/?", 11, false, ahead),
    ("COMPR", 5, false, |task| {
        let outs = task.counts.get(Counter::PageOuts);
        part(task.counts.get(Counter::CompressedPages).min(outs), outs)
    }),
    ("QUEUE", 5, false, |task| task.stores_under_way.to_string()),
    ("≈ENGIN", 6, false, |task| short(task.engine_bytes)),
    ("PAGE-INS", 10, false, |task| {
        task.counts.get(Counter::PageIns).to_string()
    }),
];

/// The help at the bottom.
const HELP: &str =
    "q quit · ? help · ↑↓ choose · s sort · z suspend · r resume · e evict · b budget · m map";

/// The manual behind `?`: keys and columns.
const MANUAL: [&str; 23] = [
    "  q            quit",
    "  ↑ ↓, k j     choose a task; PgUp and PgDn go by screens",
    "  s            sort by memory, budget, unmanaged, faults, page-ins, page-outs, waited, pid",
    "  z, r         suspend the chosen task, and let it go on",
    "  e            page it out as a whole; it grows again",
    "  b            change the memory of all tasks together",
    "  m            show the map of the chosen task's memory, or hide it",
    "",
    "  MEM          memory in frames, and compressed",
    "  BUDGET       the most of it that the task may have now",
    "  ≈UNMAN       resident memory that is not managed: stacks, shared memory (≈: sampled)",
    "  FLT/S        faults per second",
    "  IN/S, OUT/S  pages read from the store, and written to it, per second",
    "  WAITED       the time that its threads waited for faults, in that second",
    "  AHEAD U/L/?  of pages read ahead: percent used, left unused, not known",
    "  COMPR        the part of page-outs that went to compressed memory",
    "  QUEUE        pages on their way to the store",
    "  ≈ENGIN       memory of the engine itself (≈: sampled)",
    "  PAGE-INS     pages read from the store so far",
    "",
    "  The map: one place for each part of the managed memory; its line says what is where.",
    "",
    "  any key goes back",
];

/// The things that a screen shows.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The run.
    pub state: &'a RunState,
    /// The map of the chosen task, if it is there.
    pub map: Option<&'a MemoryMap>,
    /// The view of it.
    pub view: &'a View,
}

/// The screen.
pub fn draw(scene: Scene<'_>, size: Size, paint: Paint) -> Vec<Line> {
    let Scene { state, map, view } = scene;
    if view.has_manual {
        return manual(size);
    }
    let tasks = view.tasks(state);
    let shown = view.task_rows(size.rows);
    let columns = fitting(size.columns);
    let mut lines = overview(state, view, size, shown);
    lines.push(Line::new(titles(columns), Tone::Head));
    for task in tasks.iter().skip(view.skipped).take(shown) {
        let is_chosen = Some(task.pid) == view.chosen;
        let mark = if is_chosen { '>' } else { ' ' };
        let text = format!("{mark}{}", row(columns, |column| (column.3)(task)));
        lines.push(Line::new(text, tone(task, is_chosen)));
    }
    let mut last = match view.map_rows(size.rows) {
        0 => vec![],
        rows => map::draw(map, size.columns, rows),
    };
    last.push(Line::new(foot(view), Tone::Usual));
    let above = size.rows.saturating_sub(last.len());
    lines.resize(above, Line::new(String::new(), Tone::Usual));
    lines.append(&mut last);
    fit(&mut lines, size);
    for line in &mut lines {
        if line.tone == Tone::Head && paint == Paint::Colours {
            line.text = format!("{:1$}", line.text, size.columns);
        }
    }
    lines
}

/// The keys and the columns, on a screen of their own.
fn manual(size: Size) -> Vec<Line> {
    let lines = MANUAL.iter().map(|text| (*text).to_owned());
    let mut lines: Vec<Line> = lines.map(|text| Line::new(text, Tone::Usual)).collect();
    lines.resize(size.rows, Line::new(String::new(), Tone::Usual));
    fit(&mut lines, size);
    lines
}

fn fit(lines: &mut Vec<Line>, size: Size) {
    lines.truncate(size.rows);
    for line in lines {
        line.text = line.text.chars().take(size.columns).collect();
    }
}

/// One screen with all tasks, for a file or a pipe, `columns` wide.
pub fn once(state: &RunState, columns: usize) -> String {
    let mut view = View::default();
    view.has_map = false;
    let view = &view;
    let rows = state.tasks.len().max(1) + OTHER_ROWS;
    let map = None;
    let lines = draw(
        Scene { state, map, view },
        Size { columns, rows },
        Paint::Plain,
    );
    // The last line is for who has keys.
    let lines = lines[..lines.len() - 1].iter();
    let lines = lines.map(|line| line.text.trim_end());
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    format!("{}\n", text.trim_end())
}

impl Paint {
    /// Colours, unless the variable `NO_COLOR` is set to something.
    pub fn of_environment() -> Paint {
        match std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            true => Paint::Plain,
            false => Paint::Colours,
        }
    }
}

impl Line {
    fn new(text: String, tone: Tone) -> Line {
        Line { text, tone }
    }

    /// The line as a terminal takes it.
    pub fn painted(&self, paint: Paint) -> String {
        let code = match (paint, self.tone) {
            (Paint::Plain, _) | (_, Tone::Usual) => return self.text.clone(),
            (_, Tone::Head) => "7",
            (_, Tone::Chosen) => "1",
            (_, Tone::Still) => "36",
            (_, Tone::Waiting) => "33",
            (_, Tone::Map) => return map::painted(&self.text),
        };
        format!("\x1b[{code}m{}\x1b[0m", self.text)
    }
}

/// The lines about the run as a whole.
fn overview(state: &RunState, view: &View, size: Size, shown: usize) -> Vec<Line> {
    let (memory, rates) = (&state.memory, &state.rates);
    let run = format!(
        "run {} · policy {} · store {} · {:.0} s",
        state.pid,
        clean(&state.policy),
        clean(&state.store),
        state.elapsed_s
    );
    let used = format!(
        "memory {} of {} · peak {} · unmanaged ≈{} · engines ≈{}",
        bytes(memory.resident_bytes),
        bytes(memory.budget_bytes),
        bytes(memory.resident_bytes_peak),
        bytes(memory.unmanaged_bytes),
        bytes(memory.engine_bytes),
    );
    let moved = format!(
        "{} faults/s · {} page-ins/s · {} page-outs/s · swap {} of {}",
        rate(rates.faults()),
        rate(rates.get(Counter::PageIns)),
        rate(rates.get(Counter::PageOuts)),
        bytes(state.swap.used_bytes),
        bytes(state.swap.bytes),
    );
    let count = |state_of: TaskState| {
        let tasks = state.tasks.iter();
        tasks.filter(|task| task.state == state_of).count()
    };
    let tasks = format!(
        "{}, {} suspended, {} evicting · by {} {}",
        place(state.tasks.len(), view.skipped, shown),
        count(TaskState::Suspended),
        count(TaskState::Evicting),
        view.sort.name(),
        gauge(memory.resident_bytes, memory.budget_bytes, size.columns / 4),
    );
    let lines = [run, used, moved, tasks].into_iter();
    lines.map(|text| Line::new(text, Tone::Usual)).collect()
}

/// The tasks that are on the screen: all, or those from one place to another.
fn place(tasks: usize, skipped: usize, shown: usize) -> String {
    let whole = if tasks == 1 { "task" } else { "tasks" };
    match tasks > shown {
        true => format!(
            "{}-{} of {tasks} {whole}",
            skipped + 1,
            (skipped + shown).min(tasks)
        ),
        false => format!("{tasks} {whole}"),
    }
}

fn foot(view: &View) -> String {
    match (&view.entry, &view.told) {
        (Some(entry), _) => format!("budget of all tasks: {entry}_ (Enter, or Esc)"),
        (None, Some(told)) => clean(told),
        (None, None) => HELP.into(),
    }
}

/// The columns for which there is room, with one character before each.
fn fitting(columns: usize) -> &'static [Column] {
    let mut width = 0;
    let fits = |column: &&Column| {
        width += column.1 + 1;
        width <= columns
    };
    let count = COLUMNS.iter().take_while(fits).count();
    &COLUMNS[..count]
}

fn titles(columns: &[Column]) -> String {
    format!(" {}", row(columns, |column| column.0.into()))
}

fn row(columns: &[Column], text: impl Fn(&Column) -> String) -> String {
    let cells = columns.iter().map(|column| {
        let (width, text) = (column.1, text(column));
        let text: String = text.chars().take(width).collect();
        match column.2 {
            true => format!("{text:<width$}"),
            false => format!("{text:>width$}"),
        }
    });
    cells.collect::<Vec<_>>().join(" ")
}

fn tone(task: &Task, is_chosen: bool) -> Tone {
    match (is_chosen, task.state, task.waits_for) {
        (true, _, _) => Tone::Chosen,
        (_, TaskState::Suspended | TaskState::Evicting | TaskState::Coming, _) => Tone::Still,
        (_, TaskState::Running, Some(Wait::Store)) => Tone::Waiting,
        (_, TaskState::Running, _) => Tone::Usual,
    }
}

/// A gauge of `width` characters, and its brackets.
fn gauge(used: u64, whole: u64, width: usize) -> String {
    let filled = u128::from(used.min(whole)) * width as u128 / u128::from(whole.max(1));
    let filled = filled as usize;
    format!("[{}{}]", "#".repeat(filled), "-".repeat(width - filled))
}

/// A size in five characters at most: `12.3M`.
fn short(size: u64) -> String {
    let (mut value, mut unit) = (size as f64 / 1024.0, 0);
    while value >= 999.5 && unit < 3 {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95 && value.fract() != 0.0);
    format!("{value:.digits$}{}", ["K", "M", "G", "T"][unit])
}

/// A rate in six characters at most.
fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 99_999.5 => format!("{rate:.0}"),
        rate if rate < 9_999_500.0 => format!("{:.0}k", rate / 1e3),
        rate => format!("{:.0}M", rate / 1e6),
    }
}

fn part(some: u64, all: u64) -> String {
    match all {
        0 => "-".into(),
        all => format!("{:.0}%", some as f64 * 100.0 / all as f64),
    }
}

/// The percentages of pages read ahead that were used, left unused, and are not known.
fn ahead(task: &Task) -> String {
    let pages = [
        Counter::ReadAheadUsed,
        Counter::ReadAheadWasted,
        Counter::ReadAheadUnknown,
    ];
    let pages = pages.map(|counter| task.counts.get(counter));
    let all: u64 = pages.iter().sum();
    match all {
        0 => "-".into(),
        all => pages
            .map(|pages| format!("{:.0}", pages as f64 * 100.0 / all as f64))
            .join("/"),
    }
}

/// A text in which each character takes one place: a program may be called anything.
fn clean(text: &str) -> String {
    let shown = |character: char| match character {
        ' '..='~' => character,
        _ => '?',
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests;
