//! The layout of a segment: one file, and the place of every word in it.
//!
//! ```text
//! byte     words  section   written by, under which rule
//! 0x0000      16  header    the creator, before the file has a name; never again
//! 0x0080       1  lock      in one cache line with the next two sections, because the lock holder needs them at once
//! 0x0088       3  control   the lock holder: version, journal length (see journal.rs); transactions only: how many wait
//! 0x00a0       4  core      transactions only (latest time, permits in flight, clock offset, retired mark)
//! 0x00c0       8  (zero)
//! 0x0100       8  origin    transactions only (boot, wall anchor, policy epoch, resets)
//! 0x0140      32  rules     transactions only; four words a rule, eight rules; all but the last of each are stored inverted
//! 0x0240      72  effective transactions only; what decisions read: permits, when the next check is due, the rules' terms,
//!                           all as the breaker's state makes them (kernel/breaker/effective.rs)
//! 0x0480     256  policy    transactions only; the policy as it was configured, and its checksum
//! 0x0c80     112  health state     transactions only: breaker, gate, tallies, pace (kernel/health_state.rs)
//! 0x1000    1024  journal   the lock holder: 512 pairs (word index, old value)
//! 0x3000    8192  slots     512 slots of 16 words: the first eight in transactions only, the others (`tally`)
//!                           by the participant itself, relaxed, outside the journal
//! 0x13000     32  queue     transactions only: arrivals, what the background is owed, three clocks; from 0x13040 on a
//!                           bit for each entry that is taken
//! 0x13100   8192  turns     transactions only: 4096 pairs (group and priority, where its last turn ended)
//! 0x23100  16384  entries   1024 entries of 16 words, one for each call that waits: the first twelve in transactions
//!                           only; the last is its wake word, on which its owner sleeps
//! 0x43100   2136  rings     transactions only: the health state's rings, recent outcomes and admissions; then its ledger and codes
//! 0x473c0     16  pause     transactions only: until when, since when, by which process, why (kernel/pause.rs)
//! 0x47440     24  unsure    transactions only: the latest reading of the wall clock, and whether the machine was off for an
//!                           unknown time; then what the rules had counted when that was noted (wall_clock.rs)
//! 0x47500    352  (zero)
//! 0x48000    any  logs      transactions only: two words an entry, for each rule that is a sliding log; whole pages,
//!                           as many as the policy needs that the file was made for
//! ```
//!
//! Words are 64 bits in the machine's byte order (the header says which). The lock and the wake words are
//! exceptions: they are the low halves of their words, because a futex is 32 bits wide. There are no pointers, no
//! enums and no padding. Any bytes are a value of this layout, and code that reads a value checks its range.

use shmlimit_kernel::breaker::EFFECTIVE_WORDS;
use shmlimit_kernel::health_state::{HEALTH_STATE_HEAD_WORDS, HEALTH_STATE_WORDS};
use shmlimit_kernel::policy::{POLICY_WORDS, Policy};
use shmlimit_kernel::queue::{ENTRY_WORDS, PROGRESS_WORDS, TURN_WORDS, TURNS, WAITERS};
use shmlimit_kernel::state::RULE_WORDS;
use shmlimit_kernel::terms::Terms;
use shmlimit_kernel::{MAX_LOG, MAX_RULES, MAX_UNITS};

/// `SHMLIMIT` read as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SHMLIMIT");
/// Raised whenever a word changes its place or meaning.
pub const LAYOUT_VERSION: u32 = 6;
/// Reads differently on a machine of the other byte order.
pub const BYTE_ORDER: u32 = 0x0a0b_0c0d;

/// How many participants may be attached at once.
pub const SLOTS: usize = if cfg!(loom) { 3 } else { 512 };
/// How many of these are reserved for operators, who must always be able to stop or remove a limiter.
pub const RESERVED_SLOTS: usize = if cfg!(loom) { 0 } else { 8 };
/// How many slots are for all participants. They come first.
pub const COMMON_SLOTS: usize = SLOTS - RESERVED_SLOTS;
/// How many words one transaction may change.
pub const JOURNAL_ENTRIES: usize = if cfg!(loom) { 16 } else { 512 };

/// Words of the header.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Byte order mark in the low half, layout version in the high half.
    pub const FORMAT: usize = 1;
    /// [`super::layout_hash`].
    pub const HASH: usize = 2;
    /// Bytes of the whole file.
    pub const SIZE: usize = 3;
    /// Wall clock at creation, for people.
    pub const CREATED: usize = 4;
    /// The generation of the limiter's name for which this segment was created: see `directory/users.rs`.
    pub const GENERATION: usize = 5;
    /// Checksum of the words before it.
    pub const CHECKSUM: usize = 6;
    /// How many words the header has.
    pub const WORDS: usize = 16;
}

/// The lock, in the low half of this word.
pub const LOCK: usize = header::WORDS;
/// Even: the state is whole. Odd: a transaction is under way, or its owner died in it.
pub const VERSION: usize = LOCK + 1;
/// How many journal entries belong to the transaction under way.
pub const JOURNAL_LEN: usize = VERSION + 1;
/// How many calls wait, by priority.
pub const WAITING: usize = VERSION + 2;

/// First word of the core: latest time, permits in flight.
pub const CORE: usize = VERSION + 3;
/// The limiter's clock minus the machine's clock. It changes only when the limiter's clock is continued by the wall
/// clock, such as after a reboot.
pub const CLOCK_OFFSET: usize = CORE + 2;
/// [`LIVE`] while the segment is in use. In a retired segment, the reason why nothing is granted from it any more:
/// open the limiter again by name. Any other value is damage. Zero counts as damage too, so that zeros in this
/// cache line are never taken for an idle limiter.
pub const RETIRED: usize = CORE + 3;
/// In use.
pub const LIVE: u64 = 0x4556_494c;
/// Retired on purpose. The next segment starts afresh.
pub const REPLACED: u64 = 1;
/// The file was deleted while programs used it, and one of them noticed. The next segment continues with what the
/// rules have counted.
pub const HANDED_OVER: u64 = 2;
/// Removed on purpose. There is no next segment until a program creates one.
pub const REMOVED: u64 = 3;

/// Identity of the boot this segment's clock belongs to: two words.
pub const BOOT: usize = CORE + 12;
/// Limiter time at the anchor. Together with [`ANCHOR_WALL`] it tells how long a machine was off.
pub const ANCHOR_TIME: usize = BOOT + 2;
/// Wall time at the anchor.
pub const ANCHOR_WALL: usize = BOOT + 3;
/// Raised with every change of the policy.
pub const POLICY_EPOCH: usize = BOOT + 4;
/// How often the state had to be reset because it was damaged.
pub const RESETS: usize = BOOT + 5;

/// First word of the rule states.
pub const RULES: usize = BOOT + 8;
/// First word of the effective limits, which decisions read.
pub const EFFECTIVE: usize = RULES + MAX_RULES * RULE_WORDS;
/// First word of the policy.
pub const POLICY: usize = EFFECTIVE + EFFECTIVE_WORDS;
/// Checksum of the policy words.
pub const POLICY_CHECKSUM: usize = POLICY + 255;
/// First word of the health state, up to its rings.
pub const HEALTH_STATE: usize = POLICY + 256;

/// First word of the journal.
pub const JOURNAL: usize = 512;
/// First word of the slots.
pub const SLOT_TABLE: usize = JOURNAL + 2 * JOURNAL_ENTRIES;
/// Words of one slot: two cache lines.
pub const SLOT_WORDS: usize = 16;
/// First word of the queue: its progress.
pub const PROGRESS: usize = SLOT_TABLE + SLOTS * SLOT_WORDS;
/// Which entries are taken, one bit each.
pub const PLACES: usize = PROGRESS + 8;
/// First word of the memory of the groups' turns.
pub const TURN_TABLE: usize = PROGRESS + 32;
/// First word of the entries of waiting calls.
pub const ENTRY_TABLE: usize = TURN_TABLE + TURNS * TURN_WORDS;
/// Words from one entry to the next: two cache lines.
pub const ENTRY_STRIDE: usize = 16;
/// The word of an entry that holds the wake word in its low half. It is outside the journal.
pub const WAKE_WORD: usize = 15;
/// First word of the health state's rings.
pub const RINGS: usize = ENTRY_TABLE + WAITERS * ENTRY_STRIDE;
/// A wall clock that shows a time before this was never set: 2025, before the first limiter existed.
pub const UNSET_BEFORE: u64 = 1_735_689_600_000_000_000;
/// First word of the section about the wall clock (`wall_clock.rs`). Limiter time of the latest reading, which is
/// the reading of the wall clock that puts the present latest; zero if the clock was not set yet.
pub const LATEST_TIME: usize = RINGS + HEALTH_STATE_WORDS - HEALTH_STATE_HEAD_WORDS;
/// Wall time of that reading.
pub const LATEST_WALL: usize = LATEST_TIME + 1;
/// Sum of [`POLICY_EPOCH`] and [`RESETS`] when [`OFF_UNKNOWN`] was set. If the sum has changed, rules were changed
/// or reset since, so the counts from before do not apply.
pub const COUNTED_EPOCH: usize = LATEST_TIME + 2;
/// Limiter time at which the wall clock was last put right: it was set by more than a minute to a time that is not
/// later than all it has shown. Zero if that has not happened.
pub const WALL_SET_AT: usize = LATEST_TIME + 3;
/// How far the wall clock was ahead of the limiter's clock when this was noted; zero if it was not.
pub const WALL_OFFSET: usize = LATEST_TIME + 4;
/// Limiter time at which the machine came back after it was off for an unknown time; zero if the time is known.
pub const OFF_UNKNOWN: usize = LATEST_TIME + 5;
/// The counts of each rule when [`OFF_UNKNOWN`] was set: pairs (end of the window, count).
pub const COUNTED: usize = LATEST_TIME + 8;
/// Words of this section.
pub const WALL_WORDS: usize = 8 + 2 * MAX_RULES;
/// Words that every segment has: whole pages. The logs follow them.
pub const WORDS: usize = (LATEST_TIME + WALL_WORDS).next_multiple_of(512);
/// Bytes that every segment has.
pub const SIZE: usize = WORDS * 8;
/// No segment is larger: eight logs of the largest size, and their pages.
pub const LARGEST_SIZE: usize = SIZE + MAX_RULES * (4 * MAX_LOG as usize) * 8;

/// Bytes of a segment for this policy.
pub fn size_for(policy: &Policy) -> usize {
    let logs: usize = Terms::all(policy).map(|terms| terms.log_words()).sum();
    SIZE + (logs * 8).next_multiple_of(4096)
}

/// The index of a word of the health state.
#[inline(always)]
pub fn health_state_word(at: usize) -> usize {
    if at < HEALTH_STATE_HEAD_WORDS { HEALTH_STATE + at } else { RINGS + (at - HEALTH_STATE_HEAD_WORDS) }
}

/// Words of a slot, from its start.
pub mod slot {
    /// Generation in the high half. The low half is 1 while a participant owns the slot, otherwise 0.
    pub const STATE: usize = 0;
    /// Permits held: total, background.
    pub const HELD: usize = 1;
    /// Limiter time of attaching.
    pub const SINCE: usize = 2;
    /// Limiter time at which the permits held rose from zero.
    pub const HELD_SINCE: usize = 3;
    /// Process id, for people only.
    pub const PID: usize = 4;
    /// Program name, sixteen bytes, for people only.
    pub const PROGRAM: usize = 5;
    /// Zero for a process that is attached here. Otherwise the slot stands for permits of a deleted segment. The
    /// value then says where the creation lock tells whether their holder still has them: see `directory/users.rs`.
    pub const INHERITED: usize = 7;
    /// First word that the participant itself writes, outside the journal.
    pub const TALLY: usize = 8;
    /// Calls granted.
    pub const GRANTED: usize = TALLY;
    /// Calls refused.
    pub const REFUSED: usize = TALLY + 1;
    /// How often its waiting calls have woken to check whether it was their turn.
    pub const LOOKED: usize = TALLY + 2;
}

/// First word of a slot.
#[inline(always)]
pub fn slot_base(slot: usize) -> usize {
    SLOT_TABLE + slot % SLOTS * SLOT_WORDS
}

/// First word of the state of a rule.
#[inline(always)]
pub const fn rule_base(rule: usize) -> usize {
    RULES + rule % MAX_RULES * RULE_WORDS
}

/// First word of an entry.
#[inline]
pub fn entry_base(place: usize) -> usize {
    ENTRY_TABLE + place % WAITERS * ENTRY_STRIDE
}

/// Whether a transaction may change this word, and recovery may put it back, in a segment of `all` words.
#[inline]
pub fn is_journaled(word: usize, all: usize) -> bool {
    (CORE..JOURNAL).contains(&word)
        || (RINGS..all).contains(&word)
        || word == WAITING
        || ((SLOT_TABLE..PROGRESS).contains(&word) && (word - SLOT_TABLE) % SLOT_WORDS < slot::TALLY)
        || (PROGRESS..ENTRY_TABLE).contains(&word)
        || ((ENTRY_TABLE..ENTRY_TABLE + WAITERS * ENTRY_STRIDE).contains(&word)
            && (word - ENTRY_TABLE) % ENTRY_STRIDE < ENTRY_WORDS)
}

/// Changes whenever two builds would disagree about the layout although the version is the same.
pub const fn layout_hash() -> u64 {
    let facts = [
        LAYOUT_VERSION as u64,
        header::CHECKSUM as u64,
        slot::INHERITED as u64,
        SLOTS as u64,
        JOURNAL_ENTRIES as u64,
        CORE as u64,
        BOOT as u64,
        RULES as u64,
        RULE_WORDS as u64,
        EFFECTIVE as u64,
        POLICY as u64,
        POLICY_WORDS as u64,
        HEALTH_STATE as u64,
        RINGS as u64,
        HEALTH_STATE_WORDS as u64,
        MAX_RULES as u64,
        MAX_UNITS as u64,
        JOURNAL as u64,
        SLOT_TABLE as u64,
        SLOT_WORDS as u64,
        WAITING as u64,
        PROGRESS as u64,
        PLACES as u64,
        TURN_TABLE as u64,
        TURNS as u64,
        ENTRY_TABLE as u64,
        ENTRY_WORDS as u64,
        ENTRY_STRIDE as u64,
        WAITERS as u64,
        LATEST_TIME as u64,
        WORDS as u64,
    ];
    let mut hash = CHECKSUM_SEED;
    let mut i = 0;
    while i < facts.len() {
        hash = mix(hash, facts[i]);
        i += 1;
    }
    hash
}

/// The initial value of a checksum.
pub const CHECKSUM_SEED: u64 = 0xcbf2_9ce4_8422_2325;
/// The factor by which it is multiplied at each word.
pub const CHECKSUM_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// How far it is then shifted to the right.
pub const CHECKSUM_SHIFT: u32 = 29;

const fn mix(hash: u64, word: u64) -> u64 {
    let x = (hash ^ word).wrapping_mul(CHECKSUM_FACTOR);
    x ^ (x >> CHECKSUM_SHIFT)
}

/// Whether a value of [`RETIRED`] says that the segment was retired.
#[inline(always)]
pub const fn is_retired(mark: u64) -> bool {
    matches!(mark, REPLACED | HANDED_OVER | REMOVED)
}

/// Detects damage, not malice: a process that may write the file may also write its checksum.
pub fn checksum(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(CHECKSUM_SEED, mix)
}

const _: () = {
    assert!(POLICY_WORDS <= 255, "the policy and its checksum fill their section");
    assert!(LOCK * 8 == 0x80 && VERSION * 8 == 0x88 && CORE * 8 == 0xa0 && BOOT * 8 == 0x100);
    assert!(RULES * 8 == 0x140 && EFFECTIVE * 8 == 0x240 && POLICY * 8 == 0x480 && JOURNAL * 8 == 0x1000);
    assert!(HEALTH_STATE * 8 == 0xc80 && HEALTH_STATE + HEALTH_STATE_HEAD_WORDS == JOURNAL);
    assert!(PROGRESS_WORDS <= 8 && PLACES + WAITERS / 64 <= TURN_TABLE && WAITERS.is_multiple_of(64));
    assert!(ENTRY_WORDS <= WAKE_WORD && WAKE_WORD < ENTRY_STRIDE);
    assert!(SLOTS < (1 << 11) - 1, "the lock word has eleven bits for its owner");
    if !cfg!(loom) {
        assert!(SLOT_TABLE * 8 == 0x3000 && PROGRESS * 8 == 0x13000 && TURN_TABLE * 8 == 0x13100);
        assert!(ENTRY_TABLE * 8 == 0x23100 && RINGS * 8 == 0x43100 && SIZE == 0x48000);
        assert!(
            JOURNAL_ENTRIES
                >= POLICY_WORDS + 1 + EFFECTIVE_WORDS + MAX_RULES * RULE_WORDS + HEALTH_STATE_HEAD_WORDS,
            "a hot change is one transaction"
        );
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transactional_words_may_be_restored() {
        for word in [0, LOCK, VERSION, JOURNAL_LEN, JOURNAL, SLOT_TABLE - 1, WORDS, usize::MAX] {
            assert!(!is_journaled(word, WORDS), "word {word}");
        }
        for word in [
            CORE,
            CLOCK_OFFSET,
            RETIRED,
            RULES,
            EFFECTIVE,
            POLICY,
            POLICY_CHECKSUM,
            HEALTH_STATE,
            RINGS,
            slot_base(0),
            slot_base(SLOTS - 1) + 7,
        ] {
            assert!(is_journaled(word, WORDS), "word {word}");
        }
        for word in [WAITING, PROGRESS, PLACES, TURN_TABLE, entry_base(0), entry_base(WAITERS - 1) + 11] {
            assert!(is_journaled(word, WORDS), "word {word}");
        }
        assert!(!is_journaled(entry_base(5) + WAKE_WORD, WORDS), "wake words are outside the journal");
        assert!(!is_journaled(slot_base(3) + slot::GRANTED, WORDS), "tallies are outside the journal");
    }

    #[test]
    fn checksum_detects_swapped_and_changed_words() {
        assert_ne!(checksum([1, 2]), checksum([2, 1]));
        assert_ne!(checksum([0, 0]), checksum([0]));
        assert_ne!(checksum([7]), checksum([8]));
    }
}
