//! The operation `set`: one key of a running limiter's configuration, changed.

use serde_json::Value;
use shmlimit::config;
use shmlimit::kernel::policy::PerSecond;
use shmlimit::kernel::{Policy, PolicyDraft, RuleDraft};

/// The policy with one key changed, or what is wrong with that.
pub fn patched(policy: &Policy, key: &str, value: &Value) -> Result<Policy, String> {
    let bad = || format!("{key} = {value}: not a value of this key");
    let whole = || value.as_u64().ok_or_else(bad);
    let count = || whole().and_then(|number| u32::try_from(number).map_err(|_| bad()));
    let time = || {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        config::duration(&text).map_err(|problem| format!("{key} = {value}: {problem}"))
    };
    let part = || value.as_f64().map(|part| (part * 1e6).round() as u32).ok_or_else(bad);
    let rate = || value.as_f64().map(|rate| PerSecond((rate * 1e9).round() as u64)).ok_or_else(bad);
    let units: Vec<_> = policy.units().collect();
    let mut rules: Vec<RuleDraft<'_>> =
        policy.rules().iter().map(|rule| rule.draft(units[usize::from(rule.unit)].as_str())).collect();
    let (mut window, mut breaker) = (policy.window(), policy.breaker());
    let mut concurrency = policy.concurrency().map(u64::from);
    match key {
        "concurrency" => concurrency = Some(whole()?),
        "window.min_samples" => window.min_samples = count()?,
        "breaker.rate_base" => breaker.rate_base = rate()?,
        "breaker.probe_rate" => breaker.probe_rate = rate()?,
        "breaker.p_throttle" => breaker.p_throttle = part()?,
        "breaker.p_recover" => breaker.p_recover = part()?,
        "breaker.n_throttle" => breaker.n_throttle = count()?,
        "breaker.n_cacheonly" => breaker.n_cacheonly = count()?,
        "breaker.s_probe_ok" => breaker.s_probe_ok = count()?,
        "breaker.sleep_min" => breaker.sleep_min = time()?,
        "breaker.sleep_max" => breaker.sleep_max = time()?,
        "breaker.auto_recover" => breaker.auto_recover = time()?,
        "rules.0.burst" => rules.first_mut().ok_or_else(bad)?.burst = Some(whole()?),
        _ => return Err(format!("{key}: unknown key, or one that cannot be changed")),
    }
    let draft = PolicyDraft {
        provider: &policy.provider().as_str().to_owned(),
        concurrency,
        concurrency_background: policy.concurrency_background().map(u64::from),
        fairness: policy.queueing().fairness,
        background_share: u64::from(policy.queueing().background_share),
        rules: &rules,
        priorities: policy.queueing().priorities,
        passthrough: policy.is_passthrough(),
        window,
        breaker,
        backoff: policy.backoff(),
        adaptive: None,
    };
    Policy::new(&draft).map_err(|error| error.to_string())
}
