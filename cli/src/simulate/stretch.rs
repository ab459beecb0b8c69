//! The time of a run, cut into stretches in which the breaker's state was one.

use super::run::Step;
use shmlimit_kernel::breaker::State;

/// Where the last stretch began, and in which state.
#[derive(Default)]
pub struct Stretches {
    state: State,
    since: Option<u64>,
}

impl Stretches {
    /// Gives the stretches that the step adds: state, from, to. Time starts with the first step.
    pub fn add(&mut self, step: &Step, mut each: impl FnMut(State, u64, u64)) {
        let mut since = self.since.unwrap_or(step.line.t);
        for transition in &step.line.transitions {
            // A timer may have been due before the last operation, but is never seen to be.
            let at = transition.t.max(since);
            each(self.state, since, at);
            (self.state, since) = (transition.state, at);
        }
        self.state = step.state;
        each(self.state, since, step.line.t);
        self.since = Some(step.line.t);
    }
}
