//! What happens to `top`: keys, windows that change, signals. All of it comes through one channel.

use crate::failure::Failure;
use crate::platform::{self, Event};
use ratatui::crossterm::event::{self, Event as Input, KeyEvent, KeyEventKind};
use std::io;
use std::sync::mpsc::{Receiver, channel};

pub enum News {
    Key(KeyEvent),
    Resized,
    Event(Event),
    /// There is nothing to read keys from any more.
    Deaf,
}

const HEARD: [Event; 6] =
    [Event::Interrupt, Event::Terminate, Event::HangUp, Event::Quit, Event::Stop, Event::Continue];

/// From here on signals do not end the process; they are told.
pub fn listen() -> Result<Receiver<News>, Failure> {
    let (send, receive) = channel();
    let heard = send.clone();
    platform::hear(&HEARD, move |event| heard.send(News::Event(event)).is_ok())?;
    std::thread::spawn(move || {
        loop {
            let news = match event::read() {
                Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => News::Key(key),
                Ok(Input::Resize(..)) => News::Resized,
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
