"""examples/python: a script that shows what a limiter does, and three programs that share `tmdb` with each other
and the command-line tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples" / "python"
SCRIPTS = ["fetch_requests.py", "fetch_httpx.py", "fetch_aiohttp.py"]


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "SHMLIMIT_DIR": str(tmp_path)}


@pytest.fixture
def tool(environment):
    """The command-line tool that scripts/languages/python-tests built."""
    path = environment.get("SHMLIMIT_BIN")
    assert path and Path(path).exists(), "run scripts/languages/python-tests, or set SHMLIMIT_BIN to the command-line tool"

    def run(*arguments, code=0):
        done = subprocess.run([path, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == code, done
        return done.stdout

    return run


def test_all_examples_are_run():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted([*SCRIPTS, "watch.py"])


def test_a_program_prints_what_its_limiter_does(environment):
    script = [sys.executable, str(EXAMPLES / "watch.py"), "12"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "refused by tokens_per_min: rate, again in " in done.stdout
    assert "tokens_per_min  3000 tokens per 60 s" in done.stdout


def start(script, environment, server, *movies):
    arguments = [sys.executable, str(EXAMPLES / script), server.url + "/3/movie/", *movies]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)


def test_the_programs_share_one_budget(server, environment, tool):
    movies = [str(movie) for movie in range(11, 31)]
    running = [start(script, environment, server, *movies) for script in SCRIPTS]
    for one in running:
        out, _ = one.communicate(timeout=60)
        assert one.returncode == 0
        assert sorted(out.splitlines()) == [f"{movie} 200 2" for movie in movies]
    tool("run", "tmdb", "--", "true")
    status = json.loads(tool("status", "tmdb", "--json"))
    assert (status["outcomes"]["ok"], status["in_flight"], len(server.arrivals)) == (60, 0, 60)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_429_of_one_program_stops_the_others(script, server, environment, tool, say):
    server.tell("/3/movie/11", say(429, {"Retry-After": "3600"}))
    told = start(script, environment, server, "11")
    # The script waits as long as the server says. So does the shell, which would not wait by itself.
    lines = []
    while not lines or lines[-1]["gate"] is None:
        assert told.poll() is None or script == "fetch_requests.py"
        text = tool_status(tool)
        if text is not None:
            lines.append(text)
    assert lines[-1]["gate"]["opens_in_ns"] > 3500e9
    tool("run", "tmdb", "--timeout", "0s", "--", "true", code=75)
    if script == "fetch_requests.py":
        # Its timeout of half a minute is too short, so it prints the server's answer.
        assert told.communicate(timeout=60)[0] == "11 429 2\n"
    else:
        assert told.poll() is None
        tool("force", "tmdb", "clear-gate")
        assert told.communicate(timeout=60)[0] == "11 200 2\n"
        assert server.paths() == ["/3/movie/11"] * 2


def tool_status(tool):
    """The limiter's status from the tool; None while the limiter does not exist."""
    text = tool("status", "--json")
    return json.loads(text) if text.strip() else None
