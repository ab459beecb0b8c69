/* Waiting, stopping, signals, and waiting step by step. Usage: waits DIRECTORY */
#include "check.h"

struct asked {
    int times;
    int stop_at; /* returns true on this call; 0 = never */
};

static int stop(void *context)
{
    struct asked *asked = (struct asked *)context;
    asked->times++;
    return asked->stop_at != 0 && asked->times >= asked->stop_at;
}

static void stopped_takes_nothing(shmlimit_limiter *limiter)
{
    shmlimit_grant held, grant = 99;
    struct asked asked = {0, 3};
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_answer, answer);
    request.stop = stop;
    request.stop_context = &asked;
    request.priority = SHMLIMIT_PRIORITY_USER;
    IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    uint64_t left = remaining(limiter, 0);
    memset(&answer, 0xee, sizeof answer);
    answer.size = sizeof answer;
    IS(shmlimit_acquire(limiter, &request, &grant, &answer), SHMLIMIT_STOPPED);
    SIZED(shmlimit_answer, empty);
    CHECK(grant == 0 && asked.times == 3 && memcmp(&answer, &empty, sizeof empty) == 0);
    CHECK(waiting(limiter) == 0 && in_flight(limiter) == 1 && remaining(limiter, 0) >= left);
    /* `stop` is not called for a call that need not wait. */
    IS(shmlimit_release(held), SHMLIMIT_OK);
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_OK);
    CHECK(asked.times == 3);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
}

/* A request without a timeout to spend is refused at once; with a longer one it is refused when the timeout ends. */
static void timeouts(shmlimit_limiter *limiter)
{
    shmlimit_grant held, grant;
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_answer, answer);
    struct timespec wall;
    IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    request.timeout_ns = SECOND / 50;
    IS(shmlimit_acquire(limiter, &request, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_CONCURRENCY && answer.rule == -1 && grant == 0);
    request.timeout_ns = 1;
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_REFUSED);
    request.timeout_ns = 0;
    request.deadline_ns = 1; /* a time in 1970 */
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_REFUSED);
    clock_gettime(CLOCK_REALTIME, &wall);
    request.deadline_ns = (uint64_t)wall.tv_sec * SECOND + (uint64_t)wall.tv_nsec + SECOND / 50;
    request.timeout_ns = UINT64_MAX; /* the earlier of the two applies */
    IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_REFUSED);
    CHECK(waiting(limiter) == 0);
    IS(shmlimit_release(held), SHMLIMIT_OK);
}

#ifndef _WIN32 /* on Windows a signal does not interrupt a thread */
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static int stop_after_signal(void *context)
{
    int *times = (int *)context;
    ++*times;
    return signals > 0;
}

struct call {
    shmlimit_limiter *limiter;
    int times;
    int32_t code;
    uint64_t ended;
};

static void *wait_for_signal(void *at)
{
    struct call *call = (struct call *)at;
    shmlimit_grant grant;
    SIZED(shmlimit_request, request);
    request.stop = stop_after_signal;
    request.stop_context = &call->times;
    call->code = shmlimit_acquire(call->limiter, &request, &grant, NULL);
    call->ended = now_ns();
    return NULL;
}

static void a_signal_asks_at_once(shmlimit_limiter *limiter)
{
    shmlimit_grant held;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    /* Without the signal `stop` would be called ten times a second, 50 ms later on average. The fastest of many
       rounds must beat that. */
    uint64_t quickest = UINT64_MAX;
    for (int round = 0; round < 10; round++) {
        struct call call = {limiter, 0, -1, 0};
        pthread_t thread;
        signals = 0;
        CHECK(pthread_create(&thread, NULL, wait_for_signal, &call) == 0);
        UNTIL(waiting(limiter) == 1);
        uint64_t sent = now_ns();
        pthread_kill(thread, SIGUSR1);
        pthread_join(thread, NULL);
        IS(call.code, SHMLIMIT_STOPPED);
        CHECK(call.times > 0 && waiting(limiter) == 0);
        if (call.ended - sent < quickest)
            quickest = call.ended - sent;
    }
    CHECK(quickest < SECOND / 100);
    IS(shmlimit_release(held), SHMLIMIT_OK);
}

#endif

static void step_by_step(shmlimit_limiter *limiter)
{
    shmlimit_grant held, grant = 99;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_answer, answer);
    /* Granted at once. */
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    CHECK(wait != 0 && in_flight(limiter) == 0);
    IS(shmlimit_pending_step(wait, &sleep_ns, &held, &answer), SHMLIMIT_OK);
    CHECK(held != 0 && answer.reason == 0 && answer.rule == -1 && in_flight(limiter) == 1);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grant, &answer), SHMLIMIT_PENDING_DONE);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_PENDING_DONE);
    /* Granted later, when the permit is back. */
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL), SHMLIMIT_SLEEP);
    CHECK(sleep_ns > 0 && grant == 0 && waiting(limiter) == 1);
    IS(shmlimit_release(held), SHMLIMIT_OK);
    UNTIL(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL) == SHMLIMIT_OK);
    CHECK(grant != 0 && waiting(limiter) == 0);
    /* Never granted: cancelled before and after the first step, and when the timeout ends. */
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &held, NULL), SHMLIMIT_SLEEP);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_PENDING_DONE);
    CHECK(waiting(limiter) == 0);
    request.timeout_ns = SECOND / 50;
    IS(shmlimit_enqueue(limiter, &request, &wait), SHMLIMIT_OK);
    int32_t code = SHMLIMIT_SLEEP;
    UNTIL((code = shmlimit_pending_step(wait, &sleep_ns, &held, &answer)) != SHMLIMIT_SLEEP);
    IS(code, SHMLIMIT_REFUSED);
    CHECK(held == 0 && answer.reason == SHMLIMIT_REASON_CONCURRENCY);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_PENDING_DONE);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
}

struct steps {
    shmlimit_pending wait;
    pthread_barrier_t *start;
    unsigned granted, done;
    shmlimit_grant grant;
};

static void *step_in_thread(void *at)
{
    struct steps *steps = (struct steps *)at;
    pthread_barrier_wait(steps->start);
    for (int i = 0; i < 200; i++) {
        uint64_t sleep_ns;
        shmlimit_grant grant;
        int32_t code = shmlimit_pending_step(steps->wait, &sleep_ns, &grant, NULL);
        CHECK(code == SHMLIMIT_SLEEP || code == SHMLIMIT_PENDING_DONE || code == SHMLIMIT_OK);
        if (code == SHMLIMIT_OK) {
            steps->granted++;
            steps->grant = grant;
        }
        steps->done += code == SHMLIMIT_PENDING_DONE;
    }
    return NULL;
}

/* Two threads step one wait: at most one of them gets the grant, and the call stands in the queue once. */
static void two_threads_step(shmlimit_limiter *limiter)
{
    for (int round = 0; round < rounds(20, 4); round++) {
        shmlimit_grant held = 0;
        shmlimit_pending wait;
        pthread_t threads[2];
        pthread_barrier_t start;
        struct steps steps[2];
        memset(steps, 0, sizeof steps);
        pthread_barrier_init(&start, NULL, 3);
        IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
        IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
        for (int i = 0; i < 2; i++) {
            steps[i].wait = wait;
            steps[i].start = &start;
            CHECK(pthread_create(&threads[i], NULL, step_in_thread, &steps[i]) == 0);
        }
        pthread_barrier_wait(&start);
        CHECK(waiting(limiter) <= 1);
        if (round % 2 == 0)
            IS(shmlimit_release(held), SHMLIMIT_OK);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
        CHECK(steps[0].granted + steps[1].granted <= (round % 2 == 0));
        for (int i = 0; i < 2; i++)
            if (steps[i].granted)
                IS(shmlimit_release(steps[i].grant), SHMLIMIT_OK);
        if (steps[0].granted + steps[1].granted == 0)
            IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
        if (round % 2 != 0)
            IS(shmlimit_release(held), SHMLIMIT_OK);
        CHECK(waiting(limiter) == 0 && in_flight(limiter) == 0);
    }
}

/* During a pause a call is refused if it does not wait or cannot wait long enough. Other calls wait, and go on
   after the pause. */
static void pauses(shmlimit_limiter *limiter)
{
    shmlimit_grant grant;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    int32_t was_paused = 99;
    const shmlimit_snapshot *shown;
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_answer, answer);
    SIZED(shmlimit_pause_options, options);
    IS(shmlimit_resume(limiter, &was_paused), SHMLIMIT_OK);
    CHECK(was_paused == 0);
    options.duration_ns = 600 * SECOND;
    options.reason = "database migration";
    IS(shmlimit_pause(limiter, &options), SHMLIMIT_OK);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_PAUSED && answer.retry_after_ns > 500 * SECOND);
    CHECK(answer.retry_after_ns <= 600 * SECOND && grant == 0);
    request.timeout_ns = 60 * SECOND; /* the timeout ends before the pause: refused at once */
    IS(shmlimit_acquire(limiter, &request, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_PAUSED);
    IS(shmlimit_snapshot_take(limiter, &shown), SHMLIMIT_OK);
    CHECK(shown->paused == 1 && shown->pause_pid != 0 && shown->pause_program[0] != '\0');
    CHECK(strcmp(shown->pause_reason, "database migration") == 0);
    CHECK(shown->pause_ends_in_ns > 500 * SECOND && shown->paused_for_ns < 100 * SECOND);
    shmlimit_snapshot_free(shown);
    IS(shmlimit_pause(limiter, NULL), SHMLIMIT_OK); /* until the limiter is resumed */
    IS(shmlimit_try_acquire(limiter, NULL, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_PAUSED && answer.retry_after_ns == SHMLIMIT_NEVER);
    request.timeout_ns = SECOND / 50; /* waits for its whole timeout, because an operator may resume the limiter */
    IS(shmlimit_acquire(limiter, &request, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_PAUSED && waiting(limiter) == 0);
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL), SHMLIMIT_SLEEP);
    CHECK(waiting(limiter) == 1 && sleep_ns > 0);
    IS(shmlimit_resume(limiter, &was_paused), SHMLIMIT_OK);
    CHECK(was_paused == 1);
    IS(shmlimit_pending_step(wait, &sleep_ns, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    IS(shmlimit_resume(limiter, NULL), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &shown), SHMLIMIT_OK);
    CHECK(shown->paused == 0 && shown->pause_program == NULL && shown->pause_reason == NULL);
    CHECK(shown->pause_ends_in_ns == 0 && shown->paused_for_ns == 0 && shown->pause_pid == 0);
    shmlimit_snapshot_free(shown);
    options.reason = "two\nlines";
    IS(shmlimit_pause(limiter, &options), SHMLIMIT_BAD_VALUE);
    options.reason = "\xff";
    IS(shmlimit_pause(limiter, &options), SHMLIMIT_NOT_UTF8);
    options.size = 8;
    IS(shmlimit_pause(limiter, &options), SHMLIMIT_WRONG_SIZE);
    IS(shmlimit_pause(NULL, NULL), SHMLIMIT_CLOSED);
    IS(shmlimit_resume(NULL, &was_paused), SHMLIMIT_CLOSED);
    CHECK(was_paused == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *limiter = make(argv[1], "waits", ONE_AT_A_TIME);
    stopped_takes_nothing(limiter);
    timeouts(limiter);
#ifndef _WIN32
    a_signal_asks_at_once(limiter);
#endif
    step_by_step(limiter);
    two_threads_step(limiter);
    pauses(limiter);
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
