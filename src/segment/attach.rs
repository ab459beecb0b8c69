//! A segment as one process uses it: its place among the participants, and its transactions.

use super::backing::Backing;
use super::create::Seed;
use super::journal::{self, Found, Transaction};
use super::layout::{self, SLOTS};
use super::lock::{Claim, Os, StillHeld};
use super::memory::Reader;
use super::news;
use super::recover::{self, Verified};
use super::slots::{self, Identity};
use super::words::Words;
use crate::error::Error;
use crate::kernel::decide;
use crate::kernel::policy::Policy;
use crate::kernel::state::View;
use crate::kernel::time::Time;
use crate::sys::{self, Clock, ForkWords, Pulse};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A transaction on a mapped segment.
pub(crate) type Tx<'a> = Transaction<'a, Backing>;

/// How long things may take before they are given up or looked into.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long to wait for a living holder of the lock before saying `Busy`.
    pub lock: Duration,
    /// How often the dead are looked for, at most, while permits are short.
    pub reap: Duration,
    /// How often it is checked that the file is still in its place.
    pub place: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lock: Duration::from_secs(1),
            reap: Duration::from_millis(10),
            place: Duration::from_secs(1),
        }
    }
}

/// This process's place in a segment.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its slot.
    pub slot: usize,
    /// Tells this attachment from every other one, also across a fork.
    pub badge: u64,
    /// How this process reads the common clock.
    pub clock: Clock,
}

/// Words that a forked child finds zero: it is nobody until it attaches itself.
mod presence {
    /// [`ABSENT`], [`ATTACHING`], or the member's badge.
    pub const STATE: usize = 0;
    pub const CLOCK: usize = 1;
    /// When it was last checked that the file is in its place.
    pub const CHECKED: usize = 3;
    /// When the dead were last looked for.
    pub const REAPED: usize = 4;

    pub const ABSENT: u64 = 0;
    pub const ATTACHING: u64 = 1;
}

/// One mapped segment. Any thread may use it, and so may a forked child.
pub struct Segment {
    words: Words,
    backing: Backing,
    presence: ForkWords,
    bounds: Bounds,
}

impl Segment {
    /// Takes a verified segment and becomes a participant.
    pub fn attach(verified: Verified, bounds: Bounds) -> Result<Segment, Error> {
        let Verified { words, backing } = verified;
        let presence = ForkWords::new().map_err(Error::io("prepare memory for", backing.path()))?;
        let segment = Segment { words, backing, presence, bounds };
        segment.member()?;
        Ok(segment)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.backing.path()
    }

    /// The words, for reading what needs no consistency.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The policy in force.
    pub fn policy(&self) -> Result<Policy, Error> {
        match journal::read(&self.words, recover::policy) {
            Some(policy) => policy.map_err(|problem| self.damaged(problem)),
            None => {
                let member = self.member()?;
                let (tx, _) = self.begin(&member, self.bounds.lock)?;
                recover::policy(tx.words()).map_err(|problem| self.damaged(problem))
            }
        }
    }

    /// Damaged; or, if somebody has replaced it for that, gone.
    #[cold]
    fn damaged(&self, problem: String) -> Error {
        if self.is_retired() || !self.backing.is_in_place() {
            return self.gone();
        }
        Error::Damaged { path: self.path().to_owned(), problem }
    }

    /// The bounds it was opened with.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Puts another policy in force; the rules keep what they have seen (R110).
    pub fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        let member = self.member()?;
        let (mut tx, now) = self.begin(&member, self.bounds.lock)?;
        let old = recover::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
        decide::patch(&mut tx, &old, policy, now);
        let encoded = policy.encode();
        tx.write_array(layout::POLICY, encoded);
        tx.write(layout::POLICY_CHECKSUM, layout::checksum(encoded));
        let epoch = tx.load(layout::POLICY_EPOCH);
        tx.write(layout::POLICY_EPOCH, epoch.wrapping_add(1));
        self.commit(tx)?;
        self.announce();
        Ok(())
    }

    /// Marks it as replaced: whoever uses it opens it again by name.
    pub fn retire(&self) -> Result<(), Error> {
        let member = self.member()?;
        let (mut tx, _) = self.begin(&member, self.bounds.lock)?;
        tx.write(layout::RETIRED, 1);
        self.commit(tx)?;
        self.announce();
        Ok(())
    }

    /// What a segment needs that goes on where this one was deleted or retired.
    ///
    /// Without the lock: who died in a deleted file can never be found dead, because its pulse is felt by the name.
    /// Its half-done transaction is then taken as it is, which is one call's charge more or less than was granted.
    pub fn seed(&self) -> Result<Seed, Error> {
        let copy = |words: &Words| {
            let rules = std::array::from_fn(|i| Reader(words).rule(i));
            recover::policy(words).map(|policy| Seed {
                policy,
                rules,
                clock_offset: words.load(layout::CLOCK_OFFSET),
            })
        };
        let started = std::time::Instant::now();
        let whole = loop {
            match journal::read(&self.words, copy) {
                None if started.elapsed() < self.bounds.lock => std::thread::sleep(Duration::from_millis(1)),
                read => break read,
            }
        };
        let seed = whole
            .unwrap_or_else(|| copy(&self.words))
            .map_err(|problem| Error::Damaged { path: self.path().to_owned(), problem })?;
        // Who retires a limiter wants it to start afresh.
        Ok(if self.is_retired() { Seed::fresh(seed.policy) } else { seed })
    }

    /// Whether it was replaced or removed on purpose.
    pub fn is_retired(&self) -> bool {
        self.words.load(layout::RETIRED) != 0
    }

    /// This process's place; a new process (after a fork) gets one here.
    #[inline]
    pub fn member(&self) -> Result<Member, Error> {
        let badge = self.presence.word(presence::STATE).load(Ordering::Acquire);
        if badge > presence::ATTACHING { Ok(self.member_of(badge)) } else { self.join() }
    }

    /// Whether `badge` is this process's present attachment. A grant from before a fork belongs to the parent.
    #[inline]
    pub fn is_present(&self, badge: u64) -> bool {
        self.presence.word(presence::STATE).load(Ordering::Acquire) == badge
    }

    #[inline]
    fn member_of(&self, badge: u64) -> Member {
        let word = |i| self.presence.word(i).load(Ordering::Relaxed);
        let clock = Clock::from_words([word(presence::CLOCK), word(presence::CLOCK + 1)]);
        Member { slot: (badge as u32 as usize).wrapping_sub(2), badge, clock }
    }

    /// Takes the lock and tells the time on the limiter's clock. The state is whole and sane.
    #[inline]
    pub fn begin(&self, member: &Member, patience: Duration) -> Result<(Tx<'_>, Time), Error> {
        // Before the lock: two processes then take turns instead of one hogging it, and the lock is held shorter.
        let raw = member.clock.now();
        if raw.wrapping_sub(self.presence.word(presence::CHECKED).load(Ordering::Relaxed))
            > self.bounds.place.as_nanos() as u64
        {
            self.check_place(raw)?;
        }
        let begun = Transaction::begin(&self.words, &self.backing, member.slot, Claim::Participant, patience);
        let (tx, found) = begun.map_err(|held| self.busy(held, patience))?;
        let raw = if tx.had_at_once() { raw } else { member.clock.now() };
        let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        if tx.load(layout::RETIRED) != 0 || tx.robbed().is_some() || !recover::is_sane(&tx, found, now) {
            return self.mend(tx, found, member, now);
        }
        Ok((tx, now))
    }

    /// The time on the limiter's clock.
    #[inline]
    pub fn now(&self, member: &Member) -> Time {
        Time(member.clock.now().wrapping_add(self.words.load(layout::CLOCK_OFFSET)))
    }

    /// Puts right what was found wrong, in a transaction of its own, and begins again.
    #[cold]
    fn mend<'a>(
        &'a self,
        mut tx: Tx<'a>,
        found: Found,
        member: &Member,
        now: Time,
    ) -> Result<(Tx<'a>, Time), Error> {
        if tx.load(layout::RETIRED) != 0 {
            return Err(self.gone());
        }
        if let Some(dead) = tx.robbed() {
            slots::leave(&mut tx, dead);
        }
        if !recover::is_sane(&tx, found, now) {
            tracing::warn!(segment = %self.path().display(), "damaged state: starting empty");
            recover::reset(&mut tx, now);
        }
        self.commit(tx)?;
        news::announce(&self.words, &self.backing);
        let begun =
            Transaction::begin(&self.words, &self.backing, member.slot, Claim::Participant, self.bounds.lock);
        let (tx, _) = begun.map_err(|held| self.busy(held, self.bounds.lock))?;
        Ok((tx, now))
    }

    /// Makes a transaction's changes last.
    #[inline]
    pub fn commit(&self, tx: Tx<'_>) -> Result<(), Error> {
        tx.commit().map_err(|_| Error::Damaged {
            path: self.path().to_owned(),
            problem: "a change does not fit the journal".into(),
        })
    }

    /// Wakes those who wait for something to be given back.
    #[inline]
    pub fn announce(&self) {
        news::announce(&self.words, &self.backing);
    }

    /// Begins to listen for what is given back.
    pub fn listen(&self) -> u32 {
        news::listen(&self.words)
    }

    /// Sleeps until something is given back, for `limit` at most.
    pub fn sleep(&self, heard: u32, limit: Duration) {
        news::sleep(&self.words, &self.backing, heard, limit);
    }

    /// A look at one committed state without the lock; with it, where that fails.
    pub fn look<R>(&self, look: impl Fn(&Reader<'_>) -> R) -> Result<R, Error> {
        if let Some(seen) = journal::read(&self.words, |words| look(&Reader(words))) {
            return Ok(seen);
        }
        let member = self.member()?;
        let (tx, _) = self.begin(&member, self.bounds.lock)?;
        Ok(look(&Reader(tx.words())))
    }

    /// Gives back what dead participants held; at most once per bound. Says whether anything was given back.
    pub fn reap(&self, member: &Member) -> Result<bool, Error> {
        let raw = member.clock.now_coarse();
        let last = self.presence.word(presence::REAPED).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.bounds.reap.as_nanos() as u64 {
            return Ok(false);
        }
        self.presence.word(presence::REAPED).store(raw, Ordering::Relaxed);
        let holds = |slot: &usize| slots::participant(&self.words, *slot).is_some_and(|p| p.held.total > 0);
        let holders: Vec<usize> = (0..SLOTS).filter(holds).collect();
        let probe = self.reopen()?;
        let mut reaped = false;
        for slot in holders {
            if !self.backing.is_alive(&probe, slot)? {
                reaped |= self.bury(member, slot)?;
            }
        }
        Ok(reaped)
    }

    /// Frees the slot of a dead participant.
    fn bury(&self, member: &Member, slot: usize) -> Result<bool, Error> {
        let Some(_pulse) = self.backing.take_pulse(slot) else { return Ok(false) };
        let (mut tx, _) = self.begin(member, self.bounds.lock)?;
        let held = slots::leave(&mut tx, slot);
        self.commit(tx)?;
        self.announce();
        Ok(held.total > 0)
    }

    /// Which participants there are, and whether they live.
    pub fn participants(&self) -> Result<Vec<(slots::Participant, bool)>, Error> {
        let probe = self.reopen()?;
        (0..SLOTS)
            .filter_map(|slot| slots::participant(&self.words, slot))
            .map(|p| Ok((p, self.backing.is_alive(&probe, p.slot)?)))
            .collect()
    }

    fn reopen(&self) -> Result<std::fs::File, Error> {
        self.backing.reopen().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => self.gone(),
            _ => Error::io("open", self.path())(error),
        })
    }

    /// An error if the file is no longer in its place.
    pub fn confirm(&self, member: &Member) -> Result<(), Error> {
        if self.is_retired() { Err(self.gone()) } else { self.check_place(member.clock.now()) }
    }

    #[cold]
    fn check_place(&self, raw: u64) -> Result<(), Error> {
        self.presence.word(presence::CHECKED).store(raw, Ordering::Relaxed);
        if self.backing.is_in_place() { Ok(()) } else { Err(self.gone()) }
    }

    /// Deleted, replaced or retired: the limiter opens it again.
    fn gone(&self) -> Error {
        Error::Unsettled { path: self.path().to_owned() }
    }

    #[cold]
    fn busy(&self, held: StillHeld, waited: Duration) -> Error {
        let holder = slots::participant(&self.words, held.by);
        Error::Busy {
            path: self.path().to_owned(),
            pid: holder.map_or(0, |p| p.pid),
            program: holder.map_or_else(|| "unknown".into(), |p| program_name(&p.program)),
            waited,
        }
    }

    /// Becomes a participant, once per process, whichever thread comes first.
    #[cold]
    fn join(&self) -> Result<Member, Error> {
        let state = self.presence.word(presence::STATE);
        let started = std::time::Instant::now();
        loop {
            match state.compare_exchange(
                presence::ABSENT,
                presence::ATTACHING,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(presence::ATTACHING) if started.elapsed() > self.bounds.lock => {
                    return Err(self.busy(StillHeld { by: SLOTS }, self.bounds.lock));
                }
                Err(presence::ATTACHING) => std::thread::sleep(Duration::from_micros(50)),
                Err(badge) => return Ok(self.member_of(badge)),
            }
        }
        let joined = self.enter();
        let badge = joined.as_ref().map_or(presence::ABSENT, |member| member.badge);
        state.store(badge, Ordering::Release);
        joined
    }

    fn enter(&self) -> Result<Member, Error> {
        let clock = Clock::discover().map_err(Error::io("read the clock for", self.path()))?;
        let boot = sys::boot_id().map_err(Error::io("find the boot identity for", self.path()))?;
        let (slot, pulse) = self.find_slot()?;
        let begun = Transaction::begin(&self.words, &self.backing, slot, Claim::Newcomer, self.bounds.lock);
        let (mut tx, found) = begun.map_err(|held| self.busy(held, self.bounds.lock))?;
        if tx.load(layout::RETIRED) != 0 {
            return Err(self.gone());
        }
        let (raw, wall) = (clock.now(), sys::wall_now());
        if tx.words().load_array(layout::BOOT) != boot {
            recover::rebase(&mut tx, boot, raw, wall);
        }
        let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        if let Some(dead) = tx.robbed() {
            slots::leave(&mut tx, dead);
        }
        recover::policy(tx.words())
            .map_err(|problem| Error::Damaged { path: self.path().to_owned(), problem })?;
        if !recover::is_sound(&tx, found, now) {
            recover::reset(&mut tx, now);
        }
        // The wall clock may have been set since: a fresh anchor tells best how long the machine was off.
        tx.write(layout::ANCHOR_TIME, now.0);
        tx.write(layout::ANCHOR_WALL, wall);
        let identity = Identity { pid: sys::process_id(), program: sys::program_name() };
        let generation = slots::enter(&mut tx, slot, identity, now);
        self.commit(tx)?;
        for (i, word) in clock.to_words().into_iter().enumerate() {
            self.presence.word(presence::CLOCK + i).store(word, Ordering::Relaxed);
        }
        self.presence.word(presence::CHECKED).store(raw, Ordering::Relaxed);
        drop(self.presence.pulse().put(pulse));
        Ok(Member { slot, badge: u64::from(generation) << 32 | (slot as u64 + 2), clock })
    }

    /// A slot nobody owns; failing that, one whose owner is dead.
    fn find_slot(&self) -> Result<(usize, Pulse), Error> {
        let hold = |slot: usize| {
            Pulse::hold(self.reopen()?, slot as u32).map_err(Error::io("lock a slot of", self.path()))
        };
        // Everybody starts elsewhere, so that many who come at once do not queue for the same slot.
        let start = sys::process_id() as usize;
        let around = || (0..SLOTS).map(|i| (start + i) % SLOTS);
        for slot in around().filter(|slot| !slots::is_owned(&self.words, *slot)) {
            if let Some(pulse) = hold(slot)? {
                return Ok((slot, pulse));
            }
        }
        for slot in around() {
            if let Some(pulse) = hold(slot)? {
                return Ok((slot, pulse));
            }
        }
        Err(Error::SlotsFull { path: self.path().to_owned(), limit: SLOTS })
    }
}

impl Drop for Segment {
    /// Leaves the segment: permits back, slot free. What cannot be given back here is found by the others. Only
    /// here, where no other thread can be in a transaction under the slot that is given up.
    fn drop(&mut self) {
        let badge = self.presence.word(presence::STATE).load(Ordering::Acquire);
        if badge > presence::ATTACHING {
            let slot = self.member_of(badge).slot;
            let patience = self.bounds.lock;
            let begun = Transaction::begin(&self.words, &self.backing, slot, Claim::Participant, patience);
            if let Ok((mut tx, _)) = begun {
                let held = slots::leave(&mut tx, slot);
                if tx.commit().is_ok() && held.total > 0 {
                    self.announce();
                }
            }
        }
    }
}

/// A program name as text.
pub fn program_name(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
