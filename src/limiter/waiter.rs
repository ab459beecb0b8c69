//! Waiting in the queue, whoever does the sleeping: a thread, or the caller's executor.

use super::Limiter;
use super::grant::{AcquireError, Grant};
use super::request::Request;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::queue::{self, NewWaiter, QueueOutcome, QueueTicket};
use shmlimit_kernel::{AcquireRequest, Reason, Time};
use shmlimit_segment::Error;
use shmlimit_segment::layout::{CLOCK_OFFSET, checksum, slot};
use shmlimit_segment::lock::Deadline;
use shmlimit_segment::{Alarm, Attachment, Wakeups, slots};
use std::time::{Duration, Instant};

/// A call on its way through the queue. Dropping it leaves the queue at once.
pub(super) struct Waiter<'l, 'r> {
    limiter: &'l Limiter,
    request: &'r Request<'r>,
    /// By the machine's clock, which counts suspend; nothing if it waits as long as it takes.
    deadline: Option<u64>,
    can_be_woken: bool,
    place: Option<Place<'l>>,
    /// On a test clock: since when, in real time, it has waited for something without a known end.
    idle_since: Option<Instant>,
}

/// An entry in the queue of one segment, made by one attachment.
pub(super) struct Place<'l> {
    pub(super) link: &'l LimiterSegment,
    pub(super) attachment_id: u64,
    pub(super) wait: QueueTicket,
}

/// What comes next for a call.
pub(super) enum Step<'l> {
    /// It may be made.
    Done(Grant<'l>),
    /// Not yet: sleep for `limit`, or until the wake word of `place` in `link` shows something else than `wake_value`.
    /// `known_at` is when that time is over on the clock of the segment, if what it waits for comes by itself then.
    Sleep { link: &'l LimiterSegment, place: usize, wake_value: u32, limit: Duration, known_at: Option<u64> },
    /// The lock of the segment was not free: step again.
    Again,
}

/// When to step again where the lock was not free.
pub(super) const LOCK_RETRY_DELAY: Duration = Duration::from_millis(1);

/// On a test clock: how long a call with a deadline waits, in real time, for something without a known end. Other threads
/// and tasks need a moment to give it.
const REAL_TIME_LIMIT: Duration = Duration::from_millis(100);
/// On a test clock: how often such a call looks again. Its appointment is on a clock that may stand still.
const REAL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// For how long a call waits for the lock that has `left` until its deadline. A call without any time waits for a holder
/// that is merely busy all the same: as a rule it is then told, and leaves the queue.
pub(super) fn at_least_grace(left: Duration) -> Duration {
    left.max(Duration::from_nanos(queue::GRACE.0))
}

impl<'l, 'r> Waiter<'l, 'r> {
    /// A call that is not in the queue yet.
    pub(super) fn new(
        limiter: &'l Limiter,
        request: &'r Request<'r>,
        can_be_woken: bool,
    ) -> Result<Waiter<'l, 'r>, AcquireError> {
        let link = limiter.newest();
        let segment = &link.segment;
        let raw = segment.raw_now(&segment.attachment()?);
        let time_left = request.time_left(|| segment.clock_source().system_time());
        let deadline = time_left.map(|time_left| raw.saturating_add(super::nanos(time_left)));
        Ok(Waiter { limiter, request, deadline, can_be_woken, place: None, idle_since: None })
    }

    /// A call that began to wait before, and cannot be rung.
    pub(super) fn resumed(
        limiter: &'l Limiter,
        request: &'r Request<'r>,
        deadline: Option<u64>,
        place: Option<Place<'l>>,
        idle_since: Option<Instant>,
    ) -> Waiter<'l, 'r> {
        Waiter { limiter, request, deadline, can_be_woken: false, place, idle_since }
    }

    /// When it gives up, by the machine's clock.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// On a test clock: since when, in real time, it has waited for something without a known end.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    /// Its place in the queue, which it then has no more: somebody else goes on waiting there.
    pub(super) fn take_place(&mut self) -> Option<Place<'l>> {
        self.place.take()
    }

    /// Enters the queue, or looks whether it is this call's turn. On a test clock it never has to sleep for a known time.
    pub(super) fn step(&mut self) -> Result<Step<'l>, AcquireError> {
        match self.limiter.newest().segment.clock_source().alarm() {
            None => self.look_once(),
            Some(alarm) => self.step_with(alarm),
        }
    }

    /// [`step`](Self::step) on a test clock: lets it go to every known time instead of sleeping until then.
    #[cold]
    fn step_with(&mut self, mut alarm: Alarm) -> Result<Step<'l>, AcquireError> {
        loop {
            let step = self.look_once()?;
            let Step::Sleep { link, place, wake_value, limit, known_at } = step else { return Ok(step) };
            let target = match (known_at, self.deadline) {
                (Some(known), _) => known,
                (None, Some(deadline)) if self.is_out_of_time() => deadline,
                (None, _) => {
                    let limit = limit.min(REAL_LOOK_INTERVAL);
                    return Ok(Step::Sleep { link, place, wake_value, limit, known_at });
                }
            };
            alarm.wait_until(target, || link.segment.read_wake_word(place) != wake_value);
        }
    }

    /// Whether it has waited long enough, in real time, for something without a known end.
    fn is_out_of_time(&mut self) -> bool {
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= REAL_TIME_LIMIT
    }

    /// Looks once.
    fn look_once(&mut self) -> Result<Step<'l>, AcquireError> {
        let limiter = self.limiter;
        for _ in 0..super::MAX_SUCCESSORS {
            let link = limiter.newest();
            match self.step_in(link) {
                Err(AcquireError::Failed(error)) if matches!(*error, Error::Unsettled { .. }) => {
                    // What waited in a segment that is gone is gone with it.
                    self.place = None;
                    limiter.follow(|link| link.segment.confirm(&link.segment.attachment()?.clock))?;
                }
                stepped => return self.retry_while_busy(stepped),
            }
        }
        let stepped = self.step_in(limiter.newest());
        self.retry_while_busy(stepped)
    }

    /// Who finds the lock in use goes on waiting for it while there is time, and is refused then.
    fn retry_while_busy(&self, stepped: Result<Step<'l>, AcquireError>) -> Result<Step<'l>, AcquireError> {
        match stepped {
            Err(AcquireError::Failed(error)) if matches!(*error, Error::Busy { stopped: false, .. }) => {
                let link = self.limiter.newest();
                let is_over = |attachment: Attachment| {
                    self.deadline.is_some_and(|at| link.segment.raw_now(&attachment) >= at)
                };
                if link.segment.present().is_none_or(is_over) {
                    Err(link.refuse_busy())
                } else {
                    Ok(Step::Again)
                }
            }
            stepped => stepped,
        }
    }

    fn step_in(&mut self, link: &'l LimiterSegment) -> Result<Step<'l>, AcquireError> {
        let segment = &link.segment;
        // Each time: a limiter that replaced the one before may count other units.
        let kernel_request = link.kernel_request(self.request)?;
        let deadline = self.lock_deadline(link, segment.present().as_ref());
        let attachment = segment.attachment_within(&deadline)?;
        // After a fork, or in another segment: whoever waits there is somebody else.
        if self
            .place
            .as_ref()
            .is_some_and(|at| !std::ptr::eq(at.link, link) || at.attachment_id != attachment.id)
        {
            self.place = None;
        }
        loop {
            let (outcome, wake_value) = self.look(link, &kernel_request, &attachment, &deadline)?;
            match outcome {
                QueueOutcome::Granted(ticket) => {
                    self.place = None;
                    slots::tally(segment.words(), attachment.slot, slot::GRANTED);
                    return Ok(Step::Done(Grant::new(link, attachment.id, ticket)));
                }
                QueueOutcome::Refused(refusal) => {
                    self.place = None;
                    // It may be full of the dead.
                    if refusal.reason == Reason::QueueFull
                        && link.reclaim_dead_if_due(&attachment, &deadline)?
                    {
                        continue;
                    }
                    slots::tally(segment.words(), attachment.slot, slot::REFUSED);
                    link.log_refusal(&refusal);
                    return Err(refusal.into());
                }
                // The state was lost, or somebody took it out because its time was over. Entering anew ends both.
                QueueOutcome::Gone => self.place = None,
                QueueOutcome::Waiting(wait) => {
                    self.place = Some(Place { link, attachment_id: attachment.id, wait });
                    let looked_at = segment.now(&attachment);
                    if wait.suspects_dead && link.reclaim_dead_if_due(&attachment, &deadline)? {
                        continue;
                    }
                    let limit = Duration::from_nanos(wait.until.since(looked_at).0);
                    let known_at = wait.timed.then(|| segment.raw_at(wait.until));
                    return Ok(Step::Sleep { link, place: wait.place, wake_value, limit, known_at });
                }
            }
        }
    }

    /// One transaction. What the wake word says is read in it.
    fn look(
        &self,
        link: &'l LimiterSegment,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        deadline: &Deadline,
    ) -> Result<(QueueOutcome, u32), AcquireError> {
        let segment = &link.segment;
        let waits = self.place.as_ref().map(|place| place.wait);
        let (looked, _) = link.change(attachment, deadline, |tx, now| {
            let (outcome, wake) = match waits {
                Some(wait) => {
                    slots::tally(segment.words(), attachment.slot, slot::LOOKED);
                    queue::look(tx, attachment.id, &wait, now)
                }
                None => {
                    // After a reboot with a wall clock that went back the limiter's clock is behind the machine's.
                    let offset = tx.load(CLOCK_OFFSET).cast_signed();
                    let deadline = self.deadline.map_or(u64::MAX, |raw| raw.saturating_add_signed(offset));
                    let newcomer = NewWaiter {
                        owner: attachment.id,
                        group: Group::key(self.limiter.shared.group, attachment.id),
                        request: *kernel_request,
                        deadline: Time(deadline),
                        can_be_woken: self.can_be_woken,
                    };
                    queue::enter(tx, &newcomer, now)
                }
            };
            let wake_value = match outcome {
                QueueOutcome::Waiting(wait) => segment.read_wake_word(wait.place),
                _ => 0,
            };
            Ok(((outcome, wake_value), Wakeups::first(wake)))
        })?;
        Ok(looked)
    }

    /// How long one step may wait for the lock: until the call's deadline, but not longer than any call.
    fn lock_deadline(&self, link: &LimiterSegment, attachment: Option<&Attachment>) -> Deadline {
        let longest = self.limiter.shared.bounds.lock;
        let left = |(at, attachment): (u64, &Attachment)| at.saturating_sub(link.segment.raw_now(attachment));
        let left = self.deadline.zip(attachment).map(left);
        Deadline::within(left.map_or(longest, |left| at_least_grace(Duration::from_nanos(left)).min(longest)))
    }
}

impl Drop for Waiter<'_, '_> {
    fn drop(&mut self) {
        let Some(Place { link, attachment_id, wait }) = self.place.take() else { return };
        let segment = &link.segment;
        // After a fork it is the parent's place.
        let Some(attachment) = segment.present().filter(|attachment| attachment.id == attachment_id) else {
            return;
        };
        let deadline = self.lock_deadline(link, Some(&attachment));
        // A call that cannot leave now is passed over, and found when its deadline is over or this process ends.
        let _ = link.change(&attachment, &deadline, |tx, now| {
            Ok(((), Wakeups::first(queue::leave(tx, attachment_id, &wait, now))))
        });
    }
}

/// Several processes that have turns together, as if they were one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(u64);

/// Keeps named groups and processes apart.
const NAMED: u64 = 1;
const PROCESS: u64 = 2;

impl Group {
    /// The group of that name.
    pub(super) fn named(name: &str) -> Group {
        Group(checksum([NAMED].into_iter().chain(name.bytes().map(u64::from))))
    }

    /// The group that the environment names.
    pub(super) fn from_environment() -> Option<Group> {
        let name = std::env::var_os("SHMLIMIT_GROUP").filter(|name| !name.is_empty())?;
        Some(Group::named(&name.to_string_lossy()))
    }

    /// What stands for the group of an attachment: a named one, or itself.
    pub(super) fn key(group: Option<Group>, attachment_id: u64) -> u64 {
        group.map_or_else(|| checksum([PROCESS, attachment_id]), |group| group.0)
    }
}
