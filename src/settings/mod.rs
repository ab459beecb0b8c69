//! A configuration as it was written, in owned form. Files, single settings and the environment change it one key
//! at a time.
//!
//! The table of keys ([`keys()`]) also says which field each key sets. Reading files, changes in a limiter in use,
//! descriptions, written files and the documentation all use this table.

mod field;
mod keys;
mod kind;
mod rule;
mod single;
mod value;

pub use keys::{KeyInfo, keys};
pub use kind::Kind;
pub(crate) use rule::RuleSettings;
pub use single::{Overrides, update};
pub(crate) use single::{called, change_rates, no_burst};
pub(crate) use value::Given;

use shmlimit_kernel::policy::{
    AdaptiveDraft, BreakerKind, BurstFrom, Jitter, Key, PaceWindow, PaceWindowDraft, WindowKind,
};
use shmlimit_kernel::{Algorithm, Policy, PolicyDraft, PolicyError, RuleDraft};
use std::time::Duration;

/// The settings as written, before validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub epoch_ns: u64,
    pub provider: Option<String>,
    pub mode: Mode,
    /// The kind of [`PolicyDraft::breaker`].
    pub kind: BreakerKind,
    pub count_network_errors: bool,
    /// The jitter of [`PolicyDraft::backoff`].
    pub jitter: Jitter,
    /// All other top-level settings. The names and lists in it are unused, because other fields hold them.
    pub draft: PolicyDraft<'static>,
    pub adaptive: Option<AdaptiveSettings>,
    pub rules: Vec<RuleSettings>,
}

shmlimit_kernel::named_enum! {
    /// Whether a refusal is enforced (R41).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Mode {
        #[default]
        Enforce => "enforce",
        Passthrough => "passthrough",
    }
    pub(crate) const fn as_str;
    impl FromStr;
    pub(crate) const NAMES;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdaptiveSettings {
    /// All settings except the windows.
    pub draft: AdaptiveDraft<'static>,
    pub windows: Vec<WindowSettings>,
}

/// One window of the provider. Values that are `None` must still be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowSettings {
    pub name: Option<String>,
    pub limit: Option<u64>,
    pub interval: Option<Duration>,
    pub kind: WindowKind,
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
            mode: Mode::Enforce,
            kind: BreakerKind::None,
            count_network_errors: true,
            jitter: Jitter::Full,
            draft: PolicyDraft::DEFAULT,
            adaptive: None,
            rules: Vec::new(),
        }
    }
}

impl Settings {
    /// The settings that result in this policy.
    pub fn of(policy: &Policy) -> Settings {
        let units: Vec<_> = policy.units().collect();
        let rule = |rule| RuleSettings::of(rule, units[usize::from(rule.unit)].as_str());
        let queueing = policy.queueing();
        Settings {
            epoch_ns: 0,
            provider: Some(policy.provider().as_str().to_owned()),
            mode: if policy.is_passthrough() { Mode::Passthrough } else { Mode::Enforce },
            kind: policy.breaker().kind(),
            count_network_errors: policy.breaker().counts_network_errors(),
            jitter: policy.backoff().jitter(),
            draft: PolicyDraft {
                concurrency: policy.concurrency().map(u64::from),
                concurrency_background: policy.concurrency_background().map(u64::from),
                fairness: queueing.fairness,
                background_share: u64::from(queueing.background_share),
                priorities: queueing.priorities,
                window: policy.window(),
                breaker: policy.breaker(),
                backoff: policy.backoff(),
                ..PolicyDraft::DEFAULT
            },
            adaptive: policy.adaptive().map(|adaptive| AdaptiveSettings {
                draft: adaptive.draft(&[]),
                windows: adaptive.windows().map(WindowSettings::of).collect(),
            }),
            rules: policy.rules().iter().map(rule).collect(),
        }
    }

    /// Validates the settings.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        let rules: Vec<RuleDraft<'_>> = self.rules.iter().map(RuleSettings::draft).collect();
        let windows = self.adaptive.iter().flat_map(|adaptive| &adaptive.windows).enumerate();
        let windows = windows.map(|(i, window)| window.draft(i)).collect::<Result<Vec<_>, _>>()?;
        let PolicyDraft { breaker, backoff, .. } = self.draft;
        Policy::new(&PolicyDraft {
            provider: self.provider.as_deref().unwrap_or(self.draft.provider),
            passthrough: self.mode == Mode::Passthrough,
            breaker: breaker.with_kind(self.kind).with_network_errors(self.count_network_errors),
            backoff: backoff.with_jitter(self.jitter),
            adaptive: self
                .adaptive
                .as_ref()
                .map(|adaptive| AdaptiveDraft { windows: &windows, ..adaptive.draft }),
            rules: &rules,
            ..self.draft
        })
    }

    /// Sets one key of the table, for element `i` if the key belongs to a list. The error says what is wrong with
    /// the value, and the caller adds the key.
    pub fn assign(&mut self, key: &KeyInfo, i: usize, given: &Given<'_>) -> Result<(), String> {
        let value = key.kind.read(given)?;
        match (key.field)(self, i) {
            Some(field) => field.put(value).map_err(|()| format!("must be {}", key.kind.range())),
            None => Err("is not a setting of this limiter".to_owned()),
        }
    }

    /// Sets one key of a valid configuration. The new value replaces a value that excludes it. A burst follows its
    /// limit if it was not configured, or if it was equal to the limit.
    pub fn replace(&mut self, key: &KeyInfo, i: usize, given: &Given<'_>) -> Result<(), String> {
        let before = self.rules.get(i).and_then(|rule| rule.limit);
        self.assign(key, i, given)?;
        match (self.rules.get_mut(i), key.key) {
            (Some(rule), "rules.N.limit") => {
                if let Some(limit) = std::mem::replace(&mut rule.limit, before) {
                    rule.change_limit(limit);
                }
            }
            (Some(rule), "rules.N.burst") => {
                (rule.draft.tau, rule.draft.burst_from) = (None, BurstFrom::Given);
            }
            (Some(rule), "rules.N.tau") if rule.draft.algorithm == Algorithm::Gcra => rule.draft.burst = None,
            _ => {}
        }
        Ok(())
    }

    /// Every setting that has a value: its key in the table, the index of its element, and its value as people
    /// write it.
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
            let text = (key.field)(self, i)?.text(key.kind)?;
            Some((key, i, text))
        };
        all.into_iter().filter_map(written).collect()
    }
}

impl WindowSettings {
    fn of(window: &PaceWindow) -> WindowSettings {
        WindowSettings {
            name: Some(window.name.as_str().to_owned()),
            limit: Some(window.limit),
            interval: Some(window.interval()),
            kind: window.kind,
        }
    }

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
