//! A policy as words: first what decisions read, then what people read.
//!
//! ```text
//! word
//!   0       number of rules | units << 8            ┐ general, see `General`
//!   1       concurrency | background << 32, 0 = none │
//!   2       queueing, see `Queueing`                 │
//!   3..8    zero, room to grow                       ┘ hot: one line
//!   8..72   terms, 8 words each rule                   hot: one line a rule
//!  72..76   provider                                 ┐
//!  76..92   unit names, 4 words each                 │ cold
//!  92..164  rules, 9 words each:                     │
//!           name (4) limit period burst tau reserve  ┘
//! ```

use super::name::{NAME_WORDS, Name};
use super::{Algorithm, Policy, PolicyDraft, PolicyError, Rule, RuleDraft};
use crate::kernel::state::{GENERAL_WORDS, General, Queueing};
use crate::kernel::terms::{TERMS_WORDS, Terms};
use crate::kernel::time::Nanos;
use crate::kernel::{MAX_RULES, MAX_UNITS};

/// How many words an encoded policy takes.
pub const POLICY_WORDS: usize = RULES_AT + MAX_RULES * COLD_RULE_WORDS;
/// How many of them decisions read.
pub const HOT_WORDS: usize = PROVIDER_AT;

/// Where in an encoded policy the [`Queueing`] is.
pub const QUEUEING_AT: usize = GENERAL_WORDS;
const TERMS_AT: usize = 8;
const PROVIDER_AT: usize = TERMS_AT + MAX_RULES * TERMS_WORDS;
const UNITS_AT: usize = PROVIDER_AT + NAME_WORDS;
const RULES_AT: usize = UNITS_AT + MAX_UNITS * NAME_WORDS;
const COLD_RULE_WORDS: usize = NAME_WORDS + 5;

const _: () = assert!(QUEUEING_AT < TERMS_AT && POLICY_WORDS <= 224);

/// Where in an encoded policy the terms of rule `rule` are.
#[inline]
pub const fn terms_range(rule: usize) -> std::ops::Range<usize> {
    let start = TERMS_AT.saturating_add(rule.saturating_mul(TERMS_WORDS));
    start..start.saturating_add(TERMS_WORDS)
}

impl Policy {
    /// The words that a segment stores.
    pub fn encode(&self) -> [u64; POLICY_WORDS] {
        let mut words = [0; POLICY_WORDS];
        let mut put = |at: usize, values: &[u64]| words[at..at + values.len()].copy_from_slice(values);
        put(0, &self.general().to_words());
        put(QUEUEING_AT, &[self.queueing().to_word()]);
        put(PROVIDER_AT, &self.provider().to_words());
        for (i, unit) in self.units().enumerate() {
            put(UNITS_AT + i * NAME_WORDS, &unit.to_words());
        }
        for (i, rule) in self.rules().iter().enumerate() {
            put(terms_range(i).start, &Terms::of(rule).to_words());
            let at = RULES_AT + i * COLD_RULE_WORDS;
            put(at, &rule.name.to_words());
            let tau = rule.tau.unwrap_or_default();
            put(at + NAME_WORDS, &[rule.limit, rule.period.0, rule.burst, tau.0, rule.reserve]);
        }
        words
    }

    /// The policy that was encoded. Any words give a valid policy that encodes to the same words, or an error.
    pub fn decode(words: &[u64; POLICY_WORDS]) -> Result<Policy, PolicyError> {
        let damaged = |word| PolicyError::Damaged { word };
        let name = |at: usize| {
            words[at..at + NAME_WORDS].try_into().ok().and_then(Name::from_words).ok_or(damaged(at))
        };
        let general = General::from_words([words[0], words[1]]);
        let queueing = Queueing::from_word(words[QUEUEING_AT]);
        let provider = name(PROVIDER_AT)?;

        let mut units = [provider; MAX_UNITS];
        for (i, unit) in units.iter_mut().enumerate().take(general.units) {
            *unit = name(UNITS_AT + i * NAME_WORDS)?;
        }
        let mut rules = [None; MAX_RULES];
        for (i, slot) in rules.iter_mut().enumerate().take(general.rules) {
            let head = words[terms_range(i).start];
            let algorithm = Algorithm::from_code(head as u8).ok_or(damaged(terms_range(i).start))?;
            let at = RULES_AT + i * COLD_RULE_WORDS;
            let number = |n: usize| words[at + NAME_WORDS + n];
            *slot = Some(Rule {
                name: name(at)?,
                algorithm,
                unit: (head >> 8) as u8 % MAX_UNITS as u8,
                limit: number(0),
                period: Nanos(number(1)),
                burst: number(2),
                tau: Some(Nanos(number(3))).filter(|tau| tau.0 > 0),
                reserve: number(4),
            });
        }
        // One validation for all: what was stored is judged like what a user writes.
        let drafts: [RuleDraft<'_>; MAX_RULES] = std::array::from_fn(|i| match &rules[i] {
            Some(rule) => rule.draft(units[usize::from(rule.unit)].as_str()),
            None => RuleDraft::new(Algorithm::Gcra, 1, Nanos(1)),
        });
        let policy = Policy::new(&PolicyDraft {
            provider: provider.as_str(),
            concurrency: general.concurrency.map(u64::from),
            concurrency_background: general.concurrency_background.map(u64::from),
            fairness: queueing.fairness,
            background_share: u64::from(queueing.background_share),
            rules: &drafts[..general.rules],
        })?;
        match policy.encode().iter().zip(words).position(|(ours, theirs)| ours != theirs) {
            None => Ok(policy),
            Some(word) => Err(damaged(word)),
        }
    }
}
