"""The exceptions. A refusal ("not now") has its own class."""

from __future__ import annotations

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than importing this whole package
if TYPE_CHECKING:
    from typing import Any, Literal, Optional

    from ._names import ErrorCode, Reason


def _item(error: BaseException, i: int, missing: Any = None) -> Any:
    return error.args[i] if i < len(error.args) else missing


class Error(Exception):
    """A failure. Its message says what happened, which file or key is concerned, and what to do; nothing was
    changed."""

    # All data of an error is in its args, and there is no __init__, so raising one is as cheap as possible: where a
    # rate is used up, Refused is raised often. This also makes errors picklable.

    @property
    def message(self) -> str:
        """The message, for people."""
        return str(_item(self, 0) or "")

    @property
    def code(self) -> ErrorCode:
        """The code, for programs: a stable name such as "config_mismatch"."""
        # Only an error that Python code made itself has no code.
        code: ErrorCode = _item(self, 1, "bad_value")
        return code

    @property
    def errno(self) -> Optional[int]:
        """The operating system's error number, for code "io"."""
        number: Optional[int] = _item(self, 2)
        return number

    def __str__(self) -> str:
        return self.message


class ConfigError(Error, ValueError):
    """A name, a setting or a state that is invalid, or does not match the existing limiter."""


class Refused(Error):
    """The call may not be made now: why, and when to ask again. Nothing was taken."""

    @property
    def code(self) -> Literal["refused"]:
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
        """The first reason for the refusal: "rate", "concurrency", "adaptive", "cost_exceeds_limit", "queued",
        "queue_full", "paused", "busy"; for Blocked "sleep", "cache_only", "open", "retry_after"."""
        reason: Reason = _item(self, 2, "")
        return reason

    @property
    def rule(self) -> Optional[str]:
        """The rule that refused, if it was a rule."""
        name: Optional[str] = _item(self, 3)
        return name

    @property
    def retry_after(self) -> Optional[float]:
        """In how many seconds to ask again: until then this reason refuses the call. Another reason, or the calls of
        other programs, may still refuse it then. None = never, or unknown."""
        seconds: Optional[float] = _item(self, 4)
        return seconds

    @property
    def ready_after(self) -> Optional[float]:
        """The shortest timeout, in seconds, that could succeed: all reasons and the calls ahead in the queue are
        counted. None = never, or unknown."""
        seconds: Optional[float] = _item(self, 5)
        return seconds


class Blocked(Refused):
    """The breaker or the gate refuses: the server fails, or has said when to call again."""

    @property
    def state(self) -> Literal["sleep", "cache_only", "open", "gate"]:
        """The breaker's state: "sleep", "cache_only" or "open"; "gate" if the gate refuses, which a Retry-After
        closed."""
        state: Literal["sleep", "cache_only", "open", "gate"] = _item(self, 2, "")
        return "gate" if self.reason == "retry_after" else state

    @property
    def eta(self) -> Optional[float]:
        """In how many seconds the breaker or the gate lets calls through again; None = unknown. If the
        breaker sleeps and a recorded Retry-After lasts longer than the sleep, this is the time until that Retry-After
        ends."""
        seconds: Optional[float] = _item(self, 6)
        return seconds if seconds is not None else self.retry_after
