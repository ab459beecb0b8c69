//! Executes an operation one instruction at a time, and recovers every image on the way.

use super::image::{Camera, Image, Recovered, WAITERS};
use super::ptrace::{Step, Tracee};
use shmlimit_segment::layout::VERSION;
use std::collections::HashMap;
use std::path::Path;

/// The committed states that an operation went through, one image each.
pub struct Walk {
    /// The first one is the state before the operation.
    pub committed: Vec<Image>,
    last: Image,
}

impl Walk {
    /// The state before the operation.
    pub fn before(&self) -> &Image {
        &self.committed[0]
    }

    /// The state after the whole operation, with its effects outside of the transactional state: wake words,
    /// tallies.
    pub fn last(&self) -> &Image {
        &self.last
    }

    /// The last committed state.
    pub fn after(&self) -> &Image {
        self.committed.last().unwrap()
    }
}

/// A lock word without a holder.
const FREE: u32 = 0;

/// Executes one operation and recovers every image on the way.
///
/// A commit is one store: the one that makes the version even. So recovery must return the state of the last even
/// version at each image. If a walk has two committed states, recovery returned exactly the state before or the
/// state after, in this order.
pub fn walk(test: &str, role: &str, directory: &Path, permits: bool) -> Walk {
    walk_on(Tracee::start(test, role, directory), role, directory, permits)
}

/// The same with a child that is already at its mark.
pub fn walk_on(tracee: Tracee, role: &str, directory: &Path, permits: bool) -> Walk {
    walk_where(tracee, role, directory, permits, |_| true)
}

/// The same for operations where only some words can be compared: those that do not depend on the time of recovery.
pub fn walk_where(
    mut tracee: Tracee,
    role: &str,
    directory: &Path,
    permits: bool,
    counts: impl Fn(usize) -> bool,
) -> Walk {
    let camera = Camera::new(directory);
    let mut last = Image::blank();
    camera.take(&mut last);
    let mut now = last.clone();
    let mut committed = vec![last.clone()];
    // By lock word: the lock holder determines whose slot the newcomer reclaims.
    let mut expected: HashMap<u32, Recovered> = HashMap::new();
    let (mut steps, mut pictures) = (0, 0);
    loop {
        let step = tracee.step();
        steps += 1;
        if !camera.still_shows(&last) || step == Step::Done {
            camera.take(&mut now);
            pictures += 1;
            // A waiter that is woken before the change would find nothing, and sleep again.
            let wakes = (0..WAITERS).any(|place| now.wake_word(place) != last.wake_word(place));
            assert!(
                !wakes || (now.is_whole() && now.lock_owner().is_none()),
                "{role}: a ring before the change"
            );
            let commits = now.is_whole() && !last.is_whole();
            let base = committed.last().unwrap();
            // Compared without a lock holder: the slot of a dead holder is reclaimed, with everything it held.
            let unlocked = |image: &Image| image.with_lock(FREE).recovered(false).only(&counts);
            if commits && unlocked(&now) != unlocked(base) {
                committed.push(now.clone());
                expected.clear();
            }
            let base = committed.last().unwrap();
            let lock = now.lock();
            let wanted =
                expected.entry(lock).or_insert_with(|| base.with_lock(lock).recovered(false).only(&counts));
            let found = now.recovered(permits).only(&counts);
            assert!(
                found == *wanted,
                "{role}: a kill after {steps} instructions (version {}, lock {lock:#x}) leaves neither before nor after: {}",
                now.word(VERSION),
                found.differences(wanted)
            );
            std::mem::swap(&mut last, &mut now);
        }
        if step == Step::Done {
            break;
        }
    }
    assert!(
        last.is_whole() && last.lock_owner().is_none(),
        "{role}: the operation left the lock or the version"
    );
    println!("{role}: {steps} instructions, {pictures} pictures, {} committed states", committed.len());
    Walk { committed, last }
}
