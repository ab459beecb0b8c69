"""Reports to the program: callbacks, and the logger "shmlimit"."""

import asyncio
import logging
import os
import subprocess
import sys
import threading

import pytest

import shmlimit
from shmlimit import Limiter, Refused, Transition, WaitNotice
from shmlimit.testing import TestClock

from .conftest import eventually


class Told(list):
    """Stores the arguments of a callback, and the thread that called it."""

    def __call__(self, what):
        self.append(what)
        self.thread = threading.get_ident()


def test_on_wait_is_called_when_a_call_begins_to_wait(directory):
    told = Told()
    limiter = Limiter("api", rate=["100/s", "tokens=100/s"], concurrency=1, on_wait=told)
    held = limiter.acquire()
    assert not told
    with pytest.raises(Refused):
        limiter.try_acquire()
    with pytest.raises(Refused):
        limiter.acquire(timeout=0)
    assert not told, "these calls never wait"
    threads = []

    def wait():
        threads.append(threading.get_ident())
        limiter.acquire(priority="user", cost={"tokens": 7}, timeout=60).release()

    thread = threading.Thread(target=wait)
    thread.start()
    # The call is in the queue already when the callback is called.
    eventually(lambda: told)
    assert len(limiter.snapshot().queue) == 1
    held.release()
    thread.join()
    assert told == [WaitNotice("api", "user", {"requests": 1, "tokens": 7}, 60.0)]
    assert told.thread == threads[0]


def test_on_wait_is_called_by_the_main_thread_and_by_an_event_loop(directory):
    told = Told()
    limiter = Limiter("api", concurrency=1, on_wait=told)
    held = limiter.acquire()
    release = threading.Thread(target=lambda: (eventually(lambda: told), held.release()))
    release.start()
    held = limiter.acquire()
    release.join()
    assert [one.priority for one in told] == ["background"] and told[0].timeout is None

    async def main():
        task = asyncio.ensure_future(limiter.acquire_async(priority="webhook"))
        while len(told) < 2:
            await asyncio.sleep(0)
        held.release()
        (await task).release()

    asyncio.run(main())
    assert [one.priority for one in told] == ["background", "webhook"]


@pytest.mark.parametrize("waits", ["acquire", "acquire_async"])
def test_on_wait_is_called_on_a_test_clock(directory, waits):
    told = Told()
    limiter = Limiter("api", directory=directory, rate="1/min", test_clock=TestClock(), on_wait=told)
    for count in range(3):
        if waits == "acquire":
            limiter.acquire().release()
        else:
            asyncio.run(limiter.acquire_async()).release()
        assert len(told) == count
    with pytest.raises(Refused):
        limiter.acquire(timeout=1)
    assert len(told) == 2


def test_on_refused_gets_the_exception_that_is_raised(directory):
    told = Told()
    limiter = Limiter("api", rate="1/h", on_refused=told)
    limiter.acquire().release()
    for ask in (limiter.try_acquire, lambda: limiter.acquire(timeout=1), lambda: asyncio.run(limiter.acquire_async(timeout=1))):
        with pytest.raises(Refused) as raised:
            ask()
        assert told.pop() is raised.value and not told


def test_on_transition_gets_the_changes_of_this_process(directory):
    told, elsewhere = Told(), Told()
    limiter = Limiter("tmdb", on_transition=told)
    other = Limiter("tmdb", on_transition=elsewhere)
    limiter.force("throttle")
    assert told == [Transition(0.0, "normal", "throttle", "forced")] and not elsewhere
    limiter.force("normal")
    assert len(told) == 2
    advice = [other.record(429) for _ in range(5)]
    changed = [one for each in advice for one in each.transitions]
    assert changed and elsewhere == changed and len(told) == 2


def test_an_exception_in_a_callback_is_logged_and_the_call_goes_on(directory, caplog):
    def fails(what):
        raise ZeroDivisionError("mine")

    limiter = Limiter("tmdb", rate="1/h", concurrency=1, on_wait=fails, on_refused=fails, on_transition=fails)
    limiter.force("throttle")
    limiter.force("normal")
    held = limiter.acquire()
    with pytest.raises(Refused):
        limiter.try_acquire()
    thread = threading.Thread(target=lambda: limiter.acquire(timeout=7200).release())
    thread.start()
    eventually(lambda: any("on_wait" in record.getMessage() for record in caplog.records))
    limiter.set("rules.0.limit", 1000)
    held.release()
    thread.join()
    failed = [record.getMessage().split()[0] for record in caplog.records if record.exc_info]
    assert sorted(set(failed)) == ["on_refused", "on_transition", "on_wait"]
    assert all(record.name == "shmlimit" for record in caplog.records)


def test_an_interrupt_in_a_callback_ends_the_call_and_takes_nothing(directory):
    def interrupts(what):
        raise KeyboardInterrupt

    limiter = Limiter("api", concurrency=1, on_wait=interrupts)
    with limiter.acquire():
        with pytest.raises(KeyboardInterrupt):
            limiter.acquire(timeout=2)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(limiter.acquire_async(timeout=2))
        assert limiter.snapshot().in_flight == 1 and not limiter.snapshot().queue


def test_an_interrupt_while_an_event_is_reported_keeps_back_no_other_event(directory):
    events = []

    class Interrupting(logging.Handler):
        def emit(self, record):
            events.append(record.shmlimit["event"])
            if len(events) == 1:
                raise KeyboardInterrupt

    settings = {"breaker.kind": "consecutive", "breaker.failure_threshold": 1}
    limiter = Limiter("api", rate="9/s", settings=settings)
    handler, logger = Interrupting(), logging.getLogger("shmlimit")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with pytest.raises(KeyboardInterrupt):
            limiter.record(429, headers={"Retry-After": "30"})
        # They were delivered once.
        limiter.snapshot()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert events == ["backoff", "gate_closed", "state_transition"]


def test_a_callback_may_use_the_limiter(directory):
    seen = []
    limiter = Limiter("api", rate="1/h", on_refused=lambda refusal: seen.append(limiter.snapshot().rules[0].remaining))
    limiter.acquire().release()
    with pytest.raises(Refused):
        limiter.try_acquire()
    assert seen == [0]


def test_a_callback_must_be_a_function(directory):
    for name in ("on_wait", "on_refused", "on_transition"):
        with pytest.raises(TypeError, match=name):
            Limiter("api", rate="1/s", **{name: 3})
    assert shmlimit.limiters() == []


def test_events_are_logged(directory, caplog):
    caplog.set_level(logging.INFO)
    limiter = Limiter("tmdb")
    limiter.force("throttle")
    limiter.force("normal")
    limiter.acquire().record(429, headers={"Retry-After": "30"})
    limiter.pause(60, reason="a move")
    limiter.resume()
    limiter.set("concurrency", 3)
    Limiter("tmdb", rate="9/s", replace=True)
    assert {record.name for record in caplog.records} == {"shmlimit"}
    said = [record.getMessage() for record in caplog.records]
    for words in (
        "tmdb: state_transition state=throttle",
        "from=normal to=throttle reason=forced",
        "tmdb: gate_closed",
        "tmdb: paused",
        "reason=a move",
        "tmdb: resumed",
        "tmdb: policy_changed",
        "tmdb: made afresh",
    ):
        assert any(words in one for one in said), (words, said)
    transition = next(record for record in caplog.records if "state_transition" in record.getMessage())
    assert transition.shmlimit["to"] == "throttle"


def test_a_limiter_that_slows_or_stops_calls_is_a_warning_and_everything_else_is_not(directory, caplog):
    caplog.set_level(logging.INFO)
    limiter = Limiter("tmdb")
    for state in ("throttle", "sleep", "cache_only", "half_open", "normal"):
        limiter.force(state)
    consecutive = Limiter("api", rate="1/s", settings={"breaker.kind": "consecutive"})
    consecutive.force("open")
    consecutive.force("closed")
    limiter.record(429, headers={"Retry-After": "30"})
    limiter.pause()
    limiter.resume()
    warned = [record.shmlimit.get("to", record.shmlimit["event"]) for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["throttle", "sleep", "cache_only", "open", "gate_closed"]
    recovered = {record.shmlimit.get("to") for record in caplog.records if record.levelname == "INFO"}
    assert {"half_open", "normal", "closed"} <= recovered


def test_on_transition_is_not_called_without_a_breaker(directory):
    told = Told()
    limiter = Limiter("api", rate="100/s", on_transition=told)
    for _ in range(20):
        limiter.record(500)
    assert not told


PRINTS = """
import logging, sys
from shmlimit import Limiter

CONFIGURE
limiter = Limiter("tmdb", on_refused=lambda refusal: 1 / 0)
limiter.force("throttle")
limiter.record(429, headers={"Retry-After": "30"})
if CALLBACK:
    try:
        limiter.try_acquire()
    except Exception:
        pass
"""


@pytest.mark.parametrize(
    "configure, callback, shown",
    [
        ("", False, []),
        ("", True, ["on_refused failed", "ZeroDivisionError"]),
        ("logging.basicConfig()", True, ["state_transition", "gate_closed", "on_refused failed", "rate_base"]),
        ("logging.getLogger('shmlimit').addHandler(logging.StreamHandler())", False, ["gate_closed", "rate_base"]),
    ],
)
def test_only_a_program_that_configures_logging_shows_warnings(directory, configure, callback, shown):
    program = PRINTS.replace("CONFIGURE", configure).replace("CALLBACK", str(callback))
    variables = {**os.environ, "SHMLIMIT_RATE_BASE": "5"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=variables)
    assert done.returncode == 0 and all(done.stderr.count(words) == 1 for words in shown), done.stderr
    assert shown or done.stderr == ""
    assert "gate_closed" in shown or "gate_closed" not in done.stderr
