//! `force` and `set`: what an operator does to a limiter in use.

use crate::args::{Force, Place, Set};
use crate::failure::Failure;
use crate::{open, output};
use shmlimit::describe;
use std::process::ExitCode;

pub fn run(place: &Place, args: &Force) -> Result<ExitCode, Failure> {
    let limiter = open::named(place, &args.name)?;
    if let Some(period) = args.auto_recover {
        limiter.set("breaker.auto_recover", &format!("{}ns", period.as_nanos()))?;
    }
    limiter.force(args.state)?;
    let condition = limiter.snapshot()?.condition;
    let how = if condition.offline { " (offline)" } else { "" };
    output::line(&format!("{}: {}{how}", limiter.name(), condition.state_name))?;
    Ok(ExitCode::SUCCESS)
}

pub fn set(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
    let limiter = open::named(place, &args.name)?;
    let before = limiter.policy()?;
    let after = limiter.set(&args.key, &args.value)?;
    let changed = describe::changes(&before, &after);
    let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
    output::line(&format!("{}: {changed}", limiter.name()))?;
    Ok(ExitCode::SUCCESS)
}
