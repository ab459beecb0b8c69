"""One rate limit for every program on the machine that calls the same API.

It lives in one memory-mapped file. There is no server: the processes themselves are the system.

    from shmlimit import Limiter

    limiter = Limiter("tmdb")                  # 35 calls a second, 4 at a time, for all programs together
    with limiter.acquire(timeout=5) as grant:
        answer = requests.get(url)
        grant.record(answer.status_code, headers=answer.headers)
"""

from ._acquiring import Acquiring
from ._errors import Blocked, ConfigError, Error, Refused
from ._limiter import Limiter, limiters
from ._shmlimit import Grant, Advice, __version__, layout_version, presets
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
    "Acquiring",
    "Blocked",
    "Condition",
    "ConfigError",
    "Counts",
    "Error",
    "Gate",
    "Grant",
    "Limiter",
    "OutcomeCounts",
    "Pace",
    "PaceWindow",
    "Participant",
    "Pause",
    "Advice",
    "Refused",
    "Rule",
    "Snapshot",
    "Transition",
    "Waiter",
    "__version__",
    "layout_version",
    "limiters",
    "presets",
]

# What belongs to the package should say so, wherever it is defined.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
