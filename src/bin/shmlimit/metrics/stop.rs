//! Ending when asked to: SIGINT, SIGTERM and SIGHUP are taken as a wish to end, at a good moment.

use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub struct Stop(Receiver<()>);

impl Stop {
    /// From here on these signals end nothing by themselves. To be called before other threads begin.
    pub fn on_signals() -> Result<Stop, Failure> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        signals.thread_block().map_err(io::Error::from)?;
        let (tell, told) = channel();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while signals.wait().is_ok() {
                // Nobody listens any more: it ends already.
                if tell.send(()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Stop(told))
    }

    /// Waits so long; says whether to end.
    pub fn within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits until it is time to end.
    pub fn wait(&self) {
        let _ = self.0.recv();
    }
}
