//! Checks one limiter: its file, its running and exited processes, and what blocks its calls.

use super::finding::{Finding, Level};
use crate::open;
use crate::options::Location;
use crate::platform::{self, texts};
use crate::ui::limiter::{condition, warnings};
use crate::ui::{self, suggestion, time};
use shmlimit::{
    Algorithm, Attached, BreakerState, Condition, DirectoryFacts, Error, Inspection, Storage, TransitionCause,
};
use shmlimit_kernel::policy::BreakerKind;
use std::time::Duration;

const CHECK: &str = "limiter";
const DAY: Duration = Duration::from_secs(86_400);
/// Servers seldom send a longer Retry-After on purpose (R142).
const LONG_GATE: Duration = Duration::from_secs(3600);
const HOUR: Duration = Duration::from_secs(3600);
/// A change of the wall clock by less than this does not matter in practice.
const CLOCK_SET: Duration = Duration::from_secs(60);
/// The number of processes above which the doctor warns. A segment has room for 504.
const MANY_PARTICIPANTS: usize = 480;

pub fn check(
    location: &Location,
    facts: &DirectoryFacts,
    name: &str,
    fix: bool,
    findings: &mut Vec<Finding>,
) {
    let look = || open::builder(location, name).ignore_environment().inspect();
    let mut seen = look();
    if let Err(error @ Error::UnsafeFile { .. }) = &seen {
        let finding = refused(name, error).repaired(fix, || tightened(facts, name));
        let fixed = finding.fixed;
        findings.push(finding);
        if !fixed {
            return;
        }
        seen = look();
    }
    let seen = match seen {
        Ok(Some(seen)) => seen,
        // The limiter was removed in the meantime.
        Ok(None) => return,
        Err(error) => return findings.push(refused(name, &error)),
    };
    let before = findings.len();
    findings.extend(permissions(facts, name, &seen, fix));
    stuck(name, &seen, findings);
    findings.extend(left_over(location, name, &seen, fix));
    findings.extend(seen.condition.as_ref().map(|now| blocked(name, now)).unwrap_or_default());
    findings.extend(paused(name, &seen));
    findings.extend(volatile(facts, name, &seen));
    if findings[before..].iter().all(|finding| finding.fixed || finding.level == Level::Ok) {
        findings.push(Finding::ok(CHECK, name, healthy(&seen)));
    }
}

fn healthy(seen: &Inspection) -> String {
    let alive: Vec<&Attached> = seen.attached.iter().filter(|one| one.alive).collect();
    let users = match alive.len() {
        0 => "no process uses it".to_owned(),
        1 => "1 process uses it".to_owned(),
        many => format!("{many} processes use it"),
    };
    let boot = if seen.other_boot { "; created before the last boot, and its counts are kept" } else { "" };
    let resets = match seen.resets {
        0 => String::new(),
        resets => format!("; was reset {} after damage", ui::times(resets)),
    };
    format!("no problems, {users}{boot}{resets}")
}

/// Reports a limiter that the library refuses to open.
fn refused(name: &str, error: &Error) -> Finding {
    match error {
        Error::UnsafeFile { problem, .. } => Finding::bad(CHECK, name, format!("is not safe to use: {problem}"))
            .advice("close it: shmlimit doctor --fix; if the file is not yours, remove it, or choose another directory with --dir"),
        Error::Foreign { problem, segment: false, .. } => {
            Finding::bad(CHECK, name, format!("{problem}; it was not changed"))
                .advice(format!("move {name}.shm away, or choose another directory with --dir"))
        }
        Error::Foreign { problem, .. } => Finding::bad(CHECK, name, problem.clone()).advice(format!(
            "use one version of shmlimit; or remove it and create it again: {}",
            suggestion::remove_command(name)
        )),
        Error::Damaged { problem, .. } => Finding::bad(CHECK, name, format!("is damaged: {problem}"))
            .advice(format!("remove it and create it again: {}", suggestion::remove_command(name))),
        error => Finding::bad(CHECK, name, error.to_string()),
    }
}

fn tightened(facts: &DirectoryFacts, name: &str) -> Result<String, String> {
    match facts.fix_permissions(&format!("{name}.shm")) {
        Ok(Some(access)) => Ok(format!("now {access}")),
        Ok(None) => Err("it is not a limiter file of this user".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reports permissions that differ from those at creation: other users can see who uses the limiter, or members of
/// the group cannot use it.
fn permissions(facts: &DirectoryFacts, name: &str, seen: &Inspection, fix: bool) -> Option<Finding> {
    let message = facts.permission_mismatch(&format!("{name}.shm")).ok()??;
    let advice = format!("repair it: shmlimit doctor --fix (as {})", seen.owner.name());
    Some(Finding::warn(CHECK, name, message).advice(advice).repaired(fix, || tightened(facts, name)))
}

/// Reports running processes that make no progress.
fn stuck(name: &str, seen: &Inspection, findings: &mut Vec<Finding>) {
    if let Some(lock) = seen.lock.as_ref().filter(|lock| lock.alive) {
        findings.push(
            Finding::bad(
                CHECK,
                name,
                format!(
                    "{} ({}) holds the lock and is stopped, so no call is answered",
                    lock.program, lock.pid
                ),
            )
            .advice(texts::let_it_go_on(lock.pid)),
        );
    }
    let idle = |one: &&Attached| one.alive && (one.held > 0 || one.waiting > 0) && platform::is_stopped(one);
    for one in seen.attached.iter().filter(idle) {
        let what = match (one.held, one.waiting) {
            (0, _) => "waits in the queue, which skips it".to_owned(),
            (1, _) => "has 1 call in flight".to_owned(),
            (held, _) => format!("has {held} calls in flight"),
        };
        findings.push(
            Finding::warn(CHECK, name, format!("{} ({}) is stopped, and {what}", one.program, one.pid))
                .advice(texts::let_it_go_on(one.pid)),
        );
    }
    for one in seen.attached.iter().filter(|one| one.alive) {
        if let Some(user) = platform::user_without_access(one, &seen.path) {
            let message = format!(
                "{} ({}) runs as {user}, which may not open the file, so it cannot reclaim what exited processes held",
                one.program, one.pid
            );
            findings.push(
                Finding::warn(CHECK, name, message)
                    .advice("let it open the limiter after giving up its privileges, in a directory shared with that user"),
            );
        }
    }
    if seen.attached.iter().filter(|one| one.alive).count() >= MANY_PARTICIPANTS {
        findings.push(
            Finding::warn(
                CHECK,
                name,
                format!("{} processes are attached; the maximum is 504", seen.attached.len()),
            )
            .advice("share one handle per process, or use a limiter for each kind of work"),
        );
    }
}

/// Reports what exited processes left behind. The next caller repairs it; opening the limiter and reclaiming repairs
/// it now.
fn left_over(location: &Location, name: &str, seen: &Inspection, fix: bool) -> Option<Finding> {
    let (level, message) = trouble(seen)?;
    let repairable = seen.lock.as_ref().is_none_or(|lock| !lock.alive);
    let finding = match level {
        Level::Bad => Finding::bad(CHECK, name, message),
        _ => Finding::warn(CHECK, name, message),
    };
    let finding = finding.advice("the next call repairs it; to repair it now: shmlimit doctor --fix");
    Some(finding.repaired(fix && repairable, || {
        match open::builder(location, name).operator().ignore_environment().open_existing() {
            Ok(limiter) => match limiter.reclaim_dead().map_err(|error| error.to_string())? {
                0 => Ok("repaired".to_owned()),
                1 => Ok("repaired, 1 slot freed".to_owned()),
                many => Ok(format!("repaired, {many} slots freed")),
            },
            // Another process had begun to remove it.
            Err(Error::UnknownLimiter { .. }) => Ok("removed, as another process had begun to do".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }))
}

fn trouble(seen: &Inspection) -> Option<(Level, String)> {
    let dead: Vec<&Attached> = seen.attached.iter().filter(|one| !one.alive).collect();
    let permits = dead.iter().map(|one| one.held).sum::<u32>() + seen.lost_permits;
    let waiters = dead.iter().map(|one| one.waiting).sum::<usize>() + seen.lost_waiters;
    let mut parts = Vec::new();
    if seen.unsound {
        parts.push("its state is damaged; it will be reset, and starts used up".to_owned());
    }
    if seen.unfinished {
        parts.push("a process died in the middle of a change, which will be undone".to_owned());
    } else if seen.lock.as_ref().is_some_and(|lock| !lock.alive) {
        parts.push("a process died while it held the lock".to_owned());
    }
    if seen.retired {
        parts.push("a process died while it replaced or removed the limiter".to_owned());
    }
    if !dead.is_empty() {
        let who = if dead.len() == 1 {
            "1 exited process".to_owned()
        } else {
            format!("{} exited processes", dead.len())
        };
        let have = if dead.len() == 1 { "has" } else { "have" };
        parts.push(format!("{who} still {have} a slot in it"));
    }
    if permits > 0 {
        parts.push(match permits {
            1 => "1 permit is held by exited processes".to_owned(),
            many => format!("{many} permits are held by exited processes"),
        });
    }
    if waiters > 0 {
        parts.push(match waiters {
            1 => "1 call of exited processes is in the queue".to_owned(),
            many => format!("{many} calls of exited processes are in the queue"),
        });
    }
    let calendar = |policy: &shmlimit::Policy| {
        policy.rules().iter().any(|rule| rule.algorithm == Algorithm::FixedWindow)
    };
    if seen.wall_clock_set_by > CLOCK_SET && seen.policy.as_ref().is_some_and(calendar) {
        let by = time::format_age(seen.wall_clock_set_by);
        parts.push(format!(
            "the wall clock was changed by {by} since the last call, and its calendar windows still use the old time"
        ));
    }
    let level = if seen.unsound { Level::Bad } else { Level::Warn };
    (!parts.is_empty()).then(|| (level, parts.join("; ")))
}

/// Reports why all calls have been blocked for so long that the operator may have forgotten it.
fn blocked(name: &str, now: &Condition) -> Vec<Finding> {
    let mut findings = Vec::new();
    let since = time::format_age(now.state_for);
    let force = |to: &str| format!("shmlimit force {} {to}", suggestion::operand(name));
    if let Some(gate) = now.gate.as_ref().filter(|gate| gate.opens_in > LONG_GATE) {
        findings.push(
            Finding::warn(
                CHECK,
                name,
                format!(
                    "paused by Retry-After, {} left: recorded by {} ({}) {} ago",
                    time::format_age(gate.opens_in),
                    gate.program,
                    gate.pid,
                    time::format_age(gate.recorded)
                ),
            )
            .advice(format!("if that is too long, end it with: {}", force("clear-gate"))),
        );
    }
    if now.offline {
        findings.push(
            Finding::warn(
                CHECK,
                name,
                format!("an operator put it offline {since} ago: every call is refused"),
            )
            .advice(format!("end it with: {}", force("online"))),
        );
    } else if now.breaker == BreakerKind::Fsm && now.state == BreakerState::CacheOnly && now.eta.is_none() {
        findings.push(
            Finding::warn(
                CHECK,
                name,
                format!("in state cache_only for {since}: every call is refused until an operator ends it, because \
                         breaker.auto_recover is not set"),
            )
            .advice(format!(
                "end it with: {}, or let it end by itself: shmlimit set {} breaker.auto_recover 15m",
                force("online"),
                suggestion::operand(name)
            )),
        );
    } else if now.reason == Some(TransitionCause::Forced)
        && now.state != BreakerState::Normal
        && now.state_for > DAY
    {
        findings.push(
            Finding::warn(
                CHECK,
                name,
                format!("an operator put the breaker into state {} {since} ago", now.state_name),
            )
            .advice(format!("end it with: {}", force("normal"))),
        );
    }
    let warnings = warnings::of(name, now).into_iter();
    findings
        .extend(warnings.map(|warning| Finding::warn(CHECK, name, warning.message).advice(warning.advice)));
    findings
}

/// Reports a pause without an end, which an operator may have forgotten.
fn paused(name: &str, seen: &Inspection) -> Option<Finding> {
    let pause = seen.paused.as_ref().filter(|pause| pause.ends_in.is_none())?;
    let message = format!("paused without an end by {}: calls wait", condition::paused_by(pause));
    Some(
        Finding::ok(CHECK, name, message)
            .advice(format!("end it with: shmlimit resume {}", suggestion::operand(name))),
    )
}

/// Reports a limiter in memory that has long rules: counts of a rule must last as long as its period (R134).
fn volatile(facts: &DirectoryFacts, name: &str, seen: &Inspection) -> Option<Finding> {
    let long = seen.policy.as_ref()?.rules().iter().any(|rule| rule.period >= HOUR);
    (facts.storage == Storage::Memory && long).then(|| {
        Finding::warn(
            CHECK,
            name,
            "has a rule of an hour or more, whose counts are lost when the machine boots",
        )
        .advice("keep it in a directory on a disk: use --dir, or SHMLIMIT_DIR for all programs")
    })
}
