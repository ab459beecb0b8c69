/* Eight threads: the counts are exact, each thread has its own messages, and each handle ends once. Usage: threads
   DIRECTORY */
#include "check.h"

enum { THREADS = 8, BURST = 1000 };

static const char *directory;

struct thread {
    pthread_t thread;
    pthread_barrier_t *start;
    shmlimit_limiter *limiter;
    shmlimit_grant *shared;
    uint64_t granted, refused, ended;
    int index;
};

static void together(struct thread *threads, void *(*body)(void *))
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        threads[i].index = i;
        threads[i].start = &start;
        CHECK(pthread_create(&threads[i].thread, NULL, body, &threads[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    pthread_barrier_destroy(&start);
}

static void *take_all(void *at)
{
    struct thread *self = (struct thread *)at;
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;
    pthread_barrier_wait(self->start);
    while (self->refused == 0) {
        shmlimit_grant grant;
        int32_t code = shmlimit_try_acquire(self->limiter, NULL, &grant, NULL);
        if (code == SHMLIMIT_OK) {
            self->granted++;
            IS(self->granted % 2 ? shmlimit_release(grant) : shmlimit_record(grant, &outcome, NULL), SHMLIMIT_OK);
        } else {
            IS(code, SHMLIMIT_REFUSED);
            self->refused++;
        }
    }
    return NULL;
}

/* All threads try to end the same grants: each grant ends once. */
static void *end_all(void *at)
{
    struct thread *self = (struct thread *)at;
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;
    pthread_barrier_wait(self->start);
    for (int i = 0; i < BURST; i++) {
        shmlimit_grant grant = self->shared[i];
        int how = (self->index + i) % 3;
        int32_t code = how == 0 ? shmlimit_release(grant) : how == 1 ? shmlimit_cancel(grant) : shmlimit_record(grant, &outcome, NULL);
        self->ended += code == SHMLIMIT_OK;
        if (code != SHMLIMIT_OK)
            IS(code, SHMLIMIT_GRANT_DONE);
    }
    return NULL;
}

static void *fail_in_own_words(void *at)
{
    struct thread *self = (struct thread *)at;
    char key[32];
    CHECK(shmlimit_last_error()[0] == '\0'); /* a new thread has no failure yet */
    snprintf(key, sizeof key, "no-key-%d", self->index);
    for (int i = 0; i < rounds(500, 20); i++) {
        IS(shmlimit_set(self->limiter, key, "1"), SHMLIMIT_CONFIG);
        pthread_barrier_wait(self->start);
        SAYS(key);
    }
    return NULL;
}

/* Opens, uses and closes limiters while the other threads do the same. Half of the handles are closed while another
   thread uses them. */
static shmlimit_limiter *volatile offered[THREADS];

static void *open_and_close(void *at)
{
    struct thread *self = (struct thread *)at;
    SIZED(shmlimit_options, options);
    options.directory = directory;
    pthread_barrier_wait(self->start);
    for (int i = 0; i < rounds(200, 20); i++) {
        shmlimit_limiter *own;
        shmlimit_grant grant;
        IS(shmlimit_open("exact", &options, &own), SHMLIMIT_OK);
        __atomic_store_n(&offered[self->index], own, __ATOMIC_RELAXED);
        shmlimit_limiter *other = __atomic_load_n(&offered[(self->index + 1) % THREADS], __ATOMIC_RELAXED);
        int32_t code = shmlimit_try_acquire(other, NULL, &grant, NULL);
        CHECK(code == SHMLIMIT_REFUSED || code == SHMLIMIT_CLOSED);
        if (i % 2)
            self->ended += shmlimit_close(other) == SHMLIMIT_OK && other != NULL;
        self->ended += shmlimit_close(own) == SHMLIMIT_OK;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static shmlimit_grant grants[BURST];
    static struct thread threads[THREADS];
    char config[256];
    uint64_t granted = 0, ended = 0;
    directory = argv[1];
    snprintf(config, sizeof config,
             "[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 1\nperiod = \"1h\"\nburst = %d\n", BURST);
    shmlimit_limiter *limiter = make(argv[1], "exact", config);
    for (int i = 0; i < THREADS; i++)
        threads[i].limiter = limiter;
    together(threads, take_all);
    for (int i = 0; i < THREADS; i++)
        granted += threads[i].granted;
    CHECK(granted == BURST && in_flight(limiter) == 0 && remaining(limiter, 0) == 0);

    shmlimit_limiter *wide = make(argv[1], "wide", "concurrency = 2000\n");
    for (int i = 0; i < BURST; i++)
        IS(shmlimit_try_acquire(wide, NULL, &grants[i], NULL), SHMLIMIT_OK);
    for (int i = 0; i < THREADS; i++)
        threads[i].shared = grants;
    together(threads, end_all);
    for (int i = 0; i < THREADS; i++)
        ended += threads[i].ended, threads[i].ended = 0;
    CHECK(ended == BURST && in_flight(wide) == 0);

    together(threads, fail_in_own_words);
    together(threads, open_and_close);
    for (ended = 0, granted = 0; granted < THREADS; granted++)
        ended += threads[granted].ended;
    CHECK(ended == (uint64_t)(THREADS * rounds(200, 20))); /* each handle was closed once, by any thread */
    IS(shmlimit_close(wide), SHMLIMIT_OK);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
