/*
 * shmlimit: one budget for every program on the machine that calls the same API.
 *
 * This file is generated from ffi/src by cbindgen. Do not edit it: run scripts/languages/header.
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
 * Strings    UTF-8, ending in NUL, on every system, paths too; except what a server sent: there anything will do. A
 *            returned `const char *` belongs to the library: it is never NULL unless its comment says so, and you do not
 *            free it.
 * Pointers   NULL is refused where it makes no sense. Any other pointer must be good for as much as its type says;
 *            nothing is kept after the call. Where an answer goes is emptied first, so after a failure, too, you find no
 *            garbage there.
 * Handles    A shmlimit_limiter * is not a pointer to anything: it is a number that is checked, and so are grants and
 *            waits. Using what is over, or closing it twice, is a failure with a number of its own, never a crash.
 * Structs    A struct begins with its own size: set it to sizeof, and zero all you do not use ({.size = sizeof x}). So
 *            a later library knows what you compiled, and structs can grow at their ends.
 * Panics     No Rust panic crosses this border (SHMLIMIT_PANICKED), and nothing unwinds through it.
 * Threads    Every function may be called from any thread at the same time. The library starts none. Messages are kept
 *            for each thread.
 * Fork       Where there is one: handles work in a forked child. It attaches itself on first use, also if other threads
 *            were inside the library when it forked. Grants do not cross a fork: the child's copies give nothing back
 *            (what a child records of a server counts), and the parent's stay good. Nor do waits: a child that steps one
 *            enters the queue as a call of its own. Close what the child does not need, or let exec or exit do it.
 * Death      However a process ends, its permits come back, and it leaves the queue.
 * Signals    Nothing here is async-signal-safe: do not call it from a signal handler. A signal does not end a wait, but
 *            makes the request's `stop` be asked at once.
 * Cancelling No function is a cancellation point, and a thread cannot be cancelled inside one: pthread_cancel() takes
 *            effect at the caller's next cancellation point, or when the function returns if the thread's cancellation
 *            is asynchronous. Nothing is lost: `*grant` is written before, so a cleanup handler that releases it if it
 *            is not 0 gives the permit back. A wait goes on until it ends; to end it, use the request's `stop`.
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
 * Of shmlimit_pending_step: not yet, sleep and step again.
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
#define SHMLIMIT_PENDING_DONE 22

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
 * This operating system cannot keep a promise that sharing a limiter rests on.
 */
#define SHMLIMIT_UNSUPPORTED 52

/**
 * Live processes cannot be told from exited ones: the file system drops locks, or this process may not test them.
 */
#define SHMLIMIT_LIVENESS 53

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
 * An operator has paused the limiter.
 */
#define SHMLIMIT_REASON_PAUSED 11

/**
 * Other processes held the limiter's lock in turn until the call's deadline; nothing was decided.
 */
#define SHMLIMIT_REASON_BUSY 12

/**
 * Something that this version of the C ABI has no number for.
 */
#define SHMLIMIT_REASON_OTHER 99

/**
 * A flag of shmlimit_options: open only if it is there; make neither the limiter nor its directory.
 */
#define SHMLIMIT_OPEN_EXISTING 1

/**
 * A flag of shmlimit_options: make it; an error if it is there already.
 */
#define SHMLIMIT_OPEN_CREATE 2

/**
 * A flag of shmlimit_options: make it afresh in place of the one there may be.
 */
#define SHMLIMIT_OPEN_REPLACE 4

/**
 * A flag of shmlimit_options: trust a network file system, on your own risk.
 */
#define SHMLIMIT_OPEN_ALLOW_NETWORK_FS 8

/**
 * A flag of shmlimit_options: leave environment variables such as SHMLIMIT_RATE_BASE alone.
 */
#define SHMLIMIT_OPEN_IGNORE_ENVIRONMENT 16

/**
 * A flag of shmlimit_options: share the directory with the group of users whose number is in `gid`. Windows has no such
 * numbers: see `shared_with`.
 */
#define SHMLIMIT_OPEN_SHARE 32

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
#define SHMLIMIT_LAYOUT_VERSION 6

/**
 * Bytes that every segment has, before its logs, at the time a program was compiled; compare with `shmlimit_segment_size()`.
 */
#define SHMLIMIT_SEGMENT_SIZE 294912

/**
 * A limiter that is open. Not a pointer to anything you can read.
 */
typedef struct shmlimit_limiter shmlimit_limiter;

/**
 * A virtual clock for tests. Not a pointer to anything you can read. Name it in `test_clock` of shmlimit_options, and the
 * limiter takes its time from it.
 *
 * The clock stands still. shmlimit_test_clock_advance() moves it, and so does a call that has to wait for a known time (a
 * rate, a Retry-After, a breaker, a deadline): the clock goes to that time, and the call goes on at once. A call that waits
 * for a permit, or for the end of a pause, really waits until another thread gives it. If it has a timeout or a deadline, it
 * waits for 100 ms of real time; then the clock goes to the deadline, and the call is refused. Any number of limiters and
 * threads of one process may share a clock.
 */
typedef struct shmlimit_test_clock shmlimit_test_clock;

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
 * cancelled or recorded. It belongs to the process that got it: after a fork the child's copy gives nothing back.
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
     * Refused: nobody who gives up before this can be served; SHMLIMIT_NEVER = never, or nobody knows.
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
     * Settings that go on top of preset and configuration.
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
     * SHMLIMIT_OPEN_EXISTING, _CREATE, _REPLACE, _ALLOW_NETWORK_FS, _IGNORE_ENVIRONMENT, _SHARE, added up; 0 = open it, or
     * make it if it is not there.
     */
    uint32_t flags;
    /**
     * See SHMLIMIT_OPEN_SHARE.
     */
    uint32_t gid;
    /**
     * Share the directory with the members of this group of users, or on Windows also with a user (a name, or S-1-…);
     * NULL = with nobody.
     */
    const char *shared_with;
    /**
     * Take the time from this clock, for tests; NULL = from the machine. `directory` must be named too.
     */
    const struct shmlimit_test_clock *test_clock;
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
 * How to pause a limiter. All zero but `size`: until shmlimit_resume(), without a reason.
 */
typedef struct shmlimit_pause_options {
    /**
     * sizeof(shmlimit_pause_options).
     */
    size_t size;
    /**
     * How long, in nanoseconds; 0 = until the limiter is resumed.
     */
    uint64_t duration_ns;
    /**
     * Why, for people: one line of up to 64 bytes; NULL = no reason.
     */
    const char *reason;
} shmlimit_pause_options;

/**
 * A call that waits, moved on by its program: a number that is never 0 and never given twice. After a fork the child's
 * copy is a call of its own, which is not in the queue yet.
 */
typedef uint64_t shmlimit_pending;

/**
 * One rule at one moment.
 */
typedef struct shmlimit_rule_snapshot {
    /**
     * The rule's name.
     */
    const char *name;
    /**
     * The unit that it counts, usually `requests`.
     */
    const char *unit;
    /**
     * Its algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or `sliding_counter`.
     */
    const char *algorithm;
    /**
     * Units that the rule allows per period.
     */
    uint64_t limit;
    /**
     * The rule's period.
     */
    uint64_t period_ns;
    /**
     * Most units that the rule allows at once.
     */
    uint64_t capacity;
    /**
     * Units that only high priorities may use.
     */
    uint64_t reserve;
    /**
     * Whole units of the rule that are left for high priorities, which may use the reserve.
     */
    uint64_t remaining;
    /**
     * Whole units of the rule that are left for the background.
     */
    uint64_t remaining_background;
    /**
     * In how long there is one more unit if no call takes any; SHMLIMIT_NEVER = there are as many as there can be
     * now.
     */
    uint64_t next_in_ns;
    /**
     * In how long there are as many units as `capacity`; SHMLIMIT_NEVER = there are, or the breaker allows fewer
     * now.
     */
    uint64_t full_in_ns;
} shmlimit_rule_snapshot;

/**
 * One attached process at one moment.
 */
typedef struct shmlimit_participant_snapshot {
    /**
     * Its program name.
     */
    const char *program;
    /**
     * How long it has been attached.
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
     * How often it was refused a call. A call that waited counts once, when it gives up.
     */
    uint64_t refused;
    /**
     * How often its waiting calls looked whether it was their turn.
     */
    uint64_t looked;
    /**
     * The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of
     * a file that was deleted by hand.
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
     * Its program name.
     */
    const char *program;
    /**
     * How much of each unit the call needs. Units of which it needs nothing are left out.
     */
    const struct shmlimit_cost *costs;
    /**
     * How many elements `costs` has.
     */
    size_t cost_count;
    /**
     * Stands for the call's group: equal for the processes that take their turns together.
     */
    uint64_t group;
    /**
     * How long it has waited.
     */
    uint64_t waited_for_ns;
    /**
     * In how long it will look again by itself; 0 = it is about to, or late.
     */
    uint64_t looks_in_ns;
    /**
     * In how long it gives up; SHMLIMIT_NEVER = it waits as long as it takes.
     */
    uint64_t gives_up_in_ns;
    /**
     * The id of the process that waits, in its own pid namespace.
     */
    uint32_t pid;
    /**
     * The call's priority: SHMLIMIT_PRIORITY_….
     */
    uint32_t priority;
    /**
     * 1 = yes, 0 = no: whether it has not looked when it should: it is stopped, starved or dying. Others pass it
     * over, and it keeps its place.
     */
    uint32_t late;
    /**
     * Always 0.
     */
    uint32_t reserved;
} shmlimit_waiter_snapshot;

/**
 * One window of the provider's at one moment, as response headers told of it.
 */
typedef struct shmlimit_pace_window_snapshot {
    /**
     * The window's name.
     */
    const char *name;
    /**
     * The window's limit.
     */
    uint64_t limit;
    /**
     * What is left of the window.
     */
    uint64_t remaining;
    /**
     * In how long it starts anew; SHMLIMIT_NEVER = unknown.
     */
    uint64_t resets_in_ns;
    /**
     * How much of the window is used, from 0 to 1.
     */
    double usage;
} shmlimit_pace_window_snapshot;

/**
 * A change of the breaker's state.
 */
typedef struct shmlimit_transition_snapshot {
    /**
     * The state before.
     */
    const char *from;
    /**
     * The state after.
     */
    const char *to;
    /**
     * Why the state changed.
     */
    const char *reason;
    /**
     * How long ago it was.
     */
    uint64_t ago_ns;
} shmlimit_transition_snapshot;

/**
 * How often calls ended with one code.
 */
typedef struct shmlimit_code_count {
    /**
     * The HTTP status, or the name of an error: "200", "connect_timeout".
     */
    const char *code;
    /**
     * How often.
     */
    uint64_t count;
} shmlimit_code_count;

/**
 * A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by
 * shmlimit_snapshot_free(). Its lists are lists of pointers, so that all of these structs can grow at their ends.
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
     * The provider whose limits these are.
     */
    const char *provider;
    /**
     * The kind of breaker: `none`, `fsm` (five states) or `consecutive`.
     */
    const char *breaker;
    /**
     * The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`; of a consecutive breaker
     * `closed`, `open` or `half_open`; without a breaker `normal`.
     */
    const char *state;
    /**
     * Why the state began; NULL = it has never changed.
     */
    const char *reason;
    /**
     * Of the gate: the program name of that process. NULL while `gate` is 0.
     */
    const char *gate_program;
    /**
     * Of the pace: the window that the gap is for; NULL = there is none. NULL while `pace` is 0.
     */
    const char *pace_bottleneck;
    /**
     * How long the state has lasted; if it has never changed, since the limiter was made.
     */
    uint64_t state_for_ns;
    /**
     * In how long the state ends by itself; SHMLIMIT_NEVER = it does not. A Sleep is not over before the gate
     * opens. In other states it is the time of the next rise of the rate.
     */
    uint64_t eta_ns;
    /**
     * Of the gate: in how long it opens. 0 while `gate` is 0.
     */
    uint64_t gate_opens_in_ns;
    /**
     * Of the gate: how long ago it was recorded. 0 while `gate` is 0.
     */
    uint64_t gate_recorded_ns;
    /**
     * Of the pace: the smallest gap between calls that response headers taught. 0 while `pace` is 0.
     */
    uint64_t pace_interval_ns;
    /**
     * Units a second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it
     * is the rate of the first rule.
     */
    double rate;
    /**
     * The ratio of errors among the outcomes that count now.
     */
    double error_ratio;
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
     * Calls that ended with any other 4xx, which says nothing about the server.
     */
    uint64_t ignored;
    /**
     * The latencies of these calls, all together.
     */
    uint64_t latency_sum_ns;
    /**
     * How many of the calls whose latency was recorded took up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500,
     * 5000, 10000, 30000 and 60000 ms, each; the last: longer.
     */
    uint64_t latency[16];
    /**
     * How often a damaged state had to be started afresh.
     */
    uint64_t resets;
    /**
     * Most calls in flight, as configured; 0 = any number.
     */
    uint32_t concurrency;
    /**
     * Most background calls in flight, as configured; 0 = as many as of any priority.
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
     * Permits that background calls hold.
     */
    uint32_t in_flight_background;
    /**
     * Permits whose holder has exited. They are reclaimed as soon as a call needs one.
     */
    uint32_t held_by_exited;
    /**
     * 1 = yes, 0 = no: whether an operator has put the limiter offline.
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
     * Of the gate: the id of the process that recorded the Retry-After. 0 while `gate` is 0.
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
     * How many elements `rules` has.
     */
    size_t rule_count;
    /**
     * The processes that are attached and alive.
     */
    const struct shmlimit_participant_snapshot *const *participants;
    /**
     * How many elements `participants` has.
     */
    size_t participant_count;
    /**
     * The calls that wait, in the order in which they will be served. A background call that is owed its
     * `background_share` comes before all others.
     */
    const struct shmlimit_waiter_snapshot *const *queue;
    /**
     * How many elements `queue` has.
     */
    size_t queue_count;
    /**
     * What the headers said of each window of the provider's.
     */
    const struct shmlimit_pace_window_snapshot *const *pace_windows;
    /**
     * How many elements `pace_windows` has.
     */
    size_t pace_window_count;
    /**
     * The newest changes of the breaker's state, the newest last.
     */
    const struct shmlimit_transition_snapshot *const *transitions;
    /**
     * How many elements `transitions` has.
     */
    size_t transition_count;
    /**
     * Calls granted.
     */
    uint64_t granted;
    /**
     * Calls refused. A call that waited counts once, when it gives up.
     */
    uint64_t refused;
    /**
     * How often waiting calls looked whether it was their turn.
     */
    uint64_t looked;
    /**
     * Answers found in a cache.
     */
    uint64_t cache_hits;
    /**
     * Answers not found in a cache.
     */
    uint64_t cache_misses;
    /**
     * How many callers were told to wait before they try again, by how long: up to 1, 2, 5, 10, 25, 50, 100, 250,
     * 500, 1000, 2500, 5000, 10000, 30000 and 60000 ms, each; the last: longer.
     */
    uint64_t sleep[16];
    /**
     * The time that callers were told to wait, all together.
     */
    uint64_t sleep_sum_ns;
    /**
     * Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`.
     */
    const struct shmlimit_code_count *const *codes;
    /**
     * How many elements `codes` has.
     */
    size_t code_count;
    /**
     * Of the pause: the program name of that process; of `shmlimit pause`, its user. NULL while `paused` is 0.
     */
    const char *pause_program;
    /**
     * Of the pause: why, as the operator put it; NULL = no reason was given. NULL while `paused` is 0.
     */
    const char *pause_reason;
    /**
     * Of the pause: how long it has lasted. 0 while `paused` is 0.
     */
    uint64_t paused_for_ns;
    /**
     * Of the pause: in how long it ends by itself; SHMLIMIT_NEVER = it lasts until the limiter is resumed. 0 while
     * `paused` is 0.
     */
    uint64_t pause_ends_in_ns;
    /**
     * 1 = there is a pause: its fields begin with `pause`. The pause that an operator ordered; 0 = the limiter is
     * not paused.
     */
    uint32_t paused;
    /**
     * Of the pause: the id of the process that paused the limiter. That process may have ended since. 0 while
     * `paused` is 0.
     */
    uint32_t pause_pid;
    /**
     * Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`.
     */
    const char *fairness;
    /**
     * The share that background calls get in any case, from 0 to 1.
     */
    double background_share;
    /**
     * 1 = there is a gate: its fields begin with `gate`. The gate that a Retry-After closed; 0 = it is open.
     */
    uint32_t gate;
    /**
     * 1 = there is a pace: its fields begin with `pace`. The pace that response headers taught; 0 = the limiter
     * does not read them.
     */
    uint32_t pace;
} shmlimit_snapshot;

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
 * The operating system's number (errno, or on Windows what GetLastError says) of the last failure in this thread; 0 if it
 * was none of the system's.
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
 * The call is over: gives the permit back. After a failure (SHMLIMIT_BUSY, say) it can be tried again. If you know how
 * it ended, shmlimit_record() is better.
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
 * "open"), or opens the gate and forgets the pace that headers taught ("clear_gate"), for all who share the limiter at
 * once. "offline" refuses every call, also those that wait; to keep them waiting, see shmlimit_pause().
 */
int32_t shmlimit_force(const struct shmlimit_limiter *limiter,
                       const char *state);

/**
 * Changes one setting while the limiter is in use, for all who share it at once: a key and a value as in
 * docs/configuration.md. Rules may be named ("rules.rpm.limit"); "rate" ("100/m") is limit and period of the one rule that
 * counts requests.
 */
int32_t shmlimit_set(const struct shmlimit_limiter *limiter,
                     const char *key,
                     const char *value);

/**
 * Counts an answer that was found in a cache (`hit` is not 0), or was not: for people and dashboards, nothing is decided
 * by it.
 */
int32_t shmlimit_count_cache(const struct shmlimit_limiter *limiter,
                             int32_t hit);

/**
 * The effective configuration, as the text of a configuration file. Free it with shmlimit_text_free(); NULL after a failure.
 */
int32_t shmlimit_config(const struct shmlimit_limiter *limiter,
                        char **text);

/**
 * What variables of the environment, such as SHMLIMIT_RATE_BASE, changed in the limiter when this handle opened it, for
 * every program that uses it: a line each, and an empty text if nothing. Free it with shmlimit_text_free(); NULL after a
 * failure.
 */
int32_t shmlimit_environment_changes(const struct shmlimit_limiter *limiter,
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
 * Stops all calls for a while, in all processes that share the limiter. Calls that wait keep waiting, and new ones join
 * them; calls that do not wait, and calls whose deadline ends before a known end of the pause, are refused with
 * SHMLIMIT_REASON_PAUSED. The pause outlasts this process. A second pause replaces the first.
 *
 * `options` may be NULL.
 */
int32_t shmlimit_pause(const struct shmlimit_limiter *limiter,
                       const struct shmlimit_pause_options *options);

/**
 * Ends a pause: waiting calls go on in their turn. A limiter that is not paused stays as it is.
 *
 * `was_paused` may be NULL; else it is 1 if a pause was ended, 0 if there was none.
 */
int32_t shmlimit_resume(const struct shmlimit_limiter *limiter, int32_t *was_paused);

/**
 * Begins to wait for a call, without waiting: for programs with an event loop of their own. Nothing is asked before the
 * first shmlimit_pending_step(), but a timeout runs from here. The request's `stop` does not matter here.
 */
int32_t shmlimit_enqueue(const struct shmlimit_limiter *limiter,
                         const struct shmlimit_request *request,
                         shmlimit_pending *pending);

/**
 * Asks, or looks whether it is this call's turn. SHMLIMIT_SLEEP: let `*sleep_ns` nanoseconds pass, then step again. Any
 * other number ends the wait: SHMLIMIT_OK with a grant, SHMLIMIT_REFUSED, or a failure (but one of the arguments, such as
 * SHMLIMIT_NULL_POINTER, leaves it as it was). `answer` may be NULL.
 *
 * Nobody can be woken from outside: that a permit came back is noticed within 2 ms by the first in the queue.
 */
int32_t shmlimit_pending_step(shmlimit_pending pending,
                              uint64_t *sleep_ns,
                              shmlimit_grant *grant,
                              struct shmlimit_answer *answer);

/**
 * Gives up waiting: leaves the queue at once. Only for a wait whose last step was SHMLIMIT_SLEEP, or that had none.
 */
int32_t shmlimit_pending_cancel(shmlimit_pending pending);

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
 * Makes a clock that stands still at `start_ns`, in nanoseconds since 1970; 0 = 2030-01-01 00:00:00 UTC. Free it with
 * shmlimit_test_clock_free(). `*clock` is NULL after a failure.
 */
int32_t shmlimit_test_clock_new(uint64_t start_ns,
                                struct shmlimit_test_clock **clock);

/**
 * Lets `by_ns` nanoseconds pass at once. The clock never goes back, and stops after 280 years.
 */
int32_t shmlimit_test_clock_advance(const struct shmlimit_test_clock *clock, uint64_t by_ns);

/**
 * How many nanoseconds have passed since the clock was made: what it was advanced by, and what calls have waited.
 */
int32_t shmlimit_test_clock_elapsed(const struct shmlimit_test_clock *clock,
                                    uint64_t *elapsed_ns);

/**
 * What the clock shows, in nanoseconds since 1970. The `deadline_ns` of a request is a point on this clock.
 */
int32_t shmlimit_test_clock_now(const struct shmlimit_test_clock *clock,
                                uint64_t *now_ns);

/**
 * Frees a clock. Limiters that use it go on with it. NULL is fine, and does nothing; a second time is SHMLIMIT_CLOSED.
 */
int32_t shmlimit_test_clock_free(struct shmlimit_test_clock *clock);

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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHMLIMIT_H */
