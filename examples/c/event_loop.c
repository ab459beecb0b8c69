/*
 * Waits in an event loop without blocking the loop, so other work continues meanwhile.
 *
 *     cc -std=c11 event_loop.c $(pkg-config --cflags --libs shmlimit) -o event_loop
 *     ./event_loop tmdb --count 20 --at-once 4
 *
 * Up to `--at-once` calls wait at a time in the queue that all processes share. The loop also reads the standard
 * input and echoes it. The end of the input, or "quit", gives up all waiting calls. A real program would have its
 * sockets in the same poll(2), or in the mechanism that its loop uses.
 */
#include "portable.h"

#include <inttypes.h>
#include <shmlimit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define MOST 64

struct call {
    shmlimit_pending wait; /* 0 = this place is free */
    uint64_t due;       /* when to step it again */
};

static struct call calls[MOST];
static uint64_t begun, granted, refused, given_up;

/* Steps one call. Returns 0, or the code of a failure. */
static int32_t step(struct call *call)
{
    uint64_t sleep_ns;
    shmlimit_grant grant;
    int32_t code = shmlimit_pending_step(call->wait, &sleep_ns, &grant, NULL);
    if (code == SHMLIMIT_SLEEP) {
        call->due = now_ns() + sleep_ns;
        return SHMLIMIT_OK;
    }
    call->wait = 0; /* any other answer ends the wait */
    if (code == SHMLIMIT_OK) {
        granted++;
        return shmlimit_release(grant); /* send the call here, and record it when its response comes */
    }
    if (code == SHMLIMIT_REFUSED) {
        refused++;
        return SHMLIMIT_OK;
    }
    return code;
}

/* Steps the calls that are due, and begins new ones in free places. `next` is the time of the next turn. */
static int32_t turn(shmlimit_limiter *limiter, size_t at_once, uint64_t count, uint64_t *next)
{
    const shmlimit_request request = {.size = sizeof request, .priority = SHMLIMIT_PRIORITY_USER};
    *next = UINT64_MAX;
    for (struct call *call = calls; call < calls + at_once; call++) {
        int32_t code = SHMLIMIT_OK;
        if (call->wait == 0 && begun < count) {
            code = shmlimit_enqueue(limiter, &request, &call->wait);
            call->due = 0;
            begun++;
        }
        if (code == SHMLIMIT_OK && call->wait != 0 && call->due <= now_ns())
            code = step(call);
        if (code != SHMLIMIT_OK)
            return code;
        uint64_t due = call->wait != 0 ? call->due : begun < count ? 0 : UINT64_MAX;
        if (due < *next)
            *next = due;
    }
    return SHMLIMIT_OK;
}

/* Reads the input. Returns 0 if the program should end. */
static int hear(void)
{
    char text[256];
    int length = read_input(text, sizeof text - 1);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    fprintf(stderr, "heard while %" PRIu64 " wait: %s", begun - granted - refused, text);
    return strncmp(text, "quit", 4) != 0;
}

int main(int argc, char **argv)
{
    argv = utf8_arguments(argv);
    shmlimit_options options = {.size = sizeof options};
    size_t at_once = 4;
    uint64_t count = 20;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0) options.directory = argv[i + 1];
        else if (strcmp(argv[i], "--count") == 0) count = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--at-once") == 0) at_once = strtoull(argv[i + 1], NULL, 10);
    }
    shmlimit_limiter *limiter;
    if (argc < 2 || at_once < 1 || at_once > MOST)
        return fputs("usage: event_loop NAME [--dir DIR] [--count N] [--at-once N]\n", stderr), 2;
    if (shmlimit_open(argv[1], &options, &limiter) != SHMLIMIT_OK)
        return fprintf(stderr, "event_loop: %s\n", shmlimit_last_error()), 1;

    int32_t code = SHMLIMIT_OK;
    uint64_t next = 0;
    for (int listening = 1; listening;) {
        code = turn(limiter, at_once, count, &next);
        if (code != SHMLIMIT_OK || next == UINT64_MAX)
            break;
        /* input_within() takes milliseconds. Rounding up prevents that it returns too early and the loop spins. */
        uint64_t now = now_ns(), left = next > now ? (next - now + MILLISECOND - 1) / MILLISECOND : 0;
        if (input_within(left < 60000 ? (unsigned)left : 60000))
            listening = hear();
    }
    if (code != SHMLIMIT_OK)
        fprintf(stderr, "event_loop: %s\n", shmlimit_last_error());
    for (size_t i = 0; i < at_once; i++)
        given_up += calls[i].wait != 0 && shmlimit_pending_cancel(calls[i].wait) == SHMLIMIT_OK;
    shmlimit_close(limiter);
    printf("{\"granted\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"given_up\": %" PRIu64 "}\n", granted, refused, given_up);
    return code != SHMLIMIT_OK;
}
