//! `set`: changes one setting of a limiter in use.

use crate::command::{Command, Example, Names, Tool};
use crate::options::Place;
use crate::ui::failure::Failure;
use crate::ui::output;
use crate::{open, settings};
use serde::Serialize;
use shmlimit::describe;
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

impl Command for Set {
    const EXAMPLES: &'static [Example] = &[
        ("Eight calls at a time from now on:", "shmlimit set api concurrency 8"),
        ("Another rate, with what was used so far:", "shmlimit set api rate 100/m"),
    ];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        run(tool.place, self)
    }
}

fn run(place: &Place, args: &Set) -> Result<ExitCode, Failure> {
    let limiter = open::as_operator(place, &args.name)?;
    let before = limiter.policy()?;
    let after =
        limiter.set(&args.key, &args.value).map_err(|error| settings::explained(&args.name, error))?;
    if args.json {
        output::json(&Line { name: limiter.name(), changes: settings::changes(&before, &after) })?;
    } else {
        let changed = describe::changes(&before, &after);
        let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
        output::line(&format!("{}: {changed}", limiter.name()))?;
    }
    settings::remark_effects(limiter.name(), &args.key, &before, &after);
    Ok(ExitCode::SUCCESS)
}

/// `--json`. The keys are a contract: docs/json.md.
#[derive(Serialize)]
struct Line<'l> {
    name: &'l str,
    changes: Vec<settings::Change>,
}
