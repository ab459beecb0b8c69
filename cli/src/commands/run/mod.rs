//! `run`: runs a command when the limiter grants it; in all other respects as if it had been started directly.

mod attempt;
mod exit_codes;
mod line_search;
mod output_monitor;
mod parsed_outcome;
mod verdict;

use crate::options::{RequestOptions, parse_duration};
use crate::platform::{ChildExit, Stream, texts};
use crate::ui::failure::{EXIT_CODES, Failure};
use crate::ui::limiter::refusal;
use crate::ui::{output, time};
use crate::verb_trait::{Command, Example, Names, Tool};
use crate::{open, wait_notice};
use attempt::Attempt;
use clap::ValueEnum;
use exit_codes::Entry;
use line_search::{LineSearch, Pattern};
use output_monitor::OutputMonitor;
use shmlimit::{Limiter, Priority};
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdict::Retry;

const RUN_HELP: &str = "The outcome comes from the first of these that reports one: a `shmlimit record` inside the \
                        command (it finds the limiter in $SHMLIMIT_LIMITER), --status-fd, --status-from, and the exit \
                        code if --exit or --retries is given. Without any of them nothing is recorded, with one \
                        exception: while the limiter's breaker is not normal, exit code 0 is recorded as a success, \
                        so that probes can end (--exit 0=none turns that off).";

#[derive(Debug, clap::Args)]
#[command(override_usage = "shmlimit run [OPTIONS] <NAME> -- <CMD>...", after_help = format!("{}\n\n{RUN_HELP}\n\n{EXIT_CODES}", texts::EXAMPLES_OF_RUN))]
pub struct Run {
    /// The limiter
    pub name: String,
    #[command(flatten)]
    pub options: RequestOptions,
    /// Wait at most this long in total, such as 5s, for the limiter and between attempts. A call that cannot be
    /// allowed in that time is refused at once [default: no limit]
    #[arg(long, value_parser = parse_duration, allow_hyphen_values = true, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Run the command again, at most this many times, if the call was throttled (429), the server failed (5xx) or
    /// did not answer. Each retry waits as long as the server asks, or else with a growing backoff. Standard input is
    /// not repeated [without the option: no retries; without N: the limiter's setting for the call's priority, for
    /// example 2 for user and 5 for background]
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = retries)]
    pub retries: Option<Option<u32>>,
    /// Write nothing to standard error; only the exit code reports the result
    #[arg(long, short)]
    pub quiet: bool,
    /// Outcome of the call for an exit code of the command; may be repeated, and the last match counts. OUTCOME is an
    /// HTTP status, ok, throttled, connect_timeout, read_timeout, dns, connection or none. Instead of CODE=OUTCOME,
    /// the word curl (for curl -f) or wget stands for the known exit codes of that program. With --exit or
    /// --retries, codes that no entry names have these outcomes: 0 is ok, 75 is throttled, all others record nothing.
    /// Code 22 of curl records nothing, because it can mean a 404
    #[arg(long, value_parser = Entry::parse, value_name = "CODE=OUTCOME", value_delimiter = ',', help_heading = ENDED)]
    pub exit: Vec<Entry>,
    /// File descriptor to which the command can write the status, or all response headers as `curl -D /dev/fd/3`
    /// does. Of several responses, the last one counts
    #[arg(long, value_parser = texts::descriptor(), value_name = "N", help_heading = ENDED)]
    pub status_fd: Option<i32>,
    /// Regular expression that finds the status in a line of the command's output. The text matched by the pattern's
    /// capture group must be an HTTP status or an OUTCOME (see --exit); the last match counts. The output is passed on
    /// at once, but the command writes to a pipe instead of a terminal. If the search takes too long, only the end of
    /// the output is searched, with a warning
    #[arg(long, value_parser = line_search::pattern, value_name = "PATTERN", help_heading = ENDED)]
    pub status_from: Option<Pattern>,
    /// Which output to search; the other one is passed on directly
    #[arg(long, value_enum, default_value = "both", requires = "status_from", value_name = "STREAM", help_heading = ENDED)]
    pub status_in: Streams,
    /// The command and its arguments
    // Options of the command may only follow its first word, so that a mistyped option of `run` does not become the
    // command.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const ENDED: &str = "Outcome of the call, recorded for all programs that share the limiter";

/// The streams that `--status-from` searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Streams {
    Stdout,
    Stderr,
    Both,
}

const CANNOT_WAIT: u8 = 1;
const CANNOT_PASS_ON: u8 = 1;

impl Command for Run {
    const EXAMPLES: &'static [Example] = &[
        (
            "Fifty downloads at a time, as fast as the limiter allows:",
            "xargs -P 50 -n 1 shmlimit run api -- curl -fsSO < urls",
        ),
        ("Give up after 30 seconds:", "shmlimit run api --timeout 30s -- ./fetch"),
    ];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        if self.quiet {
            output::silence_remarks();
        }
        let command = self.command.first().unwrap_or_else(|| unreachable!("clap requires one"));
        let limiter = open::for_command(tool.location, &self.name, &self.options, command)?;
        let retries =
            self.retries.map(|most| most.map_or_else(|| usual_retries(&limiter, self.options.priority), Ok));
        let retries = retries.transpose()?.unwrap_or(0);
        let mut monitor = monitor(self)?;
        let mut time_left = TimeLeft(self.timeout);
        let mut last: Option<ChildExit> = None;
        for number in 1.. {
            let mut request = open::request(&self.options);
            if let Some(left) = time_left.0 {
                request = request.timeout(left);
            }
            let asked = Instant::now();
            let grant = match (wait_notice::acquire(&limiter, &request), last.take()) {
                (Ok(grant), _) => grant,
                (Err(error), None) => {
                    return Err(refusal::failure(
                        &limiter,
                        error,
                        self.options.needs(),
                        self.options.refused,
                    ));
                }
                // The command has run, so its exit code is the result.
                (Err(error), Some(end)) => {
                    refusal::failure(&limiter, error, self.options.needs(), self.options.refused).report();
                    return finish(monitor, end);
                }
            };
            // A leaky bucket grants a call early and says how long to delay it, so wait here (R25).
            sleep(grant.delay(), &mut monitor)?;
            time_left.spend(asked.elapsed());
            let attempt = Attempt {
                location: tool.location,
                args: self,
                limiter: &limiter,
                number,
                is_last: number > retries,
            };
            let (end, again) = attempt.make(grant, &mut monitor)?;
            let Some(Retry { why, wait, source }) = again else { return finish(monitor, end) };
            let message =
                format!("{}: attempt {number} of {}: {why}", limiter.name(), u64::from(retries) + 1);
            let time = time::format_wait(wait);
            if !time_left.is_enough_for(wait) {
                output::remark(&format!(
                    "{message}; no further attempt: --timeout ends before the wait of {time}"
                ));
                return finish(monitor, end);
            }
            output::remark(&format!("{message}; next attempt in {time} ({})", source.as_str()));
            sleep(wait, &mut monitor)?;
            time_left.spend(wait);
            last = Some(end);
        }
        unreachable!("attempts are counted, and the last one returns")
    }
}

/// The remaining time to wait; `None` means no limit.
struct TimeLeft(Option<Duration>);

impl TimeLeft {
    fn spend(&mut self, time: Duration) {
        self.0 = self.0.map(|left| left.saturating_sub(time));
    }

    fn is_enough_for(&self, time: Duration) -> bool {
        self.0.is_none_or(|left| left >= time)
    }
}

/// How often the limiter's configuration says to retry a call (R76).
fn usual_retries(limiter: &Limiter, priority: Priority) -> Result<u32, shmlimit::Error> {
    let backoff = limiter.policy()?.backoff();
    Ok(if priority == Priority::Background { backoff.retries_background } else { backoff.retries_user })
}

fn monitor(args: &Run) -> Result<OutputMonitor, Failure> {
    let mut monitor = OutputMonitor::default();
    if let Some(pattern) = &args.status_from {
        for (which, other) in [(Stream::Out, Streams::Stderr), (Stream::Err, Streams::Stdout)] {
            if args.status_in != other {
                monitor.watch(which, LineSearch::new(pattern.clone())).map_err(cannot_monitor)?;
            }
        }
    }
    Ok(monitor)
}

fn cannot_monitor(error: io::Error) -> Failure {
    Failure::Command(format!("cannot read the output of the command: {error}"), CANNOT_WAIT)
}

/// Sleeps before or between attempts, when no command is running. Signals have the effect that they would have on the
/// command.
fn sleep(time: Duration, monitor: &mut OutputMonitor) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        monitor.wait(None, Some(left)).map_err(cannot_monitor)?;
    }
}

/// Passes on the rest of the output, then returns the exit code.
fn finish(monitor: OutputMonitor, end: ChildExit) -> Result<ExitCode, Failure> {
    match monitor.finish() {
        Err(error) if end.code() == Some(0) => {
            Err(Failure::Command(format!("cannot pass on the command's output: {error}"), CANNOT_PASS_ON))
        }
        Err(error) => {
            output::remark(&format!("cannot pass on the command's output: {error}"));
            Ok(end.into_exit_code())
        }
        Ok(()) => Ok(end.into_exit_code()),
    }
}

fn retries(text: &str) -> Result<u32, String> {
    let wrong = "must be a whole number, or be left out to use the limiter's setting. If this word is not meant as the \
                 number: shmlimit run NAME --retries -- CMD";
    text.parse().map_err(|_| wrong.to_owned())
}
