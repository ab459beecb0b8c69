"""Error messages say what a Python program can do, in Python terms."""

import os
import re

import pytest

from shmlimit import Error, Limiter

from .conftest import unix_only


def message(*args, **keywords):
    with pytest.raises(Error) as raised:
        Limiter(*args, **keywords)
    return str(raised.value)


def test_a_missing_limiter_has_a_remedy_in_python(directory):
    assert message("api", create=False).endswith('make it with: Limiter("api", rate="35/s")')


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


@unix_only("modes of directories")
def test_an_unsafe_directory_has_a_remedy_in_python(tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    os.chmod(place, 0o777)
    text = message("api", directory=place, rate="1/s")
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
