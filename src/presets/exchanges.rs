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
    about: "Binance spot: weight per minute, orders per 10 seconds and per day, paced by X-MBX-* headers",
    source: "2024-11-15, the exchange's help pages: 6000 weight a minute for each address; 50 orders in 10 s and \
             160000 a day for each account. If /api/v3/exchangeInfo shows other limits for your account, set those.",
    notes: &[
        "Give the cost of each call: --cost weight=5, and --cost orders=1 if the call places an order. The headers of \
         the responses show the real use, and set the pace.",
        "Weight is counted per address, and orders per account. With several accounts, make one limiter for each.",
        "Status 418 is a ban after ignored 429s. Wait for the end of its Retry-After.",
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
    about: "Upbit: limits per second for the groups default and order, paced by Remaining-Req",
    source: "2026-10-07, the exchange's documentation: 30 calls a second in the group `default`; 12 a \
             second in the group `order` since 2026-08-21 (8 before). `min` in the header is a fixed number today, and \
             is not used.",
    notes: &[
        "The unit `requests` counts the group `default`. For the group `order`: --cost requests=0 --cost order=1.",
        "Market data has separate groups, with 10 calls a second for each address: make a separate limiter for them.",
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
