//! Explains why a limiter refused a call, and what to do about it.

use crate::ui::escape;
use crate::ui::failure::{Failure, USAGE};
use crate::ui::limiter::condition;
use crate::ui::{self, suggestion, time};
use shmlimit::{AcquireError, Limiter, Policy, Priority, Reason, Refusal, RuleSnapshot, TransitionCause};
use shmlimit_kernel::MAX_PERMITS;
use shmlimit_kernel::policy::Rule;
use shmlimit_kernel::queue::WAITERS;

/// The units that a call needs, for messages.
#[derive(Clone, Copy)]
pub struct Needs<'a> {
    /// Units and amounts. A unit that is not named costs 0, except `requests`, which costs 1.
    pub costs: &'a [(String, u64)],
    pub priority: Priority,
}

impl Needs<'_> {
    /// The needs of a request that names no cost.
    pub const ONE_CALL: Needs<'static> = Needs { costs: &[], priority: Priority::Background };

    /// Returns the needed amount of a unit.
    pub fn of(&self, unit: &str) -> u64 {
        let named = self.costs.iter().rev().find(|(name, _)| name == unit).map(|(_, cost)| *cost);
        named.unwrap_or(u64::from(unit == "requests"))
    }

    /// Returns how much of a rule is left for this call.
    pub fn left(&self, rule: &RuleSnapshot) -> u64 {
        match self.priority {
            Priority::Background => rule.remaining_background,
            _ => rule.remaining,
        }
    }
}

/// Explains a refusal, or a failure to ask. `refused` is the exit code of a temporary refusal.
pub fn failure(limiter: &Limiter, error: AcquireError, needs: Needs<'_>, refused: u8) -> Failure {
    match error {
        AcquireError::Failed(error) => Failure::Library(*error),
        AcquireError::Refused(refusal) => Failure::Refused(
            format!("{}: refused: {}", limiter.name(), to_text(limiter, &refusal, needs)),
            exit_code(&refusal, refused),
        ),
    }
}

/// Returns the exit code of a refusal: `refused`, unless waiting would not help.
pub fn exit_code(refusal: &Refusal, refused: u8) -> u8 {
    if refusal.reason() == Reason::CostExceedsLimit { USAGE } else { refused }
}

/// Explains the reason and the remedy.
pub fn to_text(limiter: &Limiter, refusal: &Refusal, needs: Needs<'_>) -> String {
    let policy = limiter.policy().ok();
    let rule = policy.as_ref().zip(refusal.rule()).and_then(|(policy, i)| policy.rules().get(i));
    let why = match (refusal.reason(), rule) {
        (Reason::Rate, Some(rule)) => used_up(limiter, refusal, rule, needs),
        (Reason::CostExceedsLimit, Some(rule)) => {
            let unit = policy.as_ref().and_then(|policy| policy.units().nth(usize::from(rule.unit)));
            let unit = unit.as_ref().map_or("requests", |unit| unit.as_str());
            let (name, most, need) = (rule.name.as_str(), rule.burst, ui::count(needs.of(unit), unit));
            return match rule.reserve {
                0 => format!("needs {need}, but rule {name} never allows more than {most} at once"),
                kept => format!(
                    "needs {need}, but rule {name} never allows more than {most} at once, of which {kept} are kept \
                     for --priority user"
                ),
            };
        }
        (Reason::Concurrency, _) => permits_out(policy.as_ref()),
        (Reason::Queued, _) => "other calls wait before this one".to_owned(),
        (Reason::QueueFull, _) => format!("the queue is full: {WAITERS} calls wait already"),
        (Reason::Sleep | Reason::CacheOnly | Reason::Open | Reason::RetryAfter, _) => {
            return blocked(limiter, refusal);
        }
        (Reason::Paused, _) => return paused(limiter, refusal),
        (Reason::Adaptive, _) => "the API's headers ask for a slower pace".to_owned(),
        _ => return refusal.to_string(),
    };
    // The refusing layer reports when it would let the call pass if no other call waited before it.
    let (alone, in_turn) = (refusal.retry_after(), refusal.ready_after());
    let others = match refusal.reason() {
        Reason::Rate if in_turn > alone => ", and other calls wait before this one",
        _ => "",
    };
    let then = match (refusal.reason(), alone.map(|alone| in_turn.unwrap_or(alone).max(alone))) {
        (_, Some(after)) => format!("in {}", time::format_wait(after)),
        (Reason::Concurrency, None) => "when a call ends".to_owned(),
        (_, None) => "later".to_owned(),
    };
    format!("{why}{others}; try again {then}")
}

/// Explains what the call needs, and what is left in the rule that refuses it.
fn used_up(limiter: &Limiter, refusal: &Refusal, rule: &Rule, needs: Needs<'_>) -> String {
    let name = rule.name.as_str();
    let snapshot = limiter.snapshot().ok();
    let seen = snapshot.as_ref().zip(refusal.rule()).and_then(|(snapshot, i)| snapshot.rules.get(i));
    match seen.map(|seen| (needs.of(&seen.unit), needs.left(seen), seen.unit.as_str())) {
        // If units have come back since the refusal, the numbers would contradict it.
        Some((need, left, unit)) if left < need => {
            format!("needs {}, {left} left in rule {name}", ui::count(need, unit))
        }
        _ => format!("rule {name} has too little left"),
    }
}

/// Explains why every call is refused, which process caused it, and how to end it.
fn blocked(limiter: &Limiter, refusal: &Refusal) -> String {
    let name = suggestion::operand(limiter.name());
    let now = limiter.snapshot().ok().map(|snapshot| snapshot.condition);
    let offline = now.as_ref().is_some_and(|now| now.offline);
    let forced = now.as_ref().is_some_and(|now| now.reason == Some(TransitionCause::Forced));
    let gate = now.and_then(|now| now.gate);
    let then = refusal.eta().map(|after| format!("try again in {}", time::format_wait(after)));
    let then =
        |way_out: &str| then.unwrap_or_else(|| format!("end it with: shmlimit force {name} {way_out}"));
    match (refusal.reason(), gate) {
        (Reason::RetryAfter, Some(gate)) => format!(
            "paused by Retry-After, recorded by {} ({}) {} ago; {}",
            escape::printable(&gate.program),
            gate.pid,
            time::format_age(gate.recorded),
            then("clear-gate")
        ),
        (Reason::RetryAfter, None) => format!("paused by Retry-After; {}", then("clear-gate")),
        (Reason::CacheOnly, _) => {
            format!("the breaker is in state cache_only (use cached answers); {}", then("online"))
        }
        _ if offline => format!("an operator put the limiter offline; {}", then("online")),
        (Reason::Open, _) if forced => format!("an operator opened the breaker; {}", then("closed")),
        (Reason::Open, _) => format!("the breaker is open after too many failures; {}", then("closed")),
        _ if forced => format!("an operator put the breaker to sleep; {}", then("normal")),
        _ => format!("the breaker sleeps after too many failures; {}", then("normal")),
    }
}

/// Explains which process paused the limiter, its reason, and how to resume.
fn paused(limiter: &Limiter, refusal: &Refusal) -> String {
    let pause = limiter.snapshot().ok().and_then(|snapshot| snapshot.paused);
    let by = pause.as_ref().map(|pause| format!(" by {}", condition::paused_by(pause))).unwrap_or_default();
    let then = match refusal.retry_after() {
        Some(left) => format!("try again in {}", time::format_wait(left)),
        None => format!("end it with: shmlimit resume {}", suggestion::operand(limiter.name())),
    };
    format!("paused{by}; {then}")
}

/// Explains that no permit is free. A refusal does not say which of the two bounds was reached.
fn permits_out(policy: Option<&Policy>) -> String {
    let bounds = policy.map(|policy| (policy.concurrency(), policy.concurrency_background()));
    match bounds.unwrap_or_default() {
        (Some(1), _) => "1 call is in flight, and no more are allowed at a time".to_owned(),
        (Some(most), None) => format!("{most} calls are in flight, and no more are allowed at a time"),
        (Some(most), Some(part)) => {
            format!(
                "as many calls are in flight as allowed (at most {most} at a time, at most {part} of them \
                     background calls)"
            )
        }
        (None, Some(part)) => {
            format!("as many background calls are in flight as allowed (at most {part} at a time)")
        }
        (None, None) => format!("{MAX_PERMITS} calls are in flight, the maximum of every limiter"),
    }
}
