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

/// The state that a new segment starts with.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// Its policy.
    pub policy: Policy,
    /// Counts from before: none, unless it continues a segment that was deleted while programs used it.
    saved_state: SavedState,
    /// The clock of the saved state, as an offset to the machine's clock.
    clock_offset: u64,
    /// The knowledge about the wall clock: see `wall_clock.rs`.
    wall: [u64; layout::WALL_WORDS],
    /// The latest time in the saved state, if that time may lie in the future; otherwise 0.
    latest: u64,
    /// Permits of deleted segments that are still held.
    inherited: Vec<Inherited>,
}

impl InitialState {
    /// A fresh limiter: full buckets.
    pub fn fresh(policy: Policy) -> InitialState {
        let saved_state = LocalMemory::new(&policy).into_saved_state();
        let wall = [0; layout::WALL_WORDS];
        InitialState { policy, saved_state, clock_offset: 0, wall, latest: 0, inherited: Vec::new() }
    }

    /// A limiter of which other programs may still use an older segment, for `place` at most. Until then it has
    /// nothing to give. From then on it fills like an empty limiter. All permits count as held for as long as an
    /// older participant may hold any.
    pub fn used_up(policy: Policy, place: Duration, clock: &ClockSource) -> Result<InitialState, Error> {
        let fresh = InitialState::fresh(policy);
        let now = clock.first_now().map_err(Error::io("read the clock for", Path::new("a limiter")))?;
        let mut empty = LocalMemory::starting_at(&policy, clock.wall_at(now).wrapping_sub(now));
        let place = u64::try_from(place.as_nanos()).unwrap_or(u64::MAX);
        let latest = now.saturating_add(place);
        decide::reset(&mut empty, Some(&policy), Time(latest));
        // A log with entries after the latest decision would look damaged, and so would a decision far in the
        // future.
        let latest = if place < sanity::SKEW { latest } else { 0 };
        let inherited = Inherited::unknown(&policy, Time(now)).into_iter().collect();
        Ok(InitialState { saved_state: empty.into_saved_state(), latest, inherited, ..fresh })
    }

    /// Continues a segment that was deleted while programs used it. `Err` says what is wrong with its policy.
    ///
    /// Reads without the lock. If the lock holder is dead, no process can prove it any more, because liveness locks
    /// are tested through the file's name. A change that such a holder left half done is lost, and nothing is
    /// handed out in its place.
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
        // The wall clock decides which calendar window is used up.
        let epoch = words.load(layout::ANCHOR_WALL).wrapping_sub(words.load(layout::ANCHOR_TIME));
        let mut empty = LocalMemory::starting_at(&policy, epoch);
        // A valid pause continues (R148).
        empty
            .set_health_state(PAUSE_AT, words.load_array::<PAUSE_WORDS>(layout::health_state_word(PAUSE_AT)));
        decide::reset(&mut empty, Some(&policy), Time(raw.wrapping_add(clock_offset)));
        // A half-done transaction concerns the permits of its owner, and that owner is dead.
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
    /// The counts of one of its rules.
    pub(crate) fn rule(&self, rule: usize) -> shmlimit_kernel::RuleState {
        self.saved_state.rules[rule]
    }
}

/// Everything that a segment has counted and that outlives its participants.
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

/// Writes a whole segment into a file that no other process can see yet.
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
        // A test may begin before the earliest time at which a machine's clock counts as set.
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
            // The segment was created before the machine's clock was set. The day is not known until the clock is
            // set.
            words.store(layout::OFF_UNKNOWN, 1);
        } else {
            words.store(layout::LATEST_TIME, now.max(1));
            words.store(layout::LATEST_WALL, wall);
        }
    }
}
