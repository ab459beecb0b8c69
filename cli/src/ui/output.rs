//! Writes to standard output and standard error. A closed output is not a failure, and only terminals get colours.

use crate::platform;
use crate::ui::json::Json;
use crate::ui::{escape, suggestion};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static SILENCED: AtomicBool = AtomicBool::new(false);

/// Turns remarks off. Then only the exit code reports the result.
pub fn silence_remarks() {
    SILENCED.store(true, Ordering::Relaxed);
}

/// Writes one or more lines.
pub fn line(line: &str) -> io::Result<()> {
    text(&format!("{line}\n"))
}

/// Writes one line of JSON. The objects of each verb: docs/json.md.
pub fn json(object: &Json) -> io::Result<()> {
    line(&to_json(object)?)
}

/// Converts an object to one line of JSON that is safe to show.
pub fn to_json(object: &Json) -> io::Result<String> {
    Ok(escape::json(serde_json::to_string(object).map_err(io::Error::from)?))
}

/// Writes all of a text. Characters that would control a terminal are escaped, and only terminals get colours.
pub fn text(text: &str) -> io::Result<()> {
    let is_terminal = io::stdout().is_terminal();
    raw(&if is_terminal { escape::painted(text) } else { escape::lines(text) })
}

/// Writes text unchanged, for callers that move the cursor. They must escape untrusted text first.
pub fn raw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a remark to standard error. A remark does not change the result, and neither does a closed standard error.
pub fn remark(text: &str) {
    if !SILENCED.load(Ordering::Relaxed) {
        remark_always(text);
    }
}

/// Writes a remark even if remarks are turned off, because it reports a change for every program.
pub fn remark_always(text: &str) {
    let message = format!("shmlimit: {}\n", escape::lines(&suggestion::with_directory(text)));
    // A single write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(message.as_bytes());
}

/// Prints help or a usage error of the argument parser. It is not a failure if the user quits the pager that reads
/// the help.
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
    // All messages of the tool have the same prefix and use the words of its documents.
    let text = rendered
        .replacen("error:", "shmlimit:", 1)
        .replacen("unrecognized subcommand", "no verb", 1)
        .replacen("a similar subcommand exists", "a similar verb exists", 1);
    let text = if coloured { escape::painted(&text) } else { escape::lines(&text) };
    // A single write, as for remarks.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Returns whether the user allows colours (`NO_COLOR`).
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Adds colours to text, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Uses colours if standard output is a terminal that supports them and the user allows them (`NO_COLOR`).
    pub fn for_stdout() -> Paint {
        Paint { on: wants_colours() && io::stdout().is_terminal() && platform::supports_escapes() }
    }

    /// Without colours.
    #[cfg(test)]
    pub const PLAIN: Paint = Paint { on: false };

    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Returns the text in green, yellow or red: plenty, little or nothing left.
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
