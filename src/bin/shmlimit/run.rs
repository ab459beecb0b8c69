//! `run`: a command inside the budget, otherwise as if it had been started directly.

use crate::args::{Asking, EXIT_CODES, Place, time};
use crate::failure::Failure;
use crate::{open, output, relay};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(override_usage = "shmlimit run [OPTIONS] <NAME> -- <CMD>...", after_help = EXIT_CODES)]
pub struct Run {
    /// The limiter
    pub name: String,
    #[command(flatten)]
    pub asking: Asking,
    /// Wait no longer than this, such as 5s; refused at once if that cannot be enough [default: any time]
    #[arg(long, value_parser = time, allow_hyphen_values = true, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// The command and its arguments
    // Hyphens are the command's own only after its first word: a mistyped option must not become the command.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

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
