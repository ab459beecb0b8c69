"""For tests of programs that use a limiter: a clock that a test moves, so that no test sleeps.

    from shmlimit import Limiter
    from shmlimit.testing import TestClock

    def test_the_eleventh_call_waits(tmp_path):
        clock = TestClock()
        limiter = Limiter("api", directory=tmp_path / "limiters", rate="10/min", test_clock=clock)
        for _ in range(11):
            limiter.acquire().release()
        assert clock.elapsed() == 60
"""

from ._shmlimit import TestClock

__all__ = ["TestClock"]
