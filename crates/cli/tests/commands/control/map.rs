//! Maps of tasks' memory.

use super::*;

/// The pages of a task that are in memory, compressed, on disk, and nowhere. All of them are looked
/// at: it has few.
fn places(run: &Run, name: &str, cells: &str) -> [u64; 4] {
    let text = run.done(&[
        "--json",
        "map",
        &run.pid(name).to_string(),
        "--cells",
        cells,
    ]);
    let map = serde_json::from_str::<Value>(&text).unwrap()["map"].take();
    assert_eq!(map["pid"], run.pid(name));
    assert_eq!(map["program"], "python3");
    let parts = map["cells"].as_array().unwrap();
    assert_eq!(parts.len().to_string(), cells);
    let addresses: Vec<u64> = parts.iter().map(|cell| bytes(&cell["address"])).collect();
    assert!(addresses.is_sorted(), "{map}");
    let names = ["in_memory", "compressed", "on_disk", "empty"];
    let sums = names.map(|name| parts.iter().map(|cell| bytes(&cell[name])).sum());
    assert_eq!(sums.iter().sum::<u64>(), bytes(&map["pages"]), "{map}");
    sums
}

#[test]
fn a_map_shows_where_each_part_of_a_task_is() {
    const PAGES: u64 = (12 << 20) / 4096;
    if !needs::are_met(&["python3"]) {
        return;
    }
    let run = Run::start("map", &["--memory", "64M"]);
    let resident = || bytes(&run.task("a")["resident_bytes"]);
    wait_until("it is in memory", || resident() > 11 << 20);
    let [in_memory, compressed, on_disk, _] = places(&run, "a", "240");
    assert!(in_memory >= PAGES, "{in_memory}");
    assert_eq!((compressed, on_disk), (0, 0));
    let number = run.pid("a").to_string();
    run.done(&["suspend", &number]);
    wait_until("its memory is on disk", || {
        let [in_memory, _, on_disk, _] = places(&run, "a", "7");
        in_memory <= 256 && on_disk > PAGES / 2
    });
    let text = run.done(&["map", &number]);
    let all = text.lines().last().unwrap();
    assert!(all.trim_start().starts_with("all "), "{text}");
    assert_eq!(text.lines().count(), 1 + 2 + 32 + 1, "{text}");
    let told = run.refused(&["map", &number, "--cells", "241"]);
    assert!(
        told.contains("`cells` is 241; a map has 1 to 240"),
        "{told}"
    );
    let told = run.refused(&["map", "1"]);
    assert!(told.contains("there is no task 1"), "{told}");
    run.done(&["resume", &number]);
    let turns = run.turns("a");
    wait_until("it goes on", || run.turns("a") > turns + 2);
    assert_eq!(run.end().status.code(), Some(0));
}
