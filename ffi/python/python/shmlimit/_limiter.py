"""The limiter handle. The Python part adds a decorator, dataclasses, awaiting and pickling."""

from __future__ import annotations

import os
import sys
import time

from . import _shmlimit
from ._blocks import Blocks
from ._shmlimit import Grant

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than importing this whole package
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from types import TracebackType
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

    from typing_extensions import Self

    from ._callbacks import Callbacks, WaitNotice
    from ._errors import Refused
    from ._names import Algorithm, OnMismatch, Priority
    from ._pending import PendingAcquire
    from ._snapshot import Snapshot, Transition

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Self = TypeVar("_Self", bound="Limiter")
    _Cost = Union[int, Mapping[str, int]]
    _Path = Union[str, "os.PathLike[str]"]
    _Value = Union[str, int, float, bool]


class Limiter(_shmlimit.Limiter):
    """A named budget, shared with every process that opens the same name in the same directory.

    Open it once per process. Any thread and any forked child can use it, until close().

    `with limiter:` and `async with limiter:` wait for a grant like acquire(), and release it at the end of the
    block. Any number of threads, tasks and nested blocks may use one limiter in this way at the same time.

    name: the limiter's name. Without settings an existing limiter is used as it is, and a missing one is created
        from the preset of the same name.
    directory: the directory of the limiters. Default: $SHMLIMIT_DIR, or the usual place.
    preset, config, settings: the settings that the limiter must have: a preset's name, the text of a TOML file,
        single settings.
    rate: "35/s", "100/min", "1000/day", "40/10s": the maximum in any one period; or a list of such rates, which may
        name what they count: ["100/min", "tokens=30k/min"]. burst: a token bucket that allows this many calls at
        once. algorithm: how the rate is counted. concurrency: the maximum number of calls in flight.
    on_mismatch: what to do if the limiter exists with other settings. "error": raise ConfigError, whose message
        lists the differences. "adopt": use the limiter as it is. "update": change the settings for every program
        that uses the limiter; spent units stay spent. An update changes the numbers of existing rules (limit,
        period, burst), the concurrency, and the other settings that docs/configuration.md marks as changeable. Single
        settings cannot add or remove rules or change an algorithm. A config or a preset is the whole configuration: it
        can do both, if the units stay the same and the file has room. Otherwise use replace.
    group: processes of one group take turns in the queue as if they were one process.
    create: whether to create the limiter if it does not exist. False: raise Error of code "unknown_limiter"
        instead. Settings are compared with those of the existing limiter either way: on_mismatch decides.
    replace: creates the limiter afresh and replaces an existing one; programs that use the old one move to the new
        one within a second.
    ignore_environment: ignores variables such as SHMLIMIT_RATE_BASE. Otherwise their changes apply to every program
        that uses the limiter. They are listed in environment_changes, and logged as a warning by the logger
        "shmlimit".
    allow_network_fs: accepts a network file system, at your own risk.
    test_clock: a shmlimit.testing.TestClock, for tests: calls move it instead of sleeping. Requires a directory.
    on_wait: called with a WaitNotice when a call of this handle begins to wait in the queue.
    on_refused: called with a Refused just before it is raised.
    on_transition: called with a Transition when this process changes the breaker's state. Transitions that other
        processes make are in snapshot().condition.transitions. A limiter made from a rate has no breaker, so this is
        never called, unless settings={"breaker.kind": "fsm"} (five states) or "consecutive" gives it one.

    Callbacks run in the thread that makes the call (in asyncio: in the loop's thread), and the call continues
    when they return. An exception in a callback is logged by the logger "shmlimit". Pauses, changed settings and the
    breaker's recovery are logged there as INFO; a closed gate, and a breaker that slows or stops calls, as WARNING.
    A program that does not configure `logging` sees only the exceptions.
    """

    __slots__ = ("_blocks", "_callbacks")

    _blocks: Blocks
    _callbacks: Optional[Callbacks]

    def __new__(
        cls,
        name: str,
        *,
        directory: Optional[_Path] = None,
        preset: Optional[str] = None,
        config: Optional[str] = None,
        settings: Optional[Mapping[str, _Value]] = None,
        group: Optional[str] = None,
        rate: Union[str, Sequence[str], None] = None,
        burst: Optional[int] = None,
        algorithm: Optional[Algorithm] = None,
        concurrency: Union[int, str, None] = None,
        on_mismatch: OnMismatch = "error",
        create: bool = True,
        replace: bool = False,
        ignore_environment: bool = False,
        allow_network_fs: bool = False,
        test_clock: Optional[_shmlimit.TestClock] = None,
        on_wait: Optional[Callable[[WaitNotice], object]] = None,
        on_refused: Optional[Callable[[Refused], object]] = None,
        on_transition: Optional[Callable[[Transition], object]] = None,
    ) -> Self:
        callbacks = None
        if on_wait is not None or on_refused is not None or on_transition is not None:
            from ._callbacks import Callbacks

            callbacks = Callbacks(on_wait, on_refused, on_transition)
        flags = {
            "create": create,
            "replace": replace,
            "ignore_environment": ignore_environment,
            "allow_network_fs": allow_network_fs,
        }
        for flag, value in flags.items():
            if not isinstance(value, bool):
                raise TypeError(f"{flag} must be a bool, not {type(value).__qualname__}")
        limiter = super().__new__(
            cls,
            name,
            directory=_place(directory),
            preset=preset,
            config=config,
            settings=settings,
            group=group,
            rate=rate,
            burst=burst,
            algorithm=algorithm,
            concurrency=concurrency,
            on_mismatch=on_mismatch,
            test_clock=test_clock,
            **flags,
        )
        limiter._blocks = Blocks()
        limiter._callbacks = callbacks
        limiter._deliver()
        changes = limiter.environment_changes
        if changes or replace:
            from ._log import log

            if replace:
                log.info("%s: made afresh in %s; programs that use it go over to the new one", name, limiter.directory)
            for change in changes:
                log.warning("%s: %s", name, change)
        return limiter

    def acquire_async(
        self,
        *,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
        deadline: Union[float, datetime, None] = None,
    ) -> PendingAcquire:
        """acquire() for asyncio and trio: `async with limiter.acquire_async() as grant`, or await it, or pass it to
        `asyncio.create_task`, `gather`, `wait_for`. It is a coroutine, so it can be awaited once.

        It waits in the same queue, and takes the arguments of acquire(). Like acquire(), it does not sleep the delay of
        a leaky bucket: `await asyncio.sleep(grant.delay)`, or use `async with limiter:`. Cancelling the task leaves the queue at
        once. A timeout starts when the coroutine is awaited.
        """
        from ._pending import PendingAcquire

        keywords: Dict[str, Any] = {}
        if cost is not None:
            keywords["cost"] = cost
        if priority is not None:
            keywords["priority"] = priority
        if timeout is not None:
            keywords["timeout"] = timeout
        if deadline is not None:
            keywords["deadline"] = deadline
        return PendingAcquire(self, keywords)

    def snapshot(self) -> Snapshot:
        """The state of the limiter at this moment, for people and dashboards."""
        from . import Snapshot

        return Snapshot._of(self._snapshot(), self.directory)

    if TYPE_CHECKING:

        @overload
        def limit(self, function: _Function) -> _Function: ...

        @overload
        def limit(
            self,
            function: None = None,
            *,
            cost: Optional[_Cost] = None,
            priority: Optional[Priority] = None,
            timeout: Union[float, timedelta, None] = None,
        ) -> Callable[[_Function], _Function]: ...

    def limit(
        self,
        function: Optional[_Function] = None,
        *,
        cost: Optional[_Cost] = None,
        priority: Optional[Priority] = None,
        timeout: Union[float, timedelta, None] = None,
    ) -> Union[_Function, Callable[[_Function], _Function]]:
        """A decorator: every call of the function, `def` or `async def`, waits for a grant, and holds it until the
        function ends. The delay of a leaky bucket is slept before the function runs.

        Use it without arguments, or with those of acquire(): `@limiter.limit(priority="user")`.
        """
        self._check(cost, priority, timeout)
        keywords: Dict[str, Any] = {"cost": cost, "priority": priority, "timeout": timeout}
        if function is not None:
            return self._limited(function, keywords)
        return lambda function: self._limited(function, keywords)

    def _limited(self, function: _Function, keywords: Dict[str, Any]) -> _Function:
        import functools
        import inspect

        if not callable(function):
            raise TypeError(f"limit decorates a function, not {type(function).__qualname__}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("limit cannot decorate a generator: it would hold its grant between its values")
        wrapper: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wait_and_await(*args: Any, **kwargs: Any) -> Any:
                async with self.acquire_async(**keywords) as grant:
                    await self._hold_back(grant)
                    return await function(*args, **kwargs)

            wrapper = wait_and_await
        else:

            @functools.wraps(function)
            def wait_and_call(*args: Any, **kwargs: Any) -> Any:
                with self.acquire(**keywords) as grant:
                    if grant.delay > 0 and not self._passes(grant.delay):
                        try:
                            time.sleep(grant.delay)
                        except BaseException:
                            grant.cancel()
                            raise
                    return function(*args, **kwargs)

            wrapper = wait_and_call
        limited: _Function = wrapper
        return limited

    def __enter__(self) -> Grant:
        """Waits for a grant: `with limiter as grant`. Then sleeps the delay of a leaky bucket."""
        grant = self.acquire()
        if grant.delay > 0 and not self._passes(grant.delay):
            try:
                time.sleep(grant.delay)
            except BaseException:
                grant.cancel()
                raise
        self._blocks.enter(sys._getframe(1), grant)
        return grant

    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._blocks.leave(sys._getframe(1), self).__exit__(exc_type, exc_value, traceback)

    async def __aenter__(self) -> Grant:
        """Waits for a grant on asyncio or trio: `async with limiter as grant`. Otherwise like `with limiter`."""
        block = sys._getframe(1)
        grant = await self.acquire_async()
        await self._hold_back(grant)
        self._blocks.enter(block, grant)
        return grant

    async def __aexit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._blocks.leave(sys._getframe(1), self).__exit__(exc_type, exc_value, traceback)

    async def _hold_back(self, grant: Grant) -> None:
        """Sleeps the delay of a leaky bucket."""
        if grant.delay > 0 and not self._passes(grant.delay):
            from ._pending import sleep_async

            try:
                await sleep_async(grant.delay)
            except BaseException:
                grant.cancel()
                raise

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopened, (type(self), self.name, self._options())


def _reopened(cls: Type[_Self], name: str, options: Dict[str, Any]) -> _Self:
    """Opens an unpickled limiter with its current settings, whatever settings created it."""
    return cls(name, create=False, **options)


def limiters(directory: Optional[_Path] = None) -> List[str]:
    """The names of the limiters in a directory (default: the usual one)."""
    return _shmlimit.limiters(_place(directory))


def _place(directory: Optional[_Path]) -> Optional[str]:
    try:
        return None if directory is None else os.fsdecode(directory)
    except TypeError:
        raise TypeError(f"directory must be a str or a path, not {type(directory).__qualname__}") from None
