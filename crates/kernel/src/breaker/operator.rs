//! An operator's commands to the breaker. They take effect at once (R63 to R66, R142).

use super::enter::enter;
use super::tick::tick;
use super::timers::schedule_check;
use super::{consecutive, fsm};
use crate::UnknownName;
use crate::gate;
use crate::health_state::{HealthStateMemory, HealthStateView, OFFLINE};
use crate::outcome;
use crate::pace;
use crate::policy::BreakerKind;
use crate::state::{BreakerState, Core, Memory, TransitionCause};
use crate::time::Time;
use std::str::FromStr;

crate::named_enum! {
    /// A command that an operator gives to the breaker.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerCommand;
    ///
    /// assert_eq!("half-open".parse(), Ok(BreakerCommand::HalfOpen));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BreakerCommand {
        /// Full rate. Counters and the outcome window are cleared.
        Normal => "normal",
        /// Half the rate.
        Throttle => "throttle",
        /// No calls for the next cooldown.
        Sleep => "sleep",
        /// Probe now.
        HalfOpen => "half_open",
        /// No calls until further notice.
        CacheOnly => "cache_only",
        /// No calls until [`BreakerCommand::Online`]: Sleep, or open, without a timer.
        Offline => "offline",
        /// Ends [`BreakerCommand::Offline`] and CacheOnly by probing.
        Online => "online",
        /// The same as `Normal`, for a consecutive breaker.
        Closed => "closed",
        /// No calls for the reset time, for a consecutive breaker.
        Open => "open",
        /// Forgets the last Retry-After and the pace that came from response headers (R142).
        ClearGate => "clear_gate",
    }
    /// All commands.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerCommand;
    ///
    /// assert!(BreakerCommand::ALL.contains(&BreakerCommand::ClearGate));
    /// ```
    pub const ALL;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// assert_eq!(shmlimit::BreakerCommand::HalfOpen.as_str(), "half_open");
    /// ```
    pub const fn as_str;
    const NAMES;
    /// The command with exactly that name.
    fn named;
}

impl FromStr for BreakerCommand {
    type Err = UnknownName;

    /// Reads a command's name. A hyphen is accepted for an underscore: `half-open` means `half_open`.
    fn from_str(text: &str) -> Result<BreakerCommand, UnknownName> {
        let unknown = || UnknownName::new("BreakerCommand", text, &BreakerCommand::NAMES);
        BreakerCommand::named(&text.replace('-', "_")).ok_or_else(unknown)
    }
}

impl BreakerCommand {
    /// Whether a breaker of that kind has this command.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// # use shmlimit_kernel::policy;
    /// use policy::BreakerKind;
    /// use shmlimit::BreakerCommand;
    ///
    /// assert!(BreakerCommand::Open.fits(BreakerKind::Consecutive));
    /// assert!(!BreakerCommand::Open.fits(BreakerKind::Fsm));
    /// ```
    pub const fn fits(self, kind: BreakerKind) -> bool {
        match self {
            BreakerCommand::ClearGate => true,
            BreakerCommand::HalfOpen | BreakerCommand::Offline | BreakerCommand::Online => {
                !matches!(kind, BreakerKind::None)
            }
            BreakerCommand::Closed | BreakerCommand::Open => matches!(kind, BreakerKind::Consecutive),
            BreakerCommand::Normal
            | BreakerCommand::Throttle
            | BreakerCommand::Sleep
            | BreakerCommand::CacheOnly => {
                matches!(kind, BreakerKind::Fsm)
            }
        }
    }
}

/// Executes an operator's command. Returns `false` and changes nothing if the limiter's kind of breaker does
/// not have the command.
pub fn force<M: Memory>(m: &mut M, what: BreakerCommand, now: Time) -> bool {
    let now = now.max(m.core().latest);
    let breaker = m.breaker_policy();
    if !what.fits(breaker.kind()) {
        return false;
    }
    tick(m, now);
    let mut health = m.health();
    match what {
        BreakerCommand::ClearGate => {
            clear_gate(m, now);
            return true;
        }
        BreakerCommand::Normal | BreakerCommand::Closed => {
            enter(m, &mut health, BreakerState::Normal, TransitionCause::Forced, now);
            outcome::clear(&mut health);
            (health.consec429, health.sustained) = (0, 0);
        }
        BreakerCommand::Throttle => {
            enter(m, &mut health, BreakerState::Throttle, TransitionCause::Forced, now)
        }
        BreakerCommand::Sleep => fsm::sleep(m, &mut health, &breaker, TransitionCause::Forced, None, now),
        BreakerCommand::HalfOpen => {
            enter(m, &mut health, BreakerState::HalfOpen, TransitionCause::Forced, now)
        }
        BreakerCommand::CacheOnly => {
            enter(m, &mut health, BreakerState::CacheOnly, TransitionCause::Forced, now)
        }
        BreakerCommand::Open => consecutive::open(m, &mut health, &breaker, TransitionCause::Forced, now),
        BreakerCommand::Offline => {
            let to =
                if breaker.kind() == BreakerKind::Fsm { BreakerState::Sleep } else { BreakerState::Open };
            enter(m, &mut health, to, TransitionCause::Forced, now);
            health.flag(OFFLINE, true);
        }
        BreakerCommand::Online if health.has(OFFLINE) || health.state() == BreakerState::CacheOnly => {
            enter(m, &mut health, BreakerState::HalfOpen, TransitionCause::Forced, now);
        }
        BreakerCommand::Online => {}
    }
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    m.set_health(&health);
    schedule_check(m, &health, now);
    true
}

/// Forgets the last Retry-After and the pace that came from response headers (R142).
pub fn clear_gate<M: Memory>(m: &mut M, now: Time) {
    if m.is_adaptive() {
        pace::clear(m);
    }
    let health = gate::open(m);
    schedule_check(m, &health, now.max(m.core().latest));
}
