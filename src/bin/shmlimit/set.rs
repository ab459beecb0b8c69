//! `set`: another value for a setting of a limiter in use.

use crate::args::Place;
use crate::failure::Failure;
use crate::{open, output};
use serde::Serialize;
use shmlimit::kernel::policy::BreakerKind;
use shmlimit::{Policy, describe};
use std::collections::BTreeMap;
use std::process::ExitCode;

const SET_HELP: &str = "\
It holds at once, for all who share the limiter, and until it is set again:

  shmlimit set tmdb concurrency 6
  shmlimit set tmdb rules.0.limit 20

Exit codes: 0 it has that value now, 2 usage or configuration, 1 anything else.";

#[derive(Debug, clap::Args)]
#[command(after_help = SET_HELP)]
pub struct Set {
    /// The limiter
    pub name: String,
    /// The setting, such as concurrency or breaker.p_throttle; all of them: docs/configuration.md
    pub key: String,
    /// Its new value, such as 4, 0.3, 15m or unlimited
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// What changed, as one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
    let limiter = open::named(place, &args.name)?;
    let before = limiter.policy()?;
    let after = limiter.set(&args.key, &args.value)?;
    if args.json {
        output::json(&Line { name: limiter.name(), changes: changes(&before, &after) })?;
    } else {
        let changed = describe::changes(&before, &after);
        let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
        output::line(&format!("{}: {changed}", limiter.name()))?;
    }
    if args.key.starts_with("breaker.") && after.breaker().kind() == BreakerKind::None {
        output::remark(&format!("note: {} has no breaker, so this has no effect", limiter.name()));
    }
    Ok(ExitCode::SUCCESS)
}

/// `--json`. The keys are a contract: docs/json.md.
#[derive(Serialize)]
struct Line<'l> {
    name: &'l str,
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Change {
    key: String,
    was: Option<String>,
    is: Option<String>,
}

/// Every setting that differs; one may be there only before, or only after.
fn changes(before: &Policy, after: &Policy) -> Vec<Change> {
    let mut values: BTreeMap<String, (Option<String>, Option<String>)> = BTreeMap::new();
    for (key, value) in describe::settings(before) {
        values.entry(key).or_default().0 = Some(value);
    }
    for (key, value) in describe::settings(after) {
        values.entry(key).or_default().1 = Some(value);
    }
    let differ = values.into_iter().filter(|(_, (was, is))| was != is);
    differ.map(|(key, (was, is))| Change { key, was, is }).collect()
}
