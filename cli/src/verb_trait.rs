//! The interface of a verb: what the list of verbs, the manual and the completions need of each one.

use crate::options::Place;
use crate::ui::failure::Failure;
use std::process::ExitCode;

/// A sentence and the command line that does what it says, for the manual.
pub type Example = (&'static str, &'static str);

/// The names that a shell completes after a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Limiters that exist.
    Limiters,
    /// Limiters that could be created.
    Presets,
    /// Both: the verb creates the limiter of a preset's name, or says why there is none.
    LimitersAndPresets,
}

/// A verb, implemented by the type of its arguments.
pub trait Command {
    /// What to try, for the manual.
    const EXAMPLES: &'static [Example];
    /// What a shell completes, if the first argument is a name.
    const NAMES: Names = Names::Limiters;
    /// Whether its limiters are in a directory, so that suggested commands name the directory that was typed.
    const USES_DIRECTORY: bool = true;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure>;
}

/// The tool around a verb.
pub struct Tool<'t> {
    /// Where limiters live.
    pub place: &'t Place,
    /// All arguments of the tool, for the manual and the completions.
    pub arguments: fn() -> clap::Command,
    pub verbs: &'static [VerbInfo],
}

/// What is known of a verb without its arguments.
pub struct VerbInfo {
    pub name: &'static str,
    pub examples: &'static [Example],
    pub names: Names,
    pub uses_directory: bool,
}

impl VerbInfo {
    pub const fn of<C: Command>(name: &'static str) -> VerbInfo {
        VerbInfo { name, examples: C::EXAMPLES, names: C::NAMES, uses_directory: C::USES_DIRECTORY }
    }
}
