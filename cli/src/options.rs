//! Options that several verbs share, the parsers of their values, and the environment variables of the tool.

use crate::platform::texts;
use crate::ui::escape;
use crate::ui::failure::REFUSED;
use crate::ui::limiter::refusal::Needs;
use shmlimit::config;
use shmlimit::{Priority, UnknownName};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

fn dir_help() -> String {
    let defaults = texts::DEFAULT_DIRECTORIES;
    format!(
        "Directory of the limiters [default: the first of these that is set or can be used: $SHMLIMIT_DIR, \
         $ANIVAULT_DIR, {defaults}]"
    )
}

/// The help heading that separates the options of every verb from those of a single verb.
const WHERE: &str = "Directory";

/// Directory of the limiters.
#[derive(Debug, clap::Args)]
pub struct Location {
    #[arg(long, global = true, value_name = "DIR", help_heading = WHERE, help = dir_help())]
    pub dir: Option<PathBuf>,
    /// Allow a directory on a network file system, where shared memory may not work
    #[arg(long, global = true, help_heading = WHERE)]
    pub allow_network_fs: bool,
}

/// Options of one request for calls.
#[derive(Debug, clap::Args)]
pub struct RequestOptions {
    /// Cost of the call: a number of requests, or UNIT=NUMBER; may be repeated
    #[arg(long, value_parser = parse_cost, allow_hyphen_values = true, value_name = "COST")]
    pub cost: Vec<(String, u64)>,
    /// Priority of the call: background, user or webhook. Webhook calls go first, then user calls, then background
    /// calls. Background calls cannot use the reserve of a rule
    #[arg(long, value_parser = parse_priority, default_value = "background", value_name = "WHO")]
    pub priority: Priority,
    /// Calls with the same group take turns as if one process made them [default: $SHMLIMIT_GROUP, or one group for
    /// this terminal session]
    #[arg(long, value_parser = parse_group, value_name = "NAME")]
    pub group: Option<String>,
    /// Exit code of a refusal, from 0 to 255, for commands that use 75 themselves. With 0, only the message shows
    /// that a call was refused. A cost that can never be allowed exits with 2 in any case
    #[arg(short = 'E', long = "conflict-exit-code", default_value_t = REFUSED, value_parser = parse_exit_code, allow_hyphen_values = true, value_name = "NUMBER")]
    pub refused: u8,
}

impl RequestOptions {
    /// Returns what the call needs, for messages.
    pub fn needs(&self) -> Needs<'_> {
        Needs { costs: &self.cost, priority: self.priority }
    }
}

/// Parses a duration. A bare number is minutes (R111).
pub fn parse_minutes(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if is_bare_number(text) { parse_duration(&format!("{text}m")) } else { parse_duration(text) }
}

/// Returns whether the text is a number without a unit.
pub fn is_bare_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    config::duration(text)
}

fn parse_cost(text: &str) -> Result<(String, u64), String> {
    let (unit, amount) = text.split_once('=').unwrap_or(("requests", text));
    let amount =
        config::amount(amount).map_err(|problem| format!("{problem}; or UNIT=NUMBER such as tokens=900"))?;
    Ok((unit.to_owned(), amount))
}

fn parse_exit_code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "must be an exit code, from 0 to 255".to_owned())
}

pub fn parse_priority(text: &str) -> Result<Priority, String> {
    parse_name(text)
}

/// Parses one of the names of an enum.
pub fn parse_name<T: FromStr<Err = UnknownName>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: UnknownName| must_be_one_of(text, error.allowed()))
}

/// Returns the error for a value that is not one of `words`, with the most similar word.
pub fn must_be_one_of(text: &str, words: &[&str]) -> String {
    let all = match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.join(""),
    };
    match config::nearest(&text.to_lowercase(), words.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? It must be {all}"),
        None => format!("must be {all}"),
    }
}

fn parse_group(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.chars().any(escape::is_unsafe) => {
            Err("must not have characters that control a terminal or the direction of text".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// The maximum size of a configuration in bytes. The limit is needed because a device or a pipe may never end.
const LONGEST_CONFIG: u64 = 1 << 20;

/// Reads a configuration file.
pub fn read_config(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST_CONFIG + 1).read_to_string(&mut text)?;
    match read as u64 > LONGEST_CONFIG {
        true => Err(io::Error::other("it is longer than 1 MiB, the maximum for a configuration file")),
        false => Ok(text),
    }
}

/// Names the limiter, for the command of `run` and the programs that it starts.
pub const ENV_LIMITER: &str = "SHMLIMIT_LIMITER";
/// The number of the attempt, from 1. It is set only if there may be several.
pub const ENV_ATTEMPT: &str = "SHMLIMIT_ATTEMPT";
/// The address of the pipe through which `record` reaches the surrounding `run`, in the platform's form.
pub const ENV_RUN: &str = "SHMLIMIT_RUN";
/// The directory of the limiters.
pub const ENV_DIRECTORY: &str = "SHMLIMIT_DIR";
/// The name under which calls take turns as one process.
pub const ENV_GROUP: &str = "SHMLIMIT_GROUP";

/// The variables that are not settings of a limiter, with their meaning, for the manual and the doctor. A test of the
/// doctor searches the source for others.
pub const VARIABLES: [(&str, &str); 12] = [
    ("SHMLIMIT_DIR", "Directory of the limiters."),
    ("ANIVAULT_DIR", "Directory of the limiters if SHMLIMIT_DIR is not set."),
    ("SHMLIMIT_GROUP", "Calls with the same group take turns as if one process made them."),
    (
        "SHMLIMIT_LIMITER",
        "Set by run for its command: the name of the limiter. record uses it if no name is given.",
    ),
    ("SHMLIMIT_ATTEMPT", "Set by run for its command: the number of the attempt, from 1."),
    ("SHMLIMIT_RUN", "Set by run for its command, so that record can tell it how the call ended."),
    ("SHMLIMIT_LOG", "File of the log, as with \\-\\-log."),
    ("SHMLIMIT_LOG_FORMAT", "logfmt or json."),
    ("SHMLIMIT_LOG_LEVEL", "error, warn, info or debug."),
    ("SHMLIMIT_LOG_SIZE", "Size at which a new log file is started, such as 10MB."),
    ("SHMLIMIT_LOG_KEEP", "Number of older log files that are kept."),
    ("NO_COLOR", "No colours."),
];
