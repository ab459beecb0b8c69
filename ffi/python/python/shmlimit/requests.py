"""A limiter for requests: mount a LimiterAdapter, or use a LimiterSession.

    import requests
    from shmlimit.requests import LimiterAdapter

    session = requests.Session()
    session.mount("https://api.themoviedb.org", LimiterAdapter("tmdb", priority="user", timeout=10))

Every request that is sent, including redirects and retries, waits for its own grant. Status, headers and errors are
recorded for all programs that share the limiter. A 429, 5xx or network error is retried as the limiter's policy
says.
"""

from __future__ import annotations

import socket
import ssl
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Collection, Dict, Literal, Mapping, Optional, Tuple, Union

try:
    import requests
    from requests import PreparedRequest, Response
    from requests.adapters import HTTPAdapter
    from requests.exceptions import (
        ChunkedEncodingError,
        ConnectionError,
        ConnectTimeout,
        InvalidHeader,
        InvalidProxyURL,
        InvalidURL,
        ReadTimeout,
        SSLError,
        UnrewindableBodyError,
    )
    from requests.utils import rewind_body
    from urllib3.exceptions import ReadTimeoutError
except ImportError as _error:
    raise ImportError("shmlimit.requests needs requests: pip install 'shmlimit[requests]'") from _error

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
from ._shmlimit import Grant

__all__ = ["LimiterAdapter", "LimiterSession"]


class LimiterAdapter(HTTPAdapter):
    """A transport adapter: every request waits for a grant of a limiter, and its outcome is recorded there.

    limiter: a Limiter, or the name of one.
    priority, cost: as in acquire(), or functions of the PreparedRequest.
    actual_cost: a function of the Response that returns the real cost, by unit. The body was read before, unless
        the request has stream=True.
    timeout: seconds after which no new attempt begins. Without it the wait has no end.
    retries: attempts after the first; default: what the limiter's policy says for the priority. 0: none.
    retry_methods: the methods that are retried after 5xx and network errors; default: the idempotent methods. After
        429 every method is retried, unless the body cannot be sent again.
    hold: "body": the permit is given back when the body was read or closed; "head": as soon as status and headers
        have arrived. After 429, 5xx and errors it is given back at once in any case.
    on_refused: "raise", or a function that makes another exception from a Refused.
    Other keywords are those of HTTPAdapter, without max_retries: its retries would not wait for grants.

    Raises Refused or Blocked if the first grant is not available in time. If no grant is available for a retry, the
    caller gets the response or exception of the latest attempt.
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_calls"]

    def __init__(
        self,
        limiter: Union[Limiter, str],
        *,
        priority: Optional[PriorityOf] = None,
        cost: Optional[Cost] = None,
        actual_cost: Optional[Callable[[Response], Optional[Amount]]] = None,
        timeout: Union[float, timedelta, None] = None,
        retries: Optional[int] = None,
        retry_methods: Collection[str] = IDEMPOTENT,
        hold: Literal["body", "head"] = "body",
        on_refused: OnRefused = "raise",
        **keywords: Any,
    ) -> None:
        if keywords.get("max_retries"):
            raise ValueError("max_retries would send requests that the limiter does not know of; use retries")
        super().__init__(**keywords)
        self._calls: Calls[PreparedRequest, Response] = Calls(
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

    @property
    def limiter(self) -> Limiter:
        """The limiter."""
        return self._calls.limiter

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Union[bool, str] = True,
        cert: Any = None,
        proxies: Optional[Mapping[str, str]] = None,
    ) -> Response:
        """Waits for a grant, then sends the request as HTTPAdapter does."""
        keywords = {"stream": stream, "timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        return self._calls.make(_Client(self, self._calls, keywords), request)


class LimiterSession(requests.Session):
    """A requests.Session whose requests all go through one limiter. The arguments are those of LimiterAdapter."""

    def __init__(self, limiter: Union[Limiter, str], **keywords: Any) -> None:
        super().__init__()
        adapter = LimiterAdapter(limiter, **keywords)
        self.mount("https://", adapter)
        self.mount("http://", adapter)


class _Client:
    """The operations of requests for Calls."""

    def __init__(
        self, adapter: LimiterAdapter, calls: Calls[PreparedRequest, Response], keywords: Dict[str, Any]
    ) -> None:
        self.adapter = adapter
        self.limiter = calls.limiter
        self.reads = calls.actual_cost is not None and not keywords["stream"]
        self.keywords = keywords

    def method(self, request: PreparedRequest) -> str:
        return request.method or ""

    def rewind(self, request: PreparedRequest) -> bool:
        body: Any = request.body
        if body is None or isinstance(body, (bytes, bytearray, str)):
            return True
        if not isinstance(getattr(request, "_body_position", None), int):
            return False
        try:
            rewind_body(request)
        except UnrewindableBodyError:
            return False
        return True

    def head(self, response: Response) -> Tuple[int, Any]:
        return response.status_code, response.headers

    def failure(self, exception: BaseException) -> Failure:
        if isinstance(exception, (InvalidURL, InvalidProxyURL, InvalidHeader)):
            return NEVER_SENT
        if isinstance(exception, ConnectTimeout):
            return Failure("connect_timeout")
        if isinstance(exception, ReadTimeout):
            return Failure("read_timeout")
        if isinstance(exception, SSLError):
            refused = any(isinstance(one, ssl.SSLCertVerificationError) for one in causes(exception))
            return Failure("connection", passing=not refused)
        if isinstance(exception, (ConnectionError, ChunkedEncodingError)):
            kinds = list(causes(exception))
            if any(isinstance(one, socket.gaierror) for one in kinds):
                return Failure("dns")
            if any(isinstance(one, ReadTimeoutError) for one in kinds):
                return Failure("read_timeout")
            return Failure("connection")
        # HTTPAdapter checks certificates and timeouts before it opens a connection.
        if isinstance(exception, (OSError, ValueError)) and not isinstance(exception, requests.RequestException):
            return NEVER_SENT
        return UNKNOWN

    def hold(self, response: Response, release: Callable[[], None]) -> None:
        raw = response.raw
        if getattr(raw, "closed", True) or getattr(raw, "length_remaining", None) == 0:
            release()
            return
        # urllib3 calls release_conn at the end of a body, and requests calls it when a response is closed.
        for name in ("release_conn", "close"):
            _call_after(raw, name, release)

    def acquire(self, keywords: Dict[str, Any]) -> Grant:
        return self.limiter.acquire(**keywords)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def send(self, request: PreparedRequest) -> Response:
        response = HTTPAdapter.send(self.adapter, request, **self.keywords)
        if self.reads:
            try:
                response.content
            except BaseException:
                response.close()
                raise
        return response

    def discard(self, response: Response, drains: bool) -> None:
        try:
            if drains and is_short(response.headers):
                response.content
        except (requests.RequestException, OSError):
            pass
        finally:
            response.close()


def _call_after(raw: Any, name: str, release: Callable[[], None]) -> None:
    """Arranges that `release` is called after a method of one object. It does not keep the object alive: an object
    that is dropped must release its grant."""
    method = getattr(type(raw), name, None)
    if method is None:
        return
    known = weakref.ref(raw)

    def called(*args: Any, **keywords: Any) -> Any:
        try:
            # Python closes a dropped file when nothing refers to it any more, and so do the files inside it.
            here = known()
            return None if here is None else method(here, *args, **keywords)
        finally:
            release()

    setattr(raw, name, called)
