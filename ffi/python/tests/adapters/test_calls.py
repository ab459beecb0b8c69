"""The effects of a call through a limiter, with every client: limits, records, retries."""

from __future__ import annotations

import email.utils
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

import shmlimit
from shmlimit import Blocked, Limiter, Refused


def spent(limiter, rule=0):
    """The units that a rule with a long period has granted."""
    rule = limiter.snapshot().rules[rule]
    return rule.capacity - rule.remaining


def test_the_server_never_gets_more_calls_than_the_limit(caller, server, tmp_path):
    limiter = Limiter("few", directory=tmp_path, rate="7/day", burst=7, concurrency=3)
    jobs = [("GET", server.url + "/", {}) for _ in range(12)]
    outcomes = caller.all(limiter, jobs, {"timeout": 0.5}, together=True)
    answered = [one for one in outcomes if not isinstance(one, BaseException)]
    refused = [one for one in outcomes if isinstance(one, Refused)]
    assert (len(answered), len(refused), len(server.arrivals)) == (7, 5, 7)
    assert limiter.snapshot().in_flight == 0


def test_status_headers_and_errors_are_recorded(caller, server, limiter, say):
    server.tell("/missing", say(404))
    server.tell("/moved", say(304))
    server.tell("/broken", say(500))
    paths = ["/", "/missing", "/moved", "/broken"]
    outcomes = caller.all(limiter, [("GET", server.url + path, {}) for path in paths], {"retries": 0})
    assert [one.status for one in outcomes] == [200, 404, 304, 500]
    counted = limiter.snapshot().condition.outcomes
    assert (counted.ok, counted.ignored, counted.server, counted.throttled, counted.net) == (2, 1, 1, 0, 0)


def test_response_headers_teach_the_pace(caller, server, tmp_path, say):
    limiter = Limiter("paced", directory=tmp_path, preset="github")
    url = server.tell("/", say(headers={"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4000"}))
    caller.call(limiter, "GET", url)
    windows = limiter.snapshot().condition.pace.windows
    assert [(one.name, one.limit, one.remaining) for one in windows] == [("core", 5000, 4000)]


def test_a_name_opens_the_limiter(caller, server, tmp_path, monkeypatch):
    monkeypatch.setenv("SHMLIMIT_DIR", str(tmp_path))
    assert caller.call("tmdb", "GET", server.url + "/").status == 200
    assert shmlimit.limiters() == ["tmdb"]
    assert Limiter("tmdb").snapshot().condition.outcomes.ok == 1


def test_r73_a_429_of_one_client_closes_the_gate_for_all(caller, server, limiter, say):
    url = server.tell("/", say(429, {"Retry-After": "60"}))
    assert caller.call(limiter, "GET", url, {"retries": 0}).status == 429
    other = Limiter("api", directory=limiter.directory, create=False)
    gate = other.snapshot().condition.gate
    assert 50 < gate.opens_in <= 60
    with pytest.raises(Blocked) as blocked:
        other.try_acquire()
    assert (blocked.value.reason, blocked.value.state) == ("retry_after", "gate")
    # Another process is refused because of the same 429.
    code = (
        "import sys, shmlimit\n"
        "try: shmlimit.Limiter('api', directory=sys.argv[1]).try_acquire()\n"
        "except shmlimit.Blocked as blocked: print(blocked.reason)"
    )
    told = subprocess.run([sys.executable, "-c", code, str(limiter.directory)], stdout=subprocess.PIPE, check=True)
    assert told.stdout.split() == [b"retry_after"]
    # The client's next call is refused too, and does not reach the server.
    outcome = caller.call(limiter, "GET", url, {"timeout": 0})
    assert isinstance(outcome, Blocked) and outcome.eta > 50
    assert len(server.arrivals) == 1


def test_r69_all_clients_wait_for_a_retry_after_and_then_the_call_succeeds(caller, server, limiter, say):
    url = server.tell("/", say(429, {"Retry-After": "1"}))
    began = time.monotonic()
    outcomes = caller.all(limiter, [("GET", url, {}), ("GET", server.url + "/other", {})])
    assert [one.status for one in outcomes] == [200, 200]
    assert server.paths() == ["/", "/", "/other"]
    assert time.monotonic() - began >= 0.95


def test_r70_a_retry_after_date_is_understood(caller, server, limiter, say):
    date = email.utils.formatdate(time.time() + 50, usegmt=True)
    url = server.tell("/", say(503, {"Retry-After": date}))
    assert caller.call(limiter, "GET", url, {"retries": 0}).status == 503
    assert 40 < limiter.snapshot().condition.gate.opens_in <= 50


def test_a_retry_that_cannot_be_granted_in_time_returns_the_servers_answer(caller, server, limiter, say):
    url = server.tell("/", say(429, {"Retry-After": "60"}, b"slow down"))
    answer = caller.call(limiter, "GET", url, {"timeout": 2})
    assert (answer.status, answer.body, len(server.arrivals)) == (429, b"slow down", 1)


def test_a_breaker_that_opens_between_attempts_returns_the_servers_answer(caller, server, tmp_path, say):
    settings = {"backoff.base": "1ms", "breaker.kind": "consecutive", "breaker.failure_threshold": 2}
    limiter = Limiter("frail", directory=tmp_path, rate="1000/day", burst=1000, settings=settings)
    url = server.tell("/", *[say(500, body=b"broken")] * 5)
    answer = caller.call(limiter, "GET", url, {"timeout": 20})
    assert (answer.status, answer.body, len(server.arrivals)) == (500, b"broken", 2)
    outcome = caller.call(limiter, "GET", url, {"timeout": 20})
    assert isinstance(outcome, Blocked) and outcome.state == "open"
    assert (len(server.arrivals), limiter.snapshot().in_flight) == (2, 0)


@pytest.mark.parametrize("priority, attempts", [(None, 6), ("background", 6), ("user", 3), ("webhook", 3)])
def test_r76_the_priority_determines_the_number_of_retries(caller, server, limiter, say, priority, attempts):
    url = server.tell("/", *[say(503)] * 10)
    options = {} if priority is None else {"priority": priority}
    assert caller.call(limiter, "GET", url, options).status == 503
    assert len(server.arrivals) == attempts
    assert limiter.snapshot().condition.outcomes.server == attempts
    assert spent(limiter) == attempts


@pytest.mark.parametrize("retries", [0, 1, 7])
def test_the_number_of_retries_can_be_set(caller, server, limiter, say, retries):
    url = server.tell("/", *[say(500)] * 10)
    assert caller.call(limiter, "GET", url, {"retries": retries, "priority": "user"}).status == 500
    assert len(server.arrivals) == retries + 1


def test_r68_other_4xx_are_not_retried(caller, server, limiter, say):
    url = server.tell("/", say(404), say(200))
    assert caller.call(limiter, "GET", url, {"retries": 3}).status == 404
    assert len(server.arrivals) == 1


def test_the_first_success_ends_the_retries(caller, server, limiter, say):
    url = server.tell("/", say(500), say(502), say(200, body=b"at last"), say(500))
    answer = caller.call(limiter, "GET", url)
    assert (answer.status, answer.body, len(server.arrivals)) == (200, b"at last", 3)


def test_a_post_is_not_retried_after_500(caller, server, limiter, say):
    url = server.tell("/", say(500), say(200))
    assert caller.call(limiter, "POST", url, body=b"once").status == 500
    assert [one.body for one in server.arrivals] == [b"once"]


def test_a_post_is_retried_after_500_if_retry_methods_allows_it(caller, server, limiter, say):
    url = server.tell("/", say(500), say(200))
    assert caller.call(limiter, "POST", url, {"retry_methods": ["post"]}, body=b"twice").status == 200
    assert [one.body for one in server.arrivals] == [b"twice", b"twice"]


def test_a_put_is_retried_after_500_with_its_body(caller, server, limiter, say):
    url = server.tell("/", say(500), say(200))
    assert caller.call(limiter, "PUT", url, body=b"whole").status == 200
    assert [one.body for one in server.arrivals] == [b"whole", b"whole"]


def test_a_post_of_bytes_is_retried_after_429(caller, server, limiter, say):
    url = server.tell("/", say(429), say(200))
    assert caller.call(limiter, "POST", url, body=b"again").status == 200
    assert [one.body for one in server.arrivals] == [b"again", b"again"]


def test_a_request_whose_body_cannot_be_sent_again_is_not_retried(caller, server, limiter, say):
    url = server.tell("/", say(429), say(200))
    parts = lambda: (part for part in [b"one", b"two"])  # noqa: E731
    assert caller.call(limiter, "POST", url, body=parts).status == 429
    assert [one.body for one in server.arrivals] == [b"onetwo"]
    assert limiter.snapshot().condition.outcomes.throttled == 1


def test_a_reset_connection_is_recorded_and_retried(caller, server, limiter, say):
    url = server.tell("/", say(drops=True), say(200))
    assert caller.call(limiter, "GET", url).status == 200
    assert len(server.arrivals) == 2
    counted = limiter.snapshot().condition.outcomes
    assert (counted.net, counted.ok) == (1, 1)


def test_a_post_whose_connection_is_reset_is_not_retried(caller, server, limiter, say):
    url = server.tell("/", say(drops=True), say(200))
    outcome = caller.call(limiter, "POST", url, body=b"once")
    assert type(outcome).__module__.split(".")[0] in ("requests", "httpx", "aiohttp")
    assert len(server.arrivals) == 1
    assert limiter.snapshot().condition.outcomes.net == 1


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_refused_connection_is_recorded_and_raises_the_clients_own_exception(caller, limiter):
    outcome = caller.call(limiter, "GET", f"http://127.0.0.1:{free_port()}/", {"priority": "user"})
    assert type(outcome).__name__ in ("ConnectionError", "ConnectError", "ClientConnectorError")
    assert limiter.snapshot().condition.outcomes.net == 3


def test_a_missing_answer_is_a_read_timeout(caller, server, limiter, say, recorded):
    url = server.tell("/", say(hangs=True))
    outcome = caller.call(limiter, "GET", url, {"retries": 0}, timeout=0.2)
    assert type(outcome).__name__ in ("ReadTimeout", "SocketTimeoutError", "ServerTimeoutError")
    assert [one["error"] for one in recorded] == ["read_timeout"]
    assert limiter.snapshot().condition.outcomes.net == 1


def test_an_unknown_host_name_is_a_dns_error(caller, limiter, monkeypatch, recorded):
    def unknown(*args, **keywords):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    outcome = caller.call(limiter, "GET", "http://no-such-host.invalid/", {"retries": 1})
    assert type(outcome).__name__ in ("ConnectionError", "ConnectError", "ClientConnectorDNSError")
    assert [one["error"] for one in recorded] == ["dns", "dns"]
    assert [one["attempt"] for one in recorded] == [1, 2]


@pytest.mark.parametrize("hold", ["body", "head"])
def test_r140_an_answer_from_before_the_probing_does_not_count_as_a_probe(caller, server, tmp_path, say, hold):
    limiter = Limiter("probing", directory=tmp_path, preset="tmdb")
    url = server.tell("/", say(waits=True))
    call = threading.Thread(target=caller.call, args=(limiter, "GET", url, {"hold": hold}))
    call.start()
    assert server.reached.wait(30)
    limiter.force("half_open")
    server.released.set()
    call.join()
    condition = limiter.snapshot().condition
    assert (condition.state, condition.samples, condition.outcomes.ok) == ("half_open", 0, 1)
    assert caller.call(limiter, "GET", url).status == 200
    assert limiter.snapshot().condition.samples == 1, "this one is a probe"
    assert limiter.snapshot().in_flight == 0


def test_attempt_and_latency_are_recorded(caller, server, limiter, say, recorded):
    url = server.tell("/", say(500), say(500))
    assert caller.call(limiter, "GET", url).status == 200
    assert [one["attempt"] for one in recorded] == [1, 2, 3]
    assert all(0 < one["latency"] < 30 for one in recorded)


def test_cost_and_priority_may_depend_on_the_request_and_the_actual_cost_on_the_response(caller, server, tmp_path, say):
    config = """
        concurrency = 2
        [[rules]]
        name = "calls"
        algorithm = "token_bucket"
        limit = 100
        period = "1d"
        [[rules]]
        name = "tokens"
        algorithm = "token_bucket"
        unit = "tokens"
        limit = 10000
        period = "1d"
    """
    limiter = Limiter("llm", directory=tmp_path, config=config)
    url = server.tell("/chat", say(body=json.dumps({"usage": 350}).encode()))
    asked = []

    def cost(request):
        asked.append((request.method, str(request.url)))
        return {"requests": 1, "tokens": 900}

    def used(response):
        return {"tokens": response.json()["usage"]}

    async def used_async(response):
        return {"tokens": (await response.json(content_type=None))["usage"]}

    options = {
        "cost": cost,
        "priority": lambda request: "user",
        "actual_cost": used_async if caller.kind == "aiohttp" else used,
    }
    answer = caller.call(limiter, "POST", url, options, body=b"{}")
    assert (answer.status, json.loads(answer.body)) == (200, {"usage": 350})
    assert asked == [("POST", url)]
    assert (spent(limiter, 0), spent(limiter, 1)) == (1, 350)
    # An exception of the function is the caller's error: the call was made, and is recorded.
    outcome = caller.call(limiter, "GET", server.url + "/", {"actual_cost": lambda response: {}["no"]})
    assert isinstance(outcome, KeyError)
    assert limiter.snapshot().condition.outcomes.ok == 2
    assert limiter.snapshot().in_flight == 0


def test_a_streamed_body_holds_its_permit_until_its_end(caller, server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    seen = []

    def meanwhile():
        snapshot = limiter.snapshot()
        seen.append((snapshot.in_flight, snapshot.condition.outcomes.ok))
        server.released.set()

    outcomes = caller.all(limiter, [("GET", url, {"stream": True})], on_stream=meanwhile)
    assert (outcomes[0].body, seen) == (b"halfhalf", [(1, 1)])
    assert limiter.snapshot().in_flight == 0


def test_a_streamed_body_needs_no_permit_with_hold_head(caller, server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))
    seen = []

    def meanwhile():
        seen.append(limiter.snapshot().in_flight)
        server.released.set()

    outcomes = caller.all(limiter, [("GET", url, {"stream": True})], {"hold": "head"}, on_stream=meanwhile)
    assert (outcomes[0].body, seen) == (b"halfhalf", [0])


def test_closing_a_streamed_body_early_gives_its_permit_back(caller, server, limiter, say):
    url = server.tell("/", say(body=b"half", streams=True))

    def give_up():
        assert limiter.snapshot().in_flight == 1
        raise LookupError

    outcomes = caller.all(limiter, [("GET", url, {"stream": True})], on_stream=give_up)
    assert isinstance(outcomes[0], LookupError)
    assert limiter.snapshot().in_flight == 0


def test_the_calls_in_flight_never_exceed_the_limit(caller, server, tmp_path):
    limiter = Limiter("narrow", directory=tmp_path, rate="1000/day", burst=1000, concurrency=1)
    outcomes = caller.all(limiter, [("GET", server.url + "/", {}) for _ in range(20)], together=True)
    assert [one.status for one in outcomes] == [200] * 20
    assert limiter.snapshot().in_flight == 0


def test_each_redirect_is_a_call(caller, server, limiter, say):
    url = server.tell("/a", say(302, {"Location": "/b"}))
    server.tell("/b", say(307, {"Location": "/c"}))
    assert caller.call(limiter, "GET", url).status == 200
    assert server.paths() == ["/a", "/b", "/c"]
    assert (spent(limiter), limiter.snapshot().condition.outcomes.ok) == (3, 3)


def test_redirects_work_with_one_permit(caller, server, tmp_path, say):
    limiter = Limiter("narrow", directory=tmp_path, rate="1000/day", burst=1000, concurrency=1)
    url = server.tell("/a", say(302, {"Location": "/b"}, b"moved"))
    assert caller.call(limiter, "GET", url, {"timeout": 5}).status == 200
    assert server.paths() == ["/a", "/b"]


def test_cookies_and_the_connection_are_kept_across_retries(caller, server, limiter, say):
    url = server.tell("/", say(500, {"Set-Cookie": "lost=1"}), say(200, {"Set-Cookie": "kept=1"}))
    # aiohttp stores no cookies for IP addresses.
    url = url.replace("127.0.0.1", "localhost")
    outcomes = caller.all(limiter, [("GET", url, {}), ("GET", url, {}), ("GET", url, {})])
    assert [one.status for one in outcomes] == [200, 200, 200]
    assert "kept=1" in {key.lower(): value for key, value in server.arrivals[-1].headers.items()}["cookie"]
    assert len({one.connection for one in server.arrivals}) == 1


def test_head_and_empty_answers_give_their_permit_back(caller, server, limiter, say):
    url = server.tell("/empty", say(204, body=b""))
    jobs = [("HEAD", server.url + "/", {"stream": True}), ("GET", url, {"stream": True})]
    outcomes = caller.all(limiter, jobs)
    assert [(one.status, one.body) for one in outcomes] == [(200, b""), (204, b"")]
    assert limiter.snapshot().in_flight == 0


def test_an_unknown_status_is_passed_on(caller, server, limiter, say):
    url = server.tell("/", say(999))
    assert caller.call(limiter, "GET", url).status == 999
    assert limiter.snapshot().condition.samples == 0


def test_a_leaky_bucket_delays_the_call(caller, server, tmp_path, monkeypatch):
    config = '[[rules]]\nname = "even"\nalgorithm = "leaky_bucket"\nlimit = 20\nperiod = "1s"\nburst = 3\n'
    limiter = Limiter("even", directory=tmp_path, config=config)
    began = time.monotonic()
    outcomes = caller.all(limiter, [("GET", server.url + "/", {})] * 3, together=True)
    assert [one.status for one in outcomes] == [200] * 3
    assert time.monotonic() - began >= 0.09
    assert limiter.snapshot().in_flight == 0


def test_a_refusal_can_be_converted_to_another_exception(caller, server, limiter):
    limiter.record(429, headers={"Retry-After": "60"})
    options = {"timeout": 0, "on_refused": lambda refused: LookupError(refused.reason)}
    outcome = caller.call(limiter, "GET", server.url + "/", options)
    assert isinstance(outcome, LookupError) and outcome.args == ("retry_after",)
    assert server.arrivals == []


@pytest.mark.parametrize("cost", [{"no_such": 1}, "much", -1])
def test_an_invalid_actual_cost_is_an_error_and_the_outcome_counts(caller, server, limiter, cost):
    outcome = caller.call(limiter, "GET", server.url + "/", {"actual_cost": lambda response: cost})
    assert isinstance(outcome, (ValueError, TypeError))
    assert limiter.snapshot().condition.outcomes.ok == 1


@pytest.mark.parametrize("timeout", [float("inf"), 10**400])
def test_a_timeout_beyond_all_clocks_means_no_timeout(caller, server, limiter, timeout):
    assert caller.call(limiter, "GET", server.url + "/", {"timeout": timeout}).status == 200


@pytest.mark.parametrize(
    "options, error",
    [
        ({"retries": -1}, ValueError),
        ({"retries": 1.5}, TypeError),
        ({"retries": True}, TypeError),
        ({"hold": "foot"}, ValueError),
        ({"on_refused": "cry"}, ValueError),
        ({"retry_methods": "GET"}, TypeError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": -1}, ValueError),
        ({"timeout": "1"}, TypeError),
        ({"no_such": 1}, TypeError),
    ],
)
def test_invalid_arguments_are_rejected(caller, limiter, options, error):
    with pytest.raises(error):
        caller.all(limiter, [], options)


@pytest.fixture
def recorded(limiter, monkeypatch):
    """The arguments that grants and the limiter pass to record."""
    import shmlimit._calls

    seen = []
    failing, original = shmlimit._calls._record_failure, shmlimit._calls.Calls._record

    def failed(grant, failure, latency, attempt):
        seen.append({"error": failure.error, "latency": latency, "attempt": attempt})
        return failing(grant, failure, latency, attempt)

    def answered(self, client, response, grant, latency, attempt):
        seen.append({"status": client.head(response)[0], "latency": latency, "attempt": attempt})
        return original(self, client, response, grant, latency, attempt)

    monkeypatch.setattr(shmlimit._calls, "_record_failure", failed)
    monkeypatch.setattr(shmlimit._calls.Calls, "_record", answered)
    return seen
