//! The kernel's view of a segment: small values copied out, changed words journaled.

use super::journal::Transaction;
use super::layout::{CORE, POLICY, RULES, slot, slot_base};
use super::lock::Os;
use super::words::Cells;
use crate::kernel::policy::terms_range;
use crate::kernel::state::{Core, General, Held, Memory, RULE_WORDS, RuleState, View};
use crate::kernel::terms::Terms;

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
}
