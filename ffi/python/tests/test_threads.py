"""Many threads on one handle: counts are exact, and other threads run while one of them waits."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from shmlimit import Limiter, Refused

from .conftest import eventually


def test_threads_get_exactly_the_budget(directory):
    limiter = Limiter("api", rate="100/h", burst=100)

    def calls():
        count = 0
        while True:
            try:
                limiter.try_acquire().release()
            except Refused:
                return count
            count += 1

    with ThreadPoolExecutor(8) as pool:
        counts = [pool.submit(calls) for _ in range(8)]
    assert sum(count.result() for count in counts) == 100


def test_threads_inside_never_exceed_the_limit(directory):
    limiter = Limiter("api", concurrency=3)
    inside, most, lock = 0, 0, threading.Lock()

    def call(_):
        nonlocal inside, most
        with limiter.acquire(timeout=60):
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(call, range(600)))
    assert 1 <= most <= 3 and inside == 0
    now = limiter.snapshot()
    assert (now.in_flight, now.queue, now.participants[0].granted) == (0, (), 600)


def test_other_threads_go_on_while_one_waits(one):
    held = one.acquire()
    done = threading.Event()

    def wait():
        one.acquire(timeout=60).release()
        done.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    eventually(lambda: len(one.snapshot().queue) == 1)
    # This thread runs only if the waiting thread has released the interpreter's lock.
    count = sum(1 for _ in range(1_000_000))
    assert count == 1_000_000 and not done.is_set()
    held.release()
    waiter.join(60)
    assert done.is_set() and one.snapshot().in_flight == 0


def test_a_permit_wakes_the_thread_that_waits_for_it(one):
    held = [one.acquire()]
    got = threading.Event()

    def wait():
        held.append(one.acquire(timeout=60))
        got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    eventually(lambda: len(one.snapshot().queue) == 1)
    held[0].release()
    assert got.wait(60)
    held[1].release()
    waiter.join(60)


def test_a_grant_may_end_in_another_thread_and_only_once(one):
    grant = one.acquire()
    ends, start = [], threading.Barrier(8)

    def end():
        start.wait()
        try:
            grant.release()
            ends.append("released")
        except Exception as error:
            ends.append(getattr(error, "code", repr(error)))

    threads = [threading.Thread(target=end) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["grant_done"] * 7 + ["released"]
    assert one.snapshot().in_flight == 0


def test_closing_during_use_raises_closed_in_other_threads_and_nothing_worse(directory):
    limiter, watcher = Limiter("api", concurrency=4), Limiter("api", concurrency=4)
    codes, started = [], threading.Barrier(5)

    def use():
        started.wait()
        try:
            while True:
                with limiter.acquire(timeout=60):
                    pass
        except Exception as error:
            codes.append(getattr(error, "code", repr(error)))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    eventually(lambda: watcher.snapshot().participants[0].granted > 100 or any(
        one.granted > 100 for one in watcher.snapshot().participants))
    limiter.close()
    for thread in threads:
        thread.join(60)
    assert codes == ["closed"] * 4
    assert watcher.snapshot().in_flight == 0


def test_errors_in_many_threads_at_once_do_not_block(directory):
    limiter = Limiter("api", concurrency=4)
    grant = limiter.acquire()
    grant.release()
    limiter.close()
    codes = []

    def fail():
        for call in [limiter.acquire, limiter.try_acquire, grant.release, lambda: grant.record(200)] * 200:
            try:
                call()
            except Exception as error:
                codes.append(error.code)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=fail, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert codes.count("closed") == codes.count("grant_done") == 1600


def test_counts_are_exact_when_threads_switch_all_the_time(directory):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        limiter = Limiter("api", rate="500/h", burst=500, concurrency=2)
        granted = []

        def call(_):
            try:
                with limiter.acquire(timeout=0.5):
                    granted.append(1)
            except Refused:
                pass

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(call, range(700)))
        assert len(granted) == 500
    finally:
        sys.setswitchinterval(before)
