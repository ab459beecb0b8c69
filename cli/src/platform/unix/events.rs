//! Handles signals without handlers: blocks them and waits for them, so that none is lost or interrupts the program.

use crate::platform::Event;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use shmlimit_segment::sys::tool::spawn_with_mask;
use std::io;
use std::process::{Child, Command, ExitCode};
use std::thread::Builder;

/// The value that a shell adds to the number of the signal that ended a command.
pub const BY_SIGNAL: i32 = 128;

pub fn signal(event: Event) -> Signal {
    match event {
        Event::Interrupt => Signal::SIGINT,
        Event::Quit => Signal::SIGQUIT,
        Event::HangUp => Signal::SIGHUP,
        Event::Terminate => Signal::SIGTERM,
        Event::Stop => Signal::SIGTSTP,
        Event::Continue => Signal::SIGCONT,
        Event::Resize => Signal::SIGWINCH,
    }
}

fn signals(events: &[Event]) -> SigSet {
    events.iter().copied().map(signal).collect()
}

/// Returns whether the signal asks the process to end.
pub fn is_ending(signal: Signal) -> bool {
    Event::ENDING.into_iter().any(|event| self::signal(event) == signal)
}

/// See the contract in `platform`. Threads that start later block the signals too.
pub fn on_events(events: &[Event], mut handle: impl FnMut(Event) -> bool + Send + 'static) -> io::Result<()> {
    let wanted = events.to_owned();
    let signals = signals(events);
    signals.thread_block()?;
    let listen = move || {
        while let Ok(received) = signals.wait() {
            let event = wanted.iter().copied().find(|event| signal(*event) == received);
            if event.is_some_and(|event| !handle(event)) {
                return;
            }
        }
    };
    Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

/// Ends the process by a blocked signal, so that the parent process sees the reason: a shell ends its loop at Ctrl-C
/// only if the command dies of it. If the signal is ignored, the exit code contains it.
pub fn exit_by(event: Event) -> ExitCode {
    let signal = signal(event);
    let _ = raise(signal);
    let _ = SigSet::from(signal).thread_unblock();
    ExitCode::from(u8::try_from(BY_SIGNAL + signal as i32).unwrap_or(1))
}

/// Stops this process. If no shell could continue it (`ssh -t HOST shmlimit top`), the system ignores the stop.
pub fn suspend() -> io::Result<()> {
    // The signal is sent to this thread, which unblocks it for a moment.
    raise(Signal::SIGTSTP)?;
    let stops = SigSet::from(Signal::SIGTSTP);
    stops.thread_unblock()?;
    Ok(stops.thread_block()?)
}

/// See the contract in `platform`.
pub struct ExitRequests {
    signals: SignalFd,
    /// The signals that were blocked before.
    before: SigSet,
}

impl ExitRequests {
    /// Call it on the main thread, before any other thread starts.
    pub fn listen() -> io::Result<ExitRequests> {
        let ours = signals(&Event::ENDING);
        let signals = SignalFd::with_flags(&ours, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let before = SigSet::thread_get_mask()?;
        ours.thread_block()?;
        Ok(ExitRequests { signals, before })
    }

    pub fn next(&self) -> Option<Event> {
        let received = self.signals.read_signal().ok().flatten()?;
        let received = Signal::try_from(received.ssi_signo.cast_signed()).ok()?;
        Event::ENDING.into_iter().find(|event| signal(*event) == received)
    }

    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        spawn_with_mask(command, self.before)
    }
}
