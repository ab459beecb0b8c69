//! One rule as it was written, and what holds where nothing was (R9).

use crate::kernel::{Algorithm, BurstMode, Nanos, Rule, RuleDraft};

/// What a bucket of which nothing is said does: ten at once, one a second.
const BUCKET: (u64, Nanos) = (1, Nanos::from_secs(1));
const BUCKET_BURST: u64 = 10;
/// What a window of which nothing is said does: ten a minute.
const WINDOW: (u64, Nanos) = (10, Nanos::from_secs(60));

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    pub name: Option<String>,
    pub algorithm: Algorithm,
    pub unit: Option<String>,
    pub limit: Option<u64>,
    pub period: Option<Nanos>,
    pub burst: Option<u64>,
    pub tau: Option<Nanos>,
    pub burst_mode: Option<BurstMode>,
    pub reserve: u64,
}

impl Default for RuleSettings {
    fn default() -> Self {
        RuleSettings {
            name: None,
            algorithm: Algorithm::SlidingCounter,
            unit: None,
            limit: None,
            period: None,
            burst: None,
            tau: None,
            burst_mode: None,
            reserve: 0,
        }
    }
}

impl RuleSettings {
    pub fn of(rule: &Rule, unit: &str) -> RuleSettings {
        let draft = rule.draft(unit);
        RuleSettings {
            name: draft.name.map(str::to_owned),
            algorithm: draft.algorithm,
            unit: draft.unit.map(str::to_owned),
            limit: Some(draft.limit),
            period: Some(draft.period),
            burst: draft.burst,
            tau: draft.tau,
            burst_mode: (draft.algorithm == Algorithm::Gcra).then_some(draft.burst_mode),
            reserve: draft.reserve,
        }
    }

    pub fn draft(&self) -> RuleDraft<'_> {
        let (limit, period) = if self.algorithm.has_burst() { BUCKET } else { WINDOW };
        let said_nothing = self.algorithm.has_burst() && self.limit.is_none() && self.tau.is_none();
        RuleDraft {
            name: self.name.as_deref(),
            algorithm: self.algorithm,
            unit: self.unit.as_deref(),
            limit: self.limit.unwrap_or(limit),
            period: self.period.unwrap_or(period),
            burst: self.burst.or(said_nothing.then_some(BUCKET_BURST)),
            tau: self.tau,
            burst_mode: self.burst_mode.unwrap_or_default(),
            reserve: self.reserve,
        }
    }

    /// Counts in another way. A capacity of its own goes where the new way has none.
    pub fn count_by(&mut self, algorithm: Algorithm) {
        self.algorithm = algorithm;
        if !algorithm.has_burst() {
            (self.burst, self.tau) = (None, None);
        }
        if algorithm != Algorithm::Gcra {
            self.burst_mode = None;
        }
    }
}
