//! Console events. All programs of one window receive them at the same time.

use crate::platform::Event;
use shmlimit_segment::sys::tool::{end_children_with_us, listen_to_console};
use std::io;
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::{Receiver, channel};

/// The exit code of programs that do not handle Ctrl-C: `STATUS_CONTROL_C_EXIT`.
pub const INTERRUPTED: u32 = 0xC000_013A;

/// Converts `CTRL_C_EVENT` and the other numbers. Ctrl-Break counts as Ctrl-C, for programs in a separate process
/// group, which Ctrl-C does not reach.
fn event(number: u32) -> Event {
    match number {
        0 | 1 => Event::Interrupt,
        2 => Event::HangUp,
        _ => Event::Terminate,
    }
}

/// See the contract in `platform`. On Windows no event stops or continues a program, or reports another window size.
pub fn on_events(events: &[Event], mut handle: impl FnMut(Event) -> bool + Send + 'static) -> io::Result<()> {
    let wanted: Vec<Event> = events.iter().copied().filter(|event| Event::ENDING.contains(event)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    listen_to_console(move |number| wanted.contains(&event(number)) && handle(event(number)))
}

/// Returns the system's exit code for a program that an event ended.
pub fn exit_by(_event: Event) -> ExitCode {
    exit_code(INTERRUPTED)
}

/// Returns an exit code with all 32 bits. The standard library's type has only eight.
pub fn exit_code(code: u32) -> ExitCode {
    match u8::try_from(code) {
        Ok(code) => ExitCode::from(code),
        Err(_) => std::process::exit(code.cast_signed()),
    }
}

/// Does nothing, because no shell could continue this process.
pub fn suspend() -> io::Result<()> {
    Ok(())
}

/// See the contract in `platform`.
pub struct ExitRequests(Receiver<Event>);

impl ExitRequests {
    pub fn listen() -> io::Result<ExitRequests> {
        let (sender, receiver) = channel();
        on_events(&Event::ENDING, move |event| sender.send(event).is_ok())?;
        Ok(ExitRequests(receiver))
    }

    pub fn next(&self) -> Option<Event> {
        self.0.try_recv().ok()
    }

    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        end_children_with_us()?;
        command.spawn()
    }
}
