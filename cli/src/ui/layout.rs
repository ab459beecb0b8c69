//! Formats rows of a label and its text, wrapped to the width of the screen.

use crate::platform;
use crate::ui::output::Paint;
use std::io::IsTerminal;

/// The width if it is unknown, which is also that of most terminals.
const USUAL: usize = 80;
const LEFT: usize = 2;
const GAP: usize = 2;

/// Text whose meaning is shown by colours.
pub enum Part {
    Plain(String),
    Dim(String),
    /// The remaining part, from 0 to 1.
    Level(f64, String),
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Part::Plain(text) | Part::Dim(text) | Part::Level(_, text) => text,
        }
    }

    fn painted(&self, text: &str, paint: Paint) -> String {
        match self {
            Part::Plain(_) => text.to_owned(),
            Part::Dim(_) => paint.dim(text),
            Part::Level(left, _) => paint.level(*left, text),
        }
    }
}

/// The width of the screen, and what it can show.
#[derive(Clone, Copy)]
pub struct ScreenStyle {
    pub width: usize,
    pub paint: Paint,
    /// Whether the terminal can show block characters.
    pub blocks: bool,
    /// Whether longer lines are cut. Lines in a file may have any length.
    pub cuts: bool,
}

impl ScreenStyle {
    /// Returns the style of standard output.
    pub fn for_stdout() -> ScreenStyle {
        let paint = Paint::for_stdout();
        match std::io::stdout().is_terminal() {
            true => ScreenStyle {
                width: terminal_size().0,
                paint,
                blocks: platform::supports_unicode(),
                cuts: true,
            },
            false => ScreenStyle { width: USUAL, paint, blocks: true, cuts: false },
        }
    }

    /// Draws a part of `whole` as a bar of the given number of cells. It rounds up, so an empty bar always means
    /// zero.
    pub fn bar(&self, part: u64, whole: u64, cells: usize) -> String {
        let filled = (u128::from(part) * cells as u128).div_ceil(u128::from(whole.max(1)));
        let filled = filled.min(cells as u128) as usize;
        let (full, empty) = if self.blocks { ("█", "░") } else { ("#", ".") };
        format!("{}{}", full.repeat(filled), empty.repeat(cells - filled))
    }

    /// Replaces characters that the terminal cannot show.
    pub fn spelled(&self, text: String) -> String {
        if self.blocks { text } else { text.replace('×', "x").replace('…', "...") }
    }

    /// The number of cells of a bar, if there is enough room.
    pub fn cells(&self) -> usize {
        match self.width {
            0..50 => 0,
            50..70 => 10,
            70..100 => 16,
            _ => 20,
        }
    }

    /// Cuts a line to the width of the screen.
    pub fn cut(&self, line: &str) -> String {
        if !self.cuts {
            return line.to_owned();
        }
        line.chars().take(self.width.max(1)).collect()
    }
}

/// Returns the columns and lines of the terminal on standard output.
pub fn terminal_size() -> (usize, usize) {
    match ratatui::crossterm::terminal::window_size() {
        Ok(size) if size.columns > 0 && size.rows > 0 => (size.columns.into(), size.rows.into()),
        _ => (USUAL, 24),
    }
}

/// Writes `parts` after a label, separated by two spaces, on as many lines as they need.
pub fn write_row(out: &mut String, screen: ScreenStyle, label: (&str, usize), parts: &[Part]) {
    let (label, width) = label;
    let start = LEFT + width + GAP;
    // On a screen that is too narrow, the terminal may wrap lines anywhere.
    let room = screen.width.saturating_sub(start).max(24);
    let mut line = format!("{:LEFT$}{label:width$}{:GAP$}", "", "");
    let mut used = 0;
    for part in parts {
        for (i, piece) in wrap(part.text(), room).enumerate() {
            let length = piece.chars().count();
            let breaks = i > 0 || (used > 0 && used + GAP + length > room);
            if breaks {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(start);
                used = 0;
            }
            if used > 0 {
                line.push_str("  ");
                used += GAP;
            }
            line.push_str(&part.painted(&piece, screen.paint));
            used += length;
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Splits a text into pieces of whole words, each at most `room` long unless a single word is longer.
pub fn wrap(text: &str, room: usize) -> impl Iterator<Item = String> {
    let mut pieces = vec![String::new()];
    for word in text.split(' ') {
        let last = pieces.last_mut().expect("there is always one");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= room {
            last.push(' ');
            last.push_str(word);
        } else {
            pieces.push(word.to_owned());
        }
    }
    pieces.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: usize) -> ScreenStyle {
        ScreenStyle { width, paint: Paint::PLAIN, blocks: true, cuts: true }
    }

    #[test]
    fn overflowing_parts_continue_on_the_next_line_under_the_first_part() {
        let mut out = String::new();
        let parts = [Part::Plain("a".repeat(20)), Part::Dim("b c".to_owned()), Part::Dim("d".repeat(9))];
        write_row(&mut out, screen(40), ("label", 9), &parts);
        assert_eq!(out, format!("  label      {}  b c\n             {}\n", "a".repeat(20), "d".repeat(9)));
    }

    #[test]
    fn long_texts_break_between_words() {
        let mut out = String::new();
        write_row(
            &mut out,
            screen(30),
            ("x", 1),
            &[Part::Plain("one two three four five six seven".to_owned())],
        );
        assert_eq!(out, "  x  one two three four five\n     six seven\n");
        assert!(out.lines().all(|line| line.len() <= 30));
    }

    #[test]
    fn empty_bar_always_means_zero() {
        assert_eq!(screen(80).bar(0, 1000, 4), "░░░░");
        assert_eq!(screen(80).bar(1, 1000, 4), "█░░░");
        assert_eq!(screen(80).bar(2000, 1000, 4), "████");
        assert_eq!(screen(80).bar(1, 0, 2), "██");
        assert_eq!(ScreenStyle { blocks: false, ..screen(80) }.bar(1, 2, 4), "##..");
    }
}
