"""The stubs: complete, right, and of use to who checks strictly."""

import subprocess
import sys

import pytest

SAMPLE = """
import asyncio
from datetime import datetime, timedelta, timezone
from typing import List, Optional

from shmlimit import Blocked, Grant, Limiter, Advice, Refused, Snapshot, limiters

limiter = Limiter("tmdb", directory="/tmp/x", settings={"rate": "35/s", "concurrency": 4})


@limiter.limit
def plain(a: int) -> str:
    return str(a)


@limiter.limit(priority="user", cost={"tokens": 3})
async def awaited(a: int) -> str:
    return str(a)


async def main() -> None:
    async with limiter.acquire_async(timeout=timedelta(seconds=5)) as grant:
        recorded: Advice = grant.record(200, headers={"a": "b"})
        wait: float = recorded.wait
    other: Grant = await limiter.acquire_async(deadline=datetime.now(timezone.utc))
    text: str = await awaited(3)
    with limiter.acquire(cost=1, timeout=0.5) as third:
        third.record(error="dns")
        whose: Snapshot = third.limiter.snapshot()
    with limiter as fourth:
        fourth.record(200)
    async with limiter as fifth:
        same: Grant = fifth
    snapshot: Snapshot = limiter.snapshot()
    remaining: Optional[int] = snapshot.remaining("user")
    names: List[str] = limiters()
    reveal_type(plain(3))
    reveal_type(await awaited(3))
    reveal_type(snapshot.rules[0].period)
    reveal_type(third)


try:
    asyncio.run(main())
except Blocked as blocked:
    eta: Optional[float] = blocked.eta
except Refused as refused:
    rule: Optional[str] = refused.rule
"""
WRONG = {
    'limiter.acquire(cost="1")': "arg-type",
    "limiter.acquire(foo=1)": "call-arg",
    "limiter.acquire().record(headers=3)": "arg-type",
    "limiter.acquire().limiter.name = 'x'": "misc",
    "limiter.snapshot().in_flight = 3": "misc",
    "limiter.limit(deadline=3)": "call-overload",
}


def mypy(*args, **keywords):
    return subprocess.run(
        [sys.executable, "-m", *args], capture_output=True, text=True, timeout=600, **keywords
    )


def test_a_strict_checker_is_content_and_knows_the_types(tmp_path):
    (tmp_path / "sample.py").write_text(SAMPLE)
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "sample.py", cwd=tmp_path)
    notes = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert "Success" in done.stdout, done.stdout
    assert [note.replace("builtins.", "") for note in notes[:3]] == ["str", "str", "float"]
    assert notes[3].endswith("Grant")


def test_a_checker_finds_what_is_wrong(tmp_path):
    lines = ['from shmlimit import Limiter\nlimiter = Limiter("x")', *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "wrong.py", cwd=tmp_path)
    for number, (line, code) in enumerate(WRONG.items(), start=3):
        assert any(f"wrong.py:{number}: error" in out and f"[{code}]" in out for out in done.stdout.splitlines()), (
            line,
            done.stdout,
        )


def test_the_stubs_say_what_the_module_has(tmp_path):
    # The half in Python is its own stub; with older versions the checker takes its imports from typing for mistakes.
    module = "shmlimit" if sys.version_info >= (3, 11) else "shmlimit._shmlimit"
    done = mypy("mypy.stubtest", module, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_itself_is_checked_strictly(tmp_path):
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "-p", "shmlimit", cwd=tmp_path)
    assert "Success" in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["Limiter", "Grant", "Advice"])
def test_every_public_method_has_a_docstring(name):
    import shmlimit

    kind = getattr(shmlimit, name)
    for attribute in dir(kind):
        if not attribute.startswith("_"):
            assert getattr(kind, attribute).__doc__, f"{name}.{attribute}"
