"""What can go wrong. A refusal ("not now") is an exception of its own."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any, Literal, Optional

    from ._names import Reason


def _item(error: BaseException, place: int, missing: Any = None) -> Any:
    return error.args[place] if place < len(error.args) else missing


class Error(Exception):
    """A failure. Its message says what happened, which file or key, and the way out; nothing was changed."""

    # All that is known of an error is in its args, and there is no __init__: raising one costs as little as it can, and
    # where a rate is used up, Refused is raised often. It also makes them pickle.

    @property
    def message(self) -> str:
        """What happened, for people."""
        return str(_item(self, 0) or "")

    @property
    def code(self) -> str:
        """What happened, for programs: a stable name such as "config_mismatch"."""
        return str(_item(self, 1) or "unknown")

    @property
    def errno(self) -> Optional[int]:
        """The operating system's number, of an error of code "io"."""
        number: Optional[int] = _item(self, 2)
        return number

    def __str__(self) -> str:
        return self.message


class ConfigError(Error, ValueError):
    """A name, a setting or a state that makes no sense, or does not fit the limiter that is there."""


class Refused(Error):
    """Not now: why, and when to ask again. Nothing was taken."""

    @property
    def code(self) -> str:
        """Always "refused"."""
        return "refused"

    @property
    def errno(self) -> Optional[int]:
        """Always None."""
        return None

    @property
    def limiter(self) -> str:
        """The name of the limiter."""
        return str(_item(self, 1) or "")

    @property
    def reason(self) -> Reason:
        """The first that stands in the way: "rate", "concurrency", "adaptive", "cost_exceeds_limit", "queued",
        "queue_full", "paused", "busy"; of Blocked "sleep", "cache_only", "open", "retry_after"."""
        reason: Reason = _item(self, 2, "")
        return reason

    @property
    def rule(self) -> Optional[str]:
        """Which rule, if it was one."""
        name: Optional[str] = _item(self, 3)
        return name

    @property
    def retry_after(self) -> Optional[float]:
        """Seconds after which what stands in the way lets the call pass, absent other traffic; None = never, or nobody
        knows."""
        seconds: Optional[float] = _item(self, 4)
        return seconds

    @property
    def ready_after(self) -> Optional[float]:
        """Nobody who gives up before so many seconds can be served; None = never, or nobody knows."""
        seconds: Optional[float] = _item(self, 5)
        return seconds


class Blocked(Refused):
    """The breaker or the gate stands in the way: the server is not well, or has said when to come again."""

    @property
    def state(self) -> Literal["sleep", "cache_only", "open", "gate"]:
        """The breaker's state: "sleep", "cache_only" or "open"; "gate" if it is the gate that a Retry-After closed."""
        state: Literal["sleep", "cache_only", "open", "gate"] = _item(self, 2, "")
        return "gate" if self.reason == "retry_after" else state

    @property
    def eta(self) -> Optional[float]:
        """Seconds until that ends; None if nobody knows. A Sleep is not over before the gate of a longer Retry-After
        opens."""
        seconds: Optional[float] = _item(self, 6)
        return seconds if seconds is not None else self.retry_after
