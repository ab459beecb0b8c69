//! The handle of a limiter: it connects clock, segment, kernel and queue.

mod acquire;
mod attempt;
mod builder;
mod condition;
mod control;
mod directory_facts;
mod document;
mod events;
mod fields;
mod grant;
mod inspect;
mod listing;
mod non_blocking;
mod on_test_clock;
mod opening;
mod outcome;
mod outcome_code;
mod owned;
mod pause;
mod pending;
mod reconcile;
mod remove;
mod request;
pub mod schema;
mod segment_chain;
mod snapshot;
#[cfg(test)]
mod tests;
mod waiter;

pub use builder::{Builder, OnMismatch};
pub use directory_facts::{ClockFacts, DirectoryFacts, Storage};
pub use document::{Document, Value};
pub use events::Transition;
pub use fields::{
    Condition, Counts, GateSnapshot, GroupId, OutcomeCounts, PaceSnapshot, PaceWindowSnapshot,
    ParticipantSnapshot, PauseSnapshot, RuleSnapshot, STRUCTS, Snapshot, TransitionSnapshot, WaiterSnapshot,
};
pub use grant::{AcquireError, Grant, Refusal};
pub use inspect::{Attached, Inspection, LockHolder};
pub use listing::Listing;
pub use outcome::{Advice, Outcome};
pub use outcome_code::{NetError, OutcomeCode};
pub use owned::OwnedGrant;
pub use pause::{PauseRequest, Paused};
pub use pending::{PendingAcquire, Step};
pub use remove::Removal;
pub use request::Request;

use crate::environment::Change;
use segment_chain::{LimiterSegment, SegmentChain};
use shmlimit_kernel::Policy;
use shmlimit_kernel::policy::PolicyWords;
use shmlimit_segment::Error;
use shmlimit_segment::directory::Directory;
use shmlimit_segment::paths::LimiterName;
use shmlimit_segment::{AttachOptions, Segment};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use waiter::Group;

/// How often one call follows a limiter that is replaced again and again.
const MAX_SUCCESSORS: usize = 4;

/// A named budget, shared with every process that opens the same name in the same directory.
///
/// It is cheap to clone, and usable from any thread and from a forked child. Open it once per process, because each
/// `open` takes a slot.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let same = limiter.clone(); // for another thread
/// assert_eq!(same.name(), "api");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: LimiterName,
    directory: Directory,
    bounds: AttachOptions,
    chain: SegmentChain,
    group: Option<Group>,
    /// Whether the handle creates the limiter again after it was deleted.
    recreates: bool,
    /// The changes of environment variables when the limiter was opened.
    environment: OnceLock<Vec<Change>>,
    /// Whether opening created the limiter in a used-up state.
    made_used_up: OnceLock<bool>,
}

/// The ratio of errors; 0 without samples.
fn ratio(errors: u64, samples: u32) -> f64 {
    if samples == 0 { 0.0 } else { errors as f64 / f64::from(samples) }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Limiter {
    /// Opens a limiter in the usual directory. Creates it from the preset of the same name if it does not exist.
    ///
    /// ```no_run
    /// let limiter = shmlimit::Limiter::open("tmdb")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(name: &str) -> Result<Limiter, Error> {
        Limiter::builder(name).open()
    }

    /// Opens a limiter with options: rates, directory, policy, sharing.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Rate};
    ///
    /// let builder = Limiter::builder("api").rate(Rate::per_second(10)).burst(20).concurrency(4);
    /// let limiter = builder.directory(directory.path()).open()?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 20);
    /// # Ok(()) }
    /// ```
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    fn new(
        name: LimiterName,
        directory: Directory,
        bounds: AttachOptions,
        segment: Segment,
        group: Option<Group>,
        recreates: bool,
    ) -> Result<Limiter, Error> {
        let mut first = LimiterSegment::new(name.clone(), segment)?;
        let shared = Arc::new_cyclic(|shared| {
            first.shared = Weak::clone(shared);
            let (environment, made_used_up) = (OnceLock::new(), OnceLock::new());
            let chain = SegmentChain::new(first);
            Shared { name, directory, bounds, chain, group, recreates, environment, made_used_up }
        });
        Ok(Limiter { shared })
    }

    /// The limiter's name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.name(), "api");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &str {
        self.shared.name.as_str()
    }

    /// The directory of the limiter.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.directory(), directory.path());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn directory(&self) -> &Path {
        self.shared.directory.path()
    }

    /// Whether the directory is emptied when the machine boots.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// if limiter.is_volatile() {
    ///     println!("{} is empty after a reboot", limiter.directory().display());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_volatile(&self) -> bool {
        self.shared.directory.is_volatile()
    }

    /// Why a better directory was not used, for people.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.directory_note(), None); // the directory was given
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn directory_note(&self) -> Option<&str> {
        self.shared.directory.note.as_deref()
    }

    /// The effective policy.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.policy()?.rules()[0].limit, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self) -> Result<Policy, Error> {
        self.follow(|link| link.segment.policy())
    }

    /// The name of the rule at this index in the policy, as [`Refusal::rule`] returns it. This is cheaper than
    /// reading the whole policy.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert!(limiter.rule_name(0).is_some() && limiter.rule_name(1).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rule_name(&self, i: usize) -> Option<String> {
        let name = self.follow(|link| link.segment.look(|view| view.rule_name(i))).ok()??;
        Some(name.as_str().to_owned())
    }

    /// Applies another policy, at once for all processes. Counts are kept, and clipped to a smaller capacity
    /// (R110). Units cannot change while a limiter is in use.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let slower = shmlimit::config::set(&limiter.policy()?, "rate", "50/min")?;
    /// limiter.set_policy(&slower)?;
    /// assert_eq!(limiter.policy()?.rules()[0].limit, 50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        self.follow(|link| link.change_policy(|_| Ok(*policy)).map(drop))
    }

    /// The complete state of the limiter, for people and dashboards.
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
        self.follow(|link| Snapshot::take(self, link).and_then(|seen| link.segment.unless_released(seen)))
    }

    #[inline]
    fn newest(&self) -> &LimiterSegment {
        self.shared.chain.newest()
    }

    /// Runs an operation as an operator, for a handle without a slot. `None` if no slot is free.
    fn as_operator<R>(&self, work: impl FnOnce(&Segment) -> Result<R, Error>) -> Result<Option<R>, Error> {
        let Shared { name, directory, bounds, .. } = &*self.shared;
        match opening::open_once(directory, name, bounds.as_operator()) {
            Ok(Some(segment)) => work(&segment).map(Some),
            Ok(None) | Err(Error::SlotsFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs an operation on the segment. If the segment turns out to be deleted or replaced, runs it on the
    /// successor.
    #[cold]
    fn follow<'l, R>(&'l self, work: impl Fn(&'l LimiterSegment) -> Result<R, Error>) -> Result<R, Error> {
        let mut link = self.newest();
        for _ in 0..MAX_SUCCESSORS {
            match work(link) {
                Err(Error::Replaced { .. }) => {
                    // With many waiting threads, only one follows. Otherwise each thread would attach, and most
                    // would find no slot or no lock.
                    let is_followed = || !std::ptr::eq(link, self.newest());
                    let followed = link.segment.run_on_one_thread(is_followed, || {
                        let Shared { name, directory, bounds, recreates, .. } = &*self.shared;
                        let successor =
                            opening::successor(directory, name, *bounds, &link.segment, *recreates)?;
                        self.shared.chain.succeed(link, successor);
                        Ok(())
                    });
                    // Another thread may have followed meanwhile, and released the old segment.
                    if !is_followed() {
                        followed?;
                    }
                    link = self.newest();
                }
                done => return done,
            }
        }
        work(link)
    }
}
