"""docs/migrating.md and docs/http-clients.md: every block runs, and the code before a migration does the same as
the code after it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shmlimit import Limiter

PAGE = Path(__file__).parents[4] / "docs" / "migrating.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
LINES = "".join(f"{page} 200\n" for page in range(10))
OLD = ["pyrate_limiter", "requests_ratelimiter", "aiolimiter", "ratelimit", "limits", "tenacity"]


def named(block):
    """The package that a block is about."""
    used = re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
    return next((name for name in used if name in OLD), "shmlimit")


def test_each_library_has_a_before_and_an_after():
    names = [named(block) for block in BLOCKS]
    assert [name for name in names if name != "shmlimit"] == OLD
    # The middleware adds one block.
    assert names.count("shmlimit") == len(OLD) + 1
    assert all(len(block.splitlines()) <= 20 for block in BLOCKS)


def numbers(version):
    return tuple(int(number) for number in version.split(".")[:2])


def is_current(name):
    """Whether the installed package is as new as the page says: old Python versions have only old packages."""
    said = re.search(rf"\b{name.replace('_', '-?')} (\d+\.\d+)", PAGE.read_text(), re.IGNORECASE)
    return numbers(importlib.metadata.version(name.replace("_", "-"))) >= numbers(said[1])


RUN = [block for block in BLOCKS if named(block) == "shmlimit" or is_current(named(block))]


def test_all_blocks_run_where_current_versions_exist():
    assert len(RUN) == len(BLOCKS) or sys.version_info < (3, 11)


@pytest.mark.parametrize("block", RUN, ids=[f"{number}-{named(block)}" for number, block in enumerate(RUN)])
def test_a_block_makes_its_ten_calls(block, server, tmp_path):
    assert "https://api.example.org" in block
    code = block.replace("https://api.example.org", server.url)
    environment = {**os.environ, "SHMLIMIT_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, timeout=60, text=True)
    assert (done.returncode, done.stdout) == (0, LINES)
    assert sorted(server.paths()) == sorted(f"/{page}" for page in range(10))


CLIENTS = re.findall(
    r"^```python\n(.*?)^```$", (PAGE.parent / "http-clients.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("block", CLIENTS, ids=range(len(CLIENTS)))
def test_a_block_of_the_http_clients_page_makes_its_two_calls(block, server, tmp_path):
    code = block.replace("https://api.example.org", server.url)
    environment = {**os.environ, "SHMLIMIT_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, timeout=60, text=True)
    assert (done.returncode, done.stdout) == (0, "200\n200\n")
    assert server.paths() == ["/1", "/2"]


AFTER = [block for block in BLOCKS if named(block) == "shmlimit"]


@pytest.mark.parametrize("block", AFTER, ids=range(len(AFTER)))
def test_the_code_after_a_migration_respects_a_429_of_another_process(block, server, tmp_path):
    limiter = Limiter("api", directory=tmp_path, rate="5/s")
    limiter.record(429, headers={"Retry-After": "3600"})
    code = block.replace("https://api.example.org", server.url)
    environment = {**os.environ, "SHMLIMIT_DIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) as process:
        while not limiter.snapshot().queue:
            assert process.poll() is None
            time.sleep(0.002)
        assert server.arrivals == []
        limiter.force("clear_gate")
        assert process.communicate(timeout=60)[0] == LINES
    assert (process.returncode, len(server.arrivals)) == (0, 10)
    counted = limiter.snapshot().condition.outcomes.ok
    assert counted == (10 if "record(" in block or "shmlimit." in block else 0)
