"""Opening, closing, changing and listing limiters; errors with their codes."""

import asyncio
import contextlib
import os
import pickle
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import shmlimit
from shmlimit import ConfigError, Error, Limiter

from .conftest import PLENTY, eventually, unix_only


def test_a_limiter_reports_its_name_and_directory(directory):
    limiter = Limiter("tmdb")
    assert limiter.name == "tmdb"
    assert limiter.directory == directory and isinstance(limiter.directory, Path)
    path = str(directory).replace("\\", "\\\\")
    assert repr(limiter) == f'<shmlimit.Limiter "tmdb" in "{path}">'
    assert not limiter.closed


def test_the_package_exports_its_version_and_documented_names():
    assert shmlimit.__version__ == "0.1.0"
    assert shmlimit.layout_version == 6
    assert "tmdb" in shmlimit.presets and isinstance(shmlimit.presets, tuple)
    for name in shmlimit.__all__:
        thing = getattr(shmlimit, name)
        assert not isinstance(thing, type) or thing.__module__ == "shmlimit", name
        assert not isinstance(thing, type) or thing.__doc__, name


@pytest.mark.parametrize("kind", [str, Path])
def test_a_directory_is_a_str_or_a_path(tmp_path, kind):
    path = tmp_path / "elsewhere"
    assert Limiter("api", directory=kind(path), rate="1/s").directory == path


def test_settings_of_all_kinds_create_a_limiter(directory):
    rule = Limiter("a", rate="35/s", burst=7, concurrency=2).snapshot().rules[0]
    assert (rule.limit, rule.period, rule.capacity) == (35, 1.0, 7)
    settings = {"rate": "5/m", "concurrency": 3, "breaker.kind": "fsm", "breaker.p_throttle": 0.25}
    limiter = Limiter("b", settings=settings)
    assert limiter.snapshot().concurrency == 3
    assert "p_throttle = 0.25" in limiter.config
    assert Limiter("c", preset="tmdb").snapshot().provider == Limiter("tmdb").snapshot().provider
    assert Limiter("d", config=Limiter("tmdb").config).config == Limiter("tmdb").config


def test_the_same_settings_open_the_limiter_and_other_settings_are_refused(directory):
    first = Limiter("api", rate="35/s")
    second = Limiter("api", rate="35/s")
    third = Limiter("api")
    with first.acquire():
        assert second.snapshot().in_flight == third.snapshot().in_flight == 1
    with pytest.raises(ConfigError) as raised:
        Limiter("api", rate="36/s")
    assert raised.value.code == "config_mismatch"
    assert "36" in raised.value.message


def test_replace_creates_a_new_limiter_in_place_of_the_existing_one(directory):
    old = Limiter("own", rate="5/h", burst=5)
    old.acquire().release()
    new = Limiter("own", rate="7/h", burst=7, replace=True)
    assert new.snapshot().rules[0].remaining == 7
    assert old.snapshot().rules[0].limit == 7, "who uses the old one goes over"
    with pytest.raises(ValueError, match="create=False"):
        Limiter("own", rate="9/h", replace=True, create=False)
    with pytest.raises(TypeError, match="replace must be a bool"):
        Limiter("own", replace=1)


def test_a_missing_limiter_is_not_created_with_create_false(directory):
    with pytest.raises(Error) as raised:
        Limiter("tmdb", create=False)
    assert raised.value.code == "unknown_limiter"
    assert shmlimit.limiters() == []
    Limiter("tmdb")
    assert Limiter("tmdb", create=False).name == "tmdb"


def test_limiters_are_listed_in_order(directory, tmp_path):
    assert shmlimit.limiters(tmp_path / "missing") == []
    Limiter("b", rate="1/s")
    Limiter("a", rate="1/s")
    assert shmlimit.limiters() == shmlimit.limiters(directory) == shmlimit.limiters(str(directory)) == ["a", "b"]


CODES = [
    ("bad_name", ConfigError, lambda: Limiter("../x")),
    ("unknown_limiter", Error, lambda: Limiter("never-made")),
    ("config", ConfigError, lambda: Limiter("x", rate="fast")),
    ("config", ConfigError, lambda: Limiter("x", preset="tmbd")),
    ("config", ConfigError, lambda: Limiter("x", config="nonsense")),
    ("config", ConfigError, lambda: Limiter("x", settings={"concurency": 1})),
    ("no_such_state", ConfigError, lambda: Limiter("plain", rate="1/s").force("sleep")),
    ("unknown_unit", ConfigError, lambda: Limiter("plain", rate="1/s").acquire(cost={"tokens": 1})),
    ("bad_status", ConfigError, lambda: Limiter("plain", rate="1/s").record(99)),
    ("bad_status", ConfigError, lambda: Limiter("plain", rate="1/s").record(70000)),
    ("bad_status", ConfigError, lambda: Limiter("plain", rate="1/s").record(-1)),
]


@pytest.mark.parametrize("code, kind, call", CODES)
def test_an_error_has_its_code_and_its_class(directory, code, kind, call):
    with pytest.raises(Error) as raised:
        call()
    assert (raised.value.code, type(raised.value)) == (code, kind)
    assert str(raised.value) == raised.value.message != ""
    assert issubclass(kind, ValueError) == (kind is ConfigError)
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args


def test_a_file_that_is_not_a_segment_is_left_unchanged(directory):
    segment = Limiter("api", rate="1/s")
    path = next(directory.glob("api.*"))
    segment.close()
    path.write_bytes(b"something else" * 100)
    with pytest.raises(Error) as raised:
        Limiter("api")
    assert raised.value.code == "foreign"
    assert path.read_bytes() == b"something else" * 100


@unix_only("who may write is not in the mode of a file")
def test_a_world_writable_directory_is_not_trusted(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(Error) as raised:
        Limiter("tmdb", directory=tmp_path)
    assert raised.value.code == "directory"


@unix_only("a name that is too long is one that is not there, and has no limiters")
def test_an_io_error_contains_the_systems_error_number(directory):
    (directory / "file").write_text("")
    with pytest.raises(Error) as raised:
        shmlimit.limiters(directory / ("x" * 300))
    assert raised.value.code == "io" and isinstance(raised.value.errno, int)
    assert not isinstance(raised.value, OSError)


BAD = [
    (TypeError, "name", lambda: Limiter(3)),
    (TypeError, "name", lambda: Limiter()),
    (TypeError, "foo", lambda: Limiter("x", foo=1)),
    (TypeError, "directory", lambda: Limiter("x", directory=3)),
    (TypeError, "directory", lambda: shmlimit.limiters(3)),
    (TypeError, "preset", lambda: Limiter("x", preset=3)),
    (TypeError, "config", lambda: Limiter("x", config=b"")),
    (TypeError, "settings", lambda: Limiter("x", settings=[("rate", "1/s")])),
    (TypeError, "settings", lambda: Limiter("x", settings={3: "1/s"})),
    (TypeError, "settings", lambda: Limiter("x", settings={"rate": None})),
    (ValueError, "settings", lambda: Limiter("x", settings={"breaker.p_throttle": float("nan")})),
    (TypeError, "rate", lambda: Limiter("x", rate=[35])),
    (ValueError, "burst", lambda: Limiter("x", rate="1/s", burst=-1)),
    (ValueError, "concurrency", lambda: Limiter("x", concurrency=-1)),
    (TypeError, "group", lambda: Limiter("x", rate="1/s", group=3)),
    (TypeError, "create", lambda: Limiter("x", rate="1/s", create="no")),
    (ValueError, "surrogates", lambda: Limiter("\udcff", rate="1/s")),
]


@pytest.mark.parametrize("kind, word, call", BAD)
def test_invalid_arguments_create_no_limiter(directory, kind, word, call):
    with pytest.raises(kind, match=word):
        call()
    assert shmlimit.limiters() == []


def test_r110_a_setting_changes_at_once_for_all_programs(directory):
    mine, theirs = Limiter("tmdb"), Limiter("tmdb")
    mine.set("concurrency", 7)
    mine.set("breaker.p_throttle", 0.3)
    assert theirs.snapshot().concurrency == 7
    assert "p_throttle = 0.3" in theirs.config
    for kind, word, key, value in [
        (ConfigError, "concurrency", "concurency", 7),
        (ConfigError, "algorithm", "rules.0.algorithm", "gcra"),
        (TypeError, "value", "concurrency", None),
        (TypeError, "key", 3, 3),
    ]:
        with pytest.raises(kind, match=word):
            mine.set(key, value)
    assert theirs.snapshot().concurrency == 7


def test_r148_a_pause_refuses_calls_that_do_not_wait_and_is_shown(directory):
    limiter = Limiter("own", rate="100/s")
    assert limiter.snapshot().paused is None and limiter.resume() is False
    limiter.pause(timedelta(minutes=10), reason="database migration")
    paused = limiter.snapshot().paused
    assert (paused.pid, paused.reason) == (os.getpid(), "database migration")
    assert 590 < paused.ends_in <= 600 and 0 <= paused.paused_for < 60
    with pytest.raises(shmlimit.Refused) as refused:
        limiter.try_acquire()
    assert refused.value.reason == "paused" and 590 < refused.value.retry_after <= 600
    with pytest.raises(shmlimit.Refused, match="paused"):
        limiter.acquire(timeout=60)
    limiter.pause()
    assert limiter.snapshot().paused.ends_in is None and limiter.snapshot().paused.reason is None
    with pytest.raises(shmlimit.Refused) as refused:
        limiter.acquire(timeout=0.01)
    assert (refused.value.reason, refused.value.retry_after) == ("paused", None)
    assert limiter.resume() is True
    limiter.try_acquire().release()


def test_r148_a_call_waits_through_a_pause(directory):
    limiter = Limiter("own", rate="100/s")
    limiter.pause(reason="x")
    thread = threading.Thread(target=lambda: limiter.acquire().release())
    thread.start()
    eventually(lambda: limiter.snapshot().queue)
    limiter.resume()
    thread.join(60)
    assert not thread.is_alive() and limiter.snapshot().counts.granted == 1


@pytest.mark.parametrize(
    "error, arguments",
    [
        (ConfigError, {"duration": 0}),
        (ConfigError, {"reason": "x" * 65}),
        (ConfigError, {"reason": "two\nlines"}),
        (ValueError, {"duration": -1}),
        (ValueError, {"duration": float("nan")}),
        (TypeError, {"duration": "10m"}),
        (TypeError, {"reason": 5}),
    ],
)
def test_r148_an_invalid_pause_is_rejected(directory, error, arguments):
    limiter = Limiter("own", rate="100/s")
    with pytest.raises(error):
        limiter.pause(**arguments)
    assert limiter.snapshot().paused is None


def test_r66_forcing_a_state_returns_the_change(directory):
    limiter = Limiter("tmdb")
    (change,) = limiter.force("sleep")
    assert (change.from_state, change.to_state, change.reason) == ("normal", "sleep", "forced")
    with pytest.raises(shmlimit.Blocked) as raised:
        limiter.try_acquire()
    assert (raised.value.reason, raised.value.state) == ("sleep", "sleep")
    (change,) = limiter.force("normal")
    assert change.to_state == "normal"
    assert limiter.force("clear-gate") == []
    with pytest.raises(ValueError, match="state must be one of normal, .*, not \"asleep\""):
        limiter.force("asleep")
    with pytest.raises(TypeError, match="state"):
        limiter.force(None)


def test_calls_on_a_closed_limiter_fail_and_its_grants_stay_valid(directory):
    watcher = Limiter("api", concurrency=4)
    with contextlib.closing(Limiter("api")) as limiter:
        grant = limiter.acquire()
        other = limiter.acquire()
    assert limiter.closed and "closed" in repr(limiter)
    calls = [
        limiter.acquire,
        limiter.try_acquire,
        limiter.snapshot,
        limiter.__enter__,
        limiter.limit(lambda: None),
        lambda: asyncio.run(limiter.acquire_async().__aenter__()),
        lambda: limiter.count_cache(True),
        lambda: limiter.record(200),
        lambda: limiter.set("concurrency", 1),
        lambda: limiter.force("clear_gate"),
        lambda: limiter.pause(),
        lambda: limiter.resume(),
        lambda: limiter.config,
        lambda: pickle.dumps(limiter),
    ]
    for call in calls:
        with pytest.raises(Error) as raised:
            call()
        assert raised.value.code == "closed"
    limiter.close()
    assert limiter.name == "api" and limiter.directory == directory
    assert watcher.snapshot().in_flight == 2
    assert grant.record(200).outcome_class == "ok"
    other.release()
    assert watcher.snapshot().in_flight == 0


def test_closing_detaches_from_the_limiter(directory):
    watcher = Limiter("api", **PLENTY)
    other = Limiter("api")
    assert len(watcher.snapshot().participants) == 2
    other.close()
    assert len(watcher.snapshot().participants) == 1


def test_a_pickled_limiter_keeps_its_current_settings(directory, tmp_path):
    limiter = Limiter("api", directory=tmp_path / "own", rate="5/s", group="g", ignore_environment=True)
    limiter.set("concurrency", 2)
    copy = pickle.loads(pickle.dumps(limiter))
    assert type(copy) is Limiter and copy.directory == tmp_path / "own"
    assert copy.config == limiter.config
    with limiter.acquire():
        assert copy.snapshot().in_flight == 1


def test_a_subclass_is_pickled_as_itself(directory):
    limiter = Mine("api", rate="5/s")
    assert type(pickle.loads(pickle.dumps(limiter))) is Mine


class Mine(Limiter):
    """A subclass as a program may define it."""


def test_a_handle_continues_after_its_file_was_deleted(directory):
    limiter = Limiter("api", **PLENTY)
    next(directory.glob("api.*")).unlink()
    # The handle notices the deleted file within a second.
    eventually(lambda: limiter.acquire().release() or shmlimit.limiters() == ["api"])
    with limiter.acquire():
        assert Limiter("api", create=False).snapshot().in_flight == 1


def test_r147_a_rate_alone_bounds_the_calls_of_any_period(directory):
    limiter = Limiter("api", rate="3/day")
    for _ in range(3):
        limiter.try_acquire().release()
    with pytest.raises(shmlimit.Refused) as refused:
        limiter.try_acquire()
    assert refused.value.retry_after > 86_000
    rule = limiter.snapshot().rules[0]
    assert (rule.algorithm, rule.remaining) == ("sliding_log", 0)
    limiter.set("rate", "5/day")
    assert limiter.snapshot().rules[0].remaining == 2
    limiter.set("rules.sliding_log.limit", 4)
    assert limiter.snapshot().rules[0].remaining == 1


def test_r109_a_change_by_the_environment_is_a_warning(directory, monkeypatch, caplog):
    Limiter("tmdb").close()
    assert not caplog.records
    monkeypatch.setenv("SHMLIMIT_CONCURRENCY", "2")
    limiter = Limiter("tmdb")
    said = "SHMLIMIT_CONCURRENCY=2 changed concurrency from 4 to 2 for every program that uses it"
    assert limiter.environment_changes == [said]
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("shmlimit", "WARNING", "tmdb: " + said)
    ]
    assert Limiter("tmdb").environment_changes == []
    assert len(caplog.records) == 1
