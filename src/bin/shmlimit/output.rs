//! What is said: a reader that goes away is not a failure, colours are for terminals.

use crate::failure::Failure;
use crate::platform;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static HUSHED: AtomicBool = AtomicBool::new(false);

/// From here on nothing is remarked: exit codes say it all.
pub fn hush() {
    HUSHED.store(true, Ordering::Relaxed);
}

/// Writes one line or more.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Writes one line of JSON. What it can hold, verb by verb: docs/json.md.
pub fn json(object: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string(object).map_err(io::Error::from)?)
}

/// A time as the keys in `_ns` have it.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Writes text as it is, whole.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Says something on standard error that changes nothing; a standard error that is closed does not either.
pub fn remark(text: &str) {
    if !HUSHED.load(Ordering::Relaxed) {
        let _ = writeln!(io::stderr(), "shmlimit: {text}");
    }
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// As standard output and the user want it (`NO_COLOR`).
    pub fn for_stdout() -> Paint {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { on: !unwanted && io::stdout().is_terminal() && platform::understands_escapes() }
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
