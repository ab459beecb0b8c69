/*
 * The DLL is loaded, used and unloaded while the program goes on, once with everything closed and once with
 * everything left open. Windows only: elsewhere a library with thread-local variables stays loaded. Usage: unload
 * DIRECTORY DLL
 */
#include "shmlimit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

/* The tests' check.h calls the library, and this program is not linked with it. */
#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "%s:%d: %s (error %lu)\n", __FILE__, __LINE__, #condition, GetLastError()); \
            ExitProcess(1);                                                                      \
        }                                                                                        \
    } while (0)

static struct {
    HMODULE module;
    int32_t (*open)(const char *, const shmlimit_options *, shmlimit_limiter **);
    int32_t (*close)(shmlimit_limiter *);
    int32_t (*try_acquire)(const shmlimit_limiter *, const shmlimit_request *, shmlimit_grant *, shmlimit_answer *);
    int32_t (*release)(shmlimit_grant);
    const char *(*last_error)(void);
} library;

static void find(void *function, const char *name)
{
    FARPROC found = GetProcAddress(library.module, name);
    CHECK(found != NULL);
    memcpy(function, &found, sizeof found);
}

static void load(const char *dll)
{
    library.module = LoadLibraryA(dll);
    CHECK(library.module != NULL);
    find(&library.open, "shmlimit_open");
    find(&library.close, "shmlimit_close");
    find(&library.try_acquire, "shmlimit_try_acquire");
    find(&library.release, "shmlimit_release");
    find(&library.last_error, "shmlimit_last_error");
}

/* The DLL is unmapped, and not only its reference count reduced. */
static void unload(void)
{
    CHECK(FreeLibrary(library.module));
    CHECK(GetModuleHandleA("shmlimit.dll") == NULL);
}

static shmlimit_limiter *open_limiter(const char *directory)
{
    shmlimit_limiter *limiter;
    shmlimit_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = directory;
    options.config = "concurrency = 50\n";
    CHECK(library.open("api", &options, &limiter) == SHMLIMIT_OK);
    return limiter;
}

/* A thread that has failed owns a message in the library's memory, and ends after the library was unloaded. */
static HANDLE has_failed, may_end;

static void *fail_and_stay(void *nothing)
{
    CHECK(library.release(7) == SHMLIMIT_GRANT_DONE && library.last_error()[0] != '\0');
    SetEvent(has_failed);
    WaitForSingleObject(may_end, INFINITE);
    return nothing;
}

int main(int argc, char **argv)
{
    shmlimit_grant grant;
    pthread_t thread;
    CHECK(argc == 3);
    for (int round = 0; round < 20; round++) {
        load(argv[2]);
        shmlimit_limiter *limiter = open_limiter(argv[1]);
        CHECK(library.try_acquire(limiter, NULL, &grant, NULL) == SHMLIMIT_OK && library.release(grant) == SHMLIMIT_OK);
        CHECK(library.close(limiter) == SHMLIMIT_OK);
        unload();
    }

    has_failed = CreateEventA(NULL, TRUE, FALSE, NULL);
    may_end = CreateEventA(NULL, TRUE, FALSE, NULL);
    load(argv[2]);
    CHECK(library.try_acquire(open_limiter(argv[1]), NULL, &grant, NULL) == SHMLIMIT_OK);
    CHECK(pthread_create(&thread, NULL, fail_and_stay, NULL) == 0);
    WaitForSingleObject(has_failed, INFINITE);
    unload();
    SetEvent(may_end);
    pthread_join(thread, NULL);

    /* Handles that were left open do not prevent loading the library again. */
    load(argv[2]);
    shmlimit_limiter *limiter = open_limiter(argv[1]);
    CHECK(library.try_acquire(limiter, NULL, &grant, NULL) == SHMLIMIT_OK && library.release(grant) == SHMLIMIT_OK);
    CHECK(library.close(limiter) == SHMLIMIT_OK);
    unload();
    return 0;
}
