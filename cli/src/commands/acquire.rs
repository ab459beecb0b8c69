//! `acquire`: takes one call's cost from the budget. The permit ends with this process.

use crate::options::{RequestOptions, parse_duration};
use crate::ui::failure::{EXIT_CODES, Failure};
use crate::ui::json::{Json, object};
use crate::ui::limiter::refusal;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Names, Tool};
use crate::{open, wait_notice};
use shmlimit::{AcquireError, Reason, Refusal, Snapshot};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Acquire {
    /// The limiter
    pub name: String,
    #[command(flatten)]
    pub options: RequestOptions,
    /// Wait at most this long, such as 5s. A call that cannot be allowed in that time is refused at once [default: no
    /// limit]
    #[arg(long, value_parser = parse_duration, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "now")]
    pub timeout: Option<Duration>,
    /// Do not wait at all
    #[arg(long)]
    pub now: bool,
    /// Print the answer as one JSON object, also for a refusal; the exit code stays the same
    #[arg(long)]
    pub json: bool,
}

impl Command for Acquire {
    const EXAMPLES: &'static [Example] = &[(
        "Take a call that costs 900 tokens, or fail at once:",
        "shmlimit acquire llm --cost tokens=900 --now",
    )];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let limiter = open::for_requests(tool.location, &self.name, &self.options)?;
        let mut request = open::request(&self.options);
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        let asked = Instant::now();
        let answer =
            if self.now { limiter.try_acquire(&request) } else { wait_notice::acquire(&limiter, &request) };
        let refusal = match answer {
            Ok(grant) => {
                // The caller makes its call when this process ends. A leaky bucket spaces calls evenly, so that may
                // be later (R25).
                let delay = if self.now { grant.delay() } else { Duration::ZERO };
                std::thread::sleep(grant.delay().saturating_sub(delay));
                let waited = asked.elapsed();
                grant.release()?;
                if self.json {
                    let snapshot = limiter.snapshot()?;
                    output::json(&line(&snapshot, &self.options, (delay, waited), None))?;
                }
                return Ok(ExitCode::SUCCESS);
            }
            Err(AcquireError::Refused(refusal)) if self.json => refusal,
            Err(error) => {
                return Err(refusal::failure(&limiter, error, self.options.needs(), self.options.refused));
            }
        };
        let waited = asked.elapsed();
        let snapshot = limiter.snapshot()?;
        let message = refusal::to_text(&limiter, &refusal, self.options.needs());
        let line = line(&snapshot, &self.options, (Duration::ZERO, waited), Some((&refusal, message)));
        match output::json(&line) {
            // Standard output is closed, but the call is still refused: an exit code of success would look like a
            // grant.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written?,
        }
        Ok(ExitCode::from(refusal::exit_code(&refusal, self.options.refused)))
    }
}

/// Returns the line of `--json`: a grant with what is left at this moment, or a refusal and its message. The keys are
/// those of `simulate`.
fn line(
    snapshot: &Snapshot,
    options: &RequestOptions,
    (delay, waited): (Duration, Duration),
    refused: Option<(&Refusal, String)>,
) -> Json {
    let (refusal, message) = refused.unzip();
    let rule = refusal.and_then(|refusal| match refusal.reason() {
        Reason::Adaptive => snapshot.condition.pace.as_ref()?.bottleneck.clone(),
        _ => Some(snapshot.rules.get(refusal.rule()?)?.name.clone()),
    });
    object! {
        "name": &snapshot.name,
        "allowed": refusal.is_none(),
        "remaining": remaining(snapshot, options),
        "retry_after_ns": refusal.map_or(Some(Duration::ZERO), Refusal::retry_after),
        "ready_after_ns": refusal.map_or(Some(Duration::ZERO), Refusal::ready_after),
        "reason": refusal.map(|refusal| refusal.reason().as_str()),
        "rule": rule,
        "message": message,
        "delay_ns": delay,
        "waited_ns": waited,
        "state": snapshot.condition.state_name,
    }
}

/// Returns the whole units left for this priority: the minimum over the rules that count the requested units.
fn remaining(snapshot: &Snapshot, options: &RequestOptions) -> Option<u64> {
    let needs = options.needs();
    snapshot.rules.iter().filter(|rule| needs.of(&rule.unit) > 0).map(|rule| needs.left(rule)).min()
}
