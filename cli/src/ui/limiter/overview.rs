//! One limiter as text, as `status` shows it.

use super::policy::terms;
use crate::ui::escape::printable;
use crate::ui::layout::{self, Part, ScreenStyle};
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::severity::{self, Severity, assess};
use crate::ui::limiter::{condition, tables};
use shmlimit::{Counts, RuleSnapshot, Snapshot};

/// One screen for one limiter; longer than a screen only if `all` who use it are wanted.
pub fn render(snapshot: &Snapshot, all: bool, look: ScreenStyle) -> String {
    let mut out = head(
        &snapshot.name,
        assess(snapshot),
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
        layout::write_row(&mut out, look, ("mode", width), &[Part::Plain(text)]);
    }
    condition::write(&mut out, snapshot, width, look);
    write_counts(&mut out, &snapshot.counts, width, look);
    if snapshot.resets > 0 {
        let text = format!("{} times, after damage", snapshot.resets);
        layout::write_row(&mut out, look, ("reset", width), &[Part::Level(0.0, text)]);
    }
    if let Some(change) = Change::of(snapshot).filter(Change::is_news) {
        layout::write_row(&mut out, look, ("next", width), &[Part::Plain(change.to_text())]);
    }
    if !snapshot.queue.is_empty() {
        layout::write_row(
            &mut out,
            look,
            ("waiting", width),
            &[Part::Plain(tables::summary(&snapshot.queue))],
        );
    }
    let most = if all { usize::MAX } else { tables::SHOWN };
    // Writing to a string cannot fail.
    let _ = tables::write_queue(&mut out, &snapshot.queue, most, look);
    let _ = tables::write_participants(&mut out, &snapshot.participants, &snapshot.queue, most, look);
    look.spelled(out)
}

/// A limiter that cannot be shown, among others that can.
pub fn render_error(name: &str, error: &str, look: ScreenStyle) -> String {
    let mut out = head(name, ("cannot be shown", Severity::Blocked), "", look);
    layout::write_row(&mut out, look, ("", 0), &[Part::Plain(error.to_owned())]);
    out
}

fn head(name: &str, (word, severity): (&str, Severity), place: &str, look: ScreenStyle) -> String {
    let paint = look.paint;
    let left = match severity {
        Severity::Normal => 1.0,
        Severity::Slow => 0.1,
        Severity::Blocked => 0.0,
    };
    let head = format!("{}  {}  {}", paint.bold(name), paint.level(left, word), paint.dim(place));
    format!("{}\n", head.trim_end())
}

fn write_rule(out: &mut String, rule: &RuleSnapshot, terms: String, width: usize, look: ScreenStyle) {
    let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
    let bar = look.bar(rule.remaining, rule.capacity, look.cells());
    let mut text = format!("{} of {} {} left", rule.remaining, rule.capacity, rule.unit);
    if rule.remaining_background != rule.remaining {
        text += &format!(", {} for the background", rule.remaining_background);
    }
    write_bar(out, look, (&rule.name, width), Part::Level(left, bar), [Part::Plain(text), Part::Dim(terms)]);
}

fn write_permits(out: &mut String, snapshot: &Snapshot, width: usize, look: ScreenStyle) {
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
            layout::write_row(out, look, ("in flight", width), &[Part::Plain(text), dead]);
        }
        Some(bound) => {
            let whole = most.unwrap_or(bound).max(1);
            let mut text = format!("{} of {whole}", snapshot.in_flight);
            if bound != whole {
                text += &format!(", {bound} in this state");
            }
            let left = f64::from(severity::free_permits(snapshot, bound)) / f64::from(bound.max(1));
            let bar = look.bar(snapshot.in_flight.into(), whole.into(), look.cells());
            write_bar(out, look, ("in flight", width), Part::Level(left, bar), [Part::Plain(text), dead]);
        }
    }
}

/// A bar, where there is room for one, and its words.
fn write_bar(out: &mut String, look: ScreenStyle, label: (&str, usize), bar: Part, words: [Part; 2]) {
    let [text, more] = words;
    let mut parts = Vec::new();
    if look.cells() > 0 {
        parts.push(bar);
    }
    parts.push(text);
    if !matches!(&more, Part::Dim(text) if text.is_empty()) {
        parts.push(more);
    }
    layout::write_row(out, look, label, &parts);
}

/// What was counted since the limiter was made; nothing if nothing was.
fn write_counts(out: &mut String, counts: &Counts, width: usize, look: ScreenStyle) {
    if counts.granted + counts.refused > 0 {
        let text = format!("{} granted, {} refused", counts.granted, counts.refused);
        layout::write_row(out, look, ("calls", width), &[Part::Plain(text)]);
    }
    let asked = counts.cache_hits + counts.cache_misses;
    if asked > 0 {
        let share = counts.cache_hits as f64 / asked as f64 * 100.0;
        let text = format!("{} of {asked} answers found ({share:.0}%)", counts.cache_hits);
        layout::write_row(out, look, ("cache", width), &[Part::Plain(text)]);
    }
}
