//! `doctor`: finds what is wrong with the directory, the clock and the limiters, and says what to do.

mod clock;
mod directory;
mod environment;
mod files;
mod finding;
mod limiter;

use crate::open;
use crate::ui::failure::Failure;
use crate::verb_trait::{Command, Example, Tool};
use finding::Finding;
use shmlimit::Limiter;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "doctor checks the directory, the clock, the environment and every limiter. It never waits, and \
                  changes nothing without --fix. With --fix it frees the slots of exited processes, undoes their \
                  unfinished changes, takes away other users' right to write to files, and removes temporary files. \
                  It never removes a limiter.\n\nExit codes: 0 no problems, or only warnings; 1 something is bad; 2 \
                  no such limiter."
)]
pub struct Doctor {
    /// Check only these limiters [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Repair what can be repaired safely
    #[arg(long)]
    pub fix: bool,
    /// Print one JSON object for each finding, one per line: check, level, subject, message, advice, fixed
    #[arg(long)]
    pub json: bool,
}

impl Command for Doctor {
    const EXAMPLES: &'static [Example] = &[("Check, then repair:", "shmlimit doctor\nshmlimit doctor --fix")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let mut findings = vec![clock::check()];
        findings.extend(environment::check());
        match directory::check(tool.location, self.fix, &mut findings) {
            Some(facts) => {
                let names = Limiter::list(Some(&facts.path)).map(|listing| listing.names).unwrap_or_default();
                if let Some(missing) = self.names.iter().find(|name| !names.contains(name)) {
                    shmlimit::paths::LimiterName::new(missing)?;
                    return Err(open::unknown_limiter(tool.location, missing));
                }
                if self.names.is_empty() {
                    files::check(&facts, self.fix, &mut findings);
                }
                for name in if self.names.is_empty() { &names } else { &self.names } {
                    limiter::check(tool.location, &facts, name, self.fix, &mut findings);
                }
            }
            None => {
                // If the directory itself is broken, that finding is the answer.
                let missing = self.names.first().filter(|_| !findings.iter().any(Finding::is_bad));
                if let Some(missing) = missing {
                    return Err(open::unknown_limiter(tool.location, missing));
                }
            }
        }
        finding::write(&findings, self.json)?;
        Ok(if findings.iter().any(Finding::is_bad) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
