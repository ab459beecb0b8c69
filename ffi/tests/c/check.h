/* What the tests in C share. They compile as C11 and as C++17, and say nothing if all is well. */
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

/* A struct that is all zero but its size. */
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

/* The call returns this number. */
#define IS(call, expected) is((call), (expected), #call, __FILE__, __LINE__)
/* The words of the last failure name this. */
#define SAYS(text) CHECK(strstr(shmlimit_last_error(), (text)) != NULL)

/* How often: fewer times under a tool that watches, which is slow and sees the first mistake. */
static inline int rounds(int plain, int watched) { return getenv("TEST_WATCHED") == NULL ? plain : watched; }

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Makes a limiter afresh. */
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

/* Ten calls a hour, three of them at once, in requests and tokens. */
#define TWO_UNITS                                                                                          \
    "concurrency = 3\n"                                                                                    \
    "[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 10\nperiod = \"1h\"\n"             \
    "[[rules]]\nname = \"tokens\"\nunit = \"tokens\"\nalgorithm = \"token_bucket\"\nlimit = 1000\nperiod = \"1h\"\n"

/* As many calls as one likes, one at a time. */
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

/* What is left of a rule. */
static inline uint64_t remaining(const shmlimit_limiter *limiter, size_t rule)
{
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(rule < snapshot->rule_count);
    uint64_t left = snapshot->rules[rule]->remaining;
    shmlimit_snapshot_free(snapshot);
    return left;
}

/* Lets other threads and processes go on until something is the case; fails after half a minute. */
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
