//! `pause` and `resume`: stop all calls of a limiter for a while, and let them continue (R148).

use crate::open;
use crate::options::parse_duration;
use crate::ui::escape::printable;
use crate::ui::failure::Failure;
use crate::ui::json::{Json, object};
use crate::ui::time::{format_age, format_wait};
use crate::ui::{output, suggestion};
use crate::verb_trait::{Command, Example, Names, Tool};
use shmlimit::{Limiter, PauseRequest, PauseSnapshot};
use std::process::ExitCode;
use std::time::Duration;

const PAUSE_HELP: &str = "\
Waiting calls keep waiting, and new calls join them, in every program that shares the limiter. Only these calls are \
refused, with reason paused: calls that do not wait, and calls whose timeout ends before the pause does. The pause \
stays in force after this command exits, and after a reboot if the directory is on a disk. A second pause replaces \
the first.

Examples:
  shmlimit pause tmdb --for 10m --reason \"database migration\"
  shmlimit pause tmdb                  # lasts until: shmlimit resume tmdb

To refuse every call immediately instead, including waiting ones: shmlimit force NAME offline.

Exit codes: 0 done; 2 usage error; 1 any other error.";

const RESUME_HELP: &str = "\
Waiting calls continue in their turn, no faster than the limiter's rules allow. A limiter that is not paused is not \
changed.

Example:
  shmlimit resume tmdb

Exit codes: 0 done, or the limiter was not paused; 2 usage error; 1 any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = PAUSE_HELP)]
pub struct Pause {
    /// The limiter
    pub name: String,
    /// How long, such as 10m [default: until the limiter is resumed]
    #[arg(long = "for", value_parser = parse_duration, allow_hyphen_values = true, value_name = "TIME")]
    pub length: Option<Duration>,
    /// The reason, shown by status and in refusals: up to 64 bytes
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Print the pause as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_HELP)]
pub struct Resume {
    /// The limiter
    pub name: String,
    /// Print the ended pause as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Command for Pause {
    const EXAMPLES: &'static [Example] = &[
        (
            "Stop calls for ten minutes; waiting calls keep waiting:",
            "shmlimit pause api --for 10m --reason 'database migration'",
        ),
        ("Until it is resumed:", "shmlimit pause api"),
    ];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let limiter = open::as_user(tool.location, &self.name)?;
        let mut request = PauseRequest::new();
        if let Some(length) = self.length {
            request = request.duration(length);
        }
        if let Some(reason) = &self.reason {
            request = request.reason(reason);
        }
        let done = limiter.pause(&request)?;
        let (name, waiting) = (limiter.name(), waiting(&limiter)?);
        if self.json {
            output::json(&object! {
                "name": name,
                "paused": json(&done.pause),
                "replaced": done.replaced.as_ref().map(json),
                "waiting": waiting as u64,
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        let length = match done.pause.ends_in {
            Some(left) => format!("for {}", format_wait(left)),
            None => "until it is resumed".to_owned(),
        };
        let before = match &done.replaced {
            Some(before) => format!(
                "; this replaces the pause that {} ({}) began {} ago",
                printable(&before.program),
                before.pid,
                format_age(before.paused_for)
            ),
            None => String::new(),
        };
        let passes = if limiter.policy()?.is_passthrough() {
            "; the limiter's mode is passthrough, so calls are still allowed"
        } else {
            ""
        };
        let waiting = calls_wait(waiting);
        let way_out = suggestion::with_directory(&format!("shmlimit resume {}", suggestion::operand(name)));
        output::line(&format!("{name}: paused {length}{before}{passes}; {waiting}; end it with: {way_out}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Command for Resume {
    const EXAMPLES: &'static [Example] = &[("Let waiting calls continue:", "shmlimit resume api")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let limiter = open::existing_as_user(tool.location, &self.name)?
            .ok_or_else(|| open::unknown_limiter(tool.location, &self.name))?;
        // Count before resuming, because then the waiting calls go on.
        let (name, waiting) = (limiter.name(), waiting(&limiter)?);
        let ended = limiter.resume()?;
        if self.json {
            let ended = ended.as_ref().map(json);
            output::json(&object! { "name": name, "ended": ended, "waiting": waiting as u64 })?;
            return Ok(ExitCode::SUCCESS);
        }
        output::line(&match &ended {
            Some(ended) => {
                let waited = match waiting {
                    0 => "no call waited".to_owned(),
                    1 => "1 call waited".to_owned(),
                    many => format!("{many} calls waited"),
                };
                format!("{name}: resumed after {}; {waited}", format_age(ended.paused_for))
            }
            None => format!("{name}: not paused"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn json(pause: &PauseSnapshot) -> Json {
    Json(pause.document())
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
