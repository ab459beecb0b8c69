//! `rm`: removes limiters.

use crate::open;
use crate::options::Location;
use crate::ui::failure::{Failure, REFUSED};
use crate::ui::json::{self, Json, object};
use crate::ui::{escape, output, suggestion};
use crate::verb_trait::{Command, Example, Tool};
use shmlimit::{Error, Removal};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The counts of a limiter are removed with it: a new limiter of that name starts with full buckets. A \
                  limiter that programs have open is not removed (exit code 75). With --force it is removed, and \
                  calls of those programs fail until the limiter is created again.\n\nExample: shmlimit rm old-api"
)]
pub struct Rm {
    /// The limiters
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Remove limiters even if programs use them, or if they are damaged or of another version. Files that are not
    /// limiters always stay
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object for each limiter, one per line: name, removed, users (pid and program of each process
    /// that has it open)
    #[arg(long)]
    pub json: bool,
}

/// Returns one line of `--json`.
fn line(name: &str, removed: bool, users: Vec<(u32, String)>) -> Json {
    let users = users.into_iter().map(|(pid, program)| object! { "pid": pid, "program": program });
    object! { "name": name, "removed": removed, "users": json::list(users) }
}

/// How many users of a limiter a message names.
const NAMED: usize = 5;

impl Command for Rm {
    const EXAMPLES: &'static [Example] = &[("Remove a limiter that no program uses:", "shmlimit rm api")];

    /// Removes all limiters that can be removed. The exit code is that of the last one that cannot.
    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let mut code = ExitCode::SUCCESS;
        for name in &self.names {
            match remove(tool.location, self, name) {
                Ok(()) => {}
                Err(Failure::Io(error)) => return Err(Failure::Io(error)),
                Err(failure) => code = failure.report(),
            }
        }
        Ok(code)
    }
}

fn remove(location: &Location, args: &Rm, name: &str) -> Result<(), Failure> {
    // Removing a limiter must not apply settings of the environment to it.
    let builder = open::builder(location, name).ignore_environment();
    let removal = match builder.remove(args.force) {
        Err(error) if open::is_missing(&error) => Removal::Absent,
        Err(error @ (Error::Foreign { segment: true, .. } | Error::Damaged { .. })) => {
            return Err(Failure::Usage(error.to_string()));
        }
        removal => removal?,
    };
    let users = match removal {
        Removal::Removed if args.json => {
            return Ok(output::json(&line(name, true, Vec::new()))?);
        }
        Removal::Removed => return Ok(output::line(&format!("{name}: removed"))?),
        Removal::InUse(users) => users,
        _ => return Err(open::nothing_to_remove(location, name)),
    };
    let message = in_use(name, &users);
    if args.json {
        output::json(&line(name, false, users))?;
    }
    Err(Failure::Refused(message, REFUSED))
}

fn in_use(name: &str, users: &[(u32, String)]) -> String {
    let who = |(pid, program): &(u32, String)| match pid {
        // The process holds a permit of a file that was deleted by hand. The permit does not record which process
        // holds it.
        0 => "a program that still has its deleted file open".to_owned(),
        pid => format!("{} ({pid})", escape::printable(program)),
    };
    let mut list: Vec<String> = users.iter().take(NAMED).map(who).collect();
    if users.len() > NAMED {
        list.push(format!("{} more", users.len() - NAMED));
    }
    format!(
        "{name}: not removed, because it is in use by {}; end them first, or remove it anyway with: {}",
        list.join(", "),
        suggestion::remove_command(name)
    )
}
