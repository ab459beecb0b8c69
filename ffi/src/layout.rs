//! The layout of a segment for programs that read one without this library: plain structs that the header shows.
//!
//! The library itself does not use these structs. The assertions at the end of each file compare every field with
//! the library's own layout, so the header cannot differ from it.

/// Asserts that fields have the same offsets here as in the library's own struct.
macro_rules! same {
    ($ours:ty, $theirs:ty: $($field:ident)*) => {
        $(assert!(offset_of!($ours, $field) == offset_of!($theirs, $field));)*
        assert!(size_of::<$ours>() == size_of::<$theirs>());
    };
}
/// Asserts the byte offsets of fields.
macro_rules! at_bytes {
    ($ours:ty: $($field:ident $at:expr,)*) => { $(assert!(offset_of!($ours, $field) == $at);)* };
}
/// Asserts that fields begin at these words of the library's layout, counted from word `from`.
macro_rules! at_words {
    ($ours:ty, from $from:expr; $($field:ident $word:expr,)*) => {
        $(assert!(offset_of!($ours, $field) == byte($word - $from));)*
    };
}

mod codes;
mod health_state;
mod participants;
mod policy;

pub use codes::*;
pub use health_state::*;
pub use participants::*;
pub use policy::*;

use ::shmlimit_segment::layout;
use shmlimit_kernel::{MAX_RULES, MAX_UNITS, breaker, queue, state, terms};
use std::mem::{offset_of, size_of};

/// The first word of every segment: the bytes "SHMLIMIT".
pub const SHMLIMIT_SEGMENT_MAGIC: u64 = 0x5449_4d49_4c4d_4853_u64;
/// The value of `byte_order`. Any other value: the file was written on a machine with another byte order, or is not
/// a segment.
pub const SHMLIMIT_SEGMENT_BYTE_ORDER: u32 = 0x0a0b_0c0d_u32;
/// The value of `hash`. It differs between builds that have the same layout version but different layouts.
pub const SHMLIMIT_SEGMENT_HASH: u64 = 0x6f4a_c2fe_69fe_2577_u64;

/// The initial value of a checksum. Then, for each word w: x = (sum ^ w) * factor, sum = x ^ x >> shift.
pub const SHMLIMIT_SEGMENT_CHECKSUM_SEED: u64 = 0xcbf2_9ce4_8422_2325_u64;
/// The factor.
pub const SHMLIMIT_SEGMENT_CHECKSUM_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15_u64;
/// The shift.
pub const SHMLIMIT_SEGMENT_CHECKSUM_SHIFT: u32 = 29;

/// The most rules of one limiter.
pub const SHMLIMIT_SEGMENT_RULES: usize = 8;
/// The most units of one limiter.
pub const SHMLIMIT_SEGMENT_UNITS: usize = 4;
/// The most participants.
pub const SHMLIMIT_SEGMENT_SLOTS: usize = 512;
/// The most calls that can wait.
pub const SHMLIMIT_SEGMENT_ENTRIES: usize = 1024;
/// The number of group turns that are stored.
pub const SHMLIMIT_SEGMENT_TURNS: usize = 4096;
/// The most words that one transaction can change.
pub const SHMLIMIT_SEGMENT_JOURNAL_ENTRIES: usize = 512;
/// The size of the ring of outcomes.
pub const SHMLIMIT_SEGMENT_OUTCOMES: usize = 1024;
/// The size of the ring of admissions.
pub const SHMLIMIT_SEGMENT_ADMISSIONS: usize = 1024;

/// Offset of the header, in bytes from the start of the file.
pub const SHMLIMIT_SEGMENT_HEADER_AT: usize = 0x0;
/// Offset of the lock.
pub const SHMLIMIT_SEGMENT_LOCK_AT: usize = 0x80;
/// Offset of the version.
pub const SHMLIMIT_SEGMENT_VERSION_AT: usize = 0x88;
/// Offset of the origin.
pub const SHMLIMIT_SEGMENT_ORIGIN_AT: usize = 0x100;
/// Offset of the rules' states.
pub const SHMLIMIT_SEGMENT_RULE_STATES_AT: usize = 0x140;
/// Offset of the effective limits.
pub const SHMLIMIT_SEGMENT_EFFECTIVE_AT: usize = 0x240;
/// Offset of the policy.
pub const SHMLIMIT_SEGMENT_POLICY_AT: usize = 0x480;
/// Offset of the health state.
pub const SHMLIMIT_SEGMENT_HEALTH_STATE_AT: usize = 0xc80;
/// Offset of the journal.
pub const SHMLIMIT_SEGMENT_JOURNAL_AT: usize = 0x1000;
/// Offset of the slots.
pub const SHMLIMIT_SEGMENT_SLOTS_AT: usize = 0x3000;
/// Offset of the queue.
pub const SHMLIMIT_SEGMENT_QUEUE_AT: usize = 0x13000;
/// Offset of the groups' turns.
pub const SHMLIMIT_SEGMENT_TURNS_AT: usize = 0x13100;
/// Offset of the queue's entries.
pub const SHMLIMIT_SEGMENT_ENTRIES_AT: usize = 0x23100;
/// Offset of the ring of outcomes.
pub const SHMLIMIT_SEGMENT_OUTCOMES_AT: usize = 0x43100;
/// Offset of the ring of admissions.
pub const SHMLIMIT_SEGMENT_ADMISSIONS_AT: usize = 0x45100;
/// Offset of the ledger.
pub const SHMLIMIT_SEGMENT_LEDGER_AT: usize = 0x47100;
/// Offset of the codes.
pub const SHMLIMIT_SEGMENT_CODES_AT: usize = 0x471c0;
/// Offset of the section about the wall clock.
pub const SHMLIMIT_SEGMENT_WALL_AT: usize = 0x47440;
/// The number of codes that are counted separately.
pub const SHMLIMIT_SEGMENT_CODES: usize = 64;
/// Offset of the pause.
pub const SHMLIMIT_SEGMENT_PAUSE_AT: usize = 0x473c0;
/// Offset of the logs, which have two words per entry and extend to the file's end. Only files with a sliding log
/// have logs.
pub const SHMLIMIT_SEGMENT_LOGS_AT: usize = 0x48000;

/// Identifies the file. Written once, before the file gets its name.
#[repr(C)]
pub struct shmlimit_segment_header {
    /// SHMLIMIT_SEGMENT_MAGIC.
    pub magic: u64,
    /// SHMLIMIT_SEGMENT_BYTE_ORDER.
    pub byte_order: u32,
    /// SHMLIMIT_LAYOUT_VERSION. If it differs, do not read on.
    pub layout_version: u32,
    /// SHMLIMIT_SEGMENT_HASH. If it differs, do not read on.
    pub hash: u64,
    /// The size of the whole file in bytes: SHMLIMIT_SEGMENT_SIZE, or more if it has logs.
    pub size: u64,
    /// When the file was created: nanoseconds since 1970 (UTC).
    pub created: u64,
    /// The generation of the limiter's name for which the file was created.
    pub generation: u64,
    /// Checksum of the six words before it.
    pub checksum: u64,
    /// Zero.
    pub unused: [u64; 9],
}

/// The origin of the limiter's clock. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_origin {
    /// Identity of the boot that the clock belongs to.
    pub boot: [u64; 2],
    /// Limiter time at the anchor.
    pub anchor_time: u64,
    /// Nanoseconds since 1970 (UTC) at the anchor.
    pub anchor_wall: u64,
    /// Raised with every change of the policy.
    pub policy_epoch: u64,
    /// How often a damaged state was reset.
    pub resets: u64,
    /// Zero.
    pub unused: [u64; 2],
}

/// The state of a rule. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_rule_state {
    /// The algorithm's private state, stored inverted, because zeros are not the state of a new rule. Not stable
    /// between versions of the library.
    pub words: [u64; 3],
    /// Units that were charged before this limiter time are not refunded any more.
    pub since: u64,
}

/// The limits that decisions use: the policy, adjusted for the breaker's state. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_effective {
    /// Unused rules: SHMLIMIT_SEGMENT_RULES minus the rules of the policy.
    pub spare_rules: u8,
    /// Units in use.
    pub unit_count: u8,
    /// Zero.
    pub unused_counts: [u8; 6],
    /// Most calls in flight in this state; 4096 if the policy has no limit.
    pub concurrency: u32,
    /// Most background calls in flight; 2^32 - 1 = as many as of any priority.
    pub concurrency_background: u32,
    /// How waiting calls are served.
    pub queueing: shmlimit_segment_queueing,
    /// Before this limiter time no pause, breaker, gate or pace blocks a call.
    pub next_check: u64,
    /// Zero.
    pub unused: [u64; 4],
    /// Derived numbers of each rule. Not stable between versions of the library.
    pub terms: [[u64; 8]; SHMLIMIT_SEGMENT_RULES],
}

/// One word that the transaction in progress has changed. Only the lock holder writes it.
#[repr(C)]
pub struct shmlimit_segment_journal_entry {
    /// The word's index, counted from the start of the file.
    pub word: u64,
    /// The word's old value.
    pub before: u64,
}

/// A segment: the file DIRECTORY/NAME.shm, up to its logs.
///
/// Reading a segment without the library (examples/c/raw_status.c does all of this):
///
/// 1. Open the file read-only and map it (PROT_READ, MAP_SHARED). It must be at least SHMLIMIT_SEGMENT_SIZE bytes long,
///    and its size must equal `header.size`. Map SHMLIMIT_SEGMENT_SIZE bytes, or the whole file to read the logs.
/// 2. Check magic, byte order, layout version, hash and checksum. If one differs, nothing below applies. The structs are
///    those of a little-endian machine; on other machines the byte order never compares equal.
/// 3. Other processes change the words at any time, so every access is an atomic load: 64 bits at an address that is a
///    multiple of 8 (memory_order_relaxed is enough), or 32 bits for the lock and the wake words. A plain read through the
///    struct is a data race. Copy the words you need out of the mapping, and read the copy:
///    - load `version` (memory_order_acquire); if it is odd, a transaction is in progress: start again;
///    - copy the words you need (memory_order_relaxed);
///    - atomic_thread_fence(memory_order_acquire);
///    - load `version` (memory_order_relaxed); if it has changed, the copy is torn: start again.
///
///    Such a copy is one committed state. Copy little: the longer a copy takes, the more often it is torn. If the version
///    stays odd, the process in the transaction is stopped or dead; the next process that uses the limiter repairs the state.
/// 4. Do not trust the copy beyond that: limit counts and indices to their ranges before you use them.
///
/// These are the writers of each part:
///
/// - the header: no process, once the file has its name;
/// - everything marked "transactions only": the process that holds the lock, between an odd and an even version;
/// - the lock and the wake words: any process; they are futexes;
/// - the counts at a slot's end: the slot's owner, without a lock and outside of transactions, so they may be
///   ahead of the rest.
///
/// A reader never writes, and takes no lock of any kind: it changes no word of the file, and takes no byte lock on
/// it. Programs that want to change anything use the library.
///
/// Times are limiter times, in nanoseconds: CLOCK_BOOTTIME + clock_offset, in the initial time namespace.
#[repr(C)]
pub struct shmlimit_segment {
    /// Identifies the file.
    pub header: shmlimit_segment_header,
    /// The lock. The slot + 1 of the process that changes the segment is in bits 20 to 30; 0 = the lock is free. It
    /// is a futex, therefore 32 bits.
    pub lock: u32,
    /// Not used.
    pub lock_unused: u32,
    /// Even: the state is consistent. Odd: a transaction is in progress, or the process in it died.
    pub version: u64,
    /// The number of journal entries of the transaction in progress.
    pub journal_length: u64,
    /// The number of waiting calls, by priority (SHMLIMIT_SEGMENT_PRIORITY_...); the last is zero.
    pub waiting: [u16; 4],
    /// Limiter time of the latest change.
    pub latest: u64,
    /// Permits in use.
    pub in_flight: u32,
    /// Permits that background calls hold.
    pub in_flight_background: u32,
    /// Limiter time is CLOCK_BOOTTIME in nanoseconds, plus this offset, modulo 2^64.
    pub clock_offset: u64,
    /// SHMLIMIT_SEGMENT_LIVE: the file is in use. 1 to 3: nothing is granted from this file any more, open the
    /// limiter again by its name. Any other value is damage.
    pub retired: u64,
    /// Zero.
    pub core_unused: [u64; 8],
    /// The origin of the limiter's clock.
    pub origin: shmlimit_segment_origin,
    /// The states of the rules, in the policy's order.
    pub rule_states: [shmlimit_segment_rule_state; SHMLIMIT_SEGMENT_RULES],
    /// The effective limits.
    pub effective: shmlimit_segment_effective,
    /// The configured policy.
    pub policy: shmlimit_segment_policy,
    /// The health state of the server.
    pub health_state: shmlimit_segment_health_state,
    /// The old values of the words that the transaction in progress has changed.
    pub journal: [shmlimit_segment_journal_entry; SHMLIMIT_SEGMENT_JOURNAL_ENTRIES],
    /// The attached processes.
    pub slots: [shmlimit_segment_slot; SHMLIMIT_SEGMENT_SLOTS],
    /// The state of the queue.
    pub queue: shmlimit_segment_queue,
    /// The ends of groups' turns.
    pub turns: [shmlimit_segment_turn; SHMLIMIT_SEGMENT_TURNS],
    /// The waiting calls: entries whose bit of `queue.places` is set.
    pub entries: [shmlimit_segment_entry; SHMLIMIT_SEGMENT_ENTRIES],
    /// Ring of the newest outcomes: limiter time << 2 | class. See `health_state.health.oldest`.
    pub outcomes: [u64; SHMLIMIT_SEGMENT_OUTCOMES],
    /// Ring of the newest admissions: limiter times. See `health_state.pace.admitted`.
    pub admissions: [u64; SHMLIMIT_SEGMENT_ADMISSIONS],
    /// Counts that affect no decision.
    pub ledger: shmlimit_segment_ledger,
    /// How calls ended: code << 48 | count. A code is an HTTP status, or 1 connect_timeout, 2 read_timeout, 3 dns,
    /// 4 connection; 0 with a count: all calls whose code found no place. Status 200 is not stored: its count is
    /// `health_state.tallies.ok` minus the other successes.
    pub codes: [u64; SHMLIMIT_SEGMENT_CODES],
    /// The latest pause.
    pub pause: shmlimit_segment_pause,
    /// The state of the wall clock. Not stable between versions of the library.
    pub wall: [u64; 24],
    /// Zero.
    pub unused: [u64; 352],
}

/// The byte offset of a word.
const fn byte(word: usize) -> usize {
    8 * word
}

const _: () = {
    assert!(SHMLIMIT_SEGMENT_MAGIC == layout::MAGIC && SHMLIMIT_SEGMENT_BYTE_ORDER == layout::BYTE_ORDER);
    assert!(SHMLIMIT_SEGMENT_HASH == layout::layout_hash(), "the layout has changed: put the new hash above");
    assert!(SHMLIMIT_SEGMENT_CHECKSUM_SEED == layout::CHECKSUM_SEED);
    assert!(SHMLIMIT_SEGMENT_CHECKSUM_FACTOR == layout::CHECKSUM_FACTOR);
    assert!(SHMLIMIT_SEGMENT_CHECKSUM_SHIFT == layout::CHECKSUM_SHIFT);
    assert!(SHMLIMIT_SEGMENT_RULES == MAX_RULES && SHMLIMIT_SEGMENT_UNITS == MAX_UNITS);
    assert!(SHMLIMIT_SEGMENT_SLOTS == layout::SLOTS && SHMLIMIT_SEGMENT_ENTRIES == queue::WAITERS);
    assert!(SHMLIMIT_SEGMENT_TURNS == queue::TURNS);
    assert!(SHMLIMIT_SEGMENT_JOURNAL_ENTRIES == layout::JOURNAL_ENTRIES);
    assert!(SHMLIMIT_SEGMENT_LOGS_AT == layout::SIZE);
    assert!(size_of::<shmlimit_segment>() == layout::SIZE);
};

/// Header, origin, rule states and effective limits.
const _: () = {
    use layout::header::*;
    assert!(size_of::<shmlimit_segment_header>() == byte(WORDS));
    assert!(offset_of!(shmlimit_segment_header, layout_version) == byte(FORMAT) + 4);
    at_words!(shmlimit_segment_header, from 0; magic MAGIC, byte_order FORMAT, hash HASH, size SIZE, created CREATED,
        generation GENERATION, checksum CHECKSUM,);
    at_words!(shmlimit_segment_origin, from SHMLIMIT_SEGMENT_ORIGIN_AT / 8; boot layout::BOOT,
        anchor_time layout::ANCHOR_TIME, anchor_wall layout::ANCHOR_WALL, policy_epoch layout::POLICY_EPOCH,
        resets layout::RESETS,);
    assert!(size_of::<shmlimit_segment_rule_state>() == byte(state::RULE_WORDS));
    at_words!(shmlimit_segment_rule_state, from 0; since state::RULE_WORDS - 1,);
    assert!(size_of::<shmlimit_segment_effective>() == byte(breaker::EFFECTIVE_WORDS));
    at_words!(shmlimit_segment_effective, from 0; concurrency 1, queueing 2, next_check 3,
        terms breaker::terms_range(0).start,);
    assert!(size_of::<[u64; 8]>() == byte(terms::TERMS_WORDS));
};

/// The whole segment: offsets as the header states them and as the library has them.
const _: () = {
    type All = shmlimit_segment;
    at_bytes!(All: header SHMLIMIT_SEGMENT_HEADER_AT, lock SHMLIMIT_SEGMENT_LOCK_AT, version SHMLIMIT_SEGMENT_VERSION_AT,
        origin SHMLIMIT_SEGMENT_ORIGIN_AT, rule_states SHMLIMIT_SEGMENT_RULE_STATES_AT,
        effective SHMLIMIT_SEGMENT_EFFECTIVE_AT, policy SHMLIMIT_SEGMENT_POLICY_AT,
        health_state SHMLIMIT_SEGMENT_HEALTH_STATE_AT, journal SHMLIMIT_SEGMENT_JOURNAL_AT,
        slots SHMLIMIT_SEGMENT_SLOTS_AT, queue SHMLIMIT_SEGMENT_QUEUE_AT, turns SHMLIMIT_SEGMENT_TURNS_AT,
        entries SHMLIMIT_SEGMENT_ENTRIES_AT, outcomes SHMLIMIT_SEGMENT_OUTCOMES_AT,
        admissions SHMLIMIT_SEGMENT_ADMISSIONS_AT, ledger SHMLIMIT_SEGMENT_LEDGER_AT, codes SHMLIMIT_SEGMENT_CODES_AT,
        pause SHMLIMIT_SEGMENT_PAUSE_AT, wall SHMLIMIT_SEGMENT_WALL_AT,);
    at_words!(All, from 0; lock layout::LOCK, version layout::VERSION, journal_length layout::JOURNAL_LEN,
        waiting layout::WAITING, latest layout::CORE, in_flight layout::CORE + 1, clock_offset layout::CLOCK_OFFSET,
        retired layout::RETIRED, rule_states layout::RULES, effective layout::EFFECTIVE, policy layout::POLICY,
        health_state layout::HEALTH_STATE, journal layout::JOURNAL, slots layout::SLOT_TABLE, queue layout::PROGRESS,
        turns layout::TURN_TABLE, entries layout::ENTRY_TABLE, outcomes layout::RINGS, wall layout::LATEST_TIME,);
    let core = byte(layout::CORE);
    at_bytes!(All: latest core + offset_of!(state::Core, latest), in_flight core + offset_of!(state::Core, in_flight),
        in_flight_background core + offset_of!(state::Core, in_flight_background),);
    assert!(size_of::<[u64; 24]>() == byte(layout::WALL_WORDS));
};
