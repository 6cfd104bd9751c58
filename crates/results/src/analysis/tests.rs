use super::curve::{Curve, CurveRecord, Point, Space};
use super::map::{MapRecord, Region, Row};
use super::wss::{SizeBucket, WindowSizes, WssRecord};
use super::*;

fn facts() -> TraceFacts {
    TraceFacts {
        source: "generate loop seed 1".into(),
        command: vec![],
        page_bytes: 4096,
        granularity: "exact".into(),
        time_unit: TimeUnit::References,
        records: 100,
        pages: 3,
        processes: 1,
        time: 100,
        is_cut: false,
        is_pages_estimate: false,
        windows: None,
        pages_at_once: None,
        chosen: None,
    }
}

fn curve_record() -> CurveRecord {
    let fixed = Point {
        pages: 2,
        misses: 50,
        ..Point::default()
    };
    let variable = Point {
        pages: 2,
        misses: 40,
        window: Some(7),
        mean_pages: Some(1.5),
        ..Point::default()
    };
    let curve = |policy: &str, space, point| Curve {
        policy: policy.into(),
        space,
        accuracy: Accuracy::Exact,
        knee: None,
        points: vec![point],
    };
    CurveRecord {
        schema: curve::SCHEMA.into(),
        tidemark: "0.1.0".into(),
        trace: facts(),
        curves: vec![
            curve("lru", Space::Fixed, fixed),
            curve("ws", Space::Variable, variable),
        ],
        run: None,
        verdict: None,
        needs: vec![],
        notes: vec![],
    }
}

#[test]
fn a_curve_reads_back_as_it_was() {
    let record = curve_record();
    assert_eq!(CurveRecord::from_json(&record.to_json()), Ok(record));
}

#[test]
fn points_of_fixed_policies_have_no_window() {
    let json: serde_json::Value = serde_json::from_str(&curve_record().to_json()).unwrap();
    assert_eq!(json["schema"], "tidemark.curve.v1");
    let points = |at: usize| json["curves"][at]["points"][0].clone();
    assert_eq!(points(0), serde_json::json!({ "pages": 2, "misses": 50 }));
    let expected = serde_json::json!({
        "pages": 2, "misses": 40, "window": 7, "mean_pages": 1.5
    });
    assert_eq!(points(1), expected);
    assert_eq!(json["curves"][0]["accuracy"]["kind"], "exact");
}

#[test]
fn another_schema_is_refused() {
    let text = curve_record().to_json().replace("curve.v1", "curve.v2");
    let told = CurveRecord::from_json(&text).unwrap_err();
    assert_eq!(
        told,
        "`schema` is `tidemark.curve.v2`; this reads `tidemark.curve.v1`"
    );
}

#[test]
fn curves_as_csv_have_a_line_a_point() {
    let expected = "policy,pages,bytes,misses,lifetime,window,mean_pages,misses_error\n\
                    lru,2,8192,50,2.000,,,\n\
                    ws,2,8192,40,2.500,7,1.5,\n";
    assert_eq!(curve_record().to_csv(), expected);
}

#[test]
fn working_sets_as_csv_have_a_line_a_bucket() {
    let bucket = SizeBucket {
        from: 0,
        min: 1,
        mean: 2.5,
        max: 4,
    };
    let record = WssRecord {
        schema: wss::SCHEMA.into(),
        tidemark: "0.1.0".into(),
        trace: facts(),
        windows: vec![WindowSizes {
            window: 10,
            known_share: 0.5,
            mean: 2.5,
            deviation: 0.5,
            peak: 4,
            buckets: vec![bucket],
        }],
        marks: vec![],
        footprint: None,
    };
    assert_eq!(
        record.to_csv(),
        "window,time,min_pages,mean_pages,max_pages\n10,0,1,2.5,4\n"
    );
    assert_eq!(WssRecord::from_json(&record.to_json()), Ok(record));
}

#[test]
fn buckets_are_apart_where_some_are_missing() {
    let bucket = |from| SizeBucket {
        from,
        ..SizeBucket::default()
    };
    let line = WindowSizes {
        window: 10,
        known_share: 0.5,
        mean: 2.5,
        deviation: 0.5,
        peak: 4,
        buckets: [3, 6, 12, 15, 18].map(bucket).to_vec(),
    };
    let lengths: Vec<usize> = line.stretches().map(<[_]>::len).collect();
    assert_eq!(lengths, [2, 3]);
}

#[test]
fn maps_as_csv_have_a_line_a_cell_in_use() {
    let record = MapRecord {
        schema: map::SCHEMA.into(),
        tidemark: "0.1.0".into(),
        trace: facts(),
        columns: 4,
        column_time: 25,
        regions: vec![Region {
            process: 0,
            program: "sort".into(),
            label: "/tmp/a,b".into(),
            start: 16,
            pages: 2,
            touched: 1,
            records: 5,
            stores: 0,
            fetches: 0,
            rows: vec![Row {
                start: 16,
                pages: 2,
                from: 1,
                cells: vec![2, 0, 3],
            }],
        }],
        marks: vec![],
    };
    let expected = "process,label,page,pages,time,records\n\
                    0,\"/tmp/a,b\",16,2,25,2\n\
                    0,\"/tmp/a,b\",16,2,75,3\n";
    assert_eq!(record.to_csv(), expected);
    assert_eq!(MapRecord::from_json(&record.to_json()), Ok(record));
}
