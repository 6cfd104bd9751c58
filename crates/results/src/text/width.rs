//! Tables that keep to the width of a terminal: text wraps in its column, and columns of numbers
//! that don't fit beside the others follow below them.

use comfy_table::{ColumnConstraint, ContentArrangement, Table};

use super::table;

/// The least width that the last column is wrapped to.
const WRAPPED_MIN: usize = 20;

/// A table as text, without the blanks that fill its last column up.
pub fn trimmed(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Wraps the last column of `table` so that all of it is at most `width` columns wide. Without a
/// width nothing changes.
pub fn wrap_last(table: &mut Table, width: Option<usize>) {
    let Some(width) = width else { return };
    let columns = table.column_max_content_widths().len();
    let others = table.column_iter_mut().take(columns.saturating_sub(1));
    others.for_each(|column| {
        column.set_constraint(ColumnConstraint::ContentWidth);
    });
    let content = table.column_max_content_widths();
    let others: usize = content
        .iter()
        .rev()
        .skip(1)
        .map(|&wide| usize::from(wide))
        .sum();
    // Padding and rules take three columns for each, at most.
    let least = others + 3 * columns + WRAPPED_MIN;
    let width = u16::try_from(width.max(least)).unwrap_or(u16::MAX);
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
}

/// `head` and, behind it, `text` in lines of at most `width` columns, the later ones indented to
/// where it begins; ends with a line's end. Without a width it is one line.
pub fn hanging(head: &str, text: &str, width: Option<usize>) -> String {
    let indent = head.chars().count();
    let columns = width.map_or(usize::MAX, |width| width.max(indent + WRAPPED_MIN));
    broken(head, text, indent, columns)
}

/// `head` and, behind it, `text` broken between words into lines of at most `columns`, the later
/// ones indented by `indent`; ends with a line's end.
pub fn broken(head: &str, text: &str, indent: usize, columns: usize) -> String {
    let mut told = head.to_owned();
    let mut length = head.chars().count();
    for (place, word) in text.split(' ').enumerate() {
        let word_length = word.chars().count();
        if place > 0 && length + 1 + word_length > columns {
            told.push_str(&format!("\n{:indent$}", ""));
            length = indent;
        } else if place > 0 {
            told.push(' ');
            length += 1;
        }
        told.push_str(word);
        length += word_length;
    }
    told.push('\n');
    told
}

/// Returns true if a table of columns of this content is at most `width` wide, if its last column
/// wraps.
pub fn has_room(table: &Table, width: usize) -> bool {
    let content = table.column_max_content_widths();
    let others = content.iter().rev().skip(1).map(|&wide| usize::from(wide));
    others.sum::<usize>() + 3 * content.len() + WRAPPED_MIN <= width
}

/// A table as [`table`] makes it, at most `width` columns wide: the columns that don't fit follow
/// below, beside the first `keys` columns again. Without a width all are side by side.
pub fn folded(
    head: &[&str],
    rows: &[Vec<String>],
    columns_left: usize,
    keys: usize,
    width: Option<usize>,
) -> String {
    let part = |columns: &[usize]| {
        let names: Vec<&str> = columns.iter().map(|&at| head[at]).collect();
        let left = columns.iter().filter(|&&at| at < columns_left).count();
        let mut table = table(&names, left);
        for row in rows {
            table.add_row(columns.iter().map(|&at| row[at].as_str()));
        }
        trimmed(&table)
    };
    let fits = |columns: &[usize]| {
        let Some(width) = width else { return true };
        let names: Vec<String> = columns
            .iter()
            .map(|&at| "x".repeat(content(head, rows, at)))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let line = table(&names, names.len()).to_string();
        line.lines().all(|line| line.chars().count() <= width)
    };
    let keys: Vec<usize> = (0..keys).collect();
    let mut parts = vec![];
    let mut columns = keys.clone();
    for at in keys.len()..head.len() {
        columns.push(at);
        if !fits(&columns) && columns.len() > keys.len() + 1 {
            columns.pop();
            parts.push(part(&columns));
            columns.clone_from(&keys);
            columns.push(at);
        }
    }
    parts.push(part(&columns));
    parts.join("\n\n")
}

/// The width of the column without its surroundings.
fn content(head: &[&str], rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].as_str());
    let cells = cells.chain([head[column]]);
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap()
    }

    #[test]
    fn found_l_numbers_that_do_not_fit_follow_below() {
        let head = [
            "process", "program", "records", "pages", "kernel", "threads",
        ];
        let row =
            |name: &str| [name, "sort", "1,234,567,890", "1,234,567", "12", "3"].map(String::from);
        let rows = [row("0").to_vec(), row("1 (pid 4711)").to_vec()];
        let whole = folded(&head, &rows, 2, 1, None);
        assert_eq!(
            whole.lines().filter(|line| line.contains("4711")).count(),
            1
        );
        let narrow = folded(&head, &rows, 2, 1, Some(40));
        assert!(widest(&narrow) <= 40, "{narrow}");
        assert!(
            narrow.lines().filter(|line| line.contains("4711")).count() > 1,
            "{narrow}"
        );
        for cell in ["1,234,567,890", "1,234,567", "threads"] {
            assert!(narrow.contains(cell), "{narrow}");
        }
        assert_eq!(folded(&head, &rows, 2, 1, Some(200)), whole);
    }

    #[test]
    fn found_n9_lines_hang_below_where_their_text_begins() {
        let text = "one two three four five six seven eight";
        assert_eq!(hanging("a  ", text, None), format!("a  {text}\n"));
        let told = hanging("a  ", text, Some(24));
        assert_eq!(told, "a  one two three four\n   five six seven eight\n");
        let mut wide = table(&["name", "what it is"], 2);
        wide.add_row(["x".repeat(20).as_str(), text]);
        assert!(has_room(&wide, 46) && !has_room(&wide, 45));
    }

    #[test]
    fn found_l_text_wraps_in_the_last_column() {
        let mut wide = table(&["policy", "what it does"], 2);
        wide.add_row([
            "clock",
            "a hand that goes round over all pages and clears the bits it meets",
        ]);
        let whole = wide.to_string();
        wrap_last(&mut wide, None);
        assert_eq!(wide.to_string(), whole);
        wrap_last(&mut wide, Some(40));
        let narrow = wide.to_string();
        assert!(widest(&narrow) <= 40, "{narrow}");
        assert!(
            narrow.contains("clock") && narrow.contains("meets"),
            "{narrow}"
        );
    }
}
