//! `tidemark curve`: misses by memory, and how much memory is needed; and of visits, with
//! `--batch`.

mod batch;

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::amounts::{self, parse_sampling, parse_sizes};
use tidemark_lab::names::find_policy;
use tidemark_lab::study::{Assumed, CurveOrder, Named, Opened, Sizes, Wanted};
use tidemark_report::{numbers, picture, terminal};
use tidemark_results::analysis::TraceFacts;
use tidemark_results::text;
use tidemark_supervisor::room;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::needed::Assuming;
use crate::policies;
use crate::views::{Forms, Progress, Source, Views};

/// Shows how often a program misses in every size of memory, and how much it needs
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The policies: lru, ws, vmin, opt, pff, any that `tidemark policies` lists, and any file
    /// (.wasm, .wat)
    /// (default: lru,ws,vmin and, where there is memory for it, opt; with --sample, lru)
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policies: Vec<String>,
    /// Estimate LRU's curve from eight samples of the pages. The size of a sample: a share of all
    /// pages (`0.01`, `1%`), or the largest number of pages (`8k`). A page that processes share
    /// counts in each of them, and pages stay in memory when their process ends
    #[arg(long, value_name = "RATE|PAGES")]
    sample: Option<String>,
    /// The sizes of memory: in pages (`4096`), with a unit (`16M`), as a share of all pages that
    /// the program uses (`50%`), or `all`
    #[arg(long, value_name = "N,…")]
    at: Option<String>,
    /// Simulate a cache of objects, from a trace with visits. A visit uses all its objects at the
    /// same time, each once, and objects are evicted when it ends. `--at` takes numbers of objects,
    /// shares of all objects, and, if the trace has sizes of objects, sizes (`64M`) (default
    /// policies: lru,lfu,least-stale,opt)
    #[arg(
        long,
        conflicts_with_all = [
            "sample", "slowdown", "page_in_us", "unit_ns", "disk", "compressed", "rehearse"
        ]
    )]
    batch: bool,
    #[command(flatten)]
    assuming: Assuming,
    #[command(flatten)]
    forms: Forms,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        let policies = self.policies.iter().map(PathBuf::from);
        self.source.reads().into_iter().chain(policies).collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        self.forms.writes()
    }
}

/// Shows the curves.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if arguments.batch {
        return batch::run(&arguments);
    }
    let sampling = arguments.sample.as_deref();
    let sampling = sampling.map(|text| parse_sampling("--sample", text));
    let sampling = sampling.transpose()?;
    let mut policies = parse_policies(&arguments.policies, sampling.is_some())?;
    arguments
        .at
        .as_deref()
        .map_or(Ok(()), |text| amounts::check_sizes("--at", text))?;
    let assumed = arguments.assuming.check()?;
    let mut progress = Progress::new();
    let opened = arguments.source.open()?;
    let note = leave_out_optimum(&arguments, &opened, &mut policies, &assumed)?;
    let wanted = match sampling {
        Some(_) => Wanted {
            sampling,
            ..Wanted::default()
        },
        None => Wanted::curves(&policies, &assumed),
    };
    let remedy = "ask for fewer of the `--policies` (lru, ws and vmin take little), or estimate \
                  with `--sample 1%`";
    let study = arguments
        .source
        .read(opened, wanted, remedy, &mut progress)?;
    let sizes = match &arguments.at {
        Some(text) => parse_sizes(
            "--at",
            text,
            study.facts().page_bytes,
            study.facts().footprint(),
        )?,
        None => Sizes::Spread,
    };
    check_sizes(&sizes, study.facts())?;
    let order = CurveOrder {
        policies,
        sizes,
        assumed,
    };
    let mut record = study.curves(&order, &mut |what, part| progress.show(what, part));
    record.notes.extend(note);
    let (assuming, source) = (&arguments.assuming, &arguments.source);
    assuming.rehearse(&study, source, &mut record, &mut progress)?;
    drop(progress);
    arguments.forms.tell_notes(&record.notes);
    policies::tell_setbacks(&arguments.policies);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| record.to_csv(),
        picture: &|| picture::curves::curves(&record),
        drawing: &|screen| terminal::curves(&record, screen),
    })
}

/// Leaves the optimum out of the usual policies where it would take more memory than there is, and
/// returns a note of it. Where it was asked for by name it stays, if it can be counted at all.
fn leave_out_optimum(
    arguments: &Arguments,
    opened: &Opened,
    policies: &mut Vec<Named>,
    assumed: &Assumed,
) -> Result<Option<String>, Refusal> {
    if !policies.contains(&Named::Opt) {
        return Ok(None);
    }
    let held = opened.bytes_held(&Wanted::curves(policies, assumed));
    let is_beyond = opened.is_beyond_optimum();
    if !is_beyond && held <= room::available_bytes() {
        return Ok(None);
    }
    let why = match is_beyond {
        true => "it is counted for at most 2^30 references".to_owned(),
        false => format!("it takes {} of memory here", text::bytes(held)),
    };
    if arguments.policies.is_empty() {
        policies.retain(|named| *named != Named::Opt);
        return Ok(Some(format!("opt is left out: {why}")));
    }
    match is_beyond {
        true => refuse!("`--policies opt`: {why}; leave it out"),
        false => Ok(None),
    }
}

/// Refuses sizes that a sampled trace has no answer for.
fn check_sizes(sizes: &Sizes, trace: &TraceFacts) -> Result<(), Refusal> {
    let (Sizes::At(sizes), Some(windows)) = (sizes, trace.windows) else {
        return Ok(());
    };
    let least = windows.pages_touched;
    match sizes.iter().find(|pages| **pages < least) {
        Some(pages) => refuse!(
            "`--at`: {} is less than the {} that the program touches within one sampling window \
            of {}, so the trace has no answer; ask for more, or record with a shorter `--window` \
            or without `--live`",
            text::bytes(trace.bytes(*pages)),
            text::bytes(trace.bytes(least)),
            span(windows.longest_ns),
        ),
        None => Ok(()),
    }
}

/// A span of time.
pub fn span(ns: u64) -> String {
    numbers::seconds(ns as f64 / 1e9)
}

/// The policies that are asked for, or the usual ones.
fn parse_policies(names: &[String], is_sampled: bool) -> Result<Vec<Named>, Refusal> {
    let usual: &[Named] = match is_sampled {
        true => &[Named::Lru],
        false => &[Named::Lru, Named::WorkingSet, Named::Vmin, Named::Opt],
    };
    if names.is_empty() {
        return Ok(usual.into());
    }
    let named = names.iter().map(|name| {
        if tidemark_plugin::is_file(name.trim()) {
            find_policy(name.trim())?;
        }
        let named = name.trim().parse::<Named>();
        named.map_err(|unknown| Refusal::new(unknown.to_string()))
    });
    let named = named.collect::<Result<Vec<Named>, Refusal>>()?;
    let exact = named.iter().find(|named| **named != Named::Lru);
    match exact {
        Some(named) if is_sampled => refuse!(
            "`--policies {}`: only `lru` can be estimated from a sample; leave out `--sample`",
            named.name()
        ),
        _ => Ok(named),
    }
}
