//! Tables of the processes that use a limiter and of the waiting calls. The tables stay short even with many rows.

use crate::ui::escape::printable;
use crate::ui::layout::ScreenStyle;
use crate::ui::time::format_age;
use shmlimit::{ParticipantSnapshot, Priority, WaiterSnapshot};
use std::fmt::Write;

/// The number of table rows that fit on a screen with the other rows.
pub const SHOWN: usize = 8;
/// The number of kinds of hidden rows that are listed.
const KINDS: usize = 4;

/// Summarizes how many calls wait, by priority, and how many of them are late.
pub fn summary(queue: &[WaiterSnapshot]) -> String {
    let of = |priority: Priority| queue.iter().filter(|one| one.priority == priority).count();
    let kinds = Priority::ALL.into_iter().rev().map(|priority| (priority.as_str(), of(priority)));
    let parts: Vec<String> =
        kinds.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {kind}")).collect();
    // Late calls are listed separately, because the counts above include them.
    let late = match queue.iter().filter(|one| one.late).count() {
        0 => String::new(),
        count => format!("; {count} late"),
    };
    match parts.is_empty() {
        true => "0".to_owned(),
        false => format!("{} ({}{late})", queue.len(), parts.join(", ")),
    }
}

/// Writes the waiting calls in order, at most `most` of them.
pub fn write_queue(
    out: &mut String,
    queue: &[WaiterSnapshot],
    most: usize,
    screen: ScreenStyle,
) -> std::fmt::Result {
    if queue.is_empty() {
        return Ok(());
    }
    let heading = format!(
        "  {:>7}  {:15}  {:>7}  {:10}  {:>9}  {:>8}  COST",
        "PID", "WAITING", "FOR", "PRIORITY", "CHECKS IN", "GIVES UP"
    );
    writeln!(out, "{}", screen.paint.dim(screen.cut(&heading).trim_end()))?;
    let (shown, others) = queue.split_at(fitting(queue.len(), most));
    for one in shown {
        let looks = if one.late { "late".to_owned() } else { format_age(one.looks_in) };
        let line = format!(
            "  {:>7}  {:15}  {:>7}  {:10}  {:>9}  {:>8}  {}",
            one.pid,
            printable(&one.program),
            format_age(one.waited_for),
            one.priority.as_str(),
            looks,
            one.gives_up_in.map_or_else(|| "never".to_owned(), format_age),
            cost(one),
        );
        writeln!(out, "{}", screen.cut(&line))?;
    }
    let kinds = others.iter().map(|one| format!("{} {}", one.priority.as_str(), printable(&one.program)));
    write_others(out, kinds, screen)
}

/// Writes the attached processes, at most `most`: first those that hold a permit, then those with the most grants.
/// Processes that only wait are in the other table, and are left out here unless all rows are requested.
pub fn write_participants(
    out: &mut String,
    all: &[ParticipantSnapshot],
    queue: &[WaiterSnapshot],
    most: usize,
    screen: ScreenStyle,
) -> std::fmt::Result {
    let only_waits = |one: &ParticipantSnapshot| {
        one.held == 0 && one.granted == 0 && queue.iter().any(|waiter| waiter.pid == one.pid)
    };
    let mut all: Vec<_> = all.iter().filter(|one| most == usize::MAX || !only_waits(one)).collect();
    if all.is_empty() {
        return Ok(());
    }
    let heading = format!(
        "  {:>7}  {:15}  {:>8}  {:>5}  {:>9}  {:>9}  {:>9}",
        "PID", "PROGRAM", "OPEN FOR", "HOLDS", "GRANTED", "REFUSED", "CHECKS"
    );
    writeln!(out, "{}", screen.paint.dim(screen.cut(&heading).trim_end()))?;
    all.sort_by_key(|one| (one.held == 0, std::cmp::Reverse(one.granted)));
    let (shown, others) = all.split_at(fitting(all.len(), most));
    for one in shown {
        let line = format!(
            "  {:>7}  {:15}  {:>8}  {:>5}  {:>9}  {:>9}  {:>9}",
            one.pid,
            printable(&one.program),
            format_age(one.attached_for),
            one.held,
            one.granted,
            one.refused,
            one.looked
        );
        writeln!(out, "{}", screen.cut(&line))?;
    }
    write_others(out, others.iter().map(|one| printable(&one.program)), screen)
}

/// Returns how many of `count` rows to show. One hidden row would need a line too, so it is shown instead.
fn fitting(count: usize, most: usize) -> usize {
    if count <= most.saturating_add(1) { count } else { most }
}

/// Writes one line for all hidden rows, by kind, the most frequent first.
fn write_others(
    out: &mut String,
    kinds: impl Iterator<Item = String>,
    screen: ScreenStyle,
) -> std::fmt::Result {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    if total == 0 {
        return Ok(());
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if counts.len() > KINDS { ", …" } else { "" };
    let parts: Vec<String> =
        counts.into_iter().take(KINDS).map(|(kind, count)| format!("{count} {kind}")).collect();
    let text = format!("… {total} more: {}{more} (--all shows them)", parts.join(", "));
    writeln!(out, "{}", screen.paint.dim(&screen.cut(&format!("  {:>7}  {text}", ""))))
}

/// Formats the cost in the form that `--cost` accepts.
pub fn cost(one: &WaiterSnapshot) -> String {
    let parts: Vec<String> = one.cost.iter().map(|(unit, cost)| format!("{unit}={cost}")).collect();
    parts.join(" ")
}
