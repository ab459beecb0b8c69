"""What the tests share: a directory of limiters each, and waiting for a state instead of for a time."""

import os
import sys
import time
from pathlib import Path

import pytest

import shmlimit


def unix_only(reason):
    """For what Windows does not have."""
    return pytest.mark.skipif(sys.platform == "win32", reason=reason)


# A limiter that lets everything through but counts permits; and one that has a single call for an hour.
PLENTY = {"rate": "1000000/s", "burst": 1000000}
SCARCE = {"rate": "1/h", "burst": 1}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A directory of its own, which children find too."""
    path = tmp_path / "limiters"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("SHMLIMIT_DIR", str(path))
    for name in list(os.environ):
        if name.startswith("SHMLIMIT_") and name not in ("SHMLIMIT_DIR", "SHMLIMIT_BIN"):
            monkeypatch.delenv(name)
    return path


@pytest.fixture
def plenty(directory):
    """Far more than a test can use, and any number of permits."""
    return shmlimit.Limiter("plenty", **PLENTY)


@pytest.fixture
def one(directory):
    """One permit, no rate."""
    return shmlimit.Limiter("one", concurrency=1)


@pytest.fixture
def scarce(directory):
    """One call an hour, and that is used up."""
    limiter = shmlimit.Limiter("scarce", **SCARCE)
    limiter.acquire().release()
    return limiter


def eventually(what, limit=20.0):
    """Waits until `what()` is true; fails if that takes longer than anything could."""
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, f"still not so after {limit} s"
        time.sleep(0.002)


def state(limiter):
    """What must be the same before and after something that did not happen."""
    now = limiter.snapshot()
    return now.in_flight, len(now.queue), [rule.remaining for rule in now.rules]


def command():
    """The command-line tool: the one that scripts/languages/python-tests built."""
    path = os.environ.get("SHMLIMIT_BIN")
    assert path and Path(path).exists(), "run scripts/languages/python-tests, or set SHMLIMIT_BIN to the command-line tool"
    return path
