//! Permits of a segment that was deleted by hand: its successor counts them until their holders return them or exit.
//!
//! The successor starts with a slot for each holder, a copy of the old one, which says where that process is registered in the
//! creation lock (`directory/users.rs`). A successor that is made by a process which cannot reach the deleted segment has one slot instead:
//! it holds all permits there are, for as long as any participant of an older generation is registered.
//!
//! ```text
//! holder                                         the creation lock says that its permits are out
//! has them in a deleted segment                  yes: it is registered as the owner of its slot there
//! goes over to the successor                     yes, while it holds any
//! returns the last of them                       no: it is registered no more, or without permits if it has not gone over
//! exits, or is killed                            no
//! ```
//!
//! Whoever needs a permit of the successor asks for the holders as it asks for dead participants (`recovery/reclaim.rs`). Permits that a
//! holder returns one after the other come back together, with the last.

use crate::directory::users::{self, UserByte};
use crate::layout::{self, COMMON_SLOTS, SLOTS, header, slot, slot_base};
use crate::slots::{self, OWNED};
use crate::words::Words;
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::state::Held;
use shmlimit_kernel::time::Time;

/// How many slots are inherited at most; holders beyond that share one. The others are for those who go over.
const MOST: usize = COMMON_SLOTS / 2;

/// What people are shown as the holder of permits of which nobody knows who holds them.
const UNKNOWN_HOLDER: [u8; 16] = *b"(deleted file)\0\0";

/// A slot for permits of a deleted segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inherited {
    held: Held,
    since: u64,
    held_since: u64,
    pid: u64,
    program: [u64; 2],
    /// Where the creation lock tells whether they are still held.
    word: u64,
}

impl Inherited {
    /// All permits there are, of a segment that cannot be read. Nothing if their number is not limited.
    pub(crate) fn unknown(policy: &Policy, now: Time) -> Option<Inherited> {
        let total = policy.concurrency()?;
        Some(Inherited::shared(Held { total, background: 0 }, now.0))
    }

    fn shared(held: Held, since: u64) -> Inherited {
        let program = bytemuck::cast(UNKNOWN_HOLDER);
        Inherited { held, since, held_since: since, pid: 0, program, word: users::any_older() }
    }
}

/// What the successor of a segment inherits.
pub(crate) fn from(words: &Words) -> Vec<Inherited> {
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
                    0 => UserByte::of(generation, index).to_word(),
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
pub(crate) fn put(words: &Words, inherited: &[Inherited]) {
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
