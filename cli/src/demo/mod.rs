//! `demo`: four programs and a server with a limit, without shmlimit and with it.

mod cast;
mod program;
mod server;
mod show;
mod stage;
mod view;

use crate::failure::Failure;
use crate::output::{self, Paint};
use crate::{caretaker, platform};
use cast::{CAST, Half, Kind, LIMITER, Manner, Part};
use platform::Event;
use server::{Limit, RETRY_AFTER, Server};
use shmlimit::{Algorithm, Limiter, Nanos, Policy, PolicyDraft, RuleDraft};
use show::{Progress, Show};
use stage::Stage;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use view::Picture;

const DEMO_HELP: &str = "\
A server on this machine allows so many calls a second; four programs want that many each. In the first half each \
of them limits itself, as programs do that know nothing of each other. In the second all of them ask one limiter. \
Then the server tells one of them to wait, and you see whether the others hear it. The limiter lives in a directory \
of its own, which is removed at the end; your limiters are not touched.

Exit codes: 0 it went as promised, 1 it did not, or could not be shown (the last line says why), 2 usage.";

#[derive(Debug, clap::Args)]
#[command(after_help = DEMO_HELP)]
pub struct Demo {
    /// Lines instead of a picture, as also when standard output is no terminal
    #[arg(long)]
    pub plain: bool,
    /// One JSON object at the end, and nothing else
    #[arg(long, conflicts_with = "plain")]
    pub json: bool,
    /// How long both halves take together; the last scene takes 2 more
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=600), value_name = "NUMBER")]
    pub seconds: u64,
    /// Calls a second that the server allows, and that each program wants, from 5 to 50
    #[arg(long, default_value = "20/s", value_parser = rate, value_name = "RATE")]
    pub rate: u32,
    /// Without shmlimit too the programs wait as long as a 429 tells them
    #[arg(long)]
    pub polite: bool,
    /// What a process of the demo's own is
    #[arg(long, hide = true, num_args = 1.., value_name = "ROLE")]
    pub act_as: Vec<String>,
}

/// More than 50 could not be exceeded by programs that start a process for each call.
fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| (5..=50).contains(rate));
    rate.ok_or_else(|| "must be from 5/s to 50/s".to_owned())
}

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(100);
/// Python may take a while on its first day.
const TO_START: Duration = Duration::from_secs(10);
/// Who is told to wait in the last scene. Our own binary is there on every machine, and starts no process to pass it on:
/// how fast the others hear it says something about the limiter, not about how fast processes start.
const TOLD: usize = CAST - 1;
/// The last scene: a call to be told something, the wait, and a moment to see the calls come back.
const LAST_SCENE: Duration = Duration::from_millis(1800);

pub fn run(args: &Demo) -> Result<ExitCode, Failure> {
    match args.act_as.split_first() {
        Some((role, words)) if role == "caretaker" => return caretaker::take_care(words),
        Some((role, words)) if role == "program" => return program::run(words),
        Some((role, _)) => return Err(Failure::Usage(format!("nobody acts as {role:?}"))),
        None => {}
    }
    match play(args) {
        Ok(code) => Ok(code),
        Err(End::Asked(event)) => Ok(platform::die_of(event)),
        Err(End::Failed(failure)) => Err(failure),
    }
}

/// Why a show ends before its time.
enum End {
    Asked(Event),
    Failed(Failure),
}

impl<F: Into<Failure>> From<F> for End {
    fn from(failure: F) -> End {
        End::Failed(failure.into())
    }
}

/// How the audience sees it.
enum Audience {
    Picture(Picture),
    /// Seconds that were told, of each half.
    Lines([usize; 2]),
    Silent,
}

fn play(args: &Demo) -> Result<ExitCode, End> {
    let mut stage = Stage::set_up()?;
    let limit = Limit::of(args.rate);
    let server = Server::start(limit)
        .map_err(|error| Failure::Command(format!("cannot listen on 127.0.0.1: {error}"), 1))?;
    let limiter = limiter(&stage, limit)?;
    let length = Duration::from_secs(args.seconds) / 2;
    let manner = if args.polite { Manner::Polite } else { Manner::Naive };
    let mut show = Show::new(limit, server.address(), cast::available(), manner, length);
    let mut audience = Audience::of(args);
    audience.open(&show)?;
    for half in [Half::Without, Half::With] {
        show.progress[half as usize] = Progress::Starting;
        assemble(&mut stage, &server, &mut show, half, &mut audience)?;
        server.raise_curtain(half, length);
        let began = Instant::now();
        while began.elapsed() < length {
            show.progress[half as usize] = Progress::Running(began.elapsed());
            tick(&stage, &server, &mut show, &mut audience)?;
        }
        if half == Half::With {
            let began = Instant::now();
            show.telling = true;
            server.tell(TOLD);
            while began.elapsed() < LAST_SCENE || !over(&server, began) {
                tick(&stage, &server, &mut show, &mut audience)?;
            }
        }
        server.drop_curtain();
        show.progress[half as usize] = Progress::Done;
        tick(&stage, &server, &mut show, &mut audience)?;
        stage.clear();
    }
    // In this order: some systems keep a file for as long as it is used.
    drop(limiter);
    drop(stage);
    audience.end(&show)?;
    Ok(match show.broken_promise() {
        None => ExitCode::SUCCESS,
        Some(broken) => {
            output::remark(&broken);
            ExitCode::FAILURE
        }
    })
}

/// Whether the one who shall be told was told and the wait is over; nobody waits for it for ever.
fn over(server: &Server, began: Instant) -> bool {
    began.elapsed() > LAST_SCENE + 3 * RETRY_AFTER || server.told().is_some_and(|told| told.is_over())
}

/// The limiter that all share in the second half.
fn limiter(stage: &Stage, limit: Limit) -> Result<Limiter, Failure> {
    let rule = RuleDraft {
        burst: Some(u64::from(limit.burst_of_limiter())),
        ..RuleDraft::new(Algorithm::Gcra, u64::from(limit.rate), Nanos::from_secs(1))
    };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    let policy = policy.map_err(shmlimit::Error::from)?;
    let builder = Limiter::builder(LIMITER).directory(stage.directory()).ignore_environment();
    Ok(builder.policy(policy).create()?)
}

/// Starts the programs and waits until all of them are there. Who does not come is played by our own binary.
fn assemble(
    stage: &mut Stage,
    server: &Server,
    show: &mut Show,
    half: Half,
    audience: &mut Audience,
) -> Result<(), End> {
    let tool = stage.tool().to_owned();
    let directory = stage.directory().to_owned();
    let part = |who| Part {
        half,
        who,
        server: server.address(),
        wants: show.limit.rate,
        manner: show.manner,
        directory: &directory,
        tool: &tool,
    };
    let parts: [Part<'_>; CAST] = std::array::from_fn(part);
    for (part, kind) in parts.iter().zip(show.kinds) {
        stage.enter(kind, part)?;
    }
    let mut by = Instant::now() + TO_START;
    loop {
        let here = server.here();
        if here == [true; CAST] {
            return Ok(());
        }
        let late = Instant::now() >= by;
        for who in 0..CAST {
            if here[who] || !(late || stage.has_left(who)) {
                continue;
            }
            let (name, said) = (show.kinds[who].name(), stage.complaint(who));
            if show.kinds[who] == Kind::Rust {
                return Err(
                    Failure::Command(format!("a program of the demo did not start: {said}"), 1).into()
                );
            }
            audience.note(&format!("{name} does not work here ({said}): this tool plays its part"))?;
            show.kinds[who] = Kind::Rust;
            stage.replace(who, &parts[who])?;
            by = Instant::now() + TO_START;
        }
        tick(stage, server, show, audience)?;
    }
}

/// Time passes, and the audience sees it.
fn tick(stage: &Stage, server: &Server, show: &mut Show, audience: &mut Audience) -> Result<(), End> {
    if let Some(event) = stage.asked_to_end() {
        return Err(End::Asked(event));
    }
    show.accounts = [Half::Without, Half::With].map(|half| server.account(half));
    show.told = server.told();
    audience.see(show)?;
    sleep(TICK);
    Ok(())
}

impl Audience {
    fn of(args: &Demo) -> Audience {
        if args.json {
            return Audience::Silent;
        }
        let picture = if args.plain || !io::stdout().is_terminal() { None } else { Picture::begin() };
        picture.map_or(Audience::Lines([0; 2]), Audience::Picture)
    }

    fn open(&mut self, show: &Show) -> Result<(), Failure> {
        if let Audience::Lines(_) = self { output::line(&view::opening(show)) } else { Ok(()) }
    }

    fn see(&mut self, show: &Show) -> Result<(), Failure> {
        match self {
            Audience::Picture(picture) => picture.draw(show),
            Audience::Lines(told) => {
                for half in [Half::Without, Half::With] {
                    let seconds = &show.accounts[half as usize].seconds;
                    // The last one is over only if the half is.
                    let done = show.progress[half as usize] == Progress::Done
                        || (half == Half::With && show.telling);
                    let over = seconds.len().saturating_sub(usize::from(!done));
                    let first = told[half as usize];
                    for (number, score) in seconds.iter().enumerate().take(over).skip(first) {
                        output::line(&view::second(half, number, *score))?;
                        told[half as usize] = number + 1;
                    }
                }
                Ok(())
            }
            Audience::Silent => Ok(()),
        }
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        if let Audience::Lines(_) = self { output::line(&format!("note: {text}")) } else { Ok(()) }
    }

    fn end(self, show: &Show) -> Result<(), Failure> {
        match self {
            Audience::Picture(_) => output::line(&view::end(show, Paint::for_stdout())),
            Audience::Lines(_) => {
                output::line(&format!("told     {}\n\n{}\n", show.scene(), view::table(show)))?;
                output::line(&view::end(show, Paint::for_stdout()))
            }
            Audience::Silent => output::line(&show.to_json().to_string()),
        }
    }
}
