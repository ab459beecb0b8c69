//! `completions`: what a shell needs to complete our words.

use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Completions {
    /// bash, zsh, fish or powershell
    pub shell: String,
}

pub fn run(_: &Completions) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
