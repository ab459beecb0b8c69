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
    @property
    def name(self) -> str: ...
    @property
    def directory(self) -> Path: ...
    @property
    def closed(self) -> bool: ...
    @property
    def config(self) -> str: ...
    @property
    def environment_changes(self) -> List[str]: ...
    def acquire(
        self,
        *,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
        deadline: Union[float, datetime, None] = None,
    ) -> Grant: ...
    def try_acquire(self, *, cost: Optional[_Cost] = None, priority: Optional[Priority] = None) -> Grant: ...
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
    ) -> Advice: ...
    def force(self, state: BreakerCommand) -> List[Transition]: ...
    def pause(
        self, duration: Union[float, timedelta, None] = None, reason: Optional[str] = None
    ) -> None: ...
    def resume(self) -> bool: ...
    def remove(self, force: bool = False) -> bool: ...
    def metrics(self) -> str: ...
    def set(self, key: str, value: _Value) -> None: ...
    def count_cache(self, hit: bool) -> None: ...
    def close(self) -> None: ...
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
    def delay(self) -> float: ...
    @property
    def done(self) -> bool: ...
    @property
    def limiter(self) -> _Limiter: ...
    def record(
        self,
        status: Optional[int] = None,
        *,
        error: Optional[NetError] = None,
        headers: Optional[_Headers] = None,
        latency: Union[float, timedelta, None] = None,
        attempt: Optional[int] = None,
        cost: Optional[_Cost] = None,
    ) -> Advice: ...
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
    def release(self) -> None: ...
    def cancel(self) -> None: ...
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
