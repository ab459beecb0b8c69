//! `top`: all limiters live, in the terminal.
//!
//! What was seen becomes numbers in `model`, what is typed becomes choices in `input`, and `draw` makes a picture of
//! both. Here they are put together: limiters are looked at once in an interval, whatever is typed meanwhile.

mod detail;
mod draw;
mod input;
mod model;
mod news;
mod terminal;

use crate::args::Place;
use crate::failure::Failure;
use crate::lookout::Lookout;
use crate::open;
use crate::platform::{self, Event, words};
use draw::Theme;
use input::{App, Then};
use model::Model;
use news::News;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::Screen;

const TOP_HELP: &str = "\
Keys: ? shows them all, q quits. Nothing is changed by looking.
For scripts and plain terminals: shmlimit status --watch";

#[derive(Debug, clap::Args)]
#[command(after_help = TOP_HELP)]
pub struct Top {
    /// Only this limiter
    pub name: Option<String>,
}

pub fn run(place: &Place, args: &Top) -> Result<ExitCode, Failure> {
    let dumb = !platform::understands_escapes();
    if !std::io::stdout().is_terminal() || dumb {
        let what = if dumb { words::NO_CURSOR } else { "a terminal on standard output" };
        let message = format!("top needs {what}; for pipes and files there is: shmlimit status --watch");
        return Err(Failure::Usage(message));
    }
    if let Some(name) = &args.name {
        open::to_look(place, name)?.ok_or_else(|| open::unknown(place, name))?;
    }
    let news = news::listen()?;
    let mut screen = Screen::enter()?;
    let ended = watch(place, args, &news, &mut screen);
    drop(screen);
    match ended? {
        None => Ok(ExitCode::SUCCESS),
        Some(event) => Ok(platform::die_of(event)),
    }
}

/// Until it is ended: by a key, or by a signal.
fn watch(
    place: &Place,
    args: &Top,
    news: &std::sync::mpsc::Receiver<News>,
    screen: &mut Screen,
) -> Result<Option<Event>, Failure> {
    let (mut app, mut model) = (App::default(), Model::default());
    let mut lookout = Lookout::new(place, args.name.clone());
    let theme = Theme::for_stdout(platform::shows_more_than_ascii());
    let started = Instant::now();
    let mut due = started;
    loop {
        let now = Instant::now();
        if now >= due {
            if !app.paused {
                match lookout.look() {
                    Ok(sights) => model.update(now - started, sights),
                    Err(failure) => model.fail(failure.to_string()),
                }
            }
            due = now + app.every;
        }
        let every = app.every;
        screen.draw(|frame| draw::all(frame, &model, &mut app, &theme))?;
        match news.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(News::Key(key)) => match app.key(key, &model) {
                Then::Stay => {}
                Then::Quit => return Ok(None),
                Then::Stop => screen.stop()?,
            },
            Ok(News::Resized) | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Ok(News::Event(Event::Stop)) => screen.stop()?,
            Ok(News::Event(Event::Continue)) => screen.again()?,
            Ok(News::Event(event)) => return Ok(Some(event)),
            // The terminal is gone.
            Ok(News::Deaf) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
        }
        if app.every != every {
            due = due.min(Instant::now() + app.every).max(now + Duration::from_millis(100));
        }
    }
}
