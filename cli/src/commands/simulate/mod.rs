//! `simulate`: runs a script of operations on a limiter in private memory, under a virtual clock.

mod fields;
mod human;
mod input;
mod op;
mod plot;
mod result_line;
mod run;
mod summary;
mod tickets;

use crate::options::read_config;
use crate::ui::failure::Failure;
use crate::ui::json::Json;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Tool};
use input::Line;
use op::BadOp;
use plot::Plot;
use run::{Run, Step};
use shmlimit::config::Config;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use summary::Summary;

const SIMULATE_HELP: &str = "\
Operations: {\"op\":\"acquire\"}, record, release, cancel, force, pause, resume, set, headers, advance; \"t\" is \
the virtual time in nanoseconds. Each is answered by one line of JSON: docs/simulate.md.

  echo '{\"op\":\"acquire\",\"n\":40}' | shmlimit simulate --config limiter.toml

Exit codes: 0 done; 1 a line was not a valid operation; 2 usage or configuration error.";

#[derive(Debug, clap::Args)]
#[command(after_help = SIMULATE_HELP)]
pub struct Simulate {
    /// Configuration file in TOML; its keys: docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The operations, one JSON object per line [default: -, which is standard input]
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Seed of the random waits; the same seed gives the same output
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// Draw the run into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print a summary of the run to standard error at the end
    #[arg(long)]
    pub summary: bool,
}

/// At least one line was not a valid operation.
const BAD_OPS: u8 = 1;

impl Command for Simulate {
    const EXAMPLES: &'static [Example] = &[(
        "Forty calls at once, under a virtual clock:",
        "echo '{\"op\":\"acquire\",\"n\":40}' | shmlimit simulate --config api.toml",
    )];
    const USES_DIRECTORY: bool = false;

    fn run(&self, _tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let config = config(&self.config)?;
        let mut run = Run::new(config.policy(), config.epoch_ns(), self.seed);
        let mut watch = StepObservers {
            plot: self.plot.as_ref().map(|_| Plot::new(run.kind(), title(self, &config))),
            summary: self.summary.then(|| Summary::new(run.kind())),
        };
        // The file is created before the run, so that the result of a long run is not lost if the file cannot be
        // written.
        let plot = self.plot.as_deref().map(|path| Ok::<_, Failure>((path, created(path)?))).transpose()?;
        let played = match self.script.as_deref().filter(|path| *path != Path::new("-")) {
            None => execute(&mut io::stdin().lock(), &mut run, &mut watch),
            Some(path) => {
                let file = File::open(path).map_err(|error| unreadable(path, &error))?;
                execute(&mut BufReader::new(file), &mut run, &mut watch)
            }
        };
        // If standard output is closed, the run ends, and the plot and the summary show what was done so far.
        if !matches!(&played, Ok(_) | Err(Failure::Io(_))) {
            return played.map(|_| ExitCode::SUCCESS);
        }
        if let (Some((path, mut file)), Some(plot)) = (plot, &watch.plot) {
            file.write_all(plot.svg().as_bytes())
                .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))?;
        }
        if let Some(summary) = &watch.summary {
            let _ = io::stderr().write_all(summary.to_string().as_bytes());
        }
        Ok(if played? > 0 { ExitCode::from(BAD_OPS) } else { ExitCode::SUCCESS })
    }
}

fn config(path: &Path) -> Result<Config, Failure> {
    let text = read_config(path).map_err(|error| unreadable(path, &error))?;
    Config::from_toml_alone(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Returns the title of the plot: the provider and the files.
fn title(args: &Simulate, config: &Config) -> String {
    let stem =
        |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let script = args.script.as_deref().filter(|path| *path != Path::new("-"));
    let (provider, name) = (config.policy().provider().to_string(), stem(script.unwrap_or(&args.config)));
    if name == provider { provider } else { format!("{provider}: {name}") }
}

fn created(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot read {}: {error}", path.display()))
}

/// Collects figures for the plot and the summary while a script runs.
struct StepObservers {
    plot: Option<Plot>,
    summary: Option<Summary>,
}

impl StepObservers {
    fn add(&mut self, step: &Step) {
        if let Some(plot) = &mut self.plot {
            plot.add(step);
        }
        if let Some(summary) = &mut self.summary {
            summary.add(step);
        }
    }
}

/// Runs a whole script. Returns how many of its lines were not valid operations.
fn execute(script: &mut impl BufRead, run: &mut Run, watch: &mut StepObservers) -> Result<u64, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut i, mut bad) = (0, 0);
    let mut buffer = Vec::new();
    loop {
        let line = input::next(script, &mut buffer)
            .map_err(|error| Failure::Usage(format!("cannot read the script: {error}")))?;
        let read = match line {
            Line::End => return Ok(bad),
            Line::Text(text) if text.trim_ascii().is_empty() => continue,
            Line::Text(text) => op::read(text),
            Line::TooLong => {
                let message = format!("the line is longer than {} bytes", input::LONGEST_LINE);
                Err(BadOp { op: None, message })
            }
        };
        let stepped = read.and_then(|op| {
            let name = op.what.name();
            run.step(i, op).map_err(|message| BadOp { op: Some(name.to_owned()), message })
        });
        match stepped {
            Ok(step) => {
                watch.add(&step);
                put(&mut out, &step.line.into_json())?;
            }
            Err(BadOp { op, message }) => {
                bad += 1;
                put(&mut out, &result_line::bad_op(i, op, message))?;
            }
        }
        i += 1;
    }
}

/// Writes a line and flushes it, because the program that feeds the script may wait for it.
fn put(out: &mut impl Write, line: &Json) -> Result<(), Failure> {
    writeln!(out, "{}", output::to_json(line)?)?;
    Ok(out.flush()?)
}
