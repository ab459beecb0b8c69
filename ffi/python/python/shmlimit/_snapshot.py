"""A limiter at one moment. Times are seconds; the other names are those of docs/status-json.md."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple, Type, TypeVar


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
    held_by_exited: int
    resets: int
    counts: Counts
    paused: Optional[Pause]
    condition: Condition
    fairness: str
    background_share: float
    rules: Tuple[Rule, ...]
    participants: Tuple[Participant, ...]
    queue: Tuple[Waiter, ...]
    _document: Dict[str, Any] = field(repr=False, compare=False)

    def remaining(self, priority: str = "background") -> Optional[int]:
        """Whole units left for a priority, the least over all rules; None without rules."""
        if priority == "background":
            return min((rule.remaining_background for rule in self.rules), default=None)
        return min((rule.remaining for rule in self.rules), default=None)

    def to_dict(self) -> Dict[str, Any]:
        """The object that `shmlimit status --json` prints, with its keys: ready for json.dumps. (What comes next, which
        the tool finds out from the others, is not in it: `next_change`, `warnings`.)"""
        return deepcopy(self._document)


#: Names of the document that are no good names of attributes.
_DOCUMENT_NAMES = {
    "error_ratio": "err_rate",
    "throttled": "429",
    "server": "5xx",
    "from_state": "from",
    "to_state": "to",
}

_T = TypeVar("_T")


def _make(kind: Type[_T], document: Mapping[str, Any], **given: Any) -> _T:
    """A dataclass from the values of a document. `NAME_ns` there is `NAME` or `NAME_for` here, in seconds."""
    values: Dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        name = one.name
        stored = _DOCUMENT_NAMES.get(name, name)
        if name in given:
            values[name] = given[name]
        elif stored in document:
            values[name] = document[stored]
        else:
            time = document[(name[:-4] if name.endswith("_for") else name) + "_ns"]
            values[name] = None if time is None else time / 1e9
    return kind(**values)


def _all(kind: Type[_T], documents: Iterable[Mapping[str, Any]]) -> Tuple[_T, ...]:
    return tuple(_make(kind, document) for document in documents)


def snapshot_of(document: Dict[str, Any], directory: Path) -> Snapshot:
    """Makes the dataclasses out of the document that the extension module has read."""
    gate, pace, paused = document["gate"], document["pace"], document["paused"]
    condition = _make(
        Condition,
        document,
        gate=None if gate is None else _make(Gate, gate),
        outcomes=_make(Outcomes, document["outcomes"]),
        pace=None if pace is None else _make(Pace, pace, windows=_all(PaceWindow, pace["windows"])),
        transitions=_all(Transition, document["transitions"]),
    )
    return _make(
        Snapshot,
        document,
        directory=directory,
        counts=_make(Counts, document["counts"]),
        paused=None if paused is None else _make(Pause, paused),
        condition=condition,
        rules=_all(Rule, document["rules"]),
        participants=_all(Participant, document["participants"]),
        queue=_all(Waiter, document["queue"]),
        _document=document,
    )
