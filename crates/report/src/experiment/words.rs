//! Findings in words.

use tidemark_results::experiment::{
    Bound, Ending, ExperimentRecord, ExperimentsRecord, Finding, Form, Verdict,
};
use tidemark_results::text;

use crate::numbers::{self, digits};

/// True for a claim of our own: nothing was published of it.
fn is_own(finding: &Finding) -> bool {
    finding.strength == "own"
}

/// The number of published claims with this verdict.
pub fn count(experiment: &ExperimentRecord, verdict: Verdict) -> usize {
    let findings = experiment.findings.iter();
    findings
        .filter(|finding| !is_own(finding) && finding.verdict == verdict)
        .count()
}

/// The verdict in a word.
pub fn verdict(finding: &Finding) -> &'static str {
    match finding.verdict {
        Verdict::Reproduced if is_own(finding) => "holds",
        Verdict::Not if is_own(finding) => "does not hold",
        verdict => verdict.word(),
    }
}

/// The claims, published ones first.
pub fn in_order(experiment: &ExperimentRecord) -> Vec<&Finding> {
    let (own, others): (Vec<_>, Vec<_>) = experiment.findings.iter().partition(|one| is_own(one));
    [others, own].concat()
}

/// The number of claims with each verdict.
pub fn summary(record: &ExperimentsRecord) -> String {
    let count = |verdict| -> usize {
        let experiments = record.experiments.iter();
        experiments
            .map(|experiment| count(experiment, verdict))
            .sum()
    };
    let findings = || record.experiments.iter().flat_map(|one| &one.findings);
    let all = findings().filter(|finding| !is_own(finding)).count();
    let own = findings().filter(|finding| is_own(finding)).count();
    let hold = findings()
        .filter(|finding| is_own(finding) && finding.verdict == Verdict::Reproduced)
        .count();
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    };
    let mut text = format!(
        "{}: of {}, {} reproduced, {} partly, {} not",
        plural(record.experiments.len(), "experiment"),
        plural(all, "claim"),
        count(Verdict::Reproduced),
        count(Verdict::Partly),
        count(Verdict::Not),
    );
    match count(Verdict::Unknown) {
        0 => {}
        unknown => text.push_str(&format!(", {unknown} not measured")),
    }
    match own {
        0 => {}
        _ => {
            let holds = if hold == 1 { "holds" } else { "hold" };
            let own = plural(own, "claim");
            text.push_str(&format!("; {own} of our own, {hold} {holds}"));
        }
    }
    text
}

/// The published value, as it is shown.
pub fn published(finding: &Finding) -> String {
    match is_own(finding) {
        true => format!("nothing; we claim {}", claimed(finding)),
        false => claimed(finding),
    }
}

fn claimed(finding: &Finding) -> String {
    let number = finding.published.map(digits).unwrap_or_default();
    match finding.form {
        Form::Ratio => finding.published.map(ratio).unwrap_or_default(),
        Form::Order => {
            let names = finding.values.iter().map(|value| value.of.as_str());
            names.collect::<Vec<_>>().join(" < ")
        }
        Form::Equal => format!("the same, within {number} ×"),
        Form::Value => number,
        Form::Slope => format!("slope {number}"),
        Form::AtMost => format!("at most {number}"),
        Form::AtLeast => format!("at least {number}"),
        Form::Unfinished => "never ends".into(),
    }
}

/// The found value, as it is shown.
pub fn found(finding: &Finding) -> String {
    let bound = match finding.bound {
        Bound::Exact => "",
        Bound::AtLeast => "≥ ",
        Bound::AtMost => "≤ ",
    };
    let first = finding.values.first().map(|value| value.ending);
    match (finding.form, finding.ours) {
        (Form::Order, _) if finding.verdict == Verdict::Unknown => "–".into(),
        (Form::Order, _) => {
            let mut values: Vec<_> = finding.values.iter().collect();
            values.sort_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
            let names = values.iter().map(|value| value.of.as_str());
            names.collect::<Vec<_>>().join(" < ")
        }
        (Form::Unfinished, ours) => match (first, ours) {
            (Some(cut @ (Ending::GivenUp | Ending::Stuck)), _) => ending(cut).into(),
            (_, Some(ratio)) => format!("ends, after {} × the time", digits(ratio)),
            _ => "ends".into(),
        },
        (_, None) => match finding.values.as_slice() {
            [of, over] if of.value > Some(0.0) && over.value == Some(0.0) => {
                "none at all to divide by".into()
            }
            _ => "–".into(),
        },
        (Form::Ratio | Form::Equal, Some(ours)) => format!("{bound}{}", ratio(ours)),
        (Form::Slope, Some(ours)) => format!("slope {}", digits(ours)),
        (Form::Value | Form::AtMost | Form::AtLeast, Some(ours)) => {
            format!("{bound}{}", digits(ours))
        }
    }
}

/// A ratio; one near 1 with enough digits that its difference from 1 has some.
fn ratio(value: f64) -> String {
    match value {
        _ if (0.5..2.0).contains(&value) => format!("{value:.3} ×"),
        _ => format!("{} ×", digits(value)),
    }
}

/// The values that it was found from.
pub fn measured(finding: &Finding) -> String {
    let values = finding.values.iter().map(|value| {
        let amount = value
            .value
            .map_or("–".into(), |v| amount(&finding.metric, v));
        let cut = match value.ending {
            Ending::Complete => String::new(),
            other => format!(" ({})", ending(other)),
        };
        format!("{} {amount}{cut}", value.of)
    });
    values.collect::<Vec<_>>().join(", ")
}

/// The end of a run, in words.
pub fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Complete => "complete",
        Ending::GivenUp => "did not complete",
        Ending::Stuck => "got stuck",
        Ending::Killed => "ran out of memory",
    }
}

/// A value of a metric, in its unit.
pub fn amount(metric: &str, value: f64) -> String {
    let plain = metric.split('.').next().unwrap_or(metric);
    match plain {
        _ if plain.ends_with("_s") => numbers::seconds(value),
        _ if plain.ends_with("bytes_max") => numbers::bytes(value),
        _ if value >= 1000.0 && value.fract() == 0.0 => text::count(value as u64),
        _ => digits(value),
    }
}
