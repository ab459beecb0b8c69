//! The numbers of every preset, against the requirement that states them.

use shmlimit::headers::HeaderFormat;
use shmlimit::{Algorithm, Policy, presets};
use shmlimit_kernel::policy::{BreakerKind, Jitter, PerSecond, WindowKind};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn policy(name: &str) -> Policy {
    presets::policy(name).unwrap_or_else(|| panic!("{name}")).unwrap()
}

/// Algorithm, limit, period, burst and reserve of each rule.
type Numbers = (Algorithm, u64, Duration, u64, u64);

fn rules(policy: &Policy) -> Vec<Numbers> {
    let rules = policy.rules().iter();
    rules.map(|rule| (rule.algorithm, rule.limit, rule.period, rule.burst, rule.reserve)).collect()
}

/// Name, limit, interval and kind of each of the provider's windows.
fn windows(policy: &Policy) -> Vec<(String, u64, Duration, WindowKind)> {
    let windows = policy.adaptive().unwrap().windows();
    windows.map(|it| (it.name.as_str().to_owned(), it.limit, it.interval(), it.kind)).collect()
}

fn units(policy: &Policy) -> Vec<String> {
    policy.units().map(|unit| unit.as_str().to_owned()).collect()
}

#[test]
fn every_preset_is_valid_and_states_its_purpose_and_source() {
    assert_eq!(presets::all().iter().map(|preset| preset.name).collect::<Vec<_>>(), presets::NAMES);
    for preset in presets::all() {
        let policy = preset.policy().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert!(!policy.rules().is_empty() && !preset.about.is_empty() && preset.source.len() > 20);
        assert!(preset.name.starts_with(policy.provider().as_str()), "{}", preset.name);
    }
    assert!(presets::policy("tmbd").is_none());
}

#[test]
fn r101_tmdb_is_35_per_second_35_at_once_4_in_flight() {
    let tmdb = policy("tmdb");
    assert_eq!(rules(&tmdb), [(Algorithm::TokenBucket, 35, SECOND, 35, 0)]);
    assert_eq!((tmdb.concurrency(), tmdb.provider().as_str()), (Some(4), "tmdb"));
}

#[test]
fn r101_tmdb_legacy_is_40_in_any_10_seconds_never_400() {
    let legacy = policy("tmdb-legacy");
    let ten = Duration::from_secs(10);
    let expected = [(Algorithm::TokenBucket, 40, ten, 40, 0), (Algorithm::SlidingLog, 40, ten, 40, 0)];
    assert_eq!((rules(&legacy), legacy.concurrency()), (expected.to_vec(), None));
}

#[test]
fn r102_r107_the_database_presets_have_their_rules_and_reserves() {
    let bucket = |rate, burst, reserve| (Algorithm::TokenBucket, rate, SECOND, burst, reserve);
    let cap = |limit, seconds| (Algorithm::SlidingLog, limit, Duration::from_secs(seconds), limit, 0);
    let day = |limit| (Algorithm::FixedWindow, limit, DAY, limit, 0);
    for (name, expected) in [
        ("tvdb", vec![bucket(10, 50, 40), cap(100, 10)]),
        ("fanart", vec![bucket(1, 5, 4), cap(10, 1)]),
        ("fanart-personal", vec![bucket(2, 10, 8), cap(20, 1)]),
        ("musicbrainz", vec![bucket(1, 1, 0)]),
        ("omdb-free", vec![day(1000)]),
        ("omdb-paid", vec![day(100_000)]),
        ("local", vec![bucket(1000, 10_000, 9000)]),
    ] {
        let preset = policy(name);
        assert_eq!(rules(&preset), expected, "{name}");
        // Only MusicBrainz has no priorities, and one call at a time.
        let strict = name == "musicbrainz";
        assert_eq!(
            (preset.queueing().priorities, preset.concurrency()),
            (!strict, strict.then_some(1)),
            "{name}"
        );
    }
}

#[test]
fn r104_r75_r78_the_databases_count_failures_in_a_row_and_tmdb_has_five_states() {
    let tmdb = policy("tmdb");
    assert_eq!(tmdb.breaker().kind(), BreakerKind::Fsm);
    assert_eq!((tmdb.breaker().rate_base, tmdb.breaker().p_throttle), (PerSecond(0), 200_000));
    assert_eq!((tmdb.backoff().base, tmdb.backoff().jitter()), (Duration::from_millis(1500), Jitter::Full));
    for name in
        ["tmdb-legacy", "tvdb", "fanart", "fanart-personal", "musicbrainz", "omdb-free", "omdb-paid", "local"]
    {
        let preset = policy(name);
        let (breaker, backoff) = (preset.breaker(), preset.backoff());
        assert_eq!(breaker.kind(), BreakerKind::Consecutive, "{name}");
        let numbers = (breaker.failure_threshold, breaker.reset_timeout, breaker.required_successes);
        assert_eq!(numbers, (5, Duration::from_secs(300), 2), "{name}");
        let numbers = (backoff.base, backoff.factor, backoff.cap, backoff.jitter());
        assert_eq!(numbers, (SECOND, 2_000_000, Duration::from_secs(30), Jitter::None), "{name}");
        assert_eq!((backoff.retries_user, backoff.retries_background), (2, 5), "{name}");
    }
}

#[test]
fn r103_binance_has_fixed_windows_of_weight_and_orders() {
    let binance = policy("binance");
    assert_eq!(units(&binance), ["requests", "weight", "orders"]);
    let fixed = |limit, period| (Algorithm::FixedWindow, limit, period, limit, 0);
    let ten = Duration::from_secs(10);
    assert_eq!(rules(&binance), [fixed(6000, MINUTE), fixed(50, ten), fixed(160_000, DAY)]);
    assert_eq!(binance.rules().iter().map(|rule| rule.unit).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(binance.adaptive().unwrap().parser, Some(HeaderFormat::Binance.code()));
    let expected =
        [("REQUEST_WEIGHT:1M", 6000, MINUTE), ("ORDERS:10S", 50, ten), ("ORDERS:1D", 160_000, DAY)];
    let expected = expected.map(|(name, limit, length)| (name.to_owned(), limit, length, WindowKind::Fixed));
    assert_eq!(windows(&binance), expected);
}

#[test]
fn r103_upbit_has_sliding_windows_of_its_groups() {
    let upbit = policy("upbit");
    assert_eq!(upbit.adaptive().unwrap().parser, Some(HeaderFormat::Upbit.code()));
    let expected = [("default:sec", 30), ("order:sec", 12)];
    let expected = expected.map(|(name, limit)| (name.to_owned(), limit, SECOND, WindowKind::Sliding));
    assert_eq!(windows(&upbit), expected);
    assert_eq!(units(&upbit), ["requests", "order"]);
    let log = |limit| (Algorithm::SlidingLog, limit, SECOND, limit, 0);
    assert_eq!(rules(&upbit), [log(30), log(12)]);
}

#[test]
fn r138_github_is_5000_per_hour_by_its_headers() {
    let github = policy("github");
    let hour = Duration::from_secs(3600);
    assert_eq!(rules(&github), [(Algorithm::SlidingLog, 5000, hour, 5000, 0)]);
    assert_eq!(github.adaptive().unwrap().parser, Some(HeaderFormat::GitHub.code()));
    assert_eq!(windows(&github), [("core".to_owned(), 5000, hour, WindowKind::Fixed)]);
}

#[test]
fn r138_language_models_count_requests_and_tokens_per_minute() {
    for (name, parser, requests, tokens) in
        [("openai", HeaderFormat::OpenAi, 500, 30_000), ("anthropic", HeaderFormat::Anthropic, 50, 30_000)]
    {
        let preset = policy(name);
        assert_eq!(units(&preset), ["requests", "tokens"], "{name}");
        let bucket = |limit| (Algorithm::TokenBucket, limit, MINUTE, limit, 0);
        assert_eq!(rules(&preset), [bucket(requests), bucket(tokens)], "{name}");
        assert_eq!(preset.adaptive().unwrap().parser, Some(parser.code()), "{name}");
        let window = |name: &str, limit| (name.to_owned(), limit, MINUTE, WindowKind::Fixed);
        assert_eq!(windows(&preset), [window("requests", requests), window("tokens", tokens)], "{name}");
    }
}

#[test]
fn r105_the_notes_state_how_long_to_cache() {
    let notes = |name: &str| {
        let preset = presets::all().iter().find(|preset| preset.name == name).unwrap();
        preset.notes.join(" ")
    };
    for (name, how_long) in [
        ("tmdb", "24 to 48 h"),
        ("tmdb-legacy", "24 to 48 h"),
        ("tvdb", "24 to 48 h"),
        ("fanart", "without an expiry"),
        ("fanart-personal", "without an expiry"),
        ("musicbrainz", "without an expiry"),
        ("omdb-free", "7 days"),
        ("omdb-paid", "7 days"),
    ] {
        assert!(notes(name).contains(how_long), "{name}");
        assert_eq!(notes(name).contains("per API key"), name != "musicbrainz", "{name}");
    }
}
