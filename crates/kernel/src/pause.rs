//! The pause: an operator stops all calls for a while, independently of breaker, rules and permits (R148).
//!
//! Waiting calls keep waiting, and new calls join them. Releases, outcomes and timers continue as usual. A
//! pause ends at its time, or when an operator resumes the limiter. It belongs to the limiter, not to the
//! process that began it.

use super::health_state::{HealthStateView, PAUSE_AT};
use super::request::{Block, Reason};
use super::state::{Memory, OPEN_ENDED, View};
use super::time::Time;

pub use super::state::{LONGEST_PAUSE, PAUSE_REASON_BYTES, PAUSE_WORDS, Pause, Pausing, is_showable};

/// The pause in effect, if there is one.
pub fn paused<V: View>(v: &V, now: Time) -> Option<Pause> {
    Some(v.pause()).filter(|pause| pause.is_on(now))
}

/// The end of the pause, or the largest time if the end is not known. A time that is not after now means that
/// no pause is in effect.
#[inline]
pub(super) fn paused_until<V: View>(v: &V) -> Time {
    let [until] = v.health_state(PAUSE_AT);
    Time(until)
}

/// The block while a pause is in effect.
pub(super) fn block<V: View>(v: &V, now: Time) -> Option<Block> {
    let until = paused_until(v);
    let known = (until < OPEN_ENDED).then_some(until);
    (until > now).then_some(Block { reason: Reason::Paused, until: known })
}

/// Marks a pause as over if its end has passed. Returns whether there was one.
pub(super) fn expire<M: Memory>(m: &mut M, now: Time) -> bool {
    let until = paused_until(m);
    let over = until > Time::ZERO && until <= now;
    if over {
        m.set_health_state(PAUSE_AT, [0]);
    }
    over
}

/// Keeps a pause when damaged state is reset, if its words are valid. Otherwise damage would release calls that
/// an operator stopped.
pub(super) fn keep_if_sane<M: Memory>(m: &mut M, now: Time) {
    if !m.pause().is_sane(now) {
        m.set_health_state(PAUSE_AT, [0; PAUSE_WORDS]);
    }
}
