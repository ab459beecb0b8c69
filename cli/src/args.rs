//! What can be typed: the verbs, and what more than one of them takes. The rest is with each verb.

use crate::failure::REFUSED;
use crate::platform::words;
use crate::{
    acquire, bench, completions, demo, doctor, force, init, log, man, metrics, pause, presets, record, rm,
    run, safe, set, simulate, status, top,
};
use clap::{Parser, Subcommand};
use shmlimit::Priority;
use shmlimit::config;
use std::path::PathBuf;
use std::time::Duration;

/// One rate limit for every program on this machine.
///
/// Without a verb: status.
#[derive(Debug, Parser)]
#[command(version, bin_name = "shmlimit", infer_subcommands = false, after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub log: log::Log,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

pub const EXIT_CODES: &str = "Exit codes: 0 done or granted, 75 refused for now (`run` and `acquire`: or -E), 2 usage or \
                          configuration, 1 anything else; `run` passes on the command's own (127 not found, 126 cannot be run).";

fn dir_help() -> String {
    let defaults = words::DEFAULT_DIRECTORIES;
    format!(
        "Directory of the limiters [default: the first there is of $SHMLIMIT_DIR, $ANIVAULT_DIR, {defaults}]"
    )
}

/// Keeps what every verb takes apart from what only one takes.
const WHERE: &str = "Where limiters live";

/// Where limiters live.
#[derive(Debug, clap::Args)]
pub struct Place {
    #[arg(long, global = true, value_name = "DIR", help_heading = WHERE, help = dir_help())]
    pub dir: Option<PathBuf>,
    /// Trust a directory on a network file system
    #[arg(long, global = true, help_heading = WHERE)]
    pub allow_network_fs: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command as soon as the limiter allows
    Run(run::Run),
    /// Take one call from the limiter's budget and exit
    Acquire(acquire::Acquire),
    /// Tell the limiter how a call ended, for all who share it
    Record(record::Record),
    /// Show limiters and who uses them
    Status(status::Status),
    /// Watch all limiters live, in the terminal
    Top(top::Top),
    /// Make a limiter
    Init(init::Init),
    /// List ready-made limiters, or write one as a configuration file
    Presets(presets::Presets),
    /// Change a setting of a limiter in use, for all who share it
    Set(set::Set),
    /// Put a limiter's breaker into a state, or end what a Retry-After began
    Force(force::Force),
    /// Stop all calls for a while: waiting calls keep waiting
    Pause(pause::Pause),
    /// End a pause: waiting calls go on in their turn
    Resume(pause::Resume),
    /// Remove limiters
    Rm(rm::Rm),
    /// Counts and histograms for dashboards, as Prometheus text or JSON
    Metrics(metrics::Metrics),
    /// Look for what is wrong with the directory, the clock and every limiter
    Doctor(doctor::Doctor),
    /// Try a configuration: run a script of operations under a virtual clock, in private memory
    Simulate(simulate::Simulate),
    /// See it work: four programs and a server with a limit, without shmlimit and with it
    Demo(demo::Demo),
    /// What a decision costs on this machine, compared with reading the clock
    Bench(bench::Bench),
    /// Write the completions for a shell
    Completions(completions::Completions),
    /// Write the manual pages
    Man(man::Man),
}

/// What is asked for.
#[derive(Debug, clap::Args)]
pub struct Asking {
    /// What the call costs: a number of requests, or UNIT=NUMBER; may be repeated
    #[arg(long, value_parser = cost, allow_hyphen_values = true, value_name = "COST")]
    pub cost: Vec<(String, u64)>,
    /// For whom: background, user or webhook. Webhook goes before user, user before background; the background must
    /// leave a rule's reserve to the others
    #[arg(long, value_parser = priority, default_value = "background", value_name = "WHO")]
    pub priority: Priority,
    /// Whoever waits under this name takes turns as one [default: $SHMLIMIT_GROUP, or all of this session]
    #[arg(long, value_parser = group, value_name = "NAME")]
    pub group: Option<String>,
    /// The exit code of a refusal, from 0 to 255, for commands that use 75 themselves. With 0 only the message tells a
    /// refusal from success. A cost that is never allowed is still 2
    #[arg(short = 'E', long = "conflict-exit-code", default_value_t = REFUSED, allow_hyphen_values = true, value_name = "NUMBER")]
    pub refused: u8,
}

/// A duration; a bare number is minutes (R111).
pub fn minutes(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if is_bare(text) { time(&format!("{text}m")) } else { time(text) }
}

/// Whether it is a number without a unit.
pub fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

pub fn time(text: &str) -> Result<Duration, String> {
    config::duration(text).map(|nanos| Duration::from_nanos(nanos.0))
}

fn cost(text: &str) -> Result<(String, u64), String> {
    let (unit, amount) = text.split_once('=').unwrap_or(("requests", text));
    let amount =
        config::amount(amount).map_err(|problem| format!("{problem}; or UNIT=NUMBER such as tokens=900"))?;
    Ok((unit.to_owned(), amount))
}

pub fn priority(text: &str) -> Result<Priority, String> {
    Priority::parse(text).ok_or_else(|| one_of(text, &["background", "user", "webhook"]))
}

/// What is allowed, and which of it may have been meant.
pub fn one_of(text: &str, words: &[&str]) -> String {
    let all = match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.join(""),
    };
    match config::nearest(&text.to_lowercase(), words.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? It must be {all}"),
        None => format!("must be {all}"),
    }
}

fn group(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.chars().any(safe::is_unsafe) => {
            Err("must not have characters that control a terminal or the direction of text".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}
