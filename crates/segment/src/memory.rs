//! The kernel's view of a segment: reads copy small values out, and writes go through the journal.

use super::journal::Transaction;
use super::layout::{
    ANCHOR_TIME, ANCHOR_WALL, CORE, EFFECTIVE, LATEST_TIME, PLACES, POLICY, POLICY_CHECKSUM, PROGRESS,
    TURN_TABLE, UNSET_BEFORE, WAITING, WALL_SET_AT, WORDS, checksum, entry_base, health_state_word,
    rule_base, slot, slot_base,
};
use super::lock::Os;
use super::words::Cells;
use crate::sync::Ordering;
use shmlimit_kernel::breaker::terms_range;
use shmlimit_kernel::policy::{POLICY_WORDS, PolicyWords, Queueing};
use shmlimit_kernel::queue::{
    ENTRY_HEAD_WORDS, ENTRY_WORDS, Entry, EntryHead, PROGRESS_WORDS, PlaceSet, Progress, TURN_WORDS, TURNS,
    Turn, WAITERS, WaiterCounts,
};
use shmlimit_kernel::state::{Core, General, Held, Memory, RULE_WORDS, RuleState, View};
use shmlimit_kernel::terms::Terms;
use shmlimit_kernel::time::Time;
use std::mem::offset_of;

/// Converts the words of a rule's state to the form in which they are stored, or back: all but the last are
/// inverted. A new rule's state is zero, and its first words are [`UNKNOWN`](shmlimit_kernel::state::UNKNOWN) only
/// if they are damaged. So zeros in the file are not taken for an unused rule: they admit nothing.
#[inline(always)]
pub(crate) const fn inverted<const N: usize>(mut words: [u64; N]) -> [u64; N] {
    let mut i = 0;
    while i < N && i + 1 < RULE_WORDS {
        words[i] = !words[i];
        i += 1;
    }
    words
}

/// Reads the state without the lock. It is consistent only inside [`super::journal::read`].
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub Cells<'a>);

impl PolicyWords for Reader<'_> {
    #[inline(always)]
    fn policy<const N: usize>(&self, at: usize) -> [u64; N] {
        self.0.load_array(POLICY + at.min(POLICY_WORDS))
    }
}

impl View for Reader<'_> {
    #[inline(always)]
    fn general(&self) -> General {
        General::from_words(self.0.load_array(EFFECTIVE))
    }

    #[inline(always)]
    fn next_check(&self) -> Time {
        Time(self.0.load(EFFECTIVE + 3))
    }

    #[inline(always)]
    fn health_state<const N: usize>(&self, at: usize) -> [u64; N] {
        self.0.load_array(health_state_word(at))
    }

    #[inline]
    fn log(&self, index: usize) -> u64 {
        self.0.at_any(WORDS.saturating_add(index)).load(Ordering::Relaxed)
    }

    #[inline]
    fn wall(&self, now: Time) -> u64 {
        let (wall, time) = (self.0.load(ANCHOR_WALL), self.0.load(ANCHOR_TIME));
        // If the anchor is damaged, return a date before all others, so that no calendar window begins by it.
        if wall == 0 || time == 0 { 0 } else { now.0.wrapping_add(wall.wrapping_sub(time)) }
    }

    #[inline]
    fn is_policy_whole(&self) -> bool {
        let policy: [u64; POLICY_WORDS] = self.0.load_array(POLICY);
        checksum(policy) == self.0.load(POLICY_CHECKSUM)
    }

    #[inline]
    fn wall_set_at(&self) -> Time {
        // A clock that has lost the time shows no boundary. A clock that was never set is used as it is, because
        // there is no better one.
        let lost = self.0.load(ANCHOR_WALL) < UNSET_BEFORE && self.0.load(LATEST_TIME) != 0;
        Time(if lost { u64::MAX } else { self.0.load(WALL_SET_AT) })
    }

    #[inline(always)]
    fn terms_words<const N: usize>(&self, rule: usize, from: usize) -> [u64; N] {
        self.0.load_array(EFFECTIVE + terms_range(rule).start + from)
    }

    #[inline(always)]
    fn core(&self) -> Core {
        Core::from_words(self.0.load_array(CORE))
    }

    #[inline(always)]
    fn rule_words<const N: usize>(&self, rule: usize) -> [u64; N] {
        inverted(self.0.load_array(rule_base(rule)))
    }

    #[inline(always)]
    fn held(&self, index: usize) -> Held {
        Held::from_word(self.0.load(slot_base(index) + slot::HELD))
    }

    #[inline]
    fn held_since(&self, index: usize) -> Time {
        Time(self.0.load(slot_base(index) + slot::HELD_SINCE))
    }

    #[inline(always)]
    fn waiting(&self) -> WaiterCounts {
        WaiterCounts(self.0.load(WAITING))
    }

    #[inline]
    fn queueing(&self) -> Queueing {
        Queueing::from_word(self.0.load(EFFECTIVE + 2))
    }

    #[inline]
    fn progress(&self) -> Progress {
        bytemuck::cast::<[u64; PROGRESS_WORDS], _>(self.0.load_array(PROGRESS))
    }

    #[inline]
    fn places(&self, block: usize) -> PlaceSet {
        PlaceSet(self.0.load(PLACES + block % (WAITERS / 64)))
    }

    #[inline]
    fn entry_head(&self, place: usize) -> EntryHead {
        bytemuck::cast::<[u64; ENTRY_HEAD_WORDS], _>(self.0.load_array(entry_base(place)))
    }

    #[inline]
    fn entry(&self, place: usize) -> Entry {
        bytemuck::cast::<[u64; ENTRY_WORDS], _>(self.0.load_array(entry_base(place)))
    }

    #[inline]
    fn turn(&self, index: usize) -> Turn {
        bytemuck::cast::<[u64; TURN_WORDS], _>(self.0.load_array(TURN_TABLE + index % TURNS * TURN_WORDS))
    }
}

impl<O: Os> PolicyWords for Transaction<'_, O> {
    #[inline(always)]
    fn policy<const N: usize>(&self, at: usize) -> [u64; N] {
        Reader(self.cells()).policy(at)
    }
}

/// Implements reads in a transaction with those of [`Reader`].
macro_rules! read_as_reader {
    ($($(#[$inline:meta])? fn $name:ident $([$n:ident])? ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl<O: Os> View for Transaction<'_, O> {
            $($(#[$inline])?
            fn $name $(<const $n: usize>)? (&self $(, $argument: $type)*) -> $result {
                Reader(self.cells()).$name($($argument),*)
            })*
        }
    };
}

read_as_reader! {
    #[inline(always)] fn general() -> General;
    #[inline(always)] fn next_check() -> Time;
    #[inline(always)] fn health_state[N](at: usize) -> [u64; N];
    #[inline] fn log(index: usize) -> u64;
    fn wall(now: Time) -> u64;
    fn is_policy_whole() -> bool;
    fn wall_set_at() -> Time;
    #[inline(always)] fn terms_words[N](rule: usize, from: usize) -> [u64; N];
    #[inline(always)] fn core() -> Core;
    #[inline(always)] fn rule_words[N](rule: usize) -> [u64; N];
    #[inline(always)] fn held(index: usize) -> Held;
    fn held_since(index: usize) -> Time;
    #[inline(always)] fn waiting() -> WaiterCounts;
    fn queueing() -> Queueing;
    fn progress() -> Progress;
    #[inline] fn places(block: usize) -> PlaceSet;
    #[inline] fn entry_head(place: usize) -> EntryHead;
    #[inline] fn entry(place: usize) -> Entry;
    #[inline] fn turn(index: usize) -> Turn;
}

impl<O: Os> Memory for Transaction<'_, O> {
    fn set_general(&mut self, general: General) {
        self.write_array(EFFECTIVE, general.to_words());
    }

    fn set_next_check(&mut self, next_check: Time) {
        self.write(EFFECTIVE + 3, next_check.0);
    }

    fn set_terms(&mut self, rule: usize, terms: Terms) {
        self.write_array(EFFECTIVE + terms_range(rule).start, terms.to_words());
    }

    fn set_queueing(&mut self, queueing: Queueing) {
        self.write(EFFECTIVE + 2, queueing.to_word());
    }

    #[inline(always)]
    fn set_health_state<const N: usize>(&mut self, at: usize, words: [u64; N]) {
        // In line only for single words, which are what a success changes.
        match words.as_slice() {
            [word] => self.write(health_state_word(at), *word),
            _ => self.write_words(health_state_word(at), &words),
        }
    }

    #[inline(always)]
    fn set_log(&mut self, index: usize, word: u64) {
        let index = WORDS.saturating_add(index);
        // There is nothing beyond the file. Only damaged terms point there.
        if index < self.cells().count() {
            self.write_log(index, word);
        }
    }

    #[inline(always)]
    fn set_core(&mut self, core: Core) {
        self.write_array(CORE, core.to_words());
    }

    #[inline(always)]
    fn set_rule(&mut self, rule: usize, state: RuleState) {
        self.write_array(rule_base(rule), inverted(state.0));
    }

    #[inline(always)]
    fn set_held(&mut self, index: usize, held: Held) {
        let base = slot_base(index);
        if held.total > 0 && self.held(index).total == 0 {
            let now = self.core().latest;
            self.write(base + slot::HELD_SINCE, now.0);
        }
        self.write(base + slot::HELD, held.to_word());
    }

    #[inline(always)]
    fn replace_core(&mut self, before: Core, after: Core) {
        self.replace_array(CORE, before.to_words(), after.to_words());
    }

    #[inline(always)]
    fn replace_rule(&mut self, rule: usize, before: RuleState, after: RuleState) {
        self.replace_array(rule_base(rule), inverted(before.0), inverted(after.0));
    }

    #[inline(always)]
    fn replace_held(&mut self, index: usize, before: Held, after: Held, now: Time) {
        let base = slot_base(index);
        if after.total > 0 && before.total == 0 {
            self.write(base + slot::HELD_SINCE, now.0);
        }
        self.replace(base + slot::HELD, before.to_word(), after.to_word());
    }

    fn set_waiting(&mut self, waiting: WaiterCounts) {
        self.write(WAITING, waiting.0);
    }

    fn set_progress(&mut self, progress: Progress) {
        self.write_array(PROGRESS, bytemuck::cast::<_, [u64; PROGRESS_WORDS]>(progress));
    }

    fn set_places(&mut self, block: usize, places: PlaceSet) {
        self.write(PLACES + block % (WAITERS / 64), places.0);
    }

    fn set_entry(&mut self, place: usize, entry: &Entry) {
        self.write_array(entry_base(place), bytemuck::cast::<_, [u64; ENTRY_WORDS]>(*entry));
    }

    fn set_wake_at(&mut self, place: usize, wake_at: Time) {
        self.write(entry_base(place) + offset_of!(EntryHead, wake_at) / 8, wake_at.0);
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        self.write(entry_base(place) + offset_of!(EntryHead, tag) / 8, tag);
    }

    fn set_turn(&mut self, index: usize, turn: Turn) {
        let base = TURN_TABLE + index % TURNS * TURN_WORDS;
        self.write_array(base, bytemuck::cast::<_, [u64; TURN_WORDS]>(turn));
    }

    fn room(&self) -> usize {
        Transaction::room(self)
    }
}
