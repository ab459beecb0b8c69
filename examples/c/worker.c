/*
 * A worker that shares its budget with every program on the machine, in any language.
 *
 *     cc -std=c11 worker.c $(pkg-config --cflags --libs shmlimit) -o worker
 *     ./worker tmdb --url http://127.0.0.1:8080/movie/603 --seconds 15
 *     shmlimit run tmdb -- curl ...          another program, the same budget
 *
 * Without --url it holds each permit for a while (--hold milliseconds) instead of making a call.
 */
#include "portable.h"

#include <inttypes.h>
#include <shmlimit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static volatile sig_atomic_t interrupted;
static uint64_t ends_at = UINT64_MAX;
static struct { uint64_t granted, ok, throttled, errors, refused; } total;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1; /* no function of the library may be called here */
}

/* Called by the library while a call waits, and by this program between calls. */
static int stop(void *context)
{
    (void)context;
    return interrupted || now_ns() >= ends_at;
}

/* Sleeps in parts, because a signal does not end a sleep on every system. */
static void pause_ns(uint64_t ns)
{
    uint64_t now = now_ns(), until = ends_at - now < ns ? ends_at : now + ns;
    for (; !stop(NULL) && now < until; now = now_ns())
        sleep_ns(until - now < SECOND / 10 ? until - now : SECOND / 10);
}

/* Connects to the host of "http://HOST[:PORT]/PATH". Returns a socket, or NO_SOCKET with the reason in `error`. */
static socket_handle open_connection(const char *host, const char *port, uint32_t *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        *error = SHMLIMIT_ERROR_DNS;
        return NO_SOCKET;
    }
    socket_handle connection = socket(found->ai_family, found->ai_socktype, 0);
    if (connection != NO_SOCKET)
        set_patience(connection, 10);
    if (connection != NO_SOCKET && connect(connection, found->ai_addr, found->ai_addrlen) != 0) {
        *error = has_timed_out() ? SHMLIMIT_ERROR_CONNECT_TIMEOUT : SHMLIMIT_ERROR_CONNECTION;
        close_socket(connection);
        connection = NO_SOCKET;
    }
    freeaddrinfo(found);
    return connection;
}

/* Gets a page and stores the response's head in `head`. Returns its length, or 0 with the reason in `error`. */
static size_t get(const char *url, char *head, size_t room, uint32_t *error)
{
    char host[256], port[6] = "80", path[1024] = "", request[2048];
    *error = SHMLIMIT_ERROR_CONNECTION;
    if (sscanf(url, "http://%255[^:/]:%5[0-9]/%1023s", host, port, path) < 2 &&
        sscanf(url, "http://%255[^:/]/%1023s", host, path) < 1)
        return 0;
    socket_handle connection = open_connection(host, port, error);
    if (connection == NO_SOCKET)
        return 0;
    int length = snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host);
    size_t got = 0;
    int whole = 0;
    if (send(connection, request, (size_t)length, MSG_NOSIGNAL) == length) {
        while (!whole && got < room - 1) {
            long more = (long)recv(connection, head + got, room - 1 - got, 0);
            if (more < 0 && was_interrupted())
                continue;
            if (more < 0 && has_timed_out())
                *error = SHMLIMIT_ERROR_READ_TIMEOUT;
            if (more <= 0)
                break;
            got += (size_t)more;
            head[got] = '\0';
            char *end = strstr(head, "\r\n\r\n");
            if (end != NULL) {
                got = (size_t)(end - head) + 4;
                whole = 1;
            }
        }
    }
    close_socket(connection);
    return whole ? got : 0;
}

/* Makes the call and records its outcome for all programs. If it should be retried, waits for that and returns 1. */
static int call(shmlimit_grant grant, const char *url, uint32_t attempt)
{
    char head[16384];
    shmlimit_outcome outcome = {.size = sizeof outcome, .attempt = attempt};
    shmlimit_advice advice = {.size = sizeof advice};
    uint64_t began = now_ns();
    outcome.head = head; /* the library reads status and headers from it */
    outcome.head_length = get(url, head, sizeof head, &outcome.error);
    if (outcome.head_length > 0)
        outcome.error = 0;
    outcome.latency_ns = now_ns() - began;
    if (shmlimit_record(grant, &outcome, &advice) != SHMLIMIT_OK) {
        fprintf(stderr, "worker: %s\n", shmlimit_last_error());
        shmlimit_release(grant); /* the head was invalid, so the grant still holds its permit */
        total.errors++;
        return 0;
    }
    switch (advice.outcome_class) {
    case SHMLIMIT_CLASS_OK: total.ok++; break;
    case SHMLIMIT_CLASS_THROTTLED: total.throttled++; break;
    default: total.errors++;
    }
    if (advice.retry)
        pause_ns(advice.wait_ns);
    return (int)advice.retry;
}

static void hold(shmlimit_grant grant, uint64_t ns)
{
    pause_ns(ns);
    if (shmlimit_release(grant) == SHMLIMIT_OK)
        total.ok++;
}

int main(int argc, char **argv)
{
    argv = utf8_arguments(argv);
    shmlimit_options options = {.size = sizeof options};
    shmlimit_request request = {.size = sizeof request, .stop = stop, .timeout_ns = 5 * SECOND};
    shmlimit_answer answer = {.size = sizeof answer};
    const char *url = NULL;
    uint64_t count = UINT64_MAX, hold_ns = 10 * SECOND / 1000;
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--dir") == 0) options.directory = value;
        else if (strcmp(argv[i], "--url") == 0) url = value;
        else if (strcmp(argv[i], "--count") == 0) count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0) ends_at = now_ns() + (uint64_t)(strtod(value, NULL) * 1e9);
        else if (strcmp(argv[i], "--hold") == 0) hold_ns = strtoull(value, NULL, 10) * SECOND / 1000;
        else if (strcmp(argv[i], "--timeout") == 0) request.timeout_ns = (uint64_t)(strtod(value, NULL) * 1e9);
        else if (strcmp(argv[i], "--priority") == 0)
            request.priority = strcmp(value, "webhook") == 0 ? SHMLIMIT_PRIORITY_WEBHOOK
                             : strcmp(value, "user") == 0    ? SHMLIMIT_PRIORITY_USER
                                                             : SHMLIMIT_PRIORITY_BACKGROUND;
        else return fprintf(stderr, "worker: no such option: %s\n", argv[i]), 2;
    }
    if (argc < 2 || argc % 2 != 0)
        return fputs("usage: worker NAME [--dir DIR] [--url URL] [--count N] [--seconds S] [--hold MS] [--timeout S]"
                     " [--priority webhook|user|background]\n", stderr), 2;

    signal(SIGINT, on_signal);
    if (start_sockets() != 0)
        return fputs("worker: no sockets\n", stderr), 1;
    shmlimit_limiter *limiter;
    if (shmlimit_open(argv[1], &options, &limiter) != SHMLIMIT_OK)
        return fprintf(stderr, "worker: %s\n", shmlimit_last_error()), 1;

    int32_t code = SHMLIMIT_OK;
    uint32_t attempt = 1;
    while (total.granted < count && !stop(NULL)) {
        shmlimit_grant grant;
        code = shmlimit_acquire(limiter, &request, &grant, &answer);
        if (code == SHMLIMIT_REFUSED) { /* not possible within the timeout: try again later */
            total.refused++;
            pause_ns(answer.retry_after_ns < SECOND ? answer.retry_after_ns : SECOND);
            continue;
        }
        if (code != SHMLIMIT_OK)
            break; /* stopped, or a failure */
        total.granted++;
        pause_ns(answer.delay_ns); /* only a leaky bucket sets a delay */
        if (url == NULL)
            hold(grant, hold_ns);
        else
            attempt = call(grant, url, attempt) ? attempt + 1 : 1;
    }
    if (code > SHMLIMIT_SLEEP)
        fprintf(stderr, "worker: %s\n", shmlimit_last_error());
    shmlimit_close(limiter);
    printf("{\"granted\": %" PRIu64 ", \"ok\": %" PRIu64 ", \"throttled\": %" PRIu64 ", \"errors\": %" PRIu64
           ", \"refused\": %" PRIu64 "}\n", total.granted, total.ok, total.throttled, total.errors, total.refused);
    return code > SHMLIMIT_SLEEP;
}
