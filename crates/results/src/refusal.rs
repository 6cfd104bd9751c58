//! Refusals: one line that says why no record can be made.

use std::fmt;

/// The reason why something could not be done: what, which value, what to do about it. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

/// Refuses with a formatted line.
#[macro_export]
macro_rules! refuse {
    ($($argument:tt)*) => { return Err($crate::Refusal::new(format!($($argument)*))) };
}

impl Refusal {
    /// A refusal that says `line`.
    pub fn new(line: impl Into<String>) -> Refusal {
        Refusal(
            line.into()
                .lines()
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" "),
        )
    }
}

/// The line that a library says.
impl From<String> for Refusal {
    fn from(line: String) -> Refusal {
        Refusal::new(line)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// The text of an error without its number.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        assert_eq!(
            Refusal::new("first\n  second\n").to_string(),
            "first second"
        );
    }
}
