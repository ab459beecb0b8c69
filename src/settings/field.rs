//! Which key means which field.

use super::given::Value;
use super::keys::Kind;
use super::{Mode, Settings};
use crate::quantity;
use shmlimit_kernel::policy::{BreakerKind, HeaderFormat, Jitter, PerSecond, WindowKind};
use shmlimit_kernel::{Algorithm, BurstMode, Fairness, Nanos};

/// One setting, by the form in which it is kept.
pub(crate) enum Field<'s> {
    Whole(&'s mut u64),
    Small(&'s mut u32),
    Maybe(&'s mut Option<u64>),
    Length(&'s mut Nanos),
    MaybeLength(&'s mut Option<Nanos>),
    Rate(&'s mut PerSecond),
    Truth(&'s mut bool),
    Name(&'s mut Option<String>),
    Choice(&'s mut dyn Choice),
}

/// One of a few words.
pub(crate) trait Choice {
    /// The word for it; nothing if none was chosen.
    fn word(&self) -> Option<&'static str>;
    /// Takes the one of that word; whether there is one.
    fn choose(&mut self, word: &str) -> bool;
}

macro_rules! choices {
    ($($choice:ty: $parse:expr;)*) => {$(
        impl Choice for $choice {
            fn word(&self) -> Option<&'static str> {
                Some(self.as_str())
            }
            fn choose(&mut self, word: &str) -> bool {
                let parse: fn(&str) -> Option<$choice> = $parse;
                parse(word).map(|choice| *self = choice).is_some()
            }
        }
        impl Choice for Option<$choice> {
            fn word(&self) -> Option<&'static str> {
                self.map(|choice| choice.as_str())
            }
            fn choose(&mut self, word: &str) -> bool {
                let parse: fn(&str) -> Option<$choice> = $parse;
                parse(word).map(|choice| *self = Some(choice)).is_some()
            }
        }
    )*};
}

choices! {
    Algorithm: |word| Algorithm::parse(0, word).ok();
    BurstMode: BurstMode::parse;
    BreakerKind: BreakerKind::parse;
    Fairness: |word| Fairness::parse(word).ok();
    HeaderFormat: HeaderFormat::parse;
    Jitter: Jitter::parse;
    Mode: Mode::parse;
    WindowKind: WindowKind::parse;
}

impl Field<'_> {
    /// Puts a value in; an error if there is no room for it.
    pub fn put(self, value: Value) -> Result<(), ()> {
        match (self, value) {
            (Field::Whole(field), Value::Number(number)) => *field = number,
            (Field::Small(field), Value::Number(number)) => *field = u32::try_from(number).map_err(drop)?,
            (Field::Maybe(field), Value::Number(number)) => *field = Some(number),
            (Field::Maybe(field), Value::Nothing) => *field = None,
            (Field::Length(field), Value::Number(number)) => *field = Nanos(number),
            (Field::MaybeLength(field), Value::Number(number)) => *field = Some(Nanos(number)),
            (Field::Rate(field), Value::Number(number)) => *field = PerSecond(number),
            (Field::Rate(field), Value::Nothing) => *field = PerSecond(0),
            (Field::Truth(field), Value::Truth(truth)) => *field = truth,
            (Field::Name(field), Value::Word(word)) => *field = Some(word),
            (Field::Choice(field), Value::Word(word)) => return field.choose(&word).then_some(()).ok_or(()),
            _ => return Err(()),
        }
        Ok(())
    }

    /// The value as people write it; nothing if it is not set.
    pub fn text(&self, kind: Kind) -> Option<String> {
        let number = |number: u64| match kind {
            Kind::Part { .. } | Kind::Factor { .. } => quantity::written(number, 6),
            _ => number.to_string(),
        };
        match self {
            Field::Whole(field) => Some(number(**field)),
            Field::Small(field) => Some(number(u64::from(**field))),
            Field::Maybe(None) if matches!(kind, Kind::Permits { .. }) => Some("unlimited".to_owned()),
            Field::Maybe(field) => field.map(number),
            Field::Length(field) => Some(quantity::span(**field)),
            Field::MaybeLength(field) => field.map(quantity::span),
            Field::Rate(PerSecond(0)) => Some("auto".to_owned()),
            Field::Rate(field) => Some(quantity::written(field.0, 9)),
            Field::Truth(field) => Some(field.to_string()),
            Field::Name(field) => field.as_ref().cloned(),
            Field::Choice(field) => field.word().map(str::to_owned),
        }
    }
}

impl Settings {
    /// The field that a key of the table means, for element `i` of its list; nothing if there is none.
    pub fn field(&mut self, key: &str, i: usize) -> Option<Field<'_>> {
        if let Some(name) = key.strip_prefix("breaker.") {
            return self.breaker_field(name);
        }
        if let Some(name) = key.strip_prefix("adaptive.") {
            return self.adaptive_field(name, i);
        }
        if let Some(name) = key.strip_prefix("rules.N.") {
            return self.rule_field(name, i);
        }
        let (window, backoff) = (&mut self.window, &mut self.backoff);
        Some(match key {
            "epoch_ns" => Field::Whole(&mut self.epoch_ns),
            "provider" => Field::Name(&mut self.provider),
            "concurrency" => Field::Maybe(&mut self.concurrency),
            "concurrency_background" => Field::Maybe(&mut self.concurrency_background),
            "fairness" => Field::Choice(&mut self.fairness),
            "background_share" => Field::Whole(&mut self.background_share),
            "count_network_errors" => Field::Truth(&mut self.count_network_errors),
            "mode" => Field::Choice(&mut self.mode),
            "priority.enabled" => Field::Truth(&mut self.priorities),
            "window.max_age" => Field::Length(&mut window.max_age),
            "window.max_count" => Field::Small(&mut window.max_count),
            "window.min_samples" => Field::Small(&mut window.min_samples),
            "backoff.base" => Field::Length(&mut backoff.base),
            "backoff.factor" => Field::Small(&mut backoff.factor),
            "backoff.cap" => Field::Length(&mut backoff.cap),
            "backoff.jitter" => Field::Choice(&mut self.jitter),
            "backoff.min_sleep" => Field::Length(&mut backoff.min_sleep),
            "backoff.retry_after_max" => Field::Length(&mut backoff.retry_after_max),
            "backoff.retries_user" => Field::Small(&mut backoff.retries_user),
            "backoff.retries_background" => Field::Small(&mut backoff.retries_background),
            _ => return None,
        })
    }

    fn breaker_field(&mut self, name: &str) -> Option<Field<'_>> {
        let breaker = &mut self.breaker;
        Some(match name {
            "kind" => Field::Choice(&mut self.kind),
            "rate_base" => Field::Rate(&mut breaker.rate_base),
            "p_throttle" => Field::Small(&mut breaker.p_throttle),
            "p_recover" => Field::Small(&mut breaker.p_recover),
            "p_sleep" => Field::Small(&mut breaker.p_sleep),
            "sleep_after" => Field::Length(&mut breaker.sleep_after),
            "n_throttle" => Field::Small(&mut breaker.n_throttle),
            "n_cacheonly" => Field::Small(&mut breaker.n_cacheonly),
            "s_recover" => Field::Small(&mut breaker.s_recover),
            "s_probe_ok" => Field::Small(&mut breaker.s_probe_ok),
            "hysteresis" => Field::Small(&mut breaker.hysteresis),
            "sleep_min" => Field::Length(&mut breaker.sleep_min),
            "sleep_max" => Field::Length(&mut breaker.sleep_max),
            "cooldown_factor" => Field::Small(&mut breaker.cooldown_factor),
            "probe_rate" => Field::Rate(&mut breaker.probe_rate),
            "probe_concurrency" => Field::Small(&mut breaker.probe_concurrency),
            "probe_timeout" => Field::Length(&mut breaker.probe_timeout),
            "ramp_every" => Field::Length(&mut breaker.ramp_every),
            "ramp_factor" => Field::Small(&mut breaker.ramp_factor),
            "auto_recover" => Field::Length(&mut breaker.auto_recover),
            "cache_only_after" => Field::Small(&mut breaker.cache_only_after),
            "failure_threshold" => Field::Small(&mut breaker.failure_threshold),
            "reset_timeout" => Field::Length(&mut breaker.reset_timeout),
            "required_successes" => Field::Small(&mut breaker.required_successes),
            _ => return None,
        })
    }

    fn adaptive_field(&mut self, name: &str, i: usize) -> Option<Field<'_>> {
        let adaptive = self.adaptive.as_mut()?;
        if let Some(name) = name.strip_prefix("windows.N.") {
            let window = adaptive.windows.get_mut(i)?;
            return Some(match name {
                "name" => Field::Name(&mut window.name),
                "limit" => Field::Maybe(&mut window.limit),
                "interval" => Field::MaybeLength(&mut window.interval),
                "type" => Field::Choice(&mut window.kind),
                _ => return None,
            });
        }
        Some(match name {
            "parser" => Field::Choice(&mut adaptive.parser),
            "threshold" => Field::Small(&mut adaptive.threshold),
            "history" => Field::Small(&mut adaptive.history),
            "min_samples" => Field::Small(&mut adaptive.min_samples),
            "short_window" => Field::Length(&mut adaptive.short_window),
            _ => return None,
        })
    }

    fn rule_field(&mut self, name: &str, i: usize) -> Option<Field<'_>> {
        let rule = self.rules.get_mut(i)?;
        Some(match name {
            "name" => Field::Name(&mut rule.name),
            "algorithm" => Field::Choice(&mut rule.algorithm),
            "unit" => Field::Name(&mut rule.unit),
            "limit" => Field::Maybe(&mut rule.limit),
            "period" => Field::MaybeLength(&mut rule.period),
            "burst" => Field::Maybe(&mut rule.burst),
            "tau" => Field::MaybeLength(&mut rule.tau),
            "burst_mode" => Field::Choice(&mut rule.burst_mode),
            "reserve" => Field::Whole(&mut rule.reserve),
            _ => return None,
        })
    }
}
