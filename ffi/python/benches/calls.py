"""The cost of a call from Python in nanoseconds: the median of several runs, and the fastest run.

    python ffi/python/benches/calls.py [--runs N] [--number N] [--json]

Each line is the whole statement as Python runs it, including the loop of timeit, whose cost is the line "nothing".
The time is the processor time of this thread: no statement waits, and other programs on the machine disturb it
less. Compare figures only with figures of the same run.
"""

import argparse
import json
import statistics
import tempfile
import time
import timeit

import shmlimit

STATEMENTS = {
    "nothing": "pass",
    "acquire + release": "limiter.acquire().release()",
    "acquire + release, all keywords": "limiter.acquire(priority='user', cost=1, timeout=5).release()",
    "acquire, grant forgotten": "limiter.acquire()",
    "with acquire": "with limiter.acquire(): pass",
    "try_acquire + release": "limiter.try_acquire().release()",
    "acquire + record(200)": "limiter.acquire().record(200)",
    "acquire + record(status, latency, 8 headers)": "limiter.acquire().record(status=200, latency=0.1, headers=headers)",
    "acquire + release, two rules": "two.acquire().release()",
    "try_acquire, refused": "try: scarce.try_acquire()\nexcept Refused: pass",
    "record(200) without a grant": "limiter.record(200)",
    "decorated function": "decorated()",
    "snapshot": "limiter.snapshot()",
}
SLOW = {"snapshot": 50}
TWO = "".join(
    f'[[rules]]\nalgorithm = "token_bucket"\nlimit = 1000000000\nperiod = "1s"\nname = "{name}"\n' for name in "ab"
)


def things(directory):
    """Creates the objects that the statements use."""
    limiter = shmlimit.Limiter("plenty", directory=directory, rate="1000000000/s", burst=1_000_000_000)
    scarce = shmlimit.Limiter("scarce", directory=directory, rate="1/h", burst=1)
    scarce.acquire().release()
    return {
        "limiter": limiter,
        "scarce": scarce,
        "two": shmlimit.Limiter("two", directory=directory, config=TWO),
        "Refused": shmlimit.Refused,
        "headers": {f"X-Header-{i}": "value" for i in range(8)},
        "decorated": limiter.limit(lambda: None),
    }


def measure(runs, number):
    """Runs all statements in turn, run after run, so that a busy moment of the machine affects all of them alike."""
    with tempfile.TemporaryDirectory() as directory:
        names = things(directory)
        seen = {what: [] for what in STATEMENTS}
        for _ in range(runs):
            for what, statement in STATEMENTS.items():
                count = max(1, number // SLOW.get(what, 1))
                took = timeit.timeit(statement, timer=time.thread_time, globals=names, number=count)
                seen[what].append(took / count * 1e9)
        return {what: {"median_ns": statistics.median(times), "best_ns": min(times)} for what, times in seen.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--number", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = measure(args.runs, args.number)
    if args.json:
        print(json.dumps(figures))
        return
    for what, times in figures.items():
        print(f"{what:46} {times['median_ns']:8.0f} ns   best {times['best_ns']:8.0f} ns")


if __name__ == "__main__":
    main()
