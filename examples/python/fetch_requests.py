#!/usr/bin/env python3
"""Fetches movies with requests, within the budget that all programs of this machine share.

    pip install './ffi/python[requests]'
    python examples/python/fetch_requests.py https://api.themoviedb.org/3/movie/ 11 12 13

Start several of these, and also `shmlimit run tmdb -- curl …`: together they stay within 35 calls a second, 4 at a
time. If one of them receives a 429, all of them wait.
"""

import sys

from shmlimit import Refused
from shmlimit.requests import LimiterSession

base, movies = sys.argv[1], sys.argv[2:]

# A user is waiting for these calls, so they go before background work. After half a minute it is too late.
with LimiterSession("tmdb", priority="user", timeout=30) as session:
    for movie in movies:
        try:
            answer = session.get(base + movie, timeout=10)
        except Refused as refused:
            sys.exit(f"{movie}: {refused}")
        print(movie, answer.status_code, len(answer.content), flush=True)
