//! The axis below a drawing, in characters.

use crate::axis::Axis;

/// A rule of `columns` characters with its ticks, and a line of their labels, behind `margin`
/// characters.
pub(super) fn ruler(axis: &Axis, columns: usize, margin: usize) -> String {
    let ticks: Vec<(usize, String)> = axis
        .ticks(columns / 10)
        .iter()
        .map(|tick| {
            let at = axis.place(*tick) * (columns - 1) as f64;
            (at.round() as usize, axis.label(*tick))
        })
        .collect();
    let mut rule = vec!['─'; columns];
    for (at, _) in &ticks {
        if let Some(place) = rule.get_mut(*at) {
            *place = '┬';
        }
    }
    let rule: String = rule.into_iter().collect();
    let margin = " ".repeat(margin - 1);
    format!(
        "{margin}└{rule}\n{margin} {}\n",
        labels_line(&ticks, columns)
    )
}

/// A line of an axis: `labels` at their columns, as many as don't touch.
fn labels_line(labels: &[(usize, String)], columns: usize) -> String {
    let mut line: Vec<char> = vec![' '; columns];
    let mut free_from = 0;
    for (at, label) in labels {
        let length = label.chars().count();
        let from = at
            .saturating_sub(length / 2)
            .min(columns.saturating_sub(length));
        if from < free_from || length > columns {
            continue;
        }
        for (place, letter) in line[from..].iter_mut().zip(label.chars()) {
            *place = letter;
        }
        free_from = from + length + 2;
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}
