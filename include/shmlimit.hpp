// shmlimit.hpp: shmlimit for C++17 and later. Header only, over shmlimit.h; the guide is docs/c.md.
//
//     #include "shmlimit.hpp"
//     #include <iostream>
//     using namespace std::chrono_literals;
//
//     int main()
//     {
//         shmlimit::limiter api("api", shmlimit::options().rate("100/min"));
//         if (auto call = api.acquire(shmlimit::request().timeout(5s))) {
//             int status = 200; // the answer to your call
//             auto advice = call->record(status);
//             std::cout << (advice.retry ? "try again\n" : "done\n");
//         } else {
//             std::cout << "refused: " << name(call.refused().reason) << '\n';
//         }
//     }
//
// Every function that can fail has two forms, like those of std::filesystem. The one without a std::error_code throws
// shmlimit::error. The one with a std::error_code at the end sets it, and last_error() has the message; with
// -fno-exceptions there is only this form. A refusal is not a failure: it is a value.
//
// Limiters, grants, waits and clocks can be moved, not copied, and clean up in their destructors. A moved-from or
// default-constructed object is empty: a call on it, or a limiter on an empty clock, fails with errc::closed, grant_done
// or pending_done. Asking for a call allocates no memory. Threads, forks and signals: see the conventions in shmlimit.h.
#ifndef SHMLIMIT_HPP
#define SHMLIMIT_HPP

#include "shmlimit.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define SHMLIMIT_HPP_THROWS 1
#endif

namespace shmlimit {

using std::chrono::nanoseconds;

// ---- Results and errors

/// A failure. shmlimit.h describes each number.
enum class errc : int {
    null_pointer = SHMLIMIT_NULL_POINTER,
    wrong_size = SHMLIMIT_WRONG_SIZE,
    not_utf8 = SHMLIMIT_NOT_UTF8,
    bad_value = SHMLIMIT_BAD_VALUE,
    closed = SHMLIMIT_CLOSED,
    grant_done = SHMLIMIT_GRANT_DONE,
    pending_done = SHMLIMIT_PENDING_DONE,
    panicked = SHMLIMIT_PANICKED,
    too_many = SHMLIMIT_TOO_MANY,
    bad_name = SHMLIMIT_BAD_NAME,
    unknown_limiter = SHMLIMIT_UNKNOWN_LIMITER,
    already_exists = SHMLIMIT_ALREADY_EXISTS,
    directory = SHMLIMIT_DIRECTORY,
    unsafe_file = SHMLIMIT_UNSAFE_FILE,
    foreign = SHMLIMIT_FOREIGN,
    damaged = SHMLIMIT_DAMAGED,
    network_file_system = SHMLIMIT_NETWORK_FILE_SYSTEM,
    busy = SHMLIMIT_BUSY,
    slots_full = SHMLIMIT_SLOTS_FULL,
    config_mismatch = SHMLIMIT_CONFIG_MISMATCH,
    does_not_fit = SHMLIMIT_DOES_NOT_FIT,
    policy = SHMLIMIT_POLICY,
    config = SHMLIMIT_CONFIG,
    environment = SHMLIMIT_ENVIRONMENT,
    bad_status = SHMLIMIT_BAD_STATUS,
    no_such_state = SHMLIMIT_NO_SUCH_STATE,
    unknown_unit = SHMLIMIT_UNKNOWN_UNIT,
    replaced = SHMLIMIT_REPLACED,
    io = SHMLIMIT_IO,
    unsupported = SHMLIMIT_UNSUPPORTED,
    liveness = SHMLIMIT_LIVENESS,
    in_use = SHMLIMIT_IN_USE,
    other = SHMLIMIT_OTHER,
};

/// The version of the library that the program runs with, such as "0.1.0".
inline std::string_view version() noexcept { return shmlimit_version(); }

/// The message of the last failure in this thread. Valid until the next failure in this thread.
inline std::string_view last_error() noexcept { return shmlimit_last_error(); }

/// The error number of the operating system for the last failure in this thread; 0 if it did not come from the system.
inline int last_errno() noexcept { return shmlimit_last_errno(); }

namespace detail {

// The name `category` is taken by the function in this namespace.
class category_type final : public std::error_category {
public:
    const char *name() const noexcept override { return "shmlimit"; }
    std::string message(int code) const override { return shmlimit_code_name(code); }
};

} // namespace detail

/// The category of every std::error_code that this header sets.
inline const std::error_category &category() noexcept
{
    static const detail::category_type instance;
    return instance;
}

/// Makes `code == shmlimit::errc::busy` work.
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), category()}; }

#ifdef SHMLIMIT_HPP_THROWS
/// A failure as an exception: code() is an errc, what() is the message of the library.
class error : public std::system_error {
public:
    explicit error(std::error_code code) : std::system_error(code, shmlimit_last_error()) {}
};
#endif

namespace detail {

// A C struct that is all zero but its size.
template <class T> T sized() noexcept
{
    T value{};
    value.size = sizeof value;
    return value;
}

// Sets `code` for a failure. Answers such as SHMLIMIT_REFUSED are not failures.
inline bool done(std::int32_t result, std::error_code &code) noexcept
{
    if (result >= SHMLIMIT_NULL_POINTER) {
        code.assign(result, category());
        return false;
    }
    code.clear();
    return true;
}

#ifdef SHMLIMIT_HPP_THROWS
// The result of a call with a std::error_code, or the exception for it.
template <class Call> auto thrown(Call &&call)
{
    std::error_code code;
    if constexpr (std::is_void_v<std::invoke_result_t<Call, std::error_code &>>) {
        call(code);
        if (code)
            throw error(code);
    } else {
        auto result = call(code);
        if (code)
            throw error(code);
        return result;
    }
}
#endif

// Nanoseconds for C: nothing below 0, and nothing above 292 years.
template <class Rep, class Period> std::uint64_t to_ns(std::chrono::duration<Rep, Period> time) noexcept
{
    auto ns = std::chrono::duration<long double, std::nano>(time).count();
    if (!(ns > 0))
        return 0;
    return ns < 9.2e18L ? static_cast<std::uint64_t>(std::chrono::duration_cast<nanoseconds>(time).count()) : INT64_MAX;
}

// The same where 0 would mean "no limit".
template <class Rep, class Period> std::uint64_t to_limit(std::chrono::duration<Rep, Period> time) noexcept
{
    std::uint64_t ns = to_ns(time);
    return ns > 0 ? ns : 1;
}

inline nanoseconds from_ns(std::uint64_t ns) noexcept
{
    return nanoseconds(ns < INT64_MAX ? static_cast<std::int64_t>(ns) : INT64_MAX);
}

struct text_deleter {
    void operator()(char *text) const noexcept { shmlimit_text_free(text); }
};

// The text that a C function returns.
template <class Call> std::string text(Call &&call, std::error_code &code)
{
    char *raw = nullptr;
    bool ok = done(call(&raw), code);
    std::unique_ptr<char, text_deleter> text(raw);
    return ok ? text.get() : "";
}

// Whether a callable object returns true. One that can be empty, such as std::function, says so by its operator bool.
template <class Function> bool call(Function &function)
{
    if constexpr (std::is_constructible_v<bool, Function &> && !std::is_convertible_v<Function &, bool>)
        return static_cast<bool>(function) && static_cast<bool>(function());
    else
        return static_cast<bool>(function());
}

// A text that may be missing. (GCC 12 warns about a std::optional<std::string> with the address sanitizer.)
class optional_text {
public:
    void set(std::string_view text)
    {
        text_ = text;
        is_set_ = true;
    }
    // As one more element of a list.
    void add(std::string_view text)
    {
        if (is_set_)
            text_ += ", ";
        text_ += text;
        is_set_ = true;
    }
    const char *pointer() const noexcept { return is_set_ ? text_.c_str() : nullptr; }

private:
    std::string text_;
    bool is_set_ = false;
};

} // namespace detail

/// A time of a snapshot, whose fields end in _ns; nothing for SHMLIMIT_NEVER.
inline std::optional<nanoseconds> known(std::uint64_t ns) noexcept
{
    return ns == SHMLIMIT_NEVER ? std::nullopt : std::optional<nanoseconds>(detail::from_ns(ns));
}

// ---- Tests with a virtual clock

/// A virtual clock for tests: limiters that are opened with it take their time from it. See shmlimit_test_clock_new().
class test_clock {
public:
    using time_point = std::chrono::system_clock::time_point;

    /// Creates a clock that shows 2030-01-01 00:00:00 UTC.
    explicit test_clock(std::error_code &code) noexcept { detail::done(shmlimit_test_clock_new(0, &handle_), code); }
    /// Creates a clock that shows `start`.
    test_clock(time_point start, std::error_code &code) noexcept
    {
        detail::done(shmlimit_test_clock_new(detail::to_ns(start.time_since_epoch()), &handle_), code);
    }
    test_clock(test_clock &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    test_clock &operator=(test_clock &&other) noexcept
    {
        test_clock(std::move(other)).swap(*this);
        return *this;
    }
    ~test_clock() { shmlimit_test_clock_free(handle_); }

    /// Moves the clock forward.
    template <class Rep, class Period>
    void advance(std::chrono::duration<Rep, Period> by, std::error_code &code) const noexcept
    {
        detail::done(shmlimit_test_clock_advance(handle_, detail::to_ns(by)), code);
    }
    /// How much time has passed since the clock was created.
    nanoseconds elapsed(std::error_code &code) const noexcept
    {
        std::uint64_t ns = 0;
        detail::done(shmlimit_test_clock_elapsed(handle_, &ns), code);
        return detail::from_ns(ns);
    }
    /// The time that the clock shows.
    time_point now(std::error_code &code) const noexcept
    {
        std::uint64_t ns = 0;
        detail::done(shmlimit_test_clock_now(handle_, &ns), code);
        return time_point(std::chrono::duration_cast<time_point::duration>(detail::from_ns(ns)));
    }
#ifdef SHMLIMIT_HPP_THROWS
    test_clock() { detail::thrown([&](auto &code) { test_clock(code).swap(*this); }); }
    explicit test_clock(time_point start) { detail::thrown([&](auto &code) { test_clock(start, code).swap(*this); }); }
    template <class Rep, class Period> void advance(std::chrono::duration<Rep, Period> by) const
    {
        detail::thrown([&](auto &code) { advance(by, code); });
    }
    nanoseconds elapsed() const { return detail::thrown([&](auto &code) { return elapsed(code); }); }
    time_point now() const { return detail::thrown([&](auto &code) { return now(code); }); }
#endif
    /// The handle for functions of shmlimit.h.
    const shmlimit_test_clock *handle() const noexcept { return handle_; }
    void swap(test_clock &other) noexcept { std::swap(handle_, other.handle_); }

private:
    shmlimit_test_clock *handle_ = nullptr;
};

// ---- Opening a limiter

/// How to handle an existing limiter whose settings differ from the options.
enum class on_mismatch : std::uint32_t {
    error = SHMLIMIT_MISMATCH_ERROR,   ///< Fail with errc::config_mismatch.
    adopt = SHMLIMIT_MISMATCH_ADOPT,   ///< Use the limiter as it is.
    update = SHMLIMIT_MISMATCH_UPDATE, ///< Change the limiter, for all programs that share it.
};

/// How to open a limiter. Without settings, an existing one is opened as it is, or one is created from the preset of its name.
class options {
public:
    /// Adds a rate: a number and a time, such as "10/s", "40/10s" or "1000/day", with a unit "tokens=30k/min". One text
    /// may also name several: "100/min, tokens=30k/min". Without a burst, no period, wherever it begins, exceeds the rate
    /// (sliding_log). With a burst, it is a token bucket: a period may admit rate + burst.
    options &rate(std::string_view text) { return rate_.add(text), *this; }
    /// The most units that one rate allows at once. One period may then admit rate + burst.
    options &burst(std::uint64_t units) noexcept { return burst_ = units, *this; }
    /// The most calls in flight.
    options &concurrency(std::uint32_t calls) noexcept { return concurrency_ = calls, *this; }
    /// The algorithm of the rate, such as "gcra". Without it: sliding_log, or token_bucket with a burst or above 100,000 per period.
    options &algorithm(std::string_view name) { return algorithm_.set(name), *this; }
    /// How to handle an existing limiter with other settings.
    options &on_mismatch(shmlimit::on_mismatch what) noexcept { return on_mismatch_ = what, *this; }
    /// The directory of the limiters, in UTF-8.
    options &directory(std::string_view path) { return directory_.set(path), *this; }
    /// The preset to create the limiter from.
    options &preset(std::string_view name) { return preset_.set(name), *this; }
    /// The text of a configuration file (TOML), not its path.
    options &config(std::string_view text) { return config_.set(text), *this; }
    /// One setting of docs/configuration.md.
    options &setting(std::string_view key, std::string_view value)
    {
        return settings_.emplace_back(std::string(key), std::string(value)), *this;
    }
    /// Processes of the same group take turns as one.
    options &group(std::string_view name) { return group_.set(name), *this; }
    /// Shares the directory with a group of users, or on Windows also with a user.
    options &shared_with(std::string_view name) { return shared_with_.set(name), *this; }
    /// Takes the time from a test's clock. The options need a directory too. An empty clock fails with errc::closed.
    options &test_clock(const shmlimit::test_clock &clock) noexcept
    {
        // NULL would mean the clock of the machine. No clock has the number 1.
        auto none = reinterpret_cast<const shmlimit_test_clock *>(std::uintptr_t(1));
        return clock_ = clock.handle() == nullptr ? none : clock.handle(), *this;
    }
    /// Opens the limiter only if it exists. Settings are compared as without this: on_mismatch() decides.
    options &open_existing() noexcept { return flag(SHMLIMIT_OPEN_EXISTING); }
    /// Creates the limiter, and fails with errc::already_exists if it exists.
    options &create() noexcept { return flag(SHMLIMIT_OPEN_CREATE); }
    /// Creates the limiter afresh, in place of an existing one.
    options &replace() noexcept { return flag(SHMLIMIT_OPEN_REPLACE); }
    /// Accepts a directory on a network file system, at your own risk.
    options &allow_network_fs() noexcept { return flag(SHMLIMIT_OPEN_ALLOW_NETWORK_FS); }
    /// Ignores environment variables that change settings.
    options &ignore_environment() noexcept { return flag(SHMLIMIT_OPEN_IGNORE_ENVIRONMENT); }
    /// Shares the directory with the group of users that has this number. Not on Windows.
    options &shared_with_gid(std::uint32_t gid) noexcept { return gid_ = gid, flag(SHMLIMIT_OPEN_SHARE); }

    /// Calls `use` with these options as the struct of shmlimit.h.
    template <class Use> auto with(Use &&use) const
    {
        std::vector<shmlimit_setting> settings;
        settings.reserve(settings_.size());
        for (const auto &[key, value] : settings_)
            settings.push_back({key.c_str(), value.c_str()});
        auto raw = detail::sized<shmlimit_options>();
        raw.directory = directory_.pointer();
        raw.preset = preset_.pointer();
        raw.config = config_.pointer();
        raw.settings = settings.empty() ? nullptr : settings.data();
        raw.setting_count = settings.size();
        raw.group = group_.pointer();
        raw.flags = flags_;
        raw.gid = gid_;
        raw.shared_with = shared_with_.pointer();
        raw.test_clock = clock_;
        raw.rate = rate_.pointer();
        raw.algorithm = algorithm_.pointer();
        raw.burst = burst_;
        raw.concurrency = concurrency_;
        raw.on_mismatch = static_cast<std::uint32_t>(on_mismatch_);
        return use(raw);
    }

private:
    options &flag(std::uint32_t one) noexcept { return flags_ |= one, *this; }

    detail::optional_text directory_, preset_, config_, group_, shared_with_, rate_, algorithm_;
    std::vector<std::pair<std::string, std::string>> settings_;
    const shmlimit_test_clock *clock_ = nullptr;
    std::uint64_t burst_ = 0;
    std::uint32_t concurrency_ = 0, flags_ = 0, gid_ = 0;
    shmlimit::on_mismatch on_mismatch_ = shmlimit::on_mismatch::error;
};

// ---- Asking for a call

/// Which waiting call goes first. Served in this order: webhook, user, background. webhook and user may use the reserve.
enum class priority : std::uint32_t {
    unset = SHMLIMIT_PRIORITY_DEFAULT,         ///< Of a request, background; of an outcome, the priority of its grant.
    background = SHMLIMIT_PRIORITY_BACKGROUND, ///< Work that can wait.
    user = SHMLIMIT_PRIORITY_USER,             ///< A person waits for the call.
    webhook = SHMLIMIT_PRIORITY_WEBHOOK,       ///< Another program waits for the call.
};

/// The name of a priority, such as "user".
inline std::string_view name(priority one) noexcept
{
    return one == priority::unset ? "unset" : shmlimit_priority_name(static_cast<std::uint32_t>(one));
}

/// A request for one call. By default: one request, background priority, no timeout.
class request {
public:
    /// The call's cost in a unit. A unit that is not named costs 0, except "requests", which costs 1. At most 8 units.
    request &cost(std::string_view unit, std::uint64_t amount) noexcept
    {
        if (count_ < most) {
            // No unit has a name that is cut here.
            std::size_t length = unit.size() < sizeof units_[0] ? unit.size() : sizeof units_[0] - 1;
            std::memcpy(units_[count_], unit.data(), length);
            units_[count_][length] = '\0';
            amounts_[count_] = amount;
        }
        count_++;
        return *this;
    }
    /// How long the call may wait. With 0 or less it does not wait.
    template <class Rep, class Period> request &timeout(std::chrono::duration<Rep, Period> time) noexcept
    {
        return timeout_ns_ = detail::to_limit(time), *this;
    }
    /// Until when the call may wait. With a timeout, the earlier one counts. With a test clock, a time on that clock.
    request &deadline(std::chrono::system_clock::time_point time) noexcept
    {
        return deadline_ns_ = detail::to_limit(time.time_since_epoch()), *this;
    }
    /// The priority.
    request &priority(shmlimit::priority value) noexcept { return priority_ = value, *this; }
    /// A function that ends the wait when it returns anything but 0. It must not throw.
    request &stop(int (*function)(void *context), void *context = nullptr) noexcept
    {
        return stop_ = function, context_ = context, plain_ = nullptr, *this;
    }
    /// A function that ends the wait when it returns true; nullptr for none. It must not throw.
    request &stop(bool (*function)()) noexcept { return stop(nullptr, nullptr), plain_ = function, *this; }
    /// A flag that ends the wait when it is true. The flag must live until the wait is over.
    request &stop(const std::atomic<bool> &flag) noexcept
    {
        auto *context = const_cast<std::atomic<bool> *>(&flag);
        return stop([](void *one) noexcept -> int { return static_cast<std::atomic<bool> *>(one)->load(); }, context);
    }
    /// An object that ends the wait when its operator() returns true. It must not throw, and live until the wait is over.
    /// An empty std::function ends nothing.
    template <class Function, class = std::enable_if_t<std::is_object_v<Function> && std::is_invocable_r_v<bool, Function &>>>
    request &stop(Function &function) noexcept
    {
        return stop([](void *one) noexcept -> int { return detail::call(*static_cast<Function *>(one)) ? 1 : 0; },
                    const_cast<void *>(static_cast<const void *>(&function)));
    }

    /// Calls `use` with this request as the struct of shmlimit.h.
    template <class Use> auto with(Use &&use) const noexcept
    {
        shmlimit_cost costs[most];
        for (std::size_t i = 0; i < count_ && i < most; i++)
            costs[i] = {units_[i], amounts_[i]};
        auto raw = detail::sized<shmlimit_request>();
        raw.costs = count_ == 0 ? nullptr : costs;
        // Too many units are refused before the library reads one of them.
        raw.cost_count = count_ <= most ? count_ : SIZE_MAX;
        raw.timeout_ns = timeout_ns_;
        raw.deadline_ns = deadline_ns_;
        raw.priority = static_cast<std::uint32_t>(priority_);
        raw.stop = stop_;
        raw.stop_context = context_;
        if (plain_ != nullptr) {
            raw.stop = [](void *plain) noexcept -> int { return (**static_cast<bool (*const *)()>(plain))() ? 1 : 0; };
            raw.stop_context = const_cast<void *>(static_cast<const void *>(&plain_));
        }
        return use(raw);
    }

private:
    static constexpr std::size_t most = 8;

    char units_[most][40];
    std::uint64_t amounts_[most];
    std::size_t count_ = 0;
    std::uint64_t timeout_ns_ = 0, deadline_ns_ = 0;
    shmlimit::priority priority_ = shmlimit::priority::unset;
    int (*stop_)(void *) = nullptr;
    void *context_ = nullptr;
    bool (*plain_)() = nullptr;
};

/// Why a call is refused.
enum class reason : std::uint32_t {
    stopped = 0,                                               ///< The request's stop ended the wait.
    sleep = SHMLIMIT_REASON_SLEEP,                             ///< The breaker sleeps.
    cache_only = SHMLIMIT_REASON_CACHE_ONLY,                   ///< The breaker allows no call. Use cached answers.
    open = SHMLIMIT_REASON_OPEN,                               ///< A consecutive breaker is open.
    retry_after = SHMLIMIT_REASON_RETRY_AFTER,                 ///< A Retry-After of the server is not over yet.
    adaptive = SHMLIMIT_REASON_ADAPTIVE,                       ///< Response headers asked for a slower pace.
    concurrency = SHMLIMIT_REASON_CONCURRENCY,                 ///< All permits are in use.
    rate = SHMLIMIT_REASON_RATE,                               ///< A rule has too few units left.
    cost_exceeds_limit = SHMLIMIT_REASON_COST_EXCEEDS_LIMIT,   ///< The call costs more than a rule ever allows.
    queued = SHMLIMIT_REASON_QUEUED,                           ///< Other calls wait and come first.
    queue_full = SHMLIMIT_REASON_QUEUE_FULL,                   ///< The queue is full.
    paused = SHMLIMIT_REASON_PAUSED,                           ///< An operator has paused the limiter.
    busy = SHMLIMIT_REASON_BUSY,                               ///< Other processes held the limiter's lock until the deadline.
    other = SHMLIMIT_REASON_OTHER,                             ///< A reason that this version has no number for.
};

/// The name of a reason, such as "rate".
inline std::string_view name(reason reason) noexcept
{
    return reason == reason::stopped ? "stopped" : shmlimit_reason_name(static_cast<std::uint32_t>(reason));
}

/// A refusal: why, and when to ask again. Nothing was taken.
struct refused {
    shmlimit::reason reason = shmlimit::reason::other; ///< Why the call is refused.
    std::optional<nanoseconds> retry_after;            ///< When to ask again, from now; nothing = never, or not known.
    std::optional<nanoseconds> ready_after;            ///< A shorter timeout is refused too; nothing = never, or not known.
    std::optional<std::uint32_t> rule;                 ///< The number of the rule that refused, in the order of the configuration.

    /// Whether the request's stop ended the wait.
    bool stopped() const noexcept { return reason == shmlimit::reason::stopped; }
};

// ---- Ending a call

/// Why a call got no response.
enum class net_error : std::uint32_t {
    connect_timeout = SHMLIMIT_ERROR_CONNECT_TIMEOUT, ///< The connection was not made in time.
    read_timeout = SHMLIMIT_ERROR_READ_TIMEOUT,       ///< The answer did not come in time.
    dns = SHMLIMIT_ERROR_DNS,                         ///< The name of the server could not be resolved.
    connection = SHMLIMIT_ERROR_CONNECTION,           ///< The connection was refused or broke.
};

/// How a call ended: a status, a net_error, or the head of the response.
class outcome {
public:
    /// The server answered with this HTTP status.
    outcome(int status) noexcept : status_(static_cast<std::uint32_t>(status)) {}
    /// The server did not answer.
    outcome(net_error error) noexcept : error_(static_cast<std::uint32_t>(error)) {}
    /// The status line and headers as the server sent them. The text must live until the outcome is recorded.
    static outcome from_head(std::string_view head) noexcept { return outcome(0).head(head); }

    /// More headers, as the server sent them. The text must live until the outcome is recorded.
    outcome &head(std::string_view head) noexcept { return head_ = head, *this; }
    /// One response header.
    outcome &header(std::string_view name, std::string_view value)
    {
        return headers_.emplace_back(std::string(name), std::string(value)), *this;
    }
    /// How long the call took.
    template <class Rep, class Period> outcome &latency(std::chrono::duration<Rep, Period> time) noexcept
    {
        return latency_ns_ = detail::to_ns(time), *this;
    }
    /// The number of the attempt, from 1.
    outcome &attempt(std::uint32_t number) noexcept { return attempt_ = number, *this; }
    /// The actual cost of the call in a unit.
    outcome &cost(std::string_view unit, std::uint64_t amount)
    {
        return costs_.emplace_back(std::string(unit), amount), *this;
    }
    /// The priority of a call without a grant.
    outcome &priority(shmlimit::priority value) noexcept { return priority_ = value, *this; }

    /// Calls `use` with this outcome as the struct of shmlimit.h.
    template <class Use> auto with(Use &&use) const
    {
        std::vector<shmlimit_header> headers;
        headers.reserve(headers_.size());
        for (const auto &[name, value] : headers_)
            headers.push_back({name.c_str(), value.c_str()});
        std::vector<shmlimit_cost> costs;
        costs.reserve(costs_.size());
        for (const auto &[unit, amount] : costs_)
            costs.push_back({unit.c_str(), amount});
        auto raw = detail::sized<shmlimit_outcome>();
        raw.status = status_;
        raw.error = error_;
        raw.headers = headers.empty() ? nullptr : headers.data();
        raw.header_count = headers.size();
        raw.head = head_.data();
        raw.head_length = head_.size();
        raw.latency_ns = latency_ns_;
        raw.costs = costs.empty() ? nullptr : costs.data();
        raw.cost_count = costs.size();
        raw.attempt = attempt_;
        raw.priority = static_cast<std::uint32_t>(priority_);
        return use(raw);
    }

private:
    std::uint32_t status_ = 0, error_ = 0, attempt_ = 0;
    shmlimit::priority priority_ = shmlimit::priority::unset;
    std::uint64_t latency_ns_ = 0;
    std::string_view head_;
    std::vector<std::pair<std::string, std::string>> headers_;
    std::vector<std::pair<std::string, std::uint64_t>> costs_;
};

/// The class of an outcome.
enum class outcome_class : std::uint32_t {
    ok = SHMLIMIT_CLASS_OK,               ///< The server answered and works.
    throttled = SHMLIMIT_CLASS_THROTTLED, ///< 429: the server got too many calls.
    server = SHMLIMIT_CLASS_SERVER,       ///< 5xx: the server failed.
    net = SHMLIMIT_CLASS_NET,             ///< The server did not answer.
    ignored = SHMLIMIT_CLASS_IGNORED,     ///< Any other 4xx. It says nothing about the health of the server.
};

/// The name of an outcome class, such as "5xx".
inline std::string_view name(outcome_class one) noexcept { return shmlimit_class_name(static_cast<std::uint32_t>(one)); }

/// The source of the wait in an advice.
enum class wait_source : std::uint32_t {
    none = SHMLIMIT_SOURCE_NONE,               ///< There is no need to wait.
    retry_after = SHMLIMIT_SOURCE_RETRY_AFTER, ///< The server said how long, with Retry-After.
    backoff = SHMLIMIT_SOURCE_BACKOFF,         ///< The library computed the wait from the failures in a row.
};

/// Advice after an outcome: whether and when to try again.
struct advice {
    bool retry = false;                                                ///< Whether to try again.
    nanoseconds wait{};                                                ///< How long to wait before the next attempt.
    nanoseconds wait_at_most{};                                        ///< The longest time that `wait` could have been.
    shmlimit::outcome_class outcome_class = shmlimit::outcome_class(); ///< The class of the outcome.
    shmlimit::wait_source wait_source = shmlimit::wait_source::none;   ///< Where `wait` comes from.
    double error_ratio = 0;                                            ///< The ratio of errors in the breaker's window.
    std::uint32_t samples = 0;                                         ///< How many outcomes are in the breaker's window.
    std::uint32_t consec429 = 0;                                       ///< How many 429 came in a row.
    std::uint32_t transitions = 0;                                     ///< How many times the breaker changed its state.

    advice() = default;
    /// The struct of shmlimit.h as this one.
    explicit advice(const shmlimit_advice &raw) noexcept
        : retry(raw.retry != 0), wait(detail::from_ns(raw.wait_ns)), wait_at_most(detail::from_ns(raw.wait_at_most_ns)),
          outcome_class(static_cast<shmlimit::outcome_class>(raw.outcome_class)),
          wait_source(static_cast<shmlimit::wait_source>(raw.wait_source)), error_ratio(raw.error_ratio),
          samples(raw.samples), consec429(raw.consec429), transitions(raw.transitions)
    {
    }
};

/// The right to make one call. It holds a permit until it is recorded, released, cancelled or destroyed.
class [[nodiscard]] grant {
public:
    /// Takes over a grant of shmlimit.h.
    explicit grant(shmlimit_grant number = 0, nanoseconds delay = {}) noexcept : number_(number), delay_(delay) {}
    grant(grant &&other) noexcept : number_(other.detach()), delay_(other.delay_) {}
    grant &operator=(grant &&other) noexcept
    {
        grant taken(std::move(other));
        std::swap(number_, taken.number_);
        std::swap(delay_, taken.delay_);
        return *this;
    }
    ~grant()
    {
        if (number_ != 0)
            shmlimit_release(number_);
    }

    /// Whether the grant holds a permit.
    explicit operator bool() const noexcept { return number_ != 0; }
    /// How long to delay the call so that calls are evenly spaced. 0 except with a leaky bucket.
    nanoseconds delay() const noexcept { return delay_; }
    /// Records how the call ended, for all programs, and ends the grant. After a failure the grant is still valid.
    advice record(const outcome &outcome, std::error_code &code)
    {
        auto raw = detail::sized<shmlimit_advice>();
        ended(outcome.with([&](const shmlimit_outcome &how) { return shmlimit_record(number_, &how, &raw); }), code);
        return advice(raw);
    }
    /// Returns the permit without an outcome. After a failure the grant is still valid.
    void release(std::error_code &code) noexcept { ended(shmlimit_release(number_), code); }
    /// Returns the permit and the cost of a call that was never sent. After a failure the grant is still valid.
    void cancel(std::error_code &code) noexcept { ended(shmlimit_cancel(number_), code); }
#ifdef SHMLIMIT_HPP_THROWS
    advice record(const outcome &outcome) { return detail::thrown([&](auto &code) { return record(outcome, code); }); }
    void release() { detail::thrown([&](auto &code) { release(code); }); }
    void cancel() { detail::thrown([&](auto &code) { cancel(code); }); }
#endif
    /// The grant for functions of shmlimit.h. This object no longer ends it.
    shmlimit_grant detach() noexcept { return std::exchange(number_, 0); }

private:
    void ended(std::int32_t result, std::error_code &code) noexcept
    {
        if (detail::done(result, code))
            number_ = 0;
    }

    shmlimit_grant number_;
    nanoseconds delay_;
};

/// The answer to a request: a grant or a refusal.
class [[nodiscard]] answer {
public:
    answer() noexcept = default;
    /// The answer of a function of shmlimit.h.
    answer(std::int32_t result, shmlimit_grant number, const shmlimit_answer &raw) noexcept
        : grant_(number, detail::from_ns(raw.delay_ns))
    {
        if (result == SHMLIMIT_REFUSED) {
            refused_.reason = static_cast<reason>(raw.reason);
            refused_.retry_after = known(raw.retry_after_ns);
            refused_.ready_after = known(raw.ready_after_ns);
            if (raw.rule >= 0)
                refused_.rule = static_cast<std::uint32_t>(raw.rule);
        } else if (result == SHMLIMIT_STOPPED) {
            refused_.reason = reason::stopped;
        }
    }

    /// Whether the call is granted.
    bool granted() const noexcept { return static_cast<bool>(grant_); }
    /// Whether the call is granted.
    explicit operator bool() const noexcept { return granted(); }
    /// The grant; an empty one if the call is refused.
    shmlimit::grant &grant() noexcept { return grant_; }
    /// The grant; an empty one if the call is refused.
    shmlimit::grant *operator->() noexcept { return &grant_; }
    /// The grant; an empty one if the call is refused.
    shmlimit::grant &operator*() noexcept { return grant_; }
    /// Why the call is refused, if it is.
    const shmlimit::refused &refused() const noexcept { return refused_; }

private:
    shmlimit::grant grant_;
    shmlimit::refused refused_;
};

// ---- Waiting in an event loop

/// A wait that an event loop steps. Destroying it before its end leaves the queue.
class [[nodiscard]] pending {
public:
    /// Takes over a wait of shmlimit.h.
    explicit pending(shmlimit_pending number = 0) noexcept : number_(number) {}
    pending(pending &&other) noexcept : number_(std::exchange(other.number_, 0)) {}
    pending &operator=(pending &&other) noexcept
    {
        pending taken(std::move(other));
        std::swap(number_, taken.number_);
        return *this;
    }
    ~pending()
    {
        if (number_ != 0)
            shmlimit_pending_cancel(number_);
    }

    /// Whether the wait continues.
    explicit operator bool() const noexcept { return number_ != 0; }
    /// Checks whether it is the call's turn, without waiting. Nothing: step again after `sleep`. An answer ends the wait.
    /// On a test clock, a step moves the clock to the time of the grant.
    [[nodiscard]] std::optional<answer> step(nanoseconds &sleep, std::error_code &code) noexcept
    {
        std::uint64_t ns = 0;
        shmlimit_grant grant = 0;
        auto raw = detail::sized<shmlimit_answer>();
        std::int32_t result = shmlimit_pending_step(number_, &ns, &grant, &raw);
        sleep = detail::from_ns(ns);
        if (detail::done(result, code) && result == SHMLIMIT_SLEEP)
            return std::nullopt;
        if (result != SHMLIMIT_PENDING_DONE)
            number_ = 0;
        return answer(result, grant, raw);
    }
#ifdef SHMLIMIT_HPP_THROWS
    [[nodiscard]] std::optional<answer> step(nanoseconds &sleep)
    {
        return detail::thrown([&](auto &code) { return step(sleep, code); });
    }
#endif

private:
    shmlimit_pending number_;
};

// ---- Looking at limiters

/// A list of a snapshot, for range-based for and algorithms. It keeps the snapshot alive: elements and their texts live
/// as long as the snapshot or one of its lists.
template <class T> class range {
public:
    class iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T *;
        using reference = const T &;

        explicit iterator(const T *const *at = nullptr) noexcept : at_(at) {}
        reference operator*() const noexcept { return **at_; }
        pointer operator->() const noexcept { return *at_; }
        iterator &operator++() noexcept { return ++at_, *this; }
        iterator operator++(int) noexcept { return iterator(at_++); }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        const T *const *at_;
    };
    using value_type = T;
    using const_iterator = iterator;

    /// An empty list.
    range() noexcept = default;
    range(std::shared_ptr<const shmlimit_snapshot> owner, const T *const *first, std::size_t count) noexcept
        : owner_(std::move(owner)), first_(first), count_(count)
    {
    }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    const T &operator[](std::size_t i) const noexcept { return *first_[i]; }
    iterator begin() const noexcept { return iterator(first_); }
    iterator end() const noexcept { return iterator(count_ == 0 ? first_ : first_ + count_); }

private:
    std::shared_ptr<const shmlimit_snapshot> owner_;
    const T *const *first_ = nullptr;
    std::size_t count_ = 0;
};

/// A list of a snapshot without a name. It may be the last that keeps the snapshot alive, so it needs a name before an
/// element can be read: `auto rules = api.snapshot().rules();`. Range-based for needs none.
template <class T> class kept_range : public range<T> {
public:
    using typename range<T>::iterator;
    using range<T>::range;
    const T &operator[](std::size_t i) const & noexcept { return range<T>::operator[](i); }
    const T &operator[](std::size_t i) const && = delete;
    iterator begin() const & noexcept { return range<T>::begin(); }
    iterator begin() const && = delete;
    iterator end() const & noexcept { return range<T>::end(); }
    iterator end() const && = delete;
};

/// A limiter at one moment. `->` leads to the fields of shmlimit_snapshot; known() makes a duration of those in _ns. A
/// copy is the same moment.
/// Fields end with the snapshot and its copies. So a snapshot needs a name before a field can be read: with
/// `auto snapshot = api.snapshot();`, read `snapshot->in_flight`. `api.snapshot()->in_flight` does not compile. Lists
/// need no name: `for (const auto &waiter : api.snapshot().queue())`.
class [[nodiscard]] snapshot {
public:
    /// Takes over a snapshot of shmlimit.h.
    explicit snapshot(const shmlimit_snapshot *raw = nullptr)
    {
        if (raw != nullptr)
            raw_.reset(raw, [](const shmlimit_snapshot *one) { shmlimit_snapshot_free(one); });
    }

    /// Whether there is a snapshot. There is none after a failure. Its lists are empty then.
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /// The fields.
    const shmlimit_snapshot *operator->() const & noexcept { return raw_.get(); }
    const shmlimit_snapshot *operator->() const && = delete;
    /// The fields.
    const shmlimit_snapshot &operator*() const & noexcept { return *raw_; }
    const shmlimit_snapshot &operator*() const && = delete;
    /// The rules, in the order of the configuration.
    range<shmlimit_rule_snapshot> rules() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::rules, &shmlimit_snapshot::rule_count);
    }
    kept_range<shmlimit_rule_snapshot> rules() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::rules, &shmlimit_snapshot::rule_count);
    }
    /// The processes that are attached and alive.
    range<shmlimit_participant_snapshot> participants() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::participants, &shmlimit_snapshot::participant_count);
    }
    kept_range<shmlimit_participant_snapshot> participants() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::participants, &shmlimit_snapshot::participant_count);
    }
    /// The calls that wait, in the order in which they will be served. name(priority(one.priority)) is the name of a
    /// priority.
    range<shmlimit_waiter_snapshot> queue() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::queue, &shmlimit_snapshot::queue_count);
    }
    kept_range<shmlimit_waiter_snapshot> queue() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::queue, &shmlimit_snapshot::queue_count);
    }
    /// Each window of the provider, as response headers described it.
    range<shmlimit_pace_window_snapshot> pace_windows() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::pace_windows, &shmlimit_snapshot::pace_window_count);
    }
    kept_range<shmlimit_pace_window_snapshot> pace_windows() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::pace_windows, &shmlimit_snapshot::pace_window_count);
    }
    /// The newest changes of the breaker's state, the newest last.
    range<shmlimit_transition_snapshot> transitions() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::transitions, &shmlimit_snapshot::transition_count);
    }
    kept_range<shmlimit_transition_snapshot> transitions() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::transitions, &shmlimit_snapshot::transition_count);
    }
    /// How often calls ended with each status or error.
    range<shmlimit_code_count> codes() const & noexcept
    {
        return list<range>(&shmlimit_snapshot::codes, &shmlimit_snapshot::code_count);
    }
    kept_range<shmlimit_code_count> codes() const && noexcept
    {
        return list<kept_range>(&shmlimit_snapshot::codes, &shmlimit_snapshot::code_count);
    }

private:
    template <template <class> class List, class T>
    List<T> list(const T *const *shmlimit_snapshot::*first, std::size_t shmlimit_snapshot::*count) const noexcept
    {
        return raw_ == nullptr ? List<T>() : List<T>(raw_, (*raw_).*first, (*raw_).*count);
    }

    std::shared_ptr<const shmlimit_snapshot> raw_;
};

// ---- Limiters

/// An open limiter. All programs that open the same name in the same directory share it. All threads may use one object.
class limiter {
public:
    /// A limiter that is not open.
    limiter() noexcept = default;
    /// Opens a limiter, and creates it if it does not exist.
    limiter(std::string_view name, const options &options, std::error_code &code)
    {
        std::string text(name);
        auto open = [&](const shmlimit_options &how) { return shmlimit_open(text.c_str(), &how, &handle_); };
        detail::done(options.with(open), code);
    }
    /// Opens a limiter, and creates it from the preset of its name if it does not exist.
    limiter(std::string_view name, std::error_code &code) : limiter(name, options(), code) {}
    /// Takes over a limiter of shmlimit.h.
    explicit limiter(shmlimit_limiter *handle) noexcept : handle_(handle) {}
    limiter(limiter &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    limiter &operator=(limiter &&other) noexcept
    {
        limiter taken(std::move(other));
        std::swap(handle_, taken.handle_);
        return *this;
    }
    ~limiter() { close(); }

    /// Closes the limiter. Its grants stay valid.
    void close() noexcept { shmlimit_close(std::exchange(handle_, nullptr)); }
    /// Whether the limiter is open.
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /// The handle for functions of shmlimit.h.
    shmlimit_limiter *handle() const noexcept { return handle_; }

    /// Asks for a grant, and waits for it in the queue of all processes.
    [[nodiscard]] answer acquire(const request &request, std::error_code &code) const noexcept
    {
        return asked(shmlimit_acquire, request, code);
    }
    /// Asks for one request with background priority, and waits for it in the queue of all processes.
    [[nodiscard]] answer acquire(std::error_code &code) const noexcept { return acquire(request(), code); }
    /// Asks once and does not wait. Timeout, deadline and stop are ignored.
    [[nodiscard]] answer try_acquire(const request &request, std::error_code &code) const noexcept
    {
        return asked(shmlimit_try_acquire, request, code);
    }
    /// Asks once for one request with background priority, and does not wait.
    [[nodiscard]] answer try_acquire(std::error_code &code) const noexcept { return try_acquire(request(), code); }
    /// Begins a wait for an event loop, and returns at once.
    [[nodiscard]] pending enqueue(const request &request, std::error_code &code) const noexcept
    {
        shmlimit_pending number = 0;
        auto enqueue = [&](const shmlimit_request &what) { return shmlimit_enqueue(handle_, &what, &number); };
        detail::done(request.with(enqueue), code);
        return pending(number);
    }

    /// Records how a call ended that has no grant.
    advice record(const outcome &outcome, std::error_code &code) const
    {
        auto raw = detail::sized<shmlimit_advice>();
        auto record = [&](const shmlimit_outcome &how) { return shmlimit_record_call(handle_, &how, &raw); };
        detail::done(outcome.with(record), code);
        return advice(raw);
    }
    /// Counts a lookup in the program's own cache, for dashboards.
    void count_cache(bool hit, std::error_code &code) const noexcept
    {
        detail::done(shmlimit_count_cache(handle_, hit ? 1 : 0), code);
    }

    /// Changes one setting of docs/configuration.md, for all programs that share the limiter.
    void set(std::string_view key, std::string_view value, std::error_code &code) const
    {
        detail::done(shmlimit_set(handle_, std::string(key).c_str(), std::string(value).c_str()), code);
    }
    /// Puts the breaker into a state, for all programs: see shmlimit_force().
    void force(std::string_view state, std::error_code &code) const
    {
        detail::done(shmlimit_force(handle_, std::string(state).c_str()), code);
    }
    /// Stops all calls of all programs for a time, or until resume() if `length` is 0.
    template <class Rep, class Period>
    void pause(std::chrono::duration<Rep, Period> length, std::string_view why, std::error_code &code) const
    {
        std::string reason(why);
        auto raw = detail::sized<shmlimit_pause_options>();
        // A length below 0 must not become 0, which would be a pause without an end.
        raw.duration_ns = length == length.zero() ? 0 : detail::to_limit(length);
        raw.reason = reason.empty() ? nullptr : reason.c_str();
        detail::done(shmlimit_pause(handle_, &raw), code);
    }
    /// Stops all calls of all programs until resume().
    void pause(std::string_view why, std::error_code &code) const { pause(nanoseconds(0), why, code); }
    /// Stops all calls of all programs until resume().
    void pause(std::error_code &code) const { pause(nanoseconds(0), {}, code); }
    /// Ends a pause, and says whether there was one.
    bool resume(std::error_code &code) const noexcept
    {
        std::int32_t was_paused = 0;
        detail::done(shmlimit_resume(handle_, &was_paused), code);
        return was_paused != 0;
    }
    /// The effective configuration, as the text of a configuration file.
    std::string config(std::error_code &code) const
    {
        return detail::text([&](char **text) { return shmlimit_config(handle_, text); }, code);
    }
    /// The changes that environment variables made when this object opened the limiter: one line per change.
    std::string environment_changes(std::error_code &code) const
    {
        return detail::text([&](char **text) { return shmlimit_environment_changes(handle_, text); }, code);
    }
    /// The metrics of the limiter in the text format of Prometheus, for programs that serve them.
    std::string metrics(std::error_code &code) const
    {
        return detail::text([&](char **text) { return shmlimit_metrics(handle_, text); }, code);
    }
    /// Takes a snapshot: settings, counts, processes, queue, breaker.
    [[nodiscard]] shmlimit::snapshot snapshot(std::error_code &code) const
    {
        const shmlimit_snapshot *raw = nullptr;
        detail::done(shmlimit_snapshot_take(handle_, &raw), code);
        return shmlimit::snapshot(raw);
    }

#ifdef SHMLIMIT_HPP_THROWS
    explicit limiter(std::string_view name, const options &options = {})
    {
        detail::thrown([&](auto &code) { *this = limiter(name, options, code); });
    }
    [[nodiscard]] answer acquire(const request &request = {}) const
    {
        return detail::thrown([&](auto &code) { return acquire(request, code); });
    }
    [[nodiscard]] answer try_acquire(const request &request = {}) const
    {
        return detail::thrown([&](auto &code) { return try_acquire(request, code); });
    }
    [[nodiscard]] pending enqueue(const request &request = {}) const
    {
        return detail::thrown([&](auto &code) { return enqueue(request, code); });
    }
    advice record(const outcome &outcome) const
    {
        return detail::thrown([&](auto &code) { return record(outcome, code); });
    }
    void count_cache(bool hit) const { detail::thrown([&](auto &code) { count_cache(hit, code); }); }
    void set(std::string_view key, std::string_view value) const
    {
        detail::thrown([&](auto &code) { set(key, value, code); });
    }
    void force(std::string_view state) const { detail::thrown([&](auto &code) { force(state, code); }); }
    template <class Rep, class Period>
    void pause(std::chrono::duration<Rep, Period> length, std::string_view why = {}) const
    {
        detail::thrown([&](auto &code) { pause(length, why, code); });
    }
    void pause(std::string_view why) const { detail::thrown([&](auto &code) { pause(why, code); }); }
    void pause() const { detail::thrown([&](auto &code) { pause(code); }); }
    bool resume() const { return detail::thrown([&](auto &code) { return resume(code); }); }
    std::string config() const { return detail::thrown([&](auto &code) { return config(code); }); }
    std::string metrics() const { return detail::thrown([&](auto &code) { return metrics(code); }); }
    std::string environment_changes() const
    {
        return detail::thrown([&](auto &code) { return environment_changes(code); });
    }
    [[nodiscard]] shmlimit::snapshot snapshot() const { return detail::thrown([&](auto &code) { return snapshot(code); }); }
#endif

private:
    template <class Ask> answer asked(Ask ask, const request &request, std::error_code &code) const noexcept
    {
        shmlimit_grant number = 0;
        auto raw = detail::sized<shmlimit_answer>();
        std::int32_t result = request.with([&](const shmlimit_request &what) { return ask(handle_, &what, &number, &raw); });
        detail::done(result, code);
        return answer(result, number, raw);
    }

    shmlimit_limiter *handle_ = nullptr;
};

/// Removes a limiter with its file. If programs use it, it fails with errc::in_use, unless `force` is true.
inline void remove(std::string_view name, const options &options, bool force, std::error_code &code)
{
    std::string text(name);
    auto remove = [&](const shmlimit_options &how) { return shmlimit_remove(text.c_str(), &how, force ? 1 : 0); };
    detail::done(options.with(remove), code);
}

namespace detail {

inline std::vector<std::string> names(std::int32_t result, const shmlimit_names *raw, std::error_code &code)
{
    struct deleter {
        void operator()(const shmlimit_names *names) const noexcept { shmlimit_names_free(names); }
    };
    std::unique_ptr<const shmlimit_names, deleter> owned(raw);
    return done(result, code) ? std::vector<std::string>(raw->names, raw->names + raw->count) : std::vector<std::string>();
}

} // namespace detail

/// The names of the limiters in a directory; an empty path is the default directory.
inline std::vector<std::string> list(std::string_view directory, std::error_code &code)
{
    std::string path(directory);
    const shmlimit_names *raw = nullptr;
    std::int32_t result = shmlimit_list(path.empty() ? nullptr : path.c_str(), &raw);
    return detail::names(result, raw, code);
}

/// The names of the presets. A limiter with the name of a preset needs no configuration.
inline std::vector<std::string> presets(std::error_code &code)
{
    const shmlimit_names *raw = nullptr;
    std::int32_t result = shmlimit_presets(&raw);
    return detail::names(result, raw, code);
}

#ifdef SHMLIMIT_HPP_THROWS
inline void remove(std::string_view name, const options &options = {}, bool force = false)
{
    detail::thrown([&](auto &code) { remove(name, options, force, code); });
}
inline std::vector<std::string> list(std::string_view directory = {})
{
    return detail::thrown([&](auto &code) { return list(directory, code); });
}
inline std::vector<std::string> presets()
{
    return detail::thrown([](auto &code) { return presets(code); });
}
#endif

} // namespace shmlimit

template <> struct std::is_error_code_enum<shmlimit::errc> : std::true_type {};

#endif // SHMLIMIT_HPP
