//! A limiter in private memory, for tests and simulation.

use super::MAX_RULES;
use super::policy::{POLICY_WORDS, Policy, QUEUEING_AT, terms_range};
use super::queue::{Entry, Places, Progress, Standing, TURNS, Turn, WAITERS, Waiting};
use super::state::{Core, General, Held, Memory, Queueing, RuleState, View};
use super::terms::Terms;
use super::time::Time;

/// How many participants a [`LocalMemory`] has room for.
pub const LOCAL_SLOTS: usize = 64;

/// A policy and its state in private memory. A slot beyond [`LOCAL_SLOTS`] shares the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMemory {
    policy: [u64; POLICY_WORDS],
    core: Core,
    rules: [RuleState; MAX_RULES],
    held: [Held; LOCAL_SLOTS],
    waiting: Waiting,
    progress: Progress,
    places: [Places; WAITERS / 64],
    /// As many as have been used.
    entries: Vec<Entry>,
    turns: Vec<Turn>,
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
            waiting: Waiting::default(),
            progress: Progress::default(),
            places: [Places::default(); WAITERS / 64],
            entries: Vec::new(),
            turns: Vec::new(),
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

    #[inline]
    fn waiting(&self) -> Waiting {
        self.waiting
    }

    fn queueing(&self) -> Queueing {
        Queueing::from_word(self.policy[QUEUEING_AT])
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn places(&self, block: usize) -> Places {
        self.places[block.min(WAITERS / 64 - 1)]
    }

    fn standing(&self, place: usize) -> Standing {
        self.entry(place).standing
    }

    fn entry(&self, place: usize) -> Entry {
        self.entries.get(place).copied().unwrap_or_default()
    }

    fn turn(&self, index: usize) -> Turn {
        self.turns.get(index).copied().unwrap_or_default()
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

    fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    fn set_places(&mut self, block: usize, places: Places) {
        self.places[block.min(WAITERS / 64 - 1)] = places;
    }

    fn set_entry(&mut self, place: usize, entry: &Entry) {
        *at(&mut self.entries, place.min(WAITERS - 1)) = *entry;
    }

    fn set_wake_at(&mut self, place: usize, wake_at: Time) {
        at(&mut self.entries, place.min(WAITERS - 1)).standing.wake_at = wake_at;
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        at(&mut self.entries, place.min(WAITERS - 1)).standing.tag = tag;
    }

    fn set_turn(&mut self, index: usize, turn: Turn) {
        *at(&mut self.turns, index.min(TURNS - 1)) = turn;
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

fn at<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}
