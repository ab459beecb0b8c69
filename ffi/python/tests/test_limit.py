"""The decorator."""

import asyncio
import inspect
import time

import pytest

from shmlimit import ConfigError, Limiter, Refused

from .conftest import state


def test_a_function_holds_a_grant_while_it_runs(one):
    @one.limit
    def call(a, b=2, *, c):
        """What it does."""
        return a, b, c, one.snapshot().in_flight

    assert call(1, c=3) == (1, 2, 3, 1)
    assert one.snapshot().in_flight == 0
    assert (call.__name__, call.__doc__) == ("call", "What it does.")
    assert str(inspect.signature(call)) == "(a, b=2, *, c)"


def test_a_decorated_coroutine_function_is_a_coroutine_function(one):
    @one.limit(priority="user", timeout=60)
    async def call(value):
        await asyncio.sleep(0)
        return value, one.snapshot().in_flight

    assert inspect.iscoroutinefunction(call)

    async def main():
        return await asyncio.gather(*(call(i) for i in range(5)))

    assert asyncio.run(main()) == [(i, 1) for i in range(5)]
    assert state(one) == (0, 0, [])


def test_exceptions_are_passed_on_and_permits_come_back(one):
    @one.limit
    def call():
        raise KeyError("mine")

    @one.limit()
    async def call_async():
        raise KeyError("mine")

    for _ in range(3):
        with pytest.raises(KeyError):
            call()
        with pytest.raises(KeyError):
            asyncio.run(call_async())
    assert one.snapshot().in_flight == 0


def test_methods_can_be_decorated(one):
    class Client:
        @one.limit(cost=1)
        def get(self, path):
            return self, path

        @staticmethod
        @one.limit
        def version():
            return one.snapshot().in_flight

    client = Client()
    assert client.get("x") == (client, "x") and Client.version() == 1


def test_a_refusal_is_raised_by_the_call(scarce):
    called = []
    limited = scarce.limit(timeout=0)(called.append)
    with pytest.raises(Refused):
        limited(1)
    assert called == []


def test_a_decorated_call_takes_its_cost(directory):
    limiter = Limiter("api", rate="10/h", burst=10)
    limiter.limit(cost=4)(len)("")
    assert limiter.snapshot().rules[0].remaining == 6


def test_generators_and_objects_that_are_not_functions_are_rejected(one):
    def generator():
        yield 1

    async def async_generator():
        yield 1

    for function in [generator, async_generator]:
        with pytest.raises(TypeError, match="generator"):
            one.limit(function)
        with pytest.raises(TypeError, match="generator"):
            one.limit(timeout=1)(function)
    with pytest.raises(TypeError, match="decorates a function, not int"):
        one.limit(3)
    with pytest.raises(TypeError):
        one.limit(deadline=3)


@pytest.mark.parametrize(
    "keywords, kind", [({"priority": "usr"}, ConfigError), ({"timeout": -1}, ValueError), ({"cost": "3"}, TypeError)]
)
def test_bad_arguments_are_reported_when_the_function_is_decorated(one, keywords, kind):
    with pytest.raises(kind, match=next(iter(keywords))):
        one.limit(**keywords)
    assert one.snapshot().in_flight == 0


LEAKY = """
[[rules]]
name = "even"
algorithm = "leaky_bucket"
limit = 50
period = "1s"
burst = 4
"""


def test_a_leaky_bucket_delays_decorated_calls(directory):
    limiter = Limiter("even", config=LEAKY)

    @limiter.limit
    def call():
        return time.monotonic()

    @limiter.limit
    async def call_async():
        return time.monotonic()

    async def main():
        return [await call_async() for _ in range(2)]

    begun = time.monotonic()
    times = [call(), call(), *asyncio.run(main())]
    # Calls are 20 ms apart; the first one starts at once.
    assert all(at - begun >= 0.02 * i - 0.001 for i, at in enumerate(times)), [at - begun for at in times]


def test_a_decorated_call_cancelled_during_its_delay_counts_as_not_sent(directory):
    limiter = Limiter("even", config=LEAKY.replace('"1s"', '"1h"'))
    limiter.acquire().release()

    @limiter.limit
    async def call():
        raise AssertionError("unreachable")

    async def main():
        task = asyncio.ensure_future(call())
        while not limiter.snapshot().in_flight:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert limiter.snapshot().in_flight == 0
    assert limiter.snapshot().rules[0].remaining == 3
