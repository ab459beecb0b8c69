/* Processes that share a limiter, and some that are killed. Usage: processes DIRECTORY [ROLE] */
#include "check.h"

enum { BURST = 40, ENDED_WELL = 100 };

static shmlimit_limiter *join(const char *directory, const char *name)
{
    shmlimit_limiter *limiter;
    SIZED(shmlimit_options, options);
    options.directory = directory;
    options.flags = SHMLIMIT_OPEN_EXISTING;
    IS(shmlimit_open(name, &options, &limiter), SHMLIMIT_OK);
    return limiter;
}

/* A role: takes every call that is left, and returns their number as its exit code. */
static int take_all(const char *directory)
{
    shmlimit_limiter *limiter = join(directory, "budget");
    shmlimit_grant grant;
    int granted = 0;
    int32_t code;
    while ((code = shmlimit_try_acquire(limiter, NULL, &grant, NULL)) == SHMLIMIT_OK) {
        granted++;
        IS(shmlimit_release(grant), SHMLIMIT_OK);
    }
    IS(code, SHMLIMIT_REFUSED);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return ENDED_WELL + granted;
}

/* A role: holds the permit, or waits for it, until it is killed. */
static int hold(const char *directory)
{
    shmlimit_limiter *limiter = join(directory, "permit");
    shmlimit_grant grant;
    IS(shmlimit_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    UNTIL(in_flight(limiter) > 1); /* this never happens */
    return 1;
}

static void two_share_one_budget(const char *program, const char *directory)
{
    shmlimit_limiter *limiter = make(directory, "budget",
        "[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 1\nperiod = \"1h\"\nburst = 40\n");
    process both[2] = {start(program, directory, "take"), start(program, directory, "take")};
    int one = exit_code(both[0]) - ENDED_WELL, other = exit_code(both[1]) - ENDED_WELL;
    CHECK(one >= 0 && other >= 0 && one + other == BURST);
    CHECK(remaining(limiter, 0) == 0 && in_flight(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
}

static void a_killed_one_gives_its_permit_back(shmlimit_limiter *limiter, const char *program, const char *directory)
{
    shmlimit_grant grant;
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_answer, answer);
    request.timeout_ns = 20 * SECOND;
    process holder = start(program, directory, "hold");
    UNTIL(in_flight(limiter) == 1);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_CONCURRENCY);
    kill_process(holder);
    uint64_t killed = now_ns();
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_OK);
    CHECK(now_ns() - killed < 5 * SECOND && in_flight(limiter) == 1);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

static void a_killed_one_leaves_the_queue(shmlimit_limiter *limiter, const char *program, const char *directory)
{
    shmlimit_grant held, grant;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    process first = start(program, directory, "hold");
    UNTIL(waiting(limiter) == 1);
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL), SHMLIMIT_SLEEP);
    CHECK(waiting(limiter) == 2);
    kill_process(first);
    IS(shmlimit_release(held), SHMLIMIT_OK);
    UNTIL(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL) == SHMLIMIT_OK);
    CHECK(waiting(limiter) == 0 && in_flight(limiter) == 1);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    if (argc == 3)
        return strcmp(argv[2], "take") == 0 ? take_all(argv[1]) : hold(argv[1]);
    two_share_one_budget(argv[0], argv[1]);
    shmlimit_limiter *limiter = make(argv[1], "permit", ONE_AT_A_TIME);
    a_killed_one_gives_its_permit_back(limiter, argv[0], argv[1]);
    a_killed_one_leaves_the_queue(limiter, argv[0], argv[1]);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
