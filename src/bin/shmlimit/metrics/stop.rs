//! Ending when asked to: SIGINT, SIGTERM and SIGHUP are taken as a wish to end, at a good moment.

use crate::failure::Failure;
use crate::signals;
use nix::sys::signal::Signal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub struct Stop(Receiver<()>);

impl Stop {
    /// From here on these signals end nothing by themselves. To be called before other threads begin.
    pub fn on_signals() -> Result<Stop, Failure> {
        let (tell, told) = channel();
        signals::hear(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP], move |_| tell.send(()).is_ok())?;
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
