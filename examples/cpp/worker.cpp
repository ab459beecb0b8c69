// A worker that shares its budget with every program on the machine, in C++17.
//
//     c++ -std=c++17 worker.cpp $(pkg-config --cflags --libs shmlimit) -o worker
//     ./worker tmdb --url http://127.0.0.1:8080/movie/603 --seconds 15
//
// Limiters and grants end with their scope, failures are exceptions, a refusal is a value. Without --url each permit is held
// for a while (--hold milliseconds).
#include "../c/portable.h" // sockets

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <shmlimit.hpp>
#include <stdexcept>
#include <string>
#include <thread>

using Clock = std::chrono::steady_clock;

static std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores it");
static Clock::time_point ends_at = Clock::time_point::max();

extern "C" void on_signal(int) { interrupted = true; }
static bool stop() { return interrupted || Clock::now() >= ends_at; }

static void pause_for(shmlimit::nanoseconds time)
{
    auto until = Clock::now() + std::min<shmlimit::nanoseconds>(time, std::chrono::hours(1));
    while (!stop() && Clock::now() < until)
        std::this_thread::sleep_until(std::min({until, ends_at, Clock::now() + std::chrono::milliseconds(100)}));
}

// A connection that closes itself.
struct Connection {
    socket_handle handle = NO_SOCKET;
    ~Connection()
    {
        if (handle != NO_SOCKET)
            close_socket(handle);
    }
};

// The head of the response to a GET; empty, and why, if there is none.
static std::string get(const std::string &host, const std::string &port, const std::string &path, shmlimit::net_error &error)
{
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    error = shmlimit::net_error::dns;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
        return {};
    error = shmlimit::net_error::connection;
    Connection connection{socket(found->ai_family, found->ai_socktype, 0)};
    set_patience(connection.handle, 10);
    bool connected = connect(connection.handle, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", head;
    if (!connected || send(connection.handle, request.data(), request.size(), MSG_NOSIGNAL) != long(request.size()))
        return {};
    char part[4096];
    for (size_t end; (end = head.find("\r\n\r\n")) == std::string::npos;) {
        long length = long(recv(connection.handle, part, sizeof part, 0));
        if (length < 0 && was_interrupted())
            continue;
        if (length < 0 && has_timed_out())
            error = shmlimit::net_error::read_timeout;
        if (length <= 0)
            return {};
        head.append(part, size_t(length));
    }
    return head.substr(0, head.find("\r\n\r\n") + 4);
}

// A time that is given as a number of these.
template <class Unit> static shmlimit::nanoseconds time_of(const std::string &number)
{
    using precise = std::chrono::duration<double, typename Unit::period>;
    return std::chrono::duration_cast<shmlimit::nanoseconds>(precise(std::stod(number)));
}

int main(int argc, char **argv)
try {
    argv = utf8_arguments(argv);
    if (argc < 2 || argc % 2 != 0)
        return std::cerr << "usage: worker NAME [--OPTION VALUE]...; options as in worker.c\n", 2;
    std::map<std::string, std::string> given{{"--priority", "background"}, {"--timeout", "5"}, {"--hold", "10"}};
    for (int i = 2; i + 1 < argc; i += 2)
        given[argv[i]] = argv[i + 1];
    uint64_t count = given.count("--count") ? std::stoull(given["--count"]) : UINT64_MAX;
    if (given.count("--seconds"))
        ends_at = Clock::now() + time_of<std::chrono::seconds>(given["--seconds"]);
    std::string host, port = "80", path = "/", url = given["--url"];
    if (url.rfind("http://", 0) == 0) {
        size_t slash = std::min(url.find('/', 7), url.size()), colon = std::min(url.find(':', 7), slash);
        host = url.substr(7, colon - 7);
        port = colon < slash ? url.substr(colon + 1, slash - colon - 1) : port;
        path = slash < url.size() ? url.substr(slash) : path;
    }
    std::signal(SIGINT, on_signal);
    if (start_sockets() != 0)
        throw std::runtime_error("no sockets");

    shmlimit::options options;
    if (given.count("--dir"))
        options.directory(given["--dir"]);
    shmlimit::limiter limiter(argv[1], options);
    shmlimit::request request;
    request.stop(stop).timeout(time_of<std::chrono::seconds>(given["--timeout"]));
    request.priority(given["--priority"] == "webhook" ? shmlimit::priority::webhook
                     : given["--priority"] == "user"  ? shmlimit::priority::user
                                                      : shmlimit::priority::background);
    std::map<shmlimit::outcome_class, uint64_t> ended;
    uint64_t granted = 0, refused = 0;
    for (uint32_t attempt = 1; granted < count && !stop();) {
        shmlimit::answer call = limiter.acquire(request);
        if (!call) { // not within the timeout: ask again when it may be possible
            refused += !call.refused().stopped();
            pause_for(std::min<shmlimit::nanoseconds>(call.refused().retry_after.value_or(std::chrono::seconds(1)),
                                                      std::chrono::seconds(1)));
            continue;
        }
        granted++;
        pause_for(call->delay()); // only a leaky bucket asks for that
        if (host.empty()) {
            pause_for(time_of<std::chrono::milliseconds>(given["--hold"]));
            ended[shmlimit::outcome_class::ok]++;
            continue; // the grant goes, and gives its permit back
        }
        shmlimit::net_error error{};
        auto began = Clock::now();
        std::string head = get(host, port, path, error);
        auto outcome = head.empty() ? shmlimit::outcome(error) : shmlimit::outcome::from_head(head);
        shmlimit::advice advice = call->record(outcome.latency(Clock::now() - began).attempt(attempt));
        ended[advice.outcome_class]++;
        attempt = advice.retry ? attempt + 1 : 1;
        if (advice.retry)
            pause_for(advice.wait);
    }
    uint64_t ok = ended[shmlimit::outcome_class::ok];
    uint64_t throttled = ended[shmlimit::outcome_class::throttled];
    std::cout << "{\"granted\": " << granted << ", \"ok\": " << ok << ", \"throttled\": " << throttled
              << ", \"errors\": " << granted - ok - throttled << ", \"refused\": " << refused << "}\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << "worker: " << error.what() << '\n';
    return 1;
}
