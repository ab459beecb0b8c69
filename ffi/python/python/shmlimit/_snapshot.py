"""A limiter at one moment, as dataclasses. Times are seconds.

Generated from src/limiter/fields.rs by scripts/languages/fields. What a snapshot can do is in _snapshot_methods.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from ._names import Algorithm, BreakerState, Fairness, Priority, TransitionCause
from ._snapshot_methods import SnapshotMethods


def _seconds(nanoseconds: Optional[int]) -> Optional[float]:
    return None if nanoseconds is None else nanoseconds / 1e9


@dataclass(frozen=True)
class Pause:
    """A pause at one moment."""

    paused_for: float
    """How long the pause has lasted."""
    ends_in: Optional[float]
    """Time until the pause ends by itself; None = it lasts until the limiter is resumed."""
    pid: int
    """The id of the process that paused the limiter. That process may have exited since."""
    program: str
    """The program name of that process; for `shmlimit pause`, the name of its user."""
    reason: Optional[str]
    """The reason that the operator gave; None = no reason was given."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Pause:
        return cls(
            paused_for=document["paused_for_ns"] / 1e9,
            ends_in=_seconds(document["ends_in_ns"]),
            pid=document["pid"],
            program=document["program"],
            reason=document["reason"],
        )


@dataclass(frozen=True)
class Transition:
    """A change of the breaker's state."""

    ago: float
    """How long ago the state changed."""
    from_state: BreakerState
    """The state before."""
    to_state: BreakerState
    """The state after."""
    reason: TransitionCause
    """Why the state changed."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Transition:
        return cls(
            ago=document["ago_ns"] / 1e9,
            from_state=document["from"],
            to_state=document["to"],
            reason=document["reason"],
        )


@dataclass(frozen=True)
class PaceWindow:
    """One window of the provider at one moment, as response headers described it."""

    name: str
    """The window's name."""
    limit: int
    """The window's limit."""
    remaining: int
    """Remaining units of the window."""
    usage: float
    """The used part of the window, from 0 to 1."""
    resets_in: Optional[float]
    """Time until the window restarts; None = unknown."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> PaceWindow:
        return cls(
            name=document["name"],
            limit=document["limit"],
            remaining=document["remaining"],
            usage=document["usage"],
            resets_in=_seconds(document["resets_in_ns"]),
        )


@dataclass(frozen=True)
class Pace:
    """The pace learned from response headers."""

    interval: float
    """The smallest gap between calls, learned from response headers."""
    bottleneck: Optional[str]
    """The window that determines the gap; None = no window does."""
    windows: Tuple[PaceWindow, ...]
    """The provider's windows as the headers described them."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Pace:
        return cls(
            interval=document["interval_ns"] / 1e9,
            bottleneck=document["bottleneck"],
            windows=tuple(PaceWindow._of(one) for one in document["windows"]),
        )


@dataclass(frozen=True)
class OutcomeCounts:
    """Counts of how calls ended since a limiter was created."""

    ok: int
    """Calls that succeeded."""
    throttled: int
    """Calls that ended with 429."""
    server: int
    """Calls that ended with 5xx."""
    net: int
    """Calls without a response."""
    ignored: int
    """Calls that ended with any other 4xx, which says nothing about the server."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> OutcomeCounts:
        return cls(
            ok=document["ok"],
            throttled=document["429"],
            server=document["5xx"],
            net=document["net"],
            ignored=document["ignored"],
        )


@dataclass(frozen=True)
class Gate:
    """A gate that a Retry-After closed."""

    opens_in: float
    """Time until the gate opens."""
    pid: int
    """The id of the process that recorded the Retry-After."""
    program: str
    """The program name of that process."""
    recorded: float
    """How long ago the Retry-After was recorded."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Gate:
        return cls(
            opens_in=document["opens_in_ns"] / 1e9,
            pid=document["pid"],
            program=document["program"],
            recorded=document["recorded_ns"] / 1e9,
        )


@dataclass(frozen=True)
class Condition:
    """Breaker, gate, outcomes and pace at one moment."""

    state: BreakerState
    """The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`. A consecutive breaker has
    `closed`, `open` or `half_open`, and a limiter without a breaker has `normal`."""
    state_for: float
    """How long the state has lasted. A state that has never changed lasts since the limiter was created."""
    reason: Optional[TransitionCause]
    """Why the state began; None = it has never changed."""
    eta: Optional[float]
    """Time until the state ends by itself; None = it does not. A Sleep does not end before the gate opens. In other
    states it is the time of the next rise of the rate."""
    offline: bool
    """Whether an operator has put the limiter offline."""
    rate: float
    """Units per second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it
    is the rate of the first rule."""
    concurrency_now: Optional[int]
    """Maximum number of calls in flight in this state; None = unlimited."""
    gate: Optional[Gate]
    """The gate that a Retry-After closed; None = it is open."""
    samples: int
    """Number of outcomes that count now."""
    error_ratio: float
    """The ratio of errors among the outcomes that count now."""
    consec429: int
    """Number of consecutive 429 responses."""
    failures: int
    """Number of consecutive failures, for a consecutive breaker."""
    outcomes: OutcomeCounts
    """Counts of how calls ended since the limiter was created."""
    pace: Optional[Pace]
    """The pace learned from response headers; None = the limiter does not read them."""
    transitions: Tuple[Transition, ...]
    """The latest changes of the breaker's state, the newest last."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Condition:
        return cls(
            state=document["state"],
            state_for=document["state_for_ns"] / 1e9,
            reason=document["reason"],
            eta=_seconds(document["eta_ns"]),
            offline=document["offline"],
            rate=document["rate"],
            concurrency_now=document["concurrency_now"],
            gate=None if document["gate"] is None else Gate._of(document["gate"]),
            samples=document["samples"],
            error_ratio=document["error_ratio"],
            consec429=document["consec429"],
            failures=document["failures"],
            outcomes=OutcomeCounts._of(document["outcomes"]),
            pace=None if document["pace"] is None else Pace._of(document["pace"]),
            transitions=tuple(Transition._of(one) for one in document["transitions"]),
        )


@dataclass(frozen=True)
class Waiter:
    """One waiting call at one moment."""

    pid: int
    """The id of the waiting process, in its own pid namespace."""
    program: str
    """The program name of the process."""
    priority: Priority
    """The call's priority: `background`, `user` or `webhook`."""
    group: str
    """Identifies the call's group. Processes that take their turns together have the same value."""
    cost: Mapping[str, int]
    """How much of each unit the call costs. Units that it does not use are left out."""
    waited_for: float
    """How long the call has waited."""
    looks_in: float
    """Time until the call checks again by itself; 0 = the check is due, or late."""
    late: bool
    """Whether the call has missed its check, because its process is stopped, starved or dying. Other calls pass it,
    and it keeps its place."""
    gives_up_in: Optional[float]
    """Time until the call gives up; None = it has no deadline."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Waiter:
        return cls(
            pid=document["pid"],
            program=document["program"],
            priority=document["priority"],
            group=document["group"],
            cost=document["cost"],
            waited_for=document["waited_for_ns"] / 1e9,
            looks_in=document["looks_in_ns"] / 1e9,
            late=document["late"],
            gives_up_in=_seconds(document["gives_up_in_ns"]),
        )


@dataclass(frozen=True)
class Participant:
    """One attached process at one moment."""

    pid: int
    """The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of a
    file that was deleted by hand."""
    program: str
    """The program name of the process."""
    attached_for: float
    """How long the process has been attached."""
    held: int
    """Permits that the process holds."""
    held_for: Optional[float]
    """How long the process has held at least one permit without interruption; None = it holds none."""
    granted: int
    """How many calls of the process were granted."""
    refused: int
    """How many calls of the process were refused. A call that waited counts once, when it gives up."""
    looked: int
    """How often waiting calls of the process checked whether it was their turn."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Participant:
        return cls(
            pid=document["pid"],
            program=document["program"],
            attached_for=document["attached_for_ns"] / 1e9,
            held=document["held"],
            held_for=_seconds(document["held_for_ns"]),
            granted=document["granted"],
            refused=document["refused"],
            looked=document["looked"],
        )


@dataclass(frozen=True)
class Rule:
    """One rule at one moment."""

    name: str
    """The rule's name."""
    algorithm: Algorithm
    """The rule's algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or
    `sliding_counter`."""
    unit: str
    """The unit that the rule counts, usually `requests`."""
    limit: int
    """Units that the rule allows per period."""
    period: float
    """The rule's period."""
    capacity: int
    """Maximum number of units that the rule allows at once."""
    reserve: int
    """Units that only high priorities may use."""
    remaining: int
    """Whole units that are left for high priorities, which may use the reserve."""
    remaining_background: int
    """Whole units that are left for background calls."""
    next_in: Optional[float]
    """Time until one more unit is available if no call takes any; None = the rule has as many as it can have
    now."""
    full_in: Optional[float]
    """Time until `capacity` units are available; None = they are available now, or the breaker allows fewer now."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Rule:
        return cls(
            name=document["name"],
            algorithm=document["algorithm"],
            unit=document["unit"],
            limit=document["limit"],
            period=document["period_ns"] / 1e9,
            capacity=document["capacity"],
            reserve=document["reserve"],
            remaining=document["remaining"],
            remaining_background=document["remaining_background"],
            next_in=_seconds(document["next_in_ns"]),
            full_in=_seconds(document["full_in_ns"]),
        )


@dataclass(frozen=True)
class Counts:
    """Counts since a limiter was created, of every process that ever used it."""

    granted: int
    """Calls granted."""
    refused: int
    """Calls refused. A call that waited counts once, when it gives up."""
    looked: int
    """How often waiting calls checked whether it was their turn."""
    cache_hits: int
    """Answers that were found in a cache."""
    cache_misses: int
    """Answers that were not found in a cache."""
    codes: Mapping[str, int]
    """Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Counts:
        return cls(
            granted=document["granted"],
            refused=document["refused"],
            looked=document["looked"],
            cache_hits=document["cache_hits"],
            cache_misses=document["cache_misses"],
            codes=document["codes"],
        )


@dataclass(frozen=True)
class Snapshot(SnapshotMethods):
    """A limiter at one moment."""

    name: str
    """The limiter's name."""
    directory: Path
    """The directory of the limiter."""
    provider: str
    """The provider whose limits these are."""
    concurrency: Optional[int]
    """Maximum number of calls in flight, as configured; None = unlimited."""
    concurrency_background: Optional[int]
    """Maximum number of background calls in flight, as configured; None = no separate limit."""
    in_flight: int
    """Permits in use."""
    in_flight_background: int
    """Permits that background calls hold."""
    held_by_exited: int
    """Permits whose process has exited. They are reclaimed as soon as a call needs one."""
    resets: int
    """How often a damaged state was reset."""
    counts: Counts
    """Counts of all processes since the limiter was created, including those that have exited."""
    paused: Optional[Pause]
    """The pause that an operator ordered; None = the limiter is not paused."""
    condition: Condition
    """The condition of the server: breaker, gate, outcomes, pace."""
    fairness: Fairness
    """Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`."""
    background_share: float
    """The share that background calls always get, from 0 to 1."""
    rules: Tuple[Rule, ...]
    """The rules, in the order of the configuration."""
    participants: Tuple[Participant, ...]
    """The attached processes that are alive."""
    queue: Tuple[Waiter, ...]
    """The waiting calls, in the order in which they will be served. A background call that is owed its
    `background_share` comes before all others."""
    _document: Dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def _of(cls, document: Mapping[str, Any], directory: Path) -> Snapshot:
        return cls(
            name=document["name"],
            directory=directory,
            provider=document["provider"],
            concurrency=document["concurrency"],
            concurrency_background=document["concurrency_background"],
            in_flight=document["in_flight"],
            in_flight_background=document["in_flight_background"],
            held_by_exited=document["held_by_exited"],
            resets=document["resets"],
            counts=Counts._of(document["counts"]),
            paused=None if document["paused"] is None else Pause._of(document["paused"]),
            condition=Condition._of(document),
            fairness=document["fairness"],
            background_share=document["background_share"],
            rules=tuple(Rule._of(one) for one in document["rules"]),
            participants=tuple(Participant._of(one) for one in document["participants"]),
            queue=tuple(Waiter._of(one) for one in document["queue"]),
            _document=dict(document),
        )
