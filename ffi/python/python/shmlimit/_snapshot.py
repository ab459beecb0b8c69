"""A limiter at one moment. Times are seconds; the other names are those of docs/status-json.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    algorithm: str
    unit: str
    limit: int
    period: float
    capacity: int
    reserve: int
    remaining: int
    remaining_background: int
    #: When there is one more, and when there are as many as `capacity`; None: there are.
    next_in: Optional[float]
    full_in: Optional[float]


@dataclass(frozen=True)
class Participant:
    """One attached process."""

    pid: int
    program: str
    attached_for: float
    held: int
    held_for: Optional[float]
    granted: int
    refused: int
    looked: int


@dataclass(frozen=True)
class Waiter:
    """One call that waits."""

    pid: int
    program: str
    priority: str
    group: str
    cost: Mapping[str, int]
    waited_for: float
    looks_in: float
    late: bool
    gives_up_in: Optional[float]


@dataclass(frozen=True)
class Gate:
    """The gate that a Retry-After closed, and who recorded it how long ago."""

    opens_in: float
    pid: int
    program: str
    recorded: float


@dataclass(frozen=True)
class Pause:
    """A pause: for how long the limiter has been paused, in how long that ends (None: when it is resumed), by whom, why."""

    paused_for: float
    ends_in: Optional[float]
    pid: int
    program: str
    reason: Optional[str]


@dataclass(frozen=True)
class Transition:
    """A change of the breaker's state."""

    from_state: str
    to_state: str
    reason: str
    ago: float = 0.0


@dataclass(frozen=True)
class Outcomes:
    """How calls ended since the limiter was made: well, with 429, with 5xx, without an answer, with any other 4xx."""

    ok: int
    throttled: int
    server: int
    net: int
    other: int


@dataclass(frozen=True)
class PaceWindow:
    """What response headers said of one of the provider's windows."""

    name: str
    limit: int
    remaining: int
    usage: float
    resets_in: Optional[float]


@dataclass(frozen=True)
class Pace:
    """The pace that response headers taught: the smallest gap between calls, and the window it is for."""

    interval: float
    bottleneck: Optional[str]
    windows: Tuple[PaceWindow, ...]


@dataclass(frozen=True)
class Condition:
    """How the server is doing: breaker, gate, outcomes, pace."""

    state: str
    state_for: float
    reason: Optional[str]
    eta: Optional[float]
    offline: bool
    rate: float
    concurrency_now: Optional[int]
    gate: Optional[Gate]
    samples: int
    error_ratio: float
    consec429: int
    failures: int
    outcomes: Outcomes
    pace: Optional[Pace]
    transitions: Tuple[Transition, ...]


@dataclass(frozen=True)
class Counts:
    """What was counted since the limiter was made, by all who ever used it."""

    granted: int
    refused: int
    looked: int
    cache_hits: int
    cache_misses: int
    #: How often calls ended how: by HTTP status, or by the name of an error.
    codes: Dict[str, int]


@dataclass(frozen=True)
class Snapshot:
    """A limiter at one moment."""

    name: str
    directory: Path
    provider: str
    concurrency: Optional[int]
    concurrency_background: Optional[int]
    in_flight: int
    in_flight_background: int
    held_by_dead: int
    resets: int
    counts: Counts
    paused: Optional[Pause]
    condition: Condition
    fairness: str
    background_share: float
    rules: Tuple[Rule, ...]
    participants: Tuple[Participant, ...]
    queue: Tuple[Waiter, ...]

    def remaining(self, priority: str = "background") -> Optional[int]:
        """Whole units left for a priority, the least over all rules; None without rules."""
        if priority == "background":
            return min((rule.remaining_background for rule in self.rules), default=None)
        return min((rule.remaining for rule in self.rules), default=None)

    def to_dict(self) -> Dict[str, Any]:
        """The object that `shmlimit status --json` prints, with its keys: ready for json.dumps. (What comes next, which
        the tool finds out from the others, is not in it: `next_change`, `warnings`.)"""
        now = self.condition
        return {
            "name": self.name,
            "directory": str(self.directory),
            "provider": self.provider,
            "concurrency": self.concurrency,
            "concurrency_background": self.concurrency_background,
            "in_flight": self.in_flight,
            "in_flight_background": self.in_flight_background,
            "held_by_dead": self.held_by_dead,
            "resets": self.resets,
            "counts": dict(vars(self.counts)),
            "paused": _pause(self.paused),
            "state": now.state,
            "state_ns": _nanos(now.state_for),
            "reason": now.reason,
            "eta_ns": _nanos_or_none(now.eta),
            "offline": now.offline,
            "rate": now.rate,
            "concurrency_now": now.concurrency_now,
            "gate": _gate(now.gate),
            "samples": now.samples,
            "err_rate": now.error_ratio,
            "consec429": now.consec429,
            "failures": now.failures,
            "outcomes": {
                "ok": now.outcomes.ok,
                "429": now.outcomes.throttled,
                "5xx": now.outcomes.server,
                "net": now.outcomes.net,
                "other": now.outcomes.other,
            },
            "pace": _pace(now.pace),
            "transitions": [
                {"ago_ns": _nanos(one.ago), "from": one.from_state, "to": one.to_state, "reason": one.reason}
                for one in now.transitions
            ],
            "fairness": self.fairness,
            "background_share": self.background_share,
            "rules": [
                _renamed(rule, period="period_ns", next_in="next_in_ns", full_in="full_in_ns") for rule in self.rules
            ],
            "participants": [
                _renamed(one, attached_for="attached_ns", held_for="held_ns") for one in self.participants
            ],
            "queue": [
                _renamed(one, waited_for="waited_ns", looks_in="looks_in_ns", gives_up_in="gives_up_in_ns")
                for one in self.queue
            ],
        }


def _nanos(seconds: float) -> int:
    return round(seconds * 1e9)


def _nanos_or_none(seconds: Optional[float]) -> Optional[int]:
    return None if seconds is None else _nanos(seconds)


def _renamed(one: object, **times: str) -> Dict[str, Any]:
    """The fields of a dataclass, in order, with those that are times in nanoseconds under another name."""
    return {
        times.get(key, key): _nanos_or_none(value) if key in times else value for key, value in vars(one).items()
    }


def _gate(gate: Optional[Gate]) -> Optional[Dict[str, Any]]:
    return None if gate is None else _renamed(gate, opens_in="opens_in_ns", recorded="recorded_ns")


def _pause(pause: Optional[Pause]) -> Optional[Dict[str, Any]]:
    return None if pause is None else _renamed(pause, paused_for="paused_ns", ends_in="ends_in_ns")


def _pace(pace: Optional[Pace]) -> Optional[Dict[str, Any]]:
    if pace is None:
        return None
    return {
        "interval_ns": _nanos(pace.interval),
        "bottleneck": pace.bottleneck,
        "windows": [_renamed(window, resets_in="resets_in_ns") for window in pace.windows],
    }


def snapshot_of(values: Dict[str, Any]) -> Snapshot:
    """Makes the dataclasses out of what the extension module has read."""
    now = dict(values["condition"])
    pace = now["pace"]
    now["gate"] = None if now["gate"] is None else Gate(**now["gate"])
    now["outcomes"] = Outcomes(**now["outcomes"])
    now["transitions"] = tuple(Transition(**one) for one in now["transitions"])
    if pace is not None:
        now["pace"] = Pace(**{**pace, "windows": tuple(PaceWindow(**window) for window in pace["windows"])})
    return Snapshot(
        **{
            **values,
            "counts": Counts(**values["counts"]),
            "paused": None if values["paused"] is None else Pause(**values["paused"]),
            "condition": Condition(**now),
            "rules": tuple(Rule(**rule) for rule in values["rules"]),
            "participants": tuple(Participant(**one) for one in values["participants"]),
            "queue": tuple(Waiter(**one) for one in values["queue"]),
        }
    )
