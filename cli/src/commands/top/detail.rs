//! The selected limiter: its budget, its history, its users and its queue.

use super::input::{App, Pane};
use super::model::{Sample, Track};
use super::theme::{Theme, per_second, short};
use crate::ui::escape::printable;
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::severity::{self, Severity};
use crate::ui::limiter::{condition, policy as policy_text, tables, warnings};
use crate::ui::time::{format_age, format_remaining};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::symbols::bar;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use shmlimit::Snapshot;

const LABEL: usize = 11;
/// For the newest value behind a sparkline.
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
    let facts = facts(seen, rest.width, theme);
    let tall = if rest.height >= 32 { 3 } else { 1 };
    let wanted = u16::try_from(facts.len()).unwrap_or(u16::MAX).min(rest.height.saturating_sub(6).max(2));
    let [above, sparks, below] =
        Layout::vertical([Constraint::Length(wanted), Constraint::Length(3 * tall), Constraint::Min(0)])
            .areas(rest);
    frame.render_widget(Paragraph::new(facts), above);
    write_sparks(frame, sparks, track, theme);
    write_users_or_queue(frame, below, (seen, track), app, theme);
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

/// Facts about the limiter, the most urgent first, because the end may be cut off.
fn facts<'a>(seen: &Snapshot, width: u16, theme: &Theme) -> Vec<Line<'a>> {
    let now = &seen.condition;
    let label_width = seen.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max(LABEL);
    let mut lines = Vec::new();
    let mut say = |label: &str, spans: Vec<Span<'a>>| {
        let mut all = vec![Span::styled(format!(" {label:label_width$} "), theme.dim())];
        all.extend(spans);
        lines.push(Line::from(all));
    };
    if let Some(change) = Change::of(seen).filter(Change::is_news) {
        say("next", vec![Span::styled(change.to_text(), theme.bold())]);
    }
    if let Some(pause) = &seen.paused {
        let until = match pause.ends_in {
            Some(left) => format!("ends in {}", format_remaining(left)),
            None => "until it is resumed".to_owned(),
        };
        let by = format!("  by {}", condition::paused_by(pause));
        say("paused", vec![Span::styled(until, theme.severity(Severity::Blocked)), Span::raw(by)]);
    }
    if let (Some(cause), true) = (now.reason, now.breaker != shmlimit_kernel::policy::BreakerKind::None) {
        let text =
            format!("{} for {}: {}", now.state_name, format_age(now.state_for), condition::cause_text(cause));
        say("state", vec![Span::styled(text, theme.severity(severity::assess(seen).1))]);
    }
    for warning in warnings::of(&seen.name, now) {
        say("warning", vec![Span::styled(warning.message, theme.severity(Severity::Slow))]);
        say("", vec![Span::styled(warning.advice, theme.dim())]);
    }
    if let Some(gate) = &now.gate {
        let text = format!("closed for {}: Retry-After", format_remaining(gate.opens_in));
        let by = format!(
            "  recorded by {} ({}) {} ago",
            printable(&gate.program),
            gate.pid,
            format_age(gate.recorded)
        );
        say("gate", vec![Span::styled(text, theme.severity(Severity::Blocked)), Span::raw(by)]);
    }
    let cells = if width >= 100 { 20 } else { 12 };
    for (i, rule) in seen.rules.iter().enumerate() {
        let left = rule.remaining as f64 / rule.capacity.max(1) as f64;
        let bar = theme.screen.bar(rule.remaining, rule.capacity, cells);
        let text = format!("  {} of {} {} left", rule.remaining, rule.capacity, rule.unit);
        // Rather without the algorithm than cut within a word.
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
        say("pace", vec![Span::raw(format!("one call each {}{because}", format_remaining(pace.interval)))]);
    }
    lines
}

/// What of a sample is drawn.
type Measure = fn(&Sample) -> f64;

/// Grants, refusals and errors, the newest at the right.
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
        // A thousandth of a call in a second is still one that can be seen.
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

/// The users of the limiter, or its waiting calls.
fn write_users_or_queue(
    frame: &mut Frame,
    area: Rect,
    (seen, track): (&Snapshot, &Track),
    app: &mut App,
    theme: &Theme,
) {
    let [tabs, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let queue = app.focus == Pane::Queue;
    let live = seen.participants.len();
    let choice = |chosen: bool| if chosen { theme.bold() } else { theme.dim() };
    let titles = vec![
        Span::raw(" "),
        Span::styled(format!("users {live}"), choice(!queue)),
        Span::raw("   "),
        Span::styled(format!("waiting {}", seen.queue.len()), choice(queue)),
        Span::styled("   (Tab)", theme.dim()),
    ];
    frame.render_widget(Line::from(titles), tabs);
    let (heading, widths, rows) = if queue { waiters(seen) } else { users(track, theme) };
    if app.focus != Pane::Limiters {
        app.page = usize::from(below.height.saturating_sub(1)).max(1);
        app.scroll = app.scroll.min(rows.len().saturating_sub(app.page));
    }
    let offset = if app.focus == Pane::Limiters { 0 } else { app.scroll };
    if rows.is_empty() {
        let nobody = if queue { " nobody waits" } else { " nobody is attached" };
        frame.render_widget(Paragraph::new(Span::styled(nobody, theme.dim())), below);
        return;
    }
    let table = Table::new(rows, widths)
        .header(Row::new(heading).style(theme.heading(app.focus != Pane::Limiters)))
        .column_spacing(1);
    frame.render_stateful_widget(table, below, &mut TableState::new().with_offset(offset));
}

type Listed<'a> = (Vec<Cell<'a>>, Vec<Constraint>, Vec<Row<'a>>);

fn right<'a>(text: impl Into<String>) -> Cell<'a> {
    Cell::from(Line::from(text.into()).right_aligned())
}

fn users<'a>(track: &Track, theme: &Theme) -> Listed<'a> {
    let heading = ["PID", "GRANT/s", "SHARE", "", "HOLDS", "WAITS", "GRANTED", "REFUSED"];
    let mut heading: Vec<Cell> = heading.into_iter().map(right).collect();
    heading.insert(1, Cell::from("PROGRAM"));
    let widths = [8, 15, 8, 5, 10, 5, 5, 8, 8].map(Constraint::Length).into();
    let rows = track.users.iter().map(|user| {
        let here = user.pid.is_some();
        let number = |number: u64| right(if here { short(number) } else { String::new() });
        let bar = theme.screen.bar((user.share * 1000.0) as u64, 1000, 10);
        let bar = if user.share > 0.0 { bar } else { String::new() };
        let style = if here { Style::new() } else { theme.dim() };
        Row::new(vec![
            right(user.pid.map_or(String::new(), |pid| pid.to_string())),
            Cell::from(printable(&user.program)),
            right(per_second(user.rate)),
            right(format!("{:.0}%", user.share * 100.0)),
            Cell::from(Span::styled(bar, theme.severity(Severity::Normal))),
            number(user.held.into()),
            number(user.waiting as u64),
            number(user.granted),
            number(user.refused),
        ])
        .style(style)
    });
    (heading, widths, rows.collect())
}

fn waiters<'a>(seen: &Snapshot) -> Listed<'a> {
    let heading = vec![
        right("PID"),
        Cell::from("PROGRAM"),
        right("FOR"),
        Cell::from("PRIORITY"),
        right("LOOKS IN"),
        right("GIVES UP"),
        Cell::from("COST"),
    ];
    let widths = [8, 15, 8, 10, 8, 8, 17].map(Constraint::Length).into();
    let rows = seen.queue.iter().map(|one| {
        Row::new(vec![
            right(one.pid.to_string()),
            Cell::from(printable(&one.program)),
            right(format_age(one.waited_for)),
            Cell::from(one.priority.as_str()),
            right(if one.late { "late".to_owned() } else { format_age(one.looks_in) }),
            right(one.gives_up_in.map_or_else(|| "never".to_owned(), format_age)),
            Cell::from(tables::cost(one)),
        ])
    });
    (heading, widths, rows.collect())
}
