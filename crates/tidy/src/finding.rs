//! Findings: where a rule is broken, and what to do about it.

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the workspace's root.
    pub path: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The fault, and the remedy.
    pub message: String,
}

impl Finding {
    /// Makes a finding about one line, or about the whole file if `line` is 0.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}
