//! `presets`: ready-made limiters, as a list or as a file to start from.

use crate::failure::Failure;
use crate::output;
use serde::Serialize;
use shmlimit::config::{nearest, to_toml};
use shmlimit::presets::{self, Preset};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Presets {
    /// Write this one, as a file for: shmlimit init NAME --config FILE
    pub name: Option<String>,
    /// One JSON object per line and preset
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

pub fn run(args: &Presets) -> Result<ExitCode, Failure> {
    match &args.name {
        Some(name) => output::text(&file(find(name)?)?)?,
        None if args.json => {
            for preset in presets::all() {
                let line = serde_json::to_string(&Line::of(preset)).map_err(std::io::Error::from)?;
                output::line(&line)?;
            }
        }
        None => {
            let width = presets::NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
            for preset in presets::all() {
                output::line(&format!("{:width$}  {}", preset.name, preset.about))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    presets::all().iter().find(|preset| preset.name == name).ok_or_else(|| {
        let meant = match nearest(name, presets::NAMES) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are: {}", presets::NAMES.join(", ")),
        };
        Failure::Usage(format!("no preset {name:?}; {meant}"))
    })
}

/// A limiter file with what its users should know on top.
fn file(preset: &Preset) -> Result<String, Failure> {
    let policy = preset.policy().map_err(shmlimit::Error::from)?;
    let mut text = format!("# {}: {}\n# {}\n", preset.name, preset.about, preset.source);
    for note in preset.notes {
        text += &format!("# {note}\n");
    }
    Ok(text + "\n" + &to_toml(&policy))
}

#[derive(Serialize)]
struct Line<'p> {
    name: &'p str,
    about: &'p str,
    source: &'p str,
    notes: &'p [&'p str],
}

impl Line<'_> {
    fn of(preset: &Preset) -> Line<'_> {
        Line { name: preset.name, about: preset.about, source: preset.source, notes: preset.notes }
    }
}
