"""acquire_async() behaves as a coroutine: tasks, timeouts, warnings; and no permit is ever lost."""

import asyncio
import collections.abc
import gc
import sys
import warnings

import pytest
import trio

from shmlimit import Limiter, PendingAcquire, Refused

from .conftest import state


def test_python_warns_about_a_call_that_is_never_awaited(one):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.acquire_async()
        gc.collect()
    assert [(one.category, str(one.message)) for one in caught] == [
        (RuntimeWarning, "coroutine 'Limiter.acquire_async' was never awaited")
    ]
    assert state(one) == (0, 0, [])


def test_python_does_not_warn_about_a_call_that_is_awaited_or_closed(one):
    async def main():
        (await one.acquire_async()).release()
        one.acquire_async().close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()


def test_the_call_is_a_coroutine_and_can_be_awaited_once(one):
    async def main():
        pending = one.acquire_async()
        assert isinstance(pending, PendingAcquire) and isinstance(pending, collections.abc.Coroutine)
        assert asyncio.iscoroutine(pending) and "acquire_async" in repr(pending)
        (await pending).release()
        with pytest.raises(RuntimeError, match="already awaited"):
            await pending
        with pytest.raises(RuntimeError, match="already awaited"):
            async with pending:
                raise AssertionError("granted")

    asyncio.run(main())
    assert state(one) == (0, 0, [])


def test_create_task_gather_and_wait_for_accept_the_call(directory):
    limiter = Limiter("api", concurrency=4)

    async def main():
        (await asyncio.create_task(limiter.acquire_async())).release()
        (await asyncio.wait_for(limiter.acquire_async(), 60)).release()
        grants = await asyncio.gather(*(limiter.acquire_async(priority="user") for _ in range(4)))
        assert limiter.snapshot().in_flight == 4
        with pytest.raises(Refused):
            await asyncio.create_task(limiter.acquire_async(timeout=0))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limiter.acquire_async(), 0.01)
        for grant in grants:
            grant.release()

    asyncio.run(main())
    assert state(limiter) == (0, 0, [])
    asyncio.run(limiter.acquire_async()).release()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup is of Python 3.11")
def test_a_task_group_accepts_the_call(one):
    async def main():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one.acquire_async())
        task.result().release()
        with pytest.raises(ExceptionGroup):  # noqa: F821
            async with asyncio.TaskGroup() as group:
                first = group.create_task(one.acquire_async())
                group.create_task(one.acquire_async())
                while not one.snapshot().queue:
                    await asyncio.sleep(0)
                group.create_task(one.acquire_async(timeout=0))
        first.result().release()

    asyncio.run(main())
    assert state(one) == (0, 0, [])


def test_a_trio_nursery_accepts_the_call(one):
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.acquire_async)
            while not one.snapshot().counts.granted:
                await trio.lowlevel.checkpoint()
        with trio.move_on_after(60) as scope:
            (await one.acquire_async()).release()
        assert not scope.cancelled_caught

    trio.run(main)
    gc.collect()
    assert state(one) == (0, 0, [])


@pytest.mark.parametrize("how", ["task", "wait_for", "async with"])
def test_no_permit_is_lost_when_a_task_is_cancelled_about_the_moment_of_the_grant(one, how):
    async def entered():
        async with one.acquire_async():
            await asyncio.sleep(0)

    begin = {
        "task": one.acquire_async,
        "wait_for": lambda: asyncio.wait_for(one.acquire_async(), 60),
        "async with": entered,
    }[how]

    async def cancelled_after(turns):
        held = one.acquire()
        task = asyncio.ensure_future(begin())
        while not one.snapshot().queue:
            await asyncio.sleep(0)
        held.release()
        # The task sees the permit when its sleep is over, never later than this.
        end = asyncio.get_running_loop().time() + 0.004
        while asyncio.get_running_loop().time() < end and not one.snapshot().in_flight:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        was_granted = one.snapshot().in_flight == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return was_granted

    granted = []
    for turns in [0, 0, 0, 1, 2, 3] * 4:
        granted.append(asyncio.run(cancelled_after(turns)))
        gc.collect()
        assert state(one) == (0, 0, []), turns
    assert any(granted), "no task was ever granted before it was cancelled"


def test_a_cancelled_step_gives_back_a_grant_that_arrived_meanwhile(one):
    """An event loop that throws into the coroutine just when the permit is free."""
    held = one.acquire()
    pending = one.acquire_async()

    async def main():
        pending.send(None)
        assert len(one.snapshot().queue) == 1
        held.release()
        with pytest.raises(asyncio.CancelledError):
            pending.throw(asyncio.CancelledError())

    asyncio.run(main())
    assert state(one) == (0, 0, [])
