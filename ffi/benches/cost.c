/* The cost of a call from C, as a multiple of one clock read in the same round.
 *
 *   cost DIRECTORY ROUNDS
 */
#define _DEFAULT_SOURCE
#include "shmlimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SUBJECTS 7
#define MOST_ROUNDS 1001
#define BATCH 20000

static shmlimit_limiter *api, *full;
static volatile long sink;

static void check(int32_t code, int32_t expected)
{
    if (code != expected) {
        fprintf(stderr, "cost.c: %s: %s\n", shmlimit_code_name(code), shmlimit_last_error());
        exit(1);
    }
}

/* Processor time. Time that other programs on the machine use is not included. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void read_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    sink = time.tv_nsec;
}

static void acquire_and_release(void)
{
    shmlimit_grant grant;
    check(shmlimit_acquire(api, NULL, &grant, NULL), SHMLIMIT_OK);
    check(shmlimit_release(grant), SHMLIMIT_OK);
}

static void try_and_release(void)
{
    shmlimit_grant grant;
    check(shmlimit_try_acquire(api, NULL, &grant, NULL), SHMLIMIT_OK);
    check(shmlimit_release(grant), SHMLIMIT_OK);
}

static void acquire_with_request(void)
{
    const shmlimit_cost cost = {"requests", 2};
    shmlimit_request request = {.size = sizeof request, .costs = &cost, .cost_count = 1, .timeout_ns = 1000000000};
    request.priority = SHMLIMIT_PRIORITY_USER;
    shmlimit_answer answer = {.size = sizeof answer};
    shmlimit_grant grant;
    check(shmlimit_acquire(api, &request, &grant, &answer), SHMLIMIT_OK);
    check(shmlimit_release(grant), SHMLIMIT_OK);
}

static void acquire_and_record(void)
{
    shmlimit_grant grant;
    const shmlimit_outcome outcome = {.size = sizeof outcome, .status = 200};
    check(shmlimit_acquire(api, NULL, &grant, NULL), SHMLIMIT_OK);
    check(shmlimit_record(grant, &outcome, NULL), SHMLIMIT_OK);
}

static void record_call(void)
{
    const shmlimit_outcome outcome = {.size = sizeof outcome, .status = 200};
    check(shmlimit_record_call(api, &outcome, NULL), SHMLIMIT_OK);
}

static void refused(void)
{
    shmlimit_grant grant;
    shmlimit_answer answer = {.size = sizeof answer};
    check(shmlimit_try_acquire(full, NULL, &grant, &answer), SHMLIMIT_REFUSED);
}

static const struct {
    const char *name;
    void (*run)(void);
} subjects[SUBJECTS] = {
    {"clock read: clock_gettime(CLOCK_MONOTONIC)", read_clock},
    {"acquire + release", acquire_and_release},
    {"try_acquire + release", try_and_release},
    {"acquire with cost, priority, timeout and answer + release", acquire_with_request},
    {"acquire + record 200", acquire_and_record},
    {"record_call 200", record_call},
    {"try_acquire refused, with answer", refused},
};

static double times[SUBJECTS][MOST_ROUNDS], ratios[SUBJECTS][MOST_ROUNDS];

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static shmlimit_limiter *open_with(const char *directory, const char *name, const char *rate, const char *burst)
{
    const shmlimit_setting settings[] = {{"rate", rate}, {"burst", burst}, {"concurrency", "100"}};
    shmlimit_options options = {.size = sizeof options, .directory = directory, .settings = settings};
    shmlimit_limiter *limiter;
    options.setting_count = 3;
    check(shmlimit_open(name, &options, &limiter), SHMLIMIT_OK);
    return limiter;
}

int main(int argc, char **argv)
{
    shmlimit_grant grant;
    const int rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        return fputs("usage: cost DIRECTORY ROUNDS\n", stderr), 2;
    api = open_with(argv[1], "api-c", "1000000000/s", "1000000000");
    full = open_with(argv[1], "full-c", "1/h", "1");
    check(shmlimit_acquire(full, NULL, &grant, NULL), SHMLIMIT_OK);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SUBJECTS; i++) {
            const double begin = now();
            for (int n = 0; n < BATCH; n++)
                subjects[i].run();
            times[i][round] = (now() - begin) / BATCH;
            ratios[i][round] = times[i][round] / times[0][round];
        }
    }
    puts("| C | median ns | x clock |\n| --- | ---: | ---: |");
    for (int i = 0; i < SUBJECTS; i++)
        printf("| %s | %.1f | %.2f |\n", subjects[i].name, median(times[i], rounds), median(ratios[i], rounds));
    printf("\nshmlimit %s, %d rounds of %d\n", shmlimit_version(), rounds, BATCH);
    return 0;
}
