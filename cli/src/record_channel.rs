//! The pipe through which `record`, started inside `run`, tells `run` that the outcome is already recorded.
//!
//! `run` keeps a pipe that no program inherits, and names it in an environment variable. `record` finds the pipe by
//! that name, and writes only if it is the same pipe.

use crate::options::{ENV_LIMITER, ENV_RUN};
use crate::platform;
use shmlimit::{Advice, Limiter, OutcomeCode, WaitSource};
use std::io::Write;
use std::time::Duration;

/// The message of a `record`.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordMessage {
    /// The status or the error.
    pub code: String,
    /// How long to wait before another attempt, and why; `None` if there should be no other attempt.
    pub wait: Option<(Duration, WaitSource)>,
}

/// Tells the surrounding `run`, if there is one, that its call is recorded. If `run` cannot be reached (because it
/// belongs to another user or container), nothing is sent, and `run` records on its own.
pub fn send(limiter: &Limiter, code: OutcomeCode, recorded: &Advice) {
    let Some(address) = std::env::var(ENV_RUN).ok().filter(|_| is_for_call_of(limiter.name())) else {
        return;
    };
    let line = line(limiter, code, recorded);
    if let Some(mut pipe) = platform::open_pipe(&address) {
        let _ = pipe.write_all(line.as_bytes());
    }
}

/// Returns whether this process was started for a call of that limiter.
pub fn is_for_call_of(name: &str) -> bool {
    std::env::var(ENV_LIMITER).is_ok_and(|limiter| limiter == name)
}

fn line(limiter: &Limiter, code: OutcomeCode, recorded: &Advice) -> String {
    let source = recorded.wait_source.map_or("-", WaitSource::as_str);
    let (wait, name) = (recorded.wait.as_nanos(), limiter.name());
    format!("{code} {wait} {source} {name} {}\n", limiter.directory().display())
}

/// Returns the last message about this limiter.
pub fn last_message(text: &[u8], limiter: &Limiter) -> Option<RecordMessage> {
    let whose = format!("{} {}", limiter.name(), limiter.directory().display());
    String::from_utf8_lossy(text).lines().rev().find_map(|line| read(line, &whose))
}

fn read(line: &str, whose: &str) -> Option<RecordMessage> {
    let mut parts = line.splitn(4, ' ');
    let (code, wait, source) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let source =
        [WaitSource::RetryAfter, WaitSource::Backoff].into_iter().find(|known| known.as_str() == source);
    let wait = source.map(|source| (Duration::from_nanos(wait), source));
    (parts.next()? == whose).then(|| RecordMessage { code: code.to_owned(), wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_read_only_if_it_is_about_this_limiter() {
        let wait = Some((Duration::from_secs(2), WaitSource::RetryAfter));
        let throttled = RecordMessage { code: "429".to_owned(), wait };
        assert_eq!(read("429 2000000000 retry_after tmdb /a dir", "tmdb /a dir"), Some(throttled));
        let fine = RecordMessage { code: "200".to_owned(), wait: None };
        assert_eq!(read("200 0 - tmdb /d", "tmdb /d"), Some(fine));
        assert_eq!(read("200 0 - omdb /d", "tmdb /d"), None);
        assert_eq!(read("nonsense", "tmdb /d"), None);
    }
}
