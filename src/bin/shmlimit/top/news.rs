//! What happens to `top`: keys, windows that change, signals. All of it comes through one channel.

use crate::failure::Failure;
use crate::signals;
use nix::sys::signal::Signal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use std::io;
use std::sync::mpsc::{Receiver, channel};

pub enum News {
    Key(KeyEvent),
    Resized,
    Signal(Signal),
    /// There is nothing to read keys from any more.
    Deaf,
}

const HEARD: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGCONT];

/// From here on signals do not end the process; they are told.
pub fn listen() -> Result<Receiver<News>, Failure> {
    let (send, receive) = channel();
    let heard = send.clone();
    signals::hear(&HEARD, move |signal| heard.send(News::Signal(signal)).is_ok())?;
    std::thread::spawn(move || {
        loop {
            let news = match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => News::Key(key),
                Ok(Event::Resize(..)) => News::Resized,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => News::Deaf,
            };
            let last = matches!(news, News::Deaf);
            if send.send(news).is_err() || last {
                return;
            }
        }
    });
    Ok(receive)
}
