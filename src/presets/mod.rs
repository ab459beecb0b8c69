//! Ready-made policies, by the name of the API they are for.

use crate::kernel::policy::{Breaker, BreakerKind};
use crate::kernel::{Algorithm, Nanos, Policy, PolicyDraft, PolicyError, RuleDraft};

/// The names of all presets.
pub const NAMES: [&str; 1] = ["tmdb"];

/// The policy of a preset; `None` if there is none of that name.
///
/// ```
/// let tmdb = shmlimit::presets::policy("tmdb").unwrap().unwrap();
/// assert_eq!(tmdb.concurrency(), Some(4));
/// ```
pub fn policy(name: &str) -> Option<Result<Policy, PolicyError>> {
    match name {
        "tmdb" => Some(tmdb()),
        _ => None,
    }
}

/// The Movie Database (R101): 35 requests a second, all 35 at once if need be, 4 in flight.
fn tmdb() -> Result<Policy, PolicyError> {
    let rule = RuleDraft {
        name: Some("rps"),
        burst: Some(35),
        ..RuleDraft::new(Algorithm::TokenBucket, 35, Nanos(1_000_000_000))
    };
    Policy::new(&PolicyDraft {
        provider: "tmdb",
        concurrency: Some(4),
        rules: &[rule],
        breaker: Breaker::of(BreakerKind::Fsm),
        ..PolicyDraft::default()
    })
}
