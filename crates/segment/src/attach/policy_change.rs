//! Changes the policy of a limiter while programs use it.

use super::Segment;
use super::wake::Wakeups;
use crate::error::Error;
use crate::{layout, sanity};
use shmlimit_kernel::decide;
use shmlimit_kernel::log_context::LogContext;
use shmlimit_kernel::log_context::RecentEvents;
use shmlimit_kernel::policy::Policy;
use std::path::Path;

/// The result of a change of the policy.
pub struct Changed {
    /// The policy before the change.
    pub before: Policy,
    /// The policy after the change.
    pub policy: Policy,
    /// Events during the change, for the log: timers that were due, and the effect of a different kind of breaker.
    pub recent: RecentEvents,
    /// The limiter's condition after the change, for the log.
    pub log_context: LogContext,
}

impl Segment {
    /// Applies a new policy that `change` makes from the current one. The rules keep what they have counted (R110).
    pub fn change_policy(&self, change: impl Fn(&Policy) -> Result<Policy, Error>) -> Result<Changed, Error> {
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        let ((before, policy, log_context), recent) = self.change(&attachment, &deadline, |tx, now| {
            let old = sanity::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
            let policy = change(&old)?.keeping_logs_of(&old);
            let encoded = policy.encode();
            if encoded != old.encode() {
                self.check_fit(&old, &policy, tx.cells().count() * 8)?;
                decide::tick(tx, now);
                tx.write_array(layout::POLICY, encoded);
                tx.write(layout::POLICY_CHECKSUM, layout::checksum(encoded));
                decide::patch(tx, &old, &policy, now);
                let epoch = tx.load(layout::POLICY_EPOCH);
                tx.write(layout::POLICY_EPOCH, epoch.wrapping_add(1));
            }
            Ok(((old, policy, LogContext::of(tx, now)), Wakeups::each(self.sleepers())))
        })?;
        Ok(Changed { before, policy, recent, log_context })
    }

    /// Whether the current policy could be changed to this one while the limiter is in use.
    pub fn takes(&self, policy: &Policy) -> Result<bool, Error> {
        let old = self.policy()?;
        Ok(self.check_fit(&old, &policy.keeping_logs_of(&old), self.words.cells().count() * 8).is_ok())
    }

    /// Checks that the policy `new` fits a file of `bytes` bytes that holds the policy `old`.
    fn check_fit(&self, old: &Policy, new: &Policy, bytes: usize) -> Result<(), Error> {
        if !new.units().eq(old.units()) {
            return Err(self.does_not_fit("its rules would count other units"));
        }
        let mut same = new.rules().iter().zip(old.rules()).filter(|(new, old)| new.name == old.name);
        if let Some((new, old)) = same.find(|(new, old)| old.log_room > 0 && new.log_room > old.log_room) {
            let (name, limit, room) = (new.name.as_str(), new.limit, old.log_room);
            let problem =
                format!("the log of rule {name} has room for a limit of {room}, but not of {limit}");
            return Err(self.does_not_fit(&problem));
        }
        if layout::size_for(new) > bytes {
            return Err(self.does_not_fit("its logs would need a larger file"));
        }
        Ok(())
    }

    fn does_not_fit(&self, problem: &str) -> Error {
        let name = self.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let directory = self.path().parent().map(Path::to_owned).unwrap_or_default();
        Error::DoesNotFit { name, directory, problem: problem.to_owned() }
    }
}
