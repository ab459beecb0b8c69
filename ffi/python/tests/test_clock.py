"""A test clock: waiting calls move it by the exact time and take no real time."""

import asyncio
import pickle
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

import shmlimit
from shmlimit.testing import TestClock

from .conftest import eventually


@pytest.fixture
def clock():
    began = time.monotonic()
    yield TestClock()
    assert time.monotonic() - began < 30, "real time passed"


@pytest.fixture
def api(directory, clock):
    """Ten calls a minute, on the test's clock."""
    return shmlimit.Limiter("api", directory=directory, rate="10/min", test_clock=clock)


def use_up(limiter, calls=10):
    for _ in range(calls):
        limiter.acquire().release()


def test_the_eleventh_call_of_ten_a_minute_waits_exactly_a_minute(api, clock):
    use_up(api)
    with pytest.raises(shmlimit.Refused) as refused:
        api.try_acquire()
    assert refused.value.retry_after == 60
    assert clock.elapsed() == 0
    api.acquire().release()
    assert clock.elapsed() == 60


def test_time_passes_only_when_something_moves_the_clock(api, clock):
    use_up(api)
    clock.advance(timedelta(seconds=59))
    assert api.snapshot().rules[0].remaining == 0
    clock.advance(1)
    assert api.snapshot().rules[0].remaining == 10
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError):
            clock.advance(wrong)
    with pytest.raises(TypeError):
        clock.advance("1")
    assert clock.elapsed() == 60


def test_awaiting_moves_the_clock(api, clock):
    async def calls():
        use_up(api)
        async with api.acquire_async():
            pass
        await asyncio.gather(*(api.acquire_async() for _ in range(10)))

    asyncio.run(calls())
    assert clock.elapsed() == 120


def test_a_task_that_waits_for_a_permit_gets_the_one_that_another_task_gives_back(directory, clock):
    one = shmlimit.Limiter("one", directory=directory, concurrency=1, test_clock=clock)

    async def calls():
        grant = await one.acquire_async()
        waits = asyncio.ensure_future(_awaited(one.acquire_async()))
        await asyncio.sleep(0.01)
        assert not waits.done()
        grant.release()
        (await waits).release()

    asyncio.run(calls())
    assert clock.elapsed() == 0


async def _awaited(acquiring):
    return await acquiring


def test_a_retry_after_lasts_exactly_its_number_of_seconds(api, clock):
    api.acquire().record(429, headers={"Retry-After": "30"})
    clock.advance(29.999)
    with pytest.raises(shmlimit.Blocked):
        api.try_acquire()
    clock.advance(0.001)
    api.try_acquire().release()
    api.acquire().record(429, headers={"Retry-After": "Tue, 01 Jan 2030 00:01:00 GMT"})
    api.acquire().release()
    assert clock.elapsed() == 60


def test_deadlines_are_points_on_the_clock(api, clock):
    use_up(api)
    with pytest.raises(shmlimit.Refused):
        api.acquire(deadline=clock.now() + timedelta(seconds=59))
    assert clock.elapsed() == 0
    api.acquire(deadline=clock.now() + timedelta(seconds=60)).release()
    assert clock.elapsed() == 60


def test_a_permit_that_does_not_come_back_moves_the_clock_to_the_deadline(directory, clock):
    one = shmlimit.Limiter("one", directory=directory, concurrency=1, test_clock=clock)
    with one.acquire():
        with pytest.raises(shmlimit.Refused) as refused:
            one.acquire(timeout=3600)
    assert (refused.value.reason, clock.elapsed()) == ("concurrency", 3600)


def test_a_thread_that_waits_for_a_permit_is_served(directory, clock):
    one = shmlimit.Limiter("one", directory=directory, concurrency=1, test_clock=clock)
    grant = one.acquire()
    waits = threading.Thread(target=lambda: one.acquire().release())
    waits.start()
    eventually(lambda: one.snapshot().queue)
    grant.release()
    waits.join()
    assert clock.elapsed() == 0


def test_a_calendar_day_ends_at_midnight(directory):
    clock = TestClock(datetime(2031, 3, 30, 23, 59, 50, tzinfo=timezone.utc))
    daily = "[[rules]]\nalgorithm = 'fixed_window'\nlimit = 1\nperiod = '1d'"
    limiter = shmlimit.Limiter("daily", directory=directory, config=daily, test_clock=clock)
    use_up(limiter, 2)
    assert clock.elapsed() == 10
    assert clock.now() == datetime(2031, 3, 31, tzinfo=timezone.utc)


def test_the_delay_of_a_leaky_bucket_moves_the_clock(directory, clock):
    leaky = "[[rules]]\nalgorithm = 'leaky_bucket'\nlimit = 60\nperiod = '1m'\nburst = 5"
    limiter = shmlimit.Limiter("leaky", directory=directory, config=leaky, test_clock=clock)

    @limiter.limit
    def decorated():
        pass

    @limiter.limit
    async def awaited():
        pass

    async def block():
        async with limiter:
            pass

    with limiter:
        pass
    with limiter:
        pass
    assert clock.elapsed() == 1
    decorated()
    assert clock.elapsed() == 2
    asyncio.run(awaited())
    assert clock.elapsed() == 3
    asyncio.run(block())
    assert clock.elapsed() == 4


def test_a_directory_must_be_named(directory, clock):
    with pytest.raises(shmlimit.Error) as error:
        shmlimit.Limiter("api", rate="10/min", test_clock=clock)
    assert error.value.code == "bad_value" and "temporary" in str(error.value)


def test_limiters_of_other_clocks_are_left_alone(api, directory, clock):
    for other in ({}, {"test_clock": TestClock()}):
        with pytest.raises(shmlimit.Error) as error:
            shmlimit.Limiter("api", directory=directory, **other)
        assert error.value.code == "foreign"
    with pytest.raises(TypeError, match="test clock"):
        pickle.dumps(api)
    with pytest.raises(TypeError, match="TestClock"):
        shmlimit.Limiter("api", directory=directory, test_clock=time.monotonic)


def test_a_clock_starts_at_the_given_time():
    assert TestClock().now() == datetime(2030, 1, 1, tzinfo=timezone.utc)
    assert TestClock(1_700_000_000.5).now().timestamp() == 1_700_000_000.5
    assert repr(TestClock()) == "<shmlimit.testing.TestClock at 2030-01-01T00:00:00+00:00>"
    with pytest.raises(ValueError, match="time zone"):
        TestClock(datetime(2030, 1, 1))
    with pytest.raises(TypeError):
        TestClock("2030")
