//! Permits of a segment that was deleted by hand and that this process still holds, and how it returns them.
//!
//! After a segment is marked as handed over, no transaction changes what its slots hold. So this process still has
//! what its slot says, less what it has tried to return since. As soon as both are known,
//! [`process_state::PERMITS_OUT`] is that difference. `file/inherited.rs` explains how the successor counts these
//! permits.

use crate::attach::Segment;
use crate::attach::process_state;
use crate::{journal, layout, slots};
use std::sync::atomic::Ordering;

/// A flag in [`process_state::PERMITS_OUT`], above the count: the count includes what the slot holds.
const FROZEN: i64 = 1 << 32;
/// A flag: this process has moved to a successor.
const MOVED: i64 = 2 << 32;

/// The flags of [`process_state::PERMITS_OUT`], and the count. The count is negative if permits were returned and
/// [`FROZEN`] is not set.
fn flags_and_count(word: u64) -> (i64, i64) {
    let word = word.cast_signed();
    let flags = (word + (1 << 31)) >> 32 << 32;
    (flags, word - flags)
}

impl Segment {
    /// Notes that permits of this process could not be returned, because the segment is gone.
    #[cold]
    pub fn returned_too_late(&self, permits: u32) {
        let out = self.process_state.word(process_state::PERMITS_OUT);
        out.fetch_sub(u64::from(permits), Ordering::AcqRel);
        self.freeze();
        self.let_go();
    }

    /// Notes that this process has moved to a successor of this segment. It stays registered here for as long as it
    /// holds permits.
    pub fn has_successor(&self) {
        self.freeze();
        let held = self.present().map_or(0, |attachment| slots::held(&self.words, attachment.slot).total);
        match self.words.load(layout::RETIRED) {
            layout::HANDED_OVER => {
                self.process_state
                    .word(process_state::PERMITS_OUT)
                    .fetch_add(MOVED.cast_unsigned(), Ordering::AcqRel);
                self.let_go();
            }
            // The segment could not be marked, so permits are still returned here. They count until this handle is
            // closed.
            layout::LIVE if held > 0 => {}
            // The segment was replaced or removed on purpose: the permits are forgotten.
            _ => self.unregister_user(),
        }
    }

    /// Adds to the count, once, what this process holds of a segment that was handed over. That amount no longer
    /// changes.
    fn freeze(&self) {
        let Some(attachment) = self.present() else { return };
        let held = journal::read(&self.words, |words| {
            let marked = words.load(layout::RETIRED) == layout::HANDED_OVER;
            marked.then(|| slots::held(words, attachment.slot).total)
        });
        let Some(Some(held)) = held else { return };
        let out = self.process_state.word(process_state::PERMITS_OUT);
        let _ = out.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let is_frozen = flags_and_count(word).0 & FROZEN != 0;
            (!is_frozen).then(|| word.wrapping_add(FROZEN.cast_unsigned() + u64::from(held)))
        });
    }

    /// Says in the creation lock that this process holds no permits here, if that is true.
    fn let_go(&self) {
        let out =
            || flags_and_count(self.process_state.word(process_state::PERMITS_OUT).load(Ordering::Acquire));
        let (flags, count) = out();
        if flags & FROZEN == 0 || count > 0 {
            return;
        }
        if flags & MOVED == 0 {
            self.register_user_without_permits();
        }
        // Check again: another thread may have moved meanwhile.
        if out().0 & MOVED != 0 {
            self.unregister_user();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_separated_from_a_count_of_either_sign() {
        for flags in [0, FROZEN, MOVED, FROZEN | MOVED] {
            for count in [-1_000_000, -1, 0, 1, 1_000_000] {
                assert_eq!(flags_and_count((flags + count).cast_unsigned()), (flags, count));
            }
        }
    }
}
