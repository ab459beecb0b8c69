//! Pictures of a segment, and what recovery makes of them.

use super::{CONCURRENCY, NAME, builder, directory};
use shmlimit::internals::layout::{self, slot};
use shmlimit::{AcquireError, Policy, Reason, Request};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// All bytes of a segment at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct Image(Vec<u8>);

impl Image {
    /// A picture of nothing, to be taken anew.
    pub fn blank() -> Image {
        Image(vec![0; layout::SIZE])
    }

    /// Takes the picture anew. A mapped file in memory and its reads are one and the same pages.
    pub fn take(&mut self, file: &File) {
        file.read_exact_at(&mut self.0, 0).unwrap();
    }

    /// A picture of the segment in a directory.
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

    /// Whether somebody sleeps on the lock.
    pub fn has_sleeper(&self) -> bool {
        self.lock() >> 31 != 0
    }

    /// The same picture with another lock word.
    pub fn with_lock(&self, lock: u32) -> Image {
        let mut image = self.clone();
        image.0[8 * layout::LOCK..][..4].copy_from_slice(&lock.to_ne_bytes());
        image
    }

    /// Whether no transaction is under way.
    pub fn is_whole(&self) -> bool {
        self.word(layout::VERSION).is_multiple_of(2)
    }

    /// Permits that are out.
    pub fn in_flight(&self) -> u32 {
        self.word(layout::CORE + 1) as u32
    }

    /// The states of the rules.
    pub fn rules(&self) -> Vec<u64> {
        (layout::RULES..layout::POLICY).map(|word| self.word(word)).collect()
    }

    /// The policy as stored.
    pub fn policy(&self) -> Vec<u64> {
        (layout::POLICY..=layout::POLICY_CHECKSUM).map(|word| self.word(word)).collect()
    }

    /// Permits a slot says it holds.
    pub fn held(&self, index: usize) -> u32 {
        self.word(layout::slot_base(index) + slot::HELD) as u32
    }

    /// Whether a slot has an owner, dead or alive.
    pub fn is_owned(&self, index: usize) -> bool {
        self.word(layout::slot_base(index) + slot::STATE) & 1 != 0
    }

    /// Permits that all slots with an owner say they hold.
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

    /// The slot that a process entered last.
    pub fn slot_of(&self, pid: u32) -> Option<usize> {
        (0..layout::SLOTS).find(|index| {
            self.word(layout::slot_base(*index) + slot::PID) == u64::from(pid) && self.is_owned(*index)
        })
    }

    /// What a newcomer finds if everybody in this picture is dead: attaches to a copy, leaves it, and reads. Its own
    /// traces are wiped: its slot, and the anchor of the clock.
    ///
    /// With `permits`, also requires that the newcomer can then have every permit, and not one more.
    pub fn recovered(&self, permits: bool) -> Recovered {
        let copy = directory();
        write(copy.path(), &self.0);
        let before: Vec<u64> = (0..layout::SLOTS).map(|i| self.word(layout::slot_base(i))).collect();
        let open = || builder(copy.path()).open_existing().expect("recovery works");
        let newcomer = open();
        let mine = Image::of(copy.path()).slot_of(std::process::id()).expect("the newcomer has a slot");
        assert_eq!(before[mine] & 1, 0, "the newcomer took a slot that had an owner");
        drop(newcomer);
        let after = Image::of(copy.path());
        assert!(after.is_whole(), "the version is odd after recovery");
        assert_eq!(after.lock_owner(), None, "the lock is held after recovery");
        assert_eq!(
            after.in_flight(),
            after.held_by_all(),
            "permits that nobody holds, or that nobody counts"
        );
        assert!(u64::from(after.in_flight()) <= CONCURRENCY, "more permits than there are");
        let is_trace = |word: &usize| {
            matches!(*word, layout::ANCHOR_TIME | layout::ANCHOR_WALL)
                || (layout::slot_base(mine)..layout::slot_base(mine + 1)).contains(word)
        };
        let words = (0..layout::WORDS).filter(|word| layout::is_journaled(*word) && !is_trace(word));
        if permits {
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
        }
        Recovered(words.map(|word| (word, after.word(word))).collect())
    }

    /// The policy of the limiter that somebody gets who opens a copy of this segment; none if it cannot be used.
    pub fn reopened(&self) -> Option<Policy> {
        let copy = directory();
        write(copy.path(), &self.0);
        builder(copy.path()).open_existing().ok()?.policy().ok()
    }
}

/// The transactional words after recovery.
#[derive(PartialEq, Eq)]
pub struct Recovered(Vec<(usize, u64)>);

impl Recovered {
    /// Where two of them differ, for people.
    pub fn differences(&self, other: &Recovered) -> String {
        let differing = self.0.iter().zip(&other.0).filter(|(a, b)| a != b);
        differing.map(|(a, b)| format!("word {}: {:#x}, expected {:#x}; ", a.0, a.1, b.1)).collect()
    }
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
