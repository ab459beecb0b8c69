/* Thousands of calls that fail leave nothing allocated behind. Usage: nothing_left DIRECTORY */
#include "check.h"

static void once(const char *directory, shmlimit_limiter *limiter, int round)
{
    shmlimit_limiter *other;
    shmlimit_grant grants[4], late;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    const shmlimit_names *names;
    const shmlimit_snapshot *snapshot;
    char *text;
    shmlimit_cost cost = {"bananas", 1}, tokens = {"tokens", 5};
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_advice, advice);

    options.directory = directory;
    options.config = "concurrency = 4";
    IS(shmlimit_open("left", &options, &other), SHMLIMIT_CONFIG_MISMATCH);
    options.config = "=";
    IS(shmlimit_open("left", &options, &other), SHMLIMIT_CONFIG);
    options.config = NULL;
    IS(shmlimit_open("nobody", &options, &other), SHMLIMIT_UNKNOWN_LIMITER);
    IS(shmlimit_open("left", &options, &other), SHMLIMIT_OK);

    for (int i = 0; i < 3; i++)
        IS(shmlimit_try_acquire(other, NULL, &grants[i], NULL), SHMLIMIT_OK);
    IS(shmlimit_try_acquire(other, NULL, &grants[3], NULL), SHMLIMIT_REFUSED);
    request.timeout_ns = 1;
    IS(shmlimit_acquire(other, &request, &late, NULL), SHMLIMIT_REFUSED);
    request.costs = &cost;
    request.cost_count = 1;
    IS(shmlimit_acquire(other, &request, &late, NULL), SHMLIMIT_UNKNOWN_UNIT);
    /* The request is sent with the first step; only then is the unknown unit noticed. */
    int32_t code = shmlimit_enqueue(other, &request, &wait);
    if (code == SHMLIMIT_OK)
        code = shmlimit_pending_step(wait, &sleep_ns, &late, NULL);
    IS(code, SHMLIMIT_UNKNOWN_UNIT);
    IS(shmlimit_enqueue(other, NULL, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &late, NULL), SHMLIMIT_SLEEP);
    IS(shmlimit_close(other), SHMLIMIT_OK);
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);

    outcome.status = 99;
    IS(shmlimit_record(grants[0], &outcome, &advice), SHMLIMIT_BAD_STATUS);
    outcome.status = 200;
    outcome.costs = &cost;
    outcome.cost_count = 1;
    IS(shmlimit_record(grants[0], &outcome, &advice), SHMLIMIT_UNKNOWN_UNIT);
    outcome.costs = &tokens;
    outcome.head = "HTTP/1.1 200 OK\r\nX-Thing: \xff\r\n\r\n";
    outcome.head_length = strlen(outcome.head);
    IS(shmlimit_record(grants[0], &outcome, &advice), SHMLIMIT_OK);
    IS(shmlimit_release(grants[1]), SHMLIMIT_OK);
    IS(shmlimit_cancel(grants[2]), SHMLIMIT_OK);
    IS(shmlimit_cancel(grants[2]), SHMLIMIT_GRANT_DONE);

    IS(shmlimit_config(limiter, &text), SHMLIMIT_OK);
    CHECK(strstr(text, "concurrency = 3") != NULL);
    shmlimit_text_free(text);
    IS(shmlimit_list(directory, &names), SHMLIMIT_OK);
    CHECK(names->count == 1 && strcmp(names->names[0], "left") == 0 && strcmp(names->directory, directory) == 0);
    shmlimit_names_free(names);
    IS(shmlimit_presets(&names), SHMLIMIT_OK);
    CHECK(names->count > 5 && names->directory == NULL);
    shmlimit_names_free(names);
    IS(shmlimit_set(limiter, "concurrency", "nonsense"), SHMLIMIT_CONFIG);
    IS(shmlimit_set(limiter, "rules.1.limit", round % 2 ? "1000000" : "2000000"), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->in_flight == 0 && snapshot->queue_count == 0 && snapshot->participant_count >= 1);
    shmlimit_snapshot_free(snapshot);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *limiter = make(argv[1], "left",
        "concurrency = 3\n[[rules]]\nname = \"calls\"\nalgorithm = \"token_bucket\"\nlimit = 1000000\nperiod = \"1s\"\n"
        "[[rules]]\nname = \"tokens\"\nunit = \"tokens\"\nalgorithm = \"token_bucket\"\nlimit = 1000000\nperiod = \"1s\"\n");
    for (int i = 0; i < 20; i++)
        once(argv[1], limiter, i);
    size_t before = descriptors(), resident = resident_kib();
    for (int i = 0; i < rounds(2000, 20); i++)
        once(argv[1], limiter, i);
    CHECK(descriptors() == before);
    CHECK(rounds(0, 1) || resident_kib() < resident + 1024); /* a leaked mapping in each round would be 500 MB */
    CHECK(in_flight(limiter) == 0 && waiting(limiter) == 0);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    return 0;
}
