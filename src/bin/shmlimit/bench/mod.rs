//! `bench`: what a decision costs on this machine.

use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Bench {
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}

pub fn run(_: &Bench) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
