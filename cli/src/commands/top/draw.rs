//! Draws the picture: a list of limiters, the selected one below it, and the keys.

use super::detail;
use super::fit::{self, Hidden};
use super::input::{App, Pane};
use super::model::{Model, Track};
use super::theme::{Theme, per_second, short};
use crate::ui::escape::{is_unsafe, printable};
use crate::ui::limiter::severity::Severity;
use crate::ui::time::format_remaining;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

/// On a smaller screen nothing is readable.
const LEAST: (u16, u16) = (40, 8);

/// Draws the whole screen.
pub fn all(frame: &mut Frame, model: &Model, app: &mut App, theme: &Theme) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("too small: {}x{} is needed", LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let order = app.order(model);
    let line = app.line(&order);
    let selected = line.and_then(|line| model.tracks.get_key_value(order[line]));
    // The list gets a third of the screen, and more if the selected limiter does not fill the rest.
    let detail = selected.map_or(8, |(_, track)| detail::wanted_height(track, app, area.width, theme));
    let most = area.height.saturating_sub(2).saturating_sub(detail).max(area.height / 3).max(3);
    let listed = u16::try_from(order.len()).unwrap_or(u16::MAX).saturating_add(1).clamp(2, most);
    let [top, list, below, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(listed),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(head(model, app, order.len(), theme), top);
    write_list(frame, list, (model, &order, line), app, theme);
    match selected {
        Some((name, track)) => detail::draw(frame, below, (name, track), app, theme),
        None => frame.render_widget(Paragraph::new(nothing(model, app)).wrap(Wrap { trim: false }), below),
    }
    frame.render_widget(keys(app, area.width, theme), foot);
    if app.help {
        write_help(frame, area, theme);
    }
    replace_unsafe(frame);
}

/// Removes characters that would control the terminal.
fn replace_unsafe(frame: &mut Frame) {
    for cell in &mut frame.buffer_mut().content {
        if cell.symbol().chars().any(is_unsafe) {
            cell.set_symbol("?");
        }
    }
}

fn head<'a>(model: &Model, app: &App, shown: usize, theme: &Theme) -> Line<'a> {
    let count = match model.tracks.len() {
        1 => "1 limiter".to_owned(),
        count if shown < count => format!("{shown} of {count} limiters"),
        count => format!("{count} limiters"),
    };
    let mut parts = vec![
        Span::styled("shmlimit top", theme.bold()),
        Span::raw(format!("  {count} by {}  every {}", app.sort.as_str(), format_remaining(app.every))),
    ];
    if app.paused {
        parts.push(Span::styled("  PAUSED", theme.severity(Severity::Slow).add_modifier(Modifier::BOLD)));
    }
    if app.typing || !app.filter.is_empty() {
        let cursor = if app.typing { "_" } else { "" };
        parts.push(Span::styled(format!("  /{}{cursor}", app.filter), theme.bold()));
    }
    if let Some(error) = &model.error {
        parts.push(Span::styled(format!("  {error}"), theme.severity(Severity::Blocked)));
    }
    Line::from(parts)
}

fn nothing(model: &Model, app: &App) -> String {
    match model.tracks.is_empty() {
        true => {
            "\n  No limiters yet. New limiters appear here.\n  Try in another terminal:\n\n    shmlimit run tmdb -- \
             sleep 10"
                .to_owned()
        }
        false => format!("\n  No limiter has {:?} in its name; Esc shows all.", app.filter),
    }
}

/// Fits the longest state, `all in flight`.
const STATE: u16 = 13;
/// Columns for names on a wide screen.
const NAME: usize = 18;

fn write_list(
    frame: &mut Frame,
    area: Rect,
    (model, order, line): (&Model, &[&str], Option<usize>),
    app: &mut App,
    theme: &Theme,
) {
    let wide = area.width >= 70;
    let cells = if area.width >= 100 { 16 } else { 6 };
    // On a wide screen the numbers stay close to their names.
    let others = cells as u16 + 12 + STATE + if wide { 6 + 4 + 7 + 8 + 4 + 7 } else { 2 };
    let longest = order.iter().map(|name| name.chars().count() + 2).max().unwrap_or(0).max(NAME);
    let name = area.width.saturating_sub(others).clamp(12, u16::try_from(longest).unwrap_or(u16::MAX));
    let rows = order.iter().enumerate().map(|(i, limiter)| {
        let shape = Shape { wide, cells, selected: line == Some(i), name };
        row(limiter, &model.tracks[*limiter], &shape, theme)
    });
    let right = |text: &'static str| Cell::from(Line::from(text).right_aligned());
    let mut heading =
        vec![Cell::from(" LIMITER"), Cell::from("STATE"), Cell::from("BUDGET LEFT"), right("FLIGHT")];
    let mut widths = vec![
        Constraint::Length(name),
        Constraint::Length(STATE),
        Constraint::Length(cells as u16 + 12),
        Constraint::Length(6),
    ];
    heading.extend([right("WAIT"), right("GRANT/s")]);
    widths.extend([Constraint::Length(4), Constraint::Length(7)]);
    if wide {
        heading.extend([right("REFUSE/s"), right("ERR")]);
        widths.extend([Constraint::Length(8), Constraint::Length(4)]);
    } else {
        // The other half shows the rest.
        heading.truncate(3);
        widths.truncate(3);
    }
    let focused = app.focus == Pane::Limiters;
    let table = Table::new(rows, widths)
        .header(Row::new(heading).style(theme.heading(focused)))
        .row_highlight_style(theme.bold())
        .column_spacing(1);
    let room = usize::from(area.height.saturating_sub(1));
    // One line is reserved for the mark that rows are hidden.
    let page = if order.len() > room { room.saturating_sub(1) } else { room };
    if focused {
        app.page = page;
    }
    let rows_area = Rect { height: page as u16 + 1, ..area };
    let mut state = TableState::new().with_selected(line);
    frame.render_stateful_widget(table, rows_area, &mut state);
    let offset = state.offset();
    let hidden = Hidden { above: offset, below: order.len().saturating_sub(offset + page) };
    let unseen = order.iter().enumerate().filter(|(i, _)| *i < offset || *i >= offset + page);
    let blocked = unseen.filter(|(_, name)| model.tracks[**name].verdict().1 == Severity::Blocked).count();
    let note = if blocked > 0 { format!(" ({blocked} blocked)") } else { String::new() };
    fit::mark(frame, area, hidden, &note, theme);
}

/// The layout of a line of the list.
struct Shape {
    wide: bool,
    cells: usize,
    selected: bool,
    /// Width of the name.
    name: u16,
}

fn row<'a>(name: &str, track: &Track, shape: &Shape, theme: &Theme) -> Row<'a> {
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let (word, severity) = track.verdict();
    // Bars and states keep their colours in the selected line, because users look for them there.
    let mark = if shape.selected { ">" } else { " " };
    let style = if shape.selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let name = fit::text(&format!("{mark}{}", printable(name)), shape.name, theme);
    let name = Cell::from(name).style(style);
    // The column is too narrow for "paused by Retry-After".
    let word = word.strip_prefix("paused by ").unwrap_or(word);
    let mut row = vec![name, Cell::from(Span::styled(word, theme.severity(severity)))];
    let Some(seen) = track.seen.as_ref().filter(|_| track.error.is_none()) else { return Row::new(row) };
    // Show the rule with the smallest share left, because it refuses first.
    let left = |rule: &&shmlimit::RuleSnapshot| rule.remaining as f64 / rule.capacity.max(1) as f64;
    let tightest = seen.rules.iter().min_by(|a, b| left(a).total_cmp(&left(b)));
    row.push(match tightest {
        None => Cell::from(""),
        Some(rule) => Cell::from(Line::from(vec![
            Span::styled(
                theme.screen.bar(rule.remaining, rule.capacity, shape.cells),
                theme.level(left(&rule)),
            ),
            Span::raw(format!(" {}/{}", short(rule.remaining), short(rule.capacity))),
        ])),
    });
    if !shape.wide {
        return Row::new(row);
    }
    let most = seen.condition.concurrency_now.map_or(String::new(), |most| format!("/{most}"));
    let rate = track.rate();
    row.push(right(format!("{}{most}", seen.in_flight)));
    row.push(right(blank(seen.queue.len() as f64, |_| seen.queue.len().to_string())));
    row.push(right(blank(rate.grants, per_second)));
    row.push(right(blank(rate.refusals, per_second)));
    row.push(right(blank(rate.errors, |ratio| format!("{:.0}%", ratio * 100.0))));
    Row::new(row)
}

/// A dash for zero.
fn blank(number: f64, text: impl Fn(f64) -> String) -> String {
    if number > 0.0 { text(number) } else { "-".to_owned() }
}

fn keys<'a>(app: &App, width: u16, theme: &Theme) -> Line<'a> {
    let keys = match app.typing {
        true => "type a part of the name  Enter done  Esc all",
        false if width < 80 => "q quit  ? help  j/k select  Tab pane",
        false => "q quit  ? help  j/k select  Tab pane  s sort  t trouble  f fold  / filter",
    };
    Line::styled(keys, theme.dim())
}

const HELP: [&str; 18] = [
    "up, down, j, k     select a limiter, or scroll the pane",
    "PgUp, PgDn         the same by pages",
    "Home, End          the first, the last",
    "Tab, Shift-Tab     limiters, processes, waiting calls",
    "Enter              to the processes and back",
    "s                  limiters by name, trouble, grants, refusals, waiting",
    "t                  processes by share, or those in trouble first",
    "f                  fold equal programs into one line (curl x12), or not",
    "/                  only names with this in them; Esc: all",
    "p, space           pause this screen, and continue",
    "1 to 9, +, -       seconds between two updates",
    "Ctrl-Z             to the shell; fg comes back",
    "q, Esc, Ctrl-C     quit",
    "",
    "Trouble: late (did not check in time), refused, waiting. HOLDS: calls",
    "in flight. Rates are of the last update, those of processes and",
    "shares of the last five. top changes nothing.",
    "Columns: docs/operators.md.",
];

fn write_help(frame: &mut Frame, area: Rect, theme: &Theme) {
    let (width, height) = (76.min(area.width), (HELP.len() as u16 + 2).min(area.height));
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    let text: Vec<Line> = HELP.iter().map(|line| Line::from(format!(" {line}"))).collect();
    let mut block = Block::bordered().title(" keys ").title_bottom(" any key closes ");
    if !theme.screen.blocks {
        block = block.border_set(ASCII);
    }
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(block), area);
}

const ASCII: ratatui::symbols::border::Set = ratatui::symbols::border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

#[cfg(test)]
mod tests;
