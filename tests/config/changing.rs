//! Changing the rate of a limiter in use, and what the errors say when that is not possible.

use crate::opening::Home;
use shmlimit::config::{self, ConfigSource, Overrides};
use shmlimit::policy::PerSecond;
use shmlimit::{Algorithm, Builder, Error, OnMismatch, Rate};

fn says(result: Result<impl std::fmt::Debug, Error>, texts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for text in texts {
        assert!(error.contains(text), "{text:?} is missing in: {error}");
    }
}

#[test]
fn a_rate_that_belongs_to_no_single_rule_is_an_error_that_names_the_rules() {
    let home = Home::new();
    let limiter = home.builder("llm").rate("3/s").rate("100/h").rate("tokens=5/s").open().unwrap();
    says(
        limiter.set_rate("5/s"),
        &[
            "rate: 2 rules count requests; name one of them",
            "there are: rules.requests_per_s.limit, rules.requests_per_h.limit",
        ],
    );
    says(limiter.set_rate("pages=5/s"), &["no rule counts pages (the limiter has: 3/s, 100/h, tokens=5/s)"]);
    says(
        limiter.set_rate(Rate::per_second(5).name("daily")),
        &["no rule has the name daily (the limiter has"],
    );
    let twice = |limit| Rate::per_second(limit).name("same");
    let limiter = home.builder("twice").rate(twice(3)).rate(twice(4)).open().unwrap();
    says(
        limiter.set_rate(twice(5)),
        &["2 rules have the name same; name one", "there are: rules.0.limit, rules.1.limit"],
    );
}

#[test]
fn a_rate_that_a_log_cannot_count_is_refused_with_the_remedy() {
    let home = Home::new();
    let limiter = home.builder("api").rate("3/h").open().unwrap();
    says(
        limiter.set_rate("200k/h"),
        &["a sliding_log counts at most 100000 per period", "shmlimit init NAME --rate 200000/h --replace"],
    );
    assert_eq!(limiter.policy().unwrap().rules()[0].limit, 3);
    let bucket = home.builder("bucket").rate("3/h").burst(4).open().unwrap();
    assert_eq!(bucket.set_rate("200k/h").unwrap().rules()[0].limit, 200_000);
}

#[test]
fn set_rate_overrides_a_rate_of_the_breaker() {
    let home = Home::new();
    let slower = ConfigSource::default().preset("tmdb").setting("breaker.rate_base", "20");
    let limiter = home.builder("api").config(slower).open().unwrap();
    assert_eq!(limiter.policy().unwrap().breaker().rate_base, PerSecond::whole(20));
    let changed = limiter.set_rate("9/s").unwrap();
    assert_eq!((changed.breaker().rate_base, changed.rules()[0].limit), (PerSecond(0), 9));
}

#[test]
fn an_update_that_does_not_fit_names_the_setting() {
    let home = Home::new();
    home.builder("api").rate("100/h").concurrency(4).open().unwrap();
    let update = |builder: Builder| builder.on_mismatch(OnMismatch::Update).open();
    let api = || home.builder("api");
    says(
        update(api().algorithm(Algorithm::Gcra)),
        &["algorithm cannot be changed in a limiter that is in use"],
    );
    says(update(api().burst(5)), &["burst: rule sliding_log is a sliding_log, which has no burst"]);
    says(update(api().rate("tokens=5/s")), &["rate: tokens=5/s has no rule to change"]);
    // `set` says how to create a limiter that has a burst and is otherwise the same.
    let limiter = api().open_existing().unwrap();
    says(limiter.set("burst", "5"), &["shmlimit init NAME --rate 100/h --burst 5 --concurrency 4 --replace"]);
    limiter.set("fairness", "fifo").unwrap();
    says(
        limiter.set("burst", "5"),
        &["shmlimit status NAME --toml > NAME.settings.toml", "algorithm = \"token_bucket\""],
    );
}

#[test]
fn settings_for_one_rule_say_what_to_give_instead() {
    let home = Home::new();
    says(home.builder("api").burst(5).open(), &["burst: there are 0 rules, not one; give a rate as well"]);
    let two = || home.builder("api").rate("5/s").rate("100/h");
    says(
        two().burst(7).open(),
        &[
            "burst: there are 2 rules, not one; name the rule that gets it, in a configuration file or a Policy",
        ],
    );
    let policy = *two().open().unwrap().policy().as_ref().unwrap();
    let one = home.builder("other").policy(policy).rate("9/s");
    says(one.open(), &["rate: there are 2 rules, not one; give all rates, or name the rule"]);
}

#[test]
fn a_text_that_is_no_rate_says_what_is_wrong_with_it() {
    let home = Home::new();
    for (text, problem) in [
        ("fast", "rate = fast: must be a whole number per time, such as 35/s, 1000/day or 40/10s"),
        ("0/s", "rate = 0/s: must be more than 0"),
        ("5/0s", "must be more than 0"),
        ("99999999999999999999/s", "too large"),
        ("a b=5/s", "the unit must be 1 to 32 characters of A-Z a-z 0-9 . _ : -"),
        ("5/s, 9/h", r#"one rate per call: .rate("5/s").rate("9/h")"#),
    ] {
        says(home.builder("api").rate(text).open(), &[problem]);
    }
    let limiter = home.builder("api").rate("5/s").open().unwrap();
    says(limiter.set_rate("fast"), &["rate = fast: must be a whole number per time"]);
}

#[test]
fn r147_a_log_keeps_its_room_when_settings_change() {
    let home = Home::new();
    let limiter = home.builder("api").rate("100/h").open().unwrap();
    let few = || home.builder("api").concurrency(3).on_mismatch(OnMismatch::Update);
    // A new limiter of 2000/h has room for 8000 entries. This one has 4096, and keeps them.
    limiter.set_rate("2000/h").unwrap();
    few().open().unwrap();
    limiter.set("rate", "3000/h").unwrap();
    few().rate("4000/h").open().unwrap();
    assert_eq!(limiter.policy().unwrap().rules()[0].limit, 4000);
    assert!(matches!(limiter.set_rate("5000/h"), Err(Error::DoesNotFit { .. })));
    // The same holds for the functions that only compute a policy.
    let policy = *limiter.policy().as_ref().unwrap();
    let faster = Overrides { rates: vec![Rate::per_hour(2000)], ..Overrides::default() };
    let fewer = Overrides { concurrency: Some(2), ..Overrides::default() };
    for change in [&faster, &fewer] {
        assert_eq!(config::update(&policy, change).unwrap().rules()[0].log_room, 4096);
    }
    assert_eq!(config::set(&policy, "rate", "2000/h").unwrap().rules()[0].log_room, 4096);
}
