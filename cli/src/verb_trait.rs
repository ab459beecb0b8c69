//! The interface of a verb: the data that the list of verbs, the manual and the completions need.

use crate::options::Location;
use crate::ui::failure::Failure;
use std::process::ExitCode;

/// A sentence for the manual, and the command line that does what it says.
pub type Example = (&'static str, &'static str);

/// The names that a shell completes after a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Limiters that exist.
    Limiters,
    /// Limiters that could be created.
    Presets,
    /// Both, because the verb creates the limiter of a preset's name, or says why it does not exist.
    LimitersAndPresets,
}

/// A verb, implemented by the type of its arguments.
pub trait Command {
    /// The examples in the manual.
    const EXAMPLES: &'static [Example];
    /// The names that a shell completes, if the first argument is a name.
    const NAMES: Names = Names::Limiters;
    /// Whether the verb's limiters are in a directory, so that suggested commands repeat the `--dir` of the user.
    const USES_DIRECTORY: bool = true;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure>;
}

/// The parts of the tool that a verb uses.
pub struct Tool<'t> {
    /// The directory of the limiters.
    pub location: &'t Location,
    /// Returns all arguments of the tool, for the manual and the completions.
    pub arguments: fn() -> clap::Command,
    pub verbs: &'static [VerbInfo],
}

/// The facts about a verb that do not depend on its arguments.
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
