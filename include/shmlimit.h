/*
 * shmlimit: one budget for every program on the machine that calls the same API.
 *
 * This file is generated from ffi/src by cbindgen. Do not edit it: run scripts/header.
 *
 *     shmlimit_limiter *tmdb;
 *     shmlimit_grant grant;
 *     if (shmlimit_open("tmdb", NULL, &tmdb) != SHMLIMIT_OK)
 *         return fputs(shmlimit_last_error(), stderr);
 *     if (shmlimit_acquire(tmdb, NULL, &grant, NULL) == SHMLIMIT_OK) {
 *         ... call the API: it says 429, and Retry-After: 30 ...
 *         shmlimit_header after = {"Retry-After", "30"};
 *         shmlimit_outcome outcome = {.size = sizeof outcome, .status = 429, .headers = &after, .header_count = 1};
 *         shmlimit_record(grant, &outcome, NULL);  ... and no program calls for 30 seconds
 *     }
 *     shmlimit_close(tmdb);
 *
 * API conventions
 *
 * Names      Everything begins with shmlimit_ or SHMLIMIT_.
 * Results    A function that can fail returns an int32_t: 0 (SHMLIMIT_OK) is done or granted, 1 to 15 are other
 *            answers, from 16 on it is a failure: nothing was changed, and shmlimit_last_error() says in words what
 *            happened, with which file, and what to do. A number once given never changes its meaning; new ones may
 *            come. What cannot fail returns its value.
 * Strings    UTF-8, ending in NUL, except what a server sent: there anything will do. A returned `const char *` belongs
 *            to the library: it is never NULL unless its comment says so, and you do not free it.
 * Pointers   NULL is refused where it makes no sense. Any other pointer must be good for as much as its type says;
 *            nothing is kept after the call. Where an answer goes is emptied first, so you never find garbage there.
 * Handles    A shmlimit_limiter * is not a pointer to anything: it is a number that is checked, and so are grants and
 *            waits. Using what is over, or closing it twice, is a failure with a number of its own, never a crash.
 * Structs    A struct begins with its own size: set it to sizeof, and zero all you do not use ({.size = sizeof x}). So
 *            a later library knows what you compiled, and structs can grow at their ends.
 * Panics     No Rust panic crosses this border (SHMLIMIT_PANICKED), and nothing unwinds through it.
 * Threads    Every function may be called from any thread at the same time. The library starts none. Messages are kept
 *            for each thread.
 * Fork       Handles work in a forked child: it attaches itself on first use, also if other threads were inside the
 *            library when it forked. Grants and waits do not cross a fork: the child's copies do nothing, and the
 *            parent's stay good. Close what the child does not need, or let exec or exit do it.
 * Death      However a process ends, its permits come back, and it leaves the queue.
 * Signals    Nothing here is async-signal-safe: do not call it from a signal handler. A signal does not end a wait, but
 *            makes the request's `stop` be asked at once.
 * Versions   Compare SHMLIMIT_LAYOUT_VERSION with shmlimit_layout_version() when you link dynamically: programs
 *            that share a limiter must agree on it. 64-bit platforms only.
 */

#ifndef SHMLIMIT_H
#define SHMLIMIT_H

#include <stddef.h>
#include <stdint.h>

/**
 * Done; of an acquire: granted.
 */
#define SHMLIMIT_OK 0

/**
 * Not now: shmlimit_answer says why, and when to ask again. Nothing was taken.
 */
#define SHMLIMIT_REFUSED 1

/**
 * The request's `stop` said so: the call has left the queue. Nothing was taken.
 */
#define SHMLIMIT_STOPPED 2

/**
 * Of shmlimit_wait_step: not yet, sleep and step again.
 */
#define SHMLIMIT_SLEEP 3

/**
 * A pointer that must not be NULL is NULL.
 */
#define SHMLIMIT_NULL_POINTER 16

/**
 * A struct whose `size` is not one that any version of this library has: set it to sizeof the struct.
 */
#define SHMLIMIT_WRONG_SIZE 17

/**
 * A text that is not UTF-8.
 */
#define SHMLIMIT_NOT_UTF8 18

/**
 * An argument or field that is out of its range, or means nothing to this version.
 */
#define SHMLIMIT_BAD_VALUE 19

/**
 * A limiter that is closed, or never was open.
 */
#define SHMLIMIT_CLOSED 20

/**
 * A grant that is over already (released, cancelled, recorded), or never was one.
 */
#define SHMLIMIT_GRANT_DONE 21

/**
 * A wait that is over already, or never was one, or that another thread steps at this moment.
 */
#define SHMLIMIT_WAIT_DONE 22

/**
 * A bug of this library; nothing was changed that was not said.
 */
#define SHMLIMIT_PANICKED 23

/**
 * More handles are open than this library can number.
 */
#define SHMLIMIT_TOO_MANY 24

/**
 * A limiter name that cannot be a file name everywhere.
 */
#define SHMLIMIT_BAD_NAME 32

/**
 * There is no such limiter, and no preset of that name to make it from.
 */
#define SHMLIMIT_UNKNOWN_LIMITER 33

/**
 * A limiter that should be made exists already.
 */
#define SHMLIMIT_ALREADY_EXISTS 34

/**
 * The directory cannot be used or cannot be trusted.
 */
#define SHMLIMIT_DIRECTORY 35

/**
 * The file in the segment's place is not one this user may trust.
 */
#define SHMLIMIT_UNSAFE_FILE 36

/**
 * A file that is no segment of this layout. Not one byte of it was written.
 */
#define SHMLIMIT_FOREIGN 37

/**
 * The segment's configuration was damaged.
 */
#define SHMLIMIT_DAMAGED 38

/**
 * Locks and mappings are not to be trusted across a network.
 */
#define SHMLIMIT_NETWORK_FILE_SYSTEM 39

/**
 * The process that holds the lock is alive but does not go on: stopped, or starved.
 */
#define SHMLIMIT_BUSY 40

/**
 * Every place for a participant is taken by a living one.
 */
#define SHMLIMIT_SLOTS_FULL 41

/**
 * Settings given explicitly differ from those of the limiter that is there.
 */
#define SHMLIMIT_CONFIG_MISMATCH 42

/**
 * A change that does not fit the segment as it was made.
 */
#define SHMLIMIT_DOES_NOT_FIT 43

/**
 * A configuration that makes no sense.
 */
#define SHMLIMIT_POLICY 44

/**
 * A configuration text or a setting that cannot be carried out.
 */
#define SHMLIMIT_CONFIG 45

/**
 * A variable of the environment that means nothing, or does not fit.
 */
#define SHMLIMIT_ENVIRONMENT 46

/**
 * A status that no server answers with.
 */
#define SHMLIMIT_BAD_STATUS 47

/**
 * A state that the limiter's breaker does not have.
 */
#define SHMLIMIT_NO_SUCH_STATE 48

/**
 * A cost in a unit that no rule of the limiter counts.
 */
#define SHMLIMIT_UNKNOWN_UNIT 49

/**
 * The segment was deleted or replaced, time after time, while it was being opened.
 */
#define SHMLIMIT_UNSETTLED 50

/**
 * The operating system said no; shmlimit_last_errno() is its number.
 */
#define SHMLIMIT_IO 51

/**
 * An error that this version of the C ABI has no number for.
 */
#define SHMLIMIT_OTHER 99

/**
 * A time that nobody knows, or that never comes.
 */
#define SHMLIMIT_NEVER UINT64_MAX

/**
 * The breaker sleeps: no call until its timer is over, or an operator says so.
 */
#define SHMLIMIT_REASON_SLEEP 1

/**
 * The breaker lets nothing through: use what is cached.
 */
#define SHMLIMIT_REASON_CACHE_ONLY 2

/**
 * A consecutive breaker is open.
 */
#define SHMLIMIT_REASON_OPEN 3

/**
 * The server said when to come again.
 */
#define SHMLIMIT_REASON_RETRY_AFTER 4

/**
 * Response headers taught a slower pace.
 */
#define SHMLIMIT_REASON_ADAPTIVE 5

/**
 * All permits are out.
 */
#define SHMLIMIT_REASON_CONCURRENCY 6

/**
 * A rule has no room yet.
 */
#define SHMLIMIT_REASON_RATE 7

/**
 * A rule never has that much room.
 */
#define SHMLIMIT_REASON_COST_EXCEEDS_LIMIT 8

/**
 * Others wait whose turn is before.
 */
#define SHMLIMIT_REASON_QUEUED 9

/**
 * As many calls wait as the queue holds.
 */
#define SHMLIMIT_REASON_QUEUE_FULL 10

/**
 * Something that this version of the C ABI has no number for.
 */
#define SHMLIMIT_REASON_OTHER 99

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
#define SHMLIMIT_SEGMENT_HASH 2857575729701769600ull

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
 * Where what is in force is.
 */
#define SHMLIMIT_SEGMENT_HOT_AT 576

/**
 * Where the policy is.
 */
#define SHMLIMIT_SEGMENT_POLICY_AT 1152

/**
 * Where the sheet is.
 */
#define SHMLIMIT_SEGMENT_SHEET_AT 3200

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
 * A bucket of tokens that fills at a steady rate.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_TOKEN_BUCKET 1

/**
 * The generic cell rate algorithm.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_GCRA 2

/**
 * A bucket that leaks at a steady rate.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_LEAKY_BUCKET 3

/**
 * So many in each calendar window.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_FIXED_WINDOW 4

/**
 * So many in any window, each one remembered.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_LOG 5

/**
 * Two calendar windows, the older one weighted.
 */
#define SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_COUNTER 6

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
 * X-MBX-USED-WEIGHT-1M and the like.
 */
#define SHMLIMIT_SEGMENT_HEADERS_BINANCE 1

/**
 * Remaining-Req.
 */
#define SHMLIMIT_SEGMENT_HEADERS_UPBIT 2

/**
 * RateLimit in the IETF's drafts.
 */
#define SHMLIMIT_SEGMENT_HEADERS_IETF 3

/**
 * X-RateLimit-*.
 */
#define SHMLIMIT_SEGMENT_HEADERS_XRATELIMIT 4

/**
 * GitHub's.
 */
#define SHMLIMIT_SEGMENT_HEADERS_GITHUB 5

/**
 * OpenAI's.
 */
#define SHMLIMIT_SEGMENT_HEADERS_OPENAI 6

/**
 * Anthropic's.
 */
#define SHMLIMIT_SEGMENT_HEADERS_ANTHROPIC 7

/**
 * `retired`: replaced on purpose; what comes next starts afresh.
 */
#define SHMLIMIT_SEGMENT_RETIRED_REPLACED 1

/**
 * `retired`: its file was deleted; what comes next goes on with what the rules have seen.
 */
#define SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER 2

/**
 * The participant in slot S lives as long as somebody holds the lock on the byte at this offset + S: ask with
 * `fcntl(fd, F_OFD_GETLK, ...)` for a write lock of one byte, and never take one.
 */
#define SHMLIMIT_SEGMENT_FIRST_PULSE 4611686018427387904ull

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
 * Transitions that are remembered.
 */
#define SHMLIMIT_SEGMENT_TRANSITIONS 12

/**
 * Latencies are counted by so many bounds: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000,
 * 30000, 60000 milliseconds, and longer.
 */
#define SHMLIMIT_SEGMENT_LATENCIES 16

/**
 * Open only if it is there; make neither the limiter nor its directory.
 */
#define SHMLIMIT_EXISTING 1

/**
 * Make it; an error if it is there already.
 */
#define SHMLIMIT_CREATE 2

/**
 * Make it afresh in place of the one there may be.
 */
#define SHMLIMIT_REPLACE 4

/**
 * Trust a network file system, on your own risk.
 */
#define SHMLIMIT_ALLOW_NETWORK_FS 8

/**
 * Leave environment variables such as SHMLIMIT_RATE_BASE alone.
 */
#define SHMLIMIT_IGNORE_ENVIRONMENT 16

/**
 * Share the directory with the group of users in `gid`.
 */
#define SHMLIMIT_SHARE 32

/**
 * No connection in time.
 */
#define SHMLIMIT_ERROR_CONNECT_TIMEOUT 1

/**
 * No answer in time.
 */
#define SHMLIMIT_ERROR_READ_TIMEOUT 2

/**
 * No such name, or nobody to ask.
 */
#define SHMLIMIT_ERROR_DNS 3

/**
 * The connection was refused or broke.
 */
#define SHMLIMIT_ERROR_CONNECTION 4

/**
 * The server answered, and is well.
 */
#define SHMLIMIT_CLASS_OK 1

/**
 * 429: too much was asked.
 */
#define SHMLIMIT_CLASS_THROTTLED 2

/**
 * 5xx: the server is not well.
 */
#define SHMLIMIT_CLASS_SERVER 3

/**
 * No answer.
 */
#define SHMLIMIT_CLASS_NET 4

/**
 * Any other 4xx, which says nothing about the server.
 */
#define SHMLIMIT_CLASS_IGNORED 5

/**
 * There is nothing to wait for.
 */
#define SHMLIMIT_SOURCE_NONE 0

/**
 * The server said how long.
 */
#define SHMLIMIT_SOURCE_RETRY_AFTER 1

/**
 * The wait was computed.
 */
#define SHMLIMIT_SOURCE_BACKOFF 2

/**
 * Nothing said: of a request, for the background; of an outcome, as its grant was.
 */
#define SHMLIMIT_PRIORITY_DEFAULT 0

/**
 * Work nobody waits for.
 */
#define SHMLIMIT_PRIORITY_BACKGROUND 1

/**
 * Somebody waits.
 */
#define SHMLIMIT_PRIORITY_USER 2

/**
 * Another program waits.
 */
#define SHMLIMIT_PRIORITY_WEBHOOK 3

/**
 * Layout version of segments at the time a program was compiled; compare with `shmlimit_layout_version()`.
 */
#define SHMLIMIT_LAYOUT_VERSION 3

/**
 * Bytes that every segment has, before its logs, at the time a program was compiled; compare with `shmlimit_segment_size()`.
 */
#define SHMLIMIT_SEGMENT_SIZE 294912

/**
 * A limiter that is open. Not a pointer to anything you can read.
 */
typedef struct shmlimit_limiter shmlimit_limiter;

/**
 * How much of a unit.
 */
typedef struct shmlimit_cost {
    /**
     * The unit, such as "requests" or "tokens".
     */
    const char *unit;
    /**
     * How much of it.
     */
    uint64_t amount;
} shmlimit_cost;

/**
 * A call that wants to be made. All zero but `size`: one request, for the background, waiting as long as it takes.
 */
typedef struct shmlimit_request {
    /**
     * sizeof(shmlimit_request).
     */
    size_t size;
    /**
     * What it costs. Units not named cost nothing, except "requests", which costs 1.
     */
    const struct shmlimit_cost *costs;
    /**
     * How many costs there are.
     */
    size_t cost_count;
    /**
     * How long it may wait, in nanoseconds; 0 = as long as it takes. What cannot be had in time is refused at once.
     */
    uint64_t timeout_ns;
    /**
     * Until when it may wait, in nanoseconds since 1970; 0 = no such time. Beside a timeout the earlier counts.
     */
    uint64_t deadline_ns;
    /**
     * For whom: SHMLIMIT_PRIORITY_….
     */
    uint32_t priority;
    /**
     * Must be 0.
     */
    uint32_t reserved;
    /**
     * Asked while the call waits, whenever a signal interrupts it and at least ten times a second: not 0 = give up. It
     * must return; it may not throw or jump. NULL = nobody is asked.
     */
    int (*stop)(void *context);
    /**
     * Handed to `stop`.
     */
    void *stop_context;
} shmlimit_request;

/**
 * The right to make one call: a number that is never 0 and never given twice. It holds a permit until it is released,
 * cancelled or recorded. It belongs to the process that got it: after a fork the child's copy does nothing.
 */
typedef uint64_t shmlimit_grant;

/**
 * What a limiter said to a request. Set `size`; the rest is filled in.
 */
typedef struct shmlimit_answer {
    /**
     * sizeof(shmlimit_answer).
     */
    size_t size;
    /**
     * Granted: how long a leaky bucket wants the call held back, in nanoseconds, so that calls go out evenly.
     */
    uint64_t delay_ns;
    /**
     * Refused: after this what stands in the way lets the call pass, absent other traffic; SHMLIMIT_NEVER = never, or
     * nobody knows.
     */
    uint64_t retry_after_ns;
    /**
     * Refused: nobody who gives up before this can be served; SHMLIMIT_NEVER = never.
     */
    uint64_t ready_after_ns;
    /**
     * Refused: the first that stands in the way, SHMLIMIT_REASON_…; 0 if granted.
     */
    uint32_t reason;
    /**
     * Refused: which rule, by its place in the configuration, if it was one; else -1.
     */
    int32_t rule;
} shmlimit_answer;

/**
 * One setting: a key of docs/configuration.md and its value, or "rate" ("35/s"), "burst", "algorithm" of the one rule.
 */
typedef struct shmlimit_setting {
    /**
     * Such as "concurrency" or "breaker.p_throttle".
     */
    const char *key;
    /**
     * As in a configuration file; quotes may be left out.
     */
    const char *value;
} shmlimit_setting;

/**
 * How to open a limiter. All zero but `size`: as it is, or made from the preset of its name.
 *
 * Whoever names a preset, a configuration or settings wants exactly that: if the limiter is there and differs, it is not
 * opened (SHMLIMIT_CONFIG_MISMATCH).
 */
typedef struct shmlimit_options {
    /**
     * sizeof(shmlimit_options).
     */
    size_t size;
    /**
     * Where limiters live; NULL = SHMLIMIT_DIR, ANIVAULT_DIR, or the usual place.
     */
    const char *directory;
    /**
     * The preset to make it from, whatever its name; NULL = the one of its name.
     */
    const char *preset;
    /**
     * The text of a configuration file (TOML); NULL = none.
     */
    const char *config;
    /**
     * Settings that go on top.
     */
    const struct shmlimit_setting *settings;
    /**
     * How many settings there are.
     */
    size_t setting_count;
    /**
     * Processes of one group have their turns together; NULL = SHMLIMIT_GROUP, or each its own.
     */
    const char *group;
    /**
     * SHMLIMIT_EXISTING and the like, added up.
     */
    uint32_t flags;
    /**
     * See SHMLIMIT_SHARE.
     */
    uint32_t gid;
} shmlimit_options;

/**
 * Names. Freed with everything in it by shmlimit_names_free().
 */
typedef struct shmlimit_names {
    /**
     * sizeof(shmlimit_names) of the library.
     */
    size_t size;
    /**
     * The directory looked in; of presets NULL.
     */
    const char *directory;
    /**
     * The names, in order.
     */
    const char *const *names;
    /**
     * How many there are.
     */
    size_t count;
} shmlimit_names;

/**
 * One response header.
 */
typedef struct shmlimit_header {
    /**
     * Such as "Retry-After"; in any case.
     */
    const char *name;
    /**
     * Its value, as it came.
     */
    const char *value;
} shmlimit_header;

/**
 * How a call ended: a status or an error, and what else is known.
 */
typedef struct shmlimit_outcome {
    /**
     * sizeof(shmlimit_outcome).
     */
    size_t size;
    /**
     * The HTTP status, 100 to 599; 0 if there was no answer, or if `head` has it.
     */
    uint32_t status;
    /**
     * SHMLIMIT_ERROR_…, if there was no answer; else 0.
     */
    uint32_t error;
    /**
     * Response headers: Retry-After is heeded, and what they say about limits if the limiter is configured for them.
     */
    const struct shmlimit_header *headers;
    /**
     * How many headers there are.
     */
    size_t header_count;
    /**
     * The head of the response as it came (status line and headers), besides or instead of `headers`; NULL = none. Of
     * several, after redirects, the last counts.
     */
    const char *head;
    /**
     * How many bytes the head has; it need not end in NUL.
     */
    size_t head_length;
    /**
     * How long the call took, in nanoseconds; 0 = unknown.
     */
    uint64_t latency_ns;
    /**
     * What it really cost, of those units of which that is known by now.
     */
    const struct shmlimit_cost *costs;
    /**
     * How many costs there are.
     */
    size_t cost_count;
    /**
     * Which attempt it was, from 1; 0 = unknown: failures in a row are counted, whoever made them.
     */
    uint32_t attempt;
    /**
     * For whom it was made, where no grant knows: SHMLIMIT_PRIORITY_….
     */
    uint32_t priority;
} shmlimit_outcome;

/**
 * What a limiter made of an outcome, and what to do now. Set `size`; the rest is filled in.
 */
typedef struct shmlimit_advice {
    /**
     * sizeof(shmlimit_advice).
     */
    size_t size;
    /**
     * How long to wait before trying again, in nanoseconds, drawn at random where the configuration says so.
     */
    uint64_t wait_ns;
    /**
     * The longest that wait could have been.
     */
    uint64_t wait_at_most_ns;
    /**
     * The ratio of errors among the outcomes that count.
     */
    double error_ratio;
    /**
     * Whether to try again: 1 or 0.
     */
    uint32_t retry;
    /**
     * How the call ended, as far as it matters: SHMLIMIT_CLASS_….
     */
    uint32_t outcome_class;
    /**
     * Where the wait comes from: SHMLIMIT_SOURCE_….
     */
    uint32_t wait_source;
    /**
     * Outcomes that count, this one included.
     */
    uint32_t samples;
    /**
     * Successive 429.
     */
    uint32_t consec429;
    /**
     * How many changes of the breaker's state this led to; shmlimit_snapshot_take() lists the newest.
     */
    uint32_t transitions;
} shmlimit_advice;

/**
 * One rule at one moment.
 */
typedef struct shmlimit_rule_snapshot {
    /**
     * Its name.
     */
    const char *name;
    /**
     * What it counts.
     */
    const char *unit;
    /**
     * Its algorithm.
     */
    const char *algorithm;
    /**
     * Units per period.
     */
    uint64_t limit;
    /**
     * The period, in nanoseconds.
     */
    uint64_t period_ns;
    /**
     * Most units at once.
     */
    uint64_t capacity;
    /**
     * Units that only high priorities may use.
     */
    uint64_t reserve;
    /**
     * Whole units left, for high priorities.
     */
    uint64_t remaining;
    /**
     * Whole units left, for the background.
     */
    uint64_t remaining_background;
} shmlimit_rule_snapshot;

/**
 * One attached process at one moment.
 */
typedef struct shmlimit_participant_snapshot {
    /**
     * Program name.
     */
    const char *program;
    /**
     * How long it has been attached, in nanoseconds.
     */
    uint64_t attached_for_ns;
    /**
     * How long it has held at least one permit without a break; SHMLIMIT_NEVER = it holds none.
     */
    uint64_t held_for_ns;
    /**
     * How often it was granted a call.
     */
    uint64_t granted;
    /**
     * How often it was refused one.
     */
    uint64_t refused;
    /**
     * How often its waiting calls looked whether it was their turn.
     */
    uint64_t looked;
    /**
     * Process id, in its own pid namespace.
     */
    uint32_t pid;
    /**
     * Permits it holds.
     */
    uint32_t held;
} shmlimit_participant_snapshot;

/**
 * One waiting call at one moment.
 */
typedef struct shmlimit_waiter_snapshot {
    /**
     * Program name of who waits.
     */
    const char *program;
    /**
     * What it needs.
     */
    const struct shmlimit_cost *costs;
    /**
     * How many costs there are.
     */
    size_t cost_count;
    /**
     * Stands for its group: equal for those who have their turns together.
     */
    uint64_t group;
    /**
     * How long it has waited, in nanoseconds.
     */
    uint64_t waited_for_ns;
    /**
     * In how long it will look again by itself.
     */
    uint64_t looks_in_ns;
    /**
     * In how long it gives up; SHMLIMIT_NEVER = it waits as long as it takes.
     */
    uint64_t gives_up_in_ns;
    /**
     * Process id of who waits, in its own pid namespace.
     */
    uint32_t pid;
    /**
     * SHMLIMIT_PRIORITY_….
     */
    uint32_t priority;
    /**
     * 1 = it has not looked when it should: stopped, starved or dying.
     */
    uint32_t late;
    /**
     * Always 0.
     */
    uint32_t reserved;
} shmlimit_waiter_snapshot;

/**
 * What headers said of one window of the provider's.
 */
typedef struct shmlimit_window_snapshot {
    /**
     * Its name.
     */
    const char *name;
    /**
     * Its limit.
     */
    uint64_t limit;
    /**
     * What is left of it.
     */
    uint64_t remaining;
    /**
     * In how long it starts anew, in nanoseconds; SHMLIMIT_NEVER = unknown.
     */
    uint64_t resets_in_ns;
} shmlimit_window_snapshot;

/**
 * A change of the breaker's state.
 */
typedef struct shmlimit_transition {
    /**
     * From which state.
     */
    const char *from;
    /**
     * To which.
     */
    const char *to;
    /**
     * Why.
     */
    const char *reason;
    /**
     * How long ago, in nanoseconds.
     */
    uint64_t ago_ns;
} shmlimit_transition;

/**
 * A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by shmlimit_snapshot_free().
 * Its lists are lists of pointers, so that all of these structs can grow at their ends.
 */
typedef struct shmlimit_snapshot {
    /**
     * sizeof(shmlimit_snapshot) of the library.
     */
    size_t size;
    /**
     * The limiter's name.
     */
    const char *name;
    /**
     * The directory it lives in.
     */
    const char *directory;
    /**
     * Whose limits these are.
     */
    const char *provider;
    /**
     * What kind of breaker there is: "none", "fsm" (five states), "consecutive".
     */
    const char *breaker;
    /**
     * Its state.
     */
    const char *state;
    /**
     * Why the state began; NULL if it has never changed.
     */
    const char *reason;
    /**
     * Who closed the gate: program name; NULL while it is open.
     */
    const char *gate_program;
    /**
     * The window that the pace is for; NULL if there is none.
     */
    const char *pace_bottleneck;
    /**
     * How long the state has lasted, in nanoseconds.
     */
    uint64_t state_for_ns;
    /**
     * In how long it ends by itself; SHMLIMIT_NEVER if it does not.
     */
    uint64_t eta_ns;
    /**
     * In how long the gate that a Retry-After closed opens; 0 while it is open.
     */
    uint64_t gate_opens_in_ns;
    /**
     * How long ago it was closed.
     */
    uint64_t gate_recorded_ns;
    /**
     * The smallest gap between calls that headers taught; 0 if none.
     */
    uint64_t pace_interval_ns;
    /**
     * Units a second that the breaker allows; 0 while every call is blocked.
     */
    double rate;
    /**
     * The ratio of errors among the outcomes that count now.
     */
    double error_ratio;
    /**
     * How calls ended since the limiter was made: well.
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
     * Nanoseconds all calls took together whose time was told.
     */
    uint64_t latency_sum_ns;
    /**
     * How many of them took up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000 ms, each; the
     * last: longer.
     */
    uint64_t latency[16];
    /**
     * How often a damaged state was started afresh.
     */
    uint64_t resets;
    /**
     * Most calls in flight, as configured; 0 = any number.
     */
    uint32_t concurrency;
    /**
     * Most of them for the background; 0 = as many as any.
     */
    uint32_t concurrency_background;
    /**
     * Most calls in flight in this state; 0 = any number.
     */
    uint32_t concurrency_now;
    /**
     * Permits that are out.
     */
    uint32_t in_flight;
    /**
     * Those of them that background calls hold.
     */
    uint32_t in_flight_background;
    /**
     * Those of them whose holder has died: they come back as soon as somebody needs one.
     */
    uint32_t held_by_dead;
    /**
     * 1 = an operator put it offline.
     */
    uint32_t offline;
    /**
     * Outcomes that count now.
     */
    uint32_t samples;
    /**
     * Successive 429.
     */
    uint32_t consec429;
    /**
     * Successive failures, of a consecutive breaker.
     */
    uint32_t failures;
    /**
     * Who closed the gate: process id.
     */
    uint32_t gate_pid;
    /**
     * Always 0.
     */
    uint32_t reserved;
    /**
     * The rules, in the order of the configuration.
     */
    const struct shmlimit_rule_snapshot *const *rules;
    /**
     * How many rules there are.
     */
    size_t rule_count;
    /**
     * Who is attached. The dead are not listed.
     */
    const struct shmlimit_participant_snapshot *const *participants;
    /**
     * How many of them there are.
     */
    size_t participant_count;
    /**
     * Who waits, in the order in which they will be served.
     */
    const struct shmlimit_waiter_snapshot *const *waiters;
    /**
     * How many of them there are.
     */
    size_t waiter_count;
    /**
     * The windows that headers told of.
     */
    const struct shmlimit_window_snapshot *const *windows;
    /**
     * How many of them there are.
     */
    size_t window_count;
    /**
     * The newest changes of state, the newest last.
     */
    const struct shmlimit_transition *const *transitions;
    /**
     * How many of them are listed.
     */
    size_t transition_count;
} shmlimit_snapshot;

/**
 * A call that waits, moved on by its program: a number that is never 0 and never given twice.
 */
typedef uint64_t shmlimit_wait;

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
     * Checksum of the five words before it.
     */
    uint64_t checksum;
    /**
     * Zero.
     */
    uint64_t unused[10];
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
     * The algorithm's business; all zero is a fresh rule. Not stable between versions of the library.
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
typedef struct shmlimit_segment_hot {
    /**
     * Rules in use.
     */
    uint8_t rule_count;
    /**
     * Units in use.
     */
    uint8_t unit_count;
    /**
     * Zero.
     */
    uint8_t unused_counts[6];
    /**
     * Most calls in flight in this state; 0 = no bound but the library's own.
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
     * Before this limiter time no breaker, gate or pace is in the way.
     */
    uint64_t attention;
    /**
     * Zero.
     */
    uint64_t unused[4];
    /**
     * Derived numbers of each rule. Not stable between versions of the library.
     */
    uint64_t terms[SHMLIMIT_SEGMENT_RULES][8];
} shmlimit_segment_hot;

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
     * Zero.
     */
    uint8_t unused[5];
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
     * The rate in force, in billionths of a unit a second; 0 = the full one.
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
     * Zero.
     */
    uint64_t unused;
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
} shmlimit_segment_pace;

/**
 * What headers last said about a window of the policy.
 */
typedef struct shmlimit_segment_sight {
    /**
     * Its limit.
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
} shmlimit_segment_sight;

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
typedef struct shmlimit_segment_sheet {
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
     * Zero.
     */
    uint64_t unused_note[4];
    /**
     * What headers taught.
     */
    struct shmlimit_segment_pace pace;
    /**
     * Zero.
     */
    uint64_t unused_pace[4];
    /**
     * What headers said about each window.
     */
    struct shmlimit_segment_sight sights[SHMLIMIT_SEGMENT_WINDOWS];
    /**
     * The newest changes of state.
     */
    struct shmlimit_segment_transition transitions[SHMLIMIT_SEGMENT_TRANSITIONS];
} shmlimit_segment_sheet;

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
     * Zero.
     */
    uint64_t unused;
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
 * A call that waits. Transactions only, except for its bell.
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
    uint32_t bell;
    /**
     * Not used.
     */
    uint32_t bell_unused;
} shmlimit_segment_entry;

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
 *    (memory_order_relaxed will do), or 32 bits for the lock and the bells. A plain read through the struct is a data
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
 * that holds the lock, between an odd and an even version. The lock and the bells: anybody, they are futexes. The counts
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
     * Not 0: nothing is granted from this file any more, open it again by its name.
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
     * What is in force.
     */
    struct shmlimit_segment_hot hot;
    /**
     * What was configured.
     */
    struct shmlimit_segment_policy policy;
    /**
     * How the server is doing.
     */
    struct shmlimit_segment_sheet sheet;
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
     * Ring of the newest outcomes: limiter time << 2 | class. See `sheet.health.oldest`.
     */
    uint64_t outcomes[SHMLIMIT_SEGMENT_OUTCOMES];
    /**
     * Ring of the newest admissions: limiter times. See `sheet.pace.admitted`.
     */
    uint64_t admissions[SHMLIMIT_SEGMENT_ADMISSIONS];
    /**
     * Zero.
     */
    uint64_t unused[480];
} shmlimit_segment;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What the last failure in this thread was, in words: what happened, which file, what to do. Empty if there was none.
 *
 * Never NULL; valid until the next failure in this thread; do not free it.
 */
const char *shmlimit_last_error(void);

/**
 * The operating system's number (errno) of the last failure in this thread; 0 if it was none of the system's.
 */
int32_t shmlimit_last_errno(void);

/**
 * The name of a returned number, such as "config_mismatch"; "unknown" for a number that is none.
 *
 * Never NULL; static: do not free it.
 */
const char *shmlimit_code_name(int32_t code);

/**
 * The name of what stands in the way, such as "rate"; "unknown" for a number that is none.
 *
 * Never NULL; static: do not free it.
 */
const char *shmlimit_reason_name(uint32_t reason);

/**
 * Asks once and never waits (except for the lock, a second at most). SHMLIMIT_OK: the call may be made. SHMLIMIT_REFUSED:
 * not now, see `answer`.
 *
 * `request` may be NULL: one request for the background; its timeout, deadline and stop do not matter here. `*grant` is
 * 0 unless granted. `answer` may be NULL.
 */
int32_t shmlimit_try_acquire(const struct shmlimit_limiter *limiter,
                             const struct shmlimit_request *request,
                             shmlimit_grant *grant,
                             struct shmlimit_answer *answer);

/**
 * Asks, and waits until the call may be made, in the queue of all processes. A request whose deadline cannot be met is
 * refused at once; so is one that costs more than a rule ever allows, and one while nobody knows when calls may be made
 * again. Its arguments are those of shmlimit_try_acquire().
 */
int32_t shmlimit_acquire(const struct shmlimit_limiter *limiter,
                         const struct shmlimit_request *request,
                         shmlimit_grant *grant,
                         struct shmlimit_answer *answer);

/**
 * The call is over: gives the permit back. After a failure (SHMLIMIT_BUSY, say) it can be tried again. If you know how it ended, shmlimit_record() is better.
 */
int32_t shmlimit_release(shmlimit_grant grant);

/**
 * The call was never sent: gives the permit back, and to every rule what it can still take back.
 */
int32_t shmlimit_cancel(shmlimit_grant grant);

/**
 * Opens a limiter, and makes it if need be. Open it once per process, and close it with shmlimit_close(); a handle may be
 * used by all threads, and by forked children.
 *
 * `name` is what all programs that share it call it; `options` may be NULL; `*limiter` is NULL after a failure.
 */
int32_t shmlimit_open(const char *name,
                      const struct shmlimit_options *options,
                      struct shmlimit_limiter **limiter);

/**
 * Closes a limiter. Grants that are out stay valid until they are given back. NULL is fine, and does nothing; a second
 * time is SHMLIMIT_CLOSED.
 */
int32_t shmlimit_close(struct shmlimit_limiter *limiter);

/**
 * Puts the breaker into a state ("normal", "throttle", "sleep", "half_open", "cache_only", "offline", "online", "closed",
 * "open"), or opens the gate ("clear_gate"), for all who share the limiter at once.
 */
int32_t shmlimit_force(const struct shmlimit_limiter *limiter,
                       const char *state);

/**
 * Changes one setting while the limiter is in use, for all who share it at once: a key and a value as in
 * docs/configuration.md.
 */
int32_t shmlimit_set(const struct shmlimit_limiter *limiter,
                     const char *key,
                     const char *value);

/**
 * The configuration in force, as the text of a configuration file. Free it with shmlimit_text_free(); NULL after a failure.
 */
int32_t shmlimit_config(const struct shmlimit_limiter *limiter,
                        char **text);

/**
 * Frees a text that this library made. NULL is fine.
 */
void shmlimit_text_free(char *text);

/**
 * The limiters in a directory; NULL = the usual one. Free them with shmlimit_names_free(); `*names` is NULL after a failure.
 */
int32_t shmlimit_list(const char *directory,
                      const struct shmlimit_names **names);

/**
 * The presets, by whose names limiters can be opened without a configuration. Free them with shmlimit_names_free().
 */
int32_t shmlimit_presets(const struct shmlimit_names **names);

/**
 * Frees names. NULL is fine.
 */
void shmlimit_names_free(const struct shmlimit_names *names);

/**
 * The name of a class, such as "5xx"; "unknown" for a number that is none.
 *
 * Never NULL; static: do not free it.
 */
const char *shmlimit_class_name(uint32_t class_);

/**
 * The call is over, and this is how it ended: gives the permit back, and tells all who share the limiter. After a failure
 * the grant is still out: mend the outcome, or release it. `advice` may be NULL.
 */
int32_t shmlimit_record(shmlimit_grant grant,
                        const struct shmlimit_outcome *outcome,
                        struct shmlimit_advice *advice);

/**
 * Records how a call ended that was not granted here: all who share the limiter hear of it. `advice` may be NULL.
 */
int32_t shmlimit_record_call(const struct shmlimit_limiter *limiter,
                             const struct shmlimit_outcome *outcome,
                             struct shmlimit_advice *advice);

/**
 * Everything there is to see of a limiter, for people and dashboards. Free it with shmlimit_snapshot_free(); `*snapshot` is
 * NULL after a failure.
 */
int32_t shmlimit_snapshot_take(const struct shmlimit_limiter *limiter,
                               const struct shmlimit_snapshot **snapshot);

/**
 * Frees a snapshot and everything in it. NULL is fine.
 */
void shmlimit_snapshot_free(const struct shmlimit_snapshot *snapshot);

/**
 * The version of the library, such as "0.1.0".
 *
 * Never NULL; static: do not free it.
 */
const char *shmlimit_version(void);

/**
 * The layout version of the segments this library makes and opens. It refuses all others and leaves them alone.
 */
uint32_t shmlimit_layout_version(void);

/**
 * How many bytes every segment of that layout has; one with sliding logs is longer.
 */
uint64_t shmlimit_segment_size(void);

/**
 * Begins to wait for a call, without waiting: for programs with an event loop of their own. Nothing is asked before the
 * first shmlimit_wait_step(), but a timeout runs from here. The request's `stop` does not matter here.
 */
int32_t shmlimit_wait_begin(const struct shmlimit_limiter *limiter,
                            const struct shmlimit_request *request,
                            shmlimit_wait *wait);

/**
 * Asks, or looks whether it is this call's turn. SHMLIMIT_SLEEP: let `*sleep_ns` nanoseconds pass, then step again. Any
 * other number ends the wait: SHMLIMIT_OK with a grant, SHMLIMIT_REFUSED, or a failure.
 *
 * Nobody can be woken from outside: that a permit came back is noticed within 2 ms by the first in the queue.
 */
int32_t shmlimit_wait_step(shmlimit_wait wait,
                           uint64_t *sleep_ns,
                           shmlimit_grant *grant,
                           struct shmlimit_answer *answer);

/**
 * Gives up waiting: leaves the queue at once. Only for a wait whose last step was SHMLIMIT_SLEEP, or that had none.
 */
int32_t shmlimit_wait_end(shmlimit_wait wait);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, checksum, 40, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_header, unused, 48, 80);

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

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_hot) == 576);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, rule_count, 0, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, unit_count, 1, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, unused_counts, 2, 6);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, concurrency, 8, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, concurrency_background, 12, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, queueing, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, attention, 24, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, unused, 32, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_hot, terms, 64, 512);

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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_rule, unused, 35, 5);
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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_health, unused, 120, 8);

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

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_pace) == 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, interval, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, tightened_at, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, admitted, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_pace, bottleneck, 24, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_sight) == 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sight, limit, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sight, remaining, 8, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sight, reset_at, 16, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sight, seen, 24, 8);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_transition) == 16);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, at, 0, 8);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, from, 8, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, to, 9, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, cause, 10, 1);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_transition, unused, 11, 5);

SHMLIMIT_STATIC_ASSERT(sizeof(struct shmlimit_segment_sheet) == 896);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, health, 0, 128);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, tallies, 128, 192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, gate_note, 320, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, unused_note, 352, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, pace, 384, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, unused_pace, 416, 32);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, sights, 448, 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_sheet, transitions, 704, 192);

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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_slot, unused, 56, 8);
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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, bell, 120, 4);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment_entry, bell_unused, 124, 4);

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
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, hot, 576, 576);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, policy, 1152, 2048);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, sheet, 3200, 896);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, journal, 4096, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, slots, 12288, 65536);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, queue, 77824, 256);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, turns, 78080, 65536);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, entries, 143616, 131072);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, outcomes, 274688, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, admissions, 282880, 8192);
SHMLIMIT_SEGMENT_FIELD(shmlimit_segment, unused, 291072, 3840);

#undef SHMLIMIT_SEGMENT_FIELD
#undef SHMLIMIT_STATIC_ASSERT

#endif  /* SHMLIMIT_H */
