//! A limiter in private memory, for tests and simulation.

use super::MAX_RULES;
use super::policy::{POLICY_WORDS, Policy, terms_range};
use super::state::{Core, General, Held, Memory, RuleState, View};
use super::terms::Terms;

/// How many participants a [`LocalMemory`] has room for.
pub const LOCAL_SLOTS: usize = 4;

/// A policy and its state in private memory. A slot beyond [`LOCAL_SLOTS`] shares the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMemory {
    policy: [u64; POLICY_WORDS],
    core: Core,
    rules: [RuleState; MAX_RULES],
    held: [Held; LOCAL_SLOTS],
}

impl LocalMemory {
    /// A fresh limiter: buckets full, no permit out.
    pub fn new(policy: &Policy) -> LocalMemory {
        LocalMemory::from_words(policy.encode())
    }

    /// A fresh limiter under any policy words, valid or not.
    pub fn from_words(policy: [u64; POLICY_WORDS]) -> LocalMemory {
        LocalMemory {
            policy,
            core: Core::default(),
            rules: [RuleState::default(); MAX_RULES],
            held: [Held::default(); LOCAL_SLOTS],
        }
    }

    /// Puts other policy words in place and leaves the state alone; see [`super::decide::patch`].
    pub fn set_policy(&mut self, policy: &Policy) {
        self.policy = policy.encode();
    }
}

impl View for LocalMemory {
    #[inline]
    fn general(&self) -> General {
        General::from_words([self.policy[0], self.policy[1]])
    }

    #[inline]
    fn terms(&self, rule: usize) -> Terms {
        let start = terms_range(rule.min(MAX_RULES - 1)).start;
        Terms::from_words(std::array::from_fn(|i| self.policy[start + i]))
    }

    #[inline]
    fn core(&self) -> Core {
        self.core
    }

    #[inline]
    fn rule(&self, rule: usize) -> RuleState {
        self.rules[rule.min(MAX_RULES - 1)]
    }

    #[inline]
    fn held(&self, slot: usize) -> Held {
        self.held[slot.min(LOCAL_SLOTS - 1)]
    }
}

impl Memory for LocalMemory {
    #[inline]
    fn set_core(&mut self, core: Core) {
        self.core = core;
    }

    #[inline]
    fn set_rule(&mut self, rule: usize, state: RuleState) {
        self.rules[rule.min(MAX_RULES - 1)] = state;
    }

    #[inline]
    fn set_held(&mut self, slot: usize, held: Held) {
        self.held[slot.min(LOCAL_SLOTS - 1)] = held;
    }
}
