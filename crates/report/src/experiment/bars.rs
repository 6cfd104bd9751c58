//! Bars: published ratios beside ours on a logarithmic axis, and runs beside each other.

use tidemark_results::experiment::{Ending, Finding, Form, Measurement, PictureOrder};

use super::words::{amount, ending, found, published};
use crate::page::escaped;

/// Bars of each claim's ratio from 1 outwards: published above, ours below.
pub fn ratios(findings: &[Finding]) -> String {
    let ratios = findings.iter().filter_map(|finding| match finding.form {
        Form::Ratio => Some((finding, finding.published?, finding.ours?)),
        _ => None,
    });
    let ratios: Vec<(&Finding, f64, f64)> = ratios
        .filter(|(_, published, ours)| *published > 0.0 && *ours > 0.0)
        .collect();
    if ratios.is_empty() {
        return String::new();
    }
    let sizes = ratios
        .iter()
        .flat_map(|(_, published, ours)| [published.ln(), ours.ln()]);
    let (least, most) = sizes.fold((0.0_f64, 0.0_f64), |(least, most), size| {
        (least.min(size), most.max(size))
    });
    let span = (most - least).max(0.1);
    let bar = |ratio: f64, kind: &str| {
        let (from, until) = (ratio.ln().min(0.0), ratio.ln().max(0.0));
        let left = (from - least) / span * 100.0;
        let width = ((until - from) / span * 100.0).max(0.4);
        format!("<i class=\"{kind}\" style=\"left:{left:.2}%;width:{width:.2}%\"></i>")
    };
    let one = -least / span * 100.0;
    let mut html = String::from(
        "<figure><figcaption>Ratios, from 1 outwards on a logarithmic axis</figcaption>\
         <div class=\"legend\"><span><i class=\"was\"></i> published</span>\
         <span><i class=\"is\"></i> ours</span></div><div class=\"ratios\">",
    );
    for (finding, was, is) in ratios {
        html.push_str(&format!(
            "<span>{}</span><div>{}{}<u style=\"left:{one:.2}%\"></u></div>\
             <span>{}<br>{}</span>",
            escaped(&finding.claim),
            bar(was, "was"),
            bar(is, "is"),
            escaped(&published(finding)),
            escaped(&found(finding)),
        ));
    }
    html + "</div></figure>"
}

/// A bar of a picture: its label, and its value.
pub struct Bar {
    /// The run, and its size and number of copies where there are several.
    pub name: String,
    /// The length.
    pub value: f64,
    /// The length in words, and how the run ended if not as it should.
    pub told: String,
    /// True if the run did not come to its end.
    pub is_cut: bool,
}

/// A bar for each run, in each size and number of copies.
pub fn runs(order: &PictureOrder, measurements: &[Measurement]) -> String {
    let bars = bars(order, measurements);
    let most = bars.iter().map(|bar| bar.value).fold(1e-12, f64::max);
    if bars.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<figure><figcaption>{}</figcaption><div class=\"bars\">",
        escaped(&order.title)
    );
    for bar in bars {
        let width = bar.value / most * 100.0;
        let kind = if bar.is_cut { "cut" } else { "is" };
        html.push_str(&format!(
            "<span>{}</span><div><i class=\"{kind}\" style=\"width:{width:.2}%\"></i></div>\
             <span>{}</span>",
            escaped(&bar.name),
            escaped(&bar.told),
        ));
    }
    html + "</div></figure>"
}

/// The bars of a picture, in the order of the measurements.
pub fn bars(order: &PictureOrder, measurements: &[Measurement]) -> Vec<Bar> {
    let shown = measurements.iter().filter_map(|measurement| {
        let is_wanted = order.runs.is_empty() || order.runs.contains(&measurement.run);
        let value = measurement.metrics.get(&order.metric);
        value
            .filter(|_| is_wanted)
            .map(|value| (measurement, *value))
    });
    let shown: Vec<(&Measurement, f64)> = shown.collect();
    let sizes = distinct(
        shown
            .iter()
            .map(|(measurement, _)| measurement.memory.clone()),
    );
    let times = distinct(shown.iter().map(|(measurement, _)| measurement.times));
    let bar = |(measurement, value): (&Measurement, f64)| {
        let mut name = measurement.run.clone();
        if sizes > 1 {
            name.push_str(&format!(" in {}", measurement.memory));
        }
        if times > 1 {
            name.push_str(&format!(" × {}", measurement.times));
        }
        let told = match measurement.ending {
            Ending::Complete => String::new(),
            other => format!(", {}", ending(other)),
        };
        Bar {
            name,
            value,
            told: amount(&order.metric, value) + &told,
            is_cut: measurement.ending != Ending::Complete,
        }
    };
    shown.into_iter().map(bar).collect()
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> usize {
    values.collect::<std::collections::BTreeSet<T>>().len()
}
