//! `init`: creates a limiter, or checks that the existing one has the same settings.

use crate::options::{Location, parse_minutes, parse_name};
use crate::platform::texts;
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::limiter::policy as policy_text;
use crate::ui::{output, suggestion};
use crate::verb_trait::{Command, Example, Names, Tool};
use crate::{open, setting_changes};
use shmlimit::config::{self, Overrides};
use shmlimit::{
    Account, Algorithm, Error, Fairness, Limiter, OnMismatch, Policy, Rate, RateError, describe, presets,
};
use shmlimit_kernel::policy::{BreakerKind, Rule};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

mod requested;

const INIT_HELP: &str = "\
Options override the file, or the preset of the same name. --rate alone is the maximum in any one period. With \
--burst the limiter is a token bucket, which allows that many more calls at once. A repeated command changes \
nothing:

  shmlimit init omdb --rate 1000/day --concurrency 2
  shmlimit init tmdb --concurrency 8
  shmlimit init github --config github.toml
  shmlimit init omdb --rate 2000/day --update

With --update, options change only what they name: the last line leaves the concurrency at 2. With --update and \
--config, the file is the whole configuration: settings that it does not name get their defaults. The output lists \
the changes.

Exit codes: 0 the limiter exists with these settings; 2 usage or configuration error, or the limiter exists with \
other settings; 1 any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = INIT_HELP)]
pub struct Init {
    /// The limiter
    pub name: String,
    /// Configuration file in TOML; its keys: docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Maximum number of calls in any one period: 35/s, 1000/day, 40/10s
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true)]
    rate: Option<Rate>,
    /// Number of calls that a token bucket allows at once after a quiet time. One period can then allow the rate plus
    /// the burst [default: no burst, or as large as the rate if --algorithm is a bucket]
    #[arg(long, value_parser = parse_amount, allow_hyphen_values = true, value_name = "NUMBER")]
    burst: Option<u64>,
    /// Maximum number of calls in flight [default: no limit]
    #[arg(long, value_parser = parse_amount, allow_hyphen_values = true, value_name = "NUMBER")]
    concurrency: Option<u64>,
    #[arg(long, value_parser = parse_algorithm, help = algorithm_help())]
    algorithm: Option<Algorithm>,
    /// Order of calls with the same priority: process (each process or group gets an equal share) or fifo (first
    /// come, first served) [default: process]
    #[arg(long, value_parser = parse_fairness)]
    fairness: Option<Fairness>,
    /// Share of the budget that background calls always get while other calls wait too, from 0 to 1 [default: 0]
    #[arg(long, value_parser = config::share, allow_hyphen_values = true, value_name = "PART")]
    background_share: Option<u64>,
    /// Time after which a five-state breaker in cache_only tries to recover by itself, such as 15m; a bare number
    /// means minutes
    #[arg(long, value_parser = parse_minutes, allow_hyphen_values = true, value_name = "TIME")]
    pub auto_recover: Option<Duration>,
    /// Refuse every call until: shmlimit force NAME online (needs a breaker)
    #[arg(long)]
    pub offline: bool,
    /// Replace an existing limiter with a new one, which starts with full buckets and all permits free, even if
    /// programs still hold permits of the old one. Without settings, the new limiter gets the settings of the old one
    #[arg(long)]
    pub replace: bool,
    /// Change the named settings while programs use the limiter. Other settings and all counts are kept. With
    /// --config, the file is the whole configuration, and a new rule starts used up
    #[arg(long, conflicts_with = "replace")]
    pub update: bool,
    /// Let the members of this group of users use the directory and the limiter
    #[arg(long, value_name = "GROUP")]
    pub shared_with: Option<String>,
    /// Print the limiter and its settings as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Init {
    /// The settings given by single flags.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            rates: self.rate.iter().cloned().collect(),
            burst: self.burst,
            algorithm: self.algorithm,
            concurrency: self.concurrency,
            fairness: self.fairness,
            background_share: self.background_share,
        }
    }

    /// Returns whether flags alone specify the limiter.
    fn is_by_flags(&self) -> bool {
        self.config.is_none() && self.has_settings()
    }

    /// Returns whether any flag specifies a setting.
    fn has_settings(&self) -> bool {
        !self.overrides().is_empty() || self.auto_recover.is_some()
    }
}

/// The counts of a rule with at least this period should survive a reboot.
const LONG: Duration = Duration::from_secs(3600);

/// Returns the help of `--algorithm`, with every algorithm of the library.
fn algorithm_help() -> String {
    let (last, others) = Algorithm::NAMES.split_last().unwrap_or((&"", &[]));
    format!(
        "How the rate is counted: {} or {last} [default: sliding_log; token_bucket above 100000 per period, with \
         --burst, or with the five-state breaker]",
        others.join(", ")
    )
}

impl Command for Init {
    const EXAMPLES: &'static [Example] = &[
        ("40 calls in 10 seconds, 4 at a time:", "shmlimit init api --rate 40/10s --concurrency 4"),
        ("From a file:", "shmlimit init api --config api.toml"),
    ];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let group = self.shared_with.as_deref().map(find_group).transpose()?;
        let existing = match self.is_by_flags() {
            _ if self.replace => None,
            true => open::existing_ignoring_environment(tool.location, &self.name)?,
            false => open::existing_as_operator(tool.location, &self.name)?,
        };
        let before = existing.as_ref().map(Limiter::policy).transpose()?;
        let changes_named = self.update && self.is_by_flags();
        if let (true, Some(limiter), Some(before)) = (changes_named, &existing, &before) {
            check_breaker(self, Some(before))?;
            check_shared(tool.location, limiter, group)?;
            update(self, limiter)?;
            return answer(self, limiter, InitResult::Unchanged, Some(before));
        }
        let (policy, by_environment) = requested::policy(self)?.unzip();
        check_breaker(self, policy.as_ref())?;
        let (limiter, how) = if self.replace {
            let policy = match policy {
                Some(policy) => policy,
                None => match open::observer(tool.location, &self.name)? {
                    Some(limiter) => limiter.policy()?,
                    None => return Err(nothing_to_limit(&self.name)),
                },
            };
            let mut builder =
                open::builder(tool.location, &self.name).operator().policy(policy).ignore_environment();
            if let Some(group) = group {
                builder = builder.shared_with(group);
            }
            (builder.replace()?, InitResult::Replaced)
        } else {
            match existing {
                Some(limiter) => {
                    check_shared(tool.location, &limiter, group)?;
                    (adopt(tool.location, self, limiter, policy)?, InitResult::Unchanged)
                }
                None => (create(tool.location, self, policy, group)?, InitResult::Created),
            }
        };
        // For an existing limiter these remarks were printed when it was opened.
        if !matches!(how, InitResult::Unchanged) {
            open::remark_note(limiter.directory_note());
            open::remark_used_up(&limiter);
            open::remark_environment(&self.name, &by_environment.unwrap_or_default());
        }
        answer(self, &limiter, how, before.as_ref().filter(|_| self.update))
    }
}

/// Changes the settings that flags specify.
fn update(args: &Init, limiter: &Limiter) -> Result<(), Failure> {
    if let Some(period) = args.auto_recover {
        limiter.set("breaker.auto_recover", &format!("{}ns", period.as_nanos()))?;
    }
    if !args.overrides().is_empty() {
        let updated = limiter.update(&args.overrides());
        updated.map_err(|error| requested::refused_flag(&args.name, error))?;
    }
    Ok(())
}

/// Writes the answer and the warnings. `before` is the policy that an update replaced.
fn answer(
    args: &Init,
    limiter: &Limiter,
    how: InitResult,
    before: Option<&Policy>,
) -> Result<ExitCode, Failure> {
    if args.offline {
        limiter.force(shmlimit::BreakerCommand::Offline)?;
    }
    let policy = limiter.policy()?;
    let before = before.filter(|before| **before != policy);
    let how = if before.is_some() { InitResult::Updated } else { how };
    report(args, limiter, how, before, &policy)?;
    if let Some(before) = before {
        setting_changes::remark_effects(limiter.name(), "", before, &policy);
    }
    if limiter.is_volatile() && policy.rules().iter().any(|rule| rule.period >= LONG) {
        output::remark(&format!(
            "warning: {} is emptied when the machine boots, and the counts of rules of an hour or more are lost with \
             it; choose a directory on a disk with --dir",
            limiter.directory().display()
        ));
    }
    let limits = policy.concurrency().is_some() || policy.adaptive().is_some() || !policy.rules().is_empty();
    if !limits {
        output::remark(&format!(
            "warning: {} limits nothing: it has no [[rules]] and no concurrency; give it a rate with: shmlimit init {} \
             --rate 35/s --replace",
            limiter.name(),
            limiter.name()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// How the limiter came to exist.
#[derive(Clone, Copy)]
enum InitResult {
    Created,
    Replaced,
    Updated,
    Unchanged,
}

/// Describes what each rule admits.
fn allowed(policy: &Policy) -> Vec<Json> {
    let units: Vec<_> = policy.units().collect();
    let rule = |(i, rule): (usize, &Rule)| {
        object! {
            "name": rule.name.as_str(),
            "unit": units[usize::from(rule.unit)].as_str(),
            "algorithm": rule.algorithm.as_str(),
            "limit": rule.limit,
            "period_ns": rule.period.as_nanos() as u64,
            "burst": rule.burst,
            "most_per_period": describe::most_per_period(policy, i).unwrap_or(u64::MAX),
        }
    };
    policy.rules().iter().enumerate().map(rule).collect()
}

fn report(
    args: &Init,
    limiter: &Limiter,
    how: InitResult,
    before: Option<&Policy>,
    policy: &Policy,
) -> Result<(), Failure> {
    let (name, directory) = (limiter.name(), limiter.directory().display().to_string());
    let (key, how) = match how {
        InitResult::Created => ("created", "created"),
        InitResult::Replaced => ("replaced", "replaced"),
        InitResult::Updated => ("updated", "updated"),
        InitResult::Unchanged => ("unchanged", "already exists"),
    };
    if args.json {
        let line = object! {
            "name": name,
            "directory": directory,
            "result": key,
            "offline": limiter.snapshot()?.condition.offline,
            "rules": json::list(allowed(policy)),
            "settings": setting_changes::to_json(policy),
            "changes": json::list(before.map(|before| setting_changes::changes(before, policy)).unwrap_or_default()),
        };
        return Ok(output::json(&line)?);
    }
    let changed = before.map(|before| format!("{}; now ", describe::changes(before, policy)));
    let changed = changed.unwrap_or_default();
    Ok(output::line(&format!("{name}: {how} in {directory}: {changed}{}", policy_text::summary(policy)))?)
}

/// Refuses options that need a breaker before the limiter is created.
fn check_breaker(args: &Init, policy: Option<&Policy>) -> Result<(), Failure> {
    let Some(policy) = policy else { return Ok(()) };
    let (kind, name) = (policy.breaker().kind(), &args.name);
    let flag = match kind {
        BreakerKind::Fsm => return Ok(()),
        _ if args.auto_recover.is_some() => "--auto-recover",
        BreakerKind::None if args.offline => "--offline",
        _ => return Ok(()),
    };
    let (wanted, instead) = match flag {
        "--offline" => {
            let (made, name) =
                (suggestion::same_command_without("--offline"), suggestion::shell_words(&[name]));
            (
                "a breaker",
                format!("to stop its calls without a breaker: {made}\nthen: shmlimit pause {name}\nor "),
            )
        }
        _ => ("the five-state breaker", String::new()),
    };
    let actual = match kind {
        BreakerKind::Consecutive => "the consecutive one",
        _ if flag == "--offline" => "none",
        _ => "no breaker",
    };
    let (file, then) = match &args.config {
        Some(path) => (path.display().to_string(), suggestion::same_command_with("")),
        None => {
            let file = format!("{}.toml", name.trim_start_matches('-'));
            (file.clone(), suggestion::same_command_with(&format!("--config {file}")))
        }
    };
    Err(Failure::Usage(format!(
        "{flag} needs {wanted}, but {name:?} would have {actual}; {instead}write [breaker] with kind = \"fsm\" (five \
         states) into {file}, then: {then}"
    )))
}

/// Uses the existing limiter if it matches the request.
fn adopt(
    location: &Location,
    args: &Init,
    limiter: Limiter,
    policy: Option<Policy>,
) -> Result<Limiter, Failure> {
    let explicit = args.config.is_some() || args.has_settings();
    match policy {
        Some(policy) if explicit || args.update => {
            // Flags compare only the settings that they name.
            let named = if args.is_by_flags() {
                requested::applied(args, &limiter.policy()?).ok()
            } else {
                Some(policy)
            };
            let policy = named.unwrap_or(policy);
            drop(limiter);
            let builder = open::builder(location, &args.name).operator().policy(policy).ignore_environment();
            if args.update {
                return Ok(builder.on_mismatch(OnMismatch::Update).open()?);
            }
            builder.open().map_err(|error| match error {
                Error::ConfigMismatch { name, differences, updatable, .. } => {
                    let update = match updatable && named.is_some() {
                        true => format!("to change it for all programs: {}\n", suggestion::same_command_with("--update")),
                        false => String::new(),
                    };
                    Failure::Usage(format!(
                        "limiter {name:?} exists with other settings:\n{differences}\nto use it as it is, leave the \
                         settings out\n{update}to replace it with a new one: {}",
                        suggestion::same_command_with("--replace")
                    ))
                }
                error => error.into(),
            })
        }
        _ => Ok(limiter),
    }
}

fn create(
    location: &Location,
    args: &Init,
    policy: Option<Policy>,
    group: Option<Account>,
) -> Result<Limiter, Failure> {
    // The name is checked first, because a bad name needs the more detailed message.
    shmlimit::paths::LimiterName::new(&args.name)?;
    let policy = policy.ok_or_else(|| nothing_to_limit(&args.name))?;
    let builder = open::builder(location, &args.name).operator().policy(policy).ignore_environment();
    let made = match group {
        Some(group) => builder.clone().shared_with(group).create(),
        None => builder.clone().create(),
    };
    match made {
        // Another process was faster. Its limiter is used if it has the same settings.
        Err(Error::AlreadyExists { .. }) => Ok(builder.open()?),
        made => Ok(made?),
    }
}

/// Refuses to share an existing limiter that was created for one user.
fn check_shared(location: &Location, limiter: &Limiter, group: Option<Account>) -> Result<(), Failure> {
    let Some(group) = group else { return Ok(()) };
    let facts = Limiter::directory_facts(Some(limiter.directory()), location.allow_network_fs)?;
    let file_name = shmlimit::paths::LimiterName::new(limiter.name())?.file_name();
    match facts.shared_with == Some(group) && facts.permission_mismatch(&file_name)?.is_none() {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "limiter {:?} exists and is not shared with that group; share it with: {}",
            limiter.name(),
            suggestion::same_command_with("--replace")
        ))),
    }
}

fn find_group(name: &str) -> Result<Account, Failure> {
    match Account::group(name) {
        Ok(Some(group)) => Ok(group),
        _ => Err(Failure::Usage(format!(
            "there is no group {name:?} on this machine; create it with: {}",
            texts::make_group(name)
        ))),
    }
}

fn nothing_to_limit(name: &str) -> Failure {
    Failure::Usage(format!(
        "{name:?} is not a preset, so it needs settings: --rate 35/s, --concurrency 4, or --config FILE.toml \
         (presets: {})",
        presets::NAMES.join(", ")
    ))
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    text.parse().map_err(|error: RateError| error.problem().to_owned())
}

fn parse_fairness(text: &str) -> Result<Fairness, String> {
    parse_name(text)
}

fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    parse_name(text)
}

fn parse_amount(text: &str) -> Result<u64, String> {
    config::amount(text)
}
