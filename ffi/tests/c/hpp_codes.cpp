// shmlimit.hpp with error codes, the form that also works with -fno-exceptions. Everything runs on a test clock, so
// nothing sleeps.
#include "check.h"
#include "shmlimit.hpp"

#include <algorithm>
#include <functional>
#include <new>

using namespace std::chrono_literals;
using shmlimit::errc;

static_assert(!std::is_copy_constructible_v<shmlimit::grant> && std::is_nothrow_move_constructible_v<shmlimit::grant>);
static_assert(!std::is_copy_constructible_v<shmlimit::answer> && std::is_nothrow_move_assignable_v<shmlimit::answer>);
static_assert(!std::is_copy_constructible_v<shmlimit::limiter> && std::is_nothrow_move_assignable_v<shmlimit::limiter>);
static_assert(!std::is_copy_constructible_v<shmlimit::pending> && std::is_nothrow_move_assignable_v<shmlimit::pending>);
static_assert(std::is_copy_constructible_v<shmlimit::snapshot> && std::is_nothrow_move_assignable_v<shmlimit::snapshot>);
static_assert(!std::is_copy_constructible_v<shmlimit::test_clock> && std::is_nothrow_move_assignable_v<shmlimit::test_clock>);
static_assert(std::is_error_code_enum_v<errc>);

// Fields end with their snapshot, so only a snapshot with a name gives them away. An element ends with its list.
#define ONLY_WITH_A_NAME(of, what, expression)                                                                          \
    template <class, class = void> constexpr bool what##_compiles = false;                                              \
    template <class S> constexpr bool what##_compiles<S, std::void_t<decltype(expression)>> = true;                     \
    static_assert(what##_compiles<of &> && what##_compiles<const of &>);                                                \
    static_assert(!what##_compiles<of> && !what##_compiles<const of>)
using rules_of_a_temporary = decltype(std::declval<shmlimit::snapshot>().rules());
ONLY_WITH_A_NAME(shmlimit::snapshot, arrow, std::declval<S>().operator->());
ONLY_WITH_A_NAME(shmlimit::snapshot, star, *std::declval<S>());
ONLY_WITH_A_NAME(rules_of_a_temporary, element, std::declval<S>()[0]);
ONLY_WITH_A_NAME(rules_of_a_temporary, begin, std::declval<S>().begin());
ONLY_WITH_A_NAME(rules_of_a_temporary, end, std::declval<S>().end());

static std::atomic<std::size_t> allocations{0};

void *operator new(std::size_t size)
{
    allocations++;
    void *memory = std::malloc(size);
    CHECK(memory != nullptr);
    return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

// The call succeeded.
static void ok(const std::error_code &code, const char *file, int line)
{
    if (code)
        fail(file, line, shmlimit_code_name(code.value()));
}
#define OK(code) ok((code), __FILE__, __LINE__)

struct Fixture {
    std::string directory;
    std::error_code code;
    shmlimit::test_clock clock{code};

    shmlimit::options options() const { return shmlimit::options().directory(directory).test_clock(clock); }
    shmlimit::limiter open(std::string_view name, const shmlimit::options &options)
    {
        shmlimit::limiter limiter(name, options, code);
        OK(code);
        CHECK(limiter);
        return limiter;
    }
    shmlimit::nanoseconds elapsed()
    {
        auto time = clock.elapsed(code);
        OK(code);
        return time;
    }
};

static void calls_wait_for_their_rate(Fixture &fixture)
{
    std::error_code code = errc::other;
    auto api = fixture.open("waits", fixture.options().rate("10/min"));
    for (int i = 0; i < 10; i++) {
        auto answer = api.acquire(code);
        OK(code);
        CHECK(answer && answer.granted() && answer->delay() == 0s);
    }
    auto refused = api.try_acquire(code);
    OK(code); // a refusal is not a failure
    CHECK(!refused && !refused.grant());
    CHECK(refused.refused().reason == shmlimit::reason::rate && !refused.refused().stopped());
    CHECK(name(refused.refused().reason) == "rate");
    CHECK(refused.refused().retry_after == 60s && refused.refused().ready_after == 60s);
    CHECK(refused.refused().rule == 0u);
    // Timeouts that are too short, zero and negative; a deadline on the test's clock.
    for (auto timeout : {59s, 0s, -1s}) {
        CHECK(!api.acquire(shmlimit::request().timeout(timeout), code));
        OK(code);
    }
    auto now = fixture.clock.now(code);
    CHECK(!api.acquire(shmlimit::request().deadline(now + 59s), code));
    CHECK(fixture.elapsed() == 0s);
    CHECK(api.acquire(shmlimit::request().timeout(std::chrono::hours::max()), code));
    CHECK(fixture.elapsed() == 60s);
}

static void a_grant_holds_one_permit_until_it_ends(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("permits", fixture.options().rate("1000/s").concurrency(1));
    auto held = [&] {
        auto snapshot = api.snapshot(code);
        OK(code);
        return snapshot->in_flight;
    };
    {
        auto answer = api.acquire(code);
        CHECK(answer && held() == 1);
        auto second = api.try_acquire(code);
        CHECK(!second && second.refused().reason == shmlimit::reason::concurrency);
        CHECK(!second.refused().retry_after); // the time is unknown
        shmlimit::grant moved = std::move(answer.grant());
        CHECK(!answer && moved && held() == 1);
    }
    CHECK(held() == 0);
    shmlimit::grant grant = std::move(*api.acquire(code));
    grant = shmlimit::grant();
    CHECK(held() == 0);
    grant = std::move(*api.acquire(code));
    grant.release(code);
    OK(code);
    CHECK(!grant && held() == 0);
    grant.release(code);
    CHECK(code == errc::grant_done && code.message() == "grant_done");
    CHECK(code.category() == shmlimit::category() && !shmlimit::last_error().empty());
    shmlimit_grant number = api.acquire(code)->detach();
    CHECK(held() == 1);
    shmlimit::grant(number).cancel(code);
    OK(code);
    CHECK(held() == 0);
    // The limiter is closed before its grant ends.
    grant = std::move(*api.acquire(code));
    api.close();
    CHECK(!api && !api.acquire(code) && code == errc::closed);
    grant.release(code);
    OK(code);
}

static void outcomes_lead_to_advice(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("outcomes", fixture.options().rate("1000/s"));
    auto advice = api.acquire(code)->record(200, code);
    OK(code);
    CHECK(!advice.retry && advice.outcome_class == shmlimit::outcome_class::ok && advice.samples == 1);
    auto answer = api.acquire(code);
    answer->record(999, code);
    CHECK(code == errc::bad_status && answer); // the grant is still valid
    auto outcome = shmlimit::outcome(429).header("retry-after", "30").latency(120ms).attempt(1);
    advice = answer->record(outcome, code);
    OK(code);
    CHECK(!answer && advice.retry && advice.wait >= 30s && advice.wait <= advice.wait_at_most);
    CHECK(advice.wait_source == shmlimit::wait_source::retry_after);
    CHECK(name(advice.outcome_class) == "429");
    auto refused = api.try_acquire(code);
    CHECK(refused.refused().reason == shmlimit::reason::retry_after && refused.refused().retry_after == 30s);
    fixture.clock.advance(30s, code);
    OK(code);
    // The head of a response ends where its string view ends.
    std::string_view head = "HTTP/1.1 503 Unavailable\r\nRetry-After: 7\r\n\r\nRetry-After: 70\r\n";
    advice = api.acquire(code)->record(shmlimit::outcome::from_head(head.substr(0, 44)), code);
    OK(code);
    CHECK(advice.outcome_class == shmlimit::outcome_class::server && advice.wait == 7s);
    advice = api.record(shmlimit::outcome(shmlimit::net_error::dns).priority(shmlimit::priority::user), code);
    OK(code);
    CHECK(advice.outcome_class == shmlimit::outcome_class::net);
    auto snapshot = api.snapshot(code);
    CHECK(snapshot->ok == 1 && snapshot->throttled == 1 && snapshot->server == 1 && snapshot->net == 1);
    std::size_t kinds = 0;
    for (const auto &one : snapshot.codes())
        kinds += one.count;
    CHECK(kinds == 4 && snapshot.codes().size() == 4);
}

static void costs_are_in_units(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("units", fixture.options().config(TWO_UNITS));
    auto left = [&](std::size_t rule) {
        auto snapshot = api.snapshot(code);
        return snapshot.rules()[rule].remaining;
    };
    // A string view without a NUL at its end.
    std::string_view tokens = std::string_view("tokens and more").substr(0, 6);
    auto answer = api.acquire(shmlimit::request().cost(tokens, 900).priority(shmlimit::priority::user), code);
    OK(code);
    CHECK(answer && left(1) == 100);
    answer->record(shmlimit::outcome(200).cost(tokens, 500), code);
    OK(code);
    CHECK(left(1) == 500);
    auto refused = api.try_acquire(shmlimit::request().cost("tokens", 5000), code);
    CHECK(refused.refused().reason == shmlimit::reason::cost_exceeds_limit && refused.refused().rule == 1u);
    CHECK(!api.try_acquire(shmlimit::request().cost("pages", 1), code) && code == errc::unknown_unit);
    CHECK(!api.try_acquire(shmlimit::request().cost(std::string(100, 'x'), 1), code) && code == errc::unknown_unit);
    shmlimit::request many;
    for (int i = 0; i < 9; i++)
        many.cost("tokens", 1);
    CHECK(!api.try_acquire(many, code) && code == errc::bad_value);
    CHECK(left(1) == 500);
}

static int never(void *) { return 0; }
static bool always() { return true; }

static void a_wait_can_be_stopped(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("stops", fixture.options().rate("1000/s").concurrency(1));
    auto held = api.acquire(code);
    std::atomic<bool> flag{true};
    auto stopped = api.acquire(shmlimit::request().stop(flag), code);
    OK(code);
    CHECK(!stopped && stopped.refused().stopped() && name(stopped.refused().reason) == "stopped");
    int asked = 0;
    auto third = [&] { return ++asked == 3; };
    CHECK(api.acquire(shmlimit::request().stop(third), code).refused().stopped() && asked == 3);
    CHECK(api.acquire(shmlimit::request().stop(third).stop(always), code).refused().stopped() && asked == 3);
    CHECK(api.acquire(shmlimit::request().stop([] { return true; }), code).refused().stopped());
    // The last `stop` counts, and one that is empty ends nothing.
    const std::function<bool()> empty, full = [&] { return true; };
    CHECK(api.acquire(shmlimit::request().stop(full), code).refused().stopped());
    auto timeout = shmlimit::request().timeout(1ms);
    CHECK(api.acquire(shmlimit::request(timeout).stop(empty), code).refused().reason == shmlimit::reason::concurrency);
    bool (*none)() = nullptr;
    timeout.stop(full).stop(none);
    CHECK(api.acquire(timeout, code).refused().reason == shmlimit::reason::concurrency);
    held->release(code);
    CHECK(api.acquire(shmlimit::request().stop(always).stop(never), code));
}

static void an_event_loop_steps_its_waits(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("steps", fixture.options().rate("1000/s").concurrency(1));
    auto queued = [&] {
        auto snapshot = api.snapshot(code);
        return snapshot.queue().size();
    };
    auto held = api.acquire(code);
    shmlimit::nanoseconds sleep{};
    {
        auto wait = api.enqueue(shmlimit::request().priority(shmlimit::priority::user), code);
        OK(code);
        CHECK(wait && !wait.step(sleep, code) && sleep > 0s && queued() == 1);
        auto snapshot = api.snapshot(code);
        for (const auto &one : snapshot.queue())
            CHECK(name(shmlimit::priority(one.priority)) == "user" && !shmlimit::known(one.gives_up_in_ns));
    }
    CHECK(queued() == 0);
    auto wait = api.enqueue({}, code);
    CHECK(!wait.step(sleep, code));
    held->release(code);
    auto answer = wait.step(sleep, code);
    OK(code);
    CHECK(answer && *answer && !wait && queued() == 0);
    CHECK(wait.step(sleep, code) && code == errc::pending_done);
    // A failure ends a wait like a refusal.
    wait = api.enqueue({}, code);
    CHECK(wait && !wait.step(sleep, code));
    shmlimit::remove("steps", fixture.options(), true, code);
    OK(code);
    auto failed = wait.step(sleep, code);
    CHECK(failed && !*failed && code == errc::unknown_limiter && !wait);
}

static void the_lists_of_a_snapshot_keep_it_alive(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("lists", fixture.options().rate("7/min").rate("tokens=9/min"));
    auto same = shmlimit::limiter("lists", fixture.options().rate("7/min, tokens=9/min"), code);
    OK(code);
    same.close();
    // A snapshot without a name lives as long as the loop over one of its lists.
    std::string units;
    for (const auto &rule : api.snapshot(code).rules())
        units += std::string(rule.unit) + " ";
    CHECK(units == "requests tokens ");
    CHECK(api.snapshot(code).rules().size() == 2 && api.snapshot(code).queue().empty());
    CHECK(api.snapshot(code).participants().size() == 1 && api.snapshot(code).codes().empty());
    CHECK(api.snapshot(code).transitions().empty() && api.snapshot(code).pace_windows().empty());
    // A list outlives its snapshot, and a copy of a snapshot is the same moment.
    auto rules = api.snapshot(code).rules();
    shmlimit::range<shmlimit_rule_snapshot> copy;
    {
        auto snapshot = api.snapshot(code);
        auto same = snapshot;
        CHECK(&*same == &*snapshot);
        copy = same.rules();
    }
    CHECK(std::string_view(rules[1].unit) == "tokens" && std::string_view(copy[1].unit) == "tokens");
    auto tokens = std::find_if(copy.begin(), copy.end(), [](auto &rule) { return rule.limit == 9; });
    CHECK(tokens != copy.end() && std::distance(copy.begin(), tokens) == 1);
    // After a failure there is no snapshot, and its lists are empty.
    shmlimit::limiter closed;
    auto none = closed.snapshot(code);
    CHECK(code == errc::closed && !none && none.rules().empty() && none.queue().size() == 0);
    for (const auto &rule : closed.snapshot(code).rules())
        CHECK(rule.limit == 0 && false);
}

static void an_empty_clock_is_an_error_and_not_the_clock_of_the_machine(Fixture &fixture)
{
    std::error_code code;
    shmlimit::test_clock clock(code);
    shmlimit::test_clock taken = std::move(clock);
    auto where = shmlimit::options().directory(fixture.directory).rate("1/min");
    shmlimit::limiter empty("clocked", shmlimit::options(where).test_clock(clock), code);
    CHECK(code == errc::closed && !empty);
    CHECK(shmlimit::last_error().find("test clock") != std::string_view::npos);
    shmlimit::remove("clocked", shmlimit::options(where).test_clock(clock), false, code);
    CHECK(code == errc::closed);
    auto names = shmlimit::list(fixture.directory, code);
    CHECK(std::find(names.begin(), names.end(), "clocked") == names.end());
    shmlimit::limiter there("clocked", fixture.options().rate("1/min").test_clock(taken), code);
    OK(code);
}

static void an_operator_changes_a_limiter(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("operated", fixture.options().rate("100/min").burst(20).algorithm("gcra").ignore_environment());
    CHECK(api.config(code).find("\"gcra\"") != std::string::npos);
    auto snapshot = api.snapshot(code);
    CHECK(snapshot.rules()[0].capacity == 20 && api.environment_changes(code).empty());
    api.set("concurrency", "3", code);
    OK(code);
    snapshot = api.snapshot(code);
    CHECK(snapshot->concurrency == 3);
    api.set("nonsense", "3", code);
    CHECK(code == errc::config);
    snapshot = api.snapshot(code);
    CHECK(snapshot->concurrency == 3);
    api.pause(90s, "maintenance", code);
    OK(code);
    auto refused = api.try_acquire(code);
    CHECK(refused.refused().reason == shmlimit::reason::paused && refused.refused().retry_after == 90s);
    snapshot = api.snapshot(code);
    CHECK(std::string_view(snapshot->pause_reason) == "maintenance");
    CHECK(api.resume(code) && !api.resume(code));
    api.pause("until further notice", code);
    OK(code);
    snapshot = api.snapshot(code);
    CHECK(std::string_view(snapshot->pause_reason) == "until further notice");
    CHECK(!shmlimit::known(snapshot->pause_ends_in_ns) && api.resume(code));
    // A pause that ended in the past is over at once. It does not become one without an end.
    api.pause(-1s, "late", code);
    OK(code);
    snapshot = api.snapshot(code);
    CHECK(shmlimit::known(snapshot->pause_ends_in_ns).value_or(1h) <= 1ns);
    fixture.clock.advance(1ns, code);
    CHECK(api.try_acquire(code) && !api.resume(code));
    api.pause(code);
    CHECK(!api.try_acquire(code).refused().retry_after && api.resume(code));
    api.force("bogus", code);
    CHECK(code == errc::no_such_state);
    api.force("clear_gate", code);
    OK(code);
    api.count_cache(true, code);
    CHECK(api.metrics(code).find("limiter=\"operated\"") != std::string::npos);
    OK(code);
    snapshot = api.snapshot(code);
    CHECK(snapshot->cache_hits == 1 && snapshot.participants().size() == 1);
    // A failure names the limiter, and leaves an object that is not open.
    auto other = shmlimit::limiter("operated", fixture.options().rate("7/min"), code);
    CHECK(code == errc::config_mismatch && !other);
    CHECK(shmlimit::last_error().find("operated") != std::string_view::npos);
    // With `on_mismatch`, it uses the limiter as it is, or changes it.
    other = shmlimit::limiter("operated", fixture.options().rate("7/min").on_mismatch(shmlimit::on_mismatch::adopt), code);
    OK(code);
    snapshot = other.snapshot(code);
    CHECK(snapshot.rules()[0].limit == 100);
    other = shmlimit::limiter("operated", fixture.options().rate("7/min").on_mismatch(shmlimit::on_mismatch::update), code);
    OK(code);
    snapshot = api.snapshot(code);
    CHECK(snapshot.rules()[0].limit == 7);
    shmlimit::limiter missing("missing", fixture.options().open_existing(), code);
    CHECK(code == errc::unknown_limiter && !missing);
    shmlimit::limiter differs("operated", fixture.options().rate("8/min").open_existing(), code);
    CHECK(code == errc::config_mismatch && !differs);
}

static void limiters_are_listed_and_removed(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("removed", fixture.options().rate("5/s").create());
    auto listed = [&] {
        auto names = shmlimit::list(fixture.directory, code);
        OK(code);
        std::size_t count = 0;
        for (const auto &name : names)
            count += name == "removed";
        return count;
    };
    auto where = fixture.options();
    CHECK(listed() == 1);
    shmlimit::remove("removed", where, false, code);
    CHECK(code == errc::in_use && listed() == 1 && api.try_acquire(code));
    shmlimit::remove("removed", where, true, code);
    OK(code);
    CHECK(listed() == 0 && !api.try_acquire(code) && code == errc::unknown_limiter);
    shmlimit::remove("removed", where, false, code);
    CHECK(code == errc::unknown_limiter);
    CHECK(!shmlimit::presets(code).empty());
    OK(code);
}

static void asking_allocates_nothing(Fixture &fixture)
{
    std::error_code code;
    auto api = fixture.open("allocates", fixture.options().config(TWO_UNITS));
    std::atomic<bool> flag{false};
    auto before = allocations.load();
    for (int i = 0; i < 3; i++) {
        auto request = shmlimit::request().cost("tokens", 2).timeout(5s).stop(flag).priority(shmlimit::priority::user);
        auto answer = api.acquire(request, code);
        CHECK(answer);
        answer->record(200, code);
        OK(code);
        CHECK(!api.try_acquire(shmlimit::request().cost("tokens", 5000), code));
    }
    CHECK(allocations == before);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && shmlimit::version() == SHMLIMIT_VERSION && SHMLIMIT_VERSION_AT_LEAST(0, 1, 0));
    Fixture fixture{argv[1], {}};
    OK(fixture.code);
    calls_wait_for_their_rate(fixture);
    a_grant_holds_one_permit_until_it_ends(fixture);
    outcomes_lead_to_advice(fixture);
    costs_are_in_units(fixture);
    a_wait_can_be_stopped(fixture);
    an_event_loop_steps_its_waits(fixture);
    the_lists_of_a_snapshot_keep_it_alive(fixture);
    an_empty_clock_is_an_error_and_not_the_clock_of_the_machine(fixture);
    an_operator_changes_a_limiter(fixture);
    limiters_are_listed_and_removed(fixture);
    asking_allocates_nothing(fixture);
    std::error_code code;
    shmlimit::test_clock second(std::chrono::system_clock::time_point(1700000000s), code);
    CHECK(second.now(code) == std::chrono::system_clock::time_point(1700000000s));
    second = std::move(fixture.clock);
    CHECK(fixture.clock.handle() == nullptr && second.elapsed(code) >= 60s);
    fixture.clock.advance(1s, code);
    CHECK(code == errc::closed);
    CHECK(name(shmlimit::priority::webhook) == "webhook" && name(shmlimit::priority::user) == "user");
    CHECK(name(shmlimit::priority::background) == "background" && name(shmlimit::priority::unset) == "unset");
}
