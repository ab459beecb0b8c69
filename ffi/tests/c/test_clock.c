/* A test clock: waiting calls move it by the exact time and take no real time. Its handle is checked like every
   handle. */
#include "check.h"

static const char *directory;

static shmlimit_limiter *open_on(shmlimit_test_clock *clock, const char *name, const char *rate)
{
    shmlimit_setting setting = {"rate", rate};
    SIZED(shmlimit_options, options);
    shmlimit_limiter *limiter = NULL;
    options.directory = directory;
    options.settings = &setting;
    options.setting_count = 1;
    options.test_clock = clock;
    IS(shmlimit_open(name, &options, &limiter), SHMLIMIT_OK);
    return limiter;
}

static uint64_t elapsed(shmlimit_test_clock *clock)
{
    uint64_t ns = 1;
    IS(shmlimit_test_clock_elapsed(clock, &ns), SHMLIMIT_OK);
    return ns;
}

static void call_once(shmlimit_limiter *limiter)
{
    shmlimit_grant grant;
    IS(shmlimit_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

static void eleventh_call_waits_a_minute(shmlimit_test_clock *clock)
{
    shmlimit_limiter *api = open_on(clock, "api", "10/min");
    shmlimit_grant grant;
    SIZED(shmlimit_answer, answer);
    for (int i = 0; i < 10; i++)
        call_once(api);
    IS(shmlimit_try_acquire(api, NULL, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.retry_after_ns == 60 * SECOND);
    CHECK(elapsed(clock) == 0);
    call_once(api);
    CHECK(elapsed(clock) == 60 * SECOND);
    /* A request that cannot meet its deadline on the test's clock is refused, and the clock does not move. */
    for (int i = 0; i < 9; i++)
        call_once(api);
    SIZED(shmlimit_request, request);
    uint64_t now = 0;
    IS(shmlimit_test_clock_now(clock, &now), SHMLIMIT_OK);
    CHECK(now == UINT64_C(1893456060) * SECOND);
    request.deadline_ns = now + 59 * SECOND;
    IS(shmlimit_acquire(api, &request, &grant, NULL), SHMLIMIT_REFUSED);
    CHECK(elapsed(clock) == 60 * SECOND);
    /* Waiting step by step: the step itself moves the clock. */
    shmlimit_pending pending;
    uint64_t sleep_ns;
    IS(shmlimit_enqueue(api, NULL, &pending), SHMLIMIT_OK);
    IS(shmlimit_pending_step(pending, &sleep_ns, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    CHECK(elapsed(clock) == 120 * SECOND);
    IS(shmlimit_close(api), SHMLIMIT_OK);
}

static void retry_after_lasts_exactly_so_long(shmlimit_test_clock *clock)
{
    shmlimit_limiter *gated = open_on(clock, "gated", "1000/min");
    shmlimit_header after = {"Retry-After", "30"};
    SIZED(shmlimit_outcome, outcome);
    shmlimit_grant grant;
    uint64_t before = elapsed(clock);
    outcome.status = 429;
    outcome.headers = &after;
    outcome.header_count = 1;
    IS(shmlimit_acquire(gated, NULL, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_record(grant, &outcome, NULL), SHMLIMIT_OK);
    IS(shmlimit_test_clock_advance(clock, 30 * SECOND - 1), SHMLIMIT_OK);
    IS(shmlimit_try_acquire(gated, NULL, &grant, NULL), SHMLIMIT_REFUSED);
    IS(shmlimit_test_clock_advance(clock, 1), SHMLIMIT_OK);
    call_once(gated);
    CHECK(elapsed(clock) - before == 30 * SECOND);
    /* The limiter keeps the clock that it was opened with. */
    IS(shmlimit_test_clock_free(clock), SHMLIMIT_OK);
    call_once(gated);
    IS(shmlimit_close(gated), SHMLIMIT_OK);
}

static void clocks_are_checked(void)
{
    shmlimit_test_clock *clock = NULL;
    shmlimit_limiter *limiter = NULL;
    uint64_t ns = 7;
    SIZED(shmlimit_options, options);
    IS(shmlimit_test_clock_new(UINT64_C(1700000000) * SECOND, &clock), SHMLIMIT_OK);
    IS(shmlimit_test_clock_now(clock, &ns), SHMLIMIT_OK);
    CHECK(ns == UINT64_C(1700000000) * SECOND);
    /* A test clock never uses the default directory, even if a variable names it. */
    options.test_clock = clock;
    IS(shmlimit_open("tmdb", &options, &limiter), SHMLIMIT_BAD_VALUE);
    SAYS("temporary");
    CHECK(limiter == NULL);
    IS(shmlimit_test_clock_advance((shmlimit_test_clock *)limiter, 1), SHMLIMIT_CLOSED);
    IS(shmlimit_test_clock_elapsed(clock, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_test_clock_new(0, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_test_clock_free(clock), SHMLIMIT_OK);
    IS(shmlimit_test_clock_free(clock), SHMLIMIT_CLOSED);
    IS(shmlimit_test_clock_free(NULL), SHMLIMIT_OK);
    IS(shmlimit_test_clock_advance(clock, 1), SHMLIMIT_CLOSED);
    IS(shmlimit_test_clock_elapsed(clock, &ns), SHMLIMIT_CLOSED);
    CHECK(ns == 0);
    options.directory = directory;
    IS(shmlimit_open("tmdb", &options, &limiter), SHMLIMIT_CLOSED);
}

int main(int argc, char **argv)
{
    shmlimit_test_clock *clock = NULL;
    uint64_t began = now_ns();
    CHECK(argc == 2);
    directory = argv[1];
    IS(shmlimit_test_clock_new(0, &clock), SHMLIMIT_OK);
    eleventh_call_waits_a_minute(clock);
    retry_after_lasts_exactly_so_long(clock);
    clocks_are_checked();
    CHECK(now_ns() - began < 30 * SECOND);
    return 0;
}
