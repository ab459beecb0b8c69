//! `acquire`: takes one call's cost from the budget. The permit ends with this process.

use crate::args::{Asking, EXIT_CODES, Place, time};
use crate::failure::Failure;
use crate::open;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Acquire {
    /// The limiter
    pub name: String,
    #[command(flatten)]
    pub asking: Asking,
    /// Wait no longer than this, such as 5s; refused at once if that cannot be enough [default: any time]
    #[arg(long, value_parser = time, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "now")]
    pub timeout: Option<Duration>,
    /// Do not wait at all
    #[arg(long)]
    pub now: bool,
}

pub fn run(place: &Place, args: &Acquire) -> Result<ExitCode, Failure> {
    let limiter = open::to_use(place, &args.name, &args.asking)?;
    let mut request = open::request(&args.asking);
    if let Some(timeout) = args.timeout {
        request = request.timeout(timeout);
    }
    let answer = if args.now { limiter.try_acquire(&request) } else { limiter.acquire(&request) };
    answer.map_err(|error| Failure::to_acquire(&limiter, error))?.release()?;
    Ok(ExitCode::SUCCESS)
}
