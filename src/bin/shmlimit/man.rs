//! `man`: the manual pages, made from the same words as --help.

use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write all pages into this directory
    #[arg(long)]
    pub to: Option<std::path::PathBuf>,
}

pub fn run(_: &Man) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
