//! Permits of a segment that was deleted by hand: its successor counts them until their holders return them or
//! exit.
//!
//! The successor starts with a slot for each holder. It is a copy of the holder's old slot and says where that
//! process is registered in the creation lock (`directory/users.rs`). If the process that creates the successor
//! cannot reach the deleted segment, the successor has one slot instead. That slot holds all permits of the policy
//! for as long as any participant of an older generation is registered.
//!
//! ```text
//! holder                                         the creation lock says that its permits are out
//! has them in a deleted segment                  yes: it is registered as the owner of its slot there
//! moves to the successor                         yes, while it holds any
//! returns the last of them                       no: it is unregistered, or registered without permits if it has not moved
//! exits, or is killed                            no
//! ```
//!
//! A process that needs a permit of the successor checks these holders in the same way as dead participants
//! (`recovery/reclaim.rs`). If a holder returns its permits one after the other, the successor gets all of them
//! back with the last one.

use crate::directory::users::{self, UserByte};
use crate::layout::{self, COMMON_SLOTS, SLOTS, header, slot, slot_base};
use crate::slots::{self, OWNED};
use crate::words::Words;
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::state::Held;
use shmlimit_kernel::time::Time;

/// How many slots are inherited at most. Further holders share one slot. The other slots are for processes that
/// move to the successor.
const MOST: usize = COMMON_SLOTS / 2;

/// The program name that people see for permits whose holder is not known.
const UNKNOWN_HOLDER: [u8; 16] = *b"(deleted file)\0\0";

/// A slot for permits of a deleted segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inherited {
    held: Held,
    since: u64,
    held_since: u64,
    pid: u64,
    program: [u64; 2],
    /// The place in the creation lock that tells whether they are still held.
    word: u64,
}

impl Inherited {
    /// All permits of the policy, for a segment that cannot be read. `None` if their number is not limited.
    pub(crate) fn unknown(policy: &Policy, now: Time) -> Option<Inherited> {
        let total = policy.concurrency()?;
        Some(Inherited::shared(Held { total, background: 0 }, now.0))
    }

    fn shared(held: Held, since: u64) -> Inherited {
        let program = bytemuck::cast(UNKNOWN_HOLDER);
        Inherited { held, since, held_since: since, pid: 0, program, word: users::any_older() }
    }
}

/// The permits that the successor of a segment inherits.
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

/// Writes the inherited slots to a segment that has no name yet.
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
    // The word for permits in flight has the same form.
    words.store(layout::CORE + 1, sum(inherited).to_word());
}

fn sum(inherited: &[Inherited]) -> Held {
    inherited.iter().fold(Held::default(), |sum, Inherited { held, .. }| Held {
        total: sum.total.saturating_add(held.total),
        background: sum.background.saturating_add(held.background),
    })
}
