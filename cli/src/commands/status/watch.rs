//! `status --watch`: shows the status repeatedly. It redraws a terminal in place and appends to other outputs.
//!
//! The settings of the terminal are not changed, so there is nothing to restore however the process ends.

use crate::platform::{self, Event};
use crate::poller::{Observation, Poller};
use crate::ui::failure::Failure;
use crate::ui::layout::{self, ScreenStyle};
use crate::ui::limiter::overview;
use crate::ui::{self, escape, output, time};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const HOME: &str = "\x1b[H";
const CLEAR: &str = "\x1b[2J";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Writes JSON until the process ends.
pub fn json(
    poller: &mut Poller,
    every: Duration,
    line: impl Fn(&shmlimit::Snapshot) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let resized = channel().1;
    loop {
        let started = Instant::now();
        let mut lines = String::new();
        for (name, seen) in poller.poll()? {
            match seen {
                Ok(snapshot) => lines += &line(&snapshot)?,
                Err(error) => output::remark(&format!("{name}: {error}")),
            }
        }
        output::text(&lines)?;
        pause(&resized, started, every);
    }
}

/// Writes text until the process ends.
pub fn text(
    poller: &mut Poller,
    every: Duration,
    all: bool,
    nothing: &dyn Fn() -> String,
) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal() && platform::supports_escapes();
    let resized = if terminal { resizes()? } else { channel().1 };
    if terminal {
        output::raw(&format!("{CLEAR}{HOME}"))?;
    }
    loop {
        let started = Instant::now();
        let screen = ScreenStyle::for_stdout();
        let observations = poller.poll()?;
        let block =
            if observations.is_empty() { nothing() + "\n" } else { to_text(&observations, all, screen) };
        match terminal {
            true => output::raw(&in_place(&escape::painted(&block), every, screen))?,
            false => output::text(&format!("{block}\n"))?,
        }
        pause(&resized, started, every);
    }
}

fn to_text(observations: &[Observation], all: bool, screen: ScreenStyle) -> String {
    let blocks: Vec<String> = observations
        .iter()
        .map(|(name, seen)| match seen {
            Ok(snapshot) => overview::render(snapshot, all, screen),
            Err(error) => overview::render_error(name, error, screen),
        })
        .collect();
    blocks.join("\n")
}

/// Writes each line over the previous one, which avoids flicker. A note says how much does not fit.
fn in_place(block: &str, every: Duration, screen: ScreenStyle) -> String {
    let head = format!("every {}, Ctrl-C ends", time::format_remaining(every));
    let lines: Vec<&str> = block.lines().collect();
    // The last line is left to the cursor: one more line would scroll.
    let room = layout::terminal_size().1.saturating_sub(2).max(1);
    let fits = if lines.len() <= room { lines.len() } else { room - 1 };
    let mut frame = format!("{HOME}{}{CLEAR_LINE}\n", screen.paint.dim(&screen.cut(&head)));
    for line in &lines[..fits] {
        frame += &format!("{line}{CLEAR_LINE}\n");
    }
    if fits < lines.len() {
        let more = ui::count((lines.len() - fits) as u64, "more lines");
        let more = format!("… {more}; a taller window or the name of one limiter shows them");
        frame += &format!("{}{CLEAR_LINE}\n", screen.paint.dim(&screen.cut(&screen.spelled(more))));
    }
    frame + CLEAR_BELOW
}

/// Returns a channel that receives a message when the window size changes.
fn resizes() -> Result<Receiver<()>, Failure> {
    let (send, receive) = channel();
    platform::on_events(&[Event::Resize], move |_| send.send(()).is_ok())?;
    Ok(receive)
}

/// Waits until the next update is due or the window size changes.
fn pause(resized: &Receiver<()>, started: Instant, every: Duration) {
    let rest = every.saturating_sub(started.elapsed());
    if resized.recv_timeout(rest).is_err() {
        // Without a sender, `recv_timeout` returns at once.
        std::thread::sleep(every.saturating_sub(started.elapsed()));
    }
    while resized.try_recv().is_ok() {}
}
