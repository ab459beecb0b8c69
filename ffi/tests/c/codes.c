/* The codes and their names, as programs have compiled and stored them. Lines may be added here; no line may
   change. */
#include "check.h"

struct code {
    int32_t number;
    const char *name;
};

static const struct code CODES[] = {
    {0, "ok"},
    {1, "refused"},
    {2, "stopped"},
    {3, "sleep"},
    {16, "null_pointer"},
    {17, "wrong_size"},
    {18, "not_utf8"},
    {19, "bad_value"},
    {20, "closed"},
    {21, "grant_done"},
    {22, "pending_done"},
    {23, "panicked"},
    {24, "too_many"},
    {32, "bad_name"},
    {33, "unknown_limiter"},
    {34, "already_exists"},
    {35, "directory"},
    {36, "unsafe_file"},
    {37, "foreign"},
    {38, "damaged"},
    {39, "network_file_system"},
    {40, "busy"},
    {41, "slots_full"},
    {42, "config_mismatch"},
    {43, "does_not_fit"},
    {44, "policy"},
    {45, "config"},
    {46, "environment"},
    {47, "bad_status"},
    {48, "no_such_state"},
    {49, "unknown_unit"},
    {50, "replaced"},
    {51, "io"},
    {52, "unsupported"},
    {53, "liveness"},
    {54, "in_use"},
    {99, "other"},
};

static const struct code REASONS[] = {
    {1, "sleep"}, {2, "cache_only"}, {3, "open"}, {4, "retry_after"}, {5, "adaptive"}, {6, "concurrency"},
    {7, "rate"}, {8, "cost_exceeds_limit"}, {9, "queued"}, {10, "queue_full"}, {11, "paused"},
    {12, "busy"},
};

static const struct code CLASSES[] = {{1, "ok"}, {2, "429"}, {3, "5xx"}, {4, "net"}, {5, "ignored"}};

static const struct code PRIORITIES[] = {{1, "background"}, {2, "user"}, {3, "webhook"}};

static const char *code_name(int32_t number) { return shmlimit_code_name(number); }
static const char *reason_name(int32_t number) { return shmlimit_reason_name((uint32_t)number); }
static const char *class_name(int32_t number) { return shmlimit_class_name((uint32_t)number); }
static const char *priority_name(int32_t number) { return shmlimit_priority_name((uint32_t)number); }

/* These codes have these names, and no other code has a name. */
static void exactly(const struct code *codes, size_t count, const char *(*name)(int32_t))
{
    for (int32_t number = -300; number < 1000; number++) {
        const char *expected = "unknown";
        for (size_t i = 0; i < count; i++)
            if (codes[i].number == number)
                expected = codes[i].name;
        if (strcmp(name(number), expected) != 0) {
            fprintf(stderr, "%d is %s, and was %s\n", (int)number, name(number), expected);
            fail(__FILE__, __LINE__, "numbers keep their names");
        }
    }
    CHECK(strcmp(name(INT32_MAX), "unknown") == 0 && strcmp(name(INT32_MIN), "unknown") == 0);
}

int main(void)
{
    exactly(CODES, sizeof CODES / sizeof CODES[0], code_name);
    exactly(REASONS, sizeof REASONS / sizeof REASONS[0], reason_name);
    exactly(CLASSES, sizeof CLASSES / sizeof CLASSES[0], class_name);
    exactly(PRIORITIES, sizeof PRIORITIES / sizeof PRIORITIES[0], priority_name);
    /* Programs have compiled these values in: the constants of the header keep them. */
    CHECK(SHMLIMIT_OK == 0 && SHMLIMIT_REFUSED == 1 && SHMLIMIT_STOPPED == 2 && SHMLIMIT_SLEEP == 3);
    CHECK(SHMLIMIT_NULL_POINTER == 16 && SHMLIMIT_CLOSED == 20 && SHMLIMIT_GRANT_DONE == 21 && SHMLIMIT_IO == 51);
    CHECK(SHMLIMIT_OPEN_EXISTING == 1 && SHMLIMIT_OPEN_CREATE == 2 && SHMLIMIT_OPEN_REPLACE == 4 && SHMLIMIT_OPEN_ALLOW_NETWORK_FS == 8);
    CHECK(SHMLIMIT_OPEN_IGNORE_ENVIRONMENT == 16 && SHMLIMIT_OPEN_SHARE == 32 && SHMLIMIT_NEVER == UINT64_MAX);
    CHECK(SHMLIMIT_ERROR_CONNECT_TIMEOUT == 1 && SHMLIMIT_ERROR_READ_TIMEOUT == 2 && SHMLIMIT_ERROR_DNS == 3);
    CHECK(SHMLIMIT_ERROR_CONNECTION == 4 && SHMLIMIT_SOURCE_RETRY_AFTER == 1 && SHMLIMIT_SOURCE_BACKOFF == 2);
    CHECK(SHMLIMIT_PRIORITY_BACKGROUND == 1 && SHMLIMIT_PRIORITY_USER == 2 && SHMLIMIT_PRIORITY_WEBHOOK == 3);
    CHECK(shmlimit_layout_version() == SHMLIMIT_LAYOUT_VERSION && shmlimit_segment_size() == SHMLIMIT_SEGMENT_SIZE);
    CHECK(shmlimit_last_error()[0] == '\0' && shmlimit_last_errno() == 0);
    return 0;
}
