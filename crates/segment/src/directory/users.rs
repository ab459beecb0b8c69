//! Which processes have a limiter open, found by the limiter's name. This works even if the segment's file was
//! deleted by hand.
//!
//! Every participant holds a shared lock on one byte of the creation lock ([`sys::LivenessLock::register_user`]).
//! The creation lock is the same file for every path, user and pid namespace. So a newcomer that finds no segment
//! learns there whether programs still use a deleted one. A user of its successor learns there whether a program
//! still holds permits of the deleted segment (`file/inherited.rs`).
//!
//! Each name has 2^32 bytes, chosen by its hash. The first half has a block of 1024 bytes for each generation (see
//! below), chosen by the generation's hash. In that block, each slot has a byte where its owner is registered. The
//! first byte of the second half is for participants that are known to hold no permit of a deleted segment and have
//! not moved to its successor yet.
//!
//! After a removal on purpose, the next limiter of that name must start with full buckets. So if programs still have
//! the limiter open, removing it leaves a *note*, an empty file `.NAME.removed`. All steps are done under the
//! creation lock:
//!
//! ```text
//! remove     mark the segment removed ── write the note ── take the segment's name away
//! create     prepare a segment without a name ── begin a generation ── take the note away ── give the segment its name
//! ```
//!
//! A process that is killed between two steps leaves one of these:
//! - a marked segment, with or without a note: no process grants from it, and the next process to open it finishes
//!   the removal;
//! - a segment that could not be marked (damaged, or of another version) and a note: the note is removed before
//!   another segment takes that name. If the old segment is then deleted by hand, it was to be removed anyway;
//! - neither segment nor note: programs that are still attached count as users of a deleted segment, so the next
//!   limiter is created used up. Nothing is granted twice;
//! - a generation without a segment: no handle of an older segment continues that segment, and the next limiter is
//!   created used up.
//!
//! A note never exists beside a segment that was created after it.
//!
//! The *generation* is a number in the creation lock that is different for each segment that gets the name. A
//! participant reads it before it confirms that its segment is in its place. If its segment is gone and the number
//! is still the same, no other segment was created since. Its state is then the newest, and may be continued. If
//! the number differs, another process created a segment meanwhile, perhaps without knowing of this one. Then it is
//! not known what was spent there, if that segment is gone too.

use super::Directory;
use super::creation_lock::LockedDirectory;
use crate::error::Error;
use crate::paths::{CREATION_LOCK, LimiterName};
use crate::sys::{self, LivenessLock};
use std::fs::File;
use std::io;

/// The facts known about the previous limiter of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousLimiter {
    /// No program is known to have it open.
    Unused,
    /// Its segment was deleted by hand, and programs have it open.
    InUse,
    /// It was removed on purpose.
    Removed,
}

impl PreviousLimiter {
    /// Asks the creation lock. Call this only if there is no segment of that name.
    pub(crate) fn of(locked: &LockedDirectory, name: &LimiterName) -> Result<PreviousLimiter, Error> {
        let note = name.note_name();
        match sys::facts_at(&locked.directory, &note) {
            // A note is a regular file. Anything else at its path is not a note.
            Ok(facts) if facts.regular => return Ok(PreviousLimiter::Removed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("examine", locked.path.join(&note))(error)),
        }
        Ok(if has_users(locked, name)? { PreviousLimiter::InUse } else { PreviousLimiter::Unused })
    }
}

/// A byte of a limiter's name in the creation lock, counted from the first byte of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserByte(u64);

/// The number of bytes that a name has in the creation lock.
const NAME_BYTES: u64 = 1 << 32;
/// How many of these are for slots.
const SLOT_BYTES: u64 = NAME_BYTES / 2;
/// How many of these a generation has.
const GENERATION_BYTES: u64 = 1 << 10;
/// How many names fit below 2^60.
const NAMES: u64 = (1 << 60) / NAME_BYTES;
/// The value in a slot whose holder may be any participant of an older generation.
const ANY_OLDER: u64 = u64::MAX;

impl UserByte {
    /// The byte for participants that are known to hold no permit of a deleted segment.
    pub(crate) const WITHOUT_PERMITS: UserByte = UserByte(SLOT_BYTES);

    /// The byte where the owner of a slot is registered.
    pub(crate) fn of(generation: u64, slot: usize) -> UserByte {
        UserByte(block(generation) + slot as u64 % GENERATION_BYTES)
    }

    /// The byte as a word of a slot, which is never zero.
    pub(crate) fn to_word(self) -> u64 {
        self.0 + 1
    }
}

/// The word of a slot whose holder may be any participant of an older generation.
pub(crate) const fn any_older() -> u64 {
    ANY_OLDER
}

/// The first byte of a generation. On a coarse clock, generations lie near multiples of a power of ten. So
/// the number is mixed first.
fn block(generation: u64) -> u64 {
    let blocks = SLOT_BYTES / GENERATION_BYTES;
    (generation.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % blocks * GENERATION_BYTES
}

fn first_byte(file_name: &str) -> u64 {
    number(file_name) % NAMES * NAME_BYTES
}

/// Registers a user at a byte of a limiter's name, for as long as this process's memory lives.
pub(crate) fn register_user(
    creation_lock: File,
    file_name: &str,
    UserByte(byte): UserByte,
) -> io::Result<Option<LivenessLock>> {
    LivenessLock::register_user(creation_lock, first_byte(file_name) + byte)
}

/// Whether, according to the creation lock, a holder of permits of a deleted segment still has them. `word` is the
/// slot's word [`INHERITED`](crate::layout::slot::INHERITED). `generation` is that of the segment that contains the
/// slot.
pub(crate) fn is_held(creation_lock: &File, file_name: &str, generation: u64, word: u64) -> io::Result<bool> {
    let first = first_byte(file_name);
    if word != ANY_OLDER {
        let byte = first + word.wrapping_sub(1) % SLOT_BYTES;
        return sys::has_users(creation_lock, byte..byte + 1);
    }
    // No newer generation has participants while this one is in its place.
    let own = first + block(generation);
    Ok(sys::has_users(creation_lock, first..own)?
        || sys::has_users(creation_lock, own + GENERATION_BYTES..first + SLOT_BYTES)?)
}

impl LockedDirectory {
    /// The generation of a limiter's name.
    pub(crate) fn generation(&self, name: &LimiterName) -> Result<Generation, Error> {
        generation(&self.creation_lock, &name.file_name())
            .map_err(Error::io("read", self.path.join(CREATION_LOCK)))
    }

    /// The generation of the segment that gets the name next.
    pub(crate) fn next_generation(&self, name: &LimiterName) -> Result<u64, Error> {
        let next = sys::next_generation(&self.creation_lock, number(&name.file_name()));
        next.map_err(Error::io("read", self.path.join(CREATION_LOCK)))
    }
}

/// A generation of a limiter's name; 0 if it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(pub(crate) u64);

/// The generation of a limiter's name. It may be read without the creation lock.
pub(crate) fn generation(creation_lock: &File, file_name: &str) -> io::Result<Generation> {
    sys::generation(creation_lock, number(file_name)).map(Generation)
}

fn has_users(locked: &LockedDirectory, name: &LimiterName) -> Result<bool, Error> {
    let first = first_byte(&name.file_name());
    let used = sys::has_users(&locked.creation_lock, first..first + NAME_BYTES);
    used.map_err(Error::io("examine locks of", locked.path.join(CREATION_LOCK)))
}

/// Notes that a limiter is removed on purpose, if programs have it open. If that is not possible, for example on a
/// full disk, the limiter is removed without a note. Then the next one is created used up.
pub(crate) fn note_removal(
    locked: &LockedDirectory,
    directory: &Directory,
    name: &LimiterName,
) -> Result<(), Error> {
    if has_users(locked, name)? {
        let note = name.note_name();
        // Remove anything that lies there, such as a link, rather than write through it.
        let _ = sys::unlink_at(&locked.directory, &note);
        let _ = sys::open_or_create_at(&locked.directory, &note, directory.shared_with());
    }
    Ok(())
}

/// Prepares a name for a new segment: from now on no older segment is continued. Removes the note of the last
/// removal.
pub(crate) fn begin_generation(locked: &LockedDirectory, name: &LimiterName, next: u64) -> Result<(), Error> {
    let begun = sys::begin_generation(&locked.creation_lock, number(&name.file_name()), next);
    begun.map_err(Error::io("write", locked.path.join(CREATION_LOCK)))?;
    let note = name.note_name();
    match sys::facts_at(&locked.directory, &note) {
        Ok(facts) if facts.regular => sys::unlink_at(&locked.directory, &note)
            .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .map_err(Error::io("remove", locked.path.join(&note))),
        _ => Ok(()),
    }
}

/// FNV-1a: all programs of a machine must compute the same number, no matter how they were built.
fn number(file_name: &str) -> u64 {
    file_name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SLOTS;

    /// A process that may create a segment may therefore also write the creation lock, even if its file size is
    /// limited.
    #[cfg(target_os = "linux")]
    #[test]
    fn creation_lock_never_grows_larger_than_a_segment() {
        let creation_lock = tempfile::tempfile().unwrap();
        sys::begin_generation(&creation_lock, u64::MAX, 1).unwrap();
        assert!(creation_lock.metadata().unwrap().len() < crate::layout::SIZE as u64);
    }

    /// Two generations share a block with a probability of one in two million, even if the clock ticks in
    /// milliseconds.
    #[test]
    fn successive_generations_have_different_blocks() {
        for step in [1, 1_000, 1_000_000, 1_000_000_000] {
            let mut blocks: Vec<u64> =
                (0..64).map(|at| block(1_735_689_600_000_000_000 + at * step)).collect();
            assert!(blocks.iter().all(|at| at + GENERATION_BYTES <= SLOT_BYTES));
            blocks.sort_unstable();
            blocks.dedup();
            assert_eq!(blocks.len(), 64, "{step}");
        }
        assert!(SLOTS as u64 <= GENERATION_BYTES && UserByte::of(0, 0).to_word() != 0);
    }

    #[test]
    fn number_of_a_name_never_changes() {
        assert_eq!(number(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
