//! Invalid operations and invalid configurations change nothing.

use super::{Simulation, simulate};
use serde_json::{Value, json};

const ONE: &str = "concurrency = 1\n[[rules]]\nalgorithm = \"token_bucket\"\nlimit = 1\nperiod = \"1s\"\n";

#[test]
fn a_bad_line_changes_nothing_and_the_run_goes_on() {
    let script = "{\"op\":\"acquire\",\"t\":5}\nnonsense\n{\"op\":\"acquire\",\"t\":2000000000,\"colour\":\"red\"}\n\n  \r\n\
                  {\"op\":\"release\"}\n";
    let output = Simulation::new(ONE).run_with(&[], script);
    assert_eq!((output.code, output.err.as_str()), (1, ""));
    let [granted, nonsense, field, release] = output.lines.as_slice() else { panic!("{:?}", output.lines) };
    assert_eq!(granted["allowed"], true);
    assert_eq!(super::keys(nonsense), ["error", "i", "op"]);
    assert_eq!(
        (&nonsense["i"], &nonsense["op"], &nonsense["error"]["error"]),
        (&json!(1), &Value::Null, &json!("bad_op"))
    );
    assert!(nonsense["error"]["message"].as_str().unwrap().contains("JSON"));
    assert_eq!((&field["i"], &field["op"]), (&json!(2), &json!("acquire")));
    assert!(field["error"]["message"].as_str().unwrap().starts_with("colour: unknown field"));
    assert_eq!((&release["i"], &release["t"], &release["in_flight"]), (&json!(3), &json!(5), &json!(0)));
}

#[test]
fn every_kind_of_mistake_is_a_bad_op() {
    let bad = [
        "[]",
        "1",
        "null",
        "\"acquire\"",
        "{}",
        "{\"op\":null}",
        "{\"op\":7}",
        "{\"op\":\"\"}",
        "{\"op\":\"ACQUIRE\"}",
        "{\"op\":\"acquire\"} {\"op\":\"acquire\"}",
        "{\"op\":\"acquire\"",
        "{\"op\":\"acquire\",\"t\":-1}",
        "{\"op\":\"acquire\",\"t\":1.5}",
        "{\"op\":\"acquire\",\"t\":\"1\"}",
        "{\"op\":\"acquire\",\"t\":18446744073709551616}",
        "{\"op\":\"acquire\",\"cost\":-1}",
        "{\"op\":\"acquire\",\"cost\":\"1\"}",
        "{\"op\":\"acquire\",\"cost\":0.5}",
        "{\"op\":\"acquire\",\"cost\":[1]}",
        "{\"op\":\"acquire\",\"cost\":{\"tokens\":1}}",
        "{\"op\":\"acquire\",\"cost\":{\"requests\":-1}}",
        "{\"op\":\"acquire\",\"priority\":\"low\"}",
        "{\"op\":\"acquire\",\"priority\":1}",
        "{\"op\":\"acquire\",\"priority\":\"user\",\"prio\":\"user\"}",
        "{\"op\":\"acquire\",\"n\":0}",
        "{\"op\":\"acquire\",\"n\":-3}",
        "{\"op\":\"acquire\",\"n\":1000001}",
        "{\"op\":\"acquire\",\"state\":\"normal\"}",
        "{\"op\":\"record\"}",
        "{\"op\":\"record\",\"status\":0}",
        "{\"op\":\"record\",\"status\":600}",
        "{\"op\":\"record\",\"status\":70000}",
        "{\"op\":\"record\",\"status\":\"200\"}",
        "{\"op\":\"record\",\"error\":\"tls\"}",
        "{\"op\":\"record\",\"status\":200,\"error\":\"dns\"}",
        "{\"op\":\"record\",\"status\":429,\"retry_after\":[\"2\"]}",
        "{\"op\":\"record\",\"status\":429,\"attempt\":0}",
        "{\"op\":\"record\",\"status\":200,\"cost\":{\"nothing\":1}}",
        "{\"op\":\"force\"}",
        "{\"op\":\"force\",\"state\":\"awake\"}",
        "{\"op\":\"force\",\"state\":\"sleep\"}",
        "{\"op\":\"force\",\"state\":\"open\"}",
        "{\"op\":\"set\"}",
        "{\"op\":\"set\",\"key\":\"concurrency\"}",
        "{\"op\":\"set\",\"key\":\"concurrenzy\",\"value\":3}",
        "{\"op\":\"set\",\"key\":\"concurrency\",\"value\":\"many\"}",
        "{\"op\":\"set\",\"key\":\"concurrency\",\"value\":[3]}",
        "{\"op\":\"headers\"}",
        "{\"op\":\"headers\",\"headers\":{}}",
        "{\"op\":\"headers\",\"headers\":{},\"parser\":\"klingon\"}",
        "{\"op\":\"headers\",\"headers\":\"x: y\",\"parser\":\"ietf\"}",
        "{\"op\":\"headers\",\"headers\":[[\"x\"]],\"parser\":\"ietf\"}",
        "{\"op\":\"advance\",\"ns\":-1}",
        "{\"op\":\"advance\",\"ns\":1,\"t\":1}",
        "{\"op\":\"advance\",\"seconds\":1}",
    ];
    let status = "{\"op\":\"acquire\",\"cost\":0}\n";
    let script: String = bad.iter().map(|line| format!("{line}\n{status}")).collect();
    let output = Simulation::new(ONE).run_with(&[], script);
    assert_eq!((output.code, output.lines.len()), (1, 2 * bad.len()));
    for (i, (pair, line)) in output.lines.chunks(2).zip(bad).enumerate() {
        assert_eq!(pair[0]["error"]["error"], "bad_op", "{line}: {}", pair[0]);
        assert_eq!(pair[0]["i"], 2 * i);
        assert!(!pair[0]["error"]["message"].as_str().unwrap().is_empty());
        assert_eq!(
            (&pair[1]["t"], &pair[1]["remaining"]),
            (&json!(0), &json!(1)),
            "{line} changed something"
        );
    }
}

#[test]
fn bytes_that_are_not_text_and_overlong_lines_do_not_stop_the_run() {
    let mut script = b"\xff\xfe\x00\n{\"op\":\"acquire\"}\n".to_vec();
    script.extend(std::iter::repeat_n(b'x', 3 << 20));
    script.extend(b"\n");
    script.extend(b"[".repeat(100_000));
    script.extend(b"\n{\"op\":\"release\"}");
    let output = Simulation::new(ONE).run_with(&[], script);
    assert_eq!((output.code, output.lines.len()), (1, 5));
    assert_eq!(output.lines[1]["allowed"], true);
    assert!(output.lines[2]["error"]["message"].as_str().unwrap().contains("longer than"));
    assert_eq!(output.lines[4]["in_flight"], 0, "the last line needs no newline");
}

#[test]
fn a_bad_configuration_is_reported_on_stderr_and_nothing_is_run() {
    let bad = [
        "preset = \"tmbd\"",
        "speed = 5",
        "concurrency = 0",
        "this is no toml",
        "[[rules]]\nalgorithm = \"gcra\"\nlimit = 4\nperiod = \"8s\"\ntau = \"1s\"\n",
    ];
    for config in bad {
        let output = Simulation::new(config).run_with(&[], "{\"op\":\"acquire\"}\n");
        assert_eq!((output.code, output.lines.len()), (2, 0), "{config}");
        assert!(output.err.starts_with("shmlimit: ") && output.err.contains("c.toml"), "{}", output.err);
    }
}

#[test]
fn missing_files_are_named() {
    let simulation = Simulation::new(ONE);
    let output = simulation.run_with(&["--script", "/nowhere/ops.ndjson"], "");
    assert_eq!((output.code, output.lines.len()), (2, 0));
    assert!(output.err.contains("/nowhere/ops.ndjson"), "{}", output.err);
    let output = simulation.run_with(&["--plot", "/nowhere/plot.svg"], "{\"op\":\"acquire\"}\n");
    assert_eq!(
        (output.code, output.lines.len()),
        (2, 0),
        "the error is reported before the first operation runs"
    );
    std::fs::remove_file(simulation.path("c.toml")).unwrap();
    let output = simulation.run_with(&[], "");
    assert_eq!(output.code, 2);
    assert!(output.err.contains("c.toml"), "{}", output.err);
}

#[test]
fn a_script_comes_from_a_file_or_from_standard_input() {
    let simulation = Simulation::new(ONE);
    std::fs::write(simulation.path("ops"), "{\"op\":\"acquire\"}\n").unwrap();
    let file = simulation.path("ops");
    let from_file = simulation.run_with(&["--script", file.to_str().unwrap()], "");
    let from_dash = simulation.run_with(&["--script", "-"], "{\"op\":\"acquire\"}\n");
    assert_eq!((from_file.code, &from_file.lines), (0, &from_dash.lines));
    assert_eq!(from_file.lines, simulate(ONE, "{\"op\":\"acquire\"}\n"));
    let nothing = simulation.run_with(&[], "");
    assert_eq!((nothing.code, nothing.lines.len()), (0, 0));
}

#[test]
fn the_summary_reports_the_totals_of_the_run() {
    let script = "{\"op\":\"acquire\",\"cost\":0}\n{\"op\":\"acquire\",\"n\":3}\n{\"op\":\"advance\",\"ns\":1500000000}\n";
    let output = Simulation::new(ONE).run_with(&["--summary"], script);
    assert_eq!(output.code, 0);
    assert!(
        output.err.contains("granted      1\n") && output.err.contains("refused      1 (concurrency 1)\n")
    );
    assert!(output.err.contains("normal       1.5s\n"), "{}", output.err);
}

#[test]
fn a_cluster_section_is_ignored() {
    let script = "{\"op\":\"acquire\",\"n\":2}\n";
    let cluster = format!("{ONE}[cluster]\nnodes = 3\npeers = [\"a\", \"b\"]\n");
    assert_eq!(simulate(&cluster, script), simulate(ONE, script));
    let none = Simulation::new("cluster = 3\n").run_with(&[], script);
    assert_eq!((none.code, none.lines.len()), (2, 0), "a number is not a [cluster] section");
}
