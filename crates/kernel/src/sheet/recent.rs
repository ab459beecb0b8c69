//! The changes that one operation made, copied out of the sheet for logs.

use super::{PAUSE_AT, Pause, SheetView, TRANSITIONS, Transition};
use crate::breaker::{Cause, State};
use crate::scene::Scene;
use crate::state::View;
use crate::time::Time;

/// The state before an operation, to find out afterwards what is new.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// How many transitions there were.
    pub transitions: u64,
    /// Whether a pause was in effect, or was over but not yet marked so.
    pub paused: bool,
}

impl Known {
    /// Reads the state before the operation.
    pub fn of<V: View>(v: &V) -> Known {
        let [paused_until] = v.sheet(PAUSE_AT);
        Known { transitions: v.health().transitions, paused: paused_until != 0 }
    }
}

/// The changes of one operation that are logged: transitions, and a pause that expired.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    /// The condition of the limiter after the transitions, if there are any.
    pub scene: Option<Scene>,
    /// The pause that ended.
    pub ended: Option<Pause>,
    list: [Transition; TRANSITIONS as usize],
    count: usize,
}

impl Recent {
    /// The transitions since `known`; only the newest if there are very many.
    pub fn since<V: View>(v: &V, known: Known) -> Recent {
        let nothing =
            Transition { at: Time::ZERO, from: State::Normal, to: State::Normal, cause: Cause::Forced };
        let mut recent = Recent { scene: None, ended: None, list: [nothing; TRANSITIONS as usize], count: 0 };
        let all = v.health().transitions;
        recent.ended = known.paused.then(|| v.pause()).filter(|pause| pause.until == Time::ZERO);
        if all != known.transitions || recent.ended.is_some() {
            recent.scene = Some(Scene::of(v, v.core().latest));
            let first = all.saturating_sub(TRANSITIONS).max(known.transitions.min(all));
            for number in first..all {
                recent.list[recent.count] = v.transition(number);
                recent.count += 1;
            }
        }
        recent
    }

    /// The transitions, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Transition> {
        self.list[..self.count].iter()
    }
}
