//! `acquire`: takes one call's cost from the budget. The permit ends with this process.

use crate::command::{Command, Example, Names, Tool};
use crate::options::{Place, RequestOptions, parse_duration};
use crate::ui::failure::{EXIT_CODES, Failure};
use crate::ui::limiter::refusal;
use crate::ui::output;
use crate::ui::time::nanos;
use crate::{open, wait_notice};
use serde::Serialize;
use shmlimit::{AcquireError, Limiter, Priority, Reason, Refusal, Snapshot};
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
    /// Wait no longer than this, such as 5s; refused at once if that cannot be enough [default: any time]
    #[arg(long, value_parser = parse_duration, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "now")]
    pub timeout: Option<Duration>,
    /// Do not wait at all
    #[arg(long)]
    pub now: bool,
    /// The answer as one JSON object, also if it is a refusal; the exit code is the same
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
        run(tool.place, self)
    }
}

fn run(place: &Place, args: &Acquire) -> Result<ExitCode, Failure> {
    let limiter = open::for_requests(place, &args.name, &args.options)?;
    let mut request = open::request(&args.options);
    if let Some(timeout) = args.timeout {
        request = request.timeout(timeout);
    }
    let asked = Instant::now();
    let answer =
        if args.now { limiter.try_acquire(&request) } else { wait_notice::acquire(&limiter, &request) };
    let refusal = match answer {
        Ok(grant) => {
            // The caller calls when we end: where a leaky bucket spaces calls evenly, that is later (R25).
            let delay = if args.now { grant.delay() } else { Duration::ZERO };
            std::thread::sleep(grant.delay().saturating_sub(delay));
            let waited = asked.elapsed();
            grant.release()?;
            if args.json {
                let snapshot = limiter.snapshot()?;
                output::json(&Line {
                    delay_ns: nanos(delay),
                    ..Line::new(&snapshot, &args.options, waited)
                })?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Err(AcquireError::Refused(refusal)) if args.json => refusal,
        Err(error) => return Err(refusal::failure(&limiter, error, args.options.refused)),
    };
    let waited = asked.elapsed();
    let snapshot = limiter.snapshot()?;
    let line = Line::new(&snapshot, &args.options, waited).refused(&limiter, &snapshot, &refusal);
    match output::json(&line) {
        // The reader is gone, and the call is refused all the same: success would be taken for a grant.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::from(refusal::exit_code(&refusal, args.options.refused)))
}

/// `--json`. The keys are those of `simulate`, and a contract: docs/json.md.
#[derive(Serialize)]
struct Line<'s> {
    name: &'s str,
    allowed: bool,
    remaining: Option<u64>,
    retry_after_ns: Option<u64>,
    ready_after_ns: Option<u64>,
    reason: Option<&'static str>,
    rule: Option<String>,
    message: Option<String>,
    delay_ns: u64,
    waited_ns: u64,
    state: &'static str,
}

impl<'s> Line<'s> {
    /// A grant, with what is left at this moment.
    fn new(snapshot: &'s Snapshot, options: &RequestOptions, waited: Duration) -> Line<'s> {
        Line {
            name: &snapshot.name,
            allowed: true,
            remaining: remaining(snapshot, options),
            retry_after_ns: Some(0),
            ready_after_ns: Some(0),
            reason: None,
            rule: None,
            message: None,
            delay_ns: 0,
            waited_ns: nanos(waited),
            state: snapshot.condition.state_name,
        }
    }

    fn refused(self, limiter: &Limiter, snapshot: &Snapshot, refusal: &Refusal) -> Line<'s> {
        let rule = match refusal.reason() {
            Reason::Adaptive => snapshot.condition.pace.as_ref().and_then(|pace| pace.bottleneck.clone()),
            _ => refusal.rule().and_then(|i| snapshot.rules.get(i)).map(|rule| rule.name.clone()),
        };
        Line {
            allowed: false,
            retry_after_ns: refusal.retry_after().map(nanos),
            ready_after_ns: refusal.ready_after().map(nanos),
            reason: Some(refusal.reason().as_str()),
            rule,
            message: Some(refusal::to_text(limiter, refusal)),
            ..self
        }
    }
}

/// Whole units left for this priority: the least over the rules that count what was asked for.
fn remaining(snapshot: &Snapshot, options: &RequestOptions) -> Option<u64> {
    let said = |unit: &str| options.cost.iter().rev().find(|(name, _)| name == unit).map(|(_, cost)| *cost);
    let asked = |unit: &str| said(unit).unwrap_or(u64::from(unit == "requests")) > 0;
    let left = snapshot.rules.iter().filter(|rule| asked(&rule.unit)).map(|rule| match options.priority {
        Priority::Background => rule.remaining_background,
        _ => rule.remaining,
    });
    left.min()
}
