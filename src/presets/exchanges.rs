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
             day and account. What /api/v3/exchangeInfo says of your account wins: set it.",
    notes: &[
        "A call says what it costs: --cost weight=5, and orders=1 if it places one. What was really used \
         is learned from the headers, and sets the pace.",
        "Weight is per address, orders are per account: with several accounts, one limiter for each.",
        "Status 418 is a ban that began as 429s ignored; heed Retry-After.",
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
             2026-08-21 (8 before). The header's min is a fixed number nowadays and not used.",
    notes: &[
        "`requests` is the group default. A call of the group order says so: --cost requests=0 --cost order=1.",
        "Market data has groups of its own, 10 a second and address: give them a limiter of their own.",
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
