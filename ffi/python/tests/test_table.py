"""A snapshot as a table, for people."""

import asyncio
import dataclasses

from shmlimit import Limiter

from .conftest import eventually


def test_a_snapshot_prints_as_a_short_table(directory):
    limiter = Limiter("api", rate=["10/min", "tokens=5/h"], concurrency=1)
    held = limiter.acquire(cost={"tokens": 2})
    limiter.record(429, headers={"Retry-After": "30"})
    limiter.pause(reason="a <b>move</b>")

    async def main():
        waiting = asyncio.ensure_future(limiter.acquire_async(priority="user", cost={"tokens": 3}))
        while not limiter.snapshot().queue:
            await asyncio.sleep(0)
        now = limiter.snapshot()
        waiting.cancel()
        return now

    now = asyncio.run(main())
    held.release()
    lines = [line.split() for line in str(now).splitlines()]
    assert lines[0] == ["limiter", "api", "in", str(directory)]
    assert ["state", "normal"] in lines
    assert ["in", "flight", "1", "of", "1"] in lines
    assert ["requests_per_min", "10", "requests", "per", "60", "s", "9", "of", "10"] == lines[-5][:9]
    assert ["tokens_per_h", "5", "tokens", "per", "60", "min", "3", "of", "5"] == lines[-4][:9]
    gate = next(line for line in lines if line[:1] == ["gate"])
    assert gate[1:3] == ["closed", "by"] and 20 < float(gate[-2]) <= 30
    marked = dataclasses.replace(now.queue[0], program="<b>")
    shown = dataclasses.replace(now, queue=(marked,))._repr_html_()
    assert "<td>&lt;b&gt; (" in shown and "<b>" not in shown
    paused = next(line for line in lines if line[:1] == ["paused"])
    assert paused[-2:] == ["a", "<b>move</b>"]
    assert lines[-1][2] == "user" and lines[-1][-4:] == ["1", "requests,", "3", "tokens"]
    assert repr(now).startswith("Snapshot(name='api'")


def test_a_notebook_shows_the_same_and_escapes_it(directory):
    limiter = Limiter("api", rate="10/min")
    limiter.pause(reason="<script>alert(1)</script> & more")
    shown = limiter.snapshot()._repr_html_()
    assert shown.startswith("<table>") and shown.count("<table>") == shown.count("</table>") == 2
    assert "<td>10 requests per 60 s</td>" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in shown and "<script" not in shown


def test_control_characters_of_other_programs_do_not_reach_the_terminal(directory):
    limiter = Limiter("api", rate="10/min")
    limiter.pause(reason="a move")
    now = limiter.snapshot()
    assert now.paused is not None
    paused = dataclasses.replace(now.paused, program="a\x1b[2J\nb\u202e")
    shown = str(dataclasses.replace(now, paused=paused))
    assert "by a\\x1b[2J\\nb\\u202e," in shown and "\x1b" not in shown


def test_a_long_queue_is_shortened_in_the_table(directory):
    limiter = Limiter("api", concurrency=1)

    async def main():
        with limiter.acquire():
            tasks = [asyncio.ensure_future(limiter.acquire_async()) for _ in range(13)]
            while len(limiter.snapshot().queue) < 13:
                await asyncio.sleep(0)
            now = limiter.snapshot()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return now

    assert str(asyncio.run(main())).splitlines()[-1] == "and 3 more"
    eventually(lambda: not limiter.snapshot().queue)
