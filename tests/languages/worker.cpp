// Calls a server as fast as a limiter allows, from two threads, until a file appears.
//
//   worker NAME PORT PATH STOP

#include "http.h"
#include "shmlimit.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(const char *what, std::int32_t code)
{
    if (code != SHMLIMIT_OK)
        throw std::runtime_error(std::string(what) + ": " + shmlimit_code_name(code) + ": " + shmlimit_last_error());
}

void call(shmlimit_limiter *limiter, int port, const char *path)
{
    shmlimit_grant grant;
    check("acquire", shmlimit_acquire(limiter, nullptr, &grant, nullptr));
    std::array<char, 4096> answer;
    const auto length = http_get(port, path, answer.data(), answer.size());
    shmlimit_outcome outcome{};
    outcome.size = sizeof outcome;
    outcome.head = answer.data();
    outcome.head_length = length;
    if (length == 0)
        outcome.error = SHMLIMIT_ERROR_CONNECTION;
    check("record", shmlimit_record(grant, &outcome, nullptr));
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5) {
        std::cerr << "usage: worker NAME PORT PATH STOP\n";
        return 2;
    }
    std::atomic<bool> failed{false};
    try {
        shmlimit_options options{};
        options.size = sizeof options;
        options.flags = SHMLIMIT_OPEN_EXISTING;
        shmlimit_limiter *opened;
        check("open", shmlimit_open(argv[1], &options, &opened));
        const std::unique_ptr<shmlimit_limiter, decltype(&shmlimit_close)> limiter(opened, shmlimit_close);
        std::vector<std::thread> threads;
        for (int i = 0; i < 2; ++i) {
            threads.emplace_back([&] {
                try {
                    while (!failed && access(argv[4], F_OK) != 0)
                        call(limiter.get(), std::atoi(argv[2]), argv[3]);
                } catch (const std::exception &error) {
                    std::cerr << "worker.cpp: " << error.what() << '\n';
                    failed = true;
                }
            });
        }
        for (auto &thread : threads)
            thread.join();
    } catch (const std::exception &error) {
        std::cerr << "worker.cpp: " << error.what() << '\n';
        failed = true;
    }
    return failed ? 1 : 0;
}
