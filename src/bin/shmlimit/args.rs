//! What can be typed.

use clap::{Parser, Subcommand};
use shmlimit::config::{self, Overrides, Rate};
use shmlimit::{Algorithm, Fairness, NetError, Priority};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// One rate limit for every program on this machine.
///
/// Without a verb: status.
#[derive(Debug, Parser)]
#[command(version, infer_subcommands = false, after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

const EXIT_CODES: &str = "Exit codes: 0 done or granted, 75 refused for now, 2 usage or configuration, 1 anything \
                          else; `run` passes on the command's own (127 not found, 126 cannot be run).";

/// Keeps what every verb takes apart from what only one takes.
const WHERE: &str = "Where limiters live";

/// Where limiters live.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Directory of the limiters [default: the first there is of $SHMLIMIT_DIR, $ANIVAULT_DIR,
    /// /var/run/anivault, /var/tmp/anivault-UID]
    #[arg(long, global = true, value_name = "DIR", help_heading = WHERE)]
    pub dir: Option<PathBuf>,
    /// Trust a directory on a network file system
    #[arg(long, global = true, help_heading = WHERE)]
    pub allow_network_fs: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command as soon as the limiter allows
    Run(Run),
    /// Take one call from the limiter's budget and exit
    Acquire(Acquire),
    /// Tell the limiter how a call ended, for all who share it
    Record(Record),
    /// Show limiters and who uses them
    Status(Status),
    /// Make a limiter
    Init(Init),
    /// List ready-made limiters, or write one as a configuration file
    Presets(Presets),
    /// Change a setting of a limiter in use, for all who share it
    Set(Set),
    /// Put a limiter's breaker into a state, or end what a Retry-After began
    Force(Force),
    /// Try a configuration: run a script of operations under a virtual clock, in private memory
    Simulate(Simulate),
}

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

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Acquire {
    /// The limiter
    pub name: String,
    #[command(flatten)]
    pub asking: Asking,
    /// Wait no longer than this, such as 5s; refused at once if that cannot be enough [default: any time]
    #[arg(long, value_parser = time, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "now")]
    pub timeout: Option<Duration>,
    /// Do not wait at all
    #[arg(long)]
    pub now: bool,
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
}

const RECORD_HELP: &str = "\
With curl; the answer says how long to wait, and whether to try again:

  shmlimit run tmdb -- curl -sS -D answer.txt -o movie.json https://api.themoviedb.org/3/movie/11
  shmlimit record tmdb --headers answer.txt

Exit codes: 0 recorded, whatever the outcome was; 2 usage or configuration, 1 anything else.";

#[derive(Debug, clap::Args)]
#[command(after_help = RECORD_HELP)]
pub struct Record {
    /// The limiter
    pub name: String,
    /// The HTTP status of the answer
    #[arg(long, value_parser = status, value_name = "CODE", conflicts_with = "error")]
    pub status: Option<u16>,
    /// Why there was no answer: connect_timeout, read_timeout, dns or connection
    #[arg(long, value_parser = net_error, value_name = "KIND")]
    pub error: Option<NetError>,
    /// The answer's headers as `curl -D FILE` writes them, with the status; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "error")]
    pub headers: Option<PathBuf>,
    /// One header, as 'Name: value'; may be repeated
    #[arg(long, value_parser = header, value_name = "HEADER", conflicts_with = "error")]
    pub header: Vec<(String, String)>,
    /// The value of the answer's Retry-After
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "error")]
    pub retry_after: Option<String>,
    /// How long the call took, such as 120ms
    #[arg(long, value_parser = time, allow_hyphen_values = true, value_name = "TIME")]
    pub latency: Option<Duration>,
    /// Which attempt it was, from 1 [default: failures in a row are counted]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "NUMBER")]
    pub attempt: Option<u32>,
    /// For whom the call was made; decides how often to try again
    #[arg(long, value_parser = priority, default_value = "background", value_name = "WHO")]
    pub priority: Priority,
    /// What to do now, as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say nothing
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct Presets {
    /// Write this one, as a file for: shmlimit init NAME --config FILE
    pub name: Option<String>,
    /// One JSON object per line and preset
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Set {
    /// The limiter
    pub name: String,
    /// The setting, such as concurrency or breaker.p_throttle; all of them: docs/configuration.md
    pub key: String,
    /// Its new value, such as 4, 0.3, 15m or unlimited
    #[arg(allow_hyphen_values = true)]
    pub value: String,
}

#[derive(Debug, clap::Args)]
pub struct Force {
    /// The limiter
    pub name: String,
    /// normal, throttle, sleep, half_open or cache_only; of a consecutive breaker closed, open or half_open; offline (no
    /// call until online); clear-gate, which ends what a Retry-After began
    #[arg(value_parser = force)]
    pub state: shmlimit::Force,
    /// With cache_only: how long it lasts before it tries to recover by itself: 15m; a bare number is minutes. It stays in
    /// the configuration
    #[arg(long, value_parser = minutes, allow_hyphen_values = true, value_name = "TIME")]
    pub auto_recover: Option<Duration>,
}

#[derive(Debug, Default, clap::Args)]
pub struct Status {
    /// Only this limiter
    pub name: Option<String>,
    /// Every process and every waiting call, however many
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// One JSON object per line and limiter
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Init {
    /// The limiter
    pub name: String,
    /// Configuration file in TOML; its keys: docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How much per time: 35/s, 1000/day, 40/10s
    #[arg(long, value_parser = config::rate, allow_hyphen_values = true)]
    rate: Option<Rate>,
    /// How much at once [default: as much as per time]
    #[arg(long, value_parser = whole, allow_hyphen_values = true, value_name = "NUMBER")]
    burst: Option<u64>,
    /// How many calls may be in flight [default: any number]
    #[arg(long, value_parser = whole, allow_hyphen_values = true, value_name = "NUMBER")]
    concurrency: Option<u64>,
    /// How the rate is counted: token_bucket, gcra, leaky_bucket, fixed_window, sliding_log or sliding_counter
    /// [default: token_bucket]
    #[arg(long, value_parser = algorithm)]
    algorithm: Option<Algorithm>,
    /// Whose turn it is among equal priorities: process (each process or group gets the same) or fifo (first come,
    /// first served) [default: process]
    #[arg(long, value_parser = fairness)]
    fairness: Option<Fairness>,
    /// What the background gets in any case while others wait too, 0 to 1 [default: 0]
    #[arg(long, value_parser = config::share, allow_hyphen_values = true, value_name = "PART")]
    background_share: Option<u64>,
    /// How long cache_only of a five-state breaker lasts before it tries to recover by itself: 15m; a bare number is minutes
    #[arg(long, value_parser = minutes, allow_hyphen_values = true, value_name = "TIME")]
    pub auto_recover: Option<Duration>,
    /// No call until: shmlimit force NAME online (limiters with a breaker)
    #[arg(long)]
    pub offline: bool,
    /// Start afresh, with full buckets, in place of the limiter there may be
    #[arg(long)]
    pub replace: bool,
    /// Let the members of this group of users use the directory and the limiter
    #[arg(long, value_name = "GROUP")]
    pub shared_with: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SIMULATE_HELP)]
pub struct Simulate {
    /// Configuration file in TOML; its keys: docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The operations, one JSON object per line [default: -, which is standard input]
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Another draw of the random waits; the same seed gives the same output
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// Draw the run into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Say at the end on standard error what the run came to
    #[arg(long)]
    pub summary: bool,
}

const SIMULATE_HELP: &str = "\
Operations: {\"op\":\"acquire\"}, record, release, cancel, force, set, headers, advance; \"t\" is the virtual time in \
nanoseconds. Each is answered by one line of JSON: docs/simulate.md.

  echo '{\"op\":\"acquire\",\"n\":40}' | shmlimit simulate --config limiter.toml

Exit codes: 0 done, 1 some line was no operation, 2 usage or configuration.";

impl Init {
    /// The settings given one by one.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            rate: self.rate,
            burst: self.burst,
            algorithm: self.algorithm,
            concurrency: self.concurrency,
            fairness: self.fairness,
            background_share: self.background_share,
        }
    }
}

fn status(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(code @ 100..=599) => Ok(code),
        _ => Err("must be an HTTP status, from 100 to 599".to_owned()),
    }
}

fn net_error(text: &str) -> Result<NetError, String> {
    NetError::parse(text).ok_or_else(|| "must be connect_timeout, read_timeout, dns or connection".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be written as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn force(text: &str) -> Result<shmlimit::Force, String> {
    shmlimit::Force::parse(text).ok_or_else(|| {
        let known = shmlimit::Force::ALL.map(shmlimit::Force::as_str);
        format!("must be one of {}", known.join(", "))
    })
}

/// A duration; a bare number is minutes (R111).
fn minutes(text: &str) -> Result<Duration, String> {
    let bare =
        !text.trim().is_empty() && text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if bare { time(&format!("{}m", text.trim())) } else { time(text) }
}

fn time(text: &str) -> Result<Duration, String> {
    config::duration(text).map(|nanos| Duration::from_nanos(nanos.0))
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number, not negative".to_owned())
}

fn cost(text: &str) -> Result<(String, u64), String> {
    let (unit, amount) = text.split_once('=').unwrap_or(("requests", text));
    let amount = amount.parse().map_err(|_| "must be a whole number, or UNIT=NUMBER such as tokens=900")?;
    Ok((unit.to_owned(), amount))
}

fn priority(text: &str) -> Result<Priority, String> {
    Priority::parse(text).ok_or_else(|| "must be background, user or webhook".to_owned())
}

fn group(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn fairness(text: &str) -> Result<Fairness, String> {
    Fairness::parse(text).map_err(|_| "must be process or fifo".to_owned())
}

fn algorithm(text: &str) -> Result<Algorithm, String> {
    Algorithm::parse(0, text).map_err(|_| {
        let names = Algorithm::ALL.map(Algorithm::as_str);
        format!("must be one of {}", names.join(", "))
    })
}
