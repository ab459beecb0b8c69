//! Fits text and tables into the screen, and marks what is cut.

use super::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

/// The number of hidden rows above and below those that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    pub above: usize,
    pub below: usize,
}

impl Hidden {
    /// Returns `… 12 more`, or the numbers above and below if some are above.
    fn to_text(self) -> String {
        match (self.above, self.below) {
            (0, below) => format!("… {below} more"),
            (above, 0) => format!("… {above} above"),
            (above, below) => format!("… {above} above, {below} below"),
        }
    }
}

/// Writes on the last line of an area how many rows are hidden, if any.
pub fn mark(frame: &mut Frame, area: Rect, hidden: Hidden, note: &str, theme: &Theme) {
    if (hidden.above, hidden.below) == (0, 0) || area.height == 0 {
        return;
    }
    let last = Rect { y: area.bottom() - 1, height: 1, ..area };
    let text = theme.screen.spelled(format!(" {}{note}", hidden.to_text()));
    frame.render_widget(Clear, last);
    frame.render_widget(Line::styled(text, theme.dim()), last);
}

fn mark_of(theme: &Theme) -> &'static str {
    if theme.screen.blocks { "…" } else { "~" }
}

/// Cuts text to this many cells, and marks the cut at its end.
pub fn text(text: &str, width: u16, theme: &Theme) -> String {
    let line = line(Line::from(text.to_owned()), width, theme);
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

/// Cuts a line to this many cells, and marks the cut at its end.
pub fn line<'a>(line: Line<'a>, width: u16, theme: &Theme) -> Line<'a> {
    if line.width() <= usize::from(width) {
        return line;
    }
    let mut room = usize::from(width).saturating_sub(1);
    let mut spans = Vec::new();
    for span in line.spans {
        let mut kept = String::new();
        for c in span.content.chars() {
            let cells = Span::raw(c.to_string()).width();
            if cells > room {
                spans.push(Span::styled(kept, span.style));
                spans.push(Span::styled(mark_of(theme), theme.dim()));
                return Line::from(spans);
            }
            room -= cells;
            kept.push(c);
        }
        spans.push(Span::styled(kept, span.style));
    }
    Line::from(spans)
}
