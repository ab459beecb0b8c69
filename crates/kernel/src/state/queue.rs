//! The stored words of the queue.

use crate::MAX_UNITS;
use crate::request::{AcquireRequest, Priority};
use crate::time::Time;
use bytemuck::{Pod, Zeroable};

/// Maximum number of waiting calls (R137).
pub const WAITERS: usize = if cfg!(loom) { 64 } else { 1024 };
/// Number of groups whose turns are remembered.
pub const TURNS: usize = if cfg!(loom) { 1 } else { 4096 };
/// Number of places in which a group's turn may be remembered, from the group's own place on.
pub const TURN_WINDOW: usize = if cfg!(loom) { 1 } else { 8 };

/// The numbers of waiting calls by priority: three counts of 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaiterCounts(pub u64);

impl WaiterCounts {
    /// Whether no call waits.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of waiting calls with this priority.
    #[inline]
    pub const fn of(self, priority: Priority) -> usize {
        (self.0 >> (16 * priority as u32)) as u16 as usize
    }

    /// The number of waiting calls.
    #[inline]
    pub fn total(self) -> usize {
        Priority::ALL.into_iter().map(|priority| self.of(priority)).sum()
    }

    #[inline]
    pub(crate) fn plus(self, priority: Priority) -> WaiterCounts {
        WaiterCounts(self.0.wrapping_add(1 << (16 * priority as u32)))
    }

    #[inline]
    pub(crate) fn minus(self, priority: Priority) -> WaiterCounts {
        match self.of(priority) {
            0 => self,
            _ => WaiterCounts(self.0.wrapping_sub(1 << (16 * priority as u32))),
        }
    }
}

/// The progress of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Progress {
    /// The number of arrivals so far.
    pub arrivals: u64,
    /// The share that background calls are owed: nanoseconds of budget times
    /// [`WHOLE_SHARE`](crate::policy::WHOLE_SHARE).
    pub owed: u64,
    /// The clock of each priority. The turn of a new call is not before it.
    pub clocks: [u64; 3],
}

/// Number of words of [`Progress`].
pub const PROGRESS_WORDS: usize = 5;

/// The occupied places among 64, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceSet(pub u64);

impl Iterator for PlaceSet {
    type Item = usize;

    /// The next occupied place, from 0 on.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        if place < 64 { Some(place) } else { None }
    }
}

/// The part of an [`Entry`] that determines the order. It is the beginning of the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct EntryHead {
    /// The attachment that waits: its slot + 2 in the low half, its generation in the high half.
    pub owner: u64,
    /// The arrival number in the upper bits, then one bit that says whether the call can be woken, then the
    /// priority in two bits.
    pub number: u64,
    /// The start time on the clock of its priority.
    pub tag: u64,
    /// The wake-up time: the call checks again at this time, or was woken at this time.
    pub wake_at: Time,
    /// The time at which the call gives up. The largest time if it never does.
    pub deadline: Time,
    /// The group with which the call shares its turns.
    pub group: u64,
}

/// Number of words of [`EntryHead`].
pub const ENTRY_HEAD_WORDS: usize = 6;

const PRIORITY_BITS: u64 = 0b011;
const CAN_BE_WOKEN: u64 = 0b100;
const ARRIVAL_SHIFT: u32 = 3;

impl EntryHead {
    #[inline]
    pub(crate) fn number(arrival: u64, can_be_woken: bool, priority: Priority) -> u64 {
        arrival << ARRIVAL_SHIFT | if can_be_woken { CAN_BE_WOKEN } else { 0 } | priority as u64
    }

    /// The priority. Any word gives one.
    #[inline]
    pub fn priority(&self) -> Priority {
        match self.number & PRIORITY_BITS {
            0 => Priority::Background,
            1 => Priority::User,
            _ => Priority::Webhook,
        }
    }

    /// The number of calls that arrived before it.
    #[inline]
    pub fn arrival(&self) -> u64 {
        self.number >> ARRIVAL_SHIFT
    }

    /// Whether the call sleeps on a wake word, so that another process can wake it.
    #[inline]
    pub fn can_be_woken(&self) -> bool {
        self.number & CAN_BE_WOKEN != 0
    }

    /// The slot of its owner. Any word gives a slot number, which may not exist.
    #[inline]
    pub fn slot(&self) -> usize {
        slot_of(self.owner)
    }
}

/// The slot in an owner's attachment id.
#[inline]
pub(crate) fn slot_of(owner: u64) -> usize {
    (owner as u32 as usize).wrapping_sub(2)
}

/// A waiting call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The part that determines the order.
    pub entry_head: EntryHead,
    /// The cost in each unit.
    pub cost: [u64; MAX_UNITS],
    /// The length of the call on the clock of its priority.
    pub weight: u64,
    /// The time of its arrival, for reports.
    pub since: Time,
}

/// Number of words of [`Entry`].
pub const ENTRY_WORDS: usize = ENTRY_HEAD_WORDS + MAX_UNITS + 2;

impl Entry {
    /// The cost and priority of the call.
    #[inline]
    pub fn request(&self) -> AcquireRequest {
        AcquireRequest { cost: self.cost, priority: self.entry_head.priority() }
    }
}

/// The end of a group's last turn on the clock of one priority. After that end has passed, the turn has no
/// effect, so its place may be reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Turn {
    /// A hash of group and priority.
    pub key: u64,
    /// The end of the turn.
    pub end: u64,
}

/// Number of words of [`Turn`].
pub const TURN_WORDS: usize = 2;

impl Turn {
    /// The key of a group's turns in one priority, and the places in which they may be remembered.
    pub(crate) fn places(group: u64, priority: Priority) -> (u64, impl Iterator<Item = usize> + Clone) {
        let key = (group ^ (priority as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xff51_afd7_ed55_8ccd);
        let key = (key ^ key >> 32).max(1);
        let start = key as usize % TURNS;
        (key, (0..TURN_WINDOW).map(move |i| (start + i) % TURNS))
    }
}
