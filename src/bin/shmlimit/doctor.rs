//! `doctor`: what is wrong here, in words, and what to do about it.

use crate::args::Place;
use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Repair what can be repaired
    #[arg(long)]
    pub fix: bool,
}

pub fn run(_: &Place, _: &Doctor) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
