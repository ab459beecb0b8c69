#!/usr/bin/env python3
"""Fetches movies with aiohttp, concurrently, within the budget that all programs of this machine share.

    pip install './ffi/python[aiohttp]'
    python examples/python/fetch_aiohttp.py https://api.themoviedb.org/3/movie/ 11 12 13
"""

import asyncio
import sys

import aiohttp

from shmlimit.aiohttp import limiter_middleware


async def main(base: str, *movies: str) -> None:
    async with aiohttp.ClientSession(middlewares=[limiter_middleware("tmdb")]) as session:

        async def fetch(movie: str) -> None:
            async with session.get(base + movie) as answer:
                print(movie, answer.status, len(await answer.read()), flush=True)

        await asyncio.gather(*(fetch(movie) for movie in movies))


asyncio.run(main(*sys.argv[1:]))
