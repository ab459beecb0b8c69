//! `rm`: removes limiters.

use crate::args::Place;
use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Rm {
    /// The limiters
    #[arg(required = true)]
    pub names: Vec<String>,
}

pub fn run(_: &Place, _: &Rm) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
