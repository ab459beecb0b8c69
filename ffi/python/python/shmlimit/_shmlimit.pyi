# The types of the extension module (ffi/python/src), for type checkers. shmlimit.Limiter in _limiter.py extends its
# Limiter.

from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union, final

from typing_extensions import Self, disjoint_base

from ._limiter import Limiter as _Limiter
from ._names import (
    Algorithm,
    BreakerCommand,
    NetError,
    OnMismatch,
    OutcomeClass,
    Priority,
    WaitSource,
)
from ._snapshot import Transition

_Cost = Union[int, Mapping[str, int]]
_Text = Union[str, bytes]
_Headers = Union[Mapping[str, str], Mapping[bytes, bytes], Iterable[Tuple[_Text, _Text]]]
_Value = Union[str, int, float, bool]

__all__ = ["Grant", "Limiter", "Advice", "EnqueuedCall", "TestClock", "known_names", "limiters", "__version__", "layout_version", "presets"]

__version__: str
layout_version: int
presets: Tuple[str, ...]

def known_names() -> Dict[str, Tuple[str, ...]]: ...
def limiters(directory: Union[str, PathLike[str], None] = None) -> List[str]: ...

@disjoint_base
class Limiter:
    def __new__(
        cls,
        name: str,
        *,
        directory: Union[str, PathLike[str], None] = None,
        preset: Optional[str] = None,
        config: Optional[str] = None,
        settings: Optional[Mapping[str, _Value]] = None,
        group: Optional[str] = None,
        rate: Union[str, Sequence[str], None] = None,
        burst: Optional[int] = None,
        algorithm: Optional[Algorithm] = None,
        concurrency: Union[int, str, None] = None,
        on_mismatch: Optional[OnMismatch] = None,
        create: bool = True,
        replace: bool = False,
        ignore_environment: bool = False,
        allow_network_fs: bool = False,
        test_clock: Optional[TestClock] = None,
    ) -> Self: ...
    @staticmethod
    def _check(
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
    ) -> None: ...
    @property
    def name(self) -> str:
        """The limiter's name."""
        ...
    @property
    def directory(self) -> Path:
        """The directory of the limiter."""
        ...
    @property
    def closed(self) -> bool:
        """Whether this handle was closed."""
        ...
    @property
    def config(self) -> str:
        """The effective settings, as the text of a configuration file."""
        ...
    @property
    def environment_changes(self) -> List[str]:
        """The changes that environment variables made to the limiter when this handle opened it, one sentence each."""
        ...
    def acquire(
        self,
        *,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
        deadline: Union[float, datetime, None] = None,
    ) -> Grant:
        """Waits in the queue of all processes until the call may be made, and returns its Grant. Raises Refused at once if
        the call cannot be granted in time.

        A leaky bucket's grant has a delay: sleep grant.delay seconds before the call. `with limiter:` sleeps it.
        Priorities, most urgent first: "webhook" (a server waits for the answer), "user" (a person waits), "background"
        (the default)."""
        ...
    def try_acquire(self, *, cost: Optional[_Cost] = None, priority: Optional[Priority] = None) -> Grant:
        """Asks once and never waits: returns a Grant, or raises Refused, which says why and when to ask again."""
        ...
    def record(
        self,
        status: Optional[int] = None,
        *,
        error: Optional[NetError] = None,
        headers: Optional[_Headers] = None,
        latency: Union[float, timedelta, None] = None,
        attempt: Optional[int] = None,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
    ) -> Advice:
        """Tells all programs that share the limiter how a call ended that was not granted here. With a grant, use
        Grant.record."""
        ...
    def force(self, state: BreakerCommand) -> List[Transition]:
        """Forces the breaker into a state, or clears the gate, for every program that shares the limiter. Returns the
        transitions that it caused."""
        ...
    def pause(
        self, duration: Union[float, timedelta, None] = None, reason: Optional[str] = None
    ) -> None:
        """Stops all calls in all processes that share the limiter, until resume() or for a duration. Calls that wait keep
        waiting."""
        ...
    def resume(self) -> bool:
        """Ends a pause. Returns whether the limiter was paused."""
        ...
    def remove(self, force: bool = False) -> bool:
        """Removes the limiter, its file and all its counts, and closes this handle. Raises Error of code "in_use" if other
        programs have it open, unless force is True. Returns whether it existed."""
        ...
    def metrics(self) -> str:
        """The limiter's metrics in the text format of Prometheus."""
        ...
    def set(self, key: str, value: Union[_Value, Sequence[str]]) -> None:
        """Changes one setting while the limiter is in use, for every program that shares it: set("concurrency", 8).

        Common keys: "rate" (one rate, or a list), "burst" (if one rule has a burst), "concurrency", "rules.0.limit",
        "rules.0.reserve", "breaker.p_throttle"."""
        ...
    def count_cache(self, hit: bool) -> None:
        """Counts an answer that was found in a cache (hit), or was not found. It affects no decision."""
        ...
    def close(self) -> None:
        """Closes the handle: every later call here raises Error of code "closed". Grants that were given out stay valid."""
        ...
    def _begin(
        self,
        *,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
        deadline: Union[float, datetime, None] = None,
    ) -> Union[Grant, EnqueuedCall]: ...
    def _snapshot(self) -> Dict[str, Any]: ...
    def _deliver(self) -> None: ...
    def _options(self) -> Dict[str, Any]: ...
    def _passes(self, seconds: float) -> bool: ...

@final
class Grant:
    @property
    def delay(self) -> float:
        """Seconds to sleep before the call. Only a leaky bucket's grant has a delay; acquire() does not sleep it."""
        ...
    @property
    def done(self) -> bool:
        """Whether the grant was recorded, released or cancelled."""
        ...
    @property
    def limiter(self) -> _Limiter:
        """The limiter that granted the call."""
        ...
    def record(
        self,
        status: Optional[int] = None,
        *,
        error: Optional[NetError] = None,
        headers: Optional[_Headers] = None,
        latency: Union[float, timedelta, None] = None,
        attempt: Optional[int] = None,
        cost: Optional[_Cost] = None,
    ) -> Advice:
        """Tells all programs that share the limiter how the call ended, and ends the grant. The result says whether to try
        again."""
        ...
    def _note(
        self,
        status: Optional[int] = None,
        *,
        error: Optional[NetError] = None,
        headers: Optional[_Headers] = None,
        latency: Union[float, timedelta, None] = None,
        attempt: Optional[int] = None,
        cost: Optional[_Cost] = None,
    ) -> Advice: ...
    def release(self) -> None:
        """Returns the permit. The call counts as made."""
        ...
    def cancel(self) -> None:
        """Returns the cost and the permit of a call that was not made."""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]] = None,
        exc_value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
        /,
    ) -> None: ...

@final
class Advice:
    @property
    def outcome_class(self) -> OutcomeClass: ...
    @property
    def samples(self) -> int: ...
    @property
    def error_ratio(self) -> float: ...
    @property
    def consec429(self) -> int: ...
    @property
    def wait(self) -> float: ...
    @property
    def wait_at_most(self) -> float: ...
    @property
    def wait_source(self) -> Optional[WaitSource]: ...
    @property
    def retry(self) -> bool: ...
    @property
    def transitions(self) -> Tuple[Transition, ...]: ...

@final
class EnqueuedCall:
    def step(self) -> Union[Grant, float]: ...
    def cancel(self) -> None: ...

@final
class TestClock:
    __test__: bool
    def __new__(cls, start: Union[float, datetime, None] = None) -> Self: ...
    def advance(self, seconds: Union[float, timedelta]) -> None: ...
    def elapsed(self) -> float: ...
    def now(self) -> datetime: ...
