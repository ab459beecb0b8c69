//! Combines flags, a file, a preset and the environment into the policy that `init` requests.

use super::Init;
use crate::options::read_config;
use crate::setting_changes;
use crate::ui::failure::Failure;
use shmlimit::config::{self, Config, Overrides};
use shmlimit::environment::{Change, Patch};
use shmlimit::{ConfigError, Error, Policy, presets};
use shmlimit_kernel::policy::BreakerKind;

/// Returns the requested policy, and what the environment changed in it. Flags override the file, or the preset of
/// the limiter's name. `None` means that the user requested nothing.
pub(super) fn policy(args: &Init) -> Result<Option<(Policy, Vec<Change>)>, Failure> {
    let overrides = args.overrides();
    let base = match &args.config {
        Some(path) => {
            let text = read_config(path)
                .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
            Config::from_toml(&text)
                .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?
        }
        None if presets::NAMES.contains(&args.name.as_str()) => Config::preset(&args.name)?,
        None if !args.has_settings() => return Ok(None),
        None => Config::empty()?,
    };
    let mut policy = *base.with(&overrides).map_err(|error| refused_flag(&args.name, error.into()))?.policy();
    if let Some(period) = args.auto_recover {
        policy = config::set(&policy, "breaker.auto_recover", &format!("{}ns", period.as_nanos()))?;
    }
    Ok(Some(from_environment(args, policy)?))
}

/// Applies the environment: it overrides file and preset, and flags override it (R111).
fn from_environment(args: &Init, policy: Policy) -> Result<(Policy, Vec<Change>), Failure> {
    let Overrides { rates, burst, concurrency, .. } = args.overrides();
    if policy.breaker().kind() != BreakerKind::Fsm {
        return Ok((policy, Vec::new()));
    }
    let mut typed = Vec::new();
    if !rates.is_empty() {
        typed.extend(["breaker.rate_base", "rules.0.burst"]);
    }
    typed.extend(burst.map(|_| "rules.0.burst"));
    typed.extend(concurrency.map(|_| "concurrency"));
    let patch = Patch::read().map_err(Error::from)?.without(&typed);
    let patched = patch.apply(&policy).map_err(Error::from)?;
    Ok((patched, patch.changes(&policy, &patched)))
}

/// Returns an existing policy with the settings that flags specify.
pub(super) fn applied(args: &Init, policy: &Policy) -> Result<Policy, ConfigError> {
    let policy = config::update(policy, &args.overrides())?;
    match args.auto_recover {
        Some(period) => config::set(&policy, "breaker.auto_recover", &format!("{}ns", period.as_nanos())),
        None => Ok(policy),
    }
}

/// Explains why single settings are refused, using the names of their flags.
pub(super) fn refused_flag(name: &str, error: Error) -> Failure {
    let why = match &error {
        Error::Config(why) => why.downcast_ref::<ConfigError>(),
        _ => None,
    };
    match why {
        Some(ConfigError::NotOneRule { setting, rules }) => {
            let remedy =
                if *rules == 0 { "give --rate as well" } else { "change the one you mean in the file" };
            Failure::Usage(format!("--{setting}: there are {rules} rules, not one; {remedy}"))
        }
        Some(ConfigError::NotChangeable { .. } | ConfigError::NoBurst { .. }) => {
            Failure::Usage(format!("--{}", setting_changes::explained(name, error)))
        }
        _ => setting_changes::explained(name, error),
    }
}
