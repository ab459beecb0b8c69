"""Retries of an HTTP client move a test clock instead of sleeping."""

import httpx

from shmlimit import Limiter
from shmlimit.httpx import LimiterTransport
from shmlimit.testing import TestClock


def test_the_wait_before_a_retry_passes_on_the_test_clock(directory):
    clock, answers = TestClock(), iter([503, 200])
    steady = "[backoff]\njitter = 'none'\nbase = '40s'\ncap = '1h'\n[[rules]]\nlimit = 1000\nperiod = '1m'"
    limiter = Limiter("http", directory=directory, config=steady, test_clock=clock)
    server = httpx.MockTransport(lambda request: httpx.Response(next(answers)))
    with httpx.Client(transport=LimiterTransport(limiter, server)) as client:
        assert client.get("http://api/").status_code == 200
    assert clock.elapsed() == 40
