//! `presets`: lists ready-made limiters, or writes one as a configuration file.

use crate::setting_changes;
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::layout::{self, ScreenStyle};
use crate::ui::output;
use crate::verb_trait::{Command, Example, Names, Tool};
use shmlimit::config::{nearest, to_toml};
use shmlimit::presets::{self, Preset};
use std::process::ExitCode;

const PRESETS_HELP: &str = "\
A limiter with the name of a preset is created when it is first used. To change its settings before that:

  shmlimit presets musicbrainz > musicbrainz.toml
  shmlimit init musicbrainz --config musicbrainz.toml";

#[derive(Debug, clap::Args)]
#[command(after_help = PRESETS_HELP)]
pub struct Presets {
    /// Print this preset as a file for: shmlimit init NAME --config FILE
    pub name: Option<String>,
    /// Print one JSON object for each preset, one per line, with its settings
    #[arg(long)]
    pub json: bool,
}

impl Command for Presets {
    const EXAMPLES: &'static [Example] =
        &[("Start a file of your own from a preset:", "shmlimit presets tmdb > api.toml")];
    const NAMES: Names = Names::Presets;
    const USES_DIRECTORY: bool = false;

    fn run(&self, _tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        match &self.name {
            Some(name) if self.json => output::json(&line(find(name)?)?)?,
            Some(name) => output::text(&file(find(name)?)?)?,
            None if self.json => {
                for preset in presets::all() {
                    output::json(&line(preset)?)?;
                }
            }
            None => {
                let width = presets::NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
                let screen = ScreenStyle::for_stdout();
                // Output that is not a terminal has no width limit.
                let room =
                    if screen.cuts { screen.width.saturating_sub(width + 2).max(24) } else { usize::MAX };
                for preset in presets::all() {
                    let about: Vec<String> = layout::wrap(preset.about, room).collect();
                    let next = format!("\n{:width$}  ", "");
                    output::line(&format!("{:width$}  {}", preset.name, about.join(&next)))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    presets::all().iter().find(|preset| preset.name == name).ok_or_else(|| {
        let meant = match nearest(name, presets::NAMES) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("presets: {}", presets::NAMES.join(", ")),
        };
        Failure::Usage(format!("no preset {name:?}; {meant}"))
    })
}

/// Returns a limiter file with notes for its users at the top.
fn file(preset: &Preset) -> Result<String, Failure> {
    let policy = preset.policy().map_err(shmlimit::Error::from)?;
    let mut text = format!("# {}: {}\n# {}\n", preset.name, preset.about, preset.source);
    for note in preset.notes {
        text += &format!("# {note}\n");
    }
    Ok(text + "\n" + &to_toml(&policy))
}

fn line(preset: &Preset) -> Result<Json, Failure> {
    Ok(object! {
        "name": preset.name,
        "about": preset.about,
        "source": preset.source,
        "notes": json::list(preset.notes.iter().copied()),
        "settings": setting_changes::to_json(&preset.policy().map_err(shmlimit::Error::from)?),
    })
}
