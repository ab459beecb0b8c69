"""Waiting in an event loop: asyncio's or trio's, whichever runs."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, Generator, Optional, Type

from ._shmlimit import Grant
from ._shmlimit import Limiter as _Limiter


class Acquiring:
    """A call on its way: await it for its Grant, or use it in an `async with` block. Cancelling leaves the queue."""

    __slots__ = ("_limiter", "_keywords", "_grant", "_entered")

    def __init__(self, limiter: _Limiter, keywords: Dict[str, Any]) -> None:
        self._limiter = limiter
        self._keywords = keywords
        self._grant: Optional[Grant] = None
        self._entered = False

    def __await__(self) -> Generator[Any, None, Grant]:
        return self._acquire().__await__()

    async def __aenter__(self) -> Grant:
        if self._entered:
            # It would forget the first one's grant, and with it give back the permit of a call that is being made.
            raise RuntimeError("this is in use: call acquire_async() for each `async with`")
        self._entered = True
        try:
            self._grant = await self._acquire()
        except BaseException:
            self._entered = False
            raise
        return self._grant

    async def __aexit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        grant, self._grant, self._entered = self._grant, None, False
        if grant is not None:
            grant.__exit__(exc_type, exc_value, traceback)

    async def _acquire(self) -> Grant:
        trio = _running_trio()
        if trio is not None:
            # Whatever is awaited in trio lets others go on, and notices that it was cancelled.
            await trio.lowlevel.checkpoint()
        begun = self._limiter._begin(**self._keywords)
        if isinstance(begun, Grant):
            return begun
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep if trio is None else trio.sleep
        try:
            while True:
                step = begun.step()
                if isinstance(step, Grant):
                    return step
                await sleep(step)
        finally:
            begun.cancel()


async def sleep_async(seconds: float) -> None:
    """Sleeps in asyncio or trio, whichever runs."""
    trio = _running_trio()
    await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


def _running_trio() -> Any:
    """The module trio, if it is its loop that runs."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):
        return None
    return trio
