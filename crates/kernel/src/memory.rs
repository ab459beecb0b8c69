//! A limiter in private memory, for tests and simulation.

use super::breaker::{EFFECTIVE_WORDS, effective_words, terms_range};
use super::decide;
use super::health_state::HEALTH_STATE_WORDS;
use super::policy::{POLICY_WORDS, Policy, PolicyWords, Queueing};
use super::state::{
    Core, Entry, EntryHead, General, Held, Memory, PlaceSet, Progress, RuleState, TURNS, Turn, View, WAITERS,
    WaiterCounts,
};
use super::terms::Terms;
use super::time::Time;
use super::{MAX_LOG, MAX_PERMITS, MAX_RULES};

/// Number of participants that a [`LocalMemory`] has room for.
pub const LOCAL_SLOTS: usize = 64;

/// A policy and its state in private memory. All slots from [`LOCAL_SLOTS`] on share the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMemory {
    policy: [u64; POLICY_WORDS],
    effective: [u64; EFFECTIVE_WORDS],
    health_state: Vec<u64>,
    /// Only as long as the words that have been used.
    logs: Vec<u64>,
    epoch: u64,
    wall_set_at: Time,
    /// Set if only the policy bounds the permits.
    unbounded: bool,
    core: Core,
    rules: [RuleState; MAX_RULES],
    held: [Held; LOCAL_SLOTS],
    waiting: WaiterCounts,
    progress: Progress,
    places: [PlaceSet; WAITERS / 64],
    /// Only as long as the entries that have been used.
    entries: Vec<Entry>,
    turns: Vec<Turn>,
}

/// The state and the effective limits of a limiter, without its present participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// The states of the rules.
    pub rules: [RuleState; MAX_RULES],
    /// The effective limits.
    pub effective: [u64; EFFECTIVE_WORDS],
    /// The health state: breaker, gate and pace.
    pub health_state: Vec<u64>,
    /// The words of the sliding logs, as far as they have been used.
    pub logs: Vec<u64>,
}

impl LocalMemory {
    /// Extracts the state without the participants.
    pub fn into_saved_state(self) -> SavedState {
        SavedState {
            rules: self.rules,
            effective: self.effective,
            health_state: self.health_state,
            logs: self.logs,
        }
    }

    /// A fresh limiter: buckets full, no permit out, breaker in Normal. Its clock starts at the Unix epoch.
    pub fn new(policy: &Policy) -> LocalMemory {
        LocalMemory::from_words(policy.encode(), effective_words(policy))
    }

    /// A fresh limiter whose clock starts at `epoch`, in nanoseconds since the Unix epoch.
    pub fn starting_at(policy: &Policy, epoch: u64) -> LocalMemory {
        LocalMemory { epoch, ..LocalMemory::new(policy) }
    }

    /// Sets the wall clock. `epoch` is the wall time at the zero of the limiter's clock, in nanoseconds since
    /// the Unix epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.wall_set_at = self.core.latest.max(Time(1));
    }

    /// The same limiter without the bound [`MAX_PERMITS`], which applies only to segments. If the policy has no
    /// bound, any number of permits may be out.
    #[must_use]
    pub fn without_permit_bound(self) -> LocalMemory {
        LocalMemory { unbounded: true, ..self }
    }

    /// A fresh limiter from any words, valid or not.
    pub fn from_words(policy: [u64; POLICY_WORDS], effective: [u64; EFFECTIVE_WORDS]) -> LocalMemory {
        LocalMemory {
            policy,
            effective,
            health_state: vec![0; HEALTH_STATE_WORDS],
            logs: Vec::new(),
            epoch: 0,
            wall_set_at: Time::ZERO,
            unbounded: false,
            core: Core::default(),
            rules: [RuleState::default(); MAX_RULES],
            held: [Held::default(); LOCAL_SLOTS],
            waiting: WaiterCounts::default(),
            progress: Progress::default(),
            places: [PlaceSet::default(); WAITERS / 64],
            entries: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Applies another policy. The rules keep their state (R110).
    pub fn change_policy(&mut self, old: &Policy, new: &Policy, now: Time) {
        decide::tick(self, now);
        self.policy = new.encode();
        decide::patch(self, old, new, now);
    }
}

impl PolicyWords for LocalMemory {
    fn policy<const N: usize>(&self, at: usize) -> [u64; N] {
        self.policy.policy(at)
    }
}

impl View for LocalMemory {
    #[inline]
    fn general(&self) -> General {
        let general = General::from_words([self.effective[0], self.effective[1]]);
        let bounded = !self.unbounded || self.permits().0 > 0 || general.concurrency != Some(MAX_PERMITS);
        if bounded { general } else { General { concurrency: Some(u32::MAX), ..general } }
    }

    #[inline]
    fn terms_words<const N: usize>(&self, rule: usize, from: usize) -> [u64; N] {
        let start = terms_range(rule).start + from;
        std::array::from_fn(|i| self.effective[start + i])
    }

    #[inline]
    fn next_check(&self) -> Time {
        Time(self.effective[3])
    }

    fn health_state<const N: usize>(&self, at: usize) -> [u64; N] {
        std::array::from_fn(|i| self.health_state.get(at + i).copied().unwrap_or(0))
    }

    fn log(&self, index: usize) -> u64 {
        self.logs.get(index).copied().unwrap_or(0)
    }

    fn wall(&self, now: Time) -> u64 {
        self.epoch.saturating_add(now.0)
    }

    fn wall_set_at(&self) -> Time {
        self.wall_set_at
    }

    #[inline]
    fn core(&self) -> Core {
        self.core
    }

    #[inline]
    fn rule_words<const N: usize>(&self, rule: usize) -> [u64; N] {
        let RuleState(words) = self.rules[rule.min(MAX_RULES - 1)];
        std::array::from_fn(|i| words[i])
    }

    #[inline]
    fn held(&self, slot: usize) -> Held {
        self.held[slot.min(LOCAL_SLOTS - 1)]
    }

    #[inline]
    fn waiting(&self) -> WaiterCounts {
        self.waiting
    }

    fn queueing(&self) -> Queueing {
        Queueing::from_word(self.effective[2])
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn places(&self, block: usize) -> PlaceSet {
        self.places[block.min(WAITERS / 64 - 1)]
    }

    fn entry_head(&self, place: usize) -> EntryHead {
        self.entry(place).entry_head
    }

    fn entry(&self, place: usize) -> Entry {
        self.entries.get(place).copied().unwrap_or_default()
    }

    fn turn(&self, index: usize) -> Turn {
        self.turns.get(index).copied().unwrap_or_default()
    }
}

impl Memory for LocalMemory {
    fn set_general(&mut self, general: General) {
        self.effective[..2].copy_from_slice(&general.to_words());
    }

    fn set_next_check(&mut self, next_check: Time) {
        self.effective[3] = next_check.0;
    }

    fn set_terms(&mut self, rule: usize, terms: Terms) {
        self.effective[terms_range(rule.min(MAX_RULES - 1))].copy_from_slice(&terms.to_words());
    }

    fn set_queueing(&mut self, queueing: Queueing) {
        self.effective[2] = queueing.to_word();
    }

    fn set_health_state<const N: usize>(&mut self, at: usize, words: [u64; N]) {
        for (to, word) in self.health_state.iter_mut().skip(at).zip(words) {
            *to = word;
        }
    }

    fn set_log(&mut self, index: usize, word: u64) {
        // No log is longer than this. A damaged index must not cause a huge allocation.
        if index < 4 * MAX_RULES * MAX_LOG as usize {
            *at(&mut self.logs, index) = word;
        }
    }

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

    fn set_waiting(&mut self, waiting: WaiterCounts) {
        self.waiting = waiting;
    }

    fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    fn set_places(&mut self, block: usize, places: PlaceSet) {
        self.places[block.min(WAITERS / 64 - 1)] = places;
    }

    fn set_entry(&mut self, place: usize, entry: &Entry) {
        *at(&mut self.entries, place.min(WAITERS - 1)) = *entry;
    }

    fn set_wake_at(&mut self, place: usize, wake_at: Time) {
        at(&mut self.entries, place.min(WAITERS - 1)).entry_head.wake_at = wake_at;
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        at(&mut self.entries, place.min(WAITERS - 1)).entry_head.tag = tag;
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
