//! `tidemark policies`: the replacement policies there are, as they describe themselves.

use clap::Args;
use tidemark_core::policies;
use tidemark_core::seams::policy::{Description, Sees};
use tidemark_lab::names::find_policy;
use tidemark_results::text;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;
use crate::output::say;

/// Lists the replacement policies
#[derive(Debug, Args)]
pub struct Arguments {
    /// Describe this policy in full: its lineage and its knobs. A name, or a file (.wasm, .wat)
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Files for Arguments {}

/// Prints the policies.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let chosen: Vec<&Description> = match &arguments.name {
        Some(name) => vec![find_policy(name)?],
        None => policies::entries()
            .iter()
            .map(|entry| entry.description)
            .collect(),
    };
    output::print(&match (arguments.json, &arguments.name) {
        (true, _) => json(&chosen),
        (false, Some(_)) => chosen.into_iter().map(full).collect(),
        (false, None) => list(&chosen, output::terminal_width()),
    });
    Ok(Exit::Fine)
}

/// Says on stderr which of the policies `names` are modules that failed, and how often.
pub fn tell_setbacks(names: &[String]) {
    for name in names.iter().map(|name| name.trim()) {
        if let Some(setbacks) = tidemark_plugin::take_news(name, true) {
            say!("tidemark: `{name}`: {setbacks}");
        }
    }
}

fn list(policies: &[&Description], width: Option<usize>) -> String {
    let mut table = text::table(&["policy", "needs", "what it does"], 3);
    for policy in policies {
        table.add_row([policy.name, needs(policy.sees), policy.summary]);
    }
    text::wrap_last(&mut table, width);
    format!("{}\n", text::trimmed(&table))
}

fn full(policy: &Description) -> String {
    let mut lines = vec![format!("{}: {}", policy.name, policy.summary)];
    lines.push(format!("  needs: {}", needs(policy.sees)));
    for work in policy.lineage {
        lines.push(format!("  after: {work}"));
    }
    for knob in policy.knobs {
        lines.push(format!(
            "  knob {}: {} ({} to {}, default {})",
            knob.name, knob.meaning, knob.min, knob.max, knob.default
        ));
    }
    lines.join("\n") + "\n"
}

fn json(policies: &[&Description]) -> String {
    let policies: Vec<serde_json::Value> = policies
        .iter()
        .map(|policy| {
            let knobs: Vec<serde_json::Value> = policy
                .knobs
                .iter()
                .map(|knob| {
                    serde_json::json!({
                        "name": knob.name, "meaning": knob.meaning,
                        "min": knob.min, "max": knob.max, "default": knob.default,
                    })
                })
                .collect();
            serde_json::json!({
                "name": policy.name, "summary": policy.summary, "lineage": policy.lineage,
                "sees": sees(policy.sees), "knobs": knobs,
            })
        })
        .collect();
    let all = serde_json::json!({ "schema": "tidemark.policies.v1", "policies": policies });
    format!("{all:#}\n")
}

/// The least that a policy must be shown, for people.
fn needs(sees: Sees) -> &'static str {
    match sees {
        Sees::Faults => "page faults only",
        Sees::Bits => "reference bits",
        Sees::References => "every reference",
        Sees::Future => "future (offline only)",
    }
}

/// The least that a policy must be shown, as records name it.
fn sees(sees: Sees) -> &'static str {
    match sees {
        Sees::Faults => "faults",
        Sees::Bits => "bits",
        Sees::References => "references",
        Sees::Future => "future",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<&'static Description> {
        policies::entries()
            .iter()
            .map(|entry| entry.description)
            .collect()
    }

    #[test]
    fn every_policy_is_in_the_list_with_its_summary() {
        let text = list(&all(), None);
        for policy in all() {
            assert!(
                text.contains(policy.name) && text.contains(policy.summary),
                "{text}"
            );
        }
    }

    #[test]
    fn the_full_view_and_the_json_name_every_knob() {
        for policy in all() {
            let (text, json) = (full(policy), json(&[policy]));
            for knob in policy.knobs {
                assert!(
                    text.contains(knob.meaning) && json.contains(knob.meaning),
                    "{text}"
                );
            }
        }
    }
}
