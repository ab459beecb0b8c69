"""A limiter for httpx: transports for its clients, sync and async (asyncio and trio).

    import httpx
    from shmlimit.httpx import LimiterTransport

    client = httpx.Client(transport=LimiterTransport("tmdb", priority="user", timeout=10))

Every request that is sent, including redirects and retries, waits for its own grant. Status, headers and errors are
recorded for all programs that share the limiter. A 429, 5xx or network error is retried as the limiter's policy
says.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Iterator, Optional, Tuple, Union

try:
    import httpx
except ImportError as _error:
    raise ImportError("shmlimit.httpx needs httpx: pip install 'shmlimit[httpx]'") from _error

from ._pending import PendingAcquire, sleep_async
from ._calls import NEVER_SENT, UNKNOWN, Calls, Failure, Options, causes, is_short
from ._limiter import Limiter
from ._shmlimit import Grant

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AsyncLimiterTransport", "LimiterTransport"]


class _Transport:
    """The common part of both transports."""

    def __init__(self, limiter: Union[Limiter, str], **options: Unpack[Options]) -> None:
        self._calls: Calls[httpx.Request, httpx.Response] = Calls(limiter, **options)

    @property
    def limiter(self) -> Limiter:
        """The limiter."""
        return self._calls.limiter


class LimiterTransport(_Transport, httpx.BaseTransport):
    """A transport: every request waits for a grant of a limiter, and its outcome is recorded there.

    limiter: a Limiter, or the name of one.
    wrapped: the transport that sends; default: httpx.HTTPTransport(). Options that httpx.Client passes to its own
        transport (http2, verify, proxy …) belong there. Leave its `retries` at 0: they would not wait for grants.
    priority, cost: as in acquire(), or functions of the httpx.Request.
    actual_cost: a function of the httpx.Response that returns the real cost, by unit. With it the body is read
        before the client gets the response.
    timeout: seconds after which no new attempt begins. Without it the wait has no end.
    retries: attempts after the first; default: what the limiter's policy says for the priority. 0: none.
    retry_methods: the methods that are retried after 5xx and network errors; default: the idempotent methods. After
        429 every method is retried, unless the body cannot be sent again: only a body in memory (content=bytes,
        json=, data=) can.
    hold: "body": the permit is given back when the body was read or closed; "head": as soon as status and headers
        have arrived. After 429, 5xx and errors it is given back at once in any case.
    on_refused: "raise", or a function that makes another exception from a Refused.

    Raises Refused or Blocked if the first grant is not available in time. If no grant is available for a retry, the
    caller gets the response or exception of the latest attempt.
    """

    def __init__(
        self,
        limiter: Union[Limiter, str],
        wrapped: Optional[httpx.BaseTransport] = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(limiter, **options)
        self._wrapped = httpx.HTTPTransport() if wrapped is None else wrapped

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Waits for a grant, then sends the request."""
        return self._calls.make(_SyncClient(self._calls, self._wrapped), request)

    def close(self) -> None:
        """Closes the transport that sends; the limiter stays open."""
        self._wrapped.close()


class AsyncLimiterTransport(_Transport, httpx.AsyncBaseTransport):
    """LimiterTransport for httpx.AsyncClient, on asyncio and trio. Its arguments are the same; `wrapped` is an
    async transport."""

    def __init__(
        self,
        limiter: Union[Limiter, str],
        wrapped: Optional[httpx.AsyncBaseTransport] = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(limiter, **options)
        self._wrapped = httpx.AsyncHTTPTransport() if wrapped is None else wrapped

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Waits for a grant, then sends the request."""
        return await self._calls.make_async(_AsyncClient(self._calls, self._wrapped), request)

    async def aclose(self) -> None:
        """Closes the transport that sends; the limiter stays open."""
        await self._wrapped.aclose()


class _Client:
    """The operations of httpx for Calls that do not wait."""

    def __init__(self, calls: Calls[httpx.Request, httpx.Response]) -> None:
        self.limiter = calls.limiter
        self.reads = calls.actual_cost is not None

    def method(self, request: httpx.Request) -> str:
        return request.method

    def rewind(self, request: httpx.Request) -> bool:
        # Iterating over a file a second time gives an empty body, without an error. Only a body in memory is
        # certain to be sent completely.
        return isinstance(request.stream, httpx.ByteStream)

    def head(self, response: httpx.Response) -> Tuple[int, Any]:
        return response.status_code, response.headers.raw

    def failure(self, exception: BaseException) -> Failure:
        if isinstance(exception, (httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)):
            return NEVER_SENT
        if isinstance(exception, httpx.ConnectTimeout):
            return Failure("connect_timeout")
        if isinstance(exception, httpx.TimeoutException):
            return Failure("read_timeout")
        if isinstance(exception, httpx.ConnectError):
            kinds = list(causes(exception))
            if any(isinstance(one, socket.gaierror) for one in kinds):
                return Failure("dns")
            refused = any(isinstance(one, ssl.SSLCertVerificationError) for one in kinds)
            return Failure("connection", passing=not refused)
        if isinstance(exception, (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)):
            return Failure("connection")
        return UNKNOWN


class _SyncClient(_Client):
    def __init__(self, calls: Calls[httpx.Request, httpx.Response], wrapped: httpx.BaseTransport) -> None:
        super().__init__(calls)
        self.wrapped = wrapped

    def hold(self, response: httpx.Response, release: Callable[[], None]) -> None:
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _HeldStream(response.stream, release)

    def acquire(self, keywords: Dict[str, Any]) -> Grant:
        return self.limiter.acquire(**keywords)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def send(self, request: httpx.Request) -> httpx.Response:
        response = self.wrapped.handle_request(request)
        if self.reads:
            try:
                response.read()
            except BaseException:
                response.close()
                raise
        return response

    def discard(self, response: httpx.Response, drains: bool) -> None:
        try:
            if drains and is_short(response.headers):
                response.read()
        except httpx.HTTPError:
            pass
        finally:
            response.close()


class _AsyncClient(_Client):
    def __init__(self, calls: Calls[httpx.Request, httpx.Response], wrapped: httpx.AsyncBaseTransport) -> None:
        super().__init__(calls)
        self.wrapped = wrapped

    def hold(self, response: httpx.Response, release: Callable[[], None]) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _AsyncHeldStream(response.stream, release)

    def acquire(self, keywords: Dict[str, Any]) -> PendingAcquire:
        return self.limiter.acquire_async(**keywords)

    async def sleep(self, seconds: float) -> None:
        await sleep_async(seconds)

    async def send(self, request: httpx.Request) -> httpx.Response:
        response = await self.wrapped.handle_async_request(request)
        if self.reads:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    async def discard(self, response: httpx.Response, drains: bool) -> None:
        try:
            if drains and is_short(response.headers):
                await response.aread()
        except httpx.HTTPError:
            pass
        finally:
            await response.aclose()


class _HeldStream(httpx.SyncByteStream):
    """A body that holds a permit until it is closed, which httpx does at its end."""

    def __init__(self, inner: httpx.SyncByteStream, release: Callable[[], None]) -> None:
        self._inner = inner
        self._release = release

    def __iter__(self) -> Iterator[bytes]:
        yield from self._inner

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._release()


class _AsyncHeldStream(httpx.AsyncByteStream):
    """The same for an async body."""

    def __init__(self, inner: httpx.AsyncByteStream, release: Callable[[], None]) -> None:
        self._inner = inner
        self._release = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._release()
