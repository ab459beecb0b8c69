//! Waits for a grant, and explains a long wait on a terminal.

use crate::ui::limiter::condition;
use crate::ui::limiter::next_change::Change;
use crate::ui::{output, suggestion, time};
use shmlimit::{AcquireError, Grant, Limiter, Request, Snapshot};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Shorter waits are common and need no notice.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// As [`Limiter::acquire`], but prints one line on a terminal if the wait takes long.
pub fn acquire<'l>(limiter: &'l Limiter, request: &Request<'_>) -> Result<Grant<'l>, AcquireError> {
    if !io::stderr().is_terminal() {
        return limiter.acquire(request);
    }
    let began = Instant::now();
    let mut noticed = false;
    let explain = || {
        if !noticed && began.elapsed() >= NOTICE_AFTER {
            noticed = true;
            let why = limiter.snapshot().map(|snapshot| to_text(&snapshot)).unwrap_or_default();
            output::remark(&format!("{}: waiting{why}", limiter.name()));
        }
        false
    };
    match limiter.acquire_cancellable(request, explain)? {
        Some(grant) => Ok(grant),
        None => unreachable!("it is never called off"),
    }
}

fn to_text(snapshot: &Snapshot) -> String {
    let name = suggestion::operand(&snapshot.name);
    if let Some(pause) = &snapshot.paused {
        let left = match pause.ends_in {
            Some(left) => format!("calls continue in {}", time::format_remaining(left)),
            None => format!("end it with: shmlimit resume {name}"),
        };
        return format!(": paused by {}; {left}", condition::paused_by(pause));
    }
    let change = Change::of(snapshot).filter(Change::is_news).map(|change| format!(": {}", change.to_text()));
    let others = match snapshot.queue.len() {
        0 | 1 => String::new(),
        many => format!(", {many} in the queue"),
    };
    format!("{}{others} (details: shmlimit status {name})", change.unwrap_or_default())
}
