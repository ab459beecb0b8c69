//! A wait that explains itself: who sits at a terminal is told, after a moment, what it is for.

use crate::next::Change;
use crate::{output, pause, screen};
use shmlimit::{AcquireError, Grant, Limiter, Request, Snapshot};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Shorter waits are the usual thing, and need no words.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// [`Limiter::acquire`], with one line on a terminal if it takes long.
pub fn acquire<'l>(limiter: &'l Limiter, request: &Request<'_>) -> Result<Grant<'l>, AcquireError> {
    if !io::stderr().is_terminal() {
        return limiter.acquire(request);
    }
    let began = Instant::now();
    let mut told = false;
    let explain = || {
        if !told && began.elapsed() >= WORTH_A_WORD {
            told = true;
            let why = limiter.snapshot().map(|snapshot| in_words(&snapshot)).unwrap_or_default();
            output::remark(&format!("{}: waiting{why}", limiter.name()));
        }
        false
    };
    match limiter.acquire_unless(request, explain)? {
        Some(grant) => Ok(grant),
        None => unreachable!("it is never called off"),
    }
}

fn in_words(snapshot: &Snapshot) -> String {
    let name = output::operand(&snapshot.name);
    if let Some(pause) = &snapshot.paused {
        let left = match pause.ends_in {
            Some(left) => format!("goes on in {}", screen::soon(left)),
            None => format!("until: shmlimit resume {name}"),
        };
        return format!(": paused by {}; {left}", pause::by(pause));
    }
    let change =
        Change::of(snapshot).filter(Change::is_news).map(|change| format!(": {}", change.in_words()));
    let others = match snapshot.queue.len() {
        0 | 1 => String::new(),
        many => format!(", {many} in the queue"),
    };
    format!("{}{others} (shmlimit status {name} says more)", change.unwrap_or_default())
}
