//! Patterns: the output that a page shows, with numbers that vary, and text that is left out.
//!
//! Lines are compared without the spaces and rules that only align them. A table whose head ends
//! with `…` is cut there on the page.

/// Text that is left out, within a line; a line of its own stands for any lines.
const LEFT_OUT: char = '…';
/// Stands before a number that varies.
const VARIES: char = '~';
/// Kinds of units that may stand behind a number that varies, each in place of the others.
const UNITS: [&[&str]; 4] = [
    &["ns", "us", "µs", "ms", "s", "min", "h"],
    &["KiB", "MiB", "GiB", "TiB", "B"],
    &["k", "M", "G"],
    &["%"],
];

/// Returns true if the page prints nothing, or what was printed.
pub fn agrees(page: &[String], printed: &str) -> bool {
    page.is_empty() || lines_agree(&trimmed(page), &normal_lines(printed))
}

/// The output that the page is to show from now on: the lines printed, with the marks of the lines
/// that they replace. `None` if it agrees already.
pub fn rewritten(page: &[String], printed: &str) -> Option<Vec<String>> {
    if agrees(page, printed) {
        return None;
    }
    let printed = cut_like(page, printed);
    let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
    let mut lines = Vec::new();
    let (mut at, mut is_left_out) = (0, false);
    for line in page {
        if line.trim() == "…" {
            is_left_out = true;
            continue;
        }
        let same = |other: &&str| has_shape(line, other);
        let Some(found) = printed[at..].iter().position(same) else {
            continue;
        };
        put_between(&mut lines, &printed[at..at + found], is_left_out);
        lines.push(marked_like(printed[at + found], line));
        (at, is_left_out) = (at + found + 1, false);
    }
    put_between(&mut lines, &printed[at..], is_left_out);
    Some(lines)
}

fn put_between(lines: &mut Vec<String>, between: &[&str], is_left_out: bool) {
    match is_left_out {
        true => lines.push(LEFT_OUT.to_string()),
        false => lines.extend(between.iter().map(|line| (*line).to_owned())),
    }
}

/// The lines printed, with tables cut where the page cuts them.
fn cut_like(page: &[String], printed: &str) -> Vec<String> {
    let mut width = None;
    let mut cut = Vec::new();
    for line in printed.trim_end().lines().map(str::trim_end) {
        let head = page
            .iter()
            .find(|head| is_cut(head) && has_shape(head, line));
        let last = head.and_then(|head| head.split_whitespace().rev().nth(1));
        if let Some((before, last)) = last.and_then(|last| Some((line.find(last)?, last))) {
            let chars = line[..before + last.len()].chars().count();
            width = is_row(line).then_some(chars);
            cut.push(format!("{} {LEFT_OUT}", &line[..before + last.len()]));
            continue;
        }
        width = width.filter(|_| is_row(line));
        let kept: String = line.chars().take(width.unwrap_or(usize::MAX)).collect();
        cut.push(kept.trim_end().to_owned());
    }
    cut
}

/// Returns true for a line that ends with what is left out, and has more.
fn is_cut(line: &str) -> bool {
    line.ends_with(LEFT_OUT) && line.trim() != "…"
}

/// Returns true for a line of a table.
fn is_row(line: &str) -> bool {
    line.starts_with([' ', '─'])
}

/// Returns true if two lines differ in their numbers and their alignment alone.
fn has_shape(page: &str, printed: &str) -> bool {
    let shape = |line: &str| -> String {
        let text = normal(line).replace(VARIES, "");
        let text: String = text.chars().filter(|byte| !is_of_number(*byte)).collect();
        text.replace(' ', "")
    };
    match shape(page).strip_suffix(LEFT_OUT) {
        Some(begin) => shape(printed).starts_with(begin),
        None => shape(page) == shape(printed),
    }
}

/// The line with the marks that another line of its shape has.
fn marked_like(line: &str, marked: &str) -> String {
    let mut varies = Vec::new();
    let mut before = [' '; 2];
    for byte in marked.chars() {
        if byte.is_ascii_digit() && !is_of_number(before[1]) {
            varies.push(before[1] == VARIES);
        } else if byte.is_ascii_digit() && !before[1].is_ascii_digit() && before[0] == VARIES {
            varies.push(true);
        }
        before = [before[1], byte];
    }
    let mut numbers = varies.into_iter();
    let mut text = String::new();
    let mut before = ' ';
    for byte in line.chars() {
        if byte.is_ascii_digit() && !is_of_number(before) && numbers.next() == Some(true) {
            // The mark takes the place of a space where there is one to spare.
            if text.ends_with("  ") {
                text.pop();
            }
            text.push(VARIES);
        }
        text.push(byte);
        before = byte;
    }
    text
}

fn is_of_number(byte: char) -> bool {
    byte.is_ascii_digit() || ",.".contains(byte)
}

fn trimmed(page: &[String]) -> Vec<String> {
    let mut is_in_cut_table = false;
    let lines = page.iter().map(|line| {
        is_in_cut_table = is_row(line) && (is_in_cut_table || is_cut(line));
        match is_in_cut_table && !line.ends_with(LEFT_OUT) {
            true => format!("{} {LEFT_OUT}", normal(line)),
            false => normal(line),
        }
    });
    let mut lines: Vec<String> = lines.skip_while(String::is_empty).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn normal_lines(printed: &str) -> Vec<String> {
    let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    trimmed(&lines)
}

/// The line without what only aligns it.
fn normal(line: &str) -> String {
    let mut text = String::new();
    for byte in line.trim().chars() {
        if !(matches!(byte, ' ' | '─') && text.ends_with(byte)) {
            text.push(byte);
        }
    }
    text
}

fn lines_agree(page: &[String], printed: &[String]) -> bool {
    let Some((first, rest)) = page.split_first() else {
        return printed.is_empty();
    };
    if first == "…" {
        return (0..=printed.len()).any(|from| lines_agree(rest, &printed[from..]));
    }
    let line = printed.first();
    line.is_some_and(|line| line_agrees(first, line)) && lines_agree(rest, &printed[1..])
}

fn line_agrees(page: &str, printed: &str) -> bool {
    let mut bytes = page.chars();
    match bytes.next() {
        None => printed.is_empty(),
        Some(LEFT_OUT) => {
            let rest = bytes.as_str().trim_start();
            let mut ends = printed.char_indices().map(|(at, _)| at);
            let all = ends.by_ref().any(|at| line_agrees(rest, &printed[at..]));
            all || rest.is_empty()
        }
        Some(VARIES) if number(bytes.as_str()).is_some() => {
            let rest = number(bytes.as_str()).unwrap_or_default();
            let Some(behind) = number(printed.trim_start()) else {
                return false;
            };
            let (rest, behind) = without_units(rest, behind);
            line_agrees(rest, behind)
        }
        // The space in front of what is left out may be left out itself.
        Some(' ') if bytes.as_str().starts_with(LEFT_OUT) => line_agrees(bytes.as_str(), printed),
        Some(byte) => printed
            .strip_prefix(byte)
            .is_some_and(|printed| line_agrees(bytes.as_str(), printed)),
    }
}

/// The rest of the text behind the number that it begins with.
fn number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-', '−']).unwrap_or(text);
    let rest = digits.trim_start_matches(is_of_number);
    (digits.starts_with(|byte: char| byte.is_ascii_digit())).then_some(rest)
}

/// Both texts without the units they begin with, if these are of one kind.
fn without_units<'a>(page: &'a str, printed: &'a str) -> (&'a str, &'a str) {
    for kind in UNITS {
        if let (Some(page), Some(printed)) = (behind_unit(page, kind), behind_unit(printed, kind)) {
            return (page, printed);
        }
    }
    (page, printed)
}

fn behind_unit<'a>(text: &'a str, kind: &[&str]) -> Option<&'a str> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let is_end = |rest: &&str| !rest.starts_with(|byte: char| byte.is_alphanumeric());
    let mut rests = kind.iter().filter_map(|unit| text.strip_prefix(unit));
    rests.find(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn numbers_without_a_mark_are_to_be_the_same() {
        assert!(agrees(
            &page("misses   12\n────"),
            "misses 12\n──────────\n\n"
        ));
        assert!(!agrees(&page("misses 12"), "misses 13"));
        assert!(!agrees(&page("misses 12"), "misses 12\nmore"));
        assert!(!agrees(&page("misses 12\nmore"), "misses 12"));
    }

    #[test]
    fn a_marked_number_may_be_any_number_with_a_unit_of_its_kind() {
        assert!(agrees(&page("in ~1.2 s, ~-3 %"), "in 740 ms, +12.5 %"));
        assert!(agrees(&page("~1,234 pages"), "7 pages"));
        assert!(!agrees(&page("~1,234 pages"), "many pages"));
        assert!(!agrees(&page("in ~1.2 s"), "in 1.2 MiB"));
        assert!(!agrees(&page("in ~1.2 s"), "in 1.2 seconds"));
    }

    #[test]
    fn text_and_lines_may_be_left_out() {
        assert!(agrees(&page("head\n…\nend"), "head\n1\n2\nend"));
        assert!(agrees(&page("head …"), "head and more"));
        assert!(agrees(&page("head …"), "head"));
        assert!(agrees(&page("a … z"), "a b c z"));
        assert!(!agrees(&page("head\n…\nend"), "head\n1"));
        assert!(!agrees(&page("a … z"), "a b c"));
    }

    #[test]
    fn rewriting_keeps_the_marks_and_what_was_left_out() {
        let before = page("run 1\n…\n in ~1.2 s   5 pages\nlast one …");
        let after = rewritten(&before, "run 2\nx\n in 3.4 s   6 pages\nlast one of all").unwrap();
        assert_eq!(after[..3], page("run 2\n…\n in ~3.4 s   6 pages"));
        assert!(agrees(
            &after,
            "run 2\nx\n in 3.5 s   6 pages\nlast one of all"
        ));
        assert!(rewritten(&before, "run 1\n in 9 s   5 pages\nlast one").is_none());
    }

    #[test]
    fn a_table_is_cut_where_its_head_is() {
        let before = page(" name   pages …\n──────\n one        5\nover");
        let printed = " name   pages   more\n────────────────\n one        6      7\nover";
        assert!(!agrees(&before, printed));
        let after = rewritten(&before, printed).unwrap();
        assert_eq!(
            after,
            page(" name   pages …\n─────────────\n one        6\nover")
        );
        assert!(agrees(&after, printed));
    }

    #[test]
    fn rewriting_takes_up_new_lines_and_drops_old_ones() {
        let after = rewritten(&page("a 1\nb 1\nc 1"), "a 1\nnew\nc 1").unwrap();
        assert_eq!(after, page("a 1\nnew\nc 1"));
    }
}
