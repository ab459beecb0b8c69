/*
 * Prints snapshots of two limiters in the form of `status --json`, and stays attached until its input ends, so that
 * the test can ask the command-line tool about the same limiters. Usage: snapshot DIRECTORY
 */
#include "check.h"

static const char *comma;

/* Both print one key and its value. */
static void text(const char *key, const char *value)
{
    if (value == NULL)
        printf("%s\"%s\":null", comma, key);
    else
        printf("%s\"%s\":\"%s\"", comma, key, value);
    comma = ",";
}

static void number(const char *key, uint64_t value)
{
    if (value == SHMLIMIT_NEVER)
        printf("%s\"%s\":null", comma, key);
    else
        printf("%s\"%s\":%llu", comma, key, (unsigned long long)value);
    comma = ",";
}

static void number_or_null(const char *key, uint64_t value) { number(key, value == 0 ? SHMLIMIT_NEVER : value); }

static void begin(const char *key, char bracket)
{
    if (key != NULL)
        printf("%s\"%s\":%c", comma, key, bracket);
    else
        printf("%s%c", comma, bracket);
    comma = "";
}

static void end(char bracket)
{
    putchar(bracket);
    comma = ",";
}

static void lists(const shmlimit_snapshot *shown)
{
    begin("rules", '[');
    for (size_t i = 0; i < shown->rule_count; i++) {
        const shmlimit_rule_snapshot *rule = shown->rules[i];
        begin(NULL, '{');
        text("name", rule->name), text("algorithm", rule->algorithm), text("unit", rule->unit);
        number("limit", rule->limit), number("period_ns", rule->period_ns), number("capacity", rule->capacity);
        number("reserve", rule->reserve), number("remaining", rule->remaining);
        number("remaining_background", rule->remaining_background);
        number("next_in_ns", rule->next_in_ns), number("full_in_ns", rule->full_in_ns);
        end('}');
    }
    end(']');
    begin("participants", '[');
    for (size_t i = 0; i < shown->participant_count; i++) {
        const shmlimit_participant_snapshot *one = shown->participants[i];
        begin(NULL, '{');
        number("pid", one->pid), text("program", one->program), number("attached_for_ns", one->attached_for_ns);
        number("held", one->held), number("held_for_ns", one->held_for_ns), number("granted", one->granted);
        number("refused", one->refused), number("looked", one->looked);
        end('}');
    }
    end(']');
    begin("queue", '[');
    for (size_t i = 0; i < shown->queue_count; i++) {
        const shmlimit_waiter_snapshot *one = shown->queue[i];
        const char *priorities[] = {"?", "background", "user", "webhook"};
        begin(NULL, '{');
        number("pid", one->pid), text("program", one->program), text("priority", priorities[one->priority]);
        begin("cost", '{');
        for (size_t j = 0; j < one->cost_count; j++)
            number(one->costs[j].unit, one->costs[j].amount);
        end('}');
        number("waited_for_ns", one->waited_for_ns), number("looks_in_ns", one->looks_in_ns);
        number("gives_up_in_ns", one->gives_up_in_ns);
        end('}');
    }
    end(']');
    begin("transitions", '[');
    for (size_t i = 0; i < shown->transition_count; i++) {
        const shmlimit_transition_snapshot *one = shown->transitions[i];
        begin(NULL, '{');
        number("ago_ns", one->ago_ns), text("from", one->from), text("to", one->to), text("reason", one->reason);
        end('}');
    }
    end(']');
}

static void show(const shmlimit_limiter *limiter)
{
    const shmlimit_snapshot *shown;
    uint64_t calls = 0;
    IS(shmlimit_count_cache(limiter, 1), SHMLIMIT_OK);
    IS(shmlimit_count_cache(limiter, 1), SHMLIMIT_OK);
    IS(shmlimit_count_cache(limiter, 0), SHMLIMIT_OK);
    IS(shmlimit_snapshot_take(limiter, &shown), SHMLIMIT_OK);
    CHECK(shown->size == sizeof *shown);
    for (int i = 0; i < 16; i++)
        calls += shown->latency[i];
    CHECK(calls == 1 && shown->latency[5] == 1 && shown->latency_sum_ns == 30000000); /* one call recorded its 30 ms */
    comma = "";
    begin(NULL, '{');
    text("name", shown->name), text("directory", shown->directory), text("provider", shown->provider);
    number_or_null("concurrency", shown->concurrency);
    number_or_null("concurrency_background", shown->concurrency_background);
    number_or_null("concurrency_now", shown->concurrency_now);
    number("in_flight", shown->in_flight), number("in_flight_background", shown->in_flight_background);
    number("held_by_exited", shown->held_by_exited), number("resets", shown->resets);
    text("fairness", shown->fairness);
    printf(",\"background_share\":%.17g", shown->background_share);
    text("state", shown->state), number("state_for_ns", shown->state_for_ns), text("reason", shown->reason);
    number("eta_ns", shown->eta_ns), number("samples", shown->samples), number("consec429", shown->consec429);
    number("failures", shown->failures);
    printf(",\"offline\":%s,\"rate\":%.17g,\"error_ratio\":%.17g", shown->offline ? "true" : "false", shown->rate, shown->error_ratio);
    begin("outcomes", '{');
    number("ok", shown->ok), number("429", shown->throttled), number("5xx", shown->server), number("net", shown->net);
    number("ignored", shown->ignored);
    end('}');
    begin("counts", '{');
    number("granted", shown->granted), number("refused", shown->refused), number("looked", shown->looked);
    number("cache_hits", shown->cache_hits), number("cache_misses", shown->cache_misses);
    begin("codes", '{');
    for (size_t i = 0; i < shown->code_count; i++)
        number(shown->codes[i]->code, shown->codes[i]->count);
    end('}');
    end('}');
    CHECK(shown->cache_hits == 2 && shown->cache_misses == 1 && shown->granted > 0 && shown->code_count > 0);
    CHECK((shown->gate == 1) == (shown->gate_opens_in_ns > 0));
    if (shown->gate) {
        begin("gate", '{');
        number("opens_in_ns", shown->gate_opens_in_ns), number("pid", shown->gate_pid);
        text("program", shown->gate_program), number("recorded_ns", shown->gate_recorded_ns);
        end('}');
    } else {
        CHECK(shown->gate_program == NULL);
        printf(",\"gate\":null");
    }
    CHECK((shown->pace == 1) == (shown->pace_window_count > 0));
    if (shown->pace) {
        begin("pace", '{');
        number("interval_ns", shown->pace_interval_ns), text("bottleneck", shown->pace_bottleneck);
        begin("windows", '[');
        for (size_t i = 0; i < shown->pace_window_count; i++) {
            const shmlimit_pace_window_snapshot *window = shown->pace_windows[i];
            begin(NULL, '{');
            text("name", window->name), number("limit", window->limit), number("remaining", window->remaining);
            number("resets_in_ns", window->resets_in_ns);
            printf(",\"usage\":%.17g", window->usage);
            end('}');
        }
        end(']');
        end('}');
    }
    lists(shown);
    end('}');
    putchar('\n');
    shmlimit_snapshot_free(shown);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    shmlimit_limiter *tmdb, *binance;
    shmlimit_grant grants[2], late;
    shmlimit_pending wait;
    uint64_t sleep_ns;
    shmlimit_header header = {"Retry-After", "3600"};
    shmlimit_cost weight = {"weight", 40};
    SIZED(shmlimit_options, options);
    SIZED(shmlimit_request, request);
    SIZED(shmlimit_outcome, outcome);
    SIZED(shmlimit_advice, advice);
    options.directory = argv[1];
    options.flags = SHMLIMIT_OPEN_IGNORE_ENVIRONMENT;
    IS(shmlimit_open("tmdb", &options, &tmdb), SHMLIMIT_OK);
    request.priority = SHMLIMIT_PRIORITY_USER;
    IS(shmlimit_acquire(tmdb, &request, &grants[0], NULL), SHMLIMIT_OK);
    IS(shmlimit_acquire(tmdb, NULL, &grants[1], NULL), SHMLIMIT_OK);
    outcome.status = 429;
    outcome.headers = &header;
    outcome.header_count = 1;
    outcome.latency_ns = 30000000;
    IS(shmlimit_record_call(tmdb, &outcome, &advice), SHMLIMIT_OK);
    CHECK(advice.retry == 1 && advice.wait_ns == 3600 * SECOND && advice.wait_source == SHMLIMIT_SOURCE_RETRY_AFTER);
    CHECK(advice.outcome_class == SHMLIMIT_CLASS_THROTTLED && advice.consec429 == 1 && advice.samples == 1);
    IS(shmlimit_force(tmdb, "throttle"), SHMLIMIT_OK);
    IS(shmlimit_enqueue(tmdb, &request, &wait), SHMLIMIT_OK);
    IS(shmlimit_pending_step(wait, &sleep_ns, &late, NULL), SHMLIMIT_SLEEP);
    show(tmdb);

    IS(shmlimit_open("binance", &options, &binance), SHMLIMIT_OK);
    outcome.status = 200;
    header.name = "X-MBX-USED-WEIGHT-1M";
    header.value = "600";
    request.costs = outcome.costs = &weight;
    request.cost_count = outcome.cost_count = 1;
    IS(shmlimit_try_acquire(binance, &request, &late, NULL), SHMLIMIT_OK);
    weight.amount = 45; /* the real cost is higher */
    IS(shmlimit_record(late, &outcome, NULL), SHMLIMIT_OK);
    show(binance);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    IS(shmlimit_pending_cancel(wait), SHMLIMIT_OK);
    IS(shmlimit_release(grants[0]), SHMLIMIT_OK);
    IS(shmlimit_release(grants[1]), SHMLIMIT_OK);
    IS(shmlimit_close(tmdb), SHMLIMIT_OK);
    IS(shmlimit_close(binance), SHMLIMIT_OK);
    return 0;
}
