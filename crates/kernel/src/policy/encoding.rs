//! A policy encoded as words, as it was configured. The effective limits are derived from it: see
//! `breaker/effective.rs`.
//!
//! ```text
//! word
//!   0       number of rules | units << 8 | passthrough << 16
//!   1       concurrency | background << 32, 0 = none
//!   2       queueing, see `Queueing`
//!   3       zero
//!   4..6    outcome window
//!   6..23   breaker
//!  23..29   backoff
//!  29..32   adaptive
//!  32..36   provider
//!  36..52   unit names, 4 words each
//!  52..132  rules, 10 words each: name (4), algorithm | unit << 8 | burst mode << 16 | origin of the burst << 24 |
//!           log room << 32, limit period burst tau reserve
//! 132..188  adaptive windows, 7 words each: name (4) limit interval kind
//! ```

use super::adaptive::{Adaptive, MAX_WINDOWS, PACE_WINDOW_WORDS, PaceWindowDraft};
use super::backoff::BACKOFF_WORDS;
use super::health::BREAKER_WORDS;
use super::name::{NAME_WORDS, Name};
use super::{
    Algorithm, BurstFrom, BurstMode, Policy, PolicyDraft, PolicyError, Queueing, Rule, RuleDraft,
    StoredBackoff, StoredBreaker, StoredWindow, WindowKind,
};
use crate::time::Nanos;
use crate::{MAX_RULES, MAX_UNITS};
use core::time::Duration;

/// Number of words of an encoded policy.
pub const POLICY_WORDS: usize = PACE_WINDOWS_AT + MAX_WINDOWS * PACE_WINDOW_WORDS;

/// Word index of the queueing settings.
pub const QUEUEING_AT: usize = 2;
/// Word index of the outcome window.
pub const WINDOW_AT: usize = 4;
/// Word index of the breaker.
pub const BREAKER_AT: usize = 6;
/// Word index of the backoff.
pub const BACKOFF_AT: usize = BREAKER_AT + BREAKER_WORDS;
/// Word index of the settings for the pace from response headers.
pub const ADAPTIVE_AT: usize = BACKOFF_AT + BACKOFF_WORDS;
/// Word index of the provider's name.
pub const PROVIDER_AT: usize = ADAPTIVE_AT + 3;
/// Word index of the units' names.
pub const UNITS_AT: usize = PROVIDER_AT + NAME_WORDS;
/// Word index of the rules.
pub const RULES_AT: usize = UNITS_AT + MAX_UNITS * NAME_WORDS;
/// Number of words of a rule.
pub const RULE_POLICY_WORDS: usize = NAME_WORDS + 6;
/// Word index of the provider's windows.
pub const PACE_WINDOWS_AT: usize = RULES_AT + MAX_RULES * RULE_POLICY_WORDS;

const _: () = assert!(PROVIDER_AT == 32 && RULES_AT == 52 && POLICY_WORDS == 188);

/// Read access to the words of a policy. All values that are read are in range, even if the words are damaged.
pub trait PolicyWords {
    /// The words from `at` on. `at` is below [`POLICY_WORDS`].
    fn policy<const N: usize>(&self, at: usize) -> [u64; N];

    /// The maximum number of calls in flight, and of background calls among them. 0 means any number.
    fn permits(&self) -> (u32, u32) {
        let [word] = self.policy(1);
        (word as u32, (word >> 32) as u32)
    }

    /// Whether the limiter never refuses a call.
    #[inline]
    fn is_passthrough(&self) -> bool {
        let [word] = self.policy(0);
        word >> 16 & 1 == 1
    }

    /// The outcome window.
    fn window_policy(&self) -> StoredWindow {
        bytemuck::cast::<[u64; 2], _>(self.policy(WINDOW_AT))
    }

    /// The breaker.
    fn breaker_policy(&self) -> StoredBreaker {
        bytemuck::cast::<[u64; BREAKER_WORDS], _>(self.policy(BREAKER_AT))
    }

    /// The backoff.
    fn backoff_policy(&self) -> StoredBackoff {
        bytemuck::cast::<[u64; BACKOFF_WORDS], _>(self.policy(BACKOFF_AT))
    }

    /// The settings for the pace from response headers, if it is on.
    fn adaptive_policy(&self) -> Option<Adaptive> {
        Adaptive::from_words(self.policy(ADAPTIVE_AT), |i| {
            self.policy(PACE_WINDOWS_AT + i * PACE_WINDOW_WORDS)
        })
    }

    /// Whether response headers set the pace.
    #[inline]
    fn is_adaptive(&self) -> bool {
        let [head] = self.policy(ADAPTIVE_AT);
        head & 1 == 1
    }

    /// Whether the limiter has priorities.
    fn has_priorities(&self) -> bool {
        let [word] = self.policy(QUEUEING_AT);
        Queueing::from_word(word).priorities
    }

    /// The name of a rule, if there is a rule with that index.
    fn rule_name(&self, rule: usize) -> Option<Name> {
        let [counts] = self.policy(0);
        if rule >= usize::from(counts as u8).min(MAX_RULES) {
            return None;
        }
        Name::from_words(self.policy(RULES_AT + rule * RULE_POLICY_WORDS))
    }

    /// The first rule, if there is one. Its numbers are safe to compute with, even if the words are damaged.
    fn first_rule(&self) -> Option<FirstRule> {
        let [counts] = self.policy(0);
        let [head, limit, period, burst, tau, reserve] = self.policy(RULES_AT + NAME_WORDS);
        let _ = tau;
        if counts as u8 == 0 {
            return None;
        }
        let algorithm = Algorithm::from_code(head as u8)?;
        let reserve = if self.has_priorities() { reserve } else { 0 };
        Some(FirstRule {
            algorithm,
            unit: (head >> 8) as u8 % MAX_UNITS as u8,
            limit: limit.max(1),
            period: Nanos(period.max(1)),
            burst: burst.max(1),
            reserve,
        })
    }
}

/// The numbers of the first rule, which the breaker may control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstRule {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The index of the unit that the rule counts.
    pub unit: u8,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Nanos,
    /// The capacity in units.
    pub burst: u64,
    /// Units of the capacity that background calls must leave.
    pub reserve: u64,
}

impl PolicyWords for [u64; POLICY_WORDS] {
    fn policy<const N: usize>(&self, at: usize) -> [u64; N] {
        std::array::from_fn(|i| self.get(at + i).copied().unwrap_or(0))
    }
}

impl Policy {
    /// Encodes the policy as the words that a segment stores.
    #[doc(hidden)]
    pub fn encode(&self) -> [u64; POLICY_WORDS] {
        let mut words = [0; POLICY_WORDS];
        let mut put = |at: usize, values: &[u64]| words[at..at + values.len()].copy_from_slice(values);
        let counts = self.count as u64 | (self.units().count() as u64) << 8;
        put(0, &[counts | u64::from(self.passthrough) << 16]);
        let most = |n: Option<u32>| u64::from(n.unwrap_or(0));
        put(1, &[most(self.concurrency) | most(self.concurrency_background) << 32]);
        put(QUEUEING_AT, &[self.queueing.to_word()]);
        put(WINDOW_AT, &bytemuck::cast::<_, [u64; 2]>(StoredWindow::from(self.window)));
        put(BREAKER_AT, &bytemuck::cast::<_, [u64; BREAKER_WORDS]>(StoredBreaker::from(self.breaker)));
        put(BACKOFF_AT, &bytemuck::cast::<_, [u64; BACKOFF_WORDS]>(StoredBackoff::from(self.backoff)));
        if let Some(adaptive) = self.adaptive {
            let (numbers, windows) = adaptive.to_words();
            put(ADAPTIVE_AT, &numbers);
            for (i, window) in windows.iter().enumerate() {
                put(PACE_WINDOWS_AT + i * PACE_WINDOW_WORDS, window);
            }
        }
        put(PROVIDER_AT, &self.provider().to_words());
        for (i, unit) in self.units().enumerate() {
            put(UNITS_AT + i * NAME_WORDS, &unit.to_words());
        }
        for (i, rule) in self.rules().iter().enumerate() {
            let at = RULES_AT + i * RULE_POLICY_WORDS;
            let mode = u64::from(rule.burst_mode == BurstMode::FixedWindow);
            let head = rule.algorithm as u64 | u64::from(rule.unit) << 8 | mode << 16;
            let head = head | (rule.burst_from as u64) << 24 | rule.log_room << 32;
            let (period, tau) = (Nanos::of(rule.period).0, Nanos::of(rule.tau.unwrap_or_default()).0);
            put(at, &rule.name.to_words());
            put(at + NAME_WORDS, &[head, rule.limit, period, rule.burst, tau, rule.reserve]);
        }
        words
    }

    #[doc(hidden)]
    /// Decodes a policy. Any words give either a valid policy that encodes to the same words, or an error.
    pub fn decode(words: &[u64; POLICY_WORDS]) -> Result<Policy, PolicyError> {
        let damaged = |word| PolicyError::Damaged { word };
        let name = |at: usize| Name::from_words(words.policy(at)).ok_or(damaged(at));
        let (rule_count, unit_count) = (words[0] as u8 as usize, (words[0] >> 8) as u8 as usize);
        if rule_count > MAX_RULES || unit_count > MAX_UNITS {
            return Err(damaged(0));
        }
        let queueing = Queueing::from_word(words[QUEUEING_AT]);
        let provider = name(PROVIDER_AT)?;
        let mut units = [provider; MAX_UNITS];
        for (i, unit) in units.iter_mut().enumerate().take(unit_count) {
            *unit = name(UNITS_AT + i * NAME_WORDS)?;
        }
        let mut rules = [None; MAX_RULES];
        for (i, slot) in rules.iter_mut().enumerate().take(rule_count) {
            let at = RULES_AT + i * RULE_POLICY_WORDS;
            let [head, limit, period, burst, tau, reserve] = words.policy(at + NAME_WORDS);
            let window_mode = head >> 16 & 1 == 1;
            *slot = Some(Rule {
                name: name(at)?,
                algorithm: Algorithm::from_code(head as u8).ok_or(damaged(at + NAME_WORDS))?,
                unit: (head >> 8) as u8 % MAX_UNITS as u8,
                limit,
                period: Duration::from_nanos(period),
                burst,
                burst_from: BurstFrom::from_code((head >> 24) as u8),
                tau: (tau > 0).then_some(Duration::from_nanos(tau)),
                burst_mode: if window_mode { BurstMode::FixedWindow } else { BurstMode::GcraTau },
                reserve,
                log_room: head >> 32,
            });
        }
        // Stored policies go through the same validation as policies that a user writes.
        let drafts: [RuleDraft<'_>; MAX_RULES] = std::array::from_fn(|i| match &rules[i] {
            Some(rule) => rule.draft(units[usize::from(rule.unit)].as_str()),
            None => RuleDraft::new(Algorithm::Gcra, 1, Duration::from_nanos(1)),
        });
        let adaptive = words.adaptive_policy();
        let nothing =
            PaceWindowDraft { name: "", limit: 0, interval: Duration::ZERO, kind: WindowKind::Fixed };
        let mut windows = [nothing; MAX_WINDOWS];
        let mut count = 0;
        for (slot, window) in windows.iter_mut().zip(adaptive.iter().flat_map(Adaptive::windows)) {
            let (limit, interval, kind) = (window.limit, window.interval(), window.kind);
            *slot = PaceWindowDraft { name: window.name.as_str(), limit, interval, kind };
            count += 1;
        }
        let bound = |n: u32| Some(u64::from(n)).filter(|n| *n > 0);
        let (concurrency, background) = words.permits();
        let policy = Policy::new(&PolicyDraft {
            provider: provider.as_str(),
            concurrency: bound(concurrency),
            concurrency_background: bound(background),
            fairness: queueing.fairness,
            background_share: u64::from(queueing.background_share),
            rules: &drafts[..rule_count],
            priorities: queueing.priorities,
            passthrough: words.is_passthrough(),
            window: words.window_policy().into(),
            breaker: words.breaker_policy().into(),
            backoff: words.backoff_policy().into(),
            adaptive: adaptive.as_ref().map(|adaptive| adaptive.draft(&windows[..count])),
        })?;
        match policy.encode().iter().zip(words).position(|(ours, theirs)| ours != theirs) {
            None => Ok(policy),
            Some(word) => Err(damaged(word)),
        }
    }
}
