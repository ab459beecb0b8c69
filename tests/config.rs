//! The format of configuration files.
#![cfg(feature = "config")]

use shmlimit::config::{Config, ConfigError};
use shmlimit::{Algorithm, Error, Fairness, Nanos, PolicyError};

fn policy(text: &str) -> shmlimit::Policy {
    *Config::from_toml(text).unwrap_or_else(|error| panic!("{text}: {error}")).policy()
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) -> ConfigError {
    let error = Config::from_toml(text).expect_err(text);
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    error
}

#[test]
fn the_documentation_knows_every_key_and_its_sample_is_valid() {
    let document = include_str!("../docs/configuration.md");
    let sample = document.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(policy(sample).rules().len(), 2);
    for unknown in ["quite_another_thing = 1", "[[rules]]\nalgorithm = 'gcra'\nquite_another_thing = 1"] {
        let message = refused(unknown, &["there are: "]).to_string();
        for key in message.split("there are: ").nth(1).unwrap().split(", ") {
            let written = [format!("`{key}`"), format!("`[{key}]`"), format!("`[[{key}]]`")];
            assert!(written.iter().any(|key| document.contains(key)), "{key} is not documented");
        }
    }
}

#[test]
fn every_key_that_this_version_carries_out_is_read() {
    let policy = policy(
        r#"
        epoch_ns = 5
        provider = "metarr"
        concurrency = 4
        concurrency_background = 2
        fairness = "fifo"
        background_share = 0.1
        [priority]
        enabled = true
        [[rules]]
        name = "rps"
        algorithm = "token_bucket"
        limit = 35
        period = "1s"
        burst = 40
        reserve = 5
        [[rules]]
        algorithm = "gcra"
        unit = "tokens"
        limit = 60
        period = "1m"
        tau = "2s"
        burst_mode = "gcra_tau"
        "#,
    );
    assert_eq!(policy.provider().as_str(), "metarr");
    assert_eq!((policy.concurrency(), policy.concurrency_background()), (Some(4), Some(2)));
    let queueing = policy.queueing();
    assert_eq!((queueing.fairness, queueing.background_share), (Fairness::Fifo, 100_000));
    let [first, second] = policy.rules() else { panic!() };
    assert_eq!((first.name.as_str(), first.algorithm), ("rps", Algorithm::TokenBucket));
    assert_eq!((first.limit, first.period, first.burst, first.reserve), (35, Nanos::from_secs(1), 40, 5));
    assert_eq!((second.name.as_str(), second.unit, second.tau), ("gcra", 1, Some(Nanos::from_secs(2))));
}

#[test]
fn nothing_at_all_is_a_limiter_without_limits() {
    let policy = policy("");
    assert!(policy.rules().is_empty());
    assert_eq!((policy.concurrency(), policy.provider().as_str()), (None, "default"));
}

#[test]
fn durations_are_exact_in_every_form() {
    for (written, nanos) in [
        ("\"250ms\"", 250_000_000),
        ("\"30s\"", 30_000_000_000),
        ("\"5m\"", 300_000_000_000),
        ("\"24h\"", 86_400_000_000_000),
        ("\"1d\"", 86_400_000_000_000),
        ("\"100ns\"", 100),
        ("8", 8_000_000_000),
        ("0.1", 100_000_000),
        ("0.3", 300_000_000),
        ("1.000000001", 1_000_000_001),
        ("4.35", 4_350_000_000),
        ("1e-9", 1),
    ] {
        let policy = policy(&format!("[[rules]]\nalgorithm = 'gcra'\nlimit = 1\nperiod = {written}"));
        assert_eq!(policy.rules()[0].period, Nanos(nanos), "{written}");
    }
}

#[test]
fn r143_a_share_is_exact_or_refused() {
    for (written, millionths) in
        [("0", 0), ("1", 1_000_000), ("0.3", 300_000), ("0.000001", 1), ("1e-6", 1), ("0.999999", 999_999)]
    {
        let share = policy(&format!("background_share = {written}")).queueing().background_share;
        assert_eq!(share, millionths, "{written}");
    }
    for written in ["-0.1", "1.000001", "2", "-1", "nan", "inf", "'0.1'", "true"] {
        refused(&format!("background_share = {written}"), &["background_share = ", "from 0 to 1"]);
    }
    refused("background_share = 0.1234567", &["background_share = 0.1234567", "more than 6 digits"]);
    refused("background_share = 1e-7", &["background_share = ", "more than 6 digits"]);
}

#[test]
fn r131_fairness_is_by_process_unless_said_otherwise() {
    assert_eq!(policy("").queueing().fairness, Fairness::Process);
    assert_eq!(policy("fairness = 'process'").queueing().fairness, Fairness::Process);
    refused("fairness = 'lifo'", &["fairness", "lifo", "process", "fifo"]);
    refused("fairness = 1", &["fairness = 1", "text in quotes"]);
}

#[test]
fn r9_a_bucket_of_which_nothing_is_said_holds_ten_and_gains_one_a_second() {
    let said_nothing = policy("[[rules]]\nalgorithm = 'token_bucket'");
    let rule = said_nothing.rules()[0];
    assert_eq!((rule.limit, rule.period, rule.burst), (1, Nanos::from_secs(1), 10));
    let said_limit = policy("[[rules]]\nalgorithm = 'token_bucket'\nlimit = 7");
    assert_eq!(said_limit.rules()[0].burst, 7);
}

#[test]
fn r9_the_default_algorithm_is_not_quietly_another() {
    let error = refused("[[rules]]\nlimit = 3", &["rules.0.algorithm", "sliding_counter", "token_bucket"]);
    assert!(matches!(error, ConfigError::NotYetSupported { .. }));
}

#[test]
fn r104_own_keys_go_on_top_of_a_preset_and_rules_replace() {
    let merged = policy("preset = 'tmdb'\nconcurrency = 9");
    assert_eq!((merged.concurrency(), merged.rules()[0].limit), (Some(9), 35));
    assert_eq!(merged.provider().as_str(), "tmdb");
    let replaced = policy("preset = 'tmdb'\n[[rules]]\nalgorithm = 'gcra'\nlimit = 2");
    assert_eq!((replaced.concurrency(), replaced.rules().len(), replaced.rules()[0].limit), (Some(4), 1, 2));
    assert_eq!(policy("preset = 'tmdb'"), shmlimit::presets::policy("tmdb").unwrap().unwrap());
    assert!(matches!(refused("preset = 'tmbd'", &["tmbd", "tmdb"]), ConfigError::UnknownPreset { .. }));
    assert!(matches!(refused("preset = 'tvdb'", &["tvdb"]), ConfigError::NotYetSupported { .. }));
}

#[test]
fn unknown_keys_are_named_with_the_near_one() {
    for (text, key, near) in [
        ("concurency = 4", "concurency", "concurrency"),
        ("[[rules]]\nalgorithm = 'gcra'\nlimt = 4", "rules.0.limt", "limit"),
        ("[priority]\nenabeld = true", "priority.enabeld", "enabled"),
    ] {
        let error = refused(text, &[&format!("did you mean {near:?}")]);
        assert!(matches!(error, ConfigError::UnknownKey { key: named, .. } if named == key), "{text}");
    }
    refused("colour = 'red'", &["colour", "there are: preset, epoch_ns"]);
}

#[test]
fn what_this_version_cannot_do_is_an_error_never_ignored() {
    for (text, key) in [
        ("[window]\nmax_age = '30s'", "window"),
        ("[breaker]\nkind = 'fsm'", "breaker"),
        ("[backoff]\nbase = '1.5s'", "backoff"),
        ("[adaptive]\nparser = 'binance'", "adaptive"),
        ("count_network_errors = false", "count_network_errors"),
        ("mode = 'passthrough'", "mode"),
        ("[cluster]", "cluster"),
        ("[priority]\nenabled = false", "priority.enabled"),
        ("[[rules]]\nalgorithm = 'sliding_log'", "rules.0.algorithm"),
        ("[[rules]]\nalgorithm = 'leaky_bucket'", "rules.0.algorithm"),
        ("[[rules]]\nalgorithm = 'gcra'\nburst_mode = 'fixed_window'", "rules.0.burst_mode"),
    ] {
        let error = refused(text, &[key, "not supported by this version yet"]);
        assert!(matches!(error, ConfigError::NotYetSupported { .. }), "{text}");
    }
}

#[test]
fn impossible_values_are_refused_with_key_value_and_range() {
    for (line, parts) in [
        ("limit = 0", &["rules.0.limit = 0", "from 1 to"][..]),
        ("limit = -1", &["rules.0.limit = -1", "whole number"]),
        ("limit = nan", &["rules.0.limit = NaN", "whole number"]),
        ("limit = 1.5", &["rules.0.limit = 1.5"]),
        ("limit = '35'", &["rules.0.limit = \"35\""]),
        (
            "limit = 9223372036854775807",
            &["rules.0.limit = 9223372036854775807", "from 1 to 281474976710656"],
        ),
        ("limit = 9223372036854775808", &["TOML"]),
        ("period = 0", &["rules.0.period = 0", "from 1 to"]),
        ("period = -1", &["rules.0.period = -1", "duration"]),
        ("period = nan", &["rules.0.period = NaN", "duration"]),
        ("period = inf", &["rules.0.period = inf", "duration"]),
        ("period = '10 parsecs'", &["rules.0.period = \"10 parsecs\"", "250ms"]),
        ("period = 1e-10", &["rules.0.period", "finer than a nanosecond"]),
        ("period = '999999d'", &["too large"]),
        ("period = '99999d'", &["rules.0.period", "from 1 to"]),
        ("burst = 0", &["rules.0.burst = 0", "from 1 to"]),
        ("reserve = 11", &["rules.0.reserve = 11", "from 0 to 10"]),
        ("tau = '99ms'\nlimit = 10", &["rules.0.tau = 99000000", "from 100000000"]),
        ("tau = '1s'\nburst = 2", &["rules.0.tau", "either burst or tau"]),
        ("name = 'a b'", &["rules.0.name = \"a b\""]),
        ("unit = ''", &["rules.0.unit"]),
        ("burst_mode = 'wild'", &["rules.0.burst_mode", "gcra_tau"]),
    ] {
        refused(&format!("[[rules]]\nalgorithm = 'gcra'\n{line}"), parts);
    }
    refused("[[rules]]\nalgorithm = 'token_bucket'\ntau = 1", &["rules.0.tau", "use burst"]);
    refused(
        "[[rules]]\nalgorithm = 'token_bucket'\nburst_mode = 'gcra_tau'",
        &["rules.0.burst_mode", "gcra"],
    );
    refused("[[rules]]\nalgorithm = 'magic'", &["rules.0.algorithm = \"magic\"", "token_bucket"]);
    refused("concurrency = 0", &["concurrency = 0", "from 1 to 4096"]);
    refused("concurrency_background = 5000", &["concurrency_background = 5000"]);
    refused("rules = 3", &["rules = 3", "[[rules]]"]);
    refused("rules = [3]", &["rules.0 = 3", "[[rules]]"]);
    refused("concurrency = 1\nconcurrency = 2", &["TOML", "line 2"]);
}

#[test]
fn r137_more_rules_or_units_than_there_is_room_for_are_refused() {
    let rules = |count: usize| "[[rules]]\nalgorithm = 'gcra'\n".repeat(count);
    assert_eq!(policy(&rules(8)).rules().len(), 8);
    refused(&rules(9), &["rules: 9 given, at most 8"]);
    let units: String = (0..4).map(|i| format!("[[rules]]\nalgorithm = 'gcra'\nunit = 'u{i}'\n")).collect();
    refused(&units, &["rules.3.unit", "at most 4"]);
}

#[test]
fn the_error_is_one_of_the_librarys() {
    let error: Error = refused("concurrency = 0", &[]).into();
    assert!(matches!(error, Error::Config(ConfigError::Policy(PolicyError::OutOfRange { .. }))));
}
