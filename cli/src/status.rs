//! `status`: what there is, how much is left, who uses it. Makes nothing.

use crate::args::{Place, is_bare, time};
use crate::condition::ConditionLine;
use crate::failure::Failure;
use crate::lookout::{Lookout, without_me};
use crate::next::{Change, ChangeLine};
use crate::output::nanos;
use crate::pause::PauseLine;
use crate::rows::Look;
use crate::warnings::{self, Warning};
use crate::{open, output, screen, watch};
use serde::Serialize;
use shmlimit::{Counts, Limiter, ParticipantSnapshot, RuleSnapshot, Snapshot, WaiterSnapshot, paths};
use shmlimit_kernel::policy::WHOLE_SHARE;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Who looks more often sees nothing more.
const SHORTEST: Duration = Duration::from_millis(100);

const STATUS_HELP: &str = "\
Examples:
  shmlimit status tmdb
  shmlimit status tmdb --toml > tmdb.toml
  shmlimit status --watch              every second, in place; Ctrl-C ends
  shmlimit status --json --watch 5     a line for each limiter every five seconds";

#[derive(Debug, Default, clap::Args)]
#[command(after_help = STATUS_HELP)]
pub struct Status {
    /// Only this limiter
    pub name: Option<String>,
    /// Every process and every waiting call, however many
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// One JSON object per line and limiter
    #[arg(long)]
    pub json: bool,
    /// Its settings, as a configuration file
    #[arg(long, requires = "name", conflicts_with_all = ["json", "all", "watch"])]
    pub toml: bool,
    /// Again and again: how often, such as 2 (seconds) or 500ms [default: 1s]
    #[arg(long, num_args = 0..=1, default_missing_value = "1s", value_name = "TIME")]
    pub watch: Option<String>,
}

pub fn run(place: &Place, args: &Status) -> Result<ExitCode, Failure> {
    if let Some(often) = &args.watch {
        let (every, name) = interval(often, args.name.as_deref())?;
        return watch(place, args, every, name);
    }
    if let Some(name) = &args.name {
        let limiter = open::to_look(place, name)?.ok_or_else(|| open::unknown(place, name))?;
        let text = match args.toml {
            true => shmlimit::config::to_toml(&limiter.policy()?),
            false => show(&limiter, args)?,
        };
        output::text(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = match Limiter::list(place.dir.as_deref()) {
        Ok(listing) => {
            if listing.names.is_empty() {
                open::note(listing.note.as_deref());
            }
            listing.names
        }
        Err(error) if open::is_missing(&error) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if names.is_empty() && !args.json {
        output::line(&hint(place))?;
    }
    show_all(place, args, &names)
}

/// `--watch NAME` is what people type: what is no time and could be a name is one.
fn interval<'a>(often: &'a str, name: Option<&'a str>) -> Result<(Duration, Option<&'a str>), Failure> {
    let wrong = |why: &str| Failure::Usage(format!("--watch {often:?}: {why}"));
    let bare = is_bare(often);
    let every = time(&if bare { format!("{often}s") } else { often.to_owned() });
    match every {
        Ok(every) if every < SHORTEST => Err(wrong("must be at least 100ms")),
        Ok(every) => Ok((every, name)),
        Err(_) if name.is_none() && !bare => Ok((Duration::from_secs(1), Some(often))),
        Err(why) => Err(wrong(&why)),
    }
}

/// Ends by Ctrl-C, or when nobody reads any more.
fn watch(place: &Place, args: &Status, every: Duration, name: Option<&str>) -> Result<ExitCode, Failure> {
    let mut lookout = Lookout::new(place, name.map(str::to_owned));
    // A name that cannot be one will not appear.
    if let Some(name) = name {
        open::to_look(place, name)?;
    }
    if args.json {
        watch::json(&mut lookout, every, json)?;
    } else {
        let nothing = || name.map_or_else(|| hint(place), |name| open::unknown(place, name).to_string());
        watch::text(&mut lookout, every, args.all, &nothing)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All of them, and whatever cannot be shown on standard error: one bad segment must not hide the others.
fn show_all(place: &Place, args: &Status, names: &[String]) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    let mut first = true;
    for name in names {
        let shown = match open::to_look(place, name) {
            Ok(None) => continue,
            Ok(Some(limiter)) => show(&limiter, args),
            Err(failure) => Err(failure),
        };
        match shown {
            Ok(text) => {
                let gap = if first || args.json { "" } else { "\n" };
                output::text(&format!("{gap}{text}"))?;
                first = false;
            }
            Err(failure) => code = failure.report(),
        }
    }
    Ok(code)
}

fn show(limiter: &Limiter, args: &Status) -> Result<String, Failure> {
    let snapshot = without_me(limiter.snapshot()?);
    if args.json { json(&snapshot) } else { Ok(screen::limiter(&snapshot, args.all, Look::for_stdout())) }
}

fn json(snapshot: &Snapshot) -> Result<String, Failure> {
    Ok(output::to_json(&Line::from(snapshot))? + "\n")
}

fn hint(place: &Place) -> String {
    let places = paths::places(place.dir.as_deref());
    let used = Limiter::list(place.dir.as_deref()).ok().map(|listing| listing.directory);
    let elsewhere = used.as_ref().and_then(|used| open::elsewhere(place, used));
    if let (Some(used), Some(elsewhere)) = (&used, elsewhere) {
        return format!("No limiters in {}. {elsewhere}", used.display());
    }
    let places: Vec<String> = match used {
        Some(used) => vec![used.display().to_string()],
        None => places.iter().map(|place| place.path.display().to_string()).collect(),
    };
    format!(
        "No limiters yet in {}.\nTry:  shmlimit run tmdb -- echo hello      (a preset: 35 a second, 4 at a time)\nor:   shmlimit init NAME --rate 10/s        (your own)",
        places.join(" or ")
    )
}

/// One line of `--json`. The keys are a contract: docs/status-json.md.
#[derive(Serialize)]
struct Line<'s> {
    name: &'s str,
    directory: String,
    provider: String,
    concurrency: Option<u32>,
    concurrency_background: Option<u32>,
    in_flight: u32,
    in_flight_background: u32,
    held_by_dead: u32,
    resets: u64,
    counts: CountsLine,
    paused: Option<PauseLine>,
    #[serde(flatten)]
    condition: ConditionLine,
    next_change: Option<ChangeLine>,
    warnings: Vec<Warning>,
    fairness: &'static str,
    background_share: f64,
    rules: Vec<RuleLine<'s>>,
    participants: Vec<ParticipantLine<'s>>,
    queue: Vec<WaiterLine<'s>>,
}

#[derive(Serialize)]
struct CountsLine {
    granted: u64,
    refused: u64,
    looked: u64,
    cache_hits: u64,
    cache_misses: u64,
    codes: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct RuleLine<'s> {
    name: &'s str,
    algorithm: &'s str,
    unit: &'s str,
    limit: u64,
    period_ns: u64,
    capacity: u64,
    reserve: u64,
    remaining: u64,
    remaining_background: u64,
    next_in_ns: Option<u64>,
    full_in_ns: Option<u64>,
}

#[derive(Serialize)]
struct ParticipantLine<'s> {
    pid: u32,
    program: &'s str,
    attached_ns: u64,
    held: u32,
    held_ns: Option<u64>,
    granted: u64,
    refused: u64,
    looked: u64,
}

#[derive(Serialize)]
struct WaiterLine<'s> {
    pid: u32,
    program: &'s str,
    priority: &'static str,
    group: String,
    cost: BTreeMap<&'s str, u64>,
    waited_ns: u64,
    looks_in_ns: u64,
    late: bool,
    gives_up_in_ns: Option<u64>,
}

impl<'s> From<&'s Snapshot> for Line<'s> {
    fn from(snapshot: &'s Snapshot) -> Line<'s> {
        let queueing = snapshot.policy.queueing();
        let rules = snapshot.rules.iter().zip(snapshot.policy.rules());
        Line {
            name: &snapshot.name,
            directory: snapshot.directory.display().to_string(),
            provider: snapshot.policy.provider().as_str().to_owned(),
            concurrency: snapshot.policy.concurrency(),
            concurrency_background: snapshot.policy.concurrency_background(),
            in_flight: snapshot.in_flight,
            in_flight_background: snapshot.in_flight_background,
            held_by_dead: snapshot.held_by_dead,
            resets: snapshot.resets,
            counts: CountsLine::from(&snapshot.counts),
            paused: snapshot.paused.as_ref().map(PauseLine::from),
            condition: ConditionLine::from(&snapshot.condition),
            next_change: Change::of(snapshot).map(ChangeLine::from),
            warnings: warnings::of(&snapshot.name, &snapshot.condition),
            rules: rules.map(|(rule, settings)| RuleLine::new(rule, settings.reserve)).collect(),
            fairness: queueing.fairness.as_str(),
            // The nearest float to a number of six digits is written as that number.
            background_share: f64::from(queueing.background_share) / f64::from(WHOLE_SHARE),
            participants: snapshot.participants.iter().map(ParticipantLine::from).collect(),
            queue: snapshot.queue.iter().map(WaiterLine::from).collect(),
        }
    }
}

impl From<&Counts> for CountsLine {
    fn from(counts: &Counts) -> CountsLine {
        let codes = counts.codes.iter().map(|(code, count)| (code.to_string(), *count)).collect();
        let Counts { granted, refused, looked, cache_hits, cache_misses, .. } = *counts;
        CountsLine { granted, refused, looked, cache_hits, cache_misses, codes }
    }
}

impl<'s> RuleLine<'s> {
    fn new(rule: &'s RuleSnapshot, reserve: u64) -> RuleLine<'s> {
        RuleLine {
            name: &rule.name,
            algorithm: rule.algorithm,
            unit: &rule.unit,
            limit: rule.limit,
            period_ns: nanos(rule.period),
            capacity: rule.capacity,
            reserve,
            remaining: rule.remaining,
            remaining_background: rule.remaining_background,
            next_in_ns: rule.next_in.map(nanos),
            full_in_ns: rule.full_in.map(nanos),
        }
    }
}

impl<'s> From<&'s ParticipantSnapshot> for ParticipantLine<'s> {
    fn from(one: &'s ParticipantSnapshot) -> ParticipantLine<'s> {
        ParticipantLine {
            pid: one.pid,
            program: &one.program,
            attached_ns: nanos(one.attached_for),
            held: one.held,
            held_ns: one.held_for.map(nanos),
            granted: one.granted,
            refused: one.refused,
            looked: one.looked,
        }
    }
}

impl<'s> From<&'s WaiterSnapshot> for WaiterLine<'s> {
    fn from(one: &'s WaiterSnapshot) -> WaiterLine<'s> {
        WaiterLine {
            pid: one.pid,
            program: &one.program,
            priority: one.priority.as_str(),
            group: format!("{:016x}", one.group),
            cost: one.cost.iter().map(|(unit, cost)| (unit.as_str(), *cost)).collect(),
            waited_ns: nanos(one.waited_for),
            looks_in_ns: nanos(one.looks_in),
            late: one.late,
            gives_up_in_ns: one.gives_up_in.map(nanos),
        }
    }
}
