/* Handles, grants and waits in forked children. Usage: forks DIRECTORY */
#include "check.h"

/* A child exits like a test: 0 means success. */
#define IS_WELL(child) CHECK(exit_code(child) == 0)

static volatile int over;

/* This thread is inside the library most of the time, also while the process forks. */
static void *busy(void *limiter)
{
    while (!over) {
        shmlimit_grant grant;
        if (shmlimit_try_acquire((shmlimit_limiter *)limiter, NULL, &grant, NULL) == SHMLIMIT_OK)
            IS(shmlimit_release(grant), SHMLIMIT_OK);
        (void)shmlimit_release(grant);
    }
    return NULL;
}

static void a_grant_stays_the_parents(shmlimit_limiter *limiter)
{
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;
    for (int how = 0; how < 5; how++) {
        shmlimit_grant grant, own;
        IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
        pid_t child = fork();
        if (child == 0) {
            switch (how) {
            case 0: IS(shmlimit_release(grant), SHMLIMIT_OK); break;
            case 1: IS(shmlimit_cancel(grant), SHMLIMIT_OK); break;
            case 2: IS(shmlimit_record(grant, &outcome, NULL), SHMLIMIT_OK); break;
            case 3: IS(shmlimit_close(limiter), SHMLIMIT_OK); _exit(0);
            default: exit(0); /* with the exit handlers */
            }
            CHECK(in_flight(limiter) == 1); /* held by the parent */
            IS(shmlimit_release(grant), SHMLIMIT_GRANT_DONE);
            /* The parent holds the only permit, and the child has none. */
            IS(shmlimit_try_acquire(limiter, NULL, &own, NULL), SHMLIMIT_REFUSED);
            _exit(0);
        }
        IS_WELL(child);
        CHECK(in_flight(limiter) == 1);
        IS(shmlimit_release(grant), SHMLIMIT_OK);
        CHECK(in_flight(limiter) == 0);
    }
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->ok == 1); /* an outcome that a child recorded counts */
    shmlimit_snapshot_free(snapshot);
}

static void a_childs_grant_is_its_own(shmlimit_limiter *limiter)
{
    pid_t child = fork();
    if (child == 0) {
        shmlimit_grant grant;
        IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
        CHECK(in_flight(limiter) == 1);
        _exit(0); /* without giving it back: the permit comes back because the process dies */
    }
    IS_WELL(child);
    shmlimit_grant grant;
    SIZED(shmlimit_request, request);
    request.timeout_ns = 20 * SECOND;
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_OK);
    CHECK(in_flight(limiter) == 1);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

static void a_wait_is_a_call_of_the_childs_own(shmlimit_limiter *limiter)
{
    shmlimit_grant grant, later;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &later, NULL), SHMLIMIT_SLEEP);
    CHECK(waiting(limiter) == 1);
    for (int steps = 0; steps < 2; steps++) {
        pid_t child = fork();
        if (child == 0) {
            if (steps) {
                IS(shmlimit_pending_step(wait, &sleep_ns, &later, NULL), SHMLIMIT_SLEEP);
                CHECK(waiting(limiter) == 2);
            }
            IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
            CHECK(waiting(limiter) == 1);
            _exit(0);
        }
        IS_WELL(child);
        CHECK(waiting(limiter) == 1);
    }
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    UNTIL(shmlimit_pending_step(wait, &sleep_ns, &later, NULL) == SHMLIMIT_OK);
    IS(shmlimit_release(later), SHMLIMIT_OK);
}

/* The parent's threads are at any point of the library when it forks. The child has only one thread, and its calls
   still succeed. */
static void in_the_middle_of_everything(const char *directory)
{
    shmlimit_limiter *limiter = make(directory, "busy", "concurrency = 100\n");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, limiter) == 0);
    for (int round = 0; round < rounds(150, 15); round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* a child that hangs is killed, and fails */
            shmlimit_grant grant;
            shmlimit_pending wait;
            IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
            IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
            IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
            IS(shmlimit_release(grant), SHMLIMIT_OK);
            IS(shmlimit_release(grant), SHMLIMIT_GRANT_DONE);
            IS(shmlimit_close(limiter), SHMLIMIT_OK);
            IS(shmlimit_close(limiter), SHMLIMIT_CLOSED);
            _exit(0);
        }
        IS_WELL(child);
    }
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(in_flight(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *limiter = make(argv[1], "forks", ONE_AT_A_TIME "[breaker]\nkind = \"consecutive\"\n");
    a_grant_stays_the_parents(limiter);
    a_childs_grant_is_its_own(limiter);
    a_wait_is_a_call_of_the_childs_own(limiter);
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    in_the_middle_of_everything(argv[1]);
    return 0;
}
