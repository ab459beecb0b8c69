//! What an operator does to a limiter, and what those do who make calls of their own.

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
    /// Keeps what the environment changed when it was opened.
    pub(super) fn after_changes(self, changes: Vec<Change>) -> Limiter {
        let _ = self.shared.environment.set(changes);
        self
    }

    /// What variables of the environment, such as `SHMLIMIT_RATE_BASE`, changed in the limiter when this handle opened it
    /// (R109): for every program that uses it, until it is set again. Nothing if all was so already.
    pub fn environment_changes(&self) -> &[Change] {
        self.shared.environment.get().map_or(&[], Vec::as_slice)
    }

    /// Whether opening this handle made the limiter, and made it used up: its file was deleted by hand while other programs
    /// have it open, and what they spent is not known. It fills as an empty one does; [`Builder::replace`](crate::Builder::replace) starts afresh.
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

    /// Records how a call ended that was not granted here: all who share the limiter hear of it (R140: while probing it
    /// counts as a probe). With a grant at hand, [`Grant::record`](crate::Grant::record) is better.
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

    /// Counts an answer that was found in a cache (`hit`), or was not: for people and dashboards, nothing is decided by it
    /// (R116).
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

    /// The breaker's state as it is stored: a timer that is due acts with the next call. [`BreakerState::Normal`] without
    /// a breaker, and for a closed one. [`snapshot`](Limiter::snapshot) tells more, and costs more.
    pub fn state(&self) -> Result<BreakerState, Error> {
        self.follow(|link| link.segment.look(|view| view.health().state()))
    }

    /// Puts the breaker into a state, or opens the gate that a Retry-After closed, for all who share the limiter at once
    /// (R66, R142). Returns what that changed. [`Error::NoSuchState`] if its breaker does not have that state.
    ///
    /// ```no_run
    /// # use shmlimit::{BreakerCommand, Limiter};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// limiter.force(BreakerCommand::Offline)?; // nobody calls …
    /// limiter.force(BreakerCommand::Online)?; // … until now, and then probes first
    /// # Ok(()) }
    /// ```
    pub fn force(&self, what: BreakerCommand) -> Result<Vec<Transition>, Error> {
        self.follow(|link| link.force(what))
    }

    /// Changes one setting while the limiter is in use, for all who share it at once (R110), such as `concurrency` or
    /// `breaker.p_throttle`; `docs/configuration.md` says which there are. Returns the policy that holds now.
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

    /// Changes the rate while the limiter is in use, for all programs that share it: limit and period of the one rule that
    /// counts its unit, or of the rule of its name. What was spent stays spent. Returns the policy that holds now.
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

    /// Changes several settings at once while the limiter is in use, for all who share it (R144): those that are named, on
    /// top of the ones it has ([`config::update`](crate::config::update)). Returns the policy that holds now.
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
    /// Applies another policy, made from the one there is.
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
            // Seldom, and often meant for all of them: nobody should find out by its own time, also not behind one who
            // cannot be rung.
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
                    let change = "write kind = \"fsm\" into its [breaker]";
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
                        "{stop}it can be forced to {}, or be paused; for the other states {afresh}",
                        known.join(", ")
                    )
                }
                _ => format!("there are: {}", known.join(", ")),
            },
        }
    }
}
