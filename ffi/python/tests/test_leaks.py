"""Ten thousand failures of every kind leave no descriptor, permit, queue entry or memory behind."""

import asyncio
import gc
import os
import tracemalloc
import weakref

import pytest

from shmlimit import Error, Limiter, Refused

from .conftest import PLENTY, state

TIMES = 10_000


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def attempt(call):
    try:
        call()
    except (Error, TypeError, ValueError, KeyError):
        return
    raise AssertionError("it worked")


def fails_inside(limiter):
    with limiter.acquire():
        raise KeyError


def records_badly(limiter):
    with limiter.acquire() as grant:
        grant.record(200, headers=[("a", 3)])


def records_twice(limiter):
    with limiter.acquire() as grant:
        grant.record(200, headers={"a": "b"}, latency=1.5)
        grant.record(200)


def records_an_unknown_unit(limiter):
    limiter.acquire().record(200, cost={"tokens": 1})


PATHS = {
    "bad keyword": lambda plenty, scarce: plenty.acquire(foo=1),
    "bad cost": lambda plenty, scarce: plenty.acquire(cost={"requests": -1}),
    "unknown unit": lambda plenty, scarce: plenty.acquire(cost={"tokens": 1}),
    "bad priority": lambda plenty, scarce: plenty.acquire(priority="nobody"),
    "refused": lambda plenty, scarce: scarce.try_acquire(),
    "refused after entering": lambda plenty, scarce: scarce.acquire(timeout=0),
    "exception inside": lambda plenty, scarce: fails_inside(plenty),
    "bad record": lambda plenty, scarce: records_badly(plenty),
    "second record": lambda plenty, scarce: records_twice(plenty),
    "record of an unknown unit": lambda plenty, scarce: records_an_unknown_unit(plenty),
    "bad setting": lambda plenty, scarce: plenty.set("x", 1),
    "bad state": lambda plenty, scarce: plenty.force("sleep"),
}


@pytest.mark.parametrize("path", PATHS)
def test_failing_calls_leave_nothing_behind(directory, scarce, path):
    plenty = Limiter("plenty", **PLENTY)
    call = PATHS[path]
    for _ in range(TIMES // 10):
        attempt(lambda: call(plenty, scarce))
    gc.collect()
    tracemalloc.start()
    before = descriptors(), resident(), tracemalloc.get_traced_memory()[0]
    for _ in range(TIMES):
        attempt(lambda: call(plenty, scarce))
    gc.collect()
    after = descriptors(), resident(), tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after[0] == before[0]
    assert after[1] - before[1] < 2 << 20, "bytes of the process"
    assert after[2] - before[2] < 100_000, "bytes of Python"
    assert state(plenty)[:2] == state(scarce)[:2] == (0, 0)


def test_limiters_that_cannot_be_opened_leave_nothing_behind(directory):
    Limiter("api", rate="1/s")
    bad = [
        lambda: Limiter("api", rate="2/s"),
        lambda: Limiter("missing"),
        lambda: Limiter("../x"),
        lambda: Limiter("x", rate="fast"),
    ]
    for call in bad:
        attempt(call)
    gc.collect()
    before = descriptors(), resident()
    for _ in range(500):
        for call in bad:
            attempt(call)
    gc.collect()
    assert descriptors() == before[0]
    assert resident() - before[1] < 4 << 20


def test_limiters_that_are_opened_and_dropped_leave_nothing_behind(directory):
    keep = Limiter("api", **PLENTY)
    before = descriptors()
    for i in range(1000):
        limiter = Limiter("api")
        limiter.acquire().release()
        if i % 2:
            limiter.close()
    del limiter
    gc.collect()
    assert descriptors() == before
    assert len(keep.snapshot().participants) == 1


def test_cancelled_tasks_leave_nothing_behind(one):
    async def main():
        held = await one.acquire_async()
        for _ in range(100):
            tasks = [asyncio.ensure_future(one.acquire_async().__aenter__()) for _ in range(20)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        held.release()

    before = descriptors()
    asyncio.run(main())
    gc.collect()
    assert state(one) == (0, 0, []) and descriptors() == before


def test_refused_waits_leave_the_queue(one):
    with one.acquire():
        for _ in range(200):
            with pytest.raises(Refused):
                one.acquire(timeout=0.001)
        assert state(one) == (1, 0, [])


class Keeper(Limiter):
    """A subclass that keeps what it has been given, in a cycle of references."""


def keeps_its_grant(limiter):
    limiter.kept = limiter.acquire()


def keeps_its_block(limiter):
    limiter.__enter__()


def keeps_its_waiting_call(limiter):
    limiter.held = limiter.acquire()
    limiter.kept = limiter.acquire_async()
    waiting = limiter._begin()
    waiting.step()
    limiter.waiting = waiting


def keeps_a_callback(limiter):
    limiter._callbacks._on_refused.__self__.append(limiter)


@pytest.mark.parametrize("keep", [keeps_its_grant, keeps_its_block, keeps_its_waiting_call, keeps_a_callback])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_the_collector_frees_a_limiter_in_a_cycle_with_its_permit_and_its_place_in_the_queue(directory, keep):
    watcher = Limiter("one", concurrency=1)
    limiter = Keeper("one", on_refused=[].append)
    gone = weakref.ref(limiter)
    keep(limiter)
    del limiter
    gc.collect()
    assert gone() is None and state(watcher)[:2] == (0, 0)


def test_an_object_in_use_is_not_collected(directory):
    limiter = Keeper("one", concurrency=1)
    limiter.kept = limiter.acquire()
    grant = limiter.kept
    del limiter
    gc.collect()
    assert not grant.done and grant.limiter.kept is grant and state(grant.limiter)[0] == 1
    grant.release()
