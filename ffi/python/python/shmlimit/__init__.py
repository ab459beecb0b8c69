"""One rate limit for every program on the machine that calls the same API.

The limit lives in one memory-mapped file. There is no server: the processes coordinate through the file.

    from shmlimit import Limiter

    limiter = Limiter("tmdb")                  # 35 calls a second, 4 at a time, for all programs together
    with limiter.acquire(timeout=5) as grant:
        answer = requests.get(url)
        grant.record(answer.status_code, headers=answer.headers)
"""

from ._errors import Blocked, ConfigError, Error, Refused
from ._limiter import Limiter, limiters
from ._shmlimit import Advice, Grant, __version__, layout_version, presets

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than importing this whole package
if TYPE_CHECKING:
    from ._callbacks import WaitNotice
    from ._names import (
        Algorithm,
        BreakerCommand,
        BreakerState,
        ErrorCode,
        Fairness,
        NetError,
        OnMismatch,
        OutcomeClass,
        Priority,
        Reason,
        TransitionCause,
        WaitSource,
    )
    from ._pending import PendingAcquire
    from ._snapshot import (
        Condition,
        Counts,
        Gate,
        OutcomeCounts,
        Pace,
        PaceWindow,
        Participant,
        Pause,
        Rule,
        Snapshot,
        Transition,
        Waiter,
    )

__all__ = [
    "Advice",
    "Algorithm",
    "Blocked",
    "BreakerCommand",
    "BreakerState",
    "Condition",
    "ConfigError",
    "Counts",
    "Error",
    "ErrorCode",
    "Fairness",
    "Gate",
    "Grant",
    "Limiter",
    "NetError",
    "OnMismatch",
    "OutcomeClass",
    "OutcomeCounts",
    "Pace",
    "PaceWindow",
    "Participant",
    "Pause",
    "PendingAcquire",
    "Priority",
    "Reason",
    "Refused",
    "Rule",
    "Snapshot",
    "Transition",
    "TransitionCause",
    "WaitNotice",
    "WaitSource",
    "Waiter",
    "__version__",
    "layout_version",
    "limiters",
    "presets",
]


if not TYPE_CHECKING:

    def _claim(*values):
        """Gives the classes this package's name as their module, wherever they are defined."""
        for value in values:
            if isinstance(value, type):
                value.__module__ = __name__

    _claim(Advice, Blocked, ConfigError, Error, Grant, Limiter, Refused)

    def __getattr__(name):
        """Imports the other names on first use, so that importing the package does not import dataclasses, typing
        or asyncio."""
        if name in __all__:
            for module in ("_names", "_snapshot", "_pending", "_callbacks"):
                value = getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name, None)
                if value is not None:
                    _claim(value)
                    globals()[name] = value
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
