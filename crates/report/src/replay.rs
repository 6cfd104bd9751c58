//! Replays as one HTML page that needs nothing but itself.

use tidemark_results::replay::{ProgramRun, ReplayRecord, ReplayTrace, Run};
use tidemark_results::text;

use crate::page::payload::pack;
use crate::page::tables::table;
use crate::page::{Content, assembled, escaped};
use crate::{numbers, words};

const REPLAY: Content<'_> = Content {
    main: include_str!("replay/replay.html"),
    style: include_str!("replay/replay.css"),
    scripts: &[include_str!("replay/replay.js")],
};

/// The page.
pub fn page(record: &ReplayRecord) -> String {
    let notes = record.notes.iter();
    let notes = notes.map(|note| format!("<p class=\"note\">{}</p>", escaped(note)));
    let parts = vec![
        ("title", escaped(&words::replayed(record))),
        ("facts", escaped(&words::machine(record))),
        ("sweep", sweep(record)),
        ("runs", runs(record)),
        ("kinds", kinds(record)),
        ("programs", programs(record)),
        ("disks", disks(record)),
        ("optimum", escaped(&record.optimum)),
        ("notes", notes.collect()),
        ("version", escaped(&record.tidemark)),
    ];
    assembled(&REPLAY, parts, &pack(&record.to_json(), &[]))
}

/// The place of the chart by memory. Runs that all have the same memory have no curve: bars compare
/// the systems.
fn sweep(record: &ReplayRecord) -> String {
    let mut sizes: Vec<u64> = record.runs.iter().map(|run| run.memory_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let [_] = sizes[..] else {
        return "<div class=\"tools\" data-for=\"sweep\"></div>\n\
                <div class=\"plot\" id=\"sweep-plot\"></div>"
            .into();
    };
    let page_ins = |run: &Run| (Some(run.page_ins as f64), text::count(run.page_ins));
    let elapsed = |run: &Run| (Some(run.elapsed_s), numbers::seconds(run.elapsed_s));
    let over = |run: &Run| (run.over_optimal, words::over_optimal(run));
    format!(
        "<div class=\"measures\">{}{}{}</div>",
        measure("Elapsed", record, elapsed),
        measure("Page-ins", record, page_ins),
        measure("Over the optimum", record, over),
    )
}

/// The names of runs in a line: the first, and how many more there are.
fn together(names: &[String]) -> String {
    const NAMED: usize = 3;
    match names.len().saturating_sub(NAMED) {
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

/// A bar for each value, from the shortest up, as long as what is measured is large; runs that come
/// to the same share one. What has none comes last.
fn measure(
    name: &str,
    record: &ReplayRecord,
    measured: impl Fn(&Run) -> (Option<f64>, String),
) -> String {
    let mut rows: Vec<(f64, String, String)> = record
        .runs
        .iter()
        .map(|run| {
            let (value, told) = measured(run);
            (value.unwrap_or(f64::INFINITY), told, words::system(run))
        })
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let values = rows
        .iter()
        .map(|row| row.0)
        .filter(|value| value.is_finite());
    let most = values.fold(0.0, f64::max).max(1e-12);
    let alike = rows.chunk_by(|one, other| one.1 == other.1);
    let bars = alike.map(|rows| {
        let (value, told, _) = &rows[0];
        let share = if value.is_finite() {
            value * 100.0 / most
        } else {
            0.0
        };
        let names: Vec<String> = rows.iter().map(|row| row.2.clone()).collect();
        format!(
            "<span title=\"{}\">{}</span><div><i style=\"width:{share:.3}%;background:var(--s0)\">\
             </i></div><span>{told}</span>",
            escaped(&names.join(", ")),
            escaped(&together(&names))
        )
    });
    let bars: String = bars.collect();
    format!("<div><h3>{name}</h3><div class=\"bars\">{bars}</div></div>")
}

fn runs(record: &ReplayRecord) -> String {
    let columns = [
        "system",
        "memory",
        "elapsed",
        "in programs",
        "in the kernel",
        "reference-bit checks",
        "page-ins",
        "over the optimum",
        "page-outs",
        "reactivations",
        "read ahead and used",
        "read ahead, unused",
        "read ahead, not known",
        "rejected victims",
        "messages",
        "reverse map",
        "fairness",
    ];
    let rows = record.runs.iter().map(|run| {
        let requests = |pages: u64, requests: u64| {
            format!("{} in {}", text::count(pages), text::count(requests))
        };
        vec![
            words::system(run),
            text::bytes(run.memory_bytes),
            numbers::seconds(run.elapsed_s),
            numbers::seconds(run.processor.user_s),
            numbers::seconds(run.processor.system_s),
            numbers::seconds(run.processor.policy_s),
            requests(run.page_ins, run.page_in_requests),
            words::over_optimal(run),
            requests(run.page_outs, run.page_out_requests),
            text::count(run.reactivations),
            text::count(run.read_ahead_used),
            text::count(run.read_ahead_wasted),
            text::count(run.read_ahead_unknown),
            text::count(run.refusals),
            text::count(run.messages),
            text::bytes(run.reverse_map_bytes_max),
            format!("{:.3}", run.fairness),
        ]
    });
    table(&columns, rows)
}

/// Kinds of faults with their colours: first touches, soft faults, copies, and pages read by the
/// disk they came from.
fn kinds_of(run: &Run) -> [(&'static str, &'static str, u64); 5] {
    [
        ("first touches", "--s3", run.zero_fills),
        ("soft faults", "--s2", run.soft_faults),
        ("copies", "--s6", run.cow_faults),
        ("pages from swap", "--s1", run.swap_ins),
        ("pages of files", "--s0", run.file_ins),
    ]
}

/// A bar for each run, with a part for each kind of fault, and how many there were beside it.
fn kinds(record: &ReplayRecord) -> String {
    let mut html = String::from("<div class=\"legend\">");
    for (name, ink, _) in kinds_of(&Run::default()) {
        html.push_str(&format!(
            "<span><i style=\"background:var({ink})\"></i> {name}</span>"
        ));
    }
    html.push_str("</div><div class=\"bars\">");
    let counts = |run: &Run| (run.memory_bytes, kinds_of(run).map(|kind| kind.2));
    let mut rest: Vec<&Run> = record.runs.iter().collect();
    // Runs that come to the same share a bar.
    while let Some(run) = rest.first().copied() {
        let (alike, others): (Vec<&Run>, Vec<&Run>) =
            rest.iter().partition(|other| counts(other) == counts(run));
        rest = others;
        let names: Vec<String> = alike.iter().map(|run| words::system(run)).collect();
        let name = format!("{}, {}", together(&names), text::bytes(run.memory_bytes));
        html.push_str(&format!(
            "<span title=\"{}\">{}</span><div>",
            escaped(&names.join(", ")),
            escaped(&name)
        ));
        let all: u64 = kinds_of(run).iter().map(|kind| kind.2).sum();
        for (kind, ink, count) in kinds_of(run) {
            let share = count as f64 * 100.0 / all.max(1) as f64;
            html.push_str(&format!(
                "<i title=\"{kind}: {}\" style=\"width:{share:.3}%;background:var({ink})\"></i>",
                text::count(count)
            ));
        }
        html.push_str(&format!("</div><span>{}</span>", text::count(all)));
    }
    html + "</div>"
}

fn programs(record: &ReplayRecord) -> String {
    let columns = [
        "system",
        "memory",
        "program",
        "from",
        "to",
        "worked",
        "waited for pages",
        "ready",
        "suspended",
        "faults",
        "slower",
    ];
    let rows = record.runs.iter().flat_map(|run| {
        let of = |trace: &ReplayTrace| {
            let is_copy = |program: &&ProgramRun| is_of(program, &trace.name, record.copies);
            run.programs.iter().filter(is_copy).collect()
        };
        let groups = record.traces.iter().map(of);
        groups.filter_map(|copies: Vec<&ProgramRun>| programs_row(run, &copies))
    });
    table(&columns, rows)
}

/// Returns true if a program of a run is a copy of the trace of that name.
fn is_of(program: &ProgramRun, trace: &str, copies: u32) -> bool {
    let (name, number) = match copies {
        1 => return program.name == trace,
        _ => program.name.rsplit_once(' ').unwrap_or_default(),
    };
    name == trace && number.parse::<u32>().is_ok()
}

/// All copies of a program in a run, in one line: from the least of them to the most.
fn programs_row(run: &Run, copies: &[&ProgramRun]) -> Option<Vec<String>> {
    let first = copies.first()?;
    let span = |of: &dyn Fn(&ProgramRun) -> f64, told: &dyn Fn(f64) -> String| {
        let values = copies.iter().map(|program| of(program));
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        match (told(least), told(most)) {
            (least, most) if least == most => least,
            (least, most) => format!("{least} to {most}"),
        }
    };
    let seconds = |of: &dyn Fn(&ProgramRun) -> f64| span(of, &numbers::seconds);
    let name = match copies.len() {
        1 => first.name.clone(),
        count => {
            let name = first.name.rsplit_once(' ');
            format!(
                "{count} × {}",
                name.map_or(&first.name[..], |(name, _)| name)
            )
        }
    };
    Some(vec![
        words::system(run),
        text::bytes(run.memory_bytes),
        name,
        seconds(&|program| program.start_s),
        seconds(&|program| program.end_s),
        seconds(&|program| program.user_s + program.system_s),
        seconds(&|program| program.page_wait_s),
        seconds(&|program| program.ready_s),
        seconds(&|program| program.suspended_s),
        span(&|program| program.faults as f64, &|count| {
            text::count(count as u64)
        }),
        span(&ProgramRun::slow_down, &|times| {
            format!("{} ×", numbers::digits(times))
        }),
    ])
}

fn disks(record: &ReplayRecord) -> String {
    let columns = [
        "system",
        "memory",
        "disk",
        "read",
        "written",
        "busy",
        "waited",
        "longest queue",
    ];
    let rows = record.runs.iter().flat_map(|run| {
        run.disks.iter().map(|disk| {
            let amount = |pages: u64, requests: u64| {
                let size = text::bytes(pages * record.page_bytes);
                format!("{size} in {}", text::count(requests))
            };
            vec![
                words::system(run),
                text::bytes(run.memory_bytes),
                disk.name.clone(),
                amount(disk.pages_read, disk.reads),
                amount(disk.pages_written, disk.writes),
                numbers::seconds(disk.busy_s),
                numbers::seconds(disk.queued_s),
                text::count(disk.queue_max.into()),
            ]
        })
    });
    table(&columns, rows)
}
