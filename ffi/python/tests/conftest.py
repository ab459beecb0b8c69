"""Shared fixtures: a directory of limiters for each test, and waiting for a condition instead of a fixed time."""

import os
import sys
import time
from pathlib import Path

import pytest

import shmlimit


def unix_only(reason):
    """Skips a test on Windows."""
    return pytest.mark.skipif(sys.platform == "win32", reason=reason)


# A limiter that refuses nothing but counts permits, and a limiter with a single call per hour.
PLENTY = {"rate": "1000000/s", "burst": 1000000}
SCARCE = {"rate": "1/h", "burst": 1}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A separate directory of limiters for this test. Child processes use it too."""
    path = tmp_path / "limiters"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("SHMLIMIT_DIR", str(path))
    for name in list(os.environ):
        if name.startswith("SHMLIMIT_") and name not in ("SHMLIMIT_DIR", "SHMLIMIT_BIN"):
            monkeypatch.delenv(name)
    return path


@pytest.fixture
def plenty(directory):
    """A limiter with far more calls than a test makes, and any number of permits."""
    return shmlimit.Limiter("plenty", **PLENTY)


@pytest.fixture
def one(directory):
    """A limiter with one permit and no rate."""
    return shmlimit.Limiter("one", concurrency=1)


@pytest.fixture
def scarce(directory):
    """A limiter with one call per hour, which is used up."""
    limiter = shmlimit.Limiter("scarce", **SCARCE)
    limiter.acquire().release()
    return limiter


def eventually(what, limit=20.0):
    """Waits until `what()` is true; fails after the time limit."""
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, f"still not so after {limit} s"
        time.sleep(0.002)


def state(limiter):
    """The values that a refused or cancelled call must not change."""
    now = limiter.snapshot()
    return now.in_flight, len(now.queue), [rule.remaining for rule in now.rules]


def command():
    """The command-line tool that scripts/languages/python-tests built."""
    path = os.environ.get("SHMLIMIT_BIN")
    assert path and Path(path).exists(), "run scripts/languages/python-tests, or set SHMLIMIT_BIN to the command-line tool"
    return path
