//! Misses of visits in a terminal: a table of ratios by room.

use tidemark_results::analysis::batch::BatchRecord;
use tidemark_results::text;

use crate::terminal::{Screen, wrapped};
use crate::words;

/// Headline, and a table: a line for each room, a column for each policy.
pub fn visits(record: &BatchRecord, screen: Screen) -> String {
    let title = words::shortened(&words::title(&record.trace), screen.columns);
    let mut text = format!(
        "{title}\n{}\n",
        wrapped(&words::visits(record), screen.columns)
    );
    text.push_str("  misses of all wants, by the room between visits\n\n");
    text.push_str(&table(record));
    for note in &record.notes {
        text.push_str(&wrapped(&format!("note: {note}"), screen.columns));
    }
    text
}

fn table(record: &BatchRecord) -> String {
    let names = record
        .curves
        .iter()
        .map(|curve| words::policy(&curve.policy));
    let names: Vec<String> = names.collect();
    let names = names.iter().map(String::as_str);
    let columns: Vec<&str> = [record.unit.name()].into_iter().chain(names).collect();
    let mut table = text::table(&columns, 0);
    let rooms = record.curves.first().map_or(&[][..], |curve| &curve.points);
    for (at, point) in rooms.iter().enumerate() {
        let ratios = record.curves.iter().map(|curve| {
            let ratio = curve.points.get(at).map(|point| point.miss_ratio);
            ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"))
        });
        let room = words::room(record.unit, point.room);
        table.add_row([room].into_iter().chain(ratios).collect::<Vec<String>>());
    }
    format!("{table}\n")
}
