//! `shmlimit`: rate limits for shell scripts, and a look at who uses them.

#![forbid(unsafe_code)]

mod acquire;
mod args;
mod condition;
mod crowd;
mod failure;
mod force;
mod init;
mod open;
mod output;
mod presets;
mod record;
mod relay;
mod run;
mod screen;
mod simulate;
mod status;

use args::{Args, Verb};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(answer) => {
            // Help for a pager that was quit is not a failure.
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE));
        }
    };
    run(&args).unwrap_or_else(|failure| failure.report())
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.verb {
        Some(Verb::Run(run)) => run::run(&args.place, run),
        Some(Verb::Acquire(acquire)) => acquire::run(&args.place, acquire),
        Some(Verb::Init(init)) => init::run(&args.place, init),
        Some(Verb::Presets(presets)) => presets::run(presets),
        Some(Verb::Record(record)) => record::run(&args.place, record),
        Some(Verb::Force(force)) => force::run(&args.place, force),
        Some(Verb::Set(set)) => force::set(&args.place, set),
        Some(Verb::Simulate(simulate)) => simulate::run(simulate),
        Some(Verb::Status(status)) => status::run(&args.place, status),
        None => status::run(&args.place, &args::Status::default()),
    }
}
