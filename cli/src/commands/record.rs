//! `record`: tells the limiter how a call ended, for callers that hold no grant.

use crate::options::{ENV_ATTEMPT, ENV_LIMITER, Location, parse_duration, parse_priority};
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::{output, time};
use crate::verb_trait::{Command, Example, Names, Tool};
use crate::{open, record_channel};
use clap::ValueEnum;
use shmlimit::config;
use shmlimit::headers::{self, response};
use shmlimit::{Advice, Limiter, NetError, Outcome, OutcomeClass, OutcomeCode, Priority, Transition};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const RECORD_HELP: &str = "With curl; `record` prints how long to wait, and whether to try again:

  shmlimit run tmdb --exit 0=none -- curl -sS -D answer.txt -o movie.json https://api.themoviedb.org/3/movie/11
  shmlimit record tmdb --headers answer.txt

(With --exit 0=none, `run` does not record the call itself.) Inside `shmlimit run`, `record` needs no name, and \
`run` does not record the call again.

Exit codes: 0 recorded, whatever the outcome was; 2 usage or configuration error; 1 any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = RECORD_HELP)]
pub struct Record {
    /// The limiter [default: $SHMLIMIT_LIMITER, which `run` sets for its command]
    pub name: Option<String>,
    /// HTTP status of the response
    #[arg(long, value_parser = status, value_name = "CODE", conflicts_with = "error")]
    pub status: Option<u16>,
    /// Why there was no response: connect_timeout, read_timeout, dns or connection
    #[arg(long, value_parser = net_error, value_name = "KIND")]
    pub error: Option<NetError>,
    /// Response headers as `curl -D FILE` writes them, with the status line; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "error")]
    pub headers: Option<PathBuf>,
    /// One response header, as 'Name: value'; may be repeated
    #[arg(long, value_parser = header, value_name = "HEADER", conflicts_with = "error")]
    pub header: Vec<(String, String)>,
    /// How long the server asks clients to wait: seconds, a time such as 1m30s, or a date as in a Retry-After header.
    /// Used only with a 429 or 5xx
    #[arg(long, value_parser = retry_after, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "error")]
    pub retry_after: Option<String>,
    /// How long the call took, such as 120ms
    #[arg(long, value_parser = parse_duration, allow_hyphen_values = true, value_name = "TIME")]
    pub latency: Option<Duration>,
    /// Number of the attempt, from 1 [default: $SHMLIMIT_ATTEMPT inside `run --retries`, else counted from the
    /// failures in a row]
    #[arg(long, value_parser = attempt, value_name = "NUMBER")]
    pub attempt: Option<u32>,
    /// Priority of the call; decides how many retries are advised
    #[arg(long, value_parser = parse_priority, default_value = "background", value_name = "WHO")]
    pub priority: Priority,
    /// Count a cache hit or a cache miss. Needs no status, and has no effect on later calls
    #[arg(long, value_enum, value_name = "hit|miss", hide_possible_values = true)]
    pub cache: Option<Cache>,
    /// Print the advice as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print nothing
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

/// No server sends longer headers. The limit is needed because a device or a pipe may never end.
const LONGEST_HEADERS: u64 = 1 << 20;

/// Whether an answer was in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    Hit,
    Miss,
}

impl Cache {
    fn as_str(self) -> &'static str {
        match self {
            Cache::Hit => "hit",
            Cache::Miss => "miss",
        }
    }
}

impl Command for Record {
    const EXAMPLES: &'static [Example] = &[(
        "Report a 429 to all programs that share the limiter:",
        "shmlimit record api --status 429 --retry-after 30",
    )];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let name =
            self.name.clone().or_else(|| std::env::var(ENV_LIMITER).ok().filter(|name| !name.is_empty()));
        let Some(name) = name else {
            let message = "name the limiter: shmlimit record NAME … (or set $SHMLIMIT_LIMITER, as shmlimit run does \
                           for its command)";
            return Err(Failure::Usage(message.to_owned()));
        };
        let text = self.headers.as_deref().map(read).transpose()?.unwrap_or_default();
        let (said, mut headers) = response(&text);
        headers.extend(self.header.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        headers.extend(self.retry_after.iter().map(|value| ("Retry-After", value.as_str())));
        let (outcome, code) = match (self.error, self.status.or(said), self.cache) {
            (Some(error), _, _) => (Outcome::error(error), OutcomeCode::Error(error)),
            (None, Some(status), _) => (Outcome::http(status, &headers), OutcomeCode::Status(status)),
            (None, None, Some(cache)) if headers.is_empty() => {
                return count(tool.location, self, &name, cache);
            }
            (None, None, _) => {
                let message = "say how the call ended: --status CODE, --error KIND, or --headers FILE with a status line";
                return Err(Failure::Usage(message.to_owned()));
            }
        };
        let mut outcome = outcome.priority(self.priority);
        if let Some(attempt) = self.attempt.or_else(|| attempt_of(&name)) {
            outcome = outcome.attempt(attempt);
        }
        if let Some(latency) = self.latency {
            outcome = outcome.latency(latency);
        }
        let limiter = open::as_operator(tool.location, &name)?;
        let recorded = limiter.record(&outcome)?;
        record_channel::send(&limiter, code, &recorded);
        if self.retry_after.is_some() && !self.quiet && !recorded.outcome_class.is_backoff_target() {
            output::remark("note: --retry-after was ignored: it is used only with a 429 or 5xx");
        }
        if let Some(cache) = self.cache {
            limiter.count_cache(cache == Cache::Hit)?;
        }
        let state = limiter.snapshot()?.condition.state_name;
        if self.json {
            let mut line = line(limiter.name(), &recorded, state);
            line.0.extend(self.cache.map(|cache| ("cache".into(), cache.as_str().into())));
            output::json(&line)?;
        } else if !self.quiet {
            output::line(&format!("{}: {}", limiter.name(), to_text(&recorded, state)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns which attempt the surrounding `run` is making, if it makes it for that limiter.
fn attempt_of(name: &str) -> Option<u32> {
    let attempt = std::env::var(ENV_ATTEMPT).ok().filter(|_| record_channel::is_for_call_of(name))?;
    attempt.parse().ok().filter(|attempt| *attempt > 0)
}

/// Counts the answer of a cache. No call was made, so nothing else is recorded.
fn count(location: &Location, args: &Record, name: &str, cache: Cache) -> Result<ExitCode, Failure> {
    let limiter: Limiter = open::as_operator(location, name)?;
    limiter.count_cache(cache == Cache::Hit)?;
    let cache = cache.as_str();
    if args.json {
        output::json(&object! { "cache": cache, "name": limiter.name() })?;
    } else if !args.quiet {
        output::line(&format!("{}: cache {cache} counted", limiter.name()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String, Failure> {
    let cannot = |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(LONGEST_HEADERS).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST_HEADERS).read_to_end(&mut bytes))
    };
    read.map_err(cannot)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn to_text(recorded: &Advice, state: &str) -> String {
    let what = match recorded.outcome_class {
        OutcomeClass::Ignored => "other 4xx",
        OutcomeClass::Net => "network error",
        class => class.as_str(),
    };
    let no_effect = if recorded.outcome_class == OutcomeClass::Ignored { " (no effect)" } else { "" };
    let mut words = format!("{what} recorded{no_effect}, state {state}");
    for Transition { cause, .. } in &recorded.transitions {
        words += &format!(" ({})", cause.as_str());
    }
    if let Some(source) = recorded.wait_source {
        let then = match recorded.retry {
            true => ", then try again",
            false => " before the next call; do not try this one again",
        };
        words += &format!("; wait {} ({}){then}", time::format_wait(recorded.wait), source.as_str());
    }
    words
}

/// Returns the line of `--json`. The keys are the fields of `Advice`.
fn line(name: &str, recorded: &Advice, state: &str) -> Json {
    object! {
        "name": name,
        "outcome_class": recorded.outcome_class.as_str(),
        "samples": recorded.samples,
        "error_ratio": recorded.error_ratio,
        "consec429": recorded.consec429,
        "wait_source": recorded.wait_source.map(|source| source.as_str()),
        "wait_at_most_ns": recorded.wait_at_most,
        "wait_ns": recorded.wait,
        "retry": recorded.retry,
        "state": state,
        "transitions": json::list(recorded.transitions.iter().map(|transition| transition.cause.as_str())),
    }
}

/// Converts the argument to the value of a Retry-After header. A value from a server may be ignored (R71), but a
/// value from the user is either accepted or refused with an error (R149).
fn retry_after(text: &str) -> Result<String, String> {
    let text = text.trim();
    // Two-digit years are relative to the current time, but to tell whether the text is a date, any time works.
    let is_date = || headers::retry_after(text, 0).is_some() && !text.starts_with('-');
    match config::duration(text) {
        Ok(duration) => Ok(format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos())),
        Err(_) if is_date() => Ok(text.to_owned()),
        Err(_) => {
            Err("must be seconds, a time such as 30s or 1m30s, or a date such as 'Wed, 21 Oct 2026 07:28:00 \
                       GMT'; to pass on a header as the server sent it, use --header 'Retry-After: …'"
                .to_owned())
        }
    }
}

fn status(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(code @ 100..=599) => Ok(code),
        _ => Err("must be an HTTP status, from 100 to 599".to_owned()),
    }
}

fn attempt(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a whole number from 1".to_owned())
}

fn net_error(text: &str) -> Result<NetError, String> {
    text.parse().map_err(|_| "must be connect_timeout, read_timeout, dns or connection".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be written as 'Name: value'")?;
    let (name, value) = (name.trim(), value.trim());
    // Only the name is checked, because the user types it. The value comes from the server and may be anything.
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("must be written as 'Name: value', without spaces in the name".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
