//! Ready-made policies, by the name of the API they are for.

use crate::kernel::{Algorithm, Fairness, Nanos, Policy, PolicyDraft, PolicyError, RuleDraft};

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
        "tmdb" => Some(Policy::new(&TMDB)),
        _ => None,
    }
}

/// The Movie Database (R101): 35 requests a second, all 35 at once if need be, 4 in flight.
const TMDB: PolicyDraft<'static> = PolicyDraft {
    provider: "tmdb",
    concurrency: Some(4),
    concurrency_background: None,
    fairness: Fairness::Process,
    background_share: 0,
    rules: &[RuleDraft {
        name: Some("rps"),
        burst: Some(35),
        ..RuleDraft::new(Algorithm::TokenBucket, 35, Nanos(1_000_000_000))
    }],
};
