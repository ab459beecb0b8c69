//! The list of verbs. Each verb is a module; `demo` and `bench` live beside the commands because they only run the
//! tool.

mod acquire;
mod completions;
mod doctor;
mod force;
mod help;
mod init;
mod man;
mod metrics;
mod pause;
mod presets;
mod record;
mod rm;
mod run;
mod set;
mod simulate;
mod status;
mod top;

use crate::ui::failure::Failure;
use crate::verb_trait::{Command, Tool, VerbInfo};
use crate::{bench, demo};
use clap::Subcommand;
use std::process::ExitCode;

macro_rules! verbs {
    ($($(#[$help:meta])* $verb:ident $name:literal $module:ident),* $(,)?) => {
        #[derive(Debug, Subcommand)]
        pub enum Verb {
            $($(#[$help])* #[command(name = $name)] $verb($module::$verb)),*
        }

        /// All verbs, in the order of the help text.
        pub const VERBS: &[VerbInfo] = &[$(VerbInfo::of::<$module::$verb>($name)),*];

        impl Verb {
            pub fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
                match self { $(Verb::$verb(arguments) => arguments.run(tool)),* }
            }
        }
    };
}

verbs! {
    /// Run a command as soon as the limiter allows it
    Run "run" run,
    /// Take one call from the limiter's budget and exit
    Acquire "acquire" acquire,
    /// Report how a call ended, to all programs that share the limiter
    Record "record" record,
    /// Show limiters and who uses them
    Status "status" status,
    /// Watch all limiters live, in the terminal
    Top "top" top,
    /// Create a limiter, or change or replace one
    Init "init" init,
    /// List ready-made limiters, or write one as a configuration file
    Presets "presets" presets,
    /// Change a setting of a limiter, also while programs use it
    Set "set" set,
    /// Put a limiter's breaker into a state, or end a pause by Retry-After
    Force "force" force,
    /// Stop all calls for a while: waiting calls keep waiting
    Pause "pause" pause,
    /// End a pause: waiting calls continue in their turn
    Resume "resume" pause,
    /// Remove limiters
    Rm "rm" rm,
    /// Print counts and histograms for dashboards, as Prometheus text or JSON
    Metrics "metrics" metrics,
    /// Find problems with the directory, the clock and every limiter
    Doctor "doctor" doctor,
    /// Test a configuration: run a script of operations on a virtual clock, in private memory
    Simulate "simulate" simulate,
    /// Show four programs that call a server with a limit, without shmlimit and with it
    Demo "demo" demo,
    /// Measure what a decision costs on this machine, compared with reading the clock
    Bench "bench" bench,
    /// Explain a topic or a verb
    Help "help" help,
    /// Print the completion script of a shell
    Completions "completions" completions,
    /// Print a manual page, or write all of them
    Man "man" man,
}

/// Returns all arguments of the tool, and gives `help` the words that a shell completes after it.
pub fn with_topics(command: clap::Command) -> clap::Command {
    let words = help::Words::new(VERBS.iter().map(|verb| verb.name));
    command.mut_subcommand("help", |help| help.mut_arg("topic", |topic| topic.value_parser(words)))
}

impl Default for Verb {
    fn default() -> Verb {
        Verb::Status(status::Status::default())
    }
}
