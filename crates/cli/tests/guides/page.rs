//! Pages: their commands, what each is said to print, and the marks that go with it.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A page in Markdown.
pub struct Page {
    pub path: PathBuf,
    pub lines: Vec<String>,
    /// In order.
    pub commands: Vec<Command>,
}

/// A command as it stands on a page.
pub struct Command {
    /// Its line, from 1.
    pub line: usize,
    /// All of its lines, without the prompt.
    pub text: String,
    /// The lines of the page that show what it prints.
    pub printed: Range<usize>,
    pub when: When,
    /// The status that it ends with.
    pub status: i32,
}

/// The occasions on which a command is run.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    Always,
    /// It takes minutes, or changes what others use: at full size alone.
    Acceptance,
    /// On a machine where this program is installed.
    With(String),
}

impl Page {
    pub fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let commands = commands(&lines);
        Page {
            path: path.to_owned(),
            lines,
            commands,
        }
    }

    pub fn write(&self) {
        std::fs::write(&self.path, self.lines.join("\n") + "\n").unwrap();
    }

    /// Returns true if its commands are typed in the folder of traces that README makes, and not
    /// in the clone.
    ///
    /// # Panics
    /// If the page has commands and does not say where they are typed.
    pub fn is_typed_among_traces(&self) -> bool {
        let Some(first) = self.commands.first() else {
            return false;
        };
        let before = self.lines[..first.line].join(" ");
        let is_among_traces = before.contains("in `/tmp/tides`");
        assert!(
            is_among_traces || before.contains("in the clone") || before.contains("a clean clone"),
            "{} does not say where its commands are typed: in `/tmp/tides`, or in the clone",
            self.path.display()
        );
        is_among_traces
    }
}

/// The commands of all `console` blocks.
fn commands(lines: &[String]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut block: Option<String> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        at += 1;
        let Some(remark) = &mut block else {
            if line == "```console" {
                block = Some(String::new());
            }
            continue;
        };
        if line == "```" {
            block = None;
        } else if let Some(first) = line.strip_prefix("$ ") {
            let begin = at;
            let mut text = first.to_owned();
            while !is_complete(&text) {
                text = format!("{text}\n{}", lines[at]);
                at += 1;
            }
            let remark = format!("{remark} {}", comment(&text));
            commands.push(Command {
                line: begin,
                text,
                printed: at..at,
                when: when(&remark),
                status: status(&remark),
            });
        } else if line.starts_with("# ") && lines[at - 2] == "```console" {
            *remark = line.clone();
        } else {
            let last = commands.last_mut();
            last.expect("a block begins with a command").printed.end = at;
        }
    }
    commands
}

/// Returns true if no line is missing from a command: behind a backslash, of a loop, of a
/// quotation, of a file that is typed.
fn is_complete(text: &str) -> bool {
    let first = text.split_whitespace().next();
    let is_loop = matches!(first, Some("for" | "while"));
    let has_end = text
        .lines()
        .any(|line| line.trim_start().starts_with("done"));
    if let Some((_, mark)) = text.split_once("<<'") {
        let mark = mark.split('\'').next();
        return text.lines().any(|line| Some(line) == mark);
    }
    let text = text.strip_suffix(comment(text)).unwrap_or(text).trim_end();
    let quotes = text.matches('\'').count();
    !text.ends_with('\\')
        && (!is_loop || has_end || text.contains("; done"))
        && quotes.is_multiple_of(2)
}

/// The comment behind a command: from a number sign outside quotation marks that follows a space.
fn comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, byte) in text.char_indices() {
        match (quote, byte) {
            (None, '#') if before == ' ' => return &text[at..],
            (None, '\'' | '"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        before = byte;
    }
    ""
}

fn when(comment: &str) -> When {
    let comment = comment.to_lowercase();
    let mut words = comment.split(|byte: char| !byte.is_alphanumeric() && !"-_".contains(byte));
    let is_long = |word| matches!(word, "minute" | "minutes" | "hour" | "hours" | "acceptance");
    if words.clone().any(is_long) {
        return When::Acceptance;
    }
    match words.find(|word| *word == "needs").and(words.next()) {
        Some(program) => When::With(program.to_owned()),
        None => When::Always,
    }
}

fn status(comment: &str) -> i32 {
    let behind = comment.split_once("status ").map(|(_, behind)| behind);
    let number = behind.and_then(|behind| behind.split(|byte: char| !byte.is_ascii_digit()).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Command> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        commands(&lines)
    }

    #[test]
    fn a_block_is_taken_apart_into_commands_and_what_they_print() {
        let first = "x\n```console\n$ one   # minutes: long\nfirst\n$ two \\\n   more\n";
        let commands = of(&format!("{first}$ echo '# 3\n4'\nsecond\n```\ny"));
        let texts: Vec<&str> = commands.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            ["one   # minutes: long", "two \\\n   more", "echo '# 3\n4'"]
        );
        assert_eq!(commands[0].printed, 3..4);
        assert_eq!(commands[1].printed, 6..6);
        assert_eq!(commands[2].printed, 8..9);
        assert_eq!(commands[0].when, When::Acceptance);
        assert_eq!(commands[2].when, When::Always);
    }

    #[test]
    fn a_comment_in_the_first_line_is_for_the_whole_block() {
        let commands = of("```console\n# Minutes: all of it.\n$ one\n$ two   # status 3\n```");
        assert!(commands.iter().all(|one| one.when == When::Acceptance));
        assert_eq!((commands[0].status, commands[1].status), (0, 3));
    }

    #[test]
    fn a_comment_names_the_program_that_a_command_needs() {
        let commands = of("```console\n$ clang-14 x.c   # needs clang-14, Debian's\n$ two\n```");
        assert_eq!(commands.len(), 2);
        assert_eq!(commands[0].when, When::With("clang-14".into()));
    }

    #[test]
    fn a_file_that_is_typed_ends_with_its_mark() {
        let commands = of("```console\n$ cat > x <<'END'\n$ no command\nEND\nprinted\n```");
        assert_eq!(commands.len(), 1);
        assert_eq!(commands[0].printed, 4..5);
    }

    #[test]
    fn a_loop_ends_with_done() {
        let commands = of("```console\n$ for i in 1 2; do\n      echo $i\n  done\n1\n2\n```");
        assert_eq!(commands.len(), 1);
        assert_eq!(commands[0].printed, 4..6);
    }
}
