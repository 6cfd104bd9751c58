//! Volumes as text and as JSON.

use serde_json::{Value, json};
use tidemark_results::text::{bytes, count, table};
use tidemark_vmufat::{BLOCK_BYTES, Copying, Finding, Image, Kind, Timestamp, Volume};

/// The text shown where a time stamp is no date.
const NO_DATE: &str = "-";

/// The files of a volume, for people.
pub fn list(name: &str, volume: &Volume<Image>) -> String {
    let layout = volume.layout();
    let mut text = format!(
        "{name}\n  blocks     {}, of which {} for files; {} free\n  formatted  {}\n",
        count(layout.blocks().into()),
        count(layout.user_blocks().into()),
        count(volume.free_blocks().into()),
        date(volume.formatted()).unwrap_or(NO_DATE.into()),
    );
    if volume.files().next().is_none() {
        return text;
    }
    let mut rows = table(
        &["name", "kind", "created", "copying", "blocks", "bytes"],
        4,
    );
    for file in volume.files() {
        rows.add_row([
            file.name.to_string(),
            kind(file.kind).into(),
            date(file.created).unwrap_or(NO_DATE.into()),
            copying(file.copying).into(),
            count(file.blocks.into()),
            bytes(u64::from(file.blocks) * BLOCK_BYTES as u64),
        ]);
    }
    text.push_str(&format!("\n{rows}\n"));
    text
}

/// The files of a volume, for programs.
pub fn list_json(volume: &Volume<Image>) -> String {
    let layout = volume.layout();
    let files = volume.files().map(|file| {
        json!({
            "name": file.name.to_string(),
            "kind": kind(file.kind),
            "created": date(file.created),
            "copying": copying(file.copying),
            "blocks": file.blocks,
            "bytes": u64::from(file.blocks) * BLOCK_BYTES as u64,
            "first_block": file.first,
        })
    });
    let value = json!({
        "schema": "tidemark.volume.v1",
        "blocks": layout.blocks(),
        "user_blocks": layout.user_blocks(),
        "free_blocks": volume.free_blocks(),
        "records": layout.records(),
        "formatted": date(volume.formatted()),
        "is_sound": volume.findings().is_empty(),
        "files": files.collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}

/// The findings, as text.
pub fn check(
    name: &str,
    volume: &Volume<Image>,
    findings: &[Finding],
    is_repaired: bool,
) -> String {
    let mut text: String = findings.iter().map(|one| format!("{one}\n")).collect();
    text.push_str(&match (findings.len(), is_repaired) {
        (0, _) => format!(
            "{name}: nothing is wrong: {} files, {} of {} blocks free\n",
            volume.files().count(),
            count(volume.free_blocks().into()),
            count(volume.layout().user_blocks().into()),
        ),
        (several, true) => format!("{name}: mended: {several}\n"),
        (several, false) => format!("{name}: wrong: {several}; `--repair` mends it\n"),
    });
    text
}

/// The findings, as JSON.
pub fn check_json(volume: &Volume<Image>, findings: &[Finding], is_repaired: bool) -> String {
    let found = findings.iter().map(|finding| {
        json!({
            "kind": finding_kind(finding),
            "is_harmless": finding.is_harmless(),
            "text": finding.to_string(),
        })
    });
    let value = json!({
        "schema": "tidemark.volume-check.v1",
        "is_sound": volume.findings().is_empty(),
        "is_repaired": is_repaired && !findings.is_empty(),
        "findings": found.collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}

fn finding_kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::SystemWord { .. } => "system-word",
        Finding::UnknownKind { .. } => "unknown-kind",
        Finding::Doubled { .. } => "doubled",
        Finding::SameName { .. } => "same-name",
        Finding::Nameless { .. } => "nameless",
        Finding::Chain { .. } => "chain",
        Finding::Lost { .. } => "lost",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "data",
        Kind::Game => "game",
    }
}

fn copying(copying: Copying) -> &'static str {
    match copying {
        Copying::Allowed => "allowed",
        Copying::Forbidden => "forbidden",
    }
}

/// A time stamp like `2026-11-25T22:05:59`, if it is a date.
fn date(stamp: Timestamp) -> Option<String> {
    let civil = stamp.civil()?;
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
    ))
}
