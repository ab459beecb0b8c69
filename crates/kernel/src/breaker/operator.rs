//! What an operator says goes, at once (R63 to R66, R142).

use super::enter::enter;
use super::tick::tick;
use super::timers::attend;
use super::{consecutive, fsm};
use crate::outcome;
use crate::pace;
use crate::policy::BreakerKind;
use crate::sheet::{GateNote, OFFLINE, SheetMemory, SheetView};
use crate::state::{Cause, Core, Memory, State};
use crate::time::Time;

crate::named_enum! {
    /// What an operator may say.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Force {
        /// Full rate; counters and window start anew.
        Normal => "normal",
        /// Half the rate.
        Throttle => "throttle",
        /// No call for the next cooldown.
        Sleep => "sleep",
        /// Probe now.
        HalfOpen => "half_open",
        /// No call until further notice.
        CacheOnly => "cache_only",
        /// No call until [`Force::Online`]: Sleep, or open, without a timer.
        Offline => "offline",
        /// Ends [`Force::Offline`] and CacheOnly, by probing.
        Online => "online",
        /// Of a consecutive breaker: as `Normal`.
        Closed => "closed",
        /// Of a consecutive breaker: no call for its reset time.
        Open => "open",
        /// Forget what Retry-After said, and the pace that response headers taught (R142).
        ClearGate => "clear_gate",
    }
    /// All of them.
    pub const ALL;
    /// The name everywhere outside of Rust.
    pub const fn as_str;
    /// The word of exactly that name.
    fn named;
}

impl Force {
    /// The word of that name; `half-open` is as good as `half_open`.
    pub fn parse(text: &str) -> Option<Force> {
        Force::named(&text.replace('-', "_"))
    }

    /// Whether a breaker of that kind knows it.
    pub const fn fits(self, kind: BreakerKind) -> bool {
        match self {
            Force::ClearGate => true,
            Force::HalfOpen | Force::Offline | Force::Online => !matches!(kind, BreakerKind::None),
            Force::Closed | Force::Open => matches!(kind, BreakerKind::Consecutive),
            Force::Normal | Force::Throttle | Force::Sleep | Force::CacheOnly => {
                matches!(kind, BreakerKind::Fsm)
            }
        }
    }
}

/// Does what an operator says; `false`, and nothing happens, if this limiter's breaker does not know it.
pub fn force<M: Memory>(m: &mut M, what: Force, now: Time) -> bool {
    let now = now.max(m.core().latest);
    let breaker = m.breaker_policy();
    if !what.fits(breaker.kind()) {
        return false;
    }
    tick(m, now);
    let mut health = m.health();
    match what {
        Force::ClearGate => {
            clear_gate(m, now);
            return true;
        }
        Force::Normal | Force::Closed => {
            enter(m, &mut health, State::Normal, Cause::Forced, now);
            outcome::clear(&mut health);
            (health.consec429, health.sustained) = (0, 0);
        }
        Force::Throttle => enter(m, &mut health, State::Throttle, Cause::Forced, now),
        Force::Sleep => fsm::sleep(m, &mut health, &breaker, Cause::Forced, None, now),
        Force::HalfOpen => enter(m, &mut health, State::HalfOpen, Cause::Forced, now),
        Force::CacheOnly => enter(m, &mut health, State::CacheOnly, Cause::Forced, now),
        Force::Open => consecutive::open(m, &mut health, &breaker, Cause::Forced, now),
        Force::Offline => {
            let to = if breaker.kind() == BreakerKind::Fsm { State::Sleep } else { State::Open };
            enter(m, &mut health, to, Cause::Forced, now);
            health.flag(OFFLINE, true);
        }
        Force::Online if health.has(OFFLINE) || health.state() == State::CacheOnly => {
            enter(m, &mut health, State::HalfOpen, Cause::Forced, now);
        }
        Force::Online => {}
    }
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    m.set_health(&health);
    attend(m, &health, now);
    true
}

/// Forgets what Retry-After said, and the pace that headers taught (R142).
pub fn clear_gate<M: Memory>(m: &mut M, now: Time) {
    if m.is_adaptive() {
        pace::clear(m);
    }
    let mut health = m.health();
    health.gate_until = Time::ZERO;
    m.set_health(&health);
    m.set_gate_note(&GateNote::default());
    attend(m, &health, now.max(m.core().latest));
}
