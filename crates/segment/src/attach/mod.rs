//! A segment as one process uses it: its place among the participants, and its transactions.

mod join;
mod lock_wait;
mod observe;
pub(crate) mod options;
pub(crate) mod policy_change;
pub(crate) mod process_state;
pub(crate) mod wake;

use crate::clock_source::ClockSource;
use crate::error::Error;
use crate::file::Verified;
use crate::file::backing::Backing;
use crate::journal::{self, Transaction};
use crate::layout;
use crate::lock::{self, Claim, Deadline};
use crate::memory::Reader;
use crate::sanity;
use crate::slots;
use crate::sys::{Clock, ForkWords};
use crate::wall_clock;
use crate::words::Words;
use options::{AttachOptions, Role};
use process_state::{Attachment, FileRelease};
use shmlimit_kernel::policy::Policy;
use shmlimit_kernel::queue::{self, Wake};
use shmlimit_kernel::state::{Checked, View};
use shmlimit_kernel::time::Time;
use shmlimit_kernel::{Reason, Refusal};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A transaction on a mapped segment.
pub type Tx<'a> = Transaction<'a, Backing>;

/// One mapped segment. Any thread may use it, and so may a forked child.
pub struct Segment {
    pub(crate) words: Words,
    pub(crate) backing: Backing,
    pub(crate) process_state: ForkWords,
    pub(crate) bounds: AttachOptions,
    /// `bounds.place` and `bounds.reclaim` in nanoseconds, ready for the fast path.
    place_bound: u64,
    pub(crate) reclaim_bound: u64,
    pub(crate) file_release: FileRelease,
    pub(crate) clock: ClockSource,
}

impl Segment {
    /// Attaches to a verified segment as a participant, or opens it as an observer.
    pub fn attach(verified: Verified, bounds: AttachOptions) -> Result<Segment, Error> {
        let Verified { words, backing, file, clock } = verified;
        let process_state = ForkWords::new().map_err(Error::io("prepare memory for", backing.path()))?;
        let nanos = |bound: Duration| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let (place_bound, reclaim_bound) = (nanos(bounds.place), nanos(bounds.reclaim));
        let segment = Segment {
            words,
            backing,
            process_state,
            bounds,
            place_bound,
            reclaim_bound,
            file_release: FileRelease::default(),
            clock,
        };
        match bounds.role {
            Role::Observer => segment.observe(&file)?,
            _ => drop(segment.join(&segment.deadline(), Some(file))?),
        }
        Ok(segment)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.backing.path()
    }

    /// The words, for reads that need no consistency.
    #[inline]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The effective policy.
    pub fn policy(&self) -> Result<Policy, Error> {
        match journal::read(&self.words, sanity::policy) {
            Some(policy) => policy.map_err(|problem| self.damaged(problem)),
            None => {
                let deadline = self.deadline();
                let attachment = self.attachment_within(&deadline)?;
                let policy = self.transact(&attachment, &deadline, |tx, _| sanity::policy(tx.words()))?;
                policy.map_err(|problem| self.damaged(problem))
            }
        }
    }

    /// The attachment of this process. A process that has none yet, such as a forked child, attaches here.
    #[inline(always)]
    pub fn attachment(&self) -> Result<Attachment, Box<Error>> {
        // Create a deadline only where it is needed: one on the stack costs every release a few instructions.
        match self.present() {
            Some(attachment) => Ok(attachment),
            None => self.join(&self.deadline(), None).map_err(Box::new),
        }
    }

    /// [`attachment`](Self::attachment) for a call that continues afterwards. All waits of that call share
    /// `deadline`.
    #[inline(always)]
    pub fn attachment_within(&self, deadline: &Deadline) -> Result<Attachment, Box<Error>> {
        match self.present() {
            Some(attachment) => Ok(attachment),
            None => self.join(deadline, None).map_err(Box::new),
        }
    }

    /// The attachment of this process, if it has one.
    #[inline(always)]
    pub fn present(&self) -> Option<Attachment> {
        let attachment_id = self.process_state.word(process_state::STATE).load(Ordering::Acquire);
        if attachment_id > process_state::ATTACHING { Some(self.attachment_of(attachment_id)) } else { None }
    }

    /// Whether `attachment_id` is the current attachment of this process. A grant from before a fork belongs to the
    /// parent.
    #[inline]
    pub fn is_present(&self, attachment_id: u64) -> bool {
        self.process_state.word(process_state::STATE).load(Ordering::Acquire) == attachment_id
    }

    #[inline(always)]
    pub(crate) fn attachment_of(&self, attachment_id: u64) -> Attachment {
        let word = |i| self.process_state.word(i).load(Ordering::Relaxed);
        let clock = Clock::from_words([word(process_state::CLOCK), word(process_state::CLOCK + 1)]);
        Attachment { slot: (attachment_id as u32 as usize).wrapping_sub(2), id: attachment_id, clock }
    }

    /// Runs `work` under the lock, with the time on the limiter's clock and a state that is whole and sane. Changes
    /// that `work` does not commit are undone.
    pub fn transact<R>(
        &self,
        attachment: &Attachment,
        deadline: &Deadline,
        work: impl Fn(&mut Tx<'_>, Time) -> R,
    ) -> Result<R, Box<Error>> {
        match self.begin_at_once(attachment, self.raw_now(attachment)) {
            Some((mut tx, now, _)) => Ok(work(&mut tx, now)),
            None => self.transact_slowly(attachment, Claim::Participant, deadline, &work),
        }
    }

    /// Takes the lock and reads the time, if nothing is in the way. Otherwise returns `None`, and
    /// [`transact`](Self::transact) finds out the reason. `raw` is the clock's time, read before the lock is taken
    /// so that the lock is held for a shorter time. The last value is the state that was read and checked.
    #[inline(always)]
    pub fn begin_at_once(&self, attachment: &Attachment, raw: u64) -> Option<(Tx<'_>, Time, Checked)> {
        if self.is_place_due(raw) {
            return None;
        }
        // After a short wait the time read before is a little old. The kernel uses the latest committed time if
        // that is later.
        let key = lock::try_acquire(&self.words, attachment.slot)
            .or_else(|| lock::spin(&self.words, attachment.slot))?;
        let tx = Transaction::under(&self.words, &self.backing, key);
        let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        let checked = Checked { core: tx.core(), held: tx.held(attachment.slot) };
        if tx.is_whole()
            && tx.load(layout::RETIRED) == layout::LIVE
            && sanity::is_core_sane(&checked.core, now)
            && slots::are_counted(checked.held, &checked.core)
        {
            Some((tx, now, checked))
        } else {
            None
        }
    }

    /// Whether a process holds the lock at this moment. This is a hint: it may have changed already.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        lock::owner(self.words.lock().load(Ordering::Relaxed)).is_some()
    }

    /// Whether it is time to check that the file is still in its place.
    #[inline(always)]
    pub fn is_place_due(&self, raw: u64) -> bool {
        raw.wrapping_sub(self.process_state.word(process_state::CHECKED).load(Ordering::Relaxed))
            > self.place_bound
    }

    /// Whether the next check time has come, before which only rules, permits and the queue matter. This is a hint,
    /// because it is read without the lock.
    #[inline(always)]
    pub fn is_check_due(&self, raw: u64) -> bool {
        let cells = self.words.cells();
        raw.wrapping_add(cells.load(layout::CLOCK_OFFSET)) >= Reader(cells).next_check().0
    }

    /// Whether the last refusal of this process still applies, and the check of [the place](Self::is_place_due) is
    /// not due. The refusal is only a hint: no promise depends on it.
    #[inline(always)]
    pub fn expects_refusal(&self, raw: u64) -> bool {
        raw < self.process_state.word(process_state::REFUSED_UNTIL).load(Ordering::Relaxed)
    }

    /// Remembers how long a refusal probably lasts: until its own retry time or, if a permit was missing, until
    /// dead processes are to be looked for again. Returns `false` if they are to be looked for now, which the
    /// caller must do first.
    #[inline(always)]
    pub fn expect_refusal(&self, raw: u64, refusal: &Refusal) -> bool {
        let until = match (refusal.reason, refusal.retry_at) {
            (Reason::Concurrency, _) => self.reclaim_due_at(),
            (_, Some(at)) => raw.saturating_add(at.since(refusal.checked_at).0),
            // This request can never be granted. That must not refuse other requests.
            (_, None) => return true,
        };
        let placed = self.process_state.word(process_state::CHECKED).load(Ordering::Relaxed);
        let until_placed = until.min(placed.saturating_add(self.place_bound));
        self.process_state.word(process_state::REFUSED_UNTIL).store(until_placed, Ordering::Relaxed);
        raw < until
    }

    /// Whether it is time to look for dead processes.
    #[inline(always)]
    pub fn is_reclaim_due(&self, raw: u64) -> bool {
        raw >= self.reclaim_due_at()
    }

    #[inline(always)]
    fn reclaim_due_at(&self) -> u64 {
        self.process_state
            .word(process_state::RECLAIMED_AT)
            .load(Ordering::Relaxed)
            .saturating_add(self.reclaim_bound)
    }

    /// Reads one committed state without the lock, in a single try. The caller must check that the file is in its
    /// place.
    #[inline(always)]
    pub fn look_at_once<R>(&self, raw: u64, look: impl Fn(&Reader<'_>, Time) -> R) -> Option<R> {
        journal::read_once(self.words.cells(), |cells| {
            let now = Time(raw.wrapping_add(cells.load(layout::CLOCK_OFFSET)));
            (cells.load(layout::RETIRED) == layout::LIVE).then(|| look(&Reader(cells), now))
        })?
    }

    /// [`begin_at_once`](Self::begin_at_once) for a change that needs no time.
    #[inline(always)]
    pub fn begin_untimed(&self, attachment: &Attachment) -> Option<Tx<'_>> {
        let key = lock::try_acquire(&self.words, attachment.slot)
            .or_else(|| lock::spin(&self.words, attachment.slot))?;
        let tx = Transaction::under(&self.words, &self.backing, key);
        if tx.is_whole() && tx.load(layout::RETIRED) == layout::LIVE { Some(tx) } else { None }
    }

    /// [`transact`](Self::transact) for a change that needs no time.
    pub fn transact_untimed<R>(
        &self,
        attachment: &Attachment,
        deadline: &Deadline,
        work: impl Fn(&mut Tx<'_>) -> R,
    ) -> Result<R, Box<Error>> {
        match self.begin_untimed(attachment) {
            Some(mut tx) => Ok(work(&mut tx)),
            None => {
                self.transact_slowly(attachment, Claim::Participant, deadline, &|tx: &mut Tx<'_>, _| work(tx))
            }
        }
    }

    /// The time on the clock that the limiter's clock is based on: the machine's clock, or a test clock.
    #[inline(always)]
    pub fn raw_now(&self, attachment: &Attachment) -> u64 {
        self.clock.now(&attachment.clock)
    }

    /// [`raw_now`](Self::raw_now) for a caller that has already read the machine's clock as `read`.
    #[inline(always)]
    pub fn raw_from(&self, attachment: &Attachment, read: u64) -> u64 {
        self.clock.correct(&attachment.clock, read)
    }

    /// The raw time (see [`raw_now`](Self::raw_now)) of a time on the limiter's clock.
    pub fn raw_at(&self, time: Time) -> u64 {
        time.0.wrapping_sub(self.words.load(layout::CLOCK_OFFSET))
    }

    /// The wall clock's time at `now`, a time on the limiter's clock that was just read.
    pub(crate) fn wall_at(&self, now: Time) -> u64 {
        self.clock.wall_at(self.raw_at(now))
    }

    /// The source of the limiter's time.
    #[inline(always)]
    pub fn clock_source(&self) -> &ClockSource {
        &self.clock
    }

    /// The time on the limiter's clock.
    #[inline]
    pub fn now(&self, attachment: &Attachment) -> Time {
        Time(self.raw_now(attachment).wrapping_add(self.words.load(layout::CLOCK_OFFSET)))
    }

    /// Commits the changes of a transaction.
    #[inline(always)]
    pub fn commit(&self, tx: &mut Tx<'_>) -> Result<(), Box<Error>> {
        tx.commit().map_err(|_| self.too_long())
    }

    #[cold]
    fn too_long(&self) -> Box<Error> {
        let problem = "a change does not fit the journal".to_owned();
        Box::new(Error::Damaged { path: self.path().to_owned(), problem })
    }

    /// Reads one committed state without the lock. If that fails, takes the lock.
    pub fn look<R>(&self, look: impl Fn(&Reader<'_>) -> R) -> Result<R, Error> {
        if let Some(seen) = journal::read(&self.words, |words| look(&Reader(words.cells()))) {
            return self.unless_released(seen);
        }
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        Ok(self.transact(&attachment, &deadline, |tx, _| look(&Reader(tx.cells())))?)
    }

    pub(crate) fn reopen(&self) -> Result<std::fs::File, Error> {
        self.backing.reopen().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => self.gone(),
            _ => Error::io("open", self.path())(error),
        })
    }

    /// Returns an error if the segment is retired or its file is no longer in its place.
    pub fn confirm(&self, clock: &Clock) -> Result<(), Error> {
        if self.is_retired() { Err(self.gone()) } else { self.check_place(self.clock.now(clock)) }
    }

    #[cold]
    pub(crate) fn check_place(&self, raw: u64) -> Result<(), Error> {
        self.process_state.word(process_state::CHECKED).store(raw, Ordering::Relaxed);
        if self.backing.is_in_place() { Ok(()) } else { Err(self.gone()) }
    }

    #[cold]
    pub(crate) fn damaged(&self, problem: String) -> Error {
        // If an operator has replaced the segment because of this damage, follow to the new one.
        if self.is_retired() || !self.backing.is_in_place() {
            return self.gone();
        }
        Error::Damaged { path: self.path().to_owned(), problem }
    }

    /// The error for a segment that was deleted, replaced or retired. The limiter then opens it again.
    pub(crate) fn gone(&self) -> Error {
        Error::Replaced { path: self.path().to_owned() }
    }
}

impl Drop for Segment {
    /// Detaches from the segment: returns the permits and frees the slot. Other processes reclaim what cannot be
    /// returned here. The slot is given up only here, because at this point no other thread can be in a transaction
    /// under it.
    fn drop(&mut self) {
        let Some(attachment) = self.present() else { return };
        let left = self.transact(&attachment, &self.deadline(), |tx, now| {
            slots::leave(tx, attachment.slot);
            let wake = queue::changed(tx, now);
            wall_clock::refresh_anchor(tx, now, self.wall_at(now));
            tx.commit().map_or(Wake::None, |()| wake)
        });
        self.wake_last(left.unwrap_or(Wake::None));
    }
}

/// A program name as text.
pub fn program_name(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
pub(crate) mod tests;
