//! Attaches this process to a segment: once per process, and once more in a forked child.

use super::Segment;
use super::options::Role;
use super::process_state::{self, Attachment};
use crate::directory::creation_lock::CREATION_LOCK_TIMEOUT;
use crate::directory::self_test;
use crate::directory::users::{self, Generation, UserByte};
use crate::error::Error;
use crate::journal::{self, Begun, Transaction};
use crate::layout::{self, COMMON_SLOTS, SLOTS, header};
use crate::lock::{Claim, Deadline};
use crate::paths::CREATION_LOCK;
use crate::sanity;
use crate::slots::{self, Identity};
use crate::sys::{self, Clock, Hold, LivenessLock};
use crate::wall_clock;
use shmlimit_kernel::state::View;
use shmlimit_kernel::time::Time;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Segment {
    /// Attaches this process, once, no matter which thread comes first. `probe` is an open file description of the
    /// segment that holds no lock, if the caller has one.
    #[cold]
    pub(crate) fn join(&self, deadline: &Deadline, probe: Option<File>) -> Result<Attachment, Error> {
        let state = self.process_state.word(process_state::STATE);
        loop {
            match state.compare_exchange(
                process_state::ABSENT,
                process_state::ATTACHING,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(process_state::ATTACHING) if deadline.is_over(&self.backing) => {
                    return Err(self.busy_attaching());
                }
                Err(process_state::ATTACHING) => std::thread::sleep(Duration::from_micros(50)),
                Err(attachment_id) => return Ok(self.attachment_of(attachment_id)),
            }
        }
        let joined = probe.map_or_else(|| self.reopen(), Ok).and_then(|probe| {
            let attachment = self.enter(deadline, &probe)?;
            self.backing.keep(probe);
            Ok(attachment)
        });
        let attachment_id = joined.as_ref().map_or(process_state::ABSENT, |attachment| attachment.id);
        state.store(attachment_id, Ordering::Release);
        joined
    }

    /// Runs `work`, which one thread of this process should do for all threads, unless `is_done` says that it was
    /// done. If another thread takes too long over it, this thread runs `work` as well. So `work` must be correct
    /// even when two threads run it at the same time.
    #[cold]
    pub fn run_on_one_thread(
        &self,
        is_done: impl Fn() -> bool,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let at_work = self.process_state.word(process_state::AT_WORK);
        let started = std::time::Instant::now();
        let free = || at_work.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let mut mine = free();
        // The other thread may wait for the creation lock and for the segment's lock, each up to its time limit.
        let longest = self.bounds.lock.saturating_add(CREATION_LOCK_TIMEOUT);
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

    fn enter(&self, deadline: &Deadline, probe: &File) -> Result<Attachment, Error> {
        let clock = Clock::discover().map_err(Error::io("read the clock for", self.path()))?;
        let boot = self.clock.boot_id().map_err(Error::io("find the boot identity for", self.path()))?;
        // Check before taking the lock: a file that cannot be used is left as it is, to the byte (P4).
        if let Some(Err(problem)) = journal::read(&self.words, sanity::policy) {
            return Err(self.damaged(problem));
        }
        let (slot, liveness_lock) = self.find_slot(probe)?;
        let user_lock = self.register_user(slot);
        // A newcomer that found no file before this moment may not have seen that this process is registered.
        if !self.backing.is_in_place() {
            return Err(self.gone());
        }
        let begun = Transaction::begin(&self.words, &self.backing, slot, Claim::Attaching, deadline);
        let Begun { mut tx, found, taken_over } = begun.map_err(|held| self.busy(held))?;
        let mark = tx.load(layout::RETIRED);
        if layout::is_retired(mark) {
            return Err(self.gone());
        }
        let raw = self.clock.now(&clock);
        let wall = self.clock.wall_at(raw);
        wall_clock::restore_live_mark(&mut tx, raw, wall);
        let clock_continues = raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)) >= tx.core().latest.0;
        if tx.words().load_array(layout::BOOT) != boot
            && !(clock_continues && self.others_alive(slot, probe)?)
        {
            wall_clock::rebase(&mut tx, boot, raw, wall);
        }
        let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        if let Some((dead, _)) = taken_over {
            slots::leave(&mut tx, dead);
        }
        let policy = sanity::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
        let sound = mark == layout::LIVE && sanity::is_sound(&tx, &policy, found, now);
        if !sound {
            sanity::reset(&mut tx, now);
        }
        wall_clock::refresh_anchor(&mut tx, now, wall);
        let program =
            Some(self.bounds.program).filter(|name| *name != [0; 16]).unwrap_or_else(sys::program_name);
        let identity = Identity { pid: std::process::id(), program };
        if slots::reclaim_predecessor(&mut tx, slot) {
            self.commit(&mut tx)?;
        }
        slots::forget_counts(&self.words, slot);
        let generation = slots::enter(&mut tx, slot, identity, now);
        self.commit(&mut tx)?;
        drop(tx);
        if !sound {
            self.log_reset();
        }
        for (i, word) in clock.to_words().into_iter().enumerate() {
            self.process_state.word(process_state::CLOCK + i).store(word, Ordering::Relaxed);
        }
        self.process_state.word(process_state::CHECKED).store(raw, Ordering::Relaxed);
        drop(self.process_state.liveness_lock().put(liveness_lock));
        drop(user_lock.and_then(|user_lock| self.process_state.user_lock().put(user_lock)));
        Ok(Attachment { slot, id: u64::from(generation) << 32 | (slot as u64 + 2), clock })
    }

    /// Whether a participant other than `slot` is alive. If one is, this is still the boot that the participant
    /// runs in, even if a container reports another boot identity. (After a reboot other processes may be attaching
    /// too. But then the clock is behind, and the caller checks that first.)
    fn others_alive(&self, slot: usize, probe: &File) -> Result<bool, Error> {
        for other in (0..SLOTS).filter(|other| *other != slot && slots::is_owned(&self.words, *other)) {
            if self.backing.is_seen_alive(probe, other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds a slot without an owner, or else a slot whose owner is dead. Skips inherited slots: processes that
    /// need permits free them.
    fn find_slot(&self, probe: &File) -> Result<(usize, LivenessLock), Error> {
        let hold = |slot: usize| {
            let hold = LivenessLock::hold(self.reopen()?, slot as u32, probe);
            match hold.map_err(Error::io("lock a slot of", self.path()))? {
                Hold::Held(liveness_lock) => Ok(Some(liveness_lock)),
                Hold::Taken => Ok(None),
                Hold::Lost => Err(self_test::locks_are_lost(self.path(), probe)),
            }
        };
        // Each process starts at a different slot, so that many processes that attach at once do not queue for the
        // same one.
        let start = std::process::id() as usize;
        let last = if self.bounds.role == Role::Participant { COMMON_SLOTS } else { SLOTS };
        let around = || (0..COMMON_SLOTS).map(|i| (start + i) % COMMON_SLOTS).chain(COMMON_SLOTS..last);
        for slot in around().filter(|slot| !slots::is_owned(&self.words, *slot)) {
            if let Some(liveness_lock) = hold(slot)? {
                return Ok((slot, liveness_lock));
            }
        }
        for slot in around().filter(|slot| slots::inherited(&self.words, *slot) == 0) {
            if let Some(liveness_lock) = hold(slot)? {
                return Ok((slot, liveness_lock));
            }
        }
        Err(Error::SlotsFull { path: self.path().to_owned(), limit: last })
    }
}

impl Segment {
    /// Registers in the creation lock that the owner of a slot has the limiter open, and reads the generation
    /// there. Call it before confirming that the file is in its place. Then either a newcomer sees this process, or
    /// this process sees that the file is gone. If the creation lock cannot be opened, or the system has no such
    /// locks, newcomers detect this process by other means or not at all.
    pub(crate) fn register_user(&self, slot: usize) -> Option<LivenessLock> {
        let creation_lock = self.open_creation_lock()?;
        let file_name = self.backing.file_name()?;
        let Generation(generation) = users::generation(&creation_lock, file_name).unwrap_or(Generation(0));
        self.process_state.word(process_state::GENERATION).store(generation, Ordering::Relaxed);
        users::register_user(
            creation_lock,
            file_name,
            UserByte::of(self.words.load(header::GENERATION), slot),
        )
        .ok()?
    }

    /// Registers this process as a participant that holds no permits. If that is not possible, unregisters it.
    pub(crate) fn register_user_without_permits(&self) {
        let idle = || {
            let creation_lock = self.open_creation_lock()?;
            users::register_user(creation_lock, self.backing.file_name()?, UserByte::WITHOUT_PERMITS).ok()?
        };
        match idle() {
            Some(idle) => drop(self.process_state.user_lock().put(idle)),
            None => self.unregister_user(),
        }
    }

    fn open_creation_lock(&self) -> Option<File> {
        let creation_lock = self.backing.open_beside(CREATION_LOCK).ok()?;
        sys::facts(&creation_lock).ok().filter(|facts| facts.regular)?;
        Some(creation_lock)
    }

    /// Whether the segment belongs to this generation of its name. A process does not know if it could not read the
    /// generation when it attached, or if it has not attached since it was forked. Then the answer is `false`,
    /// because it must not continue the state.
    pub(crate) fn has_generation(&self, generation: Generation) -> bool {
        let mine = self.process_state.word(process_state::GENERATION).load(Ordering::Relaxed);
        mine != 0 && Generation(mine) == generation
    }

    /// Removes the registration of this process in the creation lock.
    pub(crate) fn unregister_user(&self) {
        drop(self.process_state.user_lock().take());
    }
}
