//! Experiments as one HTML page that needs nothing but itself.
//!
//! Its pictures are drawings in the page's own colours: they stand there without a script.

pub(crate) mod bars;
pub(crate) mod lines;
mod words;

use tidemark_results::experiment::{
    Ending, ExperimentRecord, ExperimentsRecord, Finding, Measurement, Verdict,
};
use tidemark_results::text;

use crate::page::payload::pack;
use crate::page::tables::table;
use crate::page::{Content, assembled, escaped};

pub use words::{ending, found, in_order, measured, published, summary, verdict};

const EXPERIMENTS: Content<'_> = Content {
    main: include_str!("experiment/experiment.html"),
    style: include_str!("experiment/experiment.css"),
    scripts: &[include_str!("experiment/experiment.js")],
};

/// Metrics that the table of measurements has where they were measured.
const SHOWN: [(&str, &str); 12] = [
    ("elapsed_s", "elapsed"),
    ("processor_s", "worked"),
    ("page_ins", "page-ins"),
    ("page_outs", "page-outs"),
    ("swap_ins", "swap-ins"),
    ("swap_outs", "swap-outs"),
    ("file_ins", "file-ins"),
    ("lifetime", "lifetime"),
    ("knee_pages", "knee, pages"),
    ("knee_lifetime", "lifetime there"),
    ("space_time", "space-time, page-seconds"),
    ("pages", "pages there"),
];

/// The page.
pub fn page(record: &ExperimentsRecord) -> String {
    let machine = &record.machine;
    let commit = record.commit.as_ref();
    let commit = commit.map_or(String::new(), |commit| format!(" · commit {commit}"));
    let processor = machine
        .processor
        .as_deref()
        .unwrap_or("an unnamed processor");
    let facts = format!(
        "{} · {} mode{commit} · {} of {processor} · Linux {}",
        record.date,
        record.mode,
        text::processors(machine.processors),
        machine.kernel
    );
    let parts = vec![
        ("title", escaped(&summary(record))),
        ("facts", escaped(&facts)),
        ("contents", contents(record)),
        (
            "experiments",
            record.experiments.iter().map(section).collect(),
        ),
        ("version", escaped(&record.tidemark)),
    ];
    assembled(&EXPERIMENTS, parts, &pack(&record.to_json(), &[]))
}

/// The meaning of verdicts.
pub const RULE: &str = "reproduced: the same direction, and a size within a factor of 3.2 (orders, \
    slopes and bounds: docs/formats/experiment-file-v1.md); partly: the direction alone";

fn contents(record: &ExperimentsRecord) -> String {
    let mut html = String::from(
        "<div class=\"table\"><table><thead><tr><th>experiment</th><th>published</th>\
         <th>reproduced</th><th>partly</th><th>not</th><th>not measured</th></tr></thead><tbody>",
    );
    for experiment in &record.experiments {
        html.push_str(&format!(
            "<tr><td class=\"wraps\"><a href=\"#{0}\">{0}</a>: {1}</td><td>{2}</td>",
            escaped(&experiment.name),
            escaped(&experiment.title),
            escaped(&experiment.source),
        ));
        for verdict in [
            Verdict::Reproduced,
            Verdict::Partly,
            Verdict::Not,
            Verdict::Unknown,
        ] {
            match words::count(experiment, verdict) {
                0 => html.push_str("<td></td>"),
                count => html.push_str(&format!("<td>{count}</td>")),
            }
        }
        html.push_str("</tr>");
    }
    html.push_str(&format!(
        "</tbody></table></div><p class=\"note\">{}</p>",
        escaped(RULE)
    ));
    for left in &record.left_out {
        html.push_str(&format!(
            "<p class=\"note\">{} was left out: {}</p>",
            escaped(&left.name),
            escaped(&left.reason)
        ));
    }
    html
}

fn section(experiment: &ExperimentRecord) -> String {
    let name = escaped(&experiment.name);
    let mut html = format!(
        "<section id=\"{name}\"><h2>{}</h2><p class=\"about\">{} <span>({})</span></p>",
        escaped(&experiment.title),
        escaped(&experiment.claimed),
        escaped(&experiment.source),
    );
    html.push_str(&findings(&in_order(experiment)));
    html.push_str(&bars::ratios(&experiment.findings));
    for order in &experiment.pictures {
        html.push_str(&match order.across.as_str() {
            "runs" => bars::runs(order, &experiment.measurements),
            _ => lines::draw(order, &experiment.measurements),
        });
    }
    html.push_str("<h3>Measured</h3>");
    html.push_str(&format!(
        "<p class=\"about\">{}{}</p>",
        escaped(&experiment.machine),
        match experiment.peak_bytes {
            0 => String::new(),
            peak => format!("; {} in use at one time at most", text::bytes(peak)),
        }
    ));
    html.push_str(&measurements(&experiment.measurements));
    html.push_str(&list("Not as it was", &experiment.differs));
    html.push_str(&list("Notes", &experiment.notes));
    html.push_str(&programs(experiment));
    html + "</section>"
}

fn findings(findings: &[&Finding]) -> String {
    let mut html = String::from(
        "<div class=\"table\"><table class=\"claims\"><thead><tr><th>claim</th><th>published</th>\
         <th>ours</th><th>verdict</th></tr></thead><tbody>",
    );
    for finding in findings {
        let verdict = match finding.verdict {
            Verdict::Reproduced => "good",
            Verdict::Partly => "half",
            Verdict::Not => "bad",
            Verdict::Unknown => "unknown",
        };
        let reason = finding.reason.as_ref();
        let reason = reason.map_or(String::new(), |reason| {
            format!("<p class=\"reason\">{}</p>", escaped(reason))
        });
        html.push_str(&format!(
            "<tr><td class=\"wraps\">{}<small>{} · {}</small>{reason}</td>\
             <td class=\"words\">{}</td>\
             <td class=\"words\">{}<small>{}</small></td>\
             <td><b class=\"verdict {verdict}\">{}</b></td></tr>",
            escaped(&finding.claim),
            escaped(&finding.metric),
            escaped(&finding.strength),
            escaped(&published(finding)),
            escaped(&found(finding)),
            escaped(&measured(finding)),
            words::verdict(finding),
        ));
    }
    html + "</tbody></table></div>"
}

fn measurements(measurements: &[Measurement]) -> String {
    let has = |metric: &str| {
        let mut all = measurements.iter();
        all.any(|measurement| measurement.metrics.contains_key(metric))
    };
    let shown: Vec<(&str, &str)> = SHOWN
        .into_iter()
        .filter(|(metric, _)| has(metric))
        .collect();
    let mut columns = vec!["run", "memory", "copies", "ended"];
    columns.extend(shown.iter().map(|(_, name)| *name));
    let rows = measurements.iter().map(|measurement| {
        let size = match measurement.memory_bytes {
            0 => measurement.memory.clone(),
            bytes => format!("{} ({})", text::bytes(bytes), measurement.memory),
        };
        let mut row = vec![
            measurement.run.clone(),
            size,
            format!("× {}", measurement.times),
            match measurement.ending {
                Ending::Complete => "yes".to_owned(),
                other => ending(other).to_owned(),
            },
        ];
        row.extend(shown.iter().map(|(metric, _)| amount(measurement, metric)));
        row
    });
    table(&columns, rows)
}

fn amount(measurement: &Measurement, metric: &str) -> String {
    let value = measurement.metrics.get(metric);
    value.map_or(String::from("–"), |value| words::amount(metric, *value))
}

fn programs(experiment: &ExperimentRecord) -> String {
    let columns = ["program", "command", "references", "pages", "processes"];
    let rows = experiment.programs.iter().map(|program| {
        let command = match program.command.is_empty() {
            true => program.source.clone(),
            false => program.command.join(" "),
        };
        vec![
            program.name.clone(),
            shortened(&command),
            text::count(program.records),
            text::count(program.pages),
            text::count(program.processes),
        ]
    });
    format!("<h3>Programs</h3>{}", table(&columns, rows))
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.chars().count() > LONGEST {
        true => format!("{} …", text.chars().take(LONGEST).collect::<String>()),
        false => text.to_owned(),
    }
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter();
    let lines: String = lines
        .map(|line| format!("<li>{}</li>", escaped(line)))
        .collect();
    format!("<h3>{title}</h3><ul>{lines}</ul>")
}
