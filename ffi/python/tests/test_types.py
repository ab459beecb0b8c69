"""The stubs are complete and correct, and strict type checkers accept them."""

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = """
import asyncio
from datetime import datetime, timedelta, timezone
from typing import List, Optional

from shmlimit import Advice, Blocked, Grant, Limiter, PendingAcquire, Priority, Reason, Refused, Snapshot, Transition
from shmlimit import WaitNotice, limiters



def refused(refusal: Refused) -> None:
    reason: Reason = refusal.reason


def waits(notice: WaitNotice) -> None:
    priority: Priority = notice.priority


def changes(transition: Transition) -> None:
    print(transition.to_state)


limiter = Limiter("tmdb", directory="/tmp/x", settings={"rate": "35/s", "concurrency": 4})
several = Limiter(
    "api",
    rate=["100/min", "tokens=30k/min"],
    on_mismatch="update",
    on_wait=waits,
    on_refused=refused,
    on_transition=changes,
)
single = Limiter("api", rate="100/min", algorithm="gcra")


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
    task: "asyncio.Task[Grant]" = asyncio.create_task(limiter.acquire_async())
    pending: PendingAcquire = limiter.acquire_async()
    grants: List[Grant] = await asyncio.gather(*[limiter.acquire_async() for _ in range(2)])
    soon: Grant = await asyncio.wait_for(pending, 3)
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
    if snapshot.condition.state == "sleep" and snapshot.rules[0].algorithm == "gcra":
        print(snapshot, limiter.metrics(), limiter.remove())
    names: List[str] = limiters()
    reveal_type(plain(3))
    reveal_type(await awaited(3))
    reveal_type(snapshot.rules[0].period)
    reveal_type(third)


try:
    asyncio.run(main())
except Blocked as blocked:
    eta: Optional[float] = blocked.eta
except Refused as refusal:
    rule: Optional[str] = refusal.rule
"""
WRONG = {
    'limiter.acquire(priority="usr")': "arg-type",
    'limiter.try_acquire(priority="usr")': "arg-type",
    'limiter.acquire_async(priority="usr")': "arg-type",
    'limiter.limit(priority="usr")': "call-overload",
    'limiter.record(200, priority="usr")': "arg-type",
    'limiter.record(error="timeout")': "arg-type",
    'limiter.acquire().record(error="timeout")': "arg-type",
    'limiter.force("half-open")': "arg-type",
    'limiter.snapshot().remaining("usr")': "arg-type",
    'limiter.snapshot().condition.state == "sleeping"': "comparison-overlap",
    'limiter.snapshot().rules[0].algorithm == "bucket"': "comparison-overlap",
    'Refused("x").reason == "rates"': "comparison-overlap",
    'Blocked("x").state == "closed"': "comparison-overlap",
    'limiter.record(200).outcome_class == "500"': "comparison-overlap",
    'Limiter("x", rate=100)': "arg-type",
    'Limiter("x", rate=[100])': "list-item",
    'Limiter("x", rate="1/s", algorithm="bucket")': "arg-type",
    'Limiter("x", rate="1/s", on_mismatch="ignore")': "arg-type",
    'Limiter("x", on_wait=lambda: None)': "misc",
    'Limiter("x", on_refused=lambda refusal: refusal.nonsense)': "attr-defined",
    "from shmlimit import Limitr": "attr-defined",
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


def test_a_strict_checker_accepts_the_sample_and_knows_the_types(tmp_path):
    (tmp_path / "sample.py").write_text(SAMPLE)
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "sample.py", cwd=tmp_path)
    notes = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert "Success" in done.stdout, done.stdout
    assert [note.replace("builtins.", "") for note in notes[:3]] == ["str", "str", "float"]
    assert notes[3].endswith("Grant")


def test_a_checker_finds_errors(tmp_path):
    lines = ['from shmlimit import Blocked, Limiter, Refused\nlimiter = Limiter("x")', *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    done = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "wrong.py", cwd=tmp_path)
    for number, (line, code) in enumerate(WRONG.items(), start=3):
        assert any(f"wrong.py:{number}: error" in out and f"[{code}]" in out for out in done.stdout.splitlines()), (
            line,
            done.stdout,
        )


def pyright(*paths, cwd):
    # pyright is a program for Node. The package of that name finds or downloads Node.
    return subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *paths],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
    )


def test_pyright_accepts_the_package_and_a_sample_and_finds_errors(tmp_path):
    import shmlimit

    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    (tmp_path / "sample.py").write_text(SAMPLE)
    done = pyright("sample.py", str(Path(shmlimit.__file__).parent), cwd=tmp_path)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr
    lines = ['from shmlimit import Blocked, Limiter, Refused\nlimiter = Limiter("x")', *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    done = pyright("wrong.py", cwd=tmp_path)
    for number, line in enumerate(WRONG, start=3):
        if "==" not in line:  # a warning of the strict mode
            assert f"wrong.py:{number}:" in done.stdout, (line, done.stdout)


def test_the_stubs_match_the_module(tmp_path):
    # The part in Python has no separate stub. For older Python versions the checker reports its imports from typing
    # as errors.
    module = "shmlimit" if sys.version_info >= (3, 11) else "shmlimit._shmlimit"
    # stubtest treats a Literal of several names as a Union; test_names.py compares them.
    (tmp_path / "allowed").write_text(r"shmlimit\._names\..*" + "\n")
    done = mypy("mypy.stubtest", module, "--allowlist", "allowed", "--ignore-unused-allowlist", cwd=tmp_path)
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
