/* Makes calls, records outcomes, and provokes refusals and errors many times in one process. Prints its use of memory
 * and descriptors meanwhile.
 *
 *   soak NAME TIMES
 */
#define _DEFAULT_SOURCE
#include "shmlimit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(call, expected)                                                                                          \
    do {                                                                                                               \
        int32_t code_ = (call);                                                                                        \
        if (code_ != (expected)) {                                                                                     \
            fprintf(stderr, "soak.c: %s: %s: %s\n", #call, shmlimit_code_name(code_), shmlimit_last_error());          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Prints one line: resident kilobytes, descriptors. */
static void report(void)
{
    long total = 0, resident = 0, descriptors = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        exit(1);
    fclose(file);
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL)
        descriptors++;
    closedir(directory);
    printf("%ld %ld\n", resident * (sysconf(_SC_PAGESIZE) / 1024), descriptors);
    fflush(stdout);
}

static void once(shmlimit_limiter *limiter)
{
    shmlimit_grant grant, none;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    const shmlimit_header headers[] = {{"Content-Type", "text/html"}, {"X-RateLimit-Remaining", "7"}};
    const shmlimit_cost much = {"requests", 1000000}, unknown = {"tokens", 1};
    shmlimit_request request = {.size = sizeof request};
    shmlimit_outcome ok = {.size = sizeof ok, .status = 200, .headers = headers, .header_count = 2};
    shmlimit_outcome bad = {.size = sizeof bad, .status = 999};

    CHECK(shmlimit_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    CHECK(shmlimit_record(grant, &bad, NULL), SHMLIMIT_BAD_STATUS);
    CHECK(shmlimit_record(grant, &ok, NULL), SHMLIMIT_OK);
    CHECK(shmlimit_release(grant), SHMLIMIT_GRANT_DONE);
    /* All permits are taken: refused. */
    CHECK(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    CHECK(shmlimit_try_acquire(limiter, NULL, &none, NULL), SHMLIMIT_REFUSED);
    CHECK(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    CHECK(shmlimit_pending_step(wait, &sleep_ns, &none, NULL), SHMLIMIT_SLEEP);
    CHECK(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
    CHECK(shmlimit_cancel(grant), SHMLIMIT_OK);
    request.costs = &much;
    request.cost_count = 1;
    CHECK(shmlimit_acquire(limiter, &request, &none, NULL), SHMLIMIT_REFUSED);
    request.costs = &unknown;
    CHECK(shmlimit_try_acquire(limiter, &request, &none, NULL), SHMLIMIT_UNKNOWN_UNIT);
    request.size = 3;
    CHECK(shmlimit_try_acquire(limiter, &request, &none, NULL), SHMLIMIT_WRONG_SIZE);
}

int main(int argc, char **argv)
{
    shmlimit_limiter *limiter;
    shmlimit_options options = {.size = sizeof options, .flags = SHMLIMIT_OPEN_EXISTING};
    if (argc != 3)
        return fputs("usage: soak NAME TIMES\n", stderr), 2;
    CHECK(shmlimit_open(argv[1], &options, &limiter), SHMLIMIT_OK);
    const long times = atol(argv[2]);
    for (long i = 0; i < times; i++) {
        once(limiter);
        /* Expensive calls are less frequent. */
        if (i % 20 == 0) {
            const shmlimit_snapshot *snapshot;
            const shmlimit_names *names;
            shmlimit_limiter *again, *missing;
            char *text;
            CHECK(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
            shmlimit_snapshot_free(snapshot);
            CHECK(shmlimit_list(NULL, &names), SHMLIMIT_OK);
            shmlimit_names_free(names);
            CHECK(shmlimit_config(limiter, &text), SHMLIMIT_OK);
            shmlimit_text_free(text);
            CHECK(shmlimit_open(argv[1], &options, &again), SHMLIMIT_OK);
            CHECK(shmlimit_close(again), SHMLIMIT_OK);
            CHECK(shmlimit_open("no-such-limiter", &options, &missing), SHMLIMIT_UNKNOWN_LIMITER);
        }
        if ((i + 1) % (times / 20) == 0)
            report();
    }
    CHECK(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
