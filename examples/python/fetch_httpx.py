#!/usr/bin/env python3
"""Fetches movies with httpx, concurrently, within the budget that all programs of this machine share.

    pip install './ffi/python[httpx]'
    python examples/python/fetch_httpx.py https://api.themoviedb.org/3/movie/ 11 12 13
"""

import asyncio
import sys

import httpx

from shmlimit.httpx import AsyncLimiterTransport


async def main(base: str, *movies: str) -> None:
    transport = AsyncLimiterTransport("tmdb")
    async with httpx.AsyncClient(transport=transport, timeout=10) as client:

        async def fetch(movie: str) -> None:
            answer = await client.get(base + movie)
            print(movie, answer.status_code, len(answer.content), flush=True)

        await asyncio.gather(*(fetch(movie) for movie in movies))


asyncio.run(main(*sys.argv[1:]))
