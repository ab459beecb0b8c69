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

/// First word of every segment: the bytes "SHMLIMIT".
pub const SHMLIMIT_SEGMENT_MAGIC: u64 = 0x5449_4d49_4c4d_4853_u64;
/// What `byte_order` must be. Anything else: the segment is of a machine of another byte order, or none.
pub const SHMLIMIT_SEGMENT_BYTE_ORDER: u32 = 0x0a0b_0c0d_u32;
/// What `hash` must be: builds that agree on the layout version but not on the layout differ here.
pub const SHMLIMIT_SEGMENT_HASH: u64 = 0x6f4a_c2fe_69fe_2577_u64;

/// A checksum starts from this; then for each word w: x = (sum ^ w) * factor, sum = x ^ x >> shift.
pub const SHMLIMIT_SEGMENT_CHECKSUM_SEED: u64 = 0xcbf2_9ce4_8422_2325_u64;
/// The factor.
pub const SHMLIMIT_SEGMENT_CHECKSUM_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15_u64;
/// The shift.
pub const SHMLIMIT_SEGMENT_CHECKSUM_SHIFT: u32 = 29;

/// Most rules of one limiter.
pub const SHMLIMIT_SEGMENT_RULES: usize = 8;
/// Most units of one limiter.
pub const SHMLIMIT_SEGMENT_UNITS: usize = 4;
/// How many participants there is room for.
pub const SHMLIMIT_SEGMENT_SLOTS: usize = 512;
/// How many calls can wait.
pub const SHMLIMIT_SEGMENT_ENTRIES: usize = 1024;
/// How many turns of groups are remembered.
pub const SHMLIMIT_SEGMENT_TURNS: usize = 4096;
/// How many words one transaction can change.
pub const SHMLIMIT_SEGMENT_JOURNAL_ENTRIES: usize = 512;
/// Outcomes in their ring.
pub const SHMLIMIT_SEGMENT_OUTCOMES: usize = 1024;
/// Admissions in their ring.
pub const SHMLIMIT_SEGMENT_ADMISSIONS: usize = 1024;

/// Where the header is, in bytes from the start of the file.
pub const SHMLIMIT_SEGMENT_HEADER_AT: usize = 0x0;
/// Where the lock is.
pub const SHMLIMIT_SEGMENT_LOCK_AT: usize = 0x80;
/// Where the version is.
pub const SHMLIMIT_SEGMENT_VERSION_AT: usize = 0x88;
/// Where the origin is.
pub const SHMLIMIT_SEGMENT_ORIGIN_AT: usize = 0x100;
/// Where the rules' states are.
pub const SHMLIMIT_SEGMENT_RULE_STATES_AT: usize = 0x140;
/// Where what is effective is.
pub const SHMLIMIT_SEGMENT_EFFECTIVE_AT: usize = 0x240;
/// Where the policy is.
pub const SHMLIMIT_SEGMENT_POLICY_AT: usize = 0x480;
/// Where the health state is.
pub const SHMLIMIT_SEGMENT_HEALTH_STATE_AT: usize = 0xc80;
/// Where the journal is.
pub const SHMLIMIT_SEGMENT_JOURNAL_AT: usize = 0x1000;
/// Where the slots are.
pub const SHMLIMIT_SEGMENT_SLOTS_AT: usize = 0x3000;
/// Where the queue is.
pub const SHMLIMIT_SEGMENT_QUEUE_AT: usize = 0x13000;
/// Where the groups' turns are.
pub const SHMLIMIT_SEGMENT_TURNS_AT: usize = 0x13100;
/// Where the entries of the queue are.
pub const SHMLIMIT_SEGMENT_ENTRIES_AT: usize = 0x23100;
/// Where the ring of outcomes is.
pub const SHMLIMIT_SEGMENT_OUTCOMES_AT: usize = 0x43100;
/// Where the ring of admissions is.
pub const SHMLIMIT_SEGMENT_ADMISSIONS_AT: usize = 0x45100;
/// Where the ledger is.
pub const SHMLIMIT_SEGMENT_LEDGER_AT: usize = 0x47100;
/// Where the codes are.
pub const SHMLIMIT_SEGMENT_CODES_AT: usize = 0x471c0;
/// Where the section about the wall clock is.
pub const SHMLIMIT_SEGMENT_WALL_AT: usize = 0x47440;
/// How many codes are counted apart.
pub const SHMLIMIT_SEGMENT_CODES: usize = 64;
/// Where the pause is.
pub const SHMLIMIT_SEGMENT_PAUSE_AT: usize = 0x473c0;
/// Where the logs begin, two words an entry, up to the file's end. Only files with a sliding log have any.
pub const SHMLIMIT_SEGMENT_LOGS_AT: usize = 0x48000;

/// Written once, before the file has its name.
#[repr(C)]
pub struct shmlimit_segment_header {
    /// SHMLIMIT_SEGMENT_MAGIC.
    pub magic: u64,
    /// SHMLIMIT_SEGMENT_BYTE_ORDER.
    pub byte_order: u32,
    /// SHMLIMIT_LAYOUT_VERSION. Do not read on if it is another one.
    pub layout_version: u32,
    /// SHMLIMIT_SEGMENT_HASH. Do not read on if it is another one.
    pub hash: u64,
    /// Bytes of the whole file: SHMLIMIT_SEGMENT_SIZE, or more if it has logs.
    pub size: u64,
    /// When it was made: nanoseconds since 1970 (UTC).
    pub created: u64,
    /// The generation of the limiter's name that it was made for.
    pub generation: u64,
    /// Checksum of the six words before it.
    pub checksum: u64,
    /// Zero.
    pub unused: [u64; 9],
}

/// Where the limiter's clock comes from. Transactions only.
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
    /// How often a damaged state was started afresh.
    pub resets: u64,
    /// Zero.
    pub unused: [u64; 2],
}

/// What a rule has seen. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_rule_state {
    /// The algorithm's business, stored inverted: zeros are not a fresh rule. Not stable between versions of the library.
    pub words: [u64; 3],
    /// What was charged before this limiter time is not refunded any more.
    pub since: u64,
}

/// What decisions read: the policy as the breaker's state makes it. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_effective {
    /// Rules not in use: SHMLIMIT_SEGMENT_RULES less those of the policy.
    pub spare_rules: u8,
    /// Units in use.
    pub unit_count: u8,
    /// Zero.
    pub unused_counts: [u8; 6],
    /// Most calls in flight in this state; 4096 where the policy has no bound.
    pub concurrency: u32,
    /// Most calls in flight for the background; 2^32 - 1 = as many as any.
    pub concurrency_background: u32,
    /// How those who wait are served.
    pub queueing: shmlimit_segment_queueing,
    /// Before this limiter time no pause, breaker, gate or pace is in the way.
    pub next_check: u64,
    /// Zero.
    pub unused: [u64; 4],
    /// Derived numbers of each rule. Not stable between versions of the library.
    pub terms: [[u64; 8]; SHMLIMIT_SEGMENT_RULES],
}

/// One word that the transaction under way has changed. The lock holder only.
#[repr(C)]
pub struct shmlimit_segment_journal_entry {
    /// Which word, from the start of the file.
    pub word: u64,
    /// What it was before.
    pub before: u64,
}

/// A segment: the file DIRECTORY/NAME.shm, up to its logs.
///
/// Reading a segment without the library (examples/c/raw_status.c does all of this):
///
/// 1. Open the file read-only and map it (PROT_READ, MAP_SHARED). It must be at least SHMLIMIT_SEGMENT_SIZE bytes long,
///    and exactly `header.size`. Map SHMLIMIT_SEGMENT_SIZE bytes, or all of them to see the logs.
/// 2. Check magic, byte order, layout version, hash and checksum. If one differs, nothing below holds. The structs are those of a
///    little-endian machine; on any other the byte order never compares equal.
/// 3. Others change the words at any time, so every access is an atomic load: 64 bits at an address that 8 divides
///    (memory_order_relaxed will do), or 32 bits for the lock and the wake words. A plain read through the struct is a data
///    race. Copy what you need out of the mapping, and read the copy:
///    - load `version` (memory_order_acquire); if it is odd, a transaction is under way: begin again;
///    - copy the words you need (memory_order_relaxed);
///    - atomic_thread_fence(memory_order_acquire);
///    - load `version` (memory_order_relaxed); if it is another one than before, the copy is torn: begin again.
///
///    A copy that was taken so is one committed state. Copy little: the longer it takes, the more often it is torn. If
///    the version stays odd, its owner is stopped or dead; the next process that uses the limiter puts things right.
/// 4. Nothing in the copy is to be trusted further than that: bring counts and indices into range before you use them.
///
/// Who writes what: the header nobody, once the file has its name. Everything marked "transactions only": the process
/// that holds the lock, between an odd and an even version. The lock and the wake words: anybody, they are futexes. The counts
/// at a slot's end: its owner, without a lock and outside of transactions, so they may be ahead of the rest.
///
/// A reader never writes, and takes no lock of any kind: neither a word of the file nor a byte lock on it. Programs that
/// want to change anything use the library.
///
/// Times are the limiter's, in nanoseconds: CLOCK_BOOTTIME + clock_offset, in the initial time namespace.
#[repr(C)]
pub struct shmlimit_segment {
    /// What kind of file this is.
    pub header: shmlimit_segment_header,
    /// Who changes the segment: its slot + 1 in bits 20 to 30, 0 = nobody. A futex, therefore 32 bits.
    pub lock: u32,
    /// Not used.
    pub lock_unused: u32,
    /// Even: the state is whole. Odd: a transaction is under way, or its owner died in it.
    pub version: u64,
    /// How many journal entries belong to the transaction under way.
    pub journal_length: u64,
    /// How many calls wait, by priority (SHMLIMIT_SEGMENT_PRIORITY_...); the last is zero.
    pub waiting: [u16; 4],
    /// Limiter time of the latest change.
    pub latest: u64,
    /// Permits that are out.
    pub in_flight: u32,
    /// Those of them that background calls hold.
    pub in_flight_background: u32,
    /// Limiter time is CLOCK_BOOTTIME in nanoseconds, plus this, modulo 2^64.
    pub clock_offset: u64,
    /// 1 to 3: nothing is granted from this file any more, open it again by its name. SHMLIMIT_SEGMENT_LIVE: it is in use.
    /// All else is damage.
    pub retired: u64,
    /// Zero.
    pub core_unused: [u64; 8],
    /// Where its clock comes from.
    pub origin: shmlimit_segment_origin,
    /// What the rules have seen, in the policy's order.
    pub rule_states: [shmlimit_segment_rule_state; SHMLIMIT_SEGMENT_RULES],
    /// What is effective.
    pub effective: shmlimit_segment_effective,
    /// What was configured.
    pub policy: shmlimit_segment_policy,
    /// How the server is doing.
    pub health_state: shmlimit_segment_health_state,
    /// What the transaction under way has changed.
    pub journal: [shmlimit_segment_journal_entry; SHMLIMIT_SEGMENT_JOURNAL_ENTRIES],
    /// Who is attached.
    pub slots: [shmlimit_segment_slot; SHMLIMIT_SEGMENT_SLOTS],
    /// How far the queue has come.
    pub queue: shmlimit_segment_queue,
    /// What groups' turns have come to.
    pub turns: [shmlimit_segment_turn; SHMLIMIT_SEGMENT_TURNS],
    /// Who waits: entries whose bit of `queue.places` is set.
    pub entries: [shmlimit_segment_entry; SHMLIMIT_SEGMENT_ENTRIES],
    /// Ring of the newest outcomes: limiter time << 2 | class. See `health_state.health.oldest`.
    pub outcomes: [u64; SHMLIMIT_SEGMENT_OUTCOMES],
    /// Ring of the newest admissions: limiter times. See `health_state.pace.admitted`.
    pub admissions: [u64; SHMLIMIT_SEGMENT_ADMISSIONS],
    /// What is counted for people only.
    pub ledger: shmlimit_segment_ledger,
    /// How calls ended: code << 48 | count. A code is an HTTP status, or 1 connect_timeout, 2 read_timeout, 3 dns,
    /// 4 connection; 0 with a count: all that found no place. Status 200 is not among them: it is what remains of
    /// `health_state.tallies.ok`.
    pub codes: [u64; SHMLIMIT_SEGMENT_CODES],
    /// The latest pause.
    pub pause: shmlimit_segment_pause,
    /// What is known of the wall clock. Not stable between versions of the library.
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
