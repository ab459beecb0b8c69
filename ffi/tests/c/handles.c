/* Closed and invalid handles return an error code and never crash the program. Usage: handles DIRECTORY */
#include "check.h"

static shmlimit_limiter *number(uint64_t of)
{
    shmlimit_limiter *limiter;
    memcpy(&limiter, &of, sizeof limiter);
    return limiter;
}

static void all_refuse(shmlimit_limiter *gone)
{
    shmlimit_grant grant = 99;
    shmlimit_pending wait = 99;
    char *text;
    const shmlimit_snapshot *snapshot;
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;
    IS(shmlimit_try_acquire(gone, NULL, &grant, NULL), SHMLIMIT_CLOSED);
    IS(shmlimit_acquire(gone, NULL, &grant, NULL), SHMLIMIT_CLOSED);
    IS(shmlimit_enqueue(gone, NULL, &wait), SHMLIMIT_CLOSED);
    IS(shmlimit_force(gone, "normal"), SHMLIMIT_CLOSED);
    IS(shmlimit_set(gone, "concurrency", "1"), SHMLIMIT_CLOSED);
    IS(shmlimit_count_cache(gone, 1), SHMLIMIT_CLOSED);
    IS(shmlimit_config(gone, &text), SHMLIMIT_CLOSED);
    IS(shmlimit_metrics(gone, &text), SHMLIMIT_CLOSED);
    CHECK(text == NULL);
    IS(shmlimit_record_call(gone, &outcome, NULL), SHMLIMIT_CLOSED);
    IS(shmlimit_snapshot_take(gone, &snapshot), SHMLIMIT_CLOSED);
    IS(shmlimit_close(gone), SHMLIMIT_CLOSED);
    CHECK(grant == 0 && wait == 0 && text == NULL && snapshot == NULL);
}

static void grants_end_once(shmlimit_limiter *limiter)
{
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_advice, advice);
    outcome.status = 200;
    for (int how = 0; how < 9; how++) {
        shmlimit_grant grant;
        IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
        for (int again = 0; again < 2; again++) {
            int32_t expected = again ? SHMLIMIT_GRANT_DONE : SHMLIMIT_OK;
            switch (again ? how % 3 : how / 3) {
            case 0: IS(shmlimit_release(grant), expected); break;
            case 1: IS(shmlimit_cancel(grant), expected); break;
            default: IS(shmlimit_record(grant, &outcome, &advice), expected);
            }
        }
        CHECK(in_flight(limiter) == 0);
    }
}

/* Numbers near valid handles, and far from them. */
static void garbage(shmlimit_limiter *limiter)
{
    shmlimit_grant grant;
    shmlimit_pending wait;
    uint64_t sleep_ns, handle = 0;
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;
    memcpy(&handle, &limiter, sizeof limiter);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < rounds(20000, 600); i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const uint64_t numbers[] = {seed, seed >> 32, seed << 32, UINT64_C(1) << (i % 64), grant ^ UINT64_C(1) << (i % 64), UINT64_MAX - (uint64_t)i};
        uint64_t any = numbers[i % 6], other;
        if (any == grant || any == wait || any == handle)
            continue;
        IS(shmlimit_release(any), SHMLIMIT_GRANT_DONE);
        IS(shmlimit_cancel(any), SHMLIMIT_GRANT_DONE);
        IS(shmlimit_record(any, &outcome, NULL), SHMLIMIT_GRANT_DONE);
        IS(shmlimit_pending_step(any, &sleep_ns, &other, NULL), SHMLIMIT_PENDING_DONE);
        IS(shmlimit_pending_cancel(any), SHMLIMIT_PENDING_DONE);
        if (any != 0) /* NULL may be closed */
            IS(shmlimit_close(number(any)), SHMLIMIT_CLOSED);
        IS(shmlimit_try_acquire(number(any), NULL, &other, NULL), SHMLIMIT_CLOSED);
    }
    CHECK(in_flight(limiter) == 1);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

/* A handle of one kind is invalid where another kind is expected. */
static void mixed_up(const char *directory)
{
    enum { MANY = 70 };
    shmlimit_limiter *limiters[MANY];
    shmlimit_grant grants[MANY], other;
    shmlimit_pending waits[MANY];
    uint64_t sleep_ns;
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_outcome, outcome);
    options.directory = directory;
    outcome.status = 200;
    shmlimit_limiter *limiter = make(directory, "mixed", "concurrency = 2000\n");
    for (int i = 0; i < MANY; i++) {
        IS(shmlimit_open("mixed", &options, &limiters[i]), SHMLIMIT_OK);
        IS(shmlimit_try_acquire(limiters[i], NULL, &grants[i], NULL), SHMLIMIT_OK);
        IS(shmlimit_enqueue(limiters[i], NULL, &waits[i]), SHMLIMIT_OK);
    }
    for (int i = 0; i < MANY; i++) {
        uint64_t handle = 0;
        memcpy(&handle, &limiters[i], sizeof handle);
        const uint64_t no_grants[] = {handle, waits[i]}, no_waits[] = {handle, grants[i]}, no_limiters[] = {grants[i], waits[i]};
        for (int j = 0; j < 2; j++) {
            IS(shmlimit_release(no_grants[j]), SHMLIMIT_GRANT_DONE);
            IS(shmlimit_record(no_grants[j], &outcome, NULL), SHMLIMIT_GRANT_DONE);
            IS(shmlimit_pending_step(no_waits[j], &sleep_ns, &other, NULL), SHMLIMIT_PENDING_DONE);
            IS(shmlimit_pending_cancel(no_waits[j]), SHMLIMIT_PENDING_DONE);
            IS(shmlimit_close(number(no_limiters[j])), SHMLIMIT_CLOSED);
        }
    }
    CHECK(in_flight(limiter) == MANY);
    for (int i = 0; i < MANY; i++) {
        IS(shmlimit_pending_cancel(waits[i]), SHMLIMIT_OK);
        IS(shmlimit_release(grants[i]), SHMLIMIT_OK);
        IS(shmlimit_close(limiters[i]), SHMLIMIT_OK);
    }
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
}

/* A closed handle stays invalid, whatever was opened later. */
static void old_numbers(shmlimit_limiter *limiter)
{
    enum { MANY = 3000 };
    static shmlimit_grant old[MANY];
    for (int i = 0; i < rounds(MANY, 200); i++) {
        IS(shmlimit_try_acquire(limiter, NULL, &old[i], NULL), SHMLIMIT_OK);
        for (int j = i > 50 ? i - 50 : 0; j < i; j++)
            CHECK(old[j] != old[i]);
        if (i > 0)
            IS(shmlimit_release(old[i - 1]), SHMLIMIT_GRANT_DONE);
        IS(shmlimit_cancel(old[i]), SHMLIMIT_OK);
    }
    CHECK(in_flight(limiter) == 0);
}

static void grants_outlive_their_limiter(const char *directory)
{
    shmlimit_limiter *first = make(directory, "outlived", TWO_UNITS), *second;
    shmlimit_grant grants[3];
    shmlimit_pending wait;
    uint64_t sleep_ns;
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_advice, advice);
    outcome.status = 200;
    for (int i = 0; i < 2; i++)
        IS(shmlimit_try_acquire(first, NULL, &grants[i], NULL), SHMLIMIT_OK);
    IS(shmlimit_enqueue(first, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_close(first), SHMLIMIT_OK);
    all_refuse(first);
    SIZED(shmlimit_options, options);
    options.directory = directory;
    options.flags = SHMLIMIT_OPEN_EXISTING;
    IS(shmlimit_open("outlived", &options, &second), SHMLIMIT_OK);
    CHECK(in_flight(second) == 2);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grants[2], NULL), SHMLIMIT_OK);
    CHECK(in_flight(second) == 3);
    IS(shmlimit_release(grants[0]), SHMLIMIT_OK);
    IS(shmlimit_record(grants[1], &outcome, &advice), SHMLIMIT_OK);
    CHECK(advice.outcome_class == SHMLIMIT_CLASS_OK);
    IS(shmlimit_cancel(grants[2]), SHMLIMIT_OK);
    CHECK(in_flight(second) == 0);
    IS(shmlimit_close(second), SHMLIMIT_OK);
}

/* More grants and waits than the first chunk of the tables holds. */
static void many_at_once(const char *directory)
{
    enum { MANY = 500 };
    static shmlimit_grant grants[MANY];
    static shmlimit_pending waits[MANY];
    static shmlimit_limiter *limiters[MANY];
    shmlimit_limiter *limiter = make(directory, "many", "concurrency = 2000\n");
    SIZED(shmlimit_options, options);
    options.directory = directory;
    for (int i = 0; i < MANY; i++) {
        IS(shmlimit_open("many", &options, &limiters[i]), SHMLIMIT_OK);
        IS(shmlimit_try_acquire(limiters[i], NULL, &grants[i], NULL), SHMLIMIT_OK);
        IS(shmlimit_enqueue(limiters[i], NULL, &waits[i]), SHMLIMIT_OK);
    }
    CHECK(in_flight(limiter) == MANY);
    for (int i = MANY - 1; i >= 0; i -= 1) {
        IS(shmlimit_close(limiters[i]), SHMLIMIT_OK);
        IS(shmlimit_release(grants[i]), SHMLIMIT_OK);
        IS(shmlimit_pending_cancel(waits[i]), SHMLIMIT_OK);
    }
    CHECK(in_flight(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *limiter = make(argv[1], "handles", ONE_AT_A_TIME);
    grants_end_once(limiter);
    garbage(limiter);
    old_numbers(limiter);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    all_refuse(limiter);
    all_refuse(number(1));
    grants_outlive_their_limiter(argv[1]);
    many_at_once(argv[1]);
    mixed_up(argv[1]);
    return 0;
}
