"""The names that the library takes and returns, as types: a type checker rejects `priority="usr"`.

A test compares them with the compiled module.
"""

from typing import Literal

Priority = Literal["background", "user", "webhook"]
"""The priority of a call."""

Algorithm = Literal["token_bucket", "gcra", "leaky_bucket", "fixed_window", "sliding_log", "sliding_counter"]
"""How a rule counts."""

OnMismatch = Literal["error", "adopt", "update"]
"""The action if the limiter exists with other settings than the given ones."""

Reason = Literal[
    "sleep",
    "cache_only",
    "open",
    "retry_after",
    "adaptive",
    "concurrency",
    "rate",
    "cost_exceeds_limit",
    "queued",
    "queue_full",
    "paused",
    "busy",
]
"""Why a call was refused."""

ErrorCode = Literal[
    "bad_name",
    "unknown_limiter",
    "already_exists",
    "directory",
    "unsafe_file",
    "foreign",
    "damaged",
    "network_file_system",
    "liveness",
    "busy",
    "slots_full",
    "config_mismatch",
    "does_not_fit",
    "policy",
    "config",
    "environment",
    "bad_status",
    "bad_value",
    "no_such_state",
    "unknown_unit",
    "replaced",
    "unsupported",
    "io",
    "closed",
    "grant_done",
    "in_use",
    "refused",
]
"""The code of an error."""

BreakerState = Literal["normal", "throttle", "sleep", "half_open", "cache_only", "open", "closed"]
"""A state of the breaker. A consecutive breaker has `closed`, `open` and `half_open`."""

BreakerCommand = Literal[
    "normal",
    "throttle",
    "sleep",
    "half_open",
    "cache_only",
    "offline",
    "online",
    "closed",
    "open",
    "clear_gate",
]
"""The commands of `Limiter.force`."""

TransitionCause = Literal[
    "forced",
    "consec_429",
    "error_ratio",
    "sustained_errors",
    "success_window_ok",
    "sleep_expired",
    "probe_ok",
    "probe_failed",
    "auto_recover",
    "consecutive_failures",
    "reset_timeout",
]
"""Why the breaker's state changed."""

NetError = Literal["connect_timeout", "read_timeout", "dns", "connection"]
"""Why a call got no answer."""

OutcomeClass = Literal["ok", "429", "5xx", "net", "ignored"]
"""How a call ended, as far as it matters to the limiter."""

WaitSource = Literal["retry_after", "backoff"]
"""The source of the wait after a failed call."""

Fairness = Literal["process", "fifo"]
"""Which waiting call of one priority is next."""
