//! A configuration as it was written, owned: what files, single settings and the environment change, one key at a time.
//!
//! There is one table of keys ([`keys()`]) and one place that knows which key means which field (`field.rs`). Reading
//! files, hot patches, descriptions, written files and the documentation all go through these two.

mod field;
mod given;
mod keys;
mod rule;

pub(crate) use given::Given;
pub use keys::{KeyInfo, Kind, keys};
pub(crate) use rule::RuleSettings;

use shmlimit_kernel::policy::{
    AdaptiveDraft, Backoff, Breaker, BreakerKind, BurstFrom, HeaderFormat, Jitter, Key, OutcomeWindow,
    PaceWindowDraft, WindowKind,
};
use shmlimit_kernel::{Algorithm, Fairness, Nanos, Policy, PolicyDraft, PolicyError, RuleDraft};

/// What was written, not yet judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub epoch_ns: u64,
    pub provider: Option<String>,
    pub concurrency: Option<u64>,
    pub concurrency_background: Option<u64>,
    pub fairness: Fairness,
    /// In millionths.
    pub background_share: u64,
    pub count_network_errors: bool,
    pub mode: Mode,
    pub priorities: bool,
    pub window: OutcomeWindow,
    pub kind: BreakerKind,
    pub breaker: Breaker,
    pub backoff: Backoff,
    pub jitter: Jitter,
    pub adaptive: Option<AdaptiveSettings>,
    pub rules: Vec<RuleSettings>,
}

shmlimit_kernel::named_enum! {
    /// Whether refusals are meant (R41).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Mode {
        #[default]
        Enforce => "enforce",
        Passthrough => "passthrough",
    }
    pub(crate) const fn as_str;
    pub(crate) fn parse;
    pub(crate) const NAMES;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdaptiveSettings {
    pub parser: Option<HeaderFormat>,
    pub threshold: u32,
    pub history: u32,
    pub min_samples: u32,
    pub short_window: Nanos,
    pub windows: Vec<WindowSettings>,
}

/// One window of the provider's; what is absent must be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowSettings {
    pub name: Option<String>,
    pub limit: Option<u64>,
    pub interval: Option<Nanos>,
    pub kind: WindowKind,
}

impl Default for AdaptiveSettings {
    fn default() -> Self {
        let AdaptiveDraft { parser, threshold, history, min_samples, short_window, .. } =
            AdaptiveDraft::DEFAULT;
        AdaptiveSettings { parser, threshold, history, min_samples, short_window, windows: Vec::new() }
    }
}

impl Default for WindowSettings {
    fn default() -> Self {
        WindowSettings { name: None, limit: None, interval: None, kind: WindowKind::Fixed }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            epoch_ns: 0,
            provider: None,
            concurrency: None,
            concurrency_background: None,
            fairness: Fairness::Process,
            background_share: 0,
            count_network_errors: true,
            mode: Mode::Enforce,
            priorities: true,
            window: OutcomeWindow::DEFAULT,
            kind: BreakerKind::None,
            breaker: Breaker::DEFAULT,
            backoff: Backoff::DEFAULT,
            jitter: Jitter::Full,
            adaptive: None,
            rules: Vec::new(),
        }
    }
}

impl Settings {
    /// The settings that give this policy.
    pub fn of(policy: &Policy) -> Settings {
        let units: Vec<_> = policy.units().collect();
        let rule = |rule| RuleSettings::of(rule, units[usize::from(rule.unit)].as_str());
        let queueing = policy.queueing();
        Settings {
            epoch_ns: 0,
            provider: Some(policy.provider().as_str().to_owned()),
            concurrency: policy.concurrency().map(u64::from),
            concurrency_background: policy.concurrency_background().map(u64::from),
            fairness: queueing.fairness,
            background_share: u64::from(queueing.background_share),
            count_network_errors: policy.breaker().counts_network_errors(),
            mode: if policy.is_passthrough() { Mode::Passthrough } else { Mode::Enforce },
            priorities: queueing.priorities,
            window: policy.window(),
            kind: policy.breaker().kind(),
            breaker: policy.breaker(),
            backoff: policy.backoff(),
            jitter: policy.backoff().jitter(),
            adaptive: policy.adaptive().map(|adaptive| AdaptiveSettings {
                parser: adaptive.parser,
                threshold: adaptive.threshold,
                history: adaptive.history,
                min_samples: adaptive.min_samples,
                short_window: adaptive.short_window,
                windows: adaptive
                    .windows()
                    .map(|window| WindowSettings {
                        name: Some(window.name.as_str().to_owned()),
                        limit: Some(window.limit),
                        interval: Some(window.interval),
                        kind: window.kind,
                    })
                    .collect(),
            }),
            rules: policy.rules().iter().map(rule).collect(),
        }
    }

    /// Judges them.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        let rules: Vec<RuleDraft<'_>> = self.rules.iter().map(RuleSettings::draft).collect();
        let windows = self.adaptive.iter().flat_map(|adaptive| &adaptive.windows).enumerate();
        let windows = windows.map(|(i, window)| window.draft(i)).collect::<Result<Vec<_>, _>>()?;
        Policy::new(&PolicyDraft {
            provider: self.provider.as_deref().unwrap_or(PolicyDraft::DEFAULT.provider),
            concurrency: self.concurrency,
            concurrency_background: self.concurrency_background,
            fairness: self.fairness,
            background_share: self.background_share,
            rules: &rules,
            priorities: self.priorities,
            passthrough: self.mode == Mode::Passthrough,
            window: self.window,
            breaker: self.breaker.with_kind(self.kind).with_network_errors(self.count_network_errors),
            backoff: self.backoff.with_jitter(self.jitter),
            adaptive: self.adaptive.as_ref().map(|adaptive| AdaptiveDraft {
                parser: adaptive.parser,
                threshold: adaptive.threshold,
                history: adaptive.history,
                min_samples: adaptive.min_samples,
                short_window: adaptive.short_window,
                windows: &windows,
            }),
        })
    }

    /// Reads one key of the table, for element `i` where it is one of a list. The error says what is wrong with the
    /// value; the key is the caller's to name.
    pub fn assign(&mut self, key: &KeyInfo, i: usize, given: &Given<'_>) -> Result<(), String> {
        let value = key.kind.read(given)?;
        match self.field(key.key, i) {
            Some(field) => field.put(value).map_err(|()| format!("must be {}", key.kind.range())),
            None => Err("is not a setting of this limiter".to_owned()),
        }
    }

    /// The same in a valid configuration, where the new value takes the place of one that excludes it.
    /// A burst that nobody chose follows its limit, and so does one that was as large.
    pub fn replace(&mut self, key: &KeyInfo, i: usize, given: &Given<'_>) -> Result<(), String> {
        let before = self.rules.get(i).and_then(|rule| rule.limit);
        self.assign(key, i, given)?;
        match (self.rules.get_mut(i), key.key) {
            (Some(rule), "rules.N.limit") => {
                if let Some(limit) = std::mem::replace(&mut rule.limit, before) {
                    rule.change_limit(limit);
                }
            }
            (Some(rule), "rules.N.burst") => (rule.tau, rule.burst_from) = (None, BurstFrom::Given),
            (Some(rule), "rules.N.tau") if rule.algorithm == Algorithm::Gcra => rule.burst = None,
            _ => {}
        }
        Ok(())
    }

    /// Every setting that has a value, as its key of the table, its element and its value as people write it.
    pub fn each(&mut self) -> Vec<(&'static KeyInfo, usize, String)> {
        let windows = self.adaptive.as_ref().map_or(0, |adaptive| adaptive.windows.len());
        let (plain, listed): (Vec<&'static KeyInfo>, Vec<&'static KeyInfo>) =
            keys().iter().partition(|key| key.list().is_none());
        let mut all: Vec<_> = plain.into_iter().map(|key| (key, 0)).collect();
        for (list, count) in [("rules", self.rules.len()), ("adaptive.windows", windows)] {
            let of_list = |i| listed.iter().filter(|key| key.list() == Some(list)).map(move |key| (*key, i));
            all.extend((0..count).flat_map(of_list));
        }
        let written = |(key, i): (&'static KeyInfo, usize)| {
            let text = self.field(key.key, i)?.text(key.kind)?;
            Some((key, i, text))
        };
        all.into_iter().filter_map(written).collect()
    }
}

impl WindowSettings {
    fn draft(&self, i: usize) -> Result<PaceWindowDraft<'_>, PolicyError> {
        let absent = |name| PolicyError::Conflict {
            key: Key { within: Some(("adaptive.windows", i)), name },
            problem: "must be given",
        };
        Ok(PaceWindowDraft {
            name: self.name.as_deref().ok_or(absent("name"))?,
            limit: self.limit.ok_or(absent("limit"))?,
            interval: self.interval.ok_or(absent("interval"))?,
            kind: self.kind,
        })
    }
}
