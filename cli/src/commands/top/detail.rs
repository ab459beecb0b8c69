//! The selected limiter: its budget, its history, its users and its queue.

use super::fit;
use super::input::App;
use super::model::{Sample, Track};
use super::process_table;
use super::theme::{Theme, per_second};
use crate::ui::escape::printable;
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::severity::{self, Severity};
use crate::ui::limiter::{condition, policy as policy_text, warnings};
use crate::ui::time::{format_age, format_remaining};
use crate::ui::{self, layout};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::symbols::bar;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};
use shmlimit::Snapshot;

const LABEL: usize = 11;
/// Grants, refusals and errors.
const SPARKS: u16 = 3;
/// The headline and the error of a limiter that cannot be read.
const UNREADABLE: u16 = 4;
/// The width of the newest value, which follows a sparkline.
const VALUE: u16 = 8;
/// Bars for terminals without block characters.
const ASCII_BARS: bar::Set = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "*",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ":",
    one_eighth: ".",
    empty: " ",
};

pub fn draw(frame: &mut Frame, area: Rect, (name, track): (&str, &Track), app: &mut App, theme: &Theme) {
    let [title, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(headline(name, track, title.width, theme), title);
    let Some(seen) = track.seen.as_ref().filter(|_| track.error.is_none()) else {
        let error = track.error.as_deref().unwrap_or_default();
        frame
            .render_widget(Paragraph::new(format!(" {}", printable(error))).wrap(Wrap { trim: false }), rest);
        return;
    };
    let mut facts = facts(seen, rest.width, theme);
    let room = usize::from(rest.height.saturating_sub(6).max(2));
    if facts.len() > room {
        let hidden = facts.len() - (room - 1);
        facts.truncate(room - 1);
        facts.push(Line::styled(theme.screen.spelled(format!(" … {hidden} more")), theme.dim()));
    }
    let height = u16::try_from(facts.len()).unwrap_or(u16::MAX);
    // The history takes the lines that the table does not need.
    let spare = rest.height.saturating_sub(height).saturating_sub(process_table::wanted_height(track, app));
    let tall = (spare / SPARKS).max(1);
    let [above, sparks, below] =
        Layout::vertical([Constraint::Length(height), Constraint::Length(SPARKS * tall), Constraint::Min(0)])
            .areas(rest);
    frame.render_widget(Paragraph::new(facts), above);
    write_sparks(frame, sparks, track, theme);
    process_table::draw(frame, below, (seen, track), app, theme);
}

/// Returns how many lines the selected limiter needs if the history has its minimum height.
pub fn wanted_height(track: &Track, app: &App, width: u16, theme: &Theme) -> u16 {
    let Some(seen) = track.seen.as_ref().filter(|_| track.error.is_none()) else { return UNREADABLE };
    let facts = u16::try_from(facts(seen, width, theme).len()).unwrap_or(u16::MAX);
    facts.saturating_add(1 + SPARKS).saturating_add(process_table::wanted_height(track, app))
}

fn headline<'a>(name: &str, track: &Track, width: u16, theme: &Theme) -> Line<'a> {
    let (word, severity) = track.verdict();
    let line = if theme.screen.blocks { "─" } else { "-" };
    let used = name.chars().count() + word.len() + 6;
    Line::from(vec![
        Span::styled(line.repeat(2), theme.dim()),
        Span::styled(format!(" {} ", printable(name)), theme.bold()),
        Span::styled(format!(" {word} "), theme.severity(severity)),
        Span::styled(line.repeat(usize::from(width).saturating_sub(used)), theme.dim()),
    ])
}

/// Returns facts about the limiter, the most urgent first, because the end may be cut off.
fn facts<'a>(seen: &Snapshot, width: u16, theme: &Theme) -> Vec<Line<'a>> {
    let now = &seen.condition;
    let label_width = seen.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max(LABEL);
    let mut lines = Vec::new();
    let mut say = |label: &str, spans: Vec<Span<'a>>| {
        let mut all = vec![Span::styled(format!(" {label:label_width$} "), theme.dim())];
        all.extend(spans);
        lines.push(fit::line(Line::from(all), width, theme));
    };
    if let Some(change) = Change::of(seen).filter(Change::is_news) {
        say("next", vec![Span::styled(change.to_text(), theme.bold())]);
    }
    if let Some(pause) = &seen.paused {
        let until = match pause.ends_in {
            Some(left) => format!("{} left", format_remaining(left)),
            None => "until it is resumed".to_owned(),
        };
        let by = format!("  by {}", condition::paused_by(pause));
        say("paused", vec![Span::styled(until, theme.severity(Severity::Blocked)), Span::raw(by)]);
    }
    if let (Some(cause), true) = (now.reason, now.breaker != shmlimit_kernel::policy::BreakerKind::None) {
        let text =
            format!("{} for {}: {}", now.state_name, format_age(now.state_for), condition::cause_text(cause));
        say("breaker", vec![Span::styled(text, theme.severity(severity::assess(seen).1))]);
    }
    for warning in warnings::of(&seen.name, now) {
        let room = usize::from(width).saturating_sub(label_width + 2).max(24);
        for (i, text) in layout::wrap(&warning.message, room).enumerate() {
            let label = if i == 0 { "warning" } else { "" };
            say(label, vec![Span::styled(text, theme.severity(Severity::Slow))]);
        }
        for text in layout::wrap(&warning.advice, room) {
            say("", vec![Span::styled(text, theme.dim())]);
        }
    }
    if let Some(gate) = &now.gate {
        let (closed, by) = condition::gate_texts(gate);
        let by = Span::raw(format!("  {by}"));
        say("paused", vec![Span::styled(closed, theme.severity(Severity::Blocked)), by]);
    }
    let cells = if width >= 100 { 20 } else { 12 };
    for (i, rule) in seen.rules.iter().enumerate() {
        let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
        let bar = theme.screen.bar(rule.remaining, rule.capacity, cells);
        let text = format!("  {} of {} left", rule.remaining, ui::count(rule.capacity, &rule.unit));
        // If the line is too long, omit the algorithm instead of cutting a word.
        let mut terms = format!("  {}", policy_text::terms(&seen.policy, i, rule));
        if label_width + 2 + cells + text.chars().count() + terms.chars().count() > usize::from(width) {
            terms.truncate(terms.find(',').unwrap_or(terms.len()));
        }
        say(
            &rule.name,
            vec![Span::styled(bar, theme.level(left)), Span::raw(text), Span::styled(terms, theme.dim())],
        );
    }
    if let Some(most) = now.concurrency_now {
        let left = f64::from(severity::free_permits(seen, most)) / f64::from(most.max(1));
        let bar = theme.screen.bar(seen.in_flight.into(), most.into(), cells);
        say(
            "in flight",
            vec![Span::styled(bar, theme.level(left)), Span::raw(format!("  {} of {most}", seen.in_flight))],
        );
    }
    if let Some(pace) = now.pace.as_ref().filter(|pace| !pace.interval.is_zero()) {
        let because = pace.bottleneck.as_ref().map(|name| format!("  because of {name}")).unwrap_or_default();
        say("pace", vec![Span::raw(format!("one call every {}{because}", format_remaining(pace.interval)))]);
    }
    lines
}

/// Selects the value of a sample that is drawn.
type Measure = fn(&Sample) -> f64;

/// Draws grants, refusals and errors, the newest at the right.
fn write_sparks(frame: &mut Frame, area: Rect, track: &Track, theme: &Theme) {
    let newest = track.rate();
    let percent = |ratio: f64| format!("{:.0}%", ratio * 100.0);
    let sparks: [(&str, Measure, Severity, String); 3] = [
        ("grants/s", |sample| sample.grants, Severity::Normal, per_second(newest.grants)),
        ("refusals/s", |sample| sample.refusals, Severity::Slow, per_second(newest.refusals)),
        ("errors", |sample| sample.errors, Severity::Blocked, percent(newest.errors)),
    ];
    let parts = Layout::vertical([Constraint::Fill(1); 3]).split(area);
    for ((label, of, severity, value), part) in sparks.into_iter().zip(parts.iter()) {
        let [left, middle, right] = Layout::horizontal([
            Constraint::Length(LABEL as u16 + 2),
            Constraint::Min(0),
            Constraint::Length(VALUE),
        ])
        .areas(*part);
        frame.render_widget(Paragraph::new(Span::styled(format!(" {label:LABEL$}"), theme.dim())), left);
        let skip = track.history.len().saturating_sub(middle.width.into());
        // Even a thousandth of a call per second must be visible.
        let values: Vec<u64> =
            track.history.iter().skip(skip).map(|sample| (of(sample) * 1000.0) as u64).collect();
        let pad = usize::from(middle.width).saturating_sub(values.len());
        let values = std::iter::repeat_n(0, pad).chain(values);
        let bars = if theme.screen.blocks { bar::NINE_LEVELS } else { ASCII_BARS };
        let mut spark = Sparkline::default().data(values).bar_set(bars).style(theme.severity(severity));
        if label == "errors" {
            spark = spark.max(1000);
        }
        frame.render_widget(spark, middle);
        frame.render_widget(Paragraph::new(Line::from(value).right_aligned()), right);
    }
}
