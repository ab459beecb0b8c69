"""Snapshots, and that they contain the same values as the command-line tool's output."""

import dataclasses
import json
import os
import subprocess
import threading

import pytest

import shmlimit
from shmlimit import Limiter

from .conftest import command, eventually


def rich(directory):
    # A rate so slow that no unit comes back between two snapshots.
    limiter = Limiter("own", settings={"rate": "100/h", "burst": 100, "breaker.kind": "fsm"})
    for _ in range(2):
        limiter.acquire(priority="user").record(200)
    for failure in [{"status": 503}] * 3 + [{"error": "dns"}] * 4 + [{"status": 404}] * 5:
        limiter.record(**failure)
    limiter.force("throttle")
    limiter.acquire().record(429, headers={"Retry-After": "300"})
    return limiter


def paused(directory):
    limiter = Limiter("github")
    limiter.pause(600, "database migration")
    return limiter


def test_a_snapshot_consists_of_frozen_dataclasses(directory):
    now = rich(directory).snapshot()
    assert isinstance(now, shmlimit.Snapshot) and now.directory == directory
    parts = [now, now.condition, now.condition.gate, now.condition.outcomes, now.condition.transitions[0]]
    for part in [*parts, now.rules[0], now.participants[0]]:
        assert dataclasses.is_dataclass(part)
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.name = "x"
    assert dataclasses.astuple(now.condition.outcomes) == (2, 1, 3, 4, 5)
    assert now.condition.transitions[-1].to_state == now.condition.state == "throttle"
    assert now.participants[0].pid == os.getpid()
    assert now.remaining() == now.rules[0].remaining_background
    assert now.remaining("user") == now.rules[0].remaining


def test_a_snapshot_contains_waiting_calls(one):
    held = one.acquire()
    thread = threading.Thread(target=lambda: one.acquire(priority="webhook", timeout=60).release())
    thread.start()
    eventually(lambda: one.snapshot().queue)
    (waiter,) = one.snapshot().queue
    assert (waiter.pid, waiter.priority, waiter.cost) == (os.getpid(), "webhook", {"requests": 1})
    assert 50 < waiter.gives_up_in <= 60 and waiter.waited_for >= 0
    (me,) = one.snapshot().participants
    assert me.held == 1 and me.held_for > 0
    held.release()
    thread.join(60)


def without_times(value):
    """JSON with equal times and rounded floats, because two snapshots are taken at different moments."""
    if isinstance(value, dict):
        return {key: 0 if key.endswith("_ns") and part else without_times(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_times(part) for part in value]
    return value


@pytest.mark.parametrize("make", [rich, paused, lambda directory: Limiter("github"), lambda directory: Limiter("openai")])
def test_to_dict_is_what_the_command_line_tool_prints(directory, make):
    limiter = make(directory)
    out = subprocess.run([command(), "status", limiter.name, "--json"], capture_output=True, check=True, timeout=60)
    theirs, mine = json.loads(out.stdout), json.loads(json.dumps(limiter.snapshot().to_dict()))
    theirs.pop("next_change")
    theirs.pop("warnings")
    assert list(mine) == list(theirs)
    # The tool lists neither itself nor a process that made no call.
    participants = [one for one in mine["participants"] if one["pid"] == os.getpid()]
    assert theirs["participants"] == [] or len(theirs["participants"]) == len(participants) == 1
    assert without_times({**mine, "participants": participants}) == without_times(
        {**theirs, "participants": theirs["participants"] or participants}
    )
    for rule, other in zip(mine["rules"], theirs["rules"]):
        assert rule["period_ns"] == other["period_ns"]


def test_python_and_the_tool_see_each_others_calls(directory):
    limiter = Limiter("api", rate="100/h", burst=100)
    subprocess.run([command(), "acquire", "api"], check=True, timeout=60)
    limiter.acquire().release()
    assert limiter.snapshot().rules[0].remaining == 98


def test_r116_cache_answers_are_counted_for_all_programs(directory):
    limiter = rich(directory)
    limiter.count_cache(True)
    limiter.count_cache(hit=True)
    limiter.count_cache(False)
    counts = Limiter("own").snapshot().counts
    assert (counts.cache_hits, counts.cache_misses, counts.granted) == (2, 1, 3)
    assert counts.codes == {"200": 2, "404": 5, "429": 1, "503": 3, "dns": 4}
    with pytest.raises(TypeError):
        limiter.count_cache("yes")
