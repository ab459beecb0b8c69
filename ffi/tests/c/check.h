/* Shared code of the C tests. They compile as C11 and as C++17, and print nothing if they succeed. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shmlimit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* A struct of zeros whose size field is set. */
#define SIZED(type, name) \
    type name;            \
    memset(&name, 0, sizeof name); \
    name.size = sizeof name

static inline void fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\nlast error: %s\n", file, line, what, shmlimit_last_error());
    fflush(NULL);
    _exit(1);
}

#define CHECK(condition)                          \
    do {                                          \
        if (!(condition))                         \
            fail(__FILE__, __LINE__, #condition); \
    } while (0)

static inline void is(int32_t code, int32_t expected, const char *what, const char *file, int line)
{
    if (code != expected) {
        fprintf(stderr, "%s is %s, not %s\n", what, shmlimit_code_name(code), shmlimit_code_name(expected));
        fail(file, line, what);
    }
    if (code >= SHMLIMIT_NULL_POINTER && shmlimit_last_error()[0] == '\0')
        fail(file, line, "a failure without words");
}

/* The call returns this code. */
#define IS(call, expected) is((call), (expected), #call, __FILE__, __LINE__)
/* The message of the last failure contains this text. */
#define SAYS(text) CHECK(strstr(shmlimit_last_error(), (text)) != NULL)

/* The number of rounds: `watched` under a checking tool, which is slow and reports the first mistake. */
static inline int rounds(int plain, int watched) { return getenv("TEST_WATCHED") == NULL ? plain : watched; }

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Creates the limiter, and replaces an existing one. */
static inline shmlimit_limiter *make(const char *directory, const char *name, const char *config)
{
    shmlimit_limiter *limiter;
    SIZED(shmlimit_options, options);
    options.directory = directory;
    options.config = config;
    options.flags = SHMLIMIT_OPEN_REPLACE | SHMLIMIT_OPEN_IGNORE_ENVIRONMENT;
    IS(shmlimit_open(name, &options, &limiter), SHMLIMIT_OK);
    CHECK(limiter != NULL);
    return limiter;
}

/* Ten calls an hour, three at once, counted in requests and tokens. */
#define TWO_UNITS                                                                                          \
    "concurrency = 3\n"                                                                                    \
    "[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 10\nperiod = \"1h\"\n"             \
    "[[rules]]\nname = \"tokens\"\nunit = \"tokens\"\nalgorithm = \"token_bucket\"\nlimit = 1000\nperiod = \"1h\"\n"

/* Any number of calls, one at a time. */
#define ONE_AT_A_TIME \
    "concurrency = 1\n[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 1000000\nperiod = \"1s\"\n"

static inline uint32_t in_flight(const shmlimit_limiter *limiter)
{
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    uint32_t held = snapshot->in_flight;
    shmlimit_snapshot_free(snapshot);
    return held;
}

static inline size_t waiting(const shmlimit_limiter *limiter)
{
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    size_t count = snapshot->queue_count;
    shmlimit_snapshot_free(snapshot);
    return count;
}

/* The remaining units of a rule. */
static inline uint64_t remaining(const shmlimit_limiter *limiter, size_t rule)
{
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(rule < snapshot->rule_count);
    uint64_t left = snapshot->rules[rule]->remaining;
    shmlimit_snapshot_free(snapshot);
    return left;
}

/* Yields to other threads and processes until the condition holds. Fails after half a minute. */
#define UNTIL(condition)                                                                \
    do {                                                                                \
        struct timespec pause_;                                                         \
        uint64_t late_ = now_ns() + 30 * SECOND;                                        \
        pause_.tv_sec = 0;                                                              \
        pause_.tv_nsec = 1000000;                                                       \
        while (!(condition)) {                                                          \
            if (now_ns() > late_)                                                       \
                fail(__FILE__, __LINE__, "still not: " #condition);                     \
            nanosleep(&pause_, NULL);                                                   \
        }                                                                               \
    } while (0)

#include "platform.h"

#endif
