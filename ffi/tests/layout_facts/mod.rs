//! The offset and size of every field of every layout struct, as Rust has them. They are written into the header as
//! assertions, so that a C or C++ compiler with another layout rejects the header.

use shmlimit_ffi::layout::*;
use std::mem::{offset_of, size_of, size_of_val};

/// One struct: its name, its size, and the name, offset and size of each field.
pub struct Facts {
    pub name: &'static str,
    pub size: usize,
    pub fields: Vec<(&'static str, usize, usize)>,
}

/// The facts of one struct. A missing field is a compile error: the pattern has no `..`.
macro_rules! facts {
    ($name:ident: $($field:ident)*) => {{
        let sizes = |all: &$name| {
            let $name { $($field),* } = all;
            [$(size_of_val($field)),*]
        };
        // SAFETY: every field is an integer or an array of integers: zero is a valid value.
        let zero: Box<$name> = Box::new(unsafe { std::mem::zeroed() });
        let names = [$(stringify!($field)),*];
        let offsets = [$(offset_of!($name, $field)),*];
        let fields = names.into_iter().zip(offsets).zip(sizes(&zero)).map(|((name, at), size)| (name, at, size));
        Facts { name: stringify!($name), size: size_of::<$name>(), fields: fields.collect() }
    }};
}

/// The facts of all structs, in any order.
pub fn all() -> Vec<Facts> {
    vec![
        facts!(shmlimit_segment_header: magic byte_order layout_version hash size created generation checksum unused),
        facts!(shmlimit_segment_origin: boot anchor_time anchor_wall policy_epoch resets unused),
        facts!(shmlimit_segment_rule_state: words since),
        facts!(shmlimit_segment_queueing: flags background_share),
        facts!(shmlimit_segment_effective: spare_rules unit_count unused_counts concurrency concurrency_background queueing
            next_check unused terms),
        facts!(shmlimit_segment_outcome_window: max_age max_count min_samples),
        facts!(shmlimit_segment_breaker: rate_base probe_rate sleep_after sleep_min sleep_max ramp_every auto_recover
            probe_timeout reset_timeout kind net_ignored p_throttle p_recover p_sleep cooldown_factor ramp_factor
            n_throttle n_cacheonly s_recover s_probe_ok hysteresis probe_concurrency cache_only_after
            failure_threshold required_successes),
        facts!(shmlimit_segment_backoff: base cap min_sleep retry_after_max factor steady retries_user
            retries_background),
        facts!(shmlimit_segment_adaptive: on parser window_count unused threshold history min_samples short_window),
        facts!(shmlimit_segment_rule: name algorithm unit window_bursts burst_from log_room limit period burst tau reserve),
        facts!(shmlimit_segment_window: name limit interval sliding),
        facts!(shmlimit_segment_policy: rule_count unit_count passthrough unused_counts concurrency
            concurrency_background queueing unused outcome_window breaker backoff adaptive provider units rules windows
            unused_words checksum),
        facts!(shmlimit_segment_health: state flags since until rate gate_until sustained probe_until consec429
            successes agreed sleeps run failures oldest samples errors written_at written_off written_off_background
            transitions unanswered),
        facts!(shmlimit_segment_ledger: granted refused looked cache_hits cache_misses sleep_sum sleep unused),
        facts!(shmlimit_segment_tallies: ok throttled server net other latency_sum latency unused),
        facts!(shmlimit_segment_gate_note: at pid program),
        facts!(shmlimit_segment_pace: interval tightened_at admitted bottleneck doubted),
        facts!(shmlimit_segment_observed_window: limit remaining reset_at seen),
        facts!(shmlimit_segment_transition: at from to cause unused),
        facts!(shmlimit_segment_pause: until since pid program reason unused),
        facts!(shmlimit_segment_health_state: health tallies gate_note ramp_from unused_note pace unused_pace observed_windows transitions),
        facts!(shmlimit_segment_journal_entry: word before),
        facts!(shmlimit_segment_slot: owned generation held held_background since held_since pid program inherited granted
            refused looked unused_counts),
        facts!(shmlimit_segment_queue: arrivals owed clocks unused places unused_places),
        facts!(shmlimit_segment_turn: key end),
        facts!(shmlimit_segment_entry: owner owner_generation number tag wake_at deadline group cost weight since unused
            wake_word wake_word_unused),
        facts!(shmlimit_segment: header lock lock_unused version journal_length waiting latest in_flight
            in_flight_background clock_offset retired core_unused origin rule_states effective policy health_state journal slots
            queue turns entries outcomes admissions ledger codes pause wall unused),
    ]
}

/// The facts as assertions that are valid in C11 and in C++17.
pub fn assertions() -> String {
    let mut text = String::from(
        "/*\n The structs above lie as the library has them; a compiler that sees it otherwise stops here.\n */\n\
         #ifdef __cplusplus\n\
         #define SHMLIMIT_STATIC_ASSERT(condition) static_assert(condition, #condition)\n\
         #else\n\
         #define SHMLIMIT_STATIC_ASSERT(condition) _Static_assert(condition, #condition)\n\
         #endif\n\
         #define SHMLIMIT_SEGMENT_FIELD(type, field, offset, size) \\\n    \
         SHMLIMIT_STATIC_ASSERT(offsetof(struct type, field) == (offset) && sizeof(((struct type *)0)->field) == (size))\n",
    );
    for Facts { name, size, fields } in all() {
        text += &format!("\nSHMLIMIT_STATIC_ASSERT(sizeof(struct {name}) == {size});\n");
        for (field, at, size) in fields {
            text += &format!("SHMLIMIT_SEGMENT_FIELD({name}, {field}, {at}, {size});\n");
        }
    }
    text += "\n#undef SHMLIMIT_SEGMENT_FIELD\n#undef SHMLIMIT_STATIC_ASSERT\n";
    text
}
