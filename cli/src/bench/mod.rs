//! `bench`: measures the cost of a decision on this machine, and of the alternatives in the same run.

mod contended;
mod decisions;
mod load;
mod machine;
mod measure;
mod operations;
mod report;
mod shapes;
mod startup;
mod waiting;

use crate::supervisor::Supervisor;
use crate::ui::failure::Failure;
use crate::ui::output::{self, Paint};
use crate::verb_trait::{Command, Example, Tool};
use report::Row;
use std::io;
use std::process::{self, ExitCode};
use std::time::Duration;

const BENCH_HELP: &str = "\
The unit is one precise clock read, which every limiter must make: ratios can be compared between machines. The \
measured operations take turns, and the median counts, so that other work on the machine disturbs all of them \
alike. Still, run it on an idle machine. The limiters are in a temporary directory, and yours are not touched.

\"nearly\" means within 10 % of a target, which other work on the machine may explain. \"goal\" means that a stricter \
figure than the required one is met. \"(busy)\" means that the target does not count, because other programs used the \
processors. docs/benchmarks.md explains how each figure is measured.

Exit codes: 0 measured, whatever the figures are (with --check, 1 if a required target is missed); 2 usage error; 1 \
any other error.";

#[derive(Debug, clap::Args)]
#[command(after_help = BENCH_HELP)]
pub struct Bench {
    /// Print one JSON object per line: the machine, then each figure
    #[arg(long)]
    pub json: bool,
    /// Measure for a few seconds instead of about 10; the figures are rough
    #[arg(long)]
    pub quick: bool,
    /// Exit with code 1 if a required target is missed by more than 10 %
    #[arg(long)]
    pub check: bool,
    /// The role of a process that the benchmark starts itself
    #[arg(long, hide = true, num_args = 1.., value_name = "ROLE")]
    pub act_as: Vec<String>,
}

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds of decisions and attachments.
    rounds: usize,
    /// Rounds of whole processes.
    process_rounds: usize,
    /// Turns of each load of several processes, and the length of one turn.
    turns: usize,
    turn: Duration,
    /// How long to watch waiting callers.
    waiting: Duration,
}

const THOROUGH: Effort = Effort {
    rounds: 151,
    process_rounds: 61,
    turns: 3,
    turn: Duration::from_millis(150),
    waiting: Duration::from_secs(2),
};

const QUICK: Effort = Effort {
    rounds: 21,
    process_rounds: 11,
    turns: 1,
    turn: Duration::from_millis(40),
    waiting: Duration::from_millis(600),
};

/// The private directory of the benchmark, and the processes that work there.
pub struct BenchDirectory {
    supervisor: Supervisor,
}

impl BenchDirectory {
    pub fn directory(&self) -> &std::path::Path {
        self.supervisor.directory()
    }

    /// Returns a command that runs this tool as a worker, which ends with this process.
    pub fn worker(&self, role: &str) -> process::Command {
        let mut command = process::Command::new(self.supervisor.tool());
        command.args(["bench", "--act-as", role]);
        self.supervisor.add(&mut command);
        command
    }

    /// Returns a command that runs this tool as a user would.
    pub fn tool(&self) -> process::Command {
        let mut command = process::Command::new(self.supervisor.tool());
        command.arg("--dir").arg(self.directory());
        command
    }
}

impl Command for Bench {
    const EXAMPLES: &'static [Example] = &[("Measure this machine:", "shmlimit bench")];
    const USES_DIRECTORY: bool = false;

    fn run(&self, _tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        match self.act_as.split_first() {
            Some((role, words)) if role == "load" => {
                load::work(words)?;
                return Ok(ExitCode::SUCCESS);
            }
            Some((role, words)) if role == "caller" => return waiting::work(words),
            Some((role, _)) => return Err(Failure::Usage(format!("--act-as {role:?}: no such part"))),
            None => {}
        }
        let effort = if self.quick { QUICK } else { THOROUGH };
        let bench = BenchDirectory { supervisor: Supervisor::start()? };
        let mut listener = Listener { json: self.json, paint: Paint::for_stdout(), missed: 0 };
        listener.machine(self.quick)?;
        let decisions::Rows { parts, limiters } = decisions::measure(effort, &bench)?;
        listener.part("one process", parts)?;
        listener.part("one process: acquire and release", limiters)?;
        listener.part("several processes at once", contended::measure(effort, &bench)?)?;
        listener.part("coming and going", startup::measure(effort, &bench)?)?;
        listener
            .part("eight processes that wait for 1000 calls a second", waiting::measure(effort, &bench)?)?;
        Ok(if self.check && listener.missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// The failure when the benchmark's worker processes did not work.
fn no_workers(error: std::io::Error) -> Failure {
    Failure::Command(format!("cannot measure with several processes: {error}"), 1)
}

/// Prints the figures.
struct Listener {
    json: bool,
    paint: Paint,
    missed: usize,
}

impl Listener {
    fn machine(&self, quick: bool) -> io::Result<()> {
        let machine = machine::Machine::detect();
        if self.json {
            return output::line(&machine.to_json(quick).to_string());
        }
        output::line(&machine.to_text())?;
        if cfg!(debug_assertions) {
            output::line("a debug build: these figures say little; build with --release")?;
        }
        output::line(if quick { "a quick look: figures are rough" } else { "about 10 seconds …" })
    }

    fn part(&mut self, title: &str, rows: Vec<Row>) -> io::Result<()> {
        self.missed += rows.iter().filter(|row| row.is_missed()).count();
        if self.json {
            return rows.iter().try_for_each(|row| output::line(&row.to_json().to_string()));
        }
        output::line(&format!("\n{}", Row::heading(title, self.paint)))?;
        rows.iter().try_for_each(|row| output::line(&row.line(self.paint)))
    }
}
