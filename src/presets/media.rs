//! Presets for databases of films, series, music and their pictures (R101, R102).

use super::{DAY, Preset, SECOND, named};
use shmlimit_kernel::policy::{Backoff, Breaker, BreakerKind, Jitter};
use shmlimit_kernel::{Algorithm, PolicyDraft, RuleDraft};
use std::time::Duration;

const PER_KEY: &str = "The limit is per API key: programs with different keys need different limiters.";

pub(super) const ALL: &[Preset] =
    &[TMDB, TMDB_LEGACY, TVDB, FANART, FANART_PERSONAL, MUSICBRAINZ, OMDB_FREE, OMDB_PAID, LOCAL];

const TMDB: Preset = Preset {
    name: "tmdb",
    about: "The Movie Database: 35 a second, 35 at once, 4 in flight, with the five-state breaker",
    source: "2024-04: no official limit since 2019-12-16; about 40 to 50 a second are tolerated, as the provider says \
             and users observe. 35 stays below.",
    notes: &["Cache answers for 24 to 48 h.", PER_KEY],
    draft: PolicyDraft {
        provider: "tmdb",
        concurrency: Some(4),
        rules: &[RuleDraft { burst: Some(35), ..named("rps", Algorithm::TokenBucket, 35, SECOND) }],
        breaker: Breaker::of(BreakerKind::Fsm),
        ..PolicyDraft::DEFAULT
    },
};

const TMDB_LEGACY: Preset = Preset {
    name: "tmdb-legacy",
    about: "The Movie Database as it was until 2019: 40 in any 10 seconds",
    source: "The official limit until 2019-12-16, when it was switched off.",
    notes: &["Cache answers for 24 to 48 h.", PER_KEY],
    draft: PolicyDraft {
        rules: &[
            RuleDraft { burst: Some(40), ..named("rate", Algorithm::TokenBucket, 40, TEN_SECONDS) },
            named("window", Algorithm::SlidingLog, 40, TEN_SECONDS),
        ],
        ..cautious("tmdb")
    },
};

const TVDB: Preset = Preset {
    name: "tvdb",
    about: "TheTVDB: 10 a second, 50 at once of which 40 for high priorities, never above 100 in 10 seconds",
    source: "2026-05: the provider publishes no limit; 100 in 10 s is an unofficial ceiling.",
    notes: &["Cache answers for 24 to 48 h.", PER_KEY],
    draft: PolicyDraft {
        rules: &[bucket(10, 50), named("window", Algorithm::SlidingLog, 100, TEN_SECONDS)],
        ..cautious("tvdb")
    },
};

const FANART: Preset = Preset {
    name: "fanart",
    about: "fanart.tv with a project key: 1 a second, 5 at once of which 4 for high priorities",
    source: "The sliding window is the provider's limit for project keys, 10 a second. The rate is far below it, as a \
             courtesy.",
    notes: &["Pictures do not change: cache them without an expiry.", PER_KEY],
    draft: PolicyDraft {
        rules: &[bucket(1, 5), named("window", Algorithm::SlidingLog, 10, SECOND)],
        ..cautious("fanart")
    },
};

const FANART_PERSONAL: Preset = Preset {
    name: "fanart-personal",
    about: "fanart.tv with a personal key: 2 a second, 10 at once of which 8 for high priorities",
    source: "The sliding window is the provider's limit for personal keys, 20 a second. The rate is far below it, as \
             a courtesy.",
    notes: &["Pictures do not change: cache them without an expiry.", PER_KEY],
    draft: PolicyDraft {
        rules: &[bucket(2, 10), named("window", Algorithm::SlidingLog, 20, SECOND)],
        ..cautious("fanart")
    },
};

const MUSICBRAINZ: Preset = Preset {
    name: "musicbrainz",
    about: "MusicBrainz: one a second, one at a time, no priorities",
    source: "The official limit: one request a second. A bucket of one is exactly that, so it needs no second rule.",
    notes: &[
        "Cache answers without an expiry.",
        "The limit is per address, not per key; a User-Agent with a contact is required.",
    ],
    draft: PolicyDraft {
        concurrency: Some(1),
        rules: &[bucket(1, 1)],
        priorities: false,
        ..cautious("musicbrainz")
    },
};

const OMDB_FREE: Preset = Preset {
    name: "omdb-free",
    about: "OMDb with a free key: 1000 each UTC day",
    source: "2026-06: the provider's limit for free keys; the count restarts at midnight UTC.",
    notes: &["Cache answers for 7 days.", PER_KEY, DAILY],
    draft: PolicyDraft { rules: &[named("day", Algorithm::FixedWindow, 1000, DAY)], ..cautious("omdb") },
};

const OMDB_PAID: Preset = Preset {
    name: "omdb-paid",
    about: "OMDb with a paid key: 100000 each UTC day",
    source: "2026-06: the limit of the lowest paid level; higher levels have more.",
    notes: &["Cache answers for 7 days.", PER_KEY, DAILY],
    draft: PolicyDraft { rules: &[named("day", Algorithm::FixedWindow, 100_000, DAY)], ..cautious("omdb") },
};

const LOCAL: Preset = Preset {
    name: "local",
    about: "A service on your own network: 1000 a second, 10000 at once of which 9000 for high priorities",
    source: "Not a provider's limit: a rate that a service on a home network can bear.",
    notes: &[],
    draft: PolicyDraft { rules: &[bucket(1000, 10_000)], ..cautious("local") },
};

const TEN_SECONDS: Duration = Duration::from_secs(10);
const DAILY: &str = "A daily quota survives a reboot only if the directory of the limiters does: --dir.";

/// A token bucket with `rate` units per second and `burst` units at once. The part of the burst above the rate is
/// reserved for high priorities (R107).
const fn bucket(rate: u64, burst: u64) -> RuleDraft<'static> {
    let reserve = burst - rate;
    RuleDraft { burst: Some(burst), reserve, ..named("rps", Algorithm::TokenBucket, rate, SECOND) }
}

/// A breaker that counts consecutive failures, and waits of 1, 2, 4, 8, 16, 30 s (R75, R78).
const fn cautious(provider: &'static str) -> PolicyDraft<'static> {
    let mut backoff = Backoff::DEFAULT.with_jitter(Jitter::None);
    backoff.base = SECOND;
    PolicyDraft { provider, breaker: Breaker::of(BreakerKind::Consecutive), backoff, ..PolicyDraft::DEFAULT }
}
