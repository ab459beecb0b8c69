//! `metrics`: counts and histograms for dashboards.

use crate::args::Place;
use crate::failure::Failure;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Metrics {
    /// Only this limiter
    pub name: Option<String>,
}

pub fn run(_: &Place, _: &Metrics) -> Result<ExitCode, Failure> {
    Err(Failure::Usage("not built yet".to_owned()))
}
