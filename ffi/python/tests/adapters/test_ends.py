"""Calls that end early or in error: cancelled tasks, threads, dropped responses, exceptions; features that only one
client has."""

from __future__ import annotations

import asyncio
import gc
import pickle
import socket
import subprocess
import sys
import threading
import time

import aiohttp
import aiohttp.web
import httpx
import pytest
import requests
import trio

import shmlimit
from shmlimit import Limiter
from shmlimit.aiohttp import limiter_middleware
from shmlimit.httpx import AsyncLimiterTransport, LimiterTransport
from shmlimit.requests import LimiterAdapter, LimiterSession


def spent(limiter):
    rule = limiter.snapshot().rules[0]
    return rule.capacity - rule.remaining


async def in_thread(function):
    """Runs a blocking function in a thread, from asyncio or trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return await trio.to_thread.run_sync(function)
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def cancelled_when(reached, coroutine):
    """Starts a task, waits until `reached` returns, then cancels the task: in asyncio or trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(coroutine)
            await in_thread(reached)
            nursery.cancel_scope.cancel()
        return
    task = asyncio.ensure_future(coroutine())
    await in_thread(reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def run(caller, main):
    return trio.run(main) if caller.kind == "httpx-trio" else asyncio.run(main())


def until(condition):
    """Checks again and again; the test's own time limit ends the loop."""
    while not condition():
        time.sleep(0.001)


only_tasks = pytest.mark.parametrize("caller", ["httpx-asyncio", "httpx-trio", "aiohttp"], indirect=True)


@only_tasks
def test_a_task_cancelled_in_the_queue_leaves_it(caller, server, limiter):
    held = [limiter.acquire() for _ in range(4)]

    def waits():
        until(lambda: limiter.snapshot().queue)

    async def main():
        async with caller.session(limiter, {}) as session:
            await cancelled_when(waits, lambda: session.get(server.url + "/"))
            assert limiter.snapshot().queue == ()
            assert limiter.snapshot().in_flight == 4

    run(caller, main)
    for grant in held:
        grant.cancel()
    assert (server.arrivals, spent(limiter)) == ([], 0)


@only_tasks
def test_a_task_cancelled_while_the_server_works_gives_its_permit_back(caller, server, limiter, say):
    url = server.tell("/", say(hangs=True))

    async def main():
        async with caller.session(limiter, {}) as session:
            await cancelled_when(lambda: server.reached.wait(20), lambda: session.get(url))
            assert limiter.snapshot().in_flight == 0

    run(caller, main)
    # The request was sent, so its cost stays spent. It says nothing about the server.
    assert (spent(limiter), limiter.snapshot().condition.samples) == (1, 0)


@only_tasks
def test_a_task_cancelled_between_attempts_leaves_nothing_behind(caller, server, tmp_path, say):
    settings = {"backoff.base": "30s", "backoff.jitter": "none"}
    limiter = Limiter("slow", directory=tmp_path, rate="1000/day", burst=1000, settings=settings)
    url = server.tell("/", say(500))

    def recorded():
        until(lambda: limiter.snapshot().condition.outcomes.server)

    async def main():
        async with caller.session(limiter, {}) as session:
            await cancelled_when(recorded, lambda: session.get(url))
            assert (limiter.snapshot().in_flight, limiter.snapshot().queue) == (0, ())
            # The connection of the discarded response does not disturb the next request.
            answer = await session.get(url)
            if caller.kind == "aiohttp":
                await answer.read()

    run(caller, main)
    assert (len(server.arrivals), spent(limiter)) == (2, 2)


@only_tasks
def test_a_task_cancelled_during_a_leaky_buckets_delay_counts_as_not_sent(caller, server, tmp_path):
    config = '[[rules]]\nname = "even"\nalgorithm = "leaky_bucket"\nlimit = 2\nperiod = "1m"\nburst = 2\n'
    limiter = Limiter("even", directory=tmp_path, config=config)
    limiter.acquire().release()

    def held_back():
        until(lambda: limiter.snapshot().in_flight)

    async def main():
        async with caller.session(limiter, {}) as session:
            await cancelled_when(held_back, lambda: session.get(server.url + "/"))

    run(caller, main)
    assert (limiter.snapshot().in_flight, server.arrivals) == (0, [])
    # The cancelled call took nothing: one more call is possible.
    limiter.try_acquire().cancel()


@only_tasks
def test_a_task_cancelled_while_it_streams_gives_its_permit_back(caller, server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    streaming = threading.Event()

    async def main():
        async with caller.session(limiter, {}) as session:

            async def stream():
                if caller.kind == "aiohttp":
                    async with session.get(url) as answer:
                        streaming.set()
                        await answer.read()
                else:
                    async with session.stream("GET", url) as answer:
                        streaming.set()
                        await answer.aread()

            await cancelled_when(lambda: streaming.wait(20), stream)
            assert limiter.snapshot().in_flight == 0

    run(caller, main)
    assert limiter.snapshot().condition.outcomes.ok == 1


def test_a_dropped_coroutine_leaves_nothing_behind(server, limiter, say):
    server.tell("/", say(hangs=True))

    async def main():
        session = httpx.AsyncClient(transport=AsyncLimiterTransport(limiter))
        coroutine = session.get(server.url + "/")
        coroutine.send(None)
        coroutine.close()

    asyncio.run(main())
    gc.collect()
    assert limiter.snapshot().in_flight == 0


def test_requests_a_dropped_response_gives_its_permit_back_at_once(server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    gc.disable()
    try:
        with LimiterSession(limiter) as session:
            answer = session.get(url, stream=True)
            assert (answer.status_code, limiter.snapshot().in_flight) == (200, 1)
            del answer
            assert limiter.snapshot().in_flight == 0
    finally:
        gc.enable()


def test_httpx_a_dropped_response_gives_its_permit_back_when_it_is_collected(server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    with httpx.Client(transport=LimiterTransport(limiter)) as client:
        answer = client.send(client.build_request("GET", url), stream=True)
        assert (answer.status_code, limiter.snapshot().in_flight) == (200, 1)
        del answer
        gc.collect()
        assert limiter.snapshot().in_flight == 0


def test_aiohttp_a_dropped_response_gives_its_permit_back_after_its_session(server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))

    async def main():
        async with aiohttp.ClientSession(middlewares=[limiter_middleware(limiter)]) as session:
            answer = await session.get(url)
            assert (answer.status, limiter.snapshot().in_flight) == (200, 1)

    # Until then aiohttp itself keeps the response and its connection.
    asyncio.run(main())
    gc.collect()
    assert limiter.snapshot().in_flight == 0


def test_aiohttp_closing_an_unread_response_gives_its_permit_back(server, limiter, say):
    async def main():
        async with aiohttp.ClientSession(middlewares=[limiter_middleware(limiter)]) as session:
            for end in (aiohttp.ClientResponse.close, aiohttp.ClientResponse.release):
                answer = await session.get(server.tell("/", say(body=b"half", streams=True)))
                assert limiter.snapshot().in_flight == 1
                end(answer)
                assert limiter.snapshot().in_flight == 0

    asyncio.run(main())


def test_requests_reading_the_raw_body_gives_the_permit_back(server, limiter, say):
    with LimiterSession(limiter) as session:
        answer = session.get(server.url + "/", stream=True)
        assert limiter.snapshot().in_flight == 1
        assert answer.raw.read() == b"ok"
        assert limiter.snapshot().in_flight == 0
        server.tell("/", say(body=b"half", streams=True))
        answer = session.get(server.url + "/", stream=True)
        answer.raw.close()
        assert limiter.snapshot().in_flight == 0
        answer = session.get(server.url + "/", stream=True)
        assert b"".join(answer.iter_content(1)) == b"ok"
        assert limiter.snapshot().in_flight == 0


def test_requests_an_answer_without_a_body_holds_no_permit(server, limiter):
    with LimiterSession(limiter) as session:
        answer = session.head(server.url + "/", stream=True)
        assert (answer.status_code, limiter.snapshot().in_flight) == (200, 0)


def test_a_wait_that_exceeds_the_timeout_is_not_started(caller, server, tmp_path, say):
    settings = {"backoff.base": "30s", "backoff.jitter": "none"}
    limiter = Limiter("slow", directory=tmp_path, rate="1000/day", burst=1000, settings=settings)
    began = time.monotonic()
    assert caller.call(limiter, "GET", server.tell("/", say(500)), {"timeout": 20}).status == 500
    assert time.monotonic() - began < 20
    assert len(server.arrivals) == 1


def test_requests_can_be_mounted_for_a_single_api(server, limiter):
    with requests.Session() as session:
        session.mount(server.url + "/api", LimiterAdapter(limiter))
        assert session.get(server.url + "/api").status_code == 200
        assert session.get(server.url + "/else").status_code == 200
    assert (spent(limiter), server.paths()) == (1, ["/api", "/else"])


def test_requests_a_request_that_is_never_sent_costs_nothing(server, limiter):
    with LimiterSession(limiter) as session:
        with pytest.raises(OSError, match="certificate"):
            session.get("https://127.0.0.1:1/", verify="/no/such/file")
        with pytest.raises(ValueError, match="timeout"):
            session.get(server.url + "/", timeout=(1, 2, 3))
        with pytest.raises(requests.exceptions.InvalidURL):
            session.send(prepared("http://127.0.0.1:99999/"))
    assert (spent(limiter), limiter.snapshot().condition.samples, server.arrivals) == (0, 0, [])


def prepared(url):
    request = requests.Request("GET", "http://127.0.0.1/").prepare()
    request.url = url
    return request


def test_httpx_a_request_that_is_never_sent_costs_nothing(limiter):
    with httpx.Client(transport=LimiterTransport(limiter)) as client:
        with pytest.raises(httpx.UnsupportedProtocol):
            client.get("gopher://127.0.0.1/")
    assert (spent(limiter), limiter.snapshot().condition.samples) == (0, 0)


def test_httpx_a_request_that_waits_for_the_pool_counts_as_not_sent(server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    wrapped = httpx.HTTPTransport(limits=httpx.Limits(max_connections=1))
    with httpx.Client(transport=LimiterTransport(limiter, wrapped), timeout=httpx.Timeout(5, pool=0.05)) as client:
        with client.stream("GET", url):
            with pytest.raises(httpx.PoolTimeout):
                client.get(server.url + "/")
    assert (spent(limiter), limiter.snapshot().condition.outcomes.net) == (1, 0)


def test_a_connection_that_is_not_established_in_time_is_a_connect_timeout(caller, limiter, monkeypatch):
    # The listen queue of length one is full: the kernel accepts no further connection.
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        seen = []
        failing = shmlimit._calls._record_failure
        monkeypatch.setattr(
            shmlimit._calls, "_record_failure", lambda *args: seen.append(args[1].error) or failing(*args)
        )
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"
        if caller.kind == "aiohttp":

            async def main():
                timeout = aiohttp.ClientTimeout(sock_connect=0.2)
                async with aiohttp.ClientSession(
                    middlewares=[limiter_middleware(limiter, retries=0)], timeout=timeout
                ) as session:
                    with pytest.raises(aiohttp.ServerTimeoutError):
                        await session.get(url)

            asyncio.run(main())
        else:
            outcome = caller.call(limiter, "GET", url, {"retries": 0}, timeout=0.2)
            assert type(outcome).__name__ == "ConnectTimeout"
    assert seen == ["connect_timeout"]


def test_aiohttp_the_sessions_total_timeout_runs_in_the_queue_and_while_the_server_works(server, limiter, say):
    url = server.tell("/", say(hangs=True))

    async def main():
        timeout = aiohttp.ClientTimeout(total=0.3)
        async with aiohttp.ClientSession(
            middlewares=[limiter_middleware(limiter, retries=0)], timeout=timeout
        ) as session:
            with pytest.raises(asyncio.TimeoutError):
                await session.get(url)
            assert limiter.snapshot().condition.outcomes.net == 1
            held = [limiter.acquire() for _ in range(4)]
            with pytest.raises(asyncio.TimeoutError):
                await session.get(url)
            assert limiter.snapshot().queue == ()
            for grant in held:
                grant.release()

    asyncio.run(main())


def test_aiohttp_a_websocket_is_a_call_until_it_is_open(limiter):
    async def serve(request):
        socket = aiohttp.web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data.upper())
        return socket

    async def main():
        application = aiohttp.web.Application()
        application.router.add_get("/", serve)
        runner = aiohttp.web.AppRunner(application)
        await runner.setup()
        await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession(middlewares=[limiter_middleware(limiter)]) as session:
            async with session.ws_connect(f"http://127.0.0.1:{port}/") as socket:
                assert (limiter.snapshot().in_flight, spent(limiter)) == (0, 1)
                await socket.send_str("hello")
                assert await socket.receive_str() == "HELLO"
        await runner.cleanup()

    asyncio.run(main())
    assert limiter.snapshot().condition.outcomes.ok == 1


def test_aiohttp_a_single_request_can_use_another_limiter(server, limiter, tmp_path):
    other = Limiter("other", directory=tmp_path, rate="10/day", burst=10)

    async def main():
        async with aiohttp.ClientSession(middlewares=[limiter_middleware(limiter)]) as session:
            await session.get(server.url + "/", middlewares=[limiter_middleware(other)])

    asyncio.run(main())
    assert (spent(limiter), spent(other)) == (0, 1)


def test_a_retry_sends_a_file_from_its_first_position(server, limiter, say, tmp_path):
    (tmp_path / "body").write_bytes(b"head-and-body")

    async def main(file):
        async with aiohttp.ClientSession(middlewares=[limiter_middleware(limiter)]) as session:
            async with session.post(server.url + "/", data=file) as answer:
                assert answer.status == 200

    for client in ("requests", "aiohttp"):
        server.arrivals.clear()
        server.tell("/", say(429), say(200))
        with open(tmp_path / "body", "rb") as file:
            file.seek(5)
            if client == "requests":
                with LimiterSession(limiter) as session:
                    assert session.post(server.url + "/", data=file).status_code == 200
            else:
                asyncio.run(main(file))
        assert [one.body for one in server.arrivals] == [b"and-body"] * 2, client


def test_httpx_a_file_is_not_retried_with_an_empty_body(server, limiter, say, tmp_path):
    (tmp_path / "body").write_bytes(b"whole")
    url = server.tell("/", say(429), say(200))
    with httpx.Client(transport=LimiterTransport(limiter)) as client, open(tmp_path / "body", "rb") as file:
        assert client.post(url, content=file).status_code == 429
    assert [one.body for one in server.arrivals] == [b"whole"]


def test_many_threads_use_one_session(server, limiter):
    threads, calls = 8, 10
    with LimiterSession(limiter) as session, httpx.Client(transport=LimiterTransport(limiter)) as client:

        def work():
            for _ in range(calls):
                assert session.get(server.url + "/").status_code == 200
                assert client.get(server.url + "/").status_code == 200

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert (len(server.arrivals), spent(limiter)) == (threads * calls * 2, threads * calls * 2)


def test_requests_urllib3s_own_retries_are_rejected(limiter):
    with pytest.raises(ValueError, match="retries"):
        LimiterAdapter(limiter, max_retries=3)


def test_requests_a_session_can_be_pickled(server, limiter):
    session = pickle.loads(pickle.dumps(LimiterSession(limiter, priority="user")))
    assert session.get(server.url + "/").status_code == 200
    assert spent(limiter) == 1


def test_a_closed_limiter_is_an_error(caller, server, tmp_path):
    limiter = Limiter("gone", directory=tmp_path, rate="10/day", burst=10)
    limiter.close()
    outcome = caller.call(limiter, "GET", server.url + "/")
    assert isinstance(outcome, shmlimit.Error) and outcome.code == "closed"
    assert server.arrivals == []


@pytest.mark.parametrize("name", ["requests", "httpx", "aiohttp"])
def test_a_client_is_imported_on_first_use_and_a_missing_one_is_reported_with_advice(name):
    code = f"""
import sys
import shmlimit
assert not {{"requests", "httpx", "aiohttp", "trio"}} & set(sys.modules)
sys.modules[{name!r}] = None
try:
    import shmlimit.{name}
except ImportError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
    assert told.stdout == f"shmlimit.{name} needs {name}: pip install 'shmlimit[{name}]'\n"


def test_an_aiohttp_without_middlewares_is_a_clear_error():
    code = """
import aiohttp
del aiohttp.ClientHandlerType
aiohttp.__version__ = "3.11.18"
try:
    import shmlimit.aiohttp
except ImportError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
    assert "needs aiohttp 3.12 or newer" in told.stdout and "3.11.18" in told.stdout
