/*
 * shmlimit: the layout of a segment, for programs that read one without the library, such as monitors and debuggers.
 *
 * This file is generated from ffi/src/layout.rs by cbindgen, and its assertions from the same source. Do not edit it: run
 * scripts/languages/header. The comment at struct shmlimit_segment says how to read consistently, and which process may write
 * which part; a reader never writes. examples/c/raw_status.c is a complete program. This is the layout of
 * SHMLIMIT_LAYOUT_VERSION alone: check the version first.
 */

#ifndef SHMLIMIT_SEGMENT_H
#define SHMLIMIT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include "shmlimit.h"

/**
 * "token_bucket" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_TOKEN_BUCKET 1

/**
 * "gcra" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_GCRA 2

/**
 * "leaky_bucket" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_LEAKY_BUCKET 3

/**
 * "fixed_window" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_FIXED_WINDOW 4

/**
 * "sliding_log" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_LOG 5

/**
 * "sliding_counter" in configuration files.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_COUNTER 6

/**
 * "binance" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_BINANCE 1

/**
 * "upbit" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_UPBIT 2

/**
 * "ietf" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_IETF 3

/**
 * "xratelimit" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_XRATELIMIT 4

/**
 * "github" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_GITHUB 5

/**
 * "openai" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_OPENAI 6

/**
 * "anthropic" in configuration files.
 */
#define SHMLIMIT_SEGMENT_HEADERS_ANTHROPIC 7


/**
 * The first word of every segment: the bytes "SHMLIMIT".
 */
#define SHMLIMIT_SEGMENT_MAGIC 6073470549693909075ull

/**
 * The value of `byte_order`. Any other value: the file was written on a machine with another byte order, or is not
 * a segment.
 */
#define SHMLIMIT_SEGMENT_BYTE_ORDER 168496141u

/**
 * The value of `hash`. It differs between builds that have the same layout version but different layouts.
 */
#define SHMLIMIT_SEGMENT_HASH 8019436484442334583ull

/**
 * The initial value of a checksum. Then, for each word w: x = (sum ^ w) * factor, sum = x ^ x >> shift.
 */
#define SHMLIMIT_SEGMENT_CHECKSUM_SEED 14695981039346656037ull

/**
 * The factor.
 */
#define SHMLIMIT_SEGMENT_CHECKSUM_FACTOR 11400714819323198485ull

/**
 * The shift.
 */
#define SHMLIMIT_SEGMENT_CHECKSUM_SHIFT 29

/**
 * The most rules of one limiter.
 */
#define SHMLIMIT_SEGMENT_RULES 8

/**
 * The most units of one limiter.
 */
#define SHMLIMIT_SEGMENT_UNITS 4

/**
 * The most participants.
 */
#define SHMLIMIT_SEGMENT_SLOTS 512

/**
 * The most calls that can wait.
 */
#define SHMLIMIT_SEGMENT_ENTRIES 1024

/**
 * The number of group turns that are stored.
 */
#define SHMLIMIT_SEGMENT_TURNS 4096

/**
 * The most words that one transaction can change.
 */
#define SHMLIMIT_SEGMENT_JOURNAL_ENTRIES 512

/**
 * The size of the ring of outcomes.
 */
#define SHMLIMIT_SEGMENT_OUTCOMES 1024

/**
 * The size of the ring of admissions.
 */
#define SHMLIMIT_SEGMENT_ADMISSIONS 1024

/**
 * Offset of the header, in bytes from the start of the file.
 */
#define SHMLIMIT_SEGMENT_HEADER_AT 0

/**
 * Offset of the lock.
 */
#define SHMLIMIT_SEGMENT_LOCK_AT 128

/**
 * Offset of the version.
 */
#define SHMLIMIT_SEGMENT_VERSION_AT 136

/**
 * Offset of the origin.
 */
#define SHMLIMIT_SEGMENT_ORIGIN_AT 256

/**
 * Offset of the rules' states.
 */
#define SHMLIMIT_SEGMENT_RULE_STATES_AT 320

/**
 * Offset of the effective limits.
 */
#define SHMLIMIT_SEGMENT_EFFECTIVE_AT 576

/**
 * Offset of the policy.
 */
#define SHMLIMIT_SEGMENT_POLICY_AT 1152

/**
 * Offset of the health state.
 */
#define SHMLIMIT_SEGMENT_HEALTH_STATE_AT 3200

/**
 * Offset of the journal.
 */
#define SHMLIMIT_SEGMENT_JOURNAL_AT 4096

/**
 * Offset of the slots.
 */
#define SHMLIMIT_SEGMENT_SLOTS_AT 12288

/**
 * Offset of the queue.
 */
#define SHMLIMIT_SEGMENT_QUEUE_AT 77824

/**
 * Offset of the groups' turns.
 */
#define SHMLIMIT_SEGMENT_TURNS_AT 78080

/**
 * Offset of the queue's entries.
 */
#define SHMLIMIT_SEGMENT_ENTRIES_AT 143616

/**
 * Offset of the ring of outcomes.
 */
#define SHMLIMIT_SEGMENT_OUTCOMES_AT 274688

/**
 * Offset of the ring of admissions.
 */
#define SHMLIMIT_SEGMENT_ADMISSIONS_AT 282880

/**
 * Offset of the ledger.
 */
#define SHMLIMIT_SEGMENT_LEDGER_AT 291072

/**
 * Offset of the codes.
 */
#define SHMLIMIT_SEGMENT_CODES_AT 291264

/**
 * Offset of the section about the wall clock.
 */
#define SHMLIMIT_SEGMENT_WALL_AT 291904

/**
 * The number of codes that are counted separately.
 */
#define SHMLIMIT_SEGMENT_CODES 64

/**
 * Offset of the pause.
 */
#define SHMLIMIT_SEGMENT_PAUSE_AT 291776

/**
 * Offset of the logs, which have two words per entry and extend to the file's end. Only files with a sliding log
 * have logs.
 */
#define SHMLIMIT_SEGMENT_LOGS_AT 294912

/**
 * Normal operation; for a consecutive breaker: closed.
 */
#define SHMLIMIT_SEGMENT_STATE_NORMAL 0

/**
 * Half the rate, half the permits.
 */
#define SHMLIMIT_SEGMENT_STATE_THROTTLE 1

/**
 * No call until its timer expires.
 */
#define SHMLIMIT_SEGMENT_STATE_SLEEP 2

/**
 * A few calls, to check whether the server works.
 */
#define SHMLIMIT_SEGMENT_STATE_HALF_OPEN 3

/**
 * No call until an operator ends the state, or the limiter probes by itself.
 */
#define SHMLIMIT_SEGMENT_STATE_CACHE_ONLY 4

/**
 * No call until its timer expires; only a consecutive breaker has this state.
 */
#define SHMLIMIT_SEGMENT_STATE_OPEN 5

/**
 * An operator forced the state: it has no timer.
 */
#define SHMLIMIT_SEGMENT_HEALTH_OFFLINE 1

/**
 * The limiter is leaving CacheOnly by itself.
 */
#define SHMLIMIT_SEGMENT_HEALTH_ATTEMPT 2

/**
 * The rate rises step by step.
 */
#define SHMLIMIT_SEGMENT_HEALTH_RAMPING 4

/**
 * An operator forced it.
 */
#define SHMLIMIT_SEGMENT_CAUSE_FORCED 0

/**
 * Too many 429 in a row.
 */
#define SHMLIMIT_SEGMENT_CAUSE_CONSEC_429 1

/**
 * Too high a ratio of errors.
 */
#define SHMLIMIT_SEGMENT_CAUSE_ERROR_RATIO 2

/**
 * A very high ratio of errors for a long time.
 */
#define SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS 3

/**
 * Enough successes.
 */
#define SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK 4

/**
 * The sleep is over.
 */
#define SHMLIMIT_SEGMENT_CAUSE_SLEEP_EXPIRED 5

/**
 * Probes succeeded.
 */
#define SHMLIMIT_SEGMENT_CAUSE_PROBE_OK 6

/**
 * A probe failed.
 */
#define SHMLIMIT_SEGMENT_CAUSE_PROBE_FAILED 7

/**
 * The limiter leaves CacheOnly by itself.
 */
#define SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER 8

/**
 * Too many failures in a row.
 */
#define SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES 9

/**
 * The open state has lasted long enough.
 */
#define SHMLIMIT_SEGMENT_CAUSE_RESET_TIMEOUT 10

/**
 * No breaker.
 */
#define SHMLIMIT_SEGMENT_BREAKER_NONE 0

/**
 * Normal, Throttle, Sleep, HalfOpen, CacheOnly.
 */
#define SHMLIMIT_SEGMENT_BREAKER_FSM 1

/**
 * Closed, open, half open.
 */
#define SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE 2

/**
 * Work that can wait.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND 0

/**
 * A person waits for the call.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_USER 1

/**
 * Another program waits for the call.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK 2

/**
 * Waiting calls are served strictly in order of arrival. Without this flag the groups take turns.
 */
#define SHMLIMIT_SEGMENT_QUEUEING_FIFO 1

/**
 * Priorities are ignored.
 */
#define SHMLIMIT_SEGMENT_QUEUEING_NO_PRIORITIES 2

/**
 * In the ring of outcomes: the call succeeded.
 */
#define SHMLIMIT_SEGMENT_CLASS_OK 0

/**
 * The call ended with 429.
 */
#define SHMLIMIT_SEGMENT_CLASS_THROTTLED 1

/**
 * The call ended with 5xx.
 */
#define SHMLIMIT_SEGMENT_CLASS_SERVER 2

/**
 * The call got no answer.
 */
#define SHMLIMIT_SEGMENT_CLASS_NET 3

/**
 * The format of the headers is given with each response.
 */
#define SHMLIMIT_SEGMENT_HEADERS_ANY 0

/**
 * `retired`: the file is in use. The value is not zero, so that zeros are never taken for an idle limiter.
 */
#define SHMLIMIT_SEGMENT_LIVE 1163282764

/**
 * `retired`: replaced on purpose; the successor starts afresh.
 */
#define SHMLIMIT_SEGMENT_RETIRED_REPLACED 1

/**
 * `retired`: the file was deleted; the successor continues with the states of the rules.
 */
#define SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER 2

/**
 * `retired`: removed on purpose; there is no successor until a program creates the limiter again.
 */
#define SHMLIMIT_SEGMENT_RETIRED_REMOVED 3

/**
 * The number of transitions that are stored.
 */
#define SHMLIMIT_SEGMENT_TRANSITIONS 12

/**
 * The number of latency classes: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000
 * milliseconds, and longer.
 */
#define SHMLIMIT_SEGMENT_LATENCIES 16

/**
 * The most bytes of a pause's reason.
 */
#define SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH 64

/**
 * The participant in slot S is alive as long as a process holds the lock on the byte at this offset + S. Query it
 * with `fcntl(fd, F_OFD_GETLK, ...)` for a write lock of one byte, and never take the lock. This does not apply to
 * an `inherited` slot.
 */
#define SHMLIMIT_SEGMENT_FIRST_LIVENESS_BYTE 4611686018427387904ull

/**
 * The size of a program's name in bytes, zero-padded; a name of this length has no terminating zero.
 */
#define SHMLIMIT_SEGMENT_PROGRAM_LENGTH 16

/**
 * The size of a name in bytes, zero-padded; a name of this length has no terminating zero.
 */
#define SHMLIMIT_SEGMENT_NAME_LENGTH 32

/**
 * The most windows that headers report about.
 */
#define SHMLIMIT_SEGMENT_WINDOWS 8

/**
 * Identifies the file. Written once, before the file gets its name.
 */
typedef struct shmlimit_segment_header {
    /**
     * SHMLIMIT_SEGMENT_MAGIC.
     */
    uint64_t magic;
    /**
     * SHMLIMIT_SEGMENT_BYTE_ORDER.
     */
    uint32_t byte_order;
    /**
     * SHMLIMIT_LAYOUT_VERSION. If it differs, do not read on.
     */
    uint32_t layout_version;
    /**
     * SHMLIMIT_SEGMENT_HASH. If it differs, do not read on.
     */
    uint64_t hash;
    /**
     * The size of the whole file in bytes: SHMLIMIT_SEGMENT_SIZE, or more if it has logs.
     */
    uint64_t size;
    /**
     * When the file was created: nanoseconds since 1970 (UTC).
     */
    uint64_t created;
    /**
     * The generation of the limiter's name for which the file was created.
     */
    uint64_t generation;
    /**
     * Checksum of the six words before it.
     */
    uint64_t checksum;
    /**
     * Zero.
     */
    uint64_t unused[9];
} shmlimit_segment_header;

/**
 * The origin of the limiter's clock. Transactions only.
 */
typedef struct shmlimit_segment_origin {
    /**
     * Identity of the boot that the clock belongs to.
     */
    uint64_t boot[2];
    /**
     * Limiter time at the anchor.
     */
    uint64_t anchor_time;
    /**
     * Nanoseconds since 1970 (UTC) at the anchor.
     */
    uint64_t anchor_wall;
    /**
     * Raised with every change of the policy.
     */
    uint64_t policy_epoch;
    /**
     * How often a damaged state was reset.
     */
    uint64_t resets;
    /**
     * Zero.
     */
    uint64_t unused[2];
} shmlimit_segment_origin;

/**
 * The state of a rule. Transactions only.
 */
typedef struct shmlimit_segment_rule_state {
    /**
     * The algorithm's private state, stored inverted, because zeros are not the state of a new rule. Not stable
     * between versions of the library.
     */
    uint64_t words[3];
    /**
     * Units that were charged before this limiter time are not refunded any more.
     */
    uint64_t since;
} shmlimit_segment_rule_state;

/**
 * How waiting calls are served.
 */
typedef struct shmlimit_segment_queueing {
    /**
     * SHMLIMIT_SEGMENT_QUEUEING_... flags.
     */
    uint32_t flags;
    /**
     * The share that background calls get in any case, in millionths.
     */
    uint32_t background_share;
} shmlimit_segment_queueing;

/**
 * The limits that decisions use: the policy, adjusted for the breaker's state. Transactions only.
 */
typedef struct shmlimit_segment_effective {
    /**
     * Unused rules: SHMLIMIT_SEGMENT_RULES minus the rules of the policy.
     */
    uint8_t spare_rules;
    /**
     * Units in use.
     */
    uint8_t unit_count;
    /**
     * Zero.
     */
    uint8_t unused_counts[6];
    /**
     * Most calls in flight in this state; 4096 if the policy has no limit.
     */
    uint32_t concurrency;
    /**
     * Most background calls in flight; 2^32 - 1 = as many as of any priority.
     */
    uint32_t concurrency_background;
    /**
     * How waiting calls are served.
     */
    struct shmlimit_segment_queueing queueing;
    /**
     * Before this limiter time no pause, breaker, gate or pace blocks a call.
     */
    uint64_t next_check;
    /**
     * Zero.
     */
    uint64_t unused[4];
    /**
     * Derived numbers of each rule. Not stable between versions of the library.
     */
    uint64_t terms[SHMLIMIT_SEGMENT_RULES][8];
} shmlimit_segment_effective;

/**
 * The outcomes that count.
 */
typedef struct shmlimit_segment_outcome_window {
    /**
     * The age at which an outcome no longer counts; nanoseconds.
     */
    uint64_t max_age;
    /**
     * The most outcomes that count; the newest ones do.
     */
    uint32_t max_count;
    /**
     * The least number of outcomes before a ratio can be too high.
     */
    uint32_t min_samples;
} shmlimit_segment_outcome_window;

/**
 * The breaker's settings: nanoseconds, billionths a second for rates, millionths for ratios and factors.
 */
typedef struct shmlimit_segment_breaker {
    /**
     * The full rate; 0 = the rate of the first rule.
     */
    uint64_t rate_base;
    /**
     * The rate during probing.
     */
    uint64_t probe_rate;
    /**
     * How long a ratio of `p_sleep` must last.
     */
    uint64_t sleep_after;
    /**
     * The first cooldown.
     */
    uint64_t sleep_min;
    /**
     * The longest cooldown.
     */
    uint64_t sleep_max;
    /**
     * How often the rate rises after a recovery.
     */
    uint64_t ramp_every;
    /**
     * How long CacheOnly lasts before the limiter probes by itself; 0 = until an operator ends it.
     */
    uint64_t auto_recover;
    /**
     * A probe without an outcome after this time is written off.
     */
    uint64_t probe_timeout;
    /**
     * How long a consecutive breaker stays open.
     */
    uint64_t reset_timeout;
    /**
     * SHMLIMIT_SEGMENT_BREAKER_...
     */
    uint32_t kind;
    /**
     * Not 0: network errors do not count.
     */
    uint32_t net_ignored;
    /**
     * The ratio of errors that leads to Throttle.
     */
    uint32_t p_throttle;
    /**
     * The ratio below which the server is healthy again.
     */
    uint32_t p_recover;
    /**
     * The ratio that leads to Sleep, if it lasts.
     */
    uint32_t p_sleep;
    /**
     * The factor by which each cooldown is longer than the one before.
     */
    uint32_t cooldown_factor;
    /**
     * The factor by which the rate rises each time.
     */
    uint32_t ramp_factor;
    /**
     * The number of successive 429 that leads to Throttle.
     */
    uint32_t n_throttle;
    /**
     * The number of successive 429 that leads to Sleep.
     */
    uint32_t n_cacheonly;
    /**
     * Successes needed to leave Throttle.
     */
    uint32_t s_recover;
    /**
     * Successful probes needed to leave HalfOpen.
     */
    uint32_t s_probe_ok;
    /**
     * The number of successive evaluations that must agree.
     */
    uint32_t hysteresis;
    /**
     * The most probes in flight.
     */
    uint32_t probe_concurrency;
    /**
     * The number of Sleeps without Normal after which the next one is CacheOnly; 0 = never.
     */
    uint32_t cache_only_after;
    /**
     * The number of successive failures that opens a consecutive breaker.
     */
    uint32_t failure_threshold;
    /**
     * The number of successes that closes it.
     */
    uint32_t required_successes;
} shmlimit_segment_breaker;

/**
 * How long to wait after a failed call; nanoseconds.
 */
typedef struct shmlimit_segment_backoff {
    /**
     * The upper bound of the first wait.
     */
    uint64_t base;
    /**
     * The upper bound of all waits.
     */
    uint64_t cap;
    /**
     * The shortest time that a Retry-After counts as.
     */
    uint64_t min_sleep;
    /**
     * The longest time that a Retry-After counts as.
     */
    uint64_t retry_after_max;
    /**
     * The factor by which each bound is higher than the one before, in millionths.
     */
    uint32_t factor;
    /**
     * Not 0: waits have no jitter.
     */
    uint32_t steady;
    /**
     * How often a user call is retried.
     */
    uint32_t retries_user;
    /**
     * How often a background call is retried.
     */
    uint32_t retries_background;
} shmlimit_segment_backoff;

/**
 * How response headers set the pace.
 */
typedef struct shmlimit_segment_adaptive {
    /**
     * 1 if they set the pace; otherwise all other fields are zero.
     */
    uint8_t on;
    /**
     * SHMLIMIT_SEGMENT_HEADERS_...
     */
    uint8_t parser;
    /**
     * The number of windows.
     */
    uint8_t window_count;
    /**
     * Zero.
     */
    uint8_t unused;
    /**
     * The usage of a window from which on the pace is slowed, in millionths.
     */
    uint32_t threshold;
    /**
     * The number of gaps between calls that are averaged.
     */
    uint32_t history;
    /**
     * The least number of gaps before their average counts.
     */
    uint32_t min_samples;
    /**
     * Windows up to this length use the simple rule; nanoseconds.
     */
    uint64_t short_window;
} shmlimit_segment_adaptive;

/**
 * One rule.
 */
typedef struct shmlimit_segment_rule {
    /**
     * Its name.
     */
    uint8_t name[SHMLIMIT_SEGMENT_NAME_LENGTH];
    /**
     * SHMLIMIT_SEGMENT_ALGORITHM_...
     */
    uint8_t algorithm;
    /**
     * The unit that it counts: an index of `units`.
     */
    uint8_t unit;
    /**
     * 1: calls pass freely at the start of each calendar period, then they are paced.
     */
    uint8_t window_bursts;
    /**
     * The origin of the burst. 0: it was configured. 1: it is the limit. 2: it is a part of a rate that no one
     * period exceeds.
     */
    uint8_t burst_from;
    /**
     * For a sliding log: the largest limit for which the log has room; 0 for all other algorithms.
     */
    uint32_t log_room;
    /**
     * Units per period.
     */
    uint64_t limit;
    /**
     * The period; nanoseconds.
     */
    uint64_t period;
    /**
     * The capacity: most units at once.
     */
    uint64_t burst;
    /**
     * The tolerance that was configured instead of a burst, in nanoseconds; 0 = none.
     */
    uint64_t tau;
    /**
     * Units that only high priorities may use.
     */
    uint64_t reserve;
} shmlimit_segment_rule;

/**
 * One of the provider's windows that headers report about.
 */
typedef struct shmlimit_segment_window {
    /**
     * Its name.
     */
    uint8_t name[SHMLIMIT_SEGMENT_NAME_LENGTH];
    /**
     * Its limit, unless headers report another.
     */
    uint64_t limit;
    /**
     * Its length; nanoseconds.
     */
    uint64_t interval;
    /**
     * 0: the window starts again at its end. 1: it moves with time.
     */
    uint64_t sliding;
} shmlimit_segment_window;

/**
 * The configured policy. Transactions only.
 */
typedef struct shmlimit_segment_policy {
    /**
     * Rules in use.
     */
    uint8_t rule_count;
    /**
     * Units in use.
     */
    uint8_t unit_count;
    /**
     * 1: no call is ever refused.
     */
    uint8_t passthrough;
    /**
     * Zero.
     */
    uint8_t unused_counts[5];
    /**
     * Most calls in flight; 0 = no limit.
     */
    uint32_t concurrency;
    /**
     * Most background calls in flight; 0 = as many as of any priority.
     */
    uint32_t concurrency_background;
    /**
     * How waiting calls are served.
     */
    struct shmlimit_segment_queueing queueing;
    /**
     * Zero.
     */
    uint64_t unused;
    /**
     * The outcomes that count.
     */
    struct shmlimit_segment_outcome_window outcome_window;
    /**
     * The breaker.
     */
    struct shmlimit_segment_breaker breaker;
    /**
     * The backoff.
     */
    struct shmlimit_segment_backoff backoff;
    /**
     * How headers set the pace.
     */
    struct shmlimit_segment_adaptive adaptive;
    /**
     * The provider whose limits these are.
     */
    uint8_t provider[SHMLIMIT_SEGMENT_NAME_LENGTH];
    /**
     * Names of the units.
     */
    uint8_t units[SHMLIMIT_SEGMENT_UNITS][SHMLIMIT_SEGMENT_NAME_LENGTH];
    /**
     * The rules.
     */
    struct shmlimit_segment_rule rules[SHMLIMIT_SEGMENT_RULES];
    /**
     * The windows that headers report about.
     */
    struct shmlimit_segment_window windows[SHMLIMIT_SEGMENT_WINDOWS];
    /**
     * Zero.
     */
    uint64_t unused_words[67];
    /**
     * Checksum of all words before `unused_words`.
     */
    uint64_t checksum;
} shmlimit_segment_policy;

/**
 * The breaker's state and the gate.
 */
typedef struct shmlimit_segment_health {
    /**
     * SHMLIMIT_SEGMENT_STATE_...
     */
    uint32_t state;
    /**
     * SHMLIMIT_SEGMENT_HEALTH_... flags.
     */
    uint32_t flags;
    /**
     * Limiter time at which the state began.
     */
    uint64_t since;
    /**
     * Limiter time at which its timer is due, if it has one. The timer acts when a process next uses the limiter.
     */
    uint64_t until;
    /**
     * The effective rate, in billionths of a unit a second; 0 = the full rate.
     */
    uint64_t rate;
    /**
     * The gate: no call before this limiter time.
     */
    uint64_t gate_until;
    /**
     * The limiter time at which the ratio of errors became too high, plus one; 0 = it is not too high.
     */
    uint64_t sustained;
    /**
     * During probing: the limiter time at which an unanswered probe is written off.
     */
    uint64_t probe_until;
    /**
     * Successive 429.
     */
    uint32_t consec429;
    /**
     * Successes since the state began.
     */
    uint32_t successes;
    /**
     * Successive evaluations that agreed on a change of state.
     */
    uint32_t agreed;
    /**
     * Sleeps since the last Normal.
     */
    uint32_t sleeps;
    /**
     * Successive outcomes that require backing off.
     */
    uint32_t run;
    /**
     * Successive failures; only for a consecutive breaker.
     */
    uint32_t failures;
    /**
     * The outcome window: the number of its oldest outcome; number N is at N % SHMLIMIT_SEGMENT_OUTCOMES of the ring.
     */
    uint32_t oldest;
    /**
     * The number of outcomes from that one on. It includes outcomes that became too old since the last one was
     * recorded.
     */
    uint32_t samples;
    /**
     * Errors in the outcome window.
     */
    uint64_t errors;
    /**
     * Permits granted before this limiter time were written off.
     */
    uint64_t written_at;
    /**
     * Permits of probes that were written off and not yet given back.
     */
    uint32_t written_off;
    /**
     * Those of these permits that background calls hold.
     */
    uint32_t written_off_background;
    /**
     * Transitions so far; the newest is number transitions - 1.
     */
    uint64_t transitions;
    /**
     * During probing: the limiter time of the first call granted since the last outcome that counts, plus one; 0 =
     * every probe is answered.
     */
    uint64_t unanswered;
} shmlimit_segment_health;

/**
 * How calls ended since the limiter was made.
 */
typedef struct shmlimit_segment_tallies {
    /**
     * Calls that succeeded.
     */
    uint64_t ok;
    /**
     * Calls that ended with 429.
     */
    uint64_t throttled;
    /**
     * Calls that ended with 5xx.
     */
    uint64_t server;
    /**
     * Calls without an answer.
     */
    uint64_t net;
    /**
     * Calls that ended with any other 4xx.
     */
    uint64_t other;
    /**
     * The total latency of all calls with a reported latency, in nanoseconds.
     */
    uint64_t latency_sum;
    /**
     * The number of these calls in each latency class; see SHMLIMIT_SEGMENT_LATENCIES.
     */
    uint64_t latency[SHMLIMIT_SEGMENT_LATENCIES];
    /**
     * Zero.
     */
    uint64_t unused[2];
} shmlimit_segment_tallies;

/**
 * The process that last closed the gate.
 */
typedef struct shmlimit_segment_gate_note {
    /**
     * Limiter time.
     */
    uint64_t at;
    /**
     * Process id.
     */
    uint64_t pid;
    /**
     * Program name.
     */
    uint8_t program[SHMLIMIT_SEGMENT_PROGRAM_LENGTH];
} shmlimit_segment_gate_note;

/**
 * The gap between calls that response headers taught.
 */
typedef struct shmlimit_segment_pace {
    /**
     * The smallest gap between calls; nanoseconds.
     */
    uint64_t interval;
    /**
     * Limiter time at which the gap last became larger.
     */
    uint64_t tightened_at;
    /**
     * Admissions so far; number N is at N % SHMLIMIT_SEGMENT_ADMISSIONS of the ring.
     */
    uint64_t admitted;
    /**
     * The index of the window that determines the gap, plus one; 0 = none.
     */
    uint64_t bottleneck;
    /**
     * The same if that window's reset time was considered unreliable when the gap was set; 0 = it was not.
     */
    uint64_t doubted;
} shmlimit_segment_pace;

/**
 * The latest values that headers reported about a window of the policy.
 */
typedef struct shmlimit_segment_observed_window {
    /**
     * The window's limit in the lower 62 bits. Bit 63: headers reported it. Bit 62: its reset time was considered
     * unreliable.
     */
    uint64_t limit;
    /**
     * The remaining units of the window.
     */
    uint64_t remaining;
    /**
     * Limiter time at which the window starts again.
     */
    uint64_t reset_at;
    /**
     * The limiter time at which these values were reported, plus one; 0 = never.
     */
    uint64_t seen;
} shmlimit_segment_observed_window;

/**
 * A change of the breaker's state; number N is at N % SHMLIMIT_SEGMENT_TRANSITIONS.
 */
typedef struct shmlimit_segment_transition {
    /**
     * Limiter time.
     */
    uint64_t at;
    /**
     * The old state, SHMLIMIT_SEGMENT_STATE_...
     */
    uint8_t from;
    /**
     * The new state.
     */
    uint8_t to;
    /**
     * SHMLIMIT_SEGMENT_CAUSE_...
     */
    uint8_t cause;
    /**
     * Zero.
     */
    uint8_t unused[5];
} shmlimit_segment_transition;

/**
 * The health state of the server. Transactions only.
 */
typedef struct shmlimit_segment_health_state {
    /**
     * The breaker's state and the gate.
     */
    struct shmlimit_segment_health health;
    /**
     * How calls ended.
     */
    struct shmlimit_segment_tallies tallies;
    /**
     * The process that closed the gate.
     */
    struct shmlimit_segment_gate_note gate_note;
    /**
     * The rate at the start of a ramp, in billionths of a unit per second.
     */
    uint64_t ramp_from;
    /**
     * Zero.
     */
    uint64_t unused_note[3];
    /**
     * The pace that headers taught.
     */
    struct shmlimit_segment_pace pace;
    /**
     * Zero.
     */
    uint64_t unused_pace[3];
    /**
     * The values that headers reported about each window.
     */
    struct shmlimit_segment_observed_window observed_windows[SHMLIMIT_SEGMENT_WINDOWS];
    /**
     * The newest transitions.
     */
    struct shmlimit_segment_transition transitions[SHMLIMIT_SEGMENT_TRANSITIONS];
} shmlimit_segment_health_state;

/**
 * One word that the transaction in progress has changed. Only the lock holder writes it.
 */
typedef struct shmlimit_segment_journal_entry {
    /**
     * The word's index, counted from the start of the file.
     */
    uint64_t word;
    /**
     * The word's old value.
     */
    uint64_t before;
} shmlimit_segment_journal_entry;

/**
 * One attached process. Transactions only, except for the last three counts, which its owner writes at any time.
 */
typedef struct shmlimit_segment_slot {
    /**
     * 1 while the slot has an owner, dead or alive; otherwise 0.
     */
    uint32_t owned;
    /**
     * Distinguishes the owner from earlier ones.
     */
    uint32_t generation;
    /**
     * Permits it holds.
     */
    uint32_t held;
    /**
     * Those of these permits for background calls.
     */
    uint32_t held_background;
    /**
     * Limiter time of attaching.
     */
    uint64_t since;
    /**
     * Limiter time at which the permits held rose from zero.
     */
    uint64_t held_since;
    /**
     * Process id in its own pid namespace, for people.
     */
    uint64_t pid;
    /**
     * Program name, for people.
     */
    uint8_t program[SHMLIMIT_SEGMENT_PROGRAM_LENGTH];
    /**
     * Zero for an attached process. Otherwise the slot stands for permits of a segment that was deleted by hand:
     * it has no lock in this file, and its permits count until their holder has returned them.
     */
    uint64_t inherited;
    /**
     * Calls granted.
     */
    uint64_t granted;
    /**
     * Calls refused.
     */
    uint64_t refused;
    /**
     * How often its waiting calls checked whether it was their turn.
     */
    uint64_t looked;
    /**
     * Zero.
     */
    uint64_t unused_counts[5];
} shmlimit_segment_slot;

/**
 * The state of the queue. Transactions only.
 */
typedef struct shmlimit_segment_queue {
    /**
     * The number of calls that ever entered the queue.
     */
    uint64_t arrivals;
    /**
     * The part of its share that the background is still owed.
     */
    uint64_t owed;
    /**
     * The virtual clock of each priority.
     */
    uint64_t clocks[3];
    /**
     * Zero.
     */
    uint64_t unused[3];
    /**
     * The used entries: entry E is used if bit E % 64 of places[E / 64] is set.
     */
    uint64_t places[16];
    /**
     * Zero.
     */
    uint64_t unused_places[8];
} shmlimit_segment_queue;

/**
 * The end of a group's last turn. Transactions only.
 */
typedef struct shmlimit_segment_turn {
    /**
     * A hash of group and priority.
     */
    uint64_t key;
    /**
     * The end, on the virtual clock of its priority.
     */
    uint64_t end;
} shmlimit_segment_turn;

/**
 * A call that waits. Transactions only, except for its wake word.
 */
typedef struct shmlimit_segment_entry {
    /**
     * Slot + 2 of the waiting process.
     */
    uint32_t owner;
    /**
     * Generation of that slot.
     */
    uint32_t owner_generation;
    /**
     * Priority in the low two bits, then one bit that is set if the call can be woken, then the number of calls
     * that arrived before it.
     */
    uint64_t number;
    /**
     * Start time on the virtual clock of its priority.
     */
    uint64_t tag;
    /**
     * Limiter time at which it next checks by itself.
     */
    uint64_t wake_at;
    /**
     * Limiter time at which it gives up; UINT64_MAX = never.
     */
    uint64_t deadline;
    /**
     * The group with which it shares its turns.
     */
    uint64_t group;
    /**
     * How much of each unit it needs.
     */
    uint64_t cost[SHMLIMIT_SEGMENT_UNITS];
    /**
     * How long it counts on the virtual clock of its priority.
     */
    uint64_t weight;
    /**
     * Limiter time at which it entered the queue.
     */
    uint64_t since;
    /**
     * Zero.
     */
    uint64_t unused[3];
    /**
     * A futex on which the call sleeps; other processes wake it.
     */
    uint32_t wake_word;
    /**
     * Not used.
     */
    uint32_t wake_word_unused;
} shmlimit_segment_entry;

/**
 * Counts that affect no decision. Attached processes count in their slots; their counts are added here when they
 * detach.
 */
typedef struct shmlimit_segment_ledger {
    /**
     * Calls granted to processes that have detached.
     */
    uint64_t granted;
    /**
     * Calls refused to processes that have detached.
     */
    uint64_t refused;
    /**
     * Checks by waiting calls of processes that have detached.
     */
    uint64_t looked;
    /**
     * Answers that were found in a cache.
     */
    uint64_t cache_hits;
    /**
     * Answers that were not found in a cache.
     */
    uint64_t cache_misses;
    /**
     * The total time that callers were told to wait before they try again, in nanoseconds.
     */
    uint64_t sleep_sum;
    /**
     * The number of such waits in each latency class; see SHMLIMIT_SEGMENT_LATENCIES.
     */
    uint64_t sleep[SHMLIMIT_SEGMENT_LATENCIES];
    /**
     * Zero.
     */
    uint64_t unused[2];
} shmlimit_segment_ledger;

/**
 * The latest pause of the limiter. Transactions only.
 */
typedef struct shmlimit_segment_pause {
    /**
     * Limiter time at which the pause ends: 0 = it is over, UINT64_MAX = when the limiter is resumed. A limiter is
     * paused while this is later than now.
     */
    uint64_t until;
    /**
     * Limiter time at which the pause began.
     */
    uint64_t since;
    /**
     * Process id of the process that paused the limiter, in its own pid namespace.
     */
    uint64_t pid;
    /**
     * Its program name, zero-padded.
     */
    uint8_t program[SHMLIMIT_SEGMENT_PROGRAM_LENGTH];
    /**
     * The reason: UTF-8, zero-padded.
     */
    uint8_t reason[SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH];
    /**
     * Zero.
     */
    uint64_t unused[3];
} shmlimit_segment_pause;

/**
 * A segment: the file DIRECTORY/NAME.shm, up to its logs.
 *
 * Reading a segment without the library (examples/c/raw_status.c does all of this):
 *
 * 1. Open the file read-only and map it (PROT_READ, MAP_SHARED). It must be at least SHMLIMIT_SEGMENT_SIZE bytes long,
 *    and its size must equal `header.size`. Map SHMLIMIT_SEGMENT_SIZE bytes, or the whole file to read the logs.
 * 2. Check magic, byte order, layout version, hash and checksum. If one differs, nothing below applies. The structs are
 *    those of a little-endian machine; on other machines the byte order never compares equal.
 * 3. Other processes change the words at any time, so every access is an atomic load: 64 bits at an address that is a
 *    multiple of 8 (memory_order_relaxed is enough), or 32 bits for the lock and the wake words. A plain read through the
 *    struct is a data race. Copy the words you need out of the mapping, and read the copy:
 *    - load `version` (memory_order_acquire); if it is odd, a transaction is in progress: start again;
 *    - copy the words you need (memory_order_relaxed);
 *    - atomic_thread_fence(memory_order_acquire);
 *    - load `version` (memory_order_relaxed); if it has changed, the copy is torn: start again.
 *
 *    Such a copy is one committed state. Copy little: the longer a copy takes, the more often it is torn. If the version
 *    stays odd, the process in the transaction is stopped or dead; the next process that uses the limiter repairs the state.
 * 4. Do not trust the copy beyond that: limit counts and indices to their ranges before you use them.
 *
 * These are the writers of each part:
 *
 * - the header: no process, once the file has its name;
 * - everything marked "transactions only": the process that holds the lock, between an odd and an even version;
 * - the lock and the wake words: any process; they are futexes;
 * - the counts at a slot's end: the slot's owner, without a lock and outside of transactions, so they may be
 *   ahead of the rest.
 *
 * A reader never writes, and takes no lock of any kind: it changes no word of the file, and takes no byte lock on
 * it. Programs that want to change anything use the library.
 *
 * Times are limiter times, in nanoseconds: CLOCK_BOOTTIME + clock_offset, in the initial time namespace.
 */
typedef struct shmlimit_segment {
    /**
     * Identifies the file.
     */
    struct shmlimit_segment_header header;
    /**
     * The lock. The slot + 1 of the process that changes the segment is in bits 20 to 30; 0 = the lock is free. It
     * is a futex, therefore 32 bits.
     */
    uint32_t lock;
    /**
     * Not used.
     */
    uint32_t lock_unused;
    /**
     * Even: the state is consistent. Odd: a transaction is in progress, or the process in it died.
     */
    uint64_t version;
    /**
     * The number of journal entries of the transaction in progress.
     */
    uint64_t journal_length;
    /**
     * The number of waiting calls, by priority (SHMLIMIT_SEGMENT_PRIORITY_...); the last is zero.
     */
    uint16_t waiting[4];
    /**
     * Limiter time of the latest change.
     */
    uint64_t latest;
    /**
     * Permits in use.
     */
    uint32_t in_flight;
    /**
     * Permits that background calls hold.
     */
    uint32_t in_flight_background;
    /**
     * Limiter time is CLOCK_BOOTTIME in nanoseconds, plus this offset, modulo 2^64.
     */
    uint64_t clock_offset;
    /**
     * SHMLIMIT_SEGMENT_LIVE: the file is in use. 1 to 3: nothing is granted from this file any more, open the
     * limiter again by its name. Any other value is damage.
     */
    uint64_t retired;
    /**
     * Zero.
     */
    uint64_t core_unused[8];
    /**
     * The origin of the limiter's clock.
     */
    struct shmlimit_segment_origin origin;
    /**
     * The states of the rules, in the policy's order.
     */
    struct shmlimit_segment_rule_state rule_states[SHMLIMIT_SEGMENT_RULES];
    /**
     * The effective limits.
     */
    struct shmlimit_segment_effective effective;
    /**
     * The configured policy.
     */
    struct shmlimit_segment_policy policy;
    /**
     * The health state of the server.
     */
    struct shmlimit_segment_health_state health_state;
    /**
     * The old values of the words that the transaction in progress has changed.
     */
    struct shmlimit_segment_journal_entry journal[SHMLIMIT_SEGMENT_JOURNAL_ENTRIES];
    /**
     * The attached processes.
     */
    struct shmlimit_segment_slot slots[SHMLIMIT_SEGMENT_SLOTS];
    /**
     * The state of the queue.
     */
    struct shmlimit_segment_queue queue;
    /**
     * The ends of groups' turns.
     */
    struct shmlimit_segment_turn turns[SHMLIMIT_SEGMENT_TURNS];
    /**
     * The waiting calls: entries whose bit of `queue.places` is set.
     */
    struct shmlimit_segment_entry entries[SHMLIMIT_SEGMENT_ENTRIES];
    /**
     * Ring of the newest outcomes: limiter time << 2 | class. See `health_state.health.oldest`.
     */
    uint64_t outcomes[SHMLIMIT_SEGMENT_OUTCOMES];
    /**
     * Ring of the newest admissions: limiter times. See `health_state.pace.admitted`.
     */
    uint64_t admissions[SHMLIMIT_SEGMENT_ADMISSIONS];
    /**
     * Counts that affect no decision.
     */
    struct shmlimit_segment_ledger ledger;
    /**
     * How calls ended: code << 48 | count. A code is an HTTP status, or 1 connect_timeout, 2 read_timeout, 3 dns,
     * 4 connection; 0 with a count: all calls whose code found no place. Status 200 is not stored: its count is
     * `health_state.tallies.ok` minus the other successes.
     */
    uint64_t codes[SHMLIMIT_SEGMENT_CODES];
    /**
     * The latest pause.
     */
    struct shmlimit_segment_pause pause;
    /**
     * The state of the wall clock. Not stable between versions of the library.
     */
    uint64_t wall[24];
    /**
     * Zero.
     */
    uint64_t unused[352];
} shmlimit_segment;

/*
 The structs above lie as the library has them; a compiler that sees it otherwise stops here.
 */
#ifdef __cplusplus
#define SHMLIMIT_STATIC_ASSERT(condition) static_assert(condition, #condition)
#else
#define SHMLIMIT_STATIC_ASSERT(condition) _Static_assert(condition, #condition)
#endif
#define SHMLIMIT_SEGMENT_FIELD(type, field, offset, size) \
    SHMLIMIT_STATIC_ASSERT(offsetof(struct type, field) == (offset) && sizeof(((struct type *)0)->field) == (size))

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_header) == 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, magic, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, byte_order, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, layout_version, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, hash, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, size, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, created, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, generation, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, checksum, 48, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, unused, 56, 72);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_origin) == 64);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, boot, 0, 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, anchor_time, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, anchor_wall, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, policy_epoch, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, resets, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_origin, unused, 48, 16);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_rule_state) == 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule_state, words, 0, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule_state, since, 24, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_queueing) == 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queueing, flags, 0, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queueing, background_share, 4, 4);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_effective) == 576);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, spare_rules, 0, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, unit_count, 1, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, unused_counts, 2, 6);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, concurrency, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, concurrency_background, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, queueing, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, next_check, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, unused, 32, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_effective, terms, 64, 512);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_outcome_window) == 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_outcome_window, max_age, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_outcome_window, max_count, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_outcome_window, min_samples, 12, 4);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_breaker) == 136);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, rate_base, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, probe_rate, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, sleep_after, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, sleep_min, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, sleep_max, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, ramp_every, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, auto_recover, 48, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, probe_timeout, 56, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, reset_timeout, 64, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, kind, 72, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, net_ignored, 76, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, p_throttle, 80, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, p_recover, 84, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, p_sleep, 88, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, cooldown_factor, 92, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, ramp_factor, 96, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, n_throttle, 100, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, n_cacheonly, 104, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, s_recover, 108, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, s_probe_ok, 112, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, hysteresis, 116, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, probe_concurrency, 120, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, cache_only_after, 124, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, failure_threshold, 128, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_breaker, required_successes, 132, 4);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_backoff) == 48);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, base, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, cap, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, min_sleep, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, retry_after_max, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, factor, 32, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, steady, 36, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, retries_user, 40, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_backoff, retries_background, 44, 4);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_adaptive) == 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, on, 0, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, parser, 1, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, window_count, 2, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, unused, 3, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, threshold, 4, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, history, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, min_samples, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_adaptive, short_window, 16, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_rule) == 80);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, name, 0, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, algorithm, 32, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, unit, 33, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, window_bursts, 34, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, burst_from, 35, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, log_room, 36, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, limit, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, period, 48, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, burst, 56, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, tau, 64, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, reserve, 72, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_window) == 56);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_window, name, 0, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_window, limit, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_window, interval, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_window, sliding, 48, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_policy) == 2048);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, rule_count, 0, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, unit_count, 1, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, passthrough, 2, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, unused_counts, 3, 5);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, concurrency, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, concurrency_background, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, queueing, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, unused, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, outcome_window, 32, 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, breaker, 48, 136);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, backoff, 184, 48);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, adaptive, 232, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, provider, 256, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, units, 288, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, rules, 416, 640);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, windows, 1056, 448);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, unused_words, 1504, 536);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_policy, checksum, 2040, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_health) == 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, state, 0, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, flags, 4, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, since, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, until, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, rate, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, gate_until, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, sustained, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, probe_until, 48, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, consec429, 56, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, successes, 60, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, agreed, 64, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, sleeps, 68, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, run, 72, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, failures, 76, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, oldest, 80, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, samples, 84, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, errors, 88, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, written_at, 96, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, written_off, 104, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, written_off_background, 108, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, transitions, 112, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, unanswered, 120, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_ledger) == 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, granted, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, refused, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, looked, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, cache_hits, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, cache_misses, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, sleep_sum, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, sleep, 48, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_ledger, unused, 176, 16);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_tallies) == 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, ok, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, throttled, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, server, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, net, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, other, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, latency_sum, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, latency, 48, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_tallies, unused, 176, 16);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_gate_note) == 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_gate_note, at, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_gate_note, pid, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_gate_note, program, 16, 16);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_pace) == 40);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, interval, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, tightened_at, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, admitted, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, bottleneck, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, doubted, 32, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_observed_window) == 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_observed_window, limit, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_observed_window, remaining, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_observed_window, reset_at, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_observed_window, seen, 24, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_transition) == 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, at, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, from, 8, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, to, 9, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, cause, 10, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, unused, 11, 5);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_pause) == 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, until, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, since, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, pid, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, program, 24, 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, reason, 40, 64);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pause, unused, 104, 24);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_health_state) == 896);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, health, 0, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, tallies, 128, 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, gate_note, 320, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, ramp_from, 352, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, unused_note, 360, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, pace, 384, 40);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, unused_pace, 424, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, observed_windows, 448, 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health_state, transitions, 704, 192);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_journal_entry) == 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_journal_entry, word, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_journal_entry, before, 8, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_slot) == 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, owned, 0, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, generation, 4, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, held, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, held_background, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, since, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, held_since, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, pid, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, program, 40, 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, inherited, 56, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, granted, 64, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, refused, 72, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, looked, 80, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, unused_counts, 88, 40);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_queue) == 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, arrivals, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, owed, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, clocks, 16, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, unused, 40, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, places, 64, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_queue, unused_places, 192, 64);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_turn) == 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_turn, key, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_turn, end, 8, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_entry) == 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, owner, 0, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, owner_generation, 4, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, number, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, tag, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, wake_at, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, deadline, 32, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, group, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, cost, 48, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, weight, 80, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, since, 88, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, unused, 96, 24);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, wake_word, 120, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, wake_word_unused, 124, 4);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment) == 294912);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, header, 0, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, lock, 128, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, lock_unused, 132, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, version, 136, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, journal_length, 144, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, waiting, 152, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, latest, 160, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, in_flight, 168, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, in_flight_background, 172, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, clock_offset, 176, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, retired, 184, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, core_unused, 192, 64);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, origin, 256, 64);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, rule_states, 320, 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, effective, 576, 576);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, policy, 1152, 2048);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, health_state, 3200, 896);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, journal, 4096, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, slots, 12288, 65536);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, queue, 77824, 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, turns, 78080, 65536);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, entries, 143616, 131072);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, outcomes, 274688, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, admissions, 282880, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, ledger, 291072, 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, codes, 291264, 512);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, pause, 291776, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, wall, 291904, 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, unused, 292096, 2816);

#undef SHMLIMIT_SEGMENT_FIELD
#undef SHMLIMIT_STATIC_ASSERT

#endif  /* SHMLIMIT_SEGMENT_H */
