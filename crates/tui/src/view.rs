//! The view of a run: the order of tasks, the one that is chosen, and what is being typed.

use std::cmp::Reverse;

use tidemark_results::control::{Counter, Reply, Request, RunState, Task};
use tidemark_results::quantity;

use crate::keys::Key;

/// The lines of the screen that are neither tasks nor the map.
pub const OTHER_ROWS: usize = 6;
/// From this many rows on there is room for a map.
const MAP_FROM: usize = 20;
/// The part of the rows that the map has, a line about it included.
const MAP_PART: usize = 6;
/// The most rows of the map.
const MAP_MOST: usize = 9;

/// The order of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By memory, the most first.
    #[default]
    Memory,
    /// By budget.
    Budget,
    /// By memory that is not managed.
    Unmanaged,
    /// By the rate of faults.
    Faults,
    /// By the rate of page-ins.
    PageIns,
    /// By the rate of page-outs.
    PageOuts,
    /// By the time that threads wait.
    Waited,
    /// By process id, the least first.
    Pid,
}

const ORDERS: [Sort; 8] = [
    Sort::Memory,
    Sort::Budget,
    Sort::Unmanaged,
    Sort::Faults,
    Sort::PageIns,
    Sort::PageOuts,
    Sort::Waited,
    Sort::Pid,
];

/// The consequence of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing but another view.
    Nothing,
    /// The end.
    Quit,
    /// A request to the run.
    Ask(Request),
}

/// The view.
#[derive(Clone, Debug)]
pub struct View {
    /// The order of tasks.
    pub sort: Sort,
    /// The task that is chosen.
    pub chosen: Option<u32>,
    /// The number of tasks above the first that is shown.
    pub skipped: usize,
    /// The line of the last reply.
    pub told: Option<String>,
    /// The budget that is being typed.
    pub entry: Option<String>,
    /// True if the map of the chosen task is shown, where there is room for it.
    pub has_map: bool,
    /// True if keys and columns are explained, in the place of the tasks.
    pub has_manual: bool,
    rows: usize,
}

impl Default for View {
    fn default() -> View {
        View {
            sort: Sort::default(),
            chosen: None,
            skipped: 0,
            told: None,
            entry: None,
            has_map: true,
            has_manual: false,
            rows: 0,
        }
    }
}

impl Sort {
    /// The name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Memory => "memory",
            Sort::Budget => "budget",
            Sort::Unmanaged => "unmanaged",
            Sort::Faults => "faults",
            Sort::PageIns => "page-ins",
            Sort::PageOuts => "page-outs",
            Sort::Waited => "waited",
            Sort::Pid => "pid",
        }
    }

    /// The measure of a task, by which those with more come first.
    fn measure(self, task: &Task) -> u64 {
        let rate = |rate: f64| (rate * 1000.0) as u64;
        match self {
            Sort::Memory => task.resident_bytes,
            Sort::Budget => task.budget_bytes,
            Sort::Unmanaged => task.unmanaged_bytes,
            Sort::Faults => rate(task.rates.faults()),
            Sort::PageIns => rate(task.rates.get(Counter::PageIns)),
            Sort::PageOuts => rate(task.rates.get(Counter::PageOuts)),
            Sort::Waited => rate(task.rates.get(Counter::StallNs)),
            Sort::Pid => 0,
        }
    }
}

impl View {
    /// The tasks in their order.
    pub fn tasks<'a>(&self, state: &'a RunState) -> Vec<&'a Task> {
        let mut tasks: Vec<&Task> = state.tasks.iter().collect();
        tasks.sort_by_key(|task| (Reverse(self.sort.measure(task)), task.pid));
        tasks
    }

    /// Makes the chosen task exist and be visible, on a screen of `rows`.
    pub fn settle(&mut self, state: &RunState, rows: usize) {
        self.rows = self.task_rows(rows);
        let tasks = self.tasks(state);
        let place = tasks.iter().position(|task| Some(task.pid) == self.chosen);
        let place = place.unwrap_or(0);
        self.chosen = tasks.get(place).map(|task| task.pid);
        self.skipped = self
            .skipped
            .clamp((place + 1).saturating_sub(self.rows), place);
        self.skipped = self.skipped.min(tasks.len().saturating_sub(self.rows));
    }

    /// The number of lines that the map has on a screen of `rows`.
    pub fn map_rows(&self, rows: usize) -> usize {
        match self.has_map && rows >= MAP_FROM {
            true => (rows / MAP_PART).min(MAP_MOST),
            false => 0,
        }
    }

    /// The number of lines that tasks have on it.
    pub fn task_rows(&self, rows: usize) -> usize {
        let others = OTHER_ROWS + self.map_rows(rows);
        rows.saturating_sub(others).max(1)
    }

    /// Takes in a key.
    pub fn press(&mut self, key: Key, state: &RunState) -> Outcome {
        if key == Key::Interrupt {
            return Outcome::Quit;
        }
        if self.entry.is_some() {
            return self.press_in_entry(key);
        }
        if std::mem::take(&mut self.has_manual) {
            return match key {
                Key::Char('q') => Outcome::Quit,
                _ => Outcome::Nothing,
            };
        }
        self.told = None;
        let page = self.rows as isize;
        match (key, self.chosen) {
            (Key::Char('q'), _) => return Outcome::Quit,
            (Key::Up | Key::Char('k'), _) => self.step(state, -1),
            (Key::Down | Key::Char('j'), _) => self.step(state, 1),
            (Key::PageUp, _) => self.step(state, -page),
            (Key::PageDown, _) => self.step(state, page),
            (Key::Char('s'), _) => self.sort = self.next_order(),
            (Key::Char('?' | 'h'), _) => self.has_manual = true,
            (Key::Char('m'), _) => self.has_map = !self.has_map,
            (Key::Char('b'), _) => self.entry = Some(String::new()),
            (Key::Char('z'), Some(pid)) => return Outcome::Ask(Request::Suspend { pid }),
            (Key::Char('r'), Some(pid)) => return Outcome::Ask(Request::Resume { pid }),
            (Key::Char('e'), Some(pid)) => return Outcome::Ask(Request::Evict { pid }),
            _ => {}
        }
        Outcome::Nothing
    }

    /// Shows a reply.
    pub fn tell(&mut self, reply: &Reply) {
        self.told = match reply {
            Reply::Done(line) | Reply::Refused(line) => Some(line.clone()),
            Reply::Stats(_)
            | Reply::Policy(_)
            | Reply::LoadControl(_)
            | Reply::Metrics(_)
            | Reply::Map(_) => None,
        };
    }

    fn press_in_entry(&mut self, key: Key) -> Outcome {
        let Some(mut text) = self.entry.take() else {
            return Outcome::Nothing;
        };
        match key {
            Key::Enter if text.is_empty() => return Outcome::Nothing,
            Key::Enter => match quantity::parse("budget", &text) {
                Ok(bytes) => return Outcome::Ask(Request::Budget { bytes }),
                Err(refusal) => {
                    self.told = Some(refusal.to_string());
                    return Outcome::Nothing;
                }
            },
            Key::Escape => return Outcome::Nothing,
            Key::Backspace => drop(text.pop()),
            Key::Char(character) if text.len() < 20 => text.push(character),
            _ => {}
        }
        self.entry = Some(text);
        Outcome::Nothing
    }

    fn step(&mut self, state: &RunState, by: isize) {
        let tasks = self.tasks(state);
        let place = tasks.iter().position(|task| Some(task.pid) == self.chosen);
        let place = place.unwrap_or(0).saturating_add_signed(by);
        let place = place.min(tasks.len().saturating_sub(1));
        self.chosen = tasks.get(place).map(|task| task.pid);
    }

    fn next_order(&self) -> Sort {
        let place = ORDERS.iter().position(|order| *order == self.sort);
        ORDERS[(place.unwrap_or(0) + 1) % ORDERS.len()]
    }
}
