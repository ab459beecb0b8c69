//! The handle: clock, segment, kernel and waiting, put together.

mod builder;
mod chain;
mod condition;
mod control;
#[cfg(test)]
mod damage;
mod events;
mod examine;
mod grant;
mod group;
mod hurry;
mod link;
mod listing;
mod outcome;
mod owned;
mod pause;
mod place;
mod remove;
mod request;
mod snapshot;
mod wait;
mod waiting;

pub use builder::Builder;
pub use condition::{Condition, GateSnapshot, OutcomeCounts, PaceSnapshot, PaceWindowSnapshot};
pub use examine::{Attached, Examination, LockHolder};
pub use grant::{AcquireError, Grant, Refusal};
pub use listing::Listing;
pub use outcome::{Code, NetError, Outcome, Recorded};
pub use owned::OwnedGrant;
pub use pause::{PauseRequest, PauseSnapshot, Paused};
pub use place::{ClockFacts, DirectoryFacts, Storage};
pub use remove::Removal;
pub use request::Request;
pub use snapshot::{Counts, ParticipantSnapshot, RuleSnapshot, Snapshot, WaiterSnapshot};
pub use waiting::{Step, Waiting};

use crate::environment::Change;
use chain::Chain;
use group::Group;
use link::Link;
use shmlimit_kernel::Policy;
use shmlimit_kernel::policy::PolicyWords;
use shmlimit_segment::Error;
use shmlimit_segment::directory::Directory;
use shmlimit_segment::lock::Deadline;
use shmlimit_segment::paths::LimiterName;
use shmlimit_segment::sys::Clock;
use shmlimit_segment::{Bounds, Segment};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};
use wait::Waiter;

/// Who may be called off is asked at least this often.
const STOP_ASKED: Duration = Duration::from_millis(100);

/// How often one call follows a limiter that is replaced again and again.
const MOVES: usize = 4;

/// A named budget, shared with every process that opens the same name in the same directory.
///
/// Cheap to clone, usable from any thread, and from a forked child. Open it once per process: each `open` takes a
/// slot of its own.
#[derive(Debug, Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: LimiterName,
    directory: Directory,
    bounds: Bounds,
    chain: Chain,
    group: Option<Group>,
    /// Whether it is made again when it was deleted.
    makes: bool,
    /// What variables of the environment changed when it was opened.
    environment: OnceLock<Vec<Change>>,
    /// Whether it was made with nothing to give when it was opened.
    made_used_up: OnceLock<bool>,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Limiter {
    /// Opens a limiter in the usual directory, and makes it from the preset of its name if it is not there.
    pub fn open(name: &str) -> Result<Limiter, Error> {
        Limiter::builder(name).open()
    }

    /// Opens a limiter with choices: directory, policy, sharing.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Algorithm, Limiter, Nanos, Policy, PolicyDraft, RuleDraft};
    ///
    /// let hourly = RuleDraft::new(Algorithm::Gcra, 5000, Nanos::from_secs(3600));
    /// let policy = Policy::new(&PolicyDraft { rules: &[hourly], ..PolicyDraft::default() })?;
    /// let limiter = Limiter::builder("github").directory(directory.path()).policy(policy).open()?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 5000);
    /// # Ok(()) }
    /// ```
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    fn new(
        name: LimiterName,
        directory: Directory,
        bounds: Bounds,
        segment: Segment,
        group: Option<Group>,
        makes: bool,
    ) -> Result<Limiter, Error> {
        let mut first = Link::new(name.clone(), segment)?;
        let shared = Arc::new_cyclic(|home| {
            first.home = Weak::clone(home);
            let (environment, made_used_up) = (OnceLock::new(), OnceLock::new());
            let chain = Chain::new(first);
            Shared { name, directory, bounds, chain, group, makes, environment, made_used_up }
        });
        Ok(Limiter { shared })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.shared.name.as_str()
    }

    /// The directory it lives in.
    pub fn directory(&self) -> &Path {
        self.shared.directory.path()
    }

    /// Whether that directory is emptied when the machine boots.
    pub fn is_volatile(&self) -> bool {
        self.shared.directory.is_volatile()
    }

    /// Why a better directory was passed over, for people.
    pub fn directory_note(&self) -> Option<&str> {
        self.shared.directory.note.as_deref()
    }

    /// Asks once and never waits, except for the lock of the segment: a second at most, or as long as the request's
    /// timeout says. If other processes held it in turn all that time, the call is refused ([`Reason::Busy`](crate::Reason)).
    /// [`Error::Busy`] means that one of them has held it for a second without going on.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, Policy, PolicyDraft, Reason, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let grant = limiter.try_acquire(&Request::new())?; // the only permit
    /// match limiter.try_acquire(&Request::new()) {
    ///     Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
    ///     other => panic!("{other:?}"),
    /// }
    /// drop(grant); // gives it back
    /// assert!(limiter.try_acquire(&Request::new()).is_ok());
    /// # Ok(()) }
    /// ```
    pub fn try_acquire(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        self.attempt(request)
    }

    /// Asks, and waits until the call may be made: in the queue of all processes, so that everybody has its turn (R131).
    /// A request whose deadline cannot be met is refused at once (R132); so is one that costs more than a rule ever
    /// allows, and one more than the queue holds.
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// # use std::time::Duration;
    /// let grant = limiter.acquire(&Request::new().timeout(Duration::from_secs(5)))?;
    /// // … call the API …
    /// grant.release()?;
    /// # Ok(()) }
    /// ```
    pub fn acquire(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        if let Some(grant) = self.grant_at_once(request) {
            return Ok(grant);
        }
        let mut waiter = Waiter::new(self, request, true)?;
        loop {
            match waiter.step()? {
                wait::Step::Done(grant) => return Ok(grant),
                wait::Step::Sleep { link, place, heard, limit } => link.segment.sleep(place, heard, limit),
                wait::Step::Again => {}
            }
        }
    }

    /// [`acquire`](Self::acquire) that can be called off: `stop` is asked whenever the sleep is interrupted by a signal,
    /// and at least ten times a second. `None` if it said so: the call has left the queue, and nothing was taken.
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let first = limiter.acquire(&Request::new())?;
    /// assert!(limiter.acquire_unless(&Request::new(), || true)?.is_none());
    /// # first.release()?;
    /// # Ok(()) }
    /// ```
    pub fn acquire_unless(
        &self,
        request: &Request<'_>,
        mut stop: impl FnMut() -> bool,
    ) -> Result<Option<Grant<'_>>, AcquireError> {
        if let Some(grant) = self.grant_at_once(request) {
            return Ok(Some(grant));
        }
        let mut waiter = Waiter::new(self, request, true)?;
        loop {
            match waiter.step()? {
                wait::Step::Done(grant) => return Ok(Some(grant)),
                wait::Step::Again if stop() => return Ok(None),
                wait::Step::Again => {}
                wait::Step::Sleep { link, place, heard, limit } => {
                    let began = Instant::now();
                    // Asking is no reason to look: only its time or its bell is.
                    loop {
                        let left = limit.saturating_sub(began.elapsed());
                        link.segment.sleep(place, heard, left.min(STOP_ASKED));
                        if stop() {
                            return Ok(None);
                        }
                        if left <= STOP_ASKED || link.segment.hear(place) != heard {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// [`acquire`](Self::acquire) for programs with an executor: `sleep` is its way to let time pass, such as
    /// `tokio::time::sleep`. The call waits in the same queue. Dropping the future leaves the queue at once.
    ///
    /// No thread waits, so nobody can be woken from outside: that a permit came back is noticed within 2 ms by the first
    /// in the queue, and 2 ms later for each call ahead.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = limiter.clone(); // cheap: one for each task
    /// let task = tokio::spawn(async move {
    ///     let grant = limiter.acquire_async(&Request::new(), tokio::time::sleep).await?;
    ///     // … call the API …
    ///     grant.release()?;
    ///     Ok::<_, AcquireError>(())
    /// });
    /// # task.await??;
    /// # Ok(()) }) }
    /// ```
    pub async fn acquire_async<S, F>(
        &self,
        request: &Request<'_>,
        sleep: S,
    ) -> Result<Grant<'_>, AcquireError>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        if let Some(grant) = self.grant_at_once(request) {
            return Ok(grant);
        }
        let mut waiter = Waiter::new(self, request, false)?;
        loop {
            match waiter.step()? {
                wait::Step::Done(grant) => return Ok(grant),
                wait::Step::Sleep { limit, .. } => sleep(limit).await,
                wait::Step::Again => sleep(wait::SOON).await,
            }
        }
    }

    /// The usual case of one rule, where nobody waits and nothing is in the way.
    #[inline(always)]
    fn grant_at_once(&self, request: &Request<'_>) -> Option<Grant<'_>> {
        let link = self.newest();
        let (ask, member) = request.plain().zip(link.segment.present())?;
        link.grant_at_once(ask, &member, member.clock.now())
    }

    /// The policy in force.
    pub fn policy(&self) -> Result<Policy, Error> {
        self.follow(|link| link.segment.policy())
    }

    /// The name of the rule at that place in the policy, such as [`Refusal::rule`] says. Cheaper than the whole policy.
    pub fn rule_name(&self, place: usize) -> Option<String> {
        let name = self.follow(|link| link.segment.look(|view| view.rule_name(place))).ok()??;
        Some(name.as_str().to_owned())
    }

    /// Puts another policy in force for all processes at once: tokens are kept, and clipped to a smaller capacity
    /// (R110). Units cannot change while a limiter is used.
    pub fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        self.follow(|link| link.change_policy(|_| Ok(*policy)).map(drop))
    }

    /// Everything there is to see, for people and dashboards.
    ///
    /// ```no_run
    /// # use shmlimit::Limiter;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// let now = limiter.snapshot()?.condition;
    /// if let Some(gate) = now.gate {
    ///     println!("closed for {:?}, by {} ({})", gate.opens_in, gate.program, gate.pid);
    /// }
    /// println!("{}, {} % errors", now.state_name, now.error_ratio * 100.0);
    /// # Ok(()) }
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.follow(|link| Snapshot::take(self, link).and_then(|seen| link.segment.unless_buried(seen)))
    }

    #[inline]
    fn newest(&self) -> &Link {
        self.shared.chain.newest()
    }

    /// One try.
    #[inline(always)]
    fn attempt(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        // First of all: what is read before the clock must have arrived before it is read, what is read after it can
        // arrive meanwhile.
        let read = Clock::read();
        let link = self.newest();
        let Some((ask, member)) = request.plain().zip(link.segment.present()) else {
            return self.attempt_at_length(request);
        };
        let raw = member.clock.correct(read);
        if link.segment.expects_refusal(raw) {
            return match link.refuse_again(ask, &member, raw) {
                Some(refusal) => Err(AcquireError::Refused(refusal)),
                None => self.attempt_unlocked(request, raw),
            };
        }
        if link.segment.rules() != 1 || ask.cost[0] != 1 {
            return self.attempt_many(request, raw);
        }
        match link.grant_at_once(ask, &member, raw) {
            Some(grant) => Ok(grant),
            // Probably refused; why and until when is said there, so that this way stays short.
            None => self.attempt_unlocked(request, raw),
        }
    }

    /// After a refusal that is not over yet, the next will probably be one too. Apart, so that neither way makes the
    /// other longer.
    #[inline(never)]
    fn attempt_unlocked(&self, request: &Request<'_>, raw: u64) -> Result<Grant<'_>, AcquireError> {
        let link = self.newest();
        let asked = request.plain().zip(link.segment.present());
        match asked.and_then(|(ask, member)| link.refuse_at_once(ask, &member, raw)) {
            Some(refusal) => Err(AcquireError::Refused(refusal)),
            None => self.attempt_many(request, raw),
        }
    }

    /// Any number of rules, if nothing is in the way.
    #[inline(never)]
    fn attempt_many(&self, request: &Request<'_>, raw: u64) -> Result<Grant<'_>, AcquireError> {
        let link = self.newest();
        let asked = request.plain().zip(link.segment.present());
        let decided = asked.and_then(|(ask, member)| link.decide_at_once(ask, &member, raw));
        match decided {
            Some(decided) => decided,
            None => self.attempt_at_length(request),
        }
    }

    #[inline(never)]
    fn attempt_at_length(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        let longest = self.shared.bounds.lock;
        let patience = request
            .patience(SystemTime::now)
            .map_or(longest, |left| wait::at_least_a_moment(left).min(longest));
        let deadline = Deadline::within(patience);
        let decided = self.follow(|link| match link.decide(request, &deadline) {
            Err(AcquireError::Failed(error)) => Err(*error),
            decided => Ok(decided),
        });
        match decided {
            Err(Error::Busy { stopped: false, .. }) => Err(self.newest().refuse_busy()),
            decided => decided?,
        }
    }

    /// Does something as an operator, for a handle that has no slot of its own. `None` if there is no slot to be had.
    fn as_operator<R>(&self, work: impl FnOnce(&Segment) -> Result<R, Error>) -> Result<Option<R>, Error> {
        let Shared { name, directory, bounds, .. } = &*self.shared;
        match builder::open_once(directory, name, bounds.as_operator()) {
            Ok(Some(segment)) => work(&segment).map(Some),
            Ok(None) | Err(Error::SlotsFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Does something with the segment, and with its successor if it turns out to be deleted or replaced.
    #[cold]
    fn follow<'l, R>(&'l self, work: impl Fn(&'l Link) -> Result<R, Error>) -> Result<R, Error> {
        let mut link = self.newest();
        for _ in 0..MOVES {
            match work(link) {
                Err(Error::Unsettled { .. }) => {
                    // Where a thousand threads wait, each would attach, and most would find no slot or no lock.
                    let has_moved = || !std::ptr::eq(link, self.newest());
                    let moved = link.segment.one_for_all(has_moved, || {
                        let Shared { name, directory, bounds, makes, .. } = &*self.shared;
                        let successor = builder::successor(directory, name, *bounds, &link.segment, *makes)?;
                        self.shared.chain.succeed(link, successor);
                        Ok(())
                    });
                    // Another thread may have done it meanwhile, and let go of the old one.
                    if !has_moved() {
                        moved?;
                    }
                    link = self.newest();
                }
                done => return done,
            }
        }
        work(link)
    }
}
