"""The steps of an HTTP call through a limiter, independent of the HTTP client and the event loop.

A generator makes all decisions and yields one operation after another: wait for a grant, sleep, send, discard a
response. The code that runs the generator carries the operations out, and awaits them if the client is async.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Generator,
    Generic,
    Iterator,
    Literal,
    Mapping,
    Optional,
    Protocol,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

from ._errors import Refused
from ._limiter import Limiter
from ._names import NetError, Priority
from ._shmlimit import Grant, Advice

Request = TypeVar("Request")
Response = TypeVar("Response")
_Request = TypeVar("_Request", contravariant=True)
_Response = TypeVar("_Response", contravariant=True)
_Value = TypeVar("_Value")

Amount = Union[int, Mapping[str, int]]
"""A cost: a number of requests, or a mapping of units to whole numbers."""
Cost = Union[Amount, Callable[[Any], Optional[Amount]]]
"""A cost, or a function that computes it from the request."""
PriorityOf = Union[Priority, Callable[[Any], Optional[Priority]]]
"""A priority, or a function that computes it from the request."""
OnRefused = Union[Literal["raise"], Callable[[Refused], BaseException]]
"""How a refusal is raised: "raise" = as it is; a function returns another exception."""

IDEMPOTENT = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})
"""Methods that may be sent twice without harm (RFC 9110, 9.2.2)."""

_SHORT = 64 * 1024


class Options(TypedDict, total=False):
    """The arguments that all adapters take besides a limiter. The adapters' docstrings describe them."""

    priority: Optional[PriorityOf]
    cost: Optional[Cost]
    actual_cost: Optional[Callable[[Any], Any]]
    timeout: Union[float, timedelta, None]
    retries: Optional[int]
    retry_methods: Collection[str]
    hold: Literal["body", "head"]
    on_refused: OnRefused


@dataclass(frozen=True)
class Failure:
    """The meaning of an exception that a client raised."""

    error: Optional[NetError] = None
    """The kind of error to record; None = the exception says nothing about the server."""
    sent: bool = True
    """Whether the call may have reached the server."""
    passing: bool = True
    """Whether a retry may succeed."""


NEVER_SENT = Failure(sent=False)
UNKNOWN = Failure()


class Client(Protocol[_Request, _Response]):
    """The operations of one HTTP client. The methods that return Any carry something out; they are awaited if the
    client is async."""

    def method(self, request: _Request) -> str:
        """The HTTP method."""
        ...

    def rewind(self, request: _Request) -> bool:
        """Prepares the request to be sent once more. Returns False if its body is used up."""
        ...

    def head(self, response: _Response) -> Tuple[int, Any]:
        """The response's status and headers."""
        ...

    def failure(self, exception: BaseException) -> Failure:
        """The meaning of an exception that `send` raised."""
        ...

    def hold(self, response: _Response, release: Callable[[], None]) -> None:
        """Arranges that `release` is called when the body was read or closed."""
        ...

    def acquire(self, keywords: Dict[str, Any]) -> Any:
        """Waits for a grant."""
        ...

    def sleep(self, seconds: float) -> Any:
        """Sleeps."""
        ...

    def send(self, request: _Request) -> Any:
        """Sends the request and returns the response."""
        ...

    def discard(self, response: _Response, drains: bool) -> Any:
        """Discards a response. Reads the rest of its body if that is short and the connection is to be kept."""
        ...


class Calls(Generic[Request, Response]):
    """Makes calls: the part that all clients share."""

    def __init__(
        self,
        limiter: Union[Limiter, str],
        *,
        priority: Optional[PriorityOf] = None,
        cost: Optional[Cost] = None,
        actual_cost: Optional[Callable[[Any], Any]] = None,
        timeout: Union[float, timedelta, None] = None,
        retries: Optional[int] = None,
        retry_methods: Collection[str] = IDEMPOTENT,
        hold: Literal["body", "head"] = "body",
        on_refused: OnRefused = "raise",
    ) -> None:
        if retries is not None and (isinstance(retries, bool) or not isinstance(retries, int)):
            raise TypeError(f"retries must be a whole number or None, not {type(retries).__qualname__}")
        if retries is not None and retries < 0:
            raise ValueError(f"retries must be 0 or more, not {retries}")
        if hold not in ("body", "head"):
            raise ValueError(f'hold must be "body" or "head", not {hold!r}')
        if on_refused != "raise" and not callable(on_refused):
            raise ValueError(f'on_refused must be "raise" or a function, not {on_refused!r}')
        if isinstance(retry_methods, str):
            raise TypeError("retry_methods must be a collection of methods, not str")
        self.limiter = Limiter(limiter) if isinstance(limiter, str) else limiter
        self.priority = priority
        self.cost = cost
        self.actual_cost = actual_cost
        self.timeout = _seconds(timeout)
        self.retries = retries
        self.retry_methods = frozenset(method.upper() for method in retry_methods)
        self.hold = hold
        self.on_refused = on_refused

    def make(self, client: Client[Request, Response], request: Request) -> Response:
        """Makes the call of a synchronous client."""
        steps = self._steps(client, request)
        try:
            step = next(steps)
            while True:
                try:
                    result = step()
                except BaseException as exception:
                    step = steps.throw(exception)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            response: Response = end.value
            return response

    async def make_async(self, client: Client[Request, Response], request: Request) -> Response:
        """Makes the call of an async client."""
        steps = self._steps(client, request)
        try:
            step = next(steps)
            while True:
                try:
                    result = await step()
                except GeneratorExit:
                    # No event loop runs this coroutine any more, so nothing can be awaited. Dropped grants are
                    # released.
                    steps.close()
                    raise
                except BaseException as exception:
                    step = steps.throw(exception)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            response: Response = end.value
            return response

    def _steps(
        self, client: Client[Request, Response], request: Request
    ) -> Generator[Callable[[], Any], Any, Response]:
        """One call with its retries. Between two attempts it holds the result of the latest one: a response or an
        error."""
        keywords = self._keywords(request)
        ends = None if self.timeout is None else time.monotonic() + self.timeout
        response: Optional[Response] = None
        error: Optional[BaseException] = None
        wait = 0.0
        attempt = 0
        while True:
            attempt += 1
            try:
                grant: Grant = yield from self._waits(client, keywords, ends, wait)
            except Refused as refusal:
                # The server's answer is more useful to the caller than the refusal of a retry.
                if response is not None:
                    return response
                if error is not None:
                    raise error
                raise self._raised(refusal)
            except GeneratorExit:
                raise
            except BaseException:
                if response is not None:
                    yield partial(client.discard, response, False)
                raise
            if response is not None:
                done_with, response = response, None
                try:
                    yield partial(client.discard, done_with, True)
                except BaseException:
                    grant.cancel()
                    raise
            error = None
            sent_at = time.monotonic()
            try:
                response = yield partial(client.send, request)
                assert response is not None
            except GeneratorExit:
                raise
            except BaseException as exception:
                failure = client.failure(exception)
                recorded = _record_failure(grant, failure, time.monotonic() - sent_at, attempt)
                if recorded is None or not failure.passing:
                    raise
                if not self._again(client, request, recorded, attempt, ends):
                    raise
                error = exception
            else:
                try:
                    latency = time.monotonic() - sent_at
                    recorded = yield from self._record(client, response, grant, latency, attempt)
                except GeneratorExit:
                    raise
                except BaseException:
                    if not grant.done:
                        grant.release()
                    yield partial(client.discard, response, False)
                    raise
                if recorded is None or not self._again(client, request, recorded, attempt, ends):
                    return response
            # During a Retry-After the gate is closed, for this call and all others: the queue does the waiting.
            wait = 0.0 if recorded.wait_source == "retry_after" else recorded.wait

    def _waits(
        self, client: Client[Request, Response], keywords: Dict[str, Any], ends: Optional[float], wait: float
    ) -> Generator[Callable[[], Any], Any, Grant]:
        """Waits for the grant, after the retry's delay `wait`, and then for the delay of a leaky bucket."""
        if wait > 0 and not self.limiter._passes(wait):
            yield partial(client.sleep, wait)
        if ends is not None:
            keywords = {**keywords, "timeout": max(0.0, ends - time.monotonic())}
        grant: Grant = yield partial(client.acquire, keywords)
        if grant.delay > 0 and not self.limiter._passes(grant.delay):
            try:
                yield partial(client.sleep, grant.delay)
            except BaseException:
                grant.cancel()
                raise
        return grant

    def _keywords(self, request: Request) -> Dict[str, Any]:
        keywords: Dict[str, Any] = {}
        cost, priority = _resolved(self.cost, request), _resolved(self.priority, request)
        if cost is not None:
            keywords["cost"] = cost
        if priority is not None:
            keywords["priority"] = priority
        return keywords

    def _raised(self, refusal: Refused) -> BaseException:
        return self.on_refused(refusal) if callable(self.on_refused) else refusal

    def _record(
        self,
        client: Client[Request, Response],
        response: Response,
        grant: Grant,
        latency: float,
        attempt: int,
    ) -> Generator[Callable[[], Any], Any, Optional[Advice]]:
        """Records how the call ended, for all processes. Its permit is given back now or at the end of the body."""
        status, headers = client.head(response)
        if not 100 <= status <= 599:
            # Some servers send status codes that no standard defines. Their meaning is unknown, so nothing is
            # recorded.
            self._hold(client, response, grant)
            return None
        failed = status == 429 or status >= 500
        said: Dict[str, Any] = {"headers": headers, "latency": latency, "attempt": attempt}
        if self.actual_cost is not None and not failed:
            try:
                cost = self.actual_cost(response)
                if inspect.isawaitable(cost):
                    cost = yield partial(_itself, cost)
            except BaseException:
                grant.record(status, **said)
                raise
            if cost is None:
                return grant.record(status, **said)
            try:
                return grant.record(status, **said, cost=cost)
            except BaseException:
                # The cost is invalid, but the outcome is known: record it without the cost.
                if not grant.done:
                    grant.record(status, **said)
                raise
        if failed or status == 101 or self.hold == "head":
            return grant.record(status, **said)
        # Grant.record would give the permit back. The headers must be recorded now, not after a long body.
        recorded = grant._note(status, **said)
        self._hold(client, response, grant)
        return recorded

    def _hold(self, client: Client[Request, Response], response: Response, grant: Grant) -> None:
        if self.hold == "head":
            grant.release()
        else:
            # Releasing twice does no harm, and a grant that is dropped releases its permit.
            client.hold(response, partial(grant.__exit__, None, None, None))

    def _again(
        self,
        client: Client[Request, Response],
        request: Request,
        recorded: Advice,
        attempt: int,
        ends: Optional[float],
    ) -> bool:
        """Whether to try again (R68, R76)."""
        if recorded.wait_source is None:
            return False
        if not (recorded.retry if self.retries is None else attempt <= self.retries):
            return False
        # The server did not process a request that it answered with 429. Any other request may have been processed,
        # and a retry could process it twice.
        if recorded.outcome_class != "429" and client.method(request).upper() not in self.retry_methods:
            return False
        if ends is not None and time.monotonic() + recorded.wait > ends:
            return False
        return client.rewind(request)


def _resolved(value: Union[_Value, Callable[[Any], Optional[_Value]], None], request: object) -> Optional[_Value]:
    result: Any = value(request) if callable(value) else value
    resolved: Optional[_Value] = result
    return resolved


def _seconds(timeout: Union[float, timedelta, None]) -> Optional[float]:
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"timeout must be seconds, a timedelta or None, not {type(timeout).__qualname__}")
    if not 0 <= seconds:
        raise ValueError(f"timeout must be 0 or more, not {timeout}")
    # A timeout longer than about 30 years means no timeout.
    return None if seconds > 1e9 else float(seconds)


def _itself(value: _Value) -> _Value:
    return value


def _record_failure(grant: Grant, failure: Failure, latency: float, attempt: int) -> Optional[Advice]:
    """Gives the permit back, and records what the failure says about the server."""
    if failure.error is not None:
        return grant.record(error=failure.error, latency=latency, attempt=attempt)
    if failure.sent:
        grant.release()
    else:
        grant.cancel()
    return None


def causes(exception: BaseException) -> Iterator[BaseException]:
    """An exception and the exceptions that caused it, as far as they are stored in it."""
    seen: Set[int] = set()
    left = [exception]
    while left and len(seen) < 32:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = [one.__cause__, one.__context__, getattr(one, "reason", None), getattr(one, "os_error", None)]
        inner += [*one.args, *getattr(one, "exceptions", ())]
        left += [other for other in inner if isinstance(other, BaseException)]


def is_short(headers: Mapping[str, str]) -> bool:
    """Whether reading the rest of a response is less work than opening a new connection."""
    length = headers.get("Content-Length", "")
    return length.isascii() and length.isdigit() and int(length[:9]) <= _SHORT
