//! `force`: puts the breaker of a limiter into a state.

use crate::open;
use crate::options::{must_be_one_of, parse_minutes};
use crate::ui::failure::Failure;
use crate::ui::json::object;
use crate::ui::{output, suggestion, time};
use crate::verb_trait::{Command, Example, Names, Tool};
use shmlimit::Condition;
use shmlimit_kernel::policy::BreakerKind;
use std::process::ExitCode;
use std::time::Duration;

const FORCE_HELP: &str = "\
To refuse every call immediately, including waiting ones, and later to allow calls again (online probes first; normal \
does not probe):

  shmlimit force tmdb offline
  shmlimit force tmdb online
  shmlimit force tmdb normal

To stop calls for a while and keep them waiting, with or without a breaker: shmlimit pause NAME.

Exit codes: 0 done; 2 usage error, or a state that the limiter's breaker does not have; 1 any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = FORCE_HELP)]
pub struct Force {
    /// The limiter
    pub name: String,
    /// Five-state breaker: normal, throttle, sleep, half_open or cache_only. Consecutive breaker: closed, open or
    /// half_open. Both: offline, which refuses every call until online (to keep calls waiting instead: shmlimit
    /// pause). Any limiter: clear-gate, which ends a pause by Retry-After and forgets the pace learned from response
    /// headers
    #[arg(value_parser = force)]
    pub state: shmlimit::BreakerCommand,
    /// With cache_only: time after which the breaker tries to recover by itself, such as 15m; a bare number means
    /// minutes. The value stays in the limiter's settings
    #[arg(long, value_parser = parse_minutes, allow_hyphen_values = true, value_name = "TIME")]
    pub auto_recover: Option<Duration>,
    /// Print the resulting state as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Command for Force {
    const EXAMPLES: &'static [Example] = &[(
        "Refuse every call, then allow calls again:",
        "shmlimit force api offline\nshmlimit force api online",
    )];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        if self.auto_recover.is_some() && self.state != shmlimit::BreakerCommand::CacheOnly {
            let message = format!(
                "--auto-recover is for cache_only; to change it alone: shmlimit set {} breaker.auto_recover 15m",
                suggestion::operand(&self.name)
            );
            return Err(Failure::Usage(message));
        }
        let limiter = open::as_operator(tool.location, &self.name)?;
        // A limiter without such a breaker must refuse the whole command, so this setting is not changed.
        let fits = self.state.fits(limiter.policy()?.breaker().kind());
        if let Some(period) = self.auto_recover.filter(|_| fits) {
            limiter.set("breaker.auto_recover", &format!("{}ns", period.as_nanos()))?;
        }
        limiter.force(self.state)?;
        let condition = limiter.snapshot()?.condition;
        if self.json {
            let line = object! { "name": limiter.name(), "forced": self.state.as_str() };
            output::json(&line.and(condition.document()))?;
        } else {
            let how = to_text(&suggestion::operand(limiter.name()), self.state, &condition);
            output::line(&format!("{}: {}", limiter.name(), suggestion::with_directory(&how)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Describes the resulting condition. It mentions a pause by Retry-After too, because an operator who forces the
/// state may overlook it.
fn to_text(name: &str, forced: shmlimit::BreakerCommand, now: &Condition) -> String {
    let how = if now.offline { " (offline)" } else { "" };
    let refused = match now.offline {
        true => format!(
            "; every call is refused, including waiting ones (another time, to keep calls waiting: shmlimit \
             pause {name})"
        ),
        false => String::new(),
    };
    let has_breaker = now.breaker != BreakerKind::None;
    let clears = forced == shmlimit::BreakerCommand::ClearGate;
    let gate = match &now.gate {
        Some(gate) => Some(format!(
            "paused by Retry-After for {}, end that with: shmlimit force {name} clear-gate",
            time::format_wait(gate.opens_in)
        )),
        None => (clears || !has_breaker).then(|| "not paused by Retry-After".to_owned()),
    };
    // A Sleep lasts as long as its Retry-After said, even if the pause by Retry-After has ended.
    let asleep = match now.eta {
        Some(eta) if clears && !now.offline => {
            format!(" for {} (to probe now: shmlimit force {name} half_open)", time::format_wait(eta))
        }
        _ => String::new(),
    };
    let state = has_breaker.then(|| format!("{}{how}{asleep}", now.state_name));
    let parts: Vec<String> = state.into_iter().chain(gate).collect();
    parts.join(", ") + &refused
}

fn force(text: &str) -> Result<shmlimit::BreakerCommand, String> {
    text.parse().map_err(|_| {
        must_be_one_of(text, &shmlimit::BreakerCommand::ALL.map(shmlimit::BreakerCommand::as_str))
    })
}
