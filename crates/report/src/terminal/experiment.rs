//! Experiments as tables.

use tidemark_results::experiment::{ExperimentRecord, ExperimentsRecord};
use tidemark_results::text;

use crate::experiment::{RULE, found, in_order, measured, published, summary, verdict};
use crate::numbers;

/// Every experiment's claims, with what was published and what was found.
pub fn experiments(record: &ExperimentsRecord) -> String {
    let mut told: String = record.experiments.iter().map(experiment).collect();
    for left in &record.left_out {
        told.push_str(&format!("{} was left out: {}\n", left.name, left.reason));
    }
    told.push_str(&format!("{}\n{RULE}\n", summary(record)));
    told
}

fn experiment(experiment: &ExperimentRecord) -> String {
    let mut table = text::table(&["claim", "published", "ours", "verdict"], 4);
    for finding in in_order(experiment) {
        table.add_row([
            finding.claim.clone(),
            published(finding),
            found(finding),
            verdict(finding).to_owned(),
        ]);
    }
    let mut told = format!(
        "{}: {} ({})\n{}; {} at one time at most; took {}\n{table}\n",
        experiment.name,
        experiment.title,
        experiment.source,
        experiment.machine,
        text::bytes(experiment.peak_bytes),
        numbers::seconds(experiment.took_s),
    );
    for (number, finding) in in_order(experiment).into_iter().enumerate() {
        told.push_str(&format!("{}. {}", number + 1, measured(finding)));
        if let Some(reason) = &finding.reason {
            told.push_str(&format!("\n   because: {reason}"));
        }
        told.push('\n');
    }
    for differs in &experiment.differs {
        told.push_str(&format!("not as it was: {differs}\n"));
    }
    told + "\n"
}
