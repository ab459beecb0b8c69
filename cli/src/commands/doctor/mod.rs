//! `doctor`: finds what is wrong with the directory, the clock and the limiters, and says what to do.

mod clock;
mod directory;
mod environment;
mod files;
mod finding;
mod limiter;

use crate::command::{Command, Example, Tool};
use crate::open;
use crate::options::Place;
use crate::ui::failure::Failure;
use finding::Finding;
use shmlimit::Limiter;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "It looks at the directory, the clock, the environment and every limiter, waits for nobody, and \
                        changes nothing unless told to. With --fix it frees the places of processes that died, undoes \
                        what they left half done, closes files that others could write, and removes temporary files \
                        of interrupted makers. It never removes a limiter.\n\nExit codes: 0 all is well, or only \
                        warnings; 1 something is bad; 2 no such limiter."
)]
pub struct Doctor {
    /// Only these limiters [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Repair what can be repaired without harm
    #[arg(long)]
    pub fix: bool,
    /// One JSON object per line and finding: check, level, subject, message, advice, fixed
    #[arg(long)]
    pub json: bool,
}

impl Command for Doctor {
    const EXAMPLES: &'static [Example] = &[("Look, then repair:", "shmlimit doctor\nshmlimit doctor --fix")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        run(tool.place, self)
    }
}

fn run(place: &Place, args: &Doctor) -> Result<ExitCode, Failure> {
    let mut findings = vec![clock::check()];
    findings.extend(environment::check());
    match directory::check(place, args.fix, &mut findings) {
        Some(facts) => {
            let names = Limiter::list(Some(&facts.path)).map(|listing| listing.names).unwrap_or_default();
            if let Some(missing) = args.names.iter().find(|name| !names.contains(name)) {
                shmlimit::paths::LimiterName::new(missing)?;
                return Err(open::unknown_limiter(place, missing));
            }
            if args.names.is_empty() {
                files::check(&facts, args.fix, &mut findings);
            }
            for name in if args.names.is_empty() { &names } else { &args.names } {
                limiter::check(place, &facts, name, args.fix, &mut findings);
            }
        }
        None => {
            // The directory's own trouble is the answer, if it has any.
            let missing = args.names.first().filter(|_| !findings.iter().any(Finding::is_bad));
            if let Some(missing) = missing {
                return Err(open::unknown_limiter(place, missing));
            }
        }
    }
    finding::write(&findings, args.json)?;
    Ok(if findings.iter().any(Finding::is_bad) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
