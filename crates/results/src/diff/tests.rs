use super::*;

fn region(label: &str, pages: u64, is_program: bool) -> RegionUse {
    RegionUse {
        label: label.into(),
        is_program,
        pages,
        references: pages * 10,
        misses: vec![pages * 2],
    }
}

fn amount(group: Group, name: &str, value: f64) -> Amount {
    Amount {
        group,
        name: name.into(),
        at: None,
        unit: Unit::Pages,
        value,
    }
}

fn portrait(regions: Vec<RegionUse>, amounts: Vec<Amount>) -> Portrait {
    Portrait {
        sizes: vec![64],
        regions,
        amounts,
        ..Portrait::default()
    }
}

fn process(number: u32, program: &str, pages: u64) -> ProcessUse {
    ProcessUse {
        process: number,
        program: program.into(),
        pages,
        references: pages * 10,
        misses: vec![pages * 2],
        ..ProcessUse::default()
    }
}

fn of_processes(processes: Vec<ProcessUse>) -> Portrait {
    Portrait {
        processes,
        ..portrait(vec![], vec![])
    }
}

fn diff(before: Portrait, after: Portrait, threshold: Option<Threshold>) -> DiffRecord {
    DiffRecord::new("0", Kind::Trace, before, after, threshold)
}

fn bound(percent: f64, is_of_growth: bool) -> Option<Threshold> {
    Some(Threshold {
        percent,
        is_of_growth,
    })
}

#[test]
fn regions_are_matched_by_label_then_as_programs_then_by_file() {
    let before = vec![
        region("[heap]", 120, false),
        region("/old/table-a", 10, true),
        region("/old/lib.so", 7, false),
        region("/lib/gone.so", 3, false),
    ];
    let after = vec![
        region("/new/lib.so", 8, false),
        region("/new/table-b", 10, true),
        region("[heap]", 480, false),
        region("/lib/fresh.so", 4, false),
    ];
    let record = diff(portrait(before, vec![]), portrait(after, vec![]), None);
    let found: Vec<(&str, (u64, u64))> = record
        .regions
        .iter()
        .map(|region| (region.name.as_str(), region.pages()))
        .collect();
    assert_eq!(
        found,
        [
            ("[heap]", (120, 480)),
            ("/lib/fresh.so", (0, 4)),
            ("/lib/gone.so", (3, 0)),
            ("/new/lib.so", (7, 8)),
            ("/new/table-b", (10, 10)),
        ]
    );
}

#[test]
fn files_of_one_name_are_not_matched_where_there_are_several() {
    let before = vec![region("/a/lib.so", 1, false), region("/b/lib.so", 2, false)];
    let after = vec![region("/c/lib.so", 1, false)];
    let record = diff(portrait(before, vec![]), portrait(after, vec![]), None);
    assert_eq!(record.regions.len(), 3);
    let is_one_sided = |it: &RegionChange| it.before.is_none() != it.after.is_none();
    assert!(record.regions.iter().all(is_one_sided));
}

#[test]
fn amounts_keep_to_their_groups_and_one_sided_ones_have_no_difference() {
    let before = vec![
        amount(Group::Memory, "touched", 100.0),
        amount(Group::Misses, "lru", 50.0),
    ];
    let after = vec![
        amount(Group::Memory, "touched", 150.0),
        amount(Group::Memory, "at-once", 90.0),
        amount(Group::Misses, "lru", 50.0),
    ];
    let record = diff(portrait(vec![], before), portrait(vec![], after), None);
    let names: Vec<&str> = record.measures.iter().map(|it| &it.name[..]).collect();
    assert_eq!(names, ["touched", "at-once", "lru"]);
    let differences: Vec<_> = record.measures.iter().map(Measure::difference).collect();
    assert_eq!(differences, [Some(0.5), None, Some(0.0)]);
    assert_eq!(difference((Some(0.0), Some(1.0))), None);
}

#[test]
fn a_threshold_is_of_either_direction_or_of_growth_alone() {
    let sides = |before, after| {
        let side = |value| portrait(vec![], vec![amount(Group::Memory, "touched", value)]);
        (side(before), side(after))
    };
    let beyond = |before, after, threshold| {
        let (before, after) = sides(before, after);
        diff(before, after, threshold).is_beyond()
    };
    assert!(!beyond(100.0, 105.0, bound(5.0, false)));
    assert!(beyond(100.0, 106.0, bound(5.0, false)));
    assert!(beyond(100.0, 94.0, bound(5.0, false)));
    assert!(!beyond(100.0, 94.0, bound(5.0, true)));
    assert!(beyond(0.0, 1.0, bound(5.0, true)));
    assert!(!beyond(100.0, 300.0, None));
}

#[test]
fn a_region_is_judged_by_its_share_of_all_memory() {
    let side = |heap, stack| {
        let regions = vec![
            region("[heap]", heap, false),
            region("[stack]", stack, false),
        ];
        portrait(regions, vec![])
    };
    // The stack doubles, and is one in a hundred.
    let record = diff(side(99, 1), side(99, 2), bound(5.0, false));
    assert!(!record.is_beyond());
    // What one loses and the other gains shows although the sum stays.
    let record = diff(side(90, 10), side(80, 20), bound(5.0, false));
    assert!(record.regions.iter().all(|region| region.is_beyond));
}

#[test]
fn phases_are_not_judged() {
    let side = |count| portrait(vec![], vec![amount(Group::Phases, "count", count)]);
    assert!(!diff(side(1.0), side(9.0), bound(1.0, false)).is_beyond());
}

#[test]
fn a_record_survives_its_text_and_has_a_line_for_each_amount() {
    let side = |pages| {
        let amounts = vec![amount(Group::WorkingSet, "mean", pages as f64)];
        portrait(vec![region("a,b", pages, false)], amounts)
    };
    let record = diff(side(4), side(6), bound(10.0, true));
    assert_eq!(DiffRecord::from_json(&record.to_json()), Ok(record.clone()));
    let csv = record.to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines,
        [
            "group,name,at,unit,before,after,difference_percent",
            "working-set,mean,,pages,4,6,50",
            "region,\"a,b\",,pages,4,6,50",
            "region,\"a,b\",,references,40,60,50",
            "region,\"a,b\",64,misses,8,12,50",
        ]
    );
}

#[test]
fn processes_are_matched_by_name_and_order_and_the_first_whatever_it_runs() {
    let before = vec![
        process(0, "/old/make-a", 50),
        process(1, "/bin/cc1", 100),
        process(2, "/bin/as", 30),
        process(3, "/bin/cc1", 200),
        process(4, "", 1),
    ];
    let after = vec![
        process(0, "/new/make-b", 51),
        process(1, "/usr/bin/cc1", 104),
        process(2, "/bin/cc1", 900),
        process(3, "/bin/cc1", 20),
        process(4, "", 1),
    ];
    let record = diff(of_processes(before), of_processes(after), None);
    let found: Vec<(String, (u64, u64))> = record
        .processes
        .iter()
        .map(|process| (process.label(&record), process.pages()))
        .collect();
    let expected = [
        ("cc1 #2", (200, 900)),
        ("as", (30, 0)),
        ("cc1 #3", (0, 20)),
        ("cc1 #1", (100, 104)),
        ("make-b", (50, 51)),
        ("unnamed process", (1, 1)),
    ];
    assert_eq!(
        found,
        expected.map(|(name, pages)| (name.to_owned(), pages))
    );
    let csv = record.to_csv();
    assert!(csv.contains("process,cc1 #2,,pages,200,900,350\n"), "{csv}");
    assert!(
        csv.contains("process,cc1 #2,64,misses,400,1800,350\n"),
        "{csv}"
    );
}

#[test]
fn one_process_on_each_side_is_the_whole_and_not_listed() {
    let side = |pages| of_processes(vec![process(0, "/bin/x", pages)]);
    let record = diff(side(1), side(2), None);
    assert!(record.processes.is_empty());
    assert!(!record.to_json().contains("\"processes\""));
    let several = of_processes(vec![process(0, "/bin/x", 2), process(1, "/bin/y", 7)]);
    assert_eq!(diff(side(1), several, None).processes.len(), 2);
}

#[test]
fn a_process_is_judged_by_its_share_of_all_memory() {
    let side = |sort, sh| {
        let processes = vec![process(0, "/bin/sh", sh), process(1, "/bin/sort", sort)];
        Portrait {
            processes,
            ..portrait(vec![region("[heap]", 100, false)], vec![])
        }
    };
    assert!(!diff(side(90, 1), side(90, 2), bound(5.0, false)).is_beyond());
    let record = diff(side(90, 1), side(96, 1), bound(5.0, true));
    assert!(record.is_beyond());
    assert_eq!(record.processes[0].name, "sort");
    assert!(record.processes[0].is_beyond && !record.processes[1].is_beyond);
}
