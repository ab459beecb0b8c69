//! Attached processes and queued calls.

use super::{SHMLIMIT_SEGMENT_UNITS, byte};
use ::shmlimit_segment::{layout, sys::FIRST_LIVENESS_BYTE};
use shmlimit_kernel::queue::{Entry, EntryHead, Progress, TURN_WORDS, Turn, WAITERS};
use shmlimit_kernel::state::Held;
use std::mem::{offset_of, size_of};

/// The participant in slot S is alive as long as a process holds the lock on the byte at this offset + S. Query it
/// with `fcntl(fd, F_OFD_GETLK, ...)` for a write lock of one byte, and never take the lock. This does not apply to
/// an `inherited` slot.
pub const SHMLIMIT_SEGMENT_FIRST_LIVENESS_BYTE: u64 = 0x4000_0000_0000_0000_u64;
/// The size of a program's name in bytes, zero-padded; a name of this length has no terminating zero.
pub const SHMLIMIT_SEGMENT_PROGRAM_LENGTH: usize = 16;

/// One attached process. Transactions only, except for the last three counts, which its owner writes at any time.
#[repr(C)]
pub struct shmlimit_segment_slot {
    /// 1 while the slot has an owner, dead or alive; otherwise 0.
    pub owned: u32,
    /// Distinguishes the owner from earlier ones.
    pub generation: u32,
    /// Permits it holds.
    pub held: u32,
    /// Those of these permits for background calls.
    pub held_background: u32,
    /// Limiter time of attaching.
    pub since: u64,
    /// Limiter time at which the permits held rose from zero.
    pub held_since: u64,
    /// Process id in its own pid namespace, for people.
    pub pid: u64,
    /// Program name, for people.
    pub program: [u8; SHMLIMIT_SEGMENT_PROGRAM_LENGTH],
    /// Zero for an attached process. Otherwise the slot stands for permits of a segment that was deleted by hand:
    /// it has no lock in this file, and its permits count until their holder has returned them.
    pub inherited: u64,
    /// Calls granted.
    pub granted: u64,
    /// Calls refused.
    pub refused: u64,
    /// How often its waiting calls checked whether it was their turn.
    pub looked: u64,
    /// Zero.
    pub unused_counts: [u64; 5],
}

/// The state of the queue. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_queue {
    /// The number of calls that ever entered the queue.
    pub arrivals: u64,
    /// The part of its share that the background is still owed.
    pub owed: u64,
    /// The virtual clock of each priority.
    pub clocks: [u64; 3],
    /// Zero.
    pub unused: [u64; 3],
    /// The used entries: entry E is used if bit E % 64 of places[E / 64] is set.
    pub places: [u64; 16],
    /// Zero.
    pub unused_places: [u64; 8],
}

/// The end of a group's last turn. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_turn {
    /// A hash of group and priority.
    pub key: u64,
    /// The end, on the virtual clock of its priority.
    pub end: u64,
}

/// A call that waits. Transactions only, except for its wake word.
#[repr(C)]
pub struct shmlimit_segment_entry {
    /// Slot + 2 of the waiting process.
    pub owner: u32,
    /// Generation of that slot.
    pub owner_generation: u32,
    /// Priority in the low two bits, then one bit that is set if the call can be woken, then the number of calls
    /// that arrived before it.
    pub number: u64,
    /// Start time on the virtual clock of its priority.
    pub tag: u64,
    /// Limiter time at which it next checks by itself.
    pub wake_at: u64,
    /// Limiter time at which it gives up; UINT64_MAX = never.
    pub deadline: u64,
    /// The group with which it shares its turns.
    pub group: u64,
    /// How much of each unit it needs.
    pub cost: [u64; SHMLIMIT_SEGMENT_UNITS],
    /// How long it counts on the virtual clock of its priority.
    pub weight: u64,
    /// Limiter time at which it entered the queue.
    pub since: u64,
    /// Zero.
    pub unused: [u64; 3],
    /// A futex on which the call sleeps; other processes wake it.
    pub wake_word: u32,
    /// Not used.
    pub wake_word_unused: u32,
}

const _: () = {
    assert!(SHMLIMIT_SEGMENT_FIRST_LIVENESS_BYTE == FIRST_LIVENESS_BYTE as u64);

    type Slot = shmlimit_segment_slot;
    use layout::slot;
    assert!(size_of::<Slot>() == byte(layout::SLOT_WORDS));
    at_words!(Slot, from 0; owned slot::STATE, since slot::SINCE, held_since slot::HELD_SINCE, pid slot::PID,
        program slot::PROGRAM, granted slot::GRANTED, refused slot::REFUSED, inherited slot::INHERITED,
        looked slot::LOOKED,);
    let held = byte(slot::HELD);
    at_bytes!(Slot: generation byte(slot::STATE) + 4, held held + offset_of!(Held, total),
        held_background held + offset_of!(Held, background),);

    type Queue = shmlimit_segment_queue;
    at_bytes!(Queue: arrivals offset_of!(Progress, arrivals), owed offset_of!(Progress, owed),
        clocks offset_of!(Progress, clocks),);
    at_words!(Queue, from layout::PROGRESS; places layout::PLACES,);
    assert!(size_of::<[u64; 16]>() * 8 == WAITERS);
    assert!(size_of::<Queue>() == byte(layout::TURN_TABLE - layout::PROGRESS));

    assert!(size_of::<shmlimit_segment_turn>() == byte(TURN_WORDS));
    same!(shmlimit_segment_turn, Turn: key end);

    type Ours = shmlimit_segment_entry;
    assert!(size_of::<Ours>() == byte(layout::ENTRY_STRIDE));
    let head = offset_of!(Entry, entry_head);
    at_bytes!(Ours: owner head + offset_of!(EntryHead, owner), owner_generation head + offset_of!(EntryHead, owner) + 4,
        number head + offset_of!(EntryHead, number), tag head + offset_of!(EntryHead, tag),
        wake_at head + offset_of!(EntryHead, wake_at), deadline head + offset_of!(EntryHead, deadline),
        group head + offset_of!(EntryHead, group), cost offset_of!(Entry, cost), weight offset_of!(Entry, weight),
        since offset_of!(Entry, since), wake_word byte(layout::WAKE_WORD),);
};
