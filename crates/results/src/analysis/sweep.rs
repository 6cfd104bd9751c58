//! Sweeps: many traces by many policies in many sizes of memory, as one table.

use serde::{Deserialize, Serialize};

use super::{csv_field, csv_option};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.sweep.v1";

/// The names of the columns, in the order of a CSV line.
const COLUMNS: [&str; 13] = [
    "trace",
    "policy",
    "memory",
    "trace_bytes",
    "page_bytes",
    "references",
    "trace_pages",
    "pages",
    "misses",
    "miss_ratio",
    "window",
    "mean_pages",
    "error",
];

/// The findings of `tidemark sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The rows, in the order of the traces, policies and sizes that were asked for.
    pub rows: Vec<SweepRow>,
}

/// One trace by one policy in one size of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The trace, as it was named.
    pub trace: String,
    /// The policy's name on the command line.
    pub policy: String,
    /// The size of memory, as it was asked for.
    pub memory: String,
    /// The size of the trace's file when it was counted; 0 if there was none.
    pub trace_bytes: u64,
    /// The counts, unless it failed.
    #[serde(flatten)]
    pub counted: Option<SweepCount>,
    /// The reason why nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The misses of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCount {
    /// The size of a page, in bytes.
    pub page_bytes: u64,
    /// The references on record.
    pub references: u64,
    /// The pages that they touch.
    pub trace_pages: u64,
    /// The size of memory in pages.
    pub pages: u64,
    /// References that missed, first touches included.
    pub misses: u64,
    /// The share of references that missed.
    pub miss_ratio: f64,
    /// The policy's window, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The mean of the resident set, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_pages: Option<f64>,
}

impl SweepRecord {
    /// A record of these rows.
    pub fn new(rows: Vec<SweepRow>) -> SweepRecord {
        SweepRecord {
            schema: SCHEMA.into(),
            tidemark: env!("CARGO_PKG_VERSION").into(),
            rows,
        }
    }

    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// The rows, a line each.
    pub fn to_csv(&self) -> String {
        let lines = self.rows.iter().map(SweepRow::to_csv);
        COLUMNS.join(",") + "\n" + &lines.collect::<String>()
    }

    /// Reads a record back, from JSON or CSV. Of CSV the version is not known.
    ///
    /// # Errors
    /// The text is neither, or of another schema.
    pub fn from_text(text: &str) -> Result<SweepRecord, String> {
        if text.trim_start().starts_with('{') {
            return super::from_json(text, SCHEMA);
        }
        let mut lines = fields(text)?.into_iter();
        let head = lines.next().unwrap_or_default();
        if head != COLUMNS {
            return Err(format!(
                "its first line is `{}`; a table of `tidemark sweep` begins with `{}`",
                head.join(",").chars().take(40).collect::<String>(),
                COLUMNS[..4].join(",")
            ));
        }
        let rows = lines.enumerate().map(|(at, line)| {
            SweepRow::from_csv(&line).map_err(|column| format!("line {}: {column}", at + 2))
        });
        let rows = rows.collect::<Result<Vec<SweepRow>, String>>()?;
        Ok(SweepRecord {
            tidemark: String::new(),
            ..SweepRecord::new(rows)
        })
    }
}

impl SweepRow {
    /// Returns true if `other` is of the same trace, policy and size.
    pub fn is_of(&self, other: &SweepRow) -> bool {
        let key = |row: &SweepRow| [&row.trace, &row.policy, &row.memory].map(Clone::clone);
        key(self) == key(other)
    }

    fn to_csv(&self) -> String {
        let counted = self.counted.as_ref();
        let number = |of: fn(&SweepCount) -> u64| csv_option(counted.map(of));
        let fields = [
            csv_field(&self.trace),
            csv_field(&self.policy),
            csv_field(&self.memory),
            self.trace_bytes.to_string(),
            number(|it| it.page_bytes),
            number(|it| it.references),
            number(|it| it.trace_pages),
            number(|it| it.pages),
            number(|it| it.misses),
            csv_option(counted.map(|it| it.miss_ratio)),
            csv_option(counted.and_then(|it| it.window)),
            csv_option(counted.and_then(|it| it.mean_pages)),
            csv_field(self.error.as_deref().unwrap_or_default()),
        ];
        fields.join(",") + "\n"
    }

    /// A row from the fields of a line; what is wrong with one of them otherwise.
    fn from_csv(line: &[String]) -> Result<SweepRow, String> {
        if line.len() != COLUMNS.len() {
            return Err(format!("{} fields; needs {}", line.len(), COLUMNS.len()));
        }
        let error = Some(line[12].clone()).filter(|error| !error.is_empty());
        let counted = match error {
            Some(_) => None,
            None => Some(SweepCount {
                page_bytes: number(line, 4)?,
                references: number(line, 5)?,
                trace_pages: number(line, 6)?,
                pages: number(line, 7)?,
                misses: number(line, 8)?,
                miss_ratio: number(line, 9)?,
                window: option(line, 10)?,
                mean_pages: option(line, 11)?,
            }),
        };
        Ok(SweepRow {
            trace: line[0].clone(),
            policy: line[1].clone(),
            memory: line[2].clone(),
            trace_bytes: number(line, 3)?,
            counted,
            error,
        })
    }
}

/// The number in a field.
fn number<T: std::str::FromStr>(line: &[String], at: usize) -> Result<T, String> {
    let text = &line[at];
    let parsed = text.parse();
    parsed.map_err(|_| format!("`{}` is `{text}`; needs a number", COLUMNS[at]))
}

/// The number in a field that may be empty.
fn option<T: std::str::FromStr>(line: &[String], at: usize) -> Result<Option<T>, String> {
    match line[at].is_empty() {
        true => Ok(None),
        false => number(line, at).map(Some),
    }
}

/// The fields of the lines of a table: quoted ones may hold commas, quotes and ends of lines.
fn fields(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut lines, mut line, mut field) = (vec![], vec![], String::new());
    let mut letters = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => line.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                line.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut line));
            }
            other => field.push(other),
        }
    }
    match is_quoted || !field.is_empty() || !line.is_empty() {
        true => Err("its last line is cut off".into()),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(trace: &str, counted: bool) -> SweepRow {
        SweepRow {
            trace: trace.into(),
            policy: "ws".into(),
            memory: "50%".into(),
            trace_bytes: 700,
            counted: counted.then_some(SweepCount {
                page_bytes: 4096,
                references: 3,
                trace_pages: 2,
                pages: 1,
                misses: 2,
                miss_ratio: 2.0 / 3.0,
                window: Some(7),
                mean_pages: Some(0.5),
            }),
            error: (!counted).then(|| "no \"such\" file,\nthere".into()),
        }
    }

    #[test]
    fn a_table_is_read_back_as_it_was_from_both_forms() {
        let rows = vec![row("a,b.tide", true), row("a \"b\".tide", false)];
        let record = SweepRecord::new(rows);
        assert_eq!(
            SweepRecord::from_text(&record.to_json()),
            Ok(record.clone())
        );
        let read = SweepRecord::from_text(&record.to_csv()).unwrap();
        assert_eq!(read.rows, record.rows);
    }

    #[test]
    fn what_is_no_table_is_named_by_its_first_line() {
        let told = SweepRecord::from_text("policy,pages\nlru,1\n").unwrap_err();
        assert!(
            told.starts_with("its first line is `policy,pages`"),
            "{told}"
        );
        let text = SweepRecord::new(vec![row("a", true)]).to_csv();
        let told = SweepRecord::from_text(&text[..text.len() - 1]).unwrap_err();
        assert_eq!(told, "its last line is cut off");
        let told = SweepRecord::from_text(&text.replace(",700,", ",many,")).unwrap_err();
        assert_eq!(told, "line 2: `trace_bytes` is `many`; needs a number");
        let told = SweepRecord::from_text("{\"schema\": \"tidemark.curve.v1\"}").unwrap_err();
        assert!(told.contains("tidemark.curve.v1"), "{told}");
    }
}
