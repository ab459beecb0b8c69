//! Single settings of a limiter in use, and the table of keys behind them.

use shmlimit::ConfigError;
use shmlimit::config::{self, Config, ConfigSource, Kind, keys};
use shmlimit::{Algorithm, Policy, describe, presets};
use std::time::Duration;

fn preset(name: &str) -> Policy {
    presets::policy(name).unwrap().unwrap()
}

/// A policy with at least one of everything: rules, a breaker, windows.
fn full() -> Policy {
    *Config::from_toml(
        "[[rules]]\nalgorithm = 'gcra'\nlimit = 10\n[[rules]]\nalgorithm = 'sliding_log'\n[breaker]\nkind = 'fsm'\n\
         [adaptive]\nparser = 'ietf'\n[[adaptive.windows]]\nname = 'a'\nlimit = 5\ninterval = 9",
    )
    .unwrap()
    .policy()
}

fn value(policy: &Policy, key: &str) -> String {
    let settings = describe::settings(policy);
    settings.into_iter().find(|(known, _)| known == key).map_or_else(String::new, |(_, value)| value)
}

/// A valid value of this kind that differs from the value in `full`.
fn another(key: &str, kind: Kind) -> &'static str {
    match (key, kind) {
        ("rules.N.reserve", _) => "7",
        ("adaptive.history", _) => "77",
        // Not above `breaker.sleep_max`.
        ("breaker.sleep_min", _) => "7s",
        (_, Kind::Choice(words)) => words[1],
        (_, Kind::Truth) => "false",
        (_, Kind::Whole { .. } | Kind::Permits { .. }) => "7",
        (_, Kind::Part { .. }) => "0.123456",
        (_, Kind::Factor { .. }) => "7.000001",
        (_, Kind::Rate { .. }) => "7.000000001",
        (_, Kind::Length { .. }) => "7m",
        _ => "seven",
    }
}

#[test]
fn r110_every_changeable_key_changes_what_it_names_and_nothing_else() {
    let before = full();
    for info in keys().iter().filter(|info| info.changeable) {
        let key = info.key.replace(".N.", ".0.");
        let wanted = another(info.key, info.kind);
        // The second rule has no burst to set, and its limit has no reserve above it.
        let after = config::set(&before, &key, wanted).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(value(&after, &key), wanted, "{key}");
        let changed: Vec<String> =
            describe::differences(&before, &after).lines().map(str::to_owned).collect();
        let others = changed.iter().filter(|line| !line.trim_start().starts_with(&format!("{key}:")));
        // Burst and tau are two ways to state one value. A burst that was not chosen follows its limit.
        let of_burst = ["rules.0.tau", "rules.0.limit"].contains(&key.as_str());
        let others: Vec<_> = others.filter(|line| !of_burst || !line.contains("rules.0.burst")).collect();
        assert!(others.is_empty(), "{key}: {others:?}");
        assert_eq!(
            config::set(&after, &key, &value(&before, &key)).ok().map(|back| back == before),
            back(&key)
        );
    }
}

/// Whether setting the old value restores the policy; `None` if there was no old value.
fn back(key: &str) -> Option<bool> {
    if key == "rules.0.tau" { None } else { Some(true) }
}

#[test]
fn r144_a_key_that_cannot_be_changed_in_use_states_the_remedy() {
    for info in keys().iter().filter(|info| !info.changeable) {
        let key = info.key.replace(".N.", ".0.");
        let error = config::set(&full(), &key, another(info.key, info.kind)).unwrap_err();
        assert!(
            matches!(&error, ConfigError::NotChangeable { key: named } if *named == key),
            "{key}: {error}"
        );
        assert!(error.to_string().contains("init") && error.to_string().contains("--replace"), "{error}");
    }
    for key in ["rules", "breaker", "adaptive.windows", "cluster"] {
        assert!(matches!(config::set(&full(), key, "1"), Err(ConfigError::NotChangeable { .. })), "{key}");
    }
}

#[test]
fn r110_values_may_be_written_with_or_without_quotes() {
    let tmdb = preset("tmdb");
    for (key, written, read) in [
        ("concurrency", "9", "9"),
        ("concurrency", "unlimited", "unlimited"),
        ("concurrency", "\"unlimited\"", "unlimited"),
        ("concurrency_background", " 2 ", "2"),
        ("fairness", "fifo", "fifo"),
        ("fairness", "'fifo'", "fifo"),
        ("breaker.auto_recover", "15m", "15m"),
        ("breaker.auto_recover", "\"15m\"", "15m"),
        ("breaker.auto_recover", "900", "15m"),
        ("breaker.sleep_min", "1.5", "1500ms"),
        ("breaker.p_throttle", "0.3", "0.3"),
        ("breaker.rate_base", "35", "35"),
        ("breaker.rate_base", "35.5", "35.5"),
        ("breaker.rate_base", "auto", "auto"),
        ("count_network_errors", "false", "false"),
        ("rules.0.limit", "1_000", "1000"),
        ("backoff.jitter", "none", "none"),
    ] {
        let set = config::set(&tmdb, key, written).unwrap_or_else(|error| panic!("{key} {written}: {error}"));
        assert_eq!(value(&set, key), read, "{key} {written}");
    }
}

#[test]
fn a_wrong_value_or_key_is_refused_with_its_name() {
    let policy = full();
    for (key, written, parts) in [
        ("breaker.p_throttle", "1.5", &["breaker.p_throttle = 1.5: must be from 0 to 1"][..]),
        ("breaker.p_throttle", "much", &["breaker.p_throttle = much", "from 0 to 1"]),
        ("breaker.p_throttle", "-0.1", &["from 0 to 1"]),
        ("breaker.p_throttle", "nan", &["from 0 to 1"]),
        ("breaker.p_recover", "0", &["breaker.p_recover = 0: must be from 0.000001 to 1"]),
        ("breaker.p_throttle", "", &["from 0 to 1"]),
        ("breaker.rate_base", "0", &["breaker.rate_base = 0", "above 0"]),
        ("breaker.rate_base", "0.0", &["above 0"]),
        ("breaker.rate_base", "99999999999999999999", &["above 0"]),
        ("concurrency", "0", &["concurrency = 0", "from 1 to 4096"]),
        ("concurrency", "4.0", &["concurrency = 4.0", "whole number"]),
        ("concurrency", "99999999999999999999999", &["from 1 to 4096"]),
        ("concurrency", "4\nfairness = 'fifo'", &["concurrency", "whole number"]),
        ("concurrency", "[4]", &["concurrency = a list"]),
        ("breaker.sleep_min", "10m", &["breaker.sleep_max"]),
        ("breaker.sleep_min", "soon", &["breaker.sleep_min = soon", "duration"]),
        ("rules.0.reserve", "11", &["rules.0.reserve = 11", "from 0 to 10"]),
        ("rules.1.burst", "3", &["rules.1.burst", "which has no burst"]),
        ("rules.1.tau", "3s", &["rules.1.tau", "use burst"]),
        ("rules.2.limit", "3", &["rules.2.limit", "2 rules, 0 to 1", "--replace"]),
        ("rules.99999999999999999999999.limit", "3", &["unknown key"]),
        ("adaptive.windows.1.limit", "3", &["adaptive.windows.1.limit", "one window, number 0"]),
        ("adaptive.min_samples", "101", &["adaptive.min_samples"]),
        ("breaker.p_throtle", "0.3", &["breaker.p_throtle", "did you mean \"breaker.p_throttle\""]),
        ("rules.1.limt", "3", &["did you mean \"rules.1.limit\""]),
        ("rules.N.limit", "3", &["rules.N.limit"]),
        ("", "3", &["unknown key"]),
        ("....", "3", &["unknown key"]),
    ] {
        let error = config::set(&policy, key, written).expect_err(key).to_string();
        for part in parts {
            assert!(error.contains(part), "{key} = {written}: {part:?} is not in: {error}");
        }
    }
    let plain = Config::empty().unwrap();
    let error = config::set(plain.policy(), "adaptive.threshold", "0.5").unwrap_err().to_string();
    assert!(error.contains("no [adaptive]"), "{error}");
    let error = config::set(plain.policy(), "rules.0.limit", "5").unwrap_err().to_string();
    assert!(error.contains("no rules"), "{error}");
}

/// One rule, made from the short forms.
fn chosen(settings: &[(&str, &str)]) -> Policy {
    let choice =
        settings.iter().fold(ConfigSource::default(), |choice, (key, value)| choice.setting(*key, *value));
    choice.policy("own").unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

fn numbers(policy: &Policy) -> (Algorithm, u64, u64) {
    let rule = policy.rules()[0];
    (rule.algorithm, rule.limit, rule.burst)
}

#[test]
fn r147_a_rate_alone_is_the_maximum_of_any_period() {
    use Algorithm::{FixedWindow, Gcra, SlidingLog, TokenBucket};
    for (settings, numbers_wanted, most) in [
        (&[("rate", "20/s")][..], (SlidingLog, 20, 20), 20),
        (&[("rate", "1000/day")], (SlidingLog, 1000, 1000), 1000),
        (&[("rate", "100000/h")], (SlidingLog, 100_000, 100_000), 100_000),
        (&[("rate", "100001/h")], (TokenBucket, 99_001, 1000), 100_001),
        (&[("rate", "1M/day")], (TokenBucket, 990_000, 10_000), 1_000_000),
        (&[("rate", "1000/day"), ("burst", "20")], (TokenBucket, 1000, 20), 1020),
        (&[("rules.0.burst", "20"), ("rate", "1000/day")], (TokenBucket, 1000, 20), 1020),
        (&[("rate", "20/s"), ("breaker.kind", "fsm")], (TokenBucket, 20, 20), 40),
        (&[("breaker.kind", "fsm"), ("rate", "20/s")], (TokenBucket, 20, 20), 40),
        (&[("rate", "20/s"), ("breaker.kind", "consecutive")], (SlidingLog, 20, 20), 20),
        (&[("rate", "20/s"), ("algorithm", "gcra")], (Gcra, 20, 20), 40),
        (&[("rate", "20/s"), ("rules.0.algorithm", "fixed_window")], (FixedWindow, 20, 20), 40),
    ] {
        let policy = chosen(settings);
        assert_eq!(numbers(&policy), numbers_wanted, "{settings:?}");
        assert_eq!(describe::most_per_period(&policy, 0), Some(most), "{settings:?}");
    }
    // A rule without an algorithm in a file keeps its default algorithm (R9). A preset keeps its provider's
    // algorithm.
    let file = Config::from_toml("[[rules]]\nlimit = 20\nperiod = '1s'").unwrap();
    assert_eq!(file.policy().rules()[0].algorithm, Algorithm::SlidingCounter);
    let faster = |name: &str, rate: &str| ConfigSource::default().setting("rate", rate).policy(name).unwrap();
    assert_eq!(numbers(&faster("tmdb", "20/s")), (TokenBucket, 20, 20));
    assert_eq!(numbers(&faster("omdb-free", "500/day")), (FixedWindow, 500, 500));
    assert_eq!(numbers(&faster("musicbrainz", "2/s")), (SlidingLog, 2, 2));
}

#[test]
fn r110_a_burst_that_was_not_chosen_follows_the_limit_and_a_chosen_one_stays() {
    let set = |policy: &Policy, limit: &str| numbers(&config::set(policy, "rules.0.limit", limit).unwrap());
    let bucket = |more: &str| {
        *Config::from_toml(&format!("[[rules]]\nalgorithm = 'token_bucket'\n{more}")).unwrap().policy()
    };
    let of = |limit, burst| (Algorithm::TokenBucket, limit, burst);
    assert_eq!(set(&preset("tmdb"), "20"), of(20, 20), "it was equal to the limit");
    assert_eq!(set(&bucket("limit = 1000"), "100"), of(100, 100), "it was never given");
    assert_eq!(set(&bucket(""), "100"), of(100, 100), "not even the limit was given");
    assert_eq!(set(&bucket("limit = 1000\nburst = 20"), "100"), of(100, 20), "it was chosen");
    assert_eq!(
        set(&chosen(&[("rate", "1M/day")]), "99000"),
        of(99_000, 1000),
        "it is one of a hundred parts"
    );
    // All of this still holds after the policy was stored.
    for policy in [bucket("limit = 1000"), bucket(""), chosen(&[("rate", "1M/day")])] {
        let stored = Policy::decode(&policy.encode()).unwrap();
        assert_eq!(stored.rules()[0].burst_from, policy.rules()[0].burst_from);
        assert_eq!(set(&stored, "198"), set(&policy, "198"));
        assert_ne!(set(&stored, "198").2, policy.rules()[0].burst);
    }
    let again = config::set(&config::set(&preset("tmdb"), "rate", "100/m").unwrap(), "rate", "35/s").unwrap();
    assert_eq!(again, preset("tmdb"));
    let more = config::set(&chosen(&[("rate", "1M/day")]), "rate", "2M/day").unwrap();
    assert_eq!(
        (numbers(&more), describe::most_per_period(&more, 0)),
        (of(1_980_000, 20_000), Some(2_000_000))
    );
}

#[test]
fn r110_rules_are_addressed_by_name_and_a_rate_by_its_unit() {
    let tvdb = preset("tvdb");
    let changed = config::set(&tvdb, "rules.window.limit", "200").unwrap();
    assert_eq!(changed, config::set(&tvdb, "rules.1.limit", "200").unwrap());
    assert_eq!(changed.rules()[1].limit, 200);
    let binance = preset("binance");
    assert_eq!(
        config::set(&binance, "adaptive.windows.REQUEST_WEIGHT:1M.limit", "7").unwrap(),
        config::set(&binance, "adaptive.windows.0.limit", "7").unwrap()
    );
    let llm = "[[rules]]\nname = 'rpm'\n[[rules]]\nname = 'tpm'\nunit = 'tokens'\nlimit = 900";
    let llm = *Config::from_toml(llm).unwrap().policy();
    let faster = config::set(&llm, "rate", "50/m").unwrap();
    assert_eq!((faster.rules()[0].limit, faster.rules()[1].limit), (50, 900));
    // A rate of the breaker itself would take precedence.
    let own = config::set(&preset("tmdb"), "breaker.rate_base", "10").unwrap();
    assert_eq!(value(&config::set(&own, "rate", "20/s").unwrap(), "breaker.rate_base"), "auto");
    let twins = "[[rules]]\nname = 'a'\n[[rules]]\nname = 'a'\nperiod = '1h'";
    let twins = *Config::from_toml(twins).unwrap().policy();
    for (policy, key, written, parts) in [
        (&tvdb, "rate", "20/s", &["2 rules count requests", "rules.rps.limit, rules.window.limit"][..]),
        (&twins, "rate", "20/s", &["rules.0.limit, rules.1.limit"]),
        (&twins, "rules.a.limit", "20", &["2 have that name", "rules.0.limit, rules.1.limit"]),
        (&llm, "rate", "fast", &["rate = fast", "35/s"]),
        (&llm, "rules.rpn.limit", "5", &["did you mean \"rules.rpm.limit\""]),
        (&llm, "rules.requests.limit", "5", &["there are: rpm, tpm"]),
        (&llm, "rules.rpm.limt", "5", &["did you mean \"rules.rpm.limit\""]),
        (&llm, "burst", "5", &["rule rpm is a sliding_counter, which has no burst"]),
        (&llm, "rat", "5/s", &["did you mean \"rate\""]),
        (&llm, "rules.rpm.algorithm", "gcra", &["rules.rpm.algorithm: cannot be changed"]),
        (&chosen(&[("rate", "20/s")]), "rate", "1M/s", &["rate = 1000000/s", "at most 100000"]),
    ] {
        let error = config::set(policy, key, written).expect_err(key).to_string();
        for part in parts {
            assert!(error.contains(part), "{key} = {written}: {part:?} is not in: {error}");
        }
    }
}

#[test]
fn r147_a_log_has_room_for_a_limit_four_times_as_high() {
    let room = |rate: &str| chosen(&[("rate", rate)]).rules()[0].log_room;
    assert_eq!(["20/s", "1024/s", "5000/h", "60000/h"].map(room), [4096, 4096, 20_000, 100_000]);
    let raised = config::set(&chosen(&[("rate", "20/s")]), "rate", "4096/s").unwrap();
    assert_eq!((raised.rules()[0].limit, raised.rules()[0].log_room), (4096, 4096));
}

#[test]
fn burst_alone_is_that_of_the_one_rule_with_a_burst() {
    let bucket = set_burst(&chosen(&[("rate", "5/s"), ("burst", "9")]));
    assert_eq!(bucket.unwrap().rules()[0].burst, 30);
    // The second rule of `full` has no burst, so `burst` names the first one.
    assert_eq!(set_burst(&full()).unwrap().rules()[0].burst, 30);
    let rule = "[[rules]]\nalgorithm = 'token_bucket'\nlimit = 5\n";
    let two = format!("{rule}{rule}name = 'other'\n");
    let error = set_burst(Config::from_toml(&two).unwrap().policy()).unwrap_err();
    assert!(error.to_string().contains("did you mean"), "{error}");
}

fn set_burst(policy: &Policy) -> Result<Policy, ConfigError> {
    config::set(policy, "burst", "30")
}

#[test]
fn burst_and_tau_replace_each_other() {
    let tau = config::set(&full(), "rules.0.tau", "500ms").unwrap();
    assert_eq!((tau.rules()[0].tau, tau.rules()[0].burst), (Some(Duration::from_millis(500)), 5));
    let burst = config::set(&tau, "rules.0.burst", "3").unwrap();
    assert_eq!((burst.rules()[0].tau, burst.rules()[0].burst), (None, 3));
}

#[test]
fn the_defaults_in_the_key_table_match_the_program() {
    let adaptive = *Config::from_toml("[adaptive]").unwrap().policy();
    for info in keys().iter().filter(|info| !info.key.contains(".N.")) {
        let read = value(&adaptive, info.key);
        match info.key {
            "preset" | "adaptive.parser" => assert_eq!((read.as_str(), info.default), ("", "none")),
            "epoch_ns" => {}
            key => assert_eq!(read, info.default, "{key}"),
        }
    }
}

#[test]
fn the_ranges_in_the_key_table_match_the_program() {
    let try_it = |key: &str, value: u64| config::set(&full(), key, &value.to_string()).is_ok();
    for info in keys().iter().filter(|info| info.changeable && !info.key.contains(".N.")) {
        let (least, most) = match info.kind {
            Kind::Whole { least, most } => (least, most),
            Kind::Permits { most } => (1, most),
            _ => continue,
        };
        // These two are bounded by another key as well.
        let most = if info.key == "adaptive.min_samples" { 100 } else { most };
        let least = if info.key == "adaptive.history" { 10 } else { least };
        assert!(try_it(info.key, least) && try_it(info.key, most), "{}", info.key);
        assert!(!try_it(info.key, most + 1) && (least == 0 || !try_it(info.key, least - 1)), "{}", info.key);
    }
}

#[test]
fn the_documentation_pages_match_the_generated_ones() {
    for (page, generated) in [
        (include_str!("../../docs/configuration.md"), config::reference()),
        (include_str!("../../docs/presets.md"), presets::reference()),
    ] {
        let part =
            page.split("<!-- generated -->\n\n").nth(1).and_then(|rest| rest.split("\n<!-- end -->").next());
        assert!(part == Some(&generated), "cargo run --example keys");
    }
}
