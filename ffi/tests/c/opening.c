/* The options of shmlimit_open() that set a rate; limiters that exist with other settings; programs that were
 * compiled with an older struct; removing a limiter. */
#include "check.h"

static const char *directory;

static shmlimit_options named(const char *rate)
{
    SIZED(shmlimit_options, options);
    options.directory = directory;
    options.flags = SHMLIMIT_OPEN_IGNORE_ENVIRONMENT;
    options.rate = rate;
    return options;
}

/* Opens a limiter, checks its limit, capacity and concurrency, and closes it. */
static void has(const char *name, const shmlimit_options *options, uint64_t limit, uint64_t capacity, uint32_t concurrency)
{
    shmlimit_limiter *limiter;
    const shmlimit_snapshot *snapshot;
    IS(shmlimit_open(name, options, &limiter), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->rule_count == 1 && snapshot->rules[0]->limit == limit);
    CHECK(snapshot->rules[0]->capacity == capacity && snapshot->concurrency == concurrency);
    shmlimit_snapshot_free(snapshot);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
}

static void fails(const char *name, const shmlimit_options *options, int32_t expected, const char *says)
{
    shmlimit_limiter *limiter;
    IS(shmlimit_open(name, options, &limiter), expected);
    SAYS(says);
    CHECK(limiter == NULL);
}

static void rates_are_fields(void)
{
    const shmlimit_snapshot *snapshot;
    shmlimit_limiter *limiter;
    shmlimit_options options = named("100/min");
    options.burst = 20;
    options.concurrency = 4;
    options.algorithm = "gcra";
    IS(shmlimit_open("fields", &options, &limiter), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->rule_count == 1 && strcmp(snapshot->rules[0]->algorithm, "gcra") == 0);
    CHECK(snapshot->rules[0]->limit == 100 && snapshot->rules[0]->period_ns == 60 * SECOND);
    CHECK(snapshot->rules[0]->capacity == 20 && snapshot->concurrency == 4);
    shmlimit_snapshot_free(snapshot);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    /* Several rates, one of them in another unit. */
    options = named("100/min, tokens=30k/min");
    IS(shmlimit_open("several", &options, &limiter), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &snapshot), SHMLIMIT_OK);
    CHECK(snapshot->rule_count == 2 && strcmp(snapshot->rules[1]->unit, "tokens") == 0);
    CHECK(snapshot->rules[1]->limit == 30000);
    shmlimit_snapshot_free(snapshot);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    /* A burst can be set only for a single rate. */
    options = named("100/min, 1000/h");
    options.burst = 20;
    fails("both", &options, SHMLIMIT_CONFIG, "burst");
    options = named("fast");
    fails("wrong", &options, SHMLIMIT_CONFIG, "fast");
    options = named("100/min");
    options.algorithm = "magic";
    fails("wrong", &options, SHMLIMIT_CONFIG, "magic");
}

static void a_mismatch_is_an_error_or_adopted_or_an_update(void)
{
    shmlimit_options options = named("60/min");
    options.concurrency = 3;
    has("there", &options, 60, 60, 3);
    options = named("30/min");
    fails("there", &options, SHMLIMIT_CONFIG_MISMATCH, "there");
    options.on_mismatch = SHMLIMIT_MISMATCH_ADOPT;
    has("there", &options, 60, 60, 3);
    /* Only the settings that are given change. */
    options.on_mismatch = SHMLIMIT_MISMATCH_UPDATE;
    has("there", &options, 30, 30, 3);
    /* The algorithm of an existing limiter cannot be changed. */
    options.algorithm = "token_bucket";
    fails("there", &options, SHMLIMIT_DOES_NOT_FIT, "there");
    options.on_mismatch = 3;
    fails("there", &options, SHMLIMIT_BAD_VALUE, "on_mismatch");
    options = named("30/min");
    options.concurrency = 3;
    has("there", &options, 30, 30, 3);
}

static void an_existing_limiter_is_compared_and_never_made(void)
{
    shmlimit_options options = named("60/min");
    has("present", &options, 60, 60, 0);
    options = named("30/min");
    options.flags |= SHMLIMIT_OPEN_EXISTING;
    fails("present", &options, SHMLIMIT_CONFIG_MISMATCH, "60");
    options.on_mismatch = SHMLIMIT_MISMATCH_ADOPT;
    has("present", &options, 60, 60, 0);
    options.on_mismatch = SHMLIMIT_MISMATCH_UPDATE;
    has("present", &options, 30, 30, 0);
    fails("absent", &options, SHMLIMIT_UNKNOWN_LIMITER, "absent");
    fails("absent", &options, SHMLIMIT_UNKNOWN_LIMITER, "absent");
    /* Without settings, nothing is compared. */
    options = named(NULL);
    options.flags |= SHMLIMIT_OPEN_EXISTING;
    has("present", &options, 30, 30, 0);
}

/* The struct sizes of programs that were compiled with the first header, with `shared_with`, and with `test_clock`. */
static void sizes_of_older_versions_are_accepted(void)
{
    static const size_t sizes[] = {64, 72, 80, sizeof(shmlimit_options)};
    shmlimit_setting setting = {"rate", "7/min"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        shmlimit_options options = named(NULL);
        options.settings = &setting;
        options.setting_count = 1;
        /* Fields that a version does not have are beyond the end of its struct. */
        if (sizes[i] < sizeof options)
            memset((char *)&options + sizes[i], 0xff, sizeof options - sizes[i]);
        options.size = sizes[i];
        has("older", &options, 7, 7, 0);
    }
    CHECK(offsetof(shmlimit_options, shared_with) == 64 && offsetof(shmlimit_options, test_clock) == 72);
    CHECK(offsetof(shmlimit_options, rate) == 80);
}

static void limiters_are_removed(void)
{
    shmlimit_limiter *limiter;
    shmlimit_grant grant;
    shmlimit_options options = named("5/s");
    SIZED(shmlimit_options, where);
    where.directory = directory;
    IS(shmlimit_open("removed", &options, &limiter), SHMLIMIT_OK);
    IS(shmlimit_remove("removed", &where, 0), SHMLIMIT_IN_USE);
    SAYS("force");
    IS(shmlimit_release(0), SHMLIMIT_GRANT_DONE);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_OK);
    IS(shmlimit_release(grant), SHMLIMIT_OK);
    IS(shmlimit_remove("removed", &where, 1), SHMLIMIT_OK);
    IS(shmlimit_try_acquire(limiter, NULL, &grant, NULL), SHMLIMIT_UNKNOWN_LIMITER);
    IS(shmlimit_close(limiter), SHMLIMIT_OK);
    IS(shmlimit_remove("removed", &where, 0), SHMLIMIT_UNKNOWN_LIMITER);
    SAYS("removed");
    has("removed", &options, 5, 5, 0);
    /* Only the place in the options matters: nothing is shared, and no setting is read. */
    where.shared_with = "no group has this name";
    where.rate = "fast";
    where.on_mismatch = 99;
    where.flags = SHMLIMIT_OPEN_CREATE;
    IS(shmlimit_remove("removed", &where, 0), SHMLIMIT_OK);
    IS(shmlimit_remove("removed", &where, 1), SHMLIMIT_UNKNOWN_LIMITER);
    IS(shmlimit_remove(NULL, &where, 0), SHMLIMIT_NULL_POINTER);
    IS(shmlimit_remove("no/name", &where, 0), SHMLIMIT_BAD_NAME);
    where.size = 7;
    IS(shmlimit_remove("removed", &where, 0), SHMLIMIT_WRONG_SIZE);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    directory = argv[1];
    rates_are_fields();
    a_mismatch_is_an_error_or_adopted_or_an_update();
    an_existing_limiter_is_compared_and_never_made();
    sizes_of_older_versions_are_accepted();
    limiters_are_removed();
    return 0;
}
