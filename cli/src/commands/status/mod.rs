//! `status`: shows limiters, what is left of their budgets, and the programs that use them.

mod watch;

use crate::open;
use crate::options::{Location, is_bare_number, parse_duration};
use crate::poller::{Poller, without_observer};
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::layout::ScreenStyle;
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::{overview, warnings};
use crate::ui::output;
use crate::verb_trait::{Command, Example, Tool};
use shmlimit::{Limiter, Snapshot, paths};
use std::process::ExitCode;
use std::time::Duration;

/// The shortest interval of `--watch`.
const SHORTEST: Duration = Duration::from_millis(100);

const STATUS_HELP: &str = "\
Examples:
  shmlimit status tmdb
  shmlimit status tmdb --toml > tmdb.toml
  shmlimit status --watch              every second, in place; Ctrl-C ends
  shmlimit status --json --watch 5     a line for each limiter every five seconds";

#[derive(Debug, Default, clap::Args)]
#[command(after_help = STATUS_HELP)]
pub struct Status {
    /// Show only this limiter
    pub name: Option<String>,
    /// Show every process and every waiting call, not only the first ones
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// Print one JSON object for each limiter, one per line
    #[arg(long)]
    pub json: bool,
    /// Print the settings of the limiter as a configuration file
    #[arg(long, requires = "name", conflicts_with_all = ["json", "all", "watch"])]
    pub toml: bool,
    /// Repeat at this interval, such as 2 (seconds) or 500ms [default: 1s]
    #[arg(long, num_args = 0..=1, default_missing_value = "1s", value_name = "TIME")]
    pub watch: Option<String>,
}

impl Command for Status {
    const EXAMPLES: &'static [Example] = &[("For programs:", "shmlimit status api --json")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        if let Some(often) = &self.watch {
            let (every, name) = interval(often, self.name.as_deref())?;
            return watch(tool.location, self, every, name);
        }
        if let Some(name) = &self.name {
            let limiter = open::observer(tool.location, name)?
                .ok_or_else(|| open::unknown_limiter(tool.location, name))?;
            let text = match self.toml {
                true => shmlimit::config::to_toml(&limiter.policy()?),
                false => show(&limiter, self)?,
            };
            output::text(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let names = match Limiter::list(tool.location.dir.as_deref()) {
            Ok(listing) => {
                if listing.names.is_empty() {
                    open::remark_note(listing.note.as_deref());
                }
                listing.names
            }
            Err(error) if open::is_missing(&error) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if names.is_empty() && !self.json {
            output::line(&hint(tool.location))?;
        }
        show_all(tool.location, self, &names)
    }
}

/// Separates the interval of `--watch` from a name: in `--watch NAME`, a word that is not a time but a valid name is
/// the name.
fn interval<'a>(often: &'a str, name: Option<&'a str>) -> Result<(Duration, Option<&'a str>), Failure> {
    let wrong = |why: &str| Failure::Usage(format!("--watch {often:?}: {why}"));
    let bare = is_bare_number(often);
    let every = parse_duration(&if bare { format!("{often}s") } else { often.to_owned() });
    match every {
        Ok(every) if every < SHORTEST => Err(wrong("must be at least 100ms")),
        Ok(every) => Ok((every, name)),
        Err(_) if name.is_none() && !bare => Ok((Duration::from_secs(1), Some(often))),
        Err(why) => Err(wrong(&why)),
    }
}

/// Watches until Ctrl-C, or until standard output is closed.
fn watch(
    location: &Location,
    args: &Status,
    every: Duration,
    name: Option<&str>,
) -> Result<ExitCode, Failure> {
    let mut poller = Poller::new(location, name.map(str::to_owned));
    // A limiter with an invalid name can never appear, so this fails early.
    if let Some(name) = name {
        open::observer(location, name)?;
    }
    if args.json {
        watch::json(&mut poller, every, json)?;
    } else {
        let nothing =
            || name.map_or_else(|| hint(location), |name| open::unknown_limiter(location, name).to_string());
        watch::text(&mut poller, every, args.all, &nothing)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows all limiters. A limiter that cannot be shown is reported on standard error, so that one bad segment does not
/// hide the others.
fn show_all(location: &Location, args: &Status, names: &[String]) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    let mut first = true;
    for name in names {
        let shown = match open::observer(location, name) {
            Ok(None) => continue,
            Ok(Some(limiter)) => show(&limiter, args),
            Err(failure) => Err(failure),
        };
        match shown {
            Ok(text) => {
                let gap = if first || args.json { "" } else { "\n" };
                output::text(&format!("{gap}{text}"))?;
                first = false;
            }
            Err(failure) => code = failure.report(),
        }
    }
    Ok(code)
}

fn show(limiter: &Limiter, args: &Status) -> Result<String, Failure> {
    let snapshot = without_observer(limiter.snapshot()?);
    if args.json {
        json(&snapshot)
    } else {
        Ok(overview::render(&snapshot, args.all, ScreenStyle::for_stdout()))
    }
}

/// The key of the snapshot's document before which `next_change` and `warnings` are inserted.
const AFTER: &str = "fairness";

/// Returns one line of `--json`: the snapshot's document, with the keys that the tool adds. The keys are a contract:
/// docs/status-json.md.
fn json(snapshot: &Snapshot) -> Result<String, Failure> {
    let mut document = snapshot.document();
    let position = document.iter().position(|(name, _)| name == AFTER).unwrap_or(document.len());
    let after = document.split_off(position);
    let derived = object! {
        "next_change": Change::of(snapshot).as_ref().map(Change::to_json),
        "warnings": json::list(warnings::of(&snapshot.name, &snapshot.condition)),
    };
    Ok(output::to_json(&Json(document).and(derived.0).and(after))? + "\n")
}

fn hint(location: &Location) -> String {
    let candidates = paths::candidates(location.dir.as_deref());
    let used = Limiter::list(location.dir.as_deref()).ok().map(|listing| listing.directory);
    let elsewhere = used.as_ref().and_then(|used| open::limiters_elsewhere(location, used));
    if let (Some(used), Some(elsewhere)) = (&used, elsewhere) {
        return format!("No limiters in {}, but {elsewhere}", used.display());
    }
    let directories: Vec<String> = match used {
        Some(used) => vec![used.display().to_string()],
        None => candidates.iter().map(|candidate| candidate.path.display().to_string()).collect(),
    };
    format!(
        "No limiters yet in {}.\nTry:  shmlimit run tmdb -- echo hello      (a preset: 35 a second, 4 at a time)\nor:   shmlimit init NAME --rate 10/s        (your own)",
        directories.join(" or ")
    )
}
