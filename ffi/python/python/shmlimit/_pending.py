"""Waiting in an event loop of asyncio or trio."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Dict, Generator, Optional, Type

from ._shmlimit import EnqueuedCall, Grant
from ._shmlimit import Limiter as _Limiter


class PendingAcquire(Coroutine[Any, Any, Grant]):
    """A call that has not been granted yet. It is a coroutine: await it for its Grant, use it in an `async with`
    block, or pass it to `asyncio.create_task`, `gather`, `wait_for`. It can be awaited once. Cancelling it leaves
    the queue."""

    __slots__ = ("_coroutine", "_grant")

    def __init__(self, limiter: _Limiter, keywords: Dict[str, Any]) -> None:
        # A native coroutine: Python itself warns if it is never awaited.
        self._coroutine = acquire_async(limiter, keywords)
        self._grant: Optional[Grant] = None

    def send(self, value: Any, /) -> Any:
        """Runs it until it waits again. For event loops."""
        return self._coroutine.send(value)

    def throw(self, *exception: Any) -> Any:
        """Raises an exception at the point where it waits. For event loops."""
        return self._coroutine.throw(*exception)

    def close(self) -> None:
        """Ends it: the call leaves the queue."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, None, Grant]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> Grant:
        self._grant = await self._coroutine
        return self._grant

    async def __aexit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        grant, self._grant = self._grant, None
        if grant is not None:
            grant.__exit__(exc_type, exc_value, traceback)

    def __repr__(self) -> str:
        return f"<shmlimit.PendingAcquire of {self._coroutine!r}>"


async def acquire_async(limiter: _Limiter, keywords: Dict[str, Any]) -> Grant:
    """Waits for the grant in the running event loop."""
    trio = _running_trio()
    if trio is not None:
        # By trio's rules every awaited function lets other tasks run, and notices cancellation.
        await trio.lowlevel.checkpoint()
    begun = limiter._begin(**keywords)
    if isinstance(begun, Grant):
        return begun
    return await _granted(begun)


# Python's warning about a coroutine that was never awaited shows this name, which is what the caller wrote.
acquire_async.__qualname__ = "Limiter.acquire_async"


async def _granted(call: EnqueuedCall) -> Grant:
    try:
        while True:
            step = call.step()
            if isinstance(step, Grant):
                return step
            await sleep_async(step)
    finally:
        call.cancel()


async def sleep_async(seconds: float) -> None:
    """Sleeps in the running event loop, asyncio's or trio's."""
    trio = _running_trio()
    if trio is not None:
        await trio.sleep(seconds)
        return
    import asyncio

    await asyncio.sleep(seconds)


def _running_trio() -> Any:
    """The module trio, if trio's event loop is running."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):
        return None
    return trio
