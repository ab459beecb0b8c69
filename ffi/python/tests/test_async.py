"""asyncio and trio: awaiting, cancelling and errors. A cancelled or refused call leaves the queue and the permits
unchanged."""

import asyncio
import gc

import pytest
import trio

from shmlimit import Error, Grant, Limiter, Refused

from .conftest import PLENTY, state


async def queued(limiter, count, sleep):
    for _ in range(20000):
        if len(limiter.snapshot().queue) == count:
            return
        await sleep(0.001)
    raise AssertionError(f"never {count} in the queue")


async def awaits(limiter):
    async with limiter.acquire_async(priority="user", cost=1, timeout=5) as grant:
        assert isinstance(grant, Grant) and limiter.snapshot().in_flight == 1
        grant.record(200)
    assert limiter.snapshot().in_flight == 0
    grant = await limiter.acquire_async()
    assert limiter.snapshot().in_flight == 1
    with grant:
        pass
    assert grant.done
    with pytest.raises(KeyError):
        async with limiter.acquire_async() as kept:
            raise KeyError
    # The grant is known to be done: the block gave the permit back.
    assert kept.done and limiter.snapshot().in_flight == 0


RUN = {"asyncio": lambda function, *args: asyncio.run(function(*args)), "trio": trio.run}


@pytest.mark.parametrize("loop", RUN)
def test_a_grant_is_awaited(one, loop):
    RUN[loop](awaits, one)


async def refused(limiter):
    for keywords in [{"timeout": 0}, {"timeout": 0.5}, {"deadline": 0}]:
        with pytest.raises(Refused):
            async with limiter.acquire_async(**keywords):
                raise AssertionError("granted")
    for kind, word, keywords in [
        (TypeError, "cost", {"cost": "1"}),
        (ValueError, "priority", {"priority": "nobody"}),
        (ValueError, "timeout", {"timeout": -1}),
        (ValueError, "tokens", {"cost": {"tokens": 1}}),
    ]:
        with pytest.raises(kind, match=word):
            await limiter.acquire_async(**keywords)


@pytest.mark.parametrize("loop", RUN)
def test_a_call_that_cannot_be_granted_is_refused_and_changes_nothing(scarce, loop):
    before = state(scarce)
    RUN[loop](refused, scarce)
    assert state(scarce) == before
    with pytest.raises(TypeError, match="foo"):
        scarce.acquire_async(foo=1)


def test_asyncio_tasks_take_turns_and_never_exceed_the_limit(directory):
    limiter = Limiter("api", concurrency=3)
    inside = most = 0

    async def call():
        nonlocal inside, most
        async with limiter.acquire_async(timeout=60):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def main():
        await asyncio.gather(*(call() for _ in range(60)))

    asyncio.run(main())
    assert most == 3 and state(limiter) == (0, 0, [])
    assert limiter.snapshot().participants[0].granted == 60


def test_trio_tasks_take_turns_and_never_exceed_the_limit(directory):
    limiter = Limiter("api", concurrency=3)
    inside = most = 0

    async def call():
        nonlocal inside, most
        async with limiter.acquire_async(timeout=60):
            inside += 1
            most = max(most, inside)
            await trio.lowlevel.checkpoint()
            inside -= 1

    async def main():
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(call)

    trio.run(main)
    assert most == 3 and state(limiter) == (0, 0, [])


def test_a_cancelled_asyncio_task_leaves_the_queue_at_once(one):
    async def main():
        held = await one.acquire_async()

        async def wait():
            async with one.acquire_async():
                raise AssertionError("granted")

        tasks = [asyncio.ensure_future(wait()) for _ in range(3)]
        await queued(one, 3, asyncio.sleep)
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        assert len(one.snapshot().queue) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert state(one) == (1, 0, [])
        held.release()

    asyncio.run(main())


def test_a_cancelled_trio_task_leaves_the_queue_at_once(one):
    async def main():
        held = await one.acquire_async()

        async def wait():
            async with one.acquire_async():
                raise AssertionError("granted")

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
            await queued(one, 3, trio.sleep)
            nursery.cancel_scope.cancel()
        assert state(one) == (1, 0, [])
        with trio.CancelScope() as scope:
            scope.cancel()
            await one.acquire_async()
        assert scope.cancelled_caught
        held.release()

    trio.run(main)


def test_a_timeout_of_the_loop_leaves_the_queue(one):
    async def main():
        held = await one.acquire_async()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(one.acquire_async(), 0.05)
        assert state(one) == (1, 0, [])
        held.release()
        (await asyncio.wait_for(one.acquire_async(), 60)).release()

    asyncio.run(main())


def test_a_dropped_task_leaves_the_queue(one):
    held = one.acquire()
    waiting = one.acquire_async().__await__()
    loop = asyncio.new_event_loop()

    async def main():
        waiting.send(None)
        assert len(one.snapshot().queue) == 1

    loop.run_until_complete(main())
    waiting.close()
    loop.close()
    gc.collect()
    assert state(one) == (1, 0, [])
    held.release()


def test_other_tasks_go_on_while_one_waits(one):
    async def main():
        held = await one.acquire_async()
        waiting = asyncio.ensure_future(one.acquire_async(timeout=60).__aenter__())
        await queued(one, 1, asyncio.sleep)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        held.release()
        (await waiting).release()

    asyncio.run(main())


def test_a_permit_that_a_thread_gives_back_is_noticed(one):
    async def main():
        held = one.acquire()
        waiting = asyncio.ensure_future(one.acquire_async(timeout=60).__aenter__())
        await queued(one, 1, asyncio.sleep)
        await asyncio.get_running_loop().run_in_executor(None, held.release)
        (await waiting).release()

    asyncio.run(main())


def test_waiting_calls_of_a_closed_limiter_fail_with_closed(directory):
    limiter, watcher = Limiter("one", concurrency=1), Limiter("one", concurrency=1)

    async def main():
        held = await limiter.acquire_async()
        waiting = asyncio.ensure_future(limiter.acquire_async(timeout=60).__aenter__())
        await queued(watcher, 1, asyncio.sleep)
        limiter.close()
        with pytest.raises(Error) as raised:
            await waiting
        assert raised.value.code == "closed"
        held.release()
        assert state(watcher) == (0, 0, [])

    asyncio.run(main())


def test_asyncio_and_trio_work_in_one_program(directory):
    limiter = Limiter("api", **PLENTY)
    trio.run(awaits_plainly, limiter)
    asyncio.run(awaits_plainly(limiter))
    trio.run(awaits_plainly, limiter)
    assert limiter.snapshot().in_flight == 0


async def awaits_plainly(limiter):
    async with limiter.acquire_async():
        pass
