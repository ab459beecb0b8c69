"""A limiter for aiohttp: a client middleware (aiohttp 3.12 or newer).

    import aiohttp
    from shmlimit.aiohttp import limiter_middleware

    session = aiohttp.ClientSession(middlewares=[limiter_middleware("tmdb", priority="user", timeout=10)])

Every request that is sent, including redirects and retries, waits for its own grant. Status, headers and errors are
recorded for all programs that share the limiter. A 429, 5xx or network error is retried as the limiter's policy
says.
"""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from typing import Any, Awaitable, Callable, Collection, Dict, Literal, Optional, Tuple, Union

try:
    import aiohttp
except ImportError as _error:
    raise ImportError("shmlimit.aiohttp needs aiohttp: pip install 'shmlimit[aiohttp]'") from _error

if not hasattr(aiohttp, "ClientHandlerType"):
    raise ImportError(
        f"shmlimit.aiohttp needs aiohttp 3.12 or newer, which has client middlewares; this is {aiohttp.__version__}. "
        "Use `async with limiter.acquire_async() as grant` around each request, or pip install 'shmlimit[aiohttp]'"
    )

from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

from ._pending import PendingAcquire
from ._calls import (
    IDEMPOTENT,
    NEVER_SENT,
    UNKNOWN,
    Amount,
    Calls,
    Cost,
    Failure,
    OnRefused,
    PriorityOf,
    causes,
    is_short,
)
from ._limiter import Limiter

__all__ = ["limiter_middleware"]


def limiter_middleware(
    limiter: Union[Limiter, str],
    *,
    priority: Optional[PriorityOf] = None,
    cost: Optional[Cost] = None,
    actual_cost: Optional[Callable[[ClientResponse], Union[Amount, None, Awaitable[Optional[Amount]]]]] = None,
    timeout: Union[float, timedelta, None] = None,
    retries: Optional[int] = None,
    retry_methods: Collection[str] = IDEMPOTENT,
    hold: Literal["body", "head"] = "body",
    on_refused: OnRefused = "raise",
) -> Callable[[ClientRequest, ClientHandlerType], Awaitable[ClientResponse]]:
    """A middleware: every request waits for a grant of a limiter, and its outcome is recorded there.

    limiter: a Limiter, or the name of one.
    priority, cost: as in acquire(), or functions of the ClientRequest.
    actual_cost: a function of the ClientResponse, `def` or `async def`, that returns the real cost, by unit. With
        it the body is read before the session gets the response: `await response.json()` works in this function and
        later, reading response.content piece by piece does not.
    timeout: seconds after which no new attempt begins. Without it only the session's own timeout ends the wait:
        ClientTimeout.total runs while a request waits for its grant.
    retries: attempts after the first; default: what the limiter's policy says for the priority. 0: none. When a
        connection breaks, aiohttp itself sends an idempotent request once more; that attempt waits for a grant like
        any other.
    retry_methods: the methods that are retried after 5xx and network errors; default: the idempotent methods. After
        429 every method is retried, unless the body cannot be sent again.
    hold: "body": the permit is given back when the body was read or closed; "head": as soon as status and headers
        have arrived. After 429, 5xx and errors it is given back at once in any case. Use `async with
        session.get(…)`: aiohttp keeps the connection of a response that is neither read nor closed, and with it the
        permit.
    on_refused: "raise", or a function that makes another exception from a Refused.

    Raises Refused or Blocked if the first grant is not available in time. If no grant is available for a retry, the
    caller gets the response or exception of the latest attempt.
    """
    calls: Calls[ClientRequest, ClientResponse] = Calls(
        limiter,
        priority=priority,
        cost=cost,
        actual_cost=actual_cost,
        timeout=timeout,
        retries=retries,
        retry_methods=retry_methods,
        hold=hold,
        on_refused=on_refused,
    )

    async def limited(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        return await calls.make_async(_Client(calls, handler), request)

    return limited


class _Client:
    """The operations of aiohttp for Calls."""

    def __init__(self, calls: Calls[ClientRequest, ClientResponse], handler: ClientHandlerType) -> None:
        self.limiter = calls.limiter
        self.reads = calls.actual_cost is not None
        self.handler = handler

    def method(self, request: ClientRequest) -> str:
        return request.method

    def rewind(self, request: ClientRequest) -> bool:
        body = request.body
        if isinstance(body, (bytes, aiohttp.BytesPayload)):
            return True
        # Older versions do not report whether a body can be sent again.
        return not getattr(body, "consumed", True)

    def head(self, response: ClientResponse) -> Tuple[int, Any]:
        return response.status, response.headers

    def failure(self, exception: BaseException) -> Failure:
        if isinstance(exception, aiohttp.InvalidURL):
            return NEVER_SENT
        if isinstance(exception, aiohttp.ConnectionTimeoutError):
            return Failure("connect_timeout")
        if isinstance(exception, asyncio.TimeoutError):
            return Failure("read_timeout")
        if isinstance(exception, aiohttp.ClientConnectorCertificateError):
            return Failure("connection", passing=False)
        if isinstance(exception, (aiohttp.ClientError, OSError)):
            if any(isinstance(one, socket.gaierror) for one in causes(exception)):
                return Failure("dns")
            return Failure("connection")
        return UNKNOWN

    def hold(self, response: ClientResponse, release: Callable[[], None]) -> None:
        # The connection is released at the end of the body, or when the response is closed or dropped.
        connection = response.connection
        if connection is None:
            release()
        else:
            connection.add_callback(release)

    def acquire(self, keywords: Dict[str, Any]) -> PendingAcquire:
        return self.limiter.acquire_async(**keywords)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def send(self, request: ClientRequest) -> ClientResponse:
        response = await self.handler(request)
        if self.reads:
            try:
                await response.read()
            except BaseException:
                response.close()
                raise
        return response

    async def discard(self, response: ClientResponse, drains: bool) -> None:
        try:
            if drains and is_short(response.headers):
                await response.read()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
            pass
        finally:
            response.release()
