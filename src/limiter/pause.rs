//! Pausing and resuming a limiter (R148).

use super::Limiter;
use super::document::Document;
use super::events;
use super::fields::PauseSnapshot;
use super::schema;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::decide;
use shmlimit_kernel::health_state::HealthStateView;
use shmlimit_kernel::log_context::LogContext;
use shmlimit_kernel::pause::{self, PAUSE_REASON_BYTES, Pause, Pausing};
use shmlimit_kernel::queue;
use shmlimit_kernel::{Nanos, Time, View};
use shmlimit_segment::Error;
use shmlimit_segment::layout::{slot, slot_base};
use shmlimit_segment::{Attachment, Tx, Wakeups, program_name};
use std::time::Duration;

/// How long to pause a limiter, and why. By default the pause lasts until the limiter is resumed, and has no reason.
///
/// ```
/// # use shmlimit::PauseRequest;
/// # use std::time::Duration;
/// let maintenance = PauseRequest::new().duration(Duration::from_secs(600)).reason("database migration");
/// ```
#[derive(Debug, Clone, Default)]
pub struct PauseRequest {
    length: Option<Duration>,
    reason: String,
}

impl PauseRequest {
    /// A pause until the limiter is resumed.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// limiter.pause(&shmlimit::PauseRequest::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> PauseRequest {
        PauseRequest::default()
    }

    /// Ends the pause by itself after this time.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::PauseRequest;
    /// use std::time::Duration;
    ///
    /// let paused = limiter.pause(&PauseRequest::new().duration(Duration::from_secs(60)))?;
    /// assert!(paused.pause.ends_in.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn duration(self, length: Duration) -> PauseRequest {
        PauseRequest { length: Some(length), ..self }
    }

    /// The reason, for people: up to 64 bytes of one line.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let paused = limiter.pause(&shmlimit::PauseRequest::new().reason("maintenance"))?;
    /// assert_eq!(paused.pause.reason.as_deref(), Some("maintenance"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reason(self, text: impl Into<String>) -> PauseRequest {
        PauseRequest { reason: text.into(), ..self }
    }

    fn check(&self) -> Result<(), Error> {
        let problem = if self.length == Some(Duration::ZERO) {
            "a pause must be longer than 0 s; leave its length out to pause until the limiter is resumed"
                .to_owned()
        } else if self.reason.len() > PAUSE_REASON_BYTES {
            format!("the reason is {} bytes long; the maximum is {PAUSE_REASON_BYTES}", self.reason.len())
        } else if !pause::is_showable(&self.reason) {
            "the reason has control characters; write it as one line of plain text".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::BadValue { what: "pause", problem })
    }
}

impl PauseSnapshot {
    /// The pause as names and values, as in [`Snapshot::document`](crate::Snapshot::document).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let paused = limiter.pause(&shmlimit::PauseRequest::new())?;
    /// assert!(paused.pause.document().iter().any(|(name, _)| name == "paused_for_ns"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn document(&self) -> Document {
        schema::document(self)
    }

    pub(super) fn of(pause: &Pause, now: Time) -> PauseSnapshot {
        let duration = |nanos: Nanos| Duration::from_nanos(nanos.0);
        PauseSnapshot {
            paused_for: duration(now.since(pause.since)),
            ends_in: pause.ends_at().map(|end| duration(end.since(now))),
            pid: pause.pid as u32,
            program: program_name(&pause.program),
            reason: Some(pause.reason_text()).filter(|text| !text.is_empty()),
        }
    }

    /// The pause in effect, if there is one.
    pub(super) fn current<V: View>(v: &V, now: Time) -> Option<PauseSnapshot> {
        pause::paused(v, now).map(|pause| PauseSnapshot::of(&pause, now))
    }
}

/// What [`Limiter::pause`] did.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let paused = limiter.pause(&shmlimit::PauseRequest::new())?;
/// assert!(paused.replaced.is_none()); // there was no earlier pause
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paused {
    /// The new pause.
    pub pause: PauseSnapshot,
    /// The pause that it replaced, if one was in effect.
    pub replaced: Option<PauseSnapshot>,
}

impl Limiter {
    /// Stops all calls for a while, for all processes that share the limiter (R148). Waiting calls keep waiting,
    /// and new calls join them. [`try_acquire`](Self::try_acquire), and requests whose deadline ends before a known
    /// end of the pause, are refused with [`Reason::Paused`](crate::Reason::Paused). Releases and outcomes are
    /// recorded as usual.
    ///
    /// The pause belongs to the limiter. It continues after this process exits, and after a reboot if the directory
    /// survives the reboot. A second pause replaces the first.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, PauseRequest, Policy, PolicyDraft, Reason, Request};
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// limiter.pause(&PauseRequest::new().duration(Duration::from_secs(600)).reason("database migration"))?;
    /// match limiter.try_acquire(&Request::new()) {
    ///     Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Paused),
    ///     other => panic!("{other:?}"),
    /// }
    /// limiter.resume()?;
    /// assert!(limiter.try_acquire(&Request::new()).is_ok());
    /// # Ok(()) }
    /// ```
    pub fn pause(&self, request: &PauseRequest) -> Result<Paused, Error> {
        request.check()?;
        self.follow(|link| link.pause(request))
    }

    /// Ends a pause, and waiting calls proceed in their turn. Returns the ended pause; `None` if the limiter was
    /// not paused.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// limiter.pause(&shmlimit::PauseRequest::new())?;
    /// assert!(limiter.resume()?.is_some());
    /// assert!(limiter.resume()?.is_none()); // it was not paused
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&self) -> Result<Option<PauseSnapshot>, Error> {
        self.follow(LimiterSegment::resume)
    }
}

impl LimiterSegment {
    fn pause(&self, request: &PauseRequest) -> Result<Paused, Error> {
        let segment = &self.segment;
        let deadline = segment.deadline();
        let attachment = segment.attachment_within(&deadline)?;
        let ((pause, replaced, now, log_context), _) = self.change(&attachment, &deadline, |tx, now| {
            let (pid, program) = identity(tx, &attachment);
            let length = request.length.map(|length| Nanos(super::nanos(length)));
            let asked = Pausing { length, pid, program, reason: &request.reason };
            let replaced = decide::pause(tx, &asked, now);
            let now = now.max(tx.core().latest);
            let pause = tx.pause();
            // Wake the calls whose deadline ends before the pause does: they are refused (R132). The others wake when the
            // pause ends. If that is earlier than the end of the previous pause, wake the first; it wakes the next.
            let past_deadline = pause.ends_at().map(|end| queue::giving_up_before(tx, end));
            let wakeups = Wakeups::first(segment.after_change(tx, &attachment)).and_each(past_deadline);
            Ok(((pause, replaced, now, LogContext::of(tx, now)), wakeups))
        })?;
        events::paused(self.name(), &pause, now, &log_context);
        Ok(Paused {
            pause: PauseSnapshot::of(&pause, now),
            replaced: replaced.map(|before| PauseSnapshot::of(&before, now)),
        })
    }

    fn resume(&self) -> Result<Option<PauseSnapshot>, Error> {
        let segment = &self.segment;
        let deadline = segment.deadline();
        let attachment = segment.attachment_within(&deadline)?;
        let ((ended, who, now, log_context), mut recent) =
            segment.change(&attachment, &deadline, |tx, now| {
                // A pause that has expired ended by itself, not by this call.
                decide::tick(tx, now);
                let ended = decide::resume(tx, now);
                let now = now.max(tx.core().latest);
                let wakeups = Wakeups::first(segment.after_change(tx, &attachment));
                Ok(((ended, identity(tx, &attachment), now, LogContext::of(tx, now)), wakeups))
            })?;
        if ended.is_some() {
            // The operator's event is logged below instead.
            recent.ended = None;
        }
        events::log_recent(self.name(), &recent);
        if let Some(ended) = &ended {
            let (pid, program) = who;
            events::resumed(self.name(), ended, Some((pid as u32, &program_name(&program))), &log_context);
        }
        Ok(ended.map(|ended| PauseSnapshot::of(&ended, now)))
    }
}

/// Process id and program name of this process, as stored in its slot.
fn identity(tx: &Tx<'_>, attachment: &Attachment) -> (u64, [u8; 16]) {
    let base = slot_base(attachment.slot);
    let program: [u64; 2] = tx.words().load_array(base + slot::PROGRAM);
    (tx.load(base + slot::PID), bytemuck::cast(program))
}
