/* Invalid arguments: each returns a specific code, and takes nothing. Usage: arguments DIRECTORY */
#include "check.h"

#ifdef _WIN32
#define NO_SUCH_PATH ERROR_PATH_NOT_FOUND
#else
#define NO_SUCH_PATH ENOENT
#endif

static const char *NOT_UTF8 = "caf\xe9";
static shmlimit_limiter *limiter;
static const char *directory;

static void nulls(void)
{
    shmlimit_limiter *other = limiter;
    shmlimit_grant grant = 99;
    shmlimit_pending wait = 99;
    uint64_t sleep_ns = 99;
    char *text = NULL;
    const shmlimit_names *names = NULL;
    const shmlimit_snapshot *snapshot = NULL;
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 200;

    IS(shmlimit_open("x", NULL, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("limiter must not be NULL");
    IS(shmlimit_open(NULL, NULL, &other), SHMLIMIT_NULL_POINTER);
    SAYS("name must not be NULL");
    CHECK(other == NULL);
    IS(shmlimit_close(NULL), SHMLIMIT_OK);

    IS(shmlimit_try_acquire(limiter, NULL, NULL, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("grant must not be NULL");
    IS(shmlimit_try_acquire(NULL, NULL, &grant, NULL), SHMLIMIT_CLOSED);
    CHECK(grant == 0);
    IS(shmlimit_acquire(limiter, NULL, NULL, NULL), SHMLIMIT_NULL_POINTER);
    grant = 99;
    IS(shmlimit_acquire(NULL, NULL, &grant, NULL), SHMLIMIT_CLOSED);
    CHECK(grant == 0);
    IS(shmlimit_release(0), SHMLIMIT_GRANT_DONE);
    IS(shmlimit_cancel(0), SHMLIMIT_GRANT_DONE);
    IS(shmlimit_record(0, &outcome, NULL), SHMLIMIT_GRANT_DONE);
    IS(shmlimit_record(0, NULL, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("outcome must not be NULL");
    IS(shmlimit_record_call(NULL, &outcome, NULL), SHMLIMIT_CLOSED);
    IS(shmlimit_record_call(limiter, NULL, NULL), SHMLIMIT_NULL_POINTER);

    IS(shmlimit_force(NULL, "normal"), SHMLIMIT_CLOSED);
    IS(shmlimit_force(limiter, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_set(NULL, "concurrency", "1"), SHMLIMIT_CLOSED);
    IS(shmlimit_count_cache(NULL, 1), SHMLIMIT_CLOSED);
    IS(shmlimit_set(limiter, NULL, "1"), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_set(limiter, "concurrency", NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_config(limiter, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_metrics(limiter, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_environment_changes(limiter, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_environment_changes(limiter, &text), SHMLIMIT_OK);
    CHECK(text != NULL && text[0] == '\0');
    shmlimit_text_free(text);
    text = (char *)1;
    IS(shmlimit_config(NULL, &text), SHMLIMIT_CLOSED);
    CHECK(text == NULL);
    shmlimit_text_free(NULL);
    IS(shmlimit_list(directory, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_presets(NULL), SHMLIMIT_NULL_POINTER);
    names = (const shmlimit_names *)1;
    IS(shmlimit_list("/nowhere/at/all", &names), SHMLIMIT_IO);
    CHECK(names == NULL && shmlimit_last_errno() == NO_SUCH_PATH);
    shmlimit_names_free(NULL);
    IS(shmlimit_snapshot_take(limiter, NULL), SHMLIMIT_NULL_POINTER);
    snapshot = (const shmlimit_snapshot *)1;
    IS(shmlimit_snapshot_take(NULL, &snapshot), SHMLIMIT_CLOSED);
    CHECK(snapshot == NULL);
    shmlimit_snapshot_free(NULL);

    IS(shmlimit_enqueue(limiter, NULL, NULL), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_enqueue(NULL, NULL, &wait), SHMLIMIT_CLOSED);
    CHECK(wait == 0);
    IS(shmlimit_pending_cancel(0), SHMLIMIT_PENDING_DONE);
    grant = 99;
    IS(shmlimit_pending_step(0, &sleep_ns, &grant, NULL), SHMLIMIT_PENDING_DONE);
    CHECK(sleep_ns == 0 && grant == 0);
    /* Invalid arguments of a step leave the wait as it is, and clear the other outputs. */
    IS(shmlimit_enqueue(limiter, NULL, &wait), SHMLIMIT_OK);
    grant = sleep_ns = 99;
    IS(shmlimit_pending_step(wait, NULL, &grant, NULL), SHMLIMIT_NULL_POINTER);
    CHECK(grant == 0);
    IS(shmlimit_pending_step(wait, &sleep_ns, NULL, NULL), SHMLIMIT_NULL_POINTER);
    CHECK(sleep_ns == 0);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
}

/* Lists that are NULL although their length is not 0. */
static void null_lists(void)
{
    shmlimit_limiter *other;
    shmlimit_grant grant;
    shmlimit_setting setting = {NULL, "1"};
    shmlimit_cost cost = {NULL, 1};
    shmlimit_header header = {NULL, "1"};
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_outcome, outcome);
    options.directory = directory;
    options.setting_count = 1;
    IS(shmlimit_open("x", &options, &other), SHMLIMIT_NULL_POINTER);
    SAYS("shmlimit_options.settings must not be NULL");
    options.settings = &setting;
    IS(shmlimit_open("x", &options, &other), SHMLIMIT_NULL_POINTER);
    SAYS("settings[].key must not be NULL");
    setting.key = "concurrency";
    setting.value = NULL;
    IS(shmlimit_open("x", &options, &other), SHMLIMIT_NULL_POINTER);
    SAYS("settings[].value must not be NULL");
    options.setting_count = SIZE_MAX;
    IS(shmlimit_open("x", &options, &other), SHMLIMIT_BAD_VALUE);

    request.cost_count = 1;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("shmlimit_request.costs must not be NULL");
    request.costs = &cost;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("costs[].unit must not be NULL");
    request.cost_count = SIZE_MAX;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_BAD_VALUE);

    outcome.status = 200;
    outcome.header_count = 1;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("shmlimit_outcome.headers must not be NULL");
    outcome.headers = &header;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("headers[].name must not be NULL");
    header.name = "Retry-After";
    header.value = NULL;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("headers[].value must not be NULL");
    outcome.header_count = SIZE_MAX;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_BAD_VALUE);
    outcome.headers = NULL;
    outcome.header_count = 0;
    outcome.head_length = 1;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("shmlimit_outcome.head must not be NULL");
    outcome.head_length = 0;
    outcome.cost_count = 1;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NULL_POINTER);
    SAYS("shmlimit_outcome.costs must not be NULL");
}

/* A list without its count: the program forgot the count. */
static void lists_without_a_count(void)
{
    shmlimit_limiter *other;
    shmlimit_grant grant;
    shmlimit_setting setting = {"concurrency", "1"};
    shmlimit_cost cost = {"tokens", 1};
    shmlimit_header header = {"Retry-After", "1"};
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_outcome, outcome);
    options.directory = directory;
    options.settings = &setting;
    IS(shmlimit_open("x", &options, &other), SHMLIMIT_BAD_VALUE);
    SAYS("shmlimit_options.settings is set, but setting_count is 0");
    request.costs = &cost;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_BAD_VALUE);
    SAYS("shmlimit_request.costs is set, but cost_count is 0");
    outcome.status = 200;
    outcome.headers = &header;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_BAD_VALUE);
    SAYS("shmlimit_outcome.headers is set, but header_count is 0");
    outcome.headers = NULL;
    outcome.costs = &cost;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_BAD_VALUE);
    SAYS("shmlimit_outcome.costs is set, but cost_count is 0");
}

/* Every input struct, in sizes that no version has, and in the sizes of later versions. */
static int32_t with_request(void *at)
{
    shmlimit_grant grant = 99;
    int32_t code = shmlimit_try_acquire(limiter, (const shmlimit_request *)at, &grant, NULL);
    CHECK((grant == 0) == (code != SHMLIMIT_OK));
    return code == SHMLIMIT_OK ? shmlimit_cancel(grant) : code;
}

static int32_t with_wait(void *at)
{
    shmlimit_pending wait = 99;
    int32_t code = shmlimit_enqueue(limiter, (const shmlimit_request *)at, &wait);
    CHECK((wait == 0) == (code != SHMLIMIT_OK));
    return code == SHMLIMIT_OK ? shmlimit_pending_cancel(wait) : code;
}

static int32_t with_options(void *at)
{
    shmlimit_limiter *other;
    int32_t code = shmlimit_open("local", (const shmlimit_options *)at, &other);
    CHECK((other == NULL) == (code != SHMLIMIT_OK));
    return code == SHMLIMIT_OK ? shmlimit_close(other) : code;
}

static int32_t with_outcome(void *at)
{
    return shmlimit_record_call(limiter, (const shmlimit_outcome *)at, NULL);
}

static int32_t with_answer(void *at)
{
    shmlimit_grant grant = 99;
    int32_t code = shmlimit_try_acquire(limiter, NULL, &grant, (shmlimit_answer *)at);
    CHECK((grant == 0) == (code != SHMLIMIT_OK));
    return code == SHMLIMIT_OK ? shmlimit_cancel(grant) : code;
}

static int32_t with_advice(void *at)
{
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 404;
    return shmlimit_record_call(limiter, &outcome, (shmlimit_advice *)at);
}

/* `first` is the size in the struct's first version, `size` is its size today. */
static void sizes_of(const void *good, size_t first, size_t size, int32_t (*with)(void *), int is_answer)
{
    unsigned char *memory = (unsigned char *)malloc(8192);
    CHECK(memory != NULL);
    const size_t wrong[] = {0, 1, 7, 8, first - 8, first - 1, 4097, 1 << 20, SIZE_MAX / 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memset(memory, 0, 8192);
        memcpy(memory, good, size);
        memcpy(memory, &wrong[i], sizeof wrong[i]);
        IS(with(memory), SHMLIMIT_WRONG_SIZE);
        SAYS("sizeof(shmlimit_");
    }
    const size_t later[] = {first, size, size + 1, size + 8, size + 100, 4096};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        memset(memory, 0, 8192);
        memcpy(memory, good, size);
        memcpy(memory, &later[i], sizeof later[i]);
        memset(memory + later[i], 0xee, 64); /* the library must ignore the bytes after the struct */
        IS(with(memory), SHMLIMIT_OK);
        CHECK(memcmp(memory, &later[i], sizeof later[i]) == 0);
        if (later[i] <= size)
            continue;
        /* The last byte of a field that this library does not know. */
        memory[later[i] - 1] = 1;
        IS(with(memory), is_answer ? SHMLIMIT_OK : SHMLIMIT_WRONG_SIZE);
        CHECK(memory[later[i] - 1] == (is_answer ? 0 : 1)); /* the library clears an answer up to its end */
        CHECK(memory[later[i]] == 0xee);
    }
    free(memory);
}

static void sizes(void)
{
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_answer, answer);
    SIZED(shmlimit_advice, advice);
    options.directory = directory;
    outcome.status = 404;
    sizes_of(&request, 64, sizeof request, with_request, 0);
    sizes_of(&request, 64, sizeof request, with_wait, 0);
    sizes_of(&options, 64, sizeof options, with_options, 0);
    sizes_of(&outcome, 80, sizeof outcome, with_outcome, 0);
    sizes_of(&answer, 40, sizeof answer, with_answer, 1);
    sizes_of(&advice, 56, sizeof advice, with_advice, 1);
    /* Programs have compiled these sizes in. A struct never shrinks, and grows only at its end. */
    CHECK(sizeof(shmlimit_request) == 64 && sizeof(shmlimit_options) == 112 && sizeof(shmlimit_outcome) == 80);
    CHECK(sizeof(shmlimit_answer) == 40 && sizeof(shmlimit_advice) == 56);
    CHECK(sizeof(shmlimit_cost) == 16 && sizeof(shmlimit_header) == 16 && sizeof(shmlimit_setting) == 16);
}

static void not_utf8(void)
{
    shmlimit_limiter *other;
    const shmlimit_names *names;
    shmlimit_grant grant;
    shmlimit_cost cost = {NOT_UTF8, 1};
    shmlimit_setting setting = {"concurrency", NOT_UTF8};
    shmlimit_header header = {NOT_UTF8, NOT_UTF8};
    IS(shmlimit_open(NOT_UTF8, NULL, &other), SHMLIMIT_NOT_UTF8);
    SAYS("name");
    for (int field = 0; field < 6; field++) {
        SIZED(shmlimit_options, options);
        options.directory = field == 0 ? NOT_UTF8 : directory;
        options.preset = field == 1 ? NOT_UTF8 : NULL;
        options.config = field == 2 ? NOT_UTF8 : NULL;
        options.group = field == 3 ? NOT_UTF8 : NULL;
        if (field >= 4) {
            options.settings = &setting;
            options.setting_count = 1;
        }
        if (field == 5) {
            setting.key = NOT_UTF8;
            setting.value = "1";
        }
        IS(shmlimit_open("local", &options, &other), SHMLIMIT_NOT_UTF8);
        SAYS("shmlimit_options.");
    }
    SIZED(shmlimit_request, request);
    request.costs = &cost;
    request.cost_count = 1;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_NOT_UTF8);
    IS(shmlimit_force(limiter, NOT_UTF8), SHMLIMIT_NOT_UTF8);
    IS(shmlimit_set(limiter, NOT_UTF8, "1"), SHMLIMIT_NOT_UTF8);
    IS(shmlimit_set(limiter, "concurrency", NOT_UTF8), SHMLIMIT_NOT_UTF8);
    IS(shmlimit_list(NOT_UTF8, &names), SHMLIMIT_NOT_UTF8);
    SIZED(shmlimit_outcome, outcome);
    outcome.status = 404;
    outcome.costs = &cost;
    outcome.cost_count = 1;
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_NOT_UTF8);
    outcome.costs = NULL;
    outcome.cost_count = 0;
    /* The caller is not responsible for the bytes that a server sent. */
    outcome.headers = &header;
    outcome.header_count = 1;
    outcome.head = "HTTP/1.1 404 \xff\xfe\r\nX: \xe9\r\n\r\n";
    outcome.head_length = strlen(outcome.head);
    IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_OK);
}

static void values(void)
{
    shmlimit_limiter *other;
    shmlimit_grant grant;
    SIZED(shmlimit_answer, answer);
    const uint32_t flags[] = {64, 0x80000000u, SHMLIMIT_OPEN_EXISTING | SHMLIMIT_OPEN_CREATE, SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_REPLACE, UINT32_MAX};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        SIZED(shmlimit_options, options);
        options.directory = directory;
        options.flags = flags[i];
        IS(shmlimit_open("local", &options, &other), SHMLIMIT_BAD_VALUE);
        SAYS("flags");
    }
    SIZED(shmlimit_options, shared);
    shared.directory = directory;
    shared.shared_with = "no such group on any machine";
    IS(shmlimit_open("local", &shared, &other), SHMLIMIT_BAD_VALUE);
    SAYS("no such group on any machine");
    shared.flags = SHMLIMIT_OPEN_SHARE;
    IS(shmlimit_open("local", &shared, &other), SHMLIMIT_BAD_VALUE);
    SAYS("shared_with");
    shared.shared_with = NOT_UTF8;
    IS(shmlimit_open("local", &shared, &other), SHMLIMIT_NOT_UTF8);
#ifdef _WIN32
    shared.shared_with = NULL;
    IS(shmlimit_open("local", &shared, &other), SHMLIMIT_BAD_VALUE);
    SAYS("no numbers");
#endif
    const uint32_t priorities[] = {4, 99, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        SIZED(shmlimit_request, request);
        request.priority = priorities[i];
        IS(shmlimit_acquire(limiter, &request, &grant, NULL), SHMLIMIT_BAD_VALUE);
        SAYS("priorit");
        SIZED(shmlimit_outcome, outcome);
        outcome.status = 404;
        outcome.priority = priorities[i];
        IS(shmlimit_record_call(limiter, &outcome, NULL), SHMLIMIT_BAD_VALUE);
    }
    SIZED(shmlimit_request, request);
    request.reserved = 1;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_BAD_VALUE);
    request.reserved = 0;
    shmlimit_cost cost = {"bananas", 1};
    request.costs = &cost;
    request.cost_count = 1;
    IS(shmlimit_try_acquire(limiter, &request, &grant, NULL), SHMLIMIT_UNKNOWN_UNIT);
    SAYS("bananas");
    cost.unit = "tokens";
    cost.amount = UINT64_MAX;
    answer.rule = 77;
    IS(shmlimit_try_acquire(limiter, &request, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(answer.reason == SHMLIMIT_REASON_COST_EXCEEDS_LIMIT && answer.rule == 1);
    CHECK(answer.retry_after_ns == SHMLIMIT_NEVER && answer.ready_after_ns == SHMLIMIT_NEVER && answer.delay_ns == 0);
    IS(shmlimit_acquire(limiter, &request, &grant, &answer), SHMLIMIT_REFUSED);
    CHECK(grant == 0);
    /* After a failure an answer is empty. It does not keep its old content. */
    cost.unit = "bananas";
    memset(&answer, 0xee, sizeof answer);
    answer.size = sizeof answer;
    IS(shmlimit_try_acquire(limiter, &request, &grant, &answer), SHMLIMIT_UNKNOWN_UNIT);
    SIZED(shmlimit_answer, empty);
    CHECK(memcmp(&answer, &empty, sizeof empty) == 0);
    CHECK(remaining(limiter, 1) == 1000);

    IS(shmlimit_open("../x", NULL, &other), SHMLIMIT_BAD_NAME);
    IS(shmlimit_open("", NULL, &other), SHMLIMIT_BAD_NAME);
    SIZED(shmlimit_options, options);
    options.directory = directory;
    IS(shmlimit_open("nobody-knows-it", &options, &other), SHMLIMIT_UNKNOWN_LIMITER);
    options.flags = SHMLIMIT_OPEN_CREATE;
    options.config = "concurrency = 4";
    IS(shmlimit_open("hostile", &options, &other), SHMLIMIT_ALREADY_EXISTS);
    options.flags = 0;
    IS(shmlimit_open("hostile", &options, &other), SHMLIMIT_CONFIG_MISMATCH);
    options.config = "concurrency = [";
    IS(shmlimit_open("fresh", &options, &other), SHMLIMIT_CONFIG);
    IS(shmlimit_force(limiter, "asleep"), SHMLIMIT_NO_SUCH_STATE);
    SAYS("asleep");
    IS(shmlimit_force(limiter, "throttle"), SHMLIMIT_NO_SUCH_STATE);
    IS(shmlimit_set(limiter, "no.such.key", "1"), SHMLIMIT_CONFIG);
    IS(shmlimit_set(limiter, "concurrency", "many"), SHMLIMIT_CONFIG);
}

static void outcomes(void)
{
    SIZED(shmlimit_advice, advice);
    const struct {
        uint32_t status, error;
        const char *head;
        int32_t code;
    } bad[] = {
        {99, 0, NULL, SHMLIMIT_BAD_STATUS},  {600, 0, NULL, SHMLIMIT_BAD_STATUS}, {1, 0, NULL, SHMLIMIT_BAD_STATUS},
        {65736, 0, NULL, SHMLIMIT_BAD_STATUS}, {UINT32_MAX, 0, NULL, SHMLIMIT_BAD_STATUS},
        {0, 0, NULL, SHMLIMIT_BAD_VALUE},    {200, 1, NULL, SHMLIMIT_BAD_VALUE},  {0, 5, NULL, SHMLIMIT_BAD_VALUE},
        {0, UINT32_MAX, NULL, SHMLIMIT_BAD_VALUE}, {0, 0, "Retry-After: 3\r\n", SHMLIMIT_BAD_VALUE},
        {0, 0, "HTTP/1.1 99 Odd\r\n\r\n", SHMLIMIT_BAD_STATUS},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        shmlimit_grant grant;
        SIZED(shmlimit_outcome, outcome);
        outcome.status = bad[i].status;
        outcome.error = bad[i].error;
        outcome.head = bad[i].head;
        outcome.head_length = bad[i].head == NULL ? 0 : strlen(bad[i].head);
        IS(shmlimit_record_call(limiter, &outcome, &advice), bad[i].code);
        /* The grant stays open, so that the program can correct the outcome. */
        IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
        memset(&advice, 0xee, sizeof advice);
        advice.size = sizeof advice;
        IS(shmlimit_record(grant, &outcome, &advice), bad[i].code);
        SIZED(shmlimit_advice, empty);
        CHECK(memcmp(&advice, &empty, sizeof empty) == 0);
        CHECK(in_flight(limiter) == 1);
        IS(shmlimit_record(grant, NULL, NULL), SHMLIMIT_NULL_POINTER);
        CHECK(in_flight(limiter) == 1);
        IS(shmlimit_cancel(grant), SHMLIMIT_OK);
        CHECK(in_flight(limiter) == 0);
    }
    CHECK(remaining(limiter, 0) == 10);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    directory = argv[1];
    limiter = make(directory, "hostile", TWO_UNITS);
    nulls();
    null_lists();
    lists_without_a_count();
    sizes();
    not_utf8();
    values();
    outcomes();
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
