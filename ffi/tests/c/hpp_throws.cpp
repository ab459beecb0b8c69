// shmlimit.hpp with exceptions: the same calls as with error codes, and the exceptions that they throw.
#include "check.h"
#include "shmlimit.hpp"

using namespace std::chrono_literals;
using shmlimit::errc;

// The call throws this failure, and its message contains `text`.
template <class Call> static void throws(errc expected, std::string_view text, Call &&call, int line)
{
    try {
        call();
    } catch (const shmlimit::error &error) {
        const std::system_error &base = error;
        if (base.code() == expected && std::string_view(error.what()).find(text) != std::string_view::npos)
            return;
        fail(__FILE__, line, error.what());
    }
    fail(__FILE__, line, "no exception");
}
#define THROWS(expected, text, ...) throws((expected), (text), [&] { (void)(__VA_ARGS__); }, __LINE__)

static std::uint32_t in_flight(const shmlimit::limiter &limiter)
{
    auto snapshot = limiter.snapshot();
    return snapshot->in_flight;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string directory = argv[1];
    shmlimit::test_clock clock;
    auto where = shmlimit::options().directory(directory).test_clock(clock);
    shmlimit::limiter api("api", shmlimit::options(where).rate("10/min").concurrency(2));

    // An exception between acquire and record releases the grant.
    try {
        auto call = api.acquire(shmlimit::request().timeout(5s));
        CHECK(call && in_flight(api) == 1);
        throw 7;
    } catch (int seven) {
        CHECK(seven == 7 && in_flight(api) == 0);
    }
    if (auto call = api.acquire()) {
        auto advice = call->record(shmlimit::outcome(429).header("Retry-After", "30"));
        CHECK(advice.retry && advice.wait >= 30s);
    } else {
        CHECK(!"granted");
    }
    auto refused = api.try_acquire();
    CHECK(!refused && refused.refused().reason == shmlimit::reason::retry_after);
    api.force("clear_gate");
    clock.advance(30s);
    CHECK(clock.elapsed() == 30s && clock.now() == std::chrono::system_clock::time_point(1893456030s));

    auto call = api.acquire();
    THROWS(errc::bad_status, "999", call->record(999));
    CHECK(call && in_flight(api) == 1);
    call->release();
    THROWS(errc::grant_done, "grant", call->release());
    THROWS(errc::grant_done, "grant", call->cancel());
    api.acquire()->cancel();
    CHECK(in_flight(api) == 0);

    auto wait = api.enqueue();
    shmlimit::nanoseconds sleep{};
    auto answer = wait.step(sleep);
    CHECK(answer && *answer);
    THROWS(errc::pending_done, "wait", wait.step(sleep));

    THROWS(errc::unknown_limiter, "missing", shmlimit::limiter("missing", shmlimit::options(where).open_existing()));
    THROWS(errc::config_mismatch, "api", shmlimit::limiter("api", shmlimit::options(where).rate("1/s")));
    THROWS(errc::already_exists, "api", shmlimit::limiter("api", shmlimit::options(where).rate("1/s").create()));
    THROWS(errc::config, "burst", shmlimit::limiter("wrong", shmlimit::options(where).setting("burst", "x")));
    THROWS(errc::unknown_unit, "pages", api.acquire(shmlimit::request().cost("pages", 1)));
    THROWS(errc::config, "nonsense", api.set("nonsense", "1"));
    THROWS(errc::closed, "closed", shmlimit::limiter().acquire());
    THROWS(errc::bad_value, "flags", shmlimit::limiter("api", shmlimit::options(where).create().replace()));

    api.set("concurrency", "5");
    auto snapshot = api.snapshot();
    CHECK(snapshot->concurrency == 5 && api.config().find("concurrency = 5") != std::string::npos);
    api.pause(1min, "maintenance");
    CHECK(api.resume() && !api.resume());
    api.pause();
    CHECK(api.resume());
    api.pause("until further notice");
    CHECK(api.resume());
    api.count_cache(false);
    CHECK(api.metrics().find("shmlimit_") != std::string::npos);
    THROWS(errc::closed, "closed", shmlimit::limiter().metrics());
    CHECK(api.record(200).outcome_class == shmlimit::outcome_class::ok && api.environment_changes().empty());
    CHECK(shmlimit::list(directory).size() == 1 && !shmlimit::presets().empty());

    shmlimit::limiter moved = std::move(api);
    THROWS(errc::closed, "closed", api.snapshot());
    THROWS(errc::in_use, "api", shmlimit::remove("api", where));
    moved = shmlimit::limiter();
    // Grants keep the limiter in use until they end.
    *answer = shmlimit::answer();
    shmlimit::remove("api", where);
    CHECK(shmlimit::list(directory).empty());
}
