"""Error messages say what a Python program can do, in Python terms."""

import os
import re

import pytest

from shmlimit import ConfigError, Error, Limiter, Refused

from .conftest import unix_only


def message(*args, **keywords):
    with pytest.raises(Error) as raised:
        Limiter(*args, **keywords)
    return str(raised.value)


def test_a_missing_limiter_has_a_remedy_in_python(directory):
    assert message("api", create=False).endswith('create it with: Limiter("api", rate="35/s")')


def test_a_mismatch_has_a_remedy_in_python(directory):
    limiter = Limiter("api", rate="10/min")
    text = message("api", rate="5/min")
    assert 'on_mismatch="adopt"' in text and 'on_mismatch="update"' in text and "limiter.set(" in text
    text = message("api", rate="5/min", algorithm="gcra")
    assert "replace=True" in text
    with pytest.raises(Error) as raised:
        limiter.set("rules.0.algorithm", "gcra")
    assert "limiter.config" in str(raised.value) and "replace=True" in str(raised.value)
    with pytest.raises(Error) as raised:
        limiter.set("rules.0.burst", 3)
    assert str(raised.value).endswith('Limiter(name, rate="10/min", burst=3, replace=True)')


@pytest.mark.parametrize(
    "old, new, missing",
    [
        ("10/s", ["12/s", "100/min"], "100/min"),
        (["13/s", "200/min"], ["13/s", "200/h"], "200/h"),
        ("10/s", "tokens=5/s", "tokens=5/s"),
    ],
)
def test_an_update_that_needs_another_rule_names_the_rate_without_a_rule(directory, old, new, missing):
    limiter = Limiter("api", rate=old)
    text = message("api", rate=new, on_mismatch="update")
    assert f"{missing} has no rule to change" in text and "rules cannot be added or removed" in text
    assert all(rate in text for rate in ([old] if isinstance(old, str) else old))
    assert 'Limiter("api", ..., replace=True)' in text and "shmlimit " not in text
    assert limits(limiter) == limits(Limiter("reference", rate=old))
    assert len(Limiter("api", rate=new, replace=True).snapshot().rules) == (1 if isinstance(new, str) else len(new))


def limits(limiter):
    return [(rule.unit, rule.limit, rule.period) for rule in limiter.snapshot().rules]


def test_forcing_a_limiter_without_a_breaker_names_the_setting_that_gives_it_one(directory):
    limiter = Limiter("api", rate="10/s")
    with pytest.raises(Error) as raised:
        limiter.force("throttle")
    text = str(raised.value)
    assert raised.value.code == "no_such_state" and "shmlimit " not in text and "pause()" not in text
    assert 'settings={"breaker.kind": "fsm"}' in text and '"consecutive"' in text
    with pytest.raises(Error, match=r"limiter\.pause\(\)"):
        limiter.force("offline")
    for kind, state in (("fsm", "throttle"), ("consecutive", "open")):
        made = Limiter("api", rate="10/s", settings={"breaker.kind": kind}, replace=True)
        assert [change.to_state for change in made.force(state)] == [state]


def test_a_misspelt_priority_is_a_config_error_that_lists_the_priorities_by_urgency(directory):
    limiter = Limiter("api", rate="10/s")
    with pytest.raises(ConfigError) as raised:
        limiter.acquire(priority="usr")
    text = str(raised.value)
    assert text.index("webhook (") < text.index("user (") < text.index("background (") < text.index("most urgent first")
    assert text.endswith('did you mean "user"?')
    with pytest.raises(ConfigError, match="webhook") as raised:
        limiter.acquire(priority="nothing like it")
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    "call, meant",
    [
        (lambda: Limiter("api", rate="1/s", on_mismatch="updat"), "update"),
        (lambda: Limiter("api").force("trottle"), "throttle"),
        (lambda: Limiter("api").record(error="dnss"), "dns"),
    ],
)
def test_a_misspelt_name_is_a_config_error_with_a_suggestion(directory, call, meant):
    Limiter("api", rate="10/s")
    with pytest.raises(ConfigError, match=f'did you mean "{meant}"') as raised:
        call()
    assert raised.value.code == "bad_value"


def test_a_refusal_says_who_paused_the_limiter_and_why(directory):
    limiter = Limiter("api", concurrency=1)
    limiter.pause(reason="database migration")
    with pytest.raises(Refused, match=rf"paused by .*, process {os.getpid()}; reason: database migration\)"):
        limiter.try_acquire()
    limiter.pause()
    with pytest.raises(Refused, match="no reason given"):
        limiter.try_acquire()


@unix_only("modes of directories")
def test_an_unsafe_directory_has_a_remedy_in_python(tmp_path):
    path = tmp_path / "open"
    path.mkdir()
    os.chmod(path, 0o777)
    text = message("api", directory=path, rate="1/s")
    assert "chmod" in text and "directory=" in text and "--dir" not in text


def test_a_foreign_file_has_a_remedy_in_python(directory):
    (directory / "api.shm").write_bytes(b"something else" * 500)
    assert "directory=" in message("api", rate="1/s")


def test_a_limiter_of_a_test_clock_has_a_remedy_in_python(directory):
    from shmlimit.testing import TestClock

    Limiter("api", directory=directory, rate="1/s", test_clock=TestClock()).close()
    assert "replace=True" in message("api", rate="1/s")


def test_no_message_of_the_library_names_an_option_of_the_tool(directory, tmp_path):
    """remedies.rs covers every remedy that the library's messages name, and the tests above check it. This test
    makes the errors that are easy to make, and looks for names that were missed."""
    Limiter("api", rate="10/min")
    texts = [
        message("nothing", create=False),
        message("api", rate="5/min"),
        message("api", burst=3, rate="10/min"),
        message("other", burst=3),
        message("other", rate=["1/s", "1/min"], burst=3),
        message("other", preset="nonsense"),
        message("other", directory=tmp_path / "a" / "b" / "c", create=False),
    ]
    for text in texts:
        assert not re.search(r"(^|\s)--[a-z]|shmlimit (init|rm|status|--)", text), text
