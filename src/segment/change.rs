//! A hot change of the policy.

use super::attach::Segment;
use super::{layout, recover};
use crate::error::Error;
use crate::kernel::decide;
use crate::kernel::policy::Policy;
use crate::kernel::scene::Scene;
use crate::kernel::sheet::{Recent, SheetView};

/// What a change of the policy did.
pub struct Changed {
    /// The policy that held before.
    pub before: Policy,
    /// The policy that holds now.
    pub policy: Policy,
    /// What timers that were due and another kind of breaker did.
    pub news: Recent,
    /// How the limiter is doing after it.
    pub scene: Scene,
}

impl Segment {
    /// Puts another policy in force, made from the one there is; the rules keep what they have seen (R110).
    pub fn change_policy(&self, change: impl Fn(&Policy) -> Result<Policy, Error>) -> Result<Changed, Error> {
        let member = self.member()?;
        let changed = self.transact(&member, self.bounds.lock, |tx, now| {
            let old = recover::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
            let policy = change(&old)?;
            let known = tx.health().transitions;
            if policy == old {
                return Ok(Changed {
                    before: old,
                    policy,
                    news: Recent::since(tx, known),
                    scene: Scene::of(tx, now),
                });
            }
            if !policy.units().eq(old.units()) {
                return Err(self.does_not_fit("it would count other units"));
            }
            if layout::size_for(&policy) > tx.cells().len() * 8 {
                return Err(self.does_not_fit("its logs would need a larger file"));
            }
            let encoded = policy.encode();
            decide::tick(tx, now);
            tx.write_array(layout::POLICY, encoded);
            tx.write(layout::POLICY_CHECKSUM, layout::checksum(encoded));
            decide::patch(tx, &old, &policy, now);
            let epoch = tx.load(layout::POLICY_EPOCH);
            tx.write(layout::POLICY_EPOCH, epoch.wrapping_add(1));
            let news = Recent::since(tx, known);
            self.commit(tx)?;
            Ok(Changed { before: old, policy, news, scene: Scene::of(tx, now) })
        })??;
        self.ring_all(self.sleepers());
        Ok(changed)
    }

    fn does_not_fit(&self, problem: &str) -> Error {
        let name = self.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Error::DoesNotFit { name, problem: problem.to_owned() }
    }
}
