//! The lower table: the programs of the selected limiter, or its waiting calls.

use super::fit::{self, Hidden};
use super::input::{App, Pane};
use super::model::Track;
use super::programs::{self, Trouble, User};
use super::theme::{Theme, per_second, short};
use crate::ui::escape::printable;
use crate::ui::limiter::severity::Severity;
use crate::ui::limiter::tables;
use crate::ui::time::format_age;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use shmlimit::{Snapshot, WaiterSnapshot};

/// Lines above the rows: the names of the two tables, and the column headings.
const ABOVE: u16 = 2;

/// A column: its heading, its width, and the minimum width of a screen that shows it.
struct Column {
    heading: &'static str,
    width: u16,
    from: u16,
    right: bool,
}

const fn column(heading: &'static str, width: u16, from: u16, right: bool) -> Column {
    Column { heading, width, from, right }
}

const PROGRAM: usize = 1;
const PROGRAMS: [Column; 11] = [
    column("PID", 7, 0, true),
    column("PROGRAM", 15, 0, false),
    column("NOW", 7, 0, false),
    column("GRANT/s", 7, 60, true),
    column("REFUSE/s", 8, 100, true),
    column("SHARE", 5, 50, true),
    column("", 16, 100, false),
    column("HOLDS", 5, 0, true),
    column("WAITS", 5, 60, true),
    column("GRANTED", 8, 70, true),
    column("REFUSED", 8, 80, true),
];
const WAITERS: [Column; 7] = [
    column("PID", 7, 0, true),
    column("PROGRAM", 15, 0, false),
    column("FOR", 5, 0, true),
    column("PRIORITY", 10, 60, false),
    column("CHECKS IN", 9, 40, true),
    column("GIVES UP", 8, 50, true),
    column("COST", 16, 80, false),
];

/// Returns the number of lines of the whole table.
pub fn wanted_height(track: &Track, app: &App) -> u16 {
    let seen = track.seen.as_ref().filter(|_| track.error.is_none());
    let rows = match app.focus {
        Pane::Queue => seen.map_or(0, |seen| folded(&seen.queue, app.fold).len()),
        _ => programs::rows(&track.users, app.by_trouble, app.fold).len(),
    };
    u16::try_from(rows.max(1)).unwrap_or(u16::MAX).saturating_add(ABOVE)
}

pub fn draw(frame: &mut Frame, area: Rect, (seen, track): (&Snapshot, &Track), app: &mut App, theme: &Theme) {
    let [tabs, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let queue = app.focus == Pane::Queue;
    let choice = |chosen: bool| if chosen { theme.bold() } else { theme.dim() };
    let order = if app.by_trouble { "trouble first" } else { "by share" };
    let titles = vec![
        Span::raw(" "),
        Span::styled(format!("processes {}", seen.participants.len()), choice(!queue)),
        Span::styled(format!(" ({order})"), theme.dim()),
        Span::raw("   "),
        Span::styled(format!("waiting {}", seen.queue.len()), choice(queue)),
        Span::styled("   (Tab)", theme.dim()),
    ];
    frame.render_widget(Line::from(titles), tabs);
    let (columns, rows) = match queue {
        true => (&WAITERS[..], waiters(seen, app.fold, below.width, theme)),
        false => (&PROGRAMS[..], users(track, app, below.width, theme)),
    };
    if rows.is_empty() {
        let none = if queue { " no call is waiting" } else { " no process is attached" };
        frame.render_widget(Paragraph::new(Span::styled(none, theme.dim())), below);
        return;
    }
    let room = usize::from(below.height.saturating_sub(1));
    // One line is reserved for the mark that rows are hidden.
    let page = if rows.len() > room { room.saturating_sub(1) } else { room }.max(1);
    if app.focus != Pane::Limiters {
        app.page = page;
        app.scroll = app.scroll.min(rows.len().saturating_sub(page));
    }
    let offset = if app.focus == Pane::Limiters { 0 } else { app.scroll };
    let hidden = Hidden { above: offset, below: rows.len().saturating_sub(offset + page) };
    let shown: Vec<Row> = rows.into_iter().skip(offset).take(page).collect();
    let table = Table::new(shown, widths(columns, below.width))
        .header(Row::new(heading(columns, below.width)).style(theme.heading(app.focus != Pane::Limiters)))
        .column_spacing(1);
    frame.render_stateful_widget(table, below, &mut TableState::new());
    fit::mark(frame, below, hidden, "", theme);
}

fn visible(columns: &[Column], width: u16) -> impl Iterator<Item = &Column> {
    columns.iter().filter(move |column| column.from <= width)
}

/// Returns the width of the program column: the rest of the line, but no more than the names need.
fn program_width(columns: &[Column], width: u16) -> u16 {
    let others: u16 = visible(columns, width).map(|column| column.width + 1).sum();
    let least = columns[PROGRAM].width;
    (least + (width + 1).saturating_sub(others)).min(32).max(least)
}

fn widths(columns: &[Column], width: u16) -> Vec<Constraint> {
    let program = program_width(columns, width);
    let width_of = |column: &Column| match column.heading == columns[PROGRAM].heading {
        true => Constraint::Length(program),
        false => Constraint::Length(column.width),
    };
    visible(columns, width).map(width_of).collect()
}

fn right<'a>(text: impl Into<String>) -> Cell<'a> {
    Cell::from(Line::from(text.into()).right_aligned())
}

fn heading(columns: &[Column], width: u16) -> Vec<Cell<'static>> {
    let cell =
        |column: &Column| if column.right { right(column.heading) } else { Cell::from(column.heading) };
    visible(columns, width).map(cell).collect()
}

/// Returns a row with the cells that fit into the width.
fn row<'a>(columns: &[Column], width: u16, cells: Vec<Cell<'a>>) -> Row<'a> {
    let shown = columns.iter().zip(cells).filter(|(column, _)| column.from <= width);
    Row::new(shown.map(|(_, cell)| cell))
}

fn users<'a>(track: &Track, app: &App, width: u16, theme: &Theme) -> Vec<Row<'a>> {
    let program = program_width(&PROGRAMS, width);
    let line = |user: User| {
        let here = user.processes > 0;
        let number = |number: u64| right(if here { short(number) } else { String::new() });
        let bar = match user.share > 0.0 {
            true => theme.screen.bar((user.share * 1000.0) as u64, 1000, 16),
            false => String::new(),
        };
        let trouble = user.trouble();
        let severity = match trouble {
            Trouble::Late => Severity::Blocked,
            Trouble::Refused | Trouble::Waiting => Severity::Slow,
            Trouble::None => Severity::Normal,
        };
        let cells = vec![
            right(user.pid.map_or(String::new(), |pid| pid.to_string())),
            Cell::from(fit::text(&theme.screen.spelled(printable(&user.label())), program, theme)),
            Cell::from(Span::styled(trouble.as_str(), theme.severity(severity))),
            right(per_second(user.rate)),
            right(per_second(user.refusals)),
            right(format!("{:.0}%", user.share * 100.0)),
            Cell::from(Span::styled(bar, theme.severity(Severity::Normal))),
            number(user.held.into()),
            number(user.waiting as u64),
            number(user.granted),
            number(user.refused),
        ];
        row(&PROGRAMS, width, cells).style(if here { Style::new() } else { theme.dim() })
    };
    programs::rows(&track.users, app.by_trouble, app.fold).into_iter().map(line).collect()
}

/// Returns the waiting calls in their order. If folded, neighbours that differ only in their process share a line.
fn folded(queue: &[WaiterSnapshot], fold: bool) -> Vec<&[WaiterSnapshot]> {
    let same = |a: &WaiterSnapshot, b: &WaiterSnapshot| {
        fold && a.program == b.program && a.priority == b.priority && a.cost == b.cost && a.late == b.late
    };
    queue.chunk_by(same).collect()
}

fn waiters<'a>(seen: &Snapshot, fold: bool, width: u16, theme: &Theme) -> Vec<Row<'a>> {
    let program = program_width(&WAITERS, width);
    let line = |equal: &[WaiterSnapshot]| {
        let first = &equal[0];
        let (pid, name) = match equal.len() {
            1 => (first.pid.to_string(), first.program.clone()),
            many => (String::new(), format!("{} ×{many}", first.program)),
        };
        let checks = match first.late {
            true => Span::styled("late", theme.severity(Severity::Blocked)),
            false => Span::raw(format_age(first.looks_in)),
        };
        let cells = vec![
            right(pid),
            Cell::from(fit::text(&theme.screen.spelled(printable(&name)), program, theme)),
            right(format_age(first.waited_for)),
            Cell::from(first.priority.as_str()),
            Cell::from(Line::from(checks).right_aligned()),
            right(first.gives_up_in.map_or_else(|| "never".to_owned(), format_age)),
            Cell::from(tables::cost(first)),
        ];
        row(&WAITERS, width, cells)
    };
    folded(&seen.queue, fold).into_iter().map(line).collect()
}
