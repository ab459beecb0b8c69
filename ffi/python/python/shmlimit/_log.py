"""The logger of this package. Importing `logging` takes time, so this module is imported with the first event."""

from __future__ import annotations

import logging

log = logging.getLogger("shmlimit")


class _Quiet(logging.Handler):
    """Keeps a program that does not configure `logging` quiet, as a NullHandler does. Without a handler, Python
    prints warnings on standard error. Only an error is still printed: an exception in a callback must not be lost.
    """

    def emit(self, record: logging.LogRecord) -> None:
        last = logging.lastResort
        configured = log.handlers != [self] or logging.getLogger().handlers
        if record.levelno >= logging.ERROR and last is not None and not configured:
            last.handle(record)


log.addHandler(_Quiet())
