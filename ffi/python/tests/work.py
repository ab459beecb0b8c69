"""The work of child processes, in a module that they can import: spawn and forkserver need that."""

import os

from shmlimit import Limiter, Refused


def take_all(limiter):
    """Makes calls until one is refused; returns how many were granted."""
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
    """Does the same with a limiter that it opens by name."""
    return take_all(Limiter(name, create=False))


def wait_for_turns(limiter, turns):
    """Waits for this many turns."""
    for _ in range(turns):
        with limiter.acquire(timeout=60):
            pass
    return turns


def refusal(limiter):
    """Raises an exception that must reach the parent process."""
    limiter.try_acquire()
