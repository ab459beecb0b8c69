//! Compares an existing limiter with the settings that a program asks for, and applies them or the environment's.

use super::builder::{Builder, OnMismatch};
use super::events;
use crate::environment::{Change, Patch};
use crate::{ConfigError, describe};
use shmlimit_kernel::Policy;
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_segment::directory::Directory;
use shmlimit_segment::paths::LimiterName;
use shmlimit_segment::{Error, Segment};

/// The settings that a builder asks for.
pub(super) enum Requested {
    /// None: an existing limiter is used as it is.
    Nothing,
    Policy(Box<Policy>),
    /// Settings of one rule that can change an existing limiter. The error says what a new limiter needs besides.
    Lacking(Error),
}

impl Builder {
    /// The settings that were asked for.
    pub(super) fn requested(&self) -> Result<Requested, Error> {
        match self.wanted() {
            // Single settings go on top of those of an existing limiter. They may not be enough for a new one.
            Err(lacking) if self.on_mismatch != OnMismatch::Error && is_not_one_rule(&lacking) => {
                Ok(Requested::Lacking(lacking))
            }
            wanted => Ok(wanted?.map_or(Requested::Nothing, |policy| Requested::Policy(Box::new(policy)))),
        }
    }

    /// Compares the limiter with the requested settings, and does what [`OnMismatch`] says. Returns what the
    /// environment changed in the limiter.
    pub(super) fn reconcile(
        &self,
        name: &LimiterName,
        directory: &Directory,
        segment: &Segment,
        requested: &Requested,
    ) -> Result<Vec<Change>, Error> {
        match (self.on_mismatch, requested) {
            (_, Requested::Nothing) => {}
            (OnMismatch::Update, _) => return self.update(name, directory, segment),
            (OnMismatch::Error, Requested::Policy(wanted)) => self.check(name, directory, segment, wanted)?,
            _ => {}
        }
        self.patch(segment)
    }

    /// Fails if the limiter has another policy.
    fn check(
        &self,
        name: &LimiterName,
        directory: &Directory,
        segment: &Segment,
        wanted: &Policy,
    ) -> Result<(), Error> {
        let stored = segment.policy()?;
        let (there, wanted) = (self.patched(&stored)?, self.patched(wanted)?);
        if there == wanted {
            return Ok(());
        }
        let differences = describe::differences(&there, &wanted);
        let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
        // Single settings change only the keys that they name. So an update with them may be impossible although the
        // whole policy would fit.
        let updatable = match self.updated(&stored) {
            Ok(updated) => segment.takes(&self.patched(&updated)?)?,
            Err(_) => false,
        };
        Err(Error::ConfigMismatch { name, directory, differences, updatable })
    }

    /// Changes a limiter in use to the requested settings, and keeps the counts of its rules (R144). Returns what
    /// the environment changed in it.
    fn update(
        &self,
        name: &LimiterName,
        directory: &Directory,
        segment: &Segment,
    ) -> Result<Vec<Change>, Error> {
        let changed = segment.change_policy(|there| {
            let updated = self.updated(there).map_err(|error| does_not_fit(name, directory, error))?;
            self.patched(&updated)
        })?;
        events::changed(name.as_str(), &changed);
        // Variables change only limiters with the five-state breaker. For others an invalid variable is no error.
        if !self.environment || changed.policy.breaker().kind() != BreakerKind::Fsm {
            return Ok(Vec::new());
        }
        Ok(Patch::read()?.changes(&changed.before, &changed.policy))
    }

    /// The policy after the environment is applied.
    pub(super) fn patched(&self, policy: &Policy) -> Result<Policy, Error> {
        if self.environment { Ok(Patch::patched(policy)?) } else { Ok(*policy) }
    }

    /// Applies the environment as an operator's change (R110) for all processes, logs it, and returns it.
    fn patch(&self, segment: &Segment) -> Result<Vec<Change>, Error> {
        let there = segment.policy()?;
        if self.patched(&there)? == there {
            return Ok(Vec::new());
        }
        let changed = segment.change_policy(|there| self.patched(there))?;
        events::patched(&self.name, &changed);
        Ok(Patch::read()?.changes(&changed.before, &changed.policy))
    }
}

/// Whether the error is about settings for one rule in a configuration without a rule.
fn is_not_one_rule(error: &Error) -> bool {
    match error {
        Error::Config(why) => matches!(why.downcast_ref(), Some(ConfigError::NotOneRule { .. })),
        _ => false,
    }
}

/// Settings that only a new limiter can have, as an [`Error::DoesNotFit`].
fn does_not_fit(name: &LimiterName, directory: &Directory, error: Error) -> Error {
    let problem = match &error {
        Error::Config(why) => match why.downcast_ref() {
            Some(ConfigError::NotChangeable { key }) => {
                format!("{key} cannot be changed in a limiter that is in use")
            }
            Some(ConfigError::Absent { key, problem }) => format!("{key}: {problem}"),
            Some(ConfigError::NoBurst { key, rule, algorithm, .. }) => {
                format!("{key}: rule {rule} is a {algorithm}, which has no burst")
            }
            _ => return error,
        },
        _ => return error,
    };
    let (name, directory) = (name.as_str().to_owned(), directory.path().to_owned());
    Error::DoesNotFit { name, directory, problem }
}
