//! The format of configuration files.

use shmlimit::ConfigError;
use shmlimit::config::Config;
use shmlimit::headers::HeaderFormat;
use shmlimit::{Algorithm, Error, Fairness, PolicyError};
use shmlimit_kernel::policy::{BreakerKind, Jitter, PerSecond};
use std::time::Duration;

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
fn the_documentation_lists_every_key_and_its_sample_is_valid() {
    let document = include_str!("../../docs/configuration.md");
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
fn every_key_that_this_version_implements_is_read() {
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
    assert_eq!((first.limit, first.period, first.burst, first.reserve), (35, Duration::from_secs(1), 40, 5));
    assert_eq!((second.name.as_str(), second.unit, second.tau), ("gcra", 1, Some(Duration::from_secs(2))));
}

#[test]
fn an_empty_file_is_a_limiter_without_limits() {
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
        assert_eq!(policy.rules()[0].period, Duration::from_nanos(nanos), "{written}");
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
fn r131_fairness_is_by_process_by_default() {
    assert_eq!(policy("").queueing().fairness, Fairness::Process);
    assert_eq!(policy("fairness = 'process'").queueing().fairness, Fairness::Process);
    refused("fairness = 'lifo'", &["fairness", "lifo", "process", "fifo"]);
    refused("fairness = 1", &["fairness = 1", "string in quotes"]);
}

#[test]
fn r9_a_bucket_without_settings_holds_ten_and_gains_one_per_second() {
    let said_nothing = policy("[[rules]]\nalgorithm = 'token_bucket'");
    let rule = said_nothing.rules()[0];
    assert_eq!((rule.limit, rule.period, rule.burst), (1, Duration::from_secs(1), 10));
    let limit_only = policy("[[rules]]\nalgorithm = 'token_bucket'\nlimit = 7");
    assert_eq!(limit_only.rules()[0].burst, 7);
}

#[test]
fn r9_every_algorithm_has_its_defaults() {
    for (algorithm, limit, seconds, burst) in [
        ("token_bucket", 1, 1, 10),
        ("leaky_bucket", 1, 1, 10),
        ("gcra", 1, 1, 10),
        ("fixed_window", 10, 60, 10),
        ("sliding_log", 10, 60, 10),
        ("sliding_counter", 10, 60, 10),
    ] {
        let rule = policy(&format!("[[rules]]\nalgorithm = '{algorithm}'")).rules()[0];
        assert_eq!(rule.algorithm.as_str(), algorithm);
        assert_eq!((rule.limit, rule.period, rule.burst), (limit, Duration::from_secs(seconds), burst));
        // A rule that states only half of its numbers keeps the other half of the default.
        let rule = policy(&format!("[[rules]]\nalgorithm = '{algorithm}'\nlimit = 7")).rules()[0];
        assert_eq!((rule.limit, rule.period, rule.burst), (7, Duration::from_secs(seconds), 7));
        let rule = policy(&format!("[[rules]]\nalgorithm = '{algorithm}'\nperiod = '5s'")).rules()[0];
        assert_eq!((rule.limit, rule.period, rule.burst), (limit, Duration::from_secs(5), burst));
    }
}

#[test]
fn r9_the_default_algorithm_is_the_sliding_counter() {
    let rule = policy("[[rules]]").rules()[0];
    assert_eq!(
        (rule.algorithm, rule.limit, rule.period),
        (Algorithm::SlidingCounter, 10, Duration::from_secs(60))
    );
    assert_eq!(rule.name.as_str(), "sliding_counter");
}

#[test]
fn r104_keys_of_a_file_override_a_preset_and_rules_replace_its_rules() {
    let merged = policy("preset = 'tmdb'\nconcurrency = 9");
    assert_eq!((merged.concurrency(), merged.rules()[0].limit), (Some(9), 35));
    assert_eq!(merged.provider().as_str(), "tmdb");
    let replaced = policy("preset = 'tmdb'\n[[rules]]\nalgorithm = 'gcra'\nlimit = 2");
    assert_eq!((replaced.concurrency(), replaced.rules().len(), replaced.rules()[0].limit), (Some(4), 1, 2));
    assert_eq!(policy("preset = 'tmdb'"), shmlimit::presets::policy("tmdb").unwrap().unwrap());
    assert!(matches!(refused("preset = 'tmbd'", &["tmbd", "tmdb"]), ConfigError::UnknownPreset { .. }));
    refused("preset = 7", &["preset = 7", "string in quotes"]);
}

#[test]
fn r104_tables_merge_key_by_key_and_lists_replace() {
    let plain = policy("preset = 'tmdb'");
    let merged = policy("preset = 'tmdb'\n[breaker]\np_throttle = 0.3\n[backoff]\nretries_user = 1");
    let (before, after) = (plain.breaker(), merged.breaker());
    assert_eq!(after.kind(), BreakerKind::Fsm);
    assert_eq!((before.p_throttle, after.p_throttle, after.p_recover), (200_000, 300_000, before.p_recover));
    assert_eq!((merged.backoff().retries_user, merged.backoff().retries_background), (1, 5));
    assert_eq!(policy("preset = 'tmdb'\nconcurrency = 'unlimited'").concurrency(), None);
    let faster = policy("preset = 'binance'\n[adaptive]\nthreshold = 0.9").adaptive().copied().unwrap();
    assert_eq!(
        (faster.parser, faster.threshold, faster.windows().count()),
        (Some(HeaderFormat::Binance.code()), 900_000, 3)
    );
    let windows =
        "preset = 'binance'\n[[adaptive.windows]]\nname = 'REQUEST_WEIGHT:1M'\nlimit = 1200\ninterval = 60";
    let replaced = policy(windows).adaptive().copied().unwrap();
    assert_eq!(replaced.parser, Some(HeaderFormat::Binance.code()));
    assert_eq!(replaced.windows().map(|window| window.limit).collect::<Vec<_>>(), [1200]);
}

#[test]
fn r111_the_file_overrides_the_preset_and_the_preset_the_default() {
    assert_eq!(policy("").breaker().kind(), BreakerKind::None);
    assert_eq!(policy("preset = 'tvdb'").breaker().kind(), BreakerKind::Consecutive);
    assert_eq!(policy("preset = 'tvdb'\n[breaker]\nkind = 'none'").breaker().kind(), BreakerKind::None);
    // The position of a key in the file has no effect.
    assert_eq!(policy("concurrency = 9\npreset = 'tmdb'").concurrency(), Some(9));
}

#[test]
fn unknown_keys_are_named_with_a_similar_key() {
    for (text, key, near) in [
        ("concurency = 4", "concurency", "concurrency"),
        ("[[rules]]\nalgorithm = 'gcra'\nlimt = 4", "rules.0.limt", "limit"),
        ("[priority]\nenabeld = true", "priority.enabeld", "enabled"),
        ("[breaker]\np_throtle = 1", "breaker.p_throtle", "p_throttle"),
        ("[braker]", "braker", "breaker"),
        ("[[adaptive.windows]]\nintervall = 1", "adaptive.windows.0.intervall", "interval"),
        ("[adaptive]\nwindow = 1", "adaptive.window", "windows"),
    ] {
        let error = refused(text, &[&format!("did you mean {near:?}")]);
        assert!(matches!(error, ConfigError::UnknownKey { key: named, .. } if named == key), "{text}");
    }
    for text in ["'breaker.kind' = 'fsm'", "'rules.N.limit' = 3", "[[rules]]\n'0.limit' = 3"] {
        assert!(matches!(refused(text, &[]), ConfigError::UnknownKey { .. }), "{text}");
    }
    refused("colour = 'red'", &["colour", "there are: preset, epoch_ns"]);
}

#[test]
fn unsupported_features_are_an_error_and_never_ignored() {
    for text in ["[cluster]", "[cluster]\nnodes = 3", "cluster = 1"] {
        let error = refused(text, &["cluster", "not supported by this version yet"]);
        assert!(matches!(error, ConfigError::NotYetSupported { .. }), "{text}");
    }
}

#[test]
fn r145_r102_r139_r41_single_switches_are_read() {
    let policy = policy(
        "concurrency_background = 2\ncount_network_errors = false\nmode = 'passthrough'\n[priority]\nenabled = false",
    );
    assert_eq!(policy.concurrency_background(), Some(2));
    assert!(!policy.breaker().counts_network_errors() && policy.is_passthrough());
    assert!(!policy.queueing().priorities);
    refused("[priority]\nenabled = 0", &["priority.enabled = 0", "true or false"]);
    refused("[priority]\nenabled = 'true'", &["priority.enabled = \"true\"", "true or false"]);
    refused("priority = false", &["priority = false", "[priority]"]);
    refused("mode = 'passthru'", &["mode = \"passthru\"", "\"enforce\" or \"passthrough\""]);
}

#[test]
fn r50_the_breaker_is_read_exactly_and_has_its_defaults() {
    let read = policy("[breaker]\nkind = 'fsm'").breaker();
    let numbers = (read.p_throttle, read.p_recover, read.p_sleep, read.cooldown_factor, read.ramp_factor);
    assert_eq!(numbers, (200_000, 100_000, 600_000, 2_000_000, 1_100_000));
    assert_eq!((read.n_throttle, read.n_cacheonly, read.s_recover, read.s_probe_ok), (3, 5, 10, 5));
    assert_eq!((read.sleep_min, read.sleep_max), (Duration::from_secs(2), Duration::from_secs(300)));
    assert_eq!((read.sleep_after, read.ramp_every), (Duration::from_secs(300), Duration::from_secs(300)));
    assert_eq!((read.probe_rate, read.probe_concurrency, read.hysteresis), (PerSecond::whole(3), 1, 2));
    assert_eq!(
        (read.probe_timeout, read.auto_recover, read.cache_only_after),
        (Duration::from_secs(60), Duration::from_nanos(0), 0)
    );
    let window = policy("").window();
    assert_eq!((window.max_age, window.max_count, window.min_samples), (Duration::from_secs(30), 300, 10));
    for (written, billionths) in [
        ("35", 35_000_000_000),
        ("35.0", 35_000_000_000),
        ("0.000000001", 1),
        ("33.333333333", 33_333_333_333),
    ] {
        let rate = policy(&format!("[breaker]\nrate_base = {written}")).breaker().rate_base;
        assert_eq!(rate, PerSecond(billionths), "{written}");
    }
    let largest = policy("[breaker]\nrate_base = '4611686018.427387904'").breaker().rate_base;
    assert_eq!(largest, PerSecond::FASTEST);
    assert_eq!(policy("[breaker]\nrate_base = 'auto'").breaker().rate_base, PerSecond(0));
}

#[test]
fn r75_r76_the_backoff_is_read_and_has_its_defaults() {
    let default = policy("").backoff();
    assert_eq!(
        (default.base, default.cap, default.factor),
        (Duration::from_millis(1500), Duration::from_secs(30), 2_000_000)
    );
    assert_eq!((default.jitter(), default.retries_user, default.retries_background), (Jitter::Full, 2, 5));
    assert_eq!(
        (default.min_sleep, default.retry_after_max),
        (Duration::from_secs(1), Duration::from_secs(86_400))
    );
    let read = policy(
        "[backoff]\nbase = 1\nfactor = 1.5\ncap = '10s'\njitter = 'none'\nmin_sleep = 0\nretry_after_max = '1h'",
    );
    assert_eq!(
        (read.backoff().base, read.backoff().factor, read.backoff().cap),
        (Duration::from_secs(1), 1_500_000, Duration::from_secs(10))
    );
    assert_eq!((read.backoff().jitter(), read.backoff().min_sleep), (Jitter::None, Duration::from_nanos(0)));
    refused("[backoff]\nretry_after_max = 0", &["backoff.retry_after_max", "min_sleep"]);
}

#[test]
fn r82_an_adaptive_section_turns_adaptive_on_and_is_validated() {
    assert!(policy("").adaptive().is_none());
    let default = *policy("[adaptive]").adaptive().unwrap();
    assert_eq!(
        (default.parser, default.threshold, default.history, default.min_samples),
        (None, 500_000, 100, 10)
    );
    assert_eq!((default.short_window(), default.windows().count()), (Duration::from_secs(10), 0));
    for (text, parts) in [
        ("threshold = 0", &["adaptive.threshold = 0", "must be from 0.000001 to 1"][..]),
        ("threshold = 1.1", &["adaptive.threshold = 1.1", "to 1"]),
        ("history = 0", &["adaptive.history = 0", "from 1 to 1000"]),
        ("min_samples = 101", &["adaptive.min_samples = 101", "100"]),
        ("parser = 'kraken'", &["adaptive.parser = \"kraken\"", "\"binance\"", "\"anthropic\""]),
        ("[[adaptive.windows]]", &["adaptive.windows.0.name", "must be given"]),
        ("[[adaptive.windows]]\nname = 'a'", &["adaptive.windows.0.limit", "must be given"]),
        ("[[adaptive.windows]]\nname = 'a'\nlimit = 1", &["adaptive.windows.0.interval", "must be given"]),
        ("[[adaptive.windows]]\nname = 'a'\nlimit = 0\ninterval = 1", &["adaptive.windows.0.limit = 0"]),
        ("[[adaptive.windows]]\nname = 'a'\nlimit = 1\ninterval = 0", &["adaptive.windows.0.interval = 0s"]),
        ("[[adaptive.windows]]\ntype = 'round'", &["adaptive.windows.0.type", "\"fixed\" or \"sliding\""]),
        ("windows = 3", &["adaptive.windows = 3", "[[adaptive.windows]]"]),
    ] {
        refused(&format!("[adaptive]\n{text}"), parts);
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
        ("period = 0", &["rules.0.period = 0s", "from 1ns to 53375d"]),
        ("period = -1", &["rules.0.period = -1", "duration"]),
        ("period = nan", &["rules.0.period = NaN", "duration"]),
        ("period = inf", &["rules.0.period = inf", "duration"]),
        ("period = '10 parsecs'", &["rules.0.period = \"10 parsecs\"", "250ms"]),
        ("period = 1e-10", &["rules.0.period", "finer than a nanosecond"]),
        ("period = '999999d'", &["too large"]),
        ("period = '99999d'", &["rules.0.period = 99999d", "from 1ns to 53375d"]),
        ("burst = 0", &["rules.0.burst = 0", "from 1 to"]),
        ("reserve = 11", &["rules.0.reserve = 11", "from 0 to 10"]),
        ("tau = '99ms'\nlimit = 10", &["rules.0.tau = 99ms", "from 100ms"]),
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
    for (line, message) in [
        ("p_throttle = 1.5", "breaker.p_throttle = 1.5: must be from 0 to 1"),
        ("p_recover = 0", "breaker.p_recover = 0: must be from 0.000001 to 1"),
        ("cooldown_factor = 0.5", "breaker.cooldown_factor = 0.5: must be from 1 to 1000"),
        ("ramp_factor = 1", "breaker.ramp_factor = 1: must be from 1.001 to 1000"),
        (
            "probe_rate = 0",
            "breaker.probe_rate = 0: must be from 0.000000001 to 4611686018.427387904 a second",
        ),
        ("sleep_min = 0", "breaker.sleep_min = 0s: must be from 1ns to 53375d"),
        ("n_throttle = 0", "breaker.n_throttle = 0: must be from 1 to 1000000"),
        ("n_throttle = 99999999999", "breaker.n_throttle = 99999999999: must be from 1 to 1000000"),
        ("sleep_min = '10m'", "breaker.sleep_max: must not be below breaker.sleep_min"),
    ] {
        assert_eq!(refused(&format!("[breaker]\n{line}"), &[]).to_string(), message);
    }
    refused("concurrency = 0", &["concurrency = 0", "from 1 to 4096"]);
    refused("concurrency_background = 5000", &["concurrency_background = 5000"]);
    refused("rules = 3", &["rules = 3", "[[rules]]"]);
    refused("rules = [3]", &["rules.0 = 3", "[[rules]]"]);
    refused("concurrency = 1\nconcurrency = 2", &["TOML", "line 2"]);
}

#[test]
fn r137_too_many_rules_or_units_are_refused() {
    let rules = |count: usize| "[[rules]]\nalgorithm = 'gcra'\n".repeat(count);
    assert_eq!(policy(&rules(8)).rules().len(), 8);
    refused(&rules(9), &["rules: 9 given, at most 8"]);
    let units: String = (0..4).map(|i| format!("[[rules]]\nalgorithm = 'gcra'\nunit = 'u{i}'\n")).collect();
    refused(&units, &["rules.3.unit", "at most 4"]);
}

#[test]
fn a_file_error_converts_into_the_librarys_error() {
    let error: Error = refused("concurrency = 0", &[]).into();
    let Error::Config(error) = error else { panic!("{error}") };
    let error = error.downcast_ref().unwrap();
    assert!(matches!(error, ConfigError::Policy(PolicyError::OutOfRange { .. })));
}
