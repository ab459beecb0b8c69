//! The kernel's view of a segment: small values copied out, changed words journaled.

use super::journal::Transaction;
use super::layout::{
    CORE, PLACES, POLICY, PROGRESS, RULES, TURN_TABLE, WAITING, entry_base, slot, slot_base,
};
use super::lock::Os;
use super::words::Cells;
use crate::kernel::policy::{QUEUEING_AT, terms_range};
use crate::kernel::queue::{
    ENTRY_WORDS, Entry, PROGRESS_WORDS, Places, Progress, STANDING_WORDS, Standing, TURN_WORDS, TURNS, Turn,
    WAITERS, Waiting,
};
use crate::kernel::state::{Core, General, Held, Memory, Queueing, RULE_WORDS, RuleState, View};
use crate::kernel::terms::Terms;
use crate::kernel::time::Time;
use std::mem::offset_of;

/// A look at the state without the lock; whole only inside [`super::journal::read`].
pub struct Reader<'a>(pub Cells<'a>);

impl View for Reader<'_> {
    #[inline(always)]
    fn general(&self) -> General {
        General::from_words(self.0.load_array(POLICY))
    }

    #[inline(always)]
    fn terms(&self, rule: usize) -> Terms {
        Terms::from_words(self.0.load_array(POLICY + terms_range(rule).start))
    }

    #[inline(always)]
    fn core(&self) -> Core {
        Core::from_words(self.0.load_array(CORE))
    }

    #[inline(always)]
    fn rule(&self, rule: usize) -> RuleState {
        RuleState(self.0.load_array(RULES + rule * RULE_WORDS))
    }

    #[inline(always)]
    fn held(&self, index: usize) -> Held {
        Held::from_word(self.0.load(slot_base(index) + slot::HELD))
    }

    #[inline(always)]
    fn waiting(&self) -> Waiting {
        Waiting(self.0.load(WAITING))
    }

    fn queueing(&self) -> Queueing {
        Queueing::from_word(self.0.load(POLICY + QUEUEING_AT))
    }

    fn progress(&self) -> Progress {
        bytemuck::cast::<[u64; PROGRESS_WORDS], _>(self.0.load_array(PROGRESS))
    }

    #[inline]
    fn places(&self, block: usize) -> Places {
        Places(self.0.load(PLACES + block % (WAITERS / 64)))
    }

    #[inline]
    fn standing(&self, place: usize) -> Standing {
        bytemuck::cast::<[u64; STANDING_WORDS], _>(self.0.load_array(entry_base(place)))
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

impl<O: Os> View for Transaction<'_, O> {
    #[inline(always)]
    fn general(&self) -> General {
        Reader(self.cells()).general()
    }

    #[inline(always)]
    fn terms(&self, rule: usize) -> Terms {
        Reader(self.cells()).terms(rule)
    }

    #[inline(always)]
    fn core(&self) -> Core {
        Reader(self.cells()).core()
    }

    #[inline(always)]
    fn rule(&self, rule: usize) -> RuleState {
        Reader(self.cells()).rule(rule)
    }

    #[inline(always)]
    fn held(&self, index: usize) -> Held {
        Reader(self.cells()).held(index)
    }

    #[inline(always)]
    fn waiting(&self) -> Waiting {
        Reader(self.cells()).waiting()
    }

    fn queueing(&self) -> Queueing {
        Reader(self.cells()).queueing()
    }

    fn progress(&self) -> Progress {
        Reader(self.cells()).progress()
    }

    #[inline]
    fn places(&self, block: usize) -> Places {
        Reader(self.cells()).places(block)
    }

    #[inline]
    fn standing(&self, place: usize) -> Standing {
        Reader(self.cells()).standing(place)
    }

    #[inline]
    fn entry(&self, place: usize) -> Entry {
        Reader(self.cells()).entry(place)
    }

    #[inline]
    fn turn(&self, index: usize) -> Turn {
        Reader(self.cells()).turn(index)
    }
}

impl<O: Os> Memory for Transaction<'_, O> {
    #[inline(always)]
    fn set_core(&mut self, core: Core) {
        self.write_array(CORE, core.to_words());
    }

    #[inline(always)]
    fn set_rule(&mut self, rule: usize, state: RuleState) {
        self.write_array(RULES + rule * RULE_WORDS, state.0);
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

    fn set_waiting(&mut self, waiting: Waiting) {
        self.write(WAITING, waiting.0);
    }

    fn set_progress(&mut self, progress: Progress) {
        self.write_array(PROGRESS, bytemuck::cast::<_, [u64; PROGRESS_WORDS]>(progress));
    }

    fn set_places(&mut self, block: usize, places: Places) {
        self.write(PLACES + block % (WAITERS / 64), places.0);
    }

    fn set_entry(&mut self, place: usize, entry: &Entry) {
        self.write_array(entry_base(place), bytemuck::cast::<_, [u64; ENTRY_WORDS]>(*entry));
    }

    fn set_wake_at(&mut self, place: usize, wake_at: Time) {
        self.write(entry_base(place) + offset_of!(Standing, wake_at) / 8, wake_at.0);
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        self.write(entry_base(place) + offset_of!(Standing, tag) / 8, tag);
    }

    fn set_turn(&mut self, index: usize, turn: Turn) {
        let base = TURN_TABLE + index % TURNS * TURN_WORDS;
        self.write_array(base, bytemuck::cast::<_, [u64; TURN_WORDS]>(turn));
    }

    fn room(&self) -> usize {
        Transaction::room(self)
    }
}
