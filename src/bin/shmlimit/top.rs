//! `top`: all limiters live, in the terminal.

use crate::args::Place;
use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Top {
    /// Only this limiter
    pub name: Option<String>,
}

pub fn run(_: &Place, _: &Top) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
