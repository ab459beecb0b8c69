//! `metrics`: writes counts and histograms for dashboards to standard output, into a file or over HTTP. The counts
//! are stored in the segments and survive every process, including this one.

mod connections;
mod hosts;
mod http;
mod ndjson;
mod observation;
mod replace;
mod serve;

use crate::open;
use crate::options::{Location, parse_duration};
use crate::platform::Stop;
use crate::ui::failure::Failure;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Tool};
use observation::Observed;
use serve::Listen;
use shmlimit::metrics::Format as TextFormat;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

const METRICS_HELP: &str = "For Prometheus to scrape:
  shmlimit metrics --listen 127.0.0.1:9464
For node_exporter's textfile collector:
  shmlimit metrics --every 15s --output /var/lib/node_exporter/shmlimit.prom
As a series of JSON lines:
  shmlimit metrics --json --every 1m >> metrics.ndjson

Names and meanings: docs/metrics.md.

Exit codes: 0 done, or ended by SIGINT, SIGTERM or SIGHUP; 2 usage error; 1 any other error, or a limiter could not \
be read (its shmlimit_up is 0).";

#[derive(Debug, clap::Args)]
#[command(after_help = METRICS_HELP)]
pub struct Metrics {
    /// Show only this limiter
    pub name: Option<String>,
    /// prometheus, openmetrics or ndjson. Over HTTP the client chooses between the first two [default: prometheus]
    #[arg(long, value_parser = format, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Print one JSON object for each limiter; the same as --format ndjson
    #[arg(long, conflicts_with_all = ["format", "listen"])]
    pub json: bool,
    /// Write to this file, which is replaced atomically each time; - for standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "listen")]
    pub output: Option<PathBuf>,
    /// Repeat at this interval, such as 15s, until SIGINT or SIGTERM [default: once]
    #[arg(long, value_parser = interval, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "listen")]
    pub every: Option<Duration>,
    /// Answer HTTP requests for /metrics on this address, such as 127.0.0.1:9464, or on this port of 127.0.0.1. Port
    /// 0 chooses a free port. The address is printed
    #[arg(long, value_parser = serve::address, value_name = "ADDRESS")]
    pub listen: Option<Listen>,
    /// Also answer requests for this host name, such as that of a proxy; * allows any name; may be repeated. Requests
    /// for other names are refused, so that no page in a browser can read the metrics by DNS rebinding
    #[arg(long, value_parser = hosts::allowed, value_name = "NAME", requires = "listen")]
    pub allow_host: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text(TextFormat),
    Ndjson,
}

impl Command for Metrics {
    const EXAMPLES: &'static [Example] = &[("Prometheus text:", "shmlimit metrics")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        if let Some(listen) = &self.listen {
            if self.format == Some(Format::Ndjson) {
                return Err(Failure::Usage(
                    "--listen serves prometheus and openmetrics, not ndjson".to_owned(),
                ));
            }
            return serve::run(tool.location, self.name.as_deref(), listen, &self.allow_host);
        }
        let path = self.output.as_deref().filter(|path| *path != Path::new("-"));
        let Some(every) = self.every else {
            let seen = observe(tool.location, self)?;
            write(&render(&seen, self)?, path)?;
            return Ok(report(seen));
        };
        let stop = Stop::on_signals()?;
        let mut complaints = Complaints::default();
        loop {
            let put = observe(tool.location, self).and_then(|seen| {
                complaints.complain(&seen);
                write(&render(&seen, self)?, path)
            });
            match put {
                // Standard output is closed.
                Err(failure @ Failure::Io(_)) if path.is_none() => return Err(failure),
                // The write may succeed later, for example when a full disk has room again.
                Err(failure) => complaints.once(failure.to_string()),
                Ok(()) => {}
            }
            if stop.within(every) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Returns all limiters, or the requested one, which must exist.
fn observe(location: &Location, args: &Metrics) -> Result<Vec<Observed>, Failure> {
    let seen = observation::observe(location, args.name.as_deref())?;
    match &args.name {
        Some(name) if seen.is_empty() => Err(open::unknown_limiter(location, name)),
        _ => Ok(seen),
    }
}

fn render(seen: &[Observed], args: &Metrics) -> Result<String, Failure> {
    let format =
        if args.json { Format::Ndjson } else { args.format.unwrap_or(Format::Text(TextFormat::Prometheus)) };
    match format {
        Format::Ndjson => ndjson::write(seen, SystemTime::now()),
        Format::Text(format) => Ok(observation::text(seen, format)),
    }
}

fn write(text: &str, path: Option<&Path>) -> Result<(), Failure> {
    match path {
        None => Ok(output::text(text)?),
        Some(path) => replace::file(path, text),
    }
}

/// Reports the limiters that could not be read, after the others were written.
fn report(seen: Vec<Observed>) -> ExitCode {
    let failures = seen.into_iter().filter_map(|one| one.snapshot.err());
    failures.fold(ExitCode::SUCCESS, |_, failure| failure.report())
}

/// Messages that were already printed. With `--every`, each is printed only once.
#[derive(Default)]
struct Complaints(BTreeSet<String>);

impl Complaints {
    fn once(&mut self, message: String) {
        // Messages contain numbers and times, so the set is bounded to limit memory.
        if self.0.len() < 100 && self.0.insert(message.clone()) {
            output::remark(&message);
        }
    }

    fn complain(&mut self, seen: &[Observed]) {
        for failure in seen.iter().filter_map(|one| one.snapshot.as_ref().err()) {
            self.once(failure.to_string());
        }
    }
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "prometheus" => Ok(Format::Text(TextFormat::Prometheus)),
        "openmetrics" => Ok(Format::Text(TextFormat::OpenMetrics)),
        "ndjson" | "json" => Ok(Format::Ndjson),
        _ => Err("must be prometheus, openmetrics or ndjson".to_owned()),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        every if every < Duration::from_millis(100) => Err("must be at least 100ms".to_owned()),
        every => Ok(every),
    }
}
