//! Hot patches from environment variables, tested without setting any variable.

use shmlimit::environment::{EnvError, Patch};
use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft, describe, presets};
use shmlimit_kernel::policy::{Breaker, BreakerKind, PerSecond};
use std::time::Duration;

/// Every variable without its prefix, a value for it, the key that it sets, and the resulting value of that key.
const ALL: [(&str, &str, &str, &str); 11] = [
    ("RATE_BASE", "20.5", "breaker.rate_base", "20.5"),
    ("BUCKET_CAP", "20", "rules.0.burst", "20"),
    ("CONCURRENCY", "2", "concurrency", "2"),
    ("P_THROTTLE", ".25", "breaker.p_throttle", "0.25"),
    ("P_RECOVER", "0.05", "breaker.p_recover", "0.05"),
    ("N_THROTTLE", "4", "breaker.n_throttle", "4"),
    ("N_CACHEONLY", "6", "breaker.n_cacheonly", "6"),
    ("SLEEP_MIN", "3.0", "breaker.sleep_min", "3s"),
    ("SLEEP_MAX", "10m", "breaker.sleep_max", "10m"),
    ("PROBE_SUCCESS", "7", "breaker.s_probe_ok", "7"),
    ("COOLDOWN_FACTOR", "1.5", "breaker.cooldown_factor", "1.5"),
];

fn tmdb() -> Policy {
    presets::policy("tmdb").unwrap().unwrap()
}

fn patch(variables: &[(&str, &str)]) -> Patch {
    Patch::from_variables(variables.iter().copied()).unwrap_or_else(|error| panic!("{variables:?}: {error}"))
}

fn value(policy: &Policy, key: &str) -> String {
    describe::settings(policy).into_iter().find(|(known, _)| known == key).unwrap().1
}

#[test]
fn r109_every_variable_sets_its_key_and_no_other() {
    for (name, written, key, read) in ALL {
        for prefix in ["SHMLIMIT_", "ANIVAULT_"] {
            let variable = format!("{prefix}{name}");
            let patched = patch(&[(&variable, written)]).apply(&tmdb()).unwrap();
            assert_eq!(value(&patched, key), read, "{variable}");
            assert_eq!(describe::differences(&tmdb(), &patched).lines().count(), 1, "{variable}");
        }
    }
}

#[test]
fn r109_all_variables_apply_together_and_their_defaults_change_only_the_rate_source() {
    let all: Vec<(String, &str)> = ALL.iter().map(|it| (format!("SHMLIMIT_{}", it.0), it.1)).collect();
    let patched = Patch::from_variables(all).unwrap().apply(&tmdb()).unwrap();
    for (_, _, key, read) in ALL {
        assert_eq!(value(&patched, key), read);
    }
    // The defaults of R109 are those of R50, so they only change where the rate comes from.
    let defaults = [
        ("RATE_BASE", "35.0"),
        ("BUCKET_CAP", "35"),
        ("CONCURRENCY", "4"),
        ("P_THROTTLE", ".20"),
        ("P_RECOVER", ".10"),
        ("N_THROTTLE", "3"),
        ("N_CACHEONLY", "5"),
        ("SLEEP_MIN", "2.0"),
        ("SLEEP_MAX", "300.0"),
        ("PROBE_SUCCESS", "5"),
        ("COOLDOWN_FACTOR", "2.0"),
    ];
    let defaults = defaults.map(|(name, value)| (format!("ANIVAULT_{name}"), value));
    let patched = Patch::from_variables(defaults).unwrap().apply(&tmdb()).unwrap();
    assert_eq!(patched.breaker().rate_base, PerSecond::whole(35));
    let differences = describe::differences(&tmdb(), &patched);
    assert_eq!(differences, "  breaker.rate_base: now auto, given 35");
}

#[test]
fn r109_the_products_own_prefix_wins_in_any_order() {
    for both in [
        [("SHMLIMIT_CONCURRENCY", "2"), ("ANIVAULT_CONCURRENCY", "3")],
        [("ANIVAULT_CONCURRENCY", "3"), ("SHMLIMIT_CONCURRENCY", "2")],
    ] {
        let patch = patch(&both);
        assert_eq!(patch.apply(&tmdb()).unwrap().concurrency(), Some(2));
        assert_eq!(patch.variables().collect::<Vec<_>>(), [("SHMLIMIT_CONCURRENCY", "2")]);
    }
}

#[test]
fn r109_other_variables_are_ignored() {
    let others = [
        ("SHMLIMIT_DIR", "/x"),
        ("SHMLIMIT_GROUP", "g"),
        ("CONCURRENCY", "0"),
        ("SHMLIMIT_CONCURRENCY_", "0"),
        ("shmlimit_concurrency", "0"),
        ("SHMLIMIT_", "0"),
        ("", ""),
    ];
    assert!(patch(&others).is_empty());
    assert_eq!(patch(&others).apply(&tmdb()), Ok(tmdb()));
}

#[test]
fn r109_a_bad_value_is_an_error_that_names_the_variable_and_the_range() {
    for (variable, value, range) in [
        ("SHMLIMIT_RATE_BASE", "fast", "above 0"),
        ("SHMLIMIT_RATE_BASE", "0", "above 0"),
        ("SHMLIMIT_RATE_BASE", "-35", "above 0"),
        ("SHMLIMIT_RATE_BASE", "nan", "above 0"),
        ("SHMLIMIT_RATE_BASE", "1e3", "above 0"),
        ("SHMLIMIT_RATE_BASE", "9999999999", "to 4611686018.427387904 a second"),
        ("SHMLIMIT_BUCKET_CAP", "0", "from 1 to 281474976710656"),
        ("SHMLIMIT_BUCKET_CAP", "35.0", "whole number"),
        ("SHMLIMIT_CONCURRENCY", "0", "from 1 to 4096"),
        ("SHMLIMIT_CONCURRENCY", "4097", "from 1 to 4096"),
        ("SHMLIMIT_CONCURRENCY", "", "whole number"),
        ("ANIVAULT_P_THROTTLE", "1.5", "from 0 to 1"),
        ("ANIVAULT_P_THROTTLE", "20%", "from 0 to 1"),
        ("SHMLIMIT_P_RECOVER", "-0.1", "above 0, at most 1"),
        ("SHMLIMIT_P_RECOVER", "0", "must be from 0.000001 to 1"),
        ("SHMLIMIT_N_THROTTLE", "0", "from 1 to 1000000"),
        ("SHMLIMIT_N_CACHEONLY", "99999999999", "from 1 to 1000000"),
        ("SHMLIMIT_SLEEP_MIN", "soon", "duration"),
        ("SHMLIMIT_SLEEP_MIN", "0", "from 1ns to 53375d"),
        ("SHMLIMIT_SLEEP_MAX", "inf", "duration"),
        ("SHMLIMIT_PROBE_SUCCESS", "five", "whole number"),
        ("SHMLIMIT_COOLDOWN_FACTOR", "0.5", "from 1 to 1000"),
    ] {
        // One bad value rejects the whole patch. A patch is never applied in part.
        let error =
            Patch::from_variables([("SHMLIMIT_N_THROTTLE", "4"), (variable, value)].into_iter().rev());
        let error = error.expect_err(variable);
        assert!(matches!(&error, EnvError::BadValue { variable: named, .. } if named == variable), "{error}");
        let message = error.to_string();
        assert!(message.contains(&format!("{variable} = {value:?}")) && message.contains(range), "{message}");
    }
}

#[test]
fn r109_values_are_validated_together_and_against_the_limiter() {
    // Each value alone contradicts the default of the other; both together are valid.
    let both = patch(&[("SHMLIMIT_SLEEP_MIN", "400"), ("SHMLIMIT_SLEEP_MAX", "500")]);
    let breaker = both.apply(&tmdb()).unwrap().breaker();
    assert_eq!((breaker.sleep_min, breaker.sleep_max), (Duration::from_secs(400), Duration::from_secs(500)));
    let error = patch(&[("SHMLIMIT_SLEEP_MIN", "400")]).apply(&tmdb()).unwrap_err();
    assert!(matches!(error, EnvError::DoNotFit { .. }));
    let message = error.to_string();
    assert!(message.contains("SHMLIMIT_SLEEP_MIN") && message.contains("breaker.sleep_max"), "{message}");
    // A capacity below the reserve.
    let rule = RuleDraft {
        burst: Some(50),
        reserve: 40,
        ..RuleDraft::new(Algorithm::TokenBucket, 10, Duration::from_nanos(1))
    };
    let reserved = fsm(&[rule]);
    let message = patch(&[("SHMLIMIT_BUCKET_CAP", "30")]).apply(&reserved).unwrap_err().to_string();
    assert!(message.contains("SHMLIMIT_BUCKET_CAP") && message.contains("rules.0.reserve = 40"), "{message}");
    // A capacity that takes longer to fill, at the rule's rate, than the clock can count.
    let slow = fsm(&[RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(86_400))]);
    let message = patch(&[("SHMLIMIT_BUCKET_CAP", "99999999")]).apply(&slow).unwrap_err().to_string();
    assert!(message.contains("SHMLIMIT_BUCKET_CAP = \"99999999\": must be from 1 to 53375"), "{message}");
}

fn fsm(rules: &[RuleDraft<'_>]) -> Policy {
    let breaker = Breaker::of(BreakerKind::Fsm);
    Policy::new(&PolicyDraft { rules, breaker, ..PolicyDraft::default() }).unwrap()
}

#[test]
fn r109_the_patch_applies_only_to_limiters_with_the_five_state_breaker() {
    let patch = patch(&[("SHMLIMIT_CONCURRENCY", "2"), ("SHMLIMIT_BUCKET_CAP", "2")]);
    for preset in presets::all() {
        let policy = preset.policy().unwrap();
        let concerned = preset.name == "tmdb";
        assert_eq!(patch.concerns(&policy), concerned, "{}", preset.name);
        assert_eq!(patch.apply(&policy).unwrap() != policy, concerned, "{}", preset.name);
    }
    // A rule without a capacity stays unchanged; the rest of the patch applies.
    let window = fsm(&[RuleDraft::new(Algorithm::FixedWindow, 10, Duration::from_secs(1))]);
    let patched = patch.apply(&window).unwrap();
    assert_eq!((patched.concurrency(), patched.rules()[0].limit), (Some(2), 10));
    let tau = RuleDraft {
        tau: Some(Duration::from_secs(5)),
        ..RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(1))
    };
    let patched = patch.apply(&fsm(&[tau])).unwrap();
    assert_eq!((patched.rules()[0].burst, patched.rules()[0].tau), (2, None));
    assert_eq!(patch.apply(&fsm(&[])).unwrap().concurrency(), Some(2));
}

#[cfg(feature = "config")]
#[test]
fn r111_the_environment_overrides_the_file_and_the_file_the_preset() {
    let file = "preset = 'tmdb'\nconcurrency = 9\n[breaker]\nn_throttle = 9\ns_recover = 9";
    let file = *shmlimit::config::Config::from_toml(file).unwrap().policy();
    let patched = patch(&[("SHMLIMIT_CONCURRENCY", "2"), ("ANIVAULT_N_THROTTLE", "4")]).apply(&file).unwrap();
    assert_eq!((patched.concurrency(), patched.breaker().n_throttle), (Some(2), 4));
    assert_eq!((patched.breaker().s_recover, patched.breaker().n_cacheonly), (9, 5));
}

#[test]
fn no_variables_give_no_patch() {
    let nothing = Patch::from_variables::<&str, &str>([]).unwrap();
    assert!(nothing.is_empty() && !nothing.concerns(&tmdb()) && nothing == Patch::default());
}
