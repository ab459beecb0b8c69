"""A server that counts calls, and one way to call it with each client."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import pytest

from shmlimit import Limiter

CLIENTS = ["requests", "httpx", "httpx-asyncio", "httpx-trio", "aiohttp"]


@dataclass
class Arrival:
    """A request as the server received it."""

    method: str
    path: str
    headers: Dict[str, str]
    body: bytes
    connection: int


@dataclass
class Say:
    """One answer that the server will give. Special answers: the server closes the connection, or stays silent
    until it is released, and then closes the connection or answers."""

    status: int = 200
    headers: Dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    drops: bool = False
    hangs: bool = False
    waits: bool = False
    streams: bool = False


class Server(ThreadingHTTPServer):
    """Gives the planned answers of each path, otherwise 200, and stores the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.arrivals: List[Arrival] = []
        self.answers: Dict[str, List[Say]] = {}
        self.released = threading.Event()
        self.reached = threading.Event()
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors: in some tests clients disconnect."""

    def tell(self, path: str, *answers: Say) -> str:
        self.answers[path] = list(answers)
        return self.url + path

    def paths(self) -> List[str]:
        with self.lock:
            return [one.path for one in self.arrivals]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        body = self._body()
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.arrivals.append(
                Arrival(self.command, path, dict(self.headers), body, self.client_address[1])
            )
            answers = self.server.answers.get(path)
            say = answers.pop(0) if answers else Say()
        if say.drops:
            # Resets the connection instead of closing it: no answer at all.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        if say.hangs:
            self.server.reached.set()
            self.server.released.wait(30)
            self.close_connection = True
            return
        if say.waits:
            self.server.reached.set()
            self.server.released.wait(30)
        self.send_response(say.status)
        for name, value in say.headers.items():
            self.send_header(name, value)
        has_body = say.status not in (204, 304)
        if has_body:
            self.send_header("Content-Length", str(len(say.body) * (2 if say.streams else 1)))
        self.end_headers()
        if self.command == "HEAD" or not has_body:
            return
        self.wfile.write(say.body)
        if say.streams:
            self.wfile.flush()
            self.server.released.wait(30)
            self.wfile.write(say.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while True:
                size = int(self.rfile.readline(), 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@dataclass
class Answer:
    status: int
    body: bytes
    headers: Dict[str, str]


Outcome = Union[Answer, BaseException]
Job = Tuple[str, str, Dict[str, Any]]


class Caller:
    """Makes calls with one of the clients. Each list of jobs goes through one session: one after another, or all at
    once."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.is_async = kind not in ("requests", "httpx")

    def call(
        self, limiter: Any, method: str, url: str, options: Optional[Dict[str, Any]] = None, **job: Any
    ) -> Outcome:
        return self.all(limiter, [(method, url, job)], options)[0]

    def all(
        self,
        limiter: Any,
        jobs: List[Job],
        options: Optional[Dict[str, Any]] = None,
        together: bool = False,
        on_stream: Optional[Callable[[], None]] = None,
    ) -> List[Outcome]:
        options = options or {}
        if not self.is_async:
            return self._sync(limiter, jobs, options, together, on_stream)
        if self.kind == "httpx-trio":
            import trio

            return trio.run(self._trio, limiter, jobs, options, together, on_stream)
        return asyncio.run(self._asyncio(limiter, jobs, options, together, on_stream))

    def _sync(self, limiter: Any, jobs: List[Job], options: Any, together: bool, on_stream: Any) -> List[Outcome]:
        session: Any
        if self.kind == "requests":
            from shmlimit.requests import LimiterSession

            session = LimiterSession(limiter, pool_maxsize=32, **options)
        else:
            import httpx

            from shmlimit.httpx import LimiterTransport

            session = httpx.Client(transport=LimiterTransport(limiter, **options), follow_redirects=True, timeout=30)

        def one(job: Job) -> Outcome:
            method, url, keywords = job
            keywords = dict(keywords)
            stream = keywords.pop("stream", False)
            body = keywords.pop("body", None)
            if body is not None:
                keywords["data" if self.kind == "requests" else "content"] = body() if callable(body) else body
            try:
                if self.kind == "requests":
                    with session.request(method, url, stream=stream, **keywords) as answer:
                        if stream and on_stream:
                            on_stream()
                        return Answer(answer.status_code, answer.content, dict(answer.headers))
                if stream:
                    with session.stream(method, url, **keywords) as answer:
                        if on_stream:
                            on_stream()
                        return Answer(answer.status_code, answer.read(), dict(answer.headers))
                answer = session.request(method, url, **keywords)
                return Answer(answer.status_code, answer.content, dict(answer.headers))
            except Exception as error:
                return error

        with session:
            if together:
                with ThreadPoolExecutor(len(jobs)) as pool:
                    return list(pool.map(one, jobs))
            return [one(job) for job in jobs]

    async def _one(self, session: Any, job: Job, on_stream: Any) -> Outcome:
        method, url, keywords = job
        keywords = dict(keywords)
        stream = keywords.pop("stream", False)
        body = keywords.pop("body", None)
        if body is not None:
            keywords["data" if self.kind == "aiohttp" else "content"] = _as_async(body()) if callable(body) else body
        try:
            if self.kind == "aiohttp":
                import aiohttp

                if "timeout" in keywords:
                    keywords["timeout"] = aiohttp.ClientTimeout(sock_read=keywords["timeout"])
                async with session.request(method, url, **keywords) as answer:
                    if stream and on_stream:
                        on_stream()
                    return Answer(answer.status, await answer.read(), dict(answer.headers))
            if stream:
                async with session.stream(method, url, **keywords) as answer:
                    if on_stream:
                        on_stream()
                    return Answer(answer.status_code, await answer.aread(), dict(answer.headers))
            answer = await session.request(method, url, **keywords)
            return Answer(answer.status_code, answer.content, dict(answer.headers))
        except Exception as error:
            return error

    def session(self, limiter: Any, options: Dict[str, Any]) -> Any:
        if self.kind == "aiohttp":
            import aiohttp

            from shmlimit.aiohttp import limiter_middleware

            return aiohttp.ClientSession(middlewares=[limiter_middleware(limiter, **options)])
        import httpx

        from shmlimit.httpx import AsyncLimiterTransport

        return httpx.AsyncClient(transport=AsyncLimiterTransport(limiter, **options), follow_redirects=True, timeout=30)

    async def _asyncio(
        self, limiter: Any, jobs: List[Job], options: Any, together: bool, on_stream: Any
    ) -> List[Outcome]:
        async with self.session(limiter, options) as session:
            if together:
                return list(await asyncio.gather(*(self._one(session, job, on_stream) for job in jobs)))
            return [await self._one(session, job, on_stream) for job in jobs]

    async def _trio(self, limiter: Any, jobs: List[Job], options: Any, together: bool, on_stream: Any) -> List[Outcome]:
        import trio

        outcomes: Dict[int, Outcome] = {}

        async def put(number: int, job: Job) -> None:
            outcomes[number] = await self._one(session, job, on_stream)

        async with self.session(limiter, options) as session:
            if together:
                async with trio.open_nursery() as nursery:
                    for number, job in enumerate(jobs):
                        nursery.start_soon(put, number, job)
            else:
                for number, job in enumerate(jobs):
                    await put(number, job)
        return [outcomes[number] for number in range(len(jobs))]


async def _as_async(parts: Any) -> Any:
    for part in parts:
        yield part


@pytest.fixture
def server() -> Any:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.released.set()
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def limiter(tmp_path: Any, request: Any) -> Any:
    """A limiter that allows a thousand calls at once, four in flight, without a breaker, and with very short waits
    between attempts. When a test ends, no call may be in flight or waiting."""
    settings = {"backoff.base": "1ms", "backoff.cap": "2ms", "backoff.min_sleep": "100ms"}
    made = Limiter("api", directory=tmp_path, rate="1000/day", burst=1000, concurrency=4, settings=settings)
    yield made
    snapshot = made.snapshot()
    assert (snapshot.in_flight, snapshot.queue) == (0, ())


@pytest.fixture(params=CLIENTS)
def caller(request: Any) -> Caller:
    return Caller(request.param)


@pytest.fixture
def say() -> Any:
    return Say
