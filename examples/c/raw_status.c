/*
 * Prints the status of a limiter from its file alone. Links no library, writes nothing, disturbs no other program.
 *
 *     cc -std=c11 -Iinclude examples/c/raw_status.c -o raw_status && ./raw_status DIRECTORY NAME
 *
 * Each line is `key value...`. The output is the content of the file: a breaker timer that is due takes effect only when a
 * program next uses the limiter. shmlimit_segment.h explains how to read a segment, above `struct shmlimit_segment`.
 */
#include "mapped.h"
#include "shmlimit_segment.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Words are copied, the struct is read. The part behind the slots is not needed and stays zero. */
static union {
    uint64_t words[SHMLIMIT_SEGMENT_SIZE / 8];
    struct shmlimit_segment segment;
} copy;

static char path[4096];

static void fail(const char *why)
{
    fprintf(stderr, "raw_status: %s: %s\n", path, why);
    exit(1);
}

/* Other programs may write at any time, so every read is an atomic load. */
static uint64_t load(const uint64_t *word, memory_order order)
{
    return atomic_load_explicit((const volatile _Atomic uint64_t *)word, order);
}

static void take(const uint64_t *map, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        copy.words[i] = load(map + i, memory_order_relaxed);
}

/* Copies one committed state; 0 if it was being changed. Copies little, to finish before the next change. */
static int take_state(const uint64_t *map)
{
    const uint64_t *version = map + SHMLIMIT_SEGMENT_VERSION_AT / 8;
    const size_t slot = sizeof(struct shmlimit_segment_slot) / 8;
    const uint64_t before = load(version, memory_order_acquire);
    if (before % 2 != 0)
        return 0;
    take(map, 0, SHMLIMIT_SEGMENT_JOURNAL_AT / 8);
    for (size_t i = SHMLIMIT_SEGMENT_SLOTS_AT / 8; i < SHMLIMIT_SEGMENT_QUEUE_AT / 8; i += slot)
        take(map, i, load(map + i, memory_order_relaxed) % 2 != 0 ? slot : 1);
    atomic_thread_fence(memory_order_acquire);
    return load(version, memory_order_relaxed) == before;
}

static uint64_t checksum(const void *from, const void *to)
{
    uint64_t sum = SHMLIMIT_SEGMENT_CHECKSUM_SEED;
    for (const uint64_t *word = from; word != to; word++) {
        sum = (sum ^ *word) * SHMLIMIT_SEGMENT_CHECKSUM_FACTOR;
        sum ^= sum >> SHMLIMIT_SEGMENT_CHECKSUM_SHIFT;
    }
    return sum;
}

/* Only the system knows which participants are alive: each holds a byte lock until its memory is gone. */
static int is_alive(const mapped_file *file, size_t slot)
{
    return is_locked(file, SHMLIMIT_SEGMENT_FIRST_LIVENESS_BYTE + slot);
}

/* A name ends at a zero or fills its bytes. Each unprintable byte becomes a question mark. */
static const char *name(const uint8_t *bytes, size_t length)
{
    static char texts[2][SHMLIMIT_SEGMENT_NAME_LENGTH + 1], *text = texts[0];
    text = text == texts[0] ? texts[1] : texts[0];
    size_t i = 0;
    for (; i < length && bytes[i] != 0; i++)
        text[i] = (char)(isprint(bytes[i]) ? bytes[i] : '?');
    text[i] = 0;
    return text;
}
#define NAME(bytes) name(bytes, sizeof(bytes))

static const char *algorithm(unsigned code)
{
    static const char *const names[] = {"?",            "token_bucket", "gcra",           "leaky_bucket",
                                        "fixed_window", "sliding_log",  "sliding_counter"};
    return names[code <= SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_COUNTER ? code : 0];
}

static const char *state(unsigned code, unsigned breaker)
{
    static const char *const names[] = {"normal", "throttle", "sleep", "half_open", "cache_only", "open"};
    if (code == SHMLIMIT_SEGMENT_STATE_NORMAL && breaker == SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE)
        return "closed";
    return names[code <= SHMLIMIT_SEGMENT_STATE_OPEN ? code : 0];
}

int main(int count, char **arguments)
{
    arguments = utf8_arguments(arguments);
    mapped_file file;
    if (count != 3)
        return fputs("usage: raw_status DIRECTORY NAME\n", stderr), 2;
    snprintf(path, sizeof path, "%s/%s.shm", arguments[1], arguments[2]);
    if (!open_file(path, &file))
        return 1;
    if (file.size < SHMLIMIT_SEGMENT_SIZE)
        fail("it is too short to be a segment");
    const uint64_t *map = map_file(&file, SHMLIMIT_SEGMENT_SIZE);
    if (map == NULL)
        fail("it cannot be mapped");

    /* The header never changes, so it is read only once. */
    const struct shmlimit_segment *now = &copy.segment;
    const struct shmlimit_segment_header *header = &now->header;
    take(map, 0, sizeof *header / 8);
    if (header->magic != SHMLIMIT_SEGMENT_MAGIC || header->byte_order != SHMLIMIT_SEGMENT_BYTE_ORDER)
        fail("it is not a segment of this machine");
    if (header->layout_version != SHMLIMIT_LAYOUT_VERSION || header->hash != SHMLIMIT_SEGMENT_HASH)
        fail("it has another layout than this program knows");
    if (header->checksum != checksum(header, &header->checksum) || header->size != file.size)
        fail("its header is damaged");

    /* Tries for about a second: other programs may write all the time, but not every try meets a change. */
    uint64_t looks = 0, late = now_ns() + 1000000000u;
    for (; !take_state(map); sleep_ns(++looks % 50 * 1000))
        if (now_ns() > late)
            fail("its state keeps changing, or whoever changed it is stopped or dead");
    const struct shmlimit_segment_policy *policy = &now->policy;
    const struct shmlimit_segment_health *health = &now->health_state.health;
    const struct shmlimit_segment_tallies *outcomes = &now->health_state.tallies;
    if (policy->checksum != checksum(policy, policy->unused_words))
        fail("its configuration is damaged");

    uint64_t time = boot_ns() + now->clock_offset;
    time = time > now->latest ? time : now->latest;
    printf("name %s\nlayout_version %" PRIu32 "\nprovider %s\n", arguments[2], header->layout_version,
           NAME(policy->provider));
    printf("concurrency %" PRIu32 "\nin_flight %" PRIu32 "\nin_flight_background %" PRIu32 "\nresets %" PRIu64 "\n",
           policy->concurrency, now->in_flight, now->in_flight_background, now->origin.resets);
    printf("state %s\nconsec429 %" PRIu32 "\nfailures %" PRIu32 "\ngate_ns %" PRIu64 "\n",
           state(health->state, policy->breaker.kind), health->consec429, health->failures,
           health->gate_until > time ? health->gate_until - time : 0);
    printf("ok %" PRIu64 "\n429 %" PRIu64 "\n5xx %" PRIu64 "\nnet %" PRIu64 "\nignored %" PRIu64 "\n", outcomes->ok,
           outcomes->throttled, outcomes->server, outcomes->net, outcomes->other);
    printf("waiting_background %u\nwaiting_user %u\nwaiting_webhook %u\n",
           now->waiting[SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND], now->waiting[SHMLIMIT_SEGMENT_PRIORITY_USER],
           now->waiting[SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK]);
    puts("# rule NAME UNIT ALGORITHM LIMIT PERIOD_NS CAPACITY RESERVE");
    for (size_t i = 0; i < policy->rule_count && i < SHMLIMIT_SEGMENT_RULES; i++) {
        const struct shmlimit_segment_rule *rule = &policy->rules[i];
        printf("rule %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", NAME(rule->name),
               NAME(policy->units[rule->unit % SHMLIMIT_SEGMENT_UNITS]), algorithm(rule->algorithm), rule->limit,
               rule->period, rule->burst, rule->reserve);
    }
    puts("# participant PID HELD GRANTED REFUSED alive|dead PROGRAM");
    for (size_t i = 0; i < SHMLIMIT_SEGMENT_SLOTS; i++) {
        const struct shmlimit_segment_slot *slot = &now->slots[i];
        if (slot->owned % 2 != 0)
            printf("participant %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %s %s\n", slot->pid, slot->held,
                   slot->granted, slot->refused, is_alive(&file, i) ? "alive" : "dead", NAME(slot->program));
    }
    return 0;
}
