#!/usr/bin/env python3
"""Writes scripts that are too long to write by hand: generate.py steady | outage | bursts."""
import json
import sys

SECOND = 1_000_000_000


def say(t, op, **fields):
    print(json.dumps({"op": op, "t": t, **fields}))


def steady():
    """Twenty calls a second for a minute, each answered 80 ms later."""
    for i in range(1200):
        t = i * SECOND // 20
        say(t, "acquire")
        say(t + 80_000_000, "record", status=200)


def outage():
    """Ten calls a second for 70 minutes; from minute 2 to minute 4 the server fails."""
    t = 0
    while t < 70 * 60 * SECOND:
        say(t, "acquire")
        down = 2 * 60 * SECOND <= t < 4 * 60 * SECOND
        say(t + 40_000_000, "record", status=429 if down else 200)
        t += SECOND // 10


def bursts():
    """Eight calls at once every three seconds."""
    for i in range(20):
        say(i * 3 * SECOND, "acquire", n=8)


{"steady": steady, "outage": outage, "bursts": bursts}[sys.argv[1]]()
