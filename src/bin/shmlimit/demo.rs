//! `demo`: four programs and a server with a limit, without shmlimit and with it.

use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Lines instead of a picture
    #[arg(long)]
    pub plain: bool,
}

pub fn run(_: &Demo) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
