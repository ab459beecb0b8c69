//! Writes to standard output and standard error. A reader that goes away is not a failure; colours are for terminals.

use crate::platform;
use crate::ui::json::Json;
use crate::ui::{escape, suggestion};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static SILENCED: AtomicBool = AtomicBool::new(false);

/// Turns remarks off: exit codes say it all.
pub fn silence_remarks() {
    SILENCED.store(true, Ordering::Relaxed);
}

/// Writes one line or more.
pub fn line(line: &str) -> io::Result<()> {
    text(&format!("{line}\n"))
}

/// Writes one line of JSON. What it can hold, verb by verb: docs/json.md.
pub fn json(object: &Json) -> io::Result<()> {
    line(&to_json(object)?)
}

/// An object as one line of JSON that is safe to show.
pub fn to_json(object: &Json) -> io::Result<String> {
    Ok(escape::json(serde_json::to_string(object).map_err(io::Error::from)?))
}

/// Writes text, whole. What would act on a terminal is written so that it can be read; colours are for terminals.
pub fn text(text: &str) -> io::Result<()> {
    let is_terminal = io::stdout().is_terminal();
    raw(&if is_terminal { escape::painted(text) } else { escape::lines(text) })
}

/// Writes text as it is, for callers that move the cursor. Untrusted text must be escaped before.
pub fn raw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says something on standard error that changes nothing; a standard error that is closed does not either.
pub fn remark(text: &str) {
    if !SILENCED.load(Ordering::Relaxed) {
        remark_always(text);
    }
}

/// The same even where nothing is to be remarked: it tells of a change for every program.
pub fn remark_always(text: &str) {
    let message = format!("shmlimit: {}\n", escape::lines(&suggestion::with_directory(text)));
    // In one write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(message.as_bytes());
}

/// Prints the answer of the argument parser: help, or a usage error. Help for a pager that was quit is not a
/// failure.
pub fn clap(answer: &clap::Error) {
    if !answer.use_stderr() {
        let _ = answer.print();
        return;
    }
    let coloured = io::stderr().is_terminal() && wants_colours() && platform::supports_escapes();
    let rendered = match coloured {
        true => answer.render().ansi().to_string(),
        false => answer.render().to_string(),
    };
    // All messages of the tool have the same prefix, and the words of its documents.
    let text = rendered
        .replacen("error:", "shmlimit:", 1)
        .replacen("unrecognized subcommand", "no verb", 1)
        .replacen("a similar subcommand exists", "a similar verb exists", 1);
    let text = if coloured { escape::painted(&text) } else { escape::lines(&text) };
    // In one write, as remarks are.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the user has not turned colours off (`NO_COLOR`).
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// As standard output and the user want it (`NO_COLOR`).
    pub fn for_stdout() -> Paint {
        Paint { on: wants_colours() && io::stdout().is_terminal() && platform::supports_escapes() }
    }

    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Paint = Paint { on: false };

    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Green, yellow or red: plenty, little or nothing left.
    pub fn level(self, left: f64, text: &str) -> String {
        self.wrap(
            if left <= 0.0 {
                "31"
            } else if left < 0.25 {
                "33"
            } else {
                "32"
            },
            text,
        )
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paint_writes_no_escape_sequence() {
        assert_eq!(Paint::PLAIN.bold("x"), "x");
    }
}
