//! Images of a segment, and the state that recovery makes of them.

use super::{CONCURRENCY, NAME, builder};
use crate::util::directory;
use memmap2::Mmap;
use shmlimit::{AcquireError, Policy, Reason, Request};
use shmlimit_kernel::health_state::{LEDGER_AT, OUTCOMES_AT};
use shmlimit_segment::layout::{self, slot};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The words to which the counts of participants are added when they leave.
const LEDGER: usize = layout::RINGS + LEDGER_AT - OUTCOMES_AT;
/// The number of these counts: granted, refused, checked (`looked`).
const COUNTED: usize = 3;

/// Whether this is the temporary name of a file that replaces another.
pub fn is_replacement(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(".shmlimit-0-") && name.ends_with(".tmp"))
}

/// All bytes of a segment at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct Image(Vec<u8>);

impl Image {
    /// An empty image, to be filled by [`Image::take`].
    pub fn blank() -> Image {
        Image(vec![0; layout::SIZE])
    }

    /// Updates the image from the file. A mapped file in memory and its reads use the same pages.
    pub fn take(&mut self, file: &File) {
        self.0.resize(file.metadata().unwrap().len() as usize, 0);
        file.read_exact_at(&mut self.0, 0).unwrap();
    }

    /// The number of words of the segment: more than [`layout::WORDS`] if it has logs.
    pub fn words(&self) -> usize {
        self.0.len() / 8
    }

    fn range(&self, words: std::ops::Range<usize>) -> Vec<u64> {
        words.map(|word| self.word(word)).collect()
    }

    /// An image of the segment in a directory.
    pub fn of(directory: &Path) -> Image {
        let mut image = Image::blank();
        image.take(&open(directory));
        image
    }

    /// One word.
    pub fn word(&self, index: usize) -> u64 {
        u64::from_ne_bytes(self.0[8 * index..8 * index + 8].try_into().unwrap())
    }

    /// The lock word.
    pub fn lock(&self) -> u32 {
        u32::from_ne_bytes(self.0[8 * layout::LOCK..][..4].try_into().unwrap())
    }

    /// The slot that holds the lock.
    pub fn lock_owner(&self) -> Option<usize> {
        ((self.lock() >> 20 & 0x7ff) as usize).checked_sub(1)
    }

    /// Whether a thread sleeps on the lock.
    pub fn has_sleeper(&self) -> bool {
        self.lock() >> 31 != 0
    }

    /// The same image with another lock word.
    pub fn with_lock(&self, lock: u32) -> Image {
        let mut image = self.clone();
        image.0[8 * layout::LOCK..][..4].copy_from_slice(&lock.to_ne_bytes());
        image
    }

    /// Whether no transaction is under way.
    pub fn is_whole(&self) -> bool {
        self.word(layout::VERSION).is_multiple_of(2)
    }

    /// Permits in flight.
    pub fn in_flight(&self) -> u32 {
        self.word(layout::CORE + 1) as u32
    }

    /// The states of the rules.
    pub fn rules(&self) -> Vec<u64> {
        self.range(layout::RULES..layout::EFFECTIVE)
    }

    /// The effective limits: permits, next check time, terms of the rules.
    pub fn effective(&self) -> Vec<u64> {
        self.range(layout::EFFECTIVE..layout::POLICY)
    }

    /// Breaker, gate, tallies, pace, transitions.
    pub fn health_state(&self) -> Vec<u64> {
        self.range(layout::HEALTH_STATE..layout::JOURNAL)
    }

    /// Recent outcomes and admissions.
    pub fn rings(&self) -> Vec<u64> {
        self.range(layout::RINGS..layout::WORDS)
    }

    /// The logs.
    pub fn logs(&self) -> Vec<u64> {
        self.range(layout::WORDS..self.words())
    }

    /// The stored policy.
    pub fn policy(&self) -> Vec<u64> {
        self.range(layout::POLICY..layout::POLICY_CHECKSUM + 1)
    }

    /// Permits that a slot records as held.
    pub fn held(&self, index: usize) -> u32 {
        self.word(layout::slot_base(index) + slot::HELD) as u32
    }

    /// Whether a slot has an owner, dead or alive.
    pub fn is_owned(&self, index: usize) -> bool {
        self.word(layout::slot_base(index) + slot::STATE) & 1 != 0
    }

    /// Permits that all slots with an owner record as held.
    pub fn held_by_all(&self) -> u32 {
        (0..layout::SLOTS).filter(|index| self.is_owned(*index)).map(|index| self.held(index)).sum()
    }

    /// Grants that a slot has counted.
    pub fn granted(&self, index: usize) -> u64 {
        self.word(layout::slot_base(index) + slot::GRANTED)
    }

    /// Refusals that a slot has counted.
    pub fn refused(&self, index: usize) -> u64 {
        self.word(layout::slot_base(index) + slot::REFUSED)
    }

    /// How often calls were granted, refused and checked, by all participants so far, including exited ones.
    fn counted(&self) -> [u64; COUNTED] {
        std::array::from_fn(|count| {
            let slots = (0..layout::SLOTS).filter(|index| self.is_owned(*index));
            let own = slots.map(|index| self.word(layout::slot_base(index) + slot::GRANTED + count));
            self.word(LEDGER + count) + own.sum::<u64>()
        })
    }

    /// The slot that a process entered last.
    pub fn slot_of(&self, pid: u32) -> Option<usize> {
        (0..layout::SLOTS).find(|index| {
            self.word(layout::slot_base(*index) + slot::PID) == u64::from(pid) && self.is_owned(*index)
        })
    }

    /// The occupied places of the queue.
    pub fn taken(&self) -> Vec<usize> {
        (0..WAITERS).filter(|place| self.word(layout::PLACES + place / 64) >> (place % 64) & 1 == 1).collect()
    }

    /// The number of waiting calls of all priorities, by the stored count.
    pub fn waiting(&self) -> u64 {
        (0..3).map(|priority| self.word(layout::WAITING) >> (16 * priority) & 0xffff).sum()
    }

    /// A word of an entry.
    pub fn entry(&self, place: usize, word: usize) -> u64 {
        self.word(layout::entry_base(place) + word)
    }

    /// The places of the calls that wait in a slot, in order of arrival.
    pub fn places_of(&self, slot: usize) -> Vec<usize> {
        let mut places = self.taken();
        places.retain(|place| self.entry(*place, entry::OWNER) as u32 as usize == slot + 2);
        places.sort_by_key(|place| self.entry(*place, entry::NUMBER));
        places
    }

    /// How often the wake word of a place was used.
    pub fn wake_word(&self, place: usize) -> u32 {
        self.entry(place, layout::WAKE_WORD) as u32
    }

    /// The state that a newcomer finds if every process in this image is dead: it attaches to a copy, leaves it,
    /// and reads. Its own traces are erased: its slot, and the anchor of the clock.
    ///
    /// With `permits`, also requires that the newcomer can then take every permit, and not one more.
    pub fn recovered(&self, permits: bool) -> Recovered {
        let copy = directory();
        write(copy.path(), &self.0);
        let before: Vec<u64> = (0..layout::SLOTS).map(|i| self.word(layout::slot_base(i))).collect();
        let open = || builder(copy.path()).open_existing().expect("recovery works");
        let newcomer = open();
        let mine = Image::of(copy.path()).slot_of(std::process::id()).expect("the newcomer has a slot");
        assert_eq!(before[mine] & 1, 0, "the newcomer took a slot that had an owner");
        // Taken before the newcomer leaves: leaving wakes the next call in the queue, and its new wake time would
        // be a trace.
        let after = Image::of(copy.path());
        drop(newcomer);
        assert!(Image::of(copy.path()).is_whole());
        assert!(after.is_whole(), "the version is odd after recovery");
        assert_eq!(after.lock_owner(), None, "the lock is held after recovery");
        assert_eq!(
            after.in_flight(),
            after.held_by_all(),
            "permits that nobody holds, or that nobody counts"
        );
        assert!(u64::from(after.in_flight()) <= CONCURRENCY, "more permits than there are");
        if self.is_whole() {
            // The counts of dead processes are in the ledger as soon as they are reclaimed.
            assert_eq!(after.counted(), self.counted(), "counts are lost, or counted twice");
        }
        let is_trace = |word: &usize| {
            [layout::ANCHOR_TIME, layout::ANCHOR_WALL, layout::LATEST_TIME, layout::LATEST_WALL]
                .contains(word)
                || (LEDGER..LEDGER + COUNTED).contains(word)
                || (layout::slot_base(mine)..layout::slot_base(mine + 1)).contains(word)
        };
        let all = self.words();
        assert_eq!(after.words(), all, "recovery changed the size of the file");
        let words = (0..all).filter(|word| layout::is_journaled(*word, all) && !is_trace(word));
        if permits {
            // No process in the image will ever check again; the test need not wait until that is noticed.
            everybody_is_late(copy.path());
            let limiter = open();
            let mut grants = Vec::new();
            let refusal = loop {
                match limiter.try_acquire(&Request::new()) {
                    Ok(grant) => grants.push(grant),
                    Err(AcquireError::Refused(refusal)) => break refusal,
                    Err(error) => panic!("after recovery: {error}"),
                }
            };
            assert_eq!(refusal.reason(), Reason::Concurrency);
            assert_eq!(grants.len() as u64, CONCURRENCY, "the permits of the dead come back, and no others");
            let left = Image::of(copy.path());
            assert_eq!((left.word(layout::WAITING), left.taken().len()), (0, 0), "a place is lost");
        }
        Recovered(words.map(|word| (word, after.word(word))).collect())
    }

    /// The policy of a limiter that is opened from a copy of this segment; `None` if it cannot be used.
    pub fn reopened(&self) -> Option<Policy> {
        let copy = directory();
        write(copy.path(), &self.0);
        builder(copy.path()).open_existing().ok()?.policy().ok()
    }
}

/// Compares a segment without copying it. A copy after each instruction would take longer than the instruction.
pub struct Camera(Mmap);

impl Camera {
    /// A camera on the segment in a directory.
    pub fn new(directory: &Path) -> Camera {
        // SAFETY: no process truncates the file; its bytes are only read while the processes that write it are
        // stopped.
        Camera(unsafe { Mmap::map(&open(directory)) }.unwrap())
    }

    /// Whether the segment still equals this image.
    pub fn still_shows(&self, image: &Image) -> bool {
        self.0[..] == image.0[..]
    }

    /// Updates the image.
    pub fn take(&self, image: &mut Image) {
        image.0.resize(self.0.len(), 0);
        image.0.copy_from_slice(&self.0);
    }
}

/// The transactional words after recovery.
#[derive(PartialEq, Eq)]
pub struct Recovered(Vec<(usize, u64)>);

impl Recovered {
    /// Keeps only the words for which `counts` holds.
    pub fn only(mut self, counts: &impl Fn(usize) -> bool) -> Recovered {
        self.0.retain(|(word, _)| counts(*word));
        self
    }

    /// One word.
    pub fn word(&self, word: usize) -> Option<u64> {
        self.0.iter().find(|(index, _)| *index == word).map(|(_, value)| *value)
    }

    /// The differences between two of them, as text.
    pub fn differences(&self, other: &Recovered) -> String {
        let differing = self.0.iter().zip(&other.0).filter(|(a, b)| a != b);
        differing.map(|(a, b)| format!("word {}: {:#x}, expected {:#x}; ", a.0, a.1, b.1)).collect()
    }
}

/// Words of an entry of the queue, from its start.
pub mod entry {
    /// The owner of the waiting call.
    pub const OWNER: usize = 0;
    /// The number of its arrival, and its priority.
    pub const NUMBER: usize = 1;
    /// Its position in the order.
    pub const TAG: usize = 2;
    /// Its wake time.
    pub const WAKE_AT: usize = 3;
}

/// The number of places in the queue.
pub const WAITERS: usize = 1024;

/// Sets the wake time of every waiting call.
pub fn set_wake_time(directory: &Path, at: u64) {
    let image = Image::of(directory);
    for place in image.taken() {
        store(directory, layout::entry_base(place) + entry::WAKE_AT, at);
    }
}

/// Makes every waiting call look long overdue.
fn everybody_is_late(directory: &Path) {
    set_wake_time(directory, 1);
}

/// Writes a word, bypassing the library.
pub fn store(directory: &Path, word: usize, value: u64) {
    let file = OpenOptions::new().write(true).open(directory.join(format!("{NAME}.shm"))).unwrap();
    file.write_all_at(&value.to_ne_bytes(), 8 * word as u64).unwrap();
}

/// The segment in a directory.
pub fn open(directory: &Path) -> File {
    File::open(directory.join(format!("{NAME}.shm"))).unwrap()
}

fn write(directory: &Path, bytes: &[u8]) {
    let path = directory.join(format!("{NAME}.shm"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
