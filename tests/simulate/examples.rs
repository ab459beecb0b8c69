//! The examples run, and show what their descriptions promise.

use super::{Simulation, moves};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Command;

fn examples() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("examples/simulate")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(examples().join(name)).unwrap()
}

fn run(config: &str, script: &str) -> Vec<Value> {
    let output = Simulation::new(&read(config)).run_with(&[], script);
    assert_eq!((output.code, output.err.as_str()), (0, ""), "{config}");
    output.lines
}

fn admitted(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["admitted"].as_u64()).collect()
}

#[test]
fn every_example_is_in_the_readme_and_short() {
    let readme = read("README.md");
    for entry in std::fs::read_dir(examples()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || readme.contains(&name), "{name} is not in the README");
        assert!(read(&name).lines().count() < 60, "{name} is too long to be read");
    }
}

#[cfg(unix)] // a shell generates its script
#[test]
fn a_steady_twenty_a_second_is_never_refused() {
    let output = Command::new("sh").arg(examples().join("steady.sh")).output().unwrap();
    let lines = run("tmdb.toml", &String::from_utf8(output.stdout).unwrap());
    assert_eq!(lines.len(), 2400);
    assert!(lines.iter().all(|line| line["op"] == "record" || line["allowed"] == true));
    assert_eq!(moves(&lines), [""; 0]);
    assert_eq!(lines.last().unwrap()["t"], 60_030_000_000_u64);
}

#[test]
fn a_burst_is_granted_once() {
    let lines = run("burst.toml", &read("burst.ndjson"));
    assert_eq!(admitted(&lines), [35, 17, 18, 17, 18, 17, 18, 17]);
    assert_eq!(lines.last().unwrap()["reason"], "cost_exceeds_limit");
}

#[test]
fn r118_retry_after_closes_the_gate() {
    let lines = run("retry-after.toml", &read("retry-after.ndjson"));
    let reasons: Vec<_> = lines.iter().filter_map(|line| line.get("reason")).collect();
    let gate = json!("retry_after");
    assert_eq!(reasons, [&Value::Null, &gate, &gate, &Value::Null, &gate, &Value::Null]);
    assert_eq!(lines[6]["sleep_ns"], 7_000_000_000_u64, "a date, by the wall clock");
}

#[test]
fn an_outage_goes_through_all_states_and_up_the_ramp() {
    let lines = run("tmdb.toml", &read("outage.ndjson"));
    let path: Vec<_> =
        moves(&lines).into_iter().map(|it| it.split(" @").next().unwrap().to_owned()).collect();
    assert_eq!(
        path,
        [
            "normal>throttle consec_429",
            "throttle>sleep consec_429",
            "sleep>half_open sleep_expired",
            "half_open>sleep probe_failed",
            "sleep>half_open sleep_expired",
            "half_open>normal probe_ok",
        ]
    );
    let ramp: Vec<_> = lines
        .iter()
        .filter(|line| line["op"] == "advance")
        .map(|line| line["rate"].as_f64().unwrap())
        .collect();
    assert_eq!((ramp.len(), ramp[0], ramp[7]), (8, 18.7, 35.0));
}

#[test]
fn binance_headers_set_the_pace() {
    let lines = run("binance.toml", &read("binance.ndjson"));
    let intervals: Vec<_> = lines.iter().filter_map(|line| line.get("interval_ns")?.as_u64()).collect();
    assert_eq!(intervals, [0, 116_000_000, 1_140_000_000, 1_140_000_000, 40_000_000_000, 0]);
}

#[test]
fn r126_the_example_scripts_show_both_burst_modes() {
    let script = read("burst-modes.ndjson");
    assert_eq!(admitted(&run("burst-tau.toml", &script)), [20, 1, 9, 20, 20, 1, 1, 20, 20, 1, 1]);
    assert_eq!(admitted(&run("burst-window.toml", &script)), [21, 1, 1, 1, 1, 21, 1, 1, 1, 21, 1]);
}

#[test]
fn r78_r79_failures_in_a_row_open_and_probes_close() {
    let lines = run("tvdb.toml", &read("failures.ndjson"));
    assert_eq!(
        moves(&lines),
        [
            "closed>open consecutive_failures @4000000000",
            "open>half_open reset_timeout @304000000000",
            "half_open>open probe_failed @304120000000",
            "open>half_open reset_timeout @604120000000",
            "half_open>closed probe_ok @605120000000",
        ]
    );
}
