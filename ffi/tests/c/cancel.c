/* Threads that are cancelled inside the library: the program goes on, and every permit comes back. Usage: cancel
   DIRECTORY */
#include "check.h"

struct thread {
    shmlimit_limiter *limiter;
    shmlimit_grant grant; /* 0, or the grant that the cleanup handler has to give back */
    const char *directory;
    int type, started, returned, cleaned;
};

static int read_once(int *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* A careful program gives back what it holds. It cannot know whether its release was carried out before. */
static void clean_up(void *at)
{
    struct thread *self = (struct thread *)at;
    if (self->grant != 0) {
        int32_t code = shmlimit_release(self->grant);
        CHECK(code == SHMLIMIT_OK || code == SHMLIMIT_GRANT_DONE);
    }
    self->cleaned = 1;
}

/* Waits for the end of a cancelled thread. */
static void join_cancelled(pthread_t id, const struct thread *thread)
{
    void *how = NULL;
    CHECK(pthread_join(id, &how) == 0);
    CHECK(how == PTHREAD_CANCELED && thread->cleaned == 1);
}

static void *waits(void *at)
{
    struct thread *self = (struct thread *)at;
    int before;
    pthread_cleanup_push(clean_up, self);
    CHECK(pthread_setcanceltype(self->type, &before) == 0);
    IS(shmlimit_acquire(self->limiter, NULL, &self->grant, NULL), SHMLIMIT_OK);
    CHECK(self->grant != 0);
    CHECK(self->type == PTHREAD_CANCEL_DEFERRED); /* a thread with asynchronous cancellation ends before it sees the grant */
    self->returned = 1;
    for (;;)
        pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

/* A waiting thread is cancelled: it keeps waiting, is granted, and ends at its next cancellation point. By then it
   knows its grant. */
static void cancelled_while_waiting(shmlimit_limiter *limiter, int type)
{
    for (int round = 0; round < rounds(20, 5); round++) {
        struct thread thread;
        shmlimit_grant held;
        memset(&thread, 0, sizeof thread);
        thread.limiter = limiter;
        thread.type = type;
        IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
        pthread_t id;
        CHECK(pthread_create(&id, NULL, waits, &thread) == 0);
        UNTIL(waiting(limiter) == 1);
        CHECK(pthread_cancel(id) == 0);
        IS(shmlimit_release(held), SHMLIMIT_OK);
        join_cancelled(id, &thread);
        CHECK(thread.returned == (type == PTHREAD_CANCEL_DEFERRED) && thread.grant != 0);
        CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    }
}

static int stop(void *context)
{
    return read_once((int *)context);
}

static void *stops(void *at)
{
    struct thread *self = (struct thread *)at;
    SIZED(shmlimit_request, request);
    request.stop = stop;
    request.stop_context = &self->started;
    pthread_cleanup_push(clean_up, self);
    IS(shmlimit_acquire(self->limiter, &request, &self->grant, NULL), SHMLIMIT_STOPPED);
    pthread_testcancel();
    fail(__FILE__, __LINE__, "not cancelled");
    pthread_cleanup_pop(0);
    return NULL;
}

/* As the header says: a waiting thread ends soon after its `stop` returns true. */
static void stopped_and_cancelled(shmlimit_limiter *limiter)
{
    shmlimit_grant held;
    struct thread thread;
    pthread_t id;
    memset(&thread, 0, sizeof thread);
    thread.limiter = limiter;
    IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    CHECK(pthread_create(&id, NULL, stops, &thread) == 0);
    UNTIL(waiting(limiter) == 1);
    CHECK(pthread_cancel(id) == 0);
    __atomic_store_n(&thread.started, 1, __ATOMIC_RELEASE);
    join_cancelled(id, &thread);
    CHECK(waiting(limiter) == 0 && in_flight(limiter) == 1);
    IS(shmlimit_release(held), SHMLIMIT_OK);
}

/* Every function, again and again. Opening and snapshots read files, and glibc cancels threads in such calls. */
static void *calls(void *at)
{
    struct thread *self = (struct thread *)at;
    int before;
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_request, request);
    outcome.status = 200;
    request.timeout_ns = SECOND / 1000;
    pthread_cleanup_push(clean_up, self);
    for (int i = 0;; i++) {
        shmlimit_pending wait;
        uint64_t sleep_ns;
        /* Cancellation is asynchronous only around calls whose single resource is known to the cleanup handler. */
        CHECK(pthread_setcanceltype(self->type, &before) == 0);
        __atomic_store_n(&self->started, 1, __ATOMIC_RELEASE);
        int32_t code = i % 2 ? shmlimit_acquire(self->limiter, &request, &self->grant, NULL)
                             : shmlimit_try_acquire(self->limiter, NULL, &self->grant, NULL);
        if (code == SHMLIMIT_OK)
            code = i % 4 < 2 ? shmlimit_release(self->grant) : shmlimit_record(self->grant, &outcome, NULL);
        CHECK(code == SHMLIMIT_OK || code == SHMLIMIT_REFUSED);
        shmlimit_set(self->limiter, "no-key", "1");
        shmlimit_last_error();
        shmlimit_code_name(code);
        CHECK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before) == 0);
        pthread_testcancel();
        /* Nothing here is a cancellation point, so the thread cannot be cancelled between beginning and ending. */
        IS(shmlimit_enqueue(self->limiter, NULL, &wait), SHMLIMIT_OK);
        code = shmlimit_pending_step(wait, &sleep_ns, &self->grant, NULL);
        if (code == SHMLIMIT_SLEEP)
            shmlimit_pending_cancel(wait);
        else if (code == SHMLIMIT_OK)
            IS(shmlimit_release(self->grant), SHMLIMIT_OK);
        (void)in_flight(self->limiter);
        if (i % 8 == 0) {
            const shmlimit_names *names;
            IS(shmlimit_presets(&names), SHMLIMIT_OK);
            shmlimit_names_free(names);
        }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled_anywhere(shmlimit_limiter *limiter, int type)
{
    for (int round = 0; round < rounds(100, 20); round++) {
        struct thread thread;
        shmlimit_grant held = 0;
        memset(&thread, 0, sizeof thread);
        thread.limiter = limiter;
        thread.type = type;
        if (round % 3 == 0) /* in some rounds every call is refused or waits */
            IS(shmlimit_try_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
        pthread_t id;
        CHECK(pthread_create(&id, NULL, calls, &thread) == 0);
        while (!read_once(&thread.started))
            ;
        for (volatile int spin = 0; spin < round * 97 % 20000; spin = spin + 1)
            ;
        CHECK(pthread_cancel(id) == 0);
        join_cancelled(id, &thread);
        if (held != 0)
            IS(shmlimit_release(held), SHMLIMIT_OK);
        CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    }
}

static void *opens(void *at)
{
    struct thread *self = (struct thread *)at;
    SIZED(shmlimit_options, options);
    options.directory = self->directory;
    pthread_cleanup_push(clean_up, self);
    for (;;) {
        shmlimit_limiter *own = NULL;
        const shmlimit_names *names = NULL;
        IS(shmlimit_open("cancel", &options, &own), SHMLIMIT_OK);
        IS(shmlimit_list(options.directory, &names), SHMLIMIT_OK);
        shmlimit_names_free(names);
        IS(shmlimit_close(own), SHMLIMIT_OK);
        __atomic_store_n(&self->started, 1, __ATOMIC_RELEASE);
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* Opens, locks and closes files. Most of these calls are cancellation points of the C library. */
static void cancelled_while_opening(const char *directory)
{
    for (int round = 0; round < rounds(20, 5); round++) {
        struct thread thread;
        pthread_t id;
        memset(&thread, 0, sizeof thread);
        thread.directory = directory;
        CHECK(pthread_create(&id, NULL, opens, &thread) == 0);
        UNTIL(read_once(&thread.started));
        CHECK(pthread_cancel(id) == 0);
        join_cancelled(id, &thread);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *limiter = make(argv[1], "cancel", ONE_AT_A_TIME);
    cancelled_while_waiting(limiter, PTHREAD_CANCEL_DEFERRED);
    stopped_and_cancelled(limiter);
    cancelled_anywhere(limiter, PTHREAD_CANCEL_DEFERRED);
#ifndef __cplusplus /* C++ frames can be unwound only at calls */
    cancelled_while_waiting(limiter, PTHREAD_CANCEL_ASYNCHRONOUS);
    cancelled_anywhere(limiter, PTHREAD_CANCEL_ASYNCHRONOUS);
#endif
    cancelled_while_opening(argv[1]);
    /* The limiter still limits. */
    shmlimit_grant held, grant;
    IS(shmlimit_acquire(limiter, NULL, &held, NULL), SHMLIMIT_OK);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_REFUSED);
    IS(shmlimit_release(held), SHMLIMIT_OK);
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
