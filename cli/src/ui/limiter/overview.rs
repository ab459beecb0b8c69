//! Formats one limiter as text, as `status` shows it.

use super::policy::terms;
use crate::ui;
use crate::ui::escape::printable;
use crate::ui::layout::{self, Part, ScreenStyle};
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::severity::{self, Severity, assess};
use crate::ui::limiter::{condition, tables};
use shmlimit::{Counts, RuleSnapshot, Snapshot};

/// Returns one screen for one limiter. It is longer only if `all` users are requested.
pub fn render(snapshot: &Snapshot, all: bool, screen: ScreenStyle) -> String {
    let mut out = head(
        &snapshot.name,
        assess(snapshot),
        &format!("in {}", printable(&snapshot.directory.display().to_string())),
        screen,
    );
    let width = snapshot.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max("in flight".len());
    condition::write_pause(&mut out, snapshot, width, screen);
    condition::write_state(&mut out, snapshot, width, screen);
    for (i, rule) in snapshot.rules.iter().enumerate() {
        write_rule(&mut out, rule, terms(&snapshot.policy, i, rule), width, screen);
    }
    write_permits(&mut out, snapshot, width, screen);
    if snapshot.policy.is_passthrough() {
        let text = "passthrough: nothing is refused".to_owned();
        layout::write_row(&mut out, screen, ("mode", width), &[Part::Plain(text)]);
    }
    condition::write(&mut out, snapshot, width, screen);
    write_counts(&mut out, &snapshot.counts, width, screen);
    if snapshot.resets > 0 {
        let text = format!("{}, after damage", ui::times(snapshot.resets));
        layout::write_row(&mut out, screen, ("reset", width), &[Part::Level(0.0, text)]);
    }
    if let Some(change) = Change::of(snapshot).filter(Change::is_news) {
        layout::write_row(&mut out, screen, ("next", width), &[Part::Plain(change.to_text())]);
    }
    if !snapshot.queue.is_empty() {
        layout::write_row(
            &mut out,
            screen,
            ("waiting", width),
            &[Part::Plain(tables::summary(&snapshot.queue))],
        );
    }
    let most = if all { usize::MAX } else { tables::SHOWN };
    // Writing to a string cannot fail.
    let _ = tables::write_queue(&mut out, &snapshot.queue, most, screen);
    let _ = tables::write_participants(&mut out, &snapshot.participants, &snapshot.queue, most, screen);
    screen.spelled(out)
}

/// Formats a limiter that cannot be shown, among others that can.
pub fn render_error(name: &str, error: &str, screen: ScreenStyle) -> String {
    let mut out = head(name, ("cannot be shown", Severity::Blocked), "", screen);
    layout::write_row(&mut out, screen, ("", 0), &[Part::Plain(error.to_owned())]);
    out
}

fn head(name: &str, (word, severity): (&str, Severity), place: &str, screen: ScreenStyle) -> String {
    let paint = screen.paint;
    let head = format!("{}  {}  {}", paint.bold(name), paint.level(severity.level(), word), paint.dim(place));
    format!("{}\n", head.trim_end())
}

fn write_rule(out: &mut String, rule: &RuleSnapshot, terms: String, width: usize, screen: ScreenStyle) {
    let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
    let bar = screen.bar(rule.remaining, rule.capacity, screen.cells());
    let mut text = format!("{} of {} left", rule.remaining, ui::count(rule.capacity, &rule.unit));
    if rule.remaining_background != rule.remaining {
        text += &format!(", {} for the background", rule.remaining_background);
    }
    write_bar(
        out,
        screen,
        (&rule.name, width),
        Part::Level(left, bar),
        [Part::Plain(text), Part::Dim(terms)],
    );
}

fn write_permits(out: &mut String, snapshot: &Snapshot, width: usize, screen: ScreenStyle) {
    let (most, now) = (snapshot.policy.concurrency(), snapshot.condition.concurrency_now);
    let dead = match snapshot.held_by_exited {
        // The permits of exited processes are counted until a caller reclaims them. Without this note they would seem
        // lost.
        0 => String::new(),
        held => format!("({held} held by exited processes, free for the next call)"),
    };
    let dead = Part::Dim(dead);
    match now.or(most) {
        None if snapshot.in_flight == 0 => {}
        None => {
            let text = format!("{} (no limit)", snapshot.in_flight);
            layout::write_row(out, screen, ("in flight", width), &[Part::Plain(text), dead]);
        }
        Some(bound) => {
            let whole = most.unwrap_or(bound).max(1);
            let mut text = format!("{} of {whole}", snapshot.in_flight);
            if bound != whole {
                text += &format!(", {bound} allowed now");
            }
            let left = f64::from(severity::free_permits(snapshot, bound)) / f64::from(bound.max(1));
            let bar = screen.bar(snapshot.in_flight.into(), whole.into(), screen.cells());
            write_bar(out, screen, ("in flight", width), Part::Level(left, bar), [Part::Plain(text), dead]);
        }
    }
}

/// Writes a bar, if there is enough room, and its words.
fn write_bar(out: &mut String, screen: ScreenStyle, label: (&str, usize), bar: Part, words: [Part; 2]) {
    let [text, more] = words;
    let mut parts = Vec::new();
    if screen.cells() > 0 {
        parts.push(bar);
    }
    parts.push(text);
    if !matches!(&more, Part::Dim(text) if text.is_empty()) {
        parts.push(more);
    }
    layout::write_row(out, screen, label, &parts);
}

/// Writes the counts since the limiter was created. There is no row if they are zero.
fn write_counts(out: &mut String, counts: &Counts, width: usize, screen: ScreenStyle) {
    if counts.granted + counts.refused > 0 {
        let text = format!("{} granted, {} refused", counts.granted, counts.refused);
        layout::write_row(out, screen, ("calls", width), &[Part::Plain(text)]);
    }
    let asked = counts.cache_hits + counts.cache_misses;
    if asked > 0 {
        let share = counts.cache_hits as f64 / asked as f64 * 100.0;
        let text = format!("{} of {asked} answers found ({share:.0}%)", counts.cache_hits);
        layout::write_row(out, screen, ("cache", width), &[Part::Plain(text)]);
    }
}
