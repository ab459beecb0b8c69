//! What the queue stores, as plain words.

use crate::MAX_UNITS;
use crate::request::{AcquireRequest, Priority};
use crate::time::Time;
use bytemuck::{Pod, Zeroable};

/// How many calls may wait at once (R137).
pub const WAITERS: usize = if cfg!(loom) { 64 } else { 1024 };
/// How many groups' turns are remembered.
pub const TURNS: usize = if cfg!(loom) { 1 } else { 4096 };
/// How far from its own place a group's turn may be remembered.
pub const TURN_WINDOW: usize = if cfg!(loom) { 1 } else { 8 };

/// How many wait, by priority: three counts of 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaiterCounts(pub u64);

impl WaiterCounts {
    /// Whether nobody waits.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many wait with this priority.
    #[inline]
    pub const fn of(self, priority: Priority) -> usize {
        (self.0 >> (16 * priority as u32)) as u16 as usize
    }

    /// How many wait.
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

/// How far the queue has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Progress {
    /// Arrivals so far.
    pub arrivals: u64,
    /// What the background is owed of its share: nanoseconds of budget times [`WHOLE_SHARE`](crate::policy::WHOLE_SHARE).
    pub owed: u64,
    /// The clock of each priority: a newcomer's turn is not before it.
    pub clocks: [u64; 3],
}

/// How many words [`Progress`] takes.
pub const PROGRESS_WORDS: usize = 5;

/// Which of 64 places are taken, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceSet(pub u64);

impl Iterator for PlaceSet {
    type Item = usize;

    /// The next place that is taken, from 0 on.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        if place < 64 { Some(place) } else { None }
    }
}

/// What the order rests on: the beginning of an [`Entry`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct EntryHead {
    /// The attachment that waits: its slot + 2 in the low half, its generation in the high half.
    pub owner: u64,
    /// Arrival in the upper bits, then whether it can be rung, then the priority in two bits.
    pub number: u64,
    /// Start time on the clock of its priority.
    pub tag: u64,
    /// When it will look again by itself, or was rung.
    pub wake_at: Time,
    /// Gives up then; the end of time if never.
    pub deadline: Time,
    /// With whom it shares its turns.
    pub group: u64,
}

/// How many words [`EntryHead`] takes.
pub const ENTRY_HEAD_WORDS: usize = 6;

const PRIORITY_BITS: u64 = 0b011;
const CAN_BE_WOKEN: u64 = 0b100;
const ARRIVAL_SHIFT: u32 = 3;

impl EntryHead {
    #[inline]
    pub(crate) fn number(arrival: u64, can_be_woken: bool, priority: Priority) -> u64 {
        arrival << ARRIVAL_SHIFT | if can_be_woken { CAN_BE_WOKEN } else { 0 } | priority as u64
    }

    /// Its priority; any word has one.
    #[inline]
    pub fn priority(&self) -> Priority {
        match self.number & PRIORITY_BITS {
            0 => Priority::Background,
            1 => Priority::User,
            _ => Priority::Webhook,
        }
    }

    /// How many arrived before it.
    #[inline]
    pub fn arrival(&self) -> u64 {
        self.number >> ARRIVAL_SHIFT
    }

    /// Whether it sleeps where a ring wakes it.
    #[inline]
    pub fn can_be_woken(&self) -> bool {
        self.number & CAN_BE_WOKEN != 0
    }

    /// The slot of its owner; any word gives one, which may not exist.
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

/// A call that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// What the order rests on.
    pub entry_head: EntryHead,
    /// How much of each unit it needs.
    pub cost: [u64; MAX_UNITS],
    /// How long it counts on the clock of its priority.
    pub weight: u64,
    /// When it came, for people.
    pub since: Time,
}

/// How many words [`Entry`] takes.
pub const ENTRY_WORDS: usize = ENTRY_HEAD_WORDS + MAX_UNITS + 2;

impl Entry {
    /// What it asks for.
    #[inline]
    pub fn request(&self) -> AcquireRequest {
        AcquireRequest { cost: self.cost, priority: self.entry_head.priority() }
    }
}

/// Where a group's last turn ended on the clock of one priority. One that ended in the past says nothing any more, so
/// its place may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Turn {
    /// Group and priority, mixed.
    pub key: u64,
    /// The end.
    pub end: u64,
}

/// How many words [`Turn`] takes.
pub const TURN_WORDS: usize = 2;

impl Turn {
    /// The key of a group's turns in one priority, and the places where they may be remembered.
    pub(crate) fn places(group: u64, priority: Priority) -> (u64, impl Iterator<Item = usize> + Clone) {
        let key = (group ^ (priority as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xff51_afd7_ed55_8ccd);
        let key = (key ^ key >> 32).max(1);
        let start = key as usize % TURNS;
        (key, (0..TURN_WINDOW).map(move |i| (start + i) % TURNS))
    }
}
