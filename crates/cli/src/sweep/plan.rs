//! The plan of a sweep: the rows that are asked for, those that the table already has, and the work
//! for the others.

use tidemark_lab::amounts;
use tidemark_lab::names::find_policy;
use tidemark_lab::study::Named;
use tidemark_lab::study::sweep::{SweepPart, trace_bytes};
use tidemark_results::analysis::sweep::{SweepRecord, SweepRow};

use crate::exit::Refusal;

/// The rows that are asked for, with those that are there.
pub struct Plan {
    /// The rows asked for, in order, each with what is known of it.
    asked: Vec<(SweepPart, Vec<Option<SweepRow>>)>,
    /// Rows that the table has beside them.
    others: Vec<SweepRow>,
}

impl Plan {
    /// A plan of all combinations. Of the rows that are `there`, failures are counted again, and
    /// those of traces whose size has changed.
    pub fn new(
        traces: &[String],
        policies: &[Named],
        memory: &[String],
        mut there: Vec<SweepRow>,
    ) -> Plan {
        let mut asked: Vec<(SweepPart, Vec<Option<SweepRow>>)> = vec![];
        for trace in each_once(traces) {
            let bytes = trace_bytes(&trace);
            for &policy in policies {
                let part = SweepPart {
                    trace: trace.clone(),
                    policy,
                    memory: memory.to_vec(),
                };
                let rows = part.blank().into_iter().map(|blank| {
                    let place = there.iter().position(|row| row.is_of(&blank))?;
                    let row = there.remove(place);
                    (row.error.is_none() && row.trace_bytes == bytes).then_some(row)
                });
                let rows = rows.collect();
                asked.push((part, rows));
            }
        }
        Plan {
            asked,
            others: there,
        }
    }

    /// The parts that are still to be counted.
    pub fn parts(&self) -> Vec<SweepPart> {
        let parts = self.asked.iter().map(|(part, rows)| {
            let memory = part.memory.iter().zip(rows);
            let missing = memory.filter(|(_, row)| row.is_none());
            SweepPart {
                memory: missing.map(|(memory, _)| memory.clone()).collect(),
                ..part.clone()
            }
        });
        parts.filter(|part| !part.memory.is_empty()).collect()
    }

    /// Takes in rows that were counted.
    pub fn take(&mut self, rows: Vec<SweepRow>) {
        for row in rows {
            let of_trace = self
                .asked
                .iter_mut()
                .filter(|(part, _)| part.trace == row.trace && part.policy.name() == row.policy);
            for (part, places) in of_trace {
                let place = part.memory.iter().position(|memory| *memory == row.memory);
                places[place.expect("it was asked for")] = Some(row.clone());
            }
        }
    }

    /// All rows that are known: those asked for, and then what else the table had.
    pub fn record(&self) -> SweepRecord {
        let rows = self.rows().chain(&self.others);
        SweepRecord::new(rows.cloned().collect())
    }

    /// The number of rows that are asked for.
    pub fn asked(&self) -> usize {
        self.asked.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// The number of those that failed.
    pub fn failures(&self) -> usize {
        self.rows().filter(|row| row.error.is_some()).count()
    }

    fn rows(&self) -> impl Iterator<Item = &SweepRow> {
        self.asked.iter().flat_map(|(_, rows)| rows).flatten()
    }
}

/// The policies by their names, each once.
pub fn parse_policies(names: &[String]) -> Result<Vec<Named>, Refusal> {
    let named = each_once(names).into_iter().map(|name| {
        if tidemark_plugin::is_file(&name) {
            find_policy(&name)?;
        }
        let named = name.parse::<Named>();
        named.map_err(|unknown| Refusal::new(unknown.to_string()))
    });
    named.collect()
}

/// The sizes of memory, each once, if they can be of any trace.
pub fn parse_memory(texts: &[String]) -> Result<Vec<String>, Refusal> {
    let texts = each_once(texts);
    amounts::check_memories("--memory", texts.iter().map(String::as_str))?;
    Ok(texts)
}

/// The words without blanks around them, each once, in order.
fn each_once(words: &[String]) -> Vec<String> {
    let mut once: Vec<String> = vec![];
    for word in words.iter().map(|word| word.trim()) {
        if !once.iter().any(|known| known == word) {
            once.push(word.to_owned());
        }
    }
    once
}
