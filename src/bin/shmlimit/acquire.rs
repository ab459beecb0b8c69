//! `acquire`: takes one call's cost from the budget. The permit ends with this process.

use crate::args::{Acquire, Place};
use crate::failure::Failure;
use crate::open;
use std::process::ExitCode;

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
