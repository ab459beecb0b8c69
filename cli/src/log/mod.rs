//! The log: writes the `tracing` events of the library as lines to standard error or to a file of bounded size (R114,
//! R115, R117). Nothing is set up unless the user asks for a log.

mod file;
mod line;

use crate::platform;
use crate::ui::failure::Failure;
use crate::ui::output;
use file::Bounded;
use line::Line;
use shmlimit::config;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The help heading that separates these options from those of a verb.
const LOG: &str = "Log";
const DEFAULT_SIZE: u64 = 10_000_000;
/// The minimum size of a log file in bytes: a few lines.
const SMALLEST: u64 = 1000;
const DEFAULT_KEEP: u32 = 3;

/// The options of the log: its file, format and level.
#[derive(Debug, Default, clap::Args)]
pub struct Log {
    /// Write a line for each change of state, backoff and similar event to this file; - for standard error [default:
    /// $SHMLIMIT_LOG, or no log]
    #[arg(long, global = true, value_name = "FILE", help_heading = LOG)]
    pub log: Option<PathBuf>,
    /// logfmt or json [default: $SHMLIMIT_LOG_FORMAT, or logfmt]
    #[arg(long, global = true, hide_short_help = true, value_parser = format, value_name = "FORMAT", help_heading = LOG)]
    pub log_format: Option<Format>,
    /// Lowest level to log: error, warn, info or debug. debug includes every refusal [default: $SHMLIMIT_LOG_LEVEL,
    /// or info]
    #[arg(long, global = true, hide_short_help = true, value_parser = level, value_name = "LEVEL", help_heading = LOG)]
    pub log_level: Option<LevelFilter>,
    /// Start a new file before this one grows larger than this, such as 500kB or 10MB [default: $SHMLIMIT_LOG_SIZE,
    /// or 10MB]
    #[arg(long, global = true, hide_short_help = true, value_parser = size, value_name = "SIZE", help_heading = LOG)]
    pub log_size: Option<u64>,
    /// Number of full files to keep besides the current one; FILE.1 is the newest of them [default:
    /// $SHMLIMIT_LOG_KEEP, or 3]
    #[arg(long, global = true, hide_short_help = true, value_parser = keep, value_name = "NUMBER", help_heading = LOG)]
    pub log_keep: Option<u32>,
}

/// The format of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Logfmt,
    Json,
}

impl Log {
    /// Starts the log, if one is requested.
    pub fn begin(&self) -> Result<(), Failure> {
        let Some(path) = self.log.clone().or_else(|| variable("SHMLIMIT_LOG").map(PathBuf::from)) else {
            return Ok(());
        };
        // A bad path in a variable must not stop the command. It is reported when the first line is written.
        if self.log.is_some() && platform::is_link(&path) {
            return Err(Failure::Usage(format!(
                "cannot write the log {}: {}",
                path.display(),
                platform::LINK_REFUSED
            )));
        }
        let format = self.log_format.or_else(|| said("SHMLIMIT_LOG_FORMAT", format)).unwrap_or_default();
        let level = self.log_level.or_else(|| said("SHMLIMIT_LOG_LEVEL", level)).unwrap_or(LevelFilter::INFO);
        let size = self.log_size.or_else(|| said("SHMLIMIT_LOG_SIZE", size)).unwrap_or(DEFAULT_SIZE);
        let keep = self.log_keep.or_else(|| said("SHMLIMIT_LOG_KEEP", keep)).unwrap_or(DEFAULT_KEEP);
        let sink = if path == Path::new("-") {
            Sink::StandardError
        } else {
            Sink::File(Bounded::new(path, size, keep))
        };
        // This fails only if there is a subscriber already.
        let _ = tracing::subscriber::set_global_default(Writer { format, level, sink: Mutex::new(sink) });
        Ok(())
    }
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Parses the value of a variable. An invalid value must not stop the command, so it is only reported.
fn said<T>(name: &str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
    let value = variable(name)?;
    match parse(&value.to_string_lossy()) {
        Ok(value) => Some(value),
        Err(problem) => {
            output::remark(&format!("note: ${name} is not used: {problem}"));
            None
        }
    }
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "logfmt" => Ok(Format::Logfmt),
        "json" => Ok(Format::Json),
        _ => Err("must be logfmt or json".to_owned()),
    }
}

fn level(text: &str) -> Result<LevelFilter, String> {
    match text.to_ascii_lowercase().as_str() {
        "error" => Ok(LevelFilter::ERROR),
        "warn" | "warning" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        _ => Err("must be error, warn, info or debug".to_owned()),
    }
}

/// Parses the size of a log file, such as `500kB`. The case of the unit does not matter.
fn size(text: &str) -> Result<u64, String> {
    let size = config::amount(&text.to_ascii_uppercase().replace('I', "i"))
        .map_err(|_| "must be a size such as 500kB, 10MB or 1GiB".to_owned())?;
    if size < SMALLEST { Err(format!("must be at least {SMALLEST} bytes")) } else { Ok(size) }
}

fn keep(text: &str) -> Result<u32, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|n| *n <= 1000)
        .ok_or_else(|| "must be a number from 0 to 1000".to_owned())
}

/// Receives the events of the library.
struct Writer {
    format: Format,
    level: LevelFilter,
    sink: Mutex<Sink>,
}

enum Sink {
    StandardError,
    File(Bounded),
    /// The log could not be written, which was reported once.
    Nowhere,
}

impl Writer {
    fn is_wanted(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && metadata.target() == "shmlimit" && *metadata.level() <= self.level
    }
}

impl Subscriber for Writer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.is_wanted(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.is_wanted(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new(*event.metadata().level());
        event.record(&mut line);
        let text = line.write(self.format);
        let Ok(mut sink) = self.sink.lock() else { return };
        let written = match &mut *sink {
            // A single write, so that lines of several processes do not mix. A closed standard error is not a
            // failure.
            Sink::StandardError => {
                let _ = std::io::stderr().write_all(text.as_bytes());
                Ok(())
            }
            Sink::File(file) => file.append(text.as_bytes()),
            Sink::Nowhere => Ok(()),
        };
        if let (Err(error), Sink::File(file)) = (written, &*sink) {
            let path = file.path().display().to_string();
            output::remark(&format!("note: cannot write the log {path}: {error}; no more lines are logged"));
            *sink = Sink::Nowhere;
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("10MB", 10_000_000),
            ("10 mb", 10_000_000),
            ("1.5MB", 1_500_000),
            ("64KiB", 65_536),
            ("64ki", 65_536),
            ("1G", 1_000_000_000),
            ("1g", 1_000_000_000),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "-1", "10 parsecs", "999", "99999999999999999999", "99999999999999GB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
