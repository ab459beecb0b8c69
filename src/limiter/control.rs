//! Operations for operators, and for programs that make calls without a grant.

use super::Limiter;
use super::events::{self, Transition};
use super::outcome::{Advice, Outcome};
use super::segment_chain::LimiterSegment;
use crate::environment::Change;
use crate::settings::{self, Overrides};
use crate::{ConfigError, Rate, RateError};
use shmlimit_kernel::Policy;
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::decide::{self, BreakerCommand};
use shmlimit_kernel::health_state::HealthStateView;
use shmlimit_kernel::ledger;
use shmlimit_kernel::log_context::LogContext;
use shmlimit_kernel::policy::{BreakerKind, PolicyWords};
use shmlimit_kernel::queue;
use shmlimit_segment::{Error, Wakeups};
use std::path::Path;

impl Limiter {
    /// Stores what the environment changed when the limiter was opened.
    pub(super) fn after_changes(self, changes: Vec<Change>) -> Limiter {
        let _ = self.shared.environment.set(changes);
        self
    }

    /// The changes that environment variables such as `SHMLIMIT_RATE_BASE` made when this handle opened the limiter
    /// (R109). The changes apply to every program that uses the limiter, until the settings change again. Empty if
    /// the limiter already had these values.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// for change in limiter.environment_changes() {
    ///     println!("{} set {} to {}", change.variable, change.key, change.after);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn environment_changes(&self) -> &[Change] {
        self.shared.environment.get().map_or(&[], Vec::as_slice)
    }

    /// Whether opening this handle created the limiter in a used-up state. This happens when its file was deleted
    /// by hand while other programs have it open, because their usage is unknown. The limiter refills as an empty
    /// one does. [`Builder::replace`](crate::Builder::replace) starts with a full one.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert!(!limiter.was_made_used_up());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn was_made_used_up(&self) -> bool {
        self.shared.made_used_up.get().is_some_and(|used_up| *used_up)
    }

    pub(super) fn noting_used_up(self, used_up: bool) -> Limiter {
        if used_up {
            events::made_used_up(self.name());
        }
        let _ = self.shared.made_used_up.set(used_up);
        self
    }

    /// Records how a call ended that has no grant. All processes that share the limiter take it into account (R140:
    /// during probing it counts as a probe). If the call has a grant, use [`Grant::record`](crate::Grant::record).
    ///
    /// ```no_run
    /// # use shmlimit::{Limiter, NetError, Outcome};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// let advice = limiter.record(&Outcome::error(NetError::ConnectTimeout).attempt(1))?;
    /// if advice.retry {
    ///     std::thread::sleep(advice.wait);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn record(&self, outcome: &Outcome<'_>) -> Result<Advice, Error> {
        self.follow(|link| Ok(link.record(None, outcome)?))
    }

    /// Counts a cache lookup: found (`hit`) or not found. The counts are for people and dashboards, and no decision
    /// depends on them (R116).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// limiter.count_cache(true)?;
    /// assert_eq!(limiter.snapshot()?.counts.cache_hits, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count_cache(&self, hit: bool) -> Result<(), Error> {
        self.follow(|link| {
            let deadline = link.segment.deadline();
            let attachment = link.segment.attachment_within(&deadline)?;
            link.change(&attachment, &deadline, |tx, _| {
                ledger::change(tx, |ledger| match hit {
                    true => ledger.cache_hits = ledger.cache_hits.wrapping_add(1),
                    false => ledger.cache_misses = ledger.cache_misses.wrapping_add(1),
                });
                Ok(((), Wakeups::NONE))
            })?;
            Ok(())
        })
    }

    /// The stored state of the breaker. A due timer acts only with the next call. The result is
    /// [`BreakerState::Normal`] without a breaker and for a closed one. [`snapshot`](Limiter::snapshot) gives more
    /// details at a higher cost.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.state()?, shmlimit::BreakerState::Normal);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(&self) -> Result<BreakerState, Error> {
        self.follow(|link| link.segment.look(|view| view.health().state()))
    }

    /// Puts the breaker into a state, or opens the gate that a Retry-After closed, at once for all processes that
    /// share the limiter (R66, R142). Returns the transitions that this caused. [`Error::NoSuchState`] if the
    /// limiter's breaker does not have that state.
    ///
    /// ```no_run
    /// # use shmlimit::{BreakerCommand, Limiter};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// limiter.force(BreakerCommand::Offline)?; // no program calls …
    /// limiter.force(BreakerCommand::Online)?; // … until now; the breaker then probes first
    /// # Ok(()) }
    /// ```
    pub fn force(&self, what: BreakerCommand) -> Result<Vec<Transition>, Error> {
        self.follow(|link| link.force(what))
    }

    /// Changes one setting while the limiter is in use, at once for all processes that share it (R110).
    /// `docs/configuration.md` lists the keys, such as `concurrency` or `breaker.p_throttle`. Returns the new
    /// policy.
    ///
    /// ```no_run
    /// # use shmlimit::Limiter;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// assert_eq!(limiter.set("concurrency", "6")?.concurrency(), Some(6));
    /// # Ok(()) }
    /// ```
    ///
    /// Needs the feature `config`. [`set_rate`](Limiter::set_rate) needs none.
    #[cfg(feature = "config")]
    pub fn set(&self, key: &str, value: &str) -> Result<Policy, Error> {
        self.follow(|link| link.change_policy(|old| Ok(crate::config::set(old, key, value)?)))
    }

    /// Changes the rate while the limiter is in use, for all programs that share it. It sets limit and period of the
    /// one rule that counts its unit, or of the rule of its name. Spent units stay spent. Returns the new policy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").open()?;
    /// assert_eq!(limiter.set_rate("20/s")?.rules()[0].limit, 20);
    /// # Ok(()) }
    /// ```
    pub fn set_rate<R: TryInto<Rate, Error: Into<RateError>>>(&self, rate: R) -> Result<Policy, Error> {
        let rate = rate.try_into().map_err(|error| ConfigError::from(error.into()))?;
        let overrides = Overrides { rates: vec![rate], ..Overrides::default() };
        self.follow(|link| link.change_policy(|old| Ok(settings::update(old, &overrides)?)))
    }

    /// Changes several settings at once while the limiter is in use, for all processes that share it (R144).
    /// Settings that are not named keep their values ([`config::update`](crate::config::update)). Returns the new
    /// policy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, config::Overrides};
    ///
    /// # let limiter = Limiter::builder("tmdb").directory(directory.path()).open()?;
    /// let policy = limiter.update(&Overrides { concurrency: Some(6), ..Overrides::default() })?;
    /// assert_eq!((policy.concurrency(), policy.rules()[0].limit), (Some(6), 35));
    /// # Ok(()) }
    /// ```
    ///
    /// Needs the feature `config`.
    #[cfg(feature = "config")]
    pub fn update(&self, overrides: &crate::config::Overrides) -> Result<Policy, Error> {
        self.follow(|link| link.change_policy(|old| Ok(crate::config::update(old, overrides)?)))
    }
}

impl LimiterSegment {
    /// Applies a policy that is derived from the current one.
    pub(super) fn change_policy(
        &self,
        change: impl Fn(&Policy) -> Result<Policy, Error>,
    ) -> Result<Policy, Error> {
        let changed = self.segment.change_policy(change)?;
        events::changed(self.name(), &changed);
        Ok(changed.policy)
    }

    fn force(&self, what: BreakerCommand) -> Result<Vec<Transition>, Error> {
        let deadline = self.segment.deadline();
        let attachment = self.segment.attachment_within(&deadline)?;
        let ((done, log_context), recent) = self.change(&attachment, &deadline, |tx, now| {
            let kind = tx.breaker_policy().kind();
            let done = if decide::force(tx, what, now) { Ok(()) } else { Err(kind) };
            // A policy change is rare and often affects every waiting call. All of them are woken, because a call
            // should not notice it only at its own next check, and a call that cannot be woken must not delay those
            // behind it.
            Ok(((done, LogContext::of(tx, now)), Wakeups::each(queue::all(tx))))
        })?;
        done.map_err(|kind| self.no_such_state(what, kind))?;
        events::forced(self.name(), what, &log_context);
        Ok(Transition::all(&recent))
    }

    fn no_such_state(&self, what: BreakerCommand, kind: BreakerKind) -> Error {
        let known: Vec<&str> = BreakerCommand::ALL
            .into_iter()
            .filter(|force| force.fits(kind))
            .map(BreakerCommand::as_str)
            .collect();
        Error::NoSuchState {
            name: self.name().to_owned(),
            state: what.as_str(),
            breaker: match kind {
                BreakerKind::None => "no breaker",
                BreakerKind::Fsm => "the five-state breaker",
                BreakerKind::Consecutive => "the consecutive breaker",
            },
            allowed: match kind {
                BreakerKind::None => {
                    let change = "write kind = \"fsm\" (the five-state breaker) into [breaker] in that file";
                    let directory = self.segment.path().parent().unwrap_or(Path::new("."));
                    let afresh = shmlimit_segment::error::afresh(directory, self.name(), change);
                    let stop = match what {
                        BreakerCommand::Offline => {
                            let pause = shmlimit_segment::error::tool(directory, "pause", self.name(), "");
                            format!("to stop its calls: {}\n", pause.trim_end())
                        }
                        _ => String::new(),
                    };
                    format!(
                        "{stop}it accepts only {}, or a pause; for the other states {afresh}",
                        known.join(", ")
                    )
                }
                _ => format!("it accepts: {}", known.join(", ")),
            },
        }
    }
}
