"""Makes calls, records outcomes, and provokes refusals and errors many times; prints its memory and descriptors.

soak.py NAME TIMES
"""

import asyncio
import contextlib
import gc
import os
import sys

import shmlimit

HEADERS = {"Content-Type": "text/html", "X-RateLimit-Remaining": "7"}


def report():
    """Prints one line: resident kilobytes, descriptors."""
    gc.collect()
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1])
    print(resident * os.sysconf("SC_PAGESIZE") // 1024, len(os.listdir("/proc/self/fd")), flush=True)


def fails(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error:
        return
    raise AssertionError(f"{call} did not raise {error}")


def once(limiter):
    with limiter.acquire(priority="user", timeout=5, cost={"requests": 1}) as grant:
        fails(shmlimit.ConfigError, grant.record, 999)
        fails(TypeError, grant.record, 200, nonsense=1)
        grant.record(200, headers=HEADERS, latency=0.01)
        fails(shmlimit.Error, grant.release)
    try:
        with limiter.acquire():
            raise KeyError("inside")
    except KeyError:
        pass
    kept = limiter.try_acquire()
    # All permits are taken: refused.
    fails(shmlimit.Refused, limiter.try_acquire)
    fails(shmlimit.Refused, limiter.acquire, cost=1_000_000)
    fails(shmlimit.ConfigError, limiter.try_acquire, cost={"tokens": 1})
    fails(ValueError, limiter.try_acquire, priority="nobody")
    fails(TypeError, limiter.acquire, nonsense=1)
    kept.cancel()
    # This grant is discarded without a release.
    limiter.try_acquire()
    limiter.record(error="dns")
    limiter.record(200, headers=list(HEADERS.items()))


async def once_async(limiter):
    async with limiter.acquire_async() as grant:
        # All permits are taken: the call waits, and is cancelled.
        waiting = asyncio.ensure_future(limiter.acquire_async().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            pass
        grant.record(503, headers=HEADERS)


def seldom(name, limiter):
    """Makes the expensive calls."""
    limiter.snapshot().to_dict()
    shmlimit.limiters()
    limiter.config
    with limiter:
        pass
    with contextlib.closing(shmlimit.Limiter(name, create=False)) as again:
        again.try_acquire().release()
    fails(shmlimit.Error, again.acquire)
    fails(shmlimit.Error, shmlimit.Limiter, "no-such-limiter", create=False)
    limiter.limit(lambda: None)()


async def main(name, times):
    limiter = shmlimit.Limiter(name, create=False)
    for i in range(times):
        once(limiter)
        await once_async(limiter)
        if i % 20 == 0:
            seldom(name, limiter)
        if (i + 1) % (times // 20) == 0:
            report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
