//! `shmlimit`: rate limits for shell scripts, and a view of the programs that use them.
//!
//! Modules use each other in one direction: `main`, `commands`, modules that commands share (`open`, `poller`,
//! `setting_changes`, …), `options`, `ui`, `platform`.

#![forbid(unsafe_code)]

mod bench;
mod commands;
mod demo;
mod log;
mod open;
mod options;
mod platform;
mod poller;
mod record_channel;
mod setting_changes;
mod supervisor;
mod ui;
mod verb_trait;
mod wait_notice;

use clap::{CommandFactory, FromArgMatches, Parser};
use commands::{VERBS, Verb};
use options::Location;
use std::process::ExitCode;
use ui::failure::{EXIT_CODES, Failure, USAGE};
use ui::{output, suggestion};
use verb_trait::Tool;

/// One rate limit for every program on this machine.
///
/// Without a verb, shmlimit shows the status of all limiters.
#[derive(Debug, Parser)]
#[command(
    name = "shmlimit",
    version,
    bin_name = "shmlimit",
    infer_subcommands = false,
    disable_help_subcommand = true
)]
#[command(after_help = format!("Short guides, such as rates, retry-after, scripts: shmlimit help\n\n{EXIT_CODES}"))]
struct Args {
    #[command(flatten)]
    location: Location,
    #[command(flatten)]
    log: log::Log,
    #[command(subcommand)]
    verb: Option<Verb>,
}

fn arguments() -> clap::Command {
    commands::with_topics(Args::command())
}

fn main() -> ExitCode {
    let matches = arguments().try_get_matches();
    let args = match matches.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(answer) => {
            output::clap(&answer);
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(USAGE));
        }
    };
    run(args).unwrap_or_else(|failure| failure.report())
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    if let Some(directory) = &args.location.dir {
        let verbs = VERBS.iter().filter(|verb| verb.uses_directory).map(|verb| verb.name);
        suggestion::set_directory(directory, verbs.collect());
    }
    args.log.begin()?;
    let tool = Tool { location: &args.location, arguments, verbs: VERBS };
    args.verb.unwrap_or_default().run(&tool)
}
