//! A limiter file with arbitrary content is a policy or an error that names the key, and never causes a panic.

use proptest::prelude::*;
use shmlimit::ConfigError;
use shmlimit::config::{self, Config, Kind, keys};

/// A file in which one key has this value.
fn file(key: &str, value: &str) -> String {
    match key.rsplit_once('.') {
        None => format!("{key} = {value}"),
        Some((table, name)) => match table.strip_suffix(".N") {
            Some("adaptive.windows") => {
                let needed = ["name = 'w'", "limit = 5", "interval = 9"].into_iter();
                let others: Vec<_> = needed.filter(|line| !line.starts_with(name)).collect();
                format!("[[adaptive.windows]]\n{}\n{name} = {value}", others.join("\n"))
            }
            Some(list) => format!("[[{list}]]\n{name} = {value}"),
            None => format!("[{table}]\n{name} = {value}"),
        },
    }
}

/// Values that no key of this kind takes.
fn wrong(kind: Kind) -> Vec<&'static str> {
    let never = ["[]", "{}", "1979-05-27", "''", "'\\u0000'", "'x y'"];
    let numbers = ["-1", "-0.5", "nan", "inf", "-inf", "true"];
    let more: &[&str] = match kind {
        Kind::Name => &["1", "0.5", "true", "'a\"b'", "'0123456789012345678901234567890123456789'"],
        Kind::Choice(_) => &["1", "0.5", "true", "'wild'", "'Fsm'"],
        Kind::Truth => &["0", "1", "0.5", "'true'"],
        Kind::Whole { .. } | Kind::Permits { .. } => &["0.5", "'1'", "1.0", "1e3", "99999999999999999999"],
        Kind::Part { .. } => &["2", "1.000001", "'0.5'", "0.0000001", "1e300"],
        Kind::Factor { .. } => &["0", "0.999999", "1000.000001", "'2'", "1.0000001", "1e300"],
        Kind::Rate { .. } => &["0", "'fast'", "1.0000000001", "4611686019", "1e300"],
        Kind::Length { .. } => &["'5'x", "'5 parsecs'", "'-5s'", "1e-10", "'53376d'", "1e300"],
        _ => &[],
    };
    let numbers = if matches!(kind, Kind::Truth) { &numbers[..5] } else { &numbers[..] };
    never.iter().chain(numbers).chain(more).copied().collect()
}

#[test]
fn every_key_refuses_wrong_values_and_names_its_path() {
    for info in keys() {
        let path = info.key.replace(".N.", ".0.");
        for value in wrong(info.kind) {
            let error = Config::from_toml(&file(info.key, value)).expect_err(&format!("{path} = {value}"));
            let named = error.to_string().starts_with(&path);
            // A text that is not TOML has a line number instead.
            assert!(named || matches!(error, ConfigError::Syntax(_)), "{path} = {value}: {error}");
        }
    }
}

#[test]
fn every_section_refuses_values_that_are_not_tables() {
    for section in ["window", "breaker", "backoff", "priority", "adaptive", "rules", "adaptive.windows"] {
        for value in ["1", "'x'", "true", "[1]", "nan"] {
            let error = Config::from_toml(&format!("{section} = {value}")).unwrap_err().to_string();
            assert!(error.starts_with(section) && error.contains(&format!("[{section}]")), "{error}");
        }
    }
    let error = Config::from_toml("[rules]\nlimit = 3").unwrap_err().to_string();
    assert!(error.starts_with("rules = a table") && error.contains("[[rules]]"), "{error}");
}

fn key() -> impl Strategy<Value = String> {
    let known: Vec<String> = keys().iter().map(|info| info.key.replace(".N.", ".0.")).collect();
    prop_oneof![4 => prop::sample::select(known), 1 => "[a-z0-9._]{0,12}", 1 => "\\PC{0,12}"]
}

fn value() -> impl Strategy<Value = String> {
    let odd =
        ["nan", "-inf", "''", "[]", "{}", "true", "\"\\u0000\"", "1e400", "0x7fffffffffffffff", "unlimited"];
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "[0-9]{0,25}(\\.[0-9]{0,25})?(ns|ms|s|m|h|d|w)?",
        "'[0-9]{0,25}(\\.[0-9]{0,25})?(ns|ms|s|m|h|d|w)?'",
        prop::sample::select(odd.map(str::to_owned).to_vec()),
        "\\PC{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn arbitrary_fragments_are_a_policy_that_can_be_written_or_an_error(
        fragments in prop::collection::vec((key(), value()), 0..6),
        preset in prop::option::of(prop::sample::select(shmlimit::presets::NAMES.to_vec())),
    ) {
        let mut text = preset.map_or_else(String::new, |name| format!("preset = '{name}'\n"));
        for (key, value) in &fragments {
            text.push_str(&file(&key.replace(".0.", ".N."), value));
            text.push('\n');
        }
        if let Ok(config) = Config::from_toml(&text) {
            let written = config::to_toml(config.policy());
            let read = Config::from_toml(&written);
            prop_assert_eq!(read.as_ref().map(|config| config.policy()), Ok(config.policy()));
        }
    }

    #[test]
    fn an_arbitrary_setting_is_a_policy_or_an_error(
        preset in prop::sample::select(shmlimit::presets::NAMES.to_vec()),
        key in key(),
        value in value(),
    ) {
        let policy = shmlimit::presets::policy(preset).unwrap().unwrap();
        match config::set(&policy, &key, &value) {
            Ok(set) => prop_assert_eq!(*Config::from_toml(&config::to_toml(&set)).unwrap().policy(), set),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let variable = format!("SHMLIMIT_{}", key.trim_start_matches("breaker.").to_uppercase());
        let _ = shmlimit::environment::Patch::from_variables([(variable, value)]).map(|patch| patch.apply(&policy));
    }
}
