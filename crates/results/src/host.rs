//! The record of what a host permits, and its text view.

use serde::{Deserialize, Serialize};

use crate::text::hanging;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.doctor.v1";

/// The abilities of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// True if `tidemark run` works here.
    pub can_run: bool,
    /// The checks made.
    pub checks: Vec<Check>,
    /// The costs of the primitives here, if they were measured.
    pub latencies: Vec<Latency>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The thing checked.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The finding.
    pub finding: String,
    /// The command or step that would mend it.
    pub remedy: Option<String>,
    /// Other ways to the same, each with what it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// The verdict on a thing checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The host is as it should be.
    Fine,
    /// Missing; `run` works without it, slower or with less.
    Limited,
    /// Missing, and `run` does not work without it.
    Missing,
    /// Neither good nor bad, but good to know.
    Fact,
}

/// The cost of a primitive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The name of the primitive.
    pub name: String,
    /// Half of the samples took less, in microseconds.
    pub p50_us: f64,
    /// Ninety-nine in a hundred took less, in microseconds.
    pub p99_us: f64,
    /// The number of samples.
    pub samples: u64,
    /// The rate they amount to, where a rate says more.
    pub rate: Option<String>,
}

impl HostRecord {
    /// The record of these findings.
    pub fn new(checks: Vec<Check>, latencies: Vec<Latency>) -> HostRecord {
        let can_run = checks.iter().all(|check| check.verdict != Verdict::Missing);
        HostRecord {
            schema: SCHEMA.into(),
            can_run,
            checks,
            latencies,
        }
    }

    /// The record in JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("every key is a string");
        text.push('\n');
        text
    }

    /// The record for people: a finding and its remedy below it, in lines of at most `columns`, if
    /// given.
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let width = self
            .checks
            .iter()
            .map(|check| check.name.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for check in &self.checks {
            let verdict = check.verdict.word();
            let head = format!("{verdict:<8} {:<width$}  ", check.name);
            text.push_str(&hanging(&head, &check.finding, columns));
            if let Some(remedy) = &check.remedy {
                let head = format!("{:<8} {:<width$}  ", "", "");
                text.push_str(&hanging(&head, &format!("to mend it: {remedy}"), columns));
            }
            for other in &check.others {
                let head = format!("{:<8} {:<width$}  ", "", "");
                text.push_str(&hanging(&head, &format!("or {other}"), columns));
            }
        }
        if !self.latencies.is_empty() {
            text.push_str(&format!("\n{}\n", self.latency_table()));
        }
        text.push_str(match self.can_run {
            true => "\n`tidemark run` works here.\n",
            false => "\n`tidemark run` does not work here yet.\n",
        });
        text
    }

    fn latency_table(&self) -> comfy_table::Table {
        let mut table = crate::text::table(&["measured", "p50 µs", "p99 µs", "samples", "rate"], 1);
        for latency in &self.latencies {
            table.add_row([
                latency.name.clone(),
                format!("{:.2}", latency.p50_us),
                format!("{:.2}", latency.p99_us),
                latency.samples.to_string(),
                latency.rate.clone().unwrap_or_default(),
            ]);
        }
        table
    }
}

impl Latency {
    /// The latency of these samples, in nanoseconds. `None` without samples.
    pub fn of_samples(name: &str, mut samples_ns: Vec<u64>) -> Option<Latency> {
        samples_ns.sort_unstable();
        let last = samples_ns.len().checked_sub(1)?;
        let us = |per_cent: usize| samples_ns[last * per_cent / 100] as f64 / 1000.0;
        let (p50_us, p99_us) = (us(50), us(99));
        let samples = samples_ns.len() as u64;
        Some(Latency {
            name: name.into(),
            p50_us,
            p99_us,
            samples,
            rate: None,
        })
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Fine => "ok",
            Verdict::Limited => "limited",
            Verdict::Missing => "MISSING",
            Verdict::Fact => "-",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, verdict: Verdict, remedy: Option<&str>) -> Check {
        let remedy = remedy.map(Into::into);
        Check {
            name: name.into(),
            verdict,
            finding: format!("{name} found"),
            remedy,
            others: vec![],
        }
    }

    #[test]
    fn one_missing_thing_is_enough_to_say_no() {
        let fine = check("kernel", Verdict::Fine, None);
        let limited = check("io_uring", Verdict::Limited, Some("sysctl"));
        assert!(HostRecord::new(vec![fine.clone(), limited.clone()], vec![]).can_run);
        let missing = check("userfaultfd", Verdict::Missing, Some("setfacl"));
        assert!(!HostRecord::new(vec![fine, limited, missing], vec![]).can_run);
    }

    #[test]
    fn the_text_lines_up_and_shows_the_remedy_below_its_finding() {
        let checks = vec![
            check("kernel", Verdict::Fine, None),
            check("userfaultfd", Verdict::Missing, Some("setfacl")),
        ];
        let text = HostRecord::new(checks, vec![]).to_text(None);
        let expected = "\
ok       kernel       kernel found
MISSING  userfaultfd  userfaultfd found
                      to mend it: setfacl

`tidemark run` does not work here yet.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn latencies_are_percentiles_of_samples() {
        let latency = Latency::of_samples("fault", (1..=101).map(|us| us * 1000).collect());
        let latency = latency.unwrap();
        assert_eq!(
            (latency.p50_us, latency.p99_us, latency.samples),
            (51.0, 100.0, 101)
        );
        assert_eq!(Latency::of_samples("fault", vec![]), None);
        let text = HostRecord::new(vec![], vec![latency]).to_text(None);
        assert!(text.contains("51.00") && text.contains("100.00"), "{text}");
    }

    #[test]
    fn the_json_reads_back() {
        let record = HostRecord::new(vec![check("kernel", Verdict::Fact, None)], vec![]);
        assert_eq!(
            serde_json::from_str::<HostRecord>(&record.to_json()).unwrap(),
            record
        );
    }
}
