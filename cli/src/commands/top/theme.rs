//! Styles and number formats that all parts of the screen share.

use crate::ui::layout::ScreenStyle;
use crate::ui::limiter::severity::Severity;
use ratatui::style::{Color, Modifier, Style};

/// The styles. Colours and block characters are used only if the user wants them and the terminal can show them.
pub struct Theme {
    pub screen: ScreenStyle,
    pub(super) colours: bool,
}

impl Theme {
    pub fn for_stdout(blocks: bool) -> Theme {
        let screen = ScreenStyle { blocks, ..ScreenStyle::for_stdout() };
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Theme { screen, colours: !unwanted }
    }

    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn colour(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub fn severity(&self, severity: Severity) -> Style {
        match severity {
            Severity::Normal => self.colour(Color::Green),
            Severity::Slow => self.colour(Color::Yellow),
            Severity::Blocked => self.colour(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// Returns the style for plenty, little or nothing left.
    pub fn level(&self, left: f64) -> Style {
        self.severity(if left <= 0.0 {
            Severity::Blocked
        } else if left < 0.25 {
            Severity::Slow
        } else {
            Severity::Normal
        })
    }

    /// Returns the style of a heading, with or without the focus of the keys.
    pub fn heading(&self, focused: bool) -> Style {
        if focused { self.bold().add_modifier(Modifier::UNDERLINED) } else { self.dim() }
    }
}

/// Formats a large number in few characters.
pub fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

pub fn per_second(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { short(rate as u64) }
}
