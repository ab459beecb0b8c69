"""`with limiter:` and `async with limiter:` acquire and release, for any number of threads, tasks and blocks at
once."""

import asyncio
import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio

from shmlimit import Error, Grant, Limiter, Refused

from .conftest import PLENTY, unix_only

RUN = {"asyncio": lambda function, *args: asyncio.run(function(*args)), "trio": trio.run}


def held(limiter):
    return limiter.snapshot().in_flight


def test_a_block_holds_a_permit_and_releases_it(one):
    with one as grant:
        assert isinstance(grant, Grant) and not grant.done and held(one) == 1
        with pytest.raises(Refused):
            one.try_acquire()
    assert grant.done and held(one) == 0 and not one.closed
    with one:
        assert held(one) == 1


def test_a_block_takes_from_the_rate_as_a_background_call_of_cost_one(directory):
    limiter = Limiter("api", rate="3/h", burst=3)
    for _ in range(3):
        with limiter:
            pass
    assert limiter.snapshot().remaining() == 0
    with pytest.raises(Refused) as raised:
        limiter.try_acquire()
    assert raised.value.reason == "rate"


def test_an_exception_releases_without_an_outcome(one):
    with pytest.raises(KeyError):
        with one as grant:
            raise KeyError
    assert grant.done and held(one) == 0
    assert one.snapshot().condition.samples == 0


def test_a_grant_recorded_inside_its_block_is_not_released_twice(one):
    with one as grant:
        grant.record(200)
        assert held(one) == 0
    with one:
        assert held(one) == 1
    assert held(one) == 0


def test_blocks_nest(directory):
    limiter = Limiter("api", concurrency=3)
    with limiter as outer:
        with limiter as middle, limiter as inner:
            assert held(limiter) == 3
        assert inner.done and middle.done and not outer.done and held(limiter) == 1
    assert held(limiter) == 0


def test_an_inner_block_ends_its_own_grant_after_the_outer_call_was_recorded(directory):
    limiter = Limiter("api", concurrency=1)

    def fetch(depth):
        with limiter as grant:
            grant.record(200)
            for _ in range(3 if depth else 0):
                fetch(depth - 1)
                with limiter:
                    pass

    fetch(2)
    assert held(limiter) == 0


def test_an_entered_block_must_not_be_left_twice(one):
    with one:
        pass
    with pytest.raises(RuntimeError, match='"one"|\'one\''):
        one.__exit__(None, None, None)


def test_threads_share_one_limiter_object(directory):
    limiter = Limiter("api", concurrency=3)
    inside, most, lock = [0], [0], threading.Lock()

    def work(_):
        with limiter:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            with lock:
                inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(400)))
    assert 1 <= most[0] <= 3 and held(limiter) == 0 and not limiter.closed


async def tasks_share(limiter, start):
    inside, most = 0, 0

    async def work(sleep):
        nonlocal inside, most
        async with limiter as grant:
            inside += 1
            most = max(most, inside)
            await sleep(0)
            async with contextlib.AsyncExitStack():
                await sleep(0)
            if inside % 2:
                grant.record(200)
            inside -= 1

    await start(work, 40)
    assert 1 <= most <= 3 and held(limiter) == 0


async def asyncio_start(work, count):
    await asyncio.gather(*(work(asyncio.sleep) for _ in range(count)))


async def trio_start(work, count):
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(work, trio.sleep)


@pytest.mark.parametrize("loop", RUN)
def test_tasks_share_one_limiter_object(directory, loop):
    limiter = Limiter("api", concurrency=3)
    RUN[loop](tasks_share, limiter, {"asyncio": asyncio_start, "trio": trio_start}[loop])


async def awaits(limiter):
    async with limiter as grant:
        assert isinstance(grant, Grant) and held(limiter) == 1
    assert grant.done and held(limiter) == 0
    with pytest.raises(KeyError):
        async with limiter as grant:
            raise KeyError
    assert grant.done and held(limiter) == 0


@pytest.mark.parametrize("loop", RUN)
def test_an_async_block_holds_a_permit_and_releases_it(one, loop):
    RUN[loop](awaits, one)


def test_a_cancelled_task_leaves_the_queue_and_keeps_nothing(one):
    async def main():
        async def work():
            async with one:
                raise AssertionError("granted")

        task = asyncio.ensure_future(work())
        while not one.snapshot().queue:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not one.snapshot().queue

    with one:
        asyncio.run(main())
    assert held(one) == 0


def test_each_of_several_interleaved_generators_has_its_own_grant(directory):
    limiter = Limiter("api", concurrency=2)

    def pages():
        with limiter as grant:
            yield grant
            yield grant

    first, second = pages(), pages()
    one, two = next(first), next(second)
    one.record(200)
    first.close()  # the older block ends first, and its call was recorded
    assert held(limiter) == 1 and not two.done
    second.close()
    assert held(limiter) == 0 and two.done


def test_a_block_left_by_another_thread_gives_its_permit_back(directory):
    limiter = Limiter("api", concurrency=4)

    @contextlib.contextmanager
    def dependency():
        with limiter as grant:
            yield grant

    with limiter as mine:
        # Web frameworks do this: threads of a pool enter and leave the block, each in a copy of the context.
        with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as other:
            block = dependency()
            grant = pool.submit(block.__enter__).result()
            assert held(limiter) == 2
            other.submit(block.__exit__, None, None, None).result()
            assert grant.done and not mine.done and held(limiter) == 1
            # Entered by hand, in frames that have ended.
            grant = pool.submit(enter, limiter).result()
            assert held(limiter) == 2
            other.submit(limiter.__exit__, None, None, None).result()
            assert grant.done and not mine.done and held(limiter) == 1
    assert held(limiter) == 0


def test_an_exit_stack_holds_until_it_is_closed(directory):
    limiter = Limiter("api", concurrency=8)
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(limiter)
        assert held(limiter) == 5
    assert held(limiter) == 0


def test_an_exit_stack_does_not_end_the_grant_of_a_block(directory):
    limiter = Limiter("api", concurrency=8)
    with contextlib.ExitStack() as stack:
        stacked = stack.enter_context(limiter)
        with limiter as mine:
            stack.close()
            assert stacked.done and not mine.done and held(limiter) == 1
            mine.record(200)
    with limiter as mine:
        later = contextlib.ExitStack()
        stacked = later.enter_context(limiter)
        mine.record(200)
        later.close()
        assert stacked.done and held(limiter) == 0


def test_each_exit_stack_ends_its_own_grants_the_newest_first(directory):
    limiter = Limiter("api", concurrency=8)
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    grants = {first: [], second: []}
    for stack in (first, second, first, second, second):
        grants[stack].append(stack.enter_context(limiter))
    moved = first.pop_all()
    first.close()
    assert held(limiter) == 5
    second.callback(lambda: order.append([grant.done for grant in grants[second]]))
    order = []
    second.enter_context(limiter)
    second.close()
    assert order == [[False, False, False]]
    assert all(grant.done for grant in grants[second]) and not any(grant.done for grant in grants[first])
    moved.close()
    assert all(grant.done for grant in grants[first]) and held(limiter) == 0


def test_an_async_exit_stack_does_not_end_the_grants_of_suspended_tasks(directory):
    limiter = Limiter("api", concurrency=8)

    async def block(entered, leave, grants):
        async with limiter as grant:
            grants.append(grant)
            entered.set()
            await leave.wait()

    async def main():
        leave, grants = asyncio.Event(), []
        async with contextlib.AsyncExitStack() as stack:
            stacked = [stack.enter_context(limiter), await stack.enter_async_context(limiter)]
            tasks = []
            for _ in range(3):
                entered = asyncio.Event()
                tasks.append(asyncio.ensure_future(block(entered, leave, grants)))
                await entered.wait()
            await stack.aclose()
            assert all(grant.done for grant in stacked)
            assert not any(grant.done for grant in grants) and held(limiter) == 3
            # Entered by hand in a function that has ended.
            by_hand = enter(limiter)
            await limiter.__aexit__(None, None, None)
            assert by_hand.done and held(limiter) == 3
            leave.set()
            await asyncio.gather(*tasks)

    asyncio.run(main())
    assert held(limiter) == 0


def enter(limiter):
    return limiter.__enter__()


class Call:
    """Enters a limiter in one method, and leaves it in another."""

    def __init__(self, limiter):
        self.limiter = limiter

    def __enter__(self):
        self.grant = self.limiter.__enter__()
        return self.grant

    def __exit__(self, *exception):
        return self.limiter.__exit__(*exception)


def test_an_object_that_enters_in_its_own_enter_leaves_its_own_grant(directory):
    limiter = Limiter("api", concurrency=8)
    calls = [Call(limiter) for _ in range(4)]
    grants = [call.__enter__() for call in calls]
    with limiter as mine:
        for i in (1, 3, 0, 2):
            calls[i].__exit__(None, None, None)
            assert grants[i].done and sum(grant.done for grant in grants) == 4 - held(limiter) + 1
        assert not mine.done
    with Call(limiter) as outer, limiter as inner, Call(limiter):
        assert not outer.done and not inner.done and held(limiter) == 3
    assert held(limiter) == 0


class Counting(Limiter):
    """A subclass that adds to the blocks of its limiter."""

    inside = 0

    def __enter__(self):
        grant = super().__enter__()
        Counting.inside += 1
        return grant

    def __exit__(self, *exception):
        Counting.inside -= 1
        return super().__exit__(*exception)

    async def __aenter__(self):
        return await super().__aenter__()

    async def __aexit__(self, *exception):
        return await super().__aexit__(*exception)


def test_the_blocks_of_a_subclass_with_its_own_enter_end_their_own_grants(directory):
    limiter = Counting("api", concurrency=8)

    def pages():
        with limiter as grant:
            yield grant

    first, second = pages(), pages()
    one, two = next(first), next(second)
    assert Counting.inside == 2
    first.close()
    assert one.done and not two.done
    second.close()
    assert two.done

    async def main():
        async def block(entered, leave):
            async with limiter as grant:
                entered.set_result(grant)
                await leave

        loop = asyncio.get_running_loop()
        blocks = [(loop.create_future(), loop.create_future()) for _ in range(2)]
        tasks = [asyncio.ensure_future(block(*futures)) for futures in blocks]
        grants = [await entered for entered, _ in blocks]
        blocks[0][1].set_result(None)
        await tasks[0]
        assert grants[0].done and not grants[1].done
        blocks[1][1].set_result(None)
        await tasks[1]

    asyncio.run(main())
    assert held(limiter) == 0


def test_a_leaky_bucket_delays_the_block_and_an_interrupted_delay_gives_the_grant_back(directory, monkeypatch):
    config = '[[rules]]\nname = "even"\nalgorithm = "leaky_bucket"\nlimit = 1\nperiod = "1h"\nburst = 5\n'
    limiter = Limiter("api", config=config)
    slept = []
    monkeypatch.setattr("shmlimit._limiter.time.sleep", slept.append)
    for _ in range(2):
        with limiter:
            pass
    assert len(slept) == 1 and slept[0] > 3000
    left = limiter.snapshot().remaining()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shmlimit._limiter.time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        with limiter:
            raise AssertionError("entered")
    assert limiter.snapshot().remaining() == left and held(limiter) == 0


def test_a_closed_limiter_cannot_be_entered_and_a_running_block_stays_valid(directory):
    watcher, limiter = Limiter("api", concurrency=2), Limiter("api")
    with limiter:
        limiter.close()
        assert held(watcher) == 1
        for _ in range(2):
            with pytest.raises(Error, match='"api" was closed') as raised:
                with limiter:
                    raise AssertionError("entered")
            assert raised.value.code == "closed"
    assert held(watcher) == 0

    async def enter():
        async with limiter:
            raise AssertionError("entered")

    with pytest.raises(Error, match="closed"):
        asyncio.run(enter())
    with contextlib.closing(Limiter("api")) as other:
        assert not other.closed
    assert other.closed
    other.close()


@unix_only("there is no fork")
def test_a_forked_child_leaves_the_parents_block_alone(directory):
    limiter = Limiter("api", **PLENTY, concurrency=2)
    child = -1
    try:
        with limiter:
            child = os.fork()
            if child != 0:
                assert os.waitpid(child, 0)[1] == 0
        if child == 0:
            # The end of the block in the child gave nothing back: the parent is still inside its own block.
            first = held(limiter)
            with limiter:
                second = held(limiter)
            os._exit(0 if (first, second, held(limiter)) == (1, 2, 1) else 1)
    finally:
        if child == 0:
            os._exit(2)
    assert held(limiter) == 0
