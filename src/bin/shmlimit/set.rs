//! `set`: another value for a setting of a limiter in use.

use crate::args::Place;
use crate::failure::Failure;
use crate::{open, output};
use shmlimit::describe;
use shmlimit::kernel::policy::BreakerKind;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Set {
    /// The limiter
    pub name: String,
    /// The setting, such as concurrency or breaker.p_throttle; all of them: docs/configuration.md
    pub key: String,
    /// Its new value, such as 4, 0.3, 15m or unlimited
    #[arg(allow_hyphen_values = true)]
    pub value: String,
}

pub fn run(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
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
