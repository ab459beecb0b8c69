//! `status`: what there is, how much is left, who uses it. Makes nothing.

use crate::args::Place;
use crate::condition::ConditionLine;
use crate::failure::Failure;
use crate::output::{self, Paint};
use crate::{open, screen};
use serde::Serialize;
use shmlimit::kernel::state::WHOLE_SHARE;
use shmlimit::{Counts, Limiter, ParticipantSnapshot, RuleSnapshot, Snapshot, WaiterSnapshot, paths};
use std::collections::BTreeMap;
use std::process::ExitCode;

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

pub fn run(place: &Place, args: &Status) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.name {
        let limiter = open::to_look(place, name)?.ok_or_else(|| open::unknown(place, name))?;
        output::text(&show(&limiter, args)?)?;
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
    let mut snapshot = limiter.snapshot()?;
    // Who looks is attached too, and of no interest.
    let me = std::process::id();
    snapshot.participants.retain(|one| one.pid != me || one.granted > 0 || one.refused > 0);
    if args.json {
        let line = serde_json::to_string(&Line::from(&snapshot)).map_err(std::io::Error::from)?;
        return Ok(line + "\n");
    }
    Ok(screen::limiter(&snapshot, args.all, Paint::for_stdout()))
}

fn hint(place: &Place) -> String {
    let places = paths::places(place.dir.as_deref());
    let places: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
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
    #[serde(flatten)]
    condition: ConditionLine,
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
            condition: ConditionLine::from(&snapshot.condition),
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

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
