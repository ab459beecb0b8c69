//! `shmlimit`: rate limits for shell scripts, and a look at who uses them.

#![forbid(unsafe_code)]

mod acquire;
mod args;
mod bench;
mod caretaker;
mod completions;
mod condition;
mod crowd;
mod demo;
mod doctor;
mod failure;
mod force;
mod init;
mod log;
mod lookout;
mod man;
mod metrics;
mod next;
mod open;
mod output;
mod patience;
mod pause;
mod platform;
mod presets;
mod record;
mod rm;
mod rows;
mod run;
mod safe;
mod screen;
mod set;
mod simulate;
mod stamp;
mod status;
mod told;
mod top;
mod variables;
mod warnings;
mod watch;

use args::{Args, Verb};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(answer) => {
            output::clap(&answer);
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE));
        }
    };
    run(&args).unwrap_or_else(|failure| failure.report())
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    output::at(&args.place);
    args.log.begin()?;
    let place = &args.place;
    let Some(verb) = &args.verb else { return status::run(place, &status::Status::default()) };
    match verb {
        Verb::Run(args) => run::run(place, args),
        Verb::Acquire(args) => acquire::run(place, args),
        Verb::Record(args) => record::run(place, args),
        Verb::Status(args) => status::run(place, args),
        Verb::Top(args) => top::run(place, args),
        Verb::Init(args) => init::run(place, args),
        Verb::Presets(args) => presets::run(args),
        Verb::Set(args) => set::run(place, args),
        Verb::Force(args) => force::run(place, args),
        Verb::Pause(args) => pause::pause(place, args),
        Verb::Resume(args) => pause::resume(place, args),
        Verb::Rm(args) => rm::run(place, args),
        Verb::Metrics(args) => metrics::run(place, args),
        Verb::Doctor(args) => doctor::run(place, args),
        Verb::Simulate(args) => simulate::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Completions(args) => completions::run(place, args),
        Verb::Man(args) => man::run(args),
    }
}
