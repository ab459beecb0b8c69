//! Takes over the terminal, and restores it however `top` ends.

use crate::platform;
use crate::ui::failure::Failure;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub fn enter() -> Result<Screen, Failure> {
        static HOOK: Once = Once::new();
        // A message about a defect must not be lost with the other screen.
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                leave();
                usual(info);
            }));
        });
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Screen { terminal })
    }

    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }

    /// Gives the terminal back to the shell until it lets us go on.
    pub fn stop(&mut self) -> io::Result<()> {
        leave();
        platform::suspend()?;
        self.again()
    }

    /// The shell may have set the terminal as it likes it.
    pub fn again(&mut self) -> io::Result<()> {
        let _ = disable_raw_mode();
        take()?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // One that knows nothing of what was drawn. (Clearing the old one would ask the terminal where its cursor is,
        // and the answer goes to the thread that reads keys.)
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Whether the terminal is ours. Leaving twice would put the cursor where it was before, over a message written since.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| leave())
}

/// A terminal that is gone needs nothing.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
