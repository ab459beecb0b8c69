//! The events of `top`: keys, resized windows and signals, all through one channel.

use crate::platform::{self, Event};
use crate::ui::failure::Failure;
use ratatui::crossterm::event::{self, Event as Input, KeyEvent, KeyEventKind};
use std::io;
use std::sync::mpsc::{Receiver, channel};

pub enum TopEvent {
    Key(KeyEvent),
    Resized,
    Event(Event),
    /// Standard input has ended.
    InputClosed,
}

const HANDLED: [Event; 6] =
    [Event::Interrupt, Event::Terminate, Event::HangUp, Event::Quit, Event::Stop, Event::Continue];

/// Turns signals into events. Signals no longer end the process.
pub fn listen() -> Result<Receiver<TopEvent>, Failure> {
    let (send, receive) = channel();
    let signals = send.clone();
    platform::on_events(&HANDLED, move |event| signals.send(TopEvent::Event(event)).is_ok())?;
    std::thread::spawn(move || {
        loop {
            let event = match event::read() {
                Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => TopEvent::Key(key),
                Ok(Input::Resize(..)) => TopEvent::Resized,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => TopEvent::InputClosed,
            };
            let last = matches!(event, TopEvent::InputClosed);
            if send.send(event).is_err() || last {
                return;
            }
        }
    });
    Ok(receive)
}
