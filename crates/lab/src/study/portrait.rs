//! Portraits: all that two traces are compared by, of one of them.
//!
//! Amounts and curves come from the analyses that [`Study`] has for other records; regions take one
//! more pass through the trace.

use tidemark_results::analysis::curve::Point;
use tidemark_results::diff::records::amounts_of;
use tidemark_results::diff::{Amount, Group, Portrait, Subject, Unit};
use tidemark_trace::Error;

use super::Study;
use super::curves::SPREAD;
use super::passing::{Passing, WorkingSets};
use super::points::{spread, stack_points};
use super::policies::Named;
use super::progress::Progress;
use super::wanted::Wanted;
use crate::analysis::portions::{Portioner, Portions};

/// The optimum of up to this many references is counted beside LRU: it takes some seconds.
const OPTIMUM_MOST: u64 = 32 << 20;
/// The number of spans of time in which working sets are computed. Only their mean and peak are
/// compared.
const PIECES: usize = 100;

impl Wanted {
    /// The needs of a portrait with working sets over `windows`; over the usual ones, if there are
    /// none.
    ///
    /// With `keeps_references` it has phases, and the optimum of a short trace: 12 to 32 bytes a
    /// reference.
    pub fn portrait(windows: Vec<u64>, records: u64, keeps_references: bool) -> Wanted {
        Wanted {
            references: keeps_references,
            optimum: keeps_references && records <= OPTIMUM_MOST,
            passing: Passing {
                depths: true,
                working_sets: Some(WorkingSets {
                    windows,
                    pieces: PIECES,
                }),
                ..Passing::default()
            },
            ..Wanted::default()
        }
    }
}

impl Study {
    /// The portrait of a trace that was read as [`Wanted::portrait`] says, with misses in memory of
    /// these `sizes`, in pages. `file` is its name in the record.
    ///
    /// # Errors
    /// The trace can't be read once more.
    ///
    /// # Panics
    /// If what it is made of was not wanted.
    pub fn portrait(
        &self,
        file: &str,
        sizes: &[u64],
        progress: &mut Progress<'_>,
    ) -> Result<Portrait, Error> {
        let mut portrait = Portrait {
            subject: Subject {
                file: file.into(),
                title: self.facts.title(),
                trace: Some(self.facts.clone()),
            },
            amounts: amounts_of(&self.facts),
            sizes: sizes.to_vec(),
            ..Portrait::default()
        };
        if self.facts.records == 0 {
            return Ok(portrait);
        }
        progress("misses", 0.2);
        self.note_sets(file, &mut portrait);
        self.note_misses(Named::Lru, &mut portrait);
        let is_kept = self.references.len() as u64 == self.facts.records;
        if is_kept && self.facts.records <= OPTIMUM_MOST {
            progress("opt", 0.3);
            self.note_misses(Named::Opt, &mut portrait);
        }
        if is_kept {
            progress("phases", 0.6);
            portrait.amounts.extend(self.phase_amounts());
        }
        let portions = self.portions(sizes, progress)?;
        portrait.regions = portions.regions;
        portrait.processes = portions.processes;
        Ok(portrait)
    }

    /// The use that the program makes of each region, and that each process makes of memory, with
    /// misses in memory of these `sizes`: one pass through the trace.
    fn portions(&self, sizes: &[u64], progress: &mut Progress<'_>) -> Result<Portions, Error> {
        let processes = self.facts.processes as usize;
        let mut portioner = Portioner::new(self.blocks.header(), processes, sizes);
        self.each_block("regions and processes", progress, |block| {
            portioner.take(block)
        })?;
        Ok(portioner.finish())
    }

    /// Adds the working sets, as far as they are known.
    fn note_sets(&self, file: &str, portrait: &mut Portrait) {
        let sets = self.working_sets_passed();
        for line in &sets.windows {
            if line.known_share <= 0.0 {
                let window = line.window;
                let note = format!("`{file}` does not show working sets over {window} ns");
                portrait.notes.push(note);
                continue;
            }
            let both = [("mean", line.mean), ("peak", line.peak as f64)];
            portrait.amounts.extend(both.map(|(name, pages)| {
                Amount::new(
                    Group::WorkingSet,
                    name,
                    Some(line.window),
                    Unit::Pages,
                    pages,
                )
            }));
        }
    }

    /// Adds a stack policy's misses in each size, and its curve.
    fn note_misses(&self, named: Named, portrait: &mut Portrait) {
        let depths = self.depths(named);
        for point in stack_points(&depths, &portrait.sizes) {
            portrait.amounts.push(Amount::new(
                Group::Misses,
                named.name(),
                Some(point.pages),
                Unit::Count,
                point.misses as f64,
            ));
        }
        let least = self.sight.pages_min;
        let mut sizes = spread(self.facts.footprint(), SPREAD);
        sizes.retain(|pages| *pages >= least);
        let points: Vec<Point> = stack_points(&depths, &sizes);
        portrait.curves.push((named.name().into(), points));
    }

    /// The phases of the level that tells most of the program.
    fn phase_amounts(&self) -> Vec<Amount> {
        let phases = self.phases();
        let Some(level) = phases.main_level() else {
            return vec![];
        };
        let amount = |name, unit, value| Amount::new(Group::Phases, name, None, unit, value);
        vec![
            amount("phases", Unit::Count, level.phases.len() as f64),
            amount("time in phases", Unit::Share, level.share),
            amount("mean size of phases", Unit::Pages, level.pages_mean),
        ]
    }
}
