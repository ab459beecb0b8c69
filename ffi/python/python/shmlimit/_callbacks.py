"""Reports of a limiter to the program: the logger "shmlimit", and the callbacks given to Limiter(…)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, TypeVar

from ._errors import Refused
from ._log import log
from ._names import Priority
from ._snapshot import Transition
from ._snapshot_table import printable

_Argument = TypeVar("_Argument")


@dataclass(frozen=True)
class WaitNotice:
    """A call that waits in the queue. `on_wait` is called with it."""

    limiter: str
    """The name of the limiter."""
    priority: Priority
    """The priority of the call."""
    cost: Mapping[str, int]
    """How much of each unit the call needs."""
    timeout: Optional[float]
    """The timeout of the call; None = no timeout."""


class Callbacks:
    """The callbacks of one handle. An exception in a callback is logged, and the call goes on."""

    __slots__ = ("_on_wait", "_on_refused", "_on_transition")

    def __init__(
        self,
        on_wait: Optional[Callable[[WaitNotice], object]],
        on_refused: Optional[Callable[[Refused], object]],
        on_transition: Optional[Callable[[Transition], object]],
    ) -> None:
        callbacks = {"on_wait": on_wait, "on_refused": on_refused, "on_transition": on_transition}
        for name, callback in callbacks.items():
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be a function, not {type(callback).__qualname__}")
        self._on_wait = on_wait
        self._on_refused = on_refused
        self._on_transition = on_transition

    def on_wait(self, notice: WaitNotice) -> None:
        """A call begins to wait."""
        _call("on_wait", self._on_wait, notice)

    def on_refused(self, refusal: Refused) -> None:
        """A call is refused."""
        _call("on_refused", self._on_refused, refusal)

    def on_transition(self, transition: Transition) -> None:
        """This process changed the breaker's state."""
        _call("on_transition", self._on_transition, transition)


def _call(name: str, callback: Optional[Callable[[_Argument], object]], argument: _Argument) -> None:
    if callback is None:
        return
    try:
        callback(argument)
    except Exception:
        log.exception("%s failed; the call goes on", name)


def report(limiter: Any, is_warning: bool, fields: Dict[str, Any]) -> None:
    """Logs one event of the library. The compiled module calls this after the call in which the event was noticed."""
    event = fields.get("event")
    # Limiter.environment_changes holds these changes too, and opening the limiter logs them with their own message.
    if event != "environment":
        shown = [f"{key}={printable(str(value))}" for key, value in fields.items() if key not in _HIDDEN and value != "-"]
        text = " ".join([str(event), *shown])
        gets_worse = event == "state_transition" and fields.get("to") in _SLOWER_OR_CLOSED
        level = logging.WARNING if is_warning or gets_worse else logging.INFO
        log.log(level, "%s: %s", fields.get("limiter"), fields.get("message", text), extra={"shmlimit": fields})
    callbacks: Optional[Callbacks] = limiter._callbacks
    if callbacks is not None and event == "state_transition" and fields.get("limiter") == limiter.name:
        callbacks.on_transition(Transition(0.0, fields["from"], fields["to"], fields["reason"]))


# The states in which fewer calls, or no calls, are made.
_SLOWER_OR_CLOSED = ("throttle", "sleep", "cache_only", "open")
_HIDDEN = ("event", "limiter", "message")
