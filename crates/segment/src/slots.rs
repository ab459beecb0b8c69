//! Participants: the attached processes and their places in the segment.
//!
//! A slot's words say what its owner holds. Its *liveness lock*, a byte lock kept by the operating system, says
//! whether the owner is alive. Only the liveness lock decides whether a process counts as dead: process ids and
//! names are for people.
//!
//! ```text
//! from       to         by
//! free       owned      a process that holds its liveness lock, in a transaction
//! owned      free       its owner, when it detaches; or a process that has taken its liveness lock (the owner is dead), in a transaction
//! (new file) inherited  the creator of the segment, for permits of a deleted one
//! inherited  free       a process that has taken its liveness lock, when the creation lock says that the holder has no permit any more
//! ```
//!
//! No process keeps the liveness lock of an inherited slot. Instead, the creation lock tells whether its holder
//! still has the permits (`directory/users.rs`).

use super::journal::Transaction;
use super::layout::{SLOT_WORDS, SLOTS, slot, slot_base};
use super::lock::Os;
use super::words::Words;
use shmlimit_kernel::decide::{self, Reclaimed};
use shmlimit_kernel::ledger;
use shmlimit_kernel::state::{Core, Held, View};
use shmlimit_kernel::time::Time;

/// The bit in the state of a slot that says that the slot has an owner.
pub(crate) const OWNED: u64 = 1;

/// A slot's information about its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Participant {
    /// Its slot.
    pub slot: usize,
    /// Distinguishes this owner from earlier owners of the same slot.
    pub generation: u32,
    /// The permits it holds.
    pub held: Held,
    /// When it attached.
    pub since: Time,
    /// Since when it has held at least one permit without a break, if it holds any.
    pub held_since: Option<Time>,
    /// Process id, in its own pid namespace.
    pub pid: u32,
    /// Program name.
    pub program: [u8; 16],
    /// Calls granted to it.
    pub granted: u64,
    /// Calls refused to it.
    pub refused: u64,
    /// How often its waiting calls have checked whether it was their turn.
    pub looked: u64,
}

/// The process that attaches, as people see it.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Program name, zero-padded.
    pub program: [u8; 16],
}

/// Whether an attachment is entered: its slot is owned, in its generation.
pub fn is_entered(words: &Words, attachment_id: u64) -> bool {
    let slot = (attachment_id as u32 as usize).wrapping_sub(2);
    slot < SLOTS && words.load(slot_base(slot) + slot::STATE) == (attachment_id >> 32) << 32 | OWNED
}

/// Whether a slot has an owner, dead or alive.
#[inline]
pub fn is_owned(words: &Words, slot: usize) -> bool {
    words.load(slot_base(slot) + slot::STATE) & OWNED != 0
}

/// If the slot stands for permits of a deleted segment: the place in the creation lock that tells about their
/// holder. Otherwise zero.
pub fn inherited(words: &Words, slot: usize) -> u64 {
    words.load(slot_base(slot) + slot::INHERITED)
}

/// The permits that the owner of a slot holds, as the slot says.
pub fn held(words: &Words, slot: usize) -> Held {
    Held::from_word(words.load(slot_base(slot) + slot::HELD))
}

/// Whether at least as many permits are counted as in flight as one participant holds. A smaller count
/// is damage, and permits would be handed out twice.
#[inline(always)]
pub fn are_counted(held: Held, core: &Core) -> bool {
    held.total <= core.in_flight
}

/// The same for all participants together. A count that is too large does no harm here: it is not known which word
/// is damaged, and the next process that attaches corrects it.
pub fn are_all_counted<V: View>(view: &V) -> bool {
    let held: u64 = (0..SLOTS).map(|slot| u64::from(view.held(slot).total)).sum();
    held <= u64::from(view.core().in_flight)
}

/// Reads a slot; `None` if it has no owner.
pub fn participant(words: &Words, index: usize) -> Option<Participant> {
    let base = slot_base(index);
    let state = words.load(base + slot::STATE);
    if index >= SLOTS || state & OWNED == 0 {
        return None;
    }
    let held = held(words, index);
    let program: [u64; 2] = words.load_array(base + slot::PROGRAM);
    Some(Participant {
        slot: index,
        generation: (state >> 32) as u32,
        held,
        since: Time(words.load(base + slot::SINCE)),
        held_since: (held.total > 0).then(|| Time(words.load(base + slot::HELD_SINCE))),
        pid: words.load(base + slot::PID) as u32,
        program: bytemuck::cast(program),
        granted: words.load(base + slot::GRANTED),
        refused: words.load(base + slot::REFUSED),
        looked: words.load(base + slot::LOOKED),
    })
}

/// All participants that are entered, dead or alive.
pub fn all(words: &Words) -> impl Iterator<Item = Participant> + '_ {
    (0..SLOTS).filter_map(|slot| participant(words, slot))
}

/// Frees a slot that a dead predecessor still owns. If it returns `true`, commit before doing anything else.
pub fn reclaim_predecessor<O: Os>(tx: &mut Transaction<'_, O>, index: usize) -> bool {
    let owned = is_owned(tx.words(), index);
    if owned {
        leave(tx, index);
    }
    owned
}

/// Clears the counts of a slot without an owner. That is not journaled, so the predecessor's counts must already be
/// committed to the ledger. Otherwise they would be lost if this process died here.
pub fn forget_counts(words: &Words, index: usize) {
    for tally in slot::TALLY..SLOT_WORDS {
        words.store(slot_base(index) + tally, 0);
    }
}

/// Makes the caller the owner of a slot. The caller holds the slot's liveness lock, and no other process owns the
/// slot. Returns the slot's generation.
pub fn enter<O: Os>(tx: &mut Transaction<'_, O>, index: usize, who: Identity, now: Time) -> u32 {
    // Only damage can leave something here, such as a lock word that let two processes in at once. It would
    // otherwise be lost for ever.
    leave(tx, index);
    let base = slot_base(index);
    let generation = ((tx.load(base + slot::STATE) >> 32) as u32).wrapping_add(1);
    tx.write(base + slot::STATE, u64::from(generation) << 32 | OWNED);
    tx.write(base + slot::INHERITED, 0);
    tx.write(base + slot::SINCE, now.0);
    tx.write(base + slot::PID, u64::from(who.pid));
    tx.write_array(base + slot::PROGRAM, bytemuck::cast::<_, [u64; 2]>(who.program));
    generation
}

/// Frees a slot, gives back what it held, and adds its counts to the ledger. The caller is its owner, or has taken
/// its liveness lock.
pub fn leave<O: Os>(tx: &mut Transaction<'_, O>, index: usize) -> Reclaimed {
    let reclaimed = decide::reclaim(tx, index);
    if let Some(Participant { granted, refused, looked, .. }) = participant(tx.words(), index) {
        ledger::left(tx, [granted, refused, looked]);
        let state = slot_base(index) + slot::STATE;
        let owned = tx.load(state);
        tx.write(state, owned & !OWNED);
        if inherited(tx.words(), index) != 0 {
            tx.write(slot_base(index) + slot::INHERITED, 0);
        }
    }
    reclaimed
}

/// Counts a decision in the participant's own cache line. A count may be lost between two threads; nothing depends
/// on it.
#[inline]
pub fn tally(words: &Words, index: usize, counter: usize) {
    let word = slot_base(index) + counter;
    words.store(word, words.load(word).wrapping_add(1));
}
