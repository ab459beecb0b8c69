//! Becoming a participant: once per process, and once more in a forked child.

use super::attach::Segment;
use super::bounds::Role;
use super::directory::GATE_PATIENCE;
use super::journal::{self, Begun, Transaction};
use super::layout::{self, COMMON_SLOTS, SLOTS};
use super::lock::{Claim, Deadline};
use super::recover;
use super::slots::{self, Identity};
use super::trial;
use super::wall;
use crate::error::Error;
use crate::sys::{self, Clock, Hold, Pulse};
use shmlimit_kernel::state::View;
use shmlimit_kernel::time::Time;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
pub(super) mod presence {
    /// [`ABSENT`], [`ATTACHING`], or the member's badge.
    pub const STATE: usize = 0;
    pub const CLOCK: usize = 1;
    /// When it was last checked that the file is in its place.
    pub const CHECKED: usize = 3;
    /// When the dead were last looked for.
    pub const REAPED: usize = 4;
    /// Until when the last refusal lasts.
    pub const REFUSED_UNTIL: usize = 5;
    /// Whether a thread is at what [`Segment::one_for_all`](super::Segment::one_for_all) does.
    pub const AT_WORK: usize = 6;
    /// Which acquisition of the lock the last call of this process met that gave up waiting for it.
    pub const HOLDER: usize = 7;
    /// Since when that acquisition has been seen.
    pub const HOLDER_SINCE: usize = 8;
    /// Whether an observer has found out how to read the clock.
    pub const OBSERVES: usize = 9;
    /// The generation of the limiter's name when it became a participant: see [`attendance`](super::super::attendance).
    pub const GENERATION: usize = 10;

    /// How many permits of this segment are still held after it was handed over: see `inherit.rs`.
    pub const OUT: usize = 11;

    pub const ABSENT: u64 = 0;
    pub const ATTACHING: u64 = 1;
}

impl Segment {
    /// Becomes a participant, once per process, whichever thread comes first. `probe` is a description of the file that
    /// holds no lock, if there is one at hand.
    #[cold]
    pub(super) fn join(&self, deadline: &Deadline, probe: Option<File>) -> Result<Member, Error> {
        let state = self.presence.word(presence::STATE);
        loop {
            match state.compare_exchange(
                presence::ABSENT,
                presence::ATTACHING,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(presence::ATTACHING) if deadline.is_over(&self.backing) => {
                    return Err(self.busy_attaching());
                }
                Err(presence::ATTACHING) => std::thread::sleep(Duration::from_micros(50)),
                Err(badge) => return Ok(self.member_of(badge)),
            }
        }
        let joined = probe.map_or_else(|| self.reopen(), Ok).and_then(|probe| {
            let member = self.enter(deadline, &probe)?;
            self.backing.keep(probe);
            Ok(member)
        });
        let badge = joined.as_ref().map_or(presence::ABSENT, |member| member.badge);
        state.store(badge, Ordering::Release);
        joined
    }

    /// Does something that one thread of this process should do for all, unless somebody has done it already. One that
    /// takes too long is not waited for: `work` must be right also beside itself.
    #[cold]
    pub fn one_for_all(
        &self,
        is_done: impl Fn() -> bool,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let at_work = self.presence.word(presence::AT_WORK);
        let started = std::time::Instant::now();
        let free = || at_work.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let mut mine = free();
        // As long as the one at work may wait for the gate and for a lock.
        let longest = self.bounds.lock.saturating_add(GATE_PATIENCE);
        while !mine && !is_done() && started.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(5));
            mine = free();
        }
        let done = if is_done() { Ok(()) } else { work() };
        if mine {
            at_work.store(0, Ordering::Release);
        }
        done
    }

    fn enter(&self, deadline: &Deadline, probe: &File) -> Result<Member, Error> {
        let clock = Clock::discover().map_err(Error::io("read the clock for", self.path()))?;
        let boot = sys::boot_id().map_err(Error::io("find the boot identity for", self.path()))?;
        // Without the lock first: what cannot be used is left as it is, to the byte (P4).
        if let Some(Err(problem)) = journal::read(&self.words, recover::policy) {
            return Err(self.damaged(problem));
        }
        let (slot, pulse) = self.find_slot(probe)?;
        let attendance = self.attend(slot);
        // A newcomer that has found no file before this moment may not have seen that this process attends.
        if !self.backing.is_in_place() {
            return Err(self.gone());
        }
        let begun = Transaction::begin(&self.words, &self.backing, slot, Claim::Newcomer, deadline);
        let Begun { mut tx, found, robbed } = begun.map_err(|held| self.busy(held))?;
        let mark = tx.load(layout::RETIRED);
        if layout::is_retired(mark) {
            return Err(self.gone());
        }
        let (raw, wall) = (clock.now(), sys::wall_now());
        wall::revive(&mut tx, raw, wall);
        let goes_on = raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)) >= tx.core().latest.0;
        if tx.words().load_array(layout::BOOT) != boot && !(goes_on && self.others_live(slot, probe)?) {
            wall::rebase(&mut tx, boot, raw, wall);
        }
        let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        if let Some((dead, _)) = robbed {
            slots::leave(&mut tx, dead);
        }
        let policy = recover::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
        let sound = mark == layout::LIVE && recover::is_sound(&tx, &policy, found, now);
        if !sound {
            recover::reset(&mut tx, now);
        }
        wall::settle_wall(&mut tx, now, wall);
        let program =
            Some(self.bounds.program).filter(|name| *name != [0; 16]).unwrap_or_else(sys::program_name);
        let identity = Identity { pid: sys::process_id(), program };
        if slots::bury_predecessor(&mut tx, slot) {
            self.commit(&mut tx)?;
        }
        slots::forget_counts(&self.words, slot);
        let generation = slots::enter(&mut tx, slot, identity, now);
        self.commit(&mut tx)?;
        drop(tx);
        if !sound {
            self.say_reset();
        }
        for (i, word) in clock.to_words().into_iter().enumerate() {
            self.presence.word(presence::CLOCK + i).store(word, Ordering::Relaxed);
        }
        self.presence.word(presence::CHECKED).store(raw, Ordering::Relaxed);
        drop(self.presence.pulse().put(pulse));
        drop(attendance.and_then(|attendance| self.presence.attendance().put(attendance)));
        Ok(Member { slot, badge: u64::from(generation) << 32 | (slot as u64 + 2), clock })
    }

    /// Whether a participant besides `slot` lives: then this is the boot it lives in, whatever identity a container was
    /// given. (After a reboot others may be joining too; but then the clock is behind, and that is looked at first.)
    fn others_live(&self, slot: usize, probe: &File) -> Result<bool, Error> {
        for other in (0..SLOTS).filter(|other| *other != slot && slots::is_owned(&self.words, *other)) {
            if self.backing.is_seen_alive(probe, other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A slot nobody owns; failing that, one whose owner is dead. Inherited slots are freed by processes that need permits.
    fn find_slot(&self, probe: &File) -> Result<(usize, Pulse), Error> {
        let hold = |slot: usize| {
            let hold = Pulse::hold(self.reopen()?, slot as u32, probe);
            match hold.map_err(Error::io("lock a slot of", self.path()))? {
                Hold::Held(pulse) => Ok(Some(pulse)),
                Hold::Taken => Ok(None),
                Hold::Lost => Err(trial::locks_are_lost(self.path(), probe)),
            }
        };
        // Everybody starts elsewhere, so that many who come at once do not queue for the same slot.
        let start = sys::process_id() as usize;
        let last = if self.bounds.role == Role::Participant { COMMON_SLOTS } else { SLOTS };
        let around = || (0..COMMON_SLOTS).map(|i| (start + i) % COMMON_SLOTS).chain(COMMON_SLOTS..last);
        for slot in around().filter(|slot| !slots::is_owned(&self.words, *slot)) {
            if let Some(pulse) = hold(slot)? {
                return Ok((slot, pulse));
            }
        }
        for slot in around().filter(|slot| slots::inherited(&self.words, *slot) == 0) {
            if let Some(pulse) = hold(slot)? {
                return Ok((slot, pulse));
            }
        }
        Err(Error::SlotsFull { path: self.path().to_owned(), limit: last })
    }
}
