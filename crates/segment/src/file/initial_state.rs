//! The state that a new segment starts with: fresh, used up, or continued from a deleted segment.

use super::inherited::{self, Inherited};
use crate::clock_source::ClockSource;
use crate::error::Error;
use crate::journal;
use crate::layout::{self, UNSET_BEFORE, header};
use crate::memory::{Reader, inverted};
use crate::sanity;
use crate::words::Words;
use shmlimit_kernel::decide;
use shmlimit_kernel::health_state::{HEALTH_STATE_WORDS, PAUSE_AT};
use shmlimit_kernel::memory::{LocalMemory, SavedState};
use shmlimit_kernel::pause::PAUSE_WORDS;
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::state::{Memory, View};
use shmlimit_kernel::time::Time;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a new segment starts with.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// Its policy.
    pub policy: Policy,
    /// What it has seen already: nothing, unless it continues a segment that was deleted under its users.
    saved_state: SavedState,
    /// The clock that refers to, as an offset to the machine's.
    clock_offset: u64,
    /// What is known of the wall clock: see `wall_clock.rs`.
    wall: [u64; layout::WALL_WORDS],
    /// The latest time in what it has seen, if that is not over yet.
    latest: u64,
    /// Permits that are out of segments which were deleted.
    inherited: Vec<Inherited>,
}

impl InitialState {
    /// A fresh limiter: full buckets.
    pub fn fresh(policy: Policy) -> InitialState {
        let saved_state = LocalMemory::new(&policy).into_saved_state();
        let wall = [0; layout::WALL_WORDS];
        InitialState { policy, saved_state, clock_offset: 0, wall, latest: 0, inherited: Vec::new() }
    }

    /// A limiter of which others may still use an older segment, for as long as `place` at most: nothing is left to be had
    /// until then, and from then on it fills as an empty one does. All permits count as out for as long as one of them may
    /// hold any.
    pub fn used_up(policy: Policy, place: Duration, clock: &ClockSource) -> Result<InitialState, Error> {
        let fresh = InitialState::fresh(policy);
        let now = clock.first_now().map_err(Error::io("read the clock for", Path::new("a limiter")))?;
        let mut empty = LocalMemory::starting_at(&policy, clock.wall_at(now).wrapping_sub(now));
        let place = u64::try_from(place.as_nanos()).unwrap_or(u64::MAX);
        let latest = now.saturating_add(place);
        decide::reset(&mut empty, Some(&policy), Time(latest));
        // A log with entries after the latest decision would be taken for damage, and so would a decision far ahead.
        let latest = if place < sanity::SKEW { latest } else { 0 };
        let inherited = Inherited::unknown(&policy, Time(now)).into_iter().collect();
        Ok(InitialState { saved_state: empty.into_saved_state(), latest, inherited, ..fresh })
    }

    /// Goes on where a segment was deleted under its users; `Err` says what is wrong with its policy.
    ///
    /// Without the lock: if its owner is dead, nobody can prove it any more, because liveness locks are felt through the
    /// file's name. What such an owner left half done is lost, and nothing is handed out in its place.
    pub fn after(words: &Words, raw: u64) -> Result<InitialState, String> {
        let clock_offset = words.load(layout::CLOCK_OFFSET);
        let wall = words.load_array(layout::LATEST_TIME);
        let read = |words: &Words| (sanity::policy(words), saved_state(words), inherited::from(words));
        if let Some((policy, saved_state, inherited)) = journal::read(words, read) {
            return Ok(InitialState {
                policy: policy?,
                saved_state,
                clock_offset,
                wall,
                latest: 0,
                inherited,
            });
        }
        let policy = sanity::policy(words)?;
        // Which calendar window is used up depends on the wall clock.
        let epoch = words.load(layout::ANCHOR_WALL).wrapping_sub(words.load(layout::ANCHOR_TIME));
        let mut empty = LocalMemory::starting_at(&policy, epoch);
        // A pause that makes sense goes on (R148).
        empty
            .set_health_state(PAUSE_AT, words.load_array::<PAUSE_WORDS>(layout::health_state_word(PAUSE_AT)));
        decide::reset(&mut empty, Some(&policy), Time(raw.wrapping_add(clock_offset)));
        // What a transaction leaves half done is about the permits of its owner, who is dead.
        let inherited = inherited::from(words);
        Ok(InitialState {
            policy,
            saved_state: empty.into_saved_state(),
            clock_offset,
            wall,
            latest: 0,
            inherited,
        })
    }
}

#[cfg(test)]
impl InitialState {
    /// What one of its rules has seen.
    pub(crate) fn rule(&self, rule: usize) -> shmlimit_kernel::RuleState {
        self.saved_state.rules[rule]
    }
}

/// What a segment has seen: all that outlives its participants.
fn saved_state(words: &Words) -> SavedState {
    let cells = words.cells();
    let load = |word| cells.at_any(word).load(Ordering::Relaxed);
    SavedState {
        rules: std::array::from_fn(|i| Reader(cells).rule(i)),
        effective: cells.load_array(layout::EFFECTIVE),
        health_state: (0..HEALTH_STATE_WORDS).map(|at| cells.load(layout::health_state_word(at))).collect(),
        logs: (layout::WORDS..cells.count()).map(load).collect(),
    }
}

/// Writes a whole segment into a file that nobody else can see yet.
pub(crate) fn fill(
    words: &Words,
    seed: &InitialState,
    generation: u64,
    clock: &ClockSource,
) -> io::Result<()> {
    let raw = clock.first_now()?;
    let (now, wall) = (raw.wrapping_add(seed.clock_offset), clock.wall_at(raw));
    words.store(header::MAGIC, layout::MAGIC);
    words.store(header::FORMAT, u64::from(layout::LAYOUT_VERSION) << 32 | u64::from(layout::BYTE_ORDER));
    words.store(header::HASH, layout::layout_hash());
    words.store(header::SIZE, words.cells().count() as u64 * 8);
    words.store(header::CREATED, wall);
    words.store(header::GENERATION, generation);
    words.store(header::CHECKSUM, layout::checksum((0..header::CHECKSUM).map(|word| words.load(word))));
    words.store(layout::CLOCK_OFFSET, seed.clock_offset);
    words.store(layout::RETIRED, layout::LIVE);
    for (i, word) in clock.boot_id()?.into_iter().enumerate() {
        words.store(layout::BOOT + i, word);
    }
    for (i, word) in seed.wall.into_iter().enumerate() {
        words.store(layout::LATEST_TIME + i, word);
    }
    set_clocks(words, now, wall);
    if clock.is_test() {
        // A test may begin before the time from which on a machine's clock counts as set.
        words.store(layout::OFF_UNKNOWN, 0);
    }
    words.store(layout::CORE, now.max(seed.latest));
    inherited::put(words, &seed.inherited);
    let policy = seed.policy.encode();
    let put = |first: usize, values: &mut dyn Iterator<Item = u64>| {
        for (word, value) in (first..words.cells().count()).zip(values) {
            words.cells().at_any(word).store(value, Ordering::Relaxed);
        }
    };
    let SavedState { rules, effective, health_state, logs } = &seed.saved_state;
    put(layout::RULES, &mut rules.iter().flat_map(|state| inverted(state.0)));
    put(layout::EFFECTIVE, &mut effective.iter().copied());
    put(layout::POLICY, &mut policy.into_iter());
    put(layout::WORDS, &mut logs.iter().copied());
    for (at, word) in health_state.iter().enumerate() {
        words.store(layout::health_state_word(at), *word);
    }
    words.store(layout::POLICY_CHECKSUM, layout::checksum(policy));
    Ok(())
}

/// Notes in a new segment when it begins.
pub(crate) fn set_clocks(words: &Words, now: u64, wall: u64) {
    words.store(layout::CORE, now);
    words.store(layout::ANCHOR_TIME, now);
    words.store(layout::ANCHOR_WALL, wall);
    if words.load(layout::LATEST_TIME) == 0 {
        if wall < UNSET_BEFORE {
            // Made before the machine's clock was set: nothing is known of the day until it is.
            words.store(layout::OFF_UNKNOWN, 1);
        } else {
            words.store(layout::LATEST_TIME, now.max(1));
            words.store(layout::LATEST_WALL, wall);
        }
    }
}
