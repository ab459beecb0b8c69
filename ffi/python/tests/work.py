"""What children do: importable, because spawn and forkserver import it."""

import os

from shmlimit import Limiter, Refused


def take_all(limiter):
    """Takes calls until there are none; says how many that were."""
    count = 0
    while True:
        try:
            limiter.try_acquire().release()
        except Refused:
            return count
        count += 1


def take_into(limiter, queue):
    queue.put((os.getpid(), take_all(limiter)))


def open_and_take(name):
    """The same for one who opens it by its name."""
    return take_all(Limiter(name, create=False))


def wait_for_turns(limiter, turns):
    """Waits for so many turns."""
    for _ in range(turns):
        with limiter.acquire(timeout=60):
            pass
    return turns


def refusal(limiter):
    """An exception that must cross to the parent."""
    limiter.try_acquire()
