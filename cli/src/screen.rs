//! A limiter in words, for people.

use crate::next::{self, Change, Mood, verdict};
use crate::output::nanos;
use crate::rows::{self, Look, Part};
pub use crate::safe::printable;
use crate::{condition, crowd};
use shmlimit::{Algorithm, Counts, Fairness, Nanos, Policy, RuleSnapshot, Snapshot, describe};
use shmlimit_kernel::BurstMode;
use std::time::Duration;

/// A policy on one line: of each rule the most that any one period can see, and how it counts (R147).
pub fn policy(policy: &Policy) -> String {
    let rules = 0..policy.rules().len();
    let mut parts: Vec<String> = rules.filter_map(|i| allowance(policy, i)).collect();
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

/// Such as `at most 1020 in any day (token_bucket: 1000/day and a burst of 20)`.
fn allowance(policy: &Policy, i: usize) -> Option<String> {
    let (rule, most) = (policy.rules().get(i)?, describe::most_per_period(policy, i)?);
    let unit = policy.units().nth(usize::from(rule.unit))?;
    // What every limiter counts need not be said.
    let unit = if rule.unit == 0 { String::new() } else { format!(" {}", unit.as_str()) };
    let (period, short) = period_names(rule.period);
    let (algorithm, limit, burst) = (rule.algorithm.as_str(), rule.limit, rule.burst);
    let counted = match rule.algorithm {
        Algorithm::SlidingLog => algorithm.to_owned(),
        Algorithm::FixedWindow => format!("{algorithm}: {limit} in each of the UTC clock"),
        Algorithm::SlidingCounter => format!("{algorithm}: {limit} if calls come evenly"),
        _ if rule.burst_mode == BurstMode::FixedWindow => {
            format!("{algorithm}: {limit}/{short} and {burst} more in each of the UTC clock")
        }
        _ => match describe::own_rate_of_breaker(policy, i) {
            Some(rate) => format!("{algorithm}: {rate} by breaker.rate_base, and a burst of {burst}"),
            None => format!("{algorithm}: {limit}/{short} and a burst of {burst}"),
        },
    };
    Some(format!("at most {most}{unit} in any {period} ({counted})"))
}

/// A period after "any", and after a stroke.
fn period_names(period: Nanos) -> (String, String) {
    let (long, short) = match describe::duration(period).as_str() {
        "1s" => ("second", "s"),
        "1m" => ("minute", "min"),
        "1h" => ("hour", "h"),
        "1d" => ("day", "day"),
        "7d" => ("week", "week"),
        other => return (other.to_owned(), other.to_owned()),
    };
    (long.to_owned(), short.to_owned())
}

/// One screen for one limiter; longer than a screen only if `all` who use it are wanted.
pub fn limiter(snapshot: &Snapshot, all: bool, look: Look) -> String {
    let mut out = head(
        &snapshot.name,
        verdict(snapshot),
        &format!("in {}", printable(&snapshot.directory.display().to_string())),
        look,
    );
    let width = snapshot.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max("in flight".len());
    condition::write_pause(&mut out, snapshot, width, look);
    condition::write_state(&mut out, snapshot, width, look);
    for (i, rule) in snapshot.rules.iter().enumerate() {
        write_rule(&mut out, rule, terms(&snapshot.policy, i, rule), width, look);
    }
    write_permits(&mut out, snapshot, width, look);
    if snapshot.policy.is_passthrough() {
        let text = "passthrough: nothing is refused".to_owned();
        rows::write(&mut out, look, ("mode", width), &[Part::Plain(text)]);
    }
    condition::write(&mut out, snapshot, width, look);
    write_counts(&mut out, &snapshot.counts, width, look);
    if snapshot.resets > 0 {
        let text = format!("{} times, after damage", snapshot.resets);
        rows::write(&mut out, look, ("reset", width), &[Part::Level(0.0, text)]);
    }
    if let Some(change) = Change::of(snapshot).filter(Change::is_news) {
        rows::write(&mut out, look, ("next", width), &[Part::Plain(change.in_words())]);
    }
    if !snapshot.queue.is_empty() {
        rows::write(&mut out, look, ("waiting", width), &[Part::Plain(crowd::summary(&snapshot.queue))]);
    }
    let most = if all { usize::MAX } else { crowd::SHOWN };
    // Writing to a string cannot fail.
    let _ = crowd::write_queue(&mut out, &snapshot.queue, most, look);
    let _ = crowd::write_participants(&mut out, &snapshot.participants, &snapshot.queue, most, look);
    look.spelled(out)
}

/// A limiter that cannot be shown, among others that can.
pub fn broken(name: &str, error: &str, look: Look) -> String {
    let mut out = head(name, ("cannot be shown", Mood::Blocked), "", look);
    rows::write(&mut out, look, ("", 0), &[Part::Plain(error.to_owned())]);
    out
}

fn head(name: &str, (word, mood): (&str, Mood), place: &str, look: Look) -> String {
    let paint = look.paint;
    let left = match mood {
        Mood::Well => 1.0,
        Mood::Slow => 0.1,
        Mood::Blocked => 0.0,
    };
    let head = format!("{}  {}  {}", paint.bold(name), paint.level(left, word), paint.dim(place));
    format!("{}\n", head.trim_end())
}

fn write_rule(out: &mut String, rule: &RuleSnapshot, terms: String, width: usize, look: Look) {
    let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
    let bar = look.bar(rule.remaining, rule.capacity, look.cells());
    let mut text = format!("{} of {} {} left", rule.remaining, rule.capacity, rule.unit);
    if rule.remaining_background != rule.remaining {
        text += &format!(", {} for the background", rule.remaining_background);
    }
    write_bar(out, look, (&rule.name, width), Part::Level(left, bar), [Part::Plain(text), Part::Dim(terms)]);
}

fn write_permits(out: &mut String, snapshot: &Snapshot, width: usize, look: Look) {
    let (most, now) = (snapshot.policy.concurrency(), snapshot.condition.concurrency);
    let dead = match snapshot.held_by_dead {
        // What the dead still hold is counted until somebody wants it; else it would look lost for ever.
        0 => String::new(),
        held => format!("({held} held by the dead, free for whoever asks)"),
    };
    let dead = Part::Dim(dead);
    match now.or(most) {
        None if snapshot.in_flight == 0 => {}
        None => {
            let text = format!("{} (no bound)", snapshot.in_flight);
            rows::write(out, look, ("in flight", width), &[Part::Plain(text), dead]);
        }
        Some(bound) => {
            let whole = most.unwrap_or(bound).max(1);
            let mut text = format!("{} of {whole}", snapshot.in_flight);
            if bound != whole {
                text += &format!(", {bound} in this state");
            }
            let left = f64::from(next::free(snapshot, bound)) / f64::from(bound.max(1));
            let bar = look.bar(snapshot.in_flight.into(), whole.into(), look.cells());
            write_bar(out, look, ("in flight", width), Part::Level(left, bar), [Part::Plain(text), dead]);
        }
    }
}

/// A bar, where there is room for one, and its words.
fn write_bar(out: &mut String, look: Look, label: (&str, usize), bar: Part, words: [Part; 2]) {
    let [text, more] = words;
    let mut parts = Vec::new();
    if look.cells() > 0 {
        parts.push(bar);
    }
    parts.push(text);
    if !matches!(&more, Part::Dim(text) if text.is_empty()) {
        parts.push(more);
    }
    rows::write(out, look, label, &parts);
}

/// What was counted since the limiter was made; nothing if nothing was.
fn write_counts(out: &mut String, counts: &Counts, width: usize, look: Look) {
    if counts.granted + counts.refused > 0 {
        let text = format!("{} granted, {} refused", counts.granted, counts.refused);
        rows::write(out, look, ("calls", width), &[Part::Plain(text)]);
    }
    let asked = counts.cache_hits + counts.cache_misses;
    if asked > 0 {
        let share = counts.cache_hits as f64 / asked as f64 * 100.0;
        let text = format!("{} of {asked} answers found ({share:.0}%)", counts.cache_hits);
        rows::write(out, look, ("cache", width), &[Part::Plain(text)]);
    }
}

/// What a rule allows, and how it counts.
pub fn terms(policy: &Policy, i: usize, rule: &RuleSnapshot) -> String {
    let terms = match describe::own_rate_of_breaker(policy, i) {
        Some(rate) => format!("{rate} by breaker.rate_base"),
        None => format!("{} per {}", rule.limit, describe::duration(Nanos(nanos(rule.period)))),
    };
    // A rule without a name of its own has the algorithm's.
    if rule.name == rule.algorithm { terms } else { format!("{terms}, {}", rule.algorithm) }
}

/// In how long, for people: rounded up, with no more digits than are read.
pub fn soon(time: Duration) -> String {
    let (millis, secs) = (time.as_nanos().div_ceil(1_000_000), time.as_nanos().div_ceil(1_000_000_000));
    match millis {
        0..1000 => format!("{millis}ms"),
        1000..=9900 => {
            let tenths = millis.div_ceil(100);
            if tenths % 10 == 0 {
                format!("{}s", tenths / 10)
            } else {
                format!("{}.{}s", tenths / 10, tenths % 10)
            }
        }
        _ if secs < 60 => format!("{secs}s"),
        _ if secs < 3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        _ if secs < 86_400 => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d{:02}h", secs / 86_400, secs / 3600 % 24),
    }
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
    fn what_comes_is_told_with_the_digits_that_are_read() {
        for (nanos, text) in [
            (1, "1ms"),
            (999_000_001, "1s"),
            (1_901_000_000, "2s"),
            (1_800_000_000, "1.8s"),
            (9_950_000_000, "10s"),
            (59_000_000_001, "1m00s"),
            (3_599_000_000_001, "1h00m"),
            (90_000_000_000_000, "1d01h"),
        ] {
            assert_eq!(soon(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn a_programs_name_cannot_command_the_terminal() {
        assert_eq!(printable("evil\x1b[2J"), "evil\\u{1b}[2J");
        assert!(!crate::output::Paint::PLAIN.bold("x").contains('\x1b'));
    }
}
