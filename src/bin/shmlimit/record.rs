//! `record`: tells the limiter how a call ended, for those who call without a grant at hand.

use crate::args::{Place, Record};
use crate::failure::Failure;
use crate::{open, output, screen};
use serde::Serialize;
use shmlimit::headers::response;
use shmlimit::{Class, Outcome, Recorded, Transition};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

/// No server sends more; a device or a pipe may never end.
const LONGEST_HEADERS: u64 = 1 << 20;

pub fn run(place: &Place, args: &Record) -> Result<ExitCode, Failure> {
    let text = args.headers.as_deref().map(read).transpose()?.unwrap_or_default();
    let (said, mut headers) = response(&text);
    headers.extend(args.header.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    headers.extend(args.retry_after.iter().map(|value| ("Retry-After", value.as_str())));
    let mut outcome = match (args.error, args.status.or(said)) {
        (Some(error), _) => Outcome::error(error),
        (None, Some(status)) => Outcome::http(status, &headers),
        (None, None) => {
            let message =
                "say how the call ended: --status CODE, --error KIND, or --headers FILE with a status line";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    outcome = outcome.priority(args.priority);
    if let Some(attempt) = args.attempt {
        outcome = outcome.attempt(attempt);
    }
    if let Some(latency) = args.latency {
        outcome = outcome.latency(latency);
    }
    let limiter = open::named(place, &args.name)?;
    let recorded = limiter.record(&outcome)?;
    let state = limiter.snapshot()?.condition.state_name;
    if args.json {
        let line = serde_json::to_string(&Line::new(&recorded, state)).map_err(io::Error::from)?;
        output::line(&line)?;
    } else if !args.quiet {
        output::line(&format!("{}: {}", limiter.name(), in_words(&recorded, state)))?;
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

fn in_words(recorded: &Recorded, state: &str) -> String {
    let what = match recorded.class {
        Class::Ignored => "other 4xx, which changes nothing,",
        class => class.as_str(),
    };
    let mut words = format!("{what} recorded, state {state}");
    for Transition { cause, .. } in &recorded.transitions {
        words += &format!(" ({})", cause.as_str());
    }
    if let Some(source) = recorded.wait_source {
        let then = if recorded.retry { "then try again" } else { "do not try again" };
        words += &format!("; wait {} ({}), {then}", screen::wait(recorded.wait), source.as_str());
    }
    words
}

/// `--json`. The keys are those of `simulate`.
#[derive(Serialize)]
struct Line {
    class: &'static str,
    samples: u32,
    err_rate: f64,
    consec429: u32,
    sleep_source: Option<&'static str>,
    sleep_max_ns: u64,
    sleep_ns: u64,
    retry: bool,
    state: &'static str,
    transitions: Vec<&'static str>,
}

impl Line {
    fn new(recorded: &Recorded, state: &'static str) -> Line {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Line {
            class: recorded.class.as_str(),
            samples: recorded.samples,
            err_rate: recorded.error_ratio,
            consec429: recorded.consec429,
            sleep_source: recorded.wait_source.map(|source| source.as_str()),
            sleep_max_ns: nanos(recorded.wait_at_most),
            sleep_ns: nanos(recorded.wait),
            retry: recorded.retry,
            state,
            transitions: recorded.transitions.iter().map(|transition| transition.cause.as_str()).collect(),
        }
    }
}
