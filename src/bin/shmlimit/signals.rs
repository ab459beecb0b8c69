//! Signals without handlers: they are blocked and waited for, so that none is lost or comes at a bad moment.

use nix::sys::signal::{SigSet, Signal, raise};
use std::io;
use std::process::ExitCode;
use std::thread::{Builder, JoinHandle};

/// Signals that ask to end.
pub const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// What a shell adds to the number of the signal that ended a command.
pub const BY_SIGNAL: i32 = 128;

/// From here on these signals do nothing by themselves; each is told, until `tell` says that nobody listens any more.
/// To be called before other threads begin: those to come block them too.
pub fn hear(
    signals: &[Signal],
    mut tell: impl FnMut(Signal) -> bool + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let signals: SigSet = signals.iter().copied().collect();
    signals.thread_block()?;
    Builder::new().name("signals".to_owned()).spawn(move || {
        while let Ok(signal) = signals.wait() {
            if !tell(signal) {
                return;
            }
        }
    })
}

/// Ends as a blocked signal wants it, so that whoever waits for this process sees why: a shell ends its loop at Ctrl-C
/// only if what it runs dies of it. Where that is not our fate (the signal is ignored), the code says the same.
pub fn die_of(signal: Signal) -> ExitCode {
    let _ = raise(signal);
    let _ = SigSet::from(signal).thread_unblock();
    ExitCode::from(u8::try_from(BY_SIGNAL + signal as i32).unwrap_or(1))
}
