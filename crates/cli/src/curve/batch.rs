//! `tidemark curve --batch`: misses of caches whose visits need several objects at once.

use tidemark_lab::amounts::parse_rooms;
use tidemark_lab::analysis::visits::NoVisits;
use tidemark_lab::study::{Named, Sizes, Wanted};
use tidemark_report::{picture, visits};
use tidemark_results::text;

use super::{Arguments, parse_policies};
use crate::exit::{Exit, Refusal, refuse};
use crate::policies;
use crate::views::{Progress, Views};

/// The policies without a choice.
const USUAL: [&str; 4] = ["lru", "lfu", "least-stale", "opt"];

/// Shows the curves.
pub fn run(arguments: &Arguments) -> Result<Exit, Refusal> {
    let policies = parse(&arguments.policies)?;
    let mut progress = Progress::new();
    let source = &arguments.source;
    let opened = source.open()?;
    let parts = Wanted {
        pages: true,
        ..Wanted::default()
    };
    let remedy = "choose a part of it with `--process`, or import less";
    let study = source.read(opened, parts, remedy, &mut progress)?;
    let wanted = study.visits().map_err(refusal)?;
    let sizes = match &arguments.at {
        Some(text) => parse_rooms("--at", text, study.room_unit(), wanted.whole())?,
        None => Sizes::Spread,
    };
    let record = study.batch(&wanted, &policies, &sizes, &mut |what, part| {
        progress.show(what, part);
    });
    drop(progress);
    arguments.forms.tell_notes(&record.notes);
    policies::tell_setbacks(&arguments.policies);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| record.to_csv(),
        picture: &|| picture::batch::batch(&record),
        drawing: &|screen| visits::visits(&record, screen),
    })
}

/// The policies that are asked for, or the usual ones.
fn parse(names: &[String]) -> Result<Vec<Named>, Refusal> {
    let usual = USUAL.map(String::from);
    let names = if names.is_empty() { &usual[..] } else { names };
    let policies = parse_policies(names, false)?;
    let has_no_size =
        |named: &&Named| matches!(named, Named::WorkingSet | Named::Vmin | Named::Pff);
    match policies.iter().find(has_no_size) {
        Some(named) => refuse!(
            "`--policies {}`: it has no size of its own; leave it out with `--batch`",
            named.name()
        ),
        None => Ok(policies),
    }
}

/// The refusal of a trace without visits.
fn refusal(why: NoVisits) -> Refusal {
    match why {
        NoVisits::None => Refusal::new(
            "`--batch`: the trace has no visits; import it with a column `visit=`, or leave out \
             `--batch`"
                .to_owned(),
        ),
        NoVisits::SizesMissing(objects) => Refusal::new(format!(
            "`--batch`: the trace tells the sizes of some objects, and not those of {}; import it \
             with a column `bytes=` that has all",
            text::count(objects)
        )),
    }
}
