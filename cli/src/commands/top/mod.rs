//! `top`: shows all limiters live, in the terminal.
//!
//! `model` turns observations into numbers, `input` turns keys into choices, and `draw` draws both. This file puts them
//! together: limiters are polled once per interval, independently of keys.

mod detail;
mod draw;
mod events;
mod fit;
mod input;
mod model;
mod process_table;
mod programs;
mod terminal;
mod theme;

use crate::open;
use crate::options::Location;
use crate::platform::{self, Event, texts};
use crate::poller::Poller;
use crate::ui::failure::Failure;
use crate::verb_trait::{Command, Example, Tool};
use events::TopEvent;
use input::{App, KeyAction};
use model::Model;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::Screen;
use theme::Theme;

const TOP_HELP: &str = "\
Keys: ? shows them all, q quits. top changes nothing.
For scripts and plain terminals: shmlimit status --watch";

#[derive(Debug, clap::Args)]
#[command(after_help = TOP_HELP)]
pub struct Top {
    /// Show only this limiter
    pub name: Option<String>,
}

impl Command for Top {
    const EXAMPLES: &'static [Example] = &[("Watch all limiters:", "shmlimit top")];

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let dumb = !platform::supports_escapes();
        if !std::io::stdout().is_terminal() || dumb {
            let what = if dumb { texts::NO_CURSOR } else { "a terminal on standard output" };
            let message = format!("top needs {what}; for pipes and files use: shmlimit status --watch");
            return Err(Failure::Usage(message));
        }
        if let Some(name) = &self.name {
            open::observer(tool.location, name)?.ok_or_else(|| open::unknown_limiter(tool.location, name))?;
        }
        let events = events::listen()?;
        let mut screen = Screen::enter()?;
        let ended = watch(tool.location, self, &events, &mut screen);
        drop(screen);
        match ended? {
            None => Ok(ExitCode::SUCCESS),
            Some(event) => Ok(platform::exit_by(event)),
        }
    }
}

/// Runs until a key or a signal ends it.
fn watch(
    location: &Location,
    args: &Top,
    events: &std::sync::mpsc::Receiver<TopEvent>,
    screen: &mut Screen,
) -> Result<Option<Event>, Failure> {
    let (mut app, mut model) = (App::default(), Model::default());
    let mut poller = Poller::new(location, args.name.clone());
    let theme = Theme::for_stdout(platform::supports_unicode());
    let started = Instant::now();
    let mut due = started;
    loop {
        let now = Instant::now();
        if now >= due {
            if !app.paused {
                match poller.poll() {
                    Ok(observations) => model.update(now - started, observations),
                    Err(failure) => model.fail(failure.to_string()),
                }
            }
            due = now + app.every;
        }
        let every = app.every;
        screen.draw(|frame| draw::all(frame, &model, &mut app, &theme))?;
        match events.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(TopEvent::Key(key)) => match app.key(key, &model) {
                KeyAction::Stay => {}
                KeyAction::Quit => return Ok(None),
                KeyAction::Stop => screen.stop()?,
            },
            Ok(TopEvent::Resized) | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Ok(TopEvent::Event(Event::Stop)) => screen.stop()?,
            Ok(TopEvent::Event(Event::Continue)) => screen.again()?,
            Ok(TopEvent::Event(event)) => return Ok(Some(event)),
            // The terminal is gone.
            Ok(TopEvent::InputClosed) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Ok(None);
            }
        }
        if app.every != every {
            due = due.min(Instant::now() + app.every).max(now + Duration::from_millis(100));
        }
    }
}
