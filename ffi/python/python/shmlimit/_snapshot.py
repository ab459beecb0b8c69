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
    """How long it has lasted."""
    ends_in: Optional[float]
    """In how long it ends by itself; None = it lasts until the limiter is resumed."""
    pid: int
    """The id of the process that paused the limiter. That process may have ended since."""
    program: str
    """The program name of that process; of `shmlimit pause`, its user."""
    reason: Optional[str]
    """Why, as the operator put it; None = no reason was given."""

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
    """How long ago it was."""
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
    """One window of the provider's at one moment, as response headers told of it."""

    name: str
    """The window's name."""
    limit: int
    """The window's limit."""
    remaining: int
    """What is left of the window."""
    usage: float
    """How much of the window is used, from 0 to 1."""
    resets_in: Optional[float]
    """In how long it starts anew; None = unknown."""

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
    """The pace that response headers taught."""

    interval: float
    """The smallest gap between calls that response headers taught."""
    bottleneck: Optional[str]
    """The window that the gap is for; None = there is none."""
    windows: Tuple[PaceWindow, ...]
    """What the headers said of each window of the provider's."""

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Pace:
        return cls(
            interval=document["interval_ns"] / 1e9,
            bottleneck=document["bottleneck"],
            windows=tuple(PaceWindow._of(one) for one in document["windows"]),
        )


@dataclass(frozen=True)
class OutcomeCounts:
    """How calls ended since a limiter was made."""

    ok: int
    """Calls that succeeded."""
    throttled: int
    """Calls that ended with 429."""
    server: int
    """Calls that ended with 5xx."""
    net: int
    """Calls without an answer."""
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
    """In how long it opens."""
    pid: int
    """The id of the process that recorded the Retry-After."""
    program: str
    """The program name of that process."""
    recorded: float
    """How long ago it was recorded."""

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
    """The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`; of a consecutive breaker
    `closed`, `open` or `half_open`; without a breaker `normal`."""
    state_for: float
    """How long the state has lasted; if it has never changed, since the limiter was made."""
    reason: Optional[TransitionCause]
    """Why the state began; None = it has never changed."""
    eta: Optional[float]
    """In how long the state ends by itself; None = it does not. A Sleep is not over before the gate opens. In other
    states it is the time of the next rise of the rate."""
    offline: bool
    """Whether an operator has put the limiter offline."""
    rate: float
    """Units a second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it is
    the rate of the first rule."""
    concurrency_now: Optional[int]
    """Most calls in flight in this state; None = any number."""
    gate: Optional[Gate]
    """The gate that a Retry-After closed; None = it is open."""
    samples: int
    """Outcomes that count now."""
    error_ratio: float
    """The ratio of errors among the outcomes that count now."""
    consec429: int
    """Successive 429."""
    failures: int
    """Successive failures, of a consecutive breaker."""
    outcomes: OutcomeCounts
    """How calls ended since the limiter was made."""
    pace: Optional[Pace]
    """The pace that response headers taught; None = the limiter does not read them."""
    transitions: Tuple[Transition, ...]
    """The newest changes of the breaker's state, the newest last."""

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
    """The id of the process that waits, in its own pid namespace."""
    program: str
    """Its program name."""
    priority: Priority
    """The call's priority: `background`, `user` or `webhook`."""
    group: str
    """Stands for the call's group: equal for the processes that take their turns together."""
    cost: Mapping[str, int]
    """How much of each unit the call needs. Units of which it needs nothing are left out."""
    waited_for: float
    """How long it has waited."""
    looks_in: float
    """In how long it will look again by itself; 0 = it is about to, or late."""
    late: bool
    """Whether it has not looked when it should: it is stopped, starved or dying. Others pass it over, and it keeps
    its place."""
    gives_up_in: Optional[float]
    """In how long it gives up; None = it waits as long as it takes."""

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
    """Its program name."""
    attached_for: float
    """How long it has been attached."""
    held: int
    """Permits it holds."""
    held_for: Optional[float]
    """How long it has held at least one permit without a break; None = it holds none."""
    granted: int
    """How often it was granted a call."""
    refused: int
    """How often it was refused a call. A call that waited counts once, when it gives up."""
    looked: int
    """How often its waiting calls looked whether it was their turn."""

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
    """Its algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or `sliding_counter`."""
    unit: str
    """The unit that it counts, usually `requests`."""
    limit: int
    """Units that the rule allows per period."""
    period: float
    """The rule's period."""
    capacity: int
    """Most units that the rule allows at once."""
    reserve: int
    """Units that only high priorities may use."""
    remaining: int
    """Whole units of the rule that are left for high priorities, which may use the reserve."""
    remaining_background: int
    """Whole units of the rule that are left for the background."""
    next_in: Optional[float]
    """In how long there is one more unit if no call takes any; None = there are as many as there can be now."""
    full_in: Optional[float]
    """In how long there are as many units as `capacity`; None = there are, or the breaker allows fewer now."""

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
    """What was counted since a limiter was made, by every process that ever used it."""

    granted: int
    """Calls granted."""
    refused: int
    """Calls refused. A call that waited counts once, when it gives up."""
    looked: int
    """How often waiting calls looked whether it was their turn."""
    cache_hits: int
    """Answers found in a cache."""
    cache_misses: int
    """Answers not found in a cache."""
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
    """The directory it lives in."""
    provider: str
    """The provider whose limits these are."""
    concurrency: Optional[int]
    """Most calls in flight, as configured; None = any number."""
    concurrency_background: Optional[int]
    """Most background calls in flight, as configured; None = as many as of any priority."""
    in_flight: int
    """Permits that are out."""
    in_flight_background: int
    """Permits that background calls hold."""
    held_by_exited: int
    """Permits whose holder has exited. They are reclaimed as soon as a call needs one."""
    resets: int
    """How often a damaged state had to be started afresh."""
    counts: Counts
    """Counts of all processes since the limiter was made, also of those that have exited."""
    paused: Optional[Pause]
    """The pause that an operator ordered; None = the limiter is not paused."""
    condition: Condition
    """How the server is doing: breaker, gate, outcomes, pace."""
    fairness: Fairness
    """Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`."""
    background_share: float
    """The share that background calls get in any case, from 0 to 1."""
    rules: Tuple[Rule, ...]
    """The rules, in the order of the configuration."""
    participants: Tuple[Participant, ...]
    """The processes that are attached and alive."""
    queue: Tuple[Waiter, ...]
    """The calls that wait, in the order in which they will be served. A background call that is owed its
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
