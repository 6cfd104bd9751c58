//! `tidemark generate`: synthetic traces.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tidemark_results::text;
use tidemark_trace::generate::{self, Golden, Localities, Pattern};
use tidemark_trace::{Appender, Error, Kinds, Repeats, Writer};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output::say;
use crate::traces::{Output, Progress, count};

/// The number of references made between two looks at the clock.
const STEP: u64 = 1 << 16;

/// Generates a synthetic trace
///
/// The same pattern, seed and number of references give the same trace everywhere.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    pattern: PatternChoice,
    /// The file for the trace; `-` for standard output
    #[arg(short, long, value_name = "TRACE", global = true)]
    output: Option<PathBuf>,
    /// The number of references to make; `15k` and `100M` are understood [default: 1M]
    #[arg(long, value_name = "COUNT", value_parser = count, global = true)]
    references: Option<u64>,
    /// The seed of random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1, global = true)]
    seed: u64,
}

/// The order in which pages follow each other.
#[derive(Debug, Subcommand)]
enum PatternChoice {
    /// One page after the other, none twice
    Sequential,
    /// One page after the other, backward
    Reverse,
    /// Pages in order, over and over
    Loop(Pages),
    /// Pages forward and backward, over and over
    Sweep(Pages),
    /// Pages at random, each as likely as the other
    Random(Pages),
    /// Pages by Zipf's law, in shuffled order
    Zipf {
        #[command(flatten)]
        pages: Pages,
        /// The steepness, to a thousandth
        #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = thousandths)]
        exponent: u32,
    },
    /// Pages at random, low numbers more often
    Skewed(Pages),
    /// One set of pages after the other, each used at random
    Phased {
        #[command(flatten)]
        pages: Pages,
        /// The number of sets
        #[arg(long, value_name = "COUNT", default_value = "10", value_parser = count)]
        phases: u64,
    },
    /// The phase-transition model of program behaviour (Denning and Kahn 1975)
    ///
    /// The program dwells in a locality for an exponentially distributed time, then goes to
    /// another. Sizes of localities are normally distributed.
    Localities(LocalitiesChoice),
    /// A trace with published miss counts, page for page
    Golden {
        /// The name of the trace
        name: GoldenChoice,
    },
}

/// The number of pages a pattern has.
#[derive(Debug, Args)]
struct Pages {
    /// The number of pages
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = count)]
    pages: u64,
}

/// The parameters of the phase-transition model.
#[derive(Debug, Args)]
struct LocalitiesChoice {
    /// The number of localities
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = count)]
    localities: u64,
    /// The mean number of pages in a locality
    #[arg(long, value_name = "COUNT", default_value = "30", value_parser = count)]
    pages: u64,
    /// The standard deviation of the number of pages
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = count)]
    deviation: u64,
    /// The number of pages in every locality
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = count)]
    overlap: u64,
    /// The mean number of references before a transition
    #[arg(long, value_name = "COUNT", default_value = "250", value_parser = count)]
    holding: u64,
    /// The choice of pages inside a locality
    #[arg(long, value_name = "MODEL", default_value = "random")]
    micromodel: MicromodelChoice,
}

/// The choice of pages inside a locality.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MicromodelChoice {
    /// Each as likely as the other
    Random,
    /// In order, over and over
    Cyclic,
    /// In order, forward and backward
    Sawtooth,
}

/// A trace with published miss counts.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "lowercase")]
enum GoldenChoice {
    /// 150 pages in a loop
    Loop,
    /// 50 hot pages and a scan between
    ScanHot,
    /// 1000 pages, low numbers more often
    Skew,
    /// 20 sets of 80 pages
    Phase,
    /// Four programs that sweep over 40 pages each
    Sheep,
    /// A loop between skewed references
    Mixed,
}

/// A pattern to generate, with its name in the trace's command.
struct Plan {
    name: String,
    pages: Box<dyn Iterator<Item = u64>>,
    references: u64,
    seed: u64,
}

impl Files for Arguments {
    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        self.output
            .iter()
            .map(|path| ("-o", path.clone()))
            .collect()
    }
}

/// Generates.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let Some(path) = &arguments.output else {
        refuse!("no file for the trace; name one with `-o FILE`");
    };
    let plan = plan(&arguments)?;
    let output = Output::open(path, false)?;
    let out = output.writer()?;
    let (references, name) = (plan.references, plan.name.clone());
    match write(plan, out) {
        Ok(()) => {
            output.close_trace()?;
            say!("tidemark: {} references, {name}", text::count(references));
            Ok(Exit::Fine)
        }
        Err(error) => output.failed(&path.display().to_string(), &error),
    }
}

fn write(plan: Plan, out: Box<dyn std::io::Write + Send>) -> Result<(), Error> {
    let header = generate::header(&plan.name, plan.seed);
    let mut appender = Appender::new(Writer::new(out, &header)?, Repeats::Kept);
    let mut progress = Progress::references(plan.references);
    for (at, page) in plan.pages.enumerate() {
        appender.append(0, page, Kinds::default(), 1)?;
        if (at as u64).is_multiple_of(STEP) {
            progress.advance(STEP);
        }
    }
    Ok(appender.finish()?.flush()?)
}

fn plan(arguments: &Arguments) -> Result<Plan, Refusal> {
    if let PatternChoice::Golden { name } = arguments.pattern {
        let golden = name.golden();
        if arguments
            .references
            .is_some_and(|count| count != golden.references())
        {
            let count = golden.references();
            refuse!(
                "`--references`: {} has {count}; leave it out",
                golden.name()
            );
        }
        return Ok(Plan {
            name: format!("golden {}", golden.name()),
            pages: golden.pages(),
            references: golden.references(),
            seed: golden.seed(),
        });
    }
    let references = arguments.references.unwrap_or(1_000_000);
    if references == 0 {
        refuse!("`--references 0`: needs at least 1");
    }
    let pattern = pattern(&arguments.pattern);
    if let Err(wrong) = pattern.check() {
        refuse!(
            "`--{} {}`: needs {}",
            wrong.parameter,
            wrong.value,
            wrong.needs
        );
    }
    Ok(Plan {
        name: pattern.to_string(),
        pages: pattern.pages(references, arguments.seed),
        references,
        seed: arguments.seed,
    })
}

fn pattern(choice: &PatternChoice) -> Pattern {
    match *choice {
        PatternChoice::Sequential => Pattern::Sequential,
        PatternChoice::Reverse => Pattern::Reverse,
        PatternChoice::Loop(Pages { pages }) => Pattern::Loop { pages },
        PatternChoice::Sweep(Pages { pages }) => Pattern::Sweep { pages },
        PatternChoice::Random(Pages { pages }) => Pattern::Random { pages },
        PatternChoice::Skewed(Pages { pages }) => Pattern::Skewed { pages },
        PatternChoice::Zipf {
            pages: Pages { pages },
            exponent: exponent_thousandths,
        } => Pattern::Zipf {
            pages,
            exponent_thousandths,
        },
        PatternChoice::Phased {
            pages: Pages { pages },
            phases,
        } => Pattern::Phased { phases, pages },
        PatternChoice::Localities(ref choice) => Pattern::Localities(Localities {
            count: choice.localities,
            pages_mean: choice.pages,
            pages_deviation: choice.deviation,
            overlap_pages: choice.overlap,
            holding_mean: choice.holding,
            micromodel: match choice.micromodel {
                MicromodelChoice::Random => generate::Micromodel::Random,
                MicromodelChoice::Cyclic => generate::Micromodel::Cyclic,
                MicromodelChoice::Sawtooth => generate::Micromodel::Sawtooth,
            },
        }),
        PatternChoice::Golden { .. } => unreachable!("golden traces are planned apart"),
    }
}

/// Reads an exponent: a decimal number from 0 to 10, to a thousandth.
fn thousandths(text: &str) -> Result<u32, String> {
    let wrong = || "write a number from 0 to 10, like `0.8`".to_owned();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.len() > 2 || fraction.len() > 3 {
        return Err(wrong());
    }
    let number: u32 = format!("{whole}{fraction:0<3}")
        .parse()
        .map_err(|_| wrong())?;
    if number > 10_000 {
        Err(wrong())
    } else {
        Ok(number)
    }
}

impl GoldenChoice {
    const fn golden(self) -> Golden {
        match self {
            GoldenChoice::Loop => Golden::Loop,
            GoldenChoice::ScanHot => Golden::ScanHot,
            GoldenChoice::Skew => Golden::Skew,
            GoldenChoice::Phase => Golden::Phase,
            GoldenChoice::Sheep => Golden::Sheep,
            GoldenChoice::Mixed => Golden::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_exact_to_a_thousandth() {
        assert_eq!(thousandths("1"), Ok(1000));
        assert_eq!(thousandths("0.8"), Ok(800));
        assert_eq!(thousandths("1.125"), Ok(1125));
        assert_eq!(thousandths("10"), Ok(10_000));
        for text in ["", ".5", "-1", "11", "1.2345", "1e3", "nan"] {
            assert!(thousandths(text).is_err(), "{text}");
        }
    }

    #[test]
    fn golden_traces_have_their_own_names() {
        for value in GoldenChoice::value_variants() {
            let name = value.to_possible_value().unwrap();
            assert_eq!(name.get_name(), value.golden().name());
        }
    }
}
