"""The cost of a call from Python, compared with PyrateLimiter in the same run.

The subjects take turns in short batches. A ratio is the median over the rounds of a batch's time divided by the
time of a clock read in the same round. Each subject is the code that a user of that package would write.

    python cost.py [--rounds=N]
"""

import asyncio
import gc
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from importlib.metadata import version

import pyrate_limiter
from pyrate_limiter import Duration, InMemoryBucket, Rate, SQLiteBucket, StateBucket, TokenBucket

import shmlimit

BATCH_SECONDS = 0.01
CONTENTION_SECONDS = 2.0
# A budget so large that no limiter refuses a call.
PLENTY = 10_000_000


def shm(directory, name, rate, **settings):
    return shmlimit.Limiter(name, directory=directory, rate=rate, **settings)


def in_memory(rate):
    return pyrate_limiter.Limiter(InMemoryBucket([rate]))


def in_memory_tokens(rate):
    return pyrate_limiter.Limiter(StateBucket([rate], algorithm=TokenBucket()))


def sqlite(path, rate, shared=False):
    return pyrate_limiter.Limiter(SQLiteBucket.init_from_file([rate], db_path=path, use_file_lock=shared))


def clock(n):
    read = time.monotonic_ns
    for _ in range(n):
        read()


def pairs(limiter):
    def run(n):
        for _ in range(n):
            limiter.acquire().release()

    return run


def blocks(limiter):
    def run(n):
        for _ in range(n):
            with limiter.acquire():
                pass

    return run


def keywords(limiter):
    def run(n):
        for _ in range(n):
            with limiter.acquire(priority="user", timeout=5):
                pass

    return run


def recorded(limiter):
    def run(n):
        for _ in range(n):
            with limiter.acquire() as grant:
                grant.record(200)

    return run


def records(limiter):
    def run(n):
        for _ in range(n):
            limiter.record(200)

    return run


def refused(limiter):
    limiter.acquire().release()

    def run(n):
        for _ in range(n):
            try:
                limiter.try_acquire()
            except shmlimit.Refused:
                continue
            raise AssertionError("granted")

    return run


def awaited(limiter):
    async def work(n):
        for _ in range(n):
            async with limiter.acquire_async():
                pass

    return work


def theirs(limiter):
    def run(n):
        for _ in range(n):
            limiter.try_acquire()

    return run


def theirs_refused(limiter):
    limiter.try_acquire()

    def run(n):
        for _ in range(n):
            if limiter.try_acquire(blocking=False):
                raise AssertionError("granted")

    return run


def theirs_awaited(limiter):
    async def work(n):
        for _ in range(n):
            await limiter.try_acquire_async()

    return work


def timed(loop, subject, n):
    """Nanoseconds of processor time per call. Time that other programs on the machine use is not included."""
    begin = time.thread_time_ns()
    if asyncio.iscoroutinefunction(subject):
        loop.run_until_complete(subject(n))
    else:
        subject(n)
    return (time.thread_time_ns() - begin) / n


def measure(subjects, rounds):
    loop = asyncio.new_event_loop()
    counts = {}
    for name, subject in subjects.items():
        timed(loop, subject, 20)
        counts[name] = max(20, int(BATCH_SECONDS * 1e9 / timed(loop, subject, 50)))
    figures = {name: [] for name in subjects}
    gc.disable()
    for _ in range(rounds):
        for name, subject in subjects.items():
            figures[name].append(timed(loop, subject, counts[name]))
        gc.collect()
    gc.enable()
    loop.close()
    return figures


def alone(directory, rounds):
    fast = f"{PLENTY}/s"
    rate, rare = Rate(PLENTY, Duration.SECOND), Rate(1, Duration.HOUR)
    api = shm(directory, "api", fast, burst=PLENTY, concurrency=100)
    full = shm(directory, "full", "1/h", burst=1)
    subjects = {
        "clock read: time.monotonic_ns()": clock,
        "shmlimit: limiter.acquire().release()": pairs(api),
        "shmlimit: with limiter.acquire(): pass": blocks(api),
        'shmlimit: the same, acquire(priority="user", timeout=5)': keywords(api),
        "shmlimit: with limiter.acquire() as grant: grant.record(200)": recorded(api),
        "shmlimit: limiter.record(200)": records(api),
        "shmlimit: try_acquire() refused, and caught": refused(full),
        "shmlimit: async with limiter.acquire_async(): pass": awaited(api),
        "PyrateLimiter, in memory: try_acquire()": theirs(in_memory(rate)),
        "PyrateLimiter, in memory, TokenBucket(): try_acquire()": theirs(in_memory_tokens(rate)),
        "PyrateLimiter, in memory: try_acquire(blocking=False) refused": theirs_refused(in_memory(rare)),
        "PyrateLimiter, in memory: await try_acquire_async()": theirs_awaited(in_memory(rate)),
        "PyrateLimiter, SQLite: try_acquire()": theirs(sqlite(f"{directory}/a.sqlite", rate)),
        "PyrateLimiter, SQLite: try_acquire(blocking=False) refused": theirs_refused(
            sqlite(f"{directory}/b.sqlite", rare)
        ),
        "PyrateLimiter, SQLite with a file lock: try_acquire()": theirs(sqlite(f"{directory}/c.sqlite", rate, True)),
    }
    figures = measure(subjects, rounds)
    clocks = figures["clock read: time.monotonic_ns()"]
    print("| one process | median ns | × clock |")
    print("| --- | ---: | ---: |")
    for name, times in figures.items():
        ratio = statistics.median(time / clock for time, clock in zip(times, clocks))
        print(f"| {name} | {statistics.median(times):,.0f} | {ratio:,.1f} |")


def contender(kind, directory, begin, end, counted):
    if kind == "shmlimit":
        run = blocks(shmlimit.Limiter("api", directory=directory, create=False))
    else:
        run = theirs(sqlite(f"{directory}/shared.sqlite", Rate(PLENTY, Duration.SECOND), True))
    begin.wait()
    until = time.monotonic() + CONTENTION_SECONDS
    calls = 0
    while time.monotonic() < until:
        run(20)
        calls += 20
    counted.put(calls)
    end.wait()


def together(directory, processes, repeats=3):
    """Thousands of calls per second of all processes together."""
    context = multiprocessing.get_context("spawn")
    rates = {"shmlimit": [], "SQLite": []}
    for _ in range(repeats):
        for kind in rates:
            begin, end = context.Barrier(processes), context.Barrier(processes + 1)
            counted = context.Queue()
            arguments = (kind, directory, begin, end, counted)
            workers = [context.Process(target=contender, args=arguments) for _ in range(processes)]
            for worker in workers:
                worker.start()
            calls = sum(counted.get() for _ in workers)
            end.wait()
            for worker in workers:
                worker.join()
            rates[kind].append(calls / CONTENTION_SECONDS / 1000)
    return {kind: statistics.median(values) for kind, values in rates.items()}


def contention(directory):
    print()
    print("| thousand calls a second, all together | 1 process | 2 processes |")
    print("| --- | ---: | ---: |")
    one, two = together(directory, 1), together(directory, 2)
    names = {
        "shmlimit": "shmlimit: with limiter.acquire(): pass",
        "SQLite": "PyrateLimiter, SQLite with a file lock: try_acquire()",
    }
    for kind, name in names.items():
        print(f"| {name} | {one[kind]:,.1f} | {two[kind]:,.1f} |")


def main():
    rounds = next((int(word[9:]) for word in sys.argv[1:] if word.startswith("--rounds=")), 31)
    load = os.getloadavg()[0]
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=place) as directory:
        alone(directory, rounds)
        contention(directory)
    packages = ", ".join(f"{name} {version(name)}" for name in ("shmlimit", "pyrate-limiter"))
    print(f"\nPython {sys.version.split()[0]}, {packages}; {rounds} rounds; load before {load:.1f}, after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
