//! Presets for exchanges, whose response headers set the pace (R103).

use super::{DAY, MINUTE, Preset, SECOND, adaptive, named, window};
use crate::headers::HeaderFormat;
use shmlimit_kernel::policy::WindowKind;
use shmlimit_kernel::{Algorithm, PolicyDraft, RuleDraft};
use std::time::Duration;

const TEN_SECONDS: Duration = Duration::from_secs(10);

pub(super) const ALL: &[Preset] = &[BINANCE, UPBIT];

const BINANCE: Preset = Preset {
    name: "binance",
    about: "Binance spot: weight by the minute, orders by 10 seconds and by the day, paced by X-MBX-* headers",
    source: "2024-11-15, the exchange's help pages: weight 6000 a minute and address; 50 orders in 10 s and 160000 a \
             day and account. /api/v3/exchangeInfo returns the limits of your account: set those.",
    notes: &[
        "State what a call costs: --cost weight=5, and orders=1 if it places an order. The headers report what was \
         really used, and set the pace.",
        "Weight is counted per address and orders per account: with several accounts, use one limiter for each.",
        "Status 418 is a ban after ignored 429s; wait as long as Retry-After says.",
    ],
    draft: PolicyDraft {
        provider: "binance",
        rules: &[
            RuleDraft { unit: Some("weight"), ..named("weight", Algorithm::FixedWindow, 6000, MINUTE) },
            RuleDraft {
                unit: Some("orders"),
                ..named("orders-10s", Algorithm::FixedWindow, 50, TEN_SECONDS)
            },
            RuleDraft { unit: Some("orders"), ..named("orders-day", Algorithm::FixedWindow, 160_000, DAY) },
        ],
        adaptive: Some(adaptive(
            HeaderFormat::Binance,
            &[
                window("REQUEST_WEIGHT:1M", 6000, MINUTE, WindowKind::Fixed),
                window("ORDERS:10S", 50, TEN_SECONDS, WindowKind::Fixed),
                window("ORDERS:1D", 160_000, DAY, WindowKind::Fixed),
            ],
        )),
        ..PolicyDraft::DEFAULT
    },
};

const UPBIT: Preset = Preset {
    name: "upbit",
    about: "Upbit: the groups default and order by the second, paced by Remaining-Req",
    source: "2026-10-07, the exchange's documentation: group default 30 a second; group order 12 a second since \
             2026-08-21 (8 before). The header's min is now a fixed number, and is not used.",
    notes: &[
        "`requests` counts the group default. For a call of the group order use: --cost requests=0 --cost order=1.",
        "Market data has its own groups, 10 a second per address: create separate limiters for them.",
    ],
    draft: PolicyDraft {
        provider: "upbit",
        rules: &[
            named("default", Algorithm::SlidingLog, 30, SECOND),
            RuleDraft { unit: Some("order"), ..named("order", Algorithm::SlidingLog, 12, SECOND) },
        ],
        adaptive: Some(adaptive(
            HeaderFormat::Upbit,
            &[
                window("default:sec", 30, SECOND, WindowKind::Sliding),
                window("order:sec", 12, SECOND, WindowKind::Sliding),
            ],
        )),
        ..PolicyDraft::DEFAULT
    },
};
