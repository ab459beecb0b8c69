//! `force` and `set`: what an operator does to a limiter in use.

use crate::args::{Force, Place, Set};
use crate::failure::Failure;
use crate::{open, output, screen};
use shmlimit::kernel::policy::BreakerKind;
use shmlimit::{Condition, describe};
use std::process::ExitCode;

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

pub fn set(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
    let limiter = open::named(place, &args.name)?;
    let before = limiter.policy()?;
    let after = limiter.set(&args.key, &args.value)?;
    let changed = describe::changes(&before, &after);
    let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
    output::line(&format!("{}: {changed}", limiter.name()))?;
    if args.key.starts_with("breaker.") && after.breaker().kind() == BreakerKind::None {
        output::remark(&format!("note: {} has no breaker, so this has no effect", limiter.name()));
    }
    Ok(ExitCode::SUCCESS)
}
