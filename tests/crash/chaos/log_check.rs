//! Checks a run at one site, using only the logs of its workers.

use super::site::{Event, Faults, Site};
use super::worker::{BUCKET, CONCURRENCY, GCRA, QUOTA};
use crate::util::crash::storm::{self, Call, Entry, Rule};
use std::collections::BTreeMap;
use std::path::Path;

/// How long processes may go on using a file that was deleted or replaced (they check once a second, at their next
/// call), with a margin.
const HANDOVER: u64 = 3_000_000_000;
/// The longest time a call may take: its timeout (100 ms), the bound of the lock (1 s), and a margin for a busy machine.
const LONGEST_CALL: u64 = 6_000_000_000;

/// A span of time, and how many generations of the limiter calls in it may have used.
#[derive(Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    to: u64,
    generations: u64,
}

/// Cuts time at the given changes: quiet spans of one generation, and the handovers between them.
fn spans(changes: &[&[(u64, u64)]]) -> Vec<Span> {
    let mut all: Vec<(u64, u64)> = changes.concat();
    all.sort_unstable();
    let mut spans = vec![Span { from: 0, to: u64::MAX, generations: 1 }];
    for (from, to) in all {
        let last = spans.len() - 1;
        let to = to + HANDOVER;
        if last > 0 && from < spans[last].from {
            // During the previous handover: one more generation, and the quiet span begins later.
            spans[last - 1].generations += 1;
            spans[last - 1].to = spans[last - 1].to.max(to);
            spans[last].from = spans[last - 1].to;
        } else {
            spans[last].to = from;
            spans.push(Span { from, to, generations: 2 });
            spans.push(Span { from: to, to: u64::MAX, generations: 1 });
        }
    }
    spans
}

fn within(calls: &[Call], span: &Span) -> Vec<Call> {
    calls.iter().filter(|call| call.before >= span.from && call.after <= span.to).copied().collect()
}

/// The violations found, and a line of figures.
pub fn verdicts(site: &Site) -> Vec<String> {
    let logs = site.logs.path();
    let calls = storm::calls(&storm::logs(logs));
    let mut wrong = site.bad_ends.clone();
    report(site, &calls);
    wrong.extend(files(site, &calls));
    let faults = &site.faults;
    for span in spans(&[&faults.replacements, &faults.boots]) {
        let inside = within(&calls, &span);
        for (name, rule) in [("bucket", BUCKET), ("gcra", GCRA)] {
            let n = span.generations;
            let allowed = Rule { limit: rule.limit * n, burst: rule.burst * n, ..rule };
            let (excess, window) = allowed.worst_window(&inside);
            if excess {
                wrong.push(format!(
                    "{}: {name}, {n} generations: {window}; {}",
                    site.name,
                    near(faults, &inside)
                ));
            }
        }
    }
    // Permits of a replaced file no longer count. Those of a deleted file do.
    for span in spans(&[&faults.replacements, &faults.boots]) {
        let inside = within(&calls, &span);
        let most = storm::most_at_once(&inside) as u64;
        if most > CONCURRENCY * span.generations {
            let says = near(faults, &inside);
            wrong.push(format!(
                "{}: {most} permits at once, {} generations; {says}",
                site.name, span.generations
            ));
        }
    }
    wrong.extend(quota(site));
    wrong.extend(slow_calls(site));
    wrong
}

/// The actions of the controller during slow calls.
fn near(faults: &Faults, calls: &[Call]) -> String {
    let from = calls.iter().map(|call| call.before).min().unwrap_or(0);
    let to = calls.iter().map(|call| call.after).max().unwrap_or(0);
    let count = |all: &[(u64, u64)]| all.iter().filter(|(at, _)| (from..=to).contains(at)).count();
    let (deleted, replaced, booted) =
        (count(&faults.deletions), count(&faults.replacements), count(&faults.boots));
    format!("{deleted} deletions, {replaced} replacements, {booted} boots in {} ms", (to - from) / 1_000_000)
}

fn lines(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap_or_default()
}

fn report(site: &Site, calls: &[Call]) {
    let logs = site.logs.path();
    let mut errors = BTreeMap::<String, u64>::new();
    for code in lines(logs, "errors").lines() {
        *errors.entry(code.to_owned()).or_default() += 1;
    }
    let marks = |name: &str| lines(logs, name).len();
    let count = |event| site.faults.counts.get(&event).copied().unwrap_or(0);
    println!(
        "chaos: {}: {} grants, {} of the quota; {} kills, {} stops, {} deletions, {} replacements, {} settings, {} boots, \
         {} wrong clocks, {} privileges dropped, {} forks, {} refusals to open; errors {errors:?}",
        site.name,
        calls.len(),
        quota_grants(logs),
        count(Event::Kill),
        count(Event::Stop),
        site.faults.deletions.len(),
        count(Event::Replace),
        count(Event::Set),
        site.faults.boots.len(),
        site.faults.forged_clocks,
        marks("dropped"),
        marks("forks"),
        marks("refused"),
    );
}

/// Either every worker can use a site or every worker is refused. A site that is used must have seen grants.
fn files(site: &Site, calls: &[Call]) -> Vec<String> {
    let refused = lines(site.logs.path(), "refused").len();
    match (refused, calls.len()) {
        (0, 0) => vec![format!("{}: nothing was granted", site.name)],
        (0, _) => Vec::new(),
        (_, 0) if site.name == "overlay" => Vec::new(),
        (_, 0) => vec![format!("{}: a good directory was refused {refused} times", site.name)],
        _ => vec![format!("{}: refused {refused} times and used, too", site.name)],
    }
}

fn quota_grants(logs: &Path) -> u64 {
    named(logs, "quota-").iter().map(|(_, entries)| entries.len() as u64).sum()
}

/// The entries of all logs of a kind, with their processes.
fn named(logs: &Path, prefix: &str) -> Vec<(i32, Vec<Entry>)> {
    let files = std::fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().path());
    let wanted = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_prefix(prefix)?.to_owned();
        let pid = name.split('-').next()?.parse().ok()?;
        Some((pid, storm::entries(&std::fs::read(&path).ok()?)))
    });
    wanted.collect()
}

/// A day's quota is granted once, whatever the wall clock shows. It starts again only if the file is deleted while no
/// process has it open.
fn quota(site: &Site) -> Vec<String> {
    let faults = &site.faults;
    let lost =
        |(_, gone): &&(u64, u64)| faults.boots.iter().any(|(boot, _)| gone <= boot && boot - gone < HANDOVER);
    let forgotten = faults.deletions.iter().filter(lost).count() as u64;
    let days = site.days();
    let (granted, most) = (quota_grants(site.logs.path()), QUOTA * (days + forgotten));
    let wrong = granted > most;
    let says = || {
        format!("{}: {granted} of a quota of {QUOTA} a day, {days} days, {forgotten} forgotten", site.name)
    };
    wrong.then(says).into_iter().collect()
}

fn slow_calls(site: &Site) -> Vec<String> {
    let mut wrong = Vec::new();
    for (pid, entries) in named(site.logs.path(), "slow-") {
        for entry in entries {
            let Entry::Granted { before, after } = entry else { continue };
            let stopped = |(who, from, to): &(i32, u64, u64)| *who == pid && *from < after && before < *to;
            if after - before > LONGEST_CALL && !site.faults.stops.iter().any(stopped) {
                wrong.push(format!("{}: a call took {} ms", site.name, (after - before) / 1_000_000));
            }
        }
    }
    wrong
}

#[test]
fn time_is_cut_at_changes_and_overlapping_handovers_are_one() {
    let second = 1_000_000_000;
    let quiet = |from, to| Span { from, to, generations: 1 };
    assert_eq!(spans(&[&[]]), [quiet(0, u64::MAX)]);
    let changes = [(10 * second, 11 * second), (12 * second, 13 * second), (30 * second, 30 * second)];
    let expected = [
        quiet(0, 10 * second),
        Span { from: 10 * second, to: 16 * second, generations: 3 },
        quiet(16 * second, 30 * second),
        Span { from: 30 * second, to: 33 * second, generations: 2 },
        quiet(33 * second, u64::MAX),
    ];
    assert_eq!(spans(&[&changes]), expected);
}
