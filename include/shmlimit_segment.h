/*
 * shmlimit: what a segment looks like, for programs that read one without the library: monitors, debuggers, the curious.
 *
 * This file is generated from ffi/src/layout.rs by cbindgen, and its assertions from the same source. Do not edit it: run
 * scripts/languages/header. How to read consistently, and who may write what, is said at struct shmlimit_segment; a reader never
 * writes. examples/c/raw_status.c is a whole program. The layout is that of SHMLIMIT_LAYOUT_VERSION alone: check it first.
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
 * First word of every segment: the bytes "SHMLIMIT".
 */
#define SHMLIMIT_SEGMENT_MAGIC 6073470549693909075ull

/**
 * What `byte_order` must be. Anything else: the segment is of a machine of another byte order, or none.
 */
#define SHMLIMIT_SEGMENT_BYTE_ORDER 168496141u

/**
 * What `hash` must be: builds that agree on the layout version but not on the layout differ here.
 */
#define SHMLIMIT_SEGMENT_HASH 8019436484442334583ull

/**
 * A checksum starts from this; then for each word w: x = (sum ^ w) * factor, sum = x ^ x >> shift.
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
 * Most rules of one limiter.
 */
#define SHMLIMIT_SEGMENT_RULES 8

/**
 * Most units of one limiter.
 */
#define SHMLIMIT_SEGMENT_UNITS 4

/**
 * How many participants there is room for.
 */
#define SHMLIMIT_SEGMENT_SLOTS 512

/**
 * How many calls can wait.
 */
#define SHMLIMIT_SEGMENT_ENTRIES 1024

/**
 * How many turns of groups are remembered.
 */
#define SHMLIMIT_SEGMENT_TURNS 4096

/**
 * How many words one transaction can change.
 */
#define SHMLIMIT_SEGMENT_JOURNAL_ENTRIES 512

/**
 * Outcomes in their ring.
 */
#define SHMLIMIT_SEGMENT_OUTCOMES 1024

/**
 * Admissions in their ring.
 */
#define SHMLIMIT_SEGMENT_ADMISSIONS 1024

/**
 * Where the header is, in bytes from the start of the file.
 */
#define SHMLIMIT_SEGMENT_HEADER_AT 0

/**
 * Where the lock is.
 */
#define SHMLIMIT_SEGMENT_LOCK_AT 128

/**
 * Where the version is.
 */
#define SHMLIMIT_SEGMENT_VERSION_AT 136

/**
 * Where the origin is.
 */
#define SHMLIMIT_SEGMENT_ORIGIN_AT 256

/**
 * Where the rules' states are.
 */
#define SHMLIMIT_SEGMENT_RULE_STATES_AT 320

/**
 * Where what is effective is.
 */
#define SHMLIMIT_SEGMENT_EFFECTIVE_AT 576

/**
 * Where the policy is.
 */
#define SHMLIMIT_SEGMENT_POLICY_AT 1152

/**
 * Where the health state is.
 */
#define SHMLIMIT_SEGMENT_HEALTH_STATE_AT 3200

/**
 * Where the journal is.
 */
#define SHMLIMIT_SEGMENT_JOURNAL_AT 4096

/**
 * Where the slots are.
 */
#define SHMLIMIT_SEGMENT_SLOTS_AT 12288

/**
 * Where the queue is.
 */
#define SHMLIMIT_SEGMENT_QUEUE_AT 77824

/**
 * Where the groups' turns are.
 */
#define SHMLIMIT_SEGMENT_TURNS_AT 78080

/**
 * Where the entries of the queue are.
 */
#define SHMLIMIT_SEGMENT_ENTRIES_AT 143616

/**
 * Where the ring of outcomes is.
 */
#define SHMLIMIT_SEGMENT_OUTCOMES_AT 274688

/**
 * Where the ring of admissions is.
 */
#define SHMLIMIT_SEGMENT_ADMISSIONS_AT 282880

/**
 * Where the ledger is.
 */
#define SHMLIMIT_SEGMENT_LEDGER_AT 291072

/**
 * Where the codes are.
 */
#define SHMLIMIT_SEGMENT_CODES_AT 291264

/**
 * Where the section about the wall clock is.
 */
#define SHMLIMIT_SEGMENT_WALL_AT 291904

/**
 * How many codes are counted apart.
 */
#define SHMLIMIT_SEGMENT_CODES 64

/**
 * Where the pause is.
 */
#define SHMLIMIT_SEGMENT_PAUSE_AT 291776

/**
 * Where the logs begin, two words an entry, up to the file's end. Only files with a sliding log have any.
 */
#define SHMLIMIT_SEGMENT_LOGS_AT 294912

/**
 * All is well; of a consecutive breaker: closed.
 */
#define SHMLIMIT_SEGMENT_STATE_NORMAL 0

/**
 * Half the rate, half the permits.
 */
#define SHMLIMIT_SEGMENT_STATE_THROTTLE 1

/**
 * No call until its timer is over.
 */
#define SHMLIMIT_SEGMENT_STATE_SLEEP 2

/**
 * A few calls, to see whether the server is well.
 */
#define SHMLIMIT_SEGMENT_STATE_HALF_OPEN 3

/**
 * No call until an operator says so, or the limiter tries by itself.
 */
#define SHMLIMIT_SEGMENT_STATE_CACHE_ONLY 4

/**
 * No call until its timer is over, of a consecutive breaker.
 */
#define SHMLIMIT_SEGMENT_STATE_OPEN 5

/**
 * An operator said so: the state has no timer.
 */
#define SHMLIMIT_SEGMENT_HEALTH_OFFLINE 1

/**
 * On the way from CacheOnly by itself.
 */
#define SHMLIMIT_SEGMENT_HEALTH_ATTEMPT 2

/**
 * The rate rises step by step.
 */
#define SHMLIMIT_SEGMENT_HEALTH_RAMPING 4

/**
 * An operator said so.
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
 * A very high ratio for a long time.
 */
#define SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS 3

/**
 * Successes enough.
 */
#define SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK 4

/**
 * Slept long enough.
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
 * CacheOnly tries by itself.
 */
#define SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER 8

/**
 * Too many failures in a row.
 */
#define SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES 9

/**
 * Was open long enough.
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
 * Work nobody waits for.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND 0

/**
 * Somebody waits.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_USER 1

/**
 * Another program waits.
 */
#define SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK 2

/**
 * Those who wait are served strictly in the order of arrival; else every group has equal turns.
 */
#define SHMLIMIT_SEGMENT_QUEUEING_FIFO 1

/**
 * There are no priorities.
 */
#define SHMLIMIT_SEGMENT_QUEUEING_NO_PRIORITIES 2

/**
 * In the ring of outcomes: the call ended well.
 */
#define SHMLIMIT_SEGMENT_CLASS_OK 0

/**
 * With 429.
 */
#define SHMLIMIT_SEGMENT_CLASS_THROTTLED 1

/**
 * With 5xx.
 */
#define SHMLIMIT_SEGMENT_CLASS_SERVER 2

/**
 * Without an answer.
 */
#define SHMLIMIT_SEGMENT_CLASS_NET 3

/**
 * Which headers they are is told with each response.
 */
#define SHMLIMIT_SEGMENT_HEADERS_ANY 0

/**
 * `retired`: it is in use. Not zero, so that zeros are never taken for an idle limiter.
 */
#define SHMLIMIT_SEGMENT_LIVE 1163282764

/**
 * `retired`: replaced on purpose; what comes next starts afresh.
 */
#define SHMLIMIT_SEGMENT_RETIRED_REPLACED 1

/**
 * `retired`: its file was deleted; what comes next goes on with what the rules have seen.
 */
#define SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER 2

/**
 * `retired`: removed on purpose; nothing comes next until somebody makes it.
 */
#define SHMLIMIT_SEGMENT_RETIRED_REMOVED 3

/**
 * Transitions that are remembered.
 */
#define SHMLIMIT_SEGMENT_TRANSITIONS 12

/**
 * Latencies are counted by so many bounds: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000,
 * 30000, 60000 milliseconds, and longer.
 */
#define SHMLIMIT_SEGMENT_LATENCIES 16

/**
 * Most bytes of the reason of a pause.
 */
#define SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH 64

/**
 * The participant in slot S lives as long as somebody holds the lock on the byte at this offset + S: ask with
 * `fcntl(fd, F_OFD_GETLK, ...)` for a write lock of one byte, and never take one. Not so if the slot is `inherited`.
 */
#define SHMLIMIT_SEGMENT_FIRST_LIVENESS_BYTE 4611686018427387904ull

/**
 * Bytes of a program's name, zero-padded; without a zero if it is that long.
 */
#define SHMLIMIT_SEGMENT_PROGRAM_LENGTH 16

/**
 * Bytes of a name, zero-padded; without a zero if it is that long.
 */
#define SHMLIMIT_SEGMENT_NAME_LENGTH 32

/**
 * Most windows that headers tell about.
 */
#define SHMLIMIT_SEGMENT_WINDOWS 8

/**
 * Written once, before the file has its name.
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
     * SHMLIMIT_LAYOUT_VERSION. Do not read on if it is another one.
     */
    uint32_t layout_version;
    /**
     * SHMLIMIT_SEGMENT_HASH. Do not read on if it is another one.
     */
    uint64_t hash;
    /**
     * Bytes of the whole file: SHMLIMIT_SEGMENT_SIZE, or more if it has logs.
     */
    uint64_t size;
    /**
     * When it was made: nanoseconds since 1970 (UTC).
     */
    uint64_t created;
    /**
     * The generation of the limiter's name that it was made for.
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
 * Where the limiter's clock comes from. Transactions only.
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
     * How often a damaged state was started afresh.
     */
    uint64_t resets;
    /**
     * Zero.
     */
    uint64_t unused[2];
} shmlimit_segment_origin;

/**
 * What a rule has seen. Transactions only.
 */
typedef struct shmlimit_segment_rule_state {
    /**
     * The algorithm's business, stored inverted: zeros are not a fresh rule. Not stable between versions of the library.
     */
    uint64_t words[3];
    /**
     * What was charged before this limiter time is not refunded any more.
     */
    uint64_t since;
} shmlimit_segment_rule_state;

/**
 * How those who wait are served.
 */
typedef struct shmlimit_segment_queueing {
    /**
     * SHMLIMIT_SEGMENT_QUEUEING_... flags.
     */
    uint32_t flags;
    /**
     * What the background gets in any case, in millionths.
     */
    uint32_t background_share;
} shmlimit_segment_queueing;

/**
 * What decisions read: the policy as the breaker's state makes it. Transactions only.
 */
typedef struct shmlimit_segment_effective {
    /**
     * Rules not in use: SHMLIMIT_SEGMENT_RULES less those of the policy.
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
     * Most calls in flight in this state; 4096 where the policy has no bound.
     */
    uint32_t concurrency;
    /**
     * Most calls in flight for the background; 2^32 - 1 = as many as any.
     */
    uint32_t concurrency_background;
    /**
     * How those who wait are served.
     */
    struct shmlimit_segment_queueing queueing;
    /**
     * Before this limiter time no pause, breaker, gate or pace is in the way.
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
 * Which outcomes count.
 */
typedef struct shmlimit_segment_outcome_window {
    /**
     * An outcome of exactly this age is out; nanoseconds.
     */
    uint64_t max_age;
    /**
     * How many of the newest count.
     */
    uint32_t max_count;
    /**
     * So many are needed before a ratio can be called too high.
     */
    uint32_t min_samples;
} shmlimit_segment_outcome_window;

/**
 * The breaker's numbers: nanoseconds, billionths a second for rates, millionths for parts and factors.
 */
typedef struct shmlimit_segment_breaker {
    /**
     * The full rate; 0 = what the first rule allows.
     */
    uint64_t rate_base;
    /**
     * The rate while probing.
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
     * How long CacheOnly lasts before it tries by itself; 0 = until an operator says so.
     */
    uint64_t auto_recover;
    /**
     * A probe that has not reported back after this is written off.
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
     * The ratio of errors at which to throttle.
     */
    uint32_t p_throttle;
    /**
     * The ratio below which it is healthy again.
     */
    uint32_t p_recover;
    /**
     * The ratio at which to sleep, if it lasts.
     */
    uint32_t p_sleep;
    /**
     * How much longer each cooldown is than the one before.
     */
    uint32_t cooldown_factor;
    /**
     * How much the rate rises each time.
     */
    uint32_t ramp_factor;
    /**
     * So many 429 in a row throttle.
     */
    uint32_t n_throttle;
    /**
     * So many 429 in a row lead to Sleep.
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
     * So many evaluations in a row must agree.
     */
    uint32_t hysteresis;
    /**
     * Probes in flight at a time.
     */
    uint32_t probe_concurrency;
    /**
     * After so many Sleeps without Normal the next one is CacheOnly; 0 = never.
     */
    uint32_t cache_only_after;
    /**
     * Failures in a row that open a consecutive breaker.
     */
    uint32_t failure_threshold;
    /**
     * Successes that close it.
     */
    uint32_t required_successes;
} shmlimit_segment_breaker;

/**
 * How long to wait after a failed call; nanoseconds.
 */
typedef struct shmlimit_segment_backoff {
    /**
     * The ceiling of the first wait.
     */
    uint64_t base;
    /**
     * The ceiling of all waits.
     */
    uint64_t cap;
    /**
     * The least that a Retry-After counts.
     */
    uint64_t min_sleep;
    /**
     * The most that a Retry-After counts.
     */
    uint64_t retry_after_max;
    /**
     * How much higher each ceiling is, in millionths.
     */
    uint32_t factor;
    /**
     * Not 0: no jitter.
     */
    uint32_t steady;
    /**
     * How often a call somebody waits for is tried again.
     */
    uint32_t retries_user;
    /**
     * How often a background call is.
     */
    uint32_t retries_background;
} shmlimit_segment_backoff;

/**
 * How response headers set the pace.
 */
typedef struct shmlimit_segment_adaptive {
    /**
     * 1 if they do; else all of this is zero.
     */
    uint8_t on;
    /**
     * SHMLIMIT_SEGMENT_HEADERS_...
     */
    uint8_t parser;
    /**
     * How many windows there are.
     */
    uint8_t window_count;
    /**
     * Zero.
     */
    uint8_t unused;
    /**
     * From this use on the pace is slowed, in millionths.
     */
    uint32_t threshold;
    /**
     * How many gaps between calls are averaged.
     */
    uint32_t history;
    /**
     * So many gaps are needed before their average counts.
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
     * What it counts: an index of `units`.
     */
    uint8_t unit;
    /**
     * 1: free passes in each calendar period, then pacing.
     */
    uint8_t window_bursts;
    /**
     * Who chose the burst. 0: somebody did. 1: it is the limit. 2: it is a part of a rate that no one period exceeds.
     */
    uint8_t burst_from;
    /**
     * Of a sliding log: the largest limit for which its log has room; 0 for all others.
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
     * Most units at once: the capacity.
     */
    uint64_t burst;
    /**
     * Tolerance that was set instead of a burst, in nanoseconds; 0 = none was.
     */
    uint64_t tau;
    /**
     * Units that only high priorities may use.
     */
    uint64_t reserve;
} shmlimit_segment_rule;

/**
 * One window of the provider's, that headers tell about.
 */
typedef struct shmlimit_segment_window {
    /**
     * Its name.
     */
    uint8_t name[SHMLIMIT_SEGMENT_NAME_LENGTH];
    /**
     * Its limit, unless the headers say another.
     */
    uint64_t limit;
    /**
     * Its length; nanoseconds.
     */
    uint64_t interval;
    /**
     * 0: starts anew at its end. 1: moves with time.
     */
    uint64_t sliding;
} shmlimit_segment_window;

/**
 * The policy as it was configured. Transactions only.
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
     * 1: nothing is ever refused.
     */
    uint8_t passthrough;
    /**
     * Zero.
     */
    uint8_t unused_counts[5];
    /**
     * Most calls in flight; 0 = no bound.
     */
    uint32_t concurrency;
    /**
     * Most calls in flight for the background; 0 = as many as any.
     */
    uint32_t concurrency_background;
    /**
     * How those who wait are served.
     */
    struct shmlimit_segment_queueing queueing;
    /**
     * Zero.
     */
    uint64_t unused;
    /**
     * Which outcomes count.
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
     * Whose limits these are.
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
     * The windows that headers tell about.
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
     * Limiter time at which its timer is due, if it has one. Whoever next uses the limiter lets it act.
     */
    uint64_t until;
    /**
     * The effective rate, in billionths of a unit a second; 0 = the full one.
     */
    uint64_t rate;
    /**
     * The gate: no call before this limiter time.
     */
    uint64_t gate_until;
    /**
     * One more than when too many errors began; 0 = there are not too many.
     */
    uint64_t sustained;
    /**
     * While probing: when a probe that has not reported back is written off.
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
     * Evaluations in a row that agreed on a move.
     */
    uint32_t agreed;
    /**
     * Sleeps since the last Normal.
     */
    uint32_t sleeps;
    /**
     * Successive outcomes that call for backing off.
     */
    uint32_t run;
    /**
     * Successive failures, of a consecutive breaker.
     */
    uint32_t failures;
    /**
     * The outcome window: the number of its oldest outcome; number N is at N % SHMLIMIT_SEGMENT_OUTCOMES of the ring.
     */
    uint32_t oldest;
    /**
     * How many there are from that one on. Those that have become too old since the last one are among them.
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
     * Permits of probes that were written off and are still out.
     */
    uint32_t written_off;
    /**
     * Those of them for background calls.
     */
    uint32_t written_off_background;
    /**
     * Transitions so far; the newest is number transitions - 1.
     */
    uint64_t transitions;
    /**
     * While probing: one more than the limiter time of the first call granted since the last outcome that counts; 0 =
     * every probe is answered.
     */
    uint64_t unanswered;
} shmlimit_segment_health;

/**
 * How calls ended since the limiter was made.
 */
typedef struct shmlimit_segment_tallies {
    /**
     * Well.
     */
    uint64_t ok;
    /**
     * With 429.
     */
    uint64_t throttled;
    /**
     * With 5xx.
     */
    uint64_t server;
    /**
     * Without an answer.
     */
    uint64_t net;
    /**
     * With any other 4xx.
     */
    uint64_t other;
    /**
     * Nanoseconds that all calls took whose time was reported.
     */
    uint64_t latency_sum;
    /**
     * How many of them took how long; see SHMLIMIT_SEGMENT_LATENCIES.
     */
    uint64_t latency[SHMLIMIT_SEGMENT_LATENCIES];
    /**
     * Zero.
     */
    uint64_t unused[2];
} shmlimit_segment_tallies;

/**
 * Who closed the gate last.
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
     * Limiter time at which it last became larger.
     */
    uint64_t tightened_at;
    /**
     * Admissions so far; number N is at N % SHMLIMIT_SEGMENT_ADMISSIONS of the ring.
     */
    uint64_t admitted;
    /**
     * One more than the window that the gap is for; 0 = none.
     */
    uint64_t bottleneck;
    /**
     * The same if that window's reset was not believed when the gap was set; 0 = it was.
     */
    uint64_t doubted;
} shmlimit_segment_pace;

/**
 * What headers last said about a window of the policy.
 */
typedef struct shmlimit_segment_observed_window {
    /**
     * Its limit in the lower 62 bits; bit 63: headers said it, bit 62: its reset was not believed.
     */
    uint64_t limit;
    /**
     * What is left of it.
     */
    uint64_t remaining;
    /**
     * Limiter time at which it starts anew.
     */
    uint64_t reset_at;
    /**
     * One more than the limiter time at which that was said; 0 = never.
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
     * From which SHMLIMIT_SEGMENT_STATE_...
     */
    uint8_t from;
    /**
     * To which.
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
 * How the server is doing. Transactions only.
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
     * Who closed the gate.
     */
    struct shmlimit_segment_gate_note gate_note;
    /**
     * The rate that a ramp began with, in billionths of a unit per second.
     */
    uint64_t ramp_from;
    /**
     * Zero.
     */
    uint64_t unused_note[3];
    /**
     * What headers taught.
     */
    struct shmlimit_segment_pace pace;
    /**
     * Zero.
     */
    uint64_t unused_pace[3];
    /**
     * What headers said about each window.
     */
    struct shmlimit_segment_observed_window observed_windows[SHMLIMIT_SEGMENT_WINDOWS];
    /**
     * The newest changes of state.
     */
    struct shmlimit_segment_transition transitions[SHMLIMIT_SEGMENT_TRANSITIONS];
} shmlimit_segment_health_state;

/**
 * One word that the transaction under way has changed. The lock holder only.
 */
typedef struct shmlimit_segment_journal_entry {
    /**
     * Which word, from the start of the file.
     */
    uint64_t word;
    /**
     * What it was before.
     */
    uint64_t before;
} shmlimit_segment_journal_entry;

/**
 * One attached process. Transactions only, except for the last three counts: those its owner writes at any time.
 */
typedef struct shmlimit_segment_slot {
    /**
     * 1 while somebody owns the slot, dead or alive; else 0.
     */
    uint32_t owned;
    /**
     * Tells its owner from earlier ones.
     */
    uint32_t generation;
    /**
     * Permits it holds.
     */
    uint32_t held;
    /**
     * Those of them for background calls.
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
     * Process id in its own namespace, for people.
     */
    uint64_t pid;
    /**
     * Program name, for people.
     */
    uint8_t program[SHMLIMIT_SEGMENT_PROGRAM_LENGTH];
    /**
     * Zero for an attached process. Otherwise the slot stands for permits of a segment that was deleted by hand: it has no
     * lock in this file, and counts until their holder has returned them.
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
     * How often its waiting calls looked whether it was their turn.
     */
    uint64_t looked;
    /**
     * Zero.
     */
    uint64_t unused_counts[5];
} shmlimit_segment_slot;

/**
 * How far the queue has come. Transactions only.
 */
typedef struct shmlimit_segment_queue {
    /**
     * Calls that ever came to wait.
     */
    uint64_t arrivals;
    /**
     * What the background is owed of its share.
     */
    uint64_t owed;
    /**
     * The clock of each priority.
     */
    uint64_t clocks[3];
    /**
     * Zero.
     */
    uint64_t unused[3];
    /**
     * Which entries are taken: entry E is if bit E % 64 of places[E / 64] is set.
     */
    uint64_t places[16];
    /**
     * Zero.
     */
    uint64_t unused_places[8];
} shmlimit_segment_queue;

/**
 * Where a group's last turn ended. Transactions only.
 */
typedef struct shmlimit_segment_turn {
    /**
     * Group and priority, mixed.
     */
    uint64_t key;
    /**
     * The end, on the clock of its priority.
     */
    uint64_t end;
} shmlimit_segment_turn;

/**
 * A call that waits. Transactions only, except for its wake word.
 */
typedef struct shmlimit_segment_entry {
    /**
     * Slot + 2 of who waits.
     */
    uint32_t owner;
    /**
     * Generation of that slot.
     */
    uint32_t owner_generation;
    /**
     * Priority in the low two bits, then whether it can be rung in one bit, then how many arrived before it.
     */
    uint64_t number;
    /**
     * Start time on the clock of its priority.
     */
    uint64_t tag;
    /**
     * Limiter time at which it looks again by itself.
     */
    uint64_t wake_at;
    /**
     * Limiter time at which it gives up; UINT64_MAX = never.
     */
    uint64_t deadline;
    /**
     * With whom it shares its turns.
     */
    uint64_t group;
    /**
     * How much of each unit it needs.
     */
    uint64_t cost[SHMLIMIT_SEGMENT_UNITS];
    /**
     * How long it counts on the clock of its priority.
     */
    uint64_t weight;
    /**
     * Limiter time at which it came.
     */
    uint64_t since;
    /**
     * Zero.
     */
    uint64_t unused[3];
    /**
     * A futex on which it sleeps, rung by others.
     */
    uint32_t wake_word;
    /**
     * Not used.
     */
    uint32_t wake_word_unused;
} shmlimit_segment_entry;

/**
 * What is counted for people only. Those who are attached count in their slots; that is added here when they leave.
 */
typedef struct shmlimit_segment_ledger {
    /**
     * Calls granted to those who have left.
     */
    uint64_t granted;
    /**
     * Calls refused to those who have left.
     */
    uint64_t refused;
    /**
     * Looks of the waiting calls of those who have left.
     */
    uint64_t looked;
    /**
     * Answers that were found in a cache.
     */
    uint64_t cache_hits;
    /**
     * Answers that were not.
     */
    uint64_t cache_misses;
    /**
     * Nanoseconds that callers were told to wait before they try again, all together.
     */
    uint64_t sleep_sum;
    /**
     * How many were told to wait how long; see SHMLIMIT_SEGMENT_LATENCIES.
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
     * Limiter time at which it ends: 0 = it is over, UINT64_MAX = when the limiter is resumed. A limiter is paused
     * while this is later than now.
     */
    uint64_t until;
    /**
     * Limiter time at which it began.
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
     * Why: UTF-8, zero-padded.
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
 *    and exactly `header.size`. Map SHMLIMIT_SEGMENT_SIZE bytes, or all of them to see the logs.
 * 2. Check magic, byte order, layout version, hash and checksum. If one differs, nothing below holds. The structs are those of a
 *    little-endian machine; on any other the byte order never compares equal.
 * 3. Others change the words at any time, so every access is an atomic load: 64 bits at an address that 8 divides
 *    (memory_order_relaxed will do), or 32 bits for the lock and the wake words. A plain read through the struct is a data
 *    race. Copy what you need out of the mapping, and read the copy:
 *    - load `version` (memory_order_acquire); if it is odd, a transaction is under way: begin again;
 *    - copy the words you need (memory_order_relaxed);
 *    - atomic_thread_fence(memory_order_acquire);
 *    - load `version` (memory_order_relaxed); if it is another one than before, the copy is torn: begin again.
 *
 *    A copy that was taken so is one committed state. Copy little: the longer it takes, the more often it is torn. If
 *    the version stays odd, its owner is stopped or dead; the next process that uses the limiter puts things right.
 * 4. Nothing in the copy is to be trusted further than that: bring counts and indices into range before you use them.
 *
 * Who writes what: the header nobody, once the file has its name. Everything marked "transactions only": the process
 * that holds the lock, between an odd and an even version. The lock and the wake words: anybody, they are futexes. The counts
 * at a slot's end: its owner, without a lock and outside of transactions, so they may be ahead of the rest.
 *
 * A reader never writes, and takes no lock of any kind: neither a word of the file nor a byte lock on it. Programs that
 * want to change anything use the library.
 *
 * Times are the limiter's, in nanoseconds: CLOCK_BOOTTIME + clock_offset, in the initial time namespace.
 */
typedef struct shmlimit_segment {
    /**
     * What kind of file this is.
     */
    struct shmlimit_segment_header header;
    /**
     * Who changes the segment: its slot + 1 in bits 20 to 30, 0 = nobody. A futex, therefore 32 bits.
     */
    uint32_t lock;
    /**
     * Not used.
     */
    uint32_t lock_unused;
    /**
     * Even: the state is whole. Odd: a transaction is under way, or its owner died in it.
     */
    uint64_t version;
    /**
     * How many journal entries belong to the transaction under way.
     */
    uint64_t journal_length;
    /**
     * How many calls wait, by priority (SHMLIMIT_SEGMENT_PRIORITY_...); the last is zero.
     */
    uint16_t waiting[4];
    /**
     * Limiter time of the latest change.
     */
    uint64_t latest;
    /**
     * Permits that are out.
     */
    uint32_t in_flight;
    /**
     * Those of them that background calls hold.
     */
    uint32_t in_flight_background;
    /**
     * Limiter time is CLOCK_BOOTTIME in nanoseconds, plus this, modulo 2^64.
     */
    uint64_t clock_offset;
    /**
     * 1 to 3: nothing is granted from this file any more, open it again by its name. SHMLIMIT_SEGMENT_LIVE: it is in use.
     * All else is damage.
     */
    uint64_t retired;
    /**
     * Zero.
     */
    uint64_t core_unused[8];
    /**
     * Where its clock comes from.
     */
    struct shmlimit_segment_origin origin;
    /**
     * What the rules have seen, in the policy's order.
     */
    struct shmlimit_segment_rule_state rule_states[SHMLIMIT_SEGMENT_RULES];
    /**
     * What is effective.
     */
    struct shmlimit_segment_effective effective;
    /**
     * What was configured.
     */
    struct shmlimit_segment_policy policy;
    /**
     * How the server is doing.
     */
    struct shmlimit_segment_health_state health_state;
    /**
     * What the transaction under way has changed.
     */
    struct shmlimit_segment_journal_entry journal[SHMLIMIT_SEGMENT_JOURNAL_ENTRIES];
    /**
     * Who is attached.
     */
    struct shmlimit_segment_slot slots[SHMLIMIT_SEGMENT_SLOTS];
    /**
     * How far the queue has come.
     */
    struct shmlimit_segment_queue queue;
    /**
     * What groups' turns have come to.
     */
    struct shmlimit_segment_turn turns[SHMLIMIT_SEGMENT_TURNS];
    /**
     * Who waits: entries whose bit of `queue.places` is set.
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
     * What is counted for people only.
     */
    struct shmlimit_segment_ledger ledger;
    /**
     * How calls ended: code << 48 | count. A code is an HTTP status, or 1 connect_timeout, 2 read_timeout, 3 dns,
     * 4 connection; 0 with a count: all that found no place. Status 200 is not among them: it is what remains of
     * `health_state.tallies.ok`.
     */
    uint64_t codes[SHMLIMIT_SEGMENT_CODES];
    /**
     * The latest pause.
     */
    struct shmlimit_segment_pause pause;
    /**
     * What is known of the wall clock. Not stable between versions of the library.
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
