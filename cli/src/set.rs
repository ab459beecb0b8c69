//! `set`: another value for a setting of a limiter in use.

use crate::args::Place;
use crate::failure::Failure;
use crate::{open, output};
use serde::Serialize;
use shmlimit::config::ConfigError;
use shmlimit::{Algorithm, Error, Policy, describe};
use shmlimit_kernel::policy::{BreakerKind, Rule};
use std::collections::BTreeMap;
use std::process::ExitCode;

const SET_HELP: &str = "\
It holds at once, for all who share the limiter, and until it is set again:

  shmlimit set tmdb concurrency 6
  shmlimit set tmdb rate 20/s
  shmlimit set tvdb rules.window.limit 80

Exit codes: 0 it has that value now, 2 usage or configuration, 1 anything else.";

#[derive(Debug, clap::Args)]
#[command(after_help = SET_HELP)]
pub struct Set {
    /// The limiter
    pub name: String,
    /// The setting, such as rate, concurrency or rules.rps.burst; all of them: docs/configuration.md
    pub key: String,
    /// Its new value, such as 20/s, 4, 0.3, 15m or unlimited
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// What changed, as one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
    let limiter = open::named(place, &args.name)?;
    let before = limiter.policy()?;
    let after = limiter.set(&args.key, &args.value).map_err(|error| in_this_limiter(&args.name, error))?;
    if args.json {
        output::json(&Line { name: limiter.name(), changes: changes(&before, &after) })?;
    } else {
        let changed = describe::changes(&before, &after);
        let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
        output::line(&format!("{}: {changed}", limiter.name()))?;
    }
    notes(limiter.name(), &args.key, &before, &after);
    Ok(ExitCode::SUCCESS)
}

/// What a key cannot do has a way out that needs the limiter's name.
pub fn in_this_limiter(name: &str, error: Error) -> Failure {
    match &error {
        Error::Config(why) => match why.downcast_ref() {
            Some(ConfigError::NotHot { .. } | ConfigError::Absent { .. } | ConfigError::NoBurst { .. }) => {
                Failure::Usage(error.to_string().replace("NAME", name))
            }
            Some(ConfigError::BadValue { key, value, problem }) => {
                Failure::Usage(format!("{key} = {value}: {}", problem.replace("NAME", name)))
            }
            _ => error.into(),
        },
        _ => error.into(),
    }
}

/// Notes about side effects of a change.
pub fn notes(name: &str, key: &str, before: &Policy, after: &Policy) {
    if key.starts_with("breaker.") && after.breaker().kind() == BreakerKind::None {
        output::remark(&format!("note: {name} has no breaker, so this has no effect"));
    }
    for rule in after.rules() {
        let counts = |old: &&Rule| old.name == rule.name && are_alike(old.algorithm, rule.algorithm);
        if before.rules().iter().find(counts).is_none() {
            let (rule, period) = (rule.name.as_str(), describe::duration(rule.period));
            output::remark(&format!(
                "note: rule {rule} is new, or counts by another algorithm, so all of it counts as used; it has room again in \
                 {period} at the latest"
            ));
        }
    }
    let rules = before.rules().iter().zip(after.rules()).filter(|(was, is)| was.algorithm == is.algorithm);
    for (before, after) in rules.filter(|(_, after)| after.algorithm == Algorithm::SlidingLog) {
        if after.period > before.period {
            let (rule, period) = (after.name.as_str(), describe::duration(after.period));
            output::remark(&format!(
                "note: what rule {rule} has not kept counts as used, so it has room again in {period} at the latest"
            ));
        }
    }
    let (first, driven) = (before.rules().first().zip(after.rules().first()), after.breaker());
    if let Some((was, is)) = first
        && (was.limit, was.period) != (is.limit, is.period)
        && is.algorithm == Algorithm::TokenBucket
        && driven.kind() == BreakerKind::Fsm
        && driven.rate_base.0 > 0
    {
        output::remark(&format!(
            "note: breaker.rate_base goes before this rate; to end that: shmlimit set {} breaker.rate_base auto",
            output::operand(name)
        ));
    }
}

/// Whether one algorithm can go on with what another has counted: the three buckets can.
fn are_alike(one: Algorithm, other: Algorithm) -> bool {
    one == other || one.has_burst() && other.has_burst()
}

/// `--json`. The keys are a contract: docs/json.md.
#[derive(Serialize)]
struct Line<'l> {
    name: &'l str,
    changes: Vec<Change>,
}

#[derive(Serialize)]
pub struct Change {
    key: String,
    was: Option<String>,
    is: Option<String>,
}

/// Every setting that differs; one may be there only before, or only after.
pub fn changes(before: &Policy, after: &Policy) -> Vec<Change> {
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
