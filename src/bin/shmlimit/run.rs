//! `run`: a command inside the budget, otherwise as if it had been started directly.

use crate::args::{Place, Run};
use crate::failure::Failure;
use crate::{open, output, relay};
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

const NOT_FOUND: u8 = 127;
const CANNOT_RUN: u8 = 126;
const CANNOT_WAIT: u8 = 1;

pub fn run(place: &Place, args: &Run) -> Result<ExitCode, Failure> {
    let limiter = open::to_use(place, &args.name, &args.asking)?;
    let mut request = open::request(&args.asking);
    if let Some(timeout) = args.timeout {
        request = request.timeout(timeout);
    }
    let grant = limiter.acquire(&request).map_err(|error| Failure::to_acquire(&limiter, error))?;

    let (program, arguments) =
        args.command.split_first().unwrap_or_else(|| unreachable!("clap requires one"));
    let mut command = Command::new(program);
    command.args(arguments);
    let started = match relay::start(command) {
        Ok(started) => started,
        Err(error) => {
            // The call was never made: it gets back what it took.
            give_back(grant.cancel());
            let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
            return Err(Failure::Command(format!("cannot run {}: {error}", program.display()), code));
        }
    };
    let end = started.attend().map_err(|error| {
        Failure::Command(format!("cannot wait for {}: {error}", program.display()), CANNOT_WAIT)
    })?;
    give_back(grant.release());
    Ok(end.into_exit_code())
}

/// How the command ended is the answer, whatever becomes of the permit: at the latest it comes back when this process
/// ends, in a moment.
fn give_back(outcome: Result<(), shmlimit::Error>) {
    if let Err(error) = outcome {
        output::remark(&format!("warning: {error}"));
    }
}
