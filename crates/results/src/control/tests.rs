use tidemark_core::counters::Counter;

use super::activity::{COUNTED, name_of};
use super::*;

#[test]
fn a_request_is_one_line_of_json() {
    let requests = [
        (r#"{"command":"stats"}"#, Request::Stats),
        (
            r#"{"command":"budget","bytes":67108864}"#,
            Request::Budget { bytes: 64 << 20 },
        ),
        (
            r#"{"command":"suspend","pid":7}"#,
            Request::Suspend { pid: 7 },
        ),
        (r#"{"command":"evict","pid":7}"#, Request::Evict { pid: 7 }),
        (
            r#"{"command":"map","pid":7}"#,
            Request::Map {
                pid: 7,
                cells: None,
            },
        ),
        (
            r#"{"command":"map","pid":7,"cells":80}"#,
            Request::Map {
                pid: 7,
                cells: Some(80),
            },
        ),
        (r#"{"command":"policy"}"#, Request::Policy { name: None }),
        (
            r#"{"command":"load-control","name":"none"}"#,
            Request::LoadControl {
                name: Some("none".into()),
            },
        ),
    ];
    for (line, request) in requests {
        assert_eq!(Request::parse(line.as_bytes()), Ok(request.clone()));
        assert_eq!(request.to_line(), format!("{line}\n"));
    }
}

#[test]
fn what_is_no_request_is_refused_in_one_line() {
    let deep = "[".repeat(4000);
    for line in [
        "",
        "stats",
        "{}",
        r#"{"command":"explode"}"#,
        r#"{"command":"suspend"}"#,
        r#"{"command":"suspend","pid":-1}"#,
        r#"{"command":"suspend","pid":1,"mask":2}"#,
        r#"{"command":"budget","bytes":"4M"}"#,
        &deep,
        "\u{0}",
    ] {
        let told = Request::parse(line.as_bytes()).unwrap_err().to_string();
        assert!(
            told.starts_with("not a request: ") && !told.contains('\n'),
            "{told}"
        );
    }
}

#[test]
fn a_reply_names_its_kind() {
    let done = Reply::Done("task 7 is suspended".into());
    assert_eq!(done.to_line(), "{\"done\":\"task 7 is suspended\"}\n");
    let refused = Reply::from(Err(Refusal::new("there is no task 9")));
    assert_eq!(refused.to_line(), "{\"refused\":\"there is no task 9\"}\n");
    assert_eq!(Reply::parse(refused.to_line().as_bytes()), Ok(refused));
    let load_control = Reply::LoadControl("none".into());
    assert_eq!(load_control.to_line(), "{\"load-control\":\"none\"}\n");
    assert!(Reply::parse(b"{\"stats\":{}}").is_err());
}

#[test]
fn counts_and_rates_survive_the_wire() {
    let past = Counts::of(|counter| counter as u64);
    let now = Counts::of(|counter| counter as u64 * 3 + 1_000_000_000);
    let text = serde_json::to_string(&now).unwrap();
    assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), now);
    let rates = now.since(&past, 2_000_000_000);
    let stalls = 1_000_000_000 + 2 * Counter::StallNs as u64;
    assert_eq!(rates.get(Counter::StallNs), stalls as f64 / 2e9);
    assert_eq!(
        rates.get(Counter::PageIns),
        (1_000_000_000 + 2 * Counter::PageIns as u64) as f64 / 2.0
    );
    let text = serde_json::to_string(&rates).unwrap();
    let back: Rates = serde_json::from_str(&text).unwrap();
    for counter in COUNTED {
        assert!((back.get(counter) - rates.get(counter)).abs() < 0.001);
        assert!(text.contains(&format!("\"{}\":", name_of(counter))));
    }
}

#[test]
fn what_ends_between_two_looks_has_no_negative_rate() {
    let past = Counts::of(|_| 10);
    assert_eq!(Counts::default().since(&past, 1), Rates::default());
}
