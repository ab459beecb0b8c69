//! Opening a limiter with single settings, and what happens if it exists with others.

use shmlimit::config::ConfigSource;
use shmlimit::{
    AcquireError, Algorithm, Builder, ConfigError, Error, Limiter, OnMismatch, Policy, Rate, Request, presets,
};
use std::time::Duration;

/// Opens limiters in a directory of their own.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn builder(&self, name: &str) -> Builder {
        Limiter::builder(name).directory(self.0.path())
    }
}

fn rules(policy: &Policy) -> Vec<(String, u64, u64)> {
    let rule = |rule: &shmlimit::policy::Rule| (rule.name.to_string(), rule.limit, rule.burst);
    policy.rules().iter().map(rule).collect()
}

fn config_error(error: &Error) -> &ConfigError {
    match error {
        Error::Config(why) => why.downcast_ref().unwrap(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_builder_with_single_settings_is_the_policy_of_the_same_settings_as_text() {
    let said = |pairs: &[(&str, &str)]| {
        let source = ConfigSource::default();
        pairs.iter().fold(source, |source, (key, value)| source.setting(*key, *value))
    };
    type Case = (fn(Builder) -> Builder, &'static [(&'static str, &'static str)]);
    let cases: [Case; 6] = [
        (|it| it.rate(Rate::per_second(10)), &[("rate", "10/s")]),
        (
            |it| it.rate("10/s").burst(20).concurrency(4),
            &[("rate", "10/s"), ("burst", "20"), ("concurrency", "4")],
        ),
        (|it| it.rate("200k/h".to_owned()), &[("rate", "200k/h")]),
        (|it| it.rate("9/min").algorithm(Algorithm::Gcra), &[("rate", "9/min"), ("algorithm", "gcra")]),
        (|it| it.concurrency(3), &[("concurrency", "3")]),
        (
            |it| it.rate("100/min").rate(Rate::per_minute(30_000).unit("tokens")),
            &[("rate", "100/min, tokens=30k/min")],
        ),
    ];
    for name in ["api", "github"] {
        for (i, (build, pairs)) in cases.iter().enumerate() {
            let home = Home::new();
            let by_calls = build(home.builder(name)).open();
            let as_text = said(pairs).policy(name);
            match (by_calls, as_text) {
                (Ok(limiter), Ok(policy)) => assert_eq!(limiter.policy().unwrap(), policy, "{name} {i}"),
                (Err(error), Err(wanted)) => assert_eq!(*config_error(&error), wanted, "{name} {i}"),
                (calls, text) => panic!("{name} {i}: {calls:?} {text:?}"),
            }
        }
    }
}

#[test]
fn r147_a_rate_admits_at_most_its_limit_in_one_period() {
    let home = Home::new();
    let limiter = home.builder("api").rate(Rate::per_hour(3)).open().unwrap();
    let granted = (0..5).filter(|_| limiter.try_acquire(&Request::new()).is_ok()).count();
    assert_eq!((granted, limiter.policy().unwrap().rules()[0].algorithm), (3, Algorithm::SlidingLog));
}

#[test]
fn several_rates_are_several_rules_and_each_of_them_must_admit() {
    let home = Home::new();
    let builder = home.builder("llm").rate("3/h").rate("tokens=1000/h").rate(Rate::per_day(50).name("daily"));
    let limiter = builder.open().unwrap();
    let expected = [("requests_per_h", 3), ("tokens_per_h", 1000), ("daily", 50)];
    let found = rules(&limiter.policy().unwrap());
    assert_eq!(found.iter().map(|(name, limit, _)| (name.as_str(), *limit)).collect::<Vec<_>>(), expected);
    let call = Request::new().cost("tokens", 900);
    limiter.try_acquire(&call).unwrap().release().unwrap();
    let refusal = limiter.try_acquire(&call).unwrap_err();
    assert!(matches!(refusal, AcquireError::Refused(why) if why.rule() == Some(1)));
}

#[test]
fn several_rates_take_the_place_of_a_presets_rules() {
    let home = Home::new();
    let limiter = home.builder("tmdb").rate("5/s").rate("100/h").open().unwrap();
    let policy = limiter.policy().unwrap();
    assert_eq!((policy.rules().len(), policy.concurrency()), (2, Some(4)));
}

#[test]
fn a_bad_text_is_an_error_of_open_that_says_what_is_allowed() {
    let home = Home::new();
    let error = home.builder("api").rate("fast").open().unwrap_err();
    assert!(matches!(config_error(&error), ConfigError::Rate(rate) if rate.text() == "fast"), "{error}");
    assert!(error.to_string().contains("35/s"), "{error}");
    for rate in [Rate::per_second(0), Rate::new(5, Duration::ZERO), Rate::new(5, Duration::MAX)] {
        let error = home.builder("api").rate(rate).open().unwrap_err();
        assert!(matches!(config_error(&error), ConfigError::Policy(_)), "{error}");
    }
    assert!(!home.0.path().join("api.shm").exists());
}

#[test]
fn a_burst_beside_several_rates_is_refused_with_the_remedy() {
    let home = Home::new();
    let several = || home.builder("api").rate("5/s").rate("100/h");
    for (builder, setting) in
        [(several().burst(7), "burst"), (several().algorithm(Algorithm::Gcra), "algorithm")]
    {
        let error = builder.open().unwrap_err();
        assert_eq!(*config_error(&error), ConfigError::NotOneRule { setting, rules: 2 });
        assert!(error.to_string().contains("configuration file or a Policy"), "{error}");
    }
}

#[test]
fn single_settings_go_on_top_of_a_policy() {
    let home = Home::new();
    let tmdb = presets::policy("tmdb").unwrap().unwrap();
    let limiter = home.builder("mine").policy(tmdb).concurrency(9).open().unwrap();
    let policy = limiter.policy().unwrap();
    assert_eq!((policy.concurrency(), policy.rules()), (Some(9), tmdb.rules()));
}

#[test]
fn r144_a_limiter_with_other_settings_is_an_error_unless_something_else_is_chosen() {
    let home = Home::new();
    let first = home.builder("api").rate("100/h").concurrency(4).open().unwrap();
    let error = home.builder("api").rate("60/h").concurrency(4).open().unwrap_err();
    assert!(matches!(error, Error::ConfigMismatch { updatable: true, .. }), "{error}");
    assert!(error.to_string().contains("open it with on_mismatch = update"), "{error}");
    assert_eq!(first.policy().unwrap().rules()[0].limit, 100);
}

#[test]
fn r144_adopt_uses_the_limiter_as_it_is_and_creates_it_as_asked_for() {
    let home = Home::new();
    let adopt = |rate: &str| home.builder("api").rate(rate).on_mismatch(OnMismatch::Adopt).open().unwrap();
    assert_eq!(adopt("100/h").policy().unwrap().rules()[0].limit, 100);
    assert_eq!(adopt("60/h").policy().unwrap().rules()[0].limit, 100);
}

#[test]
fn r144_update_changes_what_is_named_for_everybody_and_keeps_what_was_spent() {
    let home = Home::new();
    let first = home.builder("api").rate("100/h").concurrency(4).open().unwrap();
    for _ in 0..30 {
        first.try_acquire(&Request::new()).unwrap().release().unwrap();
    }
    let update = |rate: &str| home.builder("api").rate(rate).on_mismatch(OnMismatch::Update).open().unwrap();
    let second = update("60/h");
    for limiter in [&first, &second] {
        let (policy, snapshot) = (limiter.policy().unwrap(), limiter.snapshot().unwrap());
        assert_eq!((policy.rules()[0].limit, policy.concurrency()), (60, Some(4)));
        assert_eq!(snapshot.rules[0].remaining, 30);
    }
    let granted = (0..60).filter(|_| first.try_acquire(&Request::new()).is_ok()).count();
    assert_eq!(granted, 30);
}

#[test]
fn r144_an_update_with_a_whole_configuration_sets_all_of_it() {
    let home = Home::new();
    let first = home.builder("api").rate("100/h").concurrency(4).open().unwrap();
    let file = "[[rules]]\nname = 'sliding_log'\nalgorithm = 'sliding_log'\nlimit = 60\nperiod = '1h'\n";
    let whole = ConfigSource::default().text(file);
    home.builder("api").config(whole).on_mismatch(OnMismatch::Update).open().unwrap();
    let policy = first.policy().unwrap();
    assert_eq!((policy.rules()[0].limit, policy.concurrency()), (60, None));
}

#[test]
fn r144_an_update_of_several_rates_finds_their_rules() {
    let home = Home::new();
    let first = home.builder("llm").rate("3/s").rate("100/h").rate("tokens=1000/h").open().unwrap();
    let update = |builder: Builder| builder.on_mismatch(OnMismatch::Update).open();
    update(home.builder("llm").rate("4/s").rate("90/h")).unwrap();
    update(home.builder("llm").rate("tokens=900/min")).unwrap();
    update(home.builder("llm").rate(Rate::per_hour(80).name("requests_per_h"))).unwrap();
    let limits = |policy: Policy| policy.rules().iter().map(|rule| rule.limit).collect::<Vec<_>>();
    assert_eq!(limits(first.policy().unwrap()), [4, 80, 900]);
    let unclear = update(home.builder("llm").rate("5/s")).unwrap_err();
    assert!(matches!(config_error(&unclear), ConfigError::Ambiguous { .. }), "{unclear}");
    let twice = update(home.builder("llm").rate("5/s").rate("6/s")).unwrap_err();
    assert!(twice.to_string().contains("requests_per_s already"), "{twice}");
}

#[test]
fn r144_settings_that_only_a_new_limiter_can_have_do_not_fit() {
    let home = Home::new();
    home.builder("api").rate("100/h").open().unwrap();
    let update = |builder: Builder| builder.on_mismatch(OnMismatch::Update).open().unwrap_err();
    let single =
        |key: &str, value: &str| home.builder("api").config(ConfigSource::default().setting(key, value));
    for builder in [
        home.builder("api").algorithm(Algorithm::Gcra),
        home.builder("api").burst(5),
        home.builder("api").rate("tokens=5/s"),
        home.builder("api").rate("100/h").rate("tokens=5/s"),
        single("rules.0.algorithm", "gcra"),
        single("breaker.kind", "fsm"),
    ] {
        if let Error::ConfigMismatch { updatable, .. } = builder.clone().open().unwrap_err() {
            assert!(!updatable, "the mismatch must not offer an update that is refused: {builder:?}");
        }
        let error = update(builder);
        assert!(matches!(error, Error::DoesNotFit { .. }), "{error}");
    }
    let same = single("rules.0.algorithm", "sliding_log").on_mismatch(OnMismatch::Update).open();
    assert_eq!(same.unwrap().policy().unwrap().rules()[0].limit, 100);
}

#[test]
fn a_list_of_rates_in_one_call_is_an_error_that_shows_the_calls() {
    let home = Home::new();
    let error = home.builder("llm").rate("100/min, tokens=30k/min").open().unwrap_err();
    assert!(error.to_string().contains(r#".rate("100/min").rate("tokens=30k/min")"#), "{error}");
}

#[test]
fn set_rate_changes_limit_and_period_for_all_and_keeps_the_rest() {
    let home = Home::new();
    let first = home.builder("llm").rate("100/h").rate("tokens=5/s").concurrency(4).open().unwrap();
    let second = home.builder("llm").open_existing().unwrap();
    let changed = second.set_rate("tokens=9/s").unwrap();
    let policy = first.policy().unwrap();
    assert_eq!((&policy, policy.concurrency()), (&changed, Some(4)));
    let limits: Vec<u64> = policy.rules().iter().map(|rule| rule.limit).collect();
    assert_eq!(limits, [100, 9]);
    second.set_rate(Rate::per_minute(50)).unwrap();
    let policy = first.policy().unwrap();
    let rule = &policy.rules()[0];
    assert_eq!((rule.limit, rule.period), (50, Duration::from_secs(60)));
    for bad in ["fast", "pages=1/s"] {
        assert!(matches!(second.set_rate(bad), Err(Error::Config(_))), "{bad}");
    }
}

#[test]
fn an_update_names_the_rate_that_has_no_rule() {
    let home = Home::new();
    home.builder("api").rate("13/s").rate("200/min").open().unwrap();
    let update = home.builder("api").rate("13/s").rate("200/h").on_mismatch(OnMismatch::Update);
    let error = update.open().unwrap_err().to_string();
    let said = "200/h has no rule to change, because no rule counts requests in the period of 200/h (the limiter has: 13/s, \
                200/min), and rules cannot be added or removed while the limiter is in use";
    assert!(error.contains(said), "{error}");
}

#[test]
fn settings_of_a_rule_need_a_rate_only_where_the_limiter_must_be_made() {
    let home = Home::new();
    let update = || home.builder("api").burst(5).on_mismatch(OnMismatch::Update);
    assert_eq!(
        *config_error(&update().open().unwrap_err()),
        ConfigError::NotOneRule { setting: "burst", rules: 0 }
    );
    home.builder("api").rate("100/h").burst(9).open().unwrap();
    assert_eq!(update().open().unwrap().policy().unwrap().rules()[0].burst, 5);
    let adopted = home.builder("api").burst(7).on_mismatch(OnMismatch::Adopt).open().unwrap();
    assert_eq!(adopted.policy().unwrap().rules()[0].burst, 5);
}

#[test]
fn nothing_asked_for_is_never_a_mismatch() {
    let home = Home::new();
    home.builder("tmdb").concurrency(7).open().unwrap();
    for action in [OnMismatch::Error, OnMismatch::Adopt, OnMismatch::Update] {
        let limiter = home.builder("tmdb").on_mismatch(action).open().unwrap();
        assert_eq!(limiter.policy().unwrap().concurrency(), Some(7));
    }
}

#[test]
fn an_update_with_the_algorithm_that_the_rule_has_keeps_its_burst() {
    let home = Home::new();
    let limiter = home.builder("api").rate("10/s").burst(20).open().unwrap();
    let update = home.builder("api").rate("12/s").algorithm(Algorithm::TokenBucket);
    update.on_mismatch(OnMismatch::Update).open().unwrap();
    let policy = limiter.policy().unwrap();
    assert_eq!((policy.rules()[0].limit, policy.rules()[0].burst), (12, 20));
}

#[test]
fn a_named_rate_with_a_unit_does_not_change_a_rule_of_another_unit() {
    let home = Home::new();
    let limiter = home.builder("llm").rate(Rate::per_minute(100).name("rpm")).open().unwrap();
    let tokens = || Rate::per_minute(50).unit("tokens").name("rpm");
    let update = home.builder("llm").rate(tokens()).on_mismatch(OnMismatch::Update).open();
    for error in [limiter.set_rate(tokens()).unwrap_err(), update.unwrap_err()] {
        assert!(error.to_string().contains("no rule has the name rpm"), "{error}");
    }
    assert_eq!(limiter.policy().unwrap().rules()[0].limit, 100);
}

#[test]
fn r144_open_existing_compares_the_settings_like_open() {
    let home = Home::new();
    let first = home.builder("api").rate("100/h").concurrency(4).open().unwrap();
    let existing = |builder: Builder, action| builder.on_mismatch(action).open_existing();
    let asked = || home.builder("api").rate("60/h").concurrency(4);
    let limit = || first.policy().unwrap().rules()[0].limit;

    let error = existing(asked(), OnMismatch::Error).unwrap_err();
    assert!(matches!(error, Error::ConfigMismatch { updatable: true, .. }), "{error}");
    let policy = *home.builder("other").rate("60/h").open().unwrap().policy().as_ref().unwrap();
    let error = existing(home.builder("api").policy(policy), OnMismatch::Error).unwrap_err();
    assert!(matches!(error, Error::ConfigMismatch { .. }), "{error}");
    let text = ConfigSource::default().text("concurrency = 9");
    let error = existing(home.builder("api").config(text), OnMismatch::Error).unwrap_err();
    assert!(matches!(error, Error::ConfigMismatch { .. }), "{error}");
    assert!(existing(asked().rate("fast"), OnMismatch::Adopt).is_err());
    assert_eq!((existing(asked(), OnMismatch::Adopt).is_ok(), limit()), (true, 100));
    assert_eq!((existing(asked(), OnMismatch::Update).is_ok(), limit()), (true, 60));
    assert!(existing(asked(), OnMismatch::Error).is_ok(), "the settings are those of the limiter now");
    let error = existing(home.builder("api").algorithm(Algorithm::Gcra), OnMismatch::Update).unwrap_err();
    assert!(matches!(error, Error::DoesNotFit { .. }), "{error}");
}

#[test]
fn open_existing_without_settings_compares_nothing() {
    let home = Home::new();
    home.builder("tmdb").rate("7/h").open().unwrap();
    for action in [OnMismatch::Error, OnMismatch::Adopt, OnMismatch::Update] {
        let limiter = home.builder("tmdb").on_mismatch(action).open_existing().unwrap();
        assert_eq!(limiter.policy().unwrap().rules()[0].limit, 7, "the preset of this name is not asked for");
    }
}

#[test]
fn open_existing_never_makes_a_limiter_or_its_directory() {
    let home = Home::new();
    let place = home.0.path().join("below");
    for action in [OnMismatch::Error, OnMismatch::Adopt, OnMismatch::Update] {
        for builder in [home.builder("api"), home.builder("api").rate("1/s"), home.builder("tmdb")] {
            let error = builder.on_mismatch(action).open_existing().unwrap_err();
            assert!(matches!(error, Error::UnknownLimiter { .. }), "{error}");
        }
        let elsewhere = Limiter::builder("api").directory(&place).rate("1/s").on_mismatch(action);
        assert!(elsewhere.open_existing().is_err() && !place.exists());
    }
    // What a new limiter would lack does not matter where none is made.
    let update = home.builder("api").burst(5).on_mismatch(OnMismatch::Update);
    assert!(matches!(update.open_existing(), Err(Error::UnknownLimiter { .. })));
    assert_eq!(
        std::fs::read_dir(home.0.path())
            .unwrap()
            .filter(|file| { file.as_ref().unwrap().path().extension().is_some_and(|end| end == "shm") })
            .count(),
        0
    );
}
