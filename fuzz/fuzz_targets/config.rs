//! Any text is either an error or a policy that can be written and read back. The same holds for any single
//! setting.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit::config::{self, Config};
use shmlimit::environment::Patch;

fuzz_target!(|text: &str| {
    if let Ok(config) = Config::from_toml(text) {
        let written = config::to_toml(config.policy());
        assert_eq!(Config::from_toml(&written).unwrap().policy(), config.policy(), "{written}");
    }
    // Uses the same bytes as lines of key and value.
    let mut policy = shmlimit::presets::policy("tmdb").unwrap().unwrap();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        policy = config::set(&policy, key.trim(), value).unwrap_or(policy);
        let patch = Patch::from_variables([(format!("SHMLIMIT_{key}"), value)]);
        let _ = patch.map(|patch| patch.apply(&policy));
    }
    assert_eq!(*Config::from_toml(&config::to_toml(&policy)).unwrap().policy(), policy);
});
