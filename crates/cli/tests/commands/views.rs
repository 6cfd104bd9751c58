//! The output of the command, as text and as JSON.

use serde_json::Value;

use crate::support::tidemark;

fn json(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = tidemark(arguments);
    let value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    (value, output.status.code())
}

#[test]
fn doctor_exits_as_it_finds() {
    let (record, code) = json(&["doctor", "--json"]);
    assert_eq!(record["schema"], "tidemark.doctor.v1");
    assert_eq!(code, Some(if record["can_run"] == true { 0 } else { 1 }));
    let checks = record["checks"].as_array().unwrap();
    for name in [
        "kernel",
        "userfaultfd",
        "io_uring",
        "swap",
        "preload library",
    ] {
        assert!(
            checks.iter().any(|check| check["name"] == name),
            "{name} is not looked at"
        );
    }
    for check in checks {
        let is_amiss = check["verdict"] == "missing" || check["verdict"] == "limited";
        assert_eq!(is_amiss, check["remedy"].is_string(), "{check}");
    }
}

#[test]
fn doctor_says_where_swap_can_not_be() {
    let (record, code) = json(&["doctor", "--json", "--swap", "/no/such/folder/x"]);
    assert_eq!((code, &record["can_run"]), (Some(1), &Value::Bool(false)));
}

#[test]
fn calibration_measures_transfers() {
    let (record, _) = json(&["doctor", "--json", "--calibrate"]);
    let latencies = record["latencies"].as_array().unwrap();
    for name in ["zero-fill by the host", "read of 256 KiB", "read of 4 KiB"] {
        let found = latencies
            .iter()
            .find(|latency| latency["name"] == name)
            .expect(name);
        assert!(found["p50_us"].as_f64().unwrap() > 0.0, "{found}");
    }
}

#[test]
fn policies_are_listed_for_people_and_programs() {
    let (record, code) = json(&["policies", "--json"]);
    assert_eq!(code, Some(0));
    let text = String::from_utf8(tidemark(&["policies"]).stdout).unwrap();
    let policies = record["policies"].as_array().unwrap();
    assert!(policies.len() >= 9);
    for policy in policies {
        let name = policy["name"].as_str().unwrap();
        assert!(text.contains(name), "{name} is not in: {text}");
        assert_eq!(
            json(&["policies", name, "--json"]).0["policies"][0],
            *policy
        );
    }
}

#[test]
fn completions_and_pages_name_every_option_of_run() {
    let bash = String::from_utf8(tidemark(&["completions", "bash"]).stdout).unwrap();
    let page = String::from_utf8(tidemark(&["man", "run"]).stdout).unwrap();
    let page = page.replace('\\', "");
    let options = [
        "--memory",
        "--policy",
        "--swap",
        "--swap-size",
        "--stats",
        "--summary",
        "--log-decisions",
        "--in-thread",
        "--malloc",
        "--allow-unmanaged",
    ];
    for option in options {
        assert!(bash.contains(option), "{option} is not completed");
        assert!(page.contains(option), "{option} is not in the page");
    }
}

#[test]
fn help_is_no_error_and_its_absence_is() {
    assert_eq!(tidemark(&["--help"]).status.code(), Some(0));
    assert_eq!(tidemark(&["run", "--help"]).status.code(), Some(0));
    assert_eq!(tidemark(&["--version"]).status.code(), Some(0));
    assert_eq!(tidemark(&[]).status.code(), Some(2));
}
