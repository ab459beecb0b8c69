//! Permits of a segment that was deleted by hand: its successor counts them until their holders return them or exit.
//!
//! The successor starts with a slot for each holder, a copy of the old one, which says where that process attends at the
//! gate (`attendance.rs`). A successor that is made by a process which cannot reach the deleted segment has one slot instead:
//! it holds all permits there are, for as long as any participant of an older generation attends.
//!
//! ```text
//! holder                                         the gate says that its permits are out
//! has them in a deleted segment                  yes: it attends as the owner of its slot there
//! goes over to the successor                     yes, while it holds any
//! returns the last of them                       no: it attends no more, or without permits if it has not gone over
//! exits, or is killed                            no
//! ```
//!
//! Whoever needs a permit of the successor asks for the holders as it asks for dead participants (`reap.rs`). Permits that a
//! holder returns one after the other come back together, with the last.
//!
//! After a segment is marked as handed over, no transaction changes what its slots hold. So what a process still has is what
//! its slot says, less what it has tried to return since: [`presence::OUT`] is that difference, as soon as both are known.

use super::attach::Segment;
use super::attendance::{self, Place};
use super::backing::{Backing, Probe};
use super::join::presence;
use super::journal;
use super::layout::{self, COMMON_SLOTS, SLOTS, header, slot, slot_base};
use super::slots::{self, OWNED};
use super::words::Words;
use crate::error::Error;
use crate::paths::GATE;
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::state::Held;
use shmlimit_kernel::time::Time;
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

/// How many slots are inherited at most; holders beyond that share one. The others are for those who go over.
const MOST: usize = COMMON_SLOTS / 2;

/// What people are shown as the holder of permits of which nobody knows who holds them.
const UNKNOWN_HOLDER: [u8; 16] = *b"(deleted file)\0\0";

/// A slot for permits of a deleted segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    held: Held,
    since: u64,
    held_since: u64,
    pid: u64,
    program: [u64; 2],
    /// Where the gate tells whether they are still held.
    word: u64,
}

impl Inherited {
    /// All permits there are, of a segment that cannot be read. Nothing if their number is not limited.
    pub(super) fn unknown(policy: &Policy, now: Time) -> Option<Inherited> {
        let total = policy.concurrency()?;
        Some(Inherited::shared(Held { total, background: 0 }, now.0))
    }

    fn shared(held: Held, since: u64) -> Inherited {
        let program = bytemuck::cast(UNKNOWN_HOLDER);
        Inherited { held, since, held_since: since, pid: 0, program, word: attendance::any_older() }
    }
}

/// What the successor of a segment inherits.
pub(super) fn from(words: &Words) -> Vec<Inherited> {
    let generation = words.load(header::GENERATION);
    let holders = (0..SLOTS).filter(|slot| slots::held(words, *slot).total > 0);
    let mut inherited: Vec<Inherited> = holders
        .map(|index| {
            let word = |at: usize| words.load(slot_base(index) + at);
            Inherited {
                held: slots::held(words, index),
                since: word(slot::SINCE),
                held_since: word(slot::HELD_SINCE),
                pid: word(slot::PID),
                program: words.load_array(slot_base(index) + slot::PROGRAM),
                word: match slots::inherited(words, index) {
                    0 => Place::of(generation, index).to_word(),
                    before => before,
                },
            }
        })
        .collect();
    if inherited.len() > MOST {
        let rest = inherited.split_off(MOST - 1);
        let since = rest.iter().map(|one| one.held_since).min().unwrap_or(0);
        inherited.push(Inherited::shared(sum(&rest), since));
    }
    inherited
}

/// Enters what is inherited in a segment that has no name yet.
pub(super) fn put(words: &Words, inherited: &[Inherited]) {
    for (index, one) in inherited.iter().enumerate() {
        let put = |at: usize, value: u64| words.store(slot_base(index) + at, value);
        put(slot::STATE, OWNED);
        put(slot::HELD, one.held.to_word());
        put(slot::SINCE, one.since);
        put(slot::HELD_SINCE, one.held_since);
        put(slot::PID, one.pid);
        put(slot::PROGRAM, one.program[0]);
        put(slot::PROGRAM + 1, one.program[1]);
        put(slot::INHERITED, one.word);
    }
    // Permits in flight are counted in the same form.
    words.store(layout::CORE + 1, sum(inherited).to_word());
}

fn sum(inherited: &[Inherited]) -> Held {
    inherited.iter().fold(Held::default(), |sum, Inherited { held, .. }| Held {
        total: sum.total.saturating_add(held.total),
        background: sum.background.saturating_add(held.background),
    })
}

/// The file gate, opened when it is needed first, to ask for the holders of inherited permits.
pub struct Gate<'s> {
    backing: &'s Backing,
    words: &'s Words,
    file: OnceCell<io::Result<File>>,
}

impl<'s> Gate<'s> {
    /// The gate of a segment.
    pub fn new(backing: &'s Backing, words: &'s Words) -> Gate<'s> {
        Gate { backing, words, file: OnceCell::new() }
    }

    /// Whether the holder of an inherited slot still has its permits; `None` if the slot is not inherited.
    pub fn is_held(&self, slot: usize) -> Option<bool> {
        let word = slots::inherited(self.words, slot);
        (word != 0).then(|| match self.file.get_or_init(|| self.backing.open_beside(GATE)) {
            Ok(gate) => {
                let (name, own) = (self.backing.file_name(), self.words.load(header::GENERATION));
                // A holder that cannot be asked for counts as alive.
                name.is_none_or(|name| attendance::is_held(gate, name, own, word).unwrap_or(true))
            }
            // Deleted too: nobody can be seen there any more.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        })
    }
}

/// A way to see which participants live, and which holders of inherited permits still have them.
pub(super) struct Liveness<'s> {
    backing: &'s Backing,
    probe: Probe,
    gate: Gate<'s>,
}

impl Liveness<'_> {
    pub(super) fn is_alive(&self, slot: usize) -> Result<bool, Error> {
        self.gate.is_held(slot).map_or_else(|| self.backing.is_alive(&self.probe, slot), Ok)
    }
}

/// In [`presence::OUT`], above the count: what the slot holds is in it.
const FROZEN: i64 = 1 << 32;
/// This process has gone over to a successor.
const MOVED: i64 = 2 << 32;

/// The flags of [`presence::OUT`], and the count, which is negative while permits were returned and [`FROZEN`] is not set.
fn flags_and_count(word: u64) -> (i64, i64) {
    let word = word.cast_signed();
    let flags = (word + (1 << 31)) >> 32 << 32;
    (flags, word - flags)
}

impl Segment {
    pub(super) fn liveness(&self) -> Result<Liveness<'_>, Error> {
        Ok(Liveness {
            backing: &self.backing,
            probe: self.probe()?,
            gate: Gate::new(&self.backing, &self.words),
        })
    }

    /// Permits of this process could not be returned, because the segment is gone.
    #[cold]
    pub fn returned_too_late(&self, permits: u32) {
        let out = self.presence.word(presence::OUT);
        out.fetch_sub(u64::from(permits), Ordering::AcqRel);
        self.freeze();
        self.let_go();
    }

    /// This process has gone over to a successor of this segment: it attends here for as long as it holds permits.
    pub fn has_successor(&self) {
        self.freeze();
        let held = self.present().map_or(0, |member| slots::held(&self.words, member.slot).total);
        match self.words.load(layout::RETIRED) {
            layout::HANDED_OVER => {
                self.presence.word(presence::OUT).fetch_add(MOVED.cast_unsigned(), Ordering::AcqRel);
                self.let_go();
            }
            // It could not be marked, so permits are still returned here: they count until this handle is closed.
            layout::LIVE if held > 0 => {}
            // Replaced and removed on purpose: the permits are forgotten.
            _ => self.stop_attending(),
        }
    }

    /// Counts what this process holds of a segment that was handed over, once: it changes no more.
    fn freeze(&self) {
        let Some(member) = self.present() else { return };
        let held = journal::read(&self.words, |words| {
            let marked = words.load(layout::RETIRED) == layout::HANDED_OVER;
            marked.then(|| slots::held(words, member.slot).total)
        });
        let Some(Some(held)) = held else { return };
        let out = self.presence.word(presence::OUT);
        let _ = out.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let is_frozen = flags_and_count(word).0 & FROZEN != 0;
            (!is_frozen).then(|| word.wrapping_add(FROZEN.cast_unsigned() + u64::from(held)))
        });
    }

    /// Says at the gate that this process holds no permits here, if that is so.
    fn let_go(&self) {
        let out = || flags_and_count(self.presence.word(presence::OUT).load(Ordering::Acquire));
        let (flags, count) = out();
        if flags & FROZEN == 0 || count > 0 {
            return;
        }
        if flags & MOVED == 0 {
            self.attend_without_permits();
        }
        // Also if another thread has gone over meanwhile.
        if out().0 & MOVED != 0 {
            self.stop_attending();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_from_a_count_of_either_sign() {
        for flags in [0, FROZEN, MOVED, FROZEN | MOVED] {
            for count in [-1_000_000, -1, 0, 1, 1_000_000] {
                assert_eq!(flags_and_count((flags + count).cast_unsigned()), (flags, count));
            }
        }
    }
}
