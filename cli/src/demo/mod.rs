//! `demo`: four programs and a server with a limit, without shmlimit and with it.

mod client;
mod clients;
mod results;
mod scenario;
mod server;
mod view;

use crate::ui::failure::Failure;
use crate::ui::output::{self, Paint};
use crate::verb_trait::{Command, Example, Tool};
use crate::{platform, supervisor};
use clients::{CLIENTS, ClientArgs, Half, Kind, LIMITER, RetryStyle};
use platform::Event;
use results::{Progress, Results};
use scenario::Scenario;
use server::{Limit, RETRY_AFTER, Server};
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, RuleDraft};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use view::Picture;

const DEMO_HELP: &str = "\
A server on this machine allows --rate calls a second, and each of four programs tries to make that many. In the \
first half each program limits only itself. In the second half all of them ask one limiter. Then the server tells \
one program to wait, and you see whether the others stop too. The limiter is in a temporary directory, and your \
limiters are not touched.

Exit codes: 0 the programs kept the limit and all of them stopped; 1 they did not, or it could not be shown (the \
last line says why); 2 usage error.";

#[derive(Debug, clap::Args)]
#[command(after_help = DEMO_HELP)]
pub struct Demo {
    /// Print lines instead of a live picture. This is the default if standard output is not a terminal
    #[arg(long)]
    pub plain: bool,
    /// Print only one JSON object, at the end
    #[arg(long, conflicts_with = "plain")]
    pub json: bool,
    /// Length of both halves together, in seconds; the last part takes 2 seconds more
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=600), value_name = "NUMBER")]
    pub seconds: u64,
    /// Calls per second that the server allows, and that each program tries to make, from 5/s to 50/s
    #[arg(long, default_value = "20/s", value_parser = rate, value_name = "RATE")]
    pub rate: u32,
    /// Let the programs obey Retry-After even without shmlimit
    #[arg(long)]
    pub polite: bool,
    /// The role of a process that the demo starts itself
    #[arg(long, hide = true, num_args = 1.., value_name = "ROLE")]
    pub act_as: Vec<String>,
}

/// Parses the rate. With a limit above 50 calls per second, programs that start a process for each call would be too
/// slow to exceed it.
fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| (5..=50).contains(rate));
    rate.ok_or_else(|| "must be from 5/s to 50/s".to_owned())
}

/// The time between two updates.
const TICK: Duration = Duration::from_millis(100);
/// The time limit for starting the clients. Python may start slowly when its caches are cold.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The client that the server tells to wait in the last part. It is our own binary, which exists on every machine and
/// needs no extra process to record the 429. So the time until the others stop measures the limiter, and not how fast
/// processes start.
const PROBED_CLIENT: usize = CLIENTS - 1;
/// The length of the last part: a call that is told to wait, the wait, and a moment to see the calls resume.
const PROBE_LENGTH: Duration = Duration::from_millis(1800);

impl Command for Demo {
    const EXAMPLES: &'static [Example] = &[("See it work:", "shmlimit demo")];
    const USES_DIRECTORY: bool = false;

    fn run(&self, _tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        match self.act_as.split_first() {
            Some((role, words)) if role == "supervisor" => return supervisor::run(words),
            Some((role, words)) if role == "program" => return client::run(words),
            Some((role, _)) => return Err(Failure::Usage(format!("--act-as {role:?}: no such part"))),
            None => {}
        }
        match run_halves(self) {
            Ok(code) => Ok(code),
            Err(End::ExitRequested(event)) => Ok(platform::exit_by(event)),
            Err(End::Failed(failure)) => Err(failure),
        }
    }
}

/// Why the demo ends early.
enum End {
    ExitRequested(Event),
    Failed(Failure),
}

impl<F: Into<Failure>> From<F> for End {
    fn from(failure: F) -> End {
        End::Failed(failure.into())
    }
}

/// Reports the progress of the demo.
enum Reporter {
    Picture(Picture),
    /// The number of seconds printed so far, for each half.
    Lines([usize; 2]),
    Silent,
}

fn run_halves(args: &Demo) -> Result<ExitCode, End> {
    let mut scenario = Scenario::start()?;
    let limit = Limit::of(args.rate);
    let server = Server::start(limit)
        .map_err(|error| Failure::Command(format!("cannot listen on 127.0.0.1: {error}"), 1))?;
    let limiter = limiter(&scenario, limit)?;
    let length = Duration::from_secs(args.seconds) / 2;
    let retry_style = if args.polite { RetryStyle::Polite } else { RetryStyle::Naive };
    let mut results = Results::new(limit, server.address(), clients::available(), retry_style, length);
    let mut reporter = Reporter::of(args);
    reporter.begin(&results)?;
    for half in [Half::Without, Half::With] {
        results.progress[half as usize] = Progress::Starting;
        start_clients(&mut scenario, &server, &mut results, half, &mut reporter)?;
        server.start_half(half, length);
        let began = Instant::now();
        while began.elapsed() < length {
            results.progress[half as usize] = Progress::Running(began.elapsed());
            tick(&scenario, &server, &mut results, &mut reporter)?;
        }
        if half == Half::With {
            let began = Instant::now();
            results.probing = true;
            server.start_probe(PROBED_CLIENT);
            while began.elapsed() < PROBE_LENGTH || !probe_is_over(&server, began) {
                tick(&scenario, &server, &mut results, &mut reporter)?;
            }
        }
        server.end_half();
        results.progress[half as usize] = Progress::Done;
        tick(&scenario, &server, &mut results, &mut reporter)?;
        scenario.stop_clients();
    }
    // The order matters: some systems keep a file as long as it is in use.
    drop(limiter);
    drop(scenario);
    reporter.finish(&results)?;
    Ok(match results.failed_expectation() {
        None => ExitCode::SUCCESS,
        Some(failed) => {
            output::remark(&failed);
            ExitCode::FAILURE
        }
    })
}

/// Returns whether the probed client was told to wait and the wait is over, or the probe took too long.
fn probe_is_over(server: &Server, began: Instant) -> bool {
    began.elapsed() > PROBE_LENGTH + 3 * RETRY_AFTER || server.probe().is_some_and(|probe| probe.is_over())
}

/// Creates the limiter that all clients share in the second half.
fn limiter(scenario: &Scenario, limit: Limit) -> Result<Limiter, Failure> {
    let rule = RuleDraft {
        burst: Some(u64::from(limit.burst_of_limiter())),
        ..RuleDraft::new(Algorithm::Gcra, u64::from(limit.rate), Duration::from_secs(1))
    };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    let policy = policy.map_err(shmlimit::Error::from)?;
    let builder = Limiter::builder(LIMITER).directory(scenario.directory()).ignore_environment();
    Ok(builder.policy(policy).create()?)
}

/// Starts the clients and waits until all of them are ready. Our own binary replaces a client that does not start.
fn start_clients(
    scenario: &mut Scenario,
    server: &Server,
    results: &mut Results,
    half: Half,
    reporter: &mut Reporter,
) -> Result<(), End> {
    let tool = scenario.tool().to_owned();
    let directory = scenario.directory().to_owned();
    let args_of = |client| ClientArgs {
        half,
        client,
        server: server.address(),
        wants: results.limit.rate,
        retry_style: results.retry_style,
        directory: &directory,
        tool: &tool,
    };
    let all: [ClientArgs<'_>; CLIENTS] = std::array::from_fn(args_of);
    for (args, kind) in all.iter().zip(results.kinds) {
        scenario.start_client(kind, args)?;
    }
    let mut by = Instant::now() + START_TIMEOUT;
    loop {
        let ready = server.ready();
        if ready == [true; CLIENTS] {
            return Ok(());
        }
        let late = Instant::now() >= by;
        for client in 0..CLIENTS {
            if ready[client] || !(late || scenario.has_exited(client)) {
                continue;
            }
            let (name, said) = (results.kinds[client].name(), scenario.last_error(client));
            if results.kinds[client] == Kind::Rust {
                return Err(
                    Failure::Command(format!("a program of the demo did not start: {said}"), 1).into()
                );
            }
            reporter.note(&format!("{name} does not work here ({said}): this tool takes its place"))?;
            results.kinds[client] = Kind::Rust;
            scenario.replace(client, &all[client])?;
            by = Instant::now() + START_TIMEOUT;
        }
        tick(scenario, server, results, reporter)?;
    }
}

/// Waits for one tick, updates the results and reports them.
fn tick(
    scenario: &Scenario,
    server: &Server,
    results: &mut Results,
    reporter: &mut Reporter,
) -> Result<(), End> {
    if let Some(event) = scenario.exit_request() {
        return Err(End::ExitRequested(event));
    }
    results.counts = [Half::Without, Half::With].map(|half| server.counts(half));
    results.probe = server.probe();
    reporter.update(results)?;
    sleep(TICK);
    Ok(())
}

impl Reporter {
    fn of(args: &Demo) -> Reporter {
        if args.json {
            return Reporter::Silent;
        }
        let picture = if args.plain || !io::stdout().is_terminal() { None } else { Picture::begin() };
        picture.map_or(Reporter::Lines([0; 2]), Reporter::Picture)
    }

    fn begin(&mut self, results: &Results) -> io::Result<()> {
        if let Reporter::Lines(_) = self { output::line(&view::introduction(results)) } else { Ok(()) }
    }

    fn update(&mut self, results: &Results) -> io::Result<()> {
        match self {
            Reporter::Picture(picture) => picture.draw(results),
            Reporter::Lines(probe) => {
                for half in [Half::Without, Half::With] {
                    let seconds = &results.counts[half as usize].seconds;
                    // The last second is complete only if the half is.
                    let done = results.progress[half as usize] == Progress::Done
                        || (half == Half::With && results.probing);
                    let over = seconds.len().saturating_sub(usize::from(!done));
                    let first = probe[half as usize];
                    for (number, score) in seconds.iter().enumerate().take(over).skip(first) {
                        output::line(&view::second(half, number, *score))?;
                        probe[half as usize] = number + 1;
                    }
                }
                Ok(())
            }
            Reporter::Silent => Ok(()),
        }
    }

    fn note(&self, text: &str) -> io::Result<()> {
        if let Reporter::Lines(_) = self { output::line(&format!("note: {text}")) } else { Ok(()) }
    }

    fn finish(self, results: &Results) -> io::Result<()> {
        match self {
            Reporter::Picture(_) => output::line(&view::conclusion(results, Paint::for_stdout())),
            Reporter::Lines(_) => {
                output::line(&format!("probe    {}\n\n{}\n", results.probe_text(), view::table(results)))?;
                output::line(&view::conclusion(results, Paint::for_stdout()))
            }
            Reporter::Silent => output::line(&results.to_json().to_string()),
        }
    }
}
