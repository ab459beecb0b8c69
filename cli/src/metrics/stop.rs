//! Ending when asked to, at a good moment.

use crate::failure::Failure;
use crate::platform::{self, Event};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub struct Stop(Receiver<()>);

impl Stop {
    /// From here on what asks to end (but for a quit, which is for those who want a core) ends nothing by itself. To be called before other threads begin.
    pub fn on_signals() -> Result<Stop, Failure> {
        let (tell, told) = channel();
        platform::hear(&[Event::Interrupt, Event::Terminate, Event::HangUp], move |_| tell.send(()).is_ok())?;
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
