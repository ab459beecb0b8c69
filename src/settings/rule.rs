//! One rule as it was written, and the defaults for missing values (R9).

use crate::rate::Rate;
use shmlimit_kernel::policy::{BurstFrom, MAX_AMOUNT};
use shmlimit_kernel::{Algorithm, BurstMode, MAX_LOG, Rule, RuleDraft};
use std::time::Duration;

/// The default limit and period of a bucket. Its default burst is ten.
const BUCKET: (u64, Duration) = (1, Duration::from_secs(1));
const BUCKET_BURST: u64 = 10;
/// The default limit and period of a window: ten per minute.
const WINDOW: (u64, Duration) = (10, Duration::from_secs(60));

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    pub name: Option<String>,
    pub unit: Option<String>,
    pub limit: Option<u64>,
    pub period: Option<Duration>,
    pub burst_mode: Option<BurstMode>,
    /// All other settings of the rule.
    pub draft: RuleDraft<'static>,
}

impl Default for RuleSettings {
    fn default() -> Self {
        RuleSettings::new(Algorithm::SlidingCounter)
    }
}

impl RuleSettings {
    /// A rule with this algorithm and defaults for everything else.
    pub fn new(algorithm: Algorithm) -> RuleSettings {
        let draft = RuleDraft::new(algorithm, 0, Duration::ZERO);
        RuleSettings { name: None, unit: None, limit: None, period: None, burst_mode: None, draft }
    }

    pub fn of(rule: &Rule, unit: &str) -> RuleSettings {
        let draft = rule.draft(unit);
        RuleSettings {
            name: draft.name.map(str::to_owned),
            unit: draft.unit.map(str::to_owned),
            limit: Some(draft.limit),
            period: Some(draft.period),
            burst_mode: (draft.algorithm == Algorithm::Gcra).then_some(draft.burst_mode),
            // A new log gets the default room. An existing log keeps its room (`Policy::keeping_logs_of`).
            draft: RuleDraft { name: None, unit: None, log_room: None, ..draft },
        }
    }

    pub fn draft(&self) -> RuleDraft<'_> {
        let has_burst = self.draft.algorithm.has_burst();
        let (limit, period) = if has_burst { BUCKET } else { WINDOW };
        let is_unspecified = has_burst && self.limit.is_none() && self.draft.tau.is_none();
        RuleDraft {
            name: self.name.as_deref(),
            unit: self.unit.as_deref(),
            limit: self.limit.unwrap_or(limit),
            period: self.period.unwrap_or(period),
            burst: self.draft.burst.or(is_unspecified.then_some(BUCKET_BURST)),
            burst_from: if self.draft.burst.is_none() { BurstFrom::Limit } else { self.draft.burst_from },
            burst_mode: self.burst_mode.unwrap_or_default(),
            ..self.draft
        }
    }

    /// Admits at most the limit of `rate` in any one period (R147). A sliding log remembers each unit, up to the
    /// maximum size of a log. For a larger limit, a bucket refills more slowly, and its burst makes up the
    /// difference: burst + (limit − burst) = limit.
    pub fn within_rate(&mut self, rate: &Rate) {
        self.period = Some(rate.period);
        if rate.limit <= MAX_LOG {
            self.count_by(Algorithm::SlidingLog);
            self.limit = Some(rate.limit);
        } else {
            self.count_by(Algorithm::TokenBucket);
            self.part_burst(rate.limit);
        }
    }

    /// Uses one hundredth of a limit as the burst, and the rest as the refill.
    fn part_burst(&mut self, limit: u64) {
        // A limit that is too large keeps its value, so that the error shows it as written.
        let burst = if limit > MAX_AMOUNT { 0 } else { (limit / 100).max(1) };
        (self.limit, self.draft.burst) = (Some((limit - burst).max(1)), Some(burst.max(1)));
        (self.draft.burst_from, self.draft.tau) = (BurstFrom::Rate, None);
    }

    /// Changes the rate of a rule in use. The rule keeps its algorithm, and a configured burst stays.
    pub fn change_rate(&mut self, rate: &Rate) {
        self.period = Some(rate.period);
        match self.draft.burst_from {
            BurstFrom::Rate if self.draft.burst.is_some() => self.part_burst(rate.limit),
            _ => self.change_limit(rate.limit),
        }
    }

    /// Changes the limit of a valid rule. The burst follows if it was equal to the limit, or if it was not
    /// configured.
    pub fn change_limit(&mut self, limit: u64) {
        let was_limit = self.draft.burst.is_some() && self.draft.burst == self.limit;
        self.limit = Some(limit);
        let from = if was_limit { BurstFrom::Limit } else { self.draft.burst_from };
        if let (Some(_), Some(burst)) = (self.draft.burst, from.burst_beside(limit)) {
            self.draft.burst = Some(burst);
        }
    }

    /// Changes the algorithm. A separate capacity is removed if the new algorithm has none.
    pub fn count_by(&mut self, algorithm: Algorithm) {
        self.draft.algorithm = algorithm;
        if !algorithm.has_burst() {
            (self.draft.burst, self.draft.tau) = (None, None);
            self.draft.burst_from = BurstFrom::Given;
        }
        if algorithm != Algorithm::Gcra {
            self.burst_mode = None;
        }
    }
}
