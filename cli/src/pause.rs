//! `pause` and `resume`: stop all calls of a limiter for a while, and let them continue (R148).

use crate::args::{Place, time};
use crate::failure::Failure;
use crate::output::nanos;
use crate::screen::{ago, printable, wait};
use crate::{open, output};
use serde::Serialize;
use shmlimit::{Limiter, PauseRequest, PauseSnapshot};
use std::process::ExitCode;
use std::time::Duration;

const PAUSE_HELP: &str = "\
Waiting calls keep waiting, and new calls join them, in every program that shares the limiter. Only these calls are \
refused, with reason paused: calls that do not wait, and calls whose timeout ends before the pause does. The pause outlasts \
this program, and a reboot if the directory is on a disk. A second pause replaces the first.

Examples:
  shmlimit pause tmdb --for 10m --reason \"database migration\"
  shmlimit pause tmdb                  until: shmlimit resume tmdb

To refuse all calls at once instead, also those that wait: shmlimit force NAME offline.

Exit codes: 0 done, 2 usage, 1 anything else.";

const RESUME_HELP: &str = "\
Waiting calls continue in their turn, no faster than the limiter's rules allow. A limiter that is not paused is not \
changed.

Example:
  shmlimit resume tmdb

Exit codes: 0 done or not paused, 2 usage, 1 anything else.";

#[derive(Debug, clap::Args)]
#[command(after_help = PAUSE_HELP)]
pub struct Pause {
    /// The limiter
    pub name: String,
    /// How long, such as 10m [default: until the limiter is resumed]
    #[arg(long = "for", value_parser = time, allow_hyphen_values = true, value_name = "TIME")]
    pub length: Option<Duration>,
    /// The reason, shown by status and in refusals: up to 64 bytes
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The pause as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_HELP)]
pub struct Resume {
    /// The limiter
    pub name: String,
    /// The pause that was ended, as one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn pause(place: &Place, args: &Pause) -> Result<ExitCode, Failure> {
    let limiter = open::by_user(place, &args.name)?;
    let mut request = PauseRequest::new();
    if let Some(length) = args.length {
        request = request.lasting(length);
    }
    if let Some(reason) = &args.reason {
        request = request.reason(reason);
    }
    let done = limiter.pause(&request)?;
    let (name, waiting) = (limiter.name(), waiting(&limiter)?);
    if args.json {
        let replaced = done.replaced.as_ref().map(PauseLine::from);
        let line = PausedLine { name, paused: PauseLine::from(&done.pause), replaced, waiting };
        output::json(&line)?;
        return Ok(ExitCode::SUCCESS);
    }
    let length = match done.pause.ends_in {
        Some(left) => format!("for {}", wait(left)),
        None => "until it is resumed".to_owned(),
    };
    let before = match &done.replaced {
        Some(before) => format!(
            "; this replaces the pause that {} ({}) began {} ago",
            printable(&before.program),
            before.pid,
            ago(before.paused_for)
        ),
        None => String::new(),
    };
    let passes = if limiter.policy()?.is_passthrough() {
        "; its mode is passthrough, so calls go all the same"
    } else {
        ""
    };
    let waiting = calls_wait(waiting);
    let way_out = output::placed(&format!("shmlimit resume {}", output::operand(name)));
    output::line(&format!("{name}: paused {length}{before}{passes}; {waiting}; end it with: {way_out}"))?;
    Ok(ExitCode::SUCCESS)
}

pub fn resume(place: &Place, args: &Resume) -> Result<ExitCode, Failure> {
    let limiter =
        open::existing_by_user(place, &args.name)?.ok_or_else(|| open::unknown(place, &args.name))?;
    // Before it is resumed: the calls that waited go at once, or soon.
    let (name, waiting) = (limiter.name(), waiting(&limiter)?);
    let ended = limiter.resume()?;
    if args.json {
        let line = ResumedLine { name, ended: ended.as_ref().map(PauseLine::from), waiting };
        output::json(&line)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&match &ended {
        Some(ended) => {
            let waited = match waiting {
                0 => "no call waited".to_owned(),
                1 => "1 call waited".to_owned(),
                many => format!("{many} calls waited"),
            };
            format!("{name}: resumed after {}; {waited}", ago(ended.paused_for))
        }
        None => format!("{name}: is not paused"),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn waiting(limiter: &Limiter) -> Result<usize, Failure> {
    Ok(limiter.snapshot()?.queue.len())
}

fn calls_wait(count: usize) -> String {
    match count {
        0 => "no call waits".to_owned(),
        1 => "1 call waits".to_owned(),
        many => format!("{many} calls wait"),
    }
}

/// The user or program that paused the limiter, when and why: `alice (4711), 5m ago: database migration`.
pub fn by(pause: &PauseSnapshot) -> String {
    let reason = pause.reason.as_ref().map(|text| format!(": {}", printable(text))).unwrap_or_default();
    format!("{} ({}), {} ago{reason}", printable(&pause.program), pause.pid, ago(pause.paused_for))
}

/// A pause in JSON. The keys are a contract: docs/json.md.
#[derive(Serialize)]
pub struct PauseLine {
    paused_ns: u64,
    ends_in_ns: Option<u64>,
    pid: u32,
    program: String,
    reason: Option<String>,
}

impl From<&PauseSnapshot> for PauseLine {
    fn from(pause: &PauseSnapshot) -> PauseLine {
        PauseLine {
            paused_ns: nanos(pause.paused_for),
            ends_in_ns: pause.ends_in.map(nanos),
            pid: pause.pid,
            program: pause.program.clone(),
            reason: pause.reason.clone(),
        }
    }
}

#[derive(Serialize)]
struct PausedLine<'l> {
    name: &'l str,
    paused: PauseLine,
    replaced: Option<PauseLine>,
    waiting: usize,
}

#[derive(Serialize)]
struct ResumedLine<'l> {
    name: &'l str,
    ended: Option<PauseLine>,
    waiting: usize,
}
