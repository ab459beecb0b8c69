//! `metrics` to standard output and into files (R116).

use crate::cli::commands::{READY, run};
use crate::cli::{Home, binary};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn ndjson(home: &Home, name: &str) -> Value {
    serde_json::from_str(home.tool(&["metrics", name, "--json"]).succeeds()).unwrap()
}

/// A limiter whose counts are all known.
fn busy() -> Home {
    let home = Home::with(&["api", "--rate", "3/day", "--concurrency", "2"]);
    for _ in 0..3 {
        home.tool(&["acquire", "api", "--now"]).succeeds();
    }
    assert_eq!(home.tool(&["acquire", "api", "--now"]).code, 75);
    for outcome in [["--status", "200"], ["--status", "404"], ["--error", "dns"]] {
        home.tool(&[&["record", "api", "--latency", "120ms"], &outcome[..]].concat()).succeeds();
    }
    home.tool(&["record", "api", "--status", "429", "--retry-after", "2"]).succeeds();
    home
}

#[test]
fn r116_ndjson_has_the_names_and_the_counts() {
    let line = ndjson(&busy(), "api");
    assert_eq!(line["requests_total"], serde_json::json!({"200": 1, "404": 1, "429": 1, "dns": 1}));
    for (key, value) in
        [("granted_total", 3), ("refused_total", 1), ("cache_hits_total", 0), ("cache_miss_total", 0)]
    {
        assert_eq!(line[key], value, "{key}");
    }
    assert_eq!((&line["limiter"], &line["up"]), (&"api".into(), &1.into()));
    assert!((line["rate_current"].as_f64().unwrap() - 3.0 / 86_400.0).abs() < 1e-9);
    assert_eq!(line["concurrency_current"], 2);
    // 200, dns and 429 count; 404 does not.
    assert!((line["err_rate_30s"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    let latency = &line["latency_ms"];
    assert_eq!((&latency["count"], &latency["sum"]), (&3.into(), &360.0.into()));
    assert_eq!(latency["buckets"][6], serde_json::json!([100, 0]));
    assert_eq!(latency["buckets"][7], serde_json::json!([250, 3]));
    assert_eq!(latency["buckets"][15], serde_json::json!(["+Inf", 3]));
    assert!(
        line["sleep_ms"]["count"].as_u64().unwrap() >= 1
            && line["sleep_ms"]["sum"].as_f64().unwrap() >= 2000.0
    );
    assert!(line["ts"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn r116_the_text_for_prometheus_is_as_reviewed() {
    let home = busy();
    let text = home.tool(&["metrics"]).succeeds().to_owned();
    // Exclude lines that depend on time or chance.
    let steady = text.lines().filter(|line| {
        !["sleep_seconds", "gate_seconds", "since_timestamp", "rule_remaining"]
            .iter()
            .any(|part| line.contains(part))
    });
    insta::assert_snapshot!(steady.collect::<Vec<_>>().join("\n"));
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
}

#[test]
fn openmetrics_declares_counters_without_their_suffix() {
    let home = busy();
    let text = home.tool(&["metrics", "--format", "openmetrics"]).succeeds().to_owned();
    assert!(text.ends_with("# EOF\n"));
    for part in [
        "# TYPE shmlimit_requests counter\n",
        "# UNIT shmlimit_latency_seconds seconds\n",
        "# TYPE shmlimit_build info\nshmlimit_build_info{",
        "shmlimit_latency_seconds_bucket{limiter=\"api\",le=\"0.25\"} 3\n",
        "shmlimit_latency_seconds_count{limiter=\"api\"} 3\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// A program that exports its limiter itself shows the same series, and the same values where time does not change them.
#[test]
fn the_text_of_the_library_is_that_of_the_tool() {
    let home = busy();
    let limiter =
        shmlimit::Limiter::builder("api").directory(home.path()).observer().open_existing().unwrap();
    let snapshot = limiter.snapshot().unwrap();
    // Values that time changes: only their names are compared.
    let steady = |text: &str| {
        let is_timed =
            |line: &str| ["_gate_", "_since_", "_remaining"].iter().any(|part| line.contains(part));
        let shown = |line: &str| match line.rsplit_once(' ') {
            Some((series, _)) if !line.starts_with('#') && is_timed(line) => series.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(shown).collect::<Vec<_>>()
    };
    for (format, text) in [
        ("prometheus", shmlimit::metrics::prometheus([&snapshot])),
        ("openmetrics", shmlimit::metrics::open_metrics([&snapshot])),
    ] {
        let printed = home.tool(&["metrics", "api", "--format", format]).succeeds().to_owned();
        assert!(steady(&text).len() > 100, "{text}");
        assert_eq!(steady(&text), steady(&printed));
    }
}

/// Processes start, count, and are killed in the middle of a call: no count is lost, and none decreases.
#[test]
fn r116_counts_survive_the_processes_that_counted() {
    let home = Home::with(&["api", "--rate", "1000/day"]);
    let mut last = 0;
    for round in 1..=5 {
        let (mut child, _out, _) = home.start(&run("api", READY));
        let during = ndjson(&home, "api")["granted_total"].as_u64().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let after = ndjson(&home, "api")["granted_total"].as_u64().unwrap();
        home.tool(&["acquire", "api"]).succeeds();
        let then = ndjson(&home, "api")["granted_total"].as_u64().unwrap();
        assert_eq!((during, after, then), (last + 1, last + 1, last + 2), "round {round}");
        last = then;
    }
}

#[test]
fn one_bad_limiter_does_not_hide_the_others() {
    let home = busy();
    std::fs::write(home.path().join("bad.shm"), b"not a segment").unwrap();
    let answer = home.tool(&["metrics"]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("bad"), "{}", answer.err);
    assert!(answer.out.contains("shmlimit_up{limiter=\"bad\"} 0\n"), "{}", answer.out);
    assert!(answer.out.contains("shmlimit_up{limiter=\"api\"} 1\n"));
    assert!(answer.out.contains("shmlimit_granted_total{limiter=\"api\"} 3\n"));
    let answer = home.tool(&["metrics", "--json"]);
    let lines: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["up"], &lines[1]["up"]), (&1.into(), &0.into()));
    assert!(lines[1]["error"].as_str().unwrap().contains("bad"));
}

#[test]
fn metrics_of_no_limiters_succeed_and_of_an_unknown_name_fail() {
    let home = Home::new();
    assert!(home.tool(&["metrics"]).succeeds().contains("shmlimit_build_info"));
    assert_eq!(home.tool(&["metrics", "--json"]).succeeds(), "");
    home.tool(&["metrics", "tmdx"]).fails(2, &["did you mean \"tmdb\""]);
    assert!(home.names().is_empty(), "looking makes nothing");
    home.tool(&["metrics", "--every", "1ms"]).fails(2, &["at least 100ms"]);
    home.tool(&["metrics", "--format", "xml"]).fails(2, &["prometheus, openmetrics or ndjson"]);
    home.tool(&["metrics", "--output", "no-such-place/x.prom"])
        .fails(1, &["cannot write no-such-place/x.prom"]);
}

/// While a file is replaced again and again, every reader finds a complete one.
#[test]
fn a_file_is_replaced_as_a_whole() {
    let home = busy();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shmlimit.prom");
    let mut writer = home
        .as_a_shell_would()
        .args(["metrics", "--format", "openmetrics", "--every", "100ms", "--output"])
        .arg(&file)
        .spawn()
        .unwrap();
    let (mut texts, mut files) = (BTreeSet::new(), BTreeSet::new());
    let until = Instant::now() + Duration::from_secs(60);
    while texts.len() < 5 {
        assert!(Instant::now() < until, "{texts:?}");
        if let Ok(text) = std::fs::read_to_string(&file) {
            assert!(text.ends_with("# EOF\n"), "an incomplete file");
            let metadata = std::fs::metadata(&file).unwrap();
            #[cfg(unix)]
            // Elsewhere the standard library cannot tell file numbers, and access is inherited.
            {
                use std::os::unix::fs::{MetadataExt, PermissionsExt};
                assert_eq!(metadata.permissions().mode() & 0o777, 0o644);
                files.insert(metadata.ino());
            }
            #[cfg(windows)]
            files.insert(metadata.modified().unwrap());
            texts.insert(text);
        }
    }
    assert!(files.len() >= 2, "each write replaces the file");
    #[cfg(unix)] // elsewhere only the console can ask it to end
    {
        use nix::sys::signal::{Signal, kill};
        kill(nix::unistd::Pid::from_raw(writer.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(writer.wait().unwrap().code(), Some(0));
    }
    #[cfg(windows)]
    {
        writer.kill().unwrap();
        writer.wait().unwrap();
        // The writer may have been killed while it wrote the next file.
        std::fs::remove_file(directory.path().join(format!(".shmlimit.prom.{}.tmp", writer.id()))).ok();
    }
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["shmlimit.prom"]);
}

#[test]
fn lines_are_repeated_until_the_pipe_is_closed() {
    let home = busy();
    let mut tool = Command::new(binary())
        .args(["metrics", "--json", "--every", "100ms"])
        .env("SHMLIMIT_DIR", home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(tool.stdout.take().unwrap()));
    for _ in 0..3 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["granted_total"], 3);
    }
    drop(lines);
    assert_eq!(tool.wait().unwrap().code(), Some(0), "a broken pipe is success");
}

/// The names of the families in a metrics text.
fn names(text: &str) -> BTreeSet<String> {
    let declared = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    declared.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// The words of a text that are names of families, without the suffixes of a histogram.
fn mentioned(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("shmlimit_"));
    let endings = ["_bucket", "_sum", "_count"];
    let family = |word: &str| {
        let base = endings.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
        base.to_owned()
    };
    words.map(family).collect()
}

/// Limiters that together have a sample of every family.
fn with_everything() -> Home {
    let home = busy();
    home.tool(&["acquire", "github"]).succeeds();
    home.tool(&["acquire", "tmdb"]).succeeds();
    home.tool(&["force", "tmdb", "sleep"]).succeeds();
    home.tool(&["pause", "github", "--for", "1h"]).succeeds();
    home
}

#[test]
fn the_documentation_names_exactly_the_existing_metrics() {
    let there = names(with_everything().tool(&["metrics"]).succeeds());
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `shmlimit_"));
    let listed: BTreeSet<String> = rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect();
    assert_eq!(listed, there);
}

#[test]
fn every_expression_of_the_dashboard_names_metrics_that_exist() {
    let there = names(with_everything().tool(&["metrics"]).succeeds());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            expressions.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    assert!(expressions.len() >= 12, "{}", expressions.len());
    let queries = dashboard["templating"]["list"].as_array().unwrap().iter();
    expressions.extend(queries.filter_map(|one| one["definition"].as_str().map(str::to_owned)));
    for expression in expressions {
        let mentioned = mentioned(&expression);
        assert!(!mentioned.is_empty(), "{expression}");
        let unknown: Vec<_> = mentioned.difference(&there).collect();
        assert!(unknown.is_empty(), "{unknown:?} of {expression}");
    }
}
