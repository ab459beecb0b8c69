"""Acquiring: the accepted arguments, the refusals, and that an invalid argument changes nothing."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from shmlimit import Error, Limiter, Refused

from .conftest import PLENTY, state

BAD = [
    (TypeError, "foo", {"foo": 1}),
    (TypeError, "cost", {"cost": "1"}),
    (TypeError, "cost", {"cost": 1.5}),
    (TypeError, "cost", {"cost": [("requests", 1)]}),
    (TypeError, "cost", {"cost": {1: 1}}),
    (TypeError, "cost", {"cost": {"requests": "1"}}),
    (TypeError, "cost", {"cost": {"requests": 1.5}}),
    (ValueError, "cost", {"cost": -1}),
    (ValueError, "cost", {"cost": 2**64}),
    (ValueError, "cost", {"cost": {"requests": -1}}),
    (ValueError, "does not count", {"cost": {"tokens": 1}}),
    (ValueError, "does not count", {"cost": {name: 1 for name in "abcdefgh"}}),
    (TypeError, "priority", {"priority": 1}),
    (TypeError, "priority", {"priority": b"user"}),
    (ValueError, "priority", {"priority": "User"}),
    (ValueError, "priority", {"priority": ""}),
    (ValueError, "surrogates", {"priority": "\udcff"}),
]
BAD_TIMES = [
    (TypeError, "timeout", {"timeout": "5"}),
    (TypeError, "timeout", {"timeout": [5]}),
    (ValueError, "timeout", {"timeout": -1}),
    (ValueError, "timeout", {"timeout": -0.001}),
    (ValueError, "timeout", {"timeout": float("nan")}),
    (ValueError, "timeout", {"timeout": timedelta(seconds=-1)}),
    (ValueError, "timeout", {"timeout": 1e300}),
    (TypeError, "deadline", {"deadline": "tomorrow"}),
    (ValueError, "deadline", {"deadline": float("nan")}),
    (ValueError, r"deadline must be an aware datetime.*datetime.now\(timezone.utc\)", {"deadline": datetime(2030, 1, 1)}),
    (ValueError, "deadline", {"deadline": 1e300}),
    (ValueError, "deadline", {"deadline": 10**400}),
    (ValueError, "timeout", {"timeout": 10**400}),
    (ValueError, "unit of cost", {"cost": {"\ud800": 1}}),
    (ValueError, "priority", {"priority": "\ud800"}),
]


@pytest.mark.parametrize("kind, word, keywords", BAD + BAD_TIMES)
def test_acquire_rejects_bad_arguments_by_name_and_changes_nothing(plenty, kind, word, keywords):
    before = state(plenty)
    with pytest.raises(kind, match=word):
        plenty.acquire(**keywords)
    assert state(plenty) == before


@pytest.mark.parametrize("kind, word, keywords", BAD)
def test_try_acquire_rejects_bad_arguments_by_name_and_changes_nothing(plenty, kind, word, keywords):
    before = state(plenty)
    with pytest.raises(kind, match=word):
        plenty.try_acquire(**keywords)
    assert state(plenty) == before


@pytest.mark.parametrize("word", ["timeout", "deadline"])
@pytest.mark.parametrize("value", [None, 1])
def test_try_acquire_takes_no_timeout_and_no_deadline(plenty, word, value):
    with pytest.raises(TypeError, match=f"try_acquire.. got an unexpected keyword argument '{word}'"):
        plenty.try_acquire(**{word: value})


def test_positional_arguments_are_rejected_with_pythons_message(plenty):
    with pytest.raises(TypeError, match="acquire.. takes no positional arguments .1 given"):
        plenty.acquire(1)
    with pytest.raises(TypeError):
        Limiter.acquire()
    with pytest.raises(TypeError):
        Limiter.acquire(3)


def test_none_means_that_the_argument_is_absent(plenty):
    plenty.acquire(cost=None, priority=None, timeout=None, deadline=None).release()
    plenty.try_acquire(cost=None, priority=None).release()


def test_a_cost_is_a_number_of_requests_or_a_mapping_of_units(directory):
    config = """
[[rules]]
algorithm = "token_bucket"
limit = 10
period = "1h"
[[rules]]
algorithm = "token_bucket"
unit = "tokens"
limit = 1000
period = "1h"
"""
    limiter = Limiter("llm", config=config)
    limiter.acquire(cost={"tokens": 900}).release()
    limiter.acquire(cost=2).release()
    limiter.acquire(cost={"requests": 3, "tokens": 50}).release()
    assert [rule.remaining for rule in limiter.snapshot().rules] == [4, 50]
    with pytest.raises(Refused) as raised:
        limiter.acquire(cost={"tokens": 51}, timeout=0)
    assert raised.value.reason == "rate"
    with pytest.raises(Refused) as raised:
        limiter.try_acquire(cost={"tokens": 1001})
    assert raised.value.reason == "cost_exceeds_limit"
    assert raised.value.retry_after is raised.value.ready_after is None


def test_keywords_built_at_run_time_are_recognized(plenty):
    word = "".join(["prio", "rity"])
    plenty.acquire(**{word: "".join(["us", "er"])}).release()
    with pytest.raises(TypeError, match="colour"):
        plenty.acquire(**{"".join(["col", "our"]): 1})


def test_r106_priorities_have_their_names(directory):
    limiter = Limiter("api", config=RESERVE)
    rule = limiter.snapshot().rules[0]
    assert (rule.remaining, rule.remaining_background) == (10, 5)
    for _ in range(5):
        limiter.try_acquire(priority="background").release()
    with pytest.raises(Refused):
        limiter.try_acquire(priority="background")
    limiter.try_acquire(priority="user").release()
    limiter.try_acquire(priority="webhook").release()


RESERVE = """
[priority]
enabled = true
[[rules]]
algorithm = "token_bucket"
limit = 10
period = "1h"
reserve = 5
"""


def later(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "keywords",
    [
        {"timeout": 0},
        {"timeout": 0.5},
        {"timeout": timedelta(milliseconds=500)},
        {"deadline": time.time() - 5},
        {"deadline": -5},
        {"deadline": later(-5)},
        {"timeout": 5, "deadline": 0},
    ],
)
def test_r132_a_call_that_cannot_be_granted_in_time_is_refused_at_once(scarce, keywords):
    before = state(scarce)
    began = time.monotonic()
    with pytest.raises(Refused) as raised:
        scarce.acquire(**keywords)
    assert time.monotonic() - began < 0.4
    assert raised.value.reason == "rate" and raised.value.retry_after > 3000
    assert state(scarce) == before


@pytest.mark.parametrize("time_left", [{"timeout": 60}, {"timeout": float("inf")}, {"timeout": timedelta(minutes=1)}])
def test_a_call_with_enough_time_waits(directory, time_left):
    limiter = Limiter("api", rate="20/s", burst=1)
    limiter.acquire().release()
    limiter.acquire(**time_left).release()
    limiter.acquire(deadline=later(60)).release()
    limiter.acquire(deadline=time.time() + 60).release()
    limiter.acquire(deadline=float("inf")).release()
    (me,) = limiter.snapshot().participants
    assert me.granted == 5 and me.looked > 0


def test_a_refusal_has_its_fields(scarce):
    with pytest.raises(Refused) as raised:
        scarce.try_acquire()
    error = raised.value
    assert (error.limiter, error.reason, error.code) == ("scarce", "rate", "refused")
    assert error.rule == scarce.snapshot().rules[0].name
    assert 3000 < error.retry_after <= 3600 and error.ready_after >= error.retry_after - 1
    assert error.message == str(error) and error.message.startswith("scarce: the rate is used up")
    assert error.errno is None and isinstance(error, Error)


def test_r7_a_refusal_for_lack_of_a_permit_names_no_rule(one):
    with one.acquire():
        with pytest.raises(Refused) as raised:
            one.try_acquire()
    assert (raised.value.reason, raised.value.rule) == ("concurrency", None)
    one.try_acquire().release()


def test_several_rules_grant_and_refuse(directory):
    config = "".join(
        f'[[rules]]\nalgorithm = "token_bucket"\nlimit = {limit}\nperiod = "1h"\nname = "{name}"\n'
        for name, limit in [("wide", 1000), ("narrow", 3)]
    )
    limiter = Limiter("two", config=config)
    for _ in range(3):
        limiter.acquire().release()
    with pytest.raises(Refused) as raised:
        limiter.acquire(timeout=1)
    assert raised.value.rule == "narrow"
    (me,) = limiter.snapshot().participants
    assert (me.granted, me.refused) == (3, 1)


def test_a_leaky_bucket_says_how_long_to_delay_a_call(directory):
    limiter = Limiter("leaky", settings={"rate": "10/s", "burst": 5, "algorithm": "leaky_bucket"})
    delays = [limiter.acquire().delay for _ in range(3)]
    assert delays[0] == 0 and 0 < delays[1] < delays[2] < 1
    assert Limiter("other", **PLENTY).acquire().delay == 0


def test_inspect_knows_the_signatures():
    import inspect

    assert str(inspect.signature(Limiter.try_acquire)) == "(self, /, *, cost=None, priority=None)"
    assert list(inspect.signature(Limiter.acquire).parameters) == ["self", "cost", "priority", "timeout", "deadline"]
    assert list(inspect.signature(Limiter).parameters)[:2] == ["name", "directory"]
