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
        // Leave the alternate screen first, so that the message of a panic stays visible.
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

    /// Suspends `top` and gives the terminal to the shell until the shell resumes it.
    pub fn stop(&mut self) -> io::Result<()> {
        leave();
        platform::suspend()?;
        self.again()
    }

    /// The shell may have changed the terminal's settings.
    pub fn again(&mut self) -> io::Result<()> {
        let _ = disable_raw_mode();
        take()?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new terminal draws everything again. Clearing the old one would ask the terminal for its cursor position,
        // and the thread that reads keys would get the answer.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Whether the alternate screen is in use. Leaving it twice would move the cursor back over a message that was
/// written since.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| leave())
}

/// If the terminal is closed, there is nothing to restore.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
