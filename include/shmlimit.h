/*
 * shmlimit: one rate-limit budget for all programs on the machine that call the same API.
 *
 * C++ programs can use shmlimit.hpp, which wraps this header. The guide for both is docs/c.md.
 *
 *     shmlimit_limiter *tmdb;
 *     shmlimit_grant grant;
 *     if (shmlimit_open("tmdb", NULL, &tmdb) != SHMLIMIT_OK)
 *         return fprintf(stderr, "%s\n", shmlimit_last_error()), 1;
 *     if (shmlimit_acquire(tmdb, NULL, &grant, NULL) == SHMLIMIT_OK) {
 *         ... call the API; the server answers 429 with Retry-After: 30 ...
 *         shmlimit_header after = {"Retry-After", "30"};
 *         shmlimit_outcome outcome = {.size = sizeof outcome, .status = 429, .headers = &after, .header_count = 1};
 *         if (shmlimit_record(grant, &outcome, NULL) != SHMLIMIT_OK)  ... now no program calls for 30 seconds
 *             fprintf(stderr, "%s\n", shmlimit_last_error());
 *     }
 *     shmlimit_close(tmdb);
 *
 * API conventions
 *
 * Names      All names begin with shmlimit_ or SHMLIMIT_.
 * Results    A function that can fail returns an int32_t. 0 (SHMLIMIT_OK) means done or granted. 1 to 15 are other
 *            answers. 16 and more are failures: nothing was changed, and shmlimit_last_error() says what failed, on
 *            which file, why, and what to do. A number never changes its meaning. Later versions may add numbers. A
 *            function that cannot fail returns its value.
 * Strings    UTF-8 with a NUL at the end, on every system, also paths. Texts from a server may have any bytes. A returned
 *            `const char *` belongs to the library: do not free it. It is never NULL unless its comment says so.
 * Pointers   A NULL where a pointer is needed is refused. Any other pointer must point to what its type says. The library
 *            keeps no pointer after the call. It clears the place of a result first, so after a failure the place is
 *            empty too.
 * Handles    A shmlimit_limiter * is not a real pointer: it is a checked number, like a grant and a pending wait. A use
 *            after the end, or closing twice, is a failure with its own number, never a crash.
 * Structs    A struct begins with its size. Set `size` to sizeof and every field that you do not use to 0
 *            ({.size = sizeof x}). So a later library knows which fields your program has: structs grow at their ends.
 * Panics     No Rust panic leaves the library (SHMLIMIT_PANICKED), and nothing unwinds through it.
 * Threads    Every function may be called from any thread at any time. The library starts no thread. Each thread has its
 *            own last error.
 * Fork       Handles work in a forked child. The child attaches itself on first use, also if other threads were inside
 *            the library during the fork. Grants stay with the parent: the child's copies give nothing back, but an
 *            outcome that the child records counts. A child that steps a wait enters the queue as a call of its own.
 * Exit       However a process ends, its permits come back and it leaves the queue.
 * Signals    No function is async-signal-safe: do not call them in a signal handler. A signal does not end a wait, but
 *            the request's `stop` is called at once.
 * Cancelling No function is a cancellation point. pthread_cancel() takes effect at the caller's next cancellation point,
 *            or, if the thread's cancellation is asynchronous, when the function returns. `*grant` is written before, so
 *            a cleanup handler can release it if it is not 0. To end a wait, use the request's `stop`.
 * Versions   Programs that share a limiter must agree on the layout version. A program that links dynamically can compare
 *            SHMLIMIT_LAYOUT_VERSION with shmlimit_layout_version(). 64-bit platforms only.
 */

#ifndef SHMLIMIT_H
#define SHMLIMIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* ---- Version ------------------------------------------------------------------- */

/** The version of this header. Compare it with shmlimit_version(), which is that of the library. */
#define SHMLIMIT_VERSION "0.1.0"
#define SHMLIMIT_VERSION_MAJOR 0
#define SHMLIMIT_VERSION_MINOR 1
#define SHMLIMIT_VERSION_PATCH 0

/** Whether this header has this version or a later one: #if SHMLIMIT_VERSION_AT_LEAST(0, 2, 0). */
#define SHMLIMIT_VERSION_AT_LEAST(major, minor, patch) \
    (SHMLIMIT_VERSION_MAJOR > (major) || (SHMLIMIT_VERSION_MAJOR == (major) && \
     (SHMLIMIT_VERSION_MINOR > (minor) || (SHMLIMIT_VERSION_MINOR == (minor) && \
      SHMLIMIT_VERSION_PATCH >= (patch)))))

/** The layout version of limiters' files that this header describes. Compare it with shmlimit_layout_version(). */
#define SHMLIMIT_LAYOUT_VERSION 6
/** The size of a limiter's file without sliding logs, in bytes. Compare it with shmlimit_segment_size(). */
#define SHMLIMIT_SEGMENT_SIZE 294912

/**
 * The version of the library that the program runs with, such as "0.1.0". Compare it with SHMLIMIT_VERSION.
 *
 * Never NULL. Static: do not free it.
 */
const char *shmlimit_version(void);

/**
 * The layout version of the files that the library creates and opens. It refuses all others and does not change them.
 */
uint32_t shmlimit_layout_version(void);

/** The size of a limiter's file without sliding logs, in bytes. A file with sliding logs is larger. */
uint64_t shmlimit_segment_size(void);

/* ---- Results and errors -------------------------------------------------------- */

/** The function did its work. For an acquire: the call is granted. */
#define SHMLIMIT_OK 0
/** Not now: shmlimit_answer says why, and when to ask again. Nothing was taken. */
#define SHMLIMIT_REFUSED 1
/** The request's `stop` function ended the wait. The call has left the queue. Nothing was taken. */
#define SHMLIMIT_STOPPED 2
/** Only from shmlimit_pending_step(): sleep, then step again. */
#define SHMLIMIT_SLEEP 3
/** A pointer that must not be NULL is NULL. */
#define SHMLIMIT_NULL_POINTER 16
/** No version of this library has this `size` of the struct. Set it to sizeof the struct. */
#define SHMLIMIT_WRONG_SIZE 17
/** A text is not UTF-8. */
#define SHMLIMIT_NOT_UTF8 18
/** An argument or a field is out of its range, or unknown to this version. */
#define SHMLIMIT_BAD_VALUE 19
/** The limiter or test clock is closed, or was never opened. */
#define SHMLIMIT_CLOSED 20
/** The grant has ended (released, cancelled or recorded), or never existed. */
#define SHMLIMIT_GRANT_DONE 21
/** The wait has ended, never existed, or another thread is stepping it. */
#define SHMLIMIT_PENDING_DONE 22
/** A bug of this library. Please report it. */
#define SHMLIMIT_PANICKED 23
/** More handles are open than this library can number. */
#define SHMLIMIT_TOO_MANY 24
/** The name of a limiter is not a valid file name on every system. */
#define SHMLIMIT_BAD_NAME 32
/** The limiter does not exist, and no preset has its name. */
#define SHMLIMIT_UNKNOWN_LIMITER 33
/** SHMLIMIT_OPEN_CREATE: the limiter already exists. */
#define SHMLIMIT_ALREADY_EXISTS 34
/** The directory of the limiters cannot be used, or is not safe to use. */
#define SHMLIMIT_DIRECTORY 35
/** The limiter's file belongs to a user, or has permissions, that this user cannot trust. */
#define SHMLIMIT_UNSAFE_FILE 36
/** The file is not a limiter of this layout version. It was not changed. */
#define SHMLIMIT_FOREIGN 37
/** The configuration in the limiter's file is damaged. */
#define SHMLIMIT_DAMAGED 38
/** The directory is on a network file system, where locks and shared memory are not reliable. */
#define SHMLIMIT_NETWORK_FILE_SYSTEM 39
/** A process that is stopped, or gets no processor time, holds the limiter's lock. Try again. */
#define SHMLIMIT_BUSY 40
/** All slots of the limiter are in use by processes. */
#define SHMLIMIT_SLOTS_FULL 41
/** The limiter exists with other settings than the options ask for. See `on_mismatch`. */
#define SHMLIMIT_CONFIG_MISMATCH 42
/** An existing limiter cannot change its settings to these. Only a new one can have them. */
#define SHMLIMIT_DOES_NOT_FIT 43
/** The configuration contradicts itself. */
#define SHMLIMIT_POLICY 44
/** The configuration text or a setting is not valid. */
#define SHMLIMIT_CONFIG 45
/** An environment variable has a value that is not valid, or does not fit the limiter. */
#define SHMLIMIT_ENVIRONMENT 46
/** The HTTP status of an outcome is not between 100 and 599. */
#define SHMLIMIT_BAD_STATUS 47
/** The limiter's breaker has no state of this name. */
#define SHMLIMIT_NO_SUCH_STATE 48
/** A cost is in a unit that no rule of the limiter counts. */
#define SHMLIMIT_UNKNOWN_UNIT 49
/** Other programs deleted or replaced the limiter each time it was being opened. */
#define SHMLIMIT_REPLACED 50
/** A call of the operating system failed. shmlimit_last_errno() returns its error number. */
#define SHMLIMIT_IO 51
/** This operating system lacks something that a shared limiter needs. */
#define SHMLIMIT_UNSUPPORTED 52

/**
 * The library cannot tell which processes are alive: the file system drops locks, or the process may not examine
 * locks.
 */
#define SHMLIMIT_LIVENESS 53
/** Programs use the limiter, so shmlimit_remove() did not remove it. shmlimit_last_error() names them. */
#define SHMLIMIT_IN_USE 54
/** An error that this version of the C ABI has no number for. */
#define SHMLIMIT_OTHER 99

/**
 * The name of a result, such as "config_mismatch", or "unknown" for any other number.
 *
 * Never NULL. Static: do not free it.
 */
const char *shmlimit_code_name(int32_t code);

/**
 * The message of the last failure in this thread: what failed, on which file, why, and what to do. Empty if no call failed.
 *
 * Never NULL. Valid until the next failure in this thread. Do not free it.
 */
const char *shmlimit_last_error(void);

/**
 * The error number of the operating system (errno, on Windows GetLastError()) for the last failure in this thread; 0 if
 * that failure did not come from the system.
 */
int32_t shmlimit_last_errno(void);

/* ---- Opening and closing a limiter --------------------------------------------- */

/** An open limiter. It is a checked number, not a pointer that can be read. */
typedef struct shmlimit_limiter shmlimit_limiter;

/** One setting: a key of docs/configuration.md and its value. */
typedef struct shmlimit_setting {
    /** The key, such as "breaker.p_throttle". */
    const char *key;
    /** The value as in a configuration file, with or without quotes. */
    const char *value;
} shmlimit_setting;

/**
 * Open the limiter only if it exists. Create neither it nor its directory. If the options name settings, they are
 * compared as without this flag, and `on_mismatch` says what happens.
 */
#define SHMLIMIT_OPEN_EXISTING 1
/** Create the limiter. If it exists, fail with SHMLIMIT_ALREADY_EXISTS. */
#define SHMLIMIT_OPEN_CREATE 2
/** Create the limiter afresh. An existing one is replaced. */
#define SHMLIMIT_OPEN_REPLACE 4
/** Accept a directory on a network file system, at your own risk. */
#define SHMLIMIT_OPEN_ALLOW_NETWORK_FS 8
/** Ignore environment variables that change settings, such as SHMLIMIT_RATE_BASE. */
#define SHMLIMIT_OPEN_IGNORE_ENVIRONMENT 16
/** Share the directory with the group of users that has the number `gid`. Not on Windows: use `shared_with`. */
#define SHMLIMIT_OPEN_SHARE 32
/** Fail with SHMLIMIT_CONFIG_MISMATCH. */
#define SHMLIMIT_MISMATCH_ERROR 0
/** Use the limiter as it is. Its own settings apply. */
#define SHMLIMIT_MISMATCH_ADOPT 1
/** Change the settings of the limiter, for all programs that share it. Spent units stay spent. */
#define SHMLIMIT_MISMATCH_UPDATE 2

/** A virtual clock for tests, see shmlimit_test_clock_new(). It is a checked number, not a pointer that can be read. */
typedef struct shmlimit_test_clock shmlimit_test_clock;

/**
 * How to open a limiter. With `size` alone, an existing limiter is opened with its own settings. A limiter that does not
 * exist is created from the preset of its name.
 *
 * If the options name settings and the limiter exists with others, `on_mismatch` says what happens.
 */
typedef struct shmlimit_options {
    /** sizeof(shmlimit_options). */
    size_t size;
    /** The directory of the limiters; NULL = the value of SHMLIMIT_DIR or ANIVAULT_DIR, or else the default. */
    const char *directory;
    /** The preset to create the limiter from; NULL = the one with the limiter's name. */
    const char *preset;
    /** The text of a configuration file (TOML), not its path; NULL = none. */
    const char *config;
    /** Settings that override those of the preset and the configuration. */
    const struct shmlimit_setting *settings;
    /** How many elements `settings` has. 0 only if `settings` is NULL. */
    size_t setting_count;
    /**
     * Processes of the same group take turns as one; NULL = the group of SHMLIMIT_GROUP, or else each process is its
     * own group.
     */
    const char *group;
    /** Flags, joined with |: SHMLIMIT_OPEN_…; 0 = open the limiter, or create it if it does not exist. */
    uint32_t flags;
    /** The number of a group of users, for SHMLIMIT_OPEN_SHARE. */
    uint32_t gid;
    /**
     * The group of users with which to share the directory, or on Windows also a user (a name, or S-1-…); NULL = none.
     */
    const char *shared_with;
    /** The clock of a test, see shmlimit_test_clock_new(). It needs a `directory`. NULL = the clock of the machine. */
    const struct shmlimit_test_clock *test_clock;
    /**
     * The rate; NULL = none. A number and a time, such as "10/s", "40/10s" or "1000/day", with a unit
     * "tokens=30k/min". Several are separated by commas: "100/min, tokens=30k/min". Without a burst, no period,
     * wherever it begins, exceeds the rate (sliding_log). With a burst, it is a token bucket: a period may admit
     * rate + burst.
     */
    const char *rate;
    /**
     * The algorithm of the rate, such as "gcra"; NULL = sliding_log, or token_bucket with a burst or above 100,000 per period.
     */
    const char *algorithm;
    /**
     * The most units that the rate allows at once; 0 = not set. One period may then admit rate + burst. Only with a
     * single rate.
     */
    uint64_t burst;
    /** The most calls in flight; 0 = not set. */
    uint32_t concurrency;
    /** How to handle an existing limiter with other settings: SHMLIMIT_MISMATCH_…. */
    uint32_t on_mismatch;
} shmlimit_options;

/**
 * Opens a limiter, and creates it if it does not exist. Open it once per process. All threads may use the handle, and
 * forked children too. Close it with shmlimit_close().
 *
 * All programs that open the same `name` in the same directory share the limiter. `options` may be NULL. `*limiter` is
 * NULL after a failure.
 */
int32_t shmlimit_open(const char *name,
                      const struct shmlimit_options *options,
                      struct shmlimit_limiter **limiter);

/**
 * Closes a limiter. Its grants stay valid until they are released. NULL is allowed and does nothing. Closing a limiter
 * twice returns SHMLIMIT_CLOSED.
 */
int32_t shmlimit_close(struct shmlimit_limiter *limiter);

/* ---- Asking for a call --------------------------------------------------------- */

/**
 * The default: of a request, background; of an outcome, the priority of its grant. Calls are served in this order:
 * webhook, user, background. webhook and user may use the reserve.
 */
#define SHMLIMIT_PRIORITY_DEFAULT 0
/** Work that can wait. */
#define SHMLIMIT_PRIORITY_BACKGROUND 1
/** A person waits for the call. */
#define SHMLIMIT_PRIORITY_USER 2
/** Another program waits for the call. */
#define SHMLIMIT_PRIORITY_WEBHOOK 3

/** An amount of one unit. */
typedef struct shmlimit_cost {
    /** The unit, such as "requests" or "tokens". */
    const char *unit;
    /** The amount. */
    uint64_t amount;
} shmlimit_cost;

/**
 * A request for one call. With `size` alone: it costs one request, has background priority, and waits without a timeout.
 */
typedef struct shmlimit_request {
    /** sizeof(shmlimit_request). */
    size_t size;
    /** The cost of the call. A unit that is not named costs 0, except "requests", which costs 1. */
    const struct shmlimit_cost *costs;
    /** How many elements `costs` has. 0 only if `costs` is NULL. */
    size_t cost_count;
    /**
     * How long the call may wait, in nanoseconds; 0 = no limit. If it cannot be granted in time, it is refused at once.
     */
    uint64_t timeout_ns;
    /**
     * Until when the call may wait, in nanoseconds since 1970; 0 = no limit. With a timeout, the earlier one counts. With a
     * test clock, a time on that clock.
     */
    uint64_t deadline_ns;
    /** The priority: SHMLIMIT_PRIORITY_…. */
    uint32_t priority;
    /** Must be 0. */
    uint32_t reserved;
    /**
     * A function that can end the wait; NULL = none. It is called when a signal interrupts the wait, and at least ten times
     * a second. The wait ends when it returns anything but 0. It must return: no exception, no longjmp.
     */
    int (*stop)(void *context);
    /** The argument of `stop`. */
    void *stop_context;
} shmlimit_request;

/**
 * The name of a priority, such as "user", or "unknown" for any other number. SHMLIMIT_PRIORITY_DEFAULT has no name.
 *
 * Never NULL. Static: do not free it.
 */
const char *shmlimit_priority_name(uint32_t priority);

/**
 * The right to make one call: a number that is never 0 and never reused. It holds a permit until it is released,
 * cancelled or recorded. It belongs to the process that acquired it: after a fork, ending the child's copy returns
 * nothing.
 */
typedef uint64_t shmlimit_grant;

/** A time that is not known, or never comes. */
#define SHMLIMIT_NEVER UINT64_MAX
/** The breaker sleeps. No call is allowed until its timer ends, or an operator ends it. */
#define SHMLIMIT_REASON_SLEEP 1
/** The breaker allows no call. Use cached answers. */
#define SHMLIMIT_REASON_CACHE_ONLY 2
/** A consecutive breaker is open. */
#define SHMLIMIT_REASON_OPEN 3
/** A Retry-After of the server is not over yet. */
#define SHMLIMIT_REASON_RETRY_AFTER 4
/** Response headers asked for a slower pace. */
#define SHMLIMIT_REASON_ADAPTIVE 5
/** All permits are in use. */
#define SHMLIMIT_REASON_CONCURRENCY 6
/** A rule has too few units left. */
#define SHMLIMIT_REASON_RATE 7
/** The call costs more than a rule ever allows. */
#define SHMLIMIT_REASON_COST_EXCEEDS_LIMIT 8
/** Other calls wait and come first. */
#define SHMLIMIT_REASON_QUEUED 9
/** The queue is full. */
#define SHMLIMIT_REASON_QUEUE_FULL 10
/** An operator has paused the limiter. */
#define SHMLIMIT_REASON_PAUSED 11
/** Other processes held the limiter's lock until the call's deadline. Nothing was decided. */
#define SHMLIMIT_REASON_BUSY 12
/** A reason that this version of the C ABI has no number for. */
#define SHMLIMIT_REASON_OTHER 99

/**
 * The name of a reason, such as "rate", or "unknown" for any other number.
 *
 * Never NULL. Static: do not free it.
 */
const char *shmlimit_reason_name(uint32_t reason);

/** The answer to a request. Set `size`; the library fills in the rest. */
typedef struct shmlimit_answer {
    /** sizeof(shmlimit_answer). */
    size_t size;
    /**
     * Granted: how long to delay the call, in nanoseconds, so that calls are evenly spaced. 0 except with a leaky
     * bucket.
     */
    uint64_t delay_ns;
    /**
     * Refused: when to ask again, in nanoseconds from now; without other traffic the call is allowed then. SHMLIMIT_NEVER =
     * never, or not known.
     */
    uint64_t retry_after_ns;
    /**
     * Refused: every timeout shorter than this, in nanoseconds, is refused too. SHMLIMIT_NEVER = every timeout is
     * refused, or not known.
     */
    uint64_t ready_after_ns;
    /** Refused: the reason, SHMLIMIT_REASON_…; 0 = granted. */
    uint32_t reason;
    /** Refused: the number of the rule that refused, from 0 in the order of the configuration; -1 = not a rule. */
    int32_t rule;
} shmlimit_answer;

/**
 * Asks for a grant, and waits for it in the queue of all processes. SHMLIMIT_OK: make the call, then end the grant.
 * SHMLIMIT_REFUSED: do not make it, `answer` says why. SHMLIMIT_STOPPED: `stop` ended the wait.
 *
 * A request is refused at once if its timeout or deadline cannot be met, if it costs more than a rule ever allows, or if
 * the time when calls are allowed again is not known.
 *
 * `request` may be NULL: one request with background priority and no timeout. `*grant` is 0 unless granted. `answer` may
 * be NULL.
 */
int32_t shmlimit_acquire(const struct shmlimit_limiter *limiter,
                         const struct shmlimit_request *request,
                         shmlimit_grant *grant,
                         struct shmlimit_answer *answer);

/**
 * Asks once and does not wait, except up to a second for the limiter's lock. The timeout, deadline and `stop` of the
 * request are ignored. Arguments and results are those of shmlimit_acquire().
 */
int32_t shmlimit_try_acquire(const struct shmlimit_limiter *limiter,
                             const struct shmlimit_request *request,
                             shmlimit_grant *grant,
                             struct shmlimit_answer *answer);

/* ---- Ending a call ------------------------------------------------------------- */

/**
 * Returns the permit of a grant when its call is over, without an outcome. After a failure, such as SHMLIMIT_BUSY,
 * the grant is still valid. If you know how the call ended, use shmlimit_record().
 */
int32_t shmlimit_release(shmlimit_grant grant);

/** Returns the permit and the cost of a call that was never sent. Rules that cannot take units back keep them. */
int32_t shmlimit_cancel(shmlimit_grant grant);

/** The connection was not made in time. */
#define SHMLIMIT_ERROR_CONNECT_TIMEOUT 1
/** The response did not arrive in time. */
#define SHMLIMIT_ERROR_READ_TIMEOUT 2
/** The name of the server could not be resolved. */
#define SHMLIMIT_ERROR_DNS 3
/** The connection was refused or broke. */
#define SHMLIMIT_ERROR_CONNECTION 4

/** One response header. */
typedef struct shmlimit_header {
    /** The name, such as "Retry-After", in upper or lower case. */
    const char *name;
    /** The value as the server sent it. */
    const char *value;
} shmlimit_header;

/** How a call ended: a status or an error, and what else the program knows. */
typedef struct shmlimit_outcome {
    /** sizeof(shmlimit_outcome). */
    size_t size;
    /** The HTTP status, 100 to 599; 0 = there was no response, or `head` has the status. */
    uint32_t status;
    /** Why there was no response: SHMLIMIT_ERROR_…; 0 = there was one. */
    uint32_t error;
    /**
     * Response headers. The library reads Retry-After, and the headers about limits that the limiter is configured for.
     */
    const struct shmlimit_header *headers;
    /** How many elements `headers` has. 0 only if `headers` is NULL. */
    size_t header_count;
    /**
     * The head of the response as the server sent it: status line and headers. It may be given with `headers` or instead of
     * them. If it has several heads, after redirects, the last one counts. NULL = none.
     */
    const char *head;
    /** How many bytes `head` has. It need not end with NUL. */
    size_t head_length;
    /** How long the call took, in nanoseconds; 0 = unknown. */
    uint64_t latency_ns;
    /** The actual cost of the call, for the units whose actual cost is known now. */
    const struct shmlimit_cost *costs;
    /** How many elements `costs` has. 0 only if `costs` is NULL. */
    size_t cost_count;
    /**
     * The number of the attempt, from 1; 0 = unknown: then it is counted from the consecutive failures of all
     * programs.
     */
    uint32_t attempt;
    /** The priority of a call without a grant: SHMLIMIT_PRIORITY_…. */
    uint32_t priority;
} shmlimit_outcome;

/** The server answered normally. */
#define SHMLIMIT_CLASS_OK 1
/** 429: the server received too many calls. */
#define SHMLIMIT_CLASS_THROTTLED 2
/** 5xx: the server failed. */
#define SHMLIMIT_CLASS_SERVER 3
/** The server did not answer. */
#define SHMLIMIT_CLASS_NET 4
/** Any other 4xx. It says nothing about the health of the server. */
#define SHMLIMIT_CLASS_IGNORED 5
/** There is no need to wait. */
#define SHMLIMIT_SOURCE_NONE 0
/** The server said how long, with Retry-After. */
#define SHMLIMIT_SOURCE_RETRY_AFTER 1
/** The library computed the wait from the failures in a row. */
#define SHMLIMIT_SOURCE_BACKOFF 2

/** Advice after an outcome: whether and when to try again. Set `size`; the library fills in the rest. */
typedef struct shmlimit_advice {
    /** sizeof(shmlimit_advice). */
    size_t size;
    /** How long to wait before the next attempt, in nanoseconds. It has a random part if the configuration says so. */
    uint64_t wait_ns;
    /** The longest time that `wait_ns` could have been, in nanoseconds. */
    uint64_t wait_at_most_ns;
    /** The ratio of errors among the outcomes in the breaker's window, from 0 to 1. */
    double error_ratio;
    /** 1 = try again, 0 = do not. */
    uint32_t retry;
    /** The class of the outcome: SHMLIMIT_CLASS_…. */
    uint32_t outcome_class;
    /** Where `wait_ns` comes from: SHMLIMIT_SOURCE_…. */
    uint32_t wait_source;
    /** How many outcomes are in the breaker's window, this one included. */
    uint32_t samples;
    /** The number of consecutive 429s. */
    uint32_t consec429;
    /**
     * How many times the breaker changed its state because of this outcome. shmlimit_snapshot_take() lists the newest.
     */
    uint32_t transitions;
} shmlimit_advice;

/**
 * The name of an outcome class, such as "5xx", or "unknown" for any other number.
 *
 * Never NULL. Static: do not free it.
 */
const char *shmlimit_class_name(uint32_t class_);

/**
 * Records how the call ended, for all programs that share the limiter, and returns its permit. After a failure the
 * grant is still valid: correct the outcome, or release the grant. `advice` may be NULL.
 */
int32_t shmlimit_record(shmlimit_grant grant,
                        const struct shmlimit_outcome *outcome,
                        struct shmlimit_advice *advice);

/** Records how a call ended that has no grant, for all programs that share the limiter. `advice` may be NULL. */
int32_t shmlimit_record_call(const struct shmlimit_limiter *limiter,
                             const struct shmlimit_outcome *outcome,
                             struct shmlimit_advice *advice);

/**
 * Counts a lookup in the program's own cache: `hit` is 1 if the cache had the answer, else 0. The counts are for
 * dashboards and affect no decision.
 */
int32_t shmlimit_count_cache(const struct shmlimit_limiter *limiter,
                             int32_t hit);

/* ---- Waiting in an event loop -------------------------------------------------- */

/**
 * A wait that the program steps: a number that is never 0 and never reused. After a fork the child's copy is a
 * separate wait, which is not in the queue yet.
 */
typedef uint64_t shmlimit_pending;

/**
 * Begins a wait and returns at once, for programs that have an event loop. The call enters the queue with the first
 * shmlimit_pending_step(), but its timeout runs from here. The request's `stop` is ignored.
 */
int32_t shmlimit_enqueue(const struct shmlimit_limiter *limiter,
                         const struct shmlimit_request *request,
                         shmlimit_pending *pending);

/**
 * Checks whether it is the call's turn, without waiting. SHMLIMIT_SLEEP: step again after `*sleep_ns` nanoseconds. Every
 * other result ends the wait: SHMLIMIT_OK with a grant, SHMLIMIT_REFUSED, or a failure. Only a failure about the arguments,
 * such as SHMLIMIT_NULL_POINTER, leaves the wait as it was. `answer` may be NULL.
 *
 * The first call in the queue is told to step every 2 ms while it waits for a permit. On a test clock, a step moves the
 * clock to the time of the grant.
 */
int32_t shmlimit_pending_step(shmlimit_pending pending,
                              uint64_t *sleep_ns,
                              shmlimit_grant *grant,
                              struct shmlimit_answer *answer);

/** Ends a wait before its call is granted or refused: the call leaves the queue. */
int32_t shmlimit_pending_cancel(shmlimit_pending pending);

/* ---- Operating a limiter ------------------------------------------------------- */

/**
 * Changes one setting while the limiter is in use, for all programs that share it. Key and value are those of
 * docs/configuration.md: "concurrency", "rules.rpm.limit" for the rule named rpm, or "rate" ("100/min") for the limit and
 * period of the one rule that counts requests.
 */
int32_t shmlimit_set(const struct shmlimit_limiter *limiter,
                     const char *key,
                     const char *value);

/**
 * Puts the breaker into a state, for all programs that share the limiter: "normal", "throttle", "sleep", "half_open",
 * "cache_only", "offline", "online", "closed" or "open". "online" ends "offline" and probes first. "offline" refuses
 * every call, also the waiting ones; shmlimit_pause() keeps them waiting. "clear_gate" ends a Retry-After and forgets the
 * pace that headers asked for.
 */
int32_t shmlimit_force(const struct shmlimit_limiter *limiter,
                       const char *state);

/** How to pause a limiter. With `size` alone: until shmlimit_resume(), without a reason. */
typedef struct shmlimit_pause_options {
    /** sizeof(shmlimit_pause_options). */
    size_t size;
    /** How long, in nanoseconds; 0 = until the limiter is resumed. */
    uint64_t duration_ns;
    /** The reason that `shmlimit status` shows: one line of up to 64 bytes; NULL = none. */
    const char *reason;
} shmlimit_pause_options;

/**
 * Stops all calls of all programs that share the limiter. Waiting calls keep waiting, and new calls join them. Calls that do
 * not wait, and calls whose deadline comes before the end of the pause, are refused with SHMLIMIT_REASON_PAUSED. The pause
 * goes on when this process ends. A second pause replaces the first.
 *
 * `options` may be NULL.
 */
int32_t shmlimit_pause(const struct shmlimit_limiter *limiter,
                       const struct shmlimit_pause_options *options);

/**
 * Ends a pause. Waiting calls continue in their order. A limiter that is not paused stays as it is.
 *
 * `was_paused` may be NULL. `*was_paused` is 1 if there was a pause, else 0.
 */
int32_t shmlimit_resume(const struct shmlimit_limiter *limiter, int32_t *was_paused);

/**
 * Removes a limiter: its file and all its counts. If programs have it open, this one included, it fails with
 * SHMLIMIT_IN_USE; shmlimit_last_error() names them. If it does not exist, it fails with SHMLIMIT_UNKNOWN_LIMITER.
 *
 * If `force` is not 0, it is removed even if programs use it, or if its file is damaged or has another layout
 * version. Calls of programs that have it open then fail with SHMLIMIT_UNKNOWN_LIMITER until it is created again.
 * `options` may be NULL; only its directory, test clock and SHMLIMIT_OPEN_ALLOW_NETWORK_FS matter.
 */
int32_t shmlimit_remove(const char *name,
                        const struct shmlimit_options *options,
                        int32_t force);

/* ---- Looking at limiters ------------------------------------------------------- */

/** One rule at one moment. */
typedef struct shmlimit_rule_snapshot {
    /** The rule's name. */
    const char *name;
    /** The unit that the rule counts, usually `requests`. */
    const char *unit;
    /**
     * The rule's algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or
     * `sliding_counter`.
     */
    const char *algorithm;
    /** Units that the rule allows per period. */
    uint64_t limit;
    /** The rule's period. */
    uint64_t period_ns;
    /** Maximum number of units that the rule allows at once. */
    uint64_t capacity;
    /** Units that only high priorities may use. */
    uint64_t reserve;
    /** Whole units that are left for high priorities, which may use the reserve. */
    uint64_t remaining;
    /** Whole units that are left for background calls. */
    uint64_t remaining_background;
    /**
     * Time until one more unit is available if no call takes any; SHMLIMIT_NEVER = the rule has as many as it can
     * have now.
     */
    uint64_t next_in_ns;
    /**
     * Time until `capacity` units are available; SHMLIMIT_NEVER = they are available now, or the breaker allows
     * fewer now.
     */
    uint64_t full_in_ns;
} shmlimit_rule_snapshot;

/** One attached process at one moment. */
typedef struct shmlimit_participant_snapshot {
    /** The program name of the process. */
    const char *program;
    /** How long the process has been attached. */
    uint64_t attached_for_ns;
    /** How long the process has held at least one permit without interruption; SHMLIMIT_NEVER = it holds none. */
    uint64_t held_for_ns;
    /** How many calls of the process were granted. */
    uint64_t granted;
    /** How many calls of the process were refused. A call that waited counts once, when it gives up. */
    uint64_t refused;
    /** How often waiting calls of the process checked whether it was their turn. */
    uint64_t looked;
    /**
     * The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of
     * a file that was deleted by hand.
     */
    uint32_t pid;
    /** Permits that the process holds. */
    uint32_t held;
} shmlimit_participant_snapshot;

/** One waiting call at one moment. */
typedef struct shmlimit_waiter_snapshot {
    /** The program name of the process. */
    const char *program;
    /** How much of each unit the call costs. Units that it does not use are left out. */
    const struct shmlimit_cost *costs;
    /** How many elements `costs` has. */
    size_t cost_count;
    /** Identifies the call's group. Processes that take their turns together have the same value. */
    uint64_t group;
    /** How long the call has waited. */
    uint64_t waited_for_ns;
    /** Time until the call checks again by itself; 0 = the check is due, or late. */
    uint64_t looks_in_ns;
    /** Time until the call gives up; SHMLIMIT_NEVER = it has no deadline. */
    uint64_t gives_up_in_ns;
    /** The id of the waiting process, in its own pid namespace. */
    uint32_t pid;
    /** The call's priority: SHMLIMIT_PRIORITY_…. */
    uint32_t priority;
    /**
     * 1 = yes, 0 = no: whether the call has missed its check, because its process is stopped, starved or dying.
     * Other calls pass it, and it keeps its place.
     */
    uint32_t late;
    /** Always 0. */
    uint32_t reserved;
} shmlimit_waiter_snapshot;

/** One window of the provider at one moment, as response headers described it. */
typedef struct shmlimit_pace_window_snapshot {
    /** The window's name. */
    const char *name;
    /** The window's limit. */
    uint64_t limit;
    /** Remaining units of the window. */
    uint64_t remaining;
    /** Time until the window restarts; SHMLIMIT_NEVER = unknown. */
    uint64_t resets_in_ns;
    /** The used part of the window, from 0 to 1. */
    double usage;
} shmlimit_pace_window_snapshot;

/** A change of the breaker's state. */
typedef struct shmlimit_transition_snapshot {
    /** The state before. */
    const char *from;
    /** The state after. */
    const char *to;
    /** Why the state changed. */
    const char *reason;
    /** How long ago the state changed. */
    uint64_t ago_ns;
} shmlimit_transition_snapshot;

/** How often calls ended with one code. */
typedef struct shmlimit_code_count {
    /** The HTTP status, or the name of an error: "200", "connect_timeout". */
    const char *code;
    /** How often. */
    uint64_t count;
} shmlimit_code_count;

/**
 * A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by
 * shmlimit_snapshot_free(). Its lists are lists of pointers, so that all of these structs can grow at their ends.
 */
typedef struct shmlimit_snapshot {
    /** sizeof(shmlimit_snapshot) of the library. */
    size_t size;
    /** The limiter's name. */
    const char *name;
    /** The directory of the limiter. */
    const char *directory;
    /** The provider whose limits these are. */
    const char *provider;
    /** The kind of breaker: `none`, `fsm` (five states) or `consecutive`. */
    const char *breaker;
    /**
     * The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`. A consecutive breaker has
     * `closed`, `open` or `half_open`, and a limiter without a breaker has `normal`.
     */
    const char *state;
    /** Why the state began; NULL = it has never changed. */
    const char *reason;
    /** Of the gate: the program name of that process. NULL while `gate` is 0. */
    const char *gate_program;
    /** Of the pace: the window that determines the gap; NULL = no window does. NULL while `pace` is 0. */
    const char *pace_bottleneck;
    /** How long the state has lasted. A state that has never changed lasts since the limiter was created. */
    uint64_t state_for_ns;
    /**
     * Time until the state ends by itself; SHMLIMIT_NEVER = it does not. A Sleep does not end before the gate
     * opens. In other states it is the time of the next rise of the rate.
     */
    uint64_t eta_ns;
    /** Of the gate: time until the gate opens. 0 while `gate` is 0. */
    uint64_t gate_opens_in_ns;
    /** Of the gate: how long ago the Retry-After was recorded. 0 while `gate` is 0. */
    uint64_t gate_recorded_ns;
    /** Of the pace: the smallest gap between calls, learned from response headers. 0 while `pace` is 0. */
    uint64_t pace_interval_ns;
    /**
     * Units per second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it
     * is the rate of the first rule.
     */
    double rate;
    /** The ratio of errors among the outcomes that count now. */
    double error_ratio;
    /** Calls that succeeded. */
    uint64_t ok;
    /** Calls that ended with 429. */
    uint64_t throttled;
    /** Calls that ended with 5xx. */
    uint64_t server;
    /** Calls without a response. */
    uint64_t net;
    /** Calls that ended with any other 4xx, which says nothing about the server. */
    uint64_t ignored;
    /** The sum of these latencies. */
    uint64_t latency_sum_ns;
    /**
     * Histogram of the recorded latencies. The counts are for up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000,
     * 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
     */
    uint64_t latency[16];
    /** How often a damaged state was reset. */
    uint64_t resets;
    /** Maximum number of calls in flight, as configured; 0 = unlimited. */
    uint32_t concurrency;
    /** Maximum number of background calls in flight, as configured; 0 = no separate limit. */
    uint32_t concurrency_background;
    /** Maximum number of calls in flight in this state; 0 = unlimited. */
    uint32_t concurrency_now;
    /** Permits in use. */
    uint32_t in_flight;
    /** Permits that background calls hold. */
    uint32_t in_flight_background;
    /** Permits whose process has exited. They are reclaimed as soon as a call needs one. */
    uint32_t held_by_exited;
    /** 1 = yes, 0 = no: whether an operator has put the limiter offline. */
    uint32_t offline;
    /** Number of outcomes that count now. */
    uint32_t samples;
    /** Number of consecutive 429 responses. */
    uint32_t consec429;
    /** Number of consecutive failures, for a consecutive breaker. */
    uint32_t failures;
    /** Of the gate: the id of the process that recorded the Retry-After. 0 while `gate` is 0. */
    uint32_t gate_pid;
    /** Always 0. */
    uint32_t reserved;
    /** The rules, in the order of the configuration. */
    const struct shmlimit_rule_snapshot *const *rules;
    /** How many elements `rules` has. */
    size_t rule_count;
    /** The attached processes that are alive. */
    const struct shmlimit_participant_snapshot *const *participants;
    /** How many elements `participants` has. */
    size_t participant_count;
    /**
     * The waiting calls, in the order in which they will be served. A background call that is owed its
     * `background_share` comes before all others.
     */
    const struct shmlimit_waiter_snapshot *const *queue;
    /** How many elements `queue` has. */
    size_t queue_count;
    /** The provider's windows as the headers described them. */
    const struct shmlimit_pace_window_snapshot *const *pace_windows;
    /** How many elements `pace_windows` has. */
    size_t pace_window_count;
    /** The latest changes of the breaker's state, the newest last. */
    const struct shmlimit_transition_snapshot *const *transitions;
    /** How many elements `transitions` has. */
    size_t transition_count;
    /** Calls granted. */
    uint64_t granted;
    /** Calls refused. A call that waited counts once, when it gives up. */
    uint64_t refused;
    /** How often waiting calls checked whether it was their turn. */
    uint64_t looked;
    /** Answers that were found in a cache. */
    uint64_t cache_hits;
    /** Answers that were not found in a cache. */
    uint64_t cache_misses;
    /**
     * Histogram of how long callers were told to wait before they try again. The counts are for up to 1, 2, 5, 10,
     * 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
     */
    uint64_t sleep[16];
    /** The total time that callers were told to wait. */
    uint64_t sleep_sum_ns;
    /** Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`. */
    const struct shmlimit_code_count *const *codes;
    /** How many elements `codes` has. */
    size_t code_count;
    /**
     * Of the pause: the program name of that process; for `shmlimit pause`, the name of its user. NULL while
     * `paused` is 0.
     */
    const char *pause_program;
    /** Of the pause: the reason that the operator gave; NULL = no reason was given. NULL while `paused` is 0. */
    const char *pause_reason;
    /** Of the pause: how long the pause has lasted. 0 while `paused` is 0. */
    uint64_t paused_for_ns;
    /**
     * Of the pause: time until the pause ends by itself; SHMLIMIT_NEVER = it lasts until the limiter is resumed. 0
     * while `paused` is 0.
     */
    uint64_t pause_ends_in_ns;
    /**
     * 1 = there is a pause: its fields begin with `pause`. The pause that an operator ordered; 0 = the limiter is
     * not paused.
     */
    uint32_t paused;
    /**
     * Of the pause: the id of the process that paused the limiter. That process may have exited since. 0 while
     * `paused` is 0.
     */
    uint32_t pause_pid;
    /** Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`. */
    const char *fairness;
    /** The share that background calls always get, from 0 to 1. */
    double background_share;
    /** 1 = there is a gate: its fields begin with `gate`. The gate that a Retry-After closed; 0 = it is open. */
    uint32_t gate;
    /**
     * 1 = there is a pace: its fields begin with `pace`. The pace learned from response headers; 0 = the limiter
     * does not read them.
     */
    uint32_t pace;
} shmlimit_snapshot;

/**
 * Takes a snapshot of a limiter: settings, counts, processes, queue, breaker. Free it with shmlimit_snapshot_free().
 * `*snapshot` is NULL after a failure.
 */
int32_t shmlimit_snapshot_take(const struct shmlimit_limiter *limiter,
                               const struct shmlimit_snapshot **snapshot);

/** Frees a snapshot with everything in it. NULL is allowed and does nothing. */
void shmlimit_snapshot_free(const struct shmlimit_snapshot *snapshot);

/** A list of names. Free it with shmlimit_names_free(). */
typedef struct shmlimit_names {
    /** sizeof(shmlimit_names) of the library. */
    size_t size;
    /** The directory of the limiters; NULL for presets. */
    const char *directory;
    /** The names in alphabetical order. */
    const char *const *names;
    /** How many elements `names` has. */
    size_t count;
} shmlimit_names;

/**
 * Lists the limiters in a directory; NULL = the default one. Free the list with shmlimit_names_free(). `*names` is NULL
 * after a failure.
 */
int32_t shmlimit_list(const char *directory,
                      const struct shmlimit_names **names);

/**
 * Lists the presets. A limiter with the name of a preset needs no configuration. Free the list with shmlimit_names_free().
 * `*names` is NULL after a failure.
 */
int32_t shmlimit_presets(const struct shmlimit_names **names);

/** Frees a list of names. NULL is allowed and does nothing. */
void shmlimit_names_free(const struct shmlimit_names *names);

/**
 * Writes the effective configuration as the text of a configuration file. Free it with shmlimit_text_free(). `*text` is
 * NULL after a failure.
 */
int32_t shmlimit_config(const struct shmlimit_limiter *limiter,
                        char **text);

/**
 * Lists what environment variables, such as SHMLIMIT_RATE_BASE, changed in the limiter when this handle opened it: one
 * line per change, or an empty text. Free it with shmlimit_text_free(). `*text` is NULL after a failure.
 */
int32_t shmlimit_environment_changes(const struct shmlimit_limiter *limiter,
                                     char **text);

/**
 * Writes the metrics of a limiter in the text format of Prometheus, for programs that serve them: the text that
 * `shmlimit metrics` prints (docs/metrics.md). Free it with shmlimit_text_free(). `*text` is NULL after a failure.
 */
int32_t shmlimit_metrics(const struct shmlimit_limiter *limiter,
                         char **text);

/** Frees a text that this library returned in a `char **`. NULL is allowed and does nothing. */
void shmlimit_text_free(char *text);

/* ---- Tests with a virtual clock ------------------------------------------------ */

/**
 * Creates a clock that stands still at `start_ns`, in nanoseconds since 1970; 0 = 2030-01-01 00:00:00 UTC. Free it with
 * shmlimit_test_clock_free(). `*clock` is NULL after a failure.
 *
 * A limiter that is opened with the clock in `test_clock` of shmlimit_options takes its time from it. The clock stands
 * still. shmlimit_test_clock_advance() moves it, and so does a call that has to wait for a known time (a rate, a
 * Retry-After, a breaker, a deadline): the clock goes to that time, and the call continues at once. A call that waits for a
 * permit, or for the end of a pause, really waits until another thread provides it. If it has a timeout or a deadline, it
 * waits for 100 ms of real time; then the clock goes to the deadline, and the call is refused. Any number of limiters and
 * threads of one process may share a clock.
 */
int32_t shmlimit_test_clock_new(uint64_t start_ns,
                                struct shmlimit_test_clock **clock);

/** Moves the clock forward by `by_ns` nanoseconds. It never goes back, and stops after 280 years. */
int32_t shmlimit_test_clock_advance(const struct shmlimit_test_clock *clock, uint64_t by_ns);

/** Writes how many nanoseconds have passed since the clock was created. */
int32_t shmlimit_test_clock_elapsed(const struct shmlimit_test_clock *clock, uint64_t *elapsed_ns);

/**
 * Writes the time that the clock shows, in nanoseconds since 1970. The `deadline_ns` of a request is a time on this clock.
 */
int32_t shmlimit_test_clock_now(const struct shmlimit_test_clock *clock,
                                uint64_t *now_ns);

/**
 * Frees a clock. Limiters that use it keep it. NULL is allowed and does nothing. Freeing a clock twice returns
 * SHMLIMIT_CLOSED.
 */
int32_t shmlimit_test_clock_free(struct shmlimit_test_clock *clock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHMLIMIT_H */
