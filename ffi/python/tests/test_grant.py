"""Grants: giving back, recording, and grants that the program drops."""

import copy
import gc
import os
import pickle
import weakref
from collections import OrderedDict
from datetime import timedelta

import pytest

from shmlimit import Blocked, ConfigError, Error, Limiter

from .conftest import state, unix_only


def test_leaving_a_block_gives_the_permit_back(one):
    with one.acquire() as grant:
        assert one.snapshot().in_flight == 1
        assert not grant.done and grant.limiter is one
        assert "open" in repr(grant)
    assert grant.done and "done" in repr(grant)
    assert one.snapshot().in_flight == 0


def test_an_exception_is_passed_on_and_the_permit_comes_back(one):
    with pytest.raises(KeyError, match="mine"):
        with one.acquire():
            raise KeyError("mine")
    assert one.snapshot().in_flight == 0


@pytest.mark.parametrize("end", [lambda g: g.record(200), lambda g: g.release(), lambda g: g.cancel()])
def test_leaving_a_block_does_nothing_if_the_grant_is_done(one, end):
    with one.acquire() as grant:
        end(grant)
        assert grant.done
        other = one.acquire()
    assert one.snapshot().in_flight == 1
    other.release()


ENDS = {
    "record": lambda grant: grant.record(200),
    "release": lambda grant: grant.release(),
    "cancel": lambda grant: grant.cancel(),
}


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_a_grant_ends_once(plenty, first, second):
    grant = plenty.acquire()
    other = plenty.acquire()
    ENDS[first](grant)
    before = state(plenty)
    outcomes = plenty.snapshot().condition.outcomes
    with pytest.raises(Error) as raised:
        ENDS[second](grant)
    assert raised.value.code == "grant_done"
    assert state(plenty)[:2] == before[:2] == (1, 0)
    assert plenty.snapshot().condition.outcomes == outcomes
    other.release()


def test_r129_cancelling_gives_back_the_units_that_were_taken(directory):
    limiter = Limiter("api", rate="5/h", burst=5)
    limiter.acquire(cost=3).cancel()
    limiter.acquire(cost=1).release()
    assert limiter.snapshot().rules[0].remaining == 4


def test_r129_recording_the_real_cost_corrects_the_rules(directory):
    limiter = Limiter("api", rate="100/h", burst=100)
    limiter.acquire(cost=50).record(200, cost=10)
    assert limiter.snapshot().rules[0].remaining == 90
    limiter.acquire(cost=10).record(200, cost={"requests": 20})
    assert limiter.snapshot().rules[0].remaining == 70


def test_recording_an_outcome_returns_advice(directory):
    limiter = Limiter("tmdb")
    done = limiter.acquire().record(200)
    assert (done.outcome_class, done.samples, done.error_ratio, done.consec429) == ("ok", 1, 0.0, 0)
    assert (done.wait, done.wait_at_most, done.wait_source, done.retry, done.transitions) == (0, 0, None, False, ())
    failed = limiter.acquire(priority="user").record(error="read_timeout", attempt=1, latency=timedelta(seconds=2))
    assert (failed.outcome_class, failed.wait_source, failed.retry) == ("net", "backoff", True)
    assert 0 <= failed.wait <= failed.wait_at_most
    told = limiter.acquire().record(status=429, headers={"Retry-After": "30"}, latency=0.25)
    assert (told.outcome_class, told.consec429, told.wait, told.wait_source) == ("429", 1, 30.0, "retry_after")
    with pytest.raises(AttributeError):
        told.wait = 3
    assert "outcome_class='429'" in repr(told)
    outcomes = limiter.snapshot().condition.outcomes
    assert (outcomes.ok, outcomes.throttled, outcomes.net) == (1, 1, 1)


def test_r142_a_retry_after_blocks_all_calls_and_says_how_long(directory):
    limiter, other = Limiter("tmdb"), Limiter("tmdb")
    limiter.acquire().record(429, headers={"retry-after": "30"})
    with pytest.raises(Blocked) as raised:
        other.try_acquire()
    assert (raised.value.reason, raised.value.state) == ("retry_after", "gate")
    assert 25 < raised.value.eta <= 30 and raised.value.eta == raised.value.retry_after
    gate = other.snapshot().condition.gate
    assert gate.pid == os.getpid() and 25 < gate.opens_in <= 30


def test_r58_the_call_that_causes_a_transition_gets_it_in_its_advice(directory):
    limiter = Limiter("tmdb")
    seen = [change for _ in range(12) for change in limiter.record(429).transitions]
    assert seen[0].from_state == "normal" and seen[0].reason
    assert limiter.snapshot().condition.state == seen[-1].to_state


class Pairs:
    """Headers that are neither a mapping nor a list."""

    def __iter__(self):
        return iter([(b"Retry-After", b"30"), ["x", "\udcff\u00e4"], ("x", b"\xff")])


HEADERS = [
    {"Retry-After": "30"},
    {b"retry-after": b"30"},
    OrderedDict([("X", "y"), ("RETRY-AFTER", "30")]),
    [("a", "b"), ("retry-after", "30")],
    (("Retry-After", b"30"),),
    Pairs(),
    iter([("Retry-After", "30")]),
]


@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: type(headers).__name__)
def test_headers_are_accepted_in_any_form(directory, headers):
    limiter = Limiter("tmdb")
    assert limiter.acquire().record(429, headers=headers).wait == 30.0


def test_empty_headers_are_accepted(plenty):
    for headers in [None, {}, [], ()]:
        assert plenty.acquire().record(200, headers=headers).outcome_class == "ok"


BAD = [
    (TypeError, "either status or error", {}),
    (TypeError, "either status or error", {"status": None}),
    (TypeError, "either status or error", {"status": 200, "error": "dns"}),
    (TypeError, "foo", {"status": 200, "foo": 1}),
    (TypeError, "priority", {"status": 200, "priority": "user"}),
    (TypeError, "status", {"status": "200"}),
    (TypeError, "status", {"status": 200.0}),
    (ConfigError, "99", {"status": 99}),
    (ConfigError, "600", {"status": 600}),
    (ValueError, "status", {"status": 2**70}),
    (TypeError, "error", {"error": 3}),
    (ValueError, "error must be one of connect_timeout", {"error": "timeout"}),
    (TypeError, "headers", {"status": 200, "headers": 3}),
    (TypeError, "headers", {"status": 200, "headers": "Retry-After: 3"}),
    (TypeError, "headers", {"status": 200, "headers": ["Retry-After: 3"]}),
    (TypeError, "headers", {"status": 200, "headers": {"Retry-After": 3}}),
    (TypeError, "headers", {"status": 200, "headers": [("a", "b", "c")]}),
    (TypeError, "headers", {"error": "dns", "headers": {"a": "b"}}),
    (TypeError, "latency", {"status": 200, "latency": "1"}),
    (ValueError, "latency", {"status": 200, "latency": -1}),
    (ValueError, "latency", {"status": 200, "latency": float("nan")}),
    (ValueError, "latency", {"status": 200, "latency": float("inf")}),
    (TypeError, "attempt", {"status": 200, "attempt": "1"}),
    (ValueError, "attempt", {"status": 200, "attempt": 0}),
    (ValueError, "attempt", {"status": 200, "attempt": -1}),
    (TypeError, "cost", {"status": 200, "cost": 1.5}),
    (ValueError, "cost", {"status": 200, "cost": {"requests": -1}}),
]


@pytest.mark.parametrize("kind, word, keywords", BAD)
def test_an_invalid_outcome_leaves_the_grant_as_it_was(one, kind, word, keywords):
    grant = one.acquire()
    with pytest.raises(kind, match=word):
        grant.record(**keywords)
    assert not grant.done and one.snapshot().in_flight == 1
    assert grant.record(200).samples == 1


def test_a_record_that_fails_leaves_the_grant_as_it_was(one):
    grant = one.acquire()
    with pytest.raises(ConfigError) as raised:
        grant.record(200, cost={"tokens": 3})
    assert raised.value.code == "unknown_unit"
    assert not grant.done and one.snapshot().in_flight == 1
    assert grant.record(200).outcome_class == "ok"
    assert grant.done and one.snapshot().in_flight == 0


def test_status_must_not_be_given_twice(one):
    with one.acquire() as grant:
        with pytest.raises(TypeError, match="multiple values for argument 'status'"):
            grant.record(200, status=200)
        with pytest.raises(TypeError, match="takes at most 1 positional argument .2 given"):
            grant.record(200, "dns")


def test_a_limiter_records_calls_it_did_not_grant(directory):
    limiter = Limiter("tmdb")
    assert limiter.record(200).samples == 1
    assert limiter.record(status=503, priority="background", attempt=1).outcome_class == "5xx"
    assert limiter.record(error="dns", priority="user").outcome_class == "net"
    assert limiter.record(404).outcome_class == "ignored"
    with pytest.raises(ValueError, match="priority"):
        limiter.record(200, priority="nobody")
    assert limiter.snapshot().in_flight == 0


def test_a_dropped_grant_gives_its_permit_back(one):
    grant = one.acquire()
    watch = weakref.ref(grant)
    del grant
    gc.collect()
    assert watch() is None and one.snapshot().in_flight == 0


def test_a_grant_in_a_cycle_is_collected(one):
    class Holder:
        pass

    holder = Holder()
    holder.me, holder.grant = holder, one.acquire()
    del holder
    gc.collect()
    assert one.snapshot().in_flight == 0


def test_a_grant_keeps_its_limiter(directory):
    watcher = Limiter("one", concurrency=1)
    grant = Limiter("one").acquire()
    gc.collect()
    assert watcher.snapshot().in_flight == 1 and grant.limiter.name == "one"
    grant.release()
    assert watcher.snapshot().in_flight == 0


def test_a_grant_cannot_be_copied_pickled_or_made(one):
    with one.acquire() as grant:
        for attempt in [pickle.dumps, copy.copy, copy.deepcopy]:
            with pytest.raises(TypeError, match="pickled"):
                attempt(grant)
        with pytest.raises(TypeError):
            type(grant)()
        with pytest.raises(AttributeError):
            grant.done = True
        with pytest.raises(TypeError):
            grant.release(1)
        with pytest.raises(TypeError, match="foo"):
            grant.release(foo=1)
        assert not grant.done


@unix_only("there is no fork")
def test_r140_after_a_fork_the_child_s_copy_does_nothing(one):
    grant = one.acquire()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            grant.release()
            with one.acquire(timeout=0) as other:
                other.release()
        except Exception as error:
            # The parent still holds its permit: the child is refused.
            code = 0 if type(error).__name__ == "Refused" and one.snapshot().in_flight == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert one.snapshot().in_flight == 1
    grant.release()
    assert one.snapshot().in_flight == 0


def test_an_exception_of_the_callers_iterator_is_passed_on(one):
    class Broken:
        def __iter__(self):
            raise ZeroDivisionError

    with one.acquire() as grant:
        with pytest.raises(ZeroDivisionError):
            grant.record(200, headers=Broken())
        assert not grant.done
