//! Suspensions: the times for which load control had tasks wait.

use serde::{Deserialize, Serialize};

/// A time for which load control had a task wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspension {
    /// The task: live its process id; in a replay the place of its process, counted from 0, among
    /// all of all programs, in the order of their ids when they were recorded.
    pub task: u64,
    /// The beginning, in seconds since that of the run.
    pub from_s: f64,
    /// The end; `None` if it lasted until that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// Notes among `all` that a task is suspended, or goes on. What it is already says nothing new.
pub fn note(all: &mut Vec<Suspension>, task: u64, is_suspended: bool, at_s: f64) {
    let is_open = |it: &Suspension| it.task == task && it.until_s.is_none();
    match (all.iter().rposition(is_open), is_suspended) {
        (Some(place), false) => all[place].until_s = Some(at_s),
        (None, true) => all.push(Suspension {
            task,
            from_s: at_s,
            until_s: None,
        }),
        (Some(_), true) | (None, false) => {}
    }
}

/// The decisions that suspensions came of, in order, one a line: `suspend 3`, `resume 3`, by what
/// each task is called.
pub fn decisions(suspensions: &[Suspension], name: impl Fn(u64) -> u64) -> String {
    let begin = suspensions.iter().map(|it| (it.from_s, "suspend", it.task));
    let end = |it: &Suspension| Some((it.until_s?, "resume", it.task));
    let mut all: Vec<(f64, &str, u64)> = begin.chain(suspensions.iter().filter_map(end)).collect();
    // Those made at one time keep the order in which their suspensions began.
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let lines = all.iter();
    lines
        .map(|&(_, verb, task)| format!("{verb} {}\n", name(task)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspension(task: u64, from_s: f64, until_s: impl Into<Option<f64>>) -> Suspension {
        Suspension {
            task,
            from_s,
            until_s: until_s.into(),
        }
    }

    #[test]
    fn decisions_are_told_in_the_order_of_their_times() {
        let all = [
            suspension(40, 1.0, 3.0),
            suspension(30, 1.5, 2.0),
            suspension(30, 3.5, None),
        ];
        let told = decisions(&all, |pid| pid / 10);
        assert_eq!(
            told,
            "suspend 4\nsuspend 3\nresume 3\nresume 4\nsuspend 3\n"
        );
    }

    #[test]
    fn nothing_is_told_where_nobody_waited() {
        assert_eq!(decisions(&[], |pid| pid), "");
    }
}
