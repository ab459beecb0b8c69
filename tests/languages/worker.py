"""Calls a server as fast as a limiter allows until a file appears.

worker.py threads|asyncio|fork|spawn|forkserver NAME PORT PATH STOP
"""

import asyncio
import http.client
import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import shmlimit

THREADS = 4
TASKS = 8
PROCESSES = 3


def call(limiter, port, path):
    with limiter.acquire() as grant:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("GET", path, headers={"Connection": "close"})
            answer = connection.getresponse()
            answer.read()
            grant.record(answer.status, headers=answer.headers)
        except (OSError, http.client.HTTPException):
            grant.record(error="connection")
        finally:
            connection.close()


def work(limiter, port, path, stop):
    while not os.path.exists(stop):
        call(limiter, port, path)


def threads(limiter, port, path, stop):
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, limiter, port, path, stop) for _ in range(THREADS)]:
            done.result()


async def call_async(limiter, port, path):
    async with limiter.acquire_async() as grant:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                status, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                headers = [tuple(line.split(b": ", 1)) for line in lines if line]
                grant.record(int(status.split()[1]), headers=headers)
            finally:
                writer.close()
        except (OSError, asyncio.IncompleteReadError):
            grant.record(error="connection")


def tasks(limiter, port, path, stop):
    async def task():
        while not os.path.exists(stop):
            await call_async(limiter, port, path)

    async def main():
        await asyncio.gather(*[task() for _ in range(TASKS)])

    asyncio.run(main())


def processes(method, limiter, port, path, stop):
    context = multiprocessing.get_context(method)
    children = [context.Process(target=work, args=(limiter, port, path, stop)) for _ in range(PROCESSES)]
    for one in children:
        one.start()
    for one in children:
        one.join()
    if any(one.exitcode for one in children):
        sys.exit(f"worker.py: children ended with {[one.exitcode for one in children]}")


def main():
    kind, name, port, path, stop = sys.argv[1:]
    # Processes of one program share their turns.
    group = kind if kind in multiprocessing.get_all_start_methods() else None
    limiter = shmlimit.Limiter(name, create=False, group=group)
    arguments = (limiter, int(port), path, stop)
    if kind == "threads":
        threads(*arguments)
    elif kind == "asyncio":
        tasks(*arguments)
    else:
        processes(kind, *arguments)


if __name__ == "__main__":
    main()
