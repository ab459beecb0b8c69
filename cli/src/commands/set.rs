//! `set`: changes one setting of a limiter in use.

use crate::ui::failure::Failure;
use crate::ui::json::{self, object};
use crate::ui::output;
use crate::verb_trait::{Command, Example, Names, Tool};
use crate::{open, setting_changes};
use shmlimit::describe;
use std::process::ExitCode;

const SET_HELP: &str = "\
The change takes effect at once in every program that shares the limiter, and lasts until the next change:

  shmlimit set tmdb concurrency 6
  shmlimit set tmdb rate 20/s
  shmlimit set tvdb rules.window.limit 80

Exit codes: 0 the setting has that value now; 2 usage or configuration error; 1 any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = SET_HELP)]
pub struct Set {
    /// The limiter
    pub name: String,
    /// The setting, such as rate, concurrency or rules.rps.burst; docs/configuration.md lists all
    pub key: String,
    /// Its new value, such as 20/s, 4, 0.3, 15m or unlimited
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Print the change as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Command for Set {
    const EXAMPLES: &'static [Example] = &[
        ("Eight calls at a time from now on:", "shmlimit set api concurrency 8"),
        ("Another rate; calls made so far still count:", "shmlimit set api rate 100/m"),
    ];
    const NAMES: Names = Names::LimitersAndPresets;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let limiter = open::as_operator(tool.location, &self.name)?;
        let before = limiter.policy()?;
        let after = limiter
            .set(&self.key, &self.value)
            .map_err(|error| setting_changes::explained(&self.name, error))?;
        if self.json {
            let changes = json::list(setting_changes::changes(&before, &after));
            output::json(&object! { "name": limiter.name(), "changes": changes })?;
        } else {
            let changed = describe::changes(&before, &after);
            let changed = if changed.is_empty() { "unchanged".to_owned() } else { changed };
            output::line(&format!("{}: {changed}", limiter.name()))?;
        }
        setting_changes::remark_effects(limiter.name(), &self.key, &before, &after);
        Ok(ExitCode::SUCCESS)
    }
}
