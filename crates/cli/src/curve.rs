//! `tidemark curve`: misses by memory, and how much memory is needed.

use clap::Args;
use tidemark_lab::study::{CurveOrder, Named, Sizes, Wanted};
use tidemark_report::{numbers, picture, terminal};
use tidemark_results::analysis::TraceFacts;
use tidemark_results::text;

use crate::exit::{Exit, Refusal, refuse};
use crate::needed::Assuming;
use crate::policies;
use crate::views::{Forms, Progress, Source, Views, parse_sampling, parse_sizes};

/// Shows how often a program misses in every size of memory, and how much it needs
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The policies: lru, ws, vmin, opt, pff, any that `tidemark policies` lists, and any file
    /// (.wasm, .wat)
    /// (default: lru,ws,vmin,opt; with --sample, lru)
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policies: Vec<String>,
    /// Estimate LRU's curve from eight samples of the pages: a share of them (`0.01`, `1%`), or
    /// at most so many at a time (`8k`)
    #[arg(long, value_name = "RATE|PAGES")]
    sample: Option<String>,
    /// The sizes of memory: in pages (`4096`), with a unit (`16M`), or `all`
    #[arg(long, value_name = "N,…")]
    at: Option<String>,
    #[command(flatten)]
    assuming: Assuming,
    #[command(flatten)]
    forms: Forms,
}

/// Shows the curves.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let sampling = arguments.sample.as_deref().map(parse_sampling);
    let sampling = sampling.transpose()?;
    let policies = parse_policies(&arguments.policies, sampling.is_some())?;
    let assumed = arguments.assuming.check()?;
    let mut progress = Progress::new();
    let wanted = Wanted {
        references: sampling.is_none(),
        sampling,
        ..Wanted::default()
    };
    let study = arguments.source.read(wanted, &mut progress)?;
    let sizes = match &arguments.at {
        Some(text) => parse_sizes(text, study.facts().page_bytes)?,
        None => Sizes::Spread,
    };
    check_sizes(&sizes, study.facts())?;
    let order = CurveOrder {
        policies,
        sizes,
        assumed,
    };
    let mut record = study.curves(&order, &mut |what, part| progress.show(what, part));
    let (assuming, trace) = (&arguments.assuming, arguments.source.path());
    assuming.rehearse(&study, trace, &mut record, &mut progress)?;
    drop(progress);
    policies::tell_setbacks(&arguments.policies);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| record.to_csv(),
        picture: &|| picture::curves::curves(&record),
        drawing: &|screen| terminal::curves(&record, screen),
    })
}

/// Refuses sizes that a sampled trace can't tell of.
fn check_sizes(sizes: &Sizes, trace: &TraceFacts) -> Result<(), Refusal> {
    let (Sizes::At(sizes), Some(windows)) = (sizes, trace.windows) else {
        return Ok(());
    };
    let least = windows.pages_touched;
    match sizes.iter().find(|pages| **pages < least) {
        Some(pages) => refuse!(
            "`--at`: {} is less than the {} that the program touches within one sampling window of \
             {}, and the trace can't tell of that; ask for more, or record it with a shorter \
             `--window` or without `--live`",
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
            policies::find(name.trim())?;
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
