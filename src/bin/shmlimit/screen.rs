//! A limiter in words, for people.

use crate::output::Paint;
use crate::{condition, crowd};
use shmlimit::{Fairness, Policy, RuleSnapshot, Snapshot, describe};
use std::fmt::Write;
use std::time::Duration;

const BAR: u64 = 20;

/// A policy on one line.
pub fn policy(policy: &Policy) -> String {
    let units: Vec<_> = policy.units().collect();
    let mut parts: Vec<String> = policy
        .rules()
        .iter()
        .map(|rule| {
            let unit = units[usize::from(rule.unit)];
            let (limit, period, burst) = (rule.limit, describe::duration(rule.period), rule.burst);
            format!("{limit} {} per {period}, {burst} at once ({})", unit.as_str(), rule.algorithm.as_str())
        })
        .collect();
    parts.extend(policy.concurrency().map(|most| format!("{most} in flight")));
    if policy.is_passthrough() {
        parts.push("passthrough, so nothing is refused".to_owned());
    }
    let queueing = policy.queueing();
    if queueing.fairness == Fairness::Fifo {
        parts.push("first come, first served".to_owned());
    }
    if queueing.background_share > 0 {
        parts.push(format!("{} for the background in any case", describe::share(queueing.background_share)));
    }
    if parts.is_empty() { "no limits".to_owned() } else { parts.join("; ") }
}

/// One screen for one limiter; longer than a screen only if `all` who use it are wanted.
pub fn limiter(snapshot: &Snapshot, all: bool, paint: Paint) -> String {
    let mut screen = String::new();
    // Writing to a string cannot fail.
    let _ = write_limiter(&mut screen, snapshot, all, paint);
    screen
}

fn write_limiter(out: &mut String, snapshot: &Snapshot, all: bool, paint: Paint) -> std::fmt::Result {
    writeln!(
        out,
        "{}  {}",
        paint.bold(&snapshot.name),
        paint.dim(&format!("in {}", snapshot.directory.display()))
    )?;
    let width = snapshot.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max("in flight".len());
    for rule in &snapshot.rules {
        let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
        writeln!(
            out,
            "  {:width$}  {}  {} of {} {} left  {}",
            rule.name,
            paint.level(left, &bar(rule)),
            rule.remaining,
            rule.capacity,
            rule.unit,
            paint.dim(&format!("{} per {}, {}", rule.limit, period(rule), rule.algorithm)),
        )?;
        if rule.remaining_background != rule.remaining {
            writeln!(out, "  {:width$}  {} of them for the background", "", rule.remaining_background)?;
        }
    }
    let mut most =
        snapshot.policy.concurrency().map_or(" (no bound)".to_owned(), |most| format!(" of {most}"));
    let now = snapshot.condition.concurrency;
    if let Some(now) = now.filter(|_| now != snapshot.policy.concurrency()) {
        let _ = write!(most, ", {now} in this state");
    }
    let orphaned = orphaned(snapshot);
    writeln!(out, "  {:width$}  {}{most}{}", "in flight", snapshot.in_flight, paint.dim(&orphaned))?;
    if snapshot.policy.is_passthrough() {
        writeln!(out, "  {:width$}  passthrough: nothing is refused", "mode")?;
    }
    condition::write(out, &snapshot.name, &snapshot.condition, width, paint)?;
    if snapshot.resets > 0 {
        writeln!(out, "  {:width$}  {} times, after damage", "reset", snapshot.resets)?;
    }
    writeln!(out, "  {:width$}  {}", "waiting", crowd::summary(&snapshot.queue))?;
    let most = if all { usize::MAX } else { crowd::SHOWN };
    crowd::write_queue(out, &snapshot.queue, most, paint)?;
    crowd::write_participants(out, &snapshot.participants, most, paint)
}

/// What the dead still hold is counted until somebody wants it; else it would look lost for ever.
fn orphaned(snapshot: &Snapshot) -> String {
    match snapshot.held_by_dead {
        0 => String::new(),
        held => format!("  ({held} held by the dead, free for whoever asks)"),
    }
}

fn bar(rule: &RuleSnapshot) -> String {
    // Rounded up, so that an empty bar means nothing at all.
    let filled = u128::from(rule.remaining) * u128::from(BAR);
    let filled = filled.div_ceil(u128::from(rule.capacity.max(1))).min(u128::from(BAR)) as usize;
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR as usize - filled))
}

fn period(rule: &RuleSnapshot) -> String {
    let nanos = u64::try_from(rule.period.as_nanos()).unwrap_or(u64::MAX);
    describe::duration(shmlimit::Nanos(nanos))
}

/// A length of time with one digit of interest.
pub fn ago(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        secs @ 1..60 => format!("{secs}s"),
        secs @ 60..3600 => format!("{}m", secs / 60),
        secs @ 3600..86_400 => format!("{}h", secs / 3600),
        secs => format!("{}d", secs / 86_400),
    }
}

/// How long to wait, rounded up, so that nobody comes too early.
pub fn wait(time: Duration) -> String {
    match time.as_secs() {
        0..60 => {
            let millis = time.as_nanos().div_ceil(1_000_000);
            format!("{}.{:03}s", millis / 1000, millis % 1000)
        }
        secs => {
            let secs = secs + u64::from(time.subsec_nanos() > 0);
            let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
            if hours > 0 {
                format!("{hours}h{minutes:02}m{secs:02}s")
            } else {
                format!("{minutes}m{secs:02}s")
            }
        }
    }
}

/// A program chooses its own name; it must not write on the terminal with it.
pub fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (secs, text) in [(0, "0ms"), (59, "59s"), (60, "1m"), (7_199, "1h"), (172_800, "2d")] {
            assert_eq!(ago(Duration::from_secs(secs)), text);
        }
    }

    #[test]
    fn waits_are_rounded_up() {
        for (nanos, text) in [
            (1, "0.001s"),
            (28_571_429, "0.029s"),
            (59_999_999_999, "60.000s"),
            (719_980_000_000, "12m00s"),
            (3_600_000_000_001, "1h00m01s"),
        ] {
            assert_eq!(wait(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn a_programs_name_cannot_command_the_terminal() {
        assert_eq!(printable("evil\x1b[2J"), "evil?[2J");
        assert!(!Paint::PLAIN.bold("x").contains('\x1b'));
    }
}
