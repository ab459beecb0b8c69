"""Opening with several rates, an algorithm and on_mismatch; removing; metrics."""

import pytest

from shmlimit import ConfigError, Error, Limiter, limiters


def limits(limiter):
    return [(rule.unit, rule.limit, rule.period) for rule in limiter.snapshot().rules]


def test_a_rate_may_be_a_list_of_rates(directory):
    limiter = Limiter("api", rate=["100/min", "tokens=30k/min"])
    assert limits(limiter) == [("requests", 100, 60), ("tokens", 30000, 60)]
    assert limits(Limiter("api", rate=("100/min", "tokens=30k/min"))) == limits(limiter)
    with limiter.acquire(cost={"tokens": 900}):
        assert [rule.remaining for rule in limiter.snapshot().rules] == [99, 29100]


def test_an_algorithm_is_selected_by_its_name(directory):
    rule = Limiter("api", rate="10/s", algorithm="gcra").snapshot().rules[0]
    assert (rule.algorithm, rule.limit) == ("gcra", 10)


@pytest.mark.parametrize(
    "keywords, kind, word",
    [
        ({"rate": 3}, TypeError, "rate must be a str"),
        ({"rate": {"a": "1/s"}}, TypeError, "rate must be a str"),
        ({"rate": [3]}, TypeError, "a rate must be a str"),
        ({"rate": []}, ValueError, "at least one rate"),
        ({"rate": ["1/s", "fast"]}, ConfigError, "rate"),
        ({"rate": ["1/s", "2/min"], "burst": 3}, ConfigError, "with config="),
        ({"rate": "1/s", "algorithm": "leaky"}, ConfigError, "leaky_bucket"),
        ({"rate": "1/s", "algorithm": 3}, ConfigError, "leaky_bucket"),
        ({"rate": "1/s", "on_mismatch": "ignore"}, ValueError, "error, adopt, update"),
        ({"rate": "1/s", "on_mismatch": 1}, TypeError, "on_mismatch"),
    ],
)
def test_invalid_settings_are_rejected_and_create_nothing(directory, keywords, kind, word):
    with pytest.raises(kind, match=word):
        Limiter("api", **keywords)
    assert limiters() == []


def test_on_mismatch_raises_adopts_or_updates(directory):
    first = Limiter("api", rate="10/min", concurrency=3)
    first.acquire().release()
    with pytest.raises(ConfigError) as raised:
        Limiter("api", rate="5/min", on_mismatch="error")
    assert raised.value.code == "config_mismatch"
    assert limits(Limiter("api", rate="5/min", on_mismatch="adopt")) == [("requests", 10, 60)]
    assert limits(Limiter("api", rate="5/min", on_mismatch="update")) == [("requests", 5, 60)] == limits(first)
    # Spent units stay spent, and a setting that was not given keeps its value.
    assert first.snapshot().rules[0].remaining == 4 and first.snapshot().concurrency == 3
    with pytest.raises(ConfigError) as raised:
        Limiter("api", rate="5/min", algorithm="gcra", on_mismatch="update")
    assert raised.value.code == "does_not_fit"


def test_an_existing_limiter_is_compared_with_the_settings_and_never_created(directory):
    first = Limiter("api", rate="10/min")
    with pytest.raises(ConfigError) as raised:
        Limiter("api", rate="5/min", create=False)
    assert raised.value.code == "config_mismatch"
    assert limits(Limiter("api", rate="5/min", create=False, on_mismatch="adopt")) == [("requests", 10, 60)]
    assert limits(Limiter("api", rate="5/min", create=False, on_mismatch="update")) == [("requests", 5, 60)] == limits(first)
    assert limits(Limiter("api", create=False)) == [("requests", 5, 60)]
    for action in ["error", "adopt", "update"]:
        with pytest.raises(Error) as raised:
            Limiter("absent", rate="5/min", create=False, on_mismatch=action)
        assert raised.value.code == "unknown_limiter" and limiters() == ["api"]


def test_set_takes_a_list_of_rates_and_the_burst_of_the_one_rule_that_has_one(directory):
    limiter = Limiter("api", rate=["10/s", "100/min"])
    limiter.set("rate", ["12/s", "90/min"])
    assert limits(limiter) == [("requests", 12, 1), ("requests", 90, 60)]
    bucket = Limiter("bucket", rate="5/s", burst=9)
    bucket.set("burst", 30)
    assert bucket.snapshot().rules[0].capacity == 30
    with pytest.raises(TypeError, match="not None.*unlimited"):
        bucket.set("concurrency", None)
    with pytest.raises(TypeError, match="rate must be a str"):
        bucket.set("rate", 3)
    with pytest.raises(TypeError, match="value must be a str, an int"):
        bucket.set("concurrency", [3])


def test_an_update_changes_numbers_of_rules_the_concurrency_and_other_changeable_settings(directory):
    Limiter("api", rate="10/s", burst=5, concurrency=3, settings={"breaker.kind": "fsm"})
    changed = {"rate": "20/s", "burst": 8, "concurrency": 4, "settings": {"breaker.p_throttle": 0.3}}
    limiter = Limiter("api", on_mismatch="update", **changed)
    assert limits(limiter) == [("requests", 20, 1)]
    assert (limiter.snapshot().rules[0].capacity, limiter.snapshot().concurrency) == (8, 4)
    assert "p_throttle = 0.3" in limiter.config


def test_a_limiter_is_removed_by_its_last_user(directory):
    limiter, other = Limiter("api", rate="10/s"), Limiter("api")
    with pytest.raises(Error, match=r"remove\(force=True\)") as raised:
        limiter.remove()
    assert raised.value.code == "in_use"
    # The limiter is unchanged.
    limiter.acquire().release()
    other.close()
    assert limiter.remove() is True
    assert limiter.closed and limiters() == []
    with pytest.raises(Error) as raised:
        limiter.remove()
    assert raised.value.code == "closed"


def test_a_limiter_in_use_is_removed_by_force(directory):
    limiter, other = Limiter("api", rate="10/s"), Limiter("api")
    assert limiter.remove(force=True) is True
    assert limiter.closed and limiters() == []
    with pytest.raises(Error) as raised:
        other.acquire(timeout=1)
    assert raised.value.code == "unknown_limiter"


def test_metrics_are_in_the_text_format_of_prometheus(directory):
    limiter = Limiter("api", rate="10/s")
    limiter.acquire().record(200)
    text = limiter.metrics()
    assert 'shmlimit_up{limiter="api"} 1\n' in text
    assert 'shmlimit_granted_total{limiter="api"} 1\n' in text


def test_an_update_ignores_an_invalid_variable_that_does_not_concern_the_limiter(directory, monkeypatch):
    first = Limiter("api", rate="10/min")
    Limiter("tmdb")
    monkeypatch.setenv("SHMLIMIT_RATE_BASE", "fast")
    # The variable belongs to the breaker with five states, which a limiter made from a rate does not have.
    assert limits(Limiter("api", rate="5/min", on_mismatch="update")) == [("requests", 5, 60)] == limits(first)
    for action in ("error", "adopt"):
        assert limits(Limiter("api", rate="5/min", on_mismatch=action)) == limits(first)
    with pytest.raises(ConfigError, match="SHMLIMIT_RATE_BASE"):
        Limiter("tmdb", rate="5/s", on_mismatch="update")
