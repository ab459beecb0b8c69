//! `force`: puts a breaker into a state.

use crate::args::{Place, minutes, one_of};
use crate::failure::Failure;
use crate::{open, output, screen};
use shmlimit::Condition;
use shmlimit::kernel::policy::BreakerKind;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Force {
    /// The limiter
    pub name: String,
    /// normal, throttle, sleep, half_open or cache_only; of a consecutive breaker closed, open or half_open; offline (no
    /// call until online); clear-gate, which ends what a Retry-After began
    #[arg(value_parser = force)]
    pub state: shmlimit::Force,
    /// With cache_only: how long it lasts before it tries to recover by itself: 15m; a bare number is minutes. It stays in
    /// the configuration
    #[arg(long, value_parser = minutes, allow_hyphen_values = true, value_name = "TIME")]
    pub auto_recover: Option<Duration>,
}

pub fn run(place: &Place, args: &Force) -> Result<ExitCode, Failure> {
    if args.auto_recover.is_some() && args.state != shmlimit::Force::CacheOnly {
        let message = "--auto-recover is for cache_only; to change it alone: shmlimit set NAME breaker.auto_recover TIME";
        return Err(Failure::Usage(message.to_owned()));
    }
    let limiter = open::named(place, &args.name)?;
    // A limiter without such a breaker is refused as a whole.
    let fits = args.state.fits(limiter.policy()?.breaker().kind());
    if let Some(period) = args.auto_recover.filter(|_| fits) {
        limiter.set("breaker.auto_recover", &format!("{}ns", period.as_nanos()))?;
    }
    limiter.force(args.state)?;
    let condition = limiter.snapshot()?.condition;
    output::line(&format!("{}: {}", limiter.name(), in_words(limiter.name(), &condition)))?;
    Ok(ExitCode::SUCCESS)
}

/// What holds from now on. The gate is another matter than the state: who forces one may not think of the other.
fn in_words(name: &str, now: &Condition) -> String {
    let how = if now.offline { " (offline)" } else { "" };
    let gate = match &now.gate {
        Some(gate) => {
            format!(
                "gate closed for {}, open it with: shmlimit force {name} clear-gate",
                screen::wait(gate.opens_in)
            )
        }
        None => "gate open".to_owned(),
    };
    match now.breaker {
        BreakerKind::None => gate,
        _ => format!("{}{how}, {gate}", now.state_name),
    }
}

fn force(text: &str) -> Result<shmlimit::Force, String> {
    shmlimit::Force::parse(text)
        .ok_or_else(|| one_of(text, &shmlimit::Force::ALL.map(shmlimit::Force::as_str)))
}
